from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import BRMGR, UPR, Passage
from drillrank.errors import InvalidInput
from drillrank.prompts import prompt_text

QUESTION = "which river crosses the town?"
texts = st.text(max_size=8) | st.sampled_from(["a red fox", "the river", "the town {text} {question}", "fox fox", "?!"])
passages = st.lists(st.builds(Passage, texts, title=st.sampled_from(["", "T"])) | texts, max_size=5)
spoken = st.lists(st.sampled_from([f"word {i} of river" for i in range(30)]), max_size=6)
firsts = st.sampled_from(["generated", "retrieved"])
shares = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 0.6, 1.0])
top_ns = st.none() | st.integers(1, 12)


def as_passage(item):
    return Passage(item) if isinstance(item, str) else item


def origins(ranking):
    return [item.details["origin"] for item in ranking]


def retrieved_score(model, passage):
    document = f"{passage.title} {passage.text}" if passage.title else passage.text
    log_probs = model.log_probs(f"Passage: {document}. Please write a question based on this passage.", QUESTION)
    return sum(log_probs) / len(log_probs)


def generated_score(model, passage, evidence=""):
    prompt = f"Question: {QUESTION} Please write a passage that answers this question."
    log_probs = model.log_probs(f"Passage: {evidence}\n\n{prompt}" if evidence else prompt, passage.text)
    return sum(log_probs) / len(log_probs)


def order(scores):
    return sorted(range(len(scores)), key=lambda i: -scores[i])


def interleaved(retrieved, generated, first):
    """What equations 4 to 6 say, from the scores of both kinds: (origin, position, pair, score)."""
    best_r, best_g = order(retrieved), order(generated)
    expected = []
    for k in range(max(len(retrieved), len(generated))):
        r = retrieved[best_r[min(k, len(best_r) - 1)]] if retrieved else 0.0
        g = generated[best_g[min(k, len(best_g) - 1)]] if generated else 0.0
        pair = [("generated", best_g, k), ("retrieved", best_r, k)]
        for origin, best, place in pair if first == "generated" else pair[::-1]:
            if place < len(best):
                expected.append((origin, best[place], k + 1, r + g))
    return expected


@given(passages, spoken, firsts, top_ns)
def test_logs_are_added_and_pairs_go_by_rank(hash_model, retrieved, generated, first, top_n):
    ranking = BRMGR(hash_model(), settings={"first": first}).rank(QUESTION, retrieved, generated, top_n)
    r_scores = [retrieved_score(hash_model, as_passage(item)) for item in retrieved]
    g_scores = [generated_score(hash_model, as_passage(item)) for item in generated]
    expected = interleaved(r_scores, g_scores, first)[:top_n]
    found = [(item.details["origin"], item.details["position"], item.details["pair"]) for item in ranking]
    assert found == [entry[:3] for entry in expected]
    assert [item.score for item in ranking] == pytest.approx([entry[3] for entry in expected])
    assert [item.rank for item in ranking] == list(range(1, len(ranking) + 1))
    scores = [item.score for item in ranking]
    assert scores == sorted(scores, reverse=True)
    for item in ranking:
        position, kind = item.details["position"], item.details["origin"]
        given_, own = (retrieved, r_scores) if kind == "retrieved" else (generated, g_scores)
        assert item.passage == as_passage(given_[position])
        assert item.details[f"{kind}_score"] == pytest.approx(own[position])
        pair = item.details["pair"]
        assert (item.details["retrieved_score"] is None) == (pair > len(retrieved))
        assert (item.details["generated_score"] is None) == (pair > len(generated))


