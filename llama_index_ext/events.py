"""Instrumentation events for the steps of drilling down, path search, self-ask and explanations."""

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


class _ComponentEvent(BaseEvent):
    @classmethod
    def class_name(cls) -> str:
        """Return the name used in serialisation."""
        return cls.__name__


class D3StepEvent(_ComponentEvent):
    """Event after a step of drilling down.

    Attributes:
        kind: `"documents"`, `"sections"`, `"guard"`, `"summaries"`, `"paragraphs"`, `"monot5"` or `"likelihood"`.
        n_candidates: Number of documents, sections or paragraphs to choose from.
        chosen: Names of the chosen documents and sections, and document number with offset of each chosen paragraph.
        problems: Mistakes of the LLM and the reaction to each.
    """

    kind: str
    n_candidates: int
    chosen: list[str]
    problems: list[str]


class D3EndEvent(_ComponentEvent):
    """Event after drilling down. It reports the costs even if there are no results.

    Attributes:
        usage: `prompt_tokens`, `completion_tokens` and `llm_calls`, with `tokens_estimated` if tokens are estimates.
        problems: All mistakes of the LLM and the reaction to each.
        found: False if the documents are about another subject or contain no evidence. None if terms and cosines
            cannot tell.
        confidence: Probability that the documents answer the question. None if an LLM chose the evidence.
    """

    usage: dict[str, int | bool]
    problems: list[str]
    found: bool | None = None
    confidence: float | None = None


class PathHopEvent(_ComponentEvent):
    """Event after scoring the paths of one hop.

    Attributes:
        query: The question.
        hop: Number of nodes in each path.
        paths: Number of scored paths.
        best_path: Node ids of the best path.
        best_score: Score of the best path.
    """

    query: str
    hop: int
    paths: int
    best_path: list[str]
    best_score: float


class ExplanationEvent(_ComponentEvent):
    """Event with explanations of the ranks, sent last by components with `explain=True`.

    Attributes:
        query: The question.
        node_ids: Ids of the results, best first.
        explanations: Result of `drillrank.explanation.Explanation.to_dict` for each node; None for a node that was
            added as the neighbor of a result.
        tree: Documents, sections and paragraphs in pre-order, with the decision on each; only from
            `D3Retriever`.
    """

    query: str
    node_ids: list[str]
    explanations: list[dict[str, Any] | None]
    tree: list[dict[str, Any]]


class SelfAskStepEvent(_ComponentEvent):
    """Event after a follow-up question was answered.

    Attributes:
        question: Question of the LLM.
        answer: Answer from the nodes; empty if they contain none.
        node_ids: Ids of the retrieved nodes.
    """

    question: str
    answer: str
    node_ids: list[str]


def send_explanations(
    query: str, nodes: Sequence[NodeWithScore], explanations: Sequence[Explanation | None], tree: Sequence[Node] = ()
) -> None:
    """Send the `ExplanationEvent` of one question."""
    ids = [node.node.node_id for node in nodes]
    if (current_request := explanation_request.get()) is not None:
        current_request.explanation_by_id |= {
            id_: explanation for id_, explanation in zip(ids, explanations, strict=True) if explanation is not None
        }
    dispatcher.event(
        ExplanationEvent(
            query=query,
            node_ids=ids,
            explanations=[None if explanation is None else explanation.to_dict() for explanation in explanations],
            tree=list(map(asdict, tree)),
        )
    )
