"""The retriever kit: a plain retriever passes it, and each fault of a retriever fails the check for it."""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from contextlib import contextmanager
from typing import Any

import pytest

from drillrank.testing import Event, Result, RetrieverTests
from examples.dictionary_store import Database, DictionaryStore
from tests.drillrank.testing.checks import checks_of, expect_failure


class PlainRetriever:
    """Return the nearest records of a store."""

    def __init__(self, database: Database, tenant: str | None, top_n: int | None) -> None:
        self.database, self.tenant, self.top_n = database, tenant, top_n or 4
        self.store = DictionaryStore(database, {"tenant": tenant} if tenant else None)
        self.events: list[Event] = []

    def retrieve(self, question: str) -> list[Result]:
        self.events.append(Event("start", question))
        try:
            if not question.strip():
                raise ValueError("The question is blank. Pass one.")
            results = [
                Result(chunk.id, chunk.text, chunk.score, dict(chunk.metadata)) for chunk in self.search(question)
            ]
            self.events.append(Event("end", repr(results)))
        except ValueError as error:
            self.events.append(Event("error", str(error)))
            raise
        return results

    def search(self, question: str) -> Any:
        return self.store.search(question, self.top_n)

    async def aretrieve(self, question: str) -> list[Result]:
        return await asyncio.to_thread(self.retrieve, question)


class PlainRetrieverTests(RetrieverTests):
    retriever_class = PlainRetriever
    patience = 0.1
    _retrievers: list[PlainRetriever] = []  # noqa: RUF012

    def make_store(self, chunks, embed):
        database = Database(embed)
        database.add(chunks)
        return database

    def add(self, store, chunks):
        store.add(chunks)

    def delete(self, store, chunks):
        store.delete([chunk.id for chunk in chunks])

    def make_retriever(self, store, tenant, top_n):
        self._retrievers.append(self.retriever_class(store, tenant, top_n))
        return self._retrievers[-1]

    def retrieve(self, retriever, question):
        return retriever.retrieve(question)

    async def aretrieve(self, retriever, question):
        return await retriever.aretrieve(question)

    @contextmanager
    def listen(self):
        events: list[Event] = []
        yield events
        events += self._retrievers[-1].events
        self._retrievers[-1].events = []


class TestPlainRetriever(PlainRetrieverTests):
    pass


class TestPlainRetrieverOverSections(PlainRetrieverTests):
    stores_sections = True


class ShowsAllToItsEvents(PlainRetriever):
    def search(self, question):
        self.events.append(Event("other", repr(DictionaryStore(self.database).search(question, 100))))
        return super().search(question)


class LeaksInAsync(PlainRetriever):
    async def aretrieve(self, question):
        return PlainRetriever(self.database, None, self.top_n).retrieve(question)


class LogsWhatItHides(PlainRetriever):
    def search(self, question):
        logging.getLogger("drillrank.hidden").debug("%s", DictionaryStore(self.database).search(question, 100))
        return super().search(question)


class InventsText(PlainRetriever):
    def retrieve(self, question):
        return [result._replace(text=f"{result.text} So be it.") for result in super().retrieve(question)]


class RemembersTexts(PlainRetriever):
    texts: dict[Any, str] = {}  # noqa: RUF012

    def retrieve(self, question):
        keys = [(id(self.database), result.id) for result in super().retrieve(question)]
        results = super().retrieve(question)
        pairs = zip(keys, results, strict=True)
        return [result._replace(text=self.texts.setdefault(key, result.text)) for key, result in pairs]


class RemembersResults(PlainRetriever):
    results: dict[Any, Any] = {}  # noqa: RUF012

    def retrieve(self, question):
        return self.results.setdefault((id(self.database), question), super().retrieve(question))


class WarnsWithTheQuestion(PlainRetriever):
    def search(self, question):
        warnings.warn(f"Nothing special was found for {question!r}.", stacklevel=2)
        return super().search(question)


class IgnoresTopN(PlainRetriever):
    def search(self, question):
        return self.store.search(question, 4)


class ReturnsResultsTwice(PlainRetriever):
    def search(self, question):
        return (super().search(question)[:1] * 2)[: self.top_n]


class SearchesBlankQuestions(PlainRetriever):
    def retrieve(self, question):
        return super().retrieve(question if question.strip() else "everything")


class EncodesQuestions(PlainRetriever):
    def search(self, question):
        return super().search(question.encode().decode())


class WritesIntoTheStore(PlainRetriever):
    def search(self, question):
        for chunk in self.database.chunks.values():
            chunk.metadata["searches"] = chunk.metadata.get("searches", 0) + 1
        return super().search(question)


class ReturnsTheMetadataOfTheStore(PlainRetriever):
    def retrieve(self, question):
        chunks = {chunk.id: chunk for chunk in self.database.chunks.values()}
        return [result._replace(metadata=chunks[result.id].metadata) for result in super().retrieve(question)]


class RoundsInAsync(PlainRetriever):
    async def aretrieve(self, question):
        return [result._replace(score=round(result.score)) for result in self.retrieve(question)]


class SharesTheQuestion(PlainRetriever):
    def retrieve(self, question):
        self.question = question
        time.sleep(0.001)
        return super().retrieve(self.question)

    async def aretrieve(self, question):
        return await asyncio.to_thread(PlainRetriever.retrieve, self, question)


class BlocksTheLoop(PlainRetriever):
    async def aretrieve(self, question):
        return self.retrieve(question)


class ForgetsTheEnd(PlainRetriever):
    def search(self, question):
        self.events.append(Event("start"))
        return super().search(question)


FAULTS = {
    "nothing_of_another_tenant": [ShowsAllToItsEvents, LeaksInAsync, LogsWhatItHides, InventsText],
    "an_update_is_seen": [RemembersTexts],
    "a_deleted_document": [RemembersResults],
    "contain_no_texts": [WarnsWithTheQuestion],
    "at_most_top_n": [IgnoresTopN, ReturnsResultsTwice],
    "blank_question": [SearchesBlankQuestions],
    "half_a_surrogate_pair": [EncodesQuestions],
    "can_be_repeated": [WritesIntoTheStore],
    "changed_results": [ReturnsTheMetadataOfTheStore],
    "async_returns": [RoundsInAsync],
    "threads_get": [SharesTheQuestion],
    "block_the_event_loop": [BlocksTheLoop],
    "events": [ForgetsTheEnd],
}


@pytest.mark.parametrize(
    ("name", "fault"), [pytest.param(name, fault, id=fault.__name__) for name in FAULTS for fault in FAULTS[name]]
)
def test_a_fault_fails_the_check_for_it(name, fault):
    class FaultyTests(PlainRetrieverTests):
        retriever_class = fault

    expect_failure(FaultyTests(), name)


def test_each_check_has_a_fault():
    assert {name for name in checks_of(RetrieverTests) if not any(part in name for part in FAULTS)} == set()
