"""Old name of `drillrank.views.packing`, for one release."""

from drillrank.moved import moved

__getattr__ = moved(__name__, "drillrank.views.packing")
