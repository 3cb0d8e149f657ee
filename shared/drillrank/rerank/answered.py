"""Scores that a model's yes and no were made into, explained.

log P(relevant) = log-odds + log P(not relevant), or the score is the log-odds themselves
"""

from __future__ import annotations

from drillrank.explanation import Answer, Explanation, Part
from drillrank.passages import Passage, Ranked
from drillrank.rerank.contributions import name_of
from drillrank.rerank.scale import log_sigmoid

NO_TOKENS = "The model answers about the question as a whole: it tells no contribution of a token."


def answered(item: Ranked[Passage], answers: tuple[Answer, ...], odds: float, *, in_logs: bool) -> Explanation:
    """The explanation of one entry.

    Args:
        item: The entry.
        answers: What the model said.
        odds: The log-odds of relevance that were made of it.
        in_logs: Whether the score is log P(relevant).
    """
    parts = [Part("log-odds", odds)]
    if in_logs:
        parts.append(Part("log P(not relevant)", log_sigmoid(-odds)))
    named = name_of(item.passage)
    return Explanation(item.rank, item.score, named, (named,), parts=tuple(parts), answers=answers, note=NO_TOKENS)
