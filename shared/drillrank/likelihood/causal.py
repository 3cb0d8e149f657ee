"""Decoder-only models: common token prefixes are computed once.

Sorted token sequences form a trie. A row of a batch holds part of it, one node per token; a token attends to its
ancestors only and keeps its depth as position, so each path through the trie is computed as if it were alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import Request
from drillrank.likelihood.batching import by_length, in_halves
from drillrank.likelihood.engine import Engine, Scored, to_device
from drillrank.likelihood.prompt_tokens import fit_to_budgets

_ROW = 512  # nodes; a longer row wastes attention on pairs that the mask hides


@dataclass(slots=True)
class TokenSequence:
    """One request as token ids, and where its target begins."""

    ids: list[int]
    target_start: int
    position: int


@dataclass(slots=True)
class Row:
    """Nodes of a trie in the order of first visit.

    Attributes:
        ids: Token of each node.
        parents: Node before it, or -1.
        depths: Tokens before it.
        reads: For each target token: the node that predicts it, the token, the request, and its place in the target.
    """

    ids: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    reads: list[tuple[int, int, int, int]] = field(default_factory=list)


class CausalEngine(Engine):
    """GPT, OPT, Llama, Qwen and their kin: log P(target | prompt) within one string."""

    include_eos_by_default = False

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
        rows = _rows(sorted(sequences, key=lambda sequence: sequence.ids))

        def run(batch: list[int]) -> None:
            self._one_batch([rows[i] for i in batch], scored, temperature)

        lengths, targets = [len(row.ids) for row in rows], [len(row.reads) for row in rows]
        for batch in by_length(lengths, self.batch_tokens, targets, self.batch_targets):
            in_halves(run, batch)
        return scored

    def _one_batch(self, rows: Sequence[Row], scored: Sequence[Scored], temperature: float) -> None:
        width = max(len(row.ids) for row in rows)
        ids = np.zeros((len(rows), width), dtype=np.int64)
        positions = np.zeros((len(rows), width), dtype=np.int64)
        mask = np.zeros((len(rows), 1, width, width), dtype=bool)
        mask[:, 0, np.arange(width), np.arange(width)] = True  # padding attends to itself
        for number, row in enumerate(rows):
            ids[number, : len(row.ids)] = row.ids
            positions[number, : len(row.ids)] = row.depths
            visible = mask[number, 0]
            for node, parent in enumerate(row.parents):
                if parent >= 0:
                    visible[node] |= visible[parent]
        reads = [(number, *read) for number, row in enumerate(rows) for read in row.reads]
        at_row = torch.tensor([read[0] for read in reads], device=self.device)
        at_node = torch.tensor([read[1] for read in reads], device=self.device)
        with self._head_only_at(at_row, at_node):
            logits = self.model(
                input_ids=to_device(ids, self.device),
                position_ids=to_device(positions, self.device),
                attention_mask=to_device(mask, self.device),
                use_cache=False,
            ).logits
        for read, log_prob in zip(reads, self._log_probs(logits, [r[2] for r in reads], temperature), strict=True):
            scored[read[3]].log_probs[read[4]] = log_prob


def _joined(request: Request) -> str:
    """The target as it follows the prompt: a blank between them, unless either brings one."""
    last = next((part if isinstance(part, str) else part.text for part in reversed(request.prompt)), "")
    blank = "" if not last or last[-1].isspace() or request.target[0].isspace() else " "
    return blank + request.target


def _rows(sequences: Sequence[TokenSequence]) -> list[Row]:
    """Pack sorted sequences into rows; a sequence shares the nodes of the longest prefix it has with the one before."""
    rows: list[Row] = []
    path: list[int] = []
    previous: list[int] = []
    for sequence in sequences:
        common = _common_prefix(previous, sequence.ids)
        if not rows or len(rows[-1].ids) + len(sequence.ids) - common > max(_ROW, len(sequence.ids)):
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
            row.reads.append((path[depth - 1], sequence.ids[depth], sequence.position, place))
        previous = sequence.ids
    return rows


def _common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    common = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        common += 1
    return common
