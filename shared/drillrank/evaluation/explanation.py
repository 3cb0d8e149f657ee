"""Why a passage stands where it stands, whatever ranked it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from drillrank.errors import InvalidInput
from drillrank.explanation import Explainable, Explanations
from drillrank.passages import Path, Ranked
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.upr import UPR


class Explains(Protocol):
    """A ranker that can explain its rankings: `UPR`, `PromptRank`, `PathSearch`, `Relevance`, `MonoT5`, `BRMGR`."""

    def explain(self, query: str, ranking: Sequence[Ranked[Any]], /) -> Explanations:
        """Of what it ranked."""
        ...


def explain(query: str, ranking: Sequence[Any], ranker: Explains | None = None) -> Explanations:
    """Why each entry of a ranking stands where it stands: above all, what each token of the question adds.

    Args:
        query: The question that was asked.
        ranking: What `rank`, `search`, `search_paths` or `retrieve` returned, or some of it. Without what they
            remember, as of a copy or in another list, a model without a collection of its own (`"unigram"`, not fitted)
            needs all candidates: its statistics are theirs.
        ranker: What made it. None is what the ranking remembers, as `ranking.explain()` does, and else `UPR()`, or
            `PromptRank()` for paths.

    Returns:
        One explanation for each entry, in order; `total` equals the score within 1e-6, with a served model within 1e-4.
        It shows itself in notebooks, in terminals (rich, or `print`) and as a picture (`svg()`).

    Raises:
        InvalidInput: the scores are not those of this ranker, for one of the reasons above, or the ranking was made for
            another question.

    >>> ranking = UPR().rank("Who wrote Emma?", ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."])
    >>> best = explain("Who wrote Emma?", ranking)[0]
    >>> max(best.tokens, key=lambda token: token.value).name
    'emma'
    >>> abs(best.total - best.score) < 1e-6
    True
    """
    if ranker is not None:
        return ranker.explain(query, ranking)
    if isinstance(ranking, Explainable) and ranking.why is not None:
        found = ranking.explain()
        if found.question != query:
            raise InvalidInput(f"The ranking was made for {found.question!r:.80}, not for {query!r:.80}.")
        return found
    of_paths = any(isinstance(item.passage, Path) for item in ranking)
    return PromptRank().explain(query, ranking) if of_paths else UPR().explain(query, ranking)
