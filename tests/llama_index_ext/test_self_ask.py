"""Self-ask as a LlamaIndex query engine."""

from __future__ import annotations

import asyncio
import json
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import Document, PromptTemplate, Settings
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.tools import QueryEngineTool

from drillrank.errors import DrillrankWarning, InvalidInput, LLMFailure
from drillrank.text import count_tokens
from llama_index_ext import D3Retriever, SelfAskQueryEngine
from tests.conformance.corpus import ticks_during
from tests.conformance.llama_index_reader import ChatReader, Reader
from tests.conformance.readers import FACTS, HOPS, Crowd, adversary, reasoner, scripts

both = pytest.mark.parametrize("kind", [Reader, ChatReader])


def retriever(**fields: Any) -> D3Retriever:
    return D3Retriever([Document(text=fact, id_=fact) for fact in FACTS], top_n=2, **fields)


def engine(crowd: Crowd | None = None, kind: type[Reader] = Reader, **fields: Any) -> SelfAskQueryEngine:
    return SelfAskQueryEngine(retriever(), kind(reasoner, crowd), **fields)


def outcome(response: Any) -> tuple[Any, ...]:
    return str(response), response.metadata, [node.node.node_id for node in response.source_nodes]


def test_two_hops_with_every_step_in_sight(capsys):
    crowd = Crowd()
    response = engine(crowd, verbose=True).query(HOPS)
    assert isinstance(response, Response)
    assert str(response) == "1,230 km"
    first, second = response.metadata["steps"]
    assert (first["question"], first["answer"]) == ("Which river does Basel lie on?", "The Rhine")
    assert (second["question"], second["answer"]) == ("How long is the Rhine?", "1,230 km")
    ids = [node.node.node_id for node in response.source_nodes]
    assert len(ids) == len(set(ids))
    assert set(ids) == {*first["node_ids"], *second["node_ids"]}
    assert response.metadata["llm_calls"] == len(crowd.prompts) == 5
    assert response.metadata["prompt_tokens"] == sum(map(count_tokens, crowd.prompts))
    assert response.metadata["problems"] == []
    json.dumps(response.metadata)
    assert "Follow up: How long is the Rhine?\nAnswer: 1,230 km" in capsys.readouterr().out


@both
async def test_async_gives_the_same_at_the_same_cost(kind):
    expected = outcome(engine(kind=kind).query(HOPS))
    assert outcome(await engine(kind=kind).aquery(HOPS)) == expected


@both
async def test_eight_questions_at_once_give_the_same(kind):
    crowd = Crowd(0.1)
    asked = engine(crowd, kind, workers=4)
    expected = outcome(asked.query(HOPS))
    found = await asyncio.gather(*(asked.aquery(HOPS) for _ in range(8)))
    assert [outcome(response) for response in found] == [expected] * 8
    with ThreadPoolExecutor(8) as pool:
        assert [outcome(response) for response in pool.map(asked.query, [HOPS] * 8)] == [expected] * 8


@both
async def test_the_loop_goes_on_while_the_llm_thinks(kind):
    assert await ticks_during(engine(Crowd(0.1), kind).aquery(HOPS)) >= 15


@pytest.mark.parametrize("how", ["sync", "async"])
def test_retrievals_and_calls_are_children_of_the_query(how):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    llm = ChatReader(reasoner, callback_manager=manager)
    asked = SelfAskQueryEngine(retriever(callback_manager=manager), llm, callback_manager=manager)
    if how == "sync":
        asked.query(HOPS)
    else:
        asyncio.run(asked.aquery(HOPS))
    [query] = debug.get_event_pairs(CBEventType.QUERY)
    below = [pair[0].id_ for kind in (CBEventType.RETRIEVE, CBEventType.LLM) for pair in debug.get_event_pairs(kind)]
    assert len(below) == 2 + 5
    assert {len(pair) for pair in debug.get_event_pairs()} == {2}
    assert set(below) <= set(manager.trace_map[query[0].id_])


def test_prompts_of_the_engine_and_of_its_retriever_are_edited_as_everywhere():
    crowd = Crowd()
    asked = SelfAskQueryEngine(retriever(llm=Reader()), Reader(reasoner, crowd))
    names = {"prompt", "answer_prompt", "retriever:section_prompt", "retriever:paragraph_prompt"}
    assert set(asked.get_prompts()) == names
    asked.update_prompts({"prompt": PromptTemplate("Mine. {question}{transcript}")})
    assert str(asked.query(HOPS)) == "1,230 km"
    assert crowd.prompts[0] == f"Mine. {HOPS}"


def test_the_hosts_default_llm_is_taken_when_it_is_needed():
    asked = SelfAskQueryEngine(retriever())
    before = Settings._llm
    Settings.llm = Reader(reasoner)
    try:
        assert str(asked.query(HOPS)) == "1,230 km"
    finally:
        Settings._llm = before


class Reasoner(Reader):
    """Is made again by its constructor when the host unpickles it."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(reasoner, **fields)


def test_as_a_tool_and_after_pickling():
    tool = QueryEngineTool.from_defaults(engine(), name="rivers", description="Answers.")
    assert tool.call(HOPS).content == "1,230 km"
    asked = SelfAskQueryEngine(retriever(), Reasoner())
    assert outcome(pickle.loads(pickle.dumps(asked)).query(HOPS)) == outcome(asked.query(HOPS))


@settings(max_examples=40, deadline=None)
@given(scripts, st.integers(1, 3), st.sampled_from([Reader, ChatReader]))
def test_whatever_the_llm_says(script, max_steps, kind):
    asked = SelfAskQueryEngine(RETRIEVER, kind(adversary(script)), max_steps=max_steps)
    outcomes = []
    for how in ("sync", "async"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            response = asked.query(HOPS) if how == "sync" else asyncio.run(asked.aquery(HOPS))
        outcomes.append(outcome(response))
        assert {warning.category for warning in caught} <= {DrillrankWarning}
        assert bool(caught) == bool(response.metadata["problems"])
        assert len(response.metadata["steps"]) <= max_steps
        ids = [node.node.node_id for node in response.source_nodes]
        assert len(ids) == len(set(ids))
        assert {node.node.get_content() for node in response.source_nodes} <= set(FACTS)
    assert outcomes[0] == outcomes[1]


RETRIEVER = retriever()


def test_failures_are_raised_if_asked_for():
    def down(prompt: str) -> str:
        raise ConnectionError("no route")

    asked = SelfAskQueryEngine(retriever(), Reader(down), on_failure="raise")
    with pytest.raises(LLMFailure, match="no route"):
        asked.query(HOPS)
    with pytest.raises(LLMFailure, match="no route"):
        asyncio.run(asked.aquery(HOPS))
    with pytest.raises(InvalidInput):
        engine().query(" ")


def test_a_response_without_an_answer_is_the_hosts_empty_response():
    def down(prompt: str) -> str:
        raise ConnectionError("no route")

    asked = SelfAskQueryEngine(retriever(), Reader(down))
    with pytest.warns(DrillrankWarning, match="no route"):
        found = [asked.query(HOPS), asyncio.run(asked.aquery(HOPS))]
    for response in found:
        assert str(response) == "Empty Response"
        assert any("no route" in problem for problem in response.metadata["problems"])


def test_settings_are_checked():
    with pytest.raises(InvalidInput):
        engine(max_steps=0)
