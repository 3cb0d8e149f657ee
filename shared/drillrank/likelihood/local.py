"""A neural model on this machine, whatever computes it: from requests to token ids, in batches, and back.

It is loaded at the first use and pickled without its weights. One worker thread computes whatever callers of any
thread ask for, call by call: what a call finds never depends on who else asks.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from drillrank import limits
from drillrank.errors import DrillrankError, InvalidInput
from drillrank.likelihood.base import (
    FromOptions,
    Likelihood,
    NextTokenRequest,
    NextTokens,
    Request,
    TrainedAnswers,
    as_said,
    read_trained_answers,
)
from drillrank.likelihood.process import Worker
from drillrank.likelihood.tokenizer import TextTokenizer, as_one_string, fit_to_budgets, prompts_alone
from drillrank.prompts import Evidence

T = TypeVar("T")
Loaded = TypeVar("Loaded", bound="Engine")

_STEPS = 32  # batches whose fixed costs are those of a full batch's tokens


class NotFinite(DrillrankError):
    """The model returned a probability that is not a number."""


class OutOfMemory(DrillrankError, MemoryError):
    """A single item does not fit into the device's memory."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is to be read of one request.

    Attributes:
        source: What the encoder reads; empty for decoder-only models.
        ids: What the decoder reads.
        at: For each token that is wanted, the position in `ids` that predicts it.
        wanted: The ids of these tokens.
        cut_tokens: Tokens of documents that were left out.
    """

    source: tuple[int, ...]
    ids: list[int]
    at: Sequence[int]
    wanted: list[int]
    cut_tokens: int


class Engine(ABC):
    """A loaded model.

    Attributes:
        model: The model, of torch or of CTranslate2.
        tokenizer: Tokenises text as data.
        window: Longest input in tokens, special tokens included, or None.
        start: What an encoder-decoder's targets begin behind; None for decoder-only models.
        longest_target: Positions of an encoder-decoder's target, special tokens included, or None.
        batch_tokens: Tokens of one batch after padding, keys and values of others that it stands on included.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: TextTokenizer,
        *,
        window: int | None,
        start: list[int] | None,
        longest_target: int | None,
        batch_tokens: int,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.window = window
        self.start = start
        self.longest_target = longest_target
        self.batch_tokens = batch_tokens

    @property
    def left_behind(self) -> bool:
        """Whether it is of no use in this process, since what computes did not come along in a fork."""
        return False

    @abstractmethod
    def read(self, readings: Sequence[Reading], temperature: float | None) -> list[npt.NDArray[np.float64]]:
        """Log-probabilities of each reading's tokens; without a temperature, their logits.

        Raises:
            OutOfMemory: a single reading does not fit.
        """


