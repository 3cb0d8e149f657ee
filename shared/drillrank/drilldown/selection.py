"""Context of a question, and protocols of the selectors that decide about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from drillrank.drilldown.budget import Budget
from drillrank.drilldown.evidence_paths import EvidencePath
from drillrank.drilldown.outline import ListedSection, Outline, Paragraph
from drillrank.drilldown.paragraph_scores import ParagraphScorer, ParagraphScores
from drillrank.drilldown.problems import Problem
from drillrank.drilldown.trace import Selection, StepReport
from drillrank.llm import Requests
from drillrank.vectors import Floats, Integers


@dataclass(frozen=True)
class Likelihoods:
    """Question likelihoods of paragraphs: the ranking without an LLM, and the fallback with one.

    Attributes:
        scorer: Scores the paragraphs.
        question: The question.
    """

    scorer: ParagraphScorer
    question: str

    @property
    def n_tokens(self) -> int:
        """Number of tokens in the question."""
        return len(self.scorer.hierarchical_scores(self.question).words)

    def score(self, paragraphs: Sequence[Paragraph]) -> ParagraphScores:
        """Return the scores of paragraphs."""
        return self.scorer.score(self.question, [paragraph.index for paragraph in paragraphs])

    def rank(self, groups: Sequence[Sequence[Paragraph]]) -> list[int]:
        """Return the indices of groups of paragraphs, the group with the best paragraph first."""
        totals = iter(self._totals(groups))
        best = [max((next(totals) for _ in group), default=-math.inf) for group in groups]
        return sorted(range(len(groups)), key=best.__getitem__, reverse=True)

    def choose(self, groups: Sequence[Sequence[Paragraph]]) -> list[int]:
        """Return the indices of groups with likely evidence: as many as maximize the expected F1."""
        group_of = [index for index, group in enumerate(groups) for _ in group]
        best_first = sorted(zip(self._totals(groups), group_of, strict=True), key=lambda pair: pair[0], reverse=True)
        n_best = self.scorer.count_best([total for total, _ in best_first])
        return sorted({index for _, index in best_first[:n_best]})

    def score_groups(self, group_of: Integers) -> Floats:
        """Return the log-posterior of groups of paragraphs, such as sections, up to a constant.

        Args:
            group_of: Group of each paragraph, starting at 0, shape (paragraphs,).
        """
        return self.scorer.log_posteriors(self.question, group_of)

    def _totals(self, groups: Sequence[Sequence[Paragraph]]) -> list[float]:
        totals: list[float] = self.score([paragraph for group in groups for paragraph in group]).totals.tolist()
        return totals


@dataclass(frozen=True)
class QuestionContext:
    """Context of one question for selectors.

    Attributes:
        outline: Sections of the documents.
        likelihoods: Question likelihoods of all paragraphs.
        budget: Tokens and calls for the LLM.
        report: Callback, called with the report of each step.
        top_n: Maximum number of paragraphs; None for as many as a selector finds relevant.
        n_best: Number of paragraphs that maximize the expected F1 over all documents, if only some are in the outline.
        paths: Paths of two paragraphs from different documents, by paragraph indices, best first.
    """

    outline: Outline
    likelihoods: Likelihoods
    budget: Budget
    report: Callable[[StepReport], object]
    top_n: int | None = None
    n_best: int | None = None
    paths: Sequence[EvidencePath] = ()

    @property
    def question(self) -> str:
        """The question."""
        return self.likelihoods.question

    @property
    def language(self) -> str:
        """Language of the stemmer."""
        return self.likelihoods.scorer.language


class ParagraphSelector(Protocol):
    """Strategy that chooses among paragraphs. Several are applied one after the other."""

    def select(self, context: QuestionContext, paragraphs: Sequence[Paragraph]) -> Requests[Selection[Paragraph]]:
        """Yield LLM requests, receive the replies, return the chosen paragraphs."""


class SectionSelector(Protocol):
    """Strategy that chooses among sections."""

    def select(self, context: QuestionContext, sections: Sequence[ListedSection]) -> Requests[Selection[ListedSection]]:
        """Yield LLM requests, receive the replies, return the chosen sections."""


def report_paragraphs(
    kind: str, candidates: Sequence[Paragraph], kept: Sequence[Paragraph], problems: Sequence[Problem] = ()
) -> StepReport:
    """Return the report of a step that chose paragraphs."""
    return StepReport(kind, len(candidates), tuple(paragraph.passage.id for paragraph in kept), tuple(problems))
