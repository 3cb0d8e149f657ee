"""The rarely touched settings of the components, given as `settings=`, as such or by name."""

from __future__ import annotations

from dataclasses import dataclass

from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import MetadataMode

from drillrank.errors import InvalidInput
from drillrank.frameworks import settings
from drillrank.multihop.path_settings import MISSING_PROMPT
from drillrank.prompts import Template
from drillrank.rerank.relevance import RelevanceSettings
from drillrank.settings import Settings


@dataclass(frozen=True, kw_only=True)
class ModeSettings(Settings):
    """Of all that reads nodes.

    Attributes:
        metadata_mode: Metadata that the model reads.
    """

    metadata_mode: MetadataMode = MetadataMode.EMBED

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "metadata_mode", MetadataMode(self.metadata_mode))
        except ValueError as problem:
            raise InvalidInput(f"metadata_mode is a MetadataMode, not {self.metadata_mode!r:.200}.") from problem
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class RerankSettings(ModeSettings, settings.BaseRerankSettings):
    """Of every reranker.

    Attributes:
        keep_retrieval_score: Whether the old score is kept as metadata `retrieval_score`.
    """

    keep_retrieval_score: bool = False

    def __post_init__(self) -> None:
        settings.check_switch(keep_retrieval_score=self.keep_retrieval_score)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class RelevanceRerankSettings(RerankSettings, RelevanceSettings):
    """Of `RelevanceRerank`: `drillrank.rerank.relevance.RelevanceSettings`, too."""


@dataclass(frozen=True, kw_only=True)
class BRMGRRerankSettings(RerankSettings, settings.GeneratedRecordSettings):
    """Of `BRMGRRerank`: `drillrank.rerank.brmgr.BRMGRSettings`, too."""


@dataclass(frozen=True, kw_only=True)
class BRMGRRetrieverSettings(settings.GenerationSettings, BRMGRRerankSettings):
    """Of `BRMGRRetriever`: how passages are generated, too."""


@dataclass(frozen=True, kw_only=True)
class PromptRankRerankSettings(RerankSettings, settings.LinkedRecordSettings):
    """Of `PromptRankRerank`: those of `drillrank.PromptRank` and `drillrank.PathSearch`, too.

    Attributes:
        metadata_mode: Metadata that the model reads beside the title.
    """

    metadata_mode: MetadataMode = MetadataMode.NONE


@dataclass(frozen=True, kw_only=True)
class PromptRankRetrieverSettings(ModeSettings, settings.PathRetrieverSettings):
    """Of `PromptRankRetriever`: those of `drillrank.PromptRank` and `drillrank.PathSearch`, too.

    Attributes:
        metadata_mode: Metadata that the model reads beside the title.
        missing_prompt: Asks the LLM what the best path still lacks: with `{documents}` and `{question}`.
    """

    metadata_mode: MetadataMode = MetadataMode.NONE
    missing_prompt: BasePromptTemplate | Template = MISSING_PROMPT  # type: ignore[assignment]  # the host's, too


@dataclass(frozen=True, kw_only=True)
class MultiViewRetrieverSettings(settings.ExpansionSettings):
    """Settings of `MultiViewRetriever`: those of `drillrank.frameworks.settings.ExpansionSettings`."""


@dataclass(frozen=True, kw_only=True)
class D3RetrieverSettings(settings.BaseD3RetrieverSettings):
    """Of `D3Retriever`.

    Attributes:
        section_prompt: Asks for sections: with `{outline}` and `{question}`; None is the paper's.
        paragraph_prompt: Asks for paragraphs: with `{paragraphs}` and `{question}`.
    """

    section_prompt: BasePromptTemplate | Template | None = None  # type: ignore[assignment]  # the host's, too
    paragraph_prompt: BasePromptTemplate | Template | None = None  # type: ignore[assignment]
