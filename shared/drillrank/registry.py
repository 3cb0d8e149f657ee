"""Every component, declared once: what it does, whose method it is, what it needs, and what it is called where.

The command line, the table in README.md and the conformance suites read this list. Nothing of a component is loaded
before its class or its settings are asked for.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from typing import Any, Literal, NamedTuple

from drillrank.errors import InvalidInput

Need = Literal["model", "neural model", "llm", "embed", "retriever", "passages", "chunks", "PromptRank"]


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


class Setting(NamedTuple):
    """One argument of a component that may be left out.

    Attributes:
        name: Its keyword.
        type: As the core class annotates it.
        default: What counts where it is left out.
        description: From its declaration, or from the core class's docstring.
    """

    name: str
    type: str
    default: Any
    description: str


@dataclasses.dataclass(frozen=True)
class Component:
    """One method.

    Attributes:
        home: Dotted name of the core class.
        job: What it is for, in a few words.
        does: What it does, in a line.
        paper: Where the method comes from; None if it is nobody's.
        needs: What has to be given.
        takes: What it can make use of.
        extras: Extras of this distribution without which it does not work.
        llama_index: Its components in `llama_index_ext`.
        langchain: Its components in `langchain_ext`.

    >>> component("UPR").core_class.__name__
    'UPR'
    >>> next(setting for setting in component("D3").settings() if setting.name == "guard_tokens").default
    0
    """

    home: str
    job: str
    does: str
    paper: Paper | None
    needs: tuple[Need, ...] = ()
    takes: tuple[Need, ...] = ()
    extras: tuple[str, ...] = ()
    llama_index: tuple[str, ...] = ()
    langchain: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The core class's name."""
        return self.home.rpartition(".")[2]

    @property
    def core_class(self) -> type:
        """The core class; its module is loaded now."""
        module, _, name = self.home.rpartition(".")
        found: type = getattr(importlib.import_module(module), name)
        return found

    def settings(self) -> tuple[Setting, ...]:
        """The arguments that may be left out, in the order of the core class."""
        return optional_arguments(self.core_class)


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

_COMPONENTS = (
    Component(
        "drillrank.rerank.upr.UPR",
        "rerank passages",
        "Ranks passages by the likelihood of the question, given the passage.",
        _UPR,
        takes=("model",),
        llama_index=("UPRRerank",),
        langchain=("UPRRerank", "LikelihoodCrossEncoder"),
    ),
    Component(
        "drillrank.rerank.monot5.MonoT5",
        "rerank with a model trained for it",
        "Ranks passages by the probability with which a trained model calls them relevant.",
        _MONOT5,
        needs=("neural model",),
        extras=("hf",),
        llama_index=("MonoT5Rerank",),
        langchain=("MonoT5Rerank",),
    ),
    Component(
        "drillrank.rerank.relevance.Relevance",
        "rerank with a model that answers yes or no",
        "Ranks passages by the probability with which a model calls them relevant, asked as it was trained to be.",
        None,
        needs=("neural model",),
        extras=("hf",),
        llama_index=("RelevanceRerank",),
        langchain=("RelevanceRerank",),
    ),
    Component(
        "drillrank.rerank.brmgr.BRMGR",
        "merge retrieved passages with what an LLM wrote",
        "Pairs retrieved passages with generated ones, both ranked by likelihood.",
        _BRMGR,
        takes=("model",),
        llama_index=("BRMGRRerank", "BRMGRRetriever"),
        langchain=("BRMGRRerank", "BRMGRRetriever"),
    ),
    Component(
        "drillrank.rerank.promptrank.PromptRank",
        "rerank chains of passages",
        "Ranks paths of passages by the likelihood of the question, over several instructions.",
        _PROMPTRANK,
        takes=("model",),
        llama_index=("PromptRankRerank",),
        langchain=("PromptRankRerank",),
    ),
    Component(
        "drillrank.multihop.search.PathSearch",
        "find chains of linked passages for multi-hop questions",
        "Searches paths from the first stage's passages along links, hop by hop.",
        _PROMPTRANK,
        needs=("PromptRank",),
        takes=("passages", "retriever", "llm", "embed"),
        llama_index=("PromptRankRetriever",),
        langchain=("PromptRankRetriever",),
    ),
    Component(
        "drillrank.views.chunker.MultiViewChunker",
        "split a document into sections, in three views",
        "Cuts a document at its sections and describes each by its text, keywords and a summary.",
        _MC_INDEXING,
        takes=("llm",),
        llama_index=("MultiViewNodeParser",),
        langchain=("MultiViewTextSplitter",),
    ),
    Component(
        "drillrank.views.index.MultiViewIndex",
        "retrieve over the views",
        "Ranks sections in each view separately and merges the rankings.",
        _MC_INDEXING,
        needs=("chunks",),
        llama_index=("MultiViewRetriever",),
        langchain=("MultiViewRetriever",),
    ),
    Component(
        "drillrank.drilldown.d3.D3",
        "find evidence paragraphs in long documents",
        "Drills down from documents to sections to paragraphs, with an LLM or by likelihood.",
        _D3,
        takes=("llm", "model", "embed"),
        llama_index=("D3Retriever",),
        langchain=("D3Retriever",),
    ),
    Component(
        "drillrank.drilldown.self_ask.SelfAsk",
        "answer multi-hop questions step by step",
        "Lets an LLM ask follow-up questions, answers each from what is retrieved for it, and answers.",
        _SELF_ASK,
        needs=("llm", "retriever"),
        llama_index=("SelfAskQueryEngine",),
        langchain=("SelfAskChain",),
    ),
)


