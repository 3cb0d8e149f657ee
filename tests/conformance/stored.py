"""Stores of both frameworks that count requests."""

from __future__ import annotations

from collections import Counter

from langchain_core.indexing import InMemoryRecordManager, index
from llama_index.core import StorageContext
from llama_index.core.node_parser import SentenceSplitter

from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.frameworks import LlamaIndex, build
from tests.conformance.leaks import letters
from tests.conformance.server_store import ServerStore
from tests.conformance.text_store import TextStore

DOCUMENTS = 4
TEXTS = [f"{BOOK}\n\n# Volume {number}\n\nIt is number {number}.\n" for number in range(DOCUMENTS + 2)]


class Stored:
    """A store that counts, as those on servers, filled with sections, by LangChain's `index()`, or with chunks."""

    def __init__(self, host, how="", texts=TEXTS, vector=letters):
        self.host, self.model = host, host.embedding(vector)
        documents = [host.document(text, str(n), source=f"{n}.md") for n, text in enumerate(texts)]
        pieces = SentenceSplitter(chunk_size=80, chunk_overlap=10)(documents) if how == "chunks" else None
        pieces = pieces or host.split(documents)
        if host is LlamaIndex:
            self.store = TextStore()
            storage = StorageContext.from_defaults(vector_store=self.store)
            self.source = host.index(*pieces, embedding=self.model, storage_context=storage)
            return
        self.source = self.store = ServerStore(self.model)
        if how == "index()":
            options = {"cleanup": "scoped_full", "source_id_key": "source", "key_encoder": "sha256"}
            index(pieces, InMemoryRecordManager("books"), self.store, **options)
        else:
            self.store.add_documents(pieces)

    def component(self, name, **fields):
        source = self.host.over(self.source) if name == "PromptRankRetriever" else self.source
        return build(getattr(self.host.ext, name), source=source, **fields)

    def asked(self, component, asynchronous=False, question=QUESTION):
        """What is found, and what was asked for it."""
        self.store.asked.clear()
        self.model.questions.clear()
        found = self.host.ask(component, question, asynchronous=asynchronous)
        return found, self.store.asked + Counter(questions=len(self.model.questions))
