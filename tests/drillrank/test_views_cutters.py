"""Units lose nothing, respect the limit, and cut no paragraph that fits."""

from __future__ import annotations

from itertools import dropwhile, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.structure import parse_document
from drillrank.text import count_tokens
from drillrank.views import Chunker
from tests.drillrank.test_structure_linear import lines_run

WHOLE = Chunker(max_tokens=None, min_tokens=None)

TABLE = "| name | value |\n|---|---|\n" + "".join(f"| row {i} | number {i} |\n" for i in range(12))
PARTS = [
    "# One\n",
    "## Two\n",
    "### Three\n",
    "A short paragraph about foxes.\n",
    "Foxes hunt mice. Mice fear foxes! Owls watch them? They do, and every night they do it again.\n",
    "word " * 60 + "\n",
    "x" * 300 + "\n",
    "漢字" * 40 + "\n",
    "\U0001f98a" * 50 + "\n",
    "- an item\n- another item\n- a third item that is a little longer\n",
    "```\ncode = 1\nmore = 2\n```\n",
    "```\n" + "line of code\n" * 20 + "```\n",
    TABLE,
    " \t\n",
    "\x0c\n",
    "\ud800\n",
]
documents = (
    st.lists(st.sampled_from(PARTS), max_size=7).map("\n".join).map(lambda text: parse_document(text, "markdown"))
)
limits = st.integers(12, 80)
cutters = st.one_of(
    st.just(WHOLE),
    st.builds(Chunker, max_tokens=limits, min_tokens=st.none()),
    st.builds(Chunker, max_tokens=st.none(), min_tokens=limits),
    limits.flatmap(lambda size: st.builds(Chunker, max_tokens=st.just(size), min_tokens=st.integers(1, size))),
    st.just(Chunker("paragraph", None)),
    st.builds(Chunker, st.just("paragraph"), limits),
    st.builds(Chunker, st.just("content_aware_fixed"), limits),
    st.builds(Chunker, st.just("fixed"), limits),
)


def slices(document, units):
    return [document.text[unit.start : unit.end] for unit in units]


@given(documents, cutters)
def test_spans_tile_all_text_and_are_what_the_units_show(document, cutter):
    units = cutter(document)
    at = 0
    for unit, own in zip(units, slices(document, units), strict=True):
        assert not document.text[at : unit.start].strip()
        assert unit.start >= at
        assert unit.text.endswith(own)  # a table's header may stand before it
        assert unit.text == own or unit.text == "| name | value |\n|---|---|\n" + own
        assert unit.text.strip()
        at = unit.end
    assert not document.text[at:].strip()


@given(documents, limits)
def test_no_unit_is_too_long(document, limit):
    for cutter in (
        Chunker("section", limit, None),
        Chunker("paragraph", limit),
        Chunker("content_aware_fixed", limit),
        Chunker("fixed", limit),
    ):
        assert all(count_tokens(unit.text.strip()) <= limit for unit in cutter(document))


@given(documents, limits)
def test_a_block_that_fits_is_in_one_unit(document, limit):
    for cutter in (Chunker("section", limit, None), Chunker("paragraph", limit)):
        spans = [(unit.start, unit.end) for unit in cutter(document)]
        for section in document.sections():
            for block in document.blocks(section):
                if count_tokens(document.slice(block).strip()) <= limit:
                    assert any(start <= block.start and block.end <= end for start, end in spans)


@given(documents, cutters)
def test_places_are_unique_and_no_unit_crosses_a_section_unless_it_joins_or_ignores_them(document, cutter):
    units = cutter(document)
    places = [(unit.ordinal, unit.part) for unit in units]
    assert places == sorted(set(places))
    sections = document.sections()
    for unit in units:
        assert unit.start < sections[unit.ordinal].end
        assert unit.end > sections[unit.ordinal].start


@given(documents, limits)
def test_content_aware_chunks_stay_inside_their_section(document, limit):
    sections = document.sections()
    for cutter in (Chunker("section", limit, None), Chunker("paragraph", limit), Chunker("content_aware_fixed", limit)):
        for unit in cutter(document):
            section = sections[unit.ordinal]
            assert (unit.path, unit.level, unit.depth) == (section.path, section.level, len(section.path))
            assert section.start <= unit.start <= unit.end <= section.end


