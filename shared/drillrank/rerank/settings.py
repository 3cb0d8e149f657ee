"""What PromptRank is tuned in: instructions, how their scores combine, and the temperature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import check_temperature
from drillrank.prompts import PROMPTRANK_INSTRUCTIONS, check_instructions

Ensemble = Literal["max", "mean"]


@dataclass(frozen=True, slots=True)
class PromptRankSettings:
    """Settings that `PromptRank(lm, **settings.to_dict())` takes, and that `tune` finds.

    Attributes:
        instructions: Prompts that hold `{path}`.
        ensemble: How a path's scores under several prompts combine.
        temperature: Divides the logits before the softmax.

    Raises:
        InvalidInput: an instruction without `{path}`, an unknown ensemble, or a temperature that is not positive.

    >>> import json
    >>> settings = PromptRankSettings(("{path} Ask a question. Question:",), temperature=1.4)
    >>> PromptRankSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    True
    """

    instructions: tuple[str, ...] = PROMPTRANK_INSTRUCTIONS[:5]
    ensemble: Ensemble = "max"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "instructions", check_instructions(self.instructions))
        if self.ensemble not in get_args(Ensemble):
            raise InvalidInput(f'The ensemble is "max" or "mean", not {self.ensemble!r}.')
        check_temperature(self.temperature)

    def combined(self, scores: Sequence[float]) -> float:
        """One score from those under each prompt."""
        return max(scores) if self.ensemble == "max" else sum(scores) / len(scores)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and for the keyword arguments of `PromptRank`."""
        return {**asdict(self), "instructions": list(self.instructions)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> PromptRankSettings:
        """Settings from `to_dict`.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.
        """
        known = PromptRankSettings.__slots__
        if not isinstance(values, Mapping) or not set(values) <= set(known):
            raise InvalidInput(f"Settings of PromptRank are {', '.join(known)}; not {values!r:.200}.")
        return PromptRankSettings(**values)
