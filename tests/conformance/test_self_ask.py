"""Self-ask in both hosts: a query engine of LlamaIndex, a Runnable of LangChain."""

from __future__ import annotations

import asyncio
import json
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from llama_index.core import PromptTemplate, Settings
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.tools import QueryEngineTool

from drillrank.errors import DrillrankWarning, LLMFailure
from drillrank.text import count_tokens
from tests.conformance import llama_index_reader
from tests.conformance.corpus import ticks_during
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks, each_reader
from tests.conformance.readers import FACTS, HOPS, Crowd, adversary, everything, reasoner, scripts
from tests.examples import examples
from tests.langchain_ext.listening import Log


def source(host: Any, **fields: Any) -> Any:
    return host.ext.D3Retriever([host.record(fact, fact) for fact in FACTS], top_n=2, **fields)


def asking(host: Any, crowd: Crowd | None = None, kind: int = 0, answer: Any = reasoner, **fields: Any) -> Any:
    return host.self_ask(source(host), host.reader(answer, crowd, kind), **fields)


def usage(host: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    return metadata["usage"] if host is LangChain else metadata


def down(prompt: str) -> str:
    raise ConnectionError("no route")


@both_frameworks
def test_two_hops_with_every_step_in_sight(host, capsys):
    crowd = Crowd()
    answer, texts, metadata = host.answer(
        asking(host, crowd, **({"verbose": True} if host is LlamaIndex else {})), HOPS
    )
    assert answer == "1,230 km"
    first, second = metadata["steps"]
    assert (first["question"], first["answer"]) == ("Which river does Basel lie on?", "The Rhine")
    assert (second["question"], second["answer"]) == ("How long is the Rhine?", "1,230 km")
    found = host.retrieve(source(host), "How long is the Rhine?")
    if host is LlamaIndex:
        assert second["node_ids"] == [one.id for one in found]
        assert "Follow up: How long is the Rhine?\nAnswer: 1,230 km" in capsys.readouterr().out
        json.dumps(metadata)
    else:
        assert LangChain._found(second["documents"]) == found
    assert len(texts) == len(set(texts))
    assert {one.text for one in found} <= set(texts)
    assert metadata["problems"] == []
    assert usage(host, metadata)["llm_calls"] == len(crowd.prompts) == 5
    assert usage(host, metadata)["prompt_tokens"] == sum(map(count_tokens, crowd.prompts))


@both_frameworks
async def test_llm_calls_of_the_retriever_count_in_the_usage(host):
    crowd = Crowd()
    facts = [host.record(f"# Fact\n\n{fact}\n\n# Rumor\n\nNothing.", fact) for fact in FACTS]
    retriever = host.ext.D3Retriever(facts, llm=host.reader(everything, crowd), settings={"unit": "paragraph"})
    asked = host.self_ask(retriever, host.reader(reasoner, crowd))
    costs = []
    for asynchronous in (False, True):
        crowd.prompts.clear()
        _, _, metadata = await host.aanswer(asked, HOPS) if asynchronous else host.answer(asked, HOPS)
        cost = usage(host, metadata)
        assert cost["llm_calls"] == len(crowd.prompts) > 5
        assert cost["prompt_tokens"] == sum(map(count_tokens, crowd.prompts))
        costs.append(cost["completion_tokens"])
    assert costs[0] == costs[1]


@each_reader
async def test_eight_questions_at_once_give_the_same_at_the_same_cost(host, kind):
    asked = asking(host, Crowd(0.02), kind)
    expected = host.answer(asked, HOPS)
    assert await asyncio.gather(*(host.aanswer(asked, HOPS) for _ in range(8))) == [expected] * 8
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda question: host.answer(asked, question), [HOPS] * 8)) == [expected] * 8
    if host is LangChain:
        outputs = [*await asked.abatch([HOPS] * 8), *asked.batch([HOPS] * 8, {"max_concurrency": 8})]
        assert outputs == [expected[2]] * 16


@each_reader
async def test_the_loop_goes_on_while_the_llm_thinks(host, kind):
    assert await ticks_during(host.aanswer(asking(host, Crowd(0.1), kind), HOPS)) >= 15


