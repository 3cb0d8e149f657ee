"""Retrieved and generated records merged, in both hosts: the reranker, and the retriever that lets an LLM write."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.load import dumps, loads
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import MockLLM
from llama_index.core.schema import MetadataMode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

import langchain_ext
from drillrank import BRMGR, Passage
from drillrank.errors import DrillrankWarning
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.prompts import prompt_text
from langchain_ext.rerank import GeneratedDocument
from llama_index_ext.rerank import GeneratedNode
from tests.conformance.corpus import ticks_during
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.drillrank.conftest import HashModel
from tests.examples import examples

QUERY = "Who wrote Emma?"
FOUND = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
TRUE, FALSE = "Jane Austen wrote the novel Emma.", "Charles Dickens of London finished it in 1843."
EVIDENCE = {LlamaIndex: [0.5, 0.5], LangChain: [2.0, 1.0]}  # LangChain's order, as documents come without scores


def records(host, texts=FOUND, **metadata):
    return [host.record(text, **metadata) for text in texts]


def generated(host, texts):
    return list(map(host.generated, texts))


def listed(host, texts=FOUND):
    return host.retriever(*(host.record(text, id=f"r{number}") for number, text in enumerate(texts)))


def retriever(host, script, *, texts=FOUND, **fields):
    cls = host.ext.BRMGRRetriever
    return cls(**keyword_arguments(cls, {"source": listed(host, texts), "llm": host.llm(script), **fields}))


def origins(found):
    return [one.metadata.get("drillrank_origin") for one in found]


@both_frameworks
def test_the_reranker_is_the_core_s(host):
    reranker = host.ext.BRMGRRerank(guard=0.2, settings={"first": "retrieved"}, top_n=None)
    merged = host.rerank(reranker, QUERY, *generated(host, [TRUE, FALSE]), *records(host))
    ranker = BRMGR(guard=0.2, settings={"first": "retrieved"})
    expected = ranker.rank(QUERY, FOUND, [TRUE, FALSE], scores=EVIDENCE[host])
    assert [(one.text, one.score) for one in merged] == [(item.passage.text, item.score) for item in expected]


@both_frameworks
@pytest.mark.parametrize("neural", [False, True])
def test_the_paper_s_preset_is_the_core_s(host, neural):
    model = HashModel() if neural else "unigram"
    reranker = host.ext.BRMGRRerank(model, preset="paper", top_n=None)
    merged = host.rerank(reranker, QUERY, *generated(host, [TRUE, FALSE]), *records(host))
    expected = BRMGR(model, preset="paper").rank(QUERY, FOUND, [TRUE, FALSE])
    assert [(one.text, one.score) for one in merged] == [(item.passage.text, item.score) for item in expected]
    if neural:
        prompts = {prompt_text(request.prompt) for request in model.requests}
        assert f"passage: {FOUND[0]}. Please write a question based on this passage." in prompts


@pytest.mark.filterwarnings("ignore:The LLM has no temperature")
@both_frameworks
def test_the_paper_s_preset_merges_ten_of_each_kind_and_returns_all(host):
    texts = [f"Emma is novel number {number}." for number in range(12)]
    script = [f"Jane Austen wrote Emma in {1800 + number}." for number in range(12)]
    found = host.retrieve(retriever(host, script, texts=texts, preset="paper"), QUERY)
    assert origins(found).count("generated") == 10
    assert len(found) == 10 + len(texts)  # this retriever has a limit of its own
    limited = host.retrieve(retriever(host, script, texts=texts, preset="paper", top_n=4, n_generated=2), QUERY)
    assert origins(limited).count("generated") == 2
    assert len(limited) == 4


@both_frameworks
@pytest.mark.parametrize("key", ["drillrank_origin", "source"])
def test_only_a_generated_record_is_ranked_and_marked_as_generated(host, key):
    reranker = host.ext.BRMGRRerank(settings={"origin_key": key}, top_n=None)
    claims = records(host, FOUND, **{key: "generated"})
    merged = host.both(reranker, QUERY, *claims, *generated(host, [TRUE, FALSE]))
    expected = BRMGR().rank(QUERY, FOUND, [TRUE, FALSE], scores=EVIDENCE[host])
    assert [one.text for one in merged] == [item.passage.text for item in expected]
    marks = [one.metadata.get(key) for one in merged]
    assert marks == ["generated" if one.text in (TRUE, FALSE) else None for one in merged]
    assert host.record(FOUND[0]).metadata.get(key) is None
    assert [record.metadata for record in claims] == [{key: "generated"}] * 2


@both_frameworks
def test_another_value_under_the_key_is_the_user_s(host):
    [alone] = host.rerank(host.ext.BRMGRRerank(settings={"origin_key": "by"}), QUERY, host.record(TRUE, by="Ann"))
    assert alone.metadata["by"] == "Ann"


@pytest.mark.filterwarnings("ignore")  # loads is in beta
def test_a_store_returns_what_an_llm_wrote_as_retrieved():
    """Neither framework's stores keep the class, so a stored record cannot pass as generated."""
    docstore = SimpleDocumentStore()
    docstore.add_documents([GeneratedNode(text=TRUE, id_="a", metadata={"drillrank_origin": "generated"})])
    again = SimpleDocumentStore.from_dict(json.loads(json.dumps(docstore.to_dict()))).get_document("a")
    index = VectorStoreIndex([GeneratedNode(text=TRUE, id_="a")], embed_model=MockEmbedding(8))
    [hit] = index.as_retriever().retrieve(QUERY)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([GeneratedDocument(page_content=TRUE, metadata={"drillrank_origin": "generated"})])
    [found] = store.similarity_search(QUERY)
    loaded = loads(dumps(GeneratedDocument(page_content=TRUE)))
    assert [type(one) for one in (again, hit.node, found, loaded)] == [TextNode, TextNode, Document, Document]


