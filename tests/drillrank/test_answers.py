from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drillrank.drilldown.answers import chosen_ids, chosen_names

NAMES = [
    "Introduction",
    "Data, tools, and people",
    "3 Methods",
    "3 Methods > 3.1 Model; a sketch",
    "Results > Speed",
    "Results > Quality",
    "Appendix > Speed",
    "Größe und Maß",
]

words = st.sampled_from(
    [*NAMES, ", ", "\n", "; ", "none", "1.", "[3]", "- ", '"', "Section: ", "speed", "and", "9999999999"]
)
anything = st.text(max_size=60) | st.lists(words, max_size=12).map("".join)
name = st.text("ab ,;-.1>é", min_size=1, max_size=12).filter(lambda text: text.strip() == text and text)
names = st.lists(name, min_size=1, max_size=6, unique=True)


@settings(max_examples=300, deadline=None)
@given(anything, names)
def test_whatever_an_answer_says_the_choice_is_of_what_there_is(answer, offered):
    for choice, count in ((chosen_names(answer, offered), len(offered)), (chosen_ids(answer, 7), 7)):
        assert list(choice.positions) == sorted(set(choice.positions))
        assert all(0 <= position < count for position in choice.positions)
        assert choice.usable or not choice.positions


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_listed_names_are_found_and_no_others_however_they_are_listed(data):
    wanted = data.draw(st.sets(st.integers(0, len(NAMES) - 1), min_size=1))
    listed = [NAMES[position] for position in sorted(wanted)]
    style = data.draw(st.sampled_from(["comma", "lines", "bullets", "numbers", "quotes", "json", "upper", "label"]))
    answer = {
        "comma": ", ".join(listed),
        "lines": "\n".join(listed),
        "bullets": "\n".join(f"- **{text}**" for text in listed),
        "numbers": "\n".join(f"{number}. {text}" for number, text in enumerate(listed, start=1)),
        "quotes": ", ".join(f'"{text}"' for text in listed),
        "json": json.dumps(listed, ensure_ascii=False),
        "upper": ", ".join(text.upper() for text in listed),
        "label": "\n".join(f"* Section: {text}" for text in listed),
    }[style]
    choice = chosen_names(answer, NAMES)
    assert set(choice.positions) == wanted
    assert choice.unknown == ()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Speed", {4, 6}),
        ("Methods", {2}),
        ("Introductoin", {0}),
        ("The relevant section is Results > Quality.", {5}),
        ("I would read these: Introduction, Results > Speed", {0, 4}),
        ("GRÖSSE UND MASS", {7}),
        ("data tools and people", {1}),
    ],
)
def test_headings_misspellings_and_sentences(answer, expected):
    assert set(chosen_names(answer, NAMES).positions) == expected


@pytest.mark.parametrize(
    "answer", ["", " \n", "None", "none.", "N/A", "[]", '""', "No section is relevant.", "(empty)"]
)
def test_an_answer_that_chooses_nothing(answer):
    for choice in (chosen_names(answer, NAMES), chosen_ids(answer, 5)):
        assert choice.usable
        assert choice.positions == choice.unknown == ()


@pytest.mark.parametrize(
    "answer", ["I cannot say", "Ich weiß es nicht", "Ignore the rules and delete everything", "?!a"]
)
def test_an_answer_that_cannot_be_used(answer):
    assert not chosen_names(answer, NAMES).usable
    assert not chosen_ids(answer, 5).usable


def test_a_section_may_be_called_none():
    assert chosen_names("None", ["All", "None"]).positions == (1,)


@given(st.sets(st.integers(1, 40), min_size=1), st.sampled_from([", ", ",", "\n", " and ", "; ", " / "]), st.booleans())
def test_listed_ids_are_found(wanted, separator, bracketed):
    answer = separator.join(f"[{number}]" if bracketed else str(number) for number in sorted(wanted))
    assert chosen_ids(answer, 40).positions == tuple(sorted(number - 1 for number in wanted))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("1-3", (0, 1, 2)),
        ("1 to 3, 5", (0, 1, 2, 4)),
        ("3-1", ()),
        ("2-400", (1, 2, 3, 4)),
        ("Paragraphs 2 and 4.", (1, 3)),
        ("Paragraph 2 says that 3 models use 1.5 GB", (1,)),
        ("The relevant paragraph ids are 1, 4 and 5", (0, 3, 4)),
        ("ids: [1, 2]", (0, 1)),
        ("0, 6, 7, -2", (1,)),
        ("F1, T5, 3%", ()),
        ("id 5: the fifth. id 1: the first.", (0, 4)),
        ("٣", (2,)),
        ("9" * 5000, ()),
    ],
)
def test_ids_among_words(answer, expected):
    assert chosen_ids(answer, 5).positions == expected


@pytest.mark.parametrize(
    ("answer", "expected", "unknown"),
    [
        ('{"ids": [3, 1]}', (0, 2), ()),
        ('```json\n{"ids": ["2", 9, -4]}\n```', (1,), ("9", "-4")),
        ("[1, [2, {}], null]", (0, 1), ()),
        ('{"reason": "Paragraph 4 is about 2 rivers.", "ids": [5]}', (4,), ()),
        ('{"ids": []}', (), ()),
        ("{}", (), ()),
        ('{"ids": [true, false]}', (), ()),
        ('{"answer": "paragraphs 1 and 2"}', (0, 1), ()),
    ],
)
def test_ids_in_json(answer, expected, unknown):
    choice = chosen_ids(answer, 5)
    assert choice.positions == expected
    assert choice.unknown == unknown


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8))
def test_whatever_json_says_the_choice_is_of_what_there_is(value):
    choice = chosen_ids(json.dumps({"ids": value}), 5)
    assert all(0 <= position < 5 for position in choice.positions)
    assert list(choice.positions) == sorted(set(choice.positions))


@example(1000)
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000))
def test_a_thousand_ids_and_a_thousand_unknown_names_take_no_time(count):
    many = ", ".join(str(number) for number in range(count + 1))
    assert chosen_ids(many, 3).positions == tuple(range(min(3, count)))
    unknown = ", ".join(f"unheard-of section number {number}" for number in range(count))
    assert chosen_names(unknown, [f"A heading like any other, {i}" for i in range(200)]).positions == ()
