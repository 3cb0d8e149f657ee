"""The beam, and the order of passages that paths bring."""

from __future__ import annotations

import copy
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.likelihood import LanguageModel, Likelihood, UnigramModel
from drillrank.multihop.links import passage_links
from drillrank.multihop.path_rerank import PathRerank
from drillrank.multihop.path_scorer import PathScorer
from drillrank.multihop.prior import PathPrior
from drillrank.multihop.result import CandidatePath
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage, Path
from drillrank.rerank.promptrank import PromptRank
from drillrank.vectors import TfidfIndex
from tests.drillrank.helpers import refuses
from tests.drillrank.multihop.graphs import QUERY, graphs, ranker, scored_prompts

PAPER = {"pairs": 0, "link_prior": None}


def whole_prompt(passages):
    return " ".join(f"Document: {passage.text}" for passage in passages) + " Question:"


def score_of(hash_model, passages):
    log_probs = hash_model.log_probs(whole_prompt(passages), QUERY)
    return sum(log_probs) / len(log_probs)


def simple_paths(passages, hops):
    """Every path of linked, distinct passages with at most so many of them."""
    return [
        path
        for length in range(1, hops + 1)
        for path in permutations(passages, length)
        if all(after.id in before.links for before, after in pairwise(path))
    ]


@given(graphs(), st.integers(1, 8))
def test_a_wide_beam_finds_the_best_path_of_every_passage(hash_model, passages, hops):
    model = hash_model()
    search = PathSearch(ranker(model), passages, settings={"hops": hops, "beam": 10_000, "branch": 10, **PAPER})
    ranking = search.search(QUERY)
    paths = simple_paths(passages, hops)
    assert sorted(scored_prompts(model)) == sorted(map(whole_prompt, paths))  # each exactly once
    for entry in ranking:
        best = max(score_of(hash_model, path) for path in paths if entry.passage in path)
        assert entry.score == pytest.approx(best)
        own = [next(p for p in passages if p.id == step) for step in entry.details["path"]]
        assert entry.passage in own
        assert score_of(hash_model, own) == pytest.approx(best)
    assert sorted(entry.passage.id for entry in ranking) == sorted(passage.id for passage in passages)
    assert [entry.score for entry in ranking] == sorted((entry.score for entry in ranking), reverse=True)
    assert [entry.rank for entry in ranking] == list(range(1, len(ranking) + 1))


def follow(passages, path, branch):
    """The links worth following: each longer path scored whole, by the unigram model."""
    known = {passage.id: passage for passage in passages}
    found = [known[link] for link in dict.fromkeys(path[-1].links) if link in known and known[link] not in path]
    cheap = ranker(UnigramModel().fit([passage.text for passage in passages]))
    scores = [round(score, 9) for [[score], *_] in cheap.score_prompts(QUERY, [Path((*path, new)) for new in found])]
    return [found[i] for i in sorted(range(len(found)), key=lambda i: -scores[i])[:branch]]


@given(graphs(max_size=8), st.integers(1, 4), st.integers(1, 8), st.integers(1, 3), st.integers(1, 3))
def test_the_beam_extends_the_best_paths_by_what_explains_most_then(hash_model, passages, hops, pool, beam, branch):
    model = hash_model()
    search = PathSearch(
        ranker(model), passages, settings={"hops": hops, "pool": pool, "beam": beam, "branch": branch, **PAPER}
    )
    search.search(QUERY)
    similar = TfidfIndex([passage.text for passage in passages]).scores(QUERY)
    first = sorted(range(len(passages)), key=lambda i: (-similar[i], i))[:pool]
    frontier = [(passages[i],) for i in first]
    expected = list(map(whole_prompt, frontier))
    for _ in range(hops - 1):
        frontier.sort(key=lambda path: -score_of(hash_model, path))
        frontier = [(*path, new) for path in frontier[:beam] for new in follow(passages, path, branch)]
        assert len(frontier) <= beam * branch
        expected += map(whole_prompt, frontier)
    assert scored_prompts(model) == expected  # F first passages, then at most K1 * L longer paths a hop


@given(graphs())
def test_a_retriever_in_place_of_the_index(hash_model, passages):
    asked = []

    def first_stage(query, number):
        asked.append((query, number))
        return passages[:number]

    model = hash_model()
    ranking = PathSearch(ranker(model), first_stage=first_stage, settings={"pool": 3}).search(QUERY)
    assert asked == [(QUERY, 3)]
    assert {entry.passage.id for entry in ranking} == {passage.id for passage in passages[:3]}
    starts = [prompt for prompt in scored_prompts(model) if prompt.count("Document:") == 1]
    assert starts == [whole_prompt([passage]) for passage in passages[:3]]


