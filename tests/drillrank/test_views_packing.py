"""Blocks are cut at the coarsest borders that help, tables repeat their header, and packing joins what fits."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drillrank.structure import parse_document
from drillrank.views.chunks import Splits


def words(text: str) -> int:
    return len(text.split())


def octets(text: str) -> int:
    return len(text.encode())


def runs_of(text: str, format: str = "markdown"):
    document = parse_document(text, format)
    return document, [run for section in document.sections() for run in Splits(document, None, words).blocks(section)]


def readable(document, run) -> str:
    return Splits(document, None, words).text(run)


def sources(document, parts) -> list[str]:
    return [document.text[part[0].start : part[-1].end] for part in parts]


# Sentences of 1 to 6 words; a list has a line for each item, of 1 to 4 sentences.
sentence_lengths = st.integers(1, 6)
items = st.lists(st.lists(sentence_lengths, min_size=1, max_size=4), min_size=1, max_size=5)


def sentence(length: int) -> str:
    return " ".join(["Owls", *["fly"] * (length - 1)]) + ". "


@given(items, st.integers(2, 24), st.booleans())
def test_a_part_is_a_line_or_else_a_sentence_or_else_a_word(lengths, limit, listed):
    lines = [[sentence(length) for length in item] for item in lengths]
    starts = ["- " if listed else ""] * len(lines)
    text = "".join(f"{start}{''.join(line)[:-1]}\n" for start, line in zip(starts, lines, strict=True))
    document, [run] = runs_of(text if listed else text.replace("\n", " "))
    expected = []
    for start, line in zip(starts, lines, strict=True):
        whole = start + "".join(line)
        if listed and words(whole) <= limit:
            expected.append(whole)
            continue
        for number, one in enumerate(line):
            alone = one if number else start + one
            expected += [alone] if words(alone) <= limit else [f"{word} " for word in alone.split()]
    parts = Splits(document, limit, words).atoms(run)
    found = sources(document, parts)
    assert [part.split() for part in found] == [part.split() for part in expected]
    assert "".join(found) == document.text
    assert [readable(document, part) for part in parts] == found


@given(st.integers(1, 60), st.integers(4, 40))
def test_of_a_long_word_as_many_characters_as_surely_fit(length, limit):
    document, [run] = runs_of("\U0001f98a" * length, "text")
    found = sources(document, Splits(document, limit, octets).atoms(run))
    if 4 * length <= limit:
        assert found == [document.text]
    else:
        assert "".join(found) == document.text
        assert {len(part) for part in found[:-1]} == {limit // 4}
        assert octets(found[-1]) <= limit


def test_below_the_size_of_a_character_the_parts_are_characters():
    document, [run] = runs_of("\U0001f98a" * 3, "text")
    assert sources(document, Splits(document, 1, octets).atoms(run)) == ["\U0001f98a"] * 3


def test_code_is_cut_between_lines_and_then_words_not_at_what_looks_like_a_sentence():
    document, [run] = runs_of("```\na b. C d e\nf\n```\n")
    assert sources(document, Splits(document, 3, words).atoms(run)) == [
        "```\n",
        "a ",
        "b. ",
        "C ",
        "d ",
        "e\n",
        "f\n",
        "```\n",
    ]


def test_a_blank_line_in_front_is_a_line_too():
    text = "\n- a b c\n- d e f\n"
    document, [run] = runs_of(text)
    assert sources(document, Splits(document, 5, words).atoms(run)) == text.splitlines(keepends=True)


HEADER = "| name | value |\n|---|---|\n"  # 6 words
rows = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@given(rows, st.integers(4, 30), st.sampled_from(["", "\n", "\n \n\n"]), st.booleans())
@example([1, 3], 12, "", False)
def test_each_part_of_a_table_stands_below_its_header_unless_that_is_too_long(lengths, limit, blank, titled):
    lines = [f"| {'x ' * length}| y |\n" for length in lengths]
    text = f"# T\n{blank}{HEADER}{''.join(lines)}" if titled else f"{blank}{HEADER}{''.join(lines)}"
    document, [*_, run] = runs_of(text)
    parts = Splits(document, limit, words).atoms(run)
    header = HEADER if 2 * words(HEADER) <= limit else ""
    first_row = document.text.index(lines[0])
    assert "".join(sources(document, parts)) == document.text[run[0].start :]
    for part, own in zip(parts, sources(document, parts), strict=True):
        assert own
        assert readable(document, part) == (header if part[0].start >= first_row else "") + own
        assert words(readable(document, part)) <= limit
    alone = [own for own in sources(document, parts) if own in lines]
    assert alone == [line for line in lines if words(line) <= limit - words(header)]


@given(rows, st.integers(4, 30), st.sampled_from(["", "\n", "\n\n  <!-- empty -->\n"]))
def test_of_a_rendered_table_the_first_row_is_the_header(lengths, limit, before):
    pytest.importorskip("justhtml")
    lines = [f"{'x ' * length}| y" for length in lengths]
    cells = "".join(f"<tr><td>{'x ' * length}</td><td>y</td></tr>" for length in lengths)
    document, [run] = runs_of(f"{before}<table><tr><th>name</th><th>value</th></tr>{cells}</table>", "html")
    rendering = "\n".join(["name | value", *lines])
    assert readable(document, run) == rendering
    header = "name | value\n" if limit >= 6 else ""
    shown = [readable(document, part) for part in Splits(document, limit, words).atoms(run)]
    assert all(words(part) <= limit for part in shown)
    own = [part.removeprefix(header) if number else part for number, part in enumerate(shown)]
    assert "".join(own) == rendering
    behind = 1 if header else 0
    assert all(part.startswith(header) for part in shown[behind:])
    if header:
        assert shown[0] == header
    wholes = [part.rstrip("\n") for part in own if part.rstrip("\n") in lines]
    assert wholes == [line for line in lines if words(line) <= limit - words(header)]
    spans = {(part[0].start, part[0].end) for part in Splits(document, limit, words).atoms(run)}
    assert spans == {(run[0].start, run[0].end)}


def test_nothing_but_a_table_repeats_its_first_lines():
    for text in ("- a\n- b\n- c\n- d e f g h i j\n", "```\na\nb\nc\nd e f g h i j\n```\n"):
        document, [run] = runs_of(text)
        assert all(not part[0].header for part in Splits(document, 5, words).atoms(run))


texts = st.lists(st.integers(1, 7).map(sentence), min_size=1, max_size=20)


def words_and_lines(text: str) -> int:
    return words(text) + text.count("\n")


def words_with_their_blanks(text: str) -> int:
    return len(re.findall(r" ?\S+|\s", text))


def words_and_ends_of_sentences(text: str) -> int:
    return words(text) + text.count(". ")  # the last sentence of a text has no end


@given(texts, st.integers(1, 20), st.sampled_from([words, words_with_their_blanks, words_and_ends_of_sentences]))
def test_packing_joins_neighbours_as_long_as_they_fit(parts, limit, count):
    document, [run] = runs_of("".join(parts), "text")
    cut = Splits(document, limit, count).atoms(run)
    joined = Splits(document, limit, count).packed(cut)
    assert [span for group in joined for span in group] == [span for part in cut for span in part]
    assert all(len(group) == 1 or Splits(document, limit, count).fits(group) for group in joined)
    for group, behind in pairwise(joined):
        assert not Splits(document, limit, count).fits([*group, behind[0]])


@given(st.lists(st.integers(1, 3).map("X ".__mul__), min_size=1, max_size=40), st.integers(4, 20), st.booleans())
@example(["X "] * 20, 20, True)
def test_packing_counts_nothing_more_than_twice_where_sizes_add_up(parts, limit, tabular):
    text = HEADER + "".join(f"| {part} |\n" for part in parts) if tabular else "- " + "\n- ".join(parts)
    document, [run] = runs_of(text)
    cut = Splits(document, limit, words_and_lines).atoms(run)
    counted = 0

    def counting(text: str) -> int:
        nonlocal counted
        counted += words_and_lines(text)
        return words_and_lines(text)

    joined = Splits(document, limit, counting).packed(cut)
    assert counted <= 2 * sum(words_and_lines(readable(document, group)) for group in joined)


def test_a_run_that_is_too_long_alone_stays_alone():
    document, runs = runs_of("One two three.\n\nFour.\n\nFive.\n\nSix seven.\n")
    assert [text.strip() for text in sources(document, Splits(document, 1, words).packed(runs))] == [
        "One two three.",
        "Four.",
        "Five.",
        "Six seven.",
    ]


shown = st.lists(st.one_of(st.integers(0, 2).map("<h2>{}</h2>".format), texts.map("".join).map("<p>{}</p>".format)))


@given(shown, st.integers(1, 20))
def test_parts_of_rendered_blocks_join_without_a_gap_and_blocks_with_a_blank_line(blocks, limit):
    pytest.importorskip("justhtml")
    document, runs = runs_of("".join(block.replace("<h2>0", "<h2>") for block in blocks), "html")
    renderings = [run[0].rendering for run in runs]
    parts = [span for run in runs for part in Splits(document, limit, words).atoms(run) for span in part]
    assert readable(document, parts).strip() == "\n\n".join(filter(None, renderings))


def test_a_block_of_which_a_reader_sees_nothing_adds_nothing():
    pytest.importorskip("justhtml")
    document, [[first], [second], [third]] = runs_of("<p>Owls.</p><p>?</p><p>Fly.</p>", "html")
    hidden = replace(second, rendering="")
    assert readable(document, [first, hidden]) == "Owls."
    assert readable(document, [first, hidden, third]) == "Owls.\n\nFly."


@given(st.lists(st.lists(st.integers(1, 7).map(sentence), min_size=1, max_size=4), min_size=1, max_size=4))
def test_runs_that_fit_stay_and_a_heading_goes_with_what_is_cut_behind_it(paragraphs):
    text = "# Owls\n\n" + "\n\n".join("".join(paragraph) for paragraph in paragraphs)
    document, runs = runs_of(text)
    limit = 8
    found = Splits(document, limit, words).fitted(runs)
    assert "".join(sources(document, found)) == document.text
    heading, *whole = (run for run in runs if Splits(document, limit, words).fits(run))
    assert all(run in found for run in whole)
    if words("".join(paragraphs[0])) > limit and words("# Owls " + paragraphs[0][0]) <= limit:
        assert readable(document, found[0]).startswith(f"# Owls\n\n{paragraphs[0][0]}")
    else:
        assert found[0] == heading