class LocalModel(FromOptions, Generic[Loaded]):
    """What models on this machine have in common.

    Args:
        name: Model id or directory.
        given: The constructor's `locals()`; `chat` is among the options.

    Raises:
        InvalidInput: the name is empty.
    """

    kind: ClassVar[str]
    """What stands in front of the colon of a specification."""

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        if not name:
            raise InvalidInput(f'"{self.kind}:" needs a model id or a directory behind the colon.')
        super().__init__(name, given)
        self._engine: Loaded | None = None
        self._worker = Worker()

    @property
    def spec(self) -> str:
        """The kind and the model's name."""
        return f"{self.kind}:{self._name}"

    @property
    def include_eos_by_default(self) -> bool:
        """True for encoder-decoder models, whose training targets end with the end-of-sequence token."""
        return self.engine.start is not None

    @property
    def engine(self) -> Loaded:
        """The loaded model; loads it if need be."""
        engine = self._engine
        return self._worker.run(self._loaded) if engine is None or engine.left_behind else engine

    @property
    def tells_next_tokens(self) -> bool:
        """True."""
        return True

    @cached_property
    def trained_answers(self) -> TrainedAnswers | None:
        """What the checkpoint's `1_LogitScore/config.json` names, if it has one."""
        return read_trained_answers(self._name, self._options.get("revision"))

    async def run_in_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function on the thread on which this model computes, without blocking the event loop.

        First come, first served; a task that is cancelled before its turn gives its place up. The function must not
        wait for another model of this kind that may be waiting for this one.
        """
        return await asyncio.wrap_future(self._worker.submit(function, *arguments))

    def _loaded(self) -> Loaded:
        if self._engine is None or self._engine.left_behind:
            self._engine = self._load()
        return self._engine

    @abstractmethod
    def _load(self) -> Loaded: ...

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        said = as_said(requests, self._options["chat"])
        return self._worker.run(self._likelihoods, said, temperature, include_eos)

    def _next_tokens(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        return self._worker.run(self._answers, requests, logits)

    def _likelihoods(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        tokenizer = self._loaded().tokenizer
        end = [tokenizer.eos_id] if include_eos and tokenizer.eos_id is not None else []
        if include_eos and not end:
            raise InvalidInput("This model has no end-of-sequence token: pass include_eos=False.")
        readings = _targets(self._loaded(), requests, end)
        return [
            Likelihood(
                [tokenizer.token_names[id_] for id_ in reading.wanted],
                log_probs,
                float(log_probs.sum()),
                reading.cut_tokens,
            )
            for reading, log_probs in zip(readings, self._read(readings, temperature), strict=True)
        ]

    def _answers(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        readings = _next(self._loaded(), requests)
        values = self._read(readings, None if logits else 1.0)
        return [
            NextTokens(one, reading.cut_tokens, (False,) * len(one))
            for reading, one in zip(readings, values, strict=True)
        ]

    def _read(self, readings: Sequence[Reading], temperature: float | None) -> list[npt.NDArray[np.float64]]:
        """What is read; the same twice is computed once, so that ties stay ties whatever batches they fall into."""
        keys = [(one.source, tuple(one.ids), tuple(one.at), tuple(one.wanted)) for one in readings]
        distinct = dict(zip(keys, readings, strict=True))
        values_of = dict(zip(distinct, self._loaded().read(list(distinct.values()), temperature), strict=True))
        found = [values_of[key].copy() for key in keys]
        for position, values in enumerate(found):
            if not np.isfinite(values).all():
                raise NotFinite(
                    f"Request {position} has a log-probability of {values[~np.isfinite(values)][0]}: "
                    "the weights are broken, or overflow in this dtype; try float32."
                )
        return found

    def first_tokens(self, text: str, count: int) -> str:
        """The longest beginning of a text that has at most `count` tokens, special ones not counted.

        Longest as budgets have it: it has `count` tokens, or more than that with one token more of the text.
        """
        request = Request((Evidence(text, count),), "")
        [fitted] = fit_to_budgets([request], self.engine.tokenizer, None, with_targets=False)
        return fitted.text

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, special tokens not counted."""
        return len(self.engine.tokenizer(text).ids)


def _targets(engine: Engine, requests: Sequence[Request], end: Sequence[int]) -> list[Reading]:
    """The requests' targets behind their prompts.

    Raises:
        InvalidInput: a target is longer than the model can write; or as `fit_to_budgets`.
    """
    tokenizer, start = engine.tokenizer, engine.start
    if start is None:
        return [
            Reading((), ids, range(first - 1, len(ids) - 1), ids[first:], cut)
            for ids, first, cut in as_one_string(requests, tokenizer, engine.window, end)
        ]
    distinct = list(dict.fromkeys(request.target for request in requests))
    ids_of = {target: tokens.ids for target, tokens in zip(distinct, tokenizer.batch(distinct), strict=True)}
    room = (engine.longest_target or limits.TARGET_TOKENS) - len(start)
    for target, ids in ids_of.items():
        if len(ids) > room:
            raise InvalidInput(
                f"The question, or what else is scored, has {len(ids)} tokens, and the model can write {room}: "
                f"shorten it, or take another model. It begins with {target[:40]!r}."
            )
    readings = []
    for request, (source, cut) in zip(requests, _sources(engine, requests), strict=True):
        wanted = [*ids_of[request.target], *end]
        at = range(len(start) - 1, len(start) + len(wanted) - 1)
        readings.append(Reading(source, [*start, *wanted], at, wanted, cut))
    return readings


