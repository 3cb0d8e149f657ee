"""Methods that a test class of a record store defines, for all checks over a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.testing.results import chunk_keys, expect, run_async
from drillrank.testing.samples import QUESTION, TENANTS, WORDS, SampleChunk, sample_embed, sample_id
from drillrank.vectors import Embed


class FilledStore:
    """Methods by which the kit fills a database, collection or index.

    `make_store` is required. Without `add` or `delete`, the checks that need them are skipped.

    Attributes:
        patience: Seconds after which the event loop counts as blocked while a question is embedded.
    """

    patience = 5.0

    def make_store(self, chunks: Sequence[SampleChunk], embed: Embed) -> Any:
        """Return a new database, collection or index that contains these records.

        Args:
            chunks: Records. A store that keeps `StoredChunk` objects takes them as they are. Any other store takes
                `chunk.record`, with its id, text and flat metadata, and makes `StoredChunk` objects of what it finds.
            embed: Function from a list of texts to unit vectors, by which the store searches.
        """
        raise NotImplementedError("Define make_store.")

    def add(self, store: Any, chunks: Sequence[SampleChunk]) -> None:
        """Add records to a store."""
        raise NotImplementedError

    def delete(self, store: Any, chunks: Sequence[SampleChunk]) -> None:
        """Delete records from a store, as they were added."""
        raise NotImplementedError

    def update(self, store: Any, chunks: Sequence[SampleChunk]) -> None:
        """Replace the records with these ids. By default, delete them and add the new ones."""
        self.delete(store, chunks)
        self.add(store, chunks)

    async def aclose(self, store: Any) -> None:
        """Close what belongs to the running event loop, such as connections. By default, nothing does."""

    # Helpers of the checks

    def _make(self, chunks: Sequence[SampleChunk], embed: Any = sample_embed) -> Any:
        return self.make_store(chunks, embed)

    def _run(self, make: Callable[[], Any], database: Any = None) -> Any:
        return run_async(make, partial(self.aclose, database))


class StoreHooks(FilledStore):
    """Methods and attributes by which the kit opens a record store.

    Attributes:
        can_get: False if the store cannot be asked for records by id, so that `get` always returns None.
        can_find: False if the store cannot be asked for records by metadata, so that `find` always returns None.
        has_tenants: False if the store cannot restrict what a caller sees. A caller then sees all records.
        unusual_ids: Ids that the store must take. Empty if the store makes ids of its own.
        unusual_values: Metadata values that the store must compare exactly.
        guessed_ids: Ids of no record, which a caller of `get` may try.
        unusual_texts: Texts that the store must keep. It may replace half a surrogate pair by a question mark.
    """

    can_get = True
    can_find = True
    has_tenants = True
    unusual_ids: Sequence[str] = (
        *("1", "a b", "a/b.md#c?d=e&f", "Ä-ü-漢字-🦊", "quote'and\"quote", "50%_*", "../../a", "$where", "x" * 200),
    )
    unusual_values: Sequence[str] = (
        *(
            "12",
            "1.0",
            "true",
            "None",
            "O'Neill",
            "' OR '1'='1",
            "'); DROP TABLE records; --",
            "a :b c::d",
            "100% \\ {x}",
        ),
        *("Ä 漢字 🦊", 'the "quoted" one', "$ne", "a,b", "x" * 200),
    )
    guessed_ids: Sequence[str] = ("", "*", "%", "a", "a-0", "' OR '1'='1", "../a", "None")
    unusual_texts: Sequence[str] = (
        *(
            "Grüße, 漢字 and 🦊🦊",
            "e\u0301 is two characters",
            "שלום עולם",
            "A tab\tand\n\nlines\r\n",
            "{text} %s $1 \\n <b>",
        ),
        *("'); DROP TABLE records; --", "half a pair \ud800 here", "long " * 5_000),
    )

    def open_store(self, store: Any, tenant: str | None) -> RecordStore:
        """Return the record store of a caller.

        Args:
            store: Return value of `make_store`.
            tenant: Caller, who sees only records with this value under `tenant` in the metadata. None sees all records.
        """
        raise NotImplementedError("Define open_store.")

    # Helpers of the checks

    def _open(self, store: Any, tenant: str | None = None) -> RecordStore:
        return self.open_store(store, tenant)

    def _store(self, chunks: Sequence[SampleChunk]) -> RecordStore:
        return self._open(self._make(chunks))

    def _everything(self, store: RecordStore, is_async: bool = False, database: Any = None) -> list[StoredChunk[Any]]:
        """Return what all methods return for all records of the samples."""
        ids = [sample_id(tenant, number) for tenant in TENANTS for number in range(len(WORDS))]
        if is_async:

            async def work() -> list[Any]:
                found_by_id = await store.aget(ids)
                found_by_tenant = await store.afind({"tenant": TENANTS})
                return [*await store.asearch(QUESTION, 100), *(found_by_id or ()), *(found_by_tenant or ())]

            return list(self._run(work, database))
        return [*store.search(QUESTION, 100), *(store.get(ids) or ()), *(store.find({"tenant": TENANTS}) or ())]

    def _expect_chunks(
        self, results: Sequence[StoredChunk[Any]] | None, chunks: Sequence[SampleChunk], call: str
    ) -> None:
        """Fail unless a call returned these chunks, each once, with their metadata."""
        keys, expected = chunk_keys(results, call), chunk_keys(chunks, call)
        surplus, missing = [key for key in keys if key not in expected], [key for key in expected if key not in keys]
        expect(
            keys == expected,
            f"{call} returned {len(keys)} records instead of {len(expected)}. Surplus: {surplus!r:.200}. Missing: "
            f"{missing!r:.200}. Return each matching record once, under its id and with its text.",
        )
        metadata_by_id = {chunk.id: chunk.metadata for chunk in results or ()}
        for chunk in chunks:
            lacking = [key for key, value in chunk.metadata.items() if metadata_by_id[chunk.id].get(key) != value]
            expect(
                not lacking,
                f"{call} returned a record without the metadata {lacking!r:.200}. Return what was stored.",
            )

    def _expect_visible(self, store: RecordStore, chunks: Sequence[SampleChunk]) -> None:
        """Fail unless a caller sees all of these records."""
        ids = {chunk.id for chunk in store.search(QUESTION, 100)}
        hidden = [chunk.id for chunk in chunks if chunk.id not in ids]
        expect(
            not hidden,
            f"A search did not return {len(hidden)} records that this caller may see. Filter before the search is "
            "limited to n, or search further.",
        )

    def _skip_without(self, can: bool) -> None:
        if not can:
            pytest.skip("The store does not support this, as the class says.")

    def _skip_without_limits(self, store: RecordStore) -> None:
        if not store.obeys_limits:
            pytest.skip("obeys_limits is False: the search has a limit of its own.")
