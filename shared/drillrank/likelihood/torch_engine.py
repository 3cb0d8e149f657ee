"""Models of transformers: sequences in batches, common beginnings computed once where the architecture allows it.

Sharing has two levels, stem and rest. Stems are computed first, as a batch. The rests behind them are a batch on copies
of their keys and values, with the masks and positions that a model expects of any batch. Architectures that are not
known to compute the same either way compute whole sequences. A prefix cache keeps beginnings for later calls.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Sequence
from itertools import compress, count, pairwise
from operator import ne
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import transformers
from transformers.activations import GELUTanh, NewGELUActivation
from transformers.cache_utils import DynamicLayer

from drillrank.errors import DrillrankError, warn
from drillrank.likelihood.local import Engine, PrefixCacheOptions, TokenSequence, longest_target
from drillrank.likelihood.process import settle_threads
from drillrank.likelihood.tokenizer import TextTokenizer
from drillrank.likelihood.torch_prefixes import TorchPrefixes, split_heads

# Architectures that tests/families has computed with and without sharing. Each token attends to all tokens before it,
# or to those in a window, and positions come from `position_ids` or the mask.
_SHARING = frozenset(
    """
    apertus arcee biogpt bloom codegen cohere cohere2 ernie4_5 exaone4 falcon gemma gemma2 gemma3_text glm glm4
    gpt2 gpt_bigcode gpt_neox gptj granite granitemoe helium hunyuan_v1_dense llama ministral ministral3 mistral
    mixtral mpt nemotron olmo olmo2 olmo3 olmoe opt persimmon phi phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_moe
    seed_oss smollm3 stablelm starcoder2 xglm
    """.split()  # noqa: SIM905  # one a line is hard to read
)

_LOGIT_BYTES = {"cpu": 256 * 2**20}  # of float32 logits at once; fewer would read the weights more often
_BATCH_TOKENS = {"cpu": 2048, "mps": 8192, "cuda": 32768}
_WIDTH_STEP = 8  # batches are padded to multiples of it
_SOFTMAX_ROWS = {"cpu": 16}  # few enough for float32 logits to stay in the cache
_STEM = 64  # tokens that a stem must save: it costs a forward pass of its own
# Their normalisation accepts float32 and hands on the weights' dtype, so the residual stream may be wider than these.
_WIDE_RESIDUALS = ("t5", "mt5", "umt5")

_UNLIMITED = 2**31
_NO_INDEX = np.zeros(1, dtype=np.int64)  # index at which logits are computed if none are read

_States = list[tuple[torch.Tensor, torch.Tensor]]  # each layer's keys and values: [n_stems, n_heads, n_tokens, size]


class Stem(NamedTuple):
    """Number of tokens with which some sequences begin alike, and the indices of these sequences."""

    length: int
    members: list[int]


class _Group(NamedTuple):
    """Sorted sequences from `first` to `last - 1`, and the stems with which the fewest tokens are computed."""

    first: int
    last: int
    n_tokens: int  # of all of them
    max_stem: int  # longest stem that all of them allow
    cost: int
    stems: list[tuple[int, int, int]]  # length, first, last


def plan(sequences: Sequence[Sequence[int]], max_stems: Sequence[int]) -> list[Stem]:
    """Choose the sequences to compute on a common stem, so that the fewest tokens are computed.

    Args:
        sequences: Token ids.
        max_stems: Longest stem of each sequence, at least one token fewer than it has.

    Returns:
        Stems of all sequences. A stem of 0 tokens is for sequences that are computed alone.

    >>> plan([[7] * 100 + [1], [8, 9], [7] * 100 + [2, 3]], [100, 1, 100])
    [Stem(length=100, members=[0, 2]), Stem(length=0, members=[1])]
    """
    order = sorted(range(len(sequences)), key=lambda i: list(sequences[i]))
    groups = {
        rank: _Group(rank, rank + 1, len(sequences[i]), max_stems[i], len(sequences[i]), [(0, rank, rank + 1)])
        for rank, i in enumerate(order)
    }
    first_by_last = {group.last: first for first, group in groups.items()}
    n_shared = [common_prefix(sequences[one], sequences[other]) for one, other in pairwise(order)]
    for rank in sorted(range(1, len(order)), key=lambda rank: -n_shared[rank - 1]):  # the longest beginnings first
        one, other = groups[first_by_last[rank]], groups.pop(rank)
        max_stem, n_tokens = min(one.max_stem, other.max_stem), one.n_tokens + other.n_tokens
        length = min(n_shared[rank - 1], max_stem)
        merged_cost = n_tokens - (other.last - one.first - 1) * length + _STEM
        stems, cost = one.stems + other.stems, one.cost + other.cost
        if merged_cost < cost:
            stems, cost = [(length, one.first, other.last)], merged_cost
        groups[one.first] = _Group(one.first, other.last, n_tokens, max_stem, cost, stems)
        first_by_last[other.last] = one.first
    return [Stem(length, order[first:last]) for group in groups.values() for length, first, last in group.stems]


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the tokens with which two sequences begin alike."""
    return next(compress(count(), map(ne, one, other)), min(len(one), len(other)))


