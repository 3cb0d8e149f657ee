"""TF-IDF over the stores of both frameworks follows the same links as in memory."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

from drillrank import Passage, PathSearch, PromptRank
from drillrank.errors import DrillrankWarning
from drillrank.multihop.link_names import named_links
from tests.conformance.frameworks import both_frameworks
from tests.examples import some

_WORDS = ["river", "castle", "novel", "bridge", "harbor", "painter", "war", "lake", "school", "film", "mother", "king"]
_SETTINGS: dict[str, Any] = {"prune": "tfidf", "hops": 3, "beam": 3, "branch": 2, "pairs": 0, "link_prior": None}
_N_FIRST = 2


def _make_collection(seed: int) -> tuple[list[Passage], str]:
    """Return passages with more links than a path follows, and a question."""
    chance = random.Random(seed)
    ids = [f"p{number}" for number in range(chance.randint(6, 14))]
    passages = [
        Passage(
            " ".join(chance.choices(_WORDS, k=chance.randint(3, 9))),
            id=id_,
            title=f"Title {id_}",
            metadata={"links": chance.sample(ids, 5)},
        )
        for id_ in ids
    ]
    return passages, " ".join(["Which", *chance.choices(_WORDS, k=4)])


@both_frameworks
@pytest.mark.parametrize("seeds", some([range(start, start + 20) for start in range(0, 200, 20)], 3), ids=str)
def test_a_docstore_is_searched_like_passages_in_memory(host, seeds):
    n_pruned = 0
    for seed in seeds:
        passages, question = _make_collection(seed)
        first = passages[:_N_FIRST]
        search = PathSearch(
            PromptRank(),
            passages,
            links=named_links(["metadata"]),
            first_stage=lambda _query, _n, first=first: first,
            settings=_SETTINGS,
        )
        expected = search.search(question)
        records = [host.record(one.text, one.id, title=one.title, **one.metadata) for one in passages]
        retriever = host.ext.PromptRankRetriever(
            documents=records,
            source=host.retriever(*records[:_N_FIRST]),
            store=host.store(*records),
            links=["metadata"],
            top_n=None,
            settings=_SETTINGS,
        )
        results = host.both(retriever, question)
        assert [(one.id, one.metadata["drillrank_path"], one.score) for one in results] == [
            (one.passage.id, " > ".join(one.details["path"]), one.score) for one in expected
        ]
        n_pruned += len(results) < len(passages)
    assert n_pruned > len(seeds) / 2  # links were left out, so the choice among them counts


_QUESTION = "which red fox crossed the river"
_ONE_LINK: dict[str, Any] = {**_SETTINGS, "hops": 2, "branch": 1}
_UNKNOWN_COLLECTION = "the source gives no statistics of its collection"


@both_frameworks
def test_a_text_is_compared_as_the_store_has_it_now(host):
    start = host.record("a river", "start", links=["near", "far"])
    near, far = host.record("a red town", "near"), host.record("nothing", "far")
    retriever = host.ext.PromptRankRetriever(
        documents=[start, near, far],
        source=host.retriever(start),
        store=host.store(start, near, host.changed(far, _QUESTION)),
        links=["metadata"],
        top_n=None,
        settings=_ONE_LINK,
    )
    with pytest.warns(DrillrankWarning, match="other texts under the ids"):
        results = host.retrieve(retriever, _QUESTION)
    assert sorted(one.id for one in results) == ["far", "start"]


@both_frameworks
def test_over_a_bare_store_the_records_that_were_read_are_counted_with_one_warning(host):
    """Both linked records contain one word of the question. "red" is in more of the records that were read."""
    start = host.record("a red fox", "start", links=["red", "river"])
    other = host.record("a red town", "other")
    red, river = host.record("red stone", "red"), host.record("river stone", "river")
    hidden = [host.record("river", f"hidden {number}") for number in range(9)]  # nobody reads these
    retriever = host.ext.PromptRankRetriever(
        source=host.retriever(start, other),
        store=host.store(start, other, red, river, *hidden),
        links=["metadata"],
        top_n=None,
        settings=_ONE_LINK,
    )
    with pytest.warns(DrillrankWarning, match=_UNKNOWN_COLLECTION) as warned:
        results = host.both(retriever, "red river")
    assert {one.id for one in results} == {"start", "other", "river"}
    assert len(warned) == 1


@both_frameworks
def test_documents_that_are_given_need_no_warning(host):
    passages, question = _make_collection(0)
    records = [host.record(one.text, one.id, title=one.title, **one.metadata) for one in passages]
    retriever = host.ext.PromptRankRetriever(
        documents=records,
        source=host.retriever(*records[:_N_FIRST]),
        store=host.store(*records),
        links=["metadata"],
        settings=_SETTINGS,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert host.both(retriever, question)
