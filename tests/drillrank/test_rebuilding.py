"""Documents put together again from their stored pieces have the structure they had."""

from __future__ import annotations

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from drillrank import D3, parse_document
from drillrank.drilldown.outline import outline
from drillrank.drilldown.rebuilding import StoredChunk, rebuilt
from drillrank.structure import breadcrumb
from drillrank.views import Chunker

# fmt: off
blocks = st.sampled_from([
    "# A", "## B", "### File > Export", "# C, D", "## B", "word " * 60, "Setext\n======", "1. first\n2. second", "   ",
    "Some words stand here. And some more of them there.", "- one\n- two\n\n  still two",
    "| a | b |\n|---|---|\n| 1 | 2 |", "```\n# no heading\n\ncode\n```",
])
texts = st.lists(blocks, min_size=1, max_size=12).map("\n\n".join)
cutters = st.sampled_from([
    ("section", None, None), ("section", 20, None), ("section", None, 12), ("section", 40, 12),
    ("paragraph", None, None), ("paragraph", 15, None), ("content_aware_fixed", 12, None), ("fixed", 25, None),
])
# fmt: on


def pieces_of(text: str, cutter: tuple, separator: str = " > ", format: str = "markdown"):
    metadata = {"source": "a.md"}
    return [
        StoredChunk(unit.text, breadcrumb(unit.path, separator), unit.start, unit.end, metadata)
        for unit in Chunker(*cutter)(parse_document(text, format))
    ]


def tree(sections):
    """What matters about sections: names, paths, paragraphs with offsets, and texts."""
    return [
        (
            section.passage.title,
            section.path[1:],
            section.passage.text.split(),
            [(p.id, p.text, p.metadata["start"], p.metadata["end"]) for p in section.paragraphs],
            [p.text for p in section.readable],
        )
        for section in sections
    ]


def is_whole(text: str, pieces: list[StoredChunk]) -> bool:
    """A part of a long table begins with the table's header, which is not in its span."""
    return all(piece.text == text[piece.start : piece.end] for piece in pieces)


@settings(max_examples=150)
@given(
    texts,
    cutters.filter(lambda cutter: cutter[2] is None),
    st.randoms(),
    st.sampled_from([" > ", " / "]),
)
@example("   \n\n# A\n\n## B", ("section",), random.Random(1), " > ")
def test_all_pieces_give_the_document_back(text, cutter, order: random.Random, separator):
    pieces = pieces_of(text, cutter, separator)
    if not is_whole(text, pieces_of(text, cutter)):
        return
    order.shuffle(pieces)
    sections = rebuilt([pieces, pieces[:1]], separator)
    expected = outline([parse_document(text, "markdown")])
    assert tree([section for section in sections if section.path[0] == 0]) == tree(expected)


@settings(max_examples=150)
@given(texts, cutters, st.data())
def test_of_some_pieces_nothing_is_invented_and_nothing_lost(text, cutter, data):
    pieces = pieces_of(text, cutter)
    kept = data.draw(st.lists(st.sampled_from(pieces), max_size=8) if pieces else st.just([]))
    sections = rebuilt([kept])
    paragraphs = [paragraph for section in sections for paragraph in section.paragraphs]
    assert len({(p.id, p.metadata.get("part")) for p in paragraphs}) == len(paragraphs)
    for paragraph in paragraphs:
        assert any(paragraph.text in piece.text for piece in kept) or paragraph.text in text
        if "part" not in paragraph.metadata and is_whole(text, kept):
            assert text[paragraph.metadata["start"] : paragraph.metadata["end"]] == paragraph.text
    shown = " ".join(paragraph.text for paragraph in paragraphs)
    sections_of_text = outline([parse_document(text, "markdown")])
    paths = [section.path for section in sections_of_text]
    for section in sections_of_text:
        if paths.count(section.path) > 1:  # equal headings in a row become one: of an empty one nothing is shown
            continue
        for paragraph in section.paragraphs:
            start, end = paragraph.metadata["start"], paragraph.metadata["end"]
            inside = any(piece.start <= start and end <= piece.start + len(piece.text) for piece in kept)
            if inside and len(paragraph.text) > 3:
                assert paragraph.text.split()[0] in shown
    D3().prepare(sections)


def test_renderings_have_the_span_of_their_piece():
    page = "<h1>Sea</h1><p>It is <b>deep</b>.</p><p>And blue.</p><h2>Fish</h2><p>Cod.</p>"
    pieces = pieces_of(page, ("section",), format="html")
    sections = rebuilt([pieces])
    assert [section.path for section in sections] == [(0, "Sea"), (0, "Sea", "Fish")]
    paragraphs = [paragraph for section in sections for paragraph in section.paragraphs]
    assert [paragraph.text for paragraph in paragraphs] == ["It is deep.", "And blue.", "Cod."]
    assert len({paragraph.id for paragraph in paragraphs}) == 3
    for paragraph, piece in zip(paragraphs, (pieces[0], pieces[0], pieces[1]), strict=True):
        assert paragraph.metadata["start"] == piece.start
        assert paragraph.metadata["end"] == piece.end
