"""Measures of retrieval quality, and the comparison of components on one's own questions."""

from drillrank.evaluation.comparison import compare
from drillrank.evaluation.comparison_result import Comparison
from drillrank.evaluation.explanation import explain
from drillrank.evaluation.report import html_report
from drillrank.evaluation.tuned import Tuned
from drillrank.evaluation.tuning import tune

__all__ = ["Comparison", "Tuned", "compare", "explain", "html_report", "tune"]
