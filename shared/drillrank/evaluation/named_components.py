"""Components from their specifications: ours by name, dotted paths, and classes with settings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from drillrank.components import COMPONENTS, component
from drillrank.drilldown.paragraph_scores import load_evidence_model
from drillrank.errors import InvalidInput
from drillrank.evaluation.corpora import EvaluationCorpus
from drillrank.evaluation.settings_file import (
    keyword_arguments,
    load_settings,
    read_settings_file,
    setting_defaults,
    settings_in_file,
)
from drillrank.generation import generated_passages
from drillrank.generation.passages import GENREAD_PROMPTS, SAMPLING_TEMPERATURE
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.likelihood.chat import ServedLLM, load_llm
from drillrank.llm import LLM, run
from drillrank.multihop.link_names import named_links
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage, Ranking
from drillrank.rerank.brmgr import BRMGR
from drillrank.rerank.promptrank import PromptRank
from drillrank.structure import Document, breadcrumb
from drillrank.views import MultiViewChunker, MultiViewIndex

_OF_SYSTEM = ("component", "depth", "fitted", "settings", "trust_settings", "in_file", "version")
_RERANKERS = ("UPR", "MonoT5", "Relevance", "PromptRank", "BRMGR")
_DOCUMENT_COMPONENTS = ("MultiViewIndex", "D3")
_BY_NAME = (*_RERANKERS, "PathSearch", *_DOCUMENT_COMPONENTS)
_MAX_SECTIONS = 100  # results of a search in views
_PAPER_PASSAGES = 10  # retrieved, and generated, for BRMGR (section IV)
_GENERATED = 3

Search = Callable[[str], Any]


@dataclass
class DocumentComponent:
    """Component that reads whole documents: it searches one of them, or all.

    Attributes:
        searches: Search of each document by name; None is the name of all documents together.
        sections: Passages that only this component has, by id.
    """

    searches: Mapping[str | None, Search]
    sections: Mapping[str, Passage] = field(default_factory=dict)

    def search(self, query: str, document: str | None) -> Any:
        """Return the component's results for a question about a document."""
        return self.searches[document](query)


@dataclass
class GeneratingRanker:
    """`BRMGR` with passages that an LLM generates for each question.

    Attributes:
        brmgr: The ranker.
        llm: LLM that generates passages.
        n_generated: Number of passages to generate for a question.
        prompts: Templates for these passages.
        n_retrieved: Number of candidates to rank; None for all.
    """

    brmgr: BRMGR
    llm: LLM
    n_generated: int
    prompts: Sequence[str]
    n_retrieved: int | None

    @property
    def prior(self) -> str | None:
        """Prior of the ranker."""
        return self.brmgr.prior

    def rank(self, query: str, passages: Sequence[Passage], scores: Any = None) -> Ranking[Passage]:
        """Rank retrieved passages together with generated ones."""
        generated = run(generated_passages(query, self.n_generated, self.prompts), self.llm)
        n = self.n_retrieved
        return self.brmgr.rank(query, passages[:n], generated, scores=None if scores is None else scores[:n])


def resolve_settings(specification: Any) -> dict[str, Any]:
    """Return a specification as a mapping with the content of its settings file: other content is another component.

    Raises:
        InvalidInput: The file cannot be used, or the component loads no file.
    """
    settings = dict(specification) if isinstance(specification, Mapping) else {"component": specification}
    target, file = settings.get("component"), settings.get("settings")
    if file is None:
        return settings
    if not _is_plain_name(target):
        return {**settings, "in_file": read_settings_file(file)["settings"]}
    name = component(str(target)).name
    names = ["PathSearch", "PromptRank"] if name == "PathSearch" else [name]
    trust = bool(settings.pop("trust_settings", False))
    del settings["settings"]
    return {**settings_in_file(file, names, trust=trust), **settings}


def _is_plain_name(target: Any) -> bool:
    return isinstance(target, str) and not {".", ":"} & {*target}


