"""Drilling down through LlamaIndex: its LLMs, embeddings, prompts, events and indexes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest
from llama_index.core import (
    ChatPromptTemplate,
    Document,
    PromptTemplate,
)
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import ChatMessage, LLMMetadata
from llama_index.core.schema import MetadataMode, NodeWithScore
from pydantic import Field

from drillrank.errors import DrillrankWarning, InvalidInput, LLMFailure
from llama_index_ext import D3Retriever, MultiViewNodeParser
from tests.conformance.llama_index_reader import ChatReader, Reader
from tests.conformance.readers import ASKED, BOOK, TARGET, Crowd, about

DOCUMENT = Document(text=BOOK, id_="book", metadata={"source": "book.md"})


def texts(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node.get_content() for node in nodes]


def finder(crowd: Crowd | None = None, kind: type[Reader] = Reader) -> Reader:
    return kind(about("2.3"), crowd)


def drill(*arguments: Any, settings: Mapping[str, Any] = {}, **fields: Any) -> D3Retriever:
    """A retriever of paragraphs."""
    return D3Retriever(*arguments, settings={"unit": "paragraph", **settings}, **fields)


# Events


class Recorder(BaseEventHandler):
    events: list[Any] = Field(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        return "Recorder"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.events.append(event)


class Spans(SimpleSpanHandler):
    """Keeps what a span handler is told."""


@pytest.fixture
def recorded():
    dispatcher, recorder, spans = get_dispatcher(), Recorder(), Spans()
    handlers = dispatcher.event_handlers, dispatcher.span_handlers
    dispatcher.event_handlers = [*handlers[0], recorder]
    dispatcher.span_handlers = [*handlers[1], spans]
    recorder.events.clear()
    yield recorder.events, spans
    dispatcher.event_handlers, dispatcher.span_handlers = handlers


def down(prompt: str) -> str:
    raise ConnectionError("no route")


@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
@pytest.mark.parametrize("answer", [about("2.3"), down])
@pytest.mark.parametrize("how", ["sync", "async"])
def test_llm_calls_are_children_of_the_retrieval_and_every_event_ends(recorded, answer, how):
    events, spans = recorded
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    settings = {"on_failure": "fallback"}
    llm = ChatReader(answer, callback_manager=manager)
    retriever = drill([DOCUMENT], llm, callback_manager=manager, settings=settings)
    if how == "sync":
        retriever.retrieve(ASKED)
    else:
        asyncio.run(retriever.aretrieve(ASKED))
    [retrieval] = debug.get_event_pairs(CBEventType.RETRIEVE)
    calls = debug.get_event_pairs(CBEventType.LLM)
    assert len(calls) == 2
    for kind in (CBEventType.RETRIEVE, CBEventType.LLM, CBEventType.TEMPLATING):
        assert {len(pair) for pair in debug.get_event_pairs(kind)} == {2}
    parents = {child: parent for parent, children in manager.trace_map.items() for child in children}
    assert all(parents[start.id_] == retrieval[0].id_ for start, _ in calls)

    assert not spans.open_spans
    ended = {span.id_: span for span in (*spans.completed_spans, *spans.dropped_spans)}
    asked = [span for span in ended.values() if "predict-" in span.id_]
    assert len(asked) == 2
    assert all(re.match(r"D3Retriever\._?a?retrieve", ended[span.parent_id].id_) for span in asked)
    names = [event.class_name() for event in events]
    assert names[0] == "RetrievalStartEvent"
    assert names[-2:] == ["D3EndEvent", "RetrievalEndEvent"]


def test_steps_and_cost_are_events_even_where_nothing_is_found(recorded, capsys):
    events, _ = recorded
    llm = Reader(lambda prompt: "none")
    assert drill([DOCUMENT], llm, verbose=True).retrieve(ASKED) == []
    [step] = [event for event in events if event.class_name() == "D3StepEvent"]
    assert (step.kind, step.n_candidates, step.chosen, step.problems) == ("sections", 12, [], [])
    [end] = [event for event in events if event.class_name() == "D3EndEvent"]
    assert end.usage["llm_calls"] == 1
    assert end.usage["prompt_tokens"] > 100
    assert "sections: 0 of 12" in capsys.readouterr().out


def test_what_went_wrong_is_in_nodes_and_events(recorded):
    events, _ = recorded
    with pytest.warns(DrillrankWarning, match="problems"):
        found = drill([DOCUMENT], Reader(lambda prompt: "what?")).retrieve(ASKED)
    assert TARGET in texts(found)
    [end] = [event for event in events if event.class_name() == "D3EndEvent"]
    assert len(end.problems) == 2
    assert all(problem.endswith("offered: chosen by likelihood") for problem in end.problems)
    for hit in found:
        assert hit.node.metadata["drillrank_problems"] == "; ".join(end.problems)
        for excluded in (hit.node.excluded_llm_metadata_keys, hit.node.excluded_embed_metadata_keys):
            assert "drillrank_problems" in excluded
    with pytest.raises(LLMFailure, match="nothing that was offered"):
        drill([DOCUMENT], Reader(lambda prompt: "what?"), settings={"on_failure": "raise"}).retrieve(ASKED)


# Prompts


def test_prompts_are_edited_as_everywhere_in_the_host():
    crowd = Crowd()
    retriever = drill([DOCUMENT], finder(crowd))
    assert set(retriever.get_prompts()) == {"section_prompt", "paragraph_prompt"}
    mine = PromptTemplate("Mine: {question}\n{outline}")
    retriever.update_prompts({"section_prompt": mine, "of_another": mine})
    assert texts(retriever.retrieve(ASKED)) == [TARGET]
    assert crowd.prompts[0].startswith(f"Mine: {ASKED}\n* Section: Part 1\n")
    assert "Find paragraph ids" in crowd.prompts[1]


def test_roles_of_a_chat_template_arrive():
    template = ChatPromptTemplate(
        message_templates=[
            ChatMessage(role="system", content="You are a librarian."),
            ChatMessage(role="user", content="{outline}\n{question}"),
        ]
    )
    llm = finder(kind=ChatReader)
    assert texts(drill([DOCUMENT], llm, settings={"section_prompt": template}).retrieve(ASKED)) == [TARGET]
    assert [str(message.role.value) for message in llm._messages[0]] == ["system", "user"]
    assert llm._messages[0][0].content == "You are a librarian."


def test_a_refused_template_leaves_the_old_one():
    retriever = drill([DOCUMENT], finder())
    with pytest.raises(InvalidInput, match="template"):
        retriever.update_prompts({"section_prompt": PromptTemplate("no places")})
    assert texts(retriever.retrieve(ASKED)) == [TARGET]


class Clerk(Reader):
    """Calls functions, as far as the adapter can see."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="clerk", is_function_calling_model=True)

    def structured_predict(self, output_cls: Any, prompt: Any, **values: Any) -> Any:
        assert "question" in values
        return output_cls(ids=[1, 2, 77])

    async def astructured_predict(self, output_cls: Any, prompt: Any, **values: Any) -> Any:
        return self.structured_predict(output_cls, prompt, **values)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_an_llm_that_calls_functions_is_held_to_the_schema(how):
    retriever = drill([DOCUMENT], Clerk(down), settings={"sections_by": "json"})
    with pytest.warns(DrillrankWarning):
        found = retriever.retrieve(ASKED) if how == "sync" else asyncio.run(retriever.aretrieve(ASKED))
    assert "'77'" in found[0].node.metadata["drillrank_problems"]
    assert {node.node.metadata["drillrank_section_path"] for node in found} <= {"Part 1", "Part 1 > Chapter 1.1"}


# Collections


def test_no_document_is_lost_where_ids_are_the_same_and_none_is_doubled():
    pages = [Document(text=f"Page {n} is about foxes.", id_="scan") for n in (1, 2, 2)]
    found = drill(pages, top_n=9).retrieve("Which page is about foxes?")
    assert sorted(texts(found)) == [pages[0].text, pages[1].text]
    assert len({node.node.node_id for node in found}) == 2
    assert {node.node.ref_doc_id for node in found} == {"scan"}


@pytest.mark.parametrize("parsed", [False, True])
def test_paragraphs_are_read_as_their_document(parsed):
    document = Document(text=BOOK, metadata={"a": 1, "b": 2}, text_template="{metadata_str}: {content}")
    document.metadata_template, document.metadata_separator = "{key}={value}", "; "
    nodes = MultiViewNodeParser()([document]) if parsed else [document]
    for hit in drill(nodes).retrieve(ASKED):
        assert hit.node.get_content(MetadataMode.LLM) == f"a=1; b=2: {hit.text}"
