"""What LlamaIndex components ask of an LLM: tagged with its step, at the cost reported, remembered by identity."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata, MockLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from pydantic import Field, PrivateAttr

from drillrank.errors import DrillrankWarning, LLMFailure, UnusableAnswer
from llama_index_ext import BRMGRRetriever, D3Retriever, MultiViewNodeParser, SelfAskQueryEngine
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.llama_index_reader import Reader

DOCUMENT = Document(text="# Foxes\n\nThey hunt mice.\n\n# Owls\n\nThey hoot at night.", id_="animals")
RAW = {"usage": {"prompt_tokens": 700, "completion_tokens": 30}}
both_ways = pytest.mark.parametrize("how", ["sync", "async"])


class Recorder(BaseEventHandler):
    events: list[Any] = Field(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        return "Recorder"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.events.append(event)


@pytest.fixture
def events():
    dispatcher, recorder = get_dispatcher(), Recorder()
    handlers = dispatcher.event_handlers
    dispatcher.event_handlers = [*handlers, recorder]
    yield recorder.events
    dispatcher.event_handlers = handlers


# What it reports


class Metered(CustomLLM):
    """A text model that reports."""

    chat_model: bool = False
    told: dict[str, Any] = Field(default_factory=dict)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="metered", is_chat_model=self.chat_model)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text='{"ids": [1]}', **self.told)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class Caller(FunctionCallingLLM):
    """Calls the function that it is given, and reports."""

    told: dict[str, Any] = Field(default_factory=dict)
    _tool: str = PrivateAttr()

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="caller", is_chat_model=True, is_function_calling_model=True)

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **kwargs: Any
    ) -> Any:
        self._tool = tools[0].metadata.name
        return {"messages": chat_history or []}

    def get_tool_calls_from_response(self, response: Any, **kwargs: Any) -> list[ToolSelection]:
        return [ToolSelection(tool_id="1", tool_name=self._tool, tool_kwargs={"ids": [1]})]

    @llm_chat_callback()
    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=ChatMessage(role="assistant", content=""), **self.told)

    @llm_chat_callback()
    async def achat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        await asyncio.sleep(0)
        return ChatResponse(message=ChatMessage(role="assistant", content=""), **self.told)

    def _unused(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    complete = acomplete = stream_chat = astream_chat = stream_complete = astream_complete = _unused


class Torn(Caller):
    """Calls the function with arguments that it does not take, or no function."""

    calls: list[dict[str, Any]] = Field(default_factory=list)

    def get_tool_calls_from_response(self, response: Any, **kwargs: Any) -> list[ToolSelection]:
        return [ToolSelection(tool_id="1", tool_name=self._tool, tool_kwargs=call) for call in self.calls]


class Down(Torn):
    @llm_chat_callback()
    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        raise ValueError("no route")

    @llm_chat_callback()
    async def achat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        raise ValueError("no route")


@both_ways
@pytest.mark.parametrize("calls", [[], [{"ids": "torn"}]], ids=["no call", "wrong arguments"])
def test_an_answer_that_does_not_follow_the_schema_is_no_outage(how, calls):
    def ask(llm: Any, on_failure: str | None) -> Any:
        settings = {"sections_by": "json", "unit": "paragraph", "on_failure": on_failure}
        retriever = D3Retriever([DOCUMENT], llm, settings=settings)
        return retriever.retrieve(QUESTION) if how == "sync" else asyncio.run(retriever.aretrieve(QUESTION))

    with pytest.warns(DrillrankWarning):
        [hit, *_] = ask(Torn(calls=calls), None)
    assert "does not follow the schema" in hit.node.metadata["drillrank_problems"]
    with pytest.raises(UnusableAnswer, match="does not follow the schema"):
        ask(Torn(calls=calls), "raise")
    with pytest.raises(LLMFailure, match="ValueError: no route"):
        ask(Down(calls=calls), None)


METERED = {
    "a text model": lambda **told: Metered(told=told),
    "a chat model": lambda **told: Metered(told=told, chat_model=True),
    "a function call": lambda **told: Caller(told=told),
}
each_model = pytest.mark.parametrize("model", METERED.values(), ids=METERED)


def retrieved(llm: Any, how: str) -> dict[str, Any]:
    retriever = D3Retriever([DOCUMENT], llm, settings={"sections_by": "json", "unit": "paragraph"})
    [found] = retriever.retrieve(QUESTION) if how == "sync" else asyncio.run(retriever.aretrieve(QUESTION))
    assert found.node.get_content() == "They hunt mice."
    metadata = found.node.metadata.items()
    return {key.removeprefix("drillrank_"): value for key, value in metadata if key.startswith("drillrank_")}


@both_ways
@each_model
@pytest.mark.parametrize("told", [{"raw": RAW}, {"raw": {"id": 1}, "additional_kwargs": RAW["usage"]}])
def test_what_an_llm_reports_is_what_a_retrieval_has_cost(events, model, how, told):
    cost = {"prompt_tokens": 700, "completion_tokens": 30, "llm_calls": 1}
    found = retrieved(model(**told), how)
    assert {key: value for key, value in found.items() if "token" in key or "calls" in key} == cost
    [end] = [event for event in events if event.class_name() == "D3EndEvent"]
    assert end.usage == cost


@both_ways
@each_model
@pytest.mark.parametrize("raw", [None, "raw", {"usage": None}, {"usage": {"prompt_tokens": 0}}])
def test_what_is_not_reported_is_counted_and_said_to_be_estimated(events, model, how, raw):
    cost = retrieved(model(raw=raw), how)
    assert 20 < cost["prompt_tokens"] < 700
    assert cost["tokens_estimated"] is True
    [end] = [event for event in events if event.class_name() == "D3EndEvent"]
    assert end.usage["tokens_estimated"] is True


def test_concurrent_calls_count_their_tokens_and_leave_the_handlers_of_the_user():
    handlers = list(get_dispatcher("llama_index.core.llms.callbacks").event_handlers)

    def cost(number):
        llm = Metered(told={"raw": {"usage": {"prompt_tokens": number, "completion_tokens": 1}}})
        return retrieved(llm, "sync")["prompt_tokens"]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(cost, range(1, 33))) == list(range(1, 33))
    left = get_dispatcher("llama_index.core.llms.callbacks").event_handlers
    assert list(map(id, left)) == list(map(id, handlers))


def test_a_handler_that_is_added_during_a_call_stays():
    dispatcher, recorder = get_dispatcher("llama_index.core.llms.callbacks"), Recorder()

    class Adding(Metered):
        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
            dispatcher.add_event_handler(recorder)
            return CompletionResponse(text='{"ids": [1]}')

    before = list(dispatcher.event_handlers)
    retrieved(Adding(), "sync")
    try:
        assert list(map(id, dispatcher.event_handlers)) == [*map(id, before), id(recorder)]
    finally:
        dispatcher.event_handlers = before


# Steps


def follow_ups(prompt: str) -> str:
    return "So the final answer is: x" if "mediate" in prompt.rpartition(QUESTION)[2] else "Follow up: What flows?"


@both_ways
def test_events_of_a_call_are_tagged_with_its_step(events, how):
    book = [Document(text=BOOK)]
    inner = D3Retriever(book)
    retrievers = [
        D3Retriever(book, Reader(), settings={"unit": "paragraph"}),
        BRMGRRetriever(inner, Reader(lambda prompt: "A river.")),
    ]
    engine = SelfAskQueryEngine(inner, Reader(follow_ups))
    parser = MultiViewNodeParser(llm=Reader(lambda prompt: "[river]"))

    async def later() -> None:
        for retriever in retrievers:
            await retriever.aretrieve(QUESTION)
        await engine.aquery(QUESTION)
        await parser.aget_nodes_from_documents([DOCUMENT])

    with instrument_tags({"mine": 1}):
        if how == "sync":
            for retriever in retrievers:
                retriever.retrieve(QUESTION)
            engine.query(QUESTION)
            parser.get_nodes_from_documents([DOCUMENT])
        else:
            asyncio.run(later())
    asked = [event.tags for event in events if event.class_name().startswith(("LLM", "Completion", "Predict"))]
    assert {tags["drillrank.step"] for tags in asked} == {
        "choose sections",
        "choose paragraphs",
        "write a passage",
        "ask a follow-up question",
        "answer from documents",
        "write a view",
    }
    assert all(tags["mine"] == 1 for tags in asked)
    others = [event.tags for event in events if not event.class_name().startswith("LLM")]
    assert others
    assert all("drillrank.step" not in tags for tags in others)


@both_ways
def test_what_a_parser_asks_reaches_the_host_s_handlers(events, how):
    counter = TokenCountingHandler(tokenizer=str.split)
    llm = Metered(told={"raw": RAW}, callback_manager=CallbackManager([counter]))
    parser = MultiViewNodeParser(views=["raw", "keywords"], llm=llm)
    if how == "sync":
        parser.get_nodes_from_documents([DOCUMENT])
    else:
        asyncio.run(parser.aget_nodes_from_documents([DOCUMENT]))
    assert (counter.prompt_llm_token_count, counter.completion_llm_token_count) == (1400, 60)
    assert sum(event.class_name() == "LLMCompletionEndEvent" for event in events) == 2


# The cache of views


class Named(Reader):
    """Says who it is."""

    name: str = "unknown"
    style: str = ""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.name)


class Other(Named):
    """The same name and fields, another class."""


class Secretive(Named):
    """Nothing that it says tells it from another."""

    tool: Any = Field(default_factory=object)


class Private(MockLLM):
    _said: str = PrivateAttr()

    def __init__(self, said: str) -> None:
        super().__init__()
        self._said = said

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self._said)


def keywords(parser: MultiViewNodeParser) -> set[str]:
    nodes = parser.get_nodes_from_documents([DOCUMENT])
    return {node.text.split("\n")[-1] for node in nodes if node.metadata["drillrank_view"] == "keywords"}


def says(word: str) -> Any:
    return lambda prompt: f"[{word}]"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Named(says("first")), Named(says("second"))),
        (Named(says("first"), name="a"), Named(says("second"), name="b")),
        (Named(says("first"), name="a"), Named(says("second"), name="a", style="terse")),
        (Named(says("first"), name="a"), Other(says("second"), name="a")),
        (Secretive(says("first"), name="a"), Secretive(says("second"), name="a")),
        (Private("[first]"), Private("[second]")),
    ],
)
def test_one_llm_never_gets_what_another_has_written(one, other):
    cache: dict[str, str] = {}
    parser = MultiViewNodeParser(views=["raw", "keywords"], llm=one, cache=cache)
    assert keywords(parser) == {"first"}
    assert keywords(parser.model_copy(update={"llm": other})) == {"second"}
    assert keywords(MultiViewNodeParser(views=["raw", "keywords"], llm=other, cache=cache)) == {"second"}
    parser.llm = other
    assert keywords(parser) == {"second"}


@pytest.mark.parametrize("name", ["a", "unknown"])
def test_a_parser_remembers_what_its_llm_has_written(name):
    llm = Named(says("mice"), name=name)
    parser = MultiViewNodeParser(views=["raw", "keywords"], llm=llm)
    assert keywords(parser) == keywords(parser) == {"mice"}
    assert len(llm._crowd.prompts) == 2  # one for each section


def test_equal_llms_share_what_they_have_written():
    cache: dict[str, str] = {}
    for _ in range(2):
        parser = MultiViewNodeParser(views=["raw", "keywords"], llm=Named(says("mice"), name="a"), cache=cache)
        assert keywords(parser) == {"mice"}
    assert len(cache) == 2
