"""Unlinked pairs and the prior in path search, and how many paths the model scores."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.likelihood import UnigramModel
from drillrank.multihop.links import RetrievedLinks, passage_links
from drillrank.multihop.mentions import NameMentions
from drillrank.multihop.prior import PathPrior, RandomSurfer
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage
from drillrank.rerank.promptrank import PromptRank
from tests.drillrank.multihop.graphs import QUERY, graphs, ranker, scored_prompts

NUMBERS = {"hops": st.integers(1, 4), "pool": st.integers(1, 8), "beam": st.integers(1, 4), "branch": st.integers(1, 3)}
OPTIONS = st.fixed_dictionaries({**NUMBERS, "pairs": st.integers(0, 5), "link_prior": st.none() | st.just(PathPrior())})


@given(graphs(max_size=8), OPTIONS)
def test_the_model_scores_no_more_paths_than_said_and_none_twice(hash_model, passages, options):
    model = hash_model()
    paths = PathSearch(ranker(model), passages, settings=options).search_paths(QUERY)
    prompts = scored_prompts(model)
    assert len(prompts) == len(set(prompts)) == len(paths)
    hops, pairs = options["hops"], options["pairs"]
    first = min(options["pool"], len(passages))
    assert len(prompts) <= first + options["beam"] * options["branch"] * (hops - 1) + pairs * (pairs - 1) // 2
    assert all(len(set(path.passage.ids)) == len(path.passage.ids) <= hops for path in paths)


def test_by_default_the_papers_beam_and_a_wider_one_where_scores_cost_nothing(hash_model):
    passages = [Passage(f"river {i}", id=str(i), links=[str((i + k) % 60) for k in range(1, 11)]) for i in range(60)]
    settings = {"pool": 40, "pairs": 0, "link_prior": None}  # with a price, two hops would be enough
    searches = [PathSearch(ranker(model), passages, settings=settings) for model in (hash_model(), UnigramModel())]
    paths = [len(search.search_paths(QUERY)) for search in searches]
    assert paths == [40 + 5 * 3, 40 + 2 * 10 * 8]  # the paper's two hops, and three


@given(graphs(max_size=7), st.integers(2, 7), st.sampled_from([1, 2, 100]))
def test_pairs_join_the_best_passages_that_do_not_link(hash_model, passages, pairs, beam):
    options = {"pairs": pairs, "link_prior": None, "beam": beam, "branch": 100}
    paths = PathSearch(ranker(hash_model()), passages, settings=options).search_paths(QUERY)
    best = [item.passage.passages[0] for item in paths if len(item.passage.ids) == 1][:pairs]
    expected = {
        (one.id, other.id)
        for one, other in combinations(best, 2)
        if other.id not in one.links and one.id not in other.links
    }
    linked = {(one.id, other) for one in passages for other in one.links}
    assert {item.passage.ids for item in paths if len(item.passage.ids) == 2} - linked == expected


def test_a_blank_passage_shares_no_score(hash_model):
    passages = [Passage("The fox met a river in town.", id="a"), Passage(" ", id="b"), Passage("", id="c", title="\n")]
    paths = PathSearch(ranker(hash_model()), passages).search_paths(QUERY)
    assert sorted(item.passage.ids for item in paths) == [("a",), ("b",), ("c",)]


def test_passages_that_share_a_name_are_joined_all_the_same(hash_model):
    passages = [Passage(f"Fox {i} met Emma Stone in town.", id=str(i)) for i in range(4)]
    options = {"pairs": 4, "beam": 1, "branch": 1}
    paths = PathSearch(ranker(hash_model()), passages, links=NameMentions(), settings=options).search_paths(QUERY)
    assert len({frozenset(item.passage.ids) for item in paths if len(item.passage.ids) == 2}) == 6


@given(graphs(max_size=7), st.integers(1, 7))
def test_longer_paths_go_on_to_the_best_passages_too(hash_model, passages, pairs):
    options = {"hops": 3, "pairs": pairs, "link_prior": None, "beam": 100, "branch": 100}
    paths = PathSearch(ranker(hash_model()), passages, settings=options).search_paths(QUERY)
    best = {item.passage.ids[0] for item in [item for item in paths if len(item.passage.ids) == 1][:pairs]}
    linked = {passage.id: set(passage.links) for passage in passages}
    known = {passage.id for passage in passages}
    found = {item.passage.ids for item in paths}
    expected = {
        (*ids, new) for ids in found if len(ids) == 2 for new in (best | linked[ids[-1]]) & known if new not in ids
    }
    assert {ids for ids in found if len(ids) == 3} == expected


def test_a_question_that_compares_what_links_lead_to_finds_all_four():
    """Two films that the question names, and their directors, whom only the films link to."""
    films = [
        Passage("A film of 1943 directed by George Stevens.", title="The More the Merrier", id="f1", links=("d1",)),
        Passage("A film of 1948 directed by Douglas Sirk.", title="Sleep, My Love", id="f2", links=("d2",)),
    ]
    directors = [
        Passage("A director who died in March 1975.", title="George Stevens", id="d1"),
        Passage("A director who died in January 1987.", title="Douglas Sirk", id="d2"),
    ]
    noise = [Passage(f"A film of the director number {i}.", title=f"Picture {i}") for i in range(9)]
    question = "Which film has the director who died later, The More the Merrier or Sleep, My Love?"
    search = PathSearch(PromptRank(), [*noise, *directors, *films])
    assert any(set(item.passage.ids) == {"f1", "d1", "f2"} for item in search.search_paths(question))
    assert {item.passage.id for item in search.search(question)[:4]} == {"f1", "f2", "d1", "d2"}


@given(graphs(max_size=7), st.lists(st.sampled_from(["Red Fox", "River", "Town", ""]), max_size=7), st.integers(1, 4))
def test_scores_are_posteriors(hash_model, passages, titles, hops):
    question = "Which Red Fox crossed the River"
    passages = [replace(passage, title=title) for passage, title in zip(passages, [*titles, *[""] * 7], strict=False)]
    options = {"hops": hops, "beam": 100, "branch": 100}
    prior = PathPrior(jump=0.3, named=0.2, single=0.1, longer=0.2, weight=1.5)
    searches = (
        PathSearch(ranker(hash_model()), passages, links=passage_links, settings={**settings, **options})
        for settings in ({"link_prior": prior}, {"link_prior": None, "pairs": 0})
    )
    with_prior, alone = (search.search_paths(question) for search in searches)
    likelihood = {item.passage.ids: item.score for item in alone}
    reader = RandomSurfer(prior, len(passages), [p.id for p in passages if p.title in ("Red Fox", "River")])
    known = {passage.id: passage for passage in passages}
    for item in with_prior:
        ids = item.passage.ids
        steps = [
            reader.log_step(there, [dict.fromkeys(links, 1 / len(links))] if links else [])
            for place, (here, there) in enumerate(pairwise(ids))
            for links in [{link for link in known[here].links if link in known and link not in ids[: place + 1]}]
        ]
        whole = reader.log_start(ids[0]) + sum(steps) + reader.log_length(len(ids))
        assert item.details["log_prior"] == pytest.approx(1.5 * whole)
        if ids in likelihood:  # not a pair
            assert item.score == pytest.approx(likelihood[ids] + item.details["log_prior"] / len(question.split()))
    assert {item.details["log_prior"] for item in alone} <= {0}


@given(graphs())
def test_links_may_be_passages_as_well_as_their_ids(hash_model, passages):
    known = {passage.id: passage for passage in passages}
    by_id = PathSearch(ranker(hash_model()), passages).search_paths(QUERY)
    links = lambda passage: [known.get(link, link) for link in passage.links]  # noqa: E731
    assert PathSearch(ranker(hash_model()), passages, links=links).search_paths(QUERY) == by_id


def test_what_a_retrieval_brings_is_no_link_to_the_prior(hash_model):
    def priors(passages, links):
        search = PathSearch(ranker(hash_model()), passages, links=links, settings={"pairs": 0})
        return {item.passage.ids: item.details["log_prior"] for item in search.search_paths(QUERY)}

    passages = [Passage(f"fox {word}", id=word) for word in ("a", "b", "c")]
    stated = [Passage("fox a", id="a", links=("b",)), *passages[1:]]
    jumps, prior = priors(passages, RetrievedLinks(2)), priors(stated, [passage_links, RetrievedLinks(2)])
    assert jumps[("a", "b")] == jumps[("b", "c")] < prior[("a", "b")]
    assert prior[("b", "c")] == pytest.approx(jumps[("b", "c")])


@given(graphs(), st.integers(1, 9), st.integers(1, 3))
def test_paths_are_told_of_and_cut_like_passages(passages, top_n, hops):
    search = PathSearch(PromptRank(), passages, settings={"hops": hops})
    told = []
    paths = search.search_paths(QUERY, on_hop=told.append)
    assert search.search_paths(QUERY, top_n) == paths[:top_n]
    assert all(item.details["path"] == item.passage.ids for item in paths)
    assert [hop.number for hop in told] == list(range(1, len(told) + 1))
    assert sorted(item.passage.ids for hop in told for item in hop.paths) == sorted(item.passage.ids for item in paths)


def test_links_are_asked_once_a_path_within_the_beam_and_beyond(hash_model):
    asked = []

    class Links:
        def follow(self, query, path):
            asked.append((query, path.ids))
            return [str((int(path.ids[-1]) + 1) % 8)]

    passages = [Passage(f"fox {i}", id=str(i)) for i in range(8)]
    PathSearch(ranker(hash_model()), passages, links=Links(), settings={"beam": 3, "pairs": 5}).search(QUERY)
    assert {query for query, _ in asked} == {QUERY}
    assert len(asked) == len(set(asked)) == 5
