"""Models of transformers: sequences in batches, what several begin with computed once where the architecture allows it.

Sharing has two levels, stem and rest. Stems are computed first, as a batch; the rests behind them are a batch on copies
of their keys and values, with the masks and positions that a model expects of any batch. Architectures that are not
known to compute the same either way compute whole sequences.
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

from drillrank.errors import DrillrankError
from drillrank.likelihood.local import Engine, TokenSequence, longest_target
from drillrank.likelihood.process import settle_threads
from drillrank.likelihood.tokenizer import TextTokenizer

# What tests/families has computed with and without sharing: each token attends to all tokens before it, or to those in
# a window, and knows positions by `position_ids` or the mask.
_SHARING = frozenset(
    """
    apertus arcee biogpt bloom codegen cohere cohere2 ernie4_5 exaone4 falcon gemma gemma2 gemma3_text glm glm4
    gpt2 gpt_bigcode gpt_neox gptj granite granitemoe helium hunyuan_v1_dense llama ministral ministral3 mistral
    mixtral mpt nemotron olmo olmo2 olmo3 olmoe opt persimmon phi phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_moe
    seed_oss smollm3 stablelm starcoder2 xglm
    """.split()  # noqa: SIM905  # one a line is hard to read
)

_LOGIT_BYTES = {"cpu": 64 * 2**20}  # of float32 logits at once
_BATCH_TOKENS = {"cpu": 2048, "mps": 8192, "cuda": 32768}
_WIDTHS = 8  # batches are padded to multiples of it
_SOFTMAX_ROWS = {"cpu": 16}  # few enough for float32 logits to stay in the cache
_STEM = 64  # tokens that a stem must save: it costs a forward pass of its own
# Their normalisation accepts float32 and hands on the weights' dtype, so the residual stream may be wider than these.
_WIDE_RESIDUALS = ("t5", "mt5", "umt5")

_UNLIMITED = 2**31
_NOWHERE = np.zeros(1, dtype=np.int64)  # where logits are computed if none is read

_States = list[tuple[torch.Tensor, torch.Tensor]]  # each layer's keys and values, (stems, heads, tokens, head size)


class Stem(NamedTuple):
    """How many tokens some sequences have in common at their beginning, and the positions of these."""

    length: int
    members: list[int]


class _Group(NamedTuple):
    """Sorted sequences from `first` to `last - 1`, and how they are computed with the fewest tokens."""

    first: int
    last: int
    tokens: int  # of all of them
    room: int  # how long a stem may be
    cost: int
    stems: list[tuple[int, int, int]]  # length, first, last


def plan(sequences: Sequence[Sequence[int]], rooms: Sequence[int]) -> list[Stem]:
    """Which sequences to compute on a common stem, so that the fewest tokens are computed; stems of 0 tokens for none.

    Args:
        sequences: Token ids.
        rooms: How many tokens of each may be its stem's, at least one fewer than it has.

    >>> plan([[7] * 100 + [1], [8, 9], [7] * 100 + [2, 3]], [100, 1, 100])
    [Stem(length=100, members=[0, 2]), Stem(length=0, members=[1])]
    """
    order = sorted(range(len(sequences)), key=lambda at: list(sequences[at]))
    groups = {
        location: _Group(
            location, location + 1, len(sequences[at]), rooms[at], len(sequences[at]), [(0, location, location + 1)]
        )
        for location, at in enumerate(order)
    }
    first_of = {group.last: location for location, group in groups.items()}
    shared = [common_prefix(sequences[one], sequences[other]) for one, other in pairwise(order)]
    for location in sorted(
        range(1, len(order)), key=lambda location: -shared[location - 1]
    ):  # what has most in common first
        one, other = groups[first_of[location]], groups.pop(location)
        room, tokens = min(one.room, other.room), one.tokens + other.tokens
        length = min(shared[location - 1], room)
        together = tokens - (other.last - one.first - 1) * length + _STEM
        stems, cost = one.stems + other.stems, one.cost + other.cost
        if together < cost:
            stems, cost = [(length, one.first, other.last)], together
        groups[one.first] = _Group(one.first, other.last, tokens, room, cost, stems)
        first_of[other.last] = one.first
    return [Stem(length, order[first:last]) for group in groups.values() for length, first, last in group.stems]


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences begin with alike."""
    return next(compress(count(), map(ne, one, other)), min(len(one), len(other)))


