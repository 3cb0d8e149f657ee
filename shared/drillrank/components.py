"""Table of all components with their purpose, paper, requirements, and names in the frameworks.

The command line, the table in docs/which-component.md and the conformance suites use this table. Importing this module
loads no component.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import NamedTuple

from drillrank.errors import InvalidInput


class Paper(NamedTuple):
    """Paper that describes a method.

    Attributes:
        title: Title of the paper.
        authors: First author and year.
        arxiv: Number of the paper on arXiv.
    """

    title: str
    authors: str
    arxiv: str


@dataclass(frozen=True)
class Component:
    """Component of the core, with its names in the frameworks.

    Attributes:
        name: Name of the core class.
        job: Purpose in a few words.
        paper: Paper that describes the method; None if there is none.
        llama_index: Names of the classes in `llama_index_ext`.
        langchain: Names of the classes in `langchain_ext`; by default those in `llama_index_ext`.
        needs: Required arguments, among "model", "neural model", "llm", "embed", "retriever", "passages", "chunks" and
            "PromptRank".
        takes: Optional arguments, among the same.
        extra: Extra of this distribution that the component requires; None if there is none.
        package: Package from which the core class is imported.
    """

    name: str
    job: str
    paper: Paper | None
    llama_index: tuple[str, ...]
    langchain: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    extra: str | None = None
    package: str = "drillrank"

    def __post_init__(self) -> None:
        object.__setattr__(self, "langchain", self.langchain or self.llama_index)

    @property
    def core_class(self) -> type:
        """Core class, whose module is loaded at the first use."""
        core_class: type = getattr(importlib.import_module(self.package), self.name)
        return core_class


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
        "UPR", "rerank passages", _UPR, ("UPRRerank",), ("UPRRerank", "LikelihoodCrossEncoder"), takes=("model",)
    ),
    Component(
        "MonoT5", "rerank with a model trained for it", _MONOT5, ("MonoT5Rerank",), needs=("neural model",), extra="hf"
    ),
    Component(
        "Relevance",
        "rerank with a model that answers yes or no",
        None,
        ("RelevanceRerank",),
        needs=("neural model",),
        extra="hf",
    ),
    Component(
        "BRMGR",
        "merge retrieved passages with what an LLM wrote",
        _BRMGR,
        ("BRMGRRerank", "BRMGRRetriever"),
        takes=("model",),
    ),
    Component("PromptRank", "rerank chains of passages", _PROMPTRANK, ("PromptRankRerank",), takes=("model",)),
    Component(
        "PathSearch",
        "find chains of linked passages for multi-hop questions",
        _PROMPTRANK,
        ("PromptRankRetriever",),
        needs=("PromptRank",),
        takes=("passages", "retriever", "llm", "embed"),
    ),
    Component(
        "MultiViewChunker",
        "split a document into sections, in three views",
        _MC_INDEXING,
        ("MultiViewNodeParser",),
        ("MultiViewTextSplitter",),
        takes=("llm",),
        package="drillrank.views",
    ),
    Component(
        "MultiViewIndex",
        "retrieve over the views",
        _MC_INDEXING,
        ("MultiViewRetriever",),
        needs=("chunks",),
        takes=("embed",),
        package="drillrank.views",
    ),
    Component(
        "D3", "find evidence paragraphs in long documents", _D3, ("D3Retriever",), takes=("llm", "model", "embed")
    ),
    Component(
        "SelfAsk",
        "answer multi-hop questions step by step",
        _SELF_ASK,
        ("SelfAskQueryEngine",),
        ("SelfAskChain",),
        needs=("llm", "retriever"),
    ),
)


def component(name: str) -> Component:
    """Return the component with a class of this name, in the core or in a framework.

    Raises:
        InvalidInput: No component has such a class.

    >>> component("SelfAskChain").name
    'SelfAsk'
    """
    for candidate in COMPONENTS:
        if name in (candidate.name, *candidate.llama_index, *candidate.langchain):
            return candidate
    raise InvalidInput(f"No component is called {name!r:.200}. Use one of {', '.join(c.name for c in COMPONENTS)}.")
