"""Every LlamaIndex component that fetches, over the stores of the world of two tenants."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from pydantic import PrivateAttr

from drillrank.hosts.metadata import result_metadata
from drillrank.passages import stable_uuid
from llama_index_ext import (
    BRMGRRetriever,
    D3Retriever,
    MultiViewNodeParser,
    MultiViewRetriever,
    PromptRankRerank,
    PromptRankRetriever,
    SelfAskQueryEngine,
)
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
from tests.conformance.llama_index_reader import Reader
from tests.conformance.readers import Crowd

FILTERS = MetadataFilters(
    filters=[
        MetadataFilter(key="tenant", value="a"),
        MetadataFilter(key="level", value=5, operator=FilterOperator.LT),
    ]
)
PARSER = MultiViewNodeParser(namespace_key="tenant")
_STORES_LOGS = "llama_index.vector_stores"  # of the rows that they found
_SEARCHES_LOG = "llama_index.core.indices.utils"
_THEIRS = "VectorIndexRetriever."


class Words(BaseEmbedding):
    """Counts words by their first letters: near is what shares words, whoever it belongs to."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.1] * 26
        for word in re.findall("[a-z]+", text.lower()):
            vector[ord(word[0]) - ord("a")] += len(word)
        return vector

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class InIndex:
    """Nodes of LlamaIndex in an index."""

    def __init__(self, index: VectorStoreIndex) -> None:
        self.index = index

    def with_level(self, record: BaseNode, level: int) -> BaseNode:
        return record.model_copy(update={"metadata": {**record.metadata, "level": level}, "embedding": None})

    def with_text(self, record: BaseNode, text: str) -> BaseNode:
        return record.model_copy(update={"text": text, "embedding": None})

    def text(self, record: BaseNode) -> str:
        return record.get_content()

    def add(self, records: Sequence[BaseNode]) -> None:
        self.index.insert_nodes(list(records))

    def delete(self, records: Sequence[BaseNode]) -> None:
        self.index.delete_nodes([record.node_id for record in records], delete_from_docstore=True)


@cache
def _parsed(tenant: str, document: str, version: int) -> list[BaseNode]:
    metadata = {"tenant": tenant, "title": document.title(), "source": f"{document}.md"}
    return PARSER([Document(text=whole(tenant, document, version), id_=document, metadata=metadata)])


class Sections(InIndex):
    """What `MultiViewNodeParser` makes; both tenants' documents have the same ids."""

    def made(self, tenant: str, document: str, version: int) -> list[tuple[int | None, BaseNode]]:
        nodes = _parsed(tenant, document, version)
        places = {name: place for place, name in enumerate(HEADINGS)}
        last = [str(result_metadata(node.metadata)["section_path"]).rpartition(" > ")[2] for node in nodes]
        return [(places.get(name), node) for name, node in zip(last, nodes, strict=True)]


class Passages(InIndex):
    """Whole short documents, of the same titles, addresses and links in both tenants."""

    def made(self, tenant: str, document: str, version: int) -> list[tuple[int | None, BaseNode]]:
        return [(place, self._node(tenant, document, place, version)) for place in range(PLACES)]

    def _node(self, tenant: str, document: str, place: int, version: int) -> BaseNode:
        own_next, others = (
            RelatedNodeInfo(node_id=stable_uuid(one, document, (place + 1) % PLACES))
            for one in sorted(TENANTS, key=lambda one: one != tenant)
        )
        return TextNode(
            id_=stable_uuid(tenant, document, place),
            text=passage(tenant, document, place, version),
            metadata={"tenant": tenant, "title": HEADINGS[place], "source": f"{document}/{place}.md"},
            relationships={NodeRelationship.NEXT: own_next, NodeRelationship.PREVIOUS: others},
        )


@dataclass
class Scene:
    """What a component is built over.

    Attributes:
        index: Over the store.
        given: What is passed beside it, as it was when the store was filled: the nodes of both tenants.
        retriever: Over the index, filtered where the filter is the source's.
        filters: The component's own, as a keyword.
        llm: Answers as `reasoner` does.
    """

    index: VectorStoreIndex
    given: list[BaseNode]
    retriever: BaseRetriever
    filters: dict[str, Any]
    llm: Reader

    def wholes(self) -> list[Document]:
        """The documents that the nodes were made of."""
        named = [(tenant, document) for tenant in TENANTS for document in DOCUMENTS]
        return [
            Document(text=whole(*name, version), id_=name[1], metadata={"tenant": name[0], "source": f"{name[1]}.md"})
            for version, name in enumerate(named, 1)
        ]

    def by_view(self) -> dict[str, BaseRetriever]:
        """A retriever for each view."""
        return dict.fromkeys(["raw", "keywords", "summary"], self.retriever)


class Reranked(BaseRetriever):
    """A retriever with a reranker behind it."""

    def __init__(self, retriever: BaseRetriever, reranker: PromptRankRerank) -> None:
        super().__init__()
        self._first, self._then = retriever, reranker

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._then.postprocess_nodes(self._first.retrieve(query_bundle), query_bundle)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self._then.apostprocess_nodes(await self._first.aretrieve(query_bundle), query_bundle)


def _reranked(scene: Scene, **fields: Any) -> BaseRetriever:
    return Reranked(
        scene.retriever, PromptRankRerank(links=_LINKS[:3], source=scene.retriever, **scene.filters, **fields)
    )


_LINKS = ("metadata", "hyperlinks", "titles", "names", "retrieval")
Build = Callable[[Scene], Any]

