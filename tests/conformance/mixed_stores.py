"""Stores in which sections of ours and chunks of other splitters stand together, in both hosts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo

from drillrank.frameworks.metadata import result_metadata
from tests.conformance.frameworks import LangChain, LlamaIndex
from tests.conformance.text_store import TextStore

QUESTION = "question"


def nearness(text: str) -> float:
    """Of a text to the question: any number between 0 and 1, the same in every run, and another for each text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def vector(text: str) -> list[float]:
    """Whose cosine with that of the question is the text's nearness."""
    near = 1.0 if text == QUESTION else nearness(text)
    return [near, math.sqrt(1 - near * near)]


class Searched(InMemoryVectorStore):
    """Takes any filter, and counts searches."""

    searches = 0

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> Any:
        self.searches += 1
        return super().similarity_search_by_vector(embedding, k, **kwargs)


@dataclass
class Row:
    """A record, as the model of a store knows it: `kind` is "new" of ours, or "foreign"."""

    kind: str
    tenant: str
    section: str
    view: str
    text: str
    record: Any


class Mixed:
    """A store of a host, and the rows that are in it.

    Args:
        host: One of both.
        texts: Whether an index of LlamaIndex is over a store of texts, or over vectors beside a document store.
    """

    def __init__(self, host: Any, texts: bool = False) -> None:
        self.host, self.rows, self.model = host, list[Row](), host.embedding(vector)
        if host is LangChain:
            self.store: Any = Searched(self.model)
        else:
            storage = StorageContext.from_defaults(vector_store=TextStore()) if texts else None
            self.store = host.index(embedding=self.model, storage_context=storage)

    def fill(self, kind: str, document: str, sections: int, tenant: str) -> None:
        """Store a document of so many sections, or a splitter's chunks of one."""
        heads = [f"{document} part {number}" for number in range(sections)]
        if kind == "foreign":
            given = [self.host.record(head, f"chunk of {head}", source=document, tenant=tenant) for head in heads]
        else:
            text = "".join(f"# {head}\n\nIn {head} word{number} is said.\n\n" for number, head in enumerate(heads))
            given = [self.host.document(text, document, tenant=tenant)]
        for one in given if self.host is LlamaIndex else ():
            one.excluded_embed_metadata_keys = ["tenant", "source"]
            if kind == "foreign":
                one.relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
        records = given if kind == "foreign" else self.host.split(given)
        self.host.add(self.store, *records)
        for record in records:
            found = result_metadata(record.metadata) if kind != "foreign" else {}
            section, view = found.get("section_id", self.host.id_of(record)), found.get("view", "raw")
            self.rows.append(Row(kind, tenant, section, view, self.host.text_of(record), record))

    def model_of(self, tenant: str | None) -> dict[str, list[str]]:
        """The sections of each view, best first: the view's own records, and chunks that have no views."""
        seen = [row for row in self.rows if tenant in (None, row.tenant)]
        seen.sort(key=lambda row: -nearness(row.text))
        return {
            view: [row.section for row in seen if row.kind == "foreign" or row.view == view]
            for view in ("raw", "keywords", "summary")
            if view == "raw" or any(row.view == view for row in seen)
        }

    def retriever(self, k: int, tenant: str | None, form: str) -> Any:
        """A component over the store."""
        filters = self.host.filters(tenant=tenant)
        if form == "function":
            filters = lambda record: record.metadata["tenant"] == tenant  # noqa: E731
        return self.host.ext.MultiViewRetriever(source=self.store, top_n=k, filters=None if tenant is None else filters)


STORES: dict[str, Callable[[], Mixed]] = {
    "langchain": lambda: Mixed(LangChain),
    "llama_index": lambda: Mixed(LlamaIndex),
    "llama_index over texts": lambda: Mixed(LlamaIndex, texts=True),
}
