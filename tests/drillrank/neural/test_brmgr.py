from __future__ import annotations

import math

import pytest

from drillrank import BRMGR

FOUND = ["The old town of Basel lies on the Rhine.", "", "Emma is a novel by Jane Austen; who wrote it?"]
ODD = [
    "", " \n", "?!", "</s>", "<s> <pad> <|endoftext|>", "🦊 東京 \u200b", "\u200b", "novel " * 5000, "字" * 5000,
    "Rhine",
]  # fmt: skip


@pytest.mark.parametrize("guard", [False, 0.0])
def test_no_answer_of_an_llm_loses_a_retrieved_passage(model, guard):
    brmgr = BRMGR(model, guard=guard, settings={"max_generated_tokens": 100})
    ranking = brmgr.rank("Which river?", FOUND, ODD)
    places = [(item.details["origin"], item.details["position"]) for item in ranking]
    assert len(places) == len(set(places))
    assert sorted(place for origin, place in places if origin == "retrieved") == [0, 1, 2]
    if not guard:
        assert guard is not False or len(ranking) == len(FOUND) + len(ODD)
    assert all(math.isfinite(item.score) and item.score <= 0 for item in ranking)
    generated = [item for item in ranking if item.details["origin"] == "generated"]
    assert all(item.passage.text == ODD[item.details["position"]] for item in generated)


def test_the_prompt_of_a_generated_passage_is_the_question_alone(model):
    ranking = BRMGR(model).rank("Which river?", FOUND, ["The Rhine."])
    prompt = "Question: Which river? Please write a passage that answers this question."
    [expected] = model.log_likelihood([(prompt, "The Rhine.")])
    assert ranking[0].details["generated_score"] == pytest.approx(expected.mean, abs=1e-4)
