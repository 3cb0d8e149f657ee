"""What an LLM did wrong is in the result; or, where that is asked for, an error with the LLM's own as its cause."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document

import langchain_ext
import llama_index_ext
from drillrank import SelfAsk
from drillrank.errors import DrillrankWarning, LLMFailure, UnusableAnswer
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.generation import generated_passages
from drillrank.llm import run
from drillrank.structure import parse_document
from drillrank.views import Chunker, ViewWriter
from tests.conformance import langchain_reader, llama_index_reader
from tests.drillrank.helpers import Says, both_ways, drive, paragraph_d3, refuses

LONG = " ".join(f"Sentence number {n} about stones." for n in range(60))
BOOK = f"# Rhine\n\nThe Rhine is 1,230 km long.\n\nIt rises in the Alps.\n\n# Stones\n\n{LONG}\n\nThey are hard."
QUESTION = "How long is the Rhine?"


class Down(Exception):
    pass


def down(prompt):
    raise Down("no route")


def summarising(prompt):
    return down(prompt) if "summarization" in prompt else "none"


@both_ways
@pytest.mark.parametrize("blank", ["", " \n\t ", "\u3000", "<think>Rhine?</think>\n"])
@pytest.mark.parametrize("sections_by", ["names", "json"])
def test_a_blank_answer_is_what_the_prompt_asks_for_and_is_told(blank, sections_by, how):
    options = {"sections_by": sections_by, "on_failure": "raise"}
    with pytest.warns(DrillrankWarning, match="answers of the LLM are blank"):
        found = drive(how, paragraph_d3(down, settings=options).drill_down(QUESTION, [BOOK]), lambda prompt: blank)
    assert list(found) == []
    assert found.problems == ("sections: the answer was blank, which means that nothing is relevant",)


def test_all_that_went_wrong_is_told_with_what_was_done():
    def llm(prompt):
        if "summarization" in prompt:
            raise Down("no route")
        return "Rhine, Danube" if "section names" in prompt else "what?"

    with pytest.warns(DrillrankWarning) as caught:
        found = paragraph_d3(llm, settings={"summarizer": "llm", "on_failure": "fallback"}).retrieve(QUESTION, [BOOK])
    warned = [str(warning.message) for warning in caught]  # constant texts, one for each kind
    assert [text.partition(". ")[0] for text in warned] == [
        "D3: calls of the LLM failed",
        "D3: answers of the LLM cannot be used, because they do not follow the prompt",
        "D3: answers of the LLM are blank or name what the prompt did not offer",
    ]
    assert not any(word in text for text in warned for word in ("no route", "Danube", "what?"))
    summary, unknown, unread = found.problems
    assert "no route" in summary
    assert summary.endswith("sentences of the text replace them")
    assert "'Danube'" in unknown
    assert unknown.endswith("left out")
    assert "'what?'" in unread
    assert unread.endswith("chosen by likelihood")


RAISE = {"on_failure": "raise"}
writer = ViewWriter(**RAISE)


@both_ways
@pytest.mark.parametrize(
    ("requests", "llm"),
    [
        (lambda: paragraph_d3(down, settings=RAISE).drill_down(QUESTION, [BOOK]), down),
        (lambda: paragraph_d3(down, settings={**RAISE, "summarizer": "llm"}).drill_down(QUESTION, [BOOK]), summarising),
        (lambda: writer.write([Chunker()(parse_document(BOOK))], views=["keywords"]), down),
        (lambda: writer.write([Chunker()(parse_document(f"# A\n\n{LONG * 2}"))], views=["summary"]), down),
        (lambda: generated_passages(QUESTION, **RAISE), down),
    ],
    ids=["choices", "summaries of the outline", "keywords", "summaries", "generation"],
)
def test_asked_to_raise_every_call_does_with_its_cause(requests, llm, how):
    with pytest.raises(LLMFailure, match="no route") as caught:
        drive(how, requests(), llm)
    assert isinstance(caught.value.__cause__, Down)


@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_self_ask_raises_at_each_of_its_calls(fails_at):
    says = ["Yes.\nFollow up: How long?", "1,230 km", "So the final answer is: 1,230 km"]
    says[fails_at] = down
    for ask in (lambda chain: chain.answer(QUESTION), lambda chain: asyncio.run(chain.aanswer(QUESTION))):
        with pytest.raises(LLMFailure) as caught:
            ask(SelfAsk(Says(*says), lambda question: [BOOK], **RAISE))
        assert isinstance(caught.value.__cause__, Down)


d3 = paragraph_d3(down, settings={**RAISE, "summarizer": "llm"})
keywords_alone = {"views": ["keywords"]}
test_blank_summaries_and_keywords_are_failures_too = refuses(
    (lambda: run(d3.drill_down(QUESTION, [BOOK]), lambda prompt: " "), "no word"),
    (lambda: run(writer.write([Chunker()(parse_document(BOOK))], **keywords_alone), lambda prompt: " "), "no keyword"),
    error=UnusableAnswer,
)
test_there_are_two_ways_with_failures = refuses(
    (lambda: ViewWriter(on_failure="stop"), "on_failure"),
    (lambda: run(generated_passages(QUESTION, on_failure="stop"), down), "on_failure"),
)


# Components that ask an LLM for views, passages and what paths lack, in both frameworks

TEXT = "# Foxes\n\nThey hunt.\n"


HOSTS = {
    langchain_ext: (lambda: [LangChainDocument(TEXT)], lambda: langchain_reader.Reader(answer=down)),
    llama_index_ext: (lambda: [Document(text=TEXT)], lambda: llama_index_reader.Reader(down)),
}
NAMES = {
    "MultiViewTextSplitter": ("split_documents", "atransform_documents"),
    "MultiViewNodeParser": ("get_nodes_from_documents", "aget_nodes_from_documents"),
    "BRMGRRetriever": None,
    "PromptRankRetriever": None,
}


@pytest.mark.parametrize(("host", "name"), [(host, name) for host in HOSTS for name in NAMES if hasattr(host, name)])
def test_a_failed_call_raises_or_is_done_without(host, name):
    documents, llm = HOSTS[host]
    of_retrievers = ("invoke", "ainvoke") if host is langchain_ext else ("retrieve", "aretrieve")

    def made(**fields):
        component = getattr(host, name)
        source = {} if NAMES[name] else {"source": host.D3Retriever(documents=documents())}
        built = component(llm=llm(), **source, **keyword_arguments(component, fields))
        asked = documents() if NAMES[name] else "Who hunts?"
        return [getattr(built, method) for method in NAMES[name] or of_retrievers], asked

    (sync, _), asked = made(on_failure="fallback")
    with pytest.warns(DrillrankWarning) as warned:
        assert sync(asked)
    assert not any("no route" in str(warning.message) for warning in warned)
    for on_failure in (None, "raise"):
        (sync, later), asked = made(on_failure=on_failure)

        async def awaited(later=later, asked=asked):
            return await later(asked)

        for call in (lambda sync=sync, asked=asked: sync(asked), lambda awaited=awaited: asyncio.run(awaited())):
            with pytest.raises(LLMFailure, match="no route") as caught:
                call()
            assert isinstance(caught.value.__cause__, Down)