def test_foreign_and_indexed_links_compete_by_what_they_explain(hash_model):
    pool = [Passage("a fox", id="fox"), Passage("a town", id="town"), Passage("a whale", id="whale")]
    far, near = Passage("a whale far outside", id="far"), Passage("the red fox crossed the river", id="near")
    start = Passage("a river", id="start", links=("far", "fox", "near", "town"))
    for links, best in ((start.links, near), (("far", "town", "fox"), pool[0])):
        model = hash_model()
        first = Passage("a river", id="start", links=links)
        found = [first, far, near]
        PathSearch(ranker(model), pool, first_stage=lambda *_: found, settings={"branch": 1, **PAPER}).search(QUERY)  # noqa: B023
        assert scored_prompts(model)[3:] == [whole_prompt([first, best])]


def test_a_retriever_may_find_strings_or_nothing(hash_model):
    assert PathSearch(ranker(hash_model()), first_stage=lambda *_: []).search(QUERY) == []
    [entry] = PathSearch(ranker(hash_model()), first_stage=lambda *_: ["red fox"]).search(QUERY)
    assert entry.passage == Passage("red fox")


class Indifferent(LanguageModel):
    """Every path is as good as any other."""

    spec = "indifferent"

    def log_likelihood_batch(self, requests, temperature, include_eos):
        return [Likelihood(["t"], np.array([-1.0]), -1.0) for _ in requests]


def test_ties_keep_the_order_of_the_first_stage_and_the_shorter_path():
    passages = [Passage(f"n{i}", id=str(i), links=("2", "1", "0")) for i in range(4)]
    ranking = PathSearch(ranker(Indifferent()), passages, settings=PAPER).search(QUERY)
    assert [entry.details["path"] for entry in ranking] == [("0",), ("1",), ("2",), ("3",)]


@given(graphs(), st.integers(1, 7))
def test_searching_again_gives_the_same_and_top_n_its_beginning(passages, top_n):
    before = copy.deepcopy(passages)
    model = UnigramModel()
    search = PathSearch(PromptRank(model), passages)
    ranking = search.search(QUERY)
    assert search.search(QUERY) == ranking
    assert search.search(QUERY, top_n) == ranking[:top_n]
    assert passages == before
    assert model.wants_fit  # the pool was fitted on a copy
    assert all(type(entry.score) is float for entry in ranking)


@given(graphs())
def test_scores_of_a_lexical_model_are_those_of_the_pool_as_collection(passages):
    fitted = PromptRank(UnigramModel().fit([passage.text for passage in passages]))
    by_id = {passage.id: passage for passage in passages}
    for entry in PathSearch(PromptRank(), passages, settings={"link_prior": None}).search(QUERY):
        path = Path(tuple(by_id[step] for step in entry.details["path"]))
        if not set(QUERY.split()).isdisjoint(path.text.split()):  # the others count alike
            assert entry.score == pytest.approx(fitted.score_paths(QUERY, [path])[0][0])


SHARED = [Passage(text, id="1") for text in "abc"]
test_bad_arguments_are_refused_at_once = refuses(
    (lambda: PathSearch(PromptRank()), "needs passages"),
    *((lambda bad=bad: PathSearch(PromptRank(), ["a"], settings=bad), "at least 1")
      for bad in ({"hops": 0}, {"pool": 0}, {"beam": -1}, {"branch": 0}, {"pairs": -1})),
    (lambda: PathSearch(PromptRank(), SHARED), r"must be unique, got 2 .* such as '1'"),
    (lambda: PathSearch(PromptRank(), ["same", "same"]), "must be unique, got 1 "),
    (lambda: PathSearch(PromptRank(), "text"), "Expected a list of passages"),
    (lambda: PathSearch(PromptRank(), [5]), "Item 0"),
)  # fmt: skip


# Reranking a given list by its paths


@given(graphs(), st.lists(st.integers(0, 5), max_size=4), st.randoms(), st.none() | st.integers(1, 9))
def test_reranking_only_reorders(hash_model, passages, repeated, random, top_n):
    given_ = passages + [copy.copy(passages[i]) for i in repeated if i < len(passages)]
    random.shuffle(given_)
    before = copy.deepcopy(given_)
    rerank = PathRerank(ranker(hash_model()))
    ranking = rerank.rank(QUERY, given_)
    positions = [entry.details["position"] for entry in ranking]
    assert sorted(positions) == list(range(len(given_)))
    assert all(entry.passage is given_[position] for entry, position in zip(ranking, positions, strict=True))
    scores = {entry.passage.id: entry.score for entry in ranking}
    assert [entry.score for entry in ranking] == [scores[entry.passage.id] for entry in ranking]
    assert rerank.rank(QUERY, given_, top_n) == ranking[:top_n]
    assert given_ == before


@given(graphs())
def test_reranking_is_path_search_in_the_given_passages(hash_model, passages):
    reranked = PathRerank(ranker(hash_model()), settings={"hops": 3, "beam": 2, "branch": 2}).rank(QUERY, passages)
    searched = PathSearch(ranker(hash_model()), passages, settings={"hops": 3, "beam": 2, "branch": 2}).search(QUERY)
    assert {e.passage.id: e.score for e in reranked} == {e.passage.id: e.score for e in searched}
    assert [e.passage.id for e in reranked] == [e.passage.id for e in searched]


