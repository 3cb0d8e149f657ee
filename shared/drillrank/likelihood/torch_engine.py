"""What the engines on torch share: target probabilities from the language model head, and nothing wider than needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch

from drillrank.likelihood.engine import Engine
from drillrank.likelihood.text_tokenizer import TextTokenizer

_LOGIT_BYTES = {"cpu": 64 * 2**20}  # of float32 logits at once
_BATCH_TOKENS = {"cpu": 2048, "mps": 8192, "cuda": 32768}
_WIDTHS = 8  # batches are padded to multiples of it
_SOFTMAX_ROWS = {"cpu": 16}  # few enough for float32 logits to stay in the cache


class TorchEngine(Engine):
    """A model of transformers in evaluation mode.

    Args:
        model: The model.
        tokenizer: Tokenises text as data.
        eos_id: The end-of-sequence token, or None.
        window: Longest input in tokens, special tokens included, or None.
        batch_tokens: Tokens of one batch after padding, or None for what suits the device.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: TextTokenizer,
        *,
        eos_id: int | None,
        window: int | None,
        batch_tokens: int | None,
    ) -> None:
        super().__init__(tokenizer, eos_id=eos_id, window=window)
        self.model = model
        self.device = next(model.parameters()).device
        self.batch_tokens = batch_tokens or _BATCH_TOKENS.get(self.device.type, 2048)
        self._head = model.get_output_embeddings()
        logit_bytes = _LOGIT_BYTES.get(self.device.type, 2**30)
        self.batch_targets = max(1, logit_bytes // (4 * self._head.weight.shape[0]))
        self._softmax_rows = _SOFTMAX_ROWS.get(self.device.type, 4096)

    def _computing(self) -> AbstractContextManager[Any]:
        return torch.inference_mode()

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
