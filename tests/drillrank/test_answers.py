from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import SelfAsk
from drillrank.drilldown.answer_forms import in_words, without_tables
from drillrank.drilldown.answers import Choice, chosen_ids, chosen_names
from drillrank.generation import generated_passages
from drillrank.llm import run, strip_reasoning
from drillrank.views import parse_keywords
from tests.drillrank.test_structure_linear import lines_run

EXAMPLES = int(os.environ.get("DRILLRANK_FUZZ", "0"))

# Answers in the habits of many models, each with its right reading: the ids from 1, an empty list where it says that
# nothing is relevant, null where it cannot be read. Nine paragraphs are offered, or the titles below. The second and
# the third file were written after the parser could read the ones before.
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
        ("The relevant section is Results > Quality.", {5}),
        ("I would read these: Introduction, Results > Speed", {0, 4}),
        ("Resluts > Quality", {5}),
        ("GRÖSSE UND MASS", {7}),
        ("data tools and people", {1}),
    ],
)
def test_headings_misspellings_and_sentences(answer, expected):
    assert set(chosen_names(answer, NAMES).positions) == expected


def test_what_marks_a_name_inside_stands_for_none_in_an_answer():
    for answer in ("\ue0000\ue001", "Speed, \ue0000\ue001", "\ue0009\ue001"):
        assert chosen_names(answer, ["Methods", "Speed"]).positions == ((1,) if "Speed" in answer else ())


def test_of_names_that_are_like_it_the_most_like_is_meant():
    names = ["Speed of light models", "Speed of night models", "Introduction", "Speed of bright models"]
    for offered in (names, names[::-1]):
        [position] = chosen_names("Sped of night models", offered).positions
        assert offered[position] == "Speed of night models"


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


@pytest.mark.parametrize(
    ("answer", "offered", "expected", "unknown"),
    [
        ("Speed, and the\t weather, and then", NAMES, (4, 6), ("and the weather",)),
        ("Speed\ue000", ["Methods", "Speed"], (1,), ()),
        ("Speed, Methods", ["Speed", "Methods", "Speed Methods"], (0, 1), ()),
        ("I would read Main Results there.", ["Results", "Main Results"], (1,), ()),
        ("I would read Results > Speed there.", ["Results", "Results > Speed"], (1,), ()),
        ("I would read the API and the UI there.", ["API", "UI"], (0,), ()),
        ('I would read "Methods" first and then Results there.', ["Methods", "Results"], (0, 1), ()),
        ("1. 2. Methods", ["Methods", "2. Methods"], (1,), ()),
        ("[3] Methods", ["Results", "Methods"], (1,), ()),
        ("abcdefghij3", ["abcdefghij1", "abcdefghij2"], (0,), ()),  # the first of those that are as like it
        ("Results is relevant, not the 3 Methods.", ["Results", "Methods"], (0,), ()),
        ("Speed", [], (), ("Speed",)),
        ("* Section: Data, tools, and people", NAMES, (1,), ()),
    ],
)
def test_names_are_told_from_what_surrounds_them(answer, offered, expected, unknown):
    choice = chosen_names(answer, offered)
    assert (choice.positions, choice.unknown) == (expected, unknown)


def test_the_row_of_a_table_is_the_name_in_it():
    table = "| id | part | why |\n|---|---|---|\n| 7 | Methods | owls |\n| 8 | Results | not relevant |"
    assert chosen_names(table, ["Results", "Methods"]).positions == (1,)


def test_a_long_name_may_be_misspelled_too():
    name = "On the towns of the Rhine and the people that live in them " * 5
    assert chosen_names(name.replace("people", "poeple", 1).strip(), ["Introduction", name.strip()]).positions == (1,)


def test_no_more_than_fifty_unknown_parts_are_compared_and_told():
    assert len(chosen_names(", ".join(f"owls number {n}" for n in range(99)), NAMES).unknown) == 50


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
        ("3-1", ()),
        ("1 to 4 除了 2", (0, 2, 3)),  # "except" in another script
        ("2-400", (1, 2, 3, 4)),
        ("Paragraphs 2 and 4.", (1, 3)),
        ("Paragraph 2 says that 3 models use 1.5 GB", (1,)),
        ("The relevant paragraph ids are 1, 4 and 5", (0, 3, 4)),
        ("ids: [1, 2]", (0, 1)),
        ("0, 6, 7, -2", ()),
        ("F1, T5, 3%", ()),
        ("id 5: the fifth. id 1: the first.", (0, 4)),
        ("٣", (2,)),
        ("9" * 5000, ()),
        ("−2, 3", (2,)),
        ("2 jaj 4", (1, 3)),  # a short unknown word joins
        ("2 jajj 4", (3,)),
        ("\ue0000\ue001 3", (2,)),
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
        ('{"irrelevant": [1, 2]}', (), ()),
        ('{"answer": "paragraphs 1 and 2"}', (0, 1), ()),
    ],
)
def test_ids_in_json(answer, expected, unknown):
    choice = chosen_ids(answer, 5)
    assert choice.positions == expected
    assert choice.unknown == unknown


