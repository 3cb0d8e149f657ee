"""Likelihood's view of sections and paragraphs for one question: the choice where the LLM leaves a gap."""

from __future__ import annotations

from collections.abc import Sequence

from drillrank.drilldown.evidence import Scores
from drillrank.drilldown.outline import Entry
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.vectors import Floats


class Likelihoods:
    """Likelihoods of the paragraphs for one question; nothing is scored before it is asked for."""

    def __init__(self, ready: PreparedDocuments, question: str) -> None:
        self._ready = ready
        self._question = question

    def scored(self, positions: Sequence[int]) -> Scores:
        """Scores and details of paragraphs."""
        return self._ready.evidence.scored(self._question, positions)

    def totals(self, positions: Sequence[int]) -> dict[int, float]:
        """S of paragraphs."""
        return dict(zip(positions, self.scored(positions).totals.tolist(), strict=True))

    def best(self, totals: Sequence[float] | Floats) -> int:
        """How many of the best paragraphs are evidence, given S of all."""
        return self._ready.evidence.best(totals)

    def paragraphs(self, paragraphs: Sequence[int]) -> ParagraphLikelihoods:
        """The view of some paragraphs."""
        return ParagraphLikelihoods(self, paragraphs)

    def entries(self, entries: Sequence[Entry]) -> EntryLikelihoods:
        """The view of lines of the outline."""
        return EntryLikelihoods(self, [self._ready.inside(entry.sections) for entry in entries])


class ParagraphLikelihoods:
    """Likelihood's view of paragraphs, given by their places in a list."""

    def __init__(self, likelihoods: Likelihoods, paragraphs: Sequence[int]) -> None:
        self._likelihoods = likelihoods
        self._paragraphs = paragraphs

    def order(self, positions: Sequence[int]) -> list[int]:
        """All of them, best first."""
        totals = self._totals(positions)
        return sorted(positions, key=totals.__getitem__, reverse=True)

    def choose(self, positions: Sequence[int]) -> list[int]:
        """Those that it takes for evidence."""
        return sorted(self.order(positions)[: self._likelihoods.best(list(self._totals(positions).values()))])

    def _totals(self, positions: Sequence[int]) -> dict[int, float]:
        totals = self._likelihoods.totals([self._paragraphs[position] for position in positions])
        return dict(zip(positions, totals.values(), strict=True))


class EntryLikelihoods:
    """Likelihood's view of sections and chapters, given by their places in a list, each a list of paragraphs."""

    def __init__(self, likelihoods: Likelihoods, paragraphs: Sequence[Sequence[int]]) -> None:
        self._likelihoods = likelihoods
        self._paragraphs = paragraphs

    def order(self, positions: Sequence[int]) -> list[int]:
        """All of them, those with the best paragraphs first."""
        best = {at: max(totals.values()) for at, totals in self._totals(positions).items()}
        return sorted(positions, key=best.__getitem__, reverse=True)

    def choose(self, positions: Sequence[int]) -> list[int]:
        """Those that hold what it takes for evidence."""
        totals = self._totals(positions)
        pool = [(total, at) for at, inside in totals.items() for total in inside.values()]
        pool.sort(key=lambda pair: pair[0], reverse=True)
        return sorted({at for _, at in pool[: self._likelihoods.best([total for total, _ in pool])]})

    def _totals(self, positions: Sequence[int]) -> dict[int, dict[int, float]]:
        inside = {at: self._paragraphs[at] for at in positions}
        totals = self._likelihoods.totals([paragraph for own in inside.values() for paragraph in own])
        return {at: {paragraph: totals[paragraph] for paragraph in own} for at, own in inside.items()}
