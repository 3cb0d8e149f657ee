"""Records of what `D3` decided on the way down. `explaining.py` renders them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from drillrank.drilldown.outline import ListedSection, OutlineEntry, Paragraph
from drillrank.drilldown.problems import Problem

ItemT = TypeVar("ItemT", Paragraph, OutlineEntry, ListedSection)


class FallbackReason(Enum):
    """Reason for a fallback to likelihood. Each value has the texts for a kept and for a dropped item."""

    BUDGET = (
        "no call was left (budget): likelihood's choice",
        "not asked about (budget): others are likelier",
    )
    FAILURE = (
        "the LLM's answer was unusable: likelihood's choice",
        "the LLM's answer was unusable: not likelihood's choice",
    )


CHOSEN_BY_LLM = ("the LLM's choice", "not the LLM's choice")
NO_ALTERNATIVE = "nothing else to choose"


@dataclass(frozen=True, slots=True)
class ScoredParagraph:
    """Score of a paragraph from the model that had the last word, with its details."""

    score: float
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepReport:
    """Summary of a step, for callbacks and events.

    Attributes:
        kind: `"documents"`, `"sections"`, `"guard"`, `"links"`, `"summaries"`, `"one by one"`, `"paragraphs"`,
            `"monot5"` or `"likelihood"`.
        n_candidates: Number of documents, sections or paragraphs to choose from.
        chosen: Names of the chosen documents and sections, or ids of the chosen paragraphs.
        problems: What went wrong and what was done instead. Empty if all went well.
    """

    kind: str
    n_candidates: int
    chosen: tuple[str, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Step(Generic[ItemT]):
    """Decision of one selector about its candidates.

    Attributes:
        report: Summary of the step.
        candidates: Paragraphs, sections or chapters to choose from, in document order.
        kept: The chosen ones, in document order.
        ranked_by: `"likelihood"` or `"relevance"` if a model ranked the candidates. Empty if the LLM chose.
        ranking: The candidates, best first, if a model ranked them.
        fallbacks: By index in `candidates`, why the LLM did not decide about a candidate.
    """

    report: StepReport
    candidates: Sequence[ItemT]
    kept: Sequence[ItemT]
    ranked_by: str = ""
    ranking: Sequence[ItemT] = ()
    fallbacks: Mapping[int, FallbackReason] = field(default_factory=dict)

    def reasons(self) -> dict[ItemT, str]:
        """Return why each candidate was kept or dropped."""
        kept = set(self.kept)
        if self.ranked_by:
            n = len(self.ranking)
            ranks = {item: f"{self.ranked_by}: rank {rank} of {n}" for rank, item in enumerate(self.ranking, 1)}
            return {item: rank if item in kept else f"{rank}; kept: {len(kept)}" for item, rank in ranks.items()}
        reasons: dict[ItemT, str] = {}
        for index, item in enumerate(self.candidates):
            fallback = self.fallbacks.get(index)
            why_kept, why_dropped = CHOSEN_BY_LLM if fallback is None else fallback.value
            reasons[item] = why_kept if item in kept else why_dropped
        return reasons


@dataclass(frozen=True)
class Selection(Generic[ItemT]):
    """Outcome of a selector.

    Attributes:
        kept: The chosen items, in document order.
        steps: Record of each decision.
        evidence_scores: Score of each kept paragraph, if the selector's model ranks the evidence.
        all_scores: Score of every candidate that the selector's model scored.
    """

    kept: Sequence[ItemT]
    steps: Sequence[Step[Any]] = ()
    evidence_scores: Mapping[Paragraph, ScoredParagraph] = field(default_factory=dict)
    all_scores: Mapping[Paragraph, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class Trace:
    """Everything that was decided for one question.

    Attributes:
        question: The question.
        reports: Summaries of all steps, in order.
        outdated_documents: Documents that were not read: older versions, and documents later than `as_of`.
        candidate_sections: Sections of the documents that were drilled into.
        sections: Selection of sections.
        section_scores: Sections, best first, with their log-posterior per question token. Empty if an LLM chose.
        guard_paragraphs: Likely paragraphs outside the chosen sections that were added as candidates.
        paragraph_selections: Selections of paragraphs, one after the other.
        scores: Score of each chosen paragraph, in document order.
        evidence: The paragraphs of the result, best first.
    """

    question: str
    reports: Sequence[StepReport] = ()
    outdated_documents: Collection[int | str] = ()
    candidate_sections: Sequence[ListedSection] = ()
    sections: Selection[ListedSection] = Selection(())
    section_scores: Mapping[ListedSection, float] = field(default_factory=dict)
    guard_paragraphs: Sequence[Paragraph] = ()
    paragraph_selections: Sequence[Selection[Paragraph]] = ()
    scores: Mapping[Paragraph, ScoredParagraph] = field(default_factory=dict)
    evidence: Sequence[Paragraph] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems of all steps, each with the kind of its step."""
        return tuple(f"{report.kind}: {problem}" for report in self.reports for problem in report.problems)

    @property
    def is_judged_by_llm(self) -> bool:
        """True if an LLM decided about at least one candidate."""
        selections: Sequence[Selection[Any]] = (self.sections, *self.paragraph_selections)
        steps = [step for selection in selections for step in selection.steps]
        return any(not step.ranked_by and len(step.fallbacks) < len(step.candidates) for step in steps)

    @property
    def selected_paragraphs(self) -> list[Paragraph]:
        """Chosen paragraphs, in document order."""
        return list(self.scores)

    @property
    def all_scores(self) -> dict[Paragraph, float]:
        """Score of each paragraph that a model scored; the score in the ranking for the chosen ones."""
        scores = {
            paragraph: score
            for selection in self.paragraph_selections
            for paragraph, score in selection.all_scores.items()
        }
        return scores | {paragraph: scored.score for paragraph, scored in self.scores.items()}
