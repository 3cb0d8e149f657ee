"""Self-ask as a LangChain Runnable."""

from __future__ import annotations

import asyncio
import pickle
import warnings
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

from drillrank.errors import DrillrankWarning, InvalidInput, LLMFailure
from drillrank.text import count_tokens
from langchain_ext import D3Retriever, SelfAskChain
from tests.conformance.corpus import ticks_during
from tests.conformance.langchain_reader import AsyncReader, Reader
from tests.conformance.readers import FACTS, HOPS, Crowd, adversary, reasoner, scripts
from tests.langchain_ext.test_d3 import Log

both = pytest.mark.parametrize("kind", [Reader, AsyncReader])
RETRIEVER = D3Retriever(documents=[Document(page_content=fact, id=fact) for fact in FACTS], top_n=2)


def chain(crowd: Crowd | None = None, kind: type[Reader] = Reader, **fields: Any) -> SelfAskChain:
    llm = kind(answer=reasoner, crowd=crowd or Crowd())
    return SelfAskChain(**{"llm": llm, "source": RETRIEVER, **fields})


def test_two_hops_with_every_step_in_sight():
    crowd = Crowd()
    found = chain(crowd).invoke(HOPS)
    assert found["answer"] == "1,230 km"
    first, second = found["steps"]
    assert (first["question"], first["answer"]) == ("Which river does Basel lie on?", "The Rhine")
    assert (second["question"], second["answer"]) == ("How long is the Rhine?", "1,230 km")
    assert second["documents"] == RETRIEVER.invoke("How long is the Rhine?")
    assert found["problems"] == []
    assert found["usage"]["llm_calls"] == len(crowd.prompts) == 5
    assert found["usage"]["prompt_tokens"] == sum(map(count_tokens, crowd.prompts))


async def test_chunks_stream_as_they_happen_and_add_up_to_the_output():
    crowd = Crowd()
    asked = chain(crowd)
    expected = asked.invoke(HOPS)
    crowd.prompts.clear()
    stream = asked.stream(HOPS)
    first = next(stream)
    assert [step["question"] for step in first["steps"]] == ["Which river does Basel lie on?"]
    assert len(crowd.prompts) == 2
    assert reduce(add, stream, first) == expected
    assert reduce(add, [chunk async for chunk in asked.astream(HOPS)]) == expected
    assert list(expected) == ["steps", "answer", "problems", "usage"]


@both
async def test_async_and_batches_give_the_same(kind):
    crowd = Crowd(0.1)
    asked = chain(crowd, kind, workers=4)
    expected = asked.invoke(HOPS)
    assert await asked.ainvoke(HOPS) == expected
    assert await asked.abatch([HOPS] * 8) == [expected] * 8
    assert asked.batch([HOPS] * 8, {"max_concurrency": 8}) == [expected] * 8


@both
async def test_the_loop_goes_on_while_the_llm_thinks(kind):
    assert await ticks_during(chain(Crowd(0.1), kind).ainvoke(HOPS)) >= 15


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "astream", "abandoned"])
def test_retrievals_and_calls_are_children_of_the_run(how):
    log = Log()
    config: Any = {"callbacks": [log], "run_name": "mine"}

    async def streamed() -> None:
        async for _ in chain().astream(HOPS, config):
            pass

    if how == "invoke":
        chain().invoke(HOPS, config)
    elif how == "abandoned":
        stream = chain().stream(HOPS, config)
        next(stream)
        stream.close()  # type: ignore[attr-defined]
    else:
        asyncio.run(streamed() if how == "astream" else chain().ainvoke(HOPS, config))
    assert {ended for _, _, ended in log.runs.values()} == {1}
    [root] = [run_id for run_id, (_, parent, _) in log.runs.items() if parent is None]
    kinds = [kind for kind, parent, _ in log.runs.values() if kind != "chain"]
    assert kinds.count("retriever") == (1 if how == "abandoned" else 2)
    assert kinds.count("llm") == (2 if how == "abandoned" else 5)
    assert all(log.runs[run_id][1] == root for run_id, run in log.runs.items() if run[0] == "retriever")


async def test_events_stream_too():
    events = [event async for event in chain().astream_events(HOPS, version="v2")]
    steps = [event for event in events if event["event"] == "on_chain_stream" and event["name"] == "SelfAskChain"]
    assert [list(event["data"]["chunk"]) for event in steps] == [
        ["steps"],
        ["steps"],
        ["answer", "steps", "problems", "usage"],
    ]
    assert sum(event["event"] == "on_retriever_end" for event in events) == 2


def test_in_a_sequence_and_after_pickling():
    asked = chain()
    assert (RunnableLambda(str.strip) | asked | (lambda found: found["answer"])).invoke(f" {HOPS} ") == "1,230 km"
    streamed = RunnableLambda(lambda question: question) | StrOutputParser() | asked
    assert reduce(add, streamed.stream(HOPS))["answer"] == "1,230 km"
    assert pickle.loads(pickle.dumps(asked)).invoke(HOPS) == asked.invoke(HOPS)


def test_prompts_are_templates_and_titles_are_shown():
    crowd = Crowd()
    titled = [Document(page_content="It is long.", metadata={"title": "Rhine"})]
    asked = chain(crowd, source=RunnableLambda(lambda question: titled), prompt="Mine. {question}{transcript}")
    asked.invoke(HOPS)
    assert crowd.prompts[0] == f"Mine. {HOPS}"
    assert "Contents: Rhine: It is long." in crowd.prompts[1]
    system = ChatPromptTemplate([("system", "Be brief."), ("user", "{question}{transcript}")])
    asked = chain(prompt=system)
    assert asked.invoke(HOPS)["answer"] == "1,230 km"
    assert asked.llm.messages[0][0] == SystemMessage("Be brief.")
    for wrong in ("no places", "{question}{unknown}{transcript}"):
        with pytest.raises(InvalidInput, match="prompt"):
            chain(prompt=wrong)


@settings(max_examples=40, deadline=None)
@given(scripts, st.integers(1, 3), st.sampled_from([Reader, AsyncReader]))
def test_whatever_the_llm_says(script, max_steps, kind):
    asked = SelfAskChain(llm=kind(answer=adversary(script)), source=RETRIEVER, max_steps=max_steps)
    found = []
    for how in ("sync", "async"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(asked.invoke(HOPS) if how == "sync" else asyncio.run(asked.ainvoke(HOPS)))
        assert {warning.category for warning in caught} <= {DrillrankWarning}
        assert bool(caught) == bool(found[-1]["problems"])
        assert isinstance(found[-1]["answer"], str)
        assert len(found[-1]["steps"]) <= max_steps
        assert {document.page_content for step in found[-1]["steps"] for document in step["documents"]} <= set(FACTS)
    assert found[0] == found[1]


def test_failures_and_bad_questions_are_raised():
    def down(prompt: str) -> str:
        raise ConnectionError("no route")

    asked = chain(llm=Reader(answer=down), on_failure="raise")
    with pytest.raises(LLMFailure, match="no route"):
        asked.invoke(HOPS)
    with pytest.raises(LLMFailure, match="no route"):
        asyncio.run(asked.ainvoke(HOPS))
    for wrong in (" ", "", 5, {"question": HOPS}, None):
        with pytest.raises(InvalidInput):
            chain().invoke(wrong)
    with pytest.raises(InvalidInput):
        chain(max_steps=0)
