"""Arguments that only the components of LlamaIndex refuse."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import Document, MockEmbedding, PromptTemplate, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

from drillrank.errors import InvalidInput
from llama_index_ext import (
    BRMGRRetriever,
    D3Retriever,
    MultiViewRetriever,
    PromptRankRetriever,
    SelfAskQueryEngine,
    UPRRerank,
)
from llama_index_ext._filters import NodeFilter
from tests.drillrank.helpers import refuses
from tests.llama_index_ext.filter_cases import ALL, where

FOX = TextNode(text="a fox", id_="fox")
INDEX = VectorStoreIndex.from_documents([Document(text="a fox")], embed_model=MockEmbedding(3))
FOUND = INDEX.as_retriever()
BUILDERS: dict[str, Any] = {
    "PromptRankRetriever": lambda source: PromptRankRetriever(source=source),
    "BRMGRRetriever": lambda source: BRMGRRetriever(source, MockLLM()),
    "SelfAskQueryEngine": lambda source: SelfAskQueryEngine(source, MockLLM()),
    "D3Retriever": lambda source: D3Retriever(source=source),
    "MultiViewRetriever": lambda source: MultiViewRetriever(source=source),
}
each_builder = pytest.mark.parametrize("name", BUILDERS)


async def never(found: BaseNode) -> bool:
    return False


def prompted(text: str, update: bool) -> None:
    """Build a D3Retriever with a template, or update its template."""
    prompt = {"section_prompt": PromptTemplate(text)}
    retriever = D3Retriever([FOX], MockLLM(), settings={} if update else prompt)
    if update:
        retriever.update_prompts(prompt)


test_an_argument_that_cannot_be_used_is_refused_in_few_words = refuses(
    *(
        (make, "Pass an index or a retriever as source=")
        for make in (
            lambda: D3Retriever(INDEX),
            lambda: MultiViewRetriever(INDEX),
            lambda: PromptRankRetriever(source=FOUND, documents=INDEX),
            lambda: D3Retriever("a fox"),
        )
    ),
    *(
        (lambda cls=cls, llm=llm: cls(source=FOUND, llm=llm), "llm must be an LLM of LlamaIndex")
        for cls in (D3Retriever, BRMGRRetriever, SelfAskQueryEngine, PromptRankRetriever)
        for llm in ("openai", lambda prompt: "an answer")
    ),
    *(
        (lambda text=text, update=update: prompted(text, update), "template")
        for text in ("no places", "{question} only")
        for update in (False, True)
    ),
    (lambda: D3Retriever(FOX), "documents must be a list"),
    (lambda: D3Retriever(["text"]), "got a str"),
    (lambda: D3Retriever(source=INDEX, index=FOUND), "index must be a VectorStoreIndex"),
    (lambda: MultiViewRetriever(source={"raw": INDEX}), "source of a view must be a retriever, got a VectorStoreIndex"),
    (lambda: MultiViewRetriever([FOX], embed=5), "embed must turn texts into vectors"),
    (lambda: PromptRankRetriever(source=FOUND, links="names"), "'names'"),
    (lambda: PromptRankRetriever(source=FOUND, store=INDEX), "store must be a BaseDocumentStore"),
    (lambda: UPRRerank(prior="x" * 10_000), "prior of UPRRerank"),
    *((lambda key=key: UPRRerank(settings={"title_key": key}), "title_key must be a metadata key") for key in ("", 5)),
    *(
        (lambda filters=filters: NodeFilter(filters), "MetadataFilters")
        for filters in (3, "tenant", {"tenant": "a"}, [where(tenant="a")])
    ),
    *(
        (lambda one=one: NodeFilter(MetadataFilters(filters=[one])), "'tenant'")
        for one in (
            MetadataFilter(key="tenant", value=None, operator=operator)
            for operator in (FilterOperator.EQ, FilterOperator.IN, FilterOperator.GT)
        )
    ),
    (lambda: NodeFilter(never).filter_results(ALL), "asynchronous"),
)


@each_builder
@pytest.mark.parametrize("source", [INDEX, FOUND], ids=["an index", "a retriever"])
def test_a_source_is_an_index_or_a_retriever(name, source):
    assert BUILDERS[name](source)


@each_builder
def test_a_list_is_not_a_source(name):
    with pytest.raises(InvalidInput, match="source must be a retriever, a VectorStoreIndex or a RecordStore"):
        BUILDERS[name](["a fox"])