def test_strings_and_nothing_can_be_reranked():
    assert PathRerank(PromptRank()).rank(QUERY, []) == []
    found = PathRerank(PromptRank()).rank("fox", ["town", "fox", "town"])
    assert [item.passage.text for item in found] == ["fox", "town", "town"]


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_each_hop_has_its_own_beam(beam):
    passages = [Passage(f"fox {i}", id=str(i), links=[str(k) for k in range(9) if k != i]) for i in range(9)]
    seen = []
    settings = {"hops": 4, "beam": beam, "branch": 1, **PAPER}
    PathSearch(PromptRank(), passages, links=passage_links, settings=settings).search("which fox?", on_hop=seen.append)
    paths = len(passages)
    for hop in seen[1:]:
        paths = min(paths, beam[min(hop.number - 1, len(beam)) - 1])
        assert len(hop.paths) == paths


# The score of a path

PRIORS = st.lists(st.floats(-9, 0), min_size=6, max_size=6)


@given(graphs(), PRIORS)
def test_a_path_scores_its_mean_log_likelihood_and_its_log_prior(hash_model, passages, priors):
    waiting = [CandidatePath(Path((passage,)), prior) for passage, prior in zip(passages, priors, strict=False)]
    model = hash_model()
    found = PathScorer(ranker(model), [passage.text for passage in passages]).rank_by_posterior(QUERY, waiting)
    assert sorted(item.passage.ids for item in found) == sorted(item.path.ids for item in waiting)
    scores = [item.score for item in found]
    assert scores == sorted(scores, reverse=True)
    prior_by_ids = {item.path.ids: item.log_prior for item in waiting}
    for item in found:
        log_probs = model.log_probs(whole_prompt(item.passage.passages), QUERY)
        assert item.details["log_prior"] == prior_by_ids[item.passage.ids]
        assert item.score == pytest.approx((sum(log_probs) + item.details["log_prior"]) / len(QUERY.split()))
        assert item.details["path"] == item.passage.ids


# From scored paths to passages: which path counts, in which order its passages come, and how many hops there are

TOWNS = [Passage(f"A town of no river, {name}.", id=name) for name in ("Aarau", "Bern", "Chur", "Davos")]


def test_the_passages_of_a_path_come_by_what_each_adds():
    """The one that explains two words before the one that explains one, wherever the path begins."""
    wide = Passage("Its harbour was filmed at dawn.", id="wide")
    film = Passage("The pier.", id="film", links=("wide",))
    for start in (film, wide):
        other = wide if start is film else film
        start, other = (Passage(p.text, id=p.id, links=(q.id,)) for p, q in ((start, other), (other, start)))
        found = PathSearch(PromptRank(), [start, other, *TOWNS]).search("pier harbour filmed dawn")
        assert [item.passage.id for item in found[:2]] == ["wide", "film"]
        assert found[0].details["path"] == found[1].details["path"]


def test_a_question_that_one_passage_answers_has_it_first():
    """No pair with a passage that explains nothing more hides it, whatever that passage links to."""
    licence = Passage("texmath is distributed under the GPL licence.", id="texmath", title="texmath README")
    node = Passage("A runtime for servers.", id="node", title="nodejs README", links=("texmath",))
    found = PathSearch(PromptRank(), [node, licence, *TOWNS]).search("Under which licence is texmath distributed?")
    assert found[0].passage.id == "texmath"


def test_passages_of_equal_text_are_two_and_share_no_details():
    first, second = (Passage("silent silent", id=name, links=links) for name, links in (("1", ("2",)), ("2", ())))
    found = PathSearch(PromptRank(), [first, second]).search("silent")
    assert {item.passage.id for item in found} == {"1", "2"}
    found[0].details["own"] = True
    assert "own" not in found[1].details


def chain(length):
    links = [(str(i + 1),) for i in range(length - 1)] + [()]
    return [Passage(f"word{i} leads on", id=str(i), links=links[i]) for i in range(length)]


@pytest.mark.parametrize(("question", "hops"), [("word0 word1 word2", 3), ("word0 word0 word0 word0", 2)])
def test_a_question_gets_the_hops_it_needs(question, hops):
    """A hop that explains nothing more costs its prior, and is the last one; a number that is given is kept to."""
    passages = [*chain(4), *(Passage(f"nothing at all {i}", id=f"x{i}") for i in range(60))]
    for asked, expected in (({"link_prior": PathPrior(single=0.9)}, hops), ({"hops": 4}, 4)):
        seen = []
        PathSearch(PromptRank(), passages, settings={"pairs": 0, **asked}).search(question, on_hop=seen.append)
        assert [hop.number for hop in seen] == list(range(1, expected + 1))
