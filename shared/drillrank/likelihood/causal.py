"""Decoder-only models: common token prefixes are computed once.

Sorted token sequences form a trie. A row of a batch holds part of it, one node per token; a token attends to its
ancestors only and keeps its depth as position, so each path through the trie is computed as if it were alone.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import Request
from drillrank.likelihood.batching import by_length, in_halves
from drillrank.likelihood.engine import Engine, Scored, to_device
from drillrank.likelihood.prompt_tokens import fit_to_budgets
from drillrank.prompts import prompt_text

logger = logging.getLogger(__name__)

_ROW = 512  # nodes; a longer row wastes attention on pairs that the mask hides


@dataclass(slots=True)
class TokenSequence:
    """One request as token ids, and where its target begins."""

    ids: list[int]
    target_start: int
    position: int


class Read(NamedTuple):
    """A target token: the node that predicts it, its id, the request, and its place in the request's target."""

    node: int
    token: int
    request: int
    place: int


@dataclass(slots=True)
class Row:
    """Nodes of a trie in the order of first visit.

    Attributes:
        ids: Token of each node.
        parents: Node before it, or -1.
        depths: Tokens before it.
        reads: One for each target token.
    """

    ids: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)


class CausalEngine(Engine):
    """GPT, OPT, Llama, Qwen and their kin: log P(target | prompt) within one string."""

    include_eos_by_default = False
    _shares: bool | None = None  # not known before the first use

    def _score(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Scored]:
        joined = [_joined(request) for request in requests]
        end = [self.eos_id] if include_eos and self.eos_id is not None else []
        start = self.tokenizer.prefix
        window = None if self.window is None else self.window - len(start) - len(end)
        fitted = fit_to_budgets(requests, joined, self.tokenizer, window)
        scored, sequences = [], []
        for position, (request, item) in enumerate(zip(requests, fitted, strict=True)):
            boundary = len(item.text) - len(request.target)
            first = int(np.searchsorted(item.tokens.ends, boundary, side="right"))
            ids = [*start, *item.tokens.ids, *end]
            first += len(start)
            target = ids[first:]
            scored.append(Scored(target, item.cut_tokens, np.zeros(len(target))))
            sequences.append(TokenSequence(ids, first, position))
        if self._shares is None:
            self._shares = self._can_share()
        longest = max(len(sequence.ids) for sequence in sequences)
        share = self._shares and longest <= self._attention_window()
        rows = _rows(sorted(sequences, key=lambda sequence: sequence.ids), share=share)

        def run(batch: list[int]) -> None:
            self._one_batch([rows[i] for i in batch], share, scored, temperature)

        lengths, targets = [len(row.ids) for row in rows], [len(row.reads) for row in rows]
        for batch in by_length(lengths, self.batch_tokens, targets, self.batch_targets):
            in_halves(run, batch)
        return scored

    def _one_batch(self, rows: Sequence[Row], share: bool, scored: Sequence[Scored], temperature: float) -> None:
        reads = [read for row in rows for read in row.reads]
        logits = self._logits(rows, tree=share)
        log_probs = self._log_probs(logits, [read.token for read in reads], temperature)
        for read, log_prob in zip(reads, log_probs, strict=True):
            scored[read.request].log_probs[read.place] = log_prob

    def _logits(self, rows: Sequence[Row], *, tree: bool) -> torch.Tensor:
        """Logits at all reads of the rows, in order; as tries, or as plain sequences padded on the right."""
        width = max(len(row.ids) for row in rows)
        ids = np.zeros((len(rows), width), dtype=np.int64)
        positions = np.zeros((len(rows), width), dtype=np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row.ids)] = row.ids
            positions[number, : len(row.ids)] = row.depths
        inputs = {"input_ids": to_device(ids, self.device)}
        if tree:
            inputs["position_ids"] = to_device(positions, self.device)
            inputs["attention_mask"] = to_device(_ancestors(rows, width), self.device)
        else:
            real = np.arange(width) < np.array([[len(row.ids)] for row in rows])
            inputs["attention_mask"] = to_device(real.astype(np.int64), self.device)
        at_row = [number for number, row in enumerate(rows) for _ in row.reads]
        at_node = [read.node for row in rows for read in row.reads]
        with self._head_only_at(torch.tensor(at_row, device=self.device), torch.tensor(at_node, device=self.device)):
            logits: torch.Tensor = self.model(**inputs, use_cache=False).logits
        return logits

    def _attention_window(self) -> int:
        """How many tokens back each layer sees; a mask of ancestors would hide nothing beyond it."""
        config = self.model.config.get_text_config()
        return getattr(config, "sliding_window", None) or sys.maxsize

    def _can_share(self) -> bool:
        """Whether the model computes two branches of a trie as it computes the two sequences alone.

        Some architectures take their positions from elsewhere, or limit attention to a window of neighbours in memory.
        """
        vocabulary = min(len(self.tokenizer.token_names), self._head.weight.shape[0])
        ids = np.random.default_rng(0).integers(0, vocabulary, 48).tolist()
        branches = [TokenSequence([*ids[:16], *ids[at : at + 16]], 1, 0) for at in (16, 32)]
        alone = torch.log_softmax(self._logits(_rows(branches, share=False), tree=False).float(), dim=-1)
        try:
            shared = torch.log_softmax(self._logits(_rows(branches, share=True), tree=True).float(), dim=-1)
        except (ValueError, TypeError, RuntimeError, IndexError) as error:
            logger.info("Prefixes are not shared: the model refuses a tree of tokens (%s).", error)
            return False
        tolerance = 1e-4 if self._head.weight.dtype == torch.float32 else 0.1
        same = bool((alone - shared).abs().max() <= tolerance)
        if not same:
            logger.info("Prefixes are not shared: the model computes a tree of tokens otherwise than its branches.")
        return same


