from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.passages import Passage
from drillrank.rerank.upr import UPR

texts = st.text(st.characters(codec=None, exclude_characters="\0"), max_size=6) | st.sampled_from(
    ["a red fox", "a river", "{text}", "{title}"]
)
passages = st.lists(st.builds(Passage, texts, title=texts) | texts, max_size=6)
queries = st.sampled_from(["red fox", "which river?", "???", "the fox crossed"])
top_ns = st.none() | st.integers(1, 8)


def paper_prompt(passage):
    document = f"{passage.title} {passage.text}" if passage.title else passage.text
    return f"Passage: {document}. Please write a question based on this passage."


@given(queries, passages, top_ns)
def test_the_score_is_the_mean_log_probability_of_the_question_after_the_prompt(hash_model, query, given_, top_n):
    ranking = UPR(hash_model()).rank(query, given_, top_n)
    as_given = [Passage(item) if isinstance(item, str) else item for item in given_]
    totals = [float(np.sum(hash_model.log_probs(paper_prompt(passage), query))) for passage in as_given]
    tokens = len(query.split())
    order = sorted(range(len(totals)), key=lambda i: (-totals[i] / tokens, i))[:top_n]
    assert [entry.details["position"] for entry in ranking] == order
    assert [entry.passage for entry in ranking] == [as_given[i] for i in order]
    assert [entry.score for entry in ranking] == pytest.approx([totals[i] / tokens for i in order])
    assert [entry.details["log_likelihood"] for entry in ranking] == pytest.approx([totals[i] for i in order])
    assert {entry.details["tokens"] for entry in ranking} <= {tokens}
    assert [entry.rank for entry in ranking] == list(range(1, len(ranking) + 1))


def test_the_template_and_the_limit_reach_the_model(hash_model):
    model = hash_model()
    UPR(model, template="Title: {title}\nText: {text}\nQuestion:", max_passage_tokens=9).rank(
        "who?", [Passage("t", title="T")]
    )
    [request] = model.requests
    before, evidence, after = request.prompt
    assert (before, evidence.text, evidence.max_tokens, after) == ("Title: ", "T\nText: t", 9, "\nQuestion:")
    assert request.target == "who?"


def test_a_limit_cuts_and_says_so():
    [entry] = UPR(max_passage_tokens=3).rank("fox", ["one two three fox five"])
    assert entry.details["cut_tokens"] == 2
    assert UPR(max_passage_tokens=3).rank("fox", ["river", "one two three fox"])[0].passage.text == "river"
