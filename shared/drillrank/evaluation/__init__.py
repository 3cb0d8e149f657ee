"""Measures of retrieval quality, and the comparison of components on one's own questions."""

from drillrank.evaluation.comparison import Comparison, compare, explain
from drillrank.evaluation.report import html_report
from drillrank.evaluation.tuning import Tuned, tune

__all__ = ["Comparison", "Tuned", "compare", "explain", "html_report", "tune"]
