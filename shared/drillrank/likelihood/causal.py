"""Decoder-only models on torch: common token prefixes are computed once."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import transformers

from drillrank.likelihood.batching import by_length, in_halves
from drillrank.likelihood.decoder_only import DecoderOnly
from drillrank.likelihood.engine import Found, Targets
from drillrank.likelihood.prefix_trie import Plan, Row, Stem, TokenSequence, plan, row_of
from drillrank.likelihood.torch_engine import TorchEngine, to_device

logger = logging.getLogger(__name__)

_States = list[tuple[torch.Tensor, torch.Tensor]]  # each layer's keys and values, (stems, heads, tokens, head size)
_NO_STEM = Stem([], [])


class CausalEngine(TorchEngine, DecoderOnly):
    """GPT, OPT, Llama, Qwen and their kin through transformers."""

    _shares: bool | None = None  # not known before the first use

    def _found(self, sequences: Sequence[TokenSequence], temperature: float | None) -> Found:
        """What is to be read of the sequences, with what they begin with computed once where that is possible."""
        if self._shares is None:
            self._shares = self._can_share()
        share = self._shares and max(len(sequence.ids) for sequence in sequences) <= self._attention_window()
        return self._run(plan(sequences, share=share, width=self._head.weight.shape[1]), temperature)

    def _run(self, todo: Plan, temperature: float | None) -> Found:
        """Log-probabilities of all reads of a plan."""
        found: Found = []

        def run_rows(rows: Sequence[Row], stem_of: Sequence[int], stems: Sequence[Stem], states: _States) -> None:
            def run(batch: list[int]) -> None:
                some = [rows[i] for i in batch]
                lengths = [len(stems[stem_of[i]].ids) for i in batch]
                logits = self._logits(some, lengths, _chosen(states, [stem_of[i] for i in batch], max(lengths)))
                reads = [read for row in some for read in row.reads]
                log_probs = self._log_probs(logits, [read.token for read in reads], temperature)
                found.append(([read.slot for read in reads], log_probs))

            # A token of the stem takes memory for its keys and values alone.
            lengths = [len(row.ids) + len(stems[stem].ids) // 4 for row, stem in zip(rows, stem_of, strict=True)]
            reads = [len(row.reads) for row in rows]
            for batch in by_length(lengths, self.batch_tokens, reads, self.batch_targets):
                in_halves(run, batch)

        def run_stems(batch: list[int]) -> None:
            stems = [todo.stems[i] for i in batch]
            stem_of = [number for number, stem in enumerate(stems) for _ in stem.rows]
            run_rows([row for stem in stems for row in stem.rows], stem_of, stems, self._states(stems))

        run_rows(todo.rows, [0] * len(todo.rows), [_NO_STEM], [])
        for batch in by_length([len(stem.ids) for stem in todo.stems], self.batch_tokens):
            in_halves(run_stems, batch)
        return found

    def _states(self, stems: Sequence[Stem]) -> _States:
        """Keys and values of the stems, padded on the right."""
        cache: Any = transformers.DynamicCache()
        ids, _ = self._padded([stem.ids for stem in stems])
        nowhere = torch.zeros(1, dtype=torch.long, device=self.device)
        with self._head_only_at(nowhere, nowhere):
            self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        return [(layer.keys, layer.values) for layer in cache.layers]

    def _logits(self, rows: Sequence[Row], stems: Sequence[int], states: _States) -> torch.Tensor:
        """Logits at all reads of the rows, in order; each row on a stem of so many tokens, whose states are given."""
        ids, _ = self._padded([row.ids for row in rows])
        inputs: dict[str, Any] = {"input_ids": ids, "use_cache": bool(states)}
        # A plain sequence needs no mask: what pads it stands behind all that is read.
        if states or not all(row.is_chain for row in rows):
            inputs["position_ids"], _ = self._padded([row.depths for row in rows])
            visible = to_device(_ancestors(rows, stems, ids.shape[1]), self.device)
            dtype = self.model.dtype
            hidden = torch.full((), torch.finfo(dtype).min, dtype=dtype, device=self.device)
            inputs["attention_mask"] = torch.where(visible, torch.zeros_like(hidden), hidden)
        if states:
            inputs["past_key_values"] = cache = transformers.DynamicCache()
            for layer, (keys, values) in enumerate(states):
                cache.update(keys, values, layer)
        at_row = np.repeat(np.arange(len(rows)), [len(row.reads) for row in rows])
        at_node = np.array([read.node for row in rows for read in row.reads])
        with self._head_only_at(to_device(at_row, self.device), to_device(at_node, self.device)):
            logits: torch.Tensor = self.model(**inputs).logits
        return logits

    def _attention_window(self) -> int:
        """How many tokens back each layer sees; a mask of ancestors would hide nothing beyond it."""
        config = self.model.config.get_text_config()
        return getattr(config, "sliding_window", None) or sys.maxsize

    def _can_share(self) -> bool:
        """Whether the model computes branches on stems as it computes the sequences alone.

        Some architectures take their positions from elsewhere, or limit attention to a window of neighbours in memory.
        """
        vocabulary = min(len(self.tokenizer.token_names), self._head.weight.shape[0])
        ids = np.random.default_rng(0).integers(0, vocabulary, 56).tolist()
        pairs = [
            [
                TokenSequence([*ids[: stem + 8], *branch], stem + 1, 64 * number + 32 * place)
                for place, branch in enumerate(sorted((ids[32:44], ids[44:])))
            ]
            for number, stem in enumerate((12, 16))  # of different lengths, so that padding is tried too
        ]
        rows = [row_of(pair) for pair in pairs]
        on_stems = [Stem(ids[:stem], [row_of(pair, stem)]) for stem, pair in zip((12, 16), pairs, strict=True)]
        sequences = [sequence for pair in pairs for sequence in pair]
        targets = [Targets(starts=[0, 128], found=self._run(plan(sequences, share=False, width=1), 1.0))]
        try:
            targets += [
                Targets(starts=[0, 128], found=self._run(todo, 1.0)) for todo in (Plan(rows, []), Plan([], on_stems))
            ]
        except (ValueError, TypeError, RuntimeError, IndexError, AttributeError) as error:
            logger.info("Prefixes are not shared: the model refuses a tree of tokens (%s).", error)
            return False
        alone, in_rows, on_stem = (np.nan_to_num(target.log_probs()) for target in targets)
        tolerance = 1e-4 if self.model.dtype == torch.float32 else 0.1
        same = max(abs(alone - in_rows).max(), abs(alone - on_stem).max()) <= tolerance
        if not same:
            logger.info("Prefixes are not shared: the model computes a tree of tokens otherwise than its branches.")
        return bool(same)


def _chosen(states: _States, stems: Sequence[int], longest: int) -> _States:
    """One copy of its stem's states for each row, no longer than the longest of these stems."""
    if not states:
        return []
    rows = to_device(np.array(stems), states[0][0].device)
    return [(keys[:, :, :longest][rows], values[:, :, :longest][rows]) for keys, values in states]


def _ancestors(rows: Sequence[Row], stems: Sequence[int], width: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which tokens of its stem and nodes of its row each node sees: itself and its ancestors.

    Args:
        rows: The rows.
        stems: Tokens of each row's stem.
        width: Nodes of a row after padding.

    Returns:
        Shape (rows, 1, width, longest stem + width).
    """
    longest = max(stems)
    mask = np.zeros((len(rows), 1, width, longest + width), dtype=bool)
    mask[:, 0, np.arange(width), longest + np.arange(width)] = True  # padding sees itself
    for number, (row, stem) in enumerate(zip(rows, stems, strict=True)):
        mask[number, 0, :, :stem] = True
        visible = mask[number, 0]
        for node, parent in enumerate(row.parents):
            if parent >= 0:
                visible[node] |= visible[parent]
    return mask
