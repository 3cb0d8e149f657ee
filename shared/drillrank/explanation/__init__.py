"""Explanations of rankings: named terms that add up to each score, displayed in notebooks, terminals and files."""

from drillrank.explanation.explanations import Explainable, Explanation, Explanations
from drillrank.explanation.terms import Node, Term

__all__ = ["Explainable", "Explanation", "Explanations", "Node", "Term"]
