"""Every component: what it does, whose method it is, what it needs, and what it is called where.

The command line, the table in README.md and the conformance suites read this table. It loads no component.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

from drillrank.errors import InvalidInput


class Paper(NamedTuple):
    """Whose method it is.

    Attributes:
        title: As published.
        authors: The first author and the year.
        arxiv: Its number on arXiv.
    """

    title: str
    authors: str
    arxiv: str


class Component(NamedTuple):
    """One method.

    Attributes:
        name: The core class.
        home: Its module.
        job: What it is for, in a few words.
        does: What it does, in a line.
        paper: Where the method comes from; None if it is nobody's.
        needs: What has to be given: "model", "neural model", "llm", "embed", "retriever", "passages", "chunks" or
            "PromptRank".
        takes: What it can make use of, of the same.
        extra: Extra of this distribution without which it does not work.
        llama_index: Its components in `llama_index_ext`.
        langchain: Its components in `langchain_ext`.
    """

    name: str
    home: str
    job: str
    does: str
    paper: Paper | None
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    extra: str | None = None
    llama_index: tuple[str, ...] = ()
    langchain: tuple[str, ...] = ()

    @property
    def core_class(self) -> type:
        """The core class; its module is loaded now."""
        found: type = getattr(importlib.import_module(self.home), self.name)
        return found


_UPR = Paper("Improving Passage Retrieval with Zero-Shot Question Generation", "Sachan et al. 2022", "2204.07496")
_MONOT5 = Paper("Document Ranking with a Pretrained Sequence-to-Sequence Model", "Nogueira et al. 2020", "2003.06713")
_BRMGR = Paper(
    "Improving Generated and Retrieved Knowledge Combination Through Zero-shot Generation",
    "Du et al. 2024",
    "2412.18800",
)
_PROMPTRANK = Paper(
    "Few-shot Reranking for Multi-hop QA via Language Model Prompting", "Khalifa et al. 2023", "2205.12650"
)
_MC_INDEXING = Paper("Multi-view Content-aware Indexing for Long Document Retrieval", "Dong et al. 2024", "2404.15103")
_D3 = Paper(
    "Drilling Down into the Discourse Structure with LLMs for Long Document Question Answering",
    "Nair et al. 2023",
    "2311.13565",
)
_SELF_ASK = Paper(
    "Measuring and Narrowing the Compositionality Gap in Language Models", "Press et al. 2022", "2210.03350"
)

COMPONENTS: tuple[Component, ...] = (
    Component(
        "UPR",
        "drillrank.rerank.upr",
        "rerank passages",
        "Ranks passages by the likelihood of the question, given the passage.",
        _UPR,
        takes=("model",),
        llama_index=("UPRRerank",),
        langchain=("UPRRerank", "LikelihoodCrossEncoder"),
    ),
    Component(
        "MonoT5",
        "drillrank.rerank.monot5",
        "rerank with a model trained for it",
        "Ranks passages by the probability with which a trained model calls them relevant.",
        _MONOT5,
        needs=("neural model",),
        extra="hf",
        llama_index=("MonoT5Rerank",),
        langchain=("MonoT5Rerank",),
    ),
    Component(
        "Relevance",
        "drillrank.rerank.relevance",
        "rerank with a model that answers yes or no",
        "Ranks passages by the probability with which a model calls them relevant, asked as it was trained to be.",
        None,
        needs=("neural model",),
        extra="hf",
        llama_index=("RelevanceRerank",),
        langchain=("RelevanceRerank",),
    ),
    Component(
        "BRMGR",
        "drillrank.rerank.brmgr",
        "merge retrieved passages with what an LLM wrote",
        "Pairs retrieved passages with generated ones, both ranked by likelihood.",
        _BRMGR,
        takes=("model",),
        llama_index=("BRMGRRerank", "BRMGRRetriever"),
        langchain=("BRMGRRerank", "BRMGRRetriever"),
    ),
    Component(
        "PromptRank",
        "drillrank.rerank.promptrank",
        "rerank chains of passages",
        "Ranks paths of passages by the likelihood of the question, over several instructions.",
        _PROMPTRANK,
        takes=("model",),
        llama_index=("PromptRankRerank",),
        langchain=("PromptRankRerank",),
    ),
    Component(
        "PathSearch",
        "drillrank.multihop.search",
        "find chains of linked passages for multi-hop questions",
        "Searches paths from the first stage's passages along links, hop by hop.",
        _PROMPTRANK,
        needs=("PromptRank",),
        takes=("passages", "retriever", "llm", "embed"),
        llama_index=("PromptRankRetriever",),
        langchain=("PromptRankRetriever",),
    ),
    Component(
        "MultiViewChunker",
        "drillrank.views.views",
        "split a document into sections, in three views",
        "Cuts a document at its sections and describes each by its text, keywords and a summary.",
        _MC_INDEXING,
        takes=("llm",),
        llama_index=("MultiViewNodeParser",),
        langchain=("MultiViewTextSplitter",),
    ),
    Component(
        "MultiViewIndex",
        "drillrank.views.index",
        "retrieve over the views",
        "Ranks sections in each view separately and merges the rankings.",
        _MC_INDEXING,
        needs=("chunks",),
        llama_index=("MultiViewRetriever",),
        langchain=("MultiViewRetriever",),
    ),
    Component(
        "D3",
        "drillrank.drilldown.d3",
        "find evidence paragraphs in long documents",
        "Drills down from documents to sections to paragraphs, with an LLM or by likelihood.",
        _D3,
        takes=("llm", "model", "embed"),
        llama_index=("D3Retriever",),
        langchain=("D3Retriever",),
    ),
    Component(
        "SelfAsk",
        "drillrank.drilldown.self_ask",
        "answer multi-hop questions step by step",
        "Lets an LLM ask follow-up questions, answers each from what is retrieved for it, and answers.",
        _SELF_ASK,
        needs=("llm", "retriever"),
        llama_index=("SelfAskQueryEngine",),
        langchain=("SelfAskChain",),
    ),
)


def component(name: str) -> Component:
    """The component of a core class, or of a class in an adapter.

    Raises:
        InvalidInput: there is none of that name.

    >>> component("SelfAskChain").name
    'SelfAsk'
    """
    for one in COMPONENTS:
        if name in (one.name, *one.llama_index, *one.langchain):
            return one
    raise InvalidInput(f"No component is called {name!r:.200}; there are: {', '.join(one.name for one in COMPONENTS)}.")
