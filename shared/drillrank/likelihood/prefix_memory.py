"""States of prefixes in memory: one row of bytes for each token, in a block whose size is fixed at the start.

A segment is a range of a prefix's tokens. Its rows may be anywhere in the block, so that no space is lost between
segments, and the states of a batch of prefixes are read by one indexing operation for each layer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from drillrank.errors import InvalidInput
from drillrank.likelihood.prefix_files import Bytes

Rows = npt.NDArray[np.int64]
"""Indices of rows of the block, one for each token: [n_tokens]."""

_ALIGNMENT = 8  # bytes: that of checksums, and enough for each dtype
INDEX_BYTES = 24  # of a token: its row in the index and in the list of free rows


class Plane(NamedTuple):
    """One of the tensors that a model has for each token, such as the keys of a layer.

    Attributes:
        shape: Heads and size of a head.
        dtype: Dtype that the model computes in.
        offset: First byte in the row of a token.
    """

    shape: tuple[int, int]
    dtype: torch.dtype
    offset: int


class StateLayout:
    """Bytes of one token.

    Args:
        states: Examples of the tensors, [..., n_heads, head_size].
        is_int8: Keep 8 bits for each number and a float32 scale for each head, in place of the model's dtype.
    """

    def __init__(self, states: Sequence[torch.Tensor], is_int8: bool) -> None:
        self.is_int8 = is_int8
        self.planes: list[Plane] = []
        n_bytes = 0
        for tensor in states:
            n_heads, head_size = tensor.shape[-2:]
            self.planes.append(Plane((n_heads, head_size), tensor.dtype, n_bytes))
            n_bytes += n_heads * (_align(head_size, 4) + 4 if is_int8 else head_size * tensor.element_size())
            n_bytes = _align(n_bytes, _ALIGNMENT)
        self.token_bytes = n_bytes

    def __repr__(self) -> str:
        return f"{self.token_bytes} {self.is_int8} {self.planes}"


def _allocate(shape: tuple[int, int], device: torch.device) -> torch.Tensor:
    """Return a block of bytes. Memory of the machine is taken when it is first written."""
    if device.type != "cpu":
        return torch.empty(shape, dtype=torch.uint8, device=device)
    # NumPy asks Linux for pages of 2 MB: a hundredth of the page faults when a cold question writes its states.
    return torch.from_numpy(np.empty(shape, dtype=np.uint8))


def _align(n_bytes: int, multiple: int) -> int:
    return -(-n_bytes // multiple) * multiple


class PrefixMemory:
    """Block of rows for tokens, and an index of the segments in it. The least recently used segments give way.

    Args:
        n_bytes: Bytes of the block and its index.
        layout: Bytes of one token.
        device: Device of the block.

    Raises:
        InvalidInput: The device does not have this memory, or not even one token fits.
    """

    def __init__(self, n_bytes: int, layout: StateLayout, device: torch.device) -> None:
        self.layout = layout
        self.n_rows = n_bytes // (layout.token_bytes + INDEX_BYTES)
        if not self.n_rows:
            raise InvalidInput(f"prefix_cache={n_bytes} is less than the {layout.token_bytes} bytes of a token.")
        try:
            self._block = _allocate((self.n_rows, layout.token_bytes), device)
        except (MemoryError, RuntimeError, ValueError, OverflowError) as cause:  # the last two beyond 64 bits
            raise InvalidInput(f"prefix_cache={n_bytes} is more memory than {device} has. Lower it.") from cause
        self._free_rows = np.arange(self.n_rows)
        self._n_free = self.n_rows
        self._rows_by_key: OrderedDict[bytes, Rows] = OrderedDict()  # least recently used first

    def find(self, key: bytes) -> Rows | None:
        """Return the rows of a segment, which is then the most recently used one. None if it is not here."""
        rows = self._rows_by_key.get(key)
        if rows is not None:
            self._rows_by_key.move_to_end(key)
        return rows

    def reserve(self, n_tokens: int) -> Rows:
        """Take rows for a new segment, at most `n_rows`. The least recently used segments give theirs up."""
        while self._n_free < n_tokens:
            _, rows = self._rows_by_key.popitem(last=False)
            self.release(rows)
        self._n_free -= n_tokens
        reserved: Rows = self._free_rows[self._n_free : self._n_free + n_tokens].copy()
        return reserved

    def release(self, rows: Rows) -> None:
        """Give rows up that are in no segment."""
        self._free_rows[self._n_free : self._n_free + len(rows)] = rows
        self._n_free += len(rows)

    def add(self, key: bytes, rows: Rows) -> None:
        """Add a segment whose states have been written to these rows."""
        self._rows_by_key[key] = rows

    def discard(self, key: bytes) -> None:
        """Remove a segment, if it is here."""
        rows = self._rows_by_key.pop(key, None)
        if rows is not None:
            self.release(rows)

    def write(self, plane_index: int, rows: torch.Tensor, states: torch.Tensor) -> None:
        """Write one of the tensors of some tokens.

        Args:
            plane_index: Index of the tensor in the layout.
            rows: Row of each token, [n_tokens].
            states: States, [n_tokens, n_heads, head_size].
        """
        plane = self.layout.planes[plane_index]
        if not self.layout.is_int8:
            self._view(plane)[rows] = states.flatten(1)
            return
        numbers, scales = self._int8_views(plane)
        scale = states.float().abs().amax(-1) / 127
        rounded = (states.float() / scale.clamp(min=1e-30)[..., None]).round().to(torch.int8)
        numbers[rows] = torch.nn.functional.pad(rounded, (0, -plane.shape[1] % 4)).flatten(1)
        scales[rows] = scale

    def read(self, plane_index: int, rows: torch.Tensor) -> torch.Tensor:
        """Return one of the tensors for rows [n_sequences, n_tokens]: [n_sequences, n_tokens, n_heads, head_size]."""
        plane = self.layout.planes[plane_index]
        flat_rows, shape = rows.flatten(), (*rows.shape, plane.shape[0], -1)
        if not self.layout.is_int8:
            return self._view(plane).index_select(0, flat_rows).view(shape)
        numbers, scales = (view.index_select(0, flat_rows) for view in self._int8_views(plane))
        states = numbers.view(shape)[..., : plane.shape[1]].float() * scales.view(shape)
        return states.to(plane.dtype)

    def to_bytes(self, rows: Rows) -> Bytes:
        """Return a copy of rows of the block."""
        copied: Bytes = self._block[torch.from_numpy(rows).to(self._block.device)].cpu().numpy()
        return copied

    def from_bytes(self, rows: Rows, states: Bytes) -> None:
        """Fill rows of the block."""
        device = self._block.device
        self._block[torch.from_numpy(rows).to(device)] = torch.from_numpy(states).to(device)

    def _view(self, plane: Plane) -> torch.Tensor:
        """Return the part of the block for one tensor: [n_rows, n_heads * head_size]."""
        return self._columns(plane.offset, plane.shape[0] * plane.shape[1], plane.dtype)

    def _int8_views(self, plane: Plane) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the parts for the numbers and for the scales of one tensor."""
        n_numbers = plane.shape[0] * _align(plane.shape[1], 4)
        numbers = self._columns(plane.offset, n_numbers, torch.int8)
        return numbers, self._columns(plane.offset + n_numbers, plane.shape[0], torch.float32)

    def _columns(self, offset: int, size: int, dtype: torch.dtype) -> torch.Tensor:
        return self._block[:, offset : offset + size * dtype.itemsize].view(dtype)
