"""`check_support`: sentences of an answer, and the passages that support them."""

from __future__ import annotations

import random
import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import Passage, check_support

TEXT = (
    "The Treaty of Basel was signed on 5 April 1795 by Karl August von Hardenberg. It gave Prussia three years of "
    "peace. The town was not occupied, and its 15,000 people kept their gates. In 1833 the canton was divided."
)
OTHER = "Johann Wettstein was mayor of Basel for 21 years. He died in 1666."


def judge(answer: str, *passages: str, **options):
    [judgment] = check_support(answer, passages or (TEXT, OTHER), **options)
    return judgment


@pytest.mark.parametrize(
    "sentence",
    [
        "The Treaty of Basel was signed on 5 April 1795 by Karl August von Hardenberg.",
        "Karl August von Hardenberg signed the Treaty of Basel on 5 April 1795.",
        "It gave Prussia 3 years of peace.",
        "The town, whose 15,000 people kept their gates, was not occupied.",
        "Johann Wettstein was mayor of Basel for 21 years and died in 1666.",
        "According to the text, the town was not occupied [2].",
    ],
)
def test_what_a_passage_says_is_supported(sentence):
    judgment = judge(sentence)
    assert judgment.supported
    assert judgment.doubts == ()
    assert judgment.support >= 0.5


@pytest.mark.parametrize(
    ("sentence", "doubts"),
    [
        ("The Treaty of Basel was signed on 5 April 1796 by Karl August von Hardenberg.", ("1796",)),
        ("The Treaty of Basel was signed on 5 April 1833 by Karl August von Hardenberg.", ("1833",)),
        ("The Treaty of Basel was signed on 5 April 1795 by Johann Wettstein.", ("Johann", "Wettstein")),
        ("It gave Austria three years of peace.", ("Austria",)),
        ("It gave Prussia five years of peace.", ("five",)),
        ("The town was occupied, and its 15,000 people kept their gates.", ("negation",)),
        ("The town was not occupied, and its 15,000 people did not keep their gates.", ("negation",)),
        ("Its 16,000 people kept their gates.", ("16,000",)),
    ],
)
def test_one_changed_fact_is_not_supported_and_is_named(sentence, doubts):
    judgment = judge(sentence)
    assert not judgment.supported
    assert judgment.doubts == doubts
    assert judgment.support < 0.5


def test_a_sentence_about_something_else_is_not_supported():
    judgment = judge("Whales sing beneath frozen oceans.")
    assert not judgment.supported
    assert judgment.passages == ()


def test_two_passages_support_a_sentence_together_and_are_returned():
    first = Passage("Anna Muster wrote the report on bridges.", id="a")
    second = Passage("The report on bridges appeared in 1987.", id="b")
    unrelated = Passage("Cats sleep all day.", id="c")
    sentence = "The report on bridges, which Anna Muster wrote, appeared in 1987."
    [judgment] = check_support(sentence, [unrelated, second, first])
    assert judgment.supported
    assert {passage.id for passage in judgment.passages} == {"a", "b"}
    assert not check_support(sentence, [first, unrelated])[0].supported
    assert not check_support(sentence, [second, unrelated])[0].supported


def test_the_title_belongs_to_each_sentence_of_a_passage():
    passage = Passage("It was built in 1925.", title="Wettstein Bridge")
    assert check_support("The Wettstein Bridge was built in 1925.", [passage])[0].supported
    assert not check_support("The Wettstein Bridge was built in 1925.", [passage.text])[0].supported


def test_each_sentence_has_its_own_judgment_in_order():
    judgments = check_support("It gave Prussia three years of peace. Cats sleep.\n\nHe died in 1666.", [TEXT, OTHER])
    assert [judgment.sentence for judgment in judgments] == [
        "It gave Prussia three years of peace.",
        "Cats sleep.",
        "He died in 1666.",
    ]
    assert [judgment.supported for judgment in judgments] == [True, False, True]


def test_a_blank_answer_has_no_sentence_and_no_passage_supports_nothing():
    assert check_support(" \n", [TEXT]) == []
    [judgment] = check_support("The town was not occupied.", [])
    assert not judgment.supported
    assert judgment.passages == ()


def test_numbers_of_another_language_are_read_in_it():
    german = "Das Haus kostet 1.250,50 Euro im Monat."
    assert judge("Im Monat kostet das Haus 1250,50 Euro.", german, language="german").supported
    assert not judge("Im Monat kostet das Haus 1350,50 Euro.", german, language="german").supported


FIRM = (
    "The company employed 12,500 people in 2021. Revenue rose by 5% to $1.2 million. The contract ends on 5 April "
    "2023. The plant isn't profitable. Anna Keller leads the sales team in Basel. You cannot cancel the lease. Plan B "
    "costs 5 euros. The town was never occupied."
)


