"""Every LangChain component that fetches, over the stores of the world of two tenants."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from drillrank.hosts.filters import one_by_one
from drillrank.hosts.metadata import result_metadata
from drillrank.passages import stable_uuid
from langchain_ext import (
    BRMGRRetriever,
    D3Retriever,
    MultiViewRetriever,
    MultiViewTextSplitter,
    PromptRankRerank,
    PromptRankRetriever,
    SelfAskChain,
)
from tests.conformance.langchain_reader import Reader
from tests.conformance.leaks import (
    DOCUMENTS,
    HEADINGS,
    PLACES,
    QUESTION,
    TENANTS,
    Heard,
    World,
    listening,
    passage,
    reasoner,
    whole,
)

FILTER: dict[str, Any] = {"tenant": "a", "level": {"$lt": 5}}
SPLITTER = MultiViewTextSplitter(namespace_key="tenant")


class Words(Embeddings):
    """Counts words by their first letters: near is what shares words, whoever it belongs to."""

    def embed_query(self, text: str) -> list[float]:
        vector = [0.1] * 26
        for word in re.findall("[a-z]+", text.lower()):
            vector[ord(word[0]) - ord("a")] += len(word)
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class InStore:
    """Records of LangChain in a vector store."""

    def __init__(self, store: VectorStore) -> None:
        self.store = store

    def with_level(self, record: Document, level: int) -> Document:
        return record.model_copy(update={"metadata": {**record.metadata, "level": level}})

    def with_text(self, record: Document, text: str) -> Document:
        return record.model_copy(update={"page_content": text})

    def text(self, record: Document) -> str:
        return record.page_content

    def add(self, records: Sequence[Document]) -> None:
        self.store.add_documents(list(records), ids=[str(record.id) for record in records])

    def delete(self, records: Sequence[Document]) -> None:
        self.store.delete([str(record.id) for record in records])


@cache
def _split(tenant: str, document: str, version: int) -> list[Document]:
    metadata = {"tenant": tenant, "title": document.title(), "source": f"{document}.md"}
    return SPLITTER.split_documents([Document(whole(tenant, document, version), id=document, metadata=metadata)])


class Sections(InStore):
    """What `MultiViewTextSplitter` makes; both tenants' documents have the same ids."""

    def made(self, tenant: str, document: str, version: int) -> list[tuple[int | None, Document]]:
        pieces = _split(tenant, document, version)
        places = {name: place for place, name in enumerate(HEADINGS)}
        last = [str(result_metadata(piece.metadata)["section_path"]).rpartition(" > ")[2] for piece in pieces]
        return [(places.get(name), piece) for name, piece in zip(last, pieces, strict=True)]


class Passages(InStore):
    """Whole short documents, of the same titles, addresses and links in both tenants."""

    def made(self, tenant: str, document: str, version: int) -> list[tuple[int | None, Document]]:
        return [
            (
                place,
                Document(
                    passage(tenant, document, place, version),
                    id=stable_uuid(tenant, document, place),
                    metadata={
                        "tenant": tenant,
                        "title": HEADINGS[place],
                        "source": f"{document}/{place}.md",
                        "links": [stable_uuid(other, document, (place + 1) % PLACES) for other in TENANTS],
                    },
                ),
            )
            for place in range(PLACES)
        ]


@dataclass
class Scene:
    """What a component is built over.

    Attributes:
        store: The vector store.
        given: What is passed beside it, as it was when the store was filled: the records of both tenants.
        retriever: Over the store, filtered where the filter is the source's.
        filters: The component's own, as a keyword.
        llm: Remembers what it was asked.
    """

    store: VectorStore
    given: list[Document]
    retriever: Runnable[str, list[Document]]
    filters: dict[str, Any]
    llm: Reader

    def wholes(self) -> list[Document]:
        """The documents that the records were made of."""
        named = [(tenant, document) for tenant in TENANTS for document in DOCUMENTS]
        return [
            Document(whole(*name, version), id=name[1], metadata={"tenant": name[0], "source": f"{name[1]}.md"})
            for version, name in enumerate(named, 1)
        ]

    def by_view(self) -> dict[str, Any]:
        """A retriever for each view."""
        return dict.fromkeys(["raw", "keywords", "summary"], self.retriever)


Build = Callable[[Scene], Runnable[str, Any]]
_LINKS = ("metadata", "hyperlinks", "titles", "names", "retrieval")


def _reranked(scene: Scene, **fields: Any) -> Runnable[str, Any]:
    reranker = PromptRankRerank(links=_LINKS[:3], top_n=None, **scene.filters, **fields)
    return reranker.as_runnable(scene.retriever)


