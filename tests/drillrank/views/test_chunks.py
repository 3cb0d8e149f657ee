"""Chunks lose nothing, respect the limit, cut no paragraph that fits, and repeat the headers of tables."""

from __future__ import annotations

import re
from itertools import dropwhile, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drillrank.structure import parse_document
from drillrank.structure.passages import cut_passages
from drillrank.text import count_tokens
from drillrank.views import Chunker, MultiViewChunker
from tests.counting_lines import lines_run
from tests.drillrank.helpers import refuses

HEADER = "| name | value |\n|---|---|\n"  # 6 words
TABLE = HEADER + "".join(f"| row {i} | number {i} |\n" for i in range(12))
CODE = "```\n" + "line of code\n" * 20 + "```\n"
LONG = "Foxes hunt mice. Mice fear foxes! Owls watch them? They do, and every night they do it again.\n"
PARTS = [
    "# One\n", "## Two\n", "### Three\n", "A short paragraph.\n", LONG, "word " * 60 + "\n", "x" * 300 + "\n",
    CODE, TABLE, "漢字" * 40 + "\n", "\U0001f98a" * 50 + "\n", "- an item\n- another item\n- a third, longer item\n",
    "```\ncode = 1\nmore = 2\n```\n", " \t\n", "\x0c\n", "\ud800\n",
]  # fmt: skip
documents = (
    st.lists(st.sampled_from(PARTS), max_size=7).map("\n".join).map(lambda text: parse_document(text, "markdown"))
)
limits = st.integers(12, 80)
WHOLE = Chunker(max_tokens=None, min_tokens=None)
FIXED = ("content_aware_fixed", "fixed")
chunkers = st.one_of(
    st.sampled_from([WHOLE, Chunker("paragraph", None)]),
    st.builds(Chunker, max_tokens=st.none(), min_tokens=limits),
    limits.flatmap(lambda size: st.builds(Chunker, max_tokens=st.just(size), min_tokens=st.integers(1, size))),
    st.builds(Chunker, st.just("section"), limits, st.none()),
    st.builds(Chunker, st.sampled_from(["paragraph", *FIXED]), limits),
)


def words(text: str) -> int:
    return len(text.split())


def sizes(chunks) -> list[int]:
    return [count_tokens(chunk.text.strip()) for chunk in chunks]


@given(documents, chunkers)
def test_chunks_tile_the_text_in_order_and_keep_to_the_limit_and_to_their_sections(document, chunker):
    chunks, at, sections = chunker(document), 0, document.sections()
    for chunk in chunks:
        own = document.text[chunk.start : chunk.end]
        assert chunk.text.strip()
        assert chunk.text in (own, HEADER + own)  # a table's header may stand before it
        assert chunk.start >= at
        assert not document.text[at : chunk.start].strip()
        at = chunk.end
        section = sections[chunk.ordinal]
        assert chunk.start < section.end
        assert chunk.end > section.start
        if chunker.min_tokens is None and chunker.chunking != "fixed":
            assert (chunk.path, chunk.level, chunk.depth) == (section.path, section.level, len(section.path))
            assert section.start <= chunk.start <= chunk.end <= section.end
        assert (chunk.path, chunk.level) == ((), 0) or chunker.chunking != "fixed"
    assert not document.text[at:].strip()
    places = [(chunk.ordinal, chunk.part) for chunk in chunks]
    assert places == sorted(set(places))
    limit = chunker.max_tokens
    assert limit is None or max(sizes(chunks), default=0) <= limit
    if chunker.chunking not in FIXED:
        for block in (block for section in sections for block in document.blocks(section)):
            if limit is None or count_tokens(document.slice(block).strip()) <= limit:
                assert any(chunk.start <= block.start and block.end <= chunk.end for chunk in chunks)


def test_chunks_without_regard_to_sections_have_no_paths():
    document = parse_document("# Basel\n\nA town.\n\n## Zoo\n\nIt has lions.\n")
    found = Chunker("fixed", 4)(document)
    assert {(chunk.path, chunk.level, chunk.depth) for chunk in found} == {((), 0, 0)}
    first = parse_document("A town.\n\nIt has a zoo.\n")
    assert [chunk.body for chunk in Chunker("paragraph", 99)(first)] == ["A town.", "It has a zoo."]


def packed(pieces: list[str], limit: int, count) -> list[str]:
    """Pieces, joined from the first on as long as they fit."""
    found: list[str] = []
    for piece in pieces:
        if found and count((found[-1] + piece).strip()) <= limit:
            found[-1] += piece
        else:
            found.append(piece)
    return found


def sentence(length: int) -> str:
    return " ".join(["Owls", *["fly"] * (length - 1)]) + ". "


items = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), min_size=1, max_size=5)


@given(items, st.integers(2, 24), st.sampled_from(["list", "paragraph", "code"]))
@example([[3], [3], [4]], 10, "list")
def test_what_is_too_long_is_cut_at_lines_or_else_sentences_or_else_words_and_packed(lengths, limit, kind):
    lines = [[sentence(length) for length in item] for item in lengths]
    start = "- " if kind == "list" else ""
    text = "".join(f"{start}{''.join(line)[:-1]}\n" for line in lines)
    if kind == "code":
        lines, text = [["```"], *[["".join(line)] for line in lines], ["```"]], f"```\n{text}```\n"
    document = parse_document(text if kind != "paragraph" else text.replace("\n", " "), "markdown")
    pieces = []
    for line in lines:
        whole = start + "".join(line)
        if kind != "paragraph" and words(whole) <= limit:
            pieces.append(f"{whole.rstrip()}\n")
            continue
        for number, one in enumerate(line):
            alone = one if number else start + one
            pieces += [alone] if words(alone) <= limit and kind != "code" else [f"{word} " for word in alone.split()]
    expected = packed(pieces, limit, words) if words(document.text) > limit else [document.text]
    chunks = Chunker("section", limit, None, tokens=words)(document)
    assert [chunk.text.split() for chunk in chunks] == [piece.split() for piece in expected]
    assert "".join(chunk.text for chunk in chunks) == document.text


rows = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@given(rows, st.integers(4, 30), st.sampled_from(["", "\n", "\n \n\n"]), st.sampled_from(["markdown", "html"]))
@example([1, 3], 12, "", "markdown")
def test_each_part_of_a_table_stands_below_its_header_unless_that_is_too_long(lengths, limit, blank, format):
    if format == "markdown":
        head, lines = HEADER, [f"| {'x ' * length}| y |\n" for length in lengths]
        text = whole = f"{blank}{head}{''.join(lines)}"
    else:
        head, lines = "name | value\n", [f"{'x ' * length}| y\n" for length in lengths]
        cells = "".join(f"<tr><td>{'x ' * length}</td><td>y</td></tr>" for length in lengths)
        text = f"{blank}<table><tr><th>name</th><th>value</th></tr>{cells}</table>"
        whole = (head + "".join(lines)).rstrip()
    chunks = Chunker("section", limit, None, tokens=words)(parse_document(text, format))
    assert all(words(chunk.text) <= limit for chunk in chunks)
    header = head if 2 * words(head) <= limit else ""
    own = [chunk.text.removeprefix(header) if number else chunk.text for number, chunk in enumerate(chunks)]
    assert "".join(own).strip() == whole.strip()
    behind = whole.index(lines[0].rstrip())
    for number, chunk in enumerate(chunks):
        begins = sum(map(len, own[:number])) if format == "html" else chunk.start
        assert not header or chunk.text.startswith(header) or begins < behind
    shown = [line.strip() for part in own for line in part.splitlines()]
    alone = [line.strip() for line in lines if words(line) <= limit - words(header)]
    left = iter(shown)
    assert all(line in left for line in alone)


def test_nothing_but_a_table_repeats_its_first_lines_and_parts_of_rendered_blocks_have_the_span_of_the_block():
    for text in ("- a\n- b\n- c\n- d e f g h i j\n", "```\na\nb\nc\nd e f g h i j\n```\n"):
        assert "".join(chunk.text for chunk in Chunker("section", 5, None, tokens=words)(parse_document(text))) == text
    text = "<h1>Birds</h1><p>" + "<b>Owls</b> &amp; crows fly at night. " * 8 + "</p><p>?</p><p>The end.</p>"
    chunks = Chunker("section", 30)(parse_document(text, "html"))
    assert len(chunks) > 2
    assert "".join(chunk.text for chunk in chunks).count("Owls & crows fly at night.") == 8
    assert all("<b>" not in chunk.text and count_tokens(chunk.text) <= 30 for chunk in chunks)
    assert all("Owls" in text[chunk.start : chunk.end] for chunk in chunks[:-1])
    assert WHOLE(parse_document(text, "html"))[0].text.startswith("Birds\n\nOwls & crows")
    text = "<h1>Birds</h1><h2>Owls</h2><p>Fly.</p><h2>Ducks</h2><p>Swim.</p>"
    [joined] = Chunker(max_tokens=None, min_tokens=20)(parse_document(text, "html"))
    assert joined.text == "Birds\n\nOwls\n\nFly.\n\nDucks\n\nSwim."


