"""Settings of the components of both frameworks: those of the core, and those for reading and writing records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput, OnFailure, check_limits, check_number, check_on_failure, check_positive, warn
from drillrank.frameworks.metadata import check_keys, prefixed
from drillrank.generation.passages import GENREAD_PROMPTS, SAMPLING_TEMPERATURE
from drillrank.likelihood import LanguageModel
from drillrank.multihop.path_settings import PathSettings
from drillrank.passages import check_top_n
from drillrank.prompts import check_question_templates
from drillrank.rerank.brmgr import BRMGRPreset, BRMGRSettings
from drillrank.rerank.demonstrations import Demonstration
from drillrank.rerank.prior import Prior, check_prior
from drillrank.rerank.promptrank import Ensemble, PromptRank, PromptRankSettings
from drillrank.settings import Settings
from drillrank.text import check_language
from drillrank.views import MAX_EXPANDED_TOKENS, Expansion, SectionExpander, ViewSettings


@dataclass(frozen=True, kw_only=True)
class BaseRerankSettings(Settings):
    """Settings of every reranker.

    Attributes:
        score_threshold: Minimum score of a result, on the scale of `score`. Likelihoods of two questions cannot be
            compared, so no minimum of them suits all questions: use `min_share`, except for models that estimate
            P(relevant).
        min_share: Minimum share of a result in the likelihoods of all candidates, above 0 and at most 1. The shares are
            the scores of `score="softmax"` and sum to 1.

    Raises:
        InvalidInput: `min_share` is not a number above 0 and at most 1.
    """

    score_threshold: float | None = None
    min_share: float | None = None

    def __post_init__(self) -> None:
        share = self.min_share
        if share is not None and (isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1):
            raise InvalidInput(f"min_share must be a number above 0 and at most 1, got {share!r:.200}.")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class GeneratedRecordSettings(BRMGRSettings):
    """Settings for merging retrieved and generated records.

    Attributes:
        origin_key: Metadata key whose value is `"generated"` in results that an LLM wrote. It is not read
            from stored records.

    Raises:
        InvalidInput: A setting of `BRMGRSettings` cannot be used, or the key is not a string.
    """

    origin_key: str = prefixed("origin")

    def __post_init__(self) -> None:
        check_keys(origin_key=self.origin_key)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(Settings):
    """Settings for generating records.

    Attributes:
        prompts: Templates with `{question}` for the generated texts. `drillrank.generation.cluster_prompts` makes
            others. None is one prompt if the LLM samples, and `GENREAD_PROMPTS` otherwise.
        temperature: Temperature at which the LLM samples texts. None is the LLM's own, or 0.95 with a preset. An LLM
            without a temperature answers different prompts instead, with a `DrillrankWarning`.
        on_failure: `"raise"` raises an `LLMFailure` if a call of the LLM fails or its answer has no word. `"fallback"`
            continues without that passage, with a `DrillrankWarning`. None raises if a call fails, and falls back if an
            answer has no word.
        workers: Maximum number of concurrent LLM calls for one question.

    Raises:
        InvalidInput: A prompt lacks `{question}`, `temperature` is not positive, `on_failure` is unknown, or `workers`
            is below 1.
    """

    prompts: tuple[str, ...] | None = None
    temperature: float | None = None
    on_failure: OnFailure | None = None
    workers: int = 4

    def __post_init__(self) -> None:
        if self.prompts is not None:
            check_question_templates(self.prompts)
        if self.temperature is not None:
            check_number(temperature=self.temperature)
        check_on_failure(self.on_failure)
        check_positive(workers=self.workers)
        super().__post_init__()

    def sampling_temperature(self, preset: BRMGRPreset | None) -> float | None:
        """Return the temperature to set; None if the LLM keeps its own.

        >>> GenerationSettings().sampling_temperature("paper"), GenerationSettings().sampling_temperature(None)
        (0.95, None)
        """
        return SAMPLING_TEMPERATURE if self.temperature is None and preset is not None else self.temperature

    def choose_prompts(self, temperature: float | None, takes_temperature: Callable[[], bool]) -> tuple[str, ...]:
        """Return the prompts for the generated texts. Warn if the LLM should sample them, but cannot.

        Args:
            temperature: Temperature at which the LLM should sample; None to keep its own.
            takes_temperature: Function that returns True if the LLM takes a temperature.
        """
        samples = temperature is not None and takes_temperature()
        if temperature is not None and not samples:
            warn(
                "The LLM has no temperature that can be set, so its answers to several prompts are used in place of "
                "samples of one. Use an LLM with a field `temperature` to sample."
            )
        default_prompts = GENREAD_PROMPTS[:1] if samples else GENREAD_PROMPTS
        return default_prompts if self.prompts is None else self.prompts


@dataclass(frozen=True, kw_only=True)
class LinkedRecordSettings(PathSettings, PromptRankSettings):
    """Settings for searching and scoring paths of records, with the metadata keys of links and titles.

    Attributes:
        instructions: As for `drillrank.PromptRank`.
        ensemble: As for `drillrank.PromptRank`.
        temperature: As for `drillrank.PromptRank`.
        demonstrations: As for `drillrank.PromptRank`.
        links_key: Metadata key of the linked ids, as a list or separated by commas.
        title_key: Metadata key of the title.

    Raises:
        InvalidInput: A setting of `PathSettings` or `PromptRankSettings` cannot be used, or a key is not a string.
    """

    instructions: tuple[str, ...] | None = None
    ensemble: Ensemble | None = None
    temperature: float | None = None
    demonstrations: tuple[Demonstration, ...] = ()
    links_key: str = "links"
    title_key: str = "title"

    def __post_init__(self) -> None:
        examples: tuple[Any, ...] = self.demonstrations  # mappings if they come from JSON
        demonstrations = tuple(
            Demonstration.from_dict(item) if isinstance(item, Mapping) else item for item in examples
        )
        object.__setattr__(self, "demonstrations", demonstrations)
        check_keys(links_key=self.links_key, title_key=self.title_key)
        super().__post_init__()

    def prompt_rank(self, model: LanguageModel, prior: Prior | None) -> PromptRank:
        """Build the ranker that scores paths."""
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
    """Settings of a retriever of paths.

    Attributes:
        prior: Prior from the order of the retrieved records: `"retrieval"`, or None.
        use_index_vectors: Rank by the vectors of an index or store in addition to terms, if it has one for each of the
            `documents`. Only the question is embedded. `embed` replaces them. None is True, or False with the paper's
            preset.

    Raises:
        InvalidInput: A setting of `LinkedRecordSettings` cannot be used, or the prior is unknown.
    """

    prior: Prior | None = None
    use_index_vectors: bool | None = None

    def __post_init__(self) -> None:
        check_prior(self.prior)
        check_switch(use_index_vectors=self.uses_index_vectors)
        super().__post_init__()

    @property
    def uses_index_vectors(self) -> bool:
        """The value of `use_index_vectors`, or its default."""
        return self.preset != "paper" if self.use_index_vectors is None else self.use_index_vectors


@dataclass(frozen=True, kw_only=True)
class SectionSettings(Settings):
    """Settings for joining documents and naming sections.

    Attributes:
        separator: Text between the headings of `drillrank_section_path`.
        join_pages: Read documents that are pages of one file as one document.

    Raises:
        InvalidInput: A setting has the wrong type.
    """

    separator: str = " > "
    join_pages: bool = True

    def __post_init__(self) -> None:
        check_separator(self.separator)
        check_switch(join_pages=self.join_pages)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class SplitterSettings(SectionSettings, ViewSettings):
    """Settings of components that split documents into views, including `drillrank.views.ViewSettings`."""


@dataclass(frozen=True, kw_only=True)
class ExpansionSettings(Settings):
    """Settings of `MultiViewRetriever` for an index in memory and for the sections around those that it finds.

    Attributes:
        language: Language of the stemmer, for an index in memory: one of `drillrank.text.LANGUAGES`.
        max_expanded_tokens: Largest number of tokens of a section that is returned for one of its subsections, or of a
            section with its neighbors. A larger one is returned in part, around the section that was found.
        separator: Separator of the headings of `drillrank_section_path`, as in the splitter.

    Raises:
        InvalidInput: A value is invalid.
    """

    language: str = "english"
    max_expanded_tokens: int = MAX_EXPANDED_TOKENS
    separator: str = " > "

    def __post_init__(self) -> None:
        check_language(self.language)
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


@dataclass(frozen=True, kw_only=True)
class BaseD3RetrieverSettings(SectionSettings, D3Settings):
    """Settings of `D3Retriever`, together with `drillrank.drilldown.D3Settings`.

    Attributes:
        use_index_vectors: Add the cosines of the vectors in an index or store to the scores. Only the question is
            embedded. `embed` replaces them. None is True, or False with the paper's preset.

    Raises:
        InvalidInput: A setting cannot be used.
    """

    use_index_vectors: bool | None = None

    def __post_init__(self) -> None:
        check_switch(use_index_vectors=self.uses_index_vectors)
        super().__post_init__()

    @property
    def uses_index_vectors(self) -> bool:
        """The value of `use_index_vectors`, or its default."""
        return self.preset != "paper" if self.use_index_vectors is None else self.use_index_vectors


ResultLimit = int | Literal["auto"] | None
"""Maximum number of results of `D3Retriever` and `BRMGRRetriever`."""

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


@dataclass(frozen=True)
class MergedCounts:
    """Numbers of passages of `BRMGRRetriever`.

    Attributes:
        n_generated: Number of passages that the LLM writes.
        n_retrieved: Number of records that a store is asked for. A retriever has its own limit.
        top_n: Maximum number of results; None returns all.
    """

    n_generated: int
    n_retrieved: int
    top_n: int | None


def count_merged(top_n: ResultLimit, n_generated: int | None, preset: BRMGRPreset | None) -> MergedCounts:
    """Return the numbers of passages of `BRMGRRetriever`.

    The paper merges 10 retrieved and 10 generated passages and returns all pairs. Without a preset, `top_n="auto"` is 5
    and `n_generated=None` is 3.

    Raises:
        InvalidInput: `top_n` is not "auto", None or a positive number, or `n_generated` is not positive.

    >>> count_merged("auto", None, "paper"), count_merged(3, 2, "paper")
    (MergedCounts(n_generated=10, n_retrieved=10, top_n=None), MergedCounts(n_generated=2, n_retrieved=3, top_n=3))
    """
    check_limits(n_generated=n_generated)
    if top_n == "auto":
        top_n = _DEFAULT_RESULTS if preset is None else None
    check_top_n(top_n)
    return MergedCounts(n_generated or (3 if preset is None else 10), top_n or 10, top_n)


def check_switch(**switches: object) -> None:
    """Refuse arguments that are neither True nor False.

    Raises:
        InvalidInput: An argument is not. The message names the first such argument.
    """
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} must be True or False, got {value!r:.200}.")
