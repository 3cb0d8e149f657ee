"""LangChain components in chains: Runnables as retrievers, the whole configuration handed on, no score if wanted."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from langchain_classic.retrievers import EnsembleRetriever, MultiQueryRetriever
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableConfig, RunnableLambda

import langchain_ext
from langchain_ext._retriever import ConfiguredRetriever
from tests.conformance.corpus import QUERY, QUESTION, QUESTIONS, TEXTS, VARIANTS
from tests.conformance.frameworks import LangChain, build
from tests.conformance.langchain_reader import Reader
from tests.conformance.readers import Judge
from tests.conformance.retriever_cases import BUILD
from tests.conformance.retriever_cases import DOCUMENTS as OF_BOTH
from tests.conformance.runs import Runs as Trees
from tests.conformance.runs import below

DOCUMENTS = OF_BOTH[LangChain]

RERANKERS = [
    component
    for component in map(langchain_ext.__dict__.get, langchain_ext.__all__)
    if issubclass(component, BaseDocumentCompressor)
]
FOUND = [Document(page_content=text, id=str(number)) for number, text in enumerate(TEXTS)]
each_reranker = pytest.mark.parametrize("component", RERANKERS)


def reranker(component: Any, **fields: Any) -> Any:
    return build(component, model=Judge(), top_n=None, **fields)


# No score in the metadata


def over_scoreless(documents: list[Document], name: str, **fields: Any) -> Any:
    """A retriever of this name, and where it asks another, one that writes no score either."""
    inner = BUILD["D3Retriever"](LangChain, documents, score_key=None, top_n=99)
    sections = langchain_ext.MultiViewTextSplitter().split_documents(documents)
    views = BUILD["MultiViewRetriever"](LangChain, documents, score_key=None, top_n=99)
    again: dict[str, Any] = {
        "MultiViewRetriever over retrievers": lambda: build(
            langchain_ext.MultiViewRetriever, documents=sections, source={"raw": views}, **fields
        ),
        "BRMGRRetriever": lambda: build(
            langchain_ext.BRMGRRetriever,
            source=inner,
            llm=FakeListChatModel(responses=["A zebra plays chess."]),
            guard=True,
            **fields,
        ),
        "PromptRankRetriever": lambda: build(langchain_ext.PromptRankRetriever, source=inner, **fields),
    }
    return again[name]() if name in again else BUILD[name](LangChain, documents, **fields)


@pytest.mark.parametrize("name", BUILD)
def test_without_a_score_key_a_document_is_the_same_for_every_question(name):
    retriever = over_scoreless(DOCUMENTS, name, score_key=None, top_n=99)
    found = [document for question in QUESTIONS for document in retriever.invoke(question)]
    assert len({document.id for document in found}) == len({document.model_dump_json() for document in found}) > 0

    asked = MultiQueryRetriever.from_llm(retriever, FakeListChatModel(responses=["\n".join(QUESTIONS[:3])]))
    ids = [document.id for document in asked.invoke(QUESTION)]
    assert len(ids) == len(set(ids)) > 0
    both = EnsembleRetriever(retrievers=[retriever, retriever]).invoke(QUESTION)
    assert len({document.page_content for document in both}) == len(both)


@each_reranker
def test_without_a_score_key_a_reranker_leaves_documents_as_they_are(component):
    for query in VARIANTS[:3]:
        given = sorted(reranker(component, score_key=None).compress_documents(FOUND, query), key=lambda d: d.id)
        assert given == FOUND


# Rerankers in chains


class Runs(BaseCallbackHandler):
    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.parents: dict[Any, Any] = {}

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, name=None, **kwargs):
        self.names[run_id], self.parents[run_id] = name, parent_run_id


@each_reranker
async def test_a_retriever_and_a_reranker_in_a_chain(component):
    own = reranker(component)
    expected = own.compress_documents(FOUND, QUERY)
    chain = own.as_runnable(RunnableLambda(lambda question: FOUND)) | (lambda documents: documents)
    assert chain.invoke(QUERY) == expected == await chain.ainvoke(QUERY)
    assert chain.batch([QUERY, QUERY]) == [expected] * 2 == await chain.abatch([QUERY, QUERY])
    assert [document for part in chain.stream(QUERY) for document in part] == expected
    assert [document async for part in chain.astream(QUERY) for document in part] == expected
    runs = Runs()
    chain.invoke(QUERY, {"callbacks": [runs]})
    [step] = [run for run, name in runs.names.items() if name == component.__name__]
    assert runs.parents[step] is not None


# Anything that retrieves


class Listed(BaseRetriever):
    documents: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


LISTED = Listed(documents=FOUND[1:4])
FORMS = {
    "retriever": LISTED,
    "function": lambda question: FOUND[1:4],
    "lambda": RunnableLambda(lambda question: FOUND[1:4]),
    "with_retry": LISTED.with_retry(),
    "with_fallbacks": RunnableLambda(lambda question: 1 / 0).with_fallbacks([LISTED]),
    "configurable_fields": Listed(documents=[]).configurable_fields(documents=ConfigurableField(id="listed")),
}


def takes_a_retriever(retriever: Any) -> dict[str, Any]:
    """Every component that asks a retriever, by name."""
    says = lambda prompt: "So the final answer is: x" if "mediate" in prompt.rpartition(QUERY)[2] else "Follow up: y?"  # noqa: E731
    views = langchain_ext.MultiViewTextSplitter(["raw"]).split_documents(FOUND[1:4])
    return {
        "BRMGRRetriever": langchain_ext.BRMGRRetriever(source=retriever, llm=Reader(answer=lambda _: "A river.")),
        "D3Retriever": langchain_ext.D3Retriever(source=retriever),
        "MultiViewRetriever": langchain_ext.MultiViewRetriever(
            source={"raw": RunnableLambda(lambda question: views) if retriever is LISTED else retriever}
        ),
        "PromptRankRetriever": langchain_ext.PromptRankRetriever(source=retriever),
        "SelfAskChain": langchain_ext.SelfAskChain(source=retriever, llm=Reader(answer=says)),
    }


COMPONENTS = ["BRMGRRetriever", "D3Retriever", "PromptRankRetriever", "SelfAskChain"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", COMPONENTS)
def test_whatever_answers_a_question_is_a_retriever(name, form):
    config: RunnableConfig = {"configurable": {"listed": FOUND[1:4]}}
    expected = takes_a_retriever(LISTED)[name].invoke(QUERY)
    component = takes_a_retriever(FORMS[form])[name]
    assert component.invoke(QUERY, config) == expected == asyncio.run(component.ainvoke(QUERY, config))


@pytest.mark.parametrize("name", [*COMPONENTS, "MultiViewRetriever"])
@pytest.mark.parametrize("how", ["invoke", "ainvoke", "batch", "in a chain"])
def test_the_whole_configuration_is_handed_on(name, how):
    seen: list[RunnableConfig] = []
    pieces = langchain_ext.MultiViewTextSplitter(["raw"]).split_documents(FOUND[1:4])

    def retrieve(question: str, config: RunnableConfig) -> list[Document]:
        seen.append(config)
        return pieces

    component = takes_a_retriever(retrieve)[name]
    config: RunnableConfig = {"configurable": {"user": "ada"}, "tags": ["mine"], "metadata": {"page": 3}}
    if how == "ainvoke":
        asyncio.run(component.ainvoke(QUERY, config))
    elif how == "batch":
        component.batch([QUERY], config)
    else:
        (component if how == "invoke" else component | (lambda found: found)).invoke(QUERY, config)
    assert seen
    for own in seen:
        assert own["configurable"]["user"] == "ada"
        assert "mine" in own["callbacks"].inheritable_tags
        assert own["callbacks"].inheritable_metadata["page"] == 3
        assert own["callbacks"].parent_run_id is not None


@pytest.mark.parametrize("name", [*COMPONENTS, "MultiViewRetriever"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_runs_name_and_id_are_its_own(name, asynchronous):
    runs, one = Trees(), uuid.uuid4()
    component, config = takes_a_retriever(LISTED)[name], {"callbacks": [runs], "run_name": "docs", "run_id": one}
    asyncio.run(component.ainvoke(QUERY, config)) if asynchronous else component.invoke(QUERY, config)
    [root] = runs.roots
    assert root.name == "docs"  # the host gives a retriever no id of its configuration
    assert root.child_runs
    assert not below(root, "docs")
    assert one not in [child.id for child in root.child_runs]


def test_every_retriever_hands_its_configuration_on():
    retrievers = [c for c in map(langchain_ext.__dict__.get, langchain_ext.__all__) if issubclass(c, BaseRetriever)]
    assert retrievers
    assert all(issubclass(component, ConfiguredRetriever) for component in retrievers)
