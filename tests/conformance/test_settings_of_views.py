"""`embed`, `merge` and `views` of both hosts' retrievers over views: as `MultiViewIndex` has them, in memory or not."""

from __future__ import annotations

from operator import itemgetter

import langchain_core.documents
import llama_index.core
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding

import langchain_ext
import llama_index_ext
from drillrank.errors import InvalidInput
from drillrank.structure import parse_document
from drillrank.views import MultiViewChunker, MultiViewIndex
from tests.conformance.corpus import BOOK, QUESTION


def vector(text: str) -> list[float]:
    return [float(text.count(letter)) + 1 for letter in "aeiou"]


class LlamaModel(BaseEmbedding):
    def _get_query_embedding(self, query):
        return vector(query)

    async def _aget_query_embedding(self, query):
        return vector(query)

    def _get_text_embedding(self, text):
        return vector(text)


class LangChainModel(Embeddings):
    def embed_query(self, text):
        return vector(text)

    def embed_documents(self, texts):
        return [vector(text) for text in texts]


def read(metadata):
    return metadata["drillrank_section_path"], {*metadata["drillrank_matched_views"].split()}


def llama_index_found(searched, **fields):
    nodes = llama_index_ext.MultiViewNodeParser()([llama_index.core.Document(text=BOOK, id_="book")])
    if searched == "store":
        fields |= {"source": VectorStoreIndex(nodes, embed_model=LlamaModel())}
    if searched == "one retriever":
        fields |= {"source": VectorStoreIndex(nodes, embed_model=LlamaModel()).as_retriever(similarity_top_k=99)}
    if searched == "retrievers":
        of_views = {
            view: [node for node in nodes if node.metadata["drillrank_view"] == view]
            for view in ("raw", "keywords", "summary")
        }
        fields |= {
            "source": {
                view: VectorStoreIndex(own, embed_model=LlamaModel()).as_retriever(similarity_top_k=9)
                for view, own in of_views.items()
            }
        }
    found = llama_index_ext.MultiViewRetriever(nodes, **fields).retrieve(QUESTION)
    return [read(hit.node.metadata) for hit in found]


def langchain_found(searched, **fields):
    document = langchain_core.documents.Document(BOOK, id="book")
    pieces = langchain_ext.MultiViewTextSplitter().split_documents([document])

    def store(pieces):
        filled = InMemoryVectorStore(LangChainModel())
        filled.add_documents(pieces)
        return filled

    if searched == "store":
        fields |= {"source": store(pieces)}
    if searched == "one retriever":
        fields |= {"source": store(pieces).as_retriever(search_kwargs={"k": 99})}
    if searched == "retrievers":
        of_views = {
            view: [piece for piece in pieces if piece.metadata["drillrank_view"] == view]
            for view in ("raw", "keywords", "summary")
        }
        fields |= {"source": {view: store(own).as_retriever(search_kwargs={"k": 9}) for view, own in of_views.items()}}
    found = langchain_ext.MultiViewRetriever(documents=pieces, **fields).invoke(QUESTION)
    return [read(hit.metadata) for hit in found]


FOUND = {"llama_index": (llama_index_found, LlamaModel), "langchain": (langchain_found, LangChainModel)}
each_host = pytest.mark.parametrize("host", FOUND)


@each_host
@pytest.mark.parametrize("views", [("raw",), ("summary",), ("keywords", "summary"), ("raw", "keywords", "summary")])
@pytest.mark.parametrize(("merge", "top_n"), [("union", 3), ("fusion", 9)])
@pytest.mark.parametrize("searched", ["memory", "store", "one retriever", "retrievers"])
def test_everywhere_as_the_core_has_it(host, views, merge, top_n, searched):
    [chunks] = MultiViewChunker().chunks([("book", parse_document(BOOK))])
    paths = {chunk.id: " > ".join(chunk.path) for chunk in chunks}

    def embed(texts):
        return [vector(text) for text in texts]

    index = MultiViewIndex(chunks, embed=embed, merge=merge, views=views)
    expected = [(paths[hit.section_id], {*hit.matched_views.split()}) for hit in index.search(QUESTION, top_n)]
    found, model = FOUND[host]
    fields = {"embed": model()} if searched == "memory" else {}
    hits = found(searched, views=views, merge=merge, top_n=top_n, **fields)
    if searched == "memory":
        assert hits == expected
    elif merge == "fusion":  # among equals a retriever decides otherwise
        assert sorted(hits, key=itemgetter(0)) == sorted(expected, key=itemgetter(0))
    else:  # a store may bring no more of a view than the union takes
        assert {path for path, _ in hits} == {path for path, _ in expected}
        assert {place.split(":")[0] for _, places in hits for place in places} == {*views}


@each_host
def test_a_function_embeds_as_a_model_does(host):
    found, model = FOUND[host]
    assert found("memory", embed=lambda texts: [vector(text) for text in texts]) == found("memory", embed=model())


@each_host
@pytest.mark.parametrize(
    ("searched", "fields", "match"),
    [
        ("store", {"embed": len}, "^embed"),
        ("memory", {"views": ()}, "views"),
        ("memory", {"views": ("title",)}, "views"),
        ("memory", {"merge": "sum"}, "merge"),
    ],
)
def test_what_cannot_be_used_is_named(host, searched, fields, match):
    with pytest.raises((InvalidInput, ValueError), match=match):
        FOUND[host][0](searched, **fields)
