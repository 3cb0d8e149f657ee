"""What the engines of models on this machine share, whatever computes them: from requests to target tokens and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from drillrank.errors import DrillrankError, InvalidInput
from drillrank.likelihood.base import Likelihood, NextTokenRequest, NextTokens, Request
from drillrank.likelihood.shared_turns import SharedTurns
from drillrank.likelihood.text_tokenizer import TextTokenizer


class NotFinite(DrillrankError):
    """The model returned a probability that is not a number."""


class _Values(Protocol):
    """An array of numpy or a tensor of torch."""

    def tolist(self) -> Any: ...


Found = list[tuple[Sequence[int], _Values]]  # slots and their log-probabilities


@dataclass(slots=True)
class Targets:
    """The target tokens of all requests, one behind the other, and what has been computed of them.

    Attributes:
        ids: Token ids of each request's target.
        cut_tokens: Tokens of documents left out of each request.
        starts: Slot of each request's first target token.
        found: What has been computed, still on the device: nothing waits for it between batches.
    """

    ids: list[list[int]] = field(default_factory=list)
    cut_tokens: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    found: Found = field(default_factory=list)

    def add(self, ids: list[int], cut_tokens: int) -> None:
        """Add the target of the next request."""
        self.ids.append(ids)
        self.cut_tokens.append(cut_tokens)
        self.starts.append(self.starts[-1] + len(ids))

    def log_probs(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Log-probabilities by slot."""
        by_slot = np.full(self.starts[-1], np.nan)
        for slots, log_probs in self.found:
            by_slot[list(slots)] = log_probs.tolist()
        return by_slot

    def values(self) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
        """Log-probabilities by request.

        Raises:
            NotFinite: one of them is not a number.
        """
        by_slot = self.log_probs()
        values = [by_slot[start:end].copy() for start, end in pairwise(self.starts)]
        for position, log_probs in enumerate(values):
            if not np.isfinite(log_probs).all():
                raise NotFinite(
                    f"Request {position} has a log-probability of {log_probs[~np.isfinite(log_probs)][0]}: "
                    "the weights are broken, or overflow in this dtype; try float32."
                )
        return values


class Engine(ABC):
    """Scores requests with one loaded model.

    Args:
        model: The model.
        tokenizer: Tokenises text as data.
        eos_id: The end-of-sequence token, or None.
        window: Longest input in tokens, special tokens included, or None.
        batch_tokens: Tokens of one batch after padding, or None for what suits the device.
    """

    include_eos_by_default: bool

    def __init__(
        self,
        model: Any,
        tokenizer: TextTokenizer,
        *,
        eos_id: int | None,
        window: int | None,
        batch_tokens: int | None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.eos_id = eos_id
        self.window = window
        suitable, vocabulary, logit_bytes = self._sizes()
        self.batch_tokens = batch_tokens or suitable
        self.batch_targets = max(1, logit_bytes // (4 * vocabulary))
        self._turns: SharedTurns[Any, Any] = SharedTurns(self._by_turn)

    @abstractmethod
    def _sizes(self) -> tuple[int, int, int]:
        """What suits the device: tokens of one batch, the width of logits, and bytes of float32 logits at once."""

    @property
    def left_behind(self) -> bool:
        """Whether it is of no use in this process, since what computes did not come along in a fork."""
        return False

    def _computing(self) -> AbstractContextManager[Any]:
        """What holds while something is computed."""
        return nullcontext()

    def _by_turn(self, requests: list[Any], work: tuple[Any, ...]) -> list[Any]:
        """What a method makes of requests that may come from several callers."""
        method, *arguments = work
        with self._computing():
            made: list[Any] = method(requests, *arguments)
        return made

    @abstractmethod
    def _score(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> Targets:
        """Score all requests; nothing else uses the model meanwhile."""

    @abstractmethod
    def _ask(self, requests: Sequence[NextTokenRequest], temperature: float | None) -> Targets:
        """The requests' answers as targets, each behind the prompt itself; nothing else uses the model meanwhile."""

    def next_tokens(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        """As `LanguageModel.next_tokens`.

        Raises:
            InvalidInput: an answer is no token of the model, or a budget cannot be met.
            NotFinite: a value is not a number.
            OutOfMemory: a single prompt does not fit.
        """
        return self._turns.run(requests, (self._next_tokens, logits))

    def _next_tokens(self, requests: list[NextTokenRequest], logits: bool) -> list[NextTokens]:
        targets = self._ask(requests, None if logits else 1.0)
        return [
            NextTokens(one, cut_tokens, (False,) * len(one))
            for one, cut_tokens in zip(targets.values(), targets.cut_tokens, strict=True)
        ]

    def _answer_ids(self, requests: Sequence[NextTokenRequest]) -> list[list[int]]:
        known = {answer: self.tokenizer.answer_id(answer) for request in requests for answer in request.answers}
        return [[known[answer] for answer in request.answers] for request in requests]

    def log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        """As `LanguageModel.log_likelihood`.

        Raises:
            InvalidInput: the model has no end-of-sequence token and one is wanted, or a budget cannot be met.
            NotFinite: a log-probability is not a number.
            OutOfMemory: a single prompt does not fit.
        """
        if include_eos and self.eos_id is None:
            raise InvalidInput("This model has no end-of-sequence token: pass include_eos=False.")
        return self._turns.run(requests, (self._likelihoods, temperature, include_eos))

    def _likelihoods(self, requests: list[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        targets = self._score(requests, temperature, include_eos)
        results = []
        for ids, log_probs, cut_tokens in zip(targets.ids, targets.values(), targets.cut_tokens, strict=True):
            names = [self.tokenizer.token_names[id_] for id_ in ids]
            results.append(Likelihood(names, log_probs, float(log_probs.sum()), cut_tokens))
        return results
