"""Section chunks lose nothing, repeat nothing, and have the same ids in every run."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drillrank import views
from drillrank.errors import InvalidInput
from drillrank.structure import Block, Document, Section, breadcrumb, parse_document
from drillrank.text import count_tokens, without_surrogates
from drillrank.views import (
    VIEWS,
    Chunker,
    keywords,
    summaries,
)

WHOLE = Chunker(max_tokens=None, min_tokens=None)


def section_chunks(document, name, made=VIEWS, chunker=None, **settings):
    return views.section_chunks(document, name, made, chunker=chunker or WHOLE, **settings)


HEADINGS = ["# One", "## Two", "### Three > Four", "#", "Heading\n===", ""]
BODIES = [
    "Some words about foxes.",
    "- item",
    "42",
    "",
    " \t",
    "~~~\n# no heading\n~~~",
    "---",
    "\x0c",
    "\u2028",
    "\ud800",
]
BODIES += ["More words. " * 80]
parts = st.tuples(st.sampled_from(HEADINGS), st.sampled_from(BODIES)).map("\n".join)
documents = st.lists(parts, max_size=8).map("\n".join).map(parse_document)
choices = st.lists(st.sampled_from(VIEWS), min_size=1)


@given(documents)
def test_every_character_but_white_space_is_in_exactly_one_raw_chunk(document):
    raw = section_chunks(document, "d", ["raw"])
    at = 0
    for chunk in raw:
        assert chunk.text == document.text[chunk.start : chunk.end]
        assert not chunk.text.isspace()
        assert chunk.start >= at
        assert not document.text[at : chunk.start].strip()
        at = chunk.end
    assert not document.text[at:].strip()


@given(documents, choices)
def test_chunks_come_section_by_section_and_each_view_once(document, made):
    chunks = section_chunks(document, "d", made)
    places = [(chunk.ordinal, ["raw", "keywords", "summary"].index(chunk.view)) for chunk in chunks]
    assert places == sorted(set(places))
    assert {chunk.view for chunk in chunks} <= set(made)
    raw = {chunk.ordinal: chunk for chunk in chunks if chunk.view == "raw"}
    for chunk in chunks:
        section = document.sections()[chunk.ordinal]
        assert (chunk.path, chunk.level, chunk.start, chunk.end) == (
            section.path,
            section.level,
            section.start,
            section.end,
        )
        assert "raw" not in made or chunk.section_id == raw[chunk.ordinal].id
        assert chunk.text.strip()


@given(documents, choices, st.text(st.characters(codec=None)), st.text())
def test_ids_are_unique_and_depend_on_document_section_and_view_only(document, made, name, other):
    chunks = section_chunks(document, name)
    assert section_chunks(parse_document(document.text), name) == chunks
    assert set(section_chunks(document, name, made)) <= set(chunks)
    ids = [str(uuid.UUID(chunk.id)) for chunk in chunks]
    assert len(set(ids)) == len(ids)
    if other != name:
        assert not set(ids) & {chunk.id for chunk in section_chunks(document, other)}


def is_below(sections, ordinal, above):
    between = sections[above.ordinal + 1 : ordinal + 1]
    return bool(between) and all(len(section.path) > above.depth for section in between)


@given(documents)
def test_the_parent_is_the_nearest_section_above(document):
    raw = section_chunks(document, "d", ["raw"])
    sections = document.sections()
    for chunk in raw:
        above = [other for other in raw if is_below(sections, chunk.ordinal, other)]
        assert chunk.parent_id == (above[-1].id if above else None)


@given(documents)
@example(parse_document("# One\n\ud800\nHeading\n===\n"))
def test_views_hold_headings_and_keywords_or_summary(document):
    bodies = [unit.body for unit in WHOLE(document)]
    chunks = section_chunks(document, "d")
    raw = [chunk for chunk in chunks if chunk.view == "raw"]
    texts = {"keywords": [", ".join(words) for words in keywords(bodies)], "summary": summaries(bodies)}
    for view, expected in texts.items():
        made = {chunk.ordinal: chunk.text for chunk in chunks if chunk.view == view}
        assert made.keys() == {chunk.ordinal for chunk, text in zip(raw, expected, strict=True) if text}
        for chunk, body, text in zip(raw, bodies, expected, strict=True):
            # A section without text shows its heading, in which half a character is U+FFFD.
            source = without_surrogates(chunk.text) if body in chunk.path[-1:] else chunk.text
            assert " ".join(body.split()) in " ".join(source.split())
            if text:
                heading = " ".join(document.sections()[chunk.ordinal].heading.split())
                assert made[chunk.ordinal].endswith(text)
                assert heading in made[chunk.ordinal].removesuffix(text)


def test_headings_are_joined_below_the_title_of_the_document():
    document = parse_document("# Report\n\nIn short.\n\n## Costs\n\n### Travel\n\nTrains only.\n")
    texts = [chunk.text for chunk in section_chunks(document, "d", ["raw", "keywords"]) if chunk.view == "keywords"]
    assert texts == ["Report\nshort", "Costs > Travel\nTrains"]
    two_roots = parse_document(document.text + "# Annex\n\nTables.\n")
    assert section_chunks(two_roots, "d")[-1].text == "Annex\nTables."
    assert "Report > Costs > Travel\nTrains" in [chunk.text for chunk in section_chunks(two_roots, "d")]


def test_a_section_without_text_is_no_parent_and_hides_its_older_sibling():
    spans = [Section(("A",), 1, 0, 2), Section(("B",), 1, 2, 4), Section(("B", "C"), 2, 4, 6)]
    blocks = ((Block("paragraph", 0, 1),), (), (Block("paragraph", 4, 5),))
    first, second = section_chunks(Document("A\n  c\n", tuple(spans), blocks), "d", ["raw"])
    assert (first.text, second.text) == ("A\n", "c\n")
    assert (first.ordinal, second.ordinal) == (0, 2)
    assert second.parent_id == first.id


@given(
    documents,
    st.sampled_from(
        [
            Chunker("section", 20, None),
            Chunker("paragraph", None),
            Chunker("content_aware_fixed", 20),
            Chunker("fixed", 20),
        ]
    ),
)
def test_every_unit_of_any_size_has_its_views(document, chunker):
    units = chunker(document)
    chunks = section_chunks(document, "d", chunker=chunker)
    raw = [chunk for chunk in chunks if chunk.view == "raw"]
    assert [(chunk.text, chunk.start, chunk.end, chunk.part) for chunk in raw] == [
        (unit.text, unit.start, unit.end, unit.part) for unit in units
    ]
    bodies = [unit.body for unit in units]
    for view, texts in (("keywords", keywords(bodies)), ("summary", summaries(bodies))):
        with_text = {chunk.section_id for chunk in chunks if chunk.view == view}
        assert with_text == {
            chunk.id for chunk, text in zip(raw, texts, strict=True) if text and (view == "keywords" or text.strip())
        }
    ids = [chunk.id for chunk in chunks]
    assert len(set(ids)) == len(ids)
    firsts = {chunk.ordinal: chunk for chunk in raw if chunk.part == 0}
    assert all(chunk.parent_id == firsts[chunk.ordinal].parent_id for chunk in raw if chunk.ordinal in firsts)


@given(documents, st.sampled_from([None, Chunker("paragraph", None)]), st.sampled_from(["headings", "keywords"]))
def test_context_changes_the_indexed_text_of_the_raw_view_only(document, chunker, kind):
    plain = section_chunks(document, "d", chunker=chunker)
    with_context = section_chunks(document, "d", chunker=chunker, context=[kind])
    assert [replace(chunk, context="") for chunk in with_context] == plain
    for chunk in with_context:
        assert chunk.indexed_text.endswith(chunk.text)
        assert chunk.view == "raw" or chunk.indexed_text == chunk.text
        assert chunk.indexed_text.startswith(chunk.context)


def test_context_is_the_path_and_the_keywords_of_the_whole_section():
    text = "# Zoo\n\n## Foxes\n\nFoxes hunt mice, foxes.\n\nThey bark.\n\n## Owls\n\nOwls hoot.\n"
    chunks = section_chunks(
        parse_document(text), "d", ["raw"], chunker=Chunker("paragraph", None), context=["keywords", "headings"]
    )
    assert [chunk.context for chunk in chunks] == [
        "Zoo",
        "Foxes\nFoxes, hunt, mice, bark",
        "Foxes\nFoxes, hunt, mice, bark",
        "Owls\nOwls, hoot",
    ]
    assert chunks[2].indexed_text == "Foxes\nFoxes, hunt, mice, bark\n\nThey bark.\n\n"


@pytest.mark.parametrize("context", ["headings", ["title"]])
def test_context_must_exist(context):
    with pytest.raises(InvalidInput, match="context"):
        section_chunks(parse_document("text"), "d", context=context)


def test_keywords_and_summaries_may_be_given():
    document = parse_document("# A\n\nOne.\n\n# B\n\nTwo.\n")
    chunks = section_chunks(document, "d", texts={"keywords": ["k1, k2", ""], "summary": [" ", "In short."]})
    assert [(chunk.view, chunk.text) for chunk in chunks if chunk.view != "raw"] == [
        ("keywords", "A\nk1, k2"),
        ("summary", "B\nIn short."),
    ]


@pytest.mark.parametrize("given_views", [{"keywords": ["k"]}, {"summary": ["a", "b", "c"]}])
def test_given_views_must_match_the_sections(given_views):
    with pytest.raises(InvalidInput, match="one entry for each of 2 chunks"):
        section_chunks(parse_document("# A\n\n# B\n"), "d", texts=given_views)


@pytest.mark.parametrize("made", [[], ["raw", "title"], "raw"])
def test_views_must_exist(made):
    with pytest.raises(InvalidInput, match="views is a list"):
        section_chunks(parse_document("text"), "d", made)


def test_a_heading_with_nothing_under_it_is_found_as_others_are():
    chunks = section_chunks(parse_document("# Oak\n\nTall.\n\n# Whale songs\n"), "d")
    assert [(chunk.view, chunk.text) for chunk in chunks[3:]] == [
        ("raw", "# Whale songs\n"),
        ("keywords", "Whale songs\nWhale, songs"),
        ("summary", "Whale songs\nWhale songs"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# Guide\n\n" + "".join(f"## Part {i}\n\nWord {i} is short.\n\n" for i in range(150)),
        "".join(f"# A{i}\n\n## B{i}\n\n### C{i}\n\n#### D{i}\n\nText {i} here.\n\n" for i in range(60)),
        "# Root\n\n"
        + "".join(f"## Chapter {i} of it\n\n### Section {i}\n\nHere.\n\n### Other {i}\n\nMore.\n\n" for i in range(60)),
        "# Questions\n\n" + "".join(f"## How do I do thing {i}?\n\nOpen page {i} and press it.\n\n" for i in range(9)),
        "Long prose goes on and on, about foxes, owls and mice. " * 200,
    ],
)
def test_three_views_have_at_most_three_times_the_tokens_of_the_text_and_a_bit(text):
    chunks = views.section_chunks(parse_document(text, "markdown"), "d")
    assert sum(count_tokens(chunk.indexed_text) for chunk in chunks) <= 3.3 * count_tokens(text)


def test_the_document_needs_a_name():
    with pytest.raises(InvalidInput, match="document_id"):
        section_chunks(parse_document("text"), None)


@given(st.lists(st.text()), st.sampled_from([" > ", "/", ""]))
def test_a_breadcrumb_is_one_line_with_every_word_of_the_headings(path, separator):
    line = breadcrumb(path, separator)
    assert len(line.splitlines()) <= 1
    assert (
        line.replace(separator, " ").split() == separator.join(filter(str.strip, path)).replace(separator, " ").split()
    )
