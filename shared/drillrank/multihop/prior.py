"""Old name of `drillrank.multihop.link_prior`, for one release."""

from drillrank.moved import moved

__getattr__ = moved(__name__, "drillrank.multihop.link_prior")