def _ancestors(rows: Sequence[Row], width: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which nodes each node sees: itself and its ancestors; shape (rows, 1, width, width)."""
    mask = np.zeros((len(rows), 1, width, width), dtype=bool)
    mask[:, 0, np.arange(width), np.arange(width)] = True  # padding attends to itself
    for number, row in enumerate(rows):
        visible = mask[number, 0]
        for node, parent in enumerate(row.parents):
            if parent >= 0:
                visible[node] |= visible[parent]
    return mask


def _joined(request: Request) -> str:
    """The target as it follows the prompt: a blank between them, unless either brings one."""
    prompt = prompt_text(request.prompt)
    blank = "" if not prompt or prompt[-1].isspace() or request.target[0].isspace() else " "
    return blank + request.target


def _rows(sequences: Sequence[TokenSequence], *, share: bool) -> list[Row]:
    """Pack sorted sequences into rows; a sequence shares the nodes of the longest prefix it has with the one before.

    Without sharing, each sequence is a row of its own.
    """
    rows: list[Row] = []
    path: list[int] = []
    previous: list[int] = []
    for sequence in sequences:
        common = _common_prefix(previous, sequence.ids)
        if not share or not rows or len(rows[-1].ids) + len(sequence.ids) - common > max(_ROW, len(sequence.ids)):
            rows.append(Row())
            path, common = [], 0
        row = rows[-1]
        path = path[:common]
        for depth in range(common, len(sequence.ids)):
            row.ids.append(sequence.ids[depth])
            row.parents.append(path[-1] if path else -1)
            row.depths.append(depth)
            path.append(len(row.ids) - 1)
        if sequence.target_start < 1:
            raise InvalidInput("A decoder-only model needs some text, or a first token, in front of the target.")
        for place, depth in enumerate(range(sequence.target_start, len(sequence.ids))):
            row.reads.append(Read(path[depth - 1], sequence.ids[depth], sequence.position, place))
        previous = sequence.ids
    return rows


def _common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    common = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        common += 1
    return common
