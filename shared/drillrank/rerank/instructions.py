"""Old name of `drillrank.rerank.instruction_search`, for one release."""

from drillrank.moved import moved

__getattr__ = moved(__name__, "drillrank.rerank.instruction_search")
