"""Retrieval together with generation, as both hosts do it."""

from __future__ import annotations

import asyncio

from drillrank.dialogue import LLM, Dialogue, arun, run
from drillrank.generation import generated_passages
from drillrank.hosts.lookups import Answer, Search, Store
from drillrank.hosts.settings import GenerationSettings
from drillrank.passages import Passage, check_query


def retrieve_and_generate(
    settings: GenerationSettings, query: str, n: int, store: Store, llm: LLM
) -> tuple[Answer, list[Passage]]:
    """What a retriever finds, and passages that an LLM writes.

    Args:
        settings: Of the component.
        query: The question.
        n: Passages to write, one call each.
        store: The retriever.
        llm: Writes.

    Raises:
        InvalidInput: the query is blank.
    """
    dialogue = _written(settings, query, n)
    found = store.answer(Search(0))
    return found, run(dialogue, llm, workers=settings.workers)


async def aretrieve_and_generate(
    settings: GenerationSettings, query: str, n: int, store: Store, llm: LLM
) -> tuple[Answer, list[Passage]]:
    """As `retrieve_and_generate`, both at the same time."""
    writing = asyncio.ensure_future(arun(_written(settings, query, n), llm, workers=settings.workers))
    try:
        found = await store.aanswer(Search(0))
        return found, await writing
    finally:
        writing.cancel()  # of use only if retrieval raised


def _written(settings: GenerationSettings, query: str, n: int) -> Dialogue[list[Passage]]:
    return generated_passages(check_query(query), n, settings.prompts, settings.on_failure)
