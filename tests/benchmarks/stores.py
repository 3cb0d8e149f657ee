"""Stores: what a question costs them, how long one over a document of 2 MB takes, and whether citations are right.

QASPER's papers. Calls are counted where a store is called: in LangChain by one that takes a filter in a search and
finds records by ids and by metadata, as Chroma does; in LlamaIndex by one that keeps texts.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.documents import Document as Page
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import MarkdownNodeParser, NodeParser, SentenceSplitter
from pydantic import PrivateAttr
from rich.console import Console
from rich.table import Table

import langchain_ext
import llama_index_ext
from tests.conformance.server_store import ServerStore
from tests.conformance.text_store import TextStore

from .data import read

PAPERS, QUESTIONS, DOCUMENTS = 20, 50, 3
SIZE = 2_000_000  # characters of the long document
RESULTS = 1000
DIMENSIONS = 64

Calls = Counter[str]


def vector(text: str) -> list[float]:
    """Words, hashed: near is what shares them."""
    counts = [0.01] * DIMENSIONS
    for word in text.lower().split():
        counts[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    return counts


class Hashed(Embeddings):
    """For LangChain; counts questions."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def embed_query(self, text: str) -> list[float]:
        self._calls["embeddings"] += 1
        return vector(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return list(map(vector, texts))


class HashedHere(BaseEmbedding):
    """For LlamaIndex; counts questions."""

    _calls: Calls = PrivateAttr()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls

    def _get_query_embedding(self, query: str) -> list[float]:
        self._calls["embeddings"] += 1
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)


def papers() -> list[tuple[str, str]]:
    """Name and text."""
    return [(f"paper-{number}.md", paper["markdown"]) for number, paper in enumerate(read("longdoc/qasper"))]


def questions() -> list[str]:
    asked = [question["question"] for paper in read("longdoc/qasper")[:PAPERS] for question in paper["questions"]]
    return asked[:QUESTIONS]


def pages(named: Iterable[tuple[str, str]]) -> list[Page]:
    return [Page(text, id=name, metadata={"source": name}) for name, text in named]


def documents(named: Iterable[tuple[str, str]]) -> list[Document]:
    return [Document(text=text, id_=name) for name, text in named]


def filled_by_index(store: VectorStore, pieces: list[Page]) -> None:
    records = InMemoryRecordManager("papers")
    index(pieces, records, store, cleanup="scoped_full", source_id_key="source", key_encoder="sha256")


def counted(retrieve: Callable[[str], object], calls: Calls, asked: Calls, records: str) -> Callable[[str], object]:
    """Asks, and adds the store's count to the others."""

    def ask(question: str) -> object:
        asked.clear()
        found = retrieve(question)
        calls.update({"searches": asked["search"], "look-ups": asked[records]})
        return found

    return ask


def langchain(calls: Calls, by_index: bool) -> dict[str, Callable[[str], object]]:
    store = ServerStore(Hashed(calls))
    pieces = langchain_ext.MultiViewTextSplitter().split_documents(pages(papers()[:PAPERS]))
    if by_index:
        filled_by_index(store, pieces)
    else:
        store.add_documents(pieces)
    components = {
        "MultiViewRetriever": langchain_ext.MultiViewRetriever(source=store),
        "and neighbours": langchain_ext.MultiViewRetriever(source=store, expand="neighbours"),
        "D3Retriever": langchain_ext.D3Retriever(source=store, settings={"max_documents": DOCUMENTS}),
    }
    return {name: counted(one.invoke, calls, store.asked, "records") for name, one in components.items()}


def llama_index(calls: Calls) -> dict[str, Callable[[str], object]]:
    store = TextStore()
    context = StorageContext.from_defaults(vector_store=store)
    nodes = llama_index_ext.MultiViewNodeParser()(documents(papers()[:PAPERS]))
    over = VectorStoreIndex(nodes, storage_context=context, embed_model=HashedHere(calls))
    components = {
        "MultiViewRetriever": llama_index_ext.MultiViewRetriever(source=over),
        "and neighbours": llama_index_ext.MultiViewRetriever(source=over, expand="neighbours"),
        "D3Retriever": llama_index_ext.D3Retriever(source=over, settings={"max_documents": DOCUMENTS}),
    }
    return {name: counted(one.retrieve, calls, store.asked, "nodes") for name, one in components.items()}


