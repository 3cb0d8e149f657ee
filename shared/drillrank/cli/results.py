"""Evidence from files as the command line and the tools of agents report it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from drillrank.cli.lines import LineNumbers
from drillrank.drilldown.answering import CitedAnswer
from drillrank.drilldown.confidence import describe_finding
from drillrank.explanation import Explanations
from drillrank.generation.support import SentenceSupport
from drillrank.passages import Passage, Ranked

JsonRecord = dict[str, Any]
"""Object as JSON has it."""

Range = tuple[int, int]
"""First and last number of pages or lines; start and end offset of a span."""

_JSON_NAMES = {"reached": "from", "same_text": "also"}


@dataclass(frozen=True, slots=True)
class FileLocation:
    """Place of another text that says the same as some evidence.

    Attributes:
        file: Name of the file as the user knows it.
        pages: Numbers of the first and the last page; None if the file has no pages.
    """

    file: str
    pages: Range | None = None


@dataclass(frozen=True, slots=True)
class BestParagraph:
    """Paragraph of a passage that speaks most of the question.

    Attributes:
        text: Text as a reader sees it.
        pages: Numbers of its first and last page, if the passage has several pages; else None.
        lines: Numbers of the first and the last line; None if the file is not text.
        span: Start and end in characters of the document's text; None if they are unknown.
        section: Headings from the root to its section, if the passage has several sections.
    """

    text: str
    pages: Range | None = None
    lines: Range | None = None
    span: Range | None = None
    section: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeadingPassage:
    """Link, title or name that leads from a passage of another file to some evidence.

    Attributes:
        file: Name of the other file as the user knows it.
        kind: `"link"`, `"title"` or `"name"`: a hyperlink, a title that the passage mentions, or a name in both.
        text: Text of the link, title or name.
        rank: Rank of the passage; None if it is not in the result.
    """

    file: str
    kind: str
    text: str
    rank: int | None = None

    @classmethod
    def from_ranked(
        cls, item: Ranked[Passage], names: Mapping[str, str], rank_by_id: Mapping[str, int]
    ) -> LeadingPassage | None:
        """Return what leads to a passage; None if nothing does.

        Args:
            item: Passage of a document, as `D3` returns it.
            names: Names of the files, by the ids of their documents.
            rank_by_id: Ranks of the results, by the ids of their passages.
        """
        link = item.details.get("link")
        if link is None:
            return None
        rank = rank_by_id.get(item.details["path"][0])
        return cls(names[link["document"]], link["kind"], link["text"], rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEvidence:
    """Evidence for a question in a file. Its JSON has the fields in this order.

    Attributes:
        rank: 1 for the best evidence.
        score: Score, comparable within one question.
        file: Name of the file as the user knows it.
        pages: Numbers of the first and the last page; None if the file has no pages.
        lines: Numbers of the first and the last line; None if the file is not text.
        span: Start and end in characters of the document's text; None if they are unknown.
        section: Headings from the root to the section.
        reached: What leads here from a passage of another file; None if nothing does.
        best: Best paragraph; None if the evidence is a single paragraph.
        text: Text as a reader sees it.
        version: Date or number of this version of the file; None if it has no versions.
        other_versions: Names of the other versions.
        same_text: Places with the same text.
    """

    rank: int
    score: float
    file: str
    pages: Range | None = None
    lines: Range | None = None
    span: Range | None = None
    section: tuple[str, ...] = ()
    reached: LeadingPassage | None = None
    best: BestParagraph | None = None
    text: str
    version: str | None = None
    other_versions: tuple[str, ...] = ()
    same_text: tuple[FileLocation, ...] = ()

    @classmethod
    def from_ranked(
        cls,
        item: Ranked[Passage],
        names: Mapping[str, str],
        line_numbers: LineNumbers,
        rank_by_id: Mapping[str, int] = MappingProxyType({}),
    ) -> FileEvidence:
        """Return a ranked passage under the name of its file.

        Args:
            item: Passage of a document, as `D3` returns it.
            names: Names of the files, by the ids of their documents.
            line_numbers: Line numbers in the text files.
            rank_by_id: Ranks of the results, by the ids of their passages.
        """
        metadata, details = item.passage.metadata, item.details
        document_id = metadata["document"]
        span = (metadata["start"], metadata["end"]) if "start" in metadata else None
        others = details.get("also_at", ())
        return cls(
            rank=item.rank,
            score=item.score,
            file=names[document_id],
            pages=_as_range(metadata.get("pages")),
            lines=line_numbers.find(document_id, span),
            span=span,
            section=tuple(metadata["section_path"]),
            reached=LeadingPassage.from_ranked(item, names, rank_by_id),
            text=item.passage.text,
            best=_find_best_paragraph(item, line_numbers),
            version=details.get("version"),
            other_versions=tuple(details.get("other_versions", ())),
            same_text=tuple(FileLocation(names[other["document"]], _as_range(other.get("pages"))) for other in others),
        )

    def to_json(self) -> JsonRecord:
        """Return the evidence as JSON, without what is unknown or empty."""
        record = asdict(self, dict_factory=_compact)
        return {_JSON_NAMES.get(name, name): value for name, value in record.items()}


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """Sentence of an answer, with the evidence for it in files.

    Attributes:
        judgment: Judgment on the sentence.
        evidence: Passages that support it or, if none do, that are nearest.
    """

    judgment: SentenceSupport
    evidence: tuple[FileEvidence, ...]

    def to_json(self) -> JsonRecord:
        """Return the sentence as JSON."""
        judgment = self.judgment
        record = {"sentence": judgment.sentence, "supported": judgment.supported, "support": round(judgment.support, 4)}
        doubts = {"doubts": judgment.doubts} if judgment.doubts else {}
        records = [item.to_json() for item in self.evidence]
        named = ("file", "pages", "lines", "span", "section")
        locations = [{name: one[name] for name in named if name in one} for one in records]
        return {**record, **doubts, "locations": locations}


@dataclass(frozen=True)
class QuestionEvidence:
    """Evidence for one question.

    Attributes:
        question: The question.
        is_found: False if the files seem to speak of other subjects, or if no evidence remains. None if term statistics
            and embeddings cannot tell. True otherwise.
        evidence: Evidence, best first.
        confidence: Probability that the files answer the question; None if it is unknown, as with an LLM.
        scoring: Version of the scores. Scores of different versions cannot be compared.
        explanations: Explanation of each score and the tree of what was read; None if it was not asked for.
        answer: Answer of the LLM; None if it was not asked for.
        gap: Words to search for next (`EvidenceResult.gap`).
        checked: Sentences of the answer, with the evidence that supports them.
    """

    question: str
    is_found: bool | None
    evidence: tuple[FileEvidence, ...] = ()
    confidence: float | None = None
    scoring: str = ""
    explanations: Explanations | None = field(default=None, repr=False)
    answer: CitedAnswer | None = None
    gap: str = ""
    checked: tuple[CheckedSentence, ...] = ()

    @property
    def is_success(self) -> bool:
        """True if there is an answer or, if no answer was asked for, evidence that may answer the question."""
        if self.answer is not None:
            return bool(self.answer.text)
        return bool(self.evidence) and self.is_found is not False

    @property
    def finding(self) -> str:
        """Sentence on the probability that the files answer the question; empty if it is unknown."""
        if not self.evidence or self.confidence is None:
            return ""
        return describe_finding(self.is_found, self.confidence)

    def to_json(self) -> JsonRecord:
        """Return the question with its evidence as JSON, without what is unknown or empty.

        Citations are ranks of the evidence. `found` is absent if it is None.
        """
        explained = self.explanations.to_dict() if self.explanations else {}
        explanations = explained.get("entries") or [None] * len(self.evidence)
        evidence = [
            item.to_json() | ({} if explanation is None else {"explanation": explanation})
            for item, explanation in zip(self.evidence, explanations, strict=True)
        ]
        answer = self.answer and {
            "answer": self.answer.text,
            "citations": [self.evidence[index].rank for index in self.answer.citations],
            "sentences": [item.to_json() for item in self.checked],
        }
        return _compact(
            {
                "question": self.question,
                "found": self.is_found if self.evidence else False,
                "confidence": self.confidence,
                "scoring": self.scoring if evidence else "",
                **(answer or {}),
                "evidence": evidence,
                "gap": self.gap,
                "tree": explained.get("tree"),
            }
        )


def _find_best_paragraph(item: Ranked[Passage], line_numbers: LineNumbers) -> BestParagraph | None:
    """Return the best paragraph of a passage; None if it is the whole passage, or unknown."""
    best = item.details.get("best_paragraph")
    if best is None or best["text"] == item.passage.text:
        return None
    metadata, span = item.passage.metadata, _as_range(best.get("span"))
    document_id = metadata["document"]
    pages: Range | None = None
    section: tuple[str, ...] = ()
    if span is not None and len(set(metadata.get("pages", ()))) > 1:
        pages = line_numbers.find_pages(document_id, span)
    if span is not None and len(metadata.get("section_paths", ())) > 1:
        section = line_numbers.find_section(document_id, span)
    return BestParagraph(best["text"], pages, line_numbers.find(document_id, span), span, section)


def _as_range(numbers: Any) -> Range | None:
    return None if numbers is None else (numbers[0], numbers[1])


def _compact(fields: JsonRecord | Iterable[tuple[str, Any]]) -> JsonRecord:
    """Return a record without the fields that are None or empty."""
    record = dict(fields)
    return {name: value for name, value in record.items() if value is not None and value not in ("", [], ())}
