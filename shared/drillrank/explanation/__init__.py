"""Why something stands where it stands in a ranking: one result type, for notebooks, terminals and reports."""

from drillrank.explanation.reasons import Explainable, Explanation, Explanations
from drillrank.explanation.summands import Answer, Part, PathStep, TokenContribution, TreeNode, ViewRank

__all__ = [
    "Answer",
    "Explainable",
    "Explanation",
    "Explanations",
    "Part",
    "PathStep",
    "TokenContribution",
    "TreeNode",
    "ViewRank",
]
