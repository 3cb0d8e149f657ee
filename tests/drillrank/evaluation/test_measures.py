"""Evidence and measures: one definition of what is found, values against independent computations."""

from __future__ import annotations

import math
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import D3, Passage, parse_document
from drillrank.evaluation import compare, measures
from drillrank.evaluation.measures import gold_labels, words_of
from drillrank.evaluation.metrics import answer_f1, answer_match, evidence_f1, exact_match, hit, recall, recall_all
from drillrank.evaluation.questions import Question
from drillrank.views import section_chunks
from tests.drillrank.helpers import refuses

ITEMS = st.integers(0, 6)


@given(st.sets(ITEMS), st.lists(st.sets(ITEMS), min_size=1, max_size=3))
def test_evidence_f1_is_the_best_harmonic_mean(predicted, annotations):
    expected = []
    for gold in annotations:
        common = len(predicted & gold)
        precision = common / len(predicted) if predicted else float(not gold)
        of_gold = common / len(gold) if gold else float(not predicted)
        expected.append(2 * precision * of_gold / (precision + of_gold) if precision + of_gold else 0.0)
    assert evidence_f1(predicted, annotations) == pytest.approx(max(expected))


PHRASES = st.lists(st.sampled_from(["The", "a", "river", "River", "town.", "old-town", "the,", "7", "an"]), max_size=6)


@given(st.lists(PHRASES.map(" ".join), max_size=4), st.lists(PHRASES.map("  ".join), max_size=3), st.integers(1, 5))
def test_an_answer_is_a_run_of_whole_words_in_one_of_the_first_texts(texts, answers, k):
    def tokens(text):
        kept = "".join(character for character in text.lower() if character not in string.punctuation)
        return [word for word in kept.split() if word not in ("a", "an", "the")]

    def holds(text, answer):
        return any(text[i : i + len(answer)] == answer for i in range(len(text) - len(answer) + 1))

    expected = any(tokens(answer) and holds(tokens(text), tokens(answer)) for text in texts[:k] for answer in answers)
    assert exact_match(texts, answers, k) == float(expected)


@pytest.mark.parametrize(
    ("said", "right", "f1", "exact"),
    [
        ("the Rhine", ["Rhine!", "Danube"], 1.0, 1.0),
        ("Danube", ["Rhine"], 0.0, 0.0),
        ("", ["Rhine"], 0.0, 0.0),
        ("blue blue fish", ["blue fish"], 0.8, 0.0),
    ],
)
def test_f1_and_match_of_answers(said, right, f1, exact):
    assert (answer_f1(said, right), answer_match(said, right)) == (f1, exact)


test_what_no_measure_can_take = refuses(
    (lambda: exact_match("Jane Austen", ["Jane Austen"], 1), "texts must be a collection"),
    (lambda: exact_match(["Jane Austen"], "Jane Austen", 1), "answers must be a collection"),
    (lambda: recall(["a"], "a", 1), "gold must be a collection"),
    (lambda: recall(["a"], [], 1), "at least one passage id"),
    (lambda: hit(["a"], ["a"], 0), "k must be"),
    (lambda: evidence_f1({1}, []), "at least one annotator"),
    (lambda: answer_f1("Rhine", "Rhine"), "answers must be a collection"),
    (lambda: answer_match("Rhine", []), "at least one answer"),
)


