"""A world of two tenants: what a store holds at the moment, what may be seen of it, and what is heard of the rest.

Every sentence carries a mark that names its tenant, document, place and version. A mark that is heard though its
sentence is another tenant's, restricted, redacted, deleted or of an older version, has leaked. Every component that
fetches is in a table here, with what it may be built over.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import pytest
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

from drillrank.frameworks.filters import split_conditions
from drillrank.frameworks.metadata import result_metadata
from drillrank.passages import stable_uuid
from drillrank.testing.listening import Heard
from langchain_ext._qdrant import is_qdrant, qdrant_filter
from tests.conformance.frameworks import LangChain, LlamaIndex

TENANTS = ("a", "b")
DOCUMENTS = ("guide", "rules")
PLACES = 3
OPEN, RESTRICTED = 1, 9
QUESTION = "When does the harbour open, what is its fee, and where do the keys lie?"
HEADINGS = ("Harbour opening", "Harbour fee", "Harbour keys")
SENTENCES = (
    "The harbour opens at dawn, says {mark}. See [the fee](../rules/1.md) and the Harbour keys.",
    "The harbour fee is paid to {mark}. Read Harbour opening, or [the keys](../guide/2.md).",
    "The keys of the harbour lie with {mark}. See [opening](../guide/0.md) and the Harbour fee.",
)
_MARK = re.compile(r"q[ab](?:guide|rules)\dv\d+q")


def letters(text: str) -> list[float]:
    """Words by their first letters: near is what shares words, whoever it belongs to."""
    vector = [0.1] * 26
    for word in re.findall("[a-z]+", text.lower()):
        vector[ord(word[0]) - ord("a")] += len(word)
    return vector


def passage(tenant: str, document: str, place: int, version: int) -> str:
    """A sentence of a document, at a place, with a word that stands nowhere else."""
    return SENTENCES[place].format(mark=f"q{tenant}{document}{place}v{version}q")


def whole(host: Any, tenant: str, document: str, version: int) -> Any:
    """A document of as many sections as there are places; both tenants' have the same ids."""
    parts = [f"## {HEADINGS[place]}\n\n{passage(tenant, document, place, version)}\n" for place in range(PLACES)]
    metadata = {"tenant": tenant, "title": document.title(), "source": f"{document}.md"}
    return host.document("\n".join(["# The harbour\n", *parts]), document, **metadata)


Made = list[tuple[int | None, Any]]
"""Records, each with the place that it is of."""


@cache
def sections(host: Any, tenant: str, document: str, version: int) -> Made:
    """What the host's splitter of ours makes."""
    records = host.split([whole(host, tenant, document, version)], namespace_key="tenant")
    places = {name: place for place, name in enumerate(HEADINGS)}
    last = [str(result_metadata(record.metadata)["section_path"]).rpartition(" > ")[2] for record in records]
    return [(places.get(name), record) for name, record in zip(last, records, strict=True)]


def passages(host: Any, tenant: str, document: str, version: int) -> Made:
    """Whole short documents, of the same titles, addresses and links in both tenants."""
    made = []
    for place in range(PLACES):
        linked = [stable_uuid(other, document, (place + 1) % PLACES) for other in TENANTS]
        links = linked if host is LangChain else ",".join(linked)  # stores of LlamaIndex take flat metadata
        metadata = {"tenant": tenant, "title": HEADINGS[place], "source": f"{document}/{place}.md", "links": links}
        text = passage(tenant, document, place, version)
        record = host.record(text, stable_uuid(tenant, document, place), **metadata)
        if host is LlamaIndex:
            kinds = (NodeRelationship.NEXT, NodeRelationship.PREVIOUS)
            record.relationships = {kind: RelatedNodeInfo(node_id=one) for kind, one in zip(kinds, linked, strict=True)}
            record.excluded_embed_metadata_keys = ["links"]
        made.append((place, record))
    return made


@dataclass
class StoredChunk:
    """A record in the store, and what the world knows of it."""

    record: Any
    tenant: str
    document: str
    place: int | None
    level: int


