"""Systems that are compared: ours by name, components of both hosts, and plain functions, as one kind of function."""

from __future__ import annotations

import importlib
import inspect
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drillrank.components import COMPONENTS
from drillrank.errors import DrillrankError, InvalidInput, check_positive, require
from drillrank.evaluation.awaiting import awaited
from drillrank.evaluation.corpus import Corpus
from drillrank.evaluation.own import by_file, fitted_model, own_component
from drillrank.evaluation.records import spec_of
from drillrank.evaluation.settings_file import load_settings, read_settings_file
from drillrank.explanation import Explainable, Explanation, Explanations
from drillrank.explanation.explanations import Request, request
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.promptrank import PromptRank
from drillrank.views import MergedSection

Scores = Sequence[float] | None
Rank = Callable[[str, list[Passage], Scores], Any]

_OWN_KEYS = ("component", "depth", "fitted", "settings", "trust_settings", "in_file", "version")


@dataclass
class Found:
    """What a component brought for one question, best first.

    Attributes:
        passages: Each once.
        scores: One for each; None where it told none that is finite.
        usage: Tokens and calls of an LLM, as far as it told.
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
        spec: What it is, so that results of another one are not taken for its own.
        reranks: Whether it ranks the candidates; else it looks for itself.
        rank: From question, candidates and their scores to whatever it returns.
        depth: How many candidates it is shown, or how many of its results count if it looks for itself; None for all.
        seconds: To make it: loading and indexing.
    """

    name: str
    spec: str
    reranks: bool
    rank: Rank
    depth: int | None = None
    seconds: float = 0.0

    def found(self, query: str, candidates: Sequence[Passage], scores: Scores, corpus: Corpus) -> Found:
        """Its ranking for one question, as passages of the corpus or the candidates where it is theirs.

        Components of ours do without explanations, whatever their options say.
        """
        asked = Request(wanted=False)
        found, why = self._ranked(query, candidates, scores, corpus, asked)
        found.explains = asked.understood or why is not None
        return found

    def explained(
        self, query: str, candidates: Sequence[Passage], scores: Scores, corpus: Corpus, n: int
    ) -> tuple[Found, Explanations]:
        """The same ranking, asked for again, and why the first `n` of it stand where they stand, as far as it tells."""
        asked = Request(wanted=True)
        found, why = self._ranked(query, candidates, scores, corpus, asked)
        if why is not None:
            return found, why(found.items[:n])
        told = [_reason(item, asked) for item in found.items[:n]]
        return found, Explanations([one for one in told if one is not None], query, asked.tree)

    def _ranked(
        self, query: str, candidates: Sequence[Passage], scores: Scores, corpus: Corpus, asked: Request
    ) -> tuple[Found, Callable[[Sequence[Any]], Explanations] | None]:
        """The ranking, and what explains some of it, if what came back can."""
        shown = list(candidates[: self.depth]) if self.reranks else []
        token = request.set(asked)
        try:
            brought = self.rank(query, shown, None if scores is None else scores[: len(shown)])
            if inspect.isawaitable(brought):
                brought = awaited(brought)
        finally:
            request.reset(token)
        found = as_found(brought, Corpus({passage.id: passage for passage in shown}) if shown else corpus, self.name)
        if not self.reranks:
            for some in (found.passages, found.scores, found.items):
                del some[self.depth or len(some) :]
        return found, brought.why if isinstance(brought, Explainable) else None


