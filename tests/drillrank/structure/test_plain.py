"""Which lines of a plain text are headings, and which are not."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.structure import parse_document
from tests.drillrank.structure.checks import check_spans
from tests.examples import examples


def headings(text: str) -> list[tuple[tuple[str, ...], int]]:
    document = parse_document(text, "text")
    check_spans(document)
    return [(section.path, section.level) for section in document.sections()]


def text_of(*lines: str) -> str:
    """The lines as paragraphs, with text below those that end in a plus."""
    return "\n\n".join(line.replace("+", "\n\nSome text, as it stands below.") for line in lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Title\n=====\n\nA\n---\ntext\n\nB\n~~~", [(("Title",), 1), (("Title", "A"), 2), (("Title", "A", "B"), 3)]),
        ("=======\n Title \n=======\n\ntext\n\nNext\n====\n", [(("Title",), 1), (("Next",), 1)]),
        ("  Indented\r\n----------  \r\ntext", [(("Indented",), 1)]),
        ("中文\n====\n", [(("中文",), 1)]),
        ("before\nTitle\n=====\n", [((), 0)]),
        ("Short\n-------------------------\n", [((), 0)]),
        ("A longer title\n---\n", [((), 0)]),
        ("Name      Age\n-------------\nFox       3", [((), 0)]),
        ("Name\tAge\n--------\n", [((), 0)]),
        ("12\n---\n\n---\n\n=====\n=====\n", [((), 0)]),
        ("Title\n- -- -\n\nTitle\n--\n", [((), 0)]),
    ],
)
def test_underlined_headings(text, expected):
    assert headings(text) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["1 Introduction+", "2 Method", "2.1 Data+", "2.2 Model+", "3 Results+"], [1, 1, 2, 2, 1]),
        (["1. Introduction+", "2. Method", "2.1. Data+", "3. Results+"], [1, 1, 2, 1]),
        (["1.1 Data+", "1.2 Model+", "2.1 Data+"], [1, 1, 1]),
        (["0 Preface+", "1 Start+"], [1, 1]),
        (["1 Start+", "3 One was missed+"], [1, 1]),
        (["I. INTRODUCTION+", "II. METHOD+"], [1, 1]),
        (["CHAPTER I.+", "Chapter 2: The end+", "Appendix A+"], [1, 1, 1]),
        (["Part I", "Chapter 4 Foxes+", "4.1 Red ones+", "Part II", "Chapter 5+"], [1, 2, 3, 1, 2]),
        (["1 Überblick+", "2 概要+"], [1, 1]),
    ],
)
def test_numbered_headings(lines, expected):
    found = headings(text_of(*lines))
    assert [level for _, level in found] == expected
    assert [path[-1] for path, _ in found] == [line.rstrip("+") for line in lines]


@pytest.mark.parametrize(
    "lines",
    [
        ["1. First item", "2. Second item", "3. Third item+"],  # lists
        ["1. First item+", "2. Second item+", "3. Third item+"],
        ["1 Apples", "2 Pears", "3 Plums+"],
        ["1) First+", "2) Second+"],
        ["- 1 Item+"],
        ["3 Apples+", "12 Monkeys+", "2019 Report+"],  # numbers that begin a sentence or continue nothing
        ["7.1 Million people+"],
        ["1 lower case+", "2 lower case+"],
        ["1 A sentence.+", "1 A clause,+"],
        ["1 Introduction ...... 3+"],
        ["I. Newton+"],  # an initial
        ["V. Woolf+", "X. Ample+"],
        ["Chapter 4 describes the method+", "Part of the text+", "Section on foxes+"],
        ["Chapter 1", "Chapter 2", "Chapter 3"],  # a table of contents
        ["1 Introduction, which goes on and on and on, far longer than any heading that anyone would write+"],
        ["    1 Indented code+"],
    ],
)
def test_what_is_no_heading(lines):
    assert [path for path, _ in headings(text_of(*lines)) if path not in ((), ("Chapter 3",))] == []


@given(
    st.integers(1, 30), st.booleans(), st.sampled_from(["{}. Item", "{}) Item", "- Item {}", "{}. Item\n   goes on"])
)
def test_no_numbered_list_becomes_sections(length, loose, pattern):
    text = ("\n\n" if loose else "\n").join(pattern.format(number + 1) for number in range(length))
    assert headings(f"Before.\n\n{text}\n\nAfter.") == [((), 0)]


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(["open", "next", "close"]), max_size=12), st.booleans())
def test_every_consistent_numbering_is_found(steps, dotted):
    number = [1]
    numbers = [(1,)]
    for step in steps:
        if step == "open" and len(number) < 5:
            number.append(0)
        if step == "close" and len(number) > 1:
            number.pop()
        number[-1] += 1
        numbers.append(tuple(number))
    dot = "." if dotted and any(len(number) > 1 for number in numbers) else ""
    titles = [f"{'.'.join(map(str, number))}{dot} Title" for number in numbers]
    found = headings("\n\n".join(f"{title}\n\nText." for title in titles))
    assert [path[-1] for path, _ in found] == titles
    assert [len(path) for path, _ in found] == [len(number) for number in numbers]


PROSE = "The fox hunts mice at night and sleeps by day, which is what most people know of it from stories. " * 2


def titles(text: str) -> list[str]:
    return [section.heading for section in parse_document(text).sections() if section.heading]


def test_a_line_on_page_after_page_is_no_heading():
    page = f"ANNUAL REPORT\n\n{PROSE}\n\n"
    assert titles(page * 5 + f"OUTLOOK\n\n{PROSE}") == ["OUTLOOK"]
    assert len(titles(page * 4)) == 4


@pytest.mark.parametrize(
    "line",
    [
        "Page 12 of 30",
        "Seite 3 von 8",
        "page 4/9",
        "Página 3 de 8",
        "- 12 -",
        "Page 7",
        "第3页",
        "PAGE 2 OF 5",
        "12 of 30",
    ],
)
def test_a_page_number_is_no_heading(line):
    text = "\n\n".join(
        [PROSE, line, PROSE, line.replace("3", "4"), PROSE, f"Pages and Books\n\n{PROSE}", f"Foxes\n\n{PROSE}"]
    )
    assert titles(text) == ["Pages and Books", "Foxes"]


@pytest.mark.parametrize("rule", ["-----", "=" * 40, "-" * 70, "*****", "_____", "- - -", "~~~~\n\n~~~~"])
def test_a_rule_on_the_first_line_makes_no_heading(rule):
    assert headings(f"{rule}\nThe fox hunts mice.\nIt hears them.\n\nThe owl flies.\n") == [((), 0)]


@pytest.mark.parametrize(
    "table",
    [
        "+------+-----+\n| Name | Age |\n+------+-----+\n| Fox  | 3   |\n+------+-----+",
        "| Name | Age |\n| Fox  | 3   |\n| Owl  | 12  |",
        "Name      Age\n--------  ---\nFox       3\nOwl       12",
        "Name      Age\n====      ===\nFox       3",
    ],
)
def test_a_drawn_table_is_one_block_without_headings(table):
    for line_end in ("\n", "\r\n"):
        document = parse_document(f"{PROSE}\n\n{table}\n\n{PROSE}".replace("\n", line_end), "text")
        check_spans(document)
        [section] = document.sections()
        assert [block.kind for block in document.blocks(section)] == ["paragraph", "table", "paragraph"]


@pytest.mark.parametrize("text", ["| a single line |", "a -- b -- c\nd\ne", "| a |\nprose", "--  --\n\nx"])
def test_what_is_no_table(text):
    document = parse_document(text, "text")
    assert "table" not in {block.kind for section in document.sections() for block in document.blocks(section)}


@settings(max_examples=examples(100))
@given(st.lists(st.sampled_from(["Foxes", "FOXES", "**Foxes**", PROSE, "Short.", "Foxes ..... 3", ""]), max_size=12))
def test_no_guessed_heading_is_the_last_word(lines):
    for format in ("text", "markdown"):
        document = parse_document("\n\n".join(lines), format)
        check_spans(document)
        assert all(one.confidence >= 0.9 or document.body(one).strip() for one in document.sections()[-1:])


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(st.integers(4, 6), st.integers(5, 40)), min_size=1, max_size=8),
    st.integers(70, 110),
    st.sampled_from(["\n", "\r\n", "\r", " \n"]),
)
def test_prose_broken_at_a_margin_has_its_paragraphs_without_blank_lines(paragraphs, margin, end_of_line):
    wrapped = [
        [*textwrap.wrap(f"The {'fox hunts mice. ' * 60}", margin)[:full], f"{'x' * last}."] for full, last in paragraphs
    ]
    text = end_of_line.join(line for lines in wrapped for line in lines)
    document = parse_document(text, "text")
    check_spans(document)
    [section] = document.sections()
    assert [document.slice(block).split() for block in document.blocks(section)] == [
        " ".join(lines).split() for lines in wrapped
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The fox\nhunts by night.\nThe owl\nflies by night.",  # verse
        "Ada Holm\nMill Lane 5\n6700 Esbjerg",
        f"We sell these things:\nApples\nPears\nLemons\n{PROSE}",
        f"{PROSE[:90]}\nFoxes in\n{PROSE}",  # in the middle of a sentence
        f"{PROSE[:90]}\n1998. It goes on\n{PROSE[4:]}",
        f"{PROSE[:60].strip()}.\nand so on\n{PROSE}",
    ],
)
def test_what_is_no_paragraph_of_its_own(text):
    document = parse_document(text, "text")
    [section] = document.sections()
    assert len(document.blocks(section)) == 1
