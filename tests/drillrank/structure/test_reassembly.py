"""Documents put together from the chunks that a store returns."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from drillrank import StoredChunk
from drillrank.structure.reassembly import deduplicate_records, reassemble

TEXT = "# Sea\n\nIt is deep.\n\n## Fish\n\nCod and tuna.\n"


def section(start: int, end: int, path: str, **fields) -> StoredChunk:
    chunk = StoredChunk(None, str(start), TEXT[start:end], ("", "a"), "section", "raw", path=path, start=start, end=end)
    return replace(chunk, **fields)


def other_chunk(text: str, start: int | None = None, **fields) -> StoredChunk:
    return StoredChunk(None, f"{start} {text}", text, ("", "a"), "chunk", start=start, **fields)


FIRST, SECOND, FISH = section(0, 12, "Sea"), section(12, 20, "Sea"), section(20, len(TEXT), "Sea > Fish")


def test_sections_are_joined_where_they_continue_in_any_order():
    for seed in range(6):
        chunks = [FIRST, SECOND, FISH, FIRST]
        random.Random(seed).shuffle(chunks)
        runs = reassemble(chunks).runs
        assert [(run.text, run.path, run.start, run.end) for run in runs] == [
            (TEXT[:20], "Sea", 0, 20),
            (TEXT[20:], "Sea > Fish", 20, len(TEXT)),
        ]


def test_chunks_of_other_splitters_are_joined_where_they_overlap():
    [run] = reassemble([other_chunk(TEXT[7:26], 7), other_chunk(TEXT[:12], 0)]).runs
    assert (run.text, run.shifts) == (TEXT[:26], ((0, 0),))
    assert [(span.start, span.end, span.chunk_index) for span in run.spans] == [(0, 12, 1), (7, 26, 0)]


def test_missing_text_between_chunks_is_a_blank_line_and_shifts_the_offsets():
    [run] = reassemble([other_chunk("It is deep.", 7), other_chunk("Cod and tuna.", 29)]).runs
    assert (run.text, run.shifts) == ("It is deep.\n\nCod and tuna.", ((0, 7), (13, 16)))
    assert (run.find_offset(13), run.find_end(len(run.text))) == (29, 42)


def test_a_rendering_is_a_run_of_its_own():
    table = replace(SECOND, text="| a |\n|---|\n| 2 |")
    runs = reassemble([FIRST, table]).runs
    assert [(run.is_rendering, run.start, run.end) for run in runs] == [(False, 0, 12), (True, 12, 20)]


def test_chunks_below_different_headings_and_on_different_pages_are_not_joined():
    chunks = [
        other_chunk("One.", 0, path=("A",)),
        other_chunk("Two.", 4, path=("B",)),
        other_chunk("Three.", 0, page=2),
    ]
    assert [run.text for run in reassemble(chunks).runs] == ["One.", "Two.", "Three."]


def test_a_view_counts_only_without_its_section():
    view = replace(FIRST, view="keywords", text="")
    assert deduplicate_records([view, FIRST, SECOND, FIRST]) == [SECOND, FIRST]
    assert deduplicate_records([view, SECOND]) == [view, SECOND]


def test_a_single_whole_document_has_its_own_name():
    whole = StoredChunk(None, "1", TEXT, ("", "a.md"), "document", aliases=("1",))
    assert reassemble([whole], name=("", "a.md (2)")).name == ("", "1")
    assert reassemble([FIRST, SECOND], name=("", "b")).name == ("", "b")


@pytest.mark.parametrize(
    ("chunks", "is_contradictory"),
    [
        ([FIRST, SECOND, FISH], False),
        ([FIRST, replace(SECOND, start=11)], True),
        ([FIRST, replace(FIRST, id="b", text="# Lake\n\nWet.")], True),
        (
            [FIRST, *(section(12, 20, "Sea", text=text, id=text) for text in ("a", "b", "c"))],
            False,
        ),  # one rendered block
        ([FIRST, *(section(12, 20, "Sea", text=text) for text in ("a", "b"))], True),
        ([section(0, 20, "Sea", text="a", id="a"), SECOND], True),
        ([other_chunk(TEXT[:20], 0), other_chunk(TEXT[5:12], 5), other_chunk(TEXT[15:30], 15)], False),
        ([other_chunk(TEXT[:20], 0), other_chunk("wrong", 5)], True),
        ([other_chunk(TEXT[:20], 0), other_chunk("wrong", 5, page=2)], False),
        ([other_chunk(TEXT[:20], 0), other_chunk("wrong")], False),
    ],
)
def test_two_texts_at_one_offset_contradict_each_other(chunks, is_contradictory):
    assert reassemble(chunks).is_contradictory is is_contradictory


def test_an_original_locates_its_chunks_and_is_ignored_if_it_lacks_one():
    original = StoredChunk(None, "a", TEXT, ("", "a"))
    document = reassemble([other_chunk("Cod and tuna."), other_chunk("It is deep.")], original, shows_rest=True)
    assert document.has_offsets
    [run] = document.runs
    assert [(span.start, span.end) for span in run.spans] == [(7, 18), (29, 42)]
    assert document.find_chunk(run.find_chunk_span(7, 18).chunk_index).text == "It is deep."
    assert document.find_chunk(run.find_chunk_span(0, 5).chunk_index) is original
    without = reassemble([other_chunk("It is shallow.")], original)
    assert without.original is None
    assert not without.has_offsets


def test_a_key_tells_contents_and_metadata_apart_and_joins_no_text():
    document = reassemble([FIRST, FISH])
    assert document.key == reassemble([replace(FIRST, record="another"), FISH]).key
    assert "runs" not in vars(document)
    for changed in (replace(FISH, text="Cod."), replace(FISH, metadata={"tenant": "b"}), replace(FISH, start=21)):
        assert document.key != reassemble([FIRST, changed]).key