class _OnStems(DynamicLayer):  # type: ignore[misc]
    """Keys and values of stems, copied to the rows that stand on them only while their layer is computed."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, rows: torch.Tensor) -> None:
        super().__init__()
        self.keys, self.values, self._rows = keys, values, rows
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> Any:
        """Return keys and values of whole rows."""
        pairs = ((self.keys, key_states), (self.values, value_states))
        return tuple(torch.cat([stems.index_select(0, self._rows), rests], dim=-2) for stems, rests in pairs)


class TorchEngine(Engine):
    """Transformers model in evaluation mode.

    Args:
        model: The model.
        tokenizer: Tokenizer that reads text as data.
        window: Longest input in tokens, special tokens included, or None.
        batch_tokens: Tokens of one batch after padding, or None for a number that suits the device.
        prefix_cache: Size and folder of a cache for the beginnings of prompts, or None.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: TextTokenizer,
        *,
        window: int | None,
        batch_tokens: int | None,
        prefix_cache: PrefixCacheOptions | None = None,
    ) -> None:
        config = model.config
        _prepare(model)
        self._head = model.get_output_embeddings()
        self._head.register_forward_pre_hook(self._select_read_states)
        self._read_indices: tuple[torch.Tensor, torch.Tensor] | None = None
        self.device: torch.device = next(model.parameters()).device
        self._process_id = os.getpid()
        device_type = self.device.type
        super().__init__(
            model,
            tokenizer,
            window,
            start=[config.decoder_start_token_id, *tokenizer.prefix] if config.is_encoder_decoder else None,
            longest_target=longest_target(config),
            batch_tokens=batch_tokens or _BATCH_TOKENS.get(device_type, 2048),
            batch_targets=max(1, _LOGIT_BYTES.get(device_type, 2**30) // (4 * self._head.weight.shape[0])),
        )
        parameters = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"  # before transformers 5.24
        self._takes_positions = "position_ids" in parameters
        self._rope, self._rope_length = _find_rope_switch(config.get_text_config()) or ("", window or _UNLIMITED)
        self._shared_length = 0 if self._rope else _find_shared_length(config)
        self.prefixes: TorchPrefixes | None = None
        if prefix_cache is not None and self._has_separable_states():
            self.prefixes = TorchPrefixes(self, prefix_cache)
        elif prefix_cache is not None:
            warn(
                "The prefix cache is not used. States of this architecture, such as those of state-space models, "
                "attention in chunks and positions that change with the length, cannot be kept apart from the rest."
            )

    def _has_separable_states(self) -> bool:
        """Return True if a prefix cache can keep the states of some tokens."""
        if self.start is None:
            return self._shared_length > 0
        with torch.inference_mode():
            return list(self.encode([[0]])[0]) == ["last_hidden_state"]

    def read(self, readings: Sequence[TokenSequence], temperature: float | None) -> list[npt.NDArray[np.float64]]:
        """Implement `Engine.read`. The softmax is computed in float32.

        Raises:
            DrillrankError: The model is on a GPU, and the process was forked from the one that loaded it.
        """
        self._check_process()
        results: list[tuple[Sequence[int], torch.Tensor]] = []  # on the device, so that no batch waits for a copy

        def compute(batch: Sequence[int], starts: Sequence[int] | None = None, **inputs: Any) -> None:
            """Read a batch of readings. The first `starts` tokens of each are in a cache."""
            selected = [readings[i] for i in batch]
            counts = [len(one.positions) for one in selected]
            columns = np.concatenate([one.positions for one in selected]) - np.repeat(
                starts or [0] * len(selected), counts
            )
            logits = self._logits(np.repeat(np.arange(len(selected)), counts), columns, **inputs)
            target_ids = [id_ for one in selected for id_ in one.target_ids]
            results.append((batch, self._log_probs(logits, target_ids, temperature)))
            self.advance(len(selected))

        with torch.inference_mode():
            uncached = self._read_on_prefixes(readings, compute)

            def compute_uncached(batch: Sequence[int], *arguments: Any, **inputs: Any) -> None:
                compute([uncached[i] for i in batch], *arguments, **inputs)

            if uncached:
                read_uncached = self._decode if self.start is None else self._encode
                read_uncached([readings[i] for i in uncached], compute_uncached)
        values: list[npt.NDArray[np.float64]] = [np.empty(0)] * len(readings)
        for members, tensor in results:
            ends = np.cumsum([len(readings[i].target_ids) for i in members])
            for i, part in zip(members, np.split(tensor.cpu().numpy().astype(np.float64), ends[:-1]), strict=True):
                values[i] = part
        return values

    def _check_process(self) -> None:
        """Use one thread after a fork.

        Raises:
            DrillrankError: The model is on a GPU, and the process was forked from the one that loaded it.
        """
        settle_threads()
        if self.device.type == "cuda" and self._process_id != os.getpid():
            raise DrillrankError(
                "The model was loaded on a GPU before this process was forked, and CUDA does not work in both. Load it "
                "in each process, or start processes by spawn."
            )

    def _read_on_prefixes(self, readings: Sequence[TokenSequence], compute: Callable[..., None]) -> list[int]:
        """Read those with a prefix that the cache can keep, and return the indices of the others."""
        if self.prefixes is None:
            return list(range(len(readings)))
        cached = [i for i, one in enumerate(readings) if self.prefixes.can_keep(one)]
        if cached:

            def compute_cached(batch: Sequence[int], *arguments: Any, **inputs: Any) -> None:
                compute([cached[i] for i in batch], *arguments, **inputs)

            self.prefixes.read([readings[i] for i in cached], compute_cached)
        return sorted({*range(len(readings))} - {*cached})

    def keep_prefixes(self, sequences: Sequence[TokenSequence]) -> None:
        """Compute and keep the prefixes, each with `TorchPrefixes.can_keep`, that are not in the cache yet.

        Raises:
            DrillrankError: The model is on a GPU, and the process was forked from the one that loaded it.
        """
        self._check_process()
        if self.prefixes is not None:
            self.prefixes.keep(sequences)

    def can_share(self, sequence: TokenSequence) -> bool:
        """Return True if the states of the sequence's beginning do not depend on what follows."""
        return bool(sequence.source) or len(sequence.ids) <= self._shared_length

    def _decode(self, readings: Sequence[TokenSequence], compute: Callable[..., None]) -> None:
        """Decoder-only models: whole sequences, and the rests of sequences on stems."""
        # A token behind all that is read changes nothing, unless positions depend on the length of the sequence.
        ids = [one.ids if self._rope else one.ids[: one.positions[-1] + 1] for one in readings]
        can_share = len(ids) > 1 and max(map(len, ids)) <= self._shared_length
        stems = plan(ids, [one.positions[0] for one in readings]) if can_share else [Stem(0, list(range(len(ids))))]
        counts = [len(one.positions) for one in readings]
        # Beyond a length, `longrope` turns all positions in another way, and `dynamic` does so for each length. A batch
        # has sequences of one regime, padding included.
        regimes: dict[int, list[int]] = {}
        for i in (i for stem in stems if not stem.length for i in stem.members):
            long_regime = len(ids[i]) if self._rope == "dynamic" else self._rope_length + 1
            regimes.setdefault(long_regime if len(ids[i]) > self._rope_length else self._rope_length, []).append(i)
        if self._rope == "dynamic":  # remembers the longest sequence until it reads a short one
            self.compute_states(input_ids=self._padded([[0]], 1)[0], use_cache=False)
        for regime, members in sorted(regimes.items()):
            max_width = self.window if self._rope == "longrope" and regime > self._rope_length else regime

            def run_whole(batch: list[int], members: list[int] = members, max_width: int | None = max_width) -> None:
                selected = [members[i] for i in batch]
                compute(selected, input_ids=self._padded([ids[i] for i in selected], max_width)[0], use_cache=False)

            self.in_batches(run_whole, [len(ids[i]) for i in members], [counts[i] for i in members])

        stems = [stem for stem in stems if stem.length]

        def run_stems(batch: list[int]) -> None:
            self._decode_on_stems([stems[i] for i in batch], ids, counts, compute)

        self.in_batches(run_stems, [stem.length for stem in stems])

    def _decode_on_stems(
        self, stems: Sequence[Stem], ids: Sequence[list[int]], counts: Sequence[int], compute: Callable[..., None]
    ) -> None:
        """Compute a batch of stems, then the rests of their sequences."""
        stem_ids = [ids[stem.members[0]][: stem.length] for stem in stems]
        states = self._compute_stems(stem_ids)
        stem_width = states[0][0].shape[2]
        rests = [(row, i) for row, stem in enumerate(stems) for i in stem.members]
        tails = [ids[i][stems[row].length :] for row, i in rests]

        def run_rests(batch: list[int]) -> None:
            rows = np.array([rests[j][0] for j in batch])
            starts = np.array([stems[row].length for row in rows])
            mask = (np.arange(stem_width) >= stem_width - starts[:, None]).astype(np.int64)
            cache, rows_on_device = transformers.DynamicCache(), self.to_device(rows)
            cache.layers = [_OnStems(keys, values, rows_on_device) for keys, values in states]
            inputs = self.inputs_on_cache([tails[j] for j in batch], starts, mask, cache)
            compute([rests[j][1] for j in batch], starts.tolist(), **inputs)

        lengths = [stem_width + self.padded_width(len(tail)) for tail in tails]
        self.in_batches(run_rests, lengths, [counts[i] for _, i in rests])

    def _compute_stems(self, stems: Sequence[list[int]]) -> _States:
        """Return keys and values of the stems, padded on the left."""
        cache: Any = transformers.DynamicCache()
        ids, mask = self._padded(stems, left_side=True)
        placed = self._placed(mask, (mask.cumsum(1) - 1).clamp(min=0))
        self.compute_states(input_ids=ids, **placed, **{self._cache_name: cache}, use_cache=True)
        return [(layer.keys, layer.values) for layer in cache.layers]

    def compute_states(self, **inputs: Any) -> None:
        """Run the model without reading logits."""
        self._logits(_NO_INDEX, _NO_INDEX, **inputs)

    def example_states(self) -> list[torch.Tensor]:
        """Return what a prefix cache keeps of one token: tensors [1, 1, n_heads, head_size] of the model's dtype.

        These are keys and values of each layer in turn, or the states of the encoder.
        """
        if self.start is not None:
            return [split_heads(self.encode([[0]])[0].last_hidden_state)]
        return [states.transpose(1, 2) for layer in self._compute_stems([[0]]) for states in layer]

    def inputs_on_cache(
        self, tails: Sequence[list[int]], starts: npt.NDArray[np.int64], prefix_mask: npt.NDArray[np.int64], cache: Any
    ) -> dict[str, Any]:
        """Return the inputs of a forward pass over sequences whose first tokens are in a cache.

        Args:
            tails: Token ids behind these first tokens.
            starts: Number of tokens of each sequence that are in the cache.
            prefix_mask: 1 for each of them and 0 for padding, [n_sequences, prefix_width].
            cache: Keys and values of the prefixes, padded as the mask says.
        """
        ids, _ = self._padded(tails)
        n_sequences, width = ids.shape
        mask = np.concatenate([prefix_mask, np.ones((n_sequences, width), dtype=np.int64)], axis=1)
        lengths = np.array([len(tail) for tail in tails])
        # No position is beyond the model's last one, in the padding neither.
        positions = starts[:, None] + np.minimum(np.arange(width), lengths[:, None] - 1)
        placed = self._placed(self.to_device(mask), self.to_device(positions))
        return {"input_ids": ids, **placed, self._cache_name: cache, "use_cache": True}

    def _placed(self, mask: torch.Tensor, positions: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"attention_mask": mask} | ({"position_ids": positions} if self._takes_positions else {})

    def _encode(self, readings: Sequence[TokenSequence], compute: Callable[..., None]) -> None:
        """Encoder-decoder models: each prompt is encoded once, for all its targets."""
        members: dict[tuple[int, ...], list[int]] = {}
        for i, one in enumerate(readings):
            members.setdefault(one.source, []).append(i)
        sources = list(members)

        def run_sources(batch: list[int]) -> None:
            encoded, mask = self.encode([sources[i] for i in batch])
            targets = [(row, i) for row, source in enumerate(batch) for i in members[sources[source]]]

            def run_targets(target_batch: list[int]) -> None:
                selected = [targets[j][1] for j in target_batch]
                rows = self.to_device(np.array([targets[j][0] for j in target_batch]))
                states = type(encoded)(**{**encoded, "last_hidden_state": encoded.last_hidden_state[rows]})
                compute(selected, **self.inputs_on_encoder([readings[i] for i in selected], states, mask[rows]))

            counts = [len(readings[i].positions) for _, i in targets]
            # Each target attends to its prompt's states, of which one layer at a time needs keys and values.
            lengths = [len(readings[i].source) + count for (_, i), count in zip(targets, counts, strict=True)]
            self.in_batches(run_targets, lengths, counts, 8 * self.batch_tokens)

        self.in_batches(run_sources, [len(source) for source in sources])

    def encode(self, sources: Sequence[Sequence[int]]) -> tuple[Any, torch.Tensor]:
        """Return the encoder's output for a batch of prompts, padded on the right, and the mask of real tokens."""
        ids, mask = self._padded(sources)
        return self.model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True), mask

    def inputs_on_encoder(
        self, sequences: Sequence[TokenSequence], encoder_outputs: Any, mask: torch.Tensor
    ) -> dict[str, Any]:
        """Return the inputs of a forward pass over targets, with the encoder's output for each target's prompt."""
        decoder_ids, decoder_mask = self._padded([one.ids[: one.positions[-1] + 1] for one in sequences])
        return {
            "encoder_outputs": encoder_outputs,
            "attention_mask": mask,
            "decoder_input_ids": decoder_ids,
            "decoder_attention_mask": decoder_mask,
            "use_cache": False,
        }

    def _logits(self, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], **inputs: Any) -> torch.Tensor:
        """Return logits at some tokens, with all that the model does to logits by itself: [n_tokens, vocabulary]."""
        self._read_indices = self.to_device(rows), self.to_device(columns)
        try:
            logits: torch.Tensor = self.model(**inputs).logits
        finally:
            self._read_indices = None
        return logits

    def _select_read_states(self, _: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        """Hand the head the states at which logits are read, if the engine itself runs the model."""
        if self._read_indices is None:
            return None
        return inputs[0][self._read_indices].to(self._head.weight.dtype), *inputs[1:]

    def _padded(
        self, sequences: Sequence[Sequence[int]], max_width: int | None = None, *, left_side: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token ids padded to at most `max_width`, and the mask of real tokens, both [n_sequences, width]."""
        longest = max(map(len, sequences))
        width = max(longest, min(self.padded_width(longest), max_width or self.window or _UNLIMITED))
        ids = np.zeros((len(sequences), width), dtype=np.int64)
        mask = np.zeros((len(sequences), width), dtype=np.int64)
        for row, sequence in enumerate(sequences):
            columns = slice(width - len(sequence), width) if left_side else slice(len(sequence))
            ids[row, columns] = sequence
            mask[row, columns] = 1
        return self.to_device(ids), self.to_device(mask)

    def _log_probs(self, logits: torch.Tensor, target_ids: Sequence[int], temperature: float | None) -> torch.Tensor:
        """Return the log-softmax of each row at its token, in float32: [n_targets] from [n_targets, vocabulary].

        Without a temperature, the result is the logits at these tokens.
        """
        columns = self.to_device(np.asarray(target_ids, dtype=np.int64))[:, None]
        n_rows = _SOFTMAX_ROWS.get(self.device.type, 4096)
        parts = []
        for part, part_columns in zip(torch.split(logits, n_rows), torch.split(columns, n_rows), strict=True):
            wide = part.float()
            if temperature is not None:
                wide = torch.log_softmax(wide if temperature == 1 else wide / temperature, dim=1)
            parts.append(wide.gather(1, part_columns)[:, 0])
        return torch.cat(parts)

    def to_device(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Return the array on the device, copied without waiting where the device can."""
        tensor = torch.from_numpy(array)
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)

    def padded_width(self, length: int) -> int:
        """Return the width of a batch whose longest sequence has this length."""
        # oneDNN keeps the kernels of each shape, hundreds of megabytes of them if each width is another one.
        step = _WIDTH_STEP if length > 64 else 2  # padding would be much of a short sequence
        return -(-length // step) * step


def _prepare(model: Any) -> None:
    """Make one step of written-out GELUs. In half precision, keep in float32 what rounding harms most.

    Logits rounded to bfloat16 tie candidates whose scores are close, and a T5's residual stream, rounded after every
    layer, costs more accuracy than its weights do.
    """
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, NewGELUActivation):
                setattr(module, name, GELUTanh())
    if model.dtype == torch.float32:
        return
    model.set_output_embeddings(copy.deepcopy(model.get_output_embeddings()).float())
    if model.config.model_type in _WIDE_RESIDUALS:
        for stack in (model.get_encoder(), model.get_decoder()):
            stack.embed_tokens.register_forward_hook(lambda _module, _inputs, states: states.float())


def _find_shared_length(config: Any) -> int:
    """Return the number of tokens up to which sequences of this architecture may share their beginnings."""
    if config.model_type not in _SHARING:
        return 0
    return getattr(config.get_text_config(), "sliding_window", None) or _UNLIMITED


def _find_rope_switch(config: Any) -> tuple[str, int] | None:
    """Return the kind of rotary positions that change with the length, and the last length before they change."""
    parameters = getattr(config, "rope_parameters", None) or {}
    for one in (parameters, *parameters.values()):
        kind = one.get("rope_type") if isinstance(one, dict) else None
        if kind == "dynamic":
            return kind, config.max_position_embeddings
        if kind == "longrope":
            return kind, one["original_max_position_embeddings"]
    return None