@both_frameworks
@settings(max_examples=examples(40), deadline=None)
@given(scripts, st.integers(1, 3), st.sampled_from([0, 1]))
def test_whatever_the_llm_says(host, script, max_steps, kind):
    llm = host.reader(adversary(script), kind=kind)
    asked = host.self_ask(SOURCES[host], llm, max_steps=max_steps, on_failure="fallback")
    outcomes = []
    for asynchronous in (False, True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcomes.append(asyncio.run(host.aanswer(asked, HOPS)) if asynchronous else host.answer(asked, HOPS))
        _, texts, metadata = outcomes[-1]
        assert {warning.category for warning in caught} <= {DrillrankWarning}
        assert bool(caught) == bool(metadata["problems"])
        assert len(metadata["steps"]) <= max_steps
        assert len(texts) == len(set(texts))
        assert set(texts) <= set(FACTS)
    assert outcomes[0] == outcomes[1]


SOURCES = {host: source(host) for host in (LlamaIndex, LangChain)}


@both_frameworks
@pytest.mark.parametrize(
    ("answer", "on_failure", "match"),
    [
        (down, None, "no route"),
        (down, "raise", "no route"),
        (lambda prompt: " ", "raise", "blank"),
        (lambda prompt: "Hm" if prompt.endswith("here:") else "...", "raise", "no final answer"),
    ],
)
async def test_an_llm_that_fails_is_an_error(host, answer, on_failure, match):
    asked = asking(host, answer=answer, on_failure=on_failure)
    with pytest.raises(LLMFailure, match=match):
        host.answer(asked, HOPS)
    with pytest.raises(LLMFailure, match=match):
        await host.aanswer(asked, HOPS)


@both_frameworks
async def test_without_an_answer_there_is_a_result_that_says_why(host):
    asked = asking(host, answer=down, on_failure="fallback")
    with pytest.warns(DrillrankWarning) as warnings:
        found = [host.answer(asked, HOPS), await host.aanswer(asked, HOPS)]
    assert any("Self-ask: calls of the LLM failed" in str(warning.message) for warning in warnings)
    for answer, _, metadata in found:
        assert answer == ("Empty Response" if host is LlamaIndex else "")
        assert any("no route" in problem for problem in metadata["problems"])


@both_frameworks
async def test_a_retriever_with_an_llm_keeps_its_own_policy(host):
    facts = [host.record(f"# Fact\n\n{fact}\n\n# Rumor\n\nNothing.", fact) for fact in FACTS]
    retriever = host.ext.D3Retriever(facts, llm=host.reader(down), settings={"unit": "paragraph"})
    asked = host.self_ask(retriever, host.reader(reasoner), on_failure="fallback")
    with pytest.raises(LLMFailure, match="choose sections"):
        host.answer(asked, HOPS)
    with pytest.raises(LLMFailure, match="choose sections"):
        await host.aanswer(asked, HOPS)


# LlamaIndex alone


@pytest.mark.parametrize("how", ["sync", "async"])
def test_retrievals_and_calls_are_children_of_the_query(how):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    llm = llama_index_reader.ChatReader(reasoner, callback_manager=manager)
    asked = LlamaIndex.self_ask(source(LlamaIndex, callback_manager=manager), llm, callback_manager=manager)
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
    asked = LlamaIndex.self_ask(source(LlamaIndex, llm=llama_index_reader.Reader()), LlamaIndex.reader(reasoner, crowd))
    names = {"prompt", "answer_prompt", "retriever:section_prompt", "retriever:paragraph_prompt"}
    assert set(asked.get_prompts()) == names
    asked.update_prompts({"prompt": PromptTemplate("Mine. {question}{transcript}")})
    assert str(asked.query(HOPS)) == "1,230 km"
    assert crowd.prompts[0] == f"Mine. {HOPS}"


def test_the_hosts_default_llm_is_taken_when_it_is_needed():
    asked = LlamaIndex.ext.SelfAskQueryEngine(source(LlamaIndex))
    before = Settings._llm
    Settings.llm = LlamaIndex.reader(reasoner)
    try:
        assert str(asked.query(HOPS)) == "1,230 km"
    finally:
        Settings._llm = before


class Reasoner(llama_index_reader.Reader):
    """Is made again by its constructor when the host unpickles it."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(reasoner, **fields)


def test_as_a_tool_and_after_pickling():
    tool = QueryEngineTool.from_defaults(asking(LlamaIndex), name="rivers", description="Answers.")
    assert tool.call(HOPS).content == "1,230 km"
    asked = LlamaIndex.self_ask(source(LlamaIndex), Reasoner())
    assert LlamaIndex.answer(pickle.loads(pickle.dumps(asked)), HOPS) == LlamaIndex.answer(asked, HOPS)


# LangChain alone


async def test_chunks_stream_as_they_happen_and_add_up_to_the_output():
    crowd = Crowd()
    asked = asking(LangChain, crowd)
    expected = asked.invoke(HOPS)
    crowd.prompts.clear()
    stream = asked.stream(HOPS)
    first = next(stream)
    assert [step["question"] for step in first["steps"]] == ["Which river does Basel lie on?"]
    assert len(crowd.prompts) == 2
    assert reduce(add, stream, first) == expected
    assert reduce(add, [chunk async for chunk in asked.astream(HOPS)]) == expected
    assert list(expected) == ["steps", "answer", "problems", "usage"]
    events = [event async for event in asked.astream_events(HOPS, version="v2")]
    steps = [event for event in events if event["event"] == "on_chain_stream" and event["name"] == "SelfAskChain"]
    assert [list(event["data"]["chunk"]) for event in steps] == [
        ["steps"],
        ["steps"],
        ["answer", "steps", "problems", "usage"],
    ]
    assert sum(event["event"] == "on_retriever_end" for event in events) == 2


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "astream", "abandoned"])
def test_retrievals_and_calls_are_children_of_the_run(how):
    log = Log()
    config: Any = {"callbacks": [log], "run_name": "mine"}

    async def streamed() -> None:
        async for _ in asking(LangChain).astream(HOPS, config):
            pass

    if how == "invoke":
        asking(LangChain).invoke(HOPS, config)
    elif how == "abandoned":
        stream = asking(LangChain).stream(HOPS, config)
        next(stream)
        stream.close()
    else:
        asyncio.run(streamed() if how == "astream" else asking(LangChain).ainvoke(HOPS, config))
    assert {ended for _, _, ended in log.runs.values()} == {1}
    [root] = [run_id for run_id, (_, parent, _) in log.runs.items() if parent is None]
    kinds = [kind for kind, parent, _ in log.runs.values() if kind != "chain"]
    assert kinds.count("retriever") == (1 if how == "abandoned" else 2)
    assert kinds.count("llm") == (2 if how == "abandoned" else 5)
    assert all(log.runs[run_id][1] == root for run_id, run in log.runs.items() if run[0] == "retriever")


def test_in_a_sequence_and_after_pickling_a_chain():
    asked = asking(LangChain)
    assert (RunnableLambda(str.strip) | asked | (lambda found: found["answer"])).invoke(f" {HOPS} ") == "1,230 km"
    streamed = RunnableLambda(lambda question: question) | StrOutputParser() | asked
    assert reduce(add, streamed.stream(HOPS))["answer"] == "1,230 km"
    assert pickle.loads(pickle.dumps(asked)).invoke(HOPS) == asked.invoke(HOPS)


def test_prompts_are_templates_and_titles_are_shown():
    crowd = Crowd()
    titled = RunnableLambda(lambda question: [Document(page_content="It is long.", metadata={"title": "Rhine"})])
    LangChain.self_ask(titled, LangChain.reader(reasoner, crowd), prompt="Mine. {question}{transcript}").invoke(HOPS)
    assert crowd.prompts[0] == f"Mine. {HOPS}"
    assert "Contents: Rhine: It is long." in crowd.prompts[1]
    system = ChatPromptTemplate([("system", "Be brief."), ("user", "{question}{transcript}")])
    asked = asking(LangChain, prompt=system)
    assert asked.invoke(HOPS)["answer"] == "1,230 km"
    assert asked.llm.messages[0][0] == SystemMessage("Be brief.")
