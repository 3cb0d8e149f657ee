"""Old name of `drillrank.drilldown.selection`, for one release."""

from drillrank.moved import moved

__getattr__ = moved(__name__, "drillrank.drilldown.selection")
