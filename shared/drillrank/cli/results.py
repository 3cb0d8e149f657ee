"""Evidence from files as the command line and the tools of agents report it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drillrank.drilldown.answering import Answer
from drillrank.explanation import Explanations
from drillrank.explanation.explanations import SCORING
from drillrank.passages import Passage, Ranked

JsonRecord = dict[str, Any]
"""Object as JSON has it."""

_FIELDS = ("question", "rank", "score", "scoring", "file", "page", "last_page", "section", "span", "text", "found")


@dataclass(frozen=True, slots=True)
class FileLocation:
    """File that has a text, and the page on which the text begins.

    Attributes:
        file: Name of the file as the user knows it.
        page: Number of the page; None if the file has no pages.
    """

    file: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """Evidence for a question in a file.

    Attributes:
        rank: 1 for the best evidence.
        score: Score, comparable within one question.
        file: Name of the file as the user knows it.
        text: Text as a reader sees it.
        section: Headings from the root to the section.
        pages: Numbers of the first and the last page; None if the file has no pages.
        span: Start and end in characters of the document's text; None if they are unknown.
        version: Date or number of this version of the file; None if it has no versions.
        other_versions: Names of the other versions.
        other_locations: Places where other files have the same text.
    """

    rank: int
    score: float
    file: str
    text: str
    section: tuple[str, ...] = ()
    pages: tuple[int, int] | None = None
    span: tuple[int, int] | None = None
    version: str | None = None
    other_versions: tuple[str, ...] | None = None
    other_locations: tuple[FileLocation, ...] = ()

    @classmethod
    def from_ranked(cls, item: Ranked[Passage], names: Mapping[str, str]) -> FileEvidence:
        """Return a ranked passage under the name of its file.

        Args:
            item: Passage of a document, as `D3` returns it.
            names: Names of the files, by the ids of their documents.
        """
        metadata, details = item.passage.metadata, item.details
        others = details.get("also_at", ())
        return cls(
            item.rank,
            item.score,
            names[metadata["document"]],
            item.passage.text,
            tuple(metadata["section_path"]),
            tuple(metadata["pages"]) if "pages" in metadata else None,
            (metadata["start"], metadata["end"]) if "start" in metadata else None,
            details.get("version"),
            tuple(details["other_versions"]) if "other_versions" in details else None,
            tuple(FileLocation(names[other["document"]], other.get("pages", (None,))[0]) for other in others),
        )

    def to_json(self, question: str, found: bool | None) -> JsonRecord:
        """Return the evidence with its question, for a line of JSON."""
        first, last = self.pages or (None, None)
        versions = {"version": self.version, "other_versions": self.other_versions}
        others = [{"file": other.file, "page": other.page} for other in self.other_locations]
        return {
            "question": question,
            "rank": self.rank,
            "score": self.score,
            "scoring": SCORING,
            "file": self.file,
            "page": first,
            "last_page": last,
            "section": list(self.section),
            "span": None if self.span is None else list(self.span),
            "text": self.text,
            "found": found,
            **{name: value for name, value in versions.items() if value is not None},
            **({"also": others} if others else {}),
        }


@dataclass(frozen=True)
class QuestionEvidence:
    """Evidence for one question.

    Attributes:
        question: The question.
        found: False if nothing in the files speaks of the question; None if that cannot be known.
        evidence: Evidence, best first.
        explanations: Explanation of each score and the tree of what was read; None if it was not asked for.
        answer: Answer of the LLM; None if it was not asked for.
    """

    question: str
    found: bool | None
    evidence: tuple[FileEvidence, ...] = ()
    explanations: Explanations | None = field(default=None, repr=False)
    answer: Answer | None = None

    @property
    def is_success(self) -> bool:
        """True if there is an answer, or evidence where no answer was asked for."""
        return bool(self.evidence) and self.found is not False if self.answer is None else bool(self.answer.text)

    def to_json(self) -> list[JsonRecord]:
        """Return the objects to print, one a line: the answer, then the evidence."""
        records = [item.to_json(self.question, self.found) for item in self.evidence]
        lines: list[JsonRecord] = []
        if self.answer is not None:
            citations = [records[index] for index in self.answer.citations]
            lines.append({"question": self.question, "answer": self.answer.text or None, "citations": citations})
        saved = self.explanations.to_dict() if self.explanations else {}
        tree = {"tree": saved["tree"]} if "tree" in saved else {}
        entries = [{"explanation": entry} for entry in saved.get("entries", ())] or [{}] * len(records)
        for index, (record, entry) in enumerate(zip(records, entries, strict=True)):
            lines.append(record | entry | (tree if index == 0 else {}))
        if not records:
            lines.append({**dict.fromkeys(_FIELDS), "question": self.question, "found": False, **tree})
        return lines
