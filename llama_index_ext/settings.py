"""Settings of the components, for their argument `settings=`. A mapping of their fields works, too."""

from __future__ import annotations

from dataclasses import dataclass

from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import MetadataMode

from drillrank.errors import InvalidInput
from drillrank.frameworks import settings
from drillrank.frameworks.metadata import check_keys
from drillrank.multihop.path_settings import MISSING_PROMPT
from drillrank.prompts import Template
from drillrank.rerank.relevance import RelevanceSettings
from drillrank.settings import Settings


@dataclass(frozen=True, kw_only=True)
class MetadataModeSettings(Settings):
    """Settings of all components that read nodes.

    Attributes:
        metadata_mode: Metadata that the model reads.
    """

    metadata_mode: MetadataMode = MetadataMode.EMBED

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "metadata_mode", MetadataMode(self.metadata_mode))
        except ValueError as problem:
            raise InvalidInput(f"metadata_mode must be a MetadataMode, got {self.metadata_mode!r:.200}.") from problem
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class NodeRerankSettings(MetadataModeSettings, settings.BaseRerankSettings):
    """Settings of every reranker.

    Attributes:
        keep_retrieval_score: Keep the old score as metadata `retrieval_score`.
    """

    keep_retrieval_score: bool = False

    def __post_init__(self) -> None:
        settings.check_switch(keep_retrieval_score=self.keep_retrieval_score)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class RerankSettings(NodeRerankSettings):
    """Settings of rerankers that score single nodes.

    Attributes:
        title_key: Metadata key of the title, which fills `{title}` in prompts and is then not read with the other
            metadata. None is `"title"` with `preset="paper"`, and no title otherwise.
    """

    title_key: str | None = None

    def __post_init__(self) -> None:
        if self.title_key is not None:
            check_keys(title_key=self.title_key)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class RelevanceRerankSettings(RerankSettings, RelevanceSettings):
    """Settings of `RelevanceRerank`, including `drillrank.rerank.relevance.RelevanceSettings`."""


@dataclass(frozen=True, kw_only=True)
class BRMGRRerankSettings(RerankSettings, settings.GeneratedRecordSettings):
    """Settings of `BRMGRRerank`, including `drillrank.rerank.brmgr.BRMGRSettings`."""


@dataclass(frozen=True, kw_only=True)
class BRMGRRetrieverSettings(settings.GenerationSettings, BRMGRRerankSettings):
    """Settings of `BRMGRRetriever`, including those for generating passages."""


@dataclass(frozen=True, kw_only=True)
class PromptRankRerankSettings(NodeRerankSettings, settings.LinkedRecordSettings):
    """Settings of `PromptRankRerank`, including those of `drillrank.PromptRank` and `drillrank.PathSearch`.

    Attributes:
        metadata_mode: Metadata that the model reads in addition to the title.
    """

    metadata_mode: MetadataMode = MetadataMode.NONE


@dataclass(frozen=True, kw_only=True)
class PromptRankRetrieverSettings(MetadataModeSettings, settings.PathRetrieverSettings):
    """Settings of `PromptRankRetriever`, including those of `drillrank.PromptRank` and `drillrank.PathSearch`.

    Attributes:
        metadata_mode: Metadata that the model reads in addition to the title.
        missing_prompt: Prompt that asks what the best path lacks, with `{documents}` and `{question}`.
    """

    metadata_mode: MetadataMode = MetadataMode.NONE
    missing_prompt: BasePromptTemplate | Template = MISSING_PROMPT  # type: ignore[assignment]  # or the framework's


@dataclass(frozen=True, kw_only=True)
class MultiViewRetrieverSettings(settings.ExpansionSettings):
    """Settings of `MultiViewRetriever`: those of `drillrank.frameworks.settings.ExpansionSettings`."""


@dataclass(frozen=True, kw_only=True)
class D3RetrieverSettings(settings.BaseD3RetrieverSettings):
    """Settings of `D3Retriever`.

    Attributes:
        section_prompt: Prompt that asks for sections, with `{outline}` and `{question}`; None means the paper's.
        paragraph_prompt: Prompt that asks for paragraphs, with `{paragraphs}` and `{question}`.
    """

    section_prompt: BasePromptTemplate | Template | None = None  # type: ignore[assignment]  # or the framework's
    paragraph_prompt: BasePromptTemplate | Template | None = None  # type: ignore[assignment]
