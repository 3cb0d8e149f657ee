"""The settings of `PromptRank` that are rarely touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from drillrank.errors import check_limits, check_positive
from drillrank.rerank.first_stage import check_prior_weight
from drillrank.rerank.presets import LikelihoodFormula
from drillrank.settings import as_settings

if TYPE_CHECKING:
    from typing_extensions import Self

Ensemble = Literal["max", "mean"]

MAX_PROMPT_TOKENS, MAX_PROMPT_TOKENS_WITH_DEMONSTRATIONS = 600, 1024  # section 3


@dataclass(frozen=True, kw_only=True)
class PromptRankSettings:
    """How prompts are made, and how much the prior counts.

    Attributes:
        demonstrations_per_prompt: How many demonstrations share a context, of different kinds where possible; more of
            them make several contexts, each of which scores every path once.
        max_document_tokens: Tokens that each document of a path may keep.
        max_prompt_tokens: Tokens of the prompt; the path's documents give way, demonstrations, instruction and question
            never do. None for the paper's 600, or 1,024 with demonstrations.
        preset: `"promptrank"` writes prompts and questions as the paper's code does (see `drillrank.rerank.presets`);
            that code's own ensemble is "mean".
        prior_weight: How much the prior counts: its log-probabilities are multiplied by it, up to a constant.

    Raises:
        InvalidInput: a limit is below 1, or the weight is not positive.
    """

    demonstrations_per_prompt: int = 2
    max_document_tokens: int = 230
    max_prompt_tokens: int | None = None
    preset: str | LikelihoodFormula | None = None
    prior_weight: float = 1.0

    def __post_init__(self) -> None:
        check_positive(
            demonstrations_per_prompt=self.demonstrations_per_prompt, max_document_tokens=self.max_document_tokens
        )
        check_limits(max_prompt_tokens=self.max_prompt_tokens)
        check_prior_weight(self.prior_weight)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Settings by name, as JSON has them.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.
        """
        return as_settings(cls, given)


def combined(scores: Sequence[float], ensemble: Ensemble) -> float:
    """One score of a path from those under each prompt."""
    return max(scores) if ensemble == "max" else sum(scores) / len(scores)
