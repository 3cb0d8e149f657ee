"""QASPER papers, and the ways to cut and index them that the benchmark of views compares."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from drillrank.structure import Document, parse_document
from drillrank.views import VIEWS, Chunker, Context, View, section_chunks

from .data import read

Span = tuple[int, int]
_SENTENCE_START = re.compile(r"(?<=[.!?])\s+(?=[A-Z\[(])")


@dataclass(frozen=True)
class Paper:
    """A paper, the places of its headings and paragraphs, and its questions, each with its evidence."""

    id: str
    document: Document
    paragraphs: list[list[Span]]
    headings: list[Span]
    questions: list[tuple[str, list[Span]]]


@dataclass(frozen=True)
class Chunks:
    """What can be returned, its length in words, and the texts through which each view finds it."""

    spans: list[Span]
    tokens: list[int]
    views: dict[str, list[tuple[int, str]]]
    weights: Mapping[str, float] | None = None


Arrangement = Callable[[Paper], Chunks]


def load(name: str, limit: int | None = None) -> list[Paper]:
    """The papers that have questions with text evidence, up to the first so many of these questions."""
    papers: list[Paper] = []
    for item in read(name):
        text = item["markdown"].partition("\n")[2]  # the title is not searched
        document = parse_document(text, "markdown")
        spans = iter([(block.start, block.end) for _, block in document.paragraphs() if block.kind != "heading"])
        places, headings, at = [], [], 0
        for section in item["sections"]:
            heading = text.find(section["path"][-1], at)
            headings.append((heading, heading + len(section["path"][-1])))
            places.append([*islice(spans, len(section["paragraphs"]))])
            at = places[-1][-1][1] if places[-1] else at
        questions = []
        for question in item["questions"]:
            evidence = sorted({(s, p) for annotator in question["evidence"] for s, p in annotator})
            if evidence:
                questions.append((question["question"], [places[s][p] for s, p in evidence]))
        papers.append(Paper(item["id"], document, places, headings, questions[:limit]))
        if limit is not None:
            limit -= len(papers[-1].questions)
    return [paper for paper in papers if paper.questions]


def plain_fixed(words: int) -> Arrangement:
    """Sentences by a regular expression, packed in order across paragraphs and sections."""

    def arrange(paper: Paper) -> Chunks:
        packed: list[list[Span]] = []
        sizes: list[int] = []
        text = paper.document.text
        for heading, own in zip(paper.headings, paper.paragraphs, strict=True):
            for start, end in (heading, *own):
                cuts = [match.end() for match in _SENTENCE_START.finditer(text, start, end)]
                for sentence in pairwise([start, *cuts, end]):
                    length = len(text[slice(*sentence)].split())
                    if sizes and sizes[-1] + length <= words:
                        packed[-1].append(sentence)
                        sizes[-1] += length
                    else:
                        packed.append([sentence])
                        sizes.append(length)
        texts = [(i, " ".join(text[a:b].strip() for a, b in chunk)) for i, chunk in enumerate(packed)]
        return Chunks([(chunk[0][0], chunk[-1][1]) for chunk in packed], sizes, {"raw": texts})

    return arrange


def ours(
    chunker: Chunker,
    views: Sequence[View] = ("raw",),
    context: Collection[Context] = (),
    weights: Mapping[str, float] | None = None,
) -> Arrangement:
    """What `section_chunks` makes; `views` are those that are searched, `weights` those of `merge_views`."""

    def arrange(paper: Paper) -> Chunks:
        made = section_chunks(paper.document, paper.id, ("raw", *views), chunker=chunker, context=context)
        raw = [chunk for chunk in made if chunk.view == "raw"]
        place = {chunk.id: position for position, chunk in enumerate(raw)}
        texts = {
            view: [(place[chunk.section_id], chunk.indexed_text) for chunk in made if chunk.view == view]
            for view in views
        }
        spans = [(chunk.start, chunk.end) for chunk in raw]
        return Chunks(spans, [len(chunk.text.split()) for chunk in raw], texts, weights)

    return arrange


BOTH: tuple[Context, ...] = ("headings", "keywords")
WHOLE = Chunker(max_tokens=None, min_tokens=None)
PAPER = "sections, three views"
DEFAULT = "by default: 512 tokens, small ones joined, three views"
SECTIONS = "sections, small ones joined, with context, three views"
PARAGRAPHS = "paragraphs with context, three views"

ARRANGEMENTS: dict[str, Arrangement] = {
    "fixed 100": plain_fixed(100),
    "fixed 200": plain_fixed(200),
    "fixed 300": plain_fixed(300),
    "content-aware FLC 270": ours(Chunker("content_aware_fixed", 270)),
    "content-aware FLC 270, three views": ours(Chunker("content_aware_fixed", 270), VIEWS),
    "sections": ours(WHOLE),
    "sections, keywords only": ours(WHOLE, ("keywords",)),
    "sections, summary only": ours(WHOLE, ("summary",)),
    "sections, raw + keywords": ours(WHOLE, ("raw", "keywords")),
    "sections, raw + summary": ours(WHOLE, ("raw", "summary")),
    "sections, keywords + summary": ours(WHOLE, ("keywords", "summary")),
    PAPER: ours(WHOLE, VIEWS),
    "sections with context, three views": ours(WHOLE, VIEWS, BOTH),
    SECTIONS: ours(Chunker(max_tokens=None, min_tokens=300), VIEWS, BOTH),
    "by default, raw only": ours(Chunker()),
    DEFAULT: ours(Chunker(), VIEWS),
    "by default, with context": ours(Chunker(), VIEWS, BOTH),
    "paragraphs": ours(Chunker("paragraph", None)),
    "paragraphs with context": ours(Chunker("paragraph", None), context=BOTH),
    "paragraphs, three views": ours(Chunker("paragraph", None), VIEWS),
    PARAGRAPHS: ours(Chunker("paragraph", None), VIEWS, BOTH),
}
