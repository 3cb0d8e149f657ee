"""Time of a question of `D3Retriever` over 14,000 records in memory, next to the framework's own search.

    python -m benchmarks d3_stores

Records are the sections of QASPER's papers in three views, or chunks of 600 characters. Vectors are hashed words, so no
model is measured. Rows: the framework's own search for four records; the first question; questions whose documents
were not read before; and the same questions again. Times are CPU time of this process, so that other processes count
less.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from rich.console import Console
from rich.table import Table

import langchain_ext
import llama_index_ext
from tests.conformance.frameworks import LangChain, LlamaIndex

from .data import read
from .stores import vector

RECORDS, ASKED = 14_000, 20

Ask = Callable[[str], Any]


def main(questions: int = ASKED, data: str = "") -> None:
    """Print the table; `data` may give another number of records."""
    papers = read("longdoc/qasper")
    asked = [paper["questions"][0]["question"] for paper in papers if paper["questions"]][: questions + 1]
    columns = ("search", "first", "new documents", "the same again", "beyond the search")
    table = Table("store", *(f"{column}, ms" for column in columns), title=f"{data or RECORDS} records, median")
    for name, search, retrieve in _stores([paper["markdown"] for paper in papers], int(data or RECORDS)):
        first = _median(retrieve, asked[:1])
        searched, new, again = (_median(ask, asked[1:]) for ask in (search, retrieve, retrieve))
        table.add_row(name, *(f"{1000 * value:.1f}" for value in (searched, first, new, again, again - searched)))
    Console(width=110).print(table)


def _stores(texts: list[str], n_records: int) -> Iterator[tuple[str, Ask, Ask]]:
    documents = [Document(text, metadata={"source": f"{number}.md"}) for number, text in enumerate(texts)]
    recursive = RecursiveCharacterTextSplitter(chunk_size=600, chunk_overlap=60, add_start_index=True)
    for kind, splitter in (("sections", langchain_ext.MultiViewTextSplitter()), ("chunks", recursive)):
        store = InMemoryVectorStore(LangChain.embedding(vector))
        store.add_documents(splitter.split_documents(documents)[:n_records])
        yield f"LangChain, {kind}", store.as_retriever().invoke, langchain_ext.D3Retriever(source=store).invoke
    nodes = [LlamaIndexDocument(text=text, id_=f"{number}.md") for number, text in enumerate(texts)]
    for kind, parser in (
        ("sections", llama_index_ext.MultiViewNodeParser()),
        ("chunks", SentenceSplitter(chunk_size=150, chunk_overlap=10)),
    ):
        index = VectorStoreIndex(parser(nodes)[:n_records], embed_model=LlamaIndex.embedding(vector))
        yield f"LlamaIndex, {kind}", index.as_retriever().retrieve, llama_index_ext.D3Retriever(source=index).retrieve


def _median(ask: Ask, questions: list[str]) -> float:
    times = []
    for question in questions:
        start = time.process_time()
        ask(question)
        times.append(time.process_time() - start)
    return statistics.median(times)
