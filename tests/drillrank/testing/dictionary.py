"""The dictionary store of the examples in the kit."""

from __future__ import annotations

from typing import Any

from drillrank.testing import RecordStoreTests
from examples.dictionary_store import Database, DictionaryStore


class DictionaryStoreTests(RecordStoreTests):
    """Store kit over `examples/dictionary_store.py`, or over a class that is derived from its store."""

    store_class: type[DictionaryStore] = DictionaryStore

    def make_store(self, chunks: Any, embed: Any) -> Database:
        database = Database(embed)
        database.add(chunks)
        return database

    def open_store(self, store: Any, tenant: str | None) -> DictionaryStore:
        return self.store_class(store, None if tenant is None else {"tenant": tenant})

    def add(self, store: Any, chunks: Any) -> None:
        store.add(chunks)

    def delete(self, store: Any, chunks: Any) -> None:
        store.delete([chunk.id for chunk in chunks])
