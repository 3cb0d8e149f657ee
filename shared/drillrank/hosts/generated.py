"""Settings that both hosts' components of BRMGR have beside the core's."""

from __future__ import annotations

from typing import Any, cast

from drillrank.generation import generated_passages
from drillrank.hosts.keys import check_keys, prefixed
from drillrank.hosts.lookups import THE_QUESTION, Answer, Store
from drillrank.hosts.settings import ExplainSettings
from drillrank.llm import Requests, Retrieve, answered
from drillrank.passages import Passage, check_query
from drillrank.prompts import GENREAD_PROMPTS, check_question_templates
from drillrank.rerank.brmgr import BRMGRSettings
from drillrank.settings import LLMSettings, declared, setting
from drillrank.views.llm_views import together


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
