"""Checks of drillrank's components over a record store: drilling down, multi-view retrieval and path search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from drillrank.drilldown.d3 import D3
from drillrank.frameworks.evidence import EvidenceRetrieval
from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.paths import PathRetrieval, PathStores
from drillrank.frameworks.settings import PathRetrieverSettings
from drillrank.frameworks.views import ViewRetrieval
from drillrank.likelihood import UnigramModel
from drillrank.llm import FunctionRequest, Requests, Usage, arun, run
from drillrank.passages import Passage
from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk, Where
from drillrank.testing.results import call_hook, expect
from drillrank.testing.samples import QUESTION, SampleChunk, cut_document, marks_in, sample_sections
from drillrank.testing.store_hooks import StoreHooks

_UNRESTRICTED: AccessFilter[Any] = AccessFilter(None, ())


class ComponentResult(NamedTuple):
    """Result of a component over a store.

    Attributes:
        text: Text of the result.
        score: Its score.
        metadata: Metadata of the user.
    """

    text: str
    score: float
    metadata: dict[str, Any]


class _ChunkStore:
    """Record store whose records are the chunks of another one, so that the kit need not know a framework's records.

    Attributes:
        chunks: All chunks that the other store returned.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self.chunks: list[StoredChunk[Any]] = []

    @property
    def obeys_limits(self) -> bool:
        return self._store.obeys_limits

    def _note(self, chunks: Sequence[StoredChunk[Any]]) -> list[StoredChunk[Any]]:
        self.chunks += chunks
        return [replace(chunk, record=chunk) for chunk in chunks]

    def _note_or_none(self, chunks: Sequence[StoredChunk[Any]] | None) -> list[StoredChunk[Any]] | None:
        return None if chunks is None else self._note(chunks)

    def search(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        return self._note(self._store.search(question, n, where))

    def get(self, ids: Sequence[str]) -> list[StoredChunk[Any]] | None:
        return self._note_or_none(self._store.get(ids))

    def find(self, where: Where) -> list[StoredChunk[Any]] | None:
        return self._note_or_none(self._store.find(where))

    async def asearch(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        return self._note(await self._store.asearch(question, n, where))

    async def aget(self, ids: Sequence[str]) -> list[StoredChunk[Any]] | None:
        return self._note_or_none(await self._store.aget(ids))

    async def afind(self, where: Where) -> list[StoredChunk[Any]] | None:
        return self._note_or_none(await self._store.afind(where))


Component = Callable[[_ChunkStore], Requests[list[ComponentResult]]]


def drill_down(store: _ChunkStore) -> Requests[list[ComponentResult]]:
    """Retrieve evidence passages."""
    retrieval: EvidenceRetrieval[Any] = EvidenceRetrieval(D3())
    evidence = yield from retrieval.retrieve_requests(QUESTION, store, top_n=3)
    return [ComponentResult(one.text, one.score, dict(one.chunk.metadata)) for one in evidence.paragraphs]


def retrieve_views(store: _ChunkStore) -> Requests[list[ComponentResult]]:
    """Retrieve sections by their views."""
    retrieval: ViewRetrieval[Any] = ViewRetrieval()
    sections = yield from retrieval.retrieve_requests(QUESTION, store, top_n=3)
    return [ComponentResult(one.chunk.text, one.merged.score, dict(one.chunk.metadata)) for one in sections]


class _ChunkStores(PathStores[StoredChunk[Any]]):
    """Stores of a path search whose records are chunks."""

    def own_id(self, record: StoredChunk[Any]) -> str:
        return record.id

    def name_records(self, records: Sequence[StoredChunk[Any]]) -> list[str]:
        return [chunk.id for chunk in records]

    def to_passage(self, record: StoredChunk[Any], name: str) -> Passage:
        return Passage(record.text, id=name, links=tuple(record.links.values()), metadata=record.metadata)

    def hop_event(self, hop: dict[str, Any]) -> FunctionRequest:  # noqa: ARG002
        return FunctionRequest(lambda: None)


def search_paths(store: _ChunkStore) -> Requests[list[ComponentResult]]:
    """Retrieve raw sections, along the links to their neighbors."""
    stores = _ChunkStores(
        access_filter=_UNRESTRICTED, source=store, linked_store=store, knows_all_ids=True, is_one_store=True
    )
    retrieval: PathRetrieval[StoredChunk[Any]] = PathRetrieval(
        *([], UnigramModel(), stores),
        settings=PathRetrieverSettings(),
        links=["metadata"],
        embed=None,
        missing_prompt=None,
        explain=False,
    )
    results = yield from retrieval.retrieve_requests(QUESTION, stores, 3, Usage())
    return [ComponentResult(one.record.text, one.score, dict(one.record.metadata)) for one in results]


_COMPONENTS: dict[str, Component] = {
    "drilling down": drill_down,
    "multi-view retrieval": retrieve_views,
    "path search": search_paths,
}
_each_component = pytest.mark.parametrize("name", list(_COMPONENTS))


class StoreComponentTests(StoreHooks):
    """Checks of drilling down, multi-view retrieval and path search over a store."""

    @_each_component
    def test_components_return_visible_texts_only(self, name: str) -> None:
        """All texts of the results, and all records that were read, are in the store and belong to the caller."""
        chunks = sample_sections()
        database = self._make(chunks)
        for is_async in (False, True):
            store = _ChunkStore(self._open(database, "a" if self.has_tenants else None))
            results = self._ask(name, store, is_async, database)
            self._expect_results(name, results, store, chunks)

    @_each_component
    def test_components_return_the_same_each_time_and_in_async(self, name: str) -> None:
        """Two calls, and an asynchronous one, return equal results in the same order."""
        database = self._make(sample_sections())
        first, second, in_async = (
            self._ask(name, _ChunkStore(self._open(database)), is_async, database) for is_async in (False, False, True)
        )
        expect(
            _rounded(first) == _rounded(second),
            f"Two calls of {name} over the store differ. Return records of equal scores in the same order each time.",
        )
        expect(
            _rounded(first) == _rounded(in_async),
            f"An asynchronous call of {name} differs from a synchronous one. Let asearch, aget and afind return what "
            "their twins return.",
        )

    @_each_component
    def test_components_see_an_update(self, name: str) -> None:
        """After a document was replaced, its new text is returned, and its old text is not."""
        database = self._make(sample_sections())
        tenant = "a" if self.has_tenants else None
        self._ask(name, _ChunkStore(self._open(database, tenant)), False, database)
        old, new = cut_document("a", "guide"), cut_document("a", "guide", version=2)
        call_hook(self.delete, database, old)
        call_hook(self.add, database, new)
        chunks = [chunk for chunk in sample_sections() if chunk.id not in {one.id for one in old}] + new
        store = _ChunkStore(self._open(database, tenant))
        results = self._ask(name, store, False, database)
        self._expect_results(name, results, store, chunks)
        texts = "\n".join(result.text for result in results)
        expect(
            not self.has_tenants or marks_in(texts) & {mark for chunk in new for mark in marks_in(chunk.text)},
            f"A document was replaced, and {name} returned none of its new text. Search and look up in the same data.",
        )

    def _ask(self, name: str, store: _ChunkStore, is_async: bool, database: Any) -> list[ComponentResult]:
        """Run a component over a store."""
        component = _COMPONENTS[name]
        results = self._run(lambda: arun(component(store)), database) if is_async else run(component(store))
        return list(results)

    def _expect_results(
        self, name: str, results: Sequence[ComponentResult], store: _ChunkStore, chunks: Sequence[SampleChunk]
    ) -> None:
        """Fail unless all results, and all records that were read, are visible and as they are stored."""
        tenants = ("a",) if self.has_tenants else ("a", "b")
        visible = [chunk for chunk in chunks if chunk.metadata["tenant"] in tenants]
        visible_marks = {mark for chunk in visible for mark in marks_in(chunk.view_text)}
        read_marks = {mark for chunk in store.chunks for mark in marks_in(chunk.view_text + chunk.text)}
        expect(results, f"{name} over the store found nothing about {QUESTION!r}. Check search, and find by siblings.")
        expect(
            read_marks <= visible_marks,
            f"{name} read records that the caller may not see, or that are no longer stored: "
            f"{sorted(read_marks - visible_marks)!r:.300}. Apply the caller's filter to every method.",
        )
        for result in results:
            for part in filter(None, map(str.strip, result.text.split("\n\n"))):
                expect(
                    any(part in chunk.text for chunk in visible),
                    f"{name} returned {part!r:.200}, which no record contains. Return texts as they were stored.",
                )
            expect(
                result.metadata.get("tenant") in tenants,
                f"{name} returned a record with the tenant {result.metadata.get('tenant')!r:.100}. Keep metadata.",
            )


def _rounded(results: Sequence[ComponentResult]) -> list[tuple[str, float, dict[str, Any]]]:
    return [(result.text, round(result.score, 4), result.metadata) for result in results]
