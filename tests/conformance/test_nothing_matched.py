"""Every reranker of both hosts that counts words says where nothing matched, and leaves the order alone."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

import langchain_ext
import llama_index_ext

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
