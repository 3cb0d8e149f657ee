"""Systems that are compared: ours by name, components of both hosts, and plain functions, as one kind of function."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any

from drillrank.components import COMPONENTS, component
from drillrank.drilldown.paragraph_scores import load_evidence_model
from drillrank.errors import DrillrankError, InvalidInput, check_positive, require
from drillrank.evaluation.questions import Collection
from drillrank.evaluation.settings_file import (
    keyword_arguments,
    load_settings,
    read_settings_file,
    setting_defaults,
    settings_in_file,
)
from drillrank.explanation import Explanation, Explanations
from drillrank.explanation.explanations import ExplanationRequest, explanation_request, find_explainer
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.multihop.link_names import named_links
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.promptrank import PromptRank
from drillrank.views import MergedSection, MultiViewIndex, section_chunks

Scores = Sequence[float] | None
Rank = Callable[[str, list[Passage], Scores], Any]

_OF_SYSTEM = ("component", "depth", "fitted", "settings", "trust_settings", "in_file", "version")
_RERANK = ("UPR", "MonoT5", "Relevance", "PromptRank")
_BY_NAME = (*_RERANK, "PathSearch", "MultiViewIndex", "D3")
_SECTIONS = 100  # of a search over views


@dataclass
class Found:
    """What a component brought for one question, best first.

    Attributes:
        passages: Each once.
        scores: One for each; None where it gave none that is finite.
        usage: Tokens and calls of an LLM, as far as it counts them.
        items: As it brought them, one for each passage.
        explains: Whether it could say why.
    """

    passages: list[Passage]
    scores: list[float | None]
    usage: dict[str, int] = field(default_factory=dict)
    items: list[Any] = field(default_factory=list)
    explains: bool = False


@dataclass
class System:
    """One component of a comparison.

    Attributes:
        name: As the report calls it.
        given: What it is, with the content of its file of settings.
        reranks: Whether it ranks the candidates; else it looks for itself.
        rank: From question, candidates and their scores to whatever it returns.
        depth: How many candidates it is shown, or how many of its results count if it looks for itself; None for all.
        seconds: To make it: loading and indexing.
    """

    name: str
    given: Any
    reranks: bool
    rank: Rank
    depth: int | None = None
    seconds: float = 0.0

    def found(
        self, query: str, candidates: Sequence[Passage], scores: Scores, corpus: Collection, explained: int = 0
    ) -> tuple[Found, Explanations]:
        """Its ranking for one question, as passages of the corpus or the candidates where it is theirs.

        Components of ours explain the first so many results, whatever their options say, and else none.
        """
        shown = list(candidates[: self.depth]) if self.reranks else []
        requested = ExplanationRequest(enabled=explained > 0)
        token = explanation_request.set(requested)
        try:
            brought = self.rank(query, shown, None if scores is None else scores[: len(shown)])
            if inspect.isawaitable(brought):
                brought = _awaited(brought)
        finally:
            explanation_request.reset(token)
        known = Collection({passage.id: passage for passage in shown}) if shown else corpus
        found = _found(brought, known, self.name)
        if not self.reranks:
            for some in (found.passages, found.scores, found.items):
                del some[self.depth or len(some) :]
        why = find_explainer(brought)
        found.explains = requested.is_supported or why is not None
        items = found.items[:explained]
        if items and why is not None:
            return found, why(items)
        reasons = [reason for item in items if (reason := _reason(item, requested)) is not None]
        return found, Explanations(reasons, query, requested.tree)


def _awaited(answer: Any) -> Any:
    """What an asynchronous function returns, also where an event loop is running, as in a notebook."""

    async def pending() -> Any:
        return await answer

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, asyncio.run, pending()).result()


def system(name: str, given: Any, corpus: Collection) -> System:
    """A component, made ready.

    Args:
        name: As the report calls it.
        given: One of ours by name (`"UPR"`), a dotted path (`"my_app.search:reranker"`), a mapping with `component`
            (either of these) and settings, or an object: a ranker of ours, a node postprocessor or retriever of
            LlamaIndex, a document compressor or retriever of LangChain, or a function from question and passages to
            passages or ids. A mapping may also hold `depth`, how many candidates it is shown, `fitted`: a lexical
            model then takes its statistics from the corpus, `settings`: a file that `drillrank tune` wrote; with
            `trust_settings`, as for `load_settings`; and `version`: of code whose results would else be taken for those
            of an earlier run (`drillrank.evaluation.experiment`).
        corpus: What is searched.

    Raises:
        InvalidInput: there is no such component, it does not rank, or a setting is unknown.

    >>> system("ours", {"component": "UPR", "prior": "retrieval"}, Collection()).reranks
    True
    """
    started = time.perf_counter()
    try:
        named = resolved(given)
        reranks, rank = _ranking(_made(named, corpus))
    except (InvalidInput, TypeError) as problem:
        raise InvalidInput(f"{name}: {problem}") from problem
    except DrillrankError:
        raise
    except Exception as problem:  # a class or function of the user's may raise anything
        raise InvalidInput(f"{name} cannot be made: {type(problem).__name__}: {problem}") from problem
    depth = named.get("depth")
    if depth is not None:
        check_positive(depth=depth)
    return System(name, named, reranks, rank, depth, time.perf_counter() - started)


def resolved(given: Any) -> dict[str, Any]:
    """A component with the content of its file of settings, so that other content is another component.

    Raises:
        InvalidInput: the file cannot be used, or is given to what does not load it.
    """
    named = dict(given) if isinstance(given, Mapping) else {"component": given}
    what, file = named.get("component"), named.get("settings")
    if file is None:
        return named
    if not _is_own(what):
        return {**named, "in_file": read_settings_file(file)["settings"]}
    name = component(str(what)).name
    names = ["PathSearch", "PromptRank"] if name == "PathSearch" else [name]
    trust = bool(named.pop("trust_settings", False))
    del named["settings"]
    return {**settings_in_file(file, names, trust=trust), **named}


def _is_own(what: Any) -> bool:
    return isinstance(what, str) and not {".", ":"} & {*what}


def _made(named: Mapping[str, Any], corpus: Collection) -> Any:
    """What is asked: a ranker, a retriever, or a function."""
    what = named.get("component")
    settings = {key: value for key, value in named.items() if key not in _OF_SYSTEM}
    fitted = bool(named.get("fitted"))
    if _is_own(what):
        return _component_by_name(str(what), settings, corpus, fitted=fitted)
    if fitted:
        settings["model"] = _fitted(load_language_model(settings.get("model", "unigram")), corpus)
    if isinstance(what, str):
        return _loaded(what, settings, named.get("settings"), trust=bool(named.get("trust_settings")))
    return what(**settings) if isinstance(what, type) else what


def _component_by_name(name: str, settings: dict[str, Any], corpus: Collection, *, fitted: bool) -> Any:
    """A component of ours by name: a ranker, or a function from a question to what it finds."""
    cls: Any = component(name).core_class
    kind = cls.__name__
    if kind not in _BY_NAME:
        possible = ", ".join(one.name for one in COMPONENTS if one.name in _BY_NAME)
        raise InvalidInput(f"{kind} needs more than questions and a corpus: give it as an object. By name: {possible}.")
    if kind in ("MonoT5", "Relevance") and "model" not in settings:
        raise InvalidInput(f'{kind} needs a neural model: {{"component": "{kind}", "model": "hf:..."}}.')
    if kind not in (*_RERANK, "PathSearch") and not corpus.documents:
        raise InvalidInput(f"{kind} reads documents: give files as the corpus, not passages.")
    if kind == "MultiViewIndex":
        chunks = [chunk for of, document in corpus.documents.items() for chunk in section_chunks(document, of)]
        index = MultiViewIndex(chunks, **settings)
        return lambda query: index.search(query, _SECTIONS)
    model = own_model(kind, settings, corpus, fitted=fitted)
    named = {key: value for key, value in settings.items() if key not in ("model", "model_options")}
    if kind in _RERANK:
        return cls(model, **keyword_arguments(cls, named))
    if kind == "D3":
        d3 = cls(model=model, **keyword_arguments(cls, named))
        documents = replace(d3.prepare(list(corpus.documents.values())), names=dict(enumerate(corpus.documents)))
        return lambda query: d3.retrieve(query, documents)
    if not corpus.passages:
        raise InvalidInput("PathSearch searches a corpus: give one.")
    prompt_names, search_names = setting_defaults(PromptRank).keys(), setting_defaults(PathSearch).keys()
    of_prompts = {key: named[key] for key in prompt_names & named.keys()}
    named = {key: value for key, value in named.items() if key not in prompt_names - search_names}  # both take a preset
    prompt_rank = PromptRank(model, **keyword_arguments(PromptRank, of_prompts))
    links = [named["links"]] if isinstance(named.get("links"), str) else named.get("links")
    if isinstance(links, Sequence) and all(isinstance(name, str) for name in links):
        named["links"] = named_links(links)  # as the hosts have them, and a command line can give them
    return PathSearch(prompt_rank, corpus.passages.values(), **keyword_arguments(PathSearch, named))


def own_model(kind: str, settings: Mapping[str, Any], corpus: Collection, *, fitted: bool) -> LanguageModel:
    """The language model of a component by name.

    Raises:
        InvalidInput: there is no such model, or it is to be fitted and there is no corpus.
    """
    load = load_evidence_model if kind == "D3" else load_language_model
    model = load(settings.get("model", "unigram"), **settings.get("model_options", {}))
    return _fitted(model, corpus) if fitted else model


def _fitted(model: LanguageModel, corpus: Collection) -> LanguageModel:
    """A copy with the statistics of the corpus."""
    if not corpus.passages:
        raise InvalidInput("a model is fitted on the corpus, and there is none.")
    return model.fitted(passage.titled_text for passage in corpus.passages.values())


def _loaded(path: str, settings: dict[str, Any], file: Any, *, trust: bool) -> Any:
    """What a dotted path names; a class, or a function without arguments, is called with the settings.

    A class of either host's components loads the file of settings, if there is one.
    """
    module, colon, name = path.partition(":")
    if not colon:
        module, _, name = path.rpartition(".")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as problem:  # a module may raise anything while it is imported
        raise InvalidInput(f"{path!r:.200} cannot be loaded: {type(problem).__name__}: {problem}.") from problem
    is_class = isinstance(found, type)
    if file is not None and is_class:
        settings = load_settings(file, found, model=settings.pop("model", None), trust=trust) | settings
    elif file is not None:
        raise InvalidInput(f"{path!r:.200} has no settings that a file could hold.")
    if is_class or (inspect.isfunction(found) and not _needed(found)):
        return found(**settings)
    if settings:
        names = f"{', '.join(settings):.200}"
        raise InvalidInput(f"{path!r:.200} is ready: settings {names} go to a class or a function only.")
    return found


def _needed(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _ranking(given: Any) -> tuple[bool, Rank]:
    """Whether it reranks, and how it is asked."""

    def counted(scores: Scores) -> dict[str, Any]:
        return {"scores": scores} if scores is not None and getattr(given, "prior", None) is not None else {}

    if isinstance(given, PromptRank):
        return True, lambda query, some, scores: given.rank(query, [Path((one,)) for one in some], **counted(scores))
    if hasattr(given, "postprocess_nodes"):
        return True, lambda query, some, scores: given.postprocess_nodes(
            _nodes(some, scores or [None] * len(some)), query_str=query
        )
    if hasattr(given, "compress_documents"):
        return True, lambda query, some, scores: given.compress_documents(
            _documents(some, scores or [None] * len(some)), query
        )
    if hasattr(given, "rank"):
        return True, lambda query, some, scores: given.rank(query, some, **counted(scores))
    for name in ("retrieve", "search", "invoke"):
        if find := getattr(given, name, None):
            return False, lambda query, _some, _scores, find=find: find(query)
    if callable(given) and len(_needed(given)) > 1:
        return True, lambda query, some, _scores: given(query, some)
    if callable(given):
        return False, lambda query, _some, _scores: given(query)
    raise InvalidInput(
        f"a {type(given).__name__} does not rank: give one of {', '.join(one.name for one in COMPONENTS)}, a dotted "
        "path, a component of LlamaIndex or LangChain, or a function from question and passages to passages."
    )


def _nodes(passages: Sequence[Passage], scores: Sequence[float | None]) -> list[Any]:
    schema = require("llama_index.core.schema", "llama-index")
    return [
        schema.NodeWithScore(
            node=schema.TextNode(text=p.text, id_=p.id, metadata={"title": p.title} if p.title else {}), score=score
        )
        for p, score in zip(passages, scores, strict=True)
    ]


def _documents(passages: Sequence[Passage], scores: Sequence[float | None]) -> list[Any]:
    document = require("langchain_core.documents", "langchain").Document
    found = []
    for p, score in zip(passages, scores, strict=True):
        given = {"id": p.id, "title": p.title or None, "relevance_score": score}
        metadata = {key: value for key, value in given.items() if value is not None}
        found.append(document(page_content=p.text, id=p.id, metadata=metadata))
    return found


def _found(brought: Any, known: Collection, name: str) -> Found:
    """What a component returned, as passages."""
    if isinstance(brought, str | Mapping) or not isinstance(brought, Iterable):
        raise InvalidInput(f"{name} returned a {type(brought).__name__}, not a list.")
    usage = getattr(brought, "usage", None)
    found = Found([], [], usage=dict(usage.as_metadata()) if usage else {})
    seen = set()
    for item in brought:
        passage, score = _read(item, known.passages, name)
        if passage.id not in known.passages:  # perhaps a copy that has lost its id
            passage = known.by_text.get(passage.text, passage)
        if passage.id not in seen:
            seen.add(passage.id)
            found.passages.append(passage)
            found.scores.append(score if score is not None and math.isfinite(score) else None)
            found.items.append(item)
        if isinstance(item, Ranked) and not found.usage and isinstance(item.details.get("usage"), Mapping):
            found.usage = dict(item.details["usage"])
    return found


def _read(item: Any, known: Mapping[str, Passage], name: str) -> tuple[Passage, float | None]:
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Passage | str):
        return _read(item[0], known, name)[0], float(item[1])
    if isinstance(item, Ranked):
        passage = item.passage.passages[0] if isinstance(item.passage, Path) else item.passage
        return known.get(passage.id, passage), item.score
    if isinstance(item, Passage):
        return item, None
    if isinstance(item, MergedSection):
        return known[item.section_id], item.score
    if isinstance(item, str):
        if item not in known:
            raise InvalidInput(f"{name} returned the id {item!r:.200}, which no passage has.")
        return known[item], None
    if (node := getattr(item, "node", None)) is not None:  # LlamaIndex
        ids, text = (node.node_id, node.metadata.get("id"), getattr(node, "ref_doc_id", None)), node.get_content()
        score = item.score
    elif (text := getattr(item, "page_content", None)) is not None:  # LangChain
        score = item.metadata.get("relevance_score", item.metadata.get("score"))
        ids = (getattr(item, "id", None), item.metadata.get("id"), None)
    else:
        raise InvalidInput(f"{name} returned a {type(item).__name__}, which is no passage, node, document or id.")
    of_known = next((known[id_] for id_ in ids if isinstance(id_, str) and id_ in known), None)
    own_id: Any = next((str(id_) for id_ in ids if id_), None)
    return of_known or Passage(text, id=own_id), None if score is None else float(score)


def _reason(item: Any, requested: ExplanationRequest) -> Explanation | None:
    """Of what a host's component brought: LlamaIndex tells beside its nodes, LangChain in its documents."""
    node = getattr(item, "node", None)
    if node is not None:
        return requested.explanation_by_id.get(node.node_id)
    exported = getattr(item, "metadata", {}).get("drillrank_explanation") if requested.is_supported else None
    return None if exported is None else Explanation.from_dict(exported)
