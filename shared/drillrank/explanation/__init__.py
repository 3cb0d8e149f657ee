"""Why something stands where it stands in a ranking: named terms that add up to its score, shown anywhere."""

from drillrank.explanation.explanations import Explainable, Explanation, Explanations
from drillrank.explanation.terms import Node, Term

__all__ = ["Explainable", "Explanation", "Explanations", "Node", "Term"]
