"""The store kit: the dictionary of the examples passes it, and each fault of a store fails the check for it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from drillrank.structure.stored_chunks import StoredChunk
from drillrank.testing import RecordStoreTests
from examples.dictionary_store import DictionaryStore
from tests.drillrank.testing.checks import checks_of, expect_failure
from tests.drillrank.testing.dictionary import DictionaryStoreTests


class TestDictionaryStore(DictionaryStoreTests):
    pass


class FarthestFirst(DictionaryStore):
    def search(self, question, n, where=None):
        return super().search(question, n, where)[::-1]


class IgnoresN(DictionaryStore):
    def search(self, question, n, where=None):
        return super().search(question, 100, where)


class ReturnsTenAtMost(DictionaryStore):
    def search(self, question, n, where=None):
        return super().search(question, min(n, 10), where)


class InventsRecords(DictionaryStore):
    def search(self, question, n, where=None):
        return super().search(question, n, where) or [StoredChunk(None, "1", "Nothing is known.", ("", "1"))]


class FiltersTheFirstN(DictionaryStore):
    def search(self, question, n, where=None):
        return [chunk for chunk in super().search(question, n) if chunk.matches(where or {})]


class ScoresOfNoNumber(DictionaryStore):
    def search(self, question, n, where=None):
        return [replace(chunk, score=float("nan")) for chunk in super().search(question, n, where)]


class ScoresOfLookUps(DictionaryStore):
    def get(self, ids):
        return [replace(chunk, score=1.0) for chunk in super().get(ids)]


class ReturnsMissingRecords(DictionaryStore):
    def get(self, ids):
        return super().get(ids) or super().search("", 1)


class ComparesTuples(DictionaryStore):
    def find(self, where):
        chunks = super().find({})
        return [chunk for chunk in chunks if all(chunk.metadata.get(key) == value for key, value in where.items())]


class FindsOnePage(DictionaryStore):
    def find(self, where):
        return super().find(where)[:100]


class ReturnsNoneForNothing(DictionaryStore):
    def find(self, where):
        return super().find(where) or None


class ReturnsNoneInAsync(DictionaryStore):
    async def aget(self, ids):
        return None


class EmbedsMetadata(DictionaryStore):
    def search(self, question, n, where=None):
        chunks = super().search(question, n, where)
        vectors = self._database.embed([f"{chunk.text} harbour" for chunk in chunks])
        return [replace(chunk, vector=list(vector)) for chunk, vector in zip(chunks, vectors, strict=True)]


class LeaksById(DictionaryStore):
    def get(self, ids):
        return DictionaryStore(self._database).get(ids)


class LeaksIfWhereNamesTheTenant(DictionaryStore):
    def _select(self, where):
        return DictionaryStore(self._database, {} if "tenant" in where else self._visible).find(where)


class LeaksInAsync(DictionaryStore):
    async def afind(self, where):
        return DictionaryStore(self._database).find(where)


class ComparesTenantsInLowercase(DictionaryStore):
    def __init__(self, database, visible=None):
        super().__init__(database, {key: value.strip().lower() for key, value in (visible or {}).items()})


class HidesPermittedRecords(DictionaryStore):
    def _select(self, where):
        return super()._select(where)[1 if self._visible else 0 :]


class RemembersSearches(DictionaryStore):
    _results: dict[Any, Any] = {}  # noqa: RUF012

    def search(self, question, n, where=None):
        key = id(self._database), question, n, str(where)
        return self._results.setdefault(key, super().search(question, n, where))


class RemembersRecords(DictionaryStore):
    _chunks: dict[Any, Any] = {}  # noqa: RUF012

    def get(self, ids):
        chunks = super().get(ids)
        self._chunks.setdefault(id(self._database), {}).update({chunk.id: chunk for chunk in chunks})
        return [chunk for id_, chunk in self._chunks[id(self._database)].items() if id_ in set(ids)]


class EmptiesWhere(DictionaryStore):
    def find(self, where):
        return [chunk for chunk in super().find({}) if chunk.matches({key: where.pop(key) for key in list(where)})]


class SortsIds(DictionaryStore):
    def get(self, ids):
        ids.sort(reverse=True)
        return super().get(ids)


class ReturnsItsOwnObjects(DictionaryStore):
    def find(self, where):
        return [chunk for chunk in self._database.chunks.values() if chunk.matches(where)]


class ForgetsWhereInAsync(DictionaryStore):
    async def asearch(self, question, n, where=None):
        return await super().asearch(question, n)


class SharesTheQuestion(DictionaryStore):
    async def asearch(self, question, n, where=None):
        self._question = question
        await asyncio.sleep(0.001)
        return await super().asearch(self._question, n, where)


class BlocksTheLoop(DictionaryStore):
    async def asearch(self, question, n, where=None):
        return self.search(question, n, where)


class BlocksTheLoopInLookUps(DictionaryStore):
    async def aget(self, ids):
        time.sleep(0.12)  # noqa: ASYNC251
        return self.get(ids)


class SharesTheQuestionOfThreads(DictionaryStore):
    def search(self, question, n, where=None):
        self._question = question
        time.sleep(0.001)
        return super().search(self._question, n, where)


class ShortensIds(DictionaryStore):
    def search(self, question, n, where=None):
        return [replace(chunk, id=chunk.id[:100]) for chunk in super().search(question, n, where)]


class BuildsQueries(DictionaryStore):
    def find(self, where):
        return super().find({} if "' OR '" in str(where) else where)


class StripsTexts(DictionaryStore):
    def search(self, question, n, where=None):
        return [replace(chunk, text=chunk.text.strip()) for chunk in super().search(question, n, where)]


class FormatsQuestions(DictionaryStore):
    def search(self, question, n, where=None):
        return super().search(question.format(text="a text"), n, where)


class LeaksInSearch(DictionaryStore):
    def search(self, question, n, where=None):
        return DictionaryStore(self._database).search(question, n, where)


class SearchesBackwardsInAsync(DictionaryStore):
    async def asearch(self, question, n, where=None):
        return self.search(question, n, where)[::-1]


class RemembersDocuments(DictionaryStore):
    _documents: dict[Any, Any] = {}  # noqa: RUF012

    def find(self, where):
        return self._documents.setdefault((id(self._database), str(where)), super().find(where))


FAULTS = {
    "components_return_visible_texts_only": [LeaksInSearch],
    "components_return_the_same": [SearchesBackwardsInAsync],
    "components_see_an_update": [RemembersDocuments],
    "the_nearest_records_first": [FarthestFirst],
    "at_most_n_records": [IgnoresN],
    "each_record_once_if_n_exceeds_the_store": [ReturnsTenAtMost],
    "an_empty_store": [InventsRecords],
    "obeys_where_before_n": [FiltersTheFirstN],
    "scores_are_finite": [ScoresOfNoNumber, ScoresOfLookUps],
    "vectors_are_those": [EmbedsMetadata],
    "get_returns": [ReturnsMissingRecords],
    "find_returns": [ComparesTuples],
    "find_has_no_limit": [FindsOnePage],
    "look_ups_return_none": [ReturnsNoneForNothing, ReturnsNoneInAsync],
    "no_call_returns_records_of_another_tenant": [
        *(LeaksById, LeaksIfWhereNamesTheTenant, LeaksInAsync, HidesPermittedRecords)
    ],
    "a_tenant_is_compared_exactly": [ComparesTenantsInLowercase],
    "an_update_is_seen_at_once": [RemembersSearches],
    "a_deleted_record_is_gone": [RemembersRecords],
    "no_call_changes_what_it_was_given": [EmptiesWhere, SortsIds],
    "changed_results": [ReturnsItsOwnObjects],
    "async_methods_return": [ForgetsWhereInAsync],
    "concurrent_async_calls": [SharesTheQuestion],
    "async_methods_do_not_block": [BlocksTheLoop, BlocksTheLoopInLookUps],
    "threads_get": [SharesTheQuestionOfThreads],
    "unusual_ids": [ShortensIds],
    "unusual_metadata_values": [BuildsQueries],
    "unusual_texts": [StripsTexts],
    "unusual_questions": [FormatsQuestions],
}


@pytest.mark.parametrize(
    ("name", "fault"), [pytest.param(name, fault, id=fault.__name__) for name in FAULTS for fault in FAULTS[name]]
)
def test_a_fault_fails_the_check_for_it(name, fault):
    class FaultyTests(DictionaryStoreTests):
        store_class = fault
        patience = 0.1

    expect_failure(FaultyTests(), name)


def test_each_check_has_a_fault():
    assert {name for name in checks_of(RecordStoreTests) if not any(part in name for part in FAULTS)} == set()
