"""Drilling down through LangChain: its models, embeddings, prompts, callbacks and vector stores."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import SystemMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda

from drillrank.errors import DrillrankWarning, LLMFailure
from drillrank.evaluation.settings_file import keyword_arguments
from langchain_ext import D3Retriever
from tests.conformance.langchain_reader import AsyncReader, Reader
from tests.conformance.readers import ASKED, BOOK, TARGET, Crowd, about
from tests.langchain_ext.listening import Log

DOCUMENT = Document(page_content=BOOK, id="book", metadata={"source": "book.md"})


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def finder(crowd: Crowd | None = None, kind: type[Reader] = Reader) -> Reader:
    return kind(answer=about("2.3"), crowd=crowd or Crowd())


def drill(*given: Document, **fields: Any) -> D3Retriever:
    fields = {"documents": given or [DOCUMENT], "llm": finder(), "unit": "paragraph", **fields}
    return D3Retriever(**keyword_arguments(D3Retriever, fields))


def test_a_text_model_and_a_chain_around_a_model_will_do():
    around = RunnableLambda(lambda prompt: about("2.3")(prompt.to_string()))
    for llm in (FakeListLLM(responses=["Chapter 2.3", "1"]), around):
        assert texts(drill(llm=llm).invoke(ASKED)) == [TARGET]


# Callbacks and progress


class AsyncLog(AsyncCallbackHandler):
    """What the loop is told of custom events."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def on_custom_event(self, name: str, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        self.names.append(name)


def down(prompt: str) -> str:
    raise ConnectionError("no route")


@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
@pytest.mark.parametrize("answer", [about("2.3"), down])
@pytest.mark.parametrize("how", ["sync", "async"])
def test_llm_calls_are_children_of_the_retrieval_and_every_run_ends(answer, how):
    log = Log()
    retriever = drill(llm=AsyncReader(answer=answer), on_failure="fallback")
    if how == "sync":
        retriever.invoke(ASKED, {"callbacks": [log]})
    else:
        asyncio.run(retriever.ainvoke(ASKED, {"callbacks": [log]}))
    assert {ended for _, _, ended in log.runs.values()} == {1}
    [root] = [run_id for run_id, (kind, _, _) in log.runs.items() if kind == "retriever"]
    assert log.runs[root][1] is None
    calls = [run_id for run_id, (kind, _, _) in log.runs.items() if kind == "llm"]
    assert len(calls) == 2
    assert all(log.above(run_id)[-1] == "retriever" for run_id in calls)
    assert [name for name, _, _ in log.custom] == ["d3_step", "d3_step", "d3_end"]
    assert {run_id for _, _, run_id in log.custom} == {root}
    assert log.custom[0][1]["kind"] == "sections"
    assert log.custom[-1][1]["llm_calls"] == 2
    assert bool(log.custom[0][1]["problems"]) == (answer is down)


async def test_progress_streams_while_the_retriever_works():
    events = [event async for event in drill().astream_events(ASKED, version="v2")]
    names = [event["name"] if event["event"] == "on_custom_event" else event["event"] for event in events]
    assert names[0] == "on_retriever_start"
    assert names[-1] == "on_retriever_end"
    first = names.index("d3_step")
    assert "on_chat_model_start" in names[first:]
    assert names.count("d3_step") == 2
    assert events[names.index("d3_end")]["data"]["llm_calls"] == 2


async def test_steps_are_told_in_order_before_the_end_and_even_where_nothing_is_found():
    log = AsyncLog()
    assert await drill(llm=Reader(answer=lambda prompt: "none")).ainvoke(ASKED, {"callbacks": [log]}) == []
    assert log.names == ["d3_step", "d3_end"]


async def test_what_went_wrong_is_in_documents_and_events():
    stream = drill(llm=Reader(answer=lambda prompt: "what?")).astream_events(ASKED, version="v2")
    with pytest.warns(DrillrankWarning, match="problems"):
        events = [event async for event in stream]
    [end] = [event["data"] for event in events if event["name"] == "d3_end"]
    assert len(end["problems"]) == 2
    assert all(problem.endswith("offered: chosen by likelihood") for problem in end["problems"])
    found = events[-1]["data"]["output"]
    assert TARGET in texts(found)
    assert all(document.metadata["drillrank_problems"] == "; ".join(end["problems"]) for document in found)
    with pytest.raises(LLMFailure, match="nothing that was offered"):
        drill(llm=Reader(answer=lambda prompt: "what?"), on_failure="raise").invoke(ASKED)


async def test_handlers_and_questions_share_few_threads():
    """Neither waits for a thread that the other holds."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    log = Log()
    found = await asyncio.wait_for(drill().abatch([ASKED] * 12, {"callbacks": [log]}), 60)
    assert [texts(documents) for documents in found] == [[TARGET]] * 12
    assert len(log.custom) == 36


# Prompts


def test_prompts_are_templates():
    crowd = Crowd()
    mine = "Mine: {question}\n{outline}"
    for prompt in (mine, PromptTemplate.from_template(mine)):
        crowd.prompts.clear()
        assert texts(drill(llm=finder(crowd), section_prompt=prompt).invoke(ASKED)) == [TARGET]
        assert crowd.prompts[0].startswith(f"Mine: {ASKED}\n* Section: Part 1\n")
        assert "Find paragraph ids" in crowd.prompts[1]


def test_roles_of_a_chat_template_arrive():
    template = ChatPromptTemplate([("system", "You are a librarian."), ("user", "{outline}\n{question}")])
    for sections_by in ("names", "json"):
        llm = finder()
        retriever = drill(llm=llm, section_prompt=template, sections_by=sections_by)
        assert texts(retriever.invoke(ASKED)) == [TARGET]
        assert llm.messages[0][0] == SystemMessage("You are a librarian.")


# Structured output


class Clerk(Reader):
    """Offers structured output, as models that call tools do."""

    given: Any = None

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        assert schema["properties"].keys() == {"ids"}
        return RunnableLambda(lambda prompt: self.given)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_model_with_structured_output_is_held_to_it(how):
    retriever = drill(llm=Clerk(given={"ids": [1, 2, 77]}), sections_by="json")
    with pytest.warns(DrillrankWarning):
        found = retriever.invoke(ASKED) if how == "sync" else asyncio.run(retriever.ainvoke(ASKED))
    assert "'77'" in found[0].metadata["drillrank_problems"]
    assert {document.metadata["drillrank_section_path"] for document in found} <= {"Part 1", "Part 1 > Chapter 1.1"}
    with pytest.warns(DrillrankWarning):
        found = drill(llm=Clerk(), sections_by="json").invoke(ASKED)
    assert TARGET in texts(found)
    assert "no structured output" in found[0].metadata["drillrank_problems"]
