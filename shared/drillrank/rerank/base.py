"""What rankers of passages share: checked input, several questions in one pass, ties in input order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.explanation import Explainable, Explanations
from drillrank.likelihood.shared_turns import to_thread
from drillrank.passages import Passage, Ranked, Ranking, as_passages, check_query, check_top_n, ranked

Scored = tuple[float, dict[str, Any]]


class PassageRanker(ABC):
    """Ranks passages for a question; a subclass says how they are scored."""

    @abstractmethod
    def _scored(self, queries: Sequence[str], lists: Sequence[Sequence[Passage]]) -> Sequence[Sequence[Scored]]:
        """Score and details of every passage of each question's list, in order."""

    @abstractmethod
    def explain(self, query: str, ranking: Sequence[Ranked[Passage]]) -> Explanations:
        """Why each entry of a ranking by this ranker stands where it stands."""

    def rank(self, query: str, passages: Iterable[Passage | str], top_n: int | None = None) -> Ranking[Passage]:
        """Rank passages for one question; ties keep the input order.

        Args:
            query: The question.
            passages: Passages, or plain strings.
            top_n: How many to keep; None keeps all.

        Raises:
            InvalidInput: the query is blank, `top_n` is below 1, or an item is not a passage.
        """
        return self.rank_many([query], [passages], top_n)[0]

    def rank_many(
        self,
        queries: Sequence[str],
        passage_lists: Sequence[Iterable[Passage | str]],
        top_n: int | None = None,
    ) -> list[Ranking[Passage]]:
        """Rank one list of passages for each question, all in one pass of the model; each as `rank` would.

        Raises:
            InvalidInput: as `rank`, or the two lists differ in length.
        """
        queries, lists = paired(queries, passage_lists)
        check_top_n(top_n)
        rankings = ordered(lists, self._scored(queries, lists), top_n)
        return [
            Explainable(ranking, partial(self.explain, query)) for query, ranking in zip(queries, rankings, strict=True)
        ]

    async def arank(self, query: str, passages: Iterable[Passage | str], top_n: int | None = None) -> Ranking[Passage]:
        """As `rank`, without blocking the event loop."""
        return await to_thread(self.rank, query, passages, top_n)

    async def arank_many(
        self,
        queries: Sequence[str],
        passage_lists: Sequence[Iterable[Passage | str]],
        top_n: int | None = None,
    ) -> list[Ranking[Passage]]:
        """As `rank_many`, without blocking the event loop."""
        return await to_thread(self.rank_many, queries, passage_lists, top_n)


def paired(
    queries: Sequence[str], passage_lists: Sequence[Iterable[Passage | str]]
) -> tuple[list[str], list[list[Passage]]]:
    """Questions and their passages, checked.

    Raises:
        InvalidInput: a query is blank, an item is not a passage, or the two differ in length.
    """
    check_pairs(queries, passage_lists, "passages")
    return [check_query(query) for query in queries], [as_passages(passages) for passages in passage_lists]


def check_pairs(queries: Sequence[str], lists: Sequence[object], of: str) -> None:
    """Refuse questions that are not as many as the lists to rank for them.

    Raises:
        InvalidInput: says how many there are.
    """
    if isinstance(queries, str) or len(queries) != len(lists):
        raise InvalidInput(f"{len(queries)} queries and {len(lists)} lists of {of} cannot be paired.")


def ordered(
    lists: Sequence[Sequence[Passage]], scored: Sequence[Sequence[Scored]], top_n: int | None
) -> list[list[Ranked[Passage]]]:
    """Every list in the order of its scores."""
    return [
        ranked(passages, [score for score, _ in scores], [details for _, details in scores], top_n)
        for passages, scores in zip(lists, scored, strict=True)
    ]
