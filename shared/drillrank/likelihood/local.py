"""Neural models on this machine: from requests to token ids, in batches, and back.

A model is loaded at the first use and pickled without its weights. One worker thread serves callers of any thread in
order of arrival. Results never depend on other callers.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from drillrank import limits
from drillrank.errors import DrillrankError, InvalidInput
from drillrank.likelihood.base import (
    Likelihood,
    NextTokenRequest,
    NextTokens,
    Request,
    TrainedAnswers,
    read_trained_answers,
)
from drillrank.likelihood.process import Worker
from drillrank.likelihood.tokenizer import AnyRequest, TextTokenizer, TokenModel, as_one_string, fit_to_budgets
from drillrank.progress import progress_bar

T = TypeVar("T")
Loaded = TypeVar("Loaded", bound="Engine")

_STEPS = 32  # batches whose fixed costs are those of a full batch's tokens
_MIN_SHARED = 64  # tokens of demonstrations that are worth a segment of a prefix of their own


class NotFinite(DrillrankError):
    """The model returned a probability that is not a number."""


class OutOfMemory(DrillrankError, MemoryError):
    """A single item does not fit into the device's memory."""


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """Tokens of one request, and the positions whose predictions are read.

    Attributes:
        source: Token ids for the encoder. Empty for decoder-only models.
        ids: Token ids for the decoder.
        positions: Index in `ids` of the token that predicts each target token.
        target_ids: Ids of the target tokens.
        cut_tokens: Number of document tokens that were truncated.
        boundaries: Lengths of the beginnings of `ids` that other sequences may share, ascending, at most
            `positions[0]`. Empty for encoder-decoder models.
        n_kept: Number of boundaries up to which a prefix cache keeps states.
    """

    source: tuple[int, ...]
    ids: list[int]
    positions: Sequence[int]
    target_ids: list[int]
    cut_tokens: int
    boundaries: tuple[int, ...] = ()
    n_kept: int = 0


@dataclass(frozen=True)
class PrefixCacheOptions:
    """Sizes and folder of a prefix cache.

    Attributes:
        memory_bytes: Bytes in memory.
        is_int8: Whether to keep keys and values in 8 bits.
        folder: Folder of files that outlive the process, or None.
        disk_bytes: Bytes of these files.
    """

    memory_bytes: int
    is_int8: bool
    folder: str | None
    disk_bytes: int


@dataclass(eq=False)
class Engine(ABC):
    """Loaded model.

    Attributes:
        model: Model of PyTorch.
        tokenizer: Tokenizer that reads text as data.
        window: Longest input in tokens, special tokens included, or None.
        start: Token ids in front of each target of an encoder-decoder. None for decoder-only models.
        longest_target: Number of positions of an encoder-decoder's target, special tokens included, or None.
        batch_tokens: Number of tokens of one batch after padding, with keys and values of stems.
        batch_targets: Number of rows of logits of one batch.
    """

    model: Any
    tokenizer: TextTokenizer
    window: int | None
    start: list[int] | None
    longest_target: int | None
    batch_tokens: int
    batch_targets: int
    advance: Callable[[int], object] = field(init=False, default_factory=lambda: lambda _: None)
    """Callback, called with the number of readings that have been computed."""

    @property
    def left_behind(self) -> bool:
        """True if the model is useless in this process, because its threads did not survive a fork."""
        return False

    @abstractmethod
    def read(self, readings: Sequence[TokenSequence], temperature: float | None) -> list[npt.NDArray[np.float64]]:
        """Return the log-probabilities of each reading's target tokens, or their logits without a temperature.

        Raises:
            OutOfMemory: A single reading does not fit.
        """

    def in_batches(
        self,
        run: Callable[[list[int]], None],
        lengths: Sequence[int],
        targets: Sequence[int] | None = None,
        budget: int | None = None,
    ) -> None:
        """Run batches of items of these lengths, divided by `by_length`. `budget` is `batch_tokens` by default."""
        for batch in by_length(lengths, budget or self.batch_tokens, targets, self.batch_targets):
            in_halves(run, batch)


