"""Settings of the components, for their argument `settings=`. A mapping of their fields works, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.prompts import BasePromptTemplate

from drillrank.errors import InvalidInput
from drillrank.frameworks import settings
from drillrank.frameworks.metadata import check_keys
from drillrank.multihop.path_settings import MISSING_PROMPT
from drillrank.prompts import Template
from drillrank.rerank.relevance import RelevanceSettings
from drillrank.settings import Settings


@dataclass(frozen=True, kw_only=True)
class ScoreSettings(Settings):
    """Settings of all components that score documents.

    Attributes:
        score_key: Metadata key of the score. With None, no metadata depend on the question.
    """

    score_key: str | None = "relevance_score"

    def __post_init__(self) -> None:
        if self.score_key is not None:
            check_keys(score_key=self.score_key)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class MultiViewRetrieverSettings(ScoreSettings, settings.ExpansionSettings):
    """Settings of `MultiViewRetriever`, together with `drillrank.frameworks.settings.ExpansionSettings`."""


@dataclass(frozen=True, kw_only=True)
class DocumentSettings(ScoreSettings):
    """Settings of all components that read documents.

    Attributes:
        title_key: Metadata key of the title.
        metadata_fields: Metadata keys that the model reads in addition to the text.
    """

    title_key: str = "title"
    metadata_fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_keys(title_key=self.title_key)
        keys: object = self.metadata_fields
        if isinstance(keys, str) or not all(isinstance(key, str) for key in self.metadata_fields):
            raise InvalidInput(f"metadata_fields must be metadata keys, got {keys!r:.200}.")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class RerankSettings(DocumentSettings, settings.BaseRerankSettings):
    """Settings of every reranker."""


@dataclass(frozen=True, kw_only=True)
class RelevanceRerankSettings(RerankSettings, RelevanceSettings):
    """Settings of `RelevanceRerank`, including `drillrank.rerank.relevance.RelevanceSettings`."""


@dataclass(frozen=True, kw_only=True)
class BRMGRRerankSettings(RerankSettings, settings.GeneratedRecordSettings):
    """Settings of `BRMGRRerank`, including `drillrank.rerank.brmgr.BRMGRSettings`."""


@dataclass(frozen=True, kw_only=True)
class BRMGRRetrieverSettings(settings.GenerationSettings, BRMGRRerankSettings):
    """Settings of `BRMGRRetriever`, including those for generating documents."""


@dataclass(frozen=True, kw_only=True)
class PromptRankRerankSettings(RerankSettings, settings.LinkedRecordSettings):
    """Settings of `PromptRankRerank`, including those of `drillrank.PromptRank` and `drillrank.PathSearch`."""


@dataclass(frozen=True, kw_only=True)
class PromptRankRetrieverSettings(DocumentSettings, settings.PathRetrieverSettings):
    """Settings of `PromptRankRetriever`, including those of `drillrank.PromptRank` and `drillrank.PathSearch`.

    Attributes:
        missing_prompt: Prompt that asks what the best path lacks, with `{documents}` and `{question}`.
    """

    missing_prompt: BasePromptTemplate[Any] | Template = MISSING_PROMPT  # type: ignore[assignment]  # or the framework's


@dataclass(frozen=True, kw_only=True)
class D3RetrieverSettings(ScoreSettings, settings.BaseD3RetrieverSettings):
    """Settings of `D3Retriever`.

    Attributes:
        section_prompt: Prompt that asks for sections, with `{outline}` and `{question}`; None means the paper's.
        paragraph_prompt: Prompt that asks for paragraphs, with `{paragraphs}` and `{question}`.
    """

    section_prompt: BasePromptTemplate[Any] | Template | None = None  # type: ignore[assignment]  # or the framework's
    paragraph_prompt: BasePromptTemplate[Any] | Template | None = None  # type: ignore[assignment]
