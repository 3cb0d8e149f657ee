"""What the engines share: target probabilities from the language model head, and nothing wider than needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from drillrank.errors import DrillrankError, InvalidInput
from drillrank.likelihood.base import Likelihood, NextTokenRequest, NextTokens, Request
from drillrank.likelihood.shared_turns import SharedTurns
from drillrank.likelihood.text_tokenizer import TextTokenizer

_LOGIT_BYTES = {"cpu": 64 * 2**20}  # of float32 logits at once
_BATCH_TOKENS = {"cpu": 2048, "mps": 8192, "cuda": 32768}
_WIDTHS = 8  # batches are padded to multiples of it
_SOFTMAX_ROWS = {"cpu": 16}  # few enough for float32 logits to stay in the cache


class NotFinite(DrillrankError):
    """The model returned a probability that is not a number."""


Found = list[tuple[Sequence[int], torch.Tensor]]  # slots and their log-probabilities


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
        if self.found:
            slots = np.concatenate([np.asarray(slots, dtype=np.int64) for slots, _ in self.found])
            by_slot[slots] = torch.cat([log_probs for _, log_probs in self.found]).double().cpu().numpy()
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
        model: A transformers model in evaluation mode.
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
        self.device = next(model.parameters()).device
        self.batch_tokens = batch_tokens or _BATCH_TOKENS.get(self.device.type, 2048)
        self._head = model.get_output_embeddings()
        logit_bytes = _LOGIT_BYTES.get(self.device.type, 2**30)
        self.batch_targets = max(1, logit_bytes // (4 * self._head.weight.shape[0]))
        self._softmax_rows = _SOFTMAX_ROWS.get(self.device.type, 4096)
        self._turns: SharedTurns[Any, Any] = SharedTurns(lambda requests, work: work[0](requests, *work[1:]))

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

    @torch.inference_mode()
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

    @torch.inference_mode()
    def _likelihoods(self, requests: list[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        targets = self._score(requests, temperature, include_eos)
        results = []
        for ids, log_probs, cut_tokens in zip(targets.ids, targets.values(), targets.cut_tokens, strict=True):
            names = [self.tokenizer.token_names[id_] for id_ in ids]
            results.append(Likelihood(names, log_probs, float(log_probs.sum()), cut_tokens))
        return results

    @contextmanager
    def _head_only_at(self, rows: torch.Tensor, columns: torch.Tensor) -> Iterator[None]:
        """Let the model compute logits at these positions only, with all that it does to logits by itself."""

        def select(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            return (inputs[0][rows, columns].to(self._head.weight.dtype), *inputs[1:])

        hook = self._head.register_forward_pre_hook(select)
        try:
            yield
        finally:
            hook.remove()

    def _padded(self, sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Token ids padded on the right, and the mask of real tokens, both of shape (sequences, width)."""
        longest = max(map(len, sequences))
        # Kernels compiled for a shape are kept by oneDNN, hundreds of megabytes of them if every width is another.
        width = -(-longest // _WIDTHS) * _WIDTHS
        if self.window is not None:
            width = max(longest, min(width, self.window))
        ids = np.zeros((len(sequences), width), dtype=np.int64)
        mask = np.zeros((len(sequences), width), dtype=np.int64)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        return to_device(ids, self.device), to_device(mask, self.device)

    def _log_probs(self, logits: torch.Tensor, ids: Sequence[int], temperature: float | None) -> torch.Tensor:
        """Log-softmax of each row at its target, in float32: logits (targets, vocabulary), result (targets,).

        Without a temperature, the logits themselves.
        """
        wanted = to_device(np.asarray(ids, dtype=np.int64), self.device)[:, None]
        parts = []
        for some, at in zip(
            torch.split(logits, self._softmax_rows), torch.split(wanted, self._softmax_rows), strict=True
        ):
            wide = some.float()
            if temperature is not None:
                wide = torch.log_softmax(wide if temperature == 1 else wide / temperature, dim=1)
            parts.append(wide.gather(1, at)[:, 0])
        return torch.cat(parts)


def to_device(array: np.ndarray[Any, Any], device: torch.device) -> torch.Tensor:
    """The array as a tensor on the device, copied without waiting where the device can."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
