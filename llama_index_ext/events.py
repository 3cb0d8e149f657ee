"""Instrumentation events: what drilling down, path search and self-ask do, step by step, for any event handler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import NodeWithScore

from drillrank.explanation import Explanation, Node
from drillrank.explanation.explanations import explanation_request

dispatcher = get_dispatcher(__name__)


class _Named(BaseEvent):
    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
        return cls.__name__


class D3StepEvent(_Named):
    """One step of drilling down is done.

    Attributes:
        kind: `"documents"`, `"sections"`, `"guard"`, `"summaries"`, `"paragraphs"`, `"monot5"` or `"likelihood"`.
        n_candidates: Number of documents, sections or paragraphs to choose from.
        chosen: Names of the chosen documents and sections; of paragraphs, the document's number and the offset.
        problems: What the LLM did wrong and what was done about it.
    """

    kind: str
    n_candidates: int
    chosen: list[str]
    problems: list[str]


class D3EndEvent(_Named):
    """Drilling down is done; there may be no node that tells what it cost.

    Attributes:
        usage: `prompt_tokens`, `completion_tokens`, `llm_calls`, and `tokens_estimated` if it is so.
        problems: All that the LLM did wrong and what was done about it.
        found: False if the documents speak of another subject, or if there is no evidence. None if terms and cosines
            cannot tell.
        confidence: Probability that the documents answer the question. None if an LLM chose the evidence.
    """

    usage: dict[str, int | bool]
    problems: list[str]
    found: bool | None = None
    confidence: float | None = None


class PathHopEvent(_Named):
    """One hop of a path search has been scored.

    Attributes:
        query: The question.
        hop: 1 for single nodes.
        paths: How many paths were scored.
        best_path: Node ids of the best of them.
        best_score: Its score.
    """

    query: str
    hop: int
    paths: int
    best_path: list[str]
    best_score: float


class ExplanationEvent(_Named):
    """Why nodes stand where they stand: sent by components with `explain=True`, behind everything else.

    Attributes:
        query: The question.
        node_ids: The nodes, best first.
        explanations: One for each node, as `drillrank.explanation.Explanation.to_dict` gives it; None for one that
            was not found itself, but stands around another one.
        tree: Of `D3Retriever`: documents, sections and paragraphs in pre-order, and what became of them.
    """

    query: str
    node_ids: list[str]
    explanations: list[dict[str, Any] | None]
    tree: list[dict[str, Any]]


class SelfAskStepEvent(_Named):
    """A follow-up question is answered.

    Attributes:
        question: As the LLM asked it.
        answer: From the nodes; empty if there is none.
        node_ids: What the retriever found.
    """

    question: str
    answer: str
    node_ids: list[str]


def send_explanations(
    query: str, nodes: Sequence[NodeWithScore], why: Sequence[Explanation | None], tree: Sequence[Node] = ()
) -> None:
    """Send the event of one question."""
    ids = [node.node.node_id for node in nodes]
    if (current_request := explanation_request.get()) is not None:
        current_request.explanation_by_id |= {
            id_: reason for id_, reason in zip(ids, why, strict=True) if reason is not None
        }
    dispatcher.event(
        ExplanationEvent(
            query=query,
            node_ids=ids,
            explanations=[None if reason is None else reason.to_dict() for reason in why],
            tree=list(map(asdict, tree)),
        )
    )
