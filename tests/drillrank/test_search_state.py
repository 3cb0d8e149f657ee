"""One question's search: where paths lead, what the prior hears of it, and which steps are taken."""

from __future__ import annotations

from collections import ChainMap
from typing import ClassVar

import numpy as np
import pytest

from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.likelihood.encoder import KAPPA
from drillrank.llm import Ask, Reply, Retrieve, run
from drillrank.multihop.first_hop import FirstHop
from drillrank.multihop.links import Mention
from drillrank.multihop.lookups import Nowhere, handlers
from drillrank.multihop.missing import Missing, missing_query
from drillrank.multihop.path_ranking import is_over, ranked_passages, ranked_paths
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.residual import Residual
from drillrank.multihop.scoring import PathScorer, PathWithPrior
from drillrank.multihop.search import PathSearch, Scope
from drillrank.multihop.search_state import SearchState
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.prior import first_stage, posteriors
from drillrank.rerank.promptrank import PromptRank

QUERY = "which red fox crossed the river"
PASSAGES = {name: Passage(text, id=name) for name, text in zip("abcd", ("fox", "red", "river", "town"), strict=True)}


class Leading:
    """Links of every path to the same targets."""

    def __init__(self, *targets):
        self.targets = targets

    def follow(self, query, path):
        return self.targets


class Telling:
    """A reader that keeps what it is told, and likes some passages."""

    def __init__(self, **likes):
        self.likes = likes
        self.told = []

    def start(self, name):
        return self.likes.get(name, 0.0)

    def length(self, passages):
        return -passages

    def step(self, name, links, mentions):
        self.told.append((name, set(links), dict(mentions)))
        return self.likes.get(name, 0.0)


def state_of(*targets, own="abcd", reachable="abcd", reader=None):
    def some(names):
        return {name: PASSAGES[name] for name in names}

    return SearchState(QUERY, Leading(*targets), some(own), ChainMap({}, some(reachable)), reader)


def told_of(state, path="a", to="b"):
    reader = state._reader
    state._steps(Path(tuple(PASSAGES[name] for name in path)), [to])
    [(_, links, mentions)] = reader.told
    reader.told.clear()
    return links, mentions


def test_mentions_of_one_passage_add_up_and_stand_apart_from_links():
    targets = [Mention("b", 0.25), "nowhere", Retrieve("x", 2), "a", Mention("b", 0.5), Mention("c", 0.125), "d"]
    links, mentions = told_of(state_of(*targets, reader=Telling()))
    assert links == {"d"}
    assert mentions == {"b": 0.75, "c": 0.125}


def test_before_links_are_fetched_those_to_known_passages_count_and_after_it_those_that_were_brought():
    state = state_of("b", "c", own="bc", reachable="ab", reader=Telling())
    assert told_of(state) == ({"b", "c"}, {})
    state.led_to["a",] = []
    assert told_of(state) == ({"b"}, {})


def test_a_passage_at_hand_is_linked_to_whatever_the_links_know():
    assert told_of(state_of("b", "c", own="c", reachable="ab", reader=Telling())) == ({"b", "c"}, {})


def test_what_is_missing_shares_the_chance_with_what_the_path_names():
    state = state_of(Mention("b", 0.5), Mention("c", 0.25), reader=Telling())
    state.name([Path((PASSAGES["a"],))], [PASSAGES["c"], PASSAGES["d"], PASSAGES["a"]])
    assert told_of(state) == (set(), {"b": 0.25, "c": 0.125 + 0.25, "d": 0.25})


def test_what_is_missing_has_the_whole_chance_where_the_path_names_nothing():
    state = state_of("b", reader=Telling())
    state.name([Path((PASSAGES["a"],))], [PASSAGES["c"], PASSAGES["d"]])
    assert told_of(state) == ({"b"}, {"c": 0.5, "d": 0.5})


def test_what_is_missing_can_be_reached_and_what_can_be_reached_stays():
    new, other = Passage("new", id="new"), Passage("other", id="b")
    state = state_of(reader=Telling())
    state.name([], [new, other])
    assert state.reachable["new"] is new
    assert state.reachable["b"] is PASSAGES["b"]


