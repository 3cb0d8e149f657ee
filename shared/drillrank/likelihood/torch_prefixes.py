"""Prefix cache of a transformers model: what it computes for a prompt up to the question, kept for later questions.

A prefix is divided where other prompts may go on differently: behind demonstrations, behind the first document, and
at the end of the prompt. Each part is a segment with a key made of all tokens up to its end, so that several
instructions share a document, and a wrong hit is impossible. Of a prompt with several documents, only the part up to
the end of the first one is kept: the next document's states depend on the first, and few pairs come again. Within one
call, the further documents are shared as well.

Logits at the last token of a prompt are not kept. They would take as many bytes as 10 to 50 tokens, and computing
them takes one token. So the last token of each prompt is computed together with the question.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
import transformers
from transformers.cache_utils import DynamicLayer

from drillrank.likelihood.local import PrefixCacheOptions, TokenSequence
from drillrank.likelihood.prefix_files import PrefixFiles
from drillrank.likelihood.prefix_memory import PrefixMemory, Rows, StateLayout

_VERSION = 1  # of the layout of states and files
_MIN_SHARED = 64  # tokens that a segment of this call only must save: it costs a forward pass of its own
_PREFIX_SHARE = 8  # A kept token takes memory of one layer at a time, and a fraction of the time of a computed one
_LAYER_BYTES = 2**28  # of the kept keys and values that a batch reads in one layer


class PrefixEngine(Protocol):
    """Parts of `TorchEngine` that compute states, and sequences on states."""

    model: Any
    start: list[int] | None
    batch_tokens: int
    device: torch.device

    def example_states(self) -> list[torch.Tensor]:
        """Return tensors of one token, each [1, 1, n_heads, head_size]."""

    def can_share(self, sequence: TokenSequence) -> bool:
        """Return True if the states of the sequence's beginning do not depend on what follows."""

    def encode(self, sources: Sequence[Sequence[int]]) -> tuple[Any, torch.Tensor]:
        """Return the encoder's output and the mask of real tokens."""

    def compute_states(self, **inputs: Any) -> None:
        """Run the model without reading logits."""

    def inputs_on_cache(
        self, tails: Sequence[list[int]], starts: npt.NDArray[np.int64], prefix_mask: npt.NDArray[np.int64], cache: Any
    ) -> dict[str, Any]:
        """Return the inputs of a forward pass over sequences whose first tokens are in a cache."""

    def inputs_on_encoder(
        self, sequences: Sequence[TokenSequence], encoder_outputs: Any, mask: torch.Tensor
    ) -> dict[str, Any]:
        """Return the inputs of a forward pass over targets of encoded prompts."""

    def in_batches(
        self,
        run: Callable[[list[int]], None],
        lengths: Sequence[int],
        targets: Sequence[int] | None = None,
        budget: int | None = None,
    ) -> None:
        """Run batches of items of these lengths."""

    def padded_width(self, length: int) -> int:
        """Return the width of a batch whose longest sequence has this length."""

    def to_device(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Return the array on the device."""


class Segment(NamedTuple):
    """Tokens `start` to `end` of a prefix.

    Attributes:
        key: Hash of all tokens up to `end`, and of `start`.
        start: Index of the first token.
        end: Index behind the last token.
        parent: Key of the segment that ends at `start`. None if `start` is 0.
        ids: All tokens up to `end`, at least.
        is_kept: False if the segment is shared within this call only.
    """

    key: bytes
    start: int
    end: int
    parent: bytes | None
    ids: Sequence[int]
    is_kept: bool


class _SequenceSpan(NamedTuple):
    """Sequence that is read in the forward pass that computes its last segment.

    Attributes:
        sequence_index: Index of the sequence.
        end: Index behind the last token at which something is read.
        n_targets: Number of tokens at which something is read.
    """

    sequence_index: int
    end: int
    n_targets: int


def _prefix_ends(sequence: TokenSequence) -> Sequence[int]:
    """Return where the segments of the sequence's prefix end."""
    return [len(sequence.source)] if sequence.source else sequence.boundaries


def divide_prefix(sequence: TokenSequence) -> list[Segment]:
    """Divide the prefix of a sequence at its boundaries, or return what an encoder reads as one segment."""
    ids = sequence.source or sequence.ids
    segments: list[Segment] = []
    digest = hashlib.blake2b(digest_size=20)
    start, parent = 0, None
    for index, end in enumerate(_prefix_ends(sequence)):
        digest.update(np.asarray(ids[start:end], dtype=np.int64).tobytes())
        own_digest = digest.copy()
        own_digest.update(start.to_bytes(8, "little"))
        is_kept = bool(sequence.source) or index < sequence.n_kept
        segments.append(Segment(own_digest.digest(), start, end, parent, ids, is_kept))
        start, parent = end, segments[-1].key
    return segments


class _KeptLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one layer, in a prefix cache.

    Args:
        memory: Memory of the cache.
        layer_index: Index of the layer.
        prefix_rows: Row of each token in front of the batch's sequences, [n_sequences, n_prefix_tokens].
        written: Sequence, token and row of each computed token that is kept, or None.
    """

    def __init__(
        self,
        memory: PrefixMemory,
        layer_index: int,
        prefix_rows: torch.Tensor,
        written: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None,
    ) -> None:
        super().__init__()
        self._memory, self._plane_index = memory, 2 * layer_index
        self._prefix_rows, self._written = prefix_rows, written

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> Any:
        """Return keys and values of whole sequences, and keep those that have been computed."""
        return tuple(self._extend(self._plane_index + i, states) for i, states in enumerate((key_states, value_states)))

    def _extend(self, plane_index: int, states: torch.Tensor) -> torch.Tensor:
        if self._written is not None:
            sequence_indices, token_indices, rows = self._written
            self._memory.write(plane_index, rows, states[sequence_indices, :, token_indices])
        if not self._prefix_rows.shape[1]:
            return states
        prefixes = self._memory.read(plane_index, self._prefix_rows)
        return torch.cat([prefixes, states.transpose(1, 2)], dim=1).transpose(1, 2)

    def get_seq_length(self) -> int:
        """Return the number of tokens in front of the batch's sequences, padding included."""
        return self._prefix_rows.shape[1]


class _Batch:
    """Rows of prefixes, padded to the longest on the left, or on the right with `pad_right`."""

    def __init__(self, rows: Sequence[Rows], *, pad_right: bool = False) -> None:
        self.lengths = np.array([len(one) for one in rows])
        width = int(self.lengths.max(initial=0))
        # Masked rows must be finite numbers, and so those of real tokens.
        self.rows = np.zeros((len(rows), width), dtype=np.int64)
        self.mask = np.zeros((len(rows), width), dtype=np.int64)
        for index, one in enumerate(rows):
            if len(one):
                columns = slice(len(one)) if pad_right else slice(width - len(one), None)
                self.rows[index] = one[0]
                self.rows[index, columns] = one
                self.mask[index, columns] = 1
        if width and not self.lengths.all():  # sequences without a prefix among others with one
            self.rows[self.lengths == 0] = next(one[0] for one in rows if len(one))


class TorchPrefixes:
    """Prefix cache of a loaded model.

    Args:
        engine: The loaded model.
        options: Sizes and folder.
    """

    def __init__(self, engine: PrefixEngine, options: PrefixCacheOptions) -> None:
        self._engine = engine
        with torch.inference_mode():
            states = engine.example_states()
            # Some architectures read further attributes of their own output class.
            self._encoder_output = None if engine.start is None else type(engine.encode([[0]])[0])
        layout = StateLayout(states, options.is_int8)
        self.token_bytes = layout.token_bytes
        self._memory = PrefixMemory(options.memory_bytes, layout, engine.device)
        self._files: PrefixFiles | None = None
        if options.folder is not None:
            fingerprint = fingerprint_model(engine.model, layout)
            self._files = PrefixFiles(options.folder, fingerprint, options.disk_bytes)
        layer_bytes = layout.token_bytes * 2 // len(layout.planes)
        share = _LAYER_BYTES // (layer_bytes * engine.batch_tokens)
        self._prefix_share = max(1, min(_PREFIX_SHARE, share))

    @property
    def max_bytes(self) -> int:
        """Number of bytes of states that are kept at most, in memory or on disk."""
        in_memory = self._memory.n_rows * self.token_bytes
        return max(in_memory, 0 if self._files is None else self._files.max_bytes)

    def can_keep(self, sequence: TokenSequence) -> bool:
        """Return True if the sequence has a separable prefix that fits into memory."""
        return self.has_prefix(sequence) and _prefix_ends(sequence)[-1] <= self._memory.n_rows

    def has_prefix(self, sequence: TokenSequence) -> bool:
        """Return True if the sequence has a prefix whose states do not depend on what follows."""
        return bool(_prefix_ends(sequence)) and self._engine.can_share(sequence)

    def count_tokens(self, sequences: Iterable[TokenSequence]) -> tuple[int, int]:
        """Return how many tokens the prefixes have that are kept, and how many of these are not in the cache yet."""
        segments = {segment.key: segment for one in sequences for segment in divide_prefix(one) if segment.is_kept}
        missing = [segment for segment in segments.values() if not self._has(segment.key)]
        return _count_tokens(segments.values()), _count_tokens(missing)

    def read(self, sequences: Sequence[TokenSequence], compute: Callable[..., None]) -> None:
        """Compute sequences on prefixes that are kept, or are from now on.

        Args:
            sequences: Sequences, each with `can_keep`.
            compute: As for the engine.
        """
        for indices, chains in self._chunks(sequences):
            segments = {segment.key: segment for chain in chains for segment in chain}
            is_decoder = self._engine.start is None
            readings = _list_spans_by_key(sequences, indices, chains) if is_decoder else {}
            rows_by_key, read_keys = self._provide(segments, readings, compute)
            try:
                unread = [
                    (i, chain) for i, chain in zip(indices, chains, strict=True) if not _ends_in(chain, read_keys)
                ]
                if unread:
                    prefixes = [_join_rows(chain, rows_by_key) for _, chain in unread]
                    read_rest = self._read_rests if is_decoder else self._read_targets
                    read_rest([sequences[i] for i, _ in unread], [i for i, _ in unread], prefixes, compute)
            finally:
                for segment in segments.values():
                    if not segment.is_kept:
                        self._memory.discard(segment.key)

    def keep(self, sequences: Sequence[TokenSequence]) -> None:
        """Compute the prefixes of sequences that are not kept yet.

        Args:
            sequences: Sequences, each with `can_keep`.
        """
        with torch.inference_mode():
            for _, chains in self._chunks(sequences):
                segments = {segment.key: segment for chain in chains for segment in chain if segment.is_kept}
                if not all(self._has(key) for key in segments):
                    self._provide(segments)

    def _has(self, key: bytes) -> bool:
        return self._memory.find(key) is not None or (self._files is not None and self._files.has(key))

    def _chunks(self, sequences: Sequence[TokenSequence]) -> Iterator[tuple[list[int], list[list[Segment]]]]:
        """Yield indices of sequences whose prefixes fit into memory together, and the segments of each."""
        chains = _drop_unshared([divide_prefix(one) for one in sequences])
        chunk: list[int] = []
        keys: set[bytes] = set()
        n_tokens = 0
        # Prefixes of similar length are next to each other, and so are those that begin alike.
        for i in sorted(range(len(chains)), key=lambda i: (-len(sequences[i].source), sequences[i].ids)):
            new = [segment for segment in chains[i] if segment.key not in keys]
            if chunk and n_tokens + _count_tokens(new) > self._memory.n_rows:
                yield chunk, [chains[j] for j in chunk]
                chunk, keys, n_tokens, new = [], set(), 0, chains[i]
            chunk.append(i)
            keys.update(segment.key for segment in new)
            n_tokens += _count_tokens(new)
        if chunk:
            yield chunk, [chains[j] for j in chunk]

    def _provide(
        self,
        segments: dict[bytes, Segment],
        readings: Mapping[bytes, _SequenceSpan] = MappingProxyType({}),
        compute: Callable[..., None] | None = None,
    ) -> tuple[dict[bytes, Rows], set[bytes]]:
        """Find the segments in memory or on disk, and compute the others. They fit into memory together.

        Args:
            segments: The segments, by key.
            readings: Sequence to read in the forward pass that computes its last segment, by the key of this segment.
            compute: Reads a batch, as for the engine. None if there are no readings.

        Returns:
            Rows by key, and the keys of the computed segments whose sequences have been read.
        """
        rows_by_key: dict[bytes, Rows] = {}
        read_keys: set[bytes] = set()
        for key in reversed(segments):  # a segment is of no use without its parent, which is thus used later
            if (rows := self._memory.find(key)) is not None:
                rows_by_key[key] = rows
        missing = {key: segment for key, segment in segments.items() if key not in rows_by_key}
        for key, segment in list(missing.items()):
            if segment.is_kept and (rows := self._load(segment)) is not None:
                rows_by_key[key] = rows
                del missing[key]
        reserved = {key: self._memory.reserve(segment.end - segment.start) for key, segment in missing.items()}
        try:
            while missing:
                runs = _list_computable_runs(missing)
                with_reading = [run for run in runs if run[-1].key in readings]
                self._compute([run for run in runs if run[-1].key not in readings], rows_by_key | reserved, segments)
                self._compute(with_reading, rows_by_key | reserved, segments, readings, compute)
                read_keys.update(run[-1].key for run in with_reading)
                for segment in (segment for run in runs for segment in run):
                    del missing[segment.key]
                    rows = rows_by_key[segment.key] = reserved.pop(segment.key)
                    self._memory.add(segment.key, rows)
                    if self._files is not None and segment.is_kept:
                        self._files.save(segment.key, self._memory.to_bytes(rows))
        finally:
            for rows in reserved.values():
                self._memory.release(rows)
        return rows_by_key, read_keys

    def _load(self, segment: Segment) -> Rows | None:
        """Read a segment from disk into memory, and return its rows. None if it is not there."""
        if self._files is None:
            return None
        n_tokens = segment.end - segment.start
        states = self._files.load(segment.key, n_tokens, self.token_bytes)
        if states is None:
            return None
        rows = self._memory.reserve(n_tokens)
        self._memory.from_bytes(rows, states)
        self._memory.add(segment.key, rows)
        return rows

    def _compute(
        self,
        runs: list[list[Segment]],
        rows_by_key: dict[bytes, Rows],
        segments: dict[bytes, Segment],
        readings: Mapping[bytes, _SequenceSpan] = MappingProxyType({}),
        compute: Callable[..., None] | None = None,
    ) -> None:
        """Compute runs of segments, each a segment and its descendants, on prefixes that are in memory.

        Args:
            runs: The runs.
            rows_by_key: Rows of all segments.
            segments: The segments, by key.
            readings: With `compute`, the sequence that each run belongs to, by the key of its last segment. What
                follows the run is computed with it, and read.
            compute: As for `_provide`.
        """
        engine = self._engine
        readings_of_runs = [readings.get(run[-1].key) for run in runs]
        tails = [
            list(run[-1].ids[run[0].start : reading.end if reading else run[-1].end])
            for run, reading in zip(runs, readings_of_runs, strict=True)
        ]
        own_rows = [_join_rows(run, rows_by_key) for run in runs]
        starts = [run[0].start for run in runs]

        def run_batch(batch: list[int]) -> None:
            written = self._list_written([own_rows[i] for i in batch])
            if engine.start is not None:
                states = engine.encode([tails[i] for i in batch])[0].last_hidden_state
                sequence_indices, token_indices, rows = written
                self._memory.write(0, rows, split_heads(states[sequence_indices, token_indices]))
                return
            prefixes = [_find_prefix_rows(runs[i][0], rows_by_key, segments) for i in batch]
            inputs = self._decoder_inputs([tails[i] for i in batch], prefixes, written)
            if compute is None:
                engine.compute_states(**inputs)
            else:
                indices = [reading.sequence_index for i in batch if (reading := readings_of_runs[i])]
                compute(indices, [starts[i] for i in batch], **inputs)

        lengths, budget = self._lengths(starts, tails)
        engine.in_batches(run_batch, lengths, [one.n_targets if one else 0 for one in readings_of_runs], budget)

    def _lengths(self, starts: Sequence[int], tails: Sequence[Sequence[int]]) -> tuple[list[int], int]:
        """Return lengths of batches' items and their budget, in units in which a kept token counts little."""
        share = self._prefix_share
        lengths = [
            max(share * self._engine.padded_width(len(tail)), start + len(tail))
            for start, tail in zip(starts, tails, strict=True)
        ]
        return lengths, share * self._engine.batch_tokens

    def _read_rests(
        self,
        sequences: Sequence[TokenSequence],
        indices: Sequence[int],
        prefixes: Sequence[Rows],
        compute: Callable[..., None],
    ) -> None:
        """Decoder-only models: what follows the prefixes, up to the last token at which something is read."""
        tails = [one.ids[len(rows) : one.positions[-1] + 1] for one, rows in zip(sequences, prefixes, strict=True)]

        def run_batch(batch: list[int]) -> None:
            starts = [len(prefixes[i]) for i in batch]
            inputs = self._decoder_inputs([tails[i] for i in batch], [prefixes[i] for i in batch], None)
            compute([indices[i] for i in batch], starts, **inputs)

        lengths, budget = self._lengths([len(rows) for rows in prefixes], tails)
        self._engine.in_batches(run_batch, lengths, [len(one.positions) for one in sequences], budget)

    def _decoder_inputs(
        self,
        tails: Sequence[list[int]],
        prefixes: Sequence[Rows],
        written: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None,
    ) -> dict[str, Any]:
        """Return the inputs of a forward pass over sequences of which the first tokens are in memory."""
        batch = _Batch(prefixes)
        prefix_rows = self._engine.to_device(batch.rows)
        cache = transformers.DynamicCache()
        n_layers = len(self._memory.layout.planes) // 2
        cache.layers = [_KeptLayer(self._memory, index, prefix_rows, written) for index in range(n_layers)]
        return self._engine.inputs_on_cache(tails, batch.lengths, batch.mask, cache)

    def _list_written(self, rows: Sequence[Rows]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return sequence, token and row of each token of a batch that is padded on the right."""
        lengths = [len(one) for one in rows]
        sequence_indices = np.repeat(np.arange(len(rows)), lengths)
        token_indices = np.concatenate([np.arange(length) for length in lengths])
        to_device = self._engine.to_device
        return to_device(sequence_indices), to_device(token_indices), to_device(np.concatenate(rows))

    def _read_targets(
        self,
        sequences: Sequence[TokenSequence],
        indices: Sequence[int],
        prefixes: Sequence[Rows],
        compute: Callable[..., None],
    ) -> None:
        """Encoder-decoder models: targets, each with the encoder's states of its prompt."""

        def run_batch(batch: list[int]) -> None:
            padded = _Batch([prefixes[i] for i in batch], pad_right=True)
            states = self._memory.read(0, self._engine.to_device(padded.rows)).flatten(2)
            encoded = self._encoder_output(last_hidden_state=states) if self._encoder_output else None
            mask = self._engine.to_device(padded.mask)
            inputs = self._engine.inputs_on_encoder([sequences[i] for i in batch], encoded, mask)
            compute([indices[i] for i in batch], **inputs)

        counts = [len(one.positions) for one in sequences]
        lengths = [len(one.source) + count for one, count in zip(sequences, counts, strict=True)]
        self._engine.in_batches(run_batch, lengths, counts, _PREFIX_SHARE * self._engine.batch_tokens)


_NO_ROWS = np.zeros(0, dtype=np.int64)


def split_heads(states: torch.Tensor) -> torch.Tensor:
    """Divide the encoder's states [..., width] in groups as keys and values are, for a scale for each in 8 bits."""
    width = states.shape[-1]
    group_size = math.gcd(width, 64)
    return states.view(*states.shape[:-1], width // group_size, group_size)


def _list_spans_by_key(
    sequences: Sequence[TokenSequence], indices: Sequence[int], chains: Sequence[Sequence[Segment]]
) -> dict[bytes, _SequenceSpan]:
    """Return the sequences whose last segment no other one has, by the key of this segment.

    Such a segment and what follows it can be computed in one forward pass. So a first question takes about as long as
    without the cache.
    """
    n_uses = Counter(segment.key for chain in chains for segment in chain)
    return {
        chain[-1].key: _SequenceSpan(i, sequences[i].positions[-1] + 1, len(sequences[i].positions))
        for i, chain in zip(indices, chains, strict=True)
        if chain and n_uses[chain[-1].key] == 1
    }


def _ends_in(chain: Sequence[Segment], keys: Container[bytes]) -> bool:
    return bool(chain) and chain[-1].key in keys


def _join_rows(chain: Sequence[Segment], rows_by_key: Mapping[bytes, Rows]) -> Rows:
    return np.concatenate([rows_by_key[segment.key] for segment in chain] or [_NO_ROWS])


def _count_tokens(segments: Iterable[Segment]) -> int:
    return sum(segment.end - segment.start for segment in segments)


def _drop_unshared(chains: list[list[Segment]]) -> list[list[Segment]]:
    """Drop the segments of this call only that too few sequences share."""
    n_uses = Counter(segment.key for chain in chains for segment in chain)
    selected = []
    for chain in chains:
        n_kept = sum(segment.is_kept for segment in chain)
        for segment in chain[n_kept:]:
            if (n_uses[segment.key] - 1) * (segment.end - segment.start) < _MIN_SHARED:
                break
            n_kept += 1
        selected.append(chain[:n_kept])
    return selected


def _list_computable_runs(missing: dict[bytes, Segment]) -> list[list[Segment]]:
    """List missing segments whose parents are not missing, each followed by missing only children."""
    children: OrderedDict[bytes, list[Segment]] = OrderedDict()
    for segment in missing.values():
        if segment.parent in missing:
            children.setdefault(segment.parent, []).append(segment)
    runs = []
    for segment in missing.values():
        if segment.parent not in missing:
            run = [segment]
            while len(children.get(run[-1].key, ())) == 1:
                run += children[run[-1].key]
            runs.append(run)
    return runs


def _find_prefix_rows(segment: Segment, rows_by_key: dict[bytes, Rows], segments: dict[bytes, Segment]) -> Rows:
    """Return the rows of all tokens in front of a segment."""
    parts, parent = [_NO_ROWS], segment.parent
    while parent is not None:
        parts.insert(1, rows_by_key[parent])
        parent = segments[parent].parent
    return np.concatenate(parts)


def fingerprint_model(model: Any, layout: StateLayout) -> str:
    """Return a hash of all that states depend on except the tokens: weights, configuration and layout.

    Weights count by the sums of their rows as integers, which takes as long as reading them once.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{_VERSION} {transformers.__version__} {layout} {model.config.to_json_string()}".encode())
    for name, weight in sorted((*model.named_parameters(), *model.named_buffers())):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        digest.update(_sum_rows(weight.detach()).tobytes())
    return digest.hexdigest()


def _sum_rows(weight: torch.Tensor) -> npt.NDArray[np.int64]:
    """Return the sum of each row's bits, read as integers."""
    rows = weight.contiguous().reshape(len(weight) if weight.ndim > 1 else 1, -1)
    if not rows.numel():
        return np.zeros(0, dtype=np.int64)
    integers = rows.view(torch.uint8)
    if integers.shape[1] % 4 == 0:
        integers = integers.view(torch.int32)
    sums: npt.NDArray[np.int64] = integers.sum(1, dtype=torch.int64).cpu().numpy()
    return sums