def _next(engine: Engine, requests: Sequence[NextTokenRequest]) -> list[Reading]:
    """The requests' answers right behind their prompts.

    Raises:
        InvalidInput: an answer is no token of the model; or as `fit_to_budgets`.
    """
    known = {answer: engine.tokenizer.answer_id(answer) for request in requests for answer in request.answers}
    alone = prompts_alone(requests)
    prompts: list[tuple[tuple[int, ...], list[int], int]]
    if engine.start is None:
        whole = as_one_string(alone, engine.tokenizer, engine.window)
        prompts = [((), ids, cut) for ids, _, cut in whole]
    else:
        prompts = [(source, engine.start, cut) for source, cut in _sources(engine, alone)]
    return [
        Reading(source, ids, [len(ids) - 1] * len(request.answers), [known[answer] for answer in request.answers], cut)
        for request, (source, ids, cut) in zip(requests, prompts, strict=True)
    ]


def _sources(engine: Engine, requests: Sequence[Request]) -> list[tuple[tuple[int, ...], int]]:
    """What the encoder reads for each request, and how many tokens of documents it does not."""
    tokenizer = engine.tokenizer
    window = None if engine.window is None else engine.window - len(tokenizer.prefix) - len(tokenizer.suffix)
    return [
        ((*tokenizer.started(prompt.tokens.ids), *tokenizer.suffix), prompt.cut_tokens)
        for prompt in fit_to_budgets(requests, tokenizer, window, with_targets=False)
    ]


def by_length(
    lengths: Sequence[int], budget: int, targets: Sequence[int] | None = None, target_budget: int = 0
) -> Iterator[list[int]]:
    """Positions in batches of similar length, longest first, so divided that the least is computed.

    A batch costs its tokens after padding, and as much as `budget / 32` tokens for being one more: the steps that a
    model takes whatever it is given.

    Args:
        lengths: Tokens of each item.
        budget: Tokens of a batch after padding; a longer item is a batch of its own.
        targets: Target tokens of each item, each of which needs a row of logits; None if these do not count here.
        target_budget: Target tokens of a batch.

    >>> list(by_length([3, 9, 4, 4], budget=8))
    [[1], [2, 3], [0]]
    >>> list(by_length([4, 4], budget=8, targets=[5, 5], target_budget=9))
    [[0], [1]]
    >>> list(by_length([100, 20, 98, 22], budget=1000))
    [[0, 2], [3, 1]]
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    rows = np.cumsum([0, *(targets[position] for position in order)]) if targets else np.zeros(len(order) + 1)
    # The least cost of all that stands before each place, and where its last batch begins.
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
    """Run a batch; when the memory does not suffice, its two halves.

    Raises:
        OutOfMemory: a single item does not fit.
    """
    try:
        run(batch)
    except (MemoryError, RuntimeError) as error:
        text = str(error).lower()
        if not (isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text):
            raise
        if len(batch) == 1:
            raise OutOfMemory(
                "One prompt alone does not fit into memory: lower max_length, or use a smaller model or dtype."
            ) from error
    else:
        return
    middle = len(batch) // 2  # outside the handler, so that the failed attempt's tensors are free
    in_halves(run, batch[:middle])
    in_halves(run, batch[middle:])


def longest_target(config: Any) -> int | None:
    """Positions of an encoder-decoder's target, special tokens included; None if it does not count them."""
    if not config.is_encoder_decoder:
        return None
    encoder: int | None = getattr(config, "max_position_embeddings", None)
    decoder: int | None = getattr(config, "max_decoder_position_embeddings", encoder)
    return decoder