@pytest.mark.parametrize(
    ("sentence", "is_supported"),
    [
        ("Revenue rose by 5 percent to 1.2 million dollars.", True),
        ("Revenue rose by 5 per cent.", True),
        ("Revenue rose by 6 percent.", False),
        ("Revenue rose to $1,200,000.", True),
        ("Revenue rose to $1.2m.", True),
        ("Revenue rose to $1.3m.", False),
        ("Revenue rose to 1.2 billion dollars.", False),
        ("The company employed 12500 people in 2021.", True),
        ("The company employed 12'500 people in 2021.", True),
        ("The company employed 12\u202f500 people in 2021.", True),
        ("The company employed 12,600 people in 2021.", False),
        ("The contract ends on April 5, 2023.", True),
        ("The contract ends on Apr. 5th, 2023.", True),
        ("The contract ends on 2023-04-05.", True),
        ("The contract ends on 05.04.2023.", True),
        ("The contract ends on 2023-04-06.", False),
        ("The contract ends on 5 May 2023.", False),
        ("The plant is not profitable.", True),
        ("The plant isn’t profitable.", True),
        ("The plant is profitable.", False),
        ("Yes, the plant is not profitable.", True),
        ("No, the plant isn't profitable.", True),
        ("You can't cancel the lease.", True),
        ("You can cancel the lease.", False),
        ("The contract won't end on 5 April 2023.", False),
        ("The town was not occupied.", True),
        ("ANNA KELLER LEADS THE SALES TEAM.", True),
        ("anna keller leads the sales team in basel.", True),
        ("**Anna Keller** leads the [sales team](team.md) [2][3].", True),
        ("Answer: Anna Keller leads the sales team.", True),
        ("- Anna Keller leads the sales team", True),
        ("3) Anna Keller leads the sales team", True),
        ("Plan C costs 5 euros.", False),
        ("Anna Keller", True),
        ("Peter Keller", False),
        ("12,500", True),
        ("13,500", False),
    ],
)
def test_forms_of_numbers_dates_negations_and_markup(sentence, is_supported):
    assert judge(sentence, FIRM).supported == is_supported


TABLE = "| Year | People | Revenue |\n|---|---|---|\n| 2021 | 12,500 | 1.2 |\n| 2022 | 13,000 | 1.4 |"


@pytest.mark.parametrize(
    ("answer", "passage", "supported"),
    [
        (TABLE, TABLE, [True, True]),
        (TABLE, "In 2021 there were 12,500 people, and a revenue of 1.2.", [True, False]),
        ("In 2021 there were 12,500 people.", TABLE, [True]),
        ("In 2022 there were 12,500 people.", TABLE, [False]),
        ("| 2021 | 13,000 | 1.2 |", TABLE, [False]),
    ],
)
def test_a_row_of_a_table_is_a_sentence(answer, passage, supported):
    assert [judgment.supported for judgment in check_support(answer, [passage])] == supported


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        ("He does not actually have a sight at goal.", "he does not actually have a sight at goal."),
        (
            "People who never divorced have more, and a break-up costs a pension, says Bell.",
            "A break-up costs a pension.",
        ),
        ("The base is in the park. THE PARK. World news.", "In the park is a world of its base."),
        ("The U.S. Army left.", "The US Army left."),
    ],
)
def test_negations_elsewhere_and_capitals_of_headings_are_no_doubts(passage, sentence):
    assert judge(sentence, passage).doubts == ()


TEXTS = st.text(max_size=300) | st.text(alphabet="aA1. ,\n'’n\ud800東ß́", max_size=300)


@settings(deadline=None, max_examples=150)
@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_no_text_raises_or_warns_and_values_are_in_range(answer, passages):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for judgment in check_support(answer, passages):
            assert 0 <= judgment.support <= 1
            assert judgment.supported == (judgment.support >= 0.5)
            assert judgment.sentence in answer
            assert {passage.text for passage in judgment.passages} <= {*passages}


@settings(deadline=None, max_examples=50)
@given(st.permutations([TEXT, OTHER, "Cats sleep all day.", "In 1795 there was a storm."]))
def test_the_order_of_the_passages_changes_no_judgment(passages):
    for sentence in (
        "It gave Prussia three years of peace.",
        "It gave Austria three years of peace.",
        "He died in 1666.",
    ):
        assert judge(sentence, *passages).support == judge(sentence, *sorted(passages)).support


def test_other_passages_with_other_words_change_no_judgment_of_a_quotation():
    quotation = "It gave Prussia three years of peace."
    others = [f"Unrelated words number {number} about gardens and kettles." for number in range(30)]
    assert judge(quotation, TEXT, *others).supported
    assert not judge(quotation.replace("three", "four"), TEXT, *others).supported


def _seconds(answer: str, passage: str) -> float:
    started = time.process_time()
    check_support(answer, [passage])
    return time.process_time() - started


@pytest.mark.parametrize("kind", ["words", "numbers", "names", "one word", "one sentence"])
def test_time_grows_linearly_with_the_passages_and_with_a_sentence(kind):
    rng = random.Random(1)
    make = {
        "words": lambda: rng.choice("abcdefgh") * 3,
        "numbers": lambda: str(rng.randint(1, 99)),
        "names": lambda: rng.choice(["Basel", "Bonn", "Mainz"]),
        "one word": lambda: "x",
        "one sentence": lambda: "word",
    }[kind]
    end = "" if kind.startswith("one") else "."
    join = "" if kind == "one word" else " "

    def text(n: int) -> str:
        return (
            ". ".join(join.join(make() for _ in range(12)) for _ in range(n // 12)) + end
            if end
            else join.join(make() for _ in range(n))
        )

    sentence = " ".join(make() for _ in range(300))
    check_support(sentence, [text(500)])
    small = min(_seconds(sentence, text(4000)) for _ in range(2)) + 0.02
    assert _seconds(sentence, text(16_000)) < 12 * small
    passage = text(500)
    small = min(_seconds(text(4000), passage) for _ in range(2)) + 0.02
    assert _seconds(text(16_000), passage) < 12 * small
