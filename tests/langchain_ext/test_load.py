"""LangChain's `dumpd` and `load`: no component is one of those that they carry, and `load` says so."""

from __future__ import annotations

import warnings

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.load import dumpd, dumps, load, loads
from langchain_core.retrievers import BaseRetriever

import langchain_ext
from langchain_ext import MultiViewTextSplitter
from tests.langchain_ext.test_monot5 import Undecided


class Source(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return []


DOCUMENTS = [Document(page_content="# Owls\n\nThey hoot.", id="owls")]
FIELDS = {
    "BRMGRRetriever": {"retriever": Source(), "llm": FakeListLLM(responses=["x"])},
    "D3Retriever": {"documents": DOCUMENTS},
    "MonoT5Rerank": {"model": Undecided()},
    "MultiViewRetriever": {"documents": MultiViewTextSplitter().split_documents(DOCUMENTS)},
    "PromptRankRetriever": {"retriever": Source()},
    "RelevanceRerank": {"model": "hf:any"},
    "SelfAskChain": {"llm": FakeListLLM(responses=["x"]), "retriever": Source()},
}


@pytest.mark.parametrize("name", langchain_ext.__all__)
def test_a_component_is_told_to_be_one_that_cannot_be_loaded(name):
    component = getattr(langchain_ext, name)(**FIELDS.get(name, {}))
    stored = dumpd(component)
    assert stored["type"] == "not_implemented"
    assert stored["id"][-1] == name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that `load` is in beta
        for restore, form in ((load, stored), (loads, dumps(component))):
            with pytest.raises(NotImplementedError, match=name):
                restore(form)