@pytest.mark.parametrize(("likes", "best"), [({}, "c"), ({"b": 0.0, "c": -50.0, "d": -50.0}, "b")])
def test_a_path_goes_on_to_the_passage_that_explains_most_in_the_light_of_the_prior(likes, best):
    state = state_of(reader=Telling(**likes))
    first = Path((PASSAGES["a"],))
    residual = Residual(UnigramModel().fit([passage.text for passage in PASSAGES.values()]), QUERY)
    scored = Ranked(first, -1.0, 1, {"log_prior": -2.0})
    others = [PASSAGES[name] for name in ("d", "c")] if not likes else [PASSAGES[name] for name in "dcb"]
    [step] = state.extended([scored], [others], residual, 1)
    assert step.path.ids == ("a", best)
    longer = -1.0  # of two passages, to that reader
    assert step.log_prior == pytest.approx(-2.0 + likes.get(best, 0.0) + longer)


def test_a_path_of_one_passage_is_as_likely_as_its_start_and_its_length():
    assert state_of(reader=Telling(a=-0.5)).start(PASSAGES["a"]).log_prior == pytest.approx(-0.5 - 1.0)
    assert state_of().start(PASSAGES["a"]).log_prior == 0


def test_what_a_path_explains_is_the_sum_over_its_documents():
    model = UnigramModel().fit([passage.text for passage in PASSAGES.values()])
    residual = Residual(model, QUERY)
    passages = list(PASSAGES.values())
    residual.read(passages)
    found = residual.log_likelihoods(Path((PASSAGES["a"], PASSAGES["b"])), [PASSAGES["c"], PASSAGES["d"]])
    each = {name: model.document_log_probs(QUERY, [passage.text])[0] for name, passage in PASSAGES.items()}
    expected = [np.logaddexp.reduce([each["a"], each["b"], each[last]], axis=0).sum() for last in "cd"]
    assert found[0] - found[1] == pytest.approx(expected[0] - expected[1], abs=1e-9)


def scored(names, score, **details):
    passages = tuple(PASSAGES[name] for name in names)
    return Ranked(Path(passages), score, 1, {"tokens": 1, "nothing_matched": False, **details})


def test_a_hop_as_likely_as_the_shorter_ones_goes_on():
    assert not is_over([scored("ab", -1.0)], [scored("a", -1.0)])
    assert is_over([scored("ab", -1.001)], [scored("a", -1.0)])


def test_no_paths_are_no_ranking():
    assert ranked_paths([], keep_first=False) == []
    assert ranked_passages([]) == []


@pytest.mark.parametrize("nothing", [True, False])
def test_every_path_says_whether_nothing_matched(nothing):
    found = [scored("a", -1.0, nothing_matched=nothing, position=0), scored("b", -2.0, position=1)]
    found[1].details["nothing_matched"] = True
    told = ranked_paths(found, keep_first=False)
    assert {item.details["nothing_matched"] for item in told} == {nothing}


def test_pruned_paths_follow_with_the_distances_of_the_pruning_model():
    texts = ["red fox river", "red fox", "fox", "town"]
    paths = [PathWithPrior(Path((Passage(text),)), 0.0) for text in texts]
    plain = PromptRank(UnigramModel(mu=3))
    alone = [item.score for item in PathScorer(plain, texts, None).ranked(QUERY, paths)]
    cut = [item.score for item in PathScorer(plain, texts, 2).ranked(QUERY, paths)]
    gaps = np.diff([item.score for item in PathScorer(PromptRank(), texts, None).ranked(QUERY, paths)])
    assert cut[:2] == pytest.approx(alone[:2])
    assert np.diff(cut)[1:] == pytest.approx(gaps[1:])


def test_without_texts_a_model_is_left_as_it_is():
    model = UnigramModel()
    assert PathScorer(PromptRank(model), [], None).prompt_rank.language_model is model
    assert PathScorer(PromptRank(model), ["a fox"], None).prompt_rank.language_model is not model


def test_a_cosine_is_no_order_of_the_first_stage():
    candidates = [Passage("fox", id="1"), Passage("red", id="2")]
    items = [Ranked(Path((one,)), -1.0, 1, {"tokens": 1, "log_prior": 0.0, "position": 0}) for one in candidates]
    for place, item in enumerate(items):
        item.details |= {"position": place, "nothing_matched": False}
    best, other = FirstHop("cosine", candidates, [0.2, 0.9]).posteriors(items)
    assert best.passage.ids == ("2",)
    assert best.details["log_prior"] - other.details["log_prior"] == pytest.approx(KAPPA * (0.9 - 0.2))


