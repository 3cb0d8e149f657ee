"""Retrieval over 4,800 stored views with a filter, beside three searches of the host: time, and stalls of the loop.

    python -m benchmarks filtered_views

In memory in both hosts, with vectors of hashed words, so that no model is measured. A host's search is the one that its
own retriever makes for one view, with the same filter; LlamaIndex takes no function, so that it searches all there. A
stall is the longest time in which the event loop did not come round while one question was answered.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core import VectorStoreIndex
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import langchain_ext
import llama_index_ext
from tests.conformance.frameworks import LangChain, LlamaIndex
from tests.linked_passages import linked_passages, questions

from .stores import vector

SECTIONS, TENANTS, ASKED = 1_600, 4, 15
VIEWS = ("raw", "keywords", "summary")
Work = Callable[[str], Any]


def main(questions: int = ASKED, data: str = "") -> None:
    """Print the table."""
    print(f"{'':30}{'host, 3 searches':>18}{'ours':>12}{'times':>8}{'stall':>11}{'host':>11}")
    texts = [passage.text for passage in islice(linked_passages(SECTIONS), SECTIONS)]
    asked = _questions(questions)
    for host in (_llama_index, _langchain):
        for name, theirs, atheirs, ours, aours in host(texts):
            of_host, of_ours = _seconds([theirs, ours], asked)
            stalls = [
                1000 * statistics.median(_stall(work, question) for question in asked[:5]) for work in (aours, atheirs)
            ]
            print(
                f"{name:30}{1000 * of_host:15.1f} ms{1000 * of_ours:9.1f} ms{of_ours / of_host:8.2f}"
                f"{stalls[0]:8.1f} ms{stalls[1]:8.1f} ms"
            )


def _questions(count: int) -> list[str]:
    return questions(list(islice(linked_passages(SECTIONS), SECTIONS)), count)


def _llama_index(texts: list[str]) -> Iterator[tuple[str, Work, Work, Work, Work]]:
    documents = [
        LlamaIndexDocument(text=text, id_=str(at), metadata={"tenant": f"t{at % TENANTS}"})
        for at, text in enumerate(texts)
    ]
    index = VectorStoreIndex(llama_index_ext.MultiViewNodeParser()(documents), embed_model=LlamaIndex.embedding(vector))
    mine = MetadataFilter(key="tenant", value="t1")
    for kind, filters, known in (
        ("declared", MetadataFilters(filters=[mine]), [mine]),
        ("function", lambda node: node.metadata["tenant"] == "t1", []),
    ):
        views = [[*known, MetadataFilter(key="drillrank_view", value=view)] for view in VIEWS]
        retrievers = [index.as_retriever(similarity_top_k=5, filters=MetadataFilters(filters=view)) for view in views]

        def searches(question: str, retrievers: list[Any] = retrievers) -> list[Any]:
            return [retriever.retrieve(question) for retriever in retrievers]

        async def asearches(question: str, retrievers: list[Any] = retrievers) -> list[Any]:
            return [await retriever.aretrieve(question) for retriever in retrievers]

        ours = llama_index_ext.MultiViewRetriever(source=index, filters=filters)  # type: ignore[arg-type]
        yield f"LlamaIndex, {kind} filter", searches, asearches, ours.retrieve, ours.aretrieve


def _langchain(texts: list[str]) -> Iterator[tuple[str, Work, Work, Work, Work]]:
    documents = [Document(text, id=str(at), metadata={"tenant": f"t{at % TENANTS}"}) for at, text in enumerate(texts)]
    store = InMemoryVectorStore(LangChain.embedding(vector))
    store.add_documents(langchain_ext.MultiViewTextSplitter().split_documents(documents))

    def passes(view: str) -> Callable[[Document], bool]:
        return lambda found: found.metadata["tenant"] == "t1" and found.metadata["drillrank_view"] == view

    def searches(question: str) -> list[Any]:
        return [store.similarity_search(question, k=5, filter=passes(view)) for view in VIEWS]

    async def asearches(question: str) -> list[Any]:
        return [await store.asimilarity_search(question, k=5, filter=passes(view)) for view in VIEWS]

    for kind, filters in (
        ("declared", {"tenant": "t1"}),
        ("function", lambda document: document.metadata["tenant"] == "t1"),
    ):
        ours = langchain_ext.MultiViewRetriever(source=store, filters=filters)  # type: ignore[arg-type]
        yield f"LangChain, {kind} filter", searches, asearches, ours.invoke, ours.ainvoke


def _seconds(works: list[Work], asked: list[str]) -> list[float]:
    """The median of each, in turns."""
    taken: list[list[float]] = [[] for _ in works]
    for question in asked:
        for work, into in zip(works, taken, strict=True):
            started = time.perf_counter()
            work(question)
            into.append(time.perf_counter() - started)
    return list(map(statistics.median, taken))


def _stall(work: Callable[[str], Awaitable[Any]], question: str) -> float:
    async def measured() -> float:
        longest, done = 0.0, False

        async def tick() -> None:
            nonlocal longest
            last = time.perf_counter()
            while not done:
                await asyncio.sleep(0.001)
                now = time.perf_counter()
                longest, last = max(longest, now - last - 0.001), now

        ticking = asyncio.create_task(tick())
        await asyncio.sleep(0.01)
        await work(question)
        done = True
        await ticking
        return longest

    return asyncio.run(measured())
