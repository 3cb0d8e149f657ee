from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.multihop.lookups import Fetch, Hop, Nowhere, Retrieval, arun_steps, as_source, run_steps
from drillrank.multihop.path_rerank import PathRerank, named_links
from drillrank.passages import Passage
from drillrank.rerank.promptrank import PromptRank

QUERY = "which red fox crossed the river"
TEXTS = ["a red fox", "the river", "foxes crossed it", "whales sing", "a red whale"]


class Library:
    """The same passages, synchronously and asynchronously."""

    def __init__(self, passages):
        self.passages = {passage.id: passage for passage in passages}
        self.at_once = self.most_at_once = 0

    def retrieve(self, query, n):
        return sorted(self.passages.values(), key=lambda passage: (passage.text not in query, passage.id))[:n]

    def fetch(self, ids):
        return [self.passages[name] for name in ids if name in self.passages]

    async def aretrieve(self, query, n):
        await self._wait()
        return self.retrieve(query, n)

    async def afetch(self, ids):
        await self._wait()
        return self.fetch(ids)

    async def _wait(self):
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1


pools = st.lists(
    st.tuples(st.sampled_from(TEXTS), st.lists(st.integers(0, 6).map(str), max_size=3)), min_size=1, max_size=6
)


def ranked_by(pool, given_count):
    passages = [Passage(text, id=str(i), links=links) for i, (text, links) in enumerate(pool)]
    links = named_links(["relationships", "retrieval"])
    reranker = PathRerank(PromptRank(UnigramModel().fit(TEXTS)), links=links, settings={"hops": 3})
    return reranker, passages[:given_count], Library(passages)


def shown(ranking):
    return [(item.passage.id, item.score, item.rank, item.details) for item in ranking]


@given(pools, st.integers(1, 6))
def test_async_equals_sync(pool, given_count):
    reranker, first, library = ranked_by(pool, given_count)
    heard, aheard = [], []

    async def listen(hop):
        aheard.append(hop)

    expected = run_steps(reranker.steps(QUERY, first), library, heard.append)
    found = asyncio.run(arun_steps(reranker.steps(QUERY, first), library, listen))
    assert shown(found) == shown(expected)
    assert [[path.passage for path in hop.paths] for hop in heard] == [
        [path.passage for path in hop.paths] for hop in aheard
    ]


async def test_lookups_of_one_hop_are_done_at_the_same_time():
    reranker, first, library = ranked_by([("a red fox", ["4"]), ("the river", ["5"])] * 3, 4)
    await arun_steps(reranker.steps(QUERY, first), library)
    assert library.most_at_once >= 3


async def test_the_computation_runs_on_another_thread():
    threads = []

    def steps():
        threads.append(threading.get_ident())
        yield [Hop(1, ())]
        threads.append(threading.get_ident())

    await arun_steps(steps(), Library([]))
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_an_error_of_the_source_reaches_the_caller():
    class Broken(Nowhere):
        def fetch(self, ids):
            raise OSError("no such store")

    def steps():
        yield [Fetch(("a",))]

    with pytest.raises(OSError, match="no such store"):
        run_steps(steps(), Broken())


def test_a_plain_retriever_function_fetches_nothing():
    source = as_source(lambda query, n: [Passage(query)] * n)
    assert len(source.retrieve("a", 2)) == 2
    assert list(source.fetch(["a"])) == []


@pytest.mark.parametrize("source", [7, "retriever", None, object()])
def test_what_retrieves_nothing_is_refused(source):
    with pytest.raises(InvalidInput, match="retrieves nothing"):
        as_source(source)


def test_lookups_are_values():
    assert len({Retrieval("a", 1), Retrieval("a", 1), Fetch(("a",)), Fetch(("a",))}) == 2
