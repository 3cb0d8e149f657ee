"""Comparison of components on your own questions, measures of retrieval, and the search for better settings."""

from drillrank.evaluation.comparing import compare, explain
from drillrank.evaluation.comparison import Comparison
from drillrank.evaluation.datasets import Dataset, read_2wikimultihop, read_dpr, read_hotpotqa, read_qasper
from drillrank.evaluation.report import html_report
from drillrank.evaluation.strategies import d3_strategies
from drillrank.evaluation.tuning import Tuned, tune

__all__ = [
    "Comparison",
    "Dataset",
    "Tuned",
    "compare",
    "d3_strategies",
    "explain",
    "html_report",
    "read_2wikimultihop",
    "read_dpr",
    "read_hotpotqa",
    "read_qasper",
    "tune",
]
