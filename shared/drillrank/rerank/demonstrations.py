"""Demonstrations: questions with their gold paths, shown before a path."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from drillrank.errors import InvalidInput, check_positive
from drillrank.passages import Passage, Path, check_query


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A question and the path that answers it.

    Attributes:
        path: The gold path, in reading order.
        question: The question.
        kind: Type of the question, such as "bridge" or "comparison"; a context mixes kinds. None is a kind, too.

    Raises:
        InvalidInput: the path is not a `Path`, the question is blank, or the kind is not a string.
    """

    path: Path
    question: str
    kind: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.path, Path):
            raise InvalidInput(f"A demonstration's path is a Path, not a {type(self.path).__name__}.")
        check_query(self.question)
        if not isinstance(self.kind, str | None):
            raise InvalidInput(f"A demonstration's kind is a string or None, not {self.kind!r:.200}.")

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Demonstration:
        """One from `dataclasses.asdict`, as JSON has it.

        Raises:
            InvalidInput: a part is missing or cannot be used.
        """
        try:
            passages = [Passage(**{**one, "links": tuple(one.get("links", ()))}) for one in given["path"]["passages"]]
            return cls(Path(tuple(passages)), given["question"], given.get("kind"))
        except (KeyError, TypeError, AttributeError) as problem:
            message = f"A demonstration has a path of passages and a question; not {given!r:.200}."
            raise InvalidInput(message) from problem


def sample_demonstrations(labelled: Sequence[Demonstration], count: int, *, seed: int = 0) -> list[Demonstration]:
    """Choose demonstrations at random, as many of each kind as of any other where there are enough.

    Args:
        labelled: What to choose from.
        count: How many; the paper finds 8 best, two in each of four contexts.
        seed: The same seed chooses the same ones.

    Raises:
        InvalidInput: `count` is below 1, or there are not that many.

    >>> path = Path((Passage("Basel lies on the Rhine."),))
    >>> bridges = [Demonstration(path, f"Bridge {i}?", "bridge") for i in range(9)]
    >>> comparisons = [Demonstration(path, f"Comparison {i}?", "comparison") for i in range(2)]
    >>> [item.kind for item in sample_demonstrations(bridges + comparisons, 4)].count("comparison")
    2
    """
    check_positive(count=count)
    labelled = check_demonstrations(labelled)
    if count > len(labelled):
        raise InvalidInput(f"{count} demonstrations cannot be chosen from {len(labelled)}.")
    chance = random.Random(seed)
    by_kind = _by_kind(labelled)
    kinds = list(by_kind.values())
    chance.shuffle(kinds)  # if the kinds do not divide the count, chance says which of them has one more
    for items in kinds:
        chance.shuffle(items)
    rounds = max(map(len, kinds))
    return [items[i] for i in range(rounds) for items in kinds if i < len(items)][:count]


def group_demonstrations(
    demonstrations: Sequence[Demonstration], per_context: int = 2
) -> list[tuple[Demonstration, ...]]:
    """Divide demonstrations into contexts of different kinds, as far as the kinds allow it.

    Every demonstration stands in one context. The last context holds fewer if the number does not divide evenly.
    Demonstrations of one kind stay in the given order.

    Raises:
        InvalidInput: `per_context` is below 1, or an item is no demonstration.

    >>> path = Path((Passage("Basel lies on the Rhine."),))
    >>> four = [Demonstration(path, f"{kind}?", kind) for kind in ("bridge", "bridge", "comparison", "comparison")]
    >>> [[item.kind for item in context] for context in group_demonstrations(four)]
    [['bridge', 'comparison'], ['bridge', 'comparison']]
    """
    check_positive(demonstrations_per_prompt=per_context)
    left = _by_kind(check_demonstrations(demonstrations))
    contexts = []
    while any(left.values()):
        context: list[Demonstration] = []
        shown: Counter[str | None] = Counter()
        while len(context) < per_context and any(left.values()):
            # The kind shown least so far; of several, the one with most left, or the later contexts would lack others.
            kind = min((kind for kind in left if left[kind]), key=lambda kind: (shown[kind], -len(left[kind])))
            context.append(left[kind].pop(0))
            shown[kind] += 1
        contexts.append(tuple(context))
    return contexts


def check_demonstrations(demonstrations: Sequence[Demonstration]) -> tuple[Demonstration, ...]:
    """The demonstrations.

    Raises:
        InvalidInput: an item is no demonstration.
    """
    for position, item in enumerate(demonstrations):
        if not isinstance(cast("object", item), Demonstration):
            raise InvalidInput(f"Demonstration {position} is a {type(item).__name__}, not a Demonstration.")
    return tuple(demonstrations)


def _by_kind(demonstrations: Sequence[Demonstration]) -> dict[str | None, list[Demonstration]]:
    by_kind: dict[str | None, list[Demonstration]] = {}
    for item in demonstrations:
        by_kind.setdefault(item.kind, []).append(item)
    return by_kind