@given(st.lists(st.sampled_from(["Foxes hunt mice.", "The owl sleeps by day.", "It rains."]), min_size=1), limits)
def test_chunks_of_fixed_length_are_as_long_as_the_limit_allows(chosen, limit):
    expected: list[str] = []
    for sentence in chosen:
        if expected and count_tokens(f"{expected[-1]} {sentence}") <= limit:
            expected[-1] += f" {sentence}"
        else:
            expected.append(sentence)
    document = parse_document(" ".join(chosen), "text")
    for cutter in (Chunker("content_aware_fixed", limit), Chunker("fixed", limit)):
        assert [unit.text.strip() for unit in cutter(document)] == expected


def test_a_long_sentence_fills_its_units():
    units = Chunker("section", 20, None)(parse_document("word " * 100, "text"))
    assert [count_tokens(unit.text.strip()) for unit in units] == [20] * 5


@given(documents, limits)
def test_small_sections_join_under_their_parent_only(document, size):
    whole = WHOLE(document)
    joined = Chunker(max_tokens=None, min_tokens=size)(document)
    assert "".join(unit.text for unit in joined) == "".join(unit.text for unit in whole)
    for unit in joined:
        inside = [other for other in whole if unit.start <= other.start < unit.end]
        members = [*dropwhile(lambda other: not other.body, inside)] or inside[-1:]
        for above, below in pairwise(inside[: len(inside) - len(members) + 1]):
            assert below.path[: len(above.path)] == above.path  # a heading goes with what is below it
        if len(members) == 1:
            assert (unit.path, unit.body, unit.level, unit.end) == (
                members[0].path,
                members[0].body,
                members[0].level,
                members[0].end,
            )
            continue
        assert all(count_tokens(member.text.strip()) < size for member in members)
        assert {member.path[:-1] for member in members[1:]} == {unit.path}
        assert unit.path in (members[0].path, members[0].path[:-1])
        assert sum(count_tokens(member.text.strip()) for member in members[:-1]) < size


def test_a_heading_without_text_goes_with_the_first_section_below_it_and_one_with_nothing_below_stands_alone():
    text = "# A\n\n## B\n\n### C\n\n" + "long " * 70 + "\n\n### D\n\n# E\n\n" + "long " * 70
    first, alone, last = Chunker(max_tokens=None)(parse_document(text))
    assert (first.path, first.text.split()[:6]) == (("A", "B", "C"), ["#", "A", "##", "B", "###", "C"])
    assert (alone.path, alone.body, last.path) == (("A", "B", "D"), "D", ("E",))


def test_by_default_no_section_is_longer_than_encoders_read_nor_tiny_beside_others():
    paragraph = "The old oak grows slowly in the northern woods. " * 12
    text = "# Trees\n\n" + f"{paragraph}\n\n" * 9 + "".join(f"## Tree {i}\n\nIt is tall.\n\n" for i in range(40))
    units = Chunker()(parse_document(text))
    sizes = [count_tokens(unit.text.strip()) for unit in units]
    assert max(sizes) <= 512
    assert min(sizes[:-1]) >= 64
    assert len(units) < 12


def test_in_a_document_of_one_chunk_sections_stay_apart():
    text = "# Oak\n\n## Wood\n\nHard.\n\n## Leaves\n\nGreen.\n"
    assert [unit.path[-1] for unit in Chunker()(parse_document(text))] == ["Oak", "Wood", "Leaves"]
    assert len(Chunker(max_tokens=None)(parse_document(text))) == 1


def test_sections_are_left_out_by_name_with_all_below_them():
    text = "# Oak\n\nTall.\n\n## 7. See also:\n\nElm.\n\n### Lists\n\nAsh.\n\n# References\n\nBook.\n\n# Elm\n\nSoft.\n"
    units = Chunker(min_tokens=None, exclude=["see also", "REFERENCES"])(parse_document(text))
    assert [unit.path for unit in units] == [("Oak",), ("Elm",)]
    assert "Book" not in "".join(unit.text for unit in Chunker(exclude=["References"])(parse_document(text)))


def test_small_siblings_join_until_they_are_large_enough():
    small = "# A\n\nIntro.\n\n## B\n\nOne.\n\n## C\n\nTwo.\n\n"
    document = parse_document(small + "## D\n\n" + "long " * 50 + "\n\n# E\n\nThree.\n")
    units = Chunker(max_tokens=None, min_tokens=30)(document)
    assert [unit.path for unit in units] == [("A",), ("A", "D"), ("E",)]
    assert units[0].text == small
    assert units[0].body == small.removeprefix("# A\n\n").strip()
    assert units[0].level == 1


