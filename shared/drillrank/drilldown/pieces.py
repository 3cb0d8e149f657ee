"""Old name of `drillrank.drilldown.truncation`, for one release."""

from drillrank.moved import moved

__getattr__ = moved(__name__, "drillrank.drilldown.truncation")
