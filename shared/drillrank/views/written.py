"""Old name of `drillrank.views.llm_views`, for one release."""

from drillrank.moved import moved

__getattr__ = moved(__name__, "drillrank.views.llm_views")
