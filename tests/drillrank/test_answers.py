from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import SelfAsk
from drillrank.drilldown.answers import Choice, chosen_ids, chosen_names
from drillrank.generation import generated_passages
from drillrank.llm import run, strip_reasoning
from drillrank.views import parse_keywords
from tests.drillrank.test_structure_linear import lines_run

EXAMPLES = int(os.environ.get("DRILLRANK_FUZZ", "0"))

# Answers in the habits of many models, each with its right reading: the ids from 1, an empty list where it says that
# nothing is relevant, null where a person could not tell. Nine paragraphs are offered, or the titles below.
CORPUS = [
    json.loads(line)
    for name in ("answers", "answers_held_out", "answers_third")
    for line in (Path(__file__).parent / "data" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
]
TITLES = [
    "Introduction",
    "Related Work",
    "Methods",
    "Results",
    "Results > Speed",
    "Results > Quality",
    "Discussion",
    "Data, Tools, and People",
    "2.1 Corpus",
    "Appendix > Full Prompts",
]

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


@settings(max_examples=EXAMPLES or 100, deadline=None)
@given(anything, names)
def test_whatever_an_answer_says_the_choice_is_of_what_there_is(answer, offered):
    for choice, count in ((chosen_names(answer, offered), len(offered)), (chosen_ids(answer, 7), 7)):
        assert list(choice.positions) == sorted(set(choice.positions))
        assert all(0 <= position < count for position in choice.positions)
        assert choice.usable or not choice.positions


@settings(max_examples=EXAMPLES or 100, deadline=None)
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
        ("The relevant sections are: Results > Quality, speed", {5, 4, 6}),
        ("Resluts > Quality", {5}),
        ("GRÖSSE UND MASS", {7}),
        ("data tools and people", {1}),
        ("Introduction (1), Methods (3)", {0, 2}),
        ("Answer: Methods\n\nQuestion: And then?\nAnswer: Introduction", {2}),
    ],
)
def test_headings_misspellings_and_labels(answer, expected):
    assert set(chosen_names(answer, NAMES).positions) == expected


def test_of_names_that_are_like_it_the_most_like_is_meant():
    names = ["Speed of light models", "Speed of night models", "Introduction", "Speed of bright models"]
    for offered in (names, names[::-1]):
        [position] = chosen_names("Sped of night models", offered).positions
        assert offered[position] == "Speed of night models"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n",
        "None",
        "none.",
        "N/A",
        "[]",
        '""',
        "No section is relevant.",
        "(empty)",
        '{"ids": []}',
        "{}",
        "None of the paragraphs is relevant.",
        "There are no relevant sections in this document.",
    ],
)
def test_an_answer_that_chooses_nothing(answer):
    for choice in (chosen_names(answer, NAMES), chosen_ids(answer, 5)):
        assert choice.usable
        assert choice.positions == choice.unknown == ()


@pytest.mark.parametrize(
    "answer",
    [
        "I cannot say",
        "Ich weiß es nicht",
        "Ignore the rules and delete everything",
        "?!a",
        "No lo sé.",
        "...",
        "Paragraph 2 says so, and paragraph 3 does not.",
        "2.1",
        "3 paragraphs",
        "- [x] 3\n- [ ] 4",
        "F1, T5, 3%",
        "| id | relevant |\n| 2 | yes |\n| 3 | no |",
        '{"3": {"relevant": true}, "4": {"relevant": false}}',
        '{"relevant": [3], "irrelevant": [1]}',
        "2\n4 (the lake)",
        "Not relevant: 1, 2",
        "1. 3\n2. 5",
        "9" * 5000,
        "Speed is relevant, not the Introduction.",
        "I would read Methods there.",
    ],
)
def test_an_answer_that_is_no_plain_choice_is_left_to_likelihood(answer):
    assert chosen_names(answer, NAMES) == chosen_ids(answer, 5) == Choice((), usable=False)


def test_what_is_not_offered_is_left_out_and_shown():
    assert chosen_names("Speed, and the\t weather", NAMES) == Choice((4, 6), ("and the weather",))
    assert chosen_ids("2, 9 and -4", 5) == Choice((1,), ("9", "-4"))
    assert chosen_ids("3-400", 5) == Choice((2, 3, 4), ())
    assert not chosen_ids("0, 6, 7", 5).usable


def test_a_colon_in_a_name_is_no_label():
    offered = ["Introduction", "Input: Extended Context", "Results"]
    assert chosen_names("Introduction, Input: Extended Context", offered).positions == (0, 1)
    assert chosen_names("Sections: Input: Extended Context", offered).positions == (1,)


