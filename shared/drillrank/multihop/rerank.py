"""Old name of `drillrank.multihop.path_rerank`, for one release."""

from drillrank.moved import moved

__getattr__ = moved(__name__, "drillrank.multihop.path_rerank")