def costs(console: Console) -> None:
    kinds = ("embeddings", "searches", "look-ups")
    table = Table(
        "store",
        "component",
        *kinds,
        "calls, mean",
        title=f"Most for one of {len(questions())} questions; {PAPERS} papers, D3 drills into {DOCUMENTS}",
    )
    spent_by = {name: Counter[str]() for name in ("LangChain", "LangChain, index()", "LlamaIndex")}
    built = {
        "LangChain": langchain(spent_by["LangChain"], by_index=False),
        "LangChain, index()": langchain(spent_by["LangChain, index()"], by_index=True),
        "LlamaIndex": llama_index(spent_by["LlamaIndex"]),
    }
    for host, components in built.items():
        for component, ask in components.items():
            spent = []
            for question in questions():
                spent_by[host].clear()
                ask(question)
                spent.append(Counter(spent_by[host]))
            most = [str(max(one[name] for one in spent)) for name in kinds]
            mean = sum(one["searches"] + one["look-ups"] for one in spent) / len(spent)
            table.add_row(host, component, *most, f"{mean:.1f}")
    console.print(table)


def long_document() -> str:
    text = ""
    for _, paper in papers():
        text += f"{paper}\n\n"
        if len(text) >= SIZE:
            return text
    raise ValueError(f"The papers have {len(text)} characters, and {SIZE} are asked for.")


def seconds(console: Console) -> None:
    text = long_document()
    pieces = langchain_ext.MultiViewTextSplitter().split_documents(pages([("long.md", text)]))
    store = InMemoryVectorStore(Hashed(Counter()))
    filled_by_index(store, pieces)
    table = Table(
        "component",
        "question",
        "seconds",
        "CPU seconds",
        title=f"InMemoryVectorStore of LangChain, filled by index(): {len(text) / 1e6:.1f} MB, {len(pieces):,} records",
    )
    for component in (langchain_ext.MultiViewRetriever(source=store), langchain_ext.D3Retriever(source=store)):
        for number, question in zip(("first", "second"), questions(), strict=False):
            started = time.perf_counter(), time.process_time()
            component.invoke(question)
            took = time.perf_counter() - started[0], time.process_time() - started[1]
            table.add_row(type(component).__name__, number, *(f"{one:.2f}" for one in took))
    console.print(table)


def along_headings(named: list[Page]) -> list[Page]:
    splitter = MarkdownHeaderTextSplitter([("#", "h1"), ("##", "h2"), ("###", "h3")])
    return [
        Page(chunk.page_content, metadata={**page.metadata, **chunk.metadata})
        for page in named
        for chunk in splitter.split_text(page.page_content)
    ]


Citation = tuple[str, int | None, str]
"""What is cited, where it is said to stand, and in which paper."""


def cited_in_langchain(split: Callable[[list[Page]], list[Page]], named: list[tuple[str, str]]) -> list[Citation]:
    store = InMemoryVectorStore(Hashed(Counter()))
    store.add_documents(split(pages(named)))
    settings: dict[str, Any] = {"top_n": RESULTS, "sections": RESULTS, "max_documents": len(named)}
    # Splitters along headings note no offsets: the originals lend them.
    lent = pages(named) if split is along_headings else []
    found = langchain_ext.D3Retriever(source=store, documents=lent, settings=settings).invoke(questions()[0])
    return [(one.page_content, one.metadata.get("start_index"), one.metadata["source"]) for one in found]


def cited_in_llama_index(parser: NodeParser, named: list[tuple[str, str]]) -> list[Citation]:
    over = VectorStoreIndex(parser(documents(named)), embed_model=HashedHere(Counter()))
    settings: dict[str, Any] = {"top_n": RESULTS, "sections": RESULTS, "max_documents": len(named)}
    found = llama_index_ext.D3Retriever(source=over, settings=settings).retrieve(questions()[0])
    return [(hit.node.get_content(), hit.node.start_char_idx, str(hit.node.ref_doc_id)) for hit in found]


def citations(console: Console) -> None:
    named = papers()[:80]
    originals = dict(named)
    recursive = RecursiveCharacterTextSplitter(chunk_size=600, chunk_overlap=100, add_start_index=True)
    found = {
        "RecursiveCharacterTextSplitter": cited_in_langchain(recursive.split_documents, named),
        "MarkdownHeaderTextSplitter": cited_in_langchain(along_headings, named),
        "SentenceSplitter": cited_in_llama_index(SentenceSplitter(chunk_size=200, chunk_overlap=40), named),
        "MarkdownNodeParser": cited_in_llama_index(MarkdownNodeParser(), named),
    }
    table = Table("chunks of", "citations", "of these right", title="D3Retriever over other splitters' chunks")
    for splitter, cited in found.items():
        right = sum(
            start is not None and originals[name][start : start + len(text)] == text for text, start, name in cited
        )
        table.add_row(splitter, f"{len(cited):,}", f"{right:,}")
    console.print(table)


def main() -> None:
    console = Console(width=100)
    costs(console)
    seconds(console)
    citations(console)
