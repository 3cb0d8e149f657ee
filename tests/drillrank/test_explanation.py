"""Explanations add up to the scores, whatever ranked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import UPR, Passage, Path, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.evaluation import explain
from drillrank.likelihood import UnigramModel

QUERY = "Where does the red fox live?"
TEXTS = st.lists(st.text("abfox red livewhale ", max_size=40), min_size=1, max_size=6, unique=True)
CHAIN = [
    Passage("Alan Turing was born in Maida Vale.", id="turing", title="Turing", links=("vale",)),
    Passage("Maida Vale is a residential district of London.", id="vale", title="Maida Vale"),
    Passage("Basel lies on the Rhine.", id="basel"),
    Passage("The red fox is the largest of the true foxes.", id="fox"),
]
BIRTH = "Which residential district was Turing born in?"


def add_up(found, ranking):
    assert [item.total for item in found] == pytest.approx([entry.score for entry in ranking], abs=1e-6)
    assert [item.rank for item in found] == [entry.rank for entry in ranking]


@given(TEXTS, st.sampled_from([None, "retrieval"]))
def test_of_upr(texts, prior):
    ranker = UPR(prior=prior)
    ranking = ranker.rank(QUERY, texts)
    add_up(explain(QUERY, ranking, ranker), ranking)


@given(TEXTS, st.sampled_from([0.7, 1.0, 1.4]), st.sampled_from(["max", "mean"]))
def test_of_prompt_rank(texts, temperature, ensemble):
    ranker = PromptRank(temperature=temperature, ensemble=ensemble)
    paths = [Path((Passage(text),)) for text in texts] + [Path((Passage(texts[0]), Passage("a red fox")))]
    ranking = ranker.rank(QUERY, paths)
    found = explain(QUERY, ranking, ranker)
    add_up(found, ranking)
    for item, entry in zip(found, ranking, strict=True):
        for token in item.tokens:
            assert len(token.shares) == len(entry.passage.passages)
            assert sum(token.shares) == pytest.approx(1)


def test_of_path_search_with_the_document_that_brings_each_word():
    search = PathSearch(PromptRank(), CHAIN)
    ranking = search.search(BIRTH)
    found = explain(BIRTH, ranking, search)
    add_up(found, ranking)
    assert found[0].documents == ("Turing", "Maida Vale")
    shares = {token.token: token.shares for token in found[0].tokens}
    assert shares["ture"][0] > 0.9
    assert shares["district"][1] > 0.9
    assert found[0].log_prior < 0
    assert "Turing → Maida Vale" in str(found)
    assert "prior" in str(found)
    paths = search.search_paths(BIRTH)
    add_up(explain(BIRTH, paths, search), paths)


def test_a_word_that_is_in_the_passage_gains_and_others_lose():
    model = UnigramModel().fit(passage.titled_text for passage in CHAIN)
    ranker = UPR(model)
    ranking = ranker.rank(QUERY, CHAIN, top_n=1)  # fitted: a cut ranking will do
    best = explain(QUERY, ranking, ranker)[0]
    assert {token.token for token in best.tokens if token.gain > 0} == {"the", "red", "fox"}
    assert best.levelled == 0


def test_html_shows_text_as_text():
    ranking = UPR().rank("a <b> fox", [Passage("a fox", title="<script>alert(1)</script>")])
    html = explain("a <b> fox", ranking)._repr_html_()
    assert "<script" not in html
    assert "&lt;script" in html


def test_another_ranker_and_missing_candidates_are_refused():
    ranking = UPR().rank(QUERY, CHAIN)
    with pytest.raises(InvalidInput, match="give the ranker that made the ranking"):
        explain(QUERY, ranking, UPR(UnigramModel(mu=10)))
    with pytest.raises(InvalidInput, match="all candidates"):
        explain(QUERY, UPR().rank(QUERY, [*CHAIN, *[f"fox number {i}" for i in range(9)]])[:1])
    assert explain(QUERY, []) == []
