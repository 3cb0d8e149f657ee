"""The settings of `PromptRank`: names, defaults, descriptions and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from drillrank.errors import check_limits, check_positive
from drillrank.likelihood.base import check_temperature
from drillrank.prompts import PROMPTRANK_INSTRUCTIONS, check_instructions
from drillrank.rerank.first_stage import Prior, check_prior, check_prior_weight
from drillrank.rerank.presets import LikelihoodFormula
from drillrank.settings import Settings, check_one_of, declared, setting

Ensemble = Literal["max", "mean"]

MAX_PROMPT_TOKENS, MAX_PROMPT_TOKENS_WITH_DEMONSTRATIONS = 600, 1024  # section 3


@declared
class PromptRankSettings(Settings):
    """How paths are scored by the likelihood of the question; `tune` finds the first three settings.

    Raises:
        InvalidInput: an instruction without `{path}`, an unknown ensemble, a temperature that is not positive, a limit
            below 1, or an unknown prior.

    >>> import json
    >>> settings = PromptRankSettings(instructions=("{path} Ask a question. Question:",), temperature=1.4)
    >>> PromptRankSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    True
    """

    instructions: tuple[str, ...] = setting(
        default=PROMPTRANK_INSTRUCTIONS[:5],
        description="Prompts that hold `{path}`; the first five of the paper's Table A1 by default.",
    )
    ensemble: Ensemble = setting(
        default="max",
        description="How a path's scores under several prompts combine. The prompts are all pairs of an instruction "
        "and a context of demonstrations.",
    )
    temperature: float = setting(
        default=1.0,
        description="Divides the logits before the softmax; the paper finds 1.4 best for T5-XL on HotpotQA.",
    )
    demonstrations_per_prompt: int = setting(
        default=2,
        description="How many demonstrations share a context, of different kinds where possible; more of them make "
        "several contexts, each of which scores every path once.",
    )
    max_document_tokens: int = setting(default=230, description="Tokens that each document of a path may keep.")
    max_prompt_tokens: int | None = setting(
        default=None,
        description="Tokens of the prompt; the path's documents give way, demonstrations, instruction and question "
        "never do. None for the paper's 600, or 1,024 with demonstrations.",
    )
    preset: str | LikelihoodFormula | None = setting(
        default=None,
        description='`"promptrank"` writes prompts and questions as the paper\'s code does (see '
        '`drillrank.rerank.presets`); that code\'s own ensemble is "mean".',
    )
    prior: Prior | None = setting(
        default=None,
        description="What the first stage said of the document that a path begins with, before texts are read, as "
        'for `UPR`: `"cosine"`, `"retrieval"`, or None for the paper\'s uniform prior. A path search multiplies it '
        "with its prior over links.",
    )
    prior_weight: float = setting(
        default=1.0,
        description="How much the prior counts: its log-probabilities are multiplied by it, up to a constant.",
    )

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_instructions(self.instructions)
        check_one_of(Ensemble, ensemble=self.ensemble)
        check_temperature(self.temperature)
        check_positive(
            demonstrations_per_prompt=self.demonstrations_per_prompt, max_document_tokens=self.max_document_tokens
        )
        check_limits(max_prompt_tokens=self.max_prompt_tokens)
        check_prior(self.prior)
        check_prior_weight(self.prior_weight)

    def combined(self, scores: Sequence[float]) -> float:
        """One score from those under each prompt."""
        return max(scores) if self.ensemble == "max" else sum(scores) / len(scores)
