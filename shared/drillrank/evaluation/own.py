"""Components of ours by name and settings, over a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from drillrank.components import COMPONENTS, component
from drillrank.drilldown.evidence import load_evidence_model
from drillrank.errors import InvalidInput
from drillrank.evaluation.corpus import Corpus
from drillrank.evaluation.settings_file import keyword_arguments, setting_defaults, settings_in_file
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.multihop.path_rerank import named_links
from drillrank.multihop.search import PathSearch
from drillrank.rerank.promptrank import PromptRank
from drillrank.views import MultiViewIndex, section_chunks

_RERANK = ("UPR", "MonoT5", "Relevance", "PromptRank")
_SEARCH = ("PathSearch", "MultiViewIndex", "D3")
_NEURAL = ("MonoT5", "Relevance")
_FOUND = 100  # sections of a search over views


def by_file(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a component of ours, those of the file that `settings` names among them; the others take their place.

    Raises:
        InvalidInput: the file cannot be used.
    """
    named = dict(given)
    file, trust = named.pop("settings", None), bool(named.pop("trust_settings", False))
    if file is None:
        return named
    row = component(name)
    names = ["PathSearch", "PromptRank"] if row.name == "PathSearch" else [row.name]
    return {**settings_in_file(file, names, trust=trust), **named}


def own_component(name: str, settings: Mapping[str, Any], corpus: Corpus, *, fitted: bool) -> Any:
    """A ranker, or a function from a question to what it finds.

    Raises:
        InvalidInput: it needs more than questions and a corpus, or a setting is unknown.
    """
    cls: Any = component(name).core_class
    kind = cls.__name__
    if kind not in (*_RERANK, *_SEARCH):
        possible = ", ".join(one.name for one in COMPONENTS if one.name in (*_RERANK, *_SEARCH))
        raise InvalidInput(f"{kind} needs more than questions and a corpus: give it as an object. By name: {possible}.")
    named = dict(settings)
    if kind in _NEURAL and "model" not in named:
        raise InvalidInput(f'{kind} needs a neural model: {{"component": "{kind}", "model": "hf:..."}}.')
    model = None if kind == "MultiViewIndex" else own_model(kind, named, corpus, fitted=fitted)
    for of_model in ("model", "model_options"):
        named.pop(of_model, None)
    if kind in _RERANK:
        return cls(model, **keyword_arguments(cls, named))
    if kind == "PathSearch":
        if not corpus.passages:
            raise InvalidInput("PathSearch searches a corpus: give one.")
        of_paths = {key: named.pop(key) for key in setting_defaults(PromptRank).keys() & named.keys()}
        prompt_rank = PromptRank(model or "unigram", **keyword_arguments(PromptRank, of_paths))
        links = [named["links"]] if isinstance(named.get("links"), str) else named.get("links")
        if isinstance(links, Sequence) and all(isinstance(name, str) for name in links):
            named["links"] = named_links(links)  # as the hosts have them, and a command line can give them
        return PathSearch(prompt_rank, corpus.passages.values(), **keyword_arguments(PathSearch, named))
    if not corpus.documents:
        raise InvalidInput(f"{kind} reads documents: give files as the corpus, not passages.")
    if kind == "MultiViewIndex":
        chunks = [chunk for of, document in corpus.documents.items() for chunk in section_chunks(document, of)]
        index = MultiViewIndex(chunks, **named)
        return lambda query: index.search(query, _FOUND)
    d3 = cls(model=model, **keyword_arguments(cls, named))
    documents = replace(d3.prepare(list(corpus.documents.values())), names=dict(enumerate(corpus.documents)))
    return lambda query: d3.retrieve(query, documents)


def own_model(kind: str, settings: Mapping[str, Any], corpus: Corpus, *, fitted: bool) -> LanguageModel:
    """The language model of a component by name.

    Raises:
        InvalidInput: there is no such model, or it is to be fitted and there is no corpus.
    """
    load = load_evidence_model if kind == "D3" else load_language_model
    model = load(settings.get("model", "unigram"), **settings.get("model_options", {}))
    return fitted_model(model, corpus) if fitted else model


def fitted_model(model: str | LanguageModel, corpus: Corpus) -> LanguageModel:
    """A copy with the statistics of the corpus.

    Raises:
        InvalidInput: there is no corpus.
    """
    if not corpus.passages:
        raise InvalidInput("a model is fitted on the corpus, and there is none.")
    return load_language_model(model).fitted(passage.titled_text for passage in corpus.passages.values())