def test_a_generated_record_stays_one_in_a_copy_and_in_a_pickle():
    for host in (LlamaIndex, LangChain):
        record = host.generated(TRUE, page=3)
        for again in (record.model_copy(), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
            [result] = host.rerank(host.ext.BRMGRRerank(), QUERY, again)
            assert result.metadata["drillrank_origin"] == "generated"


def test_a_chain_ranks_a_stored_mark_as_retrieved():
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document("Emma is rubbish.", metadata={"drillrank_origin": "generated"}), Document(FOUND[0])])
    chain = langchain_ext.BRMGRRerank(top_n=2).as_runnable(store.as_retriever())
    assert chain.invoke(QUERY)[0].page_content == FOUND[0]
    retrieved_and_written = RunnableLambda(
        lambda query: [*store.as_retriever().invoke(query), LangChain.generated(TRUE)]
    )
    results = langchain_ext.BRMGRRerank(top_n=3).as_runnable(retrieved_and_written).invoke(QUERY)
    assert [document.metadata.get("drillrank_origin") for document in results] == ["generated", None, None]


@both_frameworks
def test_what_a_generated_record_says_about_itself_is_not_scored(host):
    fields = {"metadata_fields": ("why",)} if host is LangChain else {}
    record = host.generated(TRUE, why="London " * 50)
    [alone] = host.rerank(host.ext.BRMGRRerank(settings=fields), QUERY, record)
    [plain] = BRMGR().rank(QUERY, [], [TRUE])
    assert alone.score == plain.score


@both_frameworks
@pytest.mark.parametrize("top_n", [1, 2, 3, 4, None])
def test_the_share_holds_for_the_records_returned(host, top_n):
    reranker = host.ext.BRMGRRerank(settings={"generated_share": 1 / 3}, top_n=top_n)
    merged = host.rerank(reranker, QUERY, *records(host), *generated(host, [TRUE, FALSE, "Emma?"]))
    assert origins(merged).count("generated") <= len(merged) / 3
    assert len(merged) == min(top_n or 3, 3)


@both_frameworks
@pytest.mark.parametrize("guard", [False, True, 0.5, 1.0])
def test_the_guard_survives_the_round_trip(host, guard):
    fields = {"first": "retrieved", "origin_key": "k"}
    component = host.ext.BRMGRRerank(guard=guard, settings={**fields, "generated_share": 0.5})
    copy = host.again(component)
    assert (copy.guard, type(copy.guard)) == (guard, type(guard))
    assert copy.model_dump() == component.model_dump()


@both_frameworks
def test_generated_records_are_marked_and_merged(host):
    found = host.retrieve(retriever(host, [TRUE, FALSE], n_generated=2), QUERY)
    expected = BRMGR().rank(QUERY, FOUND, [Passage(TRUE), Passage(FALSE)], scores=EVIDENCE[host])
    assert [(one.text, one.score) for one in found] == [(item.passage.text, item.score) for item in expected]
    assert [origin == "generated" for origin in origins(found)] == [one.text in (TRUE, FALSE) for one in found]
    assert len({one.id for one in found}) == 4


def test_no_model_reads_who_wrote_a_node():
    for hit in retriever(LlamaIndex, [TRUE], n_generated=1).retrieve(QUERY):
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            assert hit.node.get_content(mode) == hit.node.get_content()
        assert hit.node.ref_doc_id is None


@both_frameworks
def test_options_reach_the_merge(host):
    fields = {"top_n": 3, "first": "retrieved", "guard": 0.2, "generated_share": 0.4, "origin_key": "by"}
    found = host.retrieve(retriever(host, [TRUE, FALSE, "Emma was a queen."], n_generated=3, **fields), QUERY)
    assert [one.metadata.get("by") for one in found] == [None, "generated", None]
    assert found[1].text == TRUE


def test_the_score_has_the_key_that_was_asked_for():
    found = retriever(LangChain, [TRUE], n_generated=1, score_key="s").invoke(QUERY)
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
    found = LangChain.retrieve(retriever(LangChain, [], llm=llm, n_generated=1), QUERY)
    assert [one.text for one in found if one.metadata.get("drillrank_origin") == "generated"] == [TRUE]


