"""The rarely touched settings of the components, given as `settings=`, as such or by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.prompts import BasePromptTemplate

from drillrank.errors import InvalidInput
from drillrank.hosts import settings
from drillrank.hosts.metadata import check_keys
from drillrank.multihop.path_settings import MISSING_PROMPT
from drillrank.prompts import Template
from drillrank.rerank.prior import Prior, check_prior
from drillrank.rerank.relevance import RelevanceSettings
from drillrank.settings import as_settings

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, kw_only=True)
class ScoreSettings:
    """Of all that scores documents.

    Attributes:
        score_key: Metadata key of the score; None adds nothing that depends on the question.
    """

    score_key: str | None = "relevance_score"

    def __post_init__(self) -> None:
        if self.score_key is not None:
            check_keys(score_key=self.score_key)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Settings by name, as JSON has them.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.
        """
        return as_settings(cls, given)


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
        ScoreSettings.__post_init__(self)
        check_keys(title_key=self.title_key)
        fields: object = self.metadata_fields
        if isinstance(fields, str) or not all(isinstance(key, str) for key in self.metadata_fields):
            raise InvalidInput(f"metadata_fields are metadata keys, not {fields!r:.200}.")


@dataclass(frozen=True, kw_only=True)
class RerankSettings(DocumentSettings, settings.RerankSettings):
    """Of every reranker."""


@dataclass(frozen=True, kw_only=True)
class RelevanceRerankSettings(RerankSettings, RelevanceSettings):
    """Of `RelevanceRerank`: `drillrank.rerank.relevance.RelevanceSettings`, too."""

    def __post_init__(self) -> None:
        RerankSettings.__post_init__(self)
        RelevanceSettings.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class BRMGRRerankSettings(RerankSettings, settings.GeneratedRecordSettings):
    """Of `BRMGRRerank`: `drillrank.rerank.brmgr.BRMGRSettings`, too."""

    def __post_init__(self) -> None:
        RerankSettings.__post_init__(self)
        settings.GeneratedRecordSettings.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class BRMGRRetrieverSettings(BRMGRRerankSettings, settings.GenerationSettings):
    """Of `BRMGRRetriever`: how documents are generated, too."""

    def __post_init__(self) -> None:
        BRMGRRerankSettings.__post_init__(self)
        settings.GenerationSettings.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class PromptRankRerankSettings(RerankSettings, settings.LinkedRecordSettings):
    """Of `PromptRankRerank`: those of `drillrank.PromptRank` and `drillrank.PathSearch`, too."""

    def __post_init__(self) -> None:
        RerankSettings.__post_init__(self)
        settings.LinkedRecordSettings.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class PromptRankRetrieverSettings(DocumentSettings, settings.LinkedRecordSettings):
    """Of `PromptRankRetriever`: those of `drillrank.PromptRank` and `drillrank.PathSearch`, too.

    Attributes:
        prior: What the order of the retrieved says: `"retrieval"`, or None.
        missing_prompt: Asks the LLM what the best path still lacks: with `{documents}` and `{question}`.
    """

    prior: Prior | None = None
    missing_prompt: BasePromptTemplate[Any] | Template = MISSING_PROMPT  # type: ignore[assignment]  # the host's, too

    def __post_init__(self) -> None:
        DocumentSettings.__post_init__(self)
        check_prior(self.prior)
        settings.LinkedRecordSettings.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class D3RetrieverSettings(ScoreSettings, settings.D3RetrieverSettings):
    """Of `D3Retriever`.

    Attributes:
        section_prompt: Asks for sections: with `{outline}` and `{question}`; None is the paper's.
        paragraph_prompt: Asks for paragraphs: with `{paragraphs}` and `{question}`.
    """

    section_prompt: BasePromptTemplate[Any] | Template | None = None  # type: ignore[assignment]  # the host's, too
    paragraph_prompt: BasePromptTemplate[Any] | Template | None = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        ScoreSettings.__post_init__(self)
        settings.D3RetrieverSettings.__post_init__(self)