def build_component(
    specification: Mapping[str, Any], corpus: EvaluationCorpus, documents: Iterable[str | None] = (None,)
) -> Any:
    """Return a ranker, a retriever, a function, or a `DocumentComponent`.

    Args:
        specification: Mapping with `component` and its settings: see `drillrank.evaluation.systems.build_system`.
        corpus: Corpus to search.
        documents: Names of the documents that questions are about; None for all together.

    Raises:
        InvalidInput: The component does not exist, or a setting is unknown.
    """
    target = specification["component"]
    settings = {key: value for key, value in specification.items() if key not in _OF_SYSTEM}
    is_fitted = bool(specification.get("fitted"))
    if _is_plain_name(target):
        return _build_by_name(str(target), settings, corpus, documents, is_fitted=is_fitted)
    if is_fitted:
        settings["model"] = _fit(load_language_model(settings.get("model", "unigram")), corpus)
    if isinstance(target, str):
        trust = bool(specification.get("trust_settings"))
        return _build_by_path(target, settings, specification.get("settings"), trust=trust)
    return target(**settings) if isinstance(target, type) else target


def _build_by_name(
    name: str, settings: dict[str, Any], corpus: EvaluationCorpus, documents: Iterable[str | None], *, is_fitted: bool
) -> Any:
    """Return one of our components, or what searches with it."""
    cls: Any = component(name).core_class
    kind = cls.__name__
    if kind not in _BY_NAME:
        names = ", ".join(one.name for one in COMPONENTS if one.name in _BY_NAME)
        raise InvalidInput(f"{kind} needs more than questions and a corpus. Pass it as an object. By name: {names}.")
    if kind in ("MonoT5", "Relevance") and "model" not in settings:
        raise InvalidInput(f'{kind} needs a neural model: {{"component": "{kind}", "model": "hf:..."}}.')
    if kind in _DOCUMENT_COMPONENTS and not corpus.documents:
        raise InvalidInput(f"{kind} reads documents, got a corpus of passages. Pass files as the corpus.")
    if kind == "MultiViewIndex":
        return _build_views(settings, corpus, documents)
    model = load_model(kind, settings, corpus, is_fitted=is_fitted)
    own_settings = {key: value for key, value in settings.items() if key not in ("model", "model_options")}
    if kind == "D3":
        d3 = cls(model=model, **keyword_arguments(cls, own_settings))
        return DocumentComponent({name: _search_d3(d3, corpus.within(name).documents) for name in documents})
    if kind == "PathSearch":
        return _build_path_search(model, own_settings, corpus)
    if kind == "BRMGR":
        return _build_brmgr(model, own_settings)
    return cls(model, **keyword_arguments(cls, own_settings))


def _search_d3(d3: Any, documents: Mapping[str, Document]) -> Search:
    prepared = replace(d3.prepare(list(documents.values())), names=dict(enumerate(documents)))
    return lambda query: d3.retrieve(query, prepared)


def _build_views(
    settings: Mapping[str, Any], corpus: EvaluationCorpus, documents: Iterable[str | None]
) -> DocumentComponent:
    """Return an index of views, whose chunks are those of the same preset."""
    llm = load_llm(settings.get("llm"))
    chunker = MultiViewChunker(llm=llm, preset=settings.get("preset"))
    index_settings = {key: value for key, value in settings.items() if key != "llm"}
    sections: dict[str, Passage] = {}
    searches: dict[str | None, Search] = {}
    for name in documents:
        chunk_lists = chunker.chunks(list(corpus.within(name).documents.items()))
        chunks = [chunk for chunk_list in chunk_lists for chunk in chunk_list]
        index = MultiViewIndex(chunks, **index_settings)
        searches[name] = lambda query, index=index: index.search(query, _MAX_SECTIONS)  # type: ignore[misc]
        raw_chunks = (chunk for chunk in chunks if chunk.view == "raw")
        sections |= {one.id: Passage(one.text, id=one.id, title=breadcrumb(one.path)) for one in raw_chunks}
    return DocumentComponent(searches, sections)