def system(name: str, given: Any, corpus: Corpus) -> System:
    """A component, made ready.

    Args:
        name: As the report calls it.
        given: One of ours by name (`"UPR"`), a dotted path (`"my_app.search:reranker"`), a mapping with `component`
            (either of these) and settings, or an object: a ranker of ours, a node postprocessor or retriever of
            LlamaIndex, a document compressor or retriever of LangChain, or a function from question and passages to
            passages or ids. A mapping may also hold `depth`, how many candidates it is shown, `fitted`: a lexical
            model then takes its statistics from the corpus, `settings`: a file that `drillrank tune` wrote; with
            `trust_settings`, as for `load_settings`; and `version`: of code whose results would else be taken for those
            of an earlier run (`spec_of`).
        corpus: What is searched.

    Raises:
        InvalidInput: there is no such component, it does not rank, or a setting is unknown.

    >>> system("ours", {"component": "UPR", "prior": "retrieval"}, Corpus()).reranks
    True
    """
    started = time.perf_counter()
    try:
        given = resolved(given)
        reranks, rank = _ranking(_made(given, corpus))
    except TypeError as problem:
        raise InvalidInput(f"{name}: {problem}.") from problem
    except InvalidInput as problem:
        raise InvalidInput(f"{name}: {problem}") from problem
    except DrillrankError:
        raise
    except Exception as problem:  # a class or function of the user's may raise anything
        raise InvalidInput(f"{name} cannot be made: {type(problem).__name__}: {problem}") from problem
    seconds = time.perf_counter() - started
    depth = given.get("depth") if isinstance(given, Mapping) else None
    if depth is not None:
        check_positive(depth=depth)
    return System(name, spec_of(given), reranks, rank, depth, seconds)


def resolved(given: Any) -> Any:
    """A component with the content of its file of settings, so that other content is another component.

    Raises:
        InvalidInput: the file cannot be used, or is given to what does not load it.
    """
    if not isinstance(given, Mapping) or "settings" not in given:
        return given
    what = given.get("component")
    if isinstance(what, str) and _is_own(what):
        return by_file(what, given)
    return {**given, "in_file": read_settings_file(given["settings"])["settings"]}


def _is_own(what: str) -> bool:
    return not {".", ":"} & {*what}


def _made(given: Any, corpus: Corpus) -> Any:
    """What is asked: a ranker, a retriever, or a function."""
    named = dict(given) if isinstance(given, Mapping) else {"component": given}
    what = named.get("component")
    settings = {key: value for key, value in named.items() if key not in _OWN_KEYS}
    fitted = bool(named.get("fitted"))
    if isinstance(what, str) and _is_own(what):
        return own_component(what, settings, corpus, fitted=fitted)
    if fitted:
        settings["model"] = fitted_model(settings.get("model", "unigram"), corpus)
    if isinstance(what, str):
        return _loaded(what, settings, named.get("settings"), trust=bool(named.get("trust_settings")))
    return what(**settings) if isinstance(what, type) else what


def _loaded(path: str, settings: dict[str, Any], file: Any = None, *, trust: bool = False) -> Any:
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
    if file is not None:
        if not isinstance(found, type):
            raise InvalidInput(f"{path!r:.200} has no settings that a file could hold.")
        in_file = load_settings(file, found, model=settings.pop("model", None), trust=trust)
        return found(**{**in_file, **settings})
    if isinstance(found, type) or (inspect.isfunction(found) and not _needed(found)):
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
    if isinstance(given, PromptRank):
        return True, lambda query, passages, scores: given.rank(
            query, [Path((passage,)) for passage in passages], **_counted(given, scores)
        )
    if hasattr(given, "postprocess_nodes"):
        return True, lambda query, passages, scores: given.postprocess_nodes(_nodes(passages, scores), query_str=query)
    if hasattr(given, "compress_documents"):
        return True, lambda query, passages, scores: given.compress_documents(_documents(passages, scores), query)
    if hasattr(given, "rank"):
        return True, lambda query, passages, scores: given.rank(query, passages, **_counted(given, scores))
    if hasattr(given, "retrieve"):
        return False, lambda query, _passages, _scores: given.retrieve(query)
    if hasattr(given, "search"):
        return False, lambda query, _passages, _scores: given.search(query)
    if hasattr(given, "invoke"):
        return False, lambda query, _passages, _scores: given.invoke(query)
    if callable(given):
        reranks = len(_needed(given)) > 1
        return reranks, lambda query, passages, _scores: given(query, passages) if reranks else given(query)
    raise InvalidInput(
        f"a {type(given).__name__} does not rank: give one of {', '.join(one.name for one in COMPONENTS)}, a dotted "
        "path, a component of LlamaIndex or LangChain, or a function from question and passages to passages."
    )


