"""Documents made ready for drilling down: their outline, their paragraphs and the likelihoods of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from drillrank.drilldown.evidence import Evidence
from drillrank.drilldown.outline import Outline
from drillrank.drilldown.versions import Versions
from drillrank.passages import Passage


@dataclass(frozen=True)
class PreparedDocuments:
    """Documents made ready for many questions.

    Attributes:
        outline: The sections of all documents.
        evidence: Likelihoods of their paragraphs.
        names: Of documents, by their place in the input, as far as they are known.
        versions: Which of them are versions of one.
    """

    outline: Outline
    evidence: Evidence
    names: Mapping[int | str, str] = field(default_factory=dict)
    versions: Versions = field(default_factory=lambda: Versions({}, {}))

    @cached_property
    def paragraphs(self) -> tuple[Passage, ...]:
        """All paragraphs, text as in the source."""
        return tuple(paragraph for section in self.outline.sections for paragraph in section.paragraphs)

    @cached_property
    def readable(self) -> tuple[Passage, ...]:
        """All paragraphs, text as a reader sees it."""
        return tuple(paragraph for section in self.outline.sections for paragraph in section.readable)

    @cached_property
    def section_indices(self) -> tuple[int, ...]:
        """Index of each paragraph's section."""
        return tuple(at for at, section in enumerate(self.outline.sections) for _ in section.paragraphs)

    @cached_property
    def _firsts(self) -> tuple[int, ...]:
        firsts = [0]
        for section in self.outline.sections:
            firsts.append(firsts[-1] + len(section.paragraphs))
        return tuple(firsts)

    def inside(self, sections: Sequence[int]) -> list[int]:
        """Positions of the paragraphs of some sections."""
        return [at for section in sections for at in range(self._firsts[section], self._firsts[section + 1])]
