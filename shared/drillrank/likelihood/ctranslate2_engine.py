"""Models that CTranslate2 computes on a CPU: tokens, targets and reads as on torch, without shared prefixes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput
from drillrank.likelihood.batching import by_length, in_halves
from drillrank.likelihood.decoder_only import DecoderOnly
from drillrank.likelihood.encoder_decoder import EncoderDecoder
from drillrank.likelihood.engine import Engine, Found, Targets
from drillrank.likelihood.forks import keep_in_children
from drillrank.likelihood.prefix_trie import Row, TokenSequence, common_prefix, row_of
from drillrank.likelihood.text_tokenizer import TextTokenizer

_BATCH_TOKENS = 2048
_LOGIT_BYTES = 256 * 2**20  # of float32 logits at once: a decoder's are computed at every token


class CTranslate2Engine(Engine):
    """A loaded model of CTranslate2: a `ctranslate2.Generator` or `ctranslate2.Translator`.

    Args:
        longest_target: Positions of an encoder-decoder's target, or None.
        limits: As for every engine.
    """

    def __init__(
        self, model: Any, tokenizer: TextTokenizer, *, longest_target: int | None, **limits: int | None
    ) -> None:
        super().__init__(model, tokenizer, **limits)
        self._longest_target = longest_target
        self._process = os.getpid()
        keep_in_children(self)

    @property
    def left_behind(self) -> bool:
        """True in another process: CTranslate2 computes on threads of its own."""
        return self._process != os.getpid()

    def _sizes(self) -> tuple[int, int, int]:
        return _BATCH_TOKENS, len(self.tokenizer.token_names), _LOGIT_BYTES


class CTranslate2Causal(CTranslate2Engine, DecoderOnly):
    """GPT, OPT, Llama, Qwen and their kin: logits of whole sequences, read where a target is predicted."""

    def _found(self, sequences: Sequence[TokenSequence], temperature: float | None) -> Found:
        rows = _chains(sequences)
        found: Found = []

        def run(batch: list[int]) -> None:
            some = [rows[i] for i in batch]
            with _told_of_positions():
                logits = np.asarray(self.model.forward_batch([row.ids for row in some]))
            for row, of_row in zip(some, logits, strict=True):
                at = of_row[[read.node for read in row.reads]]
                wanted = [read.token for read in row.reads]
                found.append(([read.slot for read in row.reads], _log_probs(at, wanted, temperature)))

        lengths = [len(row.ids) for row in rows]
        for batch in by_length(lengths, min(self.batch_tokens, self.batch_targets)):
            in_halves(run, batch)
        return found


class CTranslate2Seq2Seq(CTranslate2Engine, EncoderDecoder):
    """T5, BART and their kin: whole targets by their scores, targets of one token by the logits of the first step."""

    @property
    def _decoder_window(self) -> int | None:
        return self._longest_target

    def _run(
        self, askers: Mapping[tuple[int, ...], Sequence[int]], targets: Targets, temperature: float | None
    ) -> None:
        whole: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
        single: dict[tuple[int, ...], list[int]] = {}
        for prompt, positions in askers.items():
            for position in positions:
                target = tuple(targets.ids[position])
                if len(target) > 1:
                    whole.setdefault((prompt, target), []).append(position)
                else:
                    single.setdefault(prompt, []).append(position)
        if whole and temperature != 1:
            raise InvalidInput(
                f"CTranslate2 scores the targets of an encoder-decoder at temperature 1, not {temperature!r}: leave "
                'it out, or load the model by "hf:".'
            )
        self._score_whole(whole, targets)
        self._score_single(single, targets, temperature)

    def _score_whole(
        self, askers: Mapping[tuple[tuple[int, ...], tuple[int, ...]], Sequence[int]], targets: Targets
    ) -> None:
        pairs = list(askers)

        def run(batch: list[int]) -> None:
            some = [pairs[i] for i in batch]
            sources = [self._named(prompt) for prompt, _ in some]
            # The end-of-sequence token is scored behind every target, whether or not it is wanted.
            wanted = [self._named([*self.tokenizer.prefix, *_without_end(target, self.eos_id)]) for _, target in some]
            with _told_of_positions():
                scored = self.model.score_batch(sources, wanted, max_input_length=0)
            first = len(self.tokenizer.prefix)
            for pair, result in zip(some, scored, strict=True):
                log_probs = np.array(result.log_probs[first : first + len(pair[1])])
                for position in askers[pair]:
                    targets.found.append((_slots(targets, position), log_probs))

        lengths = [len(prompt) + len(target) for prompt, target in pairs]
        for batch in by_length(lengths, self.batch_tokens, [len(target) for _, target in pairs], self.batch_targets):
            in_halves(run, batch)

    def _score_single(
        self, askers: Mapping[tuple[int, ...], Sequence[int]], targets: Targets, temperature: float | None
    ) -> None:
        prompts = list(askers)
        start = self._named(self.tokenizer.prefix)

        def run(batch: list[int]) -> None:
            with _told_of_positions():
                written = self.model.translate_batch(
                    [self._named(prompts[i]) for i in batch],
                    target_prefix=[start] * len(batch) if start else None,
                    beam_size=1,
                    min_decoding_length=0,  # or the end-of-sequence token is ruled out
                    max_decoding_length=len(start) + 1,
                    max_input_length=0,
                    return_logits_vocab=True,
                )
            for i, result in zip(batch, written, strict=True):
                positions = askers[prompts[i]]
                logits = np.asarray(result.logits[0][-1])[None].repeat(len(positions), axis=0)
                wanted = [targets.ids[position][0] for position in positions]
                slots = [targets.starts[position] for position in positions]
                targets.found.append((slots, _log_probs(logits, wanted, temperature)))

        for batch in by_length([len(prompt) for prompt in prompts], self.batch_tokens):
            in_halves(run, batch)

    def _named(self, ids: Sequence[int]) -> list[str]:
        """Tokens by their names in the vocabulary, each of which is that of one token."""
        return [self.tokenizer.token_names[id_] for id_ in ids]


def _chains(sequences: Sequence[TokenSequence]) -> list[Row]:
    """The sequences in rows: one that goes on where another ends stands in the same row."""
    ordered = sorted(sequences, key=lambda sequence: sequence.computed)
    groups: list[list[TokenSequence]] = []
    for sequence in ordered:
        before = groups[-1][-1].computed if groups else []
        if groups and common_prefix(before, sequence.computed) == len(before):
            groups[-1].append(sequence)
        else:
            groups.append([sequence])
    return [row_of(group) for group in groups]


def _log_probs(
    logits: npt.NDArray[np.float32], ids: Sequence[int], temperature: float | None
) -> npt.NDArray[np.float64]:
    """Log-softmax of each row at its target in float64, shape (targets,); without a temperature, the logits."""
    rows = np.arange(len(ids))
    if temperature is None:
        return logits[rows, ids].astype(np.float64)
    wide = logits / np.float32(temperature)
    wide -= wide.max(axis=1, keepdims=True)
    chosen = wide[rows, ids].astype(np.float64)
    found: npt.NDArray[np.float64] = chosen - np.log(np.exp(wide, out=wide).sum(axis=1, dtype=np.float64))
    return found


def _slots(targets: Targets, position: int) -> range:
    return range(targets.starts[position], targets.starts[position + 1])


def _without_end(target: Sequence[int], eos_id: int | None) -> Sequence[int]:
    return target[:-1] if target[-1] == eos_id else target


@contextmanager
def _told_of_positions() -> Iterator[None]:
    """Say what to do where a prompt or a target has more tokens than the model has positions."""
    try:
        yield
    except RuntimeError as error:
        if "position" not in str(error):
            raise
        raise InvalidInput(
            f"A prompt or a question is longer than the model can read: give the option max_length. ({error})"
        ) from error
