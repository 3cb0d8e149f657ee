"""Each warning points to the line of the user's file that led to it, whatever lies between."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from llama_index.core import Document as LlamaDocument
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank import (
    BRMGR,
    D3,
    UPR,
    Passage,
    PathSearch,
    PromptRank,
    SelfAsk,
    load_settings,
    parse_document,
    read_document,
)
from drillrank.errors import DrillrankWarning
from drillrank.evaluation import compare
from drillrank.generation import generated_passages
from drillrank.likelihood import EmbeddingModel
from drillrank.llm import run
from drillrank.views import MultiViewChunker

TEXT = "# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a dry cloth."
QUESTION = "How long does the battery last?"
ON_FAILURE = {"on_failure": "fallback"}
FALLBACK = {"unit": "paragraph", **ON_FAILURE}  # a passage is a single candidate, which needs no LLM
LONG = "Who? " * 20_000


def fails(prompt):
    raise ConnectionError("no LLM today")


def written(folder, name, content):
    (folder / name).write_bytes(content)
    return folder / name


class FailingLlamaLLM(MockLLM):
    def complete(self, *args, **kwargs):
        raise ConnectionError("no LLM today")

    chat = complete


class FailingChatModel(FakeListChatModel):
    def _call(self, *args, **kwargs):
        raise ConnectionError("no LLM today")


lc, li = [Document(TEXT, id="a")], [LlamaDocument(text=TEXT, id_="a")]
lc_llm, li_llm = FailingChatModel(responses=[""]), FailingLlamaLLM()
nodes = [NodeWithScore(node=TextNode(text=TEXT), score=0.5)]
CALLS = {
    "a question that is cut": lambda folder: UPR().rank(LONG, [TEXT]),
    "many of them": lambda folder: UPR().rank_many([LONG], [[TEXT]]),
    "words that no model reads": lambda folder: UPR(template="{title} {text} Ask:"),
    "instructions that no model reads": lambda folder: PromptRank(instructions=["Read: {path}"]),
    "BRMGR": lambda folder: BRMGR().rank(LONG, [TEXT], [TEXT]),
    "D3": lambda folder: D3(fails, settings=FALLBACK).retrieve(QUESTION, [TEXT]),
    "self-ask": lambda folder: SelfAsk(fails, lambda question: [TEXT], on_failure="fallback").answer(QUESTION),
    "self-ask, step by step": lambda folder: list(
        SelfAsk(fails, lambda question: [TEXT], on_failure="fallback").stream(QUESTION)
    ),
    "passages to write": lambda folder: run(generated_passages(QUESTION, n=2, on_failure="fallback"), fails),
    "views to write": lambda folder: MultiViewChunker(llm=fails, settings=ON_FAILURE).chunks(
        [("a", parse_document(TEXT))]
    ),
    "calls beyond the limit": lambda folder: MultiViewChunker(
        llm=lambda prompt: "Words.", settings={"max_calls": 1}
    ).chunks([("a", parse_document(TEXT))]),
    "paths": lambda folder: PathSearch(
        PromptRank(), [Passage(TEXT), Passage("Hours.")], llm=fails, settings=ON_FAILURE
    ).search(QUESTION),
    "bytes that are no text": lambda folder: read_document(
        written(folder, "torn.txt", "Grün und ".encode() + b"\xff.")
    ),
    "too little to fit": lambda folder: EmbeddingModel(lambda texts: [[1.0]] * len(texts), kappa="fit").fit([TEXT]),
    "a system that fails": lambda folder: compare(
        [{"question": QUESTION, "gold": ["a"]}], {"bad": lambda query, passages: 1 / 0}, [{"id": "a", "text": TEXT}]
    ),
    "settings of another model": lambda folder: load_settings(
        written(folder, "s.json", b'{"format": "drillrank-settings-1", "settings": {"UPR": {"model": "st:a"}}}'),
        "UPR",
        model="m2v:b",
        trust=True,
    ),
    "LangChain, a threshold": lambda folder: langchain_ext.UPRRerank(
        settings={"score_threshold": 0.5}
    ).compress_documents(lc, QUESTION),
    "LangChain, a chain": lambda folder: langchain_ext.UPRRerank().as_runnable(lambda question: lc).invoke(LONG),
    "LangChain, D3": lambda folder: langchain_ext.D3Retriever(lc, llm=lc_llm, settings=FALLBACK).invoke(QUESTION),
    "LangChain, passages to write": lambda folder: langchain_ext.BRMGRRetriever(
        langchain_ext.D3Retriever(lc), lc_llm, settings=ON_FAILURE
    ).invoke(QUESTION),
    "LangChain, self-ask": lambda folder: langchain_ext.SelfAskChain(
        llm=lc_llm, source=langchain_ext.D3Retriever(lc), on_failure="fallback"
    ).invoke(QUESTION),
    "LangChain, views to write": lambda folder: langchain_ext.MultiViewTextSplitter(
        llm=lc_llm, settings=ON_FAILURE
    ).split_documents(lc),
    "LangChain, chunks of another splitter": lambda folder: langchain_ext.MultiViewRetriever(lc),
    "LangChain, nothing is shown": lambda folder: langchain_ext.D3Retriever(lc, filters={"tenant": "b"}).invoke(
        QUESTION
    ),
    "LlamaIndex, a threshold": lambda folder: llama_index_ext.UPRRerank(
        settings={"score_threshold": 0.5}
    ).postprocess_nodes(nodes, query_str=QUESTION),
    "LlamaIndex, D3": lambda folder: llama_index_ext.D3Retriever(li, li_llm, settings=FALLBACK).retrieve(QUESTION),
    "LlamaIndex, passages to write": lambda folder: llama_index_ext.BRMGRRetriever(
        llama_index_ext.D3Retriever(li), li_llm, settings=ON_FAILURE
    ).retrieve(QUESTION),
    "LlamaIndex, self-ask": lambda folder: llama_index_ext.SelfAskQueryEngine(
        llama_index_ext.D3Retriever(li), li_llm, on_failure="fallback"
    ).query(QUESTION),
    "LlamaIndex, views to write": lambda folder: llama_index_ext.MultiViewNodeParser(llm=li_llm, settings=ON_FAILURE)(
        li
    ),
    "LlamaIndex, chunks of another parser": lambda folder: llama_index_ext.MultiViewRetriever([TextNode(text=TEXT)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_points_to_the_user_s_line(name, tmp_path):
    with pytest.warns(DrillrankWarning) as caught:
        CALLS[name](tmp_path)
    assert {one.filename for one in caught} == {__file__}, [str(one.message) for one in caught]
