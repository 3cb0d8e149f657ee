"""Documents for a path search: what the search asks for, and what it tells of its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, get_callback_manager_for_config
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore

from drillrank import Passage
from drillrank.calling import awaited
from drillrank.errors import InvalidInput
from drillrank.hosts.lookups import ById, Lookup, Lookups, arun_lookups, run_lookups
from drillrank.hosts.raw_records import each_section_once, tell_gone
from drillrank.multihop.lookups import Hop
from drillrank.multihop.record_names import RecordNames
from drillrank.once import Told
from langchain_ext._documents import document_names
from langchain_ext._filters import Guard, store_behind
from langchain_ext._lookups import StoreLookups
from langchain_ext._sections import read_section

HOP_EVENT = "promptrank_hop"
"""Name of the custom event that each hop of a path search dispatches."""

Named = list[tuple[str, Document]]
Found = tuple[list[Document], list[str]]


@dataclass
class DocumentSource:
    """Answers the lookups of one search, and remembers the documents behind the passages.

    Attributes:
        as_passage: From a document and its name to the passage that is ranked.
        guard: What may be seen.
        record_names: What the search calls the documents.
        retriever: Answers retrievals, if there is one.
        docstore: Knows documents by id, if there is one; without one, the store behind the retriever knows the given.
        given: The given documents that may be seen, by name.
        config: Callbacks of the run that the lookups belong to.
        documents: Every document met so far, by name: the first record of each, which all of its result is from.
        missed: Names of given documents that the store did not bring.
        told: What was told before.
    """

    as_passage: Callable[[Document, str], Passage]
    guard: Guard
    record_names: RecordNames
    retriever: Runnable[str, list[Document]] | None = None
    docstore: BaseStore[str, Document] | VectorStore | None = None
    given: Mapping[str, Document] = field(default_factory=dict)
    config: RunnableConfig | None = None
    documents: dict[str, Document] = field(default_factory=dict)
    missed: set[str] = field(default_factory=set)
    told: Told = field(default_factory=Told)
    _met: dict[str, Passage] = field(default_factory=dict)

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """The retriever's first results."""
        return self.found(query, self.retriever.invoke(query, self.config))[:n] if self.retriever else ()

    async def aretrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """The retriever's first results."""
        if self.retriever is None:
            return ()
        return (await self.afound(query, await self.retriever.ainvoke(query, self.config)))[:n]

    def fetch(self, ids: Sequence[str], /) -> Sequence[tuple[str, Passage]]:
        """The documents with these ids that there are, as the store has them now."""
        if isinstance(self.docstore, BaseStore):
            return self._fetched(ids, _of_keys(ids, self.docstore.mget(ids)))
        store, wanted = self._asked(ids)
        if store is None or not wanted:
            return self._as_given(ids)
        try:
            return self._fetched(wanted, _with_ids(store.get_by_ids(wanted)))
        except NotImplementedError:
            return self._unasked(ids)

    async def afetch(self, ids: Sequence[str], /) -> Sequence[tuple[str, Passage]]:
        """As `fetch`, without blocking the event loop."""
        if isinstance(self.docstore, BaseStore):
            return self._fetched(ids, _of_keys(ids, await awaited(self.docstore.amget, ids)))
        store, wanted = self._asked(ids)
        if store is None or not wanted:
            return self._as_given(ids)
        try:
            return self._fetched(wanted, _with_ids(await awaited(store.aget_by_ids, wanted)))
        except NotImplementedError:
            return self._unasked(ids)

    def found(self, query: str, documents: Iterable[Document], told_by: str = "") -> list[Passage]:
        """What a retriever brought and may be seen, remembered and turned into passages; of a section one."""
        return self._passages(run_lookups(self._sections(documents, told_by), partial(self._answer, query)))

    async def afound(self, query: str, documents: Iterable[Document], told_by: str = "") -> list[Passage]:
        """As `found`, without blocking the event loop."""
        lookups = self._sections(documents, told_by)
        return self._passages(await arun_lookups(lookups, partial(self._aanswer, query)))

    def own_ids(self, names: Iterable[str]) -> list[str]:
        """What the documents are called where they come from."""
        return [self.record_names.own_id(name) for name in names]

    def tell(self, query: str, hop: Hop) -> None:
        """Dispatch the event of a hop; outside of a run, where none can be, nothing happens."""
        if hop.paths and _in_a_run(self.config):
            dispatch_custom_event(HOP_EVENT, self._described(query, hop), config=self.config)

    async def atell(self, query: str, hop: Hop) -> None:
        """As `tell`."""
        if hop.paths and _in_a_run(self.config):
            await adispatch_custom_event(HOP_EVENT, self._described(query, hop), config=self.config)

    def _sections(self, documents: Iterable[Document], told_by: str) -> Lookups[Found]:
        kept, behind = self.guard.kept(documents, told_by), store_behind(self.retriever, self.config)
        sure = behind is not None
        return (yield from each_section_once(kept, read_section, self.given, resolved=False, sure=sure))

    def _answer(self, query: str, lookup: Lookup) -> Sequence[Document] | None:
        """From the store behind the retriever, or else from the docstore."""
        if isinstance(self.docstore, BaseStore) and store_behind(self.retriever, self.config) is None:
            return self._of_keys(self.docstore.mget(lookup.ids)) if isinstance(lookup, ById) else None
        return self._lookups(query).answer(lookup)

    async def _aanswer(self, query: str, lookup: Lookup) -> Sequence[Document] | None:
        """As `_answer`."""
        if isinstance(self.docstore, BaseStore) and store_behind(self.retriever, self.config) is None:
            ids = lookup.ids if isinstance(lookup, ById) else None
            return None if ids is None else self._of_keys(await awaited(self.docstore.amget, ids))
        return await self._lookups(query).aanswer(lookup)

    def _lookups(self, query: str) -> StoreLookups:
        store = store_behind(self.retriever, self.config)
        if store is None and isinstance(self.docstore, VectorStore):
            store = self.docstore
        return StoreLookups(query, {} if store is None else store, self.guard, self.config)

    def _of_keys(self, found: Sequence[Document | None]) -> list[Document]:
        return self.guard.allowed(document for document in found if document is not None)

    def _passages(self, found: Found) -> list[Passage]:
        kept, missing = found
        if not self.guard.restriction:  # perhaps they are hidden: nothing is said of them
            tell_gone("PromptRank", self.told.anew("raw", missing))
        return [self._remembered(name, one) for name, one in zip(names_of(kept), kept, strict=True)]

    def _asked(self, ids: Sequence[str]) -> tuple[VectorStore | None, list[str]]:
        """The vector store to ask, and for what: one that nobody named need not understand ids that nobody gave."""
        if isinstance(self.docstore, VectorStore):
            return self.docstore, list(ids)
        return store_behind(self.retriever, self.config), [id_ for id_ in ids if id_ in self.given]

    def _as_given(self, ids: Sequence[str]) -> list[tuple[str, Passage]]:
        return [(id_, self._remembered(id_, self.given[id_])) for id_ in ids if id_ in self.given]

    def _unasked(self, ids: Sequence[str]) -> list[tuple[str, Passage]]:
        if self.docstore is not None:
            raise InvalidInput(f"{type(self.docstore).__name__} finds no documents by id: pass another docstore.")
        return self._as_given(ids)

    def _fetched(self, ids: Sequence[str], found: Named) -> list[tuple[str, Passage]]:
        self.missed |= {id_ for id_ in ids if id_ in self.given}.difference(id_ for id_, _ in found)
        allowed = set(map(id, self.guard.allowed(document for _, document in found)))
        return [(id_, self._remembered(id_, one, fetched=True)) for id_, one in found if id(one) in allowed]

    def _remembered(self, id_: str, document: Document, *, fetched: bool = False) -> Passage:
        passage = self.as_passage(document, id_)
        name = self.record_names.name(passage, fetched=fetched)
        if name not in self._met:
            self.documents[name] = document
            self._met[name] = replace(passage, id=name)
        return self._met[name]

    def _described(self, query: str, hop: Hop) -> dict[str, Any]:
        best = hop.paths[0]
        return {
            "query": query,
            "hop": hop.number,
            "paths": len(hop.paths),
            "best_path": self.own_ids(best.passage.ids),
            "best_score": best.score,
        }


def names_of(documents: Sequence[Document]) -> list[str]:
    """The documents' ids; those without one get a name that depends on what they hold."""
    return [document.id or name for document, name in zip(documents, document_names(documents), strict=True)]


def _of_keys(ids: Sequence[str], found: Sequence[Document | None]) -> Named:
    """A document of a key-value store is called by its key, whatever id it has."""
    for value in found:
        if not isinstance(value, Document | None):
            raise InvalidInput(
                f"The docstore holds a {type(value).__name__} where a Document belongs: "
                "langchain_classic.storage.create_kv_docstore makes a store of documents of a store of bytes."
            )
    return [(key, document) for key, document in zip(ids, found, strict=True) if document is not None]


def _with_ids(found: Sequence[Document]) -> Named:
    return [(document.id, document) for document in found if document.id]


def _in_a_run(config: RunnableConfig | None) -> bool:
    return get_callback_manager_for_config(ensure_config(config)).parent_run_id is not None
