"""Sections that were found, joined with those around them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.structure import Pages, parse_document
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.text import token_counter
from drillrank.views import Chunker, MergedSection, SectionExpander, section_chunks
from tests.examples import examples

BOOK = """# Rivers

They carry water to the sea.

## Rhine

It flows through Basel.

### Ships

More than on any other river.

## Thames

It flows through London.

# Towns

Basel and London.
"""
WHOLE = Chunker(max_tokens=None, min_tokens=None)
count = token_counter()


def store(text=BOOK, chunker=WHOLE, format="auto", with_links=True):
    """The raw chunks of a document by heading path, or by number if they share paths."""
    chunks = section_chunks(parse_document(text, format), "book", ("raw",), chunker=chunker)
    order = [None, *chunks, None]
    stored = {}
    for previous, chunk, following in zip(order, chunks, order[2:], strict=False):
        links = {"parent_id": chunk.parent_id}
        if with_links:
            links |= {"previous_id": previous and previous.id, "next_id": following and following.id}
        stored[chunk.id] = StoredChunk(
            chunk,
            chunk.id,
            chunk.text,
            ("", "book"),
            view="raw",
            path=chunk.path,
            start=chunk.start,
            end=chunk.end,
            links={name: id_ for name, id_ in links.items() if id_},
        )
    return stored


def section(stored, heading):
    return next(chunk for chunk in stored.values() if chunk.path and chunk.path[-1] == heading)


def expand(stored, *ids, expand="parent", **fields):
    sections = [MergedSection(id_, 1 / rank, {"raw": rank}) for rank, id_ in enumerate(ids, 1)]
    return SectionExpander(expand, **fields).expand_sections(sections, stored)


def texts(results):
    return [result.chunk.text for result in results]


@pytest.mark.parametrize("with_links", [True, False])
def test_the_parent_is_returned_with_all_its_subsections(with_links):
    stored = store(with_links=with_links)
    [result] = expand(stored, section(stored, "Thames").id)
    assert result.chunk.text == BOOK[: BOOK.index("# Towns")]
    assert (result.chunk.start, result.chunk.end) == (0, BOOK.index("# Towns"))
    assert result.chunk.id == section(stored, "Rivers").id
    assert result.expanded_from == section(stored, "Thames").id


def test_a_section_without_a_parent_is_returned_with_its_own_subsections():
    stored = store()
    assert texts(expand(stored, section(stored, "Rivers").id)) == [BOOK[: BOOK.index("# Towns")]]
    [towns] = expand(stored, section(stored, "Towns").id)
    assert (towns.chunk, towns.expanded_from, towns.members) == (section(stored, "Towns"), None, ())


def test_a_heading_without_text_is_a_parent_nevertheless():
    text = "# Guide\n\n## Oak\n\nTall.\n\n## Elm\n\nRare.\n\n# End\n\nDone.\n"
    stored = store(text, Chunker(max_tokens=20, min_tokens=1))
    elm = section(stored, "Elm")
    assert elm.links.get("parent_id") is None
    [result] = expand(stored, elm.id)
    assert result.chunk.text == text[: text.index("# End")]
    assert (result.chunk.path, result.chunk.id) == ("Guide", elm.id)


def test_sections_of_one_parent_are_one_result_at_the_rank_of_the_best():
    stored = store()
    found = [section(stored, name) for name in ("Thames", "Towns", "Rhine")]
    results = expand(stored, *(chunk.id for chunk in found))
    assert texts(results) == [BOOK[: BOOK.index("# Towns")], found[1].text]
    assert [result.merged.section_id for result in results] == [found[0].id, found[1].id]


def test_of_a_parent_that_is_too_large_as_much_as_fits_is_returned_around_the_section():
    stored = store()
    ships = section(stored, "Ships")
    assert texts(expand(stored, ships.id, max_tokens=count(ships.text))) == [ships.text]
    limit = count(ships.text) + count(section(stored, "Rhine").text)
    [result] = expand(stored, section(stored, "Rhine").id, max_tokens=limit)
    assert result.chunk.text == BOOK[BOOK.index("## Rhine") : BOOK.index("## Thames")]
    assert result.chunk.id == section(stored, "Rhine").id
    assert texts(expand(stored, ships.id, max_tokens=1)) == [ships.text]


def test_a_missing_section_ends_the_text():
    stored = store()
    ships = section(stored, "Ships")
    left = {id_: chunk for id_, chunk in stored.items() if chunk is not ships}
    [result] = expand(left, section(stored, "Rhine").id)
    assert result.chunk.text == BOOK[: BOOK.index("### Ships")]


def test_neighbors_are_joined_and_what_was_found_stays_a_result():
    stored = store()
    rhine, ships, thames = (section(stored, name) for name in ("Rhine", "Ships", "Thames"))
    assert texts(expand(stored, ships.id, expand="neighbours")) == [rhine.text + ships.text + thames.text]
    results = expand(stored, ships.id, thames.id, expand="neighbours")
    assert texts(results) == [rhine.text + ships.text, BOOK[BOOK.index("## Thames") :]]
    assert [result.chunk.id for result in results] == [ships.id, thames.id]
    assert texts(expand(stored, ships.id, expand="neighbours", max_tokens=1)) == [ships.text]


def test_the_header_of_a_table_that_a_later_part_repeats_is_joined_once():
    rows = "".join(f"| {number} | {'word ' * 9}|\n" for number in range(9))
    text = f"# Table\n\n| n | words |\n|---|---|\n{rows}\nThe end.\n"
    stored = store(text, Chunker(max_tokens=40, min_tokens=None))
    assert any(len(chunk.text) > chunk.end - chunk.start for chunk in stored.values())
    assert texts(expand(stored, next(iter(stored)))) == [text]


def test_white_space_between_passages_keeps_offsets():
    text = "\n\n".join(f"Passage {number} has some words of its own." for number in range(9))
    stored = store(text, Chunker("passage", 20))
    [result] = expand(stored, next(iter(stored)))
    assert result.chunk.text == text
    assert len(result.chunk.text) == result.chunk.end - result.chunk.start


def test_rendered_texts_are_separated():
    html = "<h1>Rivers</h1><h2>Rhine</h2><p>Basel <b>now</b></p><h2>Thames</h2><p>London</p>"
    stored = store(html, format="html")
    [result] = expand(stored, section(stored, "Thames").id)
    assert result.chunk.text == "\n\n".join(chunk.text for chunk in stored.values())


def test_pages_are_those_of_the_whole_text():
    stored = store()
    places = {"Rivers": Pages((0,), (1,), ("1",)), "Rhine": Pages((0, 60), (1, 2), ("1", "2"))}
    places |= {"Ships": Pages((0,), (2,), ("2",)), "Thames": Pages((0,), (3,), ("3",))}
    stored = {id_: replace(chunk, pages=places.get(chunk.path[-1])) for id_, chunk in stored.items()}
    [result] = expand(stored, section(stored, "Thames").id)
    assert result.chunk.pages == Pages((0, 60, BOOK.index("## Thames")), (1, 2, 3), ("1", "2", "3"))


def test_chunks_of_other_splitters_are_returned_as_they_are():
    chunks = {
        str(number): StoredChunk(None, str(number), "text", ("", "a"), start=4 * number, end=4 * number + 4)
        for number in range(3)
    }
    assert texts(expand(chunks, "1", expand="neighbours")) == ["text"]


outlines = st.lists(st.tuples(st.integers(1, 3), st.text("ab .\n", max_size=40)), min_size=1, max_size=8)


@settings(max_examples=examples(60), deadline=None)
@given(outlines, st.integers(1, 60), st.sampled_from(["parent", "neighbours"]), st.booleans(), st.data())
def test_each_text_is_the_source_between_its_offsets_and_no_section_is_in_two(outline, limit, kind, with_links, data):
    text = "".join(f"{'#' * level} H{number}\n\n{body}\n\n" for number, (level, body) in enumerate(outline))
    stored = store(text, Chunker(max_tokens=9, min_tokens=None), with_links=with_links)
    ids = data.draw(st.lists(st.sampled_from([*stored]), unique=True, min_size=1))
    results = expand(stored, *ids, expand=kind, max_tokens=limit)
    members = [chunk.id for result in results for chunk in result.members or (result.chunk,)]
    assert len(set(members)) == len(members)
    assert set(ids) <= set(members)
    assert kind == "parent" or [result.merged.section_id for result in results] == ids
    for result in results:
        assert result.chunk.text == text[result.chunk.start : result.chunk.end]
        assert sum(count(chunk.text) for chunk in result.members) <= limit
        assert (result.expanded_from is None) == (len(result.members) < 2)


@pytest.mark.parametrize(
    ("fields", "match"), [({"expand": "all"}, "expand"), ({"expand": "parent", "max_tokens": 0}, "max_tokens")]
)
def test_invalid_arguments_are_named(fields, match):
    with pytest.raises(InvalidInput, match=match):
        SectionExpander(**fields)
