"""Comparison of components on your own questions, measures of retrieval, and the search for better settings."""

from drillrank.evaluation.comparing import compare, explain
from drillrank.evaluation.comparison import Comparison
from drillrank.evaluation.report import html_report
from drillrank.evaluation.tuning import Tuned, tune

__all__ = ["Comparison", "Tuned", "compare", "explain", "html_report", "tune"]
