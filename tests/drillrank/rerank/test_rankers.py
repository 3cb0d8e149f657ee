"""What every ranker keeps: inputs as they were, plain scores, ties in input order, one by one as many, clear errors."""

from __future__ import annotations

import asyncio
import copy
import json
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import BRMGR, D3, UPR, MonoT5, Passage, Path, PathSearch, PromptRank, Relevance
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.multihop.path_rerank import PathRerank
from tests.drillrank.conftest import HashModel

texts = st.text(st.characters(codec=None, exclude_characters="\0"), max_size=6) | st.sampled_from(
    ["a red fox", "a river", "{text} {query}", "{title}", " ", "?!"]
)
lists = st.lists(st.builds(Passage, texts, title=texts) | texts, max_size=6)
queries = st.sampled_from(["red fox", "which river?", "???", "{text} crossed"])
top_ns = st.none() | st.integers(1, 8)
RANKERS = {
    "UPR": lambda: UPR(HashModel()),
    "UPR by words": UPR,
    "UPR of a fitted model": lambda: UPR(UnigramModel().fit(["a fox", "whale town"])),
    "UPR of a sum": lambda: UPR("unigram+2*unigram"),
    "Relevance": lambda: Relevance(HashModel(), settings={"chat": False}),
    "MonoT5": lambda: MonoT5(HashModel()),
    "PromptRank": lambda: PromptRank(HashModel()),
    "PromptRank by words": PromptRank,
    "BRMGR": lambda: BRMGR(HashModel(), guard=0.2),
    "BRMGR by words": BRMGR,
    "paths": lambda: PathRerank(PromptRank(), links=[]),
}
by_name = pytest.mark.parametrize("name", RANKERS)


def items_of(name, given_):
    """As the ranker wants them."""
    passages = [item if isinstance(item, Passage) else Passage(item) for item in given_]
    return [Path((passage,)) for passage in passages] if name.startswith("PromptRank") else given_


def rank(name, ranker, query, given_, top_n=None):
    more = (["a river of foxes", "no"],) if name.startswith("BRMGR") else ()
    return ranker.rank(query, items_of(name, given_), *more, top_n)


def shown(ranking):
    return [(entry.passage, entry.score, entry.rank, entry.details) for entry in ranking]


@by_name
@given(queries, lists, top_ns)
def test_a_ranking_is_plain_and_repeatable_and_its_input_is_left_alone(name, query, given_, top_n):
    before, ranker = copy.deepcopy(given_), RANKERS[name]()
    whole, first = rank(name, ranker, query, given_), rank(name, ranker, query, given_, top_n)
    assert given_ == before
    assert shown(rank(name, ranker, query, given_, top_n)) == shown(first)
    assert [(one.passage, one.score) for one in first] == [(one.passage, one.score) for one in whole][:top_n]
    assert [entry.rank for entry in first] == list(range(1, len(first) + 1))
    assert all(type(entry.score) is float and math.isfinite(entry.score) for entry in first)
    scores = [entry.score for entry in first]
    assert scores == sorted(scores, reverse=True)
    assert all(json.loads(json.dumps(entry.details)) for entry in first)
    if name != "paths":
        found = Counter(entry.details["position"] for entry in whole if entry.details.get("origin") != "generated")
        assert found == Counter(range(len(given_)))
    assert ranker.language_model.wants_fit == name.endswith(("by words", "of a sum", "paths"))


@by_name
@given(queries, lists, st.integers(2, 4), st.randoms())
def test_equal_items_tie_in_input_order_and_order_changes_no_score(name, query, given_, copies, random):
    items, ranker = [*given_, *["the same text"] * copies], RANKERS[name]()
    if name in ("BRMGR", "BRMGR by words", "paths"):  # pairs go by rank, and links by what is there
        return
    straight = {entry.details["position"]: entry.score for entry in rank(name, ranker, query, items)}
    tied = [place for place in straight if place >= len(given_)]
    assert tied == sorted(tied)
    assert len({straight[place] for place in tied}) == 1
    order = random.sample(range(len(items)), len(items))
    permuted = rank(name, ranker, query, [items[i] for i in order])
    assert {order[entry.details["position"]]: entry.score for entry in permuted} == pytest.approx(straight)


