"""Measures of retrieval quality, and the comparison of components on one's own questions."""

from drillrank.evaluation.comparison import compare
from drillrank.evaluation.comparison_result import Comparison
from drillrank.evaluation.explanation import explain
from drillrank.evaluation.report import html_report

__all__ = ["Comparison", "compare", "explain", "html_report"]
