"""Systems of a comparison: components by name, objects of both frameworks, and functions, behind one interface."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from drillrank.components import COMPONENTS
from drillrank.errors import DrillrankError, InvalidInput, check_positive, require
from drillrank.evaluation.corpora import EvaluationCorpus
from drillrank.evaluation.named_components import (
    DocumentComponent,
    build_component,
    required_parameters,
    resolve_settings,
)
from drillrank.explanation import Explanation, Explanations
from drillrank.explanation.explanations import ExplanationRequest, explanation_request, find_explainer
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.promptrank import PromptRank
from drillrank.views import MergedSection

Scores = Sequence[float] | None


@dataclass(frozen=True)
class Task:
    """Question to a system.

    Attributes:
        query: The question.
        candidates: Passages to rank. A system that searches ignores them.
        scores: Score of the first stage for each candidate; None if unknown.
        document: Name of the only document to search; None for the whole corpus.
    """

    query: str
    candidates: Sequence[Passage] = ()
    scores: Scores = None
    document: str | None = None

    @property
    def candidate_scores(self) -> Sequence[float | None]:
        """Score of each candidate; None if unknown."""
        return self.scores or [None] * len(self.candidates)


Rank = Callable[[Task], Any]
"""Function from a task to whatever a component returns."""


@dataclass
class SystemResult:
    """Results of a component for one question, best first.

    Attributes:
        passages: Different passages.
        scores: Score of each passage; None if it has no finite score.
        usage: Tokens and calls of an LLM, as far as the component counts them.
        items: The component's own object for each passage.
        is_explainable: True if the component can explain its results.
    """

    passages: list[Passage]
    scores: list[float | None]
    usage: dict[str, int] = field(default_factory=dict)
    items: list[Any] = field(default_factory=list)
    is_explainable: bool = False


@dataclass
class System:
    """Component of a comparison.

    Attributes:
        name: Name in the report.
        specification: Description of the component, including the content of its settings file.
        reranks: True if the component ranks candidates, and False if it searches.
        rank: Function that asks the component.
        depth: Number of candidates that a reranker sees, or of results that count for a search. None for all.
        seconds: Time of loading and indexing.
        sections: Passages that only this component has, by id.
    """

    name: str
    specification: Any
    reranks: bool
    rank: Rank
    depth: int | None = None
    seconds: float = 0.0
    sections: Mapping[str, Passage] = field(default_factory=dict)

    def ask(self, task: Task, corpus: EvaluationCorpus, n_explained: int = 0) -> tuple[SystemResult, Explanations]:
        """Return the results for one question, and explanations of the first ones.

        Args:
            task: The question, with all candidates.
            corpus: Corpus within the document of the question. Results become passages of it, or of the candidates.
            n_explained: Number of results that our components explain, whatever their options are.
        """
        candidates = list(task.candidates[: self.depth]) if self.reranks else []
        scores = None if task.scores is None else task.scores[: len(candidates)]
        request = ExplanationRequest(enabled=n_explained > 0)
        token = explanation_request.set(request)
        try:
            returned = self.rank(Task(task.query, candidates, scores, task.document))
            if inspect.isawaitable(returned):
                returned = _wait_for(returned)
        finally:
            explanation_request.reset(token)
        searched = EvaluationCorpus({passage.id: passage for passage in candidates}) if candidates else corpus
        result = _read_results(returned, searched, self.sections, self.name)
        if not self.reranks:
            for results in (result.passages, result.scores, result.items):
                del results[self.depth or len(results) :]
        explainer = find_explainer(returned)
        result.is_explainable = request.is_supported or explainer is not None
        items = result.items[:n_explained]
        if items and explainer is not None:
            return result, explainer(items)
        explanations = [one for item in items if (one := _read_explanation(item, request)) is not None]
        return result, Explanations(explanations, task.query, request.tree)


def _wait_for(returned: Any) -> Any:
    """Return the result of an awaitable, even inside a running event loop, as in a notebook."""

    async def await_it() -> Any:
        return await returned

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, asyncio.run, await_it()).result()


def build_system(
    name: str, specification: Any, corpus: EvaluationCorpus, documents: Iterable[str | None] = (None,)
) -> System:
    """Load a component and index what it searches.

    Args:
        name: Name in the report.
        specification: One of our components by name (`"UPR"`), a dotted path (`"my_app.search:reranker"`), a mapping
            with `component` (one of these) and settings, or an object: one of our rankers, a node postprocessor or
            retriever of LlamaIndex, a document compressor or retriever of LangChain, or a function from a question and
            passages to passages or ids. A mapping may also contain `depth`, the number of candidates to show;
            `fitted`, to fit a lexical model to the corpus; `settings`, a file that `drillrank tune` wrote, with
            `trust_settings` as for `load_settings`; and `version`, which distinguishes versions of your code in a file
            of results (`drillrank.evaluation.experiment`).
        corpus: Corpus to search.
        documents: Names of the documents that questions are about; None for the whole corpus.

    Raises:
        InvalidInput: The component does not exist or does not rank, or a setting is unknown.

    >>> build_system("ours", {"component": "UPR", "prior": "retrieval"}, EvaluationCorpus()).reranks
    True
    """
    start = time.perf_counter()
    try:
        settings = resolve_settings(specification)
        built = build_component(settings, corpus, documents)
        reranks, rank = _find_interface(built)
    except (InvalidInput, TypeError) as error:
        raise InvalidInput(f"{name}: {error}") from error
    except DrillrankError:
        raise
    except Exception as error:  # a class or function of the user may raise any error
        raise InvalidInput(f"{name} cannot be built: {type(error).__name__}: {error}") from error
    depth = settings.get("depth")
    if depth is not None:
        check_positive(depth=depth)
    sections = built.sections if isinstance(built, DocumentComponent) else {}
    return System(name, settings, reranks, rank, depth, time.perf_counter() - start, sections)


def _find_interface(built: Any) -> tuple[bool, Rank]:
    """Return True if a component reranks and False if it searches, and the function that asks it."""

    def prior_scores(task: Task) -> dict[str, Any]:
        return {"scores": task.scores} if task.scores is not None and getattr(built, "prior", None) is not None else {}

    if isinstance(built, DocumentComponent):
        return False, lambda task: built.search(task.query, task.document)
    if isinstance(built, PromptRank):
        return True, lambda task: built.rank(
            task.query, [Path((one,)) for one in task.candidates], **prior_scores(task)
        )
    if hasattr(built, "postprocess_nodes"):
        return True, lambda task: built.postprocess_nodes(_build_nodes(task), query_str=task.query)
    if hasattr(built, "compress_documents"):
        return True, lambda task: built.compress_documents(_build_documents(task), task.query)
    if hasattr(built, "rank"):
        return True, lambda task: built.rank(task.query, task.candidates, **prior_scores(task))
    for name in ("retrieve", "search", "invoke"):
        if method := getattr(built, name, None):
            return False, lambda task, method=method: method(task.query)
    if callable(built) and len(required_parameters(built)) > 1:
        return True, lambda task: built(task.query, task.candidates)
    if callable(built):
        return False, lambda task: built(task.query)
    raise InvalidInput(
        f"A component must rank, got a {type(built).__name__}. Pass one of "
        f"{', '.join(one.name for one in COMPONENTS)}, a dotted path, a component of LlamaIndex or LangChain, or a "
        "function from a question and passages to passages."
    )


def _build_nodes(task: Task) -> list[Any]:
    schema = require("llama_index.core.schema", "llama-index")
    return [
        schema.NodeWithScore(
            node=schema.TextNode(text=one.text, id_=one.id, metadata={"title": one.title} if one.title else {}),
            score=score,
        )
        for one, score in zip(task.candidates, task.candidate_scores, strict=True)
    ]


def _build_documents(task: Task) -> list[Any]:
    document_class = require("langchain_core.documents", "langchain").Document
    documents = []
    for one, score in zip(task.candidates, task.candidate_scores, strict=True):
        values = {"id": one.id, "title": one.title or None, "relevance_score": score}
        metadata = {key: value for key, value in values.items() if value is not None}
        documents.append(document_class(page_content=one.text, id=one.id, metadata=metadata))
    return documents


# Results


def _read_results(returned: Any, corpus: EvaluationCorpus, sections: Mapping[str, Passage], name: str) -> SystemResult:
    """Convert what a component returned to passages."""
    if isinstance(returned, str | Mapping) or not isinstance(returned, Iterable):
        raise InvalidInput(f"{name} must return a list, got a {type(returned).__name__}.")
    usage = getattr(returned, "usage", None)
    result = SystemResult([], [], usage=dict(usage.as_metadata()) if usage else {})
    passages = ChainMap(corpus.passages, dict(sections))
    ids: set[str] = set()
    for item in returned:
        passage, score = _read_item(item, passages, name)
        if passage.id not in passages:  # it may be a copy that has lost its id
            passage = corpus.by_text.get(passage.text, passage)
        if passage.id not in ids:
            ids.add(passage.id)
            result.passages.append(passage)
            result.scores.append(score if score is not None and math.isfinite(score) else None)
            result.items.append(item)
        if isinstance(item, Ranked) and not result.usage and isinstance(item.details.get("usage"), Mapping):
            result.usage = dict(item.details["usage"])
    return result


def _read_item(item: Any, passages: Mapping[str, Passage], name: str) -> tuple[Passage, float | None]:
    """Return the passage and the score of one result."""
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Passage | str):
        return _read_item(item[0], passages, name)[0], float(item[1])
    if isinstance(item, Ranked):
        passage = item.passage.passages[0] if isinstance(item.passage, Path) else item.passage
        return passages.get(passage.id, passage), item.score
    if isinstance(item, Passage):
        return item, None
    if isinstance(item, MergedSection):
        return passages[item.section_id], item.score
    if isinstance(item, str):
        if item not in passages:
            raise InvalidInput(f"{name} must return ids of passages, got {item!r:.200}.")
        return passages[item], None
    if (node := getattr(item, "node", None)) is not None:  # LlamaIndex
        ids, text = (node.node_id, node.metadata.get("id"), getattr(node, "ref_doc_id", None)), node.get_content()
        score = item.score
    elif (text := getattr(item, "page_content", None)) is not None:  # LangChain
        score = item.metadata.get("relevance_score", item.metadata.get("score"))
        ids = (getattr(item, "id", None), item.metadata.get("id"), None)
    else:
        raise InvalidInput(f"{name} must return passages, nodes, documents or ids, got a {type(item).__name__}.")
    known_passage = next((passages[id_] for id_ in ids if isinstance(id_, str) and id_ in passages), None)
    own_id: Any = next((str(id_) for id_ in ids if id_), None)
    return known_passage or Passage(text, id=own_id), None if score is None else float(score)


def _read_explanation(item: Any, request: ExplanationRequest) -> Explanation | None:
    """Return the explanation of a result: LlamaIndex reports it in the request, LangChain in the document."""
    node = getattr(item, "node", None)
    if node is not None:
        return request.explanation_by_id.get(node.node_id)
    exported = getattr(item, "metadata", {}).get("drillrank_explanation") if request.is_supported else None
    return None if exported is None else Explanation.from_dict(exported)
