"""Instrumentation events: what drilling down, path search and self-ask do, step by step, for any event handler."""

from __future__ import annotations

from llama_index.core.instrumentation.events import BaseEvent


class _Named(BaseEvent):
    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
        return cls.__name__


class D3StepEvent(_Named):
    """One step of drilling down is done.

    Attributes:
        kind: `"documents"`, `"sections"`, `"guard"`, `"summaries"`, `"paragraphs"`, `"monot5"` or `"likelihood"`.
        offered: How many documents, sections or paragraphs there were to choose from.
        chosen: Names of the chosen documents and sections; of paragraphs, the document's number and the offset.
        problems: What the LLM did wrong and what was done about it.
    """

    kind: str
    offered: int
    chosen: list[str]
    problems: list[str]


class D3EndEvent(_Named):
    """Drilling down is done; there may be no node that tells what it cost.

    Attributes:
        usage: `prompt_tokens`, `completion_tokens`, `llm_calls`, and `tokens_estimated` if it is so.
        problems: All that the LLM did wrong and what was done about it.
    """

    usage: dict[str, int | bool]
    problems: list[str]


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
