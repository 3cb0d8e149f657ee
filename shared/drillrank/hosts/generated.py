"""Settings that both hosts' components of BRMGR have beside the core's."""

from __future__ import annotations

import asyncio

from drillrank.dialogue import LLM, Dialogue, LLMSettings, arun, run
from drillrank.generation import generated_passages
from drillrank.hosts.keys import check_keys, prefixed
from drillrank.hosts.lookups import Answer, Search, Store
from drillrank.hosts.settings import ExplainSettings
from drillrank.passages import Passage, check_query
from drillrank.prompts import GENREAD_PROMPTS, check_question_templates
from drillrank.rerank.brmgr import BRMGRSettings
from drillrank.settings import declared, setting


@declared
class GeneratedRecordSettings(BRMGRSettings):
    """How retrieved records and generated ones are merged, and how they are told apart.

    Raises:
        InvalidInput: as `BRMGRSettings`, or the key is no string.
    """

    origin_key: str = setting(
        default=prefixed("origin"), description='Metadata key that says `"generated"` of what an LLM wrote.'
    )

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_keys(origin_key=self.origin_key)


@declared
class GenerationSettings(ExplainSettings, LLMSettings, GeneratedRecordSettings):
    """How records are generated and merged with those retrieved.

    Raises:
        InvalidInput: as `LLMSettings` and `GeneratedRecordSettings`, or a prompt has no place for the question.
    """

    prompts: tuple[str, ...] = setting(
        default=GENREAD_PROMPTS,
        description="Templates with `{question}` for what is generated; `drillrank.generation.cluster_prompts` makes "
        "others.",
    )

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_question_templates(self.prompts)


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
