"""What LangChain components ask of a model: named, in the surrounding run, held to JSON, remembered by its identity."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler
from langchain_core.documents import Document
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel, BaseLLM, FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult, Generation, LLMResult
from langchain_core.runnables import Runnable, RunnableLambda

from drillrank.errors import DrillrankWarning, LLMFailure, UnusableAnswer
from langchain_ext import BRMGRRetriever, D3Retriever, MultiViewTextSplitter, SelfAskChain
from langchain_ext._llm import FrameworkLLM
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.langchain_reader import Reader

DOCUMENT = Document(page_content="# Foxes\n\nThey hunt mice.\n\n# Owls\n\nThey hoot at night.")
WRAPPED = {
    "itself": lambda llm: llm,
    "with_retry": lambda llm: llm.with_retry(),
    "bind": lambda llm: llm.bind(stop=["x"]),
    "with_config": lambda llm: llm.with_config(tags=["mine"]),
    "with_fallbacks": lambda llm: llm.with_fallbacks([llm]),
    "all of them": lambda llm: llm.bind(stop=["x"]).with_retry().with_fallbacks([llm.with_config(tags=["mine"])]),
}
each_wrapping = pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)


# The cache of views


def keywords(llm: Runnable[Any, Any], cache: dict[str, str]) -> set[str]:
    splitter = MultiViewTextSplitter(["raw", "keywords"], llm=llm, cache=cache)
    return {
        piece.page_content.split("\n")[-1]
        for piece in splitter.split_documents([DOCUMENT])
        if piece.metadata["drillrank_view"] == "keywords"
    }


@each_wrapping
@pytest.mark.parametrize(
    "model", [lambda said: FakeListChatModel(responses=[said]), lambda said: Reader(answer=lambda _: said)]
)
def test_one_model_never_gets_what_another_has_written(wrap, model):
    cache: dict[str, str] = {}
    for said in ("first", "second"):
        assert keywords(wrap(model(f"[{said}]")), cache) == {said}


@each_wrapping
def test_equal_models_share_what_they_have_written(wrap):
    cache: dict[str, str] = {}
    for _ in range(2):
        keywords(wrap(FakeListChatModel(responses=["[mice]"])), cache)
    assert len(cache) == 2  # one answer for each section


# Structured output


class Clerk(Reader):
    """Can be held to JSON."""

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[Any, Any]:
        return RunnableLambda(lambda given, **more: {"ids": [1]})


@each_wrapping
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_wrapped_model_is_held_to_json(wrap, how):
    def prose(prompt: str) -> str:
        raise AssertionError("asked in words")

    retriever = D3Retriever(
        documents=[DOCUMENT],
        llm=wrap(Clerk(answer=prose)),
        settings={"sections_by": "json", "on_failure": "raise", "unit": "paragraph"},
    )
    found = retriever.invoke(QUESTION) if how == "invoke" else asyncio.run(retriever.ainvoke(QUESTION))
    assert [document.page_content for document in found] == ["They hunt mice."]


def test_what_cannot_be_held_to_json_says_so():
    llm = RunnableLambda(lambda prompt: "[1]")
    with pytest.warns(DrillrankWarning, match="RunnableLambda has no structured output"):
        D3Retriever(documents=[DOCUMENT], llm=llm, settings={"sections_by": "json", "unit": "paragraph"}).invoke(
            QUESTION
        )


class Parsed(FakeListChatModel):
    """Answers with structured output that a parser reads."""

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[Any, Any]:
        return self | JsonOutputParser()


class Down(Parsed):
    def _call(self, *args: Any, **kwargs: Any) -> str:
        raise ConnectionError("no route")


def by_ids(llm: Any, on_failure: str | None) -> D3Retriever:
    settings = {"sections_by": "json", "unit": "paragraph", "on_failure": on_failure}
    return D3Retriever(documents=[DOCUMENT], llm=llm, settings=settings)


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_an_answer_that_does_not_follow_the_schema_is_no_outage(how):
    def ask(llm: Any, on_failure: str | None) -> list[Document]:
        retriever = by_ids(llm, on_failure)
        return retriever.invoke(QUESTION) if how == "invoke" else asyncio.run(retriever.ainvoke(QUESTION))

    with pytest.warns(DrillrankWarning):
        assert (
            "does not follow the schema" in ask(Parsed(responses=["no JSON"]), None)[0].metadata["drillrank_problems"]
        )
    with pytest.raises(UnusableAnswer, match="does not follow the schema") as caught:
        ask(Parsed(responses=["no JSON"]), "raise")
    assert isinstance(caught.value.__cause__, OutputParserException)
    with pytest.raises(LLMFailure, match="ConnectionError: no route"):
        ask(Down(responses=["no JSON"]), None)


# Runs


class Named(BaseCallbackHandler):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def on_chain_start(self, serialized, inputs, *, name=None, **kwargs):
        self.names.add(name)


def test_each_step_has_a_name_in_traces():
    def says(prompt: str) -> str:
        return "So the final answer is: x" if "mediate" in prompt.rpartition(QUESTION)[2] else "Follow up: What flows?"

    book = [Document(page_content=BOOK)]
    inner = D3Retriever(documents=book)
    named = Named()
    config = {"callbacks": [named]}
    D3Retriever(documents=book, llm=Reader(), settings={"unit": "paragraph"}).invoke(QUESTION, config)
    BRMGRRetriever(source=inner, llm=FakeListChatModel(responses=["A river."])).invoke(QUESTION, config)
    SelfAskChain(source=inner, llm=Reader(answer=says)).invoke(QUESTION, config)
    splitter = MultiViewTextSplitter(llm=FakeListChatModel(responses=["[river]"]))
    RunnableLambda(splitter.split_documents).invoke([DOCUMENT], config)
    steps = {"choose sections", "choose paragraphs", "write a passage", "write a view"}
    steps |= {"ask a follow-up question", "answer from documents"}
    assert {f"drillrank: {step}" for step in steps} <= named.names


class Metered(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "metered"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        message = AIMessage("[mice]", usage_metadata=usage, response_metadata={"model_name": "metered"})
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_what_a_splitter_asks_is_counted_in_the_surrounding_run(how):
    counted = UsageMetadataCallbackHandler()
    splitter = MultiViewTextSplitter(["raw", "keywords"], llm=Metered())
    step = RunnableLambda(splitter.split_documents, afunc=splitter.atransform_documents)
    if how == "invoke":
        step.invoke([DOCUMENT], {"callbacks": [counted]})
    else:
        asyncio.run(step.ainvoke([DOCUMENT], {"callbacks": [counted]}))
    assert counted.usage_metadata["metered"]["total_tokens"] == 20


# What the models report


def metered(answer: str, **told: Any) -> Any:
    """A chat model that reports."""

    class Model(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "metered"

        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            return ChatResult(generations=[ChatGeneration(message=AIMessage(answer, **told))])

        def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[Any, Any]:
            return self | RunnableLambda(lambda message: json.loads(message.content))

    return Model()


class MeteredText(BaseLLM):
    @property
    def _llm_type(self) -> str:
        return "metered text"

    def _generate(self, prompts, stop=None, run_manager=None, **kwargs):
        usage = {"prompt_tokens": 700, "completion_tokens": 30}
        return LLMResult(generations=[[Generation(text='{"ids": [1]}')]], llm_output={"token_usage": usage})


METERED = {
    "usage_metadata": lambda: metered(
        '{"ids": [1]}', usage_metadata={"input_tokens": 700, "output_tokens": 30, "total_tokens": 730}
    ),
    "token_usage": lambda: metered(
        '{"ids": [1]}', response_metadata={"token_usage": {"prompt_tokens": 700, "completion_tokens": 30}}
    ),
    "a text model": MeteredText,
}


@each_wrapping
@pytest.mark.parametrize("model", METERED.values(), ids=METERED)
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_what_a_model_reports_is_what_a_retrieval_has_cost(wrap, model, how):
    log = Customs()
    retriever = D3Retriever(
        documents=[DOCUMENT], llm=wrap(model()), settings={"sections_by": "json", "unit": "paragraph"}
    )
    config = {"callbacks": [log]}
    found = retriever.invoke(QUESTION, config) if how == "invoke" else asyncio.run(retriever.ainvoke(QUESTION, config))
    cost = {"prompt_tokens": 700, "completion_tokens": 30, "llm_calls": 1}
    assert [document.page_content for document in found] == ["They hunt mice."]
    assert {key: value for key, value in found[0].metadata.items() if "token" in key or "calls" in key} == {
        f"drillrank_{key}": value for key, value in cost.items()
    }
    assert log.told == [cost | {"problems": [], "found": True}]
    assert log.models == 1  # the surrounding run's handlers are told of the calls as before


class Customs(BaseCallbackHandler):
    def __init__(self) -> None:
        self.told: list[Any] = []
        self.models = 0

    def on_custom_event(self, name, data, **kwargs):
        if name == "d3_end":
            self.told.append(data)

    def on_llm_end(self, response, **kwargs):
        self.models += 1


@pytest.mark.parametrize("usage", [None, {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}])
def test_what_is_not_reported_is_counted_and_said_to_be_estimated(usage):
    llm = metered('{"ids": [1]}', usage_metadata=usage)
    [found] = D3Retriever(documents=[DOCUMENT], llm=llm, settings={"sections_by": "json", "unit": "paragraph"}).invoke(
        QUESTION
    )
    assert found.metadata["drillrank_prompt_tokens"] > 20
    assert found.metadata["drillrank_tokens_estimated"] is True


def test_several_models_behind_one_answer_add_up():
    def model(said: str) -> Any:
        return metered(said, usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7})

    second, silent = (model("x") | StrOutputParser() | llm for llm in (model("y"), metered("y")))
    for chain, expected in [(second, (10, 4)), (silent, (None, None))]:
        answer = FrameworkLLM(chain, "ask").complete("Well?")
        assert (answer.prompt_tokens, answer.completion_tokens) == expected