@pytest.mark.parametrize(
    ("answer", "unknown"), [("2-400", ("2-400",)), ("1-6", ("1-6",)), ("1-5", ()), ("0-3", ("0-3",)), ("6", ("6",))]
)
def test_ids_that_are_not_offered_are_told(answer, unknown):
    assert chosen_ids(f"Paragraphs {answer}", 5).unknown == unknown


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("{answer: X and Xs and XX of 2}", "X and Xs and XX of 2"),
        ("{answer: Xs of 2}", "Xs of 2"),
        ("{answer: aa " + "a " * 1000 + "}", "aa" + " a" * 399),  # 800 characters
        ('{"ids": ""}', "none"),
        ('{"ids": ["", "2"]}', "[2]"),
        ('{"ids": [1, 2], "also": [3]}', "[1]\n[2]\n[3]"),
        ('{"1": {"id": 3, "relevant": true}}', "[3]"),
        ('{"3": {"relevant": false}}', "[3]: no"),
        ('{"Irrelevant": [1]}', "[1]: no"),
        ('{"the_third_one": true, "the_last": false}', "the third one: yes\nthe last: no"),
        ('{"the_third": "' + "yes " * 20 + '"}', "the third: yes"),
        ('{"the_third": "the irrelevant is not relevant"}', "the third: no"),
        ("{'answer': 'X marks 2'}", "X marks 2"),
    ],
)
def test_objects_in_words(answer, words):
    assert in_words(answer) == words


def test_a_row_that_is_shorter_than_the_head_ends_with_its_id():
    table = "| why | where | id |\n|---|---|---|\n| owls | town | 1 |\n| mice | 2 |"
    assert without_tables(table).split("\n")[-2:] == ["[1]: owls town", "[2]: mice"]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8))
def test_whatever_json_says_the_choice_is_of_what_there_is(value):
    choice = chosen_ids(json.dumps({"ids": value}), 5)
    assert all(0 <= position < 5 for position in choice.positions)
    assert list(choice.positions) == sorted(set(choice.positions))


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_of_a_thousand_ids_and_a_thousand_unknown_names_those_that_there_are_are_chosen(count):
    many = ", ".join(str(number) for number in range(count + 1))
    assert chosen_ids(many, 3).positions == tuple(range(min(3, count)))
    unknown = ", ".join(f"unheard-of section number {number}" for number in range(count))
    assert chosen_names(unknown, [f"A heading like any other, {i}" for i in range(200)]).positions == ()


def reading(case: dict) -> list[int] | None:
    choice = chosen_ids(case["answer"], 9) if "ids" in case else chosen_names(case["answer"], TITLES)
    return [position + 1 for position in choice.positions] if choice.usable else None


def test_answers_in_the_habits_of_many_models():
    wrong = [(case, reading(case)) for case in CORPUS if reading(case) != case["ids" if "ids" in case else "names"]]
    assert wrong == []


def test_the_corpus_is_large_and_has_no_answer_twice():
    assert len({("ids" in case, case["answer"]) for case in CORPUS}) == len(CORPUS) >= 400


FORMS = {
    "comma": lambda ids: ", ".join(map(str, ids)),
    "brackets": lambda ids: " ".join(f"[{i}]" for i in ids),
    "sentence": lambda ids: f"The relevant paragraphs are {' and '.join(map(str, ids))}.",
    "numbered": lambda ids: "\n".join(f"{n}. Paragraph {i}" for n, i in enumerate(ids, start=1)),
    "numbered, explained": lambda ids: "\n".join(f"{n}. **[{i}]**: of 2 rivers" for n, i in enumerate(ids, start=1)),
    "bullets": lambda ids: "\n".join(f"- {i}: has 5 of 9 reasons, not 3" for i in ids),
    "json": lambda ids: json.dumps({"ids": ids, "reason": "Paragraph 1 is not relevant."}),
    "json, each": lambda ids: json.dumps([{"id": i, "relevant": i in ids} for i in range(1, 41)]),
    "json, by id": lambda ids: json.dumps({str(i): i in ids for i in range(1, 41)}, indent=1),
    "python": lambda ids: f"relevant = {ids}",
    "table": lambda ids: "| id | why |\n|---|---|\n" + "\n".join(f"| {i} | 2 rivers |" for i in ids),
    "ticks": lambda ids: "\n".join(f"- [{'x' if i in ids else ' '}] {i}" for i in range(1, 41)),
    "thoughts": lambda ids: f"<think>1? 2? None?</think>\n{', '.join(map(str, ids))}",
    "reasoned": lambda ids: f"Paragraph 7 is about owls, not rivers.\n\nFinal answer: {', '.join(map(str, ids))}",
    "all but": lambda ids: f"All except {', '.join(str(i) for i in range(1, 41) if i not in ids)}",
    "each": lambda ids: "\n".join(f"Paragraph {i}: {'yes' if i in ids else 'not relevant'}" for i in range(1, 41)),
    "corrected": lambda ids: f"1, 2, 3. Wait, no: {', '.join(map(str, ids))}",
    "German": lambda ids: f"Relevant sind die Absätze {' und '.join(map(str, ids))}.",
    "Japanese": lambda ids: f"関連する段落は{'、'.join(map(str, ids))}です。",
    "Arabic": lambda ids: "الفقرات " + " و".join("".join("٠١٢٣٤٥٦٧٨٩"[int(d)] for d in str(i)) for i in ids),
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
    assert chosen_ids("9" * 100_000, 9).positions == ()
    assert chosen_ids("1-" + "9" * 100_000, 9).positions == tuple(range(9))
    assert chosen_ids('{"ids": [' + "9" * 100_000 + ", 2]}", 9).positions == (1,)


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
