"""Methods that a test class of a record store defines, for all checks over a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drillrank.structure.record_store import RecordStore
from drillrank.testing.results import call_hook
from drillrank.testing.samples import SampleChunk
from drillrank.vectors import Embed


class StoreHooks:
    """Methods and attributes by which the kit reaches a store.

    `make_store` and `open_store` are required. Without `add` or `delete`, the checks that need them are skipped.

    Attributes:
        can_get: False if the store cannot be asked for records by id, so that `get` always returns None.
        can_find: False if the store cannot be asked for records by metadata, so that `find` always returns None.
        has_tenants: False if the store cannot restrict what a caller sees. A caller then sees all records.
        unusual_ids: Ids that the store must take. Empty if the store makes ids of its own.
        unusual_texts: Texts that the store must keep. It may replace half a surrogate pair by a question mark.
    """

    can_get = True
    can_find = True
    has_tenants = True
    unusual_ids: Sequence[str] = (
        *("1", "a b", "a/b.md#c?d=e&f", "Ä-ü-漢字-🦊", "quote'and\"quote", "50%_*", "../../a", "$where", "x" * 200),
    )
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

    def make_store(self, chunks: Sequence[SampleChunk], embed: Embed) -> Any:
        """Return a new database, collection or index that contains these records.

        Args:
            chunks: Records. A store that keeps `StoredChunk` objects takes them as they are. Any other store takes
                `chunk.record`, with its id, text and flat metadata, and makes `StoredChunk` objects of what it finds.
            embed: Function from a list of texts to unit vectors, by which the store searches.
        """
        raise NotImplementedError

    def open_store(self, store: Any, tenant: str | None) -> RecordStore:
        """Return the record store of a caller.

        Args:
            store: Return value of `make_store`.
            tenant: Caller, who sees only records with this value under `tenant` in the metadata. None sees all records.
        """
        raise NotImplementedError

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

    def _open(self, store: Any, tenant: str | None = None) -> RecordStore:
        return call_hook(self.open_store, store, tenant)
