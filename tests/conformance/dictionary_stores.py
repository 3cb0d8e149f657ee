"""A vector store that only supports dictionaries as filters."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from llama_index.core.schema import Document as NodesDocument
from llama_index.core.vector_stores.types import MetadataFilter

import langchain_ext
import llama_index_ext
from drillrank.frameworks.filters import parse_filter
from tests.conformance.corpus import BOOK
from tests.conformance.frameworks import LangChain, LlamaIndex


def pieces(host, text=BOOK, id_="book", **metadata):
    """The views of a document."""
    fields = {"namespace_key": "tenant"} if "tenant" in metadata else {}
    if host is LlamaIndex:
        document = NodesDocument(text=text, id_=id_, metadata=metadata)
        return llama_index_ext.MultiViewNodeParser(**fields)([document])
    return langchain_ext.MultiViewTextSplitter(**fields).split_documents([Document(text, id=id_, metadata=metadata)])


def tenant(name="a"):
    return MetadataFilter(key="tenant", value=name)


class DictionaryStore(VectorStore):
    """Takes dictionaries as filters only, no vectors, and knows nothing by id; as little as a store may do."""

    def __init__(self, pieces):
        self.inner = LangChain.index()
        self.inner.add_documents(pieces)
        self.searched = []

    def similarity_search(self, query, k=4, filter=None, **kwargs):
        assert not kwargs
        holds = parse_filter({} if filter is None else filter)
        self.searched.append(k)
        return self.inner.similarity_search(query, k=k, filter=lambda document: holds(document.metadata) is True)

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **kwargs):
        raise NotImplementedError
