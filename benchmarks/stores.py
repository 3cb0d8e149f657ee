"""What a question costs a store.

QASPER's papers. Calls are counted where a store is called: in LangChain by one that takes a filter in a search and
finds records by ids and by metadata, as Chroma does; in LlamaIndex by one that keeps texts.
"""

from __future__ import annotations

import zlib

from rich.console import Console
from rich.table import Table

from tests.conformance.frameworks import LangChain, LlamaIndex
from tests.conformance.stored import Stored

from .data import read

PAPERS, QUESTIONS, DOCUMENTS = 20, 50, 3
DIMENSIONS = 64
STORES = {
    "LangChain": (LangChain, ""),
    "LangChain, index()": (LangChain, "index()"),
    "LlamaIndex": (LlamaIndex, ""),
}
COMPONENTS = {
    "MultiViewRetriever": ("MultiViewRetriever", {}),
    "and neighbours": ("MultiViewRetriever", {"expand": "neighbours"}),
    "D3Retriever": ("D3Retriever", {"max_documents": DOCUMENTS}),
}
KINDS = {"embeddings": "questions", "searches": "search", "look-ups": "records"}


def vector(text: str) -> list[float]:
    """Words, hashed: near is what shares them."""
    counts = [0.01] * DIMENSIONS
    for word in text.lower().split():
        counts[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    return counts


def main() -> None:
    papers = read("longdoc/qasper")[:PAPERS]
    questions = [question["question"] for paper in papers for question in paper["questions"]][:QUESTIONS]
    title = f"Most for one of {len(questions)} questions; {PAPERS} papers, D3 drills into {DOCUMENTS}"
    table = Table("store", "component", *KINDS, "calls, mean", title=title)
    for name, (host, how) in STORES.items():
        stored = Stored(host, how, [paper["markdown"] for paper in papers], vector)
        for shown, (component, fields) in COMPONENTS.items():
            retriever = stored.component(component, **fields)
            spent = [stored.asked(retriever, question=question)[1] for question in questions]
            mean = sum(one["search"] + one["records"] for one in spent) / len(spent)
            most = [str(max(one[kind] for one in spent)) for kind in KINDS.values()]
            table.add_row(name, shown, *most, f"{mean:.1f}")
    Console(width=100).print(table)
