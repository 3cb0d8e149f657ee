"""Benchmarks of the papers: drawn questions, unions of views, and an LLM's judgment as a term of a score."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from benchmarks.data import data_folder, stratified
from benchmarks.llm_evidence import Choice, Question, judgment_prompt, select_judged
from benchmarks.long_documents import papers
from benchmarks.papers_d3 import asked_questions, paper_settings, without_names
from benchmarks.view_arrangements import Chunks
from benchmarks.views import union
from drillrank import D3
from drillrank.drilldown.prompts import ListedText, YesNoPrompt

needs_data = pytest.mark.skipif(not data_folder().is_dir(), reason="the benchmark data is not at hand")


def question(totals, log_odds, log_likelihoods=(0.0, 0.0), chosen=()):
    ids = ["a", "b", "c", "d"][: len(totals)]
    return Question(ids, np.array(totals), np.array(log_odds), np.array(log_likelihoods), 10, list(chosen), 10, [{"b"}])


def test_drawn_questions_have_each_type_as_often_as_all():
    rows = [{"id": i, "type": "bridge" if i % 3 else "comparison"} for i in range(90)]
    drawn = stratified(rows, 30)
    assert Counter(row["type"] for row in drawn) == {"bridge": 20, "comparison": 10}
    assert [row["id"] for row in drawn] == sorted(row["id"] for row in drawn)
    assert drawn == stratified(rows, 30)


def test_a_union_takes_the_first_of_each_view_and_counts_its_chunks():
    chunks = Chunks([(0, 1)] * 8, [1] * 8, {})
    views = {"raw": [0, 1, 2, 3], "keywords": [0, 2, 4, 5], "summary": [6, 1, 0, 7]}
    recalls, counts = union([(views, [0.5, 0.25, 0.25, 0, 0, 0, 0, 0], chunks)])
    assert counts[:, 0].tolist() == [2, 4, 5, 8]
    assert recalls[:, 0].tolist() == [0.5, 1.0, 1.0, 1.0]
    recalls, counts = union([({"raw": [3, 0, 1]}, [1.0, 0, 0, 0], chunks)] * 2)
    assert counts[0].tolist() == [1, 2]
    assert recalls[0].tolist() == [0.0, 1.0]


def test_without_weights_likelihood_chooses():
    assert Choice().select(question([-1.0, -9.0, -20.0], [-5.0, 5.0])) == ["a"]


def test_log_odds_move_a_paragraph_up_and_unread_ones_gain_as_little_as_any():
    judged = question([-1.0, -9.0, -9.5], [-5.0, 5.0])
    assert Choice(odds=2.0).select(judged) == ["b"]
    assert Choice(odds=0.5).select(judged)[0] == "a"
    unread_last = question([-1.0, -2.0, -3.0], [4.0, -4.0])
    assert Choice(odds=2.0).select(unread_last) == ["a"]


def test_what_the_llm_chose_from_a_list_counts_as_a_term():
    assert Choice(chosen=20.0).select(question([-1.0, -9.0, -20.0], [0.0, 0.0], chosen=["b"])) == ["b"]


def test_judged_paragraphs_are_those_with_more_yes_than_no_or_the_best():
    assert select_judged(question([-1.0, -2.0, -3.0], [-1.0, 2.0])) == ["b"]
    assert select_judged(question([-1.0, -2.0, -3.0], [-2.0, -1.0])) == ["b"]


def test_the_judgment_prompt_is_that_of_the_strategy_paragraph():
    prompt = "".join(judgment_prompt("How long?", "Nine hours."))
    assert prompt == YesNoPrompt().render("How long?", [ListedText("[1] Nine hours.")])


def test_headings_are_replaced_and_the_title_is_not():
    first, *rest = without_names("# Title\n\n## Data\n\nText.\n\n### Data\n").splitlines()
    assert first == "# Title"
    headings = [line.split(" ") for line in rest if line.startswith("#")]
    assert [marks for marks, _ in headings] == ["##", "###"]
    assert len({name for _, name in headings}) == 2
    assert all(len(name) == 36 for _, name in headings)


@needs_data
def test_papers_are_drawn_whole_with_their_unanswerable_questions():
    d3 = D3(settings=paper_settings())
    drawn = papers("qasper", d3, 8, seed=15, with_unanswerable=True)
    answered = papers("qasper", d3, 8, seed=15)
    assert len(asked_questions(drawn)) == len(asked_questions(answered)) == 8
    assert all(one.gold for _, one in asked_questions(answered))
    texts = [one.text for one in drawn[0].questions]
    assert set(texts) >= {one.text for one in answered[0].questions}
    assert drawn[0].ready.outline.paragraphs != papers("qasper", d3, 8)[0].ready.outline.paragraphs
