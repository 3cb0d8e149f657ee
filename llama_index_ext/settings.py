"""The rarely touched settings of the components, given as `settings=`, as such or by name."""

from __future__ import annotations

from dataclasses import dataclass

from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import MetadataMode

from drillrank.errors import InvalidInput
from drillrank.hosts import settings
from drillrank.multihop.path_settings import MISSING_PROMPT
from drillrank.prompts import Template
from drillrank.rerank.prior import Prior, check_prior
from drillrank.rerank.relevance import RelevanceSettings


@dataclass(frozen=True, kw_only=True)
class RerankSettings(settings.RerankSettings):
    """Of every reranker.

    Attributes:
        metadata_mode: Metadata that the model reads.
        keep_retrieval_score: Whether the old score is kept as metadata `retrieval_score`.
    """

    metadata_mode: MetadataMode = MetadataMode.EMBED
    keep_retrieval_score: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata_mode", _mode(self.metadata_mode))
        settings.check_switch(keep_retrieval_score=self.keep_retrieval_score)


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
    """Of `BRMGRRetriever`: how passages are generated, too."""

    def __post_init__(self) -> None:
        BRMGRRerankSettings.__post_init__(self)
        settings.GenerationSettings.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class PromptRankRerankSettings(RerankSettings, settings.LinkedRecordSettings):
    """Of `PromptRankRerank`: those of `drillrank.PromptRank` and `drillrank.PathSearch`, too.

    Attributes:
        metadata_mode: Metadata that the model reads beside the title.
    """

    metadata_mode: MetadataMode = MetadataMode.NONE

    def __post_init__(self) -> None:
        RerankSettings.__post_init__(self)
        settings.LinkedRecordSettings.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class PromptRankRetrieverSettings(settings.LinkedRecordSettings):
    """Of `PromptRankRetriever`: those of `drillrank.PromptRank` and `drillrank.PathSearch`, too.

    Attributes:
        prior: What the order of the retrieved says: `"retrieval"`, or None.
        metadata_mode: Metadata that the model reads beside the title.
        missing_prompt: Asks the LLM what the best path still lacks: with `{documents}` and `{question}`.
    """

    metadata_mode: MetadataMode = MetadataMode.NONE
    prior: Prior | None = None
    missing_prompt: BasePromptTemplate | Template = MISSING_PROMPT  # type: ignore[assignment]  # the host's, too

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata_mode", _mode(self.metadata_mode))
        check_prior(self.prior)
        settings.LinkedRecordSettings.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class D3RetrieverSettings(settings.D3RetrieverSettings):
    """Of `D3Retriever`.

    Attributes:
        section_prompt: Asks for sections: with `{outline}` and `{question}`; None is the paper's.
        paragraph_prompt: Asks for paragraphs: with `{paragraphs}` and `{question}`.
    """

    section_prompt: BasePromptTemplate | Template | None = None  # type: ignore[assignment]  # the host's, too
    paragraph_prompt: BasePromptTemplate | Template | None = None  # type: ignore[assignment]


def _mode(given: object) -> MetadataMode:
    try:
        return MetadataMode(given)
    except ValueError as problem:
        raise InvalidInput(f"metadata_mode is a MetadataMode, not {given!r:.200}.") from problem
