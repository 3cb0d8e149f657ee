from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.llm import Fetch, Retrieve, arun, run
from drillrank.multihop.path_rerank import PathRerank, named_links
from drillrank.multihop.search import Hop, Nowhere, as_source, handlers
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

    @property
    def handlers(self):
        async def retrieve(request):
            await self._wait()
            return self.retrieve(request.query, request.n)

        async def fetch(request):
            await self._wait()
            return self.fetch(request.ids)

        return {Retrieve: retrieve, Fetch: fetch, Hop: id}

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

    expected = run(reranker.requests(QUERY, first), handlers=handlers(library, heard.append))
    found = asyncio.run(arun(reranker.requests(QUERY, first), handlers=library.handlers | {Hop: aheard.append}))
    assert shown(found) == shown(expected)
    assert [[path.passage for path in hop.paths] for hop in heard] == [
        [path.passage for path in hop.paths] for hop in aheard
    ]


async def test_lookups_of_one_hop_are_done_at_the_same_time():
    reranker, first, library = ranked_by([("a red fox", ["4"]), ("the river", ["5"])] * 3, 4)
    await arun(reranker.requests(QUERY, first), handlers=library.handlers)
    assert library.most_at_once >= 3


def test_an_error_of_the_source_reaches_the_caller():
    class Broken(Nowhere):
        def fetch(self, ids):
            raise OSError("no such store")

    def steps():
        yield [Fetch(("a",))]

    with pytest.raises(OSError, match="no such store"):
        run(steps(), handlers=handlers(Broken()))


def test_a_plain_retriever_function_fetches_nothing():
    source = as_source(lambda query, n: [Passage(query)] * n)
    assert len(source.retrieve("a", 2)) == 2
    assert list(source.fetch(["a"])) == []


@pytest.mark.parametrize("source", [7, "retriever", None, object()])
def test_what_retrieves_nothing_is_refused(source):
    with pytest.raises(InvalidInput, match="retrieves nothing"):
        as_source(source)