@pytest.mark.parametrize(
    ("sizes", "least", "most", "joined"),
    [
        ([4, 4, 4, 4], 8, None, [2, 2]),  # two are as many as it takes
        ([4, 4, 4, 4], 9, None, [3, 1]),
        ([3, 4, 3], 4, None, [1, 1, 1]),  # one of 4 is not small
        ([3, 4, 3], 5, None, [2, 1]),
        ([4, 4, 4, 4], 12, 12, [3, 1]),
        ([4, 4, 4, 4], 11, 11, [2, 2]),  # three are more than 11
        ([3, 3, 9, 3, 3], 7, None, [2, 1, 2]),
    ],
)
def test_siblings_join_below_the_limit_and_not_at_it(sizes, least, most, joined):
    text = "".join(f"# {'w' * 3}\n\n{'w ' * (size - 2)}\n\n" for size in sizes)
    units = Chunker("section", most, least, tokens=lambda text: len(text.split()))(parse_document(text, "markdown"))
    assert [unit.text.count("#") for unit in units] == joined


def test_joined_siblings_without_their_parent_have_its_path():
    document = parse_document("# A\n\n" + "long " * 50 + "\n\n## B\n\nOne.\n\n## C\n\nTwo.\n")
    first, second = Chunker(max_tokens=None, min_tokens=30)(document)
    assert (first.path, first.level, second.path, second.level) == (("A",), 1, ("A",), 1)
    assert second.body == second.text.strip()
    assert second.text == "## B\n\nOne.\n\n## C\n\nTwo.\n"


def test_tables_repeat_their_header_and_keep_their_rows_whole():
    units = Chunker("section", 40, None)(parse_document(f"# Data\n\n{TABLE}"))
    assert len(units) > 2
    rows = [line for unit in units for line in unit.text.splitlines() if line.startswith("| row")]
    assert rows == TABLE.splitlines()[2:]
    for unit in units:
        assert unit.text.count("| name | value |\n|---|---|\n") == 1


def test_code_that_fits_is_kept_and_longer_code_is_cut_between_lines():
    code = "```\n" + "".join(f"call({i})\n" for i in range(6)) + "```"
    text = "Before it, some words stand here.\n\n" + code + "\n\nBehind it, too.\n"
    fits = Chunker("section", count_tokens(code), None)(parse_document(text))
    assert any(code in unit.text for unit in fits)
    cut = Chunker("section", 12)(parse_document(code))
    assert len(cut) > 1
    assert all(unit.text.endswith("\n") for unit in cut[:-1])


def test_a_heading_goes_with_the_text_behind_it():
    text = "# Title\n\n" + "One sentence of ordinary length stands here. " * 10
    for cutter in (Chunker("section", 40, None), Chunker("paragraph", 40), Chunker("content_aware_fixed", 40)):
        first = cutter(parse_document(text))[0]
        assert first.text.startswith("# Title\n\nOne sentence")
        assert first.body.startswith("One sentence")


def test_parts_of_rendered_blocks_have_the_span_of_the_block():
    pytest.importorskip("justhtml")
    text = "<h1>Birds</h1><p>" + "<b>Owls</b> &amp; crows fly at night. " * 8 + "</p><p>The end.</p>"
    document = parse_document(text, "html")
    units = Chunker("section", 30)(document)
    assert len(units) > 2
    assert "".join(unit.text for unit in units).count("Owls & crows fly at night.") == 8
    assert all("<b>" not in unit.text and count_tokens(unit.text) <= 30 for unit in units)
    assert all("Owls" in document.text[unit.start : unit.end] for unit in units[:-1])


@pytest.mark.parametrize("piece", ["word ", "x", "a. ", "漢"])
def test_one_long_line_is_cut_with_linear_work(piece):
    counted = 0

    def tokens(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return count_tokens(text)

    def work(text: str) -> None:
        units = Chunker("section", 300, tokens=tokens)(parse_document(text, "text"))
        assert "".join(unit.text for unit in units) == text

    work(piece)
    lines, characters = [], []
    for size in (4000, 32_000):
        counted = 0
        lines.append(lines_run(work, piece * (size // len(piece))))
        characters.append(counted)
    assert lines[1] < 12 * lines[0] + 2000  # 8 times if linear, 64 if quadratic
    assert characters[1] < 12 * characters[0]


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"chunking": "page"}, "chunking is"),
        ({"chunking": "fixed", "max_tokens": None}, "needs max_tokens"),
        ({"chunking": "content_aware_fixed", "max_tokens": None}, "needs max_tokens"),
        ({"chunking": "paragraph", "min_tokens": 5}, "min_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"exclude": "References"}, "exclude"),
        ({"chunking": "fixed", "exclude": ["References"]}, "exclude"),
        ({"max_tokens": 10, "min_tokens": 20}, "above"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, match):
    with pytest.raises(InvalidInput, match=match):
        Chunker(**settings)
