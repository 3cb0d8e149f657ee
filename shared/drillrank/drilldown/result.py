"""Result of `D3`: evidence for a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from drillrank.drilldown.trace import StepReport, Trace
from drillrank.errors import InvalidInput
from drillrank.explanation import Explanations
from drillrank.explanation.explanations import SCORING
from drillrank.llm import Usage
from drillrank.passages import Passage, Ranked


@dataclass(frozen=True, eq=False)
class EvidenceResult(Sequence[Ranked[Passage]]):
    """Evidence for a question, best first: a sequence of `Ranked`.

    A slice is a result of its own. A pickle has the evidence without the documents, so it cannot be explained.

    Attributes:
        evidence: The passages or paragraphs.
        usage: Tokens and calls of the LLM.
        trace: Everything that was decided on the way. It refers to the documents.
        found: False if the documents seem to be about another subject, or if they contain no evidence. None if term
            statistics and embeddings do not decide. True otherwise.
        confidence: Probability that the documents answer the question, from 0 to 1. None if an LLM judged.
        gap: Words to search for next: those of the question that the best passage does not contain, and the names that
            this passage adds. Empty if it contains all content words of the question, and without evidence.
        scoring: Version of the scores. Scores of different versions cannot be compared.
    """

    evidence: tuple[Ranked[Passage], ...]
    usage: Usage
    trace: Trace
    found: bool | None = True
    confidence: float | None = None
    gap: str = ""
    scoring: str = SCORING
    why: Callable[[Sequence[Ranked[Passage]]], Explanations] | None = field(default=None, repr=False)

    @property
    def steps(self) -> tuple[StepReport, ...]:
        """Reports of all steps, in order."""
        return tuple(self.trace.reports)

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that went wrong, with its step and what was done instead."""
        return self.trace.problems

    def explain(self) -> Explanations:
        """Explain the rank of each result, with the tree of documents, sections and paragraphs that were read.

        Raises:
            InvalidInput: This is a copy without the documents.
        """
        if self.why is None:
            raise InvalidInput(
                "This copy of a result does not have the documents that explain it. "
                "Explain the original, or retrieve again."
            )
        return self.why(self.evidence)

    def __len__(self) -> int:
        return len(self.evidence)

    @overload
    def __getitem__(self, index: int) -> Ranked[Passage]: ...
    @overload
    def __getitem__(self, index: slice) -> EvidenceResult: ...
    def __getitem__(self, index: int | slice) -> Ranked[Passage] | EvidenceResult:
        if isinstance(index, slice):
            return replace(self, evidence=self.evidence[index])
        return self.evidence[index]

    def __getstate__(self) -> dict[str, Any]:
        trace = Trace(self.trace.question, self.trace.reports)
        return {**self.__dict__, "why": None, "trace": trace}
