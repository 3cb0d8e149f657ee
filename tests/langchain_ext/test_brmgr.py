from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel, FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import PrivateAttr

from drillrank import BRMGR, Passage
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation.settings_file import keyword_arguments
from langchain_ext import BRMGRRerank, BRMGRRetriever
from tests.conformance.corpus import ticks_during

QUERY = "Who wrote Emma?"
FOUND = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
BY_ORDER = [2.0, 1.0]  # as documents come without scores, their order is evidence
TRUE, FALSE = "Jane Austen wrote the novel Emma.", "Charles Dickens of London finished it in 1843."


class Listed(BaseRetriever):
    """Finds the same documents for every query."""

    texts: list[str] = FOUND

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(id=f"d{i}", page_content=text) for i, text in enumerate(self.texts)]


class Scripted(BaseChatModel):
    """Gives one answer after the other, raises those that are exceptions, and takes its time if it is asked to."""

    script: list[Any]
    seconds: float = 0.0
    _calls: int = PrivateAttr(default=0)
    _busy: int = PrivateAttr(default=0)
    _most: int = PrivateAttr(default=0)

    @property
    def _llm_type(self):
        return "scripted"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        answer = self.script[self._calls % len(self.script)]
        self._calls += 1
        if isinstance(answer, Exception):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        self._busy += 1
        self._most = max(self._most, self._busy)
        await asyncio.sleep(self.seconds)
        self._busy -= 1
        return self._generate(messages)


def retriever(script, *, texts=FOUND, **fields):
    fields = {"source": Listed(texts=texts), "llm": Scripted(script=script), **fields}
    return BRMGRRetriever(**keyword_arguments(BRMGRRetriever, fields))


def origin(document):
    return document.metadata.get("drillrank_origin")


def shown(documents):
    return [document.model_dump() for document in documents]


def marked(texts, key="drillrank_origin", value="generated"):
    return [Document(page_content=text, metadata={key: value} if value else {}) for text in texts]


def test_the_reranker_is_the_core_s():
    documents = [*marked([TRUE, FALSE]), *marked(FOUND, value="")]
    merged = BRMGRRerank(guard=0.2, settings={"first": "retrieved"}, top_n=None).compress_documents(documents, QUERY)
    ranker = BRMGR(guard=0.2, settings={"first": "retrieved"})
    expected = ranker.rank(QUERY, FOUND, [TRUE, FALSE], scores=BY_ORDER)
    assert [(document.page_content, document.metadata["relevance_score"]) for document in merged] == [
        (item.passage.text, item.score) for item in expected
    ]


def test_the_key_that_marks_generated_documents_is_configurable():
    documents = [*marked(FOUND, value=""), *marked([TRUE], "source"), *marked([FALSE], "drillrank_origin")]
    merged = BRMGRRerank(settings={"origin_key": "source"}, top_n=None).compress_documents(documents, QUERY)
    expected = BRMGR().rank(QUERY, [*FOUND, FALSE], [TRUE])
    assert [document.page_content for document in merged] == [item.passage.text for item in expected]


def test_what_a_generated_document_says_about_itself_is_not_scored():
    documents = [Document(page_content=TRUE, metadata={"drillrank_origin": "generated", "why": "London"})]
    [alone] = BRMGRRerank(settings={"metadata_fields": ("why",)}).compress_documents(documents, QUERY)
    [plain] = BRMGR().rank(QUERY, [], [TRUE])
    assert alone.metadata["relevance_score"] == plain.score


@pytest.mark.parametrize("top_n", [1, 2, 3, 4, None])
def test_the_share_holds_for_the_documents_returned(top_n):
    documents = [*marked(FOUND, value=""), *marked([TRUE, FALSE, "Emma?"])]
    merged = BRMGRRerank(generated_share=1 / 3, top_n=top_n).compress_documents(documents, QUERY)
    assert sum(origin(document) == "generated" for document in merged) <= len(merged) / 3
    assert len(merged) == min(top_n or 3, 3)


@pytest.mark.parametrize("fields", [{"guard": 2}, {"generated_share": -1}, {"first": "best"}])
def test_bad_fields_are_rejected_at_construction(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        BRMGRRerank(**keyword_arguments(BRMGRRerank, fields))
    with pytest.raises(ValueError, match=next(iter(fields))):
        retriever([TRUE], **fields)


@pytest.mark.parametrize("guard", [False, True, 0.5, 1.0])
def test_the_guard_survives_the_round_trip(guard):
    component = BRMGRRerank(
        guard=guard,
        settings={"first": "retrieved", "origin_key": "k"},
        generated_share=0.5,
    )
    copy = BRMGRRerank.model_validate_json(component.model_dump_json())
    assert (copy.guard, type(copy.guard)) == (guard, type(guard))
    assert copy.model_dump() == component.model_dump()


def test_generated_documents_are_marked_and_merged():
    found = retriever([TRUE, FALSE], n_generated=2).invoke(QUERY)
    expected = BRMGR().rank(QUERY, FOUND, [Passage(TRUE), Passage(FALSE)], scores=BY_ORDER)
    assert [(document.page_content, document.metadata["relevance_score"]) for document in found] == [
        (item.passage.text, item.score) for item in expected
    ]
    assert all((origin(document) == "generated") == (document.page_content in (TRUE, FALSE)) for document in found)
    assert len({document.id for document in found}) == 4


def test_options_reach_the_merge():
    fields = {"top_n": 3, "first": "retrieved", "guard": 0.2, "generated_share": 0.4, "origin_key": "by"}
    found = retriever([TRUE, FALSE, "Emma was a queen."], n_generated=3, **fields, score_key="s").invoke(QUERY)
    assert [document.metadata.get("by") for document in found] == [None, "generated", None]
    assert found[1].page_content == TRUE
    assert all(type(document.metadata["s"]) is float for document in found)


@pytest.mark.parametrize(
    "llm",
    [
        FakeListLLM(responses=[TRUE]),
        FakeListChatModel(responses=[TRUE]),
        FakeListChatModel(responses=[TRUE]).with_retry(),
        RunnableLambda(lambda prompt: AIMessage([{"type": "text", "text": TRUE}])),
    ],
    ids=["text model", "chat model", "retrying", "content blocks"],
)
def test_any_kind_of_model_writes(llm):
    found = BRMGRRetriever(source=Listed(), llm=llm, n_generated=1).invoke(QUERY)
    assert [document.page_content for document in found if origin(document) == "generated"] == [TRUE]


def test_prompts_reach_the_model():
    prompts = ["1 {question} {x}", "2 {question}"]
    llm = RunnableLambda(lambda prompt: prompt)
    found = BRMGRRetriever(source=Listed(texts=[]), llm=llm, n_generated=2, settings={"prompts": prompts}).invoke(QUERY)
    assert sorted(document.page_content for document in found) == [f"1 {QUERY} {{x}}", f"2 {QUERY}"]


def test_nothing_is_stored():
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(page_content=text) for text in FOUND])
    before = dict(store.store)
    llm = FakeListChatModel(responses=[TRUE])
    found = BRMGRRetriever(source=store.as_retriever(), llm=llm, n_generated=1).invoke(QUERY)
    assert TRUE in [document.page_content for document in found]
    assert store.store == before


