"""Rarely touched settings of both hosts' components: the core's, and what records need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput, OnFailure, check_limits, check_positive
from drillrank.frameworks.metadata import check_keys, prefixed
from drillrank.generation.passages import GENREAD_PROMPTS
from drillrank.likelihood import LanguageModel
from drillrank.multihop.path_settings import PathSettings
from drillrank.passages import check_top_n
from drillrank.prompts import check_question_templates
from drillrank.rerank.brmgr import BRMGRSettings
from drillrank.rerank.prior import Prior, check_prior
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, Demonstration, Ensemble, PromptRank, PromptRankSettings
from drillrank.settings import Settings, check_one_of
from drillrank.views import MAX_EXPANDED_TOKENS, Expansion, SectionExpander, ViewSettings


@dataclass(frozen=True, kw_only=True)
class BaseRerankSettings(Settings):
    """Of every reranker.

    Attributes:
        score_threshold: Keep what has at least this score.
    """

    score_threshold: float | None = None


@dataclass(frozen=True, kw_only=True)
class GeneratedRecordSettings(BRMGRSettings):
    """How retrieved records and generated ones are merged, and how they are told apart.

    Attributes:
        origin_key: Metadata key that says `"generated"` of what an LLM wrote.

    Raises:
        InvalidInput: as `BRMGRSettings`, or the key is no string.
    """

    origin_key: str = prefixed("origin")

    def __post_init__(self) -> None:
        check_keys(origin_key=self.origin_key)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(Settings):
    """How records are generated.

    Attributes:
        prompts: Templates with `{question}` for what is generated; `drillrank.generation.cluster_prompts` makes others.
        on_failure: Where a call fails, or brings nothing of use: `"continue"` with what there is without it, and a
            `DrillrankWarning`; or `"raise"`.
        workers: Most LLM calls at the same time, of one question.

    Raises:
        InvalidInput: a prompt has no place for the question, or a value is not one of those named, or below 1.
    """

    prompts: tuple[str, ...] = GENREAD_PROMPTS
    on_failure: OnFailure = "continue"
    workers: int = 4

    def __post_init__(self) -> None:
        check_question_templates(self.prompts)
        check_one_of(OnFailure, on_failure=self.on_failure)
        check_positive(workers=self.workers)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class LinkedRecordSettings(PathSettings, PromptRankSettings):
    """How paths of records are searched and scored, and where their links and titles stand.

    Attributes:
        instructions: As for `drillrank.PromptRank`.
        ensemble: As for `drillrank.PromptRank`.
        temperature: As for `drillrank.PromptRank`.
        demonstrations: As for `drillrank.PromptRank`.
        links_key: Metadata key with linked ids, a list or comma-separated.
        title_key: Metadata key of the title.

    Raises:
        InvalidInput: as `PathSettings` and `PromptRankSettings`, or a key is no string.
    """

    instructions: tuple[str, ...] = PROMPTRANK_INSTRUCTIONS[:5]
    ensemble: Ensemble = "max"
    temperature: float = 1.0
    demonstrations: tuple[Demonstration, ...] = ()
    links_key: str = "links"
    title_key: str = "title"

    def __post_init__(self) -> None:
        shown: tuple[Any, ...] = self.demonstrations  # mappings from JSON
        read = tuple(Demonstration.from_dict(one) if isinstance(one, Mapping) else one for one in shown)
        object.__setattr__(self, "demonstrations", read)
        check_keys(links_key=self.links_key, title_key=self.title_key)
        super().__post_init__()

    def prompt_rank(self, model: LanguageModel, prior: Prior | None) -> PromptRank:
        """What scores paths."""
        return PromptRank(
            model,
            instructions=self.instructions,
            ensemble=self.ensemble,
            temperature=self.temperature,
            demonstrations=self.demonstrations,
            prior=prior,
            settings=self,
        )


@dataclass(frozen=True, kw_only=True)
class PathRetrieverSettings(LinkedRecordSettings):
    """Of a retriever of paths.

    Attributes:
        prior: What the order of the retrieved says: `"retrieval"`, or None.

    Raises:
        InvalidInput: as `LinkedRecordSettings`, or the prior is unknown.
    """

    prior: Prior | None = None

    def __post_init__(self) -> None:
        check_prior(self.prior)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class SectionSettings(Settings):
    """How documents are put together and sections named.

    Attributes:
        separator: Between the headings of `drillrank_section_path`.
        join_pages: Whether documents that are pages of one file are read as one.

    Raises:
        InvalidInput: a setting is of another type.
    """

    separator: str = " > "
    join_pages: bool = True

    def __post_init__(self) -> None:
        check_separator(self.separator)
        check_switch(join_pages=self.join_pages)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class SplitterSettings(SectionSettings, ViewSettings):
    """Of what cuts documents into views: `drillrank.views.ViewSettings`, too."""


@dataclass(frozen=True, kw_only=True)
class ExpansionSettings(Settings):
    """Settings of `MultiViewRetriever` for the sections around those that it finds.

    Attributes:
        max_expanded_tokens: Largest number of tokens of a section that is returned for one of its subsections, or of a
            section with its neighbors. A larger one is returned in part, around the section that was found.
        separator: Separator of the headings of `drillrank_section_path`, as in the splitter.

    Raises:
        InvalidInput: A value is invalid.
    """

    max_expanded_tokens: int = MAX_EXPANDED_TOKENS
    separator: str = " > "

    def __post_init__(self) -> None:
        check_positive(max_expanded_tokens=self.max_expanded_tokens)
        check_separator(self.separator)
        super().__post_init__()

    def build_expander(self, expand: Expansion | None) -> SectionExpander | None:
        """Return the expander of a retriever; None if sections are not expanded."""
        if expand is None:
            return None
        return SectionExpander(expand, self.max_expanded_tokens, self.separator)


def check_separator(separator: str) -> None:
    """Check a separator of headings.

    Raises:
        InvalidInput: It is empty or not a string.
    """
    if not isinstance(separator, str) or not separator:
        raise InvalidInput(f"separator must be a string that is not empty, got {separator!r:.100}.")


D3SettingsT = TypeVar("D3SettingsT", bound="BaseD3RetrieverSettings")


@dataclass(frozen=True, kw_only=True)
class BaseD3RetrieverSettings(SectionSettings, D3Settings):
    """Settings of `D3Retriever`, together with `drillrank.drilldown.D3Settings`."""

    def with_preset(self: D3SettingsT, preset: Literal["paper"] | None) -> D3SettingsT:
        """Return the settings with a preset of the component; None keeps theirs."""
        return self if preset is None else replace(self, preset=preset)


ResultLimit = int | Literal["auto"] | None
"""Maximum number of results of `D3Retriever`."""

_DEFAULT_RESULTS = 5


def limit_results(top_n: ResultLimit, max_tokens: int | None, settings: BaseD3RetrieverSettings) -> int | None:
    """Return `top_n` as `D3.retrieve` takes it.

    `"auto"` is 5. It is None, which sets no limit, with a token budget and with the paper's preset, whose evidence is
    all that the LLM chose.

    Raises:
        InvalidInput: `top_n` is not "auto", None or a positive number, or `max_tokens` is not positive.

    >>> limit_results("auto", None, BaseD3RetrieverSettings()), limit_results("auto", 900, BaseD3RetrieverSettings())
    (5, None)
    """
    check_limits(max_tokens=max_tokens)
    if top_n != "auto":
        check_top_n(top_n)
        return top_n
    return None if max_tokens is not None or settings.preset == "paper" else _DEFAULT_RESULTS


def check_switch(**switches: object) -> None:
    """Refuse what is neither True nor False.

    Raises:
        InvalidInput: names the first one.
    """
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} is True or False; not {value!r:.100}.")