class World:
    """Writes to a store of a host, and knows what is in it.

    Args:
        host: One of both.
        store: A vector store of LangChain, or an index of LlamaIndex.
        form: What a document is stored as.
    """

    def __init__(self, host: Any, store: Any, form: Callable[..., Made]) -> None:
        self.host, self.store, self.form = host, store, form
        self.pieces: list[StoredChunk] = []
        self.versions = 0
        for tenant in TENANTS:
            for document in DOCUMENTS:
                self.write(tenant, document)

    def write(self, tenant: str, document: str) -> None:
        """Store a document, in place of what there was of it; its last place is restricted."""
        self.delete(tenant, document)
        self.versions += 1
        new = []
        for place, record in self.form(self.host, tenant, document, self.versions):
            level = RESTRICTED if place == PLACES - 1 else OPEN
            new.append(StoredChunk(self.host.changed(record, level=level), tenant, document, place, level))
        self._store(new)

    def delete(self, tenant: str, document: str) -> None:
        """Out of the store with a document."""
        self._take(lambda piece: (piece.tenant, piece.document) == (tenant, document))

    def redact(self, tenant: str, document: str, place: int) -> None:
        """A transformation behind the parser: it sees texts, not what a view may have kept of another."""
        taken = self._take(lambda piece: (piece.tenant, piece.document, piece.place) == (tenant, document, place))
        for piece in taken:
            text = _MARK.sub("somebody", self.host.text_of(piece.record))
            piece.record = self.host.changed(piece.record, text)
        self._store(taken)

    def restrict(self, tenant: str, document: str, place: int, level: int = RESTRICTED) -> None:
        """Another level for what is in the store."""
        taken = self._take(lambda piece: (piece.tenant, piece.document, piece.place) == (tenant, document, place))
        for piece in taken:
            piece.record, piece.level = self.host.changed(piece.record, level=level), level
        self._store(taken)

    def _take(self, chosen: Callable[[StoredChunk], bool]) -> list[StoredChunk]:
        taken = [piece for piece in self.pieces if chosen(piece)]
        self.pieces = [piece for piece in self.pieces if not chosen(piece)]
        ids = [str(self.host.id_of(piece.record)) for piece in taken]
        if taken and self.host is LangChain:
            self.store.delete(ids)
        elif taken:
            self.store.delete_nodes(ids, delete_from_docstore=True)
        return taken

    def _store(self, pieces: list[StoredChunk]) -> None:
        self.pieces += pieces
        records = [piece.record for piece in pieces]
        if records and self.host is LangChain:
            self.store.add_documents(records, ids=[record.id for record in records])
        elif records:
            self.store.insert_nodes(records)

    @property
    def visible(self) -> list[str]:
        """The texts that tenant a may see, as the store holds them."""
        seen = [piece for piece in self.pieces if piece.tenant == "a" and piece.level < RESTRICTED]
        return [self.host.text_of(piece.record) for piece in seen]

    def check(self, heard: Heard) -> None:
        """What was heard is only what may be seen, and every result is (a part of) what the store holds.

        Raises:
            AssertionError: names the marks that leaked, and where.
        """
        texts = self.visible
        allowed = set(_MARK.findall("\n".join(texts)))
        leaked = {one for _, said in heard.everything() for one in _MARK.findall(said)} - allowed
        assert not leaked, f"{sorted(leaked)} in {heard.excerpts(leaked)}"
        parts = [part for text in heard.results for part in text.split("\n\n")]  # a passage may join records
        strange = [part for part in parts if not any(part.strip() in held for held in texts)]
        assert not strange, f"{strange} is not what the store holds: {texts}"


FILTERS: dict[Any, Any] = {
    LangChain: {"tenant": "a", "level": {"$lt": 5}},
    LlamaIndex: MetadataFilters(
        filters=[
            MetadataFilter(key="tenant", value="a"),
            MetadataFilter(key="level", value=5, operator=FilterOperator.LT),
        ]
    ),
}


def allowed(record: Any) -> bool:
    """The filters as a function."""
    return record.metadata.get("tenant") == "a" and record.metadata.get("level", 9) < 5


class Scene(NamedTuple):
    """What a component is built over.

    Attributes:
        ext: The host's components.
        store: The vector store, or the index.
        docstore: What knows records by their ids.
        given: What is passed beside it, as it was when the store was filled: the records of both tenants.
        wholes: The documents that the records were made of.
        retriever: Over the store, filtered where the filter is the source's.
        filters: The component's own, as a keyword.
        links: All kinds.
        llm: Remembers what it was asked.
    """

    ext: Any
    store: Any
    docstore: Any
    given: list[Any]
    wholes: list[Any]
    retriever: Any
    filters: dict[str, Any]
    links: tuple[str, ...]
    llm: Any