@by_name
@given(st.lists(st.tuples(queries, lists), max_size=3), top_ns)
def test_many_questions_are_ranked_as_one_by_one_and_a_task_as_a_call(name, asked, top_n):
    ranker = RANKERS[name]()
    written = [["a river of foxes", "no"]] * len(asked)
    given_ = ([items_of(name, items) for _, items in asked], *([written] if name.startswith("BRMGR") else []))
    alone = [ranker.rank(query, *one, top_n) for (query, _), *one in zip(asked, *given_, strict=True)]
    if hasattr(ranker, "rank_many"):
        for many in (ranker.rank_many, lambda *told: asyncio.run(ranker.arank_many(*told))):
            found = many([query for query, _ in asked], *given_, top_n)
            assert [[(i.passage, i.score) for i in ranking] for ranking in found] == [
                [(i.passage, pytest.approx(i.score)) for i in ranking] for ranking in alone
            ]
    for (query, _), *one, ranking in list(zip(asked, *given_, alone, strict=True))[:1]:
        assert "without blocking" in ranker.arank.__doc__
        assert shown(asyncio.run(ranker.arank(query, *one, top_n=top_n))) == shown(ranking)


@by_name
def test_the_given_objects_come_back_also_twice(name):
    one = Passage("a red fox", metadata={"page": [1]})
    ranking = rank(name, RANKERS[name](), "fox", [one, Passage("a river", id="other"), one])
    found = [item.passage.passages[0] if isinstance(item.passage, Path) else item.passage for item in ranking]
    assert sum(passage is one for passage in found) == 2


@by_name
@pytest.mark.parametrize(
    ("query", "given_", "top_n", "match"),
    [
        *((query, ["a"], None, "query") for query in ("", " \n", None, 7)),
        *(("q", ["a"], top_n, "top_n") for top_n in (0, -1, True, 2.0)),
        ("which\ud83e river?", ["a"], None, r"half a character, '\\ud83e' at offset 5"),
        ("q", None, None, r"list|Item 0 must be a Path"),
        ("q", [7], None, r"Item 0 must be a (Passage or a string|Path), got 7"),
    ],
)
def test_input_that_cannot_be_ranked_is_refused(name, query, given_, top_n, match):
    ranker, more = RANKERS[name](), ([],) if name.startswith("BRMGR") else ()
    given_ = "text" if given_ is None else given_ if given_ == [7] else items_of(name, given_)
    with pytest.raises(InvalidInput, match=match):
        ranker.rank(query, given_, *more, top_n)
    if hasattr(ranker, "rank_many") and top_n is None and given_ != "text":
        with pytest.raises(InvalidInput, match=r"2 queries(,| and) 1 lists"):
            ranker.rank_many(["a", "b"], [given_], *([more] if more else ()))


@by_name
def test_half_a_character_in_a_document_is_replaced(name):
    def scores(text):
        return [item.score for item in rank(name, RANKERS[name](), "which river?", [text, "Emma"])]

    if " " in name or name == "paths":  # HashModel takes all as it is
        assert scores("\ud83eriver \ud83e") == scores("\ufffdriver \ufffd")
    searches = [PathSearch(PromptRank(), [Passage(text), Passage("Emma")]) for text in ("\ud83eriver", "\ufffdriver")]
    one, other = ([item.score for item in search.search("which river?")] for search in searches)
    assert one == other


@by_name
def test_a_question_without_end_is_read_up_to_a_limit(name):
    with pytest.warns(DrillrankWarning, match="was truncated to 20000 characters"):
        ranking = rank(name, RANKERS[name](), "why is that so? " * 100_000, ["That is so."])
    assert ranking[0].details.get("tokens", 0) <= 20_000 / 3


def test_d3_reads_a_question_without_end_up_to_a_limit():
    with pytest.warns(DrillrankWarning, match="was truncated to 20000 characters"):
        assert D3().retrieve("why is that so? " * 100_000, ["That is so."])
