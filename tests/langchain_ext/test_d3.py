"""Drilling down through LangChain: its models, embeddings, prompts, callbacks and vector stores."""

from __future__ import annotations

import asyncio
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import SystemMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from drillrank.errors import DrillrankWarning, InvalidInput, LLMFailure
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.text import count_tokens
from langchain_ext import D3Retriever, MultiViewRetriever, MultiViewTextSplitter
from tests.conformance.corpus import ticks_during
from tests.conformance.langchain_reader import AsyncReader, Reader
from tests.conformance.readers import ASKED, BOOK, TARGET, Crowd, about, adversary, scripts

DOCUMENT = Document(page_content=BOOK, id="book", metadata={"source": "book.md"})
TOWN = "# Town {n}\n\nBread.\n\n## People\n\n{n} people live here."
OTHERS = [Document(page_content=TOWN.format(n=n), id=f"town {n}") for n in range(4)]

both = pytest.mark.parametrize("kind", [Reader, AsyncReader])


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def outcome(documents: list[Document]) -> list[dict[str, Any]]:
    return [document.model_dump() for document in documents]


def finder(crowd: Crowd | None = None, kind: type[Reader] = Reader) -> Reader:
    return kind(answer=about("2.3"), crowd=crowd or Crowd())


def drill(*given: Document, **fields: Any) -> D3Retriever:
    fields = {"documents": given or [DOCUMENT], "llm": finder(), **fields}
    return D3Retriever(**keyword_arguments(D3Retriever, fields))


def test_the_llm_chooses_and_its_cost_is_told():
    crowd = Crowd()
    [found] = drill(llm=finder(crowd)).invoke(ASKED)
    start = found.metadata["start_index"]
    assert found.page_content == TARGET == BOOK[start : start + len(TARGET)]
    assert found.metadata["drillrank_section_path"] == "Part 2 > Chapter 2.3"
    assert (found.metadata["source"], found.metadata["drillrank_source_id"]) == ("book.md", "book")
    cost = {"drillrank_prompt_tokens": sum(map(count_tokens, crowd.prompts)), "drillrank_llm_calls": 2}
    assert cost.items() <= found.metadata.items()


def test_a_text_model_and_a_chain_around_a_model_will_do():
    around = RunnableLambda(lambda prompt: about("2.3")(prompt.to_string()))
    for llm in (FakeListLLM(responses=["Chapter 2.3", "1"]), around):
        assert texts(drill(llm=llm).invoke(ASKED)) == [TARGET]


VARIANTS = [
    {},
    {"sections_by": "ids"},
    {"sections_by": "json"},
    {"paragraphs": "hierbase"},
    {"summary_words": 3, "summarizer": "llm"},
    {"paragraphs": "likelihood", "guard_tokens": 60, "max_prompt_tokens": 200},
    {"max_prompt_tokens": 150, "max_calls": 60, "on_empty": "likelihood"},
]


@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
@pytest.mark.parametrize("fields", VARIANTS, ids=str)
@both
async def test_async_gives_the_same_documents_at_the_same_cost(kind, fields):
    expected = drill(llm=finder(kind=kind), **fields).invoke(ASKED)
    assert TARGET in texts(expected)
    assert outcome(await drill(llm=finder(kind=kind), **fields).ainvoke(ASKED)) == outcome(expected)


@both
async def test_eight_questions_at_once_give_the_same(kind):
    crowd = Crowd(0.1)
    retriever = drill(llm=finder(crowd, kind), workers=4, max_prompt_tokens=200)
    expected = outcome(retriever.invoke(ASKED))
    assert outcome(await retriever.ainvoke(ASKED)) == expected
    assert [outcome(found) for found in await retriever.abatch([ASKED] * 8)] == [expected] * 8
    assert [outcome(found) for found in retriever.batch([ASKED] * 8, {"max_concurrency": 8})] == [expected] * 8


def test_eight_threads_and_a_loop_give_the_same():
    crowd = Crowd(0.1)
    retriever = drill(llm=finder(crowd, AsyncReader), workers=3)
    jobs = [lambda: retriever.invoke(ASKED)] * 8 + [lambda: asyncio.run(retriever.abatch([ASKED] * 4))[0]]
    with ThreadPoolExecutor(9) as pool:
        assert [texts(found.result()) for found in [pool.submit(job) for job in jobs]] == [[TARGET]] * 9


@both
async def test_the_loop_goes_on_while_the_llm_thinks(kind):
    crowd = Crowd(0.2)
    assert await ticks_during(drill(llm=finder(crowd, kind)).ainvoke(ASKED)) >= 15
    assert threading.get_ident() not in crowd.threads


# Callbacks and progress


