"""A judge's log-odds of relevance as a term of the scores."""

from __future__ import annotations

import asyncio

import pytest

from drillrank import D3, Corpus, Relevance, parse_document
from drillrank.drilldown.passage_reader import JUDGE_WEIGHT

MANUAL = "# Battery\n\n" + "\n\n".join(
    f"{text} How long the battery lasts depends on use."
    for text in ("Nobody knows.", "It lasts nine hours.", "Ask the seller.", "It is grey.", "See the label.")
)
QUESTION = "How long does the battery last?"


@pytest.fixture
def judge(hash_model):
    return Relevance(hash_model())


def totals(result):
    return {item.passage.text: item.details["total"] for item in result}


@pytest.mark.parametrize("in_corpus", [False, True])
@pytest.mark.parametrize("unit", ["paragraph", "passage"])
def test_the_best_paragraphs_gain_their_weighted_log_odds(judge, unit, in_corpus):
    documents = [MANUAL]
    if in_corpus:
        documents = Corpus(unit=unit)
        documents.add([(0, parse_document(MANUAL))])
    settings = {"unit": unit, "hops": 1}
    alone = D3(settings=settings).retrieve(QUESTION, documents, 3)
    d3 = D3(settings={**settings, "judge": judge, "read": 2})
    judged = d3.retrieve(QUESTION, documents, 3)
    read = [item for item in judged if item.details["read"]]
    assert len(read) == min(2, len(judged))
    for item in read:
        if item.passage.text in totals(alone):
            gain = JUDGE_WEIGHT * item.details["log_odds"]
            assert item.details["total"] - totals(alone)[item.passage.text] == pytest.approx(gain)
    assert judged[0].score >= judged[-1].score
    assert totals(asyncio.run(d3.aretrieve(QUESTION, documents, 3))) == totals(judged)


def test_every_term_of_a_score_is_explained(judge):
    result = D3(settings={"unit": "paragraph", "judge": judge, "read": 2}).retrieve(QUESTION, [MANUAL], 4)
    for item, explanation in zip(result, result.explain(), strict=True):
        assert sum(term.value for term in explanation.terms) == pytest.approx(item.details["total"])
    by_judge = [term for term in result.explain()[0].terms if term.name == judge.language_model.spec]
    assert [term.value for term in by_judge] == pytest.approx([JUDGE_WEIGHT * result[0].details["log_odds"]])


def test_a_certain_judge_decides(judge, monkeypatch):
    def rank(question, passages):
        return [
            item
            for item in type(judge).rank(judge, question, passages)
            if item.details.update(log_odds=99.0 if "nine hours" in item.passage.text else -9.0) is None
        ]

    monkeypatch.setattr(judge, "rank", rank, raising=False)
    result = D3(settings={"unit": "paragraph", "judge": judge}).retrieve(QUESTION, [MANUAL])
    assert [item.passage.text.partition(".")[0] for item in result] == ["It lasts nine hours"]
