"""What the engines on torch share: target probabilities from the language model head, and nothing wider than needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import torch

from drillrank.likelihood.engine import Engine
from drillrank.likelihood.torch_threads import settle_threads

_LOGIT_BYTES = {"cpu": 64 * 2**20}  # of float32 logits at once
_BATCH_TOKENS = {"cpu": 2048, "mps": 8192, "cuda": 32768}
_WIDTHS = 8  # batches are padded to multiples of it
_SOFTMAX_ROWS = {"cpu": 16}  # few enough for float32 logits to stay in the cache


class TorchEngine(Engine):
    """A model of transformers in evaluation mode."""

    @cached_property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device  # type: ignore[no-any-return]

    @cached_property
    def _head(self) -> Any:
        return self.model.get_output_embeddings()

    def _sizes(self) -> tuple[int, int, int]:
        tokens, logit_bytes = _BATCH_TOKENS.get(self.device.type, 2048), _LOGIT_BYTES.get(self.device.type, 2**30)
        return tokens, self._head.weight.shape[0], logit_bytes

    def _computing(self) -> AbstractContextManager[Any]:
        settle_threads()
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
        rows = _SOFTMAX_ROWS.get(self.device.type, 4096)
        parts = []
        for some, at in zip(torch.split(logits, rows), torch.split(wanted, rows), strict=True):
            wide = some.float()
            if temperature is not None:
                wide = torch.log_softmax(wide if temperature == 1 else wide / temperature, dim=1)
            parts.append(wide.gather(1, at)[:, 0])
        return torch.cat(parts)


def to_device(array: np.ndarray[Any, Any], device: torch.device) -> torch.Tensor:
    """The array as a tensor on the device, copied without waiting where the device can."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
