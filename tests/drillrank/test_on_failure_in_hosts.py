"""`on_failure="raise"` of the components that ask an LLM for views, passages and what paths lack, in both hosts."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document

import langchain_ext
import llama_index_ext
from drillrank.errors import DrillrankWarning, LLMFailure
from drillrank.evaluation.settings_file import keyword_arguments
from tests.conformance import langchain_reader, llama_index_reader

TEXT, QUESTION = "# Foxes\n\nThey hunt.\n", "Who hunts?"


class Down(Exception):
    pass


def down(prompt):
    raise Down("no route")


HOSTS = {
    langchain_ext: (lambda: [LangChainDocument(TEXT)], lambda: langchain_reader.Reader(answer=down)),
    llama_index_ext: (lambda: [Document(text=TEXT)], lambda: llama_index_reader.Reader(down)),
}
NAMES = {
    "MultiViewTextSplitter": ("split_documents", "atransform_documents"),
    "MultiViewNodeParser": ("get_nodes_from_documents", "aget_nodes_from_documents"),
    "BRMGRRetriever": None,
    "PromptRankRetriever": None,
}


@pytest.mark.parametrize(("host", "name"), [(host, name) for host in HOSTS for name in NAMES if hasattr(host, name)])
def test_a_failed_call_raises_or_is_done_without(host, name):
    documents, llm = HOSTS[host]
    of_retrievers = ("invoke", "ainvoke") if host is langchain_ext else ("retrieve", "aretrieve")

    def made(**fields):
        component = getattr(host, name)
        source = {} if NAMES[name] else {"source": host.D3Retriever(documents=documents())}
        built = component(llm=llm(), **source, **keyword_arguments(component, fields))
        asked = documents() if NAMES[name] else QUESTION
        return [getattr(built, method) for method in NAMES[name] or of_retrievers], asked

    (sync, _), asked = made()
    with pytest.warns(DrillrankWarning, match="no route"):
        assert sync(asked)
    (sync, later), asked = made(on_failure="raise")

    async def awaited():
        return await later(asked)

    for call in (lambda: sync(asked), lambda: asyncio.run(awaited())):
        with pytest.raises(LLMFailure) as caught:
            call()
        assert isinstance(caught.value.__cause__, Down)