def test_measures_are_those_of_pytrec_eval_on_1000_random_runs():
    pytest.importorskip("ir_measures")
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(2)
    names = {"nDCG@10": "ndcg_cut_10", "RR": "recip_rank", "AP": "map"}
    names |= {"Success@1": "success_1", "R@5": "recall_5", "R@10": "recall_10"}
    pool = [f"d{i}" for i in range(40)]
    questions, gold, rankings = [], {}, {}
    for number in range(1_000):
        id_ = f"q{number}"
        gold[id_] = set(rng.choice(pool, rng.integers(1, 6), replace=False).tolist())
        rankings[id_] = rng.permutation(pool)[: rng.integers(0, 41)].tolist()
        questions.append(Question(id_, "?", gold=tuple(gold[id_])))
    passages = {id_: [Passage("?", id=name) for name in ids] for id_, ids in rankings.items()}
    evidence = gold_labels(questions)
    ranks = {id_: one.ranks(passages[id_]) for id_, one in evidence.items()}
    found = measures.compute_measures([*names, "AllR@10", "F1@5"], questions, evidence, passages, ranks)
    run = {id_: {name: 1.0 / (1 + rank) for rank, name in enumerate(ids)} for id_, ids in rankings.items()}
    qrels = {id_: dict.fromkeys(ids, 1) for id_, ids in gold.items()}
    said = pytrec_eval.RelevanceEvaluator(qrels, set(names.values())).evaluate(run)
    for name, called in names.items():
        expected = [said.get(q.id, {}).get(called, 0.0) for q in questions]
        np.testing.assert_allclose(found[name], expected, atol=1e-12)
    for place, question in enumerate(questions):
        wanted, ranking = gold[question.id], rankings[question.id]
        assert found["AllR@10"][place] == recall_all(ranking, wanted, 10)
        common = len(wanted & {*ranking[:5]})
        assert found["F1@5"][place] == pytest.approx(2 * common / (len(wanted) + len(ranking[:5])))


# Evidence


MANUAL = """# Kettle\n\nRead this before you boil water for the first time.\n
## Warranty\n\nThe heater is covered for two years.\n\nDamage by lime scale is left out of it.\n
## Notes\n
## Annex\n
### Cleaning\n\nBoil vinegar and water once a month.\n"""
SPAN = "The heater of the kettle is covered for two years after you bought it."


def spans_of(*spans, documents=()):
    return gold_labels([Question("1", "?", spans=spans)], documents)["1"]


def ranks(evidence, *texts):
    return evidence.ranks([Passage(text, id=str(place)) for place, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("span", "texts", "rank"),
    [
        (SPAN, ["Nothing of it.", f"Before. {SPAN} After."], 2),
        (SPAN, ["The heater of the kettle is", "covered for two years after"], 2),
        (SPAN, ["The heater of the kettle is covered for two"], 1),
        (SPAN, ["The heater of the kettle is"] * 2, math.inf),
        (SPAN, ["the heater or a kettle is what covered two for years"], math.inf),  # no run of five
        ("The heater is covered for two years.", ["<p>The heater is <b>covered</b> for two years.</p>"], 1),
        ("?!", ["?!", "what"], math.inf),
        *((text, [text[:3], f"{text}\uff0cx"], 2) for text in
          ("\u6c34\u58f6\u7684\u4fdd\u4fee\u671f\u4e3a", "\u0e01\u0e32\u0e15\u0e49\u0e21\u0e19\u0e49\u0e33")),
    ],
)  # fmt: skip
def test_a_span_is_found_once_half_of_its_characters_are_there(span, texts, rank):
    assert ranks(spans_of(span), *texts) == (rank,)


def test_markup_is_no_text_and_two_spans_of_one_passage_are_both_found_by_it():
    assert words_of(r"\textbf{covered} for") == " covered for "
    spans = ["The heater is covered.", "Lime scale is left out."]
    passage = Passage(" ".join(spans), id="both")
    rows = [{"question": "Who?", "spans": spans, "candidates": [passage, *(Passage(str(n)) for n in range(3))]}]
    named = ["R@1", "AllR@1", "F1@1", "nDCG@10", "AP"]
    found = compare(rows, {"same": lambda query, passages: passages}, measures=named)
    assert [found.mean("same", measure) for measure in named] == [1, 1, 1, 1, 1]


def test_only_the_first_words_count_for_span_recall():
    passages = [Passage("one two three four five six"), Passage("seven eight nine ten eleven twelve")]
    evidence = spans_of("seven eight nine ten eleven twelve")
    assert [evidence.span_recall(passages, n) for n in (6, 12)] == [0, 1]
    assert evidence.span_recall(passages, 11) == pytest.approx(23 / 29)  # characters of words


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
