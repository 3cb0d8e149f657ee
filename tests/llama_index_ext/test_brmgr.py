from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata, MockLLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from pydantic import PrivateAttr

from drillrank import BRMGR, Passage
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation.settings_file import keyword_arguments
from llama_index_ext import BRMGRRerank, BRMGRRetriever
from tests.conformance.corpus import ticks_during

QUERY = "Who wrote Emma?"
FOUND = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
TRUE, FALSE = "Jane Austen wrote the novel Emma.", "Charles Dickens of London finished it in 1843."


class Listed(BaseRetriever):
    """Finds the same nodes for every query."""

    def __init__(self, texts: list[str] = FOUND) -> None:
        super().__init__()
        self.texts = texts

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text, id_=f"n{i}"), score=0.5) for i, text in enumerate(self.texts)]


class Scripted(CustomLLM):
    """Gives one answer after the other, raises those that are exceptions, and takes its time if it is asked to."""

    script: list[Any]
    seconds: float = 0.0
    _calls: int = PrivateAttr(default=0)
    _busy: int = PrivateAttr(default=0)
    _most: int = PrivateAttr(default=0)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **kwargs):
        answer = self.script[self._calls % len(self.script)]
        self._calls += 1
        if isinstance(answer, Exception):
            raise answer
        return CompletionResponse(text=answer)

    async def acomplete(self, prompt, formatted=False, **kwargs):
        self._busy += 1
        self._most = max(self._most, self._busy)
        await asyncio.sleep(self.seconds)
        self._busy -= 1
        return self.complete(prompt)

    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise NotImplementedError


def origin(node):
    return node.node.metadata.get("drillrank_origin")


def shown(nodes):
    return [(node.node.node_id, node.node.text, origin(node), node.score) for node in nodes]


def marked(texts, key="drillrank_origin", value="generated"):
    return [NodeWithScore(node=TextNode(text=text, metadata={key: value} if value else {})) for text in texts]


def test_the_reranker_is_the_core_s():
    nodes = [*marked([TRUE, FALSE]), *marked(FOUND, value="")]
    merged = BRMGRRerank(guard=0.2, settings={"first": "retrieved"}).postprocess_nodes(nodes, query_str=QUERY)
    expected = BRMGR(guard=0.2, settings={"first": "retrieved"}).rank(QUERY, FOUND, [TRUE, FALSE])
    assert [(node.node.text, node.score) for node in merged] == [(item.passage.text, item.score) for item in expected]


def test_the_key_that_marks_generated_nodes_is_configurable():
    nodes = [
        *marked(FOUND, value=""),
        *marked([TRUE], "source", "generated"),
        *marked([FALSE], "drillrank_origin", "generated"),
    ]
    merged = BRMGRRerank(
        top_n=None,
        settings={"origin_key": "source", "metadata_mode": MetadataMode.NONE},
    ).postprocess_nodes(nodes, query_str=QUERY)
    expected = BRMGR().rank(QUERY, [*FOUND, FALSE], [TRUE])
    assert [node.node.text for node in merged] == [item.passage.text for item in expected]


def test_what_a_generated_node_says_about_itself_is_not_scored():
    nodes = [NodeWithScore(node=TextNode(text=TRUE, metadata={"drillrank_origin": "generated", "why": "London " * 50}))]
    [alone] = BRMGRRerank().postprocess_nodes(nodes, query_str=QUERY)
    [plain] = BRMGR().rank(QUERY, [], [TRUE])
    assert alone.score == plain.score


@pytest.mark.parametrize("top_n", [1, 2, 3, 4, None])
def test_the_share_holds_for_the_nodes_returned(top_n):
    nodes = [*marked(FOUND, value=""), *marked([TRUE, FALSE, "Emma?"])]
    reranker = BRMGRRerank(generated_share=1 / 3, top_n=top_n)
    merged = reranker.postprocess_nodes(nodes, query_str=QUERY)
    assert sum(origin(node) == "generated" for node in merged) <= len(merged) / 3
    assert len(merged) == min(top_n or 3, 3)