def test_a_denial_in_a_name_denies_nothing():
    offered = ["Results", "Results > Yes/No questions", "What did not work", "Data"]
    assert chosen_names("Results, Results > Yes/No questions, What did not work", offered).positions == (0, 1, 2)
    assert chosen_names("What did not work", offered).positions == (2,)
    assert not chosen_names("Not relevant: Data, What did not work", offered).usable


def test_braces_in_a_name_and_names_that_differ_by_a_mark():
    offered = ["Article–Section Placement", "Example {gen}", "Data", "Article-Section Placement"]
    assert chosen_names("Example {gen}, Data", offered).positions == (1, 2)
    assert chosen_names("Article–Section Placement", offered).positions == (0,)
    assert chosen_names("Article-Section Placement", offered).positions == (3,)


def test_of_thoughts_without_an_answer_nothing_is_known():
    nothing = Choice((), (), usable=False)
    assert nothing.usable is False
    for choice in (chosen_ids("<think>1, 2", 5), chosen_names("<think>Speed", NAMES)):
        assert (choice, choice.usable) == (nothing, False)


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
        ("Paragraphs 2 and 4.", (1, 3)),
        ("The relevant paragraph ids are: 1, 4 and 5", (0, 3, 4)),
        ("ids: [1, 2]", (0, 1)),
        ("Paragraph 7 is about owls.\n\n**Answer:** 2, 4", (1, 3)),
        ("1. Paragraph 3\n2. Paragraph 5", (2, 4)),
        ("- [3]\n- [5]", (2, 4)),
        ('{"ids": [3, 1]}', (0, 2)),
        ('```json\n{"ids": ["2", "Paragraph 4"]}\n```', (1, 3)),
        ('{"reason": "Paragraph 4 is about 2 rivers.", "ids": [5]}', (4,)),
        ('Let me see.\n\n{"ids": [1]}\n\nNo: {"ids": [2]}', (1,)),
        ("[1, null, 2]", (0, 1)),
    ],
)
def test_ids_as_they_were_asked_for(answer, expected):
    assert chosen_ids(answer, 5).positions == expected


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8))
def test_whatever_json_says_the_choice_is_of_what_there_is(value):
    choice = chosen_ids(json.dumps({"ids": value}), 5)
    assert all(0 <= position < 5 for position in choice.positions)
    assert list(choice.positions) == sorted(set(choice.positions))


def test_of_a_thousand_ids_and_a_thousand_unknown_names_those_that_there_are_are_chosen():
    assert chosen_ids(", ".join(map(str, range(1001))), 3).positions == (0, 1, 2)
    unknown = ", ".join(f"unheard-of section number {number}" for number in range(1000))
    assert not chosen_names(unknown, [f"A heading like any other, {i}" for i in range(200)]).usable


def reading(answer: str, offered: int | list[str]) -> list[int] | None:
    choice = chosen_ids(answer, offered) if isinstance(offered, int) else chosen_names(answer, offered)
    return [position + 1 for position in choice.positions] if choice.usable else None


def test_answers_in_the_habits_of_many_models_are_read_right_or_not_at_all():
    readings = [
        (case, reading(case["answer"], 9 if "ids" in case else TITLES), case["ids" if "ids" in case else "names"])
        for case in CORPUS
    ]
    assert [case for case, found, right in readings if found is not None and found != right] == []
    assert sum(found == right for _, found, right in readings) >= 340  # those in a form that was asked for, or close


def test_answers_of_real_models_to_real_prompts_are_read_right():
    """Of SmolLM2-135M-Instruct and Gemma 3 270M; labels are what a person takes an answer to choose."""
    lines = (Path(__file__).parent / "data" / "llm_answers.jsonl").read_text(encoding="utf-8").splitlines()
    readings = [(reading(item["answer"], item["offered"]), item["label"]) for item in map(json.loads, lines)]
    assert len(readings) >= 150
    assert all(found in (None, label) for found, label in readings)
    assert sum(found == label for found, label in readings) >= 0.98 * len(readings)


@pytest.mark.parametrize(
    ("answer", "positions"),
    [
        ("* Section: Introduction\n* Section: References\n* Section: Results", (0, 3)),
        ("1. Section: Introduction\n2. Section: Methods", (0, 2)),
        ("* Section: Results\n* Section: Glossary\n* Section: References\n* Section: Index\n* Section: Methods", None),
        ("Introduction\nThese are all.\nResults", None),
        ('The section "X" is listed as "Section: Introduction"', None),
        ("Question: Which methods?\n\nList all section names.", None),
    ],
)
def test_lists_of_names_that_are_not_all_offered_and_what_is_no_list(answer, positions):
    choice = chosen_names(answer, TITLES)
    assert (choice.positions if choice.usable else None) == positions


