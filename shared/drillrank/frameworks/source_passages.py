"""Passages of a store for self-ask and BRMGR, and the LLM costs of the retrievers that found them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from drillrank.frameworks.sections import deduplicate_sections, warn_missing
from drillrank.frameworks.settings import GenerationSettings, MergedCounts
from drillrank.generation import generated_passages
from drillrank.llm import Requests, Usage, arun, merge_requests, run
from drillrank.passages import Passage, check_query
from drillrank.structure.record_store import RecordStore, search_request
from drillrank.structure.stored_chunks import StoredChunk

_reported_usages: ContextVar[list[Usage] | None] = ContextVar("reported_usages", default=None)
"""Usages of the retrievers that work for one self-ask question, in whatever thread or task they run."""


def report_usage(usage: Usage) -> None:
    """Report what a retriever's LLM calls cost to the self-ask component that called the retriever, if one did."""
    usages = _reported_usages.get()
    if usages is not None:
        usages.append(usage)


@contextmanager
def _collect_usages() -> Iterator[list[Usage]]:
    """Collect what is reported in the block, also on other threads that it waits for."""
    usages: list[Usage] = []
    token = _reported_usages.set(usages)
    try:
        yield usages
    finally:
        _reported_usages.reset(token)


@dataclass(frozen=True, slots=True)
class PassagesWithUsage:
    """Passages of a retriever, and the cost of its LLM calls.

    Attributes:
        passages: The passages, best first.
        usages: Usage of each D3 retriever that took part.
    """

    passages: Sequence[Passage]
    usages: Sequence[Usage]

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.passages)

    @property
    def usage(self) -> Usage:
        """Usage of all of them."""
        total = Usage()
        for usage in self.usages:
            total.include(usage)
        return total


def search_sections(store: RecordStore, question: str, n: int) -> Requests[list[StoredChunk[Any]]]:
    """Search a store, and return one chunk for each section: its raw record, or the best view if none can be fetched.

    Args:
        store: The store.
        question: The question.
        n: Number of records that a store is asked for. A retriever has its own limit.
    """
    [hits] = yield [search_request(store, question, n)]
    chunks, deleted_ids = yield from deduplicate_sections(hits, store, is_store_of_hits=True)
    access_filter = getattr(store, "access_filter", None)
    if access_filter is None or not access_filter.restricts:  # a warning would reveal that hidden sections exist
        warn_missing("The source", deleted_ids)
    return chunks


@dataclass(frozen=True, slots=True)
class RetrievedPassages:
    """Retriever of passages for `drillrank.SelfAsk` that searches a framework's retriever or store.

    Attributes:
        store: Function that returns the store for one question.
        passage: Function from a chunk to a passage that contains its record.
        n: Number of records that a store is asked for. A retriever has its own limit.
    """

    store: Callable[[], RecordStore]
    passage: Callable[[StoredChunk[Any]], Passage]
    n: int = 5

    def retrieve(self, question: str) -> PassagesWithUsage:
        """Return the passages that the retriever finds, and the cost of its LLM calls."""
        with _collect_usages() as usages:
            return PassagesWithUsage(run(self._search(question)), usages)

    async def aretrieve(self, question: str) -> PassagesWithUsage:
        """Run `retrieve` without blocking the event loop."""
        with _collect_usages() as usages:
            return PassagesWithUsage(await arun(self._search(question)), usages)

    def _search(self, question: str) -> Requests[list[Passage]]:
        chunks = yield from search_sections(self.store(), question, self.n)
        return list(map(self.passage, chunks))


def retrieve_and_generate(
    settings: GenerationSettings, question: str, counts: MergedCounts, prompts: Sequence[str], store: RecordStore
) -> Requests[tuple[Sequence[StoredChunk[Any]], list[Passage]]]:
    """Search a store, and let an LLM write passages at the same time.

    Args:
        settings: Settings of the generation.
        question: The question.
        counts: Numbers of passages that the LLM writes, with one call each, and that the store is asked for.
        prompts: Templates for the passages, as for `generated_passages`.
        store: The store.

    Raises:
        InvalidInput: The question is blank.
    """
    passages = generated_passages(check_query(question), counts.n_generated, prompts, settings.on_failure)
    search = search_sections(store, question, counts.n_retrieved)
    chunks, generated = yield from merge_requests([search, cast("Requests[Any]", passages)])
    return chunks, generated