OVER_STORES: dict[str, dict[str, tuple[type[InIndex], Build]]] = {
    "MultiViewRetriever": {
        "over an index": (Sections, lambda s: MultiViewRetriever(source=s.index, **s.filters)),
        "over an index, and neighbours": (
            Sections,
            lambda s: MultiViewRetriever(s.given, source=s.index, expand="neighbours", **s.filters),
        ),
    },
    "D3Retriever": {
        "over an index": (Sections, lambda s: D3Retriever(source=s.index, **s.filters)),
        "over an index, given sections": (
            Sections,
            lambda s: D3Retriever(s.given, s.llm, source=s.index, **s.filters),
        ),
    },
}
OVER_RETRIEVERS: dict[str, dict[str, tuple[type[InIndex], Build]]] = {
    "MultiViewRetriever": {
        "over a retriever": (Sections, lambda s: MultiViewRetriever(source=s.retriever, **s.filters)),
        "and neighbours": (
            Sections,
            lambda s: MultiViewRetriever(s.given, source=s.retriever, expand="neighbours", **s.filters),
        ),
        "and parents": (
            Sections,
            lambda s: MultiViewRetriever(source=s.retriever, expand="parent", top_n=2, **s.filters),
        ),
        "by view, given sections": (Sections, lambda s: MultiViewRetriever(s.given, source=s.by_view(), **s.filters)),
    },
    "D3Retriever": {
        "over a retriever": (Sections, lambda s: D3Retriever(source=s.retriever, llm=s.llm, **s.filters)),
        "given sections": (Sections, lambda s: D3Retriever(s.given, source=s.retriever, **s.filters)),
        "given documents": (Sections, lambda s: D3Retriever(s.wholes(), source=s.retriever, **s.filters)),
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
                source=s.retriever, store=s.index.docstore, links=("metadata",), top_n=None, **s.filters
            ),
        ),
    },
    "PromptRankRerank": {
        "with a docstore": (Passages, lambda s: _reranked(s, store=s.index.docstore)),
        "with a retriever": (Passages, lambda s: _reranked(s)),
    },
    "BRMGRRetriever": {
        "over a retriever": (Passages, lambda s: BRMGRRetriever(s.retriever, s.llm, 1, **s.filters)),
    },
    "SelfAskQueryEngine": {
        "over a retriever": (Passages, lambda s: SelfAskQueryEngine(s.retriever, s.llm, **s.filters)),
    },
}


def allowed(node: BaseNode) -> bool:
    """`FILTERS` as a function."""
    return node.metadata.get("tenant") == "a" and node.metadata.get("level", 9) < 5


def scene(world: World[BaseNode], way: str) -> Scene:
    """Where the filter is: the component's, the component's as a function, or the source's."""
    assert isinstance(world.host, InIndex)
    index = world.host.index
    retriever = index.as_retriever(similarity_top_k=12, filters=FILTERS if way == "inherited" else None)
    own_filters = {"declared": {"filters": FILTERS}, "function": {"filters": allowed}, "inherited": {}}[way]
    given = [piece.record for piece in world.pieces]
    return Scene(index, given, retriever, own_filters, Reader(reasoner, Crowd()))


class Events(BaseEventHandler):
    """Hears events; but not those of a user's own retriever without a filter."""

    _heard: Heard = PrivateAttr()
    _unheard: bool = PrivateAttr()

    def __init__(self, heard: Heard, unheard: bool) -> None:
        super().__init__()
        self._heard, self._unheard = heard, unheard

    def handle(self, event: Any, **kwargs: Any) -> None:
        if not (self._unheard and str(event.span_id).startswith(_THEIRS)):
            self._heard.hear(f"event {event.class_name()}", event.model_dump())


class Spans(SimpleSpanHandler):
    """Hears what our components return, step by step."""

    _heard: Heard = PrivateAttr()

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard

    def prepare_to_exit_span(
        self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **kwargs: Any
    ) -> Any:
        if type(instance).__module__.startswith("llama_index_ext.") and not id_.startswith(_THEIRS):
            self._heard.hear(f"span {id_}", result)
        return super().prepare_to_exit_span(id_, bound_args, instance, result, **kwargs)


@contextmanager
def instrumented(heard: Heard, unheard: bool) -> Any:
    """Events and spans of what happens meanwhile."""
    dispatcher = get_dispatcher()
    before = dispatcher.event_handlers, dispatcher.span_handlers
    dispatcher.event_handlers = [*before[0], Events(heard, unheard)]
    dispatcher.span_handlers = [*before[1], Spans(heard)]
    try:
        yield
    finally:
        dispatcher.event_handlers, dispatcher.span_handlers = before


async def ask(component: Any, theirs: bool, llm: Reader, asynchronous: bool) -> Heard:
    """What is heard when a component is asked; over their own retriever without a filter, not what that says."""
    unheard = ("asyncio", _STORES_LOGS, _SEARCHES_LOG) if theirs else ("asyncio", _STORES_LOGS)
    with listening(*unheard) as heard, instrumented(heard, theirs):
        if isinstance(component, SelfAskQueryEngine):
            response = await component.aquery(QUESTION) if asynchronous else component.query(QUESTION)
            heard.hear("output", str(response), response.metadata)
            found = response.source_nodes
        else:
            found = await component.aretrieve(QUESTION) if asynchronous else component.retrieve(QUESTION)
        for hit in found:
            heard.hear("metadata", hit.node.metadata)
            if result_metadata(hit.node.metadata).get("origin") != "generated":
                heard.results.append(hit.node.get_content())
    heard.hear("prompt", *llm._crowd.prompts)
    llm._crowd.prompts.clear()
    return heard
