"""What the engines share: target probabilities from the language model head, and nothing wider than needed."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from drillrank.errors import DrillrankError, InvalidInput
from drillrank.likelihood.base import Likelihood, Request
from drillrank.likelihood.text_tokenizer import TextTokenizer

_LOGIT_BYTES = 64 * 2**20  # of float32 logits at once on a CPU
_BATCH_TOKENS = {"cpu": 2048, "mps": 8192, "cuda": 32768}


class NotFinite(DrillrankError):
    """The model returned a probability that is not a number."""


@dataclass(slots=True)
class Scored:
    """A request on its way: token ids of its target, and room for their log-probabilities."""

    target: list[int]
    cut_tokens: int
    log_probs: np.ndarray[Any, np.dtype[np.float64]]


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
        logit_bytes = _LOGIT_BYTES if self.device.type == "cpu" else 16 * _LOGIT_BYTES
        self.batch_targets = max(1, logit_bytes // (4 * self._head.weight.shape[0]))
        self._lock = threading.Lock()

    @abstractmethod
    def _score(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Scored]:
        """Score all requests; the lock is held."""

    def log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        """As `LanguageModel.log_likelihood`.

        Raises:
            InvalidInput: the model has no end-of-sequence token and one is wanted, or a budget cannot be met.
            NotFinite: a log-probability is not a number.
            OutOfMemory: a single prompt does not fit.
        """
        if include_eos and self.eos_id is None:
            raise InvalidInput("This model has no end-of-sequence token: pass include_eos=False.")
        with self._lock, torch.inference_mode():
            scored = self._score(requests, temperature, include_eos)
        results = []
        for position, item in enumerate(scored):
            if not np.isfinite(item.log_probs).all():
                raise NotFinite(
                    f"Request {position} has a log-probability of {item.log_probs[~np.isfinite(item.log_probs)][0]}: "
                    "the weights are broken, or overflow in this dtype; try float32."
                )
            names = [self.tokenizer.token_names[id_] for id_ in item.target]
            results.append(Likelihood(names, item.log_probs, float(item.log_probs.sum()), item.cut_tokens))
        return results

    @contextmanager
    def _head_only_at(self, rows: torch.Tensor, columns: torch.Tensor) -> Iterator[None]:
        """Let the model compute logits at these positions only, with all that it does to logits by itself."""

        def select(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            return (inputs[0][rows, columns], *inputs[1:])

        hook = self._head.register_forward_pre_hook(select)
        try:
            yield
        finally:
            hook.remove()

    def _log_probs(self, logits: torch.Tensor, targets: Sequence[int], temperature: float) -> list[float]:
        """Log-softmax of each row at its target: logits of shape (targets, vocabulary), in float32."""
        logits = logits.float()
        if temperature != 1:
            logits = logits / temperature
        wanted = logits.gather(1, torch.tensor(targets, device=logits.device)[:, None])[:, 0]
        log_probs: list[float] = (wanted - logits.logsumexp(dim=1)).double().tolist()
        return log_probs


def padded(sequences: Sequence[Sequence[int]], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids padded on the right, and the mask of real tokens, both of shape (sequences, longest)."""
    longest = max(map(len, sequences))
    ids = np.zeros((len(sequences), longest), dtype=np.int64)
    mask = np.zeros((len(sequences), longest), dtype=np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return to_device(ids, device), to_device(mask, device)


def to_device(array: np.ndarray[Any, Any], device: torch.device) -> torch.Tensor:
    """The array as a tensor on the device, copied without waiting where the device can."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
