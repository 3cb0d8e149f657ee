"""Old name of `drillrank.views.cutters`, for one release."""

from drillrank.moved import moved

__getattr__ = moved(__name__, "drillrank.views.cutters")