def test_of_paths_that_begin_alike_the_best_one_stands_for_the_first_document():
    """Details cannot be compared, and need not be where two paths are equally likely."""
    paths = [Path((PASSAGES["a"],)), Path((PASSAGES["a"], PASSAGES["b"])), Path((PASSAGES["c"],))]
    stage = first_stage("retrieval", paths, [2.0, 2.0, 1.0])
    known = {"tokens": 1, "nothing_matched": False}
    found = posteriors([(-1.0, {**known, "which": n}) for n in range(3)], stage)
    assert [details["which"] for _, details in found] == [0, 1, 2]
    assert found[0][1]["log_prior"] == found[1][1]["log_prior"] > found[2][1]["log_prior"]


def answered(steps, *answers):
    """What a generator of lookups asks for, and returns."""
    asked = [next(steps)]
    try:
        for answer in answers:
            asked.append(steps.send(answer))  # noqa: PERF401 (its end would end a list in silence)
    except StopIteration as end:
        return asked, end.value
    raise AssertionError("It asks on.")


def test_an_llm_reads_the_documents_of_the_path_apart_and_as_many_passages_are_looked_for_as_wanted():
    path = Path((PASSAGES["a"], PASSAGES["b"]))
    [[ask], [retrieval]], found = answered(
        Missing(PathSettings(), QUERY).after(path, 2), [Reply("the river", None)], [[PASSAGES["c"]] * 3]
    )
    assert isinstance(ask, Ask)
    assert "fox\n\nred" in ask.prompt
    assert retrieval == Retrieve("the river", 2)
    assert list(found) == [PASSAGES["c"]] * 2


@pytest.mark.parametrize(
    ("answer", "query"),
    [
        ("Search query: Query: a title", "Query: a title"),
        ("nothing", None),
        ("X marks the spot", "X marks the spot"),
        ('["a river", "b"]', "a river"),
    ],
)
def test_which_words_of_an_answer_are_the_query(answer, query):
    assert missing_query(answer) == query


def test_settings_of_a_call_go_before_those_of_the_search():
    passages = [Passage("red fox", id="1"), Passage("river", id="2")]
    steps = PathSearch(PromptRank(), passages).requests(QUERY, missing=PathSettings(), candidates=passages)
    asked, answer = [], None
    try:
        while True:
            step = steps.send(answer)
            asked += step
            answer = [Reply("the river", None) if isinstance(step[0], Ask) else ()]
    except StopIteration as end:
        told = end.value
    assert any(isinstance(one, Ask) for one in asked)
    assert told[0].details["missing"] == ("the river",)
    assert "usage" not in told[0].details


def test_what_is_out_of_scope_is_not_named_either():
    rhine, basel = Passage("a river", id="1", title="Rhine"), Passage("a town", id="2", title="Basel")
    zurich = Passage("another town", id="3", title="Zürich")
    query = "Is Basel on the Rhine?"
    steps = PathSearch(PromptRank(), [rhine, basel, zurich]).path_requests(
        query, candidates=[basel, zurich], scope=Scope({"2", "3"})
    )
    scoped = run(steps, handlers=handlers(Nowhere()))
    alone = PathSearch(PromptRank(), [basel, zurich]).search_paths(query)
    priors = [{item.passage.ids: item.details["log_prior"] for item in paths} for paths in (scoped, alone)]
    assert priors[0] == pytest.approx(priors[1])


class Meaning(UnigramModel):
    """Likes short texts, as if it read meaning."""

    reads_meaning = True
    asked: ClassVar[list] = []

    def document_log_probs(self, query, texts, temperature=1.0):
        self.asked.append((query, list(texts)))
        return np.array([[-float(len(text)), -1.0] for text in texts])


def test_a_model_that_reads_meaning_is_the_first_stage():
    passages = [Passage("a long text on foxes", id="1"), Passage("a fox", id="2", title="T"), Passage("b", id="3")]
    search = PathSearch(PromptRank(Meaning().fit(["a fox"])), passages, settings={"hops": 1})
    found = search._source.retrieve(QUERY, 2)
    assert [passage.id for passage in found] == ["3", "2"]
    assert Meaning.asked[-1] == (QUERY, [passage.titled_text for passage in passages])
    assert search._collection._index is None


@pytest.mark.parametrize("top_n", [0, -1])
def test_paths_are_not_cut_to_nothing(top_n):
    with pytest.raises(InvalidInput, match="top_n"):
        PathSearch(PromptRank(), ["a fox"]).search_paths(QUERY, top_n)