def _counted(ranker: Any, scores: Scores) -> dict[str, Any]:
    return {"scores": scores} if scores is not None and getattr(ranker, "prior", None) is not None else {}


def _nodes(passages: Sequence[Passage], scores: Scores) -> list[Any]:
    schema = require("llama_index.core.schema", "llama-index")
    return [
        schema.NodeWithScore(
            node=schema.TextNode(text=p.text, id_=p.id, metadata={"title": p.title} if p.title else {}),
            score=None if scores is None else scores[place],
        )
        for place, p in enumerate(passages)
    ]


def _documents(passages: Sequence[Passage], scores: Scores) -> list[Any]:
    documents = require("langchain_core.documents", "langchain")
    found = []
    for place, p in enumerate(passages):
        metadata: dict[str, Any] = {"id": p.id} | ({"title": p.title} if p.title else {})
        if scores is not None:
            metadata["relevance_score"] = scores[place]
        found.append(documents.Document(page_content=p.text, id=p.id, metadata=metadata))
    return found


def as_found(brought: Any, known: Corpus, name: str) -> Found:
    """What a component returned, as passages.

    Raises:
        InvalidInput: it is no list, or an item is nothing that can be read.
    """
    if isinstance(brought, str | Mapping) or not isinstance(brought, Iterable):
        raise InvalidInput(f"{name} returned a {type(brought).__name__}, not a list.")
    usage = getattr(brought, "usage", None)
    found = Found([], [], usage=dict(usage.as_metadata()) if usage else {})
    seen = set()
    for item in brought:
        passage, score, details = _read(item, known.passages, name)
        if passage.id not in known.passages:  # perhaps a copy that has lost its id
            passage = known.by_text.get(passage.text, passage)
        if passage.id not in seen:
            seen.add(passage.id)
            found.passages.append(passage)
            found.scores.append(score if score is not None and math.isfinite(score) else None)
            found.items.append(item)
        if not found.usage and isinstance(details.get("usage"), Mapping):
            found.usage = dict(details["usage"])
    return found


def _read(item: Any, known: Mapping[str, Passage], name: str) -> tuple[Passage, float | None, dict[str, Any]]:
    if isinstance(item, Ranked):
        passage = item.passage.passages[0] if isinstance(item.passage, Path) else item.passage
        return known.get(passage.id, passage), item.score, item.details
    if isinstance(item, Passage):
        return item, None, {}
    if isinstance(item, MergedSection):
        passage, _, _ = _read(item.section_id, known, name)
        return passage, item.score, {}
    if isinstance(item, str):
        if item not in known:
            raise InvalidInput(f"{name} returned the id {item!r:.200}, which no passage has.")
        return known[item], None, {}
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Passage | str):
        passage, _, _ = _read(item[0], known, name)
        return passage, float(item[1]), {}
    node, document_text = getattr(item, "node", None), getattr(item, "page_content", None)
    if node is not None:  # LlamaIndex
        names = (node.node_id, node.metadata.get("id"), getattr(node, "ref_doc_id", None))
        return _named(names, node.get_content(), known), item.score, {}
    if document_text is not None:  # LangChain
        score = item.metadata.get("relevance_score", item.metadata.get("score"))
        ids = (getattr(item, "id", None), item.metadata.get("id"))
        return _named(ids, document_text, known), None if score is None else float(score), {}
    raise InvalidInput(f"{name} returned a {type(item).__name__}, which is no passage, node, document or id.")


def _reason(item: Any, asked: Request) -> Explanation | None:
    """Of what a host's component brought: LlamaIndex tells beside its nodes, LangChain in its documents."""
    node = getattr(item, "node", None)
    if node is not None:
        return asked.found.get(node.node_id)
    told = getattr(item, "metadata", {}).get("drillrank_explanation") if asked.understood else None
    return None if told is None else Explanation.from_dict(told)


def _named(ids: Sequence[Any], text: str, known: Mapping[str, Passage]) -> Passage:
    for id_ in ids:
        if isinstance(id_, str) and id_ in known:
            return known[id_]
    return Passage(text, id=next((str(id_) for id_ in ids if id_), None))  # type: ignore[arg-type]