@given(
    st.lists(st.sampled_from(["fox ", "the ", "e. ", "x", "\n", "漢 "]), min_size=1, max_size=40), st.integers(4, 20)
)
@example(["X "] * 20, 20)
@example(["X "] * 200, 4)
def test_packing_counts_little_and_fits_where_the_whole_has_more_tokens_than_its_parts(parts, limit):
    """Sizes that add up, that are more together, and that are fewer together."""
    document = parse_document("".join(parts), "text")
    counted: list[str] = []
    for count in (words, lambda text: words(text) + text.count(". "), lambda text: len(re.findall(r" ?\S+|\s", text))):
        counted.clear()
        chunks = Chunker("section", limit, None, tokens=lambda text, c=count: counted.append(text) or c(text))(document)
        texts = [chunk.text.strip() for chunk in chunks]
        assert all(count(text) <= limit or len(text) <= max(limit // 4, 1) for text in texts)
        assert len("".join(counted)) <= 12 * len(document.text) + 100
        if count is words and len(document.blocks(document.sections()[0])) == 1:
            for one, behind in pairwise(chunks):
                assert (
                    words(one.text) + words(behind.text.split()[0]) > limit
                    or one.text.endswith(("\n", ". "))
                    or "x漢" in one.text
                )


@given(documents, limits)
def test_small_sections_join_under_their_parent_only(document, size):
    whole, joined = WHOLE(document), Chunker(max_tokens=None, min_tokens=size)(document)
    assert "".join(chunk.text for chunk in joined) == "".join(chunk.text for chunk in whole)
    for chunk in joined:
        inside = [other for other in whole if chunk.start <= other.start < chunk.end]
        members = [*dropwhile(lambda other: not other.body, inside)] or inside[-1:]
        for above, below in pairwise(inside[: len(inside) - len(members) + 1]):
            assert below.path[: len(above.path)] == above.path  # a heading goes with what is below it
        if len(members) == 1:
            [alone] = members
            assert (chunk.path, chunk.body, chunk.level, chunk.end) == (alone.path, alone.body, alone.level, alone.end)
            continue
        assert max(sizes(members)) < size
        assert {member.path[:-1] for member in members[1:]} == {chunk.path}
        assert chunk.path in (members[0].path, members[0].path[:-1])
        assert sum(sizes(members[:-1])) < size


@pytest.mark.parametrize(
    ("lengths", "least", "most", "joined"),
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
def test_siblings_join_below_the_limit_and_not_at_it(lengths, least, most, joined):
    text = "".join(f"# {'w' * 3}\n\n{'w ' * (size - 2)}\n\n" for size in lengths)
    chunks = Chunker("section", most, least, tokens=words)(parse_document(text, "markdown"))
    assert [chunk.text.count("#") for chunk in chunks] == joined


BIG = "long " * 70


ALONE, TO_30 = Chunker(max_tokens=None), Chunker(max_tokens=None, min_tokens=30)
ABOUT = Chunker(min_tokens=None, exclude=["see also", "REFERENCES"])
OAKS = "# Oak\n\nTall.\n\n## 7. See also:\n\nElm.\n\n### Lists\n\nAsh.\n\n# References\n\nA.\n\n# Elm\n\nSoft.\n"


@pytest.mark.parametrize(
    ("chunker", "text", "expected"),
    [  # a heading without text goes with the first section below it; one with nothing below stands alone
        (ALONE, f"# A\n\n## B\n\n### C\n\n{BIG}\n\n### D\n\n# E\n\n{BIG}",
         [(("A", "B", "C"), 3, BIG), (("A", "B", "D"), 3, "D"), (("E",), 1, BIG)]),
        (TO_30, f"# A\n\nIntro.\n\n## B\n\nOne.\n\n## C\n\nTwo.\n\n## D\n\n{BIG}\n\n# E\n\nThree.\n",
         [(("A",), 1, "Intro.\n\n## B\n\nOne.\n\n## C\n\nTwo."), (("A", "D"), 2, BIG), (("E",), 1, "Three.")]),
        (TO_30, f"# A\n\n{BIG}\n\n## B\n\nOne.\n\n## C\n\nTwo.\n",
         [(("A",), 1, BIG), (("A",), 1, "## B\n\nOne.\n\n## C\n\nTwo.")]),
        (TO_30, "# B\n\nOne.\n\n# C\n\nTwo.\n", [((), 0, "# B\n\nOne.\n\n# C\n\nTwo.")]),
        (Chunker(), "# Oak\n\n## Wood\n\nHard.\n\n## Leaves\n\nGreen.\n",  # in one chunk sections stay apart
         [(("Oak",), 1, ""), (("Oak", "Wood"), 2, "Hard."), (("Oak", "Leaves"), 2, "Green.")]),
        (ALONE, "# Oak\n\n## Wood\n\nHard.\n", [(("Oak", "Wood"), 2, "Hard.")]),
        (ABOUT, OAKS, [(("Oak",), 1, "Tall."), (("Elm",), 1, "Soft.")]),
    ],
)  # fmt: skip
def test_what_stands_together(chunker, text, expected):
    chunks = chunker(parse_document(text))
    found = [(chunk.path, chunk.level, chunk.body) for chunk in chunks]
    assert found == [(path, level, body.strip()) for path, level, body in expected]
    assert chunks[0].text == text[: chunks[0].end]


@pytest.mark.parametrize("piece", ["word ", "x", "a. ", "漢"])
def test_one_long_line_is_cut_with_linear_work(piece):
    counted: list[str] = []

    def work(text: str) -> None:
        counted.clear()
        count = lambda text: counted.append(text) or count_tokens(text)  # noqa: E731
        chunks = Chunker("section", 300, tokens=count)(parse_document(text, "text"))
        assert "".join(chunk.text for chunk in chunks) == text

    work(piece)
    short, long = ((lines_run(work, piece * (n // len(piece))), len("".join(counted))) for n in (4000, 32_000))
    assert long[0] < 12 * short[0] + 2000  # 8 times if linear, 64 if quadratic
    assert long[1] < 12 * short[1]


test_settings_that_do_not_go_together_are_refused = refuses(
    (lambda: Chunker(chunking="page"), "chunking must be"),
    *((lambda chunking=chunking: Chunker(chunking, max_tokens=None), "needs max_tokens") for chunking in FIXED),
    (lambda: Chunker(chunking="paragraph", min_tokens=5), "min_tokens"),
    *((lambda name=name: Chunker(**{name: 0}), name) for name in ("max_tokens", "min_tokens")),
    (lambda: Chunker(exclude="References"), "exclude"),
    (lambda: Chunker(chunking="fixed", exclude=["References"]), "exclude"),
    (lambda: Chunker(max_tokens=10, min_tokens=20), "at most max_tokens"),
)


@pytest.mark.parametrize("chunking", ["section", "paragraph", "content_aware_fixed"])
def test_a_heading_goes_with_the_first_part_of_what_is_cut_behind_it(chunking):
    text = "# Title\n\n" + "One sentence of ordinary length stands here. " * 10
    first, second, *_ = Chunker(chunking, 40, None if chunking == "section" else 64)(parse_document(text))
    assert first.text.startswith("# Title\n\nOne sentence")
    assert first.body.startswith("One sentence")
    assert second.body.startswith("One sentence")


MILL = "# Mill\n\nIt grinds corn.\n\n## Use\n\nThe steps:\n\n- Stop it.\n- Start it.\n\n# Notes\n\nOld.\n"
LONG_MILL = "# Mill\n\n" + "The old mill grinds corn all day. " * 60 + "\n\n# Wheel\n\n" + "It turns. " * 100 + "\n"


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (MILL, "markdown"),
        (LONG_MILL, "markdown"),
        ("<h1>A</h1><p>b &amp; c</p>", "html"),
        ("\\section{A}\nOne.\n", "latex"),
    ],
)
def test_chunks_of_passages_are_passages(text, format):
    document = parse_document(text, format)
    chunks, passages = Chunker("passage")(document), cut_passages(document)
    assert [(c.text, c.start, c.end, c.path) for c in chunks] == [
        (p.text, p.start, p.end, p.section_path) for p in passages
    ]


def test_parts_of_a_section_are_numbered_and_bodies_begin_behind_the_heading():
    chunks = Chunker("passage")(parse_document(LONG_MILL))
    assert [(chunk.ordinal, chunk.part, chunk.path) for chunk in chunks] == [
        (0, 0, ("Mill",)), (0, 1, ("Mill",)), (1, 0, ("Wheel",))
    ]  # fmt: skip
    assert chunks[0].body.startswith("The old mill")
    assert chunks[1].body == chunks[1].text


@pytest.mark.parametrize("limit", [5, 50, 200])
def test_passages_are_within_the_limit_of_tokens(limit):
    chunks = Chunker("passage", limit)(parse_document(LONG_MILL))
    assert all(count_tokens(chunk.text) <= limit for chunk in chunks)
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(LONG_MILL.split())


def test_passages_leave_out_sections_by_name():
    assert [chunk.text for chunk in Chunker("passage", exclude=["Notes"])(parse_document(MILL))] == [
        MILL[: MILL.index("\n\n# Notes")]
    ]


def test_passages_have_views_and_ids():
    [[raw, keywords, *_]] = MultiViewChunker(chunking="passage").chunks([("mill", parse_document(MILL))])
    assert (raw.view, keywords.view, keywords.section_id) == ("raw", "keywords", raw.id)
