"""What an LLM answers to a choice: read as a person would, or left to likelihood, and never of what is not offered."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import SelfAsk
from drillrank.drilldown.answers import Choice, parse_ids, parse_names, parse_yes_no
from drillrank.generation import generated_passages
from drillrank.llm import run, strip_reasoning
from drillrank.views import parse_keywords
from tests.counting_lines import lines_run
from tests.examples import examples

EXAMPLES = int(os.environ.get("DRILLRANK_FUZZ", "0"))
DATA = Path(__file__).parents[1] / "data"


def cases(*names: str) -> list[dict]:
    return [json.loads(line) for name in names for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]


# Answers in the habits of many models, each with its right reading: the ids from 1, an empty list where it says that
# nothing is relevant, null where a person could not tell. Nine paragraphs are offered, or the titles below.
CORPUS = cases("answers", "answers_held_out", "answers_third")
TITLES = [
    *("Introduction", "Related Work", "Methods", "Results", "Results > Speed", "Results > Quality", "Discussion"),
    *("Data, Tools, and People", "2.1 Corpus", "Appendix > Full Prompts"),
]
NAMES = [
    *("Introduction", "Data, tools, and people", "3 Methods", "3 Methods > 3.1 Model; a sketch", "Results > Speed"),
    *("Results > Quality", "Appendix > Speed", "Größe und Maß"),
]
pieces = st.sampled_from([part for case in CORPUS for part in case["answer"].split(" ")])
words = st.sampled_from([*NAMES, ", ", "\n", "; ", "none", "1.", "[3]", "- ", '"', "Section: ", "and", "9999999999"])
values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8)
anything = (
    st.text(max_size=80)
    | st.lists(words, max_size=12).map("".join)
    | st.tuples(st.sampled_from([" ", "\n"]), st.lists(pieces, max_size=15)).map(lambda drawn: drawn[0].join(drawn[1]))
    | values.map(lambda value: json.dumps({"ids": value}))
)
name = st.text("ab ,;-.1>é", min_size=1, max_size=12).filter(lambda text: text.strip() == text and text)
offers = st.lists(name, min_size=1, max_size=6, unique=True) | st.sampled_from([TITLES, NAMES])


@settings(max_examples=EXAMPLES or examples(300))
@given(anything, offers)
def test_whatever_an_answer_says_the_choice_is_of_what_there_is(answer, offered):
    for choice, count in ((parse_names(answer, offered), len(offered)), (parse_ids(answer, 7), 7)):
        assert list(choice.positions) == sorted(set(choice.positions))
        assert all(0 <= position < count for position in choice.positions)
        assert choice.usable in ((True,) if choice.positions else (True, False))
    strip_reasoning(answer)
    parse_keywords(answer)


LISTED = {
    "comma": ", ".join,
    "lines": "\n".join,
    "bullets": lambda listed: "\n".join(f"- **{text}**" for text in listed),
    "numbers": lambda listed: "\n".join(f"{number}. {text}" for number, text in enumerate(listed, start=1)),
    "quotes": lambda listed: ", ".join(f'"{text}"' for text in listed),
    "json": lambda listed: json.dumps(listed, ensure_ascii=False),
    "upper": lambda listed: ", ".join(text.upper() for text in listed),
    "label": lambda listed: "\n".join(f"* Section: {text}" for text in listed),
}
NUMBERED = {
    **{repr(separator): lambda ids, between=separator: between.join(map(str, ids)) for separator in (", ", ",", "; ")},
    **{repr(separator): lambda ids, between=separator: between.join(map(str, ids)) for separator in ("\n", " and ")},
    "slashes": lambda ids: " / ".join(map(str, ids)),
    "brackets": lambda ids: " ".join(f"[{i}]" for i in ids),
    "sentence": lambda ids: f"The relevant paragraphs are: {' and '.join(map(str, ids))}.",
    "numbered": lambda ids: "\n".join(f"{n}. Paragraph {i}" for n, i in enumerate(ids, start=1)),
    "bullets": lambda ids: "\n".join(f"- {i}" for i in ids),
    "json": lambda ids: json.dumps({"ids": ids, "reason": "Paragraph 1 is not relevant."}),
    "python": lambda ids: f"relevant: {ids}",
    "thoughts": lambda ids: f"<think>1? 2? None?</think>\n{', '.join(map(str, ids))}",
    "reasoned": lambda ids: f"Paragraph seven tells of owls.\n\nFinal answer: {', '.join(map(str, ids))}",
}


@pytest.mark.parametrize("form", LISTED)
@settings(max_examples=EXAMPLES or examples(15))
@given(st.sets(st.integers(0, len(NAMES) - 1), min_size=1))
def test_whatever_names_are_listed_in_a_form_are_read_back(form, wanted):
    assert parse_names(LISTED[form]([NAMES[at] for at in sorted(wanted)]), NAMES) == Choice(tuple(sorted(wanted)), ())


@pytest.mark.parametrize("form", NUMBERED)
@settings(max_examples=EXAMPLES or examples(10))
@given(st.sets(st.integers(1, 40), min_size=1, max_size=39))
def test_whatever_ids_are_written_in_a_form_are_read_back(form, wanted):
    choice = parse_ids(NUMBERED[form](sorted(wanted)), 40)
    assert choice == Choice(tuple(number - 1 for number in sorted(wanted)), ())


LIGHT = ["Speed of light models", "Speed of night models", "Introduction", "Speed of bright models"]
COLON = ["Introduction", "Input: Extended Context", "Results"]
DENIED = ["Results", "Results > Yes/No questions", "What did not work", "Data"]
MARKS = ["Article–Section Placement", "Example {gen}", "Data", "Article-Section Placement"]


@pytest.mark.parametrize(
    ("answer", "offered", "positions"),
    [
        ("Speed", NAMES, (4, 6)),
        ("Methods", NAMES, (2,)),
        ("Introductoin", NAMES, (0,)),
        ("The relevant sections are: Results > Quality, speed", NAMES, (4, 5, 6)),
        ("Resluts > Quality", NAMES, (5,)),
        ("GRÖSSE UND MASS", NAMES, (7,)),
        ("data tools and people", NAMES, (1,)),
        ("Introduction (1), Methods (3)", NAMES, (0, 2)),
        ("Answer: Methods\n\nQuestion: And then?\nAnswer: Introduction", NAMES, (2,)),
        ("* Section: Introduction\n* Section: References\n* Section: Results", TITLES, (0, 3)),
        ("1. Section: Introduction\n2. Section: Methods", TITLES, (0, 2)),
        (
            "* Section: Results\n* Section: Glossary\n* Section: List\n* Section: Index\n* Section: Methods",
            TITLES,
            None,
        ),
        ("Introduction\nThese are all.\nResults", TITLES, None),
        ('The section "X" is listed as "Section: Introduction"', TITLES, None),
        ("Question: Which methods?\n\nList all section names.", TITLES, None),
        ("Sped of night models", LIGHT, (1,)),
        ("Sped of night models", LIGHT[::-1], (2,)),
        ("Introduction, Input: Extended Context", COLON, (0, 1)),
        ("Sections: Input: Extended Context", COLON, (1,)),
        ("Results, Results > Yes/No questions, What did not work", DENIED, (0, 1, 2)),
        ("What did not work", DENIED, (2,)),
        ("Not relevant: Data, What did not work", DENIED, None),
        ("Example {gen}, Data", MARKS, (1, 2)),
        ("Article–Section Placement", MARKS, (0,)),
        ("Article-Section Placement", MARKS, (3,)),
        ("None", ["All", "None"], (1,)),
        ("Book > Introduction", TITLES, (0,)),  # a heading that is hidden
        ("Book > Part > Introduction", TITLES, (0,)),
        ("Methods", [], None),
        ("| Methods |", TITLES, (2,)),
        ("Data, Tools, Methods", ["Data Tools", "Data", "Tools", "Methods"], (1, 2, 3)),
        (f"{'x' * 498}y", [f"{'x' * 498}z"], (0,)),
        (f"{'x' * 499}y", [f"{'x' * 499}z"], None),  # too long to be compared letter by letter
        ("- Introductoin", TITLES, (0,)),
        ("| Methods | high |", TITLES, None),
        ('"Relevant": Methods', TITLES, (2,)),
        (
            ", ".join(f"unheard-of section number {n}" for n in range(1000)),
            [f"A heading {n}" for n in range(200)],
            None,
        ),
        ("1-3", 5, (0, 1, 2)),
        ("1 to 3, 5", 5, (0, 1, 2, 4)),
        ("Paragraphs 2 and 4.", 5, (1, 3)),
        ("The relevant paragraph ids are: 1, 4 and 5", 5, (0, 3, 4)),
        ("ids: [1, 2]", 5, (0, 1)),
        ("Paragraph 7 is about owls.\n\n**Answer:** 2, 4", 5, (1, 3)),
        ("1. Paragraph 3\n2. Paragraph 5", 5, (2, 4)),
        ('```json\n{"ids": ["2", "Paragraph 4"]}\n```', 5, (1, 3)),
        ('{"reason": "Paragraph 4 is about 2 rivers.", "ids": [5]}', 5, (4,)),
        ('Let me see.\n\n{"ids": [1]}\n\nNo: {"ids": [2]}', 5, (1,)),
        ("[1, null, 2]", 5, (0, 1)),
        ('{"ids": [2]} is what I choose.', 5, (1,)),
        ('{"plan": {"step": 1}}\n{no JSON} {"ids": [2]}', 5, (1,)),
        ("0, 6, 7", 5, None),
        ('```json\n{\n  "id": "1",\n  "name": "Mochi', 5, None),
        (", ".join(map(str, range(1001))), 3, (0, 1, 2)),
    ],
)
def test_what_is_chosen(answer, offered, positions):
    choice = parse_ids(answer, offered) if isinstance(offered, int) else parse_names(answer, offered)
    assert (choice.positions if choice.usable else None) == positions
    assert choice.usable is (positions is not None)


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        *((said, Choice((0,))) for said in ("Yes", "**YES**, it does.", "Answer: yes", "<think>No.</think>yes")),
        ("No.", Choice(())),
        *((said, Choice((), usable=False)) for said in ("", "Hard to say", "Yesterday", "<think>Yes")),
    ],
)
def test_yes_and_no_and_neither(answer, choice):
    assert parse_yes_no(answer) == choice


def test_what_is_not_offered_is_left_out_and_shown():
    assert parse_names("Speed, and the\t weather", NAMES) == Choice((4, 6), ("and the weather",))
    assert parse_ids("2, 9 and -4", 5) == Choice((1,), ("9", "-4"))
    assert parse_ids("3-400", 5) == Choice((2, 3, 4), ())
    assert parse_ids("Answer:\n[1]\n[2]\n[9]", 2) == Choice((0, 1), ("9",))


NOTHING = ["", " \n", "None", "none.", "N/A", "[]", '""', "No section is relevant.", "(empty)", '{"ids": []}', "{}"]
NOTHING += ["None of the paragraphs is relevant.", "There are no relevant sections in this document."]
UNREADABLE = [
    *("I cannot say", "Ich weiß es nicht", "Ignore the rules and delete everything", "?!a", "No lo sé.", "..."),
    *("Paragraph 2 says so, and paragraph 3 does not.", "2.1", "3 paragraphs", "- [x] 3\n- [ ] 4", "F1, T5, 3%"),
    *("| id | relevant |\n| 2 | yes |\n| 3 | no |", '{"3": {"relevant": true}, "4": {"relevant": false}}'),
    *('{"relevant": [3], "irrelevant": [1]}', "2\n4 (the lake)", "Not relevant: 1, 2", "3. 1\n5. 2", "9" * 5000),
    *("Speed is relevant, not the Introduction.", "I would read Methods there.", "<think>1, 2", "<think>Speed"),
]


@pytest.mark.parametrize("answer", [*NOTHING, *UNREADABLE])
def test_an_answer_that_chooses_nothing_or_is_no_plain_choice(answer):
    for choice in (parse_names(answer, NAMES), parse_ids(answer, 5)):
        assert choice == Choice((), (), usable=answer in NOTHING)


def reading(answer: str, offered: int | list[str]) -> list[int] | None:
    choice = parse_ids(answer, offered) if isinstance(offered, int) else parse_names(answer, offered)
    return [position + 1 for position in choice.positions] if choice.usable else None


def test_answers_in_the_habits_of_many_models_are_read_right_or_not_at_all():
    assert len({("ids" in case, case["answer"]) for case in CORPUS}) == len(CORPUS) >= 400
    readings = [
        (case, reading(case["answer"], 9 if "ids" in case else TITLES), case["ids" if "ids" in case else "names"])
        for case in CORPUS
    ]
    assert [case for case, found, right in readings if found is not None and found != right] == []
    assert sum(found == right for _, found, right in readings) >= 364  # those in a form that was asked for, or close


def test_answers_of_real_models_to_real_prompts_are_read_right():
    """Of SmolLM2-135M-Instruct and Gemma 3 270M; labels are what a person takes an answer to choose."""
    readings = [(reading(item["answer"], item["offered"]), item["label"]) for item in cases("llm_answers")]
    assert len(readings) >= 150
    assert all(found in (None, label) for found, label in readings)
    assert sum(found == label for found, label in readings) >= 0.98 * len(readings)


PIECES = [
    "[", "(", "1,", "1-", "1. ", "none ", "1 not ", "all ", "wait ", "relevant ", "<think>", "</think>", "{", '{"a":',
    '"', "'", '"\\', "9", "|1|no|\n", "answer: ", "\nreason:", " ", "\n", "段", "\u0327\u0301", "\ue000",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_reading_takes_linear_work(piece):
    def read(answer: str) -> None:
        parse_ids(answer, 9)
        parse_names(answer, TITLES)
        parse_keywords(answer)

    read(piece)  # what is compiled once
    short, long = (lines_run(read, piece * (size // len(piece))) for size in (250, 2000))
    assert long < 12 * short + 2000  # 8 times if linear, 64 if quadratic


@pytest.mark.parametrize("answer", ["9", "1-" + "9", '{"ids": [9', "[", "|"])
def test_huge_numbers_and_ranges(answer):
    assert set(parse_ids(answer + answer[-1] * 99_999 + ", 2]}" * ("ids" in answer), 9).positions) <= {1}


READABLE = {
    '{"ids": [1, 2,]}': (0, 1), '{"ids": ["3", "5",],}': (2, 4), 'So {"ids": [2,\n ]}.': (1,), "[2, 4,]": (1, 3),
    '{"ids": [1.0, 2.0]}': (0, 1), "[3.0]": (2,), '{"ids": 4.0}': (3,), '{"a": [5.0, 1]}': (0, 4),
    '{"ids": "2, 4"}': (1, 3), '{"answer": "[3]"}': (2,), '{"ids": "1 and 5"}': (0, 4), '["2, 3"]': (1, 2),
    '{"ids": 2}': (1,), '{"id": "3"}': (2,), '{"paragraph_id": 5}': (4,), 'I take {"section": 1}': (0,),
    '{"ids": null}': (), '{"ids": "none"}': (), '{"answer": "None."}': (),
    '{"paragraphs": [{"id": 1}, {"id": 2}]}': (0, 1), '[{"id": 3, "reason": "It has 2 of 4."}]': (2,),
    '[{"doc": 2, "score": 0.9}, {"doc": 5, "score": 0.1}]': (1, 4), '{"x": [{"paragraph_id": "4"}, 1]}': (0, 3),
    "[2] > [1] > [3]": (0, 1, 2), "5 > 2": (1, 4), "Ranking: [4] > [1]": (0, 3), "[3]>[1]>[2]": (0, 1, 2),
    "The answer is 2.": (1,), "So, the final answer is: 3 and 5": (2, 4), "My choice is [4].": (3,),
    "The relevant paragraph ids are 1, 4 and 5.": (0, 3, 4),
    "1. 2\n2. 4": (1, 3), "1) [5]\n2) [1]": (0, 4), "Answer:\n1. 4\n2. 2\n3. 5": (1, 3, 4), "1. 3\n2. 5": (2, 4),
    "Doc: 2, Relevance: 9\nDoc: 1, Relevance: 8": (0, 1), "Document 3, score: 0.7": (2,),
    "- Passage: 4 (relevance: 7/10)": (3,), "Doc: 5, Relevance: 10": (4,),
}  # fmt: skip


@pytest.mark.parametrize("answer", READABLE)
def test_forms_of_ids_that_models_prefer(answer):
    assert parse_ids(answer, 5) == Choice(READABLE[answer])


@pytest.mark.parametrize(
    "answer",
    [
        *('{"ids": [1.5, 2]}', '{"ids": true}', '{"id": 2, "relevant": "no"}', '{"irrelevant": [1, 2]}'),
        *(
            '{"not_relevant": [3]}',
            '{"excluded": [3]}',
            '{"id": 1}\n{"id": 2}',
            '{"id": 2, "score": 0}',
            '{"count": 2}',
        ),
        *('[{"id": 2, "reason": "It is not relevant."}]', '[{"id": 1, "relevant": false}]', '{"ids": "2 of 4"}'),
        *("1. 1\n2. 2\n3. 3", "2. 3\n5. 1", "The answer is 2 paragraphs.", "The answer is not 2.", "5 > 3 is true"),
        *("Doc: 2, Relevance: 0", "The number of relevant paragraphs is 3.", "Doc: 2 has relevance"),
    ],
)
def test_ids_that_may_mean_something_else_are_not_chosen(answer):
    assert parse_ids(answer, 5) == Choice((), usable=False)


@pytest.mark.parametrize(
    ("pump", "names"),
    [
        *(("b,", ["b," * 60 + "b", "c"]), ("b, ", ["b," * 60 + "c"]), ("a;b,", ["a, b, " * 40 + "c", "b"])),
        *((pump, ["A, b", "C"]) for pump in ("\u00a0", " ", "\u2003", "\n", "\n[", '"\\"', ", ", "- ", '{"a":')),
    ],
)
def test_separators_and_blanks_take_linear_time(pump, names):
    def read(answer: str) -> None:
        parse_names(answer + "yes", names)
        parse_ids(answer + "yes", 9)
        parse_yes_no(answer + "yes")

    start = time.process_time()
    read(pump * (20_000 // len(pump)))
    assert time.process_time() - start < 1


def test_thoughts_are_neither_follow_up_questions_nor_passages_nor_keywords():
    thinking = "<think>Follow up: Is it Basel? So the final answer is: Bern</think>"
    asked = SelfAsk(lambda prompt: f"{thinking}So the final answer is: Ulm", lambda question: []).answer("Which town?")
    assert (asked.answer, asked.steps) == ("Ulm", ())
    [passage] = run(generated_passages("Which town?", n=1), lambda prompt: f"{thinking}Ulm lies on the Danube.")
    assert passage.text == "Ulm lies on the Danube."
    assert parse_keywords("<think>[owls, mice]</think>[red fox]") == ["red fox"]


AND = ["Introduction", "Methods", "Results", "Data and Tools"]


@pytest.mark.parametrize(
    ("answer", "positions"),
    [
        ("Sections: Methods and Results", (1, 2)),
        ("Introduction, Methods and Results.", (0, 1, 2)),
        ("Data and Tools and Results", (2, 3)),
        ("Data and Tools", (3,)),
        ("Methods and the weather", None),
    ],
)
def test_names_joined_by_and(answer, positions):
    choice = parse_names(answer, AND)
    assert (choice.positions if choice.usable else None) == positions


@pytest.mark.parametrize(
    "answer",
    [
        "**2**, **4**",
        "**[2]**\n**[4]**",
        'Paragraph two gives the rent.\n\n```json\n{"ids": [2, 4]}\n```\nThese answer it.',
        'The question asks for the rent. Paragraph 3 is about dogs.\n\n{"ids": [2, 4]}',
    ],
)
def test_bold_ids_and_json_behind_reasoning(answer):
    assert parse_ids(answer, 5) == Choice((1, 3))
