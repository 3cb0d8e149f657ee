"""Documents put together again from their stored pieces have the structure they had."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from drillrank import D3, StoredChunk, parse_document
from drillrank.drilldown.outline import outline
from drillrank.drilldown.rebuilding import prepare_documents, rebuild_sections
from drillrank.structure import breadcrumb
from drillrank.structure.reassembly import reassemble
from drillrank.views import Chunker
from tests.examples import examples

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


def section_chunk(text: str, path: str = "", start: int = 0, end: int | None = None, **fields) -> StoredChunk:
    """A section that drillrank cut, as it is stored."""
    return StoredChunk(None, str(start), text, ("", "a"), "section", "raw", path=path, start=start, end=end, **fields)


def other_chunk(text: str, start: int | None = None, **fields) -> StoredChunk:
    """A chunk of another splitter."""
    return StoredChunk(None, f"{start} {text}", text, ("", "a"), "chunk", start=start, **fields)


def pieces_of(text: str, cutter: tuple, separator: str = " > ", format: str = "markdown"):
    metadata = {"source": "a.md"}
    return [
        section_chunk(unit.text, breadcrumb(unit.path, separator), unit.start, unit.end, metadata=metadata)
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


@settings(max_examples=examples(150))
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
    sections = rebuild_sections([reassemble(pieces), reassemble(pieces[:1])], separator)
    expected = outline([parse_document(text, "markdown")])
    assert tree([section for section in sections if section.path[0] == 0]) == tree(expected)


@settings(max_examples=examples(150))
@given(texts, cutters, st.data())
def test_of_some_pieces_nothing_is_invented_and_nothing_lost(text, cutter, data):
    pieces = pieces_of(text, cutter)
    kept = data.draw(st.lists(st.sampled_from(pieces), max_size=8) if pieces else st.just([]))
    sections = rebuild_sections([reassemble(kept)])
    paragraphs = [paragraph for section in sections for paragraph in section.paragraphs]
    assert len({(p.id, p.metadata.get("part")) for p in paragraphs}) == len(paragraphs)
    for paragraph in paragraphs:
        assert any(paragraph.text in piece.text for piece in kept) or paragraph.text in text
        if "part" not in paragraph.metadata and is_whole(text, kept):
            assert text[paragraph.metadata["start"] : paragraph.metadata["end"]] == paragraph.text
    shown = " ".join(paragraph.text for paragraph in paragraphs)
    sections_of_text = outline([parse_document(text, "markdown")])
    for section in sections_of_text:
        for paragraph in section.paragraphs:
            start, end = paragraph.metadata["start"], paragraph.metadata["end"]
            inside = any(piece.start <= start and end <= piece.end for piece in kept)
            if inside and len(paragraph.text) > 3:
                assert paragraph.text.split()[0] in shown
            if inside and is_whole(text, kept):
                assert any(p.metadata["start"] <= start and end <= p.metadata["end"] for p in paragraphs)
    D3().prepare(sections)


def test_an_empty_heading_before_an_equal_one_with_a_section_below_is_kept():
    text = "Setext\n======\n\nSetext\n======\n\n## B"
    pieces = pieces_of(text, ("section",))
    assert tree(rebuild_sections([reassemble(pieces)])) == tree(outline([parse_document(text, "markdown")]))
    apart = [section_chunk("# A\n\n", "A", 0), section_chunk("# A\n\n## B", "A > B", 5)]
    assert [section.path for section in rebuild_sections([reassemble(apart)])] == [(0, "A"), (0, "A", "B")]


def test_a_chunk_that_begins_with_headings_alone_has_its_own_text_below_the_last():
    text = "# A\n\nIntroduction.\n\n## B\n\n### C\n\nThe body.\n\n### D\n\nMore of it."
    pieces = pieces_of(text, ("section", None, 2))
    assert (pieces[1].text, pieces[1].path) == ("## B\n\n### C\n\nThe body.\n\n", "A > B > C")
    assert tree(rebuild_sections([reassemble(pieces)])) == tree(outline([parse_document(text, "markdown")]))


def test_an_empty_heading_above_equal_ones_is_not_lost():
    pieces = [section_chunk("# A\n\n## B\n\n", "A > B", 0), section_chunk("## B\n\n### B", "A > B > B", 11)]
    sections = rebuild_sections([reassemble(pieces)])
    assert [(section.path[1:], section.paragraphs[0].text) for section in sections] == [
        (("A", "B"), "## B"),
        (("A", "B", "B"), "### B"),
    ]


def test_renderings_have_the_span_of_their_piece():
    page = "<h1>Sea</h1><p>It is <b>deep</b>.</p><p>And blue.</p><h2>Fish</h2><p>Cod.</p>"
    pieces = pieces_of(page, ("section",), format="html")
    sections = rebuild_sections([reassemble(pieces)])
    assert [section.path for section in sections] == [(0, "Sea"), (0, "Sea", "Fish")]
    paragraphs = [paragraph for section in sections for paragraph in section.paragraphs]
    assert [paragraph.text for paragraph in paragraphs] == ["It is deep.", "And blue.", "Cod."]
    assert len({paragraph.id for paragraph in paragraphs}) == 3
    for paragraph, piece in zip(paragraphs, (pieces[0], pieces[0], pieces[1]), strict=True):
        assert paragraph.metadata["start"] == piece.start
        assert paragraph.metadata["end"] == piece.end


# --- Passages

LONG = "A long sentence about the mill and its wheel. " * 40
passage_texts = st.lists(
    st.sampled_from(
        [
            "# A",
            "## B",
            "# C",
            "Note:",
            "- one\n- two",
            LONG,
            LONG[:500],
            "| a | b |\n|---|---|\n| 1 | 2 |",
            "Short.",
            "   ",
        ]
    ),
    min_size=1,
    max_size=14,
).map("\n\n".join)


def passages_of(sections):
    return [passage for section in sections for passage in section.readable]


@settings(max_examples=examples(150), deadline=None)
@given(passage_texts | texts, st.sampled_from([("section",), ("section", 20), ("paragraph",)]), st.randoms())
def test_passages_of_all_pieces_are_those_of_the_document(text, cutter, order):
    pieces = pieces_of(text, (*cutter, *[None] * (3 - len(cutter))))
    if not is_whole(text, pieces):
        return
    order.shuffle(pieces)
    expected = outline([parse_document(text, "markdown")], "passage")
    assert tree(rebuild_sections([reassemble(pieces)], unit="passage")) == tree(expected)


def check_passages(text, passages, paragraphs):
    """Check order, size and spans of passages, and that each paragraph is in exactly one."""
    spans = [(passage.metadata["start"], passage.metadata["end"]) for passage in passages]
    assert spans == sorted(spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    for passage, (start, end) in zip(passages, spans, strict=True):
        assert len(passage.text) <= 1200
        assert passage.text.endswith(text[start:end])
    for paragraph in paragraphs:
        first, last = paragraph.metadata["start"], paragraph.metadata["end"]
        parts = [text[max(first, start) : min(last, end)] for start, end in spans if start < last and first < end]
        assert "".join("".join(parts).split()) == "".join(paragraph.text.split())


@settings(max_examples=examples(150), deadline=None)
@given(passage_texts, cutters.filter(lambda cutter: cutter[2] is None), st.data())
def test_passages_of_some_pieces_lose_no_paragraph(text, cutter, data):
    pieces = pieces_of(text, cutter)
    kept = [piece for piece in pieces if data.draw(st.booleans())]
    if not is_whole(text, kept):
        return
    paragraphs = [paragraph for section in rebuild_sections([reassemble(kept)]) for paragraph in section.paragraphs]
    sections = rebuild_sections([reassemble(kept)], unit="passage")
    check_passages(text, passages_of(sections), paragraphs)
    sources = [source for section in sections for source in section.paragraphs]
    assert [text[s.metadata["start"] : s.metadata["end"]] for s in sources] == [s.text for s in sources]
    D3(settings={"unit": "passage"}).prepare(sections)


@settings(max_examples=examples(150), deadline=None)
@given(passage_texts, st.lists(st.tuples(st.integers(0, 800), st.integers(1, 900)), min_size=1, max_size=6), st.data())
def test_passages_of_spans_of_an_original_lose_no_paragraph(text, drawn, data):
    spans = sorted({(start, min(start + size, len(text))) for start, size in drawn if start < len(text)})
    if not spans:
        return
    chunks = [other_chunk(text[start:end], start) for start, end in spans]
    original = StoredChunk(None, "a", text, ("", "a"), metadata={"source": "a.md"})
    rest = data.draw(st.booleans())
    document = reassemble(chunks, original, shows_rest=rest)
    paragraphs = [paragraph for section in rebuild_sections([document]) for paragraph in section.paragraphs]
    sections = rebuild_sections([document], unit="passage")
    check_passages(text, passages_of(sections), paragraphs)
    if rest:
        expected = outline([parse_document(text, "markdown")], "passage")
        assert tree(sections) == tree(expected)
    shown = "".join("".join(passage.text.split()) for passage in passages_of(sections))
    stored = "".join(char for index, char in enumerate(text) if rest or any(a <= index < b for a, b in spans))
    assert len(shown) <= len("".join(stored.split()))  # nothing is shown that no chunk contains


def test_chunks_whose_white_space_a_splitter_removed_become_one_passage():
    first, second, third = "The mill grinds corn.", "Its wheel turns.", "It is far away."
    # One blank between the first two, other text before the third.
    chunks = [other_chunk(first, 100), other_chunk(second, 122), other_chunk(third, 941)]
    [section] = rebuild_sections([reassemble(chunks)], unit="passage")
    assert [passage.text for passage in section.readable] == [f"{first}\n{second}", third]
    positions = [(p.metadata["start"], p.metadata["end"], p.metadata["chunk"]) for p in section.readable]
    assert positions == [(100, 138, 0), (941, 956, 2)]
    spans = [span for passage in section.readable for span in passage.metadata["paragraph_spans"]]
    assert spans == [(100, 121, 0, 21), (122, 138, 22, 38), (941, 956, 0, 15)]


def test_chunks_without_offsets_are_passages_of_their_own():
    chunks = [other_chunk("The mill grinds corn."), other_chunk("Its wheel turns.")]
    passages = passages_of(rebuild_sections([reassemble(chunks)], unit="passage"))
    assert [(p.text, p.metadata["chunk"], p.metadata["part"]) for p in passages] == [
        ("The mill grinds corn.", 0, "0"),
        ("Its wheel turns.", 1, "0"),
    ]


def test_renderings_are_passages_with_the_span_of_their_chunks():
    page = "<h1>Sea</h1><p>It is <b>deep</b>.</p><p>And blue.</p><h2>Fish</h2><p>Cod.</p>"
    pieces = pieces_of(page, ("section",), format="html")
    [passage] = passages_of(rebuild_sections([reassemble(pieces)], unit="passage"))
    assert passage.text == "Sea\n\nIt is deep.\n\nAnd blue.\n\nFish\n\nCod."
    assert passage.title == "Sea > Fish"
    assert (passage.metadata["start"], passage.metadata["end"]) == (pieces[0].start, pieces[-1].end)


def test_white_space_between_sections_is_the_sources_next_to_a_rendering_too():
    table = section_chunk("| a |\n|---|\n| 2 |", "A > B", 9, 15)
    pieces = [section_chunk("One.\n", "A", 0, 5), section_chunk("Two.", "A > B", 5, 9), table]
    [passage] = passages_of(rebuild_sections([reassemble(pieces)], unit="passage"))
    assert passage.text == f"One.\nTwo.\n\n{table.text}"


def test_prepared_stored_documents_answer_with_passages():
    d3 = D3(settings={"unit": "passage"})
    prepared = prepare_documents(d3, [reassemble([section_chunk("# Sea\n\nIt is deep.\n\nAnd blue.")])])
    [item] = d3.retrieve("How deep is the sea?", prepared)
    assert item.passage.text == "# Sea\n\nIt is deep.\n\nAnd blue."
    assert item.details["span"] == (0, len(item.passage.text))