def _build_path_search(model: LanguageModel, settings: dict[str, Any], corpus: EvaluationCorpus) -> PathSearch:
    if not corpus.passages:
        raise InvalidInput("PathSearch searches a corpus, got none. Pass a corpus.")
    prompt_names, search_names = setting_defaults(PromptRank).keys(), setting_defaults(PathSearch).keys()
    prompt_settings = {key: settings[key] for key in prompt_names & settings.keys()}
    search_settings = {key: value for key, value in settings.items() if key not in prompt_names - search_names}
    prompt_rank = PromptRank(model, **keyword_arguments(PromptRank, prompt_settings))
    links = settings.get("links")
    link_names: Any = [links] if isinstance(links, str) else links
    if isinstance(link_names, Sequence) and all(isinstance(name, str) for name in link_names):
        search_settings["links"] = named_links(link_names)  # as in the frameworks
    return PathSearch(prompt_rank, corpus.passages.values(), **keyword_arguments(PathSearch, search_settings))


def _build_brmgr(model: LanguageModel, settings: dict[str, Any]) -> GeneratingRanker:
    llm = load_llm(settings.pop("llm", None))
    if llm is None:
        raise InvalidInput('BRMGR needs an LLM that generates passages: {"component": "BRMGR", "llm": "http://..."}.')
    default = None if settings.get("preset") is None else _PAPER_PASSAGES
    n_generated = settings.pop("n_generated", default or _GENERATED)
    prompts = GENREAD_PROMPTS
    if default is not None and isinstance(llm, ServedLLM):  # the paper's passages are samples of one prompt
        llm, prompts = llm.with_temperature(SAMPLING_TEMPERATURE), GENREAD_PROMPTS[:1]
    return GeneratingRanker(BRMGR(model, **keyword_arguments(BRMGR, settings)), llm, n_generated, prompts, default)


def load_model(kind: str, settings: Mapping[str, Any], corpus: EvaluationCorpus, *, is_fitted: bool) -> LanguageModel:
    """Return the language model of one of our components.

    Raises:
        InvalidInput: The model does not exist, or it is to be fitted without a corpus.
    """
    load = load_evidence_model if kind == "D3" else load_language_model
    model = load(settings.get("model", "unigram"), **settings.get("model_options", {}))
    return _fit(model, corpus) if is_fitted else model


def _fit(model: LanguageModel, corpus: EvaluationCorpus) -> LanguageModel:
    """Return a copy of a model with the statistics of the corpus."""
    if not corpus.passages:
        raise InvalidInput("fitted=True fits a model to the corpus, got no corpus. Pass a corpus.")
    return model.fitted(passage.titled_text for passage in corpus.passages.values())


def _build_by_path(path: str, settings: dict[str, Any], file: Any, *, trust: bool) -> Any:
    """Return the object at a dotted path. A class or a function without required arguments is called with the settings.

    Components of both frameworks load the settings file, if there is one.
    """
    module, colon, name = path.partition(":")
    if not colon:
        module, _, name = path.rpartition(".")
    try:
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
    except Exception as error:  # a module may raise any error while it is imported
        raise InvalidInput(f"{path!r:.200} cannot be loaded: {type(error).__name__}: {error}.") from error
    is_class = isinstance(target, type)
    if file is not None and is_class:
        settings = load_settings(file, target, model=settings.pop("model", None), trust=trust) | settings
    elif file is not None:
        raise InvalidInput(f"{path!r:.200} takes no settings file. Remove settings.")
    if is_class or (inspect.isfunction(target) and not required_parameters(target)):
        return target(**settings)
    if settings:
        names = f"{', '.join(settings):.200}"
        raise InvalidInput(f"{path!r:.200} takes no settings, got {names}. Only classes and functions take them.")
    return target


def required_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters without a default."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