answers = st.one_of(
    st.text(max_size=30),
    st.sampled_from([TRUE, FALSE, "", "  ", "...", "fox " * 3000, "{question} {0}", "字" * 5000]),
    st.sampled_from([ValueError("no"), TimeoutError("too slow")]),
)
options = st.fixed_dictionaries(
    {
        "guard": st.sampled_from([False, True]),
        "generated_share": st.sampled_from([0.0, 0.4, 1.0]),
        "first": st.sampled_from(["generated", "retrieved"]),
    }
)


@settings(deadline=None, max_examples=40)
@given(st.lists(answers, min_size=1, max_size=4), options)
def test_no_model_loses_a_retrieved_document_and_async_equals_sync(script, fields):
    fields = {**fields, "workers": 1}  # the script is told by the order of the calls, which threads do not keep
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        found = retriever(script, n_generated=len(script), **fields).invoke(QUERY)
        later = asyncio.run(retriever(script, n_generated=len(script), **fields).ainvoke(QUERY))
    assert shown(later) == shown(found)
    assert sorted(document.page_content for document in found if origin(document) is None) == sorted(FOUND)
    written = [document.page_content for document in found if origin(document) == "generated"]
    assert len(written) == len(found) - len(FOUND) == len(set(written)) <= len(script)


def test_a_failing_model_is_a_warning():
    with pytest.warns(DrillrankWarning, match="3 failed .*no quota"):
        found = retriever([ValueError("no quota")]).invoke(QUERY)
    assert [document.page_content for document in found] == FOUND


async def test_the_model_s_own_async_call_is_awaited_with_bounded_workers():
    llm = Scripted(script=["one", "two", "three", "four", "five", "six"], seconds=0.05)
    component = BRMGRRetriever(source=Listed(), llm=llm, n_generated=6, settings={"workers": 2})
    assert await ticks_during(component.ainvoke(QUERY)) >= 3  # one of each round of two calls
    assert llm._most == 2
    assert llm._calls == 6


async def test_an_error_of_the_inner_retriever_is_raised_and_ends_the_writing():
    class Broken(Listed):
        async def _aget_relevant_documents(self, query, *, run_manager):
            raise RuntimeError("no index")

    llm = Scripted(script=["late"], seconds=0.05)
    with pytest.raises(RuntimeError, match="no index"):
        await BRMGRRetriever(source=Broken(), llm=llm).ainvoke(QUERY)
    await asyncio.sleep(0.1)
    assert llm._calls == 0


class Runs(BaseCallbackHandler):
    """Every run that starts, with its parent, and every run that ends."""

    def __init__(self):
        self.started, self.ended = {}, []

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, **kwargs):
        self.started[run_id] = ("retriever", parent_run_id)

    def on_chat_model_start(self, serialized, messages, *, run_id, parent_run_id=None, **kwargs):
        self.started[run_id] = ("model", parent_run_id)

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
        self.started[run_id] = ("chain", parent_run_id)

    def on_retriever_end(self, documents, *, run_id, **kwargs):
        self.ended.append(run_id)

    on_llm_end = on_chain_end = on_retriever_end


@pytest.mark.parametrize("asynchronous", [False, True])
def test_calls_are_children_of_the_retrieval_and_events_are_balanced(asynchronous):
    runs = Runs()
    component, config = retriever([TRUE, FALSE], n_generated=2), {"callbacks": [runs]}
    if asynchronous:
        asyncio.run(component.ainvoke(QUERY, config))
    else:
        component.invoke(QUERY, config)
    kinds = [kind for kind, _ in runs.started.values()]
    assert kinds.count("retriever") == 2
    assert kinds.count("model") == 2
    roots = [run for run, (_, parent) in runs.started.items() if parent is None]
    assert len(roots) == 1
    assert sorted(map(str, runs.ended)) == sorted(map(str, runs.started))


@pytest.mark.parametrize("fields", [{"n_generated": 0}, {"workers": 0}, {"prompts": []}, {"prompts": ["none"]}])
def test_bad_arguments(fields):
    with pytest.raises(InvalidInput):
        retriever([TRUE], **fields)