class _OnStems(DynamicLayer):  # type: ignore[misc]
    """Keys and values of stems, copied to the rows that stand on them only while their layer is computed."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, rows: torch.Tensor) -> None:
        super().__init__()
        self.keys, self.values, self._rows = keys, values, rows
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> Any:
        """Keys and values of whole rows."""
        pairs = ((self.keys, key_states), (self.values, value_states))
        return tuple(torch.cat([stems.index_select(0, self._rows), rests], dim=-2) for stems, rests in pairs)


class TorchEngine(Engine):
    """A model of transformers in evaluation mode.

    Args:
        model: The model.
        tokenizer: Tokenises text as data.
        window: Longest input in tokens, special tokens included, or None.
        batch_tokens: Tokens of one batch after padding, or None for what suits the device.
    """

    def __init__(self, model: Any, tokenizer: TextTokenizer, *, window: int | None, batch_tokens: int | None) -> None:
        config = model.config
        _prepare(model)
        self._head = model.get_output_embeddings()
        self._head.register_forward_pre_hook(self._only_what_is_read)
        self._at: tuple[torch.Tensor, torch.Tensor] | None = None
        self.device: torch.device = next(model.parameters()).device
        self._process = os.getpid()
        kind = self.device.type
        super().__init__(
            model,
            tokenizer,
            window,
            start=[config.decoder_start_token_id, *tokenizer.prefix] if config.is_encoder_decoder else None,
            longest_target=longest_target(config),
            batch_tokens=batch_tokens or _BATCH_TOKENS.get(kind, 2048),
            batch_targets=max(1, _LOGIT_BYTES.get(kind, 2**30) // (4 * self._head.weight.shape[0])),
        )
        parameters = inspect.signature(model.forward).parameters
        self._cache = "cache" if "cache" in parameters else "past_key_values"  # as transformers before 5.24 calls it
        self._takes_positions = "position_ids" in parameters
        text = config.get_text_config()
        self._rope, self._switch = _rope_switch(text) or ("", window or _UNLIMITED)
        self._shared_length = 0
        if config.model_type in _SHARING and not self._rope:
            self._shared_length = getattr(text, "sliding_window", None) or _UNLIMITED

    def read(self, readings: Sequence[TokenSequence], temperature: float | None) -> list[npt.NDArray[np.float64]]:
        """As `Engine.read`; the softmax is computed in float32.

        Raises:
            DrillrankError: the model lies on a GPU, and the process was forked from the one that loaded it.
        """
        settle_threads()
        if self.device.type == "cuda" and self._process != os.getpid():
            raise DrillrankError(
                "The model was loaded on a GPU before this process was forked, and CUDA does not come along: load it "
                "in each process, or start processes by spawn."
            )
        found: list[tuple[Sequence[int], torch.Tensor]] = []  # on the device: nothing waits for it between batches

        def compute(batch: Sequence[int], begins: Sequence[int] | None = None, **inputs: Any) -> None:
            """Read these readings in a batch; of each, so many tokens are in a cache."""
            some = [readings[i] for i in batch]
            counts = [len(one.at) for one in some]
            columns = np.concatenate([one.at for one in some]) - np.repeat(begins or [0] * len(some), counts)
            logits = self._logits(np.repeat(np.arange(len(some)), counts), columns, **inputs)
            found.append((batch, self._log_probs(logits, [id_ for one in some for id_ in one.wanted], temperature)))
            self.advance(len(some))

        with torch.inference_mode():
            (self._decode if self.start is None else self._encode)(readings, compute)
        values: list[npt.NDArray[np.float64]] = [np.empty(0)] * len(readings)
        for members, tensor in found:
            ends = np.cumsum([len(readings[i].wanted) for i in members])
            for i, part in zip(members, np.split(tensor.cpu().numpy().astype(np.float64), ends[:-1]), strict=True):
                values[i] = part
        return values

    def _decode(self, readings: Sequence[TokenSequence], compute: Callable[..., None]) -> None:
        """Decoder-only models: whole sequences, and rests of sequences on stems."""
        # A token behind all that is read changes nothing, unless it is by the length of the whole.
        ids = [one.ids if self._rope else one.ids[: one.at[-1] + 1] for one in readings]
        share = len(ids) > 1 and max(map(len, ids)) <= self._shared_length
        stems = plan(ids, [one.at[0] for one in readings]) if share else [Stem(0, list(range(len(ids))))]
        counts = [len(one.at) for one in readings]
        # Beyond a length, `longrope` turns all positions in another way, and `dynamic` does so for each length: what is
        # computed together is of one regime, padding included.
        regimes: dict[int, list[int]] = {}
        for i in (i for stem in stems if not stem.length for i in stem.members):
            beyond = len(ids[i]) if self._rope == "dynamic" else self._switch + 1
            regimes.setdefault(beyond if len(ids[i]) > self._switch else self._switch, []).append(i)
        if self._rope == "dynamic":  # remembers the longest sequence until it reads a short one
            self._logits(_NOWHERE, _NOWHERE, input_ids=self._padded([[0]], 1)[0], use_cache=False)
        for regime, members in sorted(regimes.items()):
            most = self.window if self._rope == "longrope" and regime > self._switch else regime

            def run_whole(batch: list[int], members: list[int] = members, most: int | None = most) -> None:
                few = [members[at] for at in batch]
                compute(few, input_ids=self._padded([ids[i] for i in few], most)[0], use_cache=False)

            self.in_batches(run_whole, [len(ids[i]) for i in members], [counts[i] for i in members])

        stems = [stem for stem in stems if stem.length]

        def run_stems(batch: list[int]) -> None:
            stem_ids = [ids[stems[at].members[0]][: stems[at].length] for at in batch]
            states = self._states(stem_ids)
            rests = [(row, i) for row, at in enumerate(batch) for i in stems[at].members]
            tails = [ids[i][len(stem_ids[row]) :] for row, i in rests]

            def run_rests(few: list[int]) -> None:
                rows = [rests[at][0] for at in few]
                begins = [len(stem_ids[row]) for row in rows]
                inputs = self._on_stems([tails[at] for at in few], begins, states, rows)
                compute([rests[at][1] for at in few], begins, **inputs)

            lengths = [states[0][0].shape[2] + _padded_width(len(tail)) for tail in tails]
            self.in_batches(run_rests, lengths, [counts[i] for _, i in rests])

        self.in_batches(run_stems, [stem.length for stem in stems])

    def _states(self, stems: Sequence[list[int]]) -> _States:
        """Keys and values of the stems, padded on the left."""
        cache: Any = transformers.DynamicCache()
        ids, mask = self._padded(stems, left=True)
        placed = self._placed(mask, (mask.cumsum(1) - 1).clamp(min=0))
        self._logits(_NOWHERE, _NOWHERE, input_ids=ids, **placed, **{self._cache: cache}, use_cache=True)
        return [(layer.keys, layer.values) for layer in cache.layers]

    def _on_stems(
        self, tails: Sequence[list[int]], begins: Sequence[int], states: _States, rows: Sequence[int]
    ) -> dict[str, Any]:
        """What the model reads of sequences whose first tokens are stems of these lengths, at these rows of states."""
        ids, _ = self._padded(tails)
        width, stem = ids.shape[1], states[0][0].shape[2]
        lengths, starts = np.array([len(tail) for tail in tails])[:, None], np.array(begins)[:, None]
        mask = np.ones((len(tails), stem + width), dtype=np.int64)
        mask[:, :stem] = np.arange(stem) >= stem - starts
        positions = self._tensor(starts + np.minimum(np.arange(width), lengths - 1))  # none beyond the model's last
        cache, chosen = transformers.DynamicCache(), self._tensor(np.array(rows))
        cache.layers = [_OnStems(keys, values, chosen) for keys, values in states]
        return {"input_ids": ids, **self._placed(self._tensor(mask), positions), self._cache: cache, "use_cache": True}

    def _placed(self, mask: torch.Tensor, positions: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"attention_mask": mask} | ({"position_ids": positions} if self._takes_positions else {})

    def _encode(self, readings: Sequence[TokenSequence], compute: Callable[..., None]) -> None:
        """Encoder-decoder models: each prompt is encoded once, for all its targets."""
        members: dict[tuple[int, ...], list[int]] = {}
        for i, one in enumerate(readings):
            members.setdefault(one.source, []).append(i)
        sources = list(members)
        encoder = self.model.get_encoder()

        def run_sources(batch: list[int]) -> None:
            ids, mask = self._padded([sources[i] for i in batch])
            encoded = encoder(input_ids=ids, attention_mask=mask, return_dict=True)
            targets = [(row, i) for row, source in enumerate(batch) for i in members[sources[source]]]

            def run_targets(some: list[int]) -> None:
                few = [targets[at][1] for at in some]
                rows = self._tensor(np.array([targets[at][0] for at in some]))
                decoder_ids, decoder_mask = self._padded([readings[i].ids[: readings[i].at[-1] + 1] for i in few])
                compute(
                    few,
                    encoder_outputs=type(encoded)(**{**encoded, "last_hidden_state": encoded.last_hidden_state[rows]}),
                    attention_mask=mask[rows],
                    decoder_input_ids=decoder_ids,
                    decoder_attention_mask=decoder_mask,
                    use_cache=False,
                )

            counts = [len(readings[i].at) for _, i in targets]
            # Each target looks at its prompt's states, of which one layer at a time needs keys and values.
            lengths = [len(readings[i].source) + count for (_, i), count in zip(targets, counts, strict=True)]
            self.in_batches(run_targets, lengths, counts, 8 * self.batch_tokens)

        self.in_batches(run_sources, [len(source) for source in sources])

    def _logits(self, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], **inputs: Any) -> torch.Tensor:
        """Logits at these places alone, with all that the model does to logits by itself: (places, vocabulary)."""
        self._at = self._tensor(rows), self._tensor(columns)
        try:
            logits: torch.Tensor = self.model(**inputs).logits
        finally:
            self._at = None
        return logits

    def _only_what_is_read(self, _: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        """Hand the language model head the states at which something is read, if the engine itself runs the model."""
        return None if self._at is None else (inputs[0][self._at].to(self._head.weight.dtype), *inputs[1:])

    def _padded(
        self, sequences: Sequence[Sequence[int]], most: int | None = None, *, left: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Token ids padded to a width of at most `most`, and the mask of real tokens, both (sequences, width)."""
        longest = max(map(len, sequences))
        width = max(longest, min(_padded_width(longest), most or self.window or _UNLIMITED))
        ids = np.zeros((len(sequences), width), dtype=np.int64)
        mask = np.zeros((len(sequences), width), dtype=np.int64)
        for row, sequence in enumerate(sequences):
            location = slice(width - len(sequence), width) if left else slice(len(sequence))
            ids[row, location] = sequence
            mask[row, location] = 1
        return self._tensor(ids), self._tensor(mask)

    def _log_probs(self, logits: torch.Tensor, wanted: Sequence[int], temperature: float | None) -> torch.Tensor:
        """Log-softmax of each row at its token, in float32: logits (targets, vocabulary), result (targets,).

        Without a temperature, the logits themselves.
        """
        columns = self._tensor(np.asarray(wanted, dtype=np.int64))[:, None]
        rows = _SOFTMAX_ROWS.get(self.device.type, 4096)
        parts = []
        for some, at in zip(torch.split(logits, rows), torch.split(columns, rows), strict=True):
            wide = some.float()
            if temperature is not None:
                wide = torch.log_softmax(wide if temperature == 1 else wide / temperature, dim=1)
            parts.append(wide.gather(1, at)[:, 0])
        return torch.cat(parts)

    def _tensor(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """The array on the device, copied without waiting where the device can."""
        tensor = torch.from_numpy(array)
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)


def _padded_width(length: int) -> int:
    """Kernels compiled for a shape are kept by oneDNN, hundreds of megabytes of them if every width is another."""
    step = _WIDTHS if length > 64 else 2  # of what is short, padding would be much
    return -(-length // step) * step


def _prepare(model: Any) -> None:
    """Make one step of written-out GELUs; in half precision, keep in float32 what rounding harms most.

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


def _rope_switch(config: Any) -> tuple[str, int] | None:
    """The kind of rotary positions that change with a sequence's length, and the longest that has the first ones."""
    parameters = getattr(config, "rope_parameters", None) or {}
    for one in (parameters, *parameters.values()):
        kind = one.get("rope_type") if isinstance(one, dict) else None
        if kind == "dynamic":
            return kind, config.max_position_embeddings
        if kind == "longrope":
            return kind, one["original_max_position_embeddings"]
    return None