@given(passages, passages, firsts, st.sampled_from([False, True, 0.3]), shares)
def test_no_retrieved_passage_is_lost_and_nothing_comes_twice(hash_model, retrieved, generated, first, guard, share):
    brmgr = BRMGR(hash_model(), settings={"first": first, "generated_share": share}, guard=guard)
    before = copy.deepcopy((retrieved, generated))
    ranking = brmgr.rank(QUESTION, retrieved, generated)
    assert (retrieved, generated) == before
    assert json.loads(json.dumps([item.details for item in ranking])) == [item.details for item in ranking]
    places = [(item.details["origin"], item.details["position"]) for item in ranking]
    assert len(places) == len(set(places))
    assert sorted(place for origin, place in places if origin == "retrieved") == list(range(len(retrieved)))
    assert origins(ranking).count("generated") <= share * len(ranking) + 1e-9
    if guard is False and share == 1:
        assert len(ranking) == len(retrieved) + len(generated)


@given(passages, spoken, shares, top_ns, firsts)
def test_the_share_is_the_largest_that_is_allowed(hash_model, retrieved, generated, share, top_n, first):
    full = [retrieved_score(hash_model, as_passage(item)) for item in retrieved]
    written = sorted((generated_score(hash_model, as_passage(item)) for item in generated), reverse=True)

    def result(count):
        return [origin for origin, *_ in interleaved(full, written[:count], first)][:top_n]

    def allowed(count):
        kept = result(count)
        return not kept or kept.count("generated") / len(kept) <= share

    ranking = BRMGR(hash_model(), settings={"first": first, "generated_share": share}).rank(
        QUESTION, retrieved, generated, top_n
    )
    largest = max(filter(allowed, range(len(generated) + 1)))
    assert origins(ranking) == result(largest)


@given(passages, spoken, st.sampled_from([0.0, 0.5, 0.9, True]))
def test_the_guard_follows_its_formula(hash_model, retrieved, generated, guard):
    kept = set()
    for position, text in enumerate(generated):
        passage = Passage(text)
        alone = generated_score(hash_model, passage)
        new = generated_score(hash_model, passage, text) - alone
        shown = [titled if (titled := as_passage(item).titled_text).strip() else "" for item in retrieved]
        explained = [generated_score(hash_model, passage, evidence) - alone for evidence in shown]
        support = min(max(explained, default=0.0) / new, 1.0) if new > 0 else 0.0
        if support >= (0.9 if guard is True else guard):
            kept.add(position)
    ranking = BRMGR(hash_model(), guard=guard).rank(QUESTION, retrieved, generated)
    assert {item.details["position"] for item in ranking if item.details["origin"] == "generated"} == kept


@pytest.mark.parametrize("preset", ["brmgr", "paper"])
def test_the_preset_conditions_on_the_question_alone_whatever_the_model(hash_model, preset):
    found, wrote = ["a red fox", "a river"], ["the fox is red", "rivers"]
    model = hash_model()
    ranking = BRMGR(model, preset=preset).rank("which fox?", found, wrote)
    prompts = {prompt_text(request.prompt) for request in model.requests if request.target == "which fox?"}
    assert prompts == {f"passage: {text}. Please write a question based on this passage." for text in found}
    with_words = BRMGR(preset=preset).rank("which fox?", found, wrote)
    without = BRMGR(preset=preset).rank("which fox?", found[::-1], wrote)
    scores = [{i.passage.text: i.details["generated_score"] for i in each} for each in (with_words, without)]
    assert scores[0][wrote[0]] == pytest.approx(scores[1][wrote[0]])
    assert {item.details["origin"] for item in ranking} == {"generated", "retrieved"}


def test_generated_passages_can_be_scored_by_the_question(hash_model):
    found, wrote = ["a red fox"], ["the fox is red", "rivers are wet"]
    ranking = BRMGR(hash_model(), settings={"generated_score": "question"}).rank("which fox?", found, wrote)
    expected = {item.passage.text: item.score for item in UPR(hash_model()).rank("which fox?", wrote)}
    for item in ranking:
        if item.details["origin"] == "generated":
            assert item.details["generated_score"] == pytest.approx(expected[item.passage.text])
    with pytest.raises(InvalidInput, match="generated_score"):
        BRMGR(settings={"generated_score": "words"})
    with pytest.raises(InvalidInput, match="preset"):
        BRMGR(preset="upr")
