"""Every reranker of both hosts that counts words says where nothing matched, and leaves the order alone."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank import D3

RERANKERS = ["UPRRerank", "BRMGRRerank", "PromptRankRerank"]
TEXTS = ["It was a town of many long streets and squares.", "Whales.", "It was a town."]
KEY = "drillrank_nothing_matched"

for_each = pytest.mark.parametrize("name", RERANKERS)


@for_each
def test_langchain(name):
    documents = [Document(page_content=text) for text in TEXTS]
    reranker = getattr(langchain_ext, name)()
    found = reranker.compress_documents(documents, "Which foxes sing?")
    assert [document.page_content for document in found] == TEXTS
    assert [document.metadata[KEY] for document in found] == [True] * 3
    assert not any(KEY in document.metadata for document in reranker.compress_documents(found, "Which town?"))


@for_each
def test_llama_index(name):
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
    reranker = getattr(llama_index_ext, name)()
    found = reranker.postprocess_nodes(nodes, query_str="Which foxes sing?")
    assert [item.node.text for item in found] == TEXTS
    assert [item.node.metadata[KEY] for item in found] == [True] * 3
    assert [item.node.get_content(MetadataMode.LLM) for item in found] == TEXTS
    assert not any(KEY in item.node.metadata for item in reranker.postprocess_nodes(found, query_str="Which town?"))


SECTIONS = "".join(f"# {title}\n\n{text}\n\n" for title, text in zip("ABC", TEXTS, strict=True))


def test_langchain_drilling_down():
    retriever = langchain_ext.D3Retriever(documents=[Document(page_content=SECTIONS)], top_n=3)
    found = retriever.invoke("Which foxes sing?")
    assert [document.page_content for document in found] == TEXTS
    assert [document.metadata[KEY] for document in found] == [True] * 3
    assert not any(KEY in document.metadata for document in retriever.invoke("Which town?"))


def test_llama_index_drilling_down():
    retriever = llama_index_ext.D3Retriever([LlamaDocument(text=SECTIONS)], top_n=3)
    found = retriever.retrieve("Which foxes sing?")
    assert [item.node.text for item in found] == TEXTS
    assert [item.node.metadata[KEY] for item in found] == [True] * 3
    assert [item.node.get_content(MetadataMode.EMBED) for item in found] == TEXTS
    assert not any(KEY in item.node.metadata for item in retriever.retrieve("Which town?"))


def test_what_the_llm_chose_did_match():
    found = D3(lambda prompt: "1, 2, 3", settings={"sections_by": "json"}).retrieve("Which foxes sing?", [SECTIONS])
    assert [item.passage.text for item in found] == TEXTS
    assert not any(item.details["nothing_matched"] for item in found)


def test_vectors_tell_apart_what_no_word_does():
    vectors = {text: [float(text == "Whales."), 1.0] for text in TEXTS}
    d3 = D3(embed=lambda texts: [vectors.get(text, [1.0, 0.0]) for text in texts])
    found = d3.retrieve("Which foxes sing?", [SECTIONS], top_n=3)
    assert found[0].passage.text == "Whales."
    assert not any(item.details["nothing_matched"] for item in found)