def scene(world: World, way: str) -> Scene:
    """Where the filter is: the component's, the component's as a function, or the source's."""
    host, store, own = world.host, world.store, FILTERS[world.host]
    if host is LangChain:
        of_source: Any = allowed if isinstance(store, InMemoryVectorStore) else {"$and": split_conditions(own)}
        if is_qdrant(store):
            of_source = qdrant_filter(store, split_conditions(own))
        restricted = {"filter": of_source} if way == "inherited" else {}
        retriever, docstore = store.as_retriever(search_kwargs={"k": 12, **restricted}), store
    else:
        retriever = store.as_retriever(similarity_top_k=12, filters=own if way == "inherited" else None)
        docstore = store.docstore
    named = [(tenant, document) for tenant in TENANTS for document in DOCUMENTS]
    return Scene(
        *(host.ext, store, docstore, [piece.record for piece in world.pieces]),
        [whole(host, *name, version) for version, name in enumerate(named, 1)],
        retriever,
        {"declared": {"filters": own}, "function": {"filters": allowed}, "inherited": {}}[way],
        (*host.links, "names", "retrieval"),
        host.reader(reasoner),
    )


class Reranked(BaseRetriever):
    """A retriever of LlamaIndex with a reranker behind it."""

    def __init__(self, retriever: BaseRetriever, reranker: Any) -> None:
        super().__init__()
        self._first, self._then = retriever, reranker

    def _retrieve(self, query_bundle: Any) -> Any:
        return self._then.postprocess_nodes(self._first.retrieve(query_bundle), query_bundle)

    async def _aretrieve(self, query_bundle: Any) -> Any:
        return await self._then.apostprocess_nodes(await self._first.aretrieve(query_bundle), query_bundle)


def _reranked(s: Scene, **fields: Any) -> Any:
    links = tuple(link for link in s.links if link not in ("names", "retrieval"))
    reranker = s.ext.PromptRankRerank(links=links, source=s.retriever, top_n=None, **s.filters, **fields)
    return reranker.as_runnable(s.retriever) if isinstance(s.retriever, Runnable) else Reranked(s.retriever, reranker)


def _paths(s: Scene, **fields: Any) -> Any:
    return s.ext.PromptRankRetriever(source=s.retriever, top_n=None, **s.filters, **fields)


def _self_ask(s: Scene) -> Any:
    name = "SelfAskChain" if isinstance(s.retriever, Runnable) else "SelfAskQueryEngine"
    return getattr(s.ext, name)(source=s.retriever, llm=s.llm, **s.filters)


