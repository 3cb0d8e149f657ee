"""One definition of evidence: what is found at which rank, however the corpus was cut, and what headings count for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import D3, Passage, parse_document
from drillrank.evaluation import compare
from drillrank.evaluation.evidence import evidence_of, paragraphs, words_of
from drillrank.evaluation.questions import Question
from drillrank.views import section_chunks

MANUAL = """# Kettle

Read this before you boil water for the first time.

## Warranty

The heater is covered for two years.

Damage by lime scale is left out of it.

## Notes

## Annex

### Cleaning

Boil vinegar and water once a month.
"""
WORDS = st.lists(
    st.sampled_from(["heater", "kettle", "lime", "scale", "boil", "water", "year"]), min_size=1, max_size=30
)


def spans_of(*spans, documents=()):
    return evidence_of([Question("1", "?", spans=spans)], documents)["1"]


def ranks(evidence, *texts):
    return evidence.ranks([Passage(text, id=str(place)) for place, text in enumerate(texts)])


def test_ids_are_exact():
    evidence = evidence_of([Question("1", "?", gold=("a", "b"), spans=("heater",), answers=("two",))])["1"]
    assert evidence.ranks([Passage("heater", id="c"), Passage("", id="b"), Passage("two", id="b")]) == (math.inf, 2)


def test_a_span_is_found_once_half_of_its_characters_are_there():
    span = "The heater of the kettle is covered for two years after you bought it."
    assert ranks(spans_of(span), "Nothing of it.", f"Before. {span} After.") == (2,)
    assert ranks(spans_of(span), "The heater of the kettle is", "covered for two years after") == (2,)
    assert ranks(spans_of(span), "The heater of the kettle is covered for two") == (1,)
    assert ranks(spans_of(span), "The heater of the kettle is", "The heater of the kettle is") == (math.inf,)
    assert ranks(spans_of(span), "the heater or a kettle is what covered two for years") == (
        math.inf,
    )  # no run of five


def test_two_spans_of_one_passage_are_both_found_by_it():
    spans = ("The heater is covered.", "Lime scale is left out.")
    passage = Passage(" ".join(spans), id="both")
    rows = [{"question": "Who?", "spans": [*spans], "candidates": [passage, *(Passage(str(n)) for n in range(3))]}]
    found = compare(
        rows, {"same": lambda query, passages: passages}, measures=["R@1", "AllR@1", "F1@1", "nDCG@10", "AP"]
    )
    assert [found.mean("same", measure) for measure in found.measures] == [1, 1, 1, 1, 1]


def test_answers_are_one_item():
    evidence = evidence_of([Question("1", "?", answers=("two years", "24 months"))])["1"]
    assert ranks(evidence, "Two yearsers.", "For 24 months!", "Two years.") == (2,)


@given(WORDS, st.lists(WORDS, max_size=5))
def test_more_results_never_hold_less(span, texts):
    evidence = spans_of(" ".join(span))
    found = ranks(evidence, *(" ".join(text) for text in texts))
    longer = ranks(evidence, *(" ".join(text) for text in texts), " ".join(span))
    assert longer[0] <= min(found[0], len(texts) + 1)
    if found[0] < math.inf:
        assert longer == found


@given(WORDS, st.data())
def test_a_text_cut_anywhere_holds_what_its_pieces_hold_nearly(span, data):
    """However a corpus is cut into pieces of five words and more, they hold all of a span but what the cuts tear."""
    cuts, at = [0], 0
    while len(span) - at >= 10:
        at += data.draw(st.integers(5, len(span) - at - 5))
        cuts.append(at)
    pieces = [" ".join(span[a:b]) for a, b in zip(cuts, [*cuts[1:], len(span)], strict=True)]
    assert spans_of(" ".join(span)).span_recall([Passage(piece) for piece in pieces], 1_000) == 1
    assert ranks(spans_of(" ".join(span)), *pieces)[0] <= len(pieces)


@pytest.mark.parametrize(
    "text",
    ["\u6c34\u58f6\u7684\u4fdd\u4fee\u671f\u4e3a\u4e24\u5e74", "\u0e01\u0e32\u0e15\u0e49\u0e21\u0e19\u0e49\u0e33"],
)
def test_scripts_without_spaces_are_cut_anywhere(text):
    assert ranks(spans_of(text), f"{text[:3]}", f"{text}\uff0cx") == (2,)
    assert ranks(spans_of(text), text[: len(text) - 2]) == (1,)


def test_markup_is_no_text():
    assert ranks(
        spans_of("The heater is covered for two years."), "<p>The heater is <b>covered</b> for two years.</p>"
    ) == (1,)
    assert words_of(r"\textbf{covered} for") == " covered for "


def test_spans_without_a_word_are_never_found():
    assert ranks(spans_of("?!"), "?!", "what") == (math.inf,)
    assert spans_of("?!").span_recall([Passage("?!")], 10) == 0


# Headings


def test_a_heading_is_evidence_only_where_nothing_stands_under_it():
    document = parse_document(MANUAL)
    texts = [document.slice(block) for block in paragraphs(document)]
    assert texts == [
        "Read this before you boil water for the first time.",
        "The heater is covered for two years.",
        "Damage by lime scale is left out of it.",
        "## Notes",
        "Boil vinegar and water once a month.",
    ]


@pytest.mark.parametrize(
    ("marked", "counts"),
    [
        ("## Warranty\n\nThe heater is covered for two years.", "The heater is covered for two years."),
        ("Warranty The heater is covered for two", "The heater is covered for two"),
        ("for the first time. Warranty The heater", "for the first time. The heater"),
        ("Warranty", "The heater is covered for two years."),
        ("Annex Cleaning", "Boil vinegar and water once a month."),
        ("Kettle", "Read this before you boil water for the first time."),
        ("Notes", "Notes"),
        ("left out of it. Notes", "left out of it. Notes"),
        ("The warranty of the kettle ends.", "The warranty of the kettle ends."),
        ("covered for two years", "covered for two years"),
    ],
)
def test_spans_are_judged_without_headings(marked, counts):
    assert spans_of(marked, documents=[parse_document("Nothing.\n"), parse_document(MANUAL)]) == spans_of(counts)


def test_a_marked_heading_is_found_by_sections_and_by_the_paragraph_under_it():
    document = parse_document(MANUAL)
    evidence = spans_of("## Warranty", documents=[document])
    [first, *_] = D3().retrieve("How long is the heater covered?", [document])
    assert evidence.ranks([first.passage]) == (1,)
    sections = [Passage(chunk.text, id=chunk.id) for chunk in section_chunks(document, "m") if chunk.view == "raw"]
    assert evidence.ranks(sections) == (2,)
    assert evidence.ranks([Passage("## Warranty", id="heading alone")]) == (math.inf,)
