"""TF-IDF over the stores of both frameworks follows the same links as in memory."""

from __future__ import annotations

import random
from typing import Any

import pytest

from drillrank import Passage, PathSearch, PromptRank
from drillrank.multihop.link_names import named_links
from tests.conformance.frameworks import both_frameworks

_WORDS = [
    "river",
    "castle",
    "novel",
    "bridge",
    "harbor",
    "painter",
    "war",
    "lake",
    "school",
    "film",
    "mother",
    "king",
    "tower",
    "garden",
    "letter",
    "mill",
]
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
@pytest.mark.parametrize("seeds", [range(start, start + 20) for start in range(0, 200, 20)], ids=str)
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