# By class, and by what it is given; those whose source can be no retriever are left out where that has the filter.
OVER_STORES: dict[str, dict[str, tuple[type[InStore], Build]]] = {
    "MultiViewRetriever": {
        "over a store": (Sections, lambda s: MultiViewRetriever(source=s.store, **s.filters)),
    },
    "D3Retriever": {
        "over a store": (Sections, lambda s: D3Retriever(source=s.store, **s.filters)),
        "over a store, given sections": (
            Sections,
            lambda s: D3Retriever(source=s.store, documents=s.given, llm=s.llm, **s.filters),
        ),
    },
}
OVER_RETRIEVERS: dict[str, dict[str, tuple[type[InStore], Build]]] = {
    "MultiViewRetriever": {
        "over a retriever": (Sections, lambda s: MultiViewRetriever(source=s.retriever, **s.filters)),
        "and neighbours": (
            Sections,
            lambda s: MultiViewRetriever(source=s.retriever, documents=s.given, expand="neighbours", **s.filters),
        ),
        "and parents": (
            Sections,
            lambda s: MultiViewRetriever(source=s.retriever, expand="parent", top_n=2, **s.filters),
        ),
        "by view, given sections": (
            Sections,
            lambda s: MultiViewRetriever(source=s.by_view(), documents=s.given, **s.filters),
        ),
    },
    "D3Retriever": {
        "over a retriever": (Sections, lambda s: D3Retriever(source=s.retriever, llm=s.llm, **s.filters)),
        "given sections": (Sections, lambda s: D3Retriever(source=s.retriever, documents=s.given, **s.filters)),
        "given documents": (Sections, lambda s: D3Retriever(source=s.retriever, documents=s.wholes(), **s.filters)),
        "over passages": (Passages, lambda s: D3Retriever(source=s.retriever, **s.filters)),
    },
    "PromptRankRetriever": {
        "with links": (
            Passages,
            lambda s: PromptRankRetriever(source=s.retriever, documents=s.given, links=_LINKS, top_n=None, **s.filters),
        ),
        "and an LLM": (
            Passages,
            lambda s: PromptRankRetriever(
                source=s.retriever, documents=s.given, links=_LINKS, top_n=None, llm=s.llm, **s.filters
            ),
        ),
        "with a docstore": (
            Passages,
            lambda s: PromptRankRetriever(
                source=s.retriever, store=s.store, links=("metadata",), top_n=None, **s.filters
            ),
        ),
    },
    "PromptRankRerank": {
        "with a docstore": (Passages, lambda s: _reranked(s, store=s.store, source=s.retriever)),
        "with a retriever": (Passages, lambda s: _reranked(s, source=s.retriever)),
    },
    "BRMGRRetriever": {
        "over a retriever": (
            Passages,
            lambda s: BRMGRRetriever(source=s.retriever, llm=s.llm, n_generated=1, **s.filters),
        ),
    },
    "SelfAskChain": {
        "over a retriever": (Passages, lambda s: SelfAskChain(source=s.retriever, llm=s.llm, **s.filters)),
    },
}


def allowed(document: Document) -> bool:
    """`FILTER` as a function."""
    return document.metadata.get("tenant") == "a" and document.metadata.get("level", 9) < 5


def scene(world: World[Document], way: str) -> Scene:
    """Where the filter is: the component's, the component's as a function, or the source's."""
    assert isinstance(world.host, InStore)
    store = world.host.store
    of_source: Any = allowed if isinstance(store, InMemoryVectorStore) else {"$and": one_by_one(FILTER)}
    restricted = {"filter": of_source} if way == "inherited" else {}
    own_filter = {"declared": {"filters": FILTER}, "function": {"filters": allowed}, "inherited": {}}[way]
    given = [piece.record for piece in world.pieces]
    retriever = store.as_retriever(search_kwargs={"k": 12, **restricted})
    return Scene(store, given, retriever, own_filter, Reader(answer=reasoner))


class Callbacks(BaseCallbackHandler):
    """Hears what handlers are told; but not what a user's own retriever without a filter brings."""

    def __init__(self, heard: Heard, unheard: bool) -> None:
        self._heard, self._unheard, self._theirs = heard, unheard, set[Any]()

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: Any, name: str = "", **kwargs: Any) -> None:
        if self._unheard and name == "VectorStoreRetriever":
            self._theirs.add(run_id)

    def on_retriever_end(self, documents: Any, *, run_id: Any, **kwargs: Any) -> None:
        if run_id not in self._theirs:
            self._heard.hear("end of a retriever", *documents)

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self._heard.hear(f"event {name}", data)

    def on_llm_start(self, serialized: Any, prompts: list[str], **kwargs: Any) -> None:
        self._heard.hear("prompt", *prompts)

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self._heard.hear("prompt", messages)

    def on_chain_end(self, outputs: Any, *, parent_run_id: Any = None, **kwargs: Any) -> None:
        if not self._unheard:  # a step of a chain may be the user's own retriever
            self._heard.hear("end of a chain", outputs)

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self._heard.hear("error", str(error))

    on_chain_error = on_llm_error = on_retriever_error


def documents_in(outcome: Any) -> list[Document]:
    """A retriever's documents, or those of a chain's steps."""
    if isinstance(outcome, dict):
        return [document for step in outcome["steps"] for document in step["documents"]]
    return [document for document in outcome if document.metadata.get("drillrank_origin") != "generated"]


async def ask(component: Runnable[str, Any], theirs: bool, llm: Reader, asynchronous: bool) -> Heard:
    """What is heard when a component is asked; over their own retriever without a filter, not what that says."""
    with listening() as heard:
        config: Any = {"callbacks": [Callbacks(heard, unheard=theirs)]}
        if asynchronous:
            outcome = await component.ainvoke(QUESTION, config)
        else:
            outcome = component.invoke(QUESTION, config)
        for document in documents_in(outcome):
            heard.results.append(document.page_content)
            heard.hear("metadata", document.metadata)
        if isinstance(outcome, dict):
            heard.hear("output", outcome)
    heard.hear("prompt", *llm.crowd.prompts)
    llm.crowd.prompts.clear()
    return heard