@both_frameworks
def test_prompts_reach_the_model(host):
    llm = MockLLM() if host is LlamaIndex else RunnableLambda(lambda prompt: prompt)  # answers with the prompt
    prompts = ["1 {question} {x}", "2 {question}"]
    found = host.retrieve(retriever(host, [], texts=[], llm=llm, n_generated=2, prompts=prompts), QUERY)
    assert sorted(one.text for one in found) == [f"1 {QUERY} {{x}}", f"2 {QUERY}"]


def test_without_an_llm_the_settings_are_asked_at_the_query():
    component = retriever(LlamaIndex, [], texts=[], llm=None, n_generated=1, prompts=["{question}"])
    before = Settings._llm
    Settings.llm = MockLLM()
    try:
        assert [one.text for one in LlamaIndex.retrieve(component, QUERY)] == [QUERY]
    finally:
        Settings._llm = before


def test_nothing_is_stored():
    index = VectorStoreIndex([TextNode(text=text, id_=text) for text in FOUND], embed_model=MockEmbedding(8))
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(text) for text in FOUND])
    held = lambda: (set(index.docstore.docs), dict(index.vector_store.data.embedding_dict), dict(store.store))  # noqa: E731
    before = held()
    for host, source in ((LlamaIndex, index), (LangChain, store)):
        found = host.retrieve(retriever(host, [TRUE], source=source.as_retriever(), n_generated=1), QUERY)
        assert TRUE in [one.text for one in found]
    assert held() == before


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


@both_frameworks
@settings(deadline=None, max_examples=examples(40))
@given(st.lists(answers, min_size=1, max_size=4), options)
def test_no_model_loses_a_retrieved_record_and_async_equals_sync(host, script, fields):
    fields = {
        **fields,
        "on_failure": "fallback",
        "workers": 1,
    }  # the script is told by the order of the calls, which threads do not keep
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        found = host.retrieve(retriever(host, script, n_generated=len(script), **fields), QUERY)
        later = asyncio.run(host.aretrieve(retriever(host, script, n_generated=len(script), **fields), QUERY))
    assert later == found
    assert sorted(one.text for one in found if one.metadata.get("drillrank_origin") is None) == sorted(FOUND)
    written = [one.text for one in found if one.metadata.get("drillrank_origin") == "generated"]
    assert len(written) == len(found) - len(FOUND) == len(set(written)) <= len(script)


@both_frameworks
def test_a_failing_model_is_a_warning(host):
    with pytest.warns(DrillrankWarning, match=r"3 failed \(ValueError\)"):
        found = host.retrieve(retriever(host, [ValueError("no quota")], on_failure="fallback"), QUERY)
    assert [one.text for one in found] == FOUND


@both_frameworks
async def test_the_model_s_own_async_call_is_awaited_with_bounded_workers(host):
    llm = host.llm(["one", "two", "three", "four", "five", "six"], seconds=0.05)
    component = retriever(host, [], llm=llm, n_generated=6, workers=2)
    assert await ticks_during(host.aretrieve(component, QUERY)) >= 3  # one of each round of two calls
    assert (llm.script.most, llm.script.calls) == (2, 6)


@both_frameworks
async def test_an_error_of_the_inner_retriever_is_raised_and_ends_the_writing(host):
    source = listed(host)

    async def broken(*args, **kwargs):
        raise RuntimeError("no index")

    name = "_aretrieve" if host is LlamaIndex else "_aget_relevant_documents"
    source = type("Broken", (type(source),), {name: broken})(**({"nodes": []} if host is LlamaIndex else {"found": []}))
    llm = host.llm(["late"], seconds=0.05)
    with pytest.raises(RuntimeError, match="no index"):
        await host.aretrieve(host.ext.BRMGRRetriever(source=source, llm=llm), QUERY)
    await asyncio.sleep(0.1)
    assert llm.script.calls == 0


def test_events_are_balanced():
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    llm = MockLLM(callback_manager=manager)
    retriever(LlamaIndex, [], llm=llm, n_generated=2, callback_manager=manager).retrieve(QUERY)
    counts = {kind: len(debug.get_event_pairs(kind)) for kind in CBEventType}
    assert [counts[kind] for kind in (CBEventType.RETRIEVE, CBEventType.RERANKING, CBEventType.LLM)] == [1, 1, 2]


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
def test_calls_are_children_of_the_retrieval_and_runs_are_balanced(asynchronous):
    runs = Runs()
    component, config = retriever(LangChain, [TRUE, FALSE], n_generated=2), {"callbacks": [runs]}
    if asynchronous:
        asyncio.run(component.ainvoke(QUERY, config))
    else:
        component.invoke(QUERY, config)
    kinds = [kind for kind, _ in runs.started.values()]
    assert (kinds.count("retriever"), kinds.count("model")) == (2, 2)
    assert len([run for run, (_, parent) in runs.started.items() if parent is None]) == 1
    assert sorted(map(str, runs.ended)) == sorted(map(str, runs.started))