class LocalModel(TokenModel, Generic[Loaded]):
    """Base class of models on this machine.

    Args:
        name: Model id or directory.
        arguments: The constructor's `locals()`.

    Raises:
        InvalidInput: The name is empty.
    """

    kind: ClassVar[str]
    """Part of a specification before the colon."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        if not name:
            raise InvalidInput(f'"{self.kind}:" names no model. Add a model id or a directory after the colon.')
        super().__init__(name, arguments)
        self._engine: Loaded | None = None
        self._worker = Worker()

    @property
    def spec(self) -> str:
        """Kind and name of the model."""
        return f"{self.kind}:{self._name}"

    @property
    def include_eos_by_default(self) -> bool:  # type: ignore[override]  # loads the model
        """True for encoder-decoder models, whose training targets end with the end-of-sequence token."""
        return self.engine.start is not None

    @property
    def engine(self) -> Loaded:
        """The loaded model. It is loaded at the first use."""
        engine = self._engine
        return self._worker.run(self._loaded) if engine is None or engine.left_behind else engine

    @property
    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer. The model is loaded at the first use."""
        return self.engine.tokenizer

    @cached_property
    def trained_answers(self) -> TrainedAnswers | None:
        """Answers in the checkpoint's `1_LogitScore/config.json`, or None."""
        return read_trained_answers(self._name, self._options.get("revision"))

    async def run_in_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function on the thread on which this model computes, without blocking the event loop.

        Callers are served in order of arrival. A task that is cancelled before its turn is dropped. The function must
        not wait for another model of this kind that may be waiting for this one.
        """
        return await asyncio.wrap_future(self._worker.submit(function, *arguments))

    def _loaded(self) -> Loaded:
        if self._engine is None or self._engine.left_behind:
            self._engine = self._load()
        return self._engine

    @abstractmethod
    def _load(self) -> Loaded: ...

    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        """Compute the likelihoods of checked requests on the worker."""
        return self._worker.run(self._likelihoods, self._with_chat(requests), temperature, include_eos)

    def next_tokens_batch(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        """Compute the probabilities of the requests' answers on the worker."""
        return self._worker.run(self._answers, requests, logits)

    def _likelihoods(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        readings, names = make_sequences(self._loaded(), requests, self._end(include_eos)), self.tokenizer.token_names
        return [
            Likelihood([names[id_] for id_ in reading.target_ids], values, float(values.sum()), reading.cut_tokens)
            for reading, values in zip(readings, self._read(readings, temperature), strict=True)
        ]

    def _answers(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        readings = make_sequences(self._loaded(), requests)
        values = self._read(readings, None if logits else 1.0)
        return [
            NextTokens(one, reading.cut_tokens, (False,) * len(one))
            for reading, one in zip(readings, values, strict=True)
        ]

    def _read(self, readings: Sequence[TokenSequence], temperature: float | None) -> list[npt.NDArray[np.float64]]:
        """Return what is read. Equal sequences are computed once, so that ties do not depend on the batches."""
        keys = [(one.source, tuple(one.ids), tuple(one.positions), tuple(one.target_ids)) for one in readings]
        distinct = dict(zip(keys, readings, strict=True))
        engine = self._loaded()
        with progress_bar(self._options["show_progress"], "Reading") as (expect, engine.advance):
            expect(len(distinct))
            values_of = dict(zip(distinct, engine.read(list(distinct.values()), temperature), strict=True))
        results = [values_of[key].copy() for key in keys]
        for position, values in enumerate(results):
            if not np.isfinite(values).all():
                raise NotFinite(
                    f"Request {position} has a log-probability of {values[~np.isfinite(values)][0]}: "
                    "the weights are broken, or overflow in this dtype. Try float32."
                )
        return results


def make_sequences(engine: Engine, requests: Sequence[AnyRequest], end_ids: Sequence[int] = ()) -> list[TokenSequence]:
    """Convert requests to token ids: prompts with their targets, or prompts whose next token is an answer.

    Args:
        engine: The loaded model.
        requests: Requests of one kind. An empty target is for a prompt alone.
        end_ids: Ids behind each target.

    Raises:
        InvalidInput: A target is longer than the model can write, an answer is not a token of the model, or as
            `fit_to_budgets`.
    """
    sequences = []
    answer_id = cache(engine.tokenizer.answer_id)
    make = _make_decoder_sequences if engine.start is None else _make_encoder_sequences
    for request, sequence in zip(requests, make(engine, requests, end_ids), strict=True):
        if isinstance(request, NextTokenRequest):
            answer_ids = list(map(answer_id, request.answers))
            positions = [len(sequence.ids) - 1] * len(answer_ids)
            # The query is part of the prompt, mostly in front of the document. So no prefix comes again.
            sequence = replace(sequence, positions=positions, target_ids=answer_ids, boundaries=(), n_kept=0)
        sequences.append(sequence)
    return sequences


def _make_decoder_sequences(
    engine: Engine, requests: Sequence[AnyRequest], end_ids: Sequence[int]
) -> Iterator[TokenSequence]:
    """Yield prompts and targets as one string each."""
    for ids, target_start, n_cut, spans in as_one_string(requests, engine.tokenizer, engine.window, end_ids):
        positions = range(target_start - 1, len(ids) - 1)
        boundaries, n_kept = _find_boundaries(spans, target_start - 1)
        yield TokenSequence((), ids, positions, ids[target_start:], n_cut, boundaries, n_kept)


def _find_boundaries(spans: Sequence[tuple[int, int]], last: int) -> tuple[tuple[int, ...], int]:
    """Return where prefixes that other prompts may share end, and how many of them a prefix cache keeps.

    Args:
        spans: Index of the first token of each document of a prompt, and the one behind its last.
        last: Index of the prompt's last token, which is computed with the target.

    >>> _find_boundaries([(2, 180)], 190), _find_boundaries([(2, 180), (180, 300)], 310)
    (((180, 190), 2), ((180, 300, 310), 1))
    """
    if not spans:
        return (), 0
    (first_start, first_end), *_ = spans
    ends = [first_start] * (first_start >= _MIN_SHARED) + [end for _, end in spans] + [last]
    boundaries = tuple(sorted({end for end in ends if 0 < end <= last}))
    n_first = sum(end <= first_end for end in boundaries)
    return boundaries, len(boundaries) if len(spans) == 1 else n_first


def _make_encoder_sequences(
    engine: Engine, requests: Sequence[AnyRequest], end_ids: Sequence[int]
) -> Iterator[TokenSequence]:
    """Yield prompts for the encoder and targets for the decoder.

    Raises:
        InvalidInput: A target is longer than the model can write.
    """
    tokenizer, window = engine.tokenizer, engine.window
    start_ids: list[int] = engine.start or []
    texts = list(dict.fromkeys(request.target for request in requests if request.target))
    ids_by_target = dict(zip(texts, (tokens.ids for tokens in tokenizer.batch(texts)), strict=True)) | {"": []}
    max_tokens = (engine.longest_target or limits.TARGET_TOKENS) - len(start_ids)
    for target, ids in ids_by_target.items():
        if len(ids) > max_tokens:
            raise InvalidInput(
                f"The question, or another scored text, has {len(ids)} tokens, and the model can write {max_tokens}. "
                f"It begins with {target[:40]!r}. Shorten it, or choose another model."
            )
    max_prompt = None if window is None else window - len(tokenizer.prefix) - len(tokenizer.suffix)
    prompts = fit_to_budgets(requests, tokenizer, max_prompt, with_targets=False)
    for request, prompt in zip(requests, prompts, strict=True):
        source = (*tokenizer.started(prompt.tokens.ids), *tokenizer.suffix)
        ids = [*start_ids, *ids_by_target[request.target], *end_ids]
        positions = range(len(start_ids) - 1, len(ids) - 1)
        yield TokenSequence(source, ids, positions, ids[len(start_ids) :], prompt.cut_tokens)


def by_length(
    lengths: Sequence[int], budget: int, targets: Sequence[int] | None = None, target_budget: int = 0
) -> Iterator[list[int]]:
    """Yield indices in batches of similar length, longest first, so that the least is computed.

    A batch costs its tokens after padding, and as much as `budget / 32` tokens for the steps that a model takes for
    each batch.

    Args:
        lengths: Number of tokens of each item.
        budget: Number of tokens of a batch after padding. A longer item is a batch of its own.
        targets: Number of target tokens of each item, each of which needs a row of logits. None if they do not count.
        target_budget: Number of target tokens of a batch.

    >>> list(by_length([3, 9, 4, 4], budget=8))
    [[1], [2, 3], [0]]
    >>> list(by_length([4, 4], budget=8, targets=[5, 5], target_budget=9))
    [[0], [1]]
    >>> list(by_length([100, 20, 98, 22], budget=1000))
    [[0, 2], [3, 1]]
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    rows = np.cumsum([0, *(targets[position] for position in order)]) if targets else np.zeros(len(order) + 1)
    # Least cost of the items before each index, and the index where the last batch of them begins.
    costs, begins = np.full(len(order) + 1, np.inf), np.zeros(len(order) + 1, dtype=int)
    costs[0] = 0.0
    for first, position in enumerate(order):
        fitting = int(np.searchsorted(rows, rows[first] + target_budget, side="right")) - 1 - first
        most = max(1, min(fitting, budget // max(lengths[position], 1)))
        ends = slice(first + 1, first + most + 1)
        with_batch = costs[first] + budget / _STEPS + lengths[position] * np.arange(1, len(costs[ends]) + 1)
        begins[ends][with_batch < costs[ends]] = first
        costs[ends] = np.minimum(costs[ends], with_batch)
    cuts = [len(order)]
    while cuts[-1]:
        cuts.append(int(begins[cuts[-1]]))
    for end, first in reversed(list(pairwise(cuts))):
        yield order[first:end]


def in_halves(run: Callable[[list[int]], None], batch: list[int]) -> None:
    """Run a batch, or its two halves if the memory does not suffice.

    Raises:
        OutOfMemory: A single item does not fit.
    """
    try:
        run(batch)
    except (MemoryError, RuntimeError) as error:
        text = str(error).lower()
        if not (isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text):
            raise
        if len(batch) == 1:
            raise OutOfMemory(
                "One prompt alone does not fit into memory. Lower max_length, or use a smaller model or dtype."
            ) from error
    else:
        return
    middle = len(batch) // 2  # outside the handler, so that the failed attempt's tensors are free
    in_halves(run, batch[:middle])
    in_halves(run, batch[middle:])


def longest_target(config: Any) -> int | None:
    """Return the number of positions of an encoder-decoder's target, special tokens included. None for no limit."""
    if not config.is_encoder_decoder:
        return None
    encoder: int | None = getattr(config, "max_position_embeddings", None)
    decoder: int | None = getattr(config, "max_decoder_position_embeddings", encoder)
    return decoder