@pytest.mark.parametrize("fields", [{"guard": 2}, {"generated_share": -1}, {"first": "best"}])
def test_bad_fields_are_rejected_at_construction(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        BRMGRRerank(**fields)


@pytest.mark.parametrize("guard", [False, True, 0.5, 1.0])
def test_the_guard_survives_the_round_trip(guard):
    component = BRMGRRerank(
        guard=guard,
        settings={"first": "retrieved", "origin_key": "k"},
        generated_share=0.5,
    )
    copy = BRMGRRerank.from_json(component.to_json())
    assert (copy.guard, type(copy.guard)) == (guard, type(guard))
    assert copy.to_dict() == component.to_dict()


def test_generated_nodes_are_marked_and_merged():
    found = BRMGRRetriever(Listed(), Scripted(script=[TRUE, FALSE]), n_generated=2).retrieve(QUERY)
    written = [Passage(TRUE), Passage(FALSE)]
    expected = BRMGR().rank(QUERY, FOUND, written, scores=[0.5, 0.5])
    assert [(node.node.text, node.score) for node in found] == [(item.passage.text, item.score) for item in expected]
    for node in found:
        assert (origin(node) == "generated") == (node.node.text in (TRUE, FALSE))
        if origin(node) == "generated":
            assert node.node.get_content(MetadataMode.EMBED) == node.node.text
            assert "origin" not in node.node.get_content(MetadataMode.LLM)
            assert node.node.ref_doc_id is None


def test_options_reach_the_merge():
    llm = Scripted(script=[TRUE, FALSE, "Emma was a queen."])
    retriever = BRMGRRetriever(
        Listed(),
        llm,
        3,
        top_n=3,
        settings={"first": "retrieved", "origin_key": "by"},
        guard=0.2,
        generated_share=0.4,
    )
    found = retriever.retrieve(QUERY)
    assert [node.node.metadata.get("by") for node in found] == [None, "generated", None]
    assert found[1].node.text == TRUE


def test_prompts_reach_the_llm():
    found = BRMGRRetriever(
        Listed([]), MockLLM(), 2, settings={"prompts": ["1 {question} {x}", "2 {question}"]}
    ).retrieve(QUERY)
    assert sorted(node.node.text for node in found) == [f"1 {QUERY} {{x}}", f"2 {QUERY}"]


def test_without_an_llm_the_settings_are_asked_at_the_query():
    retriever = BRMGRRetriever(Listed([]), n_generated=1, settings={"prompts": ["{question}"]})
    before = Settings._llm
    Settings.llm = MockLLM()
    try:
        assert [node.node.text for node in retriever.retrieve(QUERY)] == [QUERY]
    finally:
        Settings._llm = before


def test_nothing_is_stored():
    index = VectorStoreIndex([TextNode(text=text, id_=text) for text in FOUND], embed_model=MockEmbedding(8))
    inner = index.as_retriever()
    before = set(index.docstore.docs), dict(index.vector_store.data.embedding_dict)
    found = BRMGRRetriever(inner, Scripted(script=[TRUE]), 1).retrieve(QUERY)
    assert TRUE in [node.node.text for node in found]
    assert (set(index.docstore.docs), dict(index.vector_store.data.embedding_dict)) == before


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
def test_no_llm_loses_a_retrieved_node_and_async_equals_sync(script, fields):
    def retriever():
        # One after the other: the script is told by the order of the calls, which threads do not keep.
        own = keyword_arguments(BRMGRRetriever, {**fields, "workers": 1})
        return BRMGRRetriever(Listed(), Scripted(script=script), len(script), **own)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        found = retriever().retrieve(QUERY)
        later = asyncio.run(retriever().aretrieve(QUERY))
    assert shown(later) == shown(found)
    assert sorted(node.node.text for node in found if origin(node) is None) == sorted(FOUND)
    written = [node.node.text for node in found if origin(node) == "generated"]
    assert len(written) == len(found) - len(FOUND) == len(set(written)) <= len(script)


def test_a_failing_llm_is_a_warning():
    with pytest.warns(DrillrankWarning, match="3 failed .*no quota"):
        found = BRMGRRetriever(Listed(), Scripted(script=[ValueError("no quota")])).retrieve(QUERY)
    assert [node.node.text for node in found] == FOUND


async def test_the_llm_s_own_async_call_is_awaited_with_bounded_workers():
    llm = Scripted(script=["one", "two", "three", "four", "five", "six"], seconds=0.05)
    retriever = BRMGRRetriever(Listed(), llm, 6, settings={"workers": 2})
    assert await ticks_during(retriever.aretrieve(QUERY)) >= 3  # one of each round of two calls
    assert llm._most == 2
    assert llm._calls == 6


async def test_an_error_of_the_inner_retriever_is_raised_and_ends_the_writing():
    class Broken(Listed):
        async def _aretrieve(self, query_bundle):
            raise RuntimeError("no index")

    llm = Scripted(script=["late"], seconds=0.05)
    with pytest.raises(RuntimeError, match="no index"):
        await BRMGRRetriever(Broken(), llm).aretrieve(QUERY)
    await asyncio.sleep(0.1)
    assert llm._calls == 0


def test_events_are_balanced():
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    BRMGRRetriever(Listed(), MockLLM(callback_manager=manager), 2, callback_manager=manager).retrieve(QUERY)
    counts = {kind: len(debug.get_event_pairs(kind)) for kind in CBEventType}
    assert counts[CBEventType.RETRIEVE] == 1
    assert counts[CBEventType.RERANKING] == 1
    assert counts[CBEventType.LLM] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_generated": 0},
        {"top_n": 0},
        *({"settings": one} for one in ({"workers": 0}, {"prompts": []}, {"prompts": "x"})),
    ],
)
def test_bad_arguments(arguments):
    with pytest.raises(InvalidInput):
        BRMGRRetriever(Listed(), MockLLM(), **arguments)
