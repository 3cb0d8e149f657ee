"""The first stage as prior of paths: PromptRank's, and that of a path search."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.likelihood import UnigramModel
from drillrank.llm import run
from drillrank.multihop.path_rerank import PathRerank
from drillrank.multihop.prior import PathPrior
from drillrank.multihop.search import PathSearch
from drillrank.multihop.sources import EmptySource, handlers
from drillrank.passages import Passage, Path
from drillrank.rerank.prior import FirstStage, first_stage, log_prior, posteriors
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.upr import UPR
from tests.drillrank.helpers import refuses

WORDS = ["a red fox", "a red fox crossed the river", "a river", "whales", "The town lies on a red river."]
QUERIES = st.sampled_from(["red fox", "which river?", "the fox crossed", "zebra"])
SCORES = st.integers(-2000, 2000).map(lambda score: score / 2)
PRIORS = st.sampled_from(["retrieval", "cosine"])
POOL = [Passage(text, id=str(number)) for number, text in enumerate(WORDS)]
PATHS = st.lists(st.lists(st.sampled_from(POOL), min_size=1, max_size=3, unique=True).map(Path), max_size=8)


def of_starts(paths, scores):
    return [scores[int(path.ids[0])] for path in paths]


def in_order(ranking):
    return sorted(ranking, key=lambda item: item.details["position"])


def scores_of(prior, data):
    return data.draw(st.lists(st.floats(-1, 1) if prior == "cosine" else SCORES, min_size=5, max_size=5))


@given(QUERIES, PATHS, PRIORS, st.booleans(), st.data())
def test_the_prior_of_a_path_is_that_of_its_first_document(hash_model, query, paths, prior, lexical, data):
    model = "unigram" if lexical else hash_model()
    scores = scores_of(prior, data)
    alone = in_order(PromptRank(model).rank(query, paths))
    found = in_order(PromptRank(model, prior=prior).rank(query, paths, scores=of_starts(paths, scores)))
    by_start = {}
    for path, item, plain in zip(paths, found, alone, strict=True):
        log_prior = item.details["log_prior"]
        assert by_start.setdefault(path.ids[0], log_prior) == log_prior
        assert item.score == pytest.approx(plain.score + log_prior / max(item.details["tokens"], 1))
        assert {**item.details, "log_prior": None} == {**plain.details, "log_prior": None}
    assert math.fsum(map(math.exp, by_start.values())) == pytest.approx(1 if paths else 0)
    for one, first in by_start.items():
        for two, second in by_start.items():
            if scores[int(one)] > scores[int(two)]:
                assert first >= second - 1e-9


@given(QUERIES, st.permutations(POOL), PRIORS, st.data())
def test_paths_of_one_passage_have_the_prior_that_upr_gives_them(query, passages, prior, data):
    scores = scores_of(prior, data)
    paths, weight = [Path((passage,)) for passage in passages], data.draw(st.sampled_from([1.0, 2.5]))
    ranking = PromptRank(prior=prior, settings={"prior_weight": weight}).rank(query, paths, scores=scores)
    upr = UPR(prior=prior, prior_weight=weight).rank(query, passages, scores=scores)
    expected = {item.details["position"]: item.details["log_prior"] for item in upr}
    assert {item.details["position"]: item.details["log_prior"] for item in ranking} == pytest.approx(expected)


@given(QUERIES, PATHS)
def test_without_scores_the_prior_of_paths_is_uniform(query, paths):
    ranker, alone = PromptRank(prior="retrieval"), PromptRank().rank(query, paths)
    shown = [(item.passage, item.score, item.details) for item in alone]
    for scores in (None, [None] * len(paths)):
        assert [(item.passage, item.score, item.details) for item in ranker.rank(query, paths, scores=scores)] == shown


@given(st.lists(st.integers(-90, 0).map(lambda meaning: meaning / 10), min_size=3, max_size=8))
def test_a_likelihood_that_knows_meaning_is_judged_by_the_best_path_of_each_document(meanings):
    """Worse paths that begin with the same documents change nothing."""
    documents = [Passage(f"document {place}", id=str(place)) for place in range(len(meanings))]
    once = [Path((document,)) for document in documents]
    longer = [path.with_passage(Passage("another", id="another")) for path in once]
    scored = [((meaning - 4.0) / 5, {"tokens": 5, "log_meaning": meaning}) for meaning in meanings]
    worse = [(score - 9.0, {"tokens": 5, "log_meaning": -90.0 + place}) for place, (score, _) in enumerate(scored)]
    scores = [-float(place) for place in range(len(meanings))]
    alone = posteriors(scored, first_stage("retrieval", once, scores))
    both = posteriors([*worse, *scored], first_stage("retrieval", [*longer, *once], [*scores, *scores]))
    priors = [details["log_prior"] for _, details in alone]
    assert [details["log_prior"] for _, details in both] == pytest.approx([*priors, *priors])


class Unasked(UnigramModel):
    def log_likelihood_lists(self, *_, **__):
        raise AssertionError("the model was asked")


FOX, RIVER = Path((POOL[0],)), Path((POOL[2],))
COUNTS, PLAIN = PromptRank(Unasked(), prior="retrieval"), PathRerank(PromptRank())
test_what_cannot_be_used_is_refused_before_a_model_is_asked = refuses(
    (lambda: COUNTS.rank("fox", [FOX, RIVER], scores=[1.0]), "1 scores and 2 paths"),
    (lambda: COUNTS.rank("fox", [FOX, RIVER], scores=[1.0, math.nan]), r"score of passage 1 \(id '2'\) is nan"),
    (lambda: COUNTS.rank("fox", [FOX, FOX.with_passage(POOL[1])], scores=[1.0, 2.0]),
     r"Paths 0 and 1 begin with the same passage \(id '0'\)"),
    (lambda: PromptRank(Unasked(), prior="cosine").rank("fox", [FOX]), "needs scores, the cosine"),
    (lambda: PromptRank(Unasked()).rank("fox", [FOX], scores=[1.0]), "this ranker has no prior"),
    (lambda: PromptRank(prior="uniform"), "prior"),
    *((lambda wrong=wrong: PathSearch(PromptRank(), POOL, settings={"link_prior": wrong}),
       "link_prior must be a PathPrior") for wrong in ("uniform", 1, True)),
    (lambda: PLAIN.rank("fox", POOL, scores=[1.0] * 5), "this ranker has no prior"),
    (lambda: PathRerank(COUNTS).rank("fox", POOL, scores=[1.0] * 4), "4 scores and 5 passages"),
)  # fmt: skip


LINKED = [
    Passage("Turing was born in Maida Vale.", title="Alan Turing", id="turing"),
    Passage("It is a district of London.", title="Maida Vale", id="vale"),
    Passage("London is a city.", title="London", id="london"),
    Passage("Basel lies on the Rhine.", title="Basel", id="basel"),
]
QUESTION = "Which district was Turing born in?"


@given(st.permutations(LINKED), PRIORS, st.none() | st.just(PathPrior(jump=0.2)))
def test_the_posterior_of_a_searched_path_is_likelihood_links_and_first_stage(passages, prior, links):
    scores = [0.1 * place for place in range(len(passages))]
    options = {"hops": 2, "link_prior": links}
    without, search = (PathRerank(PromptRank(prior=of), settings=options).path_search for of in (None, prior))
    alone = {item.passage.ids: item for item in _paths(without, QUESTION, passages)}
    found = _paths(search, QUESTION, passages, scores)
    begun = {item.passage.ids[0]: item for item in found if len(item.passage.ids) == 1}
    assert set(begun) == {passage.id for passage in passages}
    starts = {name: item.details["log_prior"] - alone[name,].details["log_prior"] for name, item in begun.items()}
    expected = log_prior(FirstStage.read(prior, passages, scores)).tolist()
    assert [starts[passage.id] for passage in passages] == pytest.approx(expected, abs=1e-9)
    for item in found:
        plain = alone.get(item.passage.ids)
        if plain is not None:
            start = starts[item.passage.ids[0]]
            assert item.details["log_prior"] == pytest.approx(plain.details["log_prior"] + start)
            assert item.score == pytest.approx(plain.score + start / item.details["tokens"])


def _paths(search, query, passages, scores=None):
    return run(search.path_requests(query, candidates=passages, scores=scores), handlers=handlers(EmptySource()))


def test_a_search_counts_the_order_of_what_its_first_stage_brought():
    passages = [Passage(f"The {town} bridge crosses the river.", id=town) for town in ("Basel", "Bonn", "Worms")]
    for order in (passages, passages[::-1]):
        ranker = PromptRank(prior="retrieval")
        search = PathSearch(ranker, first_stage=lambda query, n, order=tuple(order): order[:n], settings={"pairs": 0})
        found = search.search("Which bridge crosses the river?")
        assert [item.passage for item in found] == order
        assert found[0].score > found[1].score > found[2].score


@given(st.permutations(POOL), st.lists(SCORES, min_size=5, max_size=5, unique=True))
def test_where_nothing_matches_the_first_stage_decides(passages, scores):
    found = PathRerank(PromptRank(prior="retrieval")).rank("zebra", passages, scores=scores)
    assert [item.details["position"] for item in found] == sorted(range(5), key=lambda place: -scores[place])
    assert all(item.details["nothing_matched"] for item in found)


@given(QUERIES, st.permutations(POOL), st.lists(SCORES, min_size=5, max_size=5), st.integers(0, 4))
def test_a_passage_given_twice_has_the_score_it_was_first_given(query, passages, scores, place):
    search = PathRerank(PromptRank(prior="retrieval"))
    once = {item.passage.id: item.score for item in search.rank(query, passages, scores=scores)}
    twice = search.rank(query, [*passages, passages[place]], scores=[*scores, 5000.0])
    assert len(twice) == 6
    assert all(item.score == pytest.approx(once[item.passage.id]) for item in twice)
