"""Retrieval together with generation, as both hosts do it."""

from __future__ import annotations

from typing import Any, cast

from drillrank.generation import generated_passages
from drillrank.hosts.lookups import THE_QUESTION, Answer, Store, answered
from drillrank.hosts.settings import GenerationSettings
from drillrank.llm import Requests, Retrieve, together
from drillrank.passages import Passage, check_query


def retrieved_and_generated(
    settings: GenerationSettings, query: str, n: int, store: Store
) -> Requests[tuple[Answer, list[Passage]]]:
    """What a retriever finds, and passages that an LLM writes at the same time.

    Args:
        settings: Of the component.
        query: The question.
        n: Passages to write, one call each.
        store: The retriever.

    Raises:
        InvalidInput: the query is blank.
    """
    written = generated_passages(check_query(query), n, settings.prompts, settings.on_failure)
    retrieval = answered(_retrieval(), store.handlers)
    found, passages = yield from together([cast("Requests[Any]", retrieval), written])
    return found, passages


def _retrieval() -> Requests[Answer]:
    found: Answer
    [found] = yield [Retrieve(THE_QUESTION, 0)]
    return found
