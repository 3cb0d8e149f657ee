"""LangChain's `dumpd` and `load`: no component is one of those that they carry, and `load` says so."""

from __future__ import annotations

import warnings

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.load import dumpd, dumps, load, loads
from langchain_core.retrievers import BaseRetriever

import langchain_ext
from drillrank.components import component as row_of
from langchain_ext import MultiViewTextSplitter
from tests.conformance.readers import Reading


class Source(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return []


DOCUMENTS = [Document(page_content="# Owls\n\nThey hoot.", id="owls")]
FIELDS = {
    "BRMGRRetriever": {"source": Source(), "llm": FakeListLLM(responses=["x"])},
    "D3Retriever": {"documents": DOCUMENTS},
    "MultiViewRetriever": {"documents": MultiViewTextSplitter().split_documents(DOCUMENTS)},
    "PromptRankRetriever": {"source": Source()},
    "SelfAskChain": {"llm": FakeListLLM(responses=["x"]), "source": Source()},
}


@pytest.mark.parametrize("name", langchain_ext.__all__)
def test_a_component_is_told_to_be_one_that_cannot_be_loaded(name):
    neural = {"model": Reading()} if "neural model" in row_of(name).needs else {}
    component = getattr(langchain_ext, name)(**neural, **FIELDS.get(name, {}))
    stored = dumpd(component)
    assert stored["type"] == "not_implemented"
    assert stored["id"][-1] == name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that `load` is in beta
        for restore, form in ((load, stored), (loads, dumps(component))):
            with pytest.raises(NotImplementedError, match=name):
                restore(form)