class Log(BaseCallbackHandler):
    """Runs by their id: kind, parent, and whether they ended; and custom events."""

    def __init__(self) -> None:
        self.runs: dict[UUID, list[Any]] = {}
        self.custom: list[tuple[str, Any, UUID]] = []

    def on_retriever_start(self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        self.runs[run_id] = ["retriever", parent_run_id, 0]

    def on_chat_model_start(self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        self.runs[run_id] = ["llm", parent_run_id, 0]

    def on_chain_start(self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        self.runs[run_id] = ["chain", parent_run_id, 0]

    def _end(self, *args: Any, run_id: UUID, **kwargs: Any) -> None:
        if run_id in self.runs:
            self.runs[run_id][2] += 1

    on_retriever_end = on_retriever_error = on_llm_end = on_llm_error = on_chain_end = on_chain_error = _end

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.custom.append((name, data, run_id))

    def above(self, run_id: UUID) -> list[str]:
        kinds = []
        parent = self.runs[run_id][1]
        while parent is not None:
            kinds.append(self.runs[parent][0])
            parent = self.runs[parent][1]
        return kinds


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
    retriever = drill(llm=AsyncReader(answer=answer))
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
    with pytest.warns(DrillrankWarning, match="what"):
        events = [event async for event in stream]
    [end] = [event["data"] for event in events if event["name"] == "d3_end"]
    assert len(end["problems"]) == 2
    assert all(problem.endswith("offered: chosen by likelihood") for problem in end["problems"])
    found = events[-1]["data"]["output"]
    assert TARGET in texts(found)
    assert all(document.metadata["drillrank_problems"] == "; ".join(end["problems"]) for document in found)
    with pytest.raises(LLMFailure, match="what"):
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


def test_a_template_without_its_places_is_an_error():
    for wrong in ("no places", "{question} only", "{outline}{question}{unknown}"):
        with pytest.raises(InvalidInput, match="prompt"):
            drill(section_prompt=wrong)
    with pytest.raises(InvalidInput):
        drill(section_prompt=5)


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
    with pytest.warns(DrillrankWarning, match="77"):
        found = retriever.invoke(ASKED) if how == "sync" else asyncio.run(retriever.ainvoke(ASKED))
    assert {document.metadata["drillrank_section_path"] for document in found} <= {"Part 1", "Part 1 > Chapter 1.1"}
    with pytest.warns(DrillrankWarning, match="no structured output"):
        assert TARGET in texts(drill(llm=Clerk(), sections_by="json").invoke(ASKED))


# Embeddings


class Colours(Embeddings):
    """Texts are near questions if they are of the same colour, which questions say in their own way."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float("red" in text), float("blue" in text)] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float("warm" in text), float("cold" in text)]


def test_the_hosts_embedding_model_takes_part():
    document = Document(page_content="# One\n\nIt is red here.\n\n# Two\n\nIt is blue here.")
    for question, colour in (("A warm one?", "red"), ("A cold one?", "blue")):
        [found] = drill(document, llm=None, embed=Colours(), top_n=1).invoke(question)
        assert colour in found.page_content
    by_function = drill(document, llm=None, embed=lambda texts: [[float("red" in text), 1.0] for text in texts])
    assert "red" in by_function.invoke("The red one?")[0].page_content


# Collections


def store_of(documents: list[Document], **fields: Any) -> InMemoryVectorStore:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(MultiViewTextSplitter(**fields).split_documents(documents))
    return store


SPLITTERS = [
    {},
    {"max_tokens": 12},
    {"chunking": "fixed", "max_tokens": 30},
    {"views": ["raw"]},
    {"context": ["headings"]},
]


@pytest.mark.parametrize("splitter", SPLITTERS, ids=str)
async def test_a_store_of_sections_leads_into_the_structure_of_the_document(splitter):
    crowd = Crowd()
    llm = finder(crowd)
    pieces = MultiViewTextSplitter(**splitter).split_documents([DOCUMENT])
    store = store_of([DOCUMENT], **splitter)
    source = store.as_retriever(search_kwargs={"k": 1})
    for retriever in (
        D3Retriever(source=store, llm=llm),
        D3Retriever(documents=pieces, llm=llm, source=source),
        D3Retriever(documents=[DOCUMENT], llm=llm, source=source),
        D3Retriever(documents=pieces, llm=llm),
    ):
        crowd.prompts.clear()
        [found] = retriever.invoke(ASKED)
        start = found.metadata["start_index"]
        assert found.page_content == TARGET == BOOK[start : start + len(TARGET)]
        assert found.metadata["drillrank_section_path"] == "Part 2 > Chapter 2.3"
        assert (found.metadata["source"], found.metadata["drillrank_source_id"]) == ("book.md", "book")
        assert not [
            key for key in found.metadata if key.removeprefix("drillrank_") in ("view", "section_text", "next_id")
        ]
        assert crowd.prompts[0].count("* Section: ") == 12
        assert outcome(await retriever.ainvoke(ASKED)) == outcome([found])


async def test_sections_alone_are_drilled_into_where_there_is_no_more_to_be_had():
    pieces = MultiViewTextSplitter().split_documents([DOCUMENT, *OTHERS])
    retriever = drill(documents=[], source=MultiViewRetriever(documents=pieces, top_n=2))
    found = retriever.invoke(ASKED)
    assert TARGET in texts(found)
    assert outcome(await retriever.ainvoke(ASKED)) == outcome(found)


class Given(BaseRetriever):
    """Hands out the documents that it was given."""

    given: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.given


class Locked(InMemoryVectorStore):
    """Knows nothing by id."""

    def get_by_ids(self, ids: Any) -> list[Document]:
        raise NotImplementedError

    async def aget_by_ids(self, ids: Any) -> list[Document]:
        raise NotImplementedError


async def test_a_store_that_knows_nothing_by_id_is_searched_by_metadata():
    store = Locked(DeterministicFakeEmbedding(size=8))
    store.add_documents(MultiViewTextSplitter(views=["raw"]).split_documents([DOCUMENT]))
    retriever = drill(documents=[], source=store)
    assert texts(retriever.invoke(ASKED)) == texts(await retriever.ainvoke(ASKED)) == [TARGET]


def test_whole_documents_and_chunks_lead_to_the_documents_at_hand():
    assert texts(drill(documents=[], source=Given(given=[*OTHERS, DOCUMENT])).invoke(ASKED)) == [TARGET]
    chunk = Document(page_content=BOOK[:200], metadata={"source": "book.md"})
    assert texts(drill(*OTHERS, DOCUMENT, source=Given(given=[chunk])).invoke(ASKED)) == [TARGET]


def test_the_best_few_documents_are_drilled_into():
    source = Given(given=[*OTHERS, OTHERS[0], DOCUMENT])
    assert texts(drill(documents=[], source=source, max_documents=4).invoke(ASKED)) == []
    assert texts(drill(documents=[], source=source, max_documents=5).invoke(ASKED)) == [TARGET]


def test_what_is_no_source_is_an_error():
    with pytest.raises(InvalidInput, match="source"):
        drill(source=5)


# Adversaries


@settings(max_examples=25, deadline=None)
@given(
    scripts,
    st.sampled_from(["base", "hierbase", "likelihood"]),
    st.sampled_from(["names", "ids", "json"]),
    st.sampled_from(["nothing", "likelihood"]),
    st.sampled_from([150, 4000]),
    st.sampled_from([0, 60]),
    st.sampled_from([Reader, AsyncReader]),
)
def test_whatever_the_llm_says(script, paragraphs, sections_by, on_empty, budget, guard, kind):
    fields: dict[str, Any] = {
        "paragraphs": paragraphs,
        "sections_by": sections_by,
        "on_empty": on_empty,
        "max_prompt_tokens": budget,
        "guard_tokens": guard,
    }
    retriever = drill(DOCUMENT, OTHERS[0], llm=kind(answer=adversary(script)), **fields)
    log = Log()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = retriever.invoke(ASKED, {"callbacks": [log]})
    assert {warning.category for warning in caught} <= {DrillrankWarning}
    problems = [problem for name, data, _ in log.custom if name == "d3_step" for problem in data["problems"]]
    assert bool(problems) == bool(caught)
    assert {ended for _, _, ended in log.runs.values()} == {1}
    places = [(document.metadata["drillrank_source_id"], document.metadata["start_index"]) for document in found]
    assert len({document.id for document in found}) == len(set(places)) == len(found)
    sources = {"book": BOOK, "town 0": OTHERS[0].page_content}
    for document, (name, start) in zip(found, places, strict=True):
        assert sources[name][start : start + len(document.page_content)] == document.page_content
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        assert outcome(asyncio.run(retriever.ainvoke(ASKED))) == outcome(found)


def test_failures_are_told_and_raised_if_asked_for():
    with pytest.warns(DrillrankWarning, match="no route"):
        assert TARGET in texts(drill(llm=Reader(answer=down)).invoke(ASKED))
    strict = drill(llm=Reader(answer=down), on_failure="raise")
    with pytest.raises(LLMFailure, match="no route"):
        strict.invoke(ASKED)
    with pytest.raises(LLMFailure, match="no route"):
        asyncio.run(strict.ainvoke(ASKED))
