"""A record store that is a list, for records of either framework."""

from __future__ import annotations

from drillrank.structure.record_store import RecordStore
from drillrank.text import terms
from langchain_ext._records import read_documents
from llama_index_ext._records import read_nodes
from tests.conformance.frameworks import LlamaIndex


class Records(RecordStore):
    """Records in a list, ranked by the words that they share with the question."""

    def __init__(self, chunks):
        self.chunks = chunks

    @classmethod
    def of(cls, host, records):
        return cls((read_nodes if host is LlamaIndex else read_documents)(records))

    def search(self, question, n, where=None):
        words = set(terms(question))
        return sorted(self.find(where or {}), key=lambda chunk: -len(words & set(terms(chunk.view_text))))[:n]

    def get(self, ids):
        return [chunk for chunk in self.chunks if chunk.id in ids]

    def find(self, where):
        def matches(chunk):
            known = {**(chunk.siblings or {}), **chunk.record.metadata}
            return all(known.get(key) in ([value] if isinstance(value, str) else value) for key, value in where.items())

        return list(filter(matches, self.chunks))