def components() -> tuple[Component, ...]:
    """Every component, in the order of the data's way: rerank, search, index, drill down, answer.

    >>> [one.name for one in components() if "llm" in one.needs]
    ['SelfAsk']
    """
    return _COMPONENTS


def component(name: str) -> Component:
    """The component of a core class, or of a class in an adapter.

    Raises:
        InvalidInput: there is none of that name.

    >>> component("SelfAskChain").name
    'SelfAsk'
    """
    for one in _COMPONENTS:
        if name in (one.name, *one.llama_index, *one.langchain):
            return one
    raise InvalidInput(f"No component is called {name!r}; there are: {', '.join(one.name for one in _COMPONENTS)}.")


def adapters(package: str) -> tuple[str, ...]:
    """The components that one of the two adapters has, `"llama_index_ext"` or `"langchain_ext"`.

    Raises:
        InvalidInput: there is no such adapter.

    >>> "UPRRerank" in adapters("langchain_ext")
    True
    """
    if package not in ("llama_index_ext", "langchain_ext"):
        raise InvalidInput(f"The adapters are llama_index_ext and langchain_ext; not {package!r}.")
    return tuple(name for one in _COMPONENTS for name in getattr(one, package.removesuffix("_ext")))


def optional_arguments(cls: type) -> tuple[Setting, ...]:
    """The arguments of a class that may be left out, in order.

    A dataclass field may describe itself by `metadata={"description": ...}`; the docstring describes the others.

    >>> class Rounded:
    ...     '''Rounds.
    ...
    ...     Args:
    ...         value: What is rounded.
    ...         digits: How many stay behind
    ...             the point.
    ...     '''
    ...
    ...     def __init__(self, value: float, *, digits: int = 2) -> None: ...
    >>> optional_arguments(Rounded)
    (Setting(name='digits', type='int', default=2, description='How many stay behind the point.'),)
    """
    told = _described(inspect.getdoc(cls) or "")
    if dataclasses.is_dataclass(cls):
        told |= {
            field.name: field.metadata["description"]
            for field in dataclasses.fields(cls)
            if "description" in field.metadata
        }
    return tuple(
        Setting(name, _type(given.annotation), given.default, told.get(name, ""))
        for name, given in inspect.signature(cls).parameters.items()
        if given.default is not given.empty
    )


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _described(doc: str) -> dict[str, str]:
    """The arguments that a docstring describes, each in one line."""
    told: dict[str, str] = {}
    for section in re.findall(r"^Args:\n((?:    .*\n|\n)+)", f"{doc}\n", re.MULTILINE):
        for name, text in re.findall(r"^    (\w+): ((?:.*\n)(?:     +.*\n)*)", section, re.MULTILINE):
            told[name] = " ".join(text.split())
    return told
