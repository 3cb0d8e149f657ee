"""Old name of `drillrank.rerank.presets`, for one release."""

from drillrank.moved import moved

__getattr__ = moved(__name__, "drillrank.rerank.presets")
