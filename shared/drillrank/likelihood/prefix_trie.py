"""Common token prefixes, found from the ids alone: a plan of which tokens a decoder-only model computes once.

Sorted token sequences form a trie. A row of a batch holds a part of it, one node per token; a node attends to its
ancestors only and keeps its depth as position, so that each path through the trie is computed as if it were alone.
Rows that begin alike hang on a common stem, whose keys and values are computed once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

_ROW = 1024  # nodes of a row that holds several sequences
_STEM = 64  # tokens that a stem must save: it costs a forward pass of its own


@dataclass(slots=True)
class TokenSequence:
    """One request as token ids, where its target begins, and the slot of its first target token in the results.

    Attributes:
        ids: The prompt's tokens, and the target's.
        target_start: Where the target begins; at the end if there is none.
        slot: In the results, of what is read first.
        answers: Tokens that may follow the last one: all of them are read there.
        computed: All tokens that predict something: the last of a target does not.
    """

    ids: list[int]
    target_start: int
    slot: int
    answers: Sequence[int] = ()
    computed: list[int] = field(init=False)

    def __post_init__(self) -> None:
        has_target = self.target_start < len(self.ids)
        self.computed = self.ids[:-1] if has_target and not self.answers else self.ids


class Read(NamedTuple):
    """A target token: the node that predicts it, its id, and its slot in the results."""

    node: int
    token: int
    slot: int


@dataclass(slots=True)
class Row:
    """Nodes of a trie in the order of first visit, behind a stem or on their own.

    Attributes:
        ids: Token of each node.
        parents: Node before it; -1 for the stem's last token, or for nothing.
        depths: Tokens before it, the stem's included.
        reads: One for each target token.
        is_chain: Whether the row is a single sequence.
    """

    ids: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    is_chain: bool = True


@dataclass(slots=True)
class Stem:
    """Tokens that several rows begin with, and these rows without them."""

    ids: list[int]
    rows: list[Row]


class Plan(NamedTuple):
    """All rows: those on their own, and those on stems."""

    rows: list[Row]
    stems: list[Stem]


class _Layout(NamedTuple):
    """How an interval of sorted sequences would be computed, and how many tokens that takes."""

    stem: int
    rows: list[tuple[int, int]]
    tokens: int


def plan(sequences: Sequence[TokenSequence], *, share: bool, width: int) -> Plan:
    """All sequences in rows, and rows that begin alike on stems, wherever that saves work.

    Args:
        sequences: In any order.
        share: Whether anything may be shared; if not, each sequence is a row of its own.
        width: The model's hidden size: attention over a row costs more the smaller the model.
    """
    if not share:
        return Plan([row_of([sequence]) for sequence in sequences], [])
    ordered = sorted(sequences, key=lambda sequence: sequence.computed)
    shared = [0, *(common_prefix(one.computed, other.computed) for one, other in pairwise(ordered))]
    alone: list[Row] = []
    stems: list[Stem] = []
    waiting = [(0, len(ordered))]
    while waiting:
        first, last = waiting.pop()
        together = _layout(ordered, shared, first, last, width)
        weakest = min(shared[first + 1 : last], default=0)
        cuts = [first, *(i for i in range(first + 1, last) if shared[i] == weakest), last]
        if (
            len(cuts) > 2
            and sum(_layout(ordered, shared, *part, width).tokens for part in pairwise(cuts)) < together.tokens
        ):
            waiting.extend(pairwise(cuts))
            continue
        stem = together.stem if together.stem * (len(together.rows) - 1) >= _STEM else 0
        rows = [row_of(ordered[a:b], stem) for a, b in together.rows]
        if stem:
            stems.append(Stem(ordered[first].computed[:stem], rows))
        else:
            alone.extend(rows)
    return Plan(alone, stems)


def row_of(sequences: Sequence[TokenSequence], stem: int = 0) -> Row:
    """One row of sorted sequences, without the first `stem` tokens, which they share."""
    row = Row(is_chain=len(sequences) == 1)
    path: list[int] = []
    previous: list[int] = []
    for sequence in sequences:
        del path[max(common_prefix(previous, sequence.computed) - stem, 0) :]
        for depth in range(stem + len(path), len(sequence.computed)):
            row.ids.append(sequence.ids[depth])
            row.parents.append(path[-1] if path else -1)
            row.depths.append(depth)
            path.append(len(row.ids) - 1)
        for place, depth in enumerate(range(sequence.target_start, len(sequence.ids))):
            row.reads.append(Read(path[depth - 1 - stem], sequence.ids[depth], sequence.slot + place))
        row.reads += [Read(path[-1], token, sequence.slot + place) for place, token in enumerate(sequence.answers)]
        previous = sequence.computed
    return row


def _layout(ordered: Sequence[TokenSequence], shared: Sequence[int], first: int, last: int, width: int) -> _Layout:
    """The sequences `first` to `last - 1` in rows on the longest stem that they have in common."""
    # Nothing is read from a stem, so it ends before the token that predicts a target.
    stem = min([*shared[first + 1 : last], *(item.target_start - 1 for item in ordered[first:last])])
    begins = [first]
    nodes = tokens = len(ordered[first].computed) - stem
    for i in range(first + 1, last):
        new = len(ordered[i].computed) - shared[i]
        # In a row with strangers, attention is wasted on pairs that the mask hides; in a new row, what is shared
        # beyond the stem is computed again. A token's linear layers cost as much as some `width / 4` such pairs.
        hidden = (nodes + stem - shared[i]) * new
        if nodes + new <= _ROW and (shared[i] - stem) * width >= 4 * hidden:
            nodes += new
            tokens += new
        else:
            begins.append(i)
            nodes = len(ordered[i].computed) - stem
            tokens += nodes
    return _Layout(stem, list(pairwise([*begins, last])), stem + tokens)


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences begin with alike."""
    common = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        common += 1
    return common
