"""What a question costs a store.

QASPER's papers. Calls are counted where a store is called: in LangChain by one that takes a filter in a search and
finds records by ids and by metadata, as Chroma does; in LlamaIndex by one that keeps texts.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable

from langchain_core.documents import Document as Page
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import VectorStore
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr
from rich.console import Console
from rich.table import Table

import langchain_ext
import llama_index_ext
from tests.conformance.server_store import ServerStore
from tests.conformance.text_store import TextStore

from .data import read

PAPERS, QUESTIONS, DOCUMENTS = 20, 50, 3
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


def main() -> None:
    costs(Console(width=100))
