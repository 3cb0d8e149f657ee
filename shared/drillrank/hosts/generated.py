"""Settings that both hosts' components of BRMGR have beside the core's."""

from __future__ import annotations

from drillrank.dialogue import LLMSettings
from drillrank.hosts.keys import check_keys, prefixed
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
class GenerationSettings(LLMSettings, GeneratedRecordSettings):
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