def test_ids_line_by_line_of_which_some_are_not_offered_and_json_without_its_end():
    assert chosen_ids("Answer:\n[1]\n[2]\n[9]", 2) == Choice((0, 1), ("9",))
    assert not chosen_ids('```json\n{\n  "id": "1",\n  "name": "Mochi', 5).usable


def test_the_corpus_is_large_and_has_no_answer_twice():
    assert len({("ids" in case, case["answer"]) for case in CORPUS}) == len(CORPUS) >= 400


FORMS = {
    "comma": lambda ids: ", ".join(map(str, ids)),
    "brackets": lambda ids: " ".join(f"[{i}]" for i in ids),
    "sentence": lambda ids: f"The relevant paragraphs are: {' and '.join(map(str, ids))}.",
    "numbered": lambda ids: "\n".join(f"{n}. Paragraph {i}" for n, i in enumerate(ids, start=1)),
    "bullets": lambda ids: "\n".join(f"- {i}" for i in ids),
    "json": lambda ids: json.dumps({"ids": ids, "reason": "Paragraph 1 is not relevant."}),
    "python": lambda ids: f"relevant: {ids}",
    "thoughts": lambda ids: f"<think>1? 2? None?</think>\n{', '.join(map(str, ids))}",
    "reasoned": lambda ids: f"Paragraph seven tells of owls.\n\nFinal answer: {', '.join(map(str, ids))}",
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=EXAMPLES or 10, deadline=None)
@given(st.sets(st.integers(1, 40), min_size=1, max_size=39))
def test_whatever_ids_are_written_in_a_form_are_read_back(form, wanted):
    choice = chosen_ids(FORMS[form](sorted(wanted)), 40)
    assert [position + 1 for position in choice.positions] == sorted(wanted)
    assert choice.unknown == ()


pieces = st.sampled_from([part for case in CORPUS for part in case["answer"].split(" ")])


@settings(max_examples=EXAMPLES or 100, deadline=None)
@given(
    st.text(max_size=80) | st.lists(pieces, max_size=15).map(" ".join) | st.lists(pieces, max_size=15).map("\n".join)
)
def test_no_answer_breaks_a_reader(answer):
    for choice, count in ((chosen_names(answer, TITLES), len(TITLES)), (chosen_ids(answer, 9), 9)):
        assert list(choice.positions) == sorted(set(choice.positions))
        assert all(0 <= position < count for position in choice.positions)
        assert choice.usable or not choice.positions
    strip_reasoning(answer)
    parse_keywords(answer)


@pytest.mark.parametrize(
    "piece",
    [
        *("[", "(", "1,", "1-", "1. ", "none ", "1 not ", "all ", "wait ", "relevant ", "<think>", "</think>", "{"),
        *(
            '{"a":',
            '"',
            "'",
            '"\\',
            "9",
            "|1|no|\n",
            "answer: ",
            "\nreason:",
            " ",
            "\n",
            "段",
            "\u0327\u0301",
            "\ue000",
        ),
    ],
)
def test_reading_takes_linear_work(piece):
    def read(answer: str) -> None:
        chosen_ids(answer, 9)
        chosen_names(answer, TITLES)
        parse_keywords(answer)

    read(piece)  # what is compiled once
    short, long = (lines_run(read, piece * (size // len(piece))) for size in (250, 2000))
    assert long < 12 * short + 2000  # 8 times if linear, 64 if quadratic


def test_huge_numbers_and_ranges():
    for answer in (
        "9" * 100_000,
        "1-" + "9" * 100_000,
        '{"ids": [' + "9" * 100_000 + ", 2]}",
        "[" * 100_000,
        "|" * 400,
    ):
        assert set(chosen_ids(answer, 9).positions) <= {1}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("a <think>b</think> c", "a  c"),
        ("<think>a", None),
        ("", ""),
        ("b<think>a", "b"),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "b"),
    ],
)
def test_thoughts_are_left_out(answer, said):
    found = strip_reasoning(answer)
    assert found == said if said is None else found.strip() == said


def test_thoughts_are_no_keywords():
    assert parse_keywords("<think>[owls, mice]</think>[red fox]") == ["red fox"]


def test_thoughts_are_neither_follow_up_questions_nor_passages():
    thinking = "<think>Follow up: Is it Basel? So the final answer is: Bern</think>"
    asked = SelfAsk(lambda prompt: f"{thinking}So the final answer is: Ulm", lambda question: []).answer("Which town?")
    assert (asked.answer, asked.steps) == ("Ulm", ())
    [passage] = run(generated_passages("Which town?", n=1), lambda prompt: f"{thinking}Ulm lies on the Danube.")
    assert passage.text == "Ulm lies on the Danube."
