"""Retrievers of both frameworks and the documents they search."""

from __future__ import annotations

from typing import Any

from llama_index.core.llms import MockLLM

from tests.conformance.corpus import BOOK, NOTE
from tests.conformance.frameworks import LangChain, LlamaIndex, build

DOCUMENTS = {
    host: [host.document(BOOK, "book", source="book.md"), host.document(NOTE, name, source="note.txt")]
    for host, name in ((LlamaIndex, "note"), (LangChain, None))
}


def multi_view(host: Any, documents: Any, **fields: Any) -> Any:
    return build(host.ext.MultiViewRetriever, host.split(documents), **{"top_n": 3, **fields})


def over_retrievers(host: Any, documents: Any, **fields: Any) -> Any:
    kinds = {"raw": {"retriever": "tfidf"}, "keywords": {}}
    by_view = {view: multi_view(host, documents, top_n=99, **kind) for view, kind in kinds.items()}
    return build(host.ext.MultiViewRetriever, source=by_view, **{"top_n": 3, **fields})


def drill_down(host: Any, documents: Any, **fields: Any) -> Any:
    """Twins each for itself: other components, and their tests, build on it."""
    return build(
        host.ext.D3Retriever, documents, **{"top_n": 3, "settings": {"repeats": True, "unit": "paragraph"}, **fields}
    )


def with_llm(host: Any, documents: Any, **fields: Any) -> Any:
    return build(host.ext.D3Retriever, documents, llm=host.reader(), **{"top_n": 3, "unit": "paragraph", **fields})


def over_sections(host: Any, documents: Any, **fields: Any) -> Any:
    return with_llm(host, host.split(documents), **fields)


def over_a_store(host: Any, documents: Any, **fields: Any) -> Any:
    return with_llm(host, [], source=host.index(*host.split(documents)), **fields)


def with_generated(host: Any, documents: Any, **fields: Any) -> Any:
    """The guard lets nothing through that the model writes, so that only documents come back."""
    source = drill_down(host, documents, top_n=5)
    llm = MockLLM() if host is LlamaIndex else host.llm(["A zebra plays chess."])
    return build(host.ext.BRMGRRetriever, source, llm, guard=True, **{"top_n": 3, **fields})


def path_search(host: Any, documents: Any, **fields: Any) -> Any:
    source = drill_down(host, documents, top_n=99)
    return build(host.ext.PromptRankRetriever, source=source, **{"top_n": 3, **fields})


BUILD = {
    "MultiViewRetriever": multi_view,
    "MultiViewRetriever over retrievers": over_retrievers,
    "D3Retriever": drill_down,
    "D3Retriever with an LLM": with_llm,
    "D3Retriever over sections": over_sections,
    "D3Retriever over a store": over_a_store,
    "BRMGRRetriever": with_generated,
    "PromptRankRetriever": path_search,
}
