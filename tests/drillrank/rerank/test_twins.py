"""One question, several, and without blocking the event loop: the same ranking."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import BRMGR, UPR, Passage, Path, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.multihop.path_rerank import PathRerank
from tests.drillrank.conftest import HashModel
from tests.examples import examples

VOCABULARY = ["fox", "river", "town", "Rhine", "Basel", "novel", "Emma", "wrote", "old", "red"]
WORDS = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6)
TEXTS = st.lists(WORDS.map(" ".join), min_size=1, max_size=5)
ASKED = st.lists(st.tuples(WORDS.map(" ".join), TEXTS), min_size=1, max_size=3)


def shown(ranking):
    return [(item.passage, item.score, item.details) for item in ranking]


class Asked(HashModel):
    """Counts what it is asked."""

    def log_likelihood_batch(self, requests, temperature, include_eos):
        self.calls = getattr(self, "calls", 0) + 1
        return super().log_likelihood_batch(requests, temperature, include_eos)


def test_a_model_without_a_collection_is_asked_once_for_all_questions():
    queries = ["Which town?", "Which river?", "Who wrote Emma?"]
    found = [["Basel is a town.", "Bonn is a town."], ["The Rhine is a river."], ["Austen wrote Emma."]]
    written = [["Basel."], ["The Rhine.", "The Rhine.", ""], []]
    paths = [[Path((Passage(text),)) for text in texts] for texts in found]
    for kind, lists, calls in ((BRMGR, (found, written), 2), (PromptRank, (paths,), 1)):  # 2: of what was written, too
        model = Asked()
        many = kind(model).rank_many(queries, *lists)
        assert model.calls == calls
        assert list(map(shown, many)) == [shown(kind(model).rank(*one)) for one in zip(queries, *lists, strict=True)]
        with pytest.raises(InvalidInput, match="cannot be paired"):
            kind(model).rank_many([*queries, "one more"], *lists)


@pytest.mark.parametrize("kind", [UPR, PromptRank, BRMGR])
@pytest.mark.parametrize("model", ["unigram", HashModel()], ids=["unigram", "hash"])
@settings(max_examples=examples(10))
@given(asked=ASKED, drawn=st.randoms())
def test_scores_of_the_first_stage_are_those_of_their_question(kind, model, asked, drawn):
    ranker = kind(model, prior="retrieval")
    queries, texts = map(list, zip(*asked, strict=True))
    known = {text: drawn.random() for own in texts for text in own}  # a document has one score
    scores = [[known[text] for text in own] if drawn.random() < 0.7 else None for own in texts]
    lists = [[[Path((Passage(text),)) for text in own] for own in texts] if kind is PromptRank else texts]
    lists += [texts[::-1]] * (kind is BRMGR)
    alone = [shown(ranker.rank(*one, scores=stage)) for *one, stage in zip(queries, *lists, scores, strict=True)]
    assert [shown(found) for found in ranker.rank_many(queries, *lists, scores=scores)] == alone
    assert [shown(found) for found in asyncio.run(ranker.arank_many(queries, *lists, scores=scores))] == alone
    with pytest.raises(InvalidInput, match="cannot be paired"):
        ranker.rank_many(queries, *lists, scores=[*scores, None])
    with pytest.raises(InvalidInput, match="has no prior"):
        kind(model, prior=None).rank_many(queries, *lists, scores=scores)


@settings(max_examples=examples(20))
@given(st.lists(WORDS.map(" ".join), min_size=2, max_size=6, unique=True), st.lists(WORDS.map(" ".join), min_size=1))
def test_what_searches(texts, queries):
    passages = [Passage(text, id=str(number), links=(str(number - 1),)) for number, text in enumerate(texts)]
    search = PathSearch(PromptRank(), passages)
    hops = []
    alone = [shown(search.search(query, 3)) for query in queries]
    assert [shown(found) for found in search.search_many(queries, 3)] == alone
    told = [asyncio.run(search.asearch(query, 3, on_hop=lambda hop: hops.append(hop.number))) for query in queries]
    assert [shown(found) for found in told] == alone
    assert hops.count(1) == len(queries)
    rerank = PathRerank(PromptRank())
    assert shown(asyncio.run(rerank.arank(queries[0], passages))) == shown(rerank.rank(queries[0], passages))