# By class, and by what it is given; those whose source can be no retriever are left out where that has the filter.
OVER_STORES: dict[str, dict[str, tuple[Any, Callable[[Scene], Any]]]] = {
    "MultiViewRetriever": {
        "over a store": (sections, lambda s: s.ext.MultiViewRetriever(source=s.store, **s.filters)),
        "over a store, and neighbours": (
            sections,
            lambda s: s.ext.MultiViewRetriever(s.given, source=s.store, expand="neighbours", **s.filters),
        ),
    },
    "D3Retriever": {
        "over a store": (sections, lambda s: s.ext.D3Retriever(source=s.store, **s.filters)),
        "over a store, given sections": (
            sections,
            lambda s: s.ext.D3Retriever(s.given, source=s.store, llm=s.llm, **s.filters),
        ),
    },
}
OVER_RETRIEVERS: dict[str, dict[str, tuple[Any, Callable[[Scene], Any]]]] = {
    "MultiViewRetriever": {
        "over a retriever": (sections, lambda s: s.ext.MultiViewRetriever(source=s.retriever, **s.filters)),
        "and neighbours": (
            sections,
            lambda s: s.ext.MultiViewRetriever(s.given, source=s.retriever, expand="neighbours", **s.filters),
        ),
        "and parents": (
            sections,
            lambda s: s.ext.MultiViewRetriever(source=s.retriever, expand="parent", top_n=2, **s.filters),
        ),
        "by view, given sections": (
            sections,
            lambda s: s.ext.MultiViewRetriever(
                s.given, source=dict.fromkeys(["raw", "keywords", "summary"], s.retriever), **s.filters
            ),
        ),
    },
    "D3Retriever": {
        "over a retriever": (sections, lambda s: s.ext.D3Retriever(source=s.retriever, llm=s.llm, **s.filters)),
        "given sections": (sections, lambda s: s.ext.D3Retriever(s.given, source=s.retriever, **s.filters)),
        "given documents": (sections, lambda s: s.ext.D3Retriever(s.wholes, source=s.retriever, **s.filters)),
        "over passages": (passages, lambda s: s.ext.D3Retriever(source=s.retriever, **s.filters)),
    },
    "PromptRankRetriever": {
        "with links": (passages, lambda s: _paths(s, documents=s.given, links=s.links)),
        "and an LLM": (passages, lambda s: _paths(s, documents=s.given, links=s.links, llm=s.llm)),
        "with a docstore": (passages, lambda s: _paths(s, store=s.docstore, links=("metadata",))),
    },
    "PromptRankRerank": {
        "with a docstore": (passages, lambda s: _reranked(s, store=s.docstore)),
        "with a retriever": (passages, lambda s: _reranked(s)),
    },
    "BRMGRRetriever": {
        "over a retriever": (
            passages,
            lambda s: s.ext.BRMGRRetriever(source=s.retriever, llm=s.llm, n_generated=1, **s.filters),
        ),
    },
    "SelfAsk": {"over a retriever": (passages, _self_ask)},
}
# What is given without a store, which is filtered, too.
GIVEN: dict[str, dict[str, tuple[Any, Callable[[Scene], Any]]]] = {
    "MultiViewRetriever": {
        "alone": (sections, lambda s: s.ext.MultiViewRetriever(s.given, **s.filters)),
        "alone, and neighbours": (
            sections,
            lambda s: s.ext.MultiViewRetriever(s.given, expand="neighbours", **s.filters),
        ),
    },
    "D3Retriever": {"alone": (sections, lambda s: s.ext.D3Retriever(s.given, llm=s.llm, **s.filters))},
}


def reasoner(prompt: str) -> str:
    """What an LLM says to any component: all that is offered, one follow-up question, or an answer."""
    if re.search(r"^\* Section: |^\[\d+\]", prompt, re.MULTILINE):
        names = re.findall(r"^\* Section: (.*)$", prompt, re.MULTILINE)
        return ", ".join(names or re.findall(r"^\[(\d+)\]", prompt, re.MULTILINE))
    if "Follow up: What is the harbour fee?" in prompt:
        return "So the final answer is: dawn"
    return "Yes.\nFollow up: What is the harbour fee?"


def story(world: World) -> Iterator[str]:
    """What happens to a store over time; between its chapters questions are asked."""
    yield "as it was filled"
    world.redact("a", "guide", 0)
    yield "after a redaction"
    world.write("a", "rules")
    world.write("b", "guide")
    yield "after an update"
    world.restrict("a", "rules", 1)
    yield "after a restriction"
    world.delete("a", "guide")
    yield "after a deletion"
    world.delete("a", "rules")
    yield "after all is gone"


async def check_story(world: World, ask: Callable[[bool], Awaitable[Heard]]) -> None:
    """What is heard between the chapters of the story is what may be seen then, and something while there is any.

    Args:
        world: To which it happens.
        ask: Asks a component, synchronously and asynchronously in turn.
    """
    for number, chapter in enumerate(story(world)):
        heard = await ask(number % 2 == 1)
        world.check(heard)
        assert bool(heard.results) is (chapter != "after all is gone"), chapter


def cases(
    stores: Mapping[str, Any], ways: Sequence[str] = ("declared", "function", "inherited"), given: bool = False
) -> list[Any]:
    """Every component over every store, its filter in every way: the store, the way, whether the source is the user's
    own without a filter, the form of the records, and what builds a component over them.

    Args:
        stores: By name.
        ways: Those of the filter.
        given: Only components without a store.
    """
    tables = ((False, GIVEN),) if given else ((True, OVER_RETRIEVERS), (False, OVER_STORES))
    return [
        pytest.param(store, way, theirs and way != "inherited", *entry, id=f"{named}-{way}-{cls} {name}")
        for named, store in stores.items()
        for way in ways
        for theirs, table in tables
        for cls, entries in table.items()
        for name, entry in entries.items()
        if theirs or way != "inherited"
    ]
