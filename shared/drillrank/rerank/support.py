"""Old name of `drillrank.rerank.entailment`, for one release."""

from drillrank.moved import moved

__getattr__ = moved(__name__, "drillrank.rerank.entailment")
