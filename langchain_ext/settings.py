"""The rarely touched settings of the components, given as `settings=`, as such or by name."""

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
    """Of all that scores documents.

    Attributes:
        score_key: Metadata key of the score; None adds nothing that depends on the question.
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
    """Of all that reads documents.

    Attributes:
        title_key: Metadata key of the title.
        metadata_fields: Metadata keys that the model reads, too.
    """

    title_key: str = "title"
    metadata_fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_keys(title_key=self.title_key)
        fields: object = self.metadata_fields
        if isinstance(fields, str) or not all(isinstance(key, str) for key in self.metadata_fields):
            raise InvalidInput(f"metadata_fields are metadata keys, not {fields!r:.200}.")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class RerankSettings(DocumentSettings, settings.BaseRerankSettings):
    """Of every reranker."""


@dataclass(frozen=True, kw_only=True)
class RelevanceRerankSettings(RerankSettings, RelevanceSettings):
    """Of `RelevanceRerank`: `drillrank.rerank.relevance.RelevanceSettings`, too."""


@dataclass(frozen=True, kw_only=True)
class BRMGRRerankSettings(RerankSettings, settings.GeneratedRecordSettings):
    """Of `BRMGRRerank`: `drillrank.rerank.brmgr.BRMGRSettings`, too."""


@dataclass(frozen=True, kw_only=True)
class BRMGRRetrieverSettings(settings.GenerationSettings, BRMGRRerankSettings):
    """Of `BRMGRRetriever`: how documents are generated, too."""


@dataclass(frozen=True, kw_only=True)
class PromptRankRerankSettings(RerankSettings, settings.LinkedRecordSettings):
    """Of `PromptRankRerank`: those of `drillrank.PromptRank` and `drillrank.PathSearch`, too."""


@dataclass(frozen=True, kw_only=True)
class PromptRankRetrieverSettings(DocumentSettings, settings.PathRetrieverSettings):
    """Of `PromptRankRetriever`: those of `drillrank.PromptRank` and `drillrank.PathSearch`, too.

    Attributes:
        missing_prompt: Asks the LLM what the best path still lacks: with `{documents}` and `{question}`.
    """

    missing_prompt: BasePromptTemplate[Any] | Template = MISSING_PROMPT  # type: ignore[assignment]  # the host's, too


@dataclass(frozen=True, kw_only=True)
class D3RetrieverSettings(ScoreSettings, settings.BaseD3RetrieverSettings):
    """Of `D3Retriever`.

    Attributes:
        section_prompt: Asks for sections: with `{outline}` and `{question}`; None is the paper's.
        paragraph_prompt: Asks for paragraphs: with `{paragraphs}` and `{question}`.
    """

    section_prompt: BasePromptTemplate[Any] | Template | None = None  # type: ignore[assignment]  # the host's, too
    paragraph_prompt: BasePromptTemplate[Any] | Template | None = None  # type: ignore[assignment]
