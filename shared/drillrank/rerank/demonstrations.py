"""Demonstrations: questions with their gold paths, which precede the path in a prompt."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from drillrank.errors import InvalidInput, check_positive
from drillrank.passages import Passage, Path, check_query


@dataclass(frozen=True, slots=True)
class Demonstration:
    """Question with the path that answers it.

    Attributes:
        path: The gold path, in reading order.
        question: The question.
        kind: Type of the question, such as "bridge" or "comparison". A context has different kinds. None counts as a
            kind.

    Raises:
        InvalidInput: The path is not a `Path`, the question is blank, or the kind is not a string.
    """

    path: Path
    question: str
    kind: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.path, Path):
            raise InvalidInput(f"path of a demonstration must be a Path, got a {type(self.path).__name__}.")
        check_query(self.question)
        if not isinstance(self.kind, str | None):
            raise InvalidInput(f"kind of a demonstration must be a string or None, got {self.kind!r:.200}.")

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Demonstration:
        """Convert a mapping of field names, such as parsed JSON, to a demonstration.

        Raises:
            InvalidInput: A field is missing, or its value cannot be used.
        """
        try:
            passages = [Passage(**{**row, "links": tuple(row.get("links", ()))}) for row in fields["path"]["passages"]]
            return cls(Path(tuple(passages)), fields["question"], fields.get("kind"))
        except (KeyError, TypeError, AttributeError) as problem:
            raise InvalidInput(
                f"A demonstration must have a path with passages and a question, got {fields!r:.200}."
            ) from problem


def sample_demonstrations(labelled: Sequence[Demonstration], count: int, *, seed: int = 0) -> list[Demonstration]:
    """Sample demonstrations at random, with equal numbers of all kinds if there are enough.

    Args:
        labelled: Demonstrations to choose from.
        count: Number of demonstrations to return. The paper's best is 8, two in each of four contexts.
        seed: Seed of the random numbers.

    Raises:
        InvalidInput: `count` is below 1, or above the number of demonstrations.

    >>> path = Path((Passage("Basel lies on the Rhine."),))
    >>> bridges = [Demonstration(path, f"Bridge {i}?", "bridge") for i in range(9)]
    >>> comparisons = [Demonstration(path, f"Comparison {i}?", "comparison") for i in range(2)]
    >>> [item.kind for item in sample_demonstrations(bridges + comparisons, 4)].count("comparison")
    2
    """
    check_positive(count=count)
    labelled = check_demonstrations(labelled)
    if count > len(labelled):
        raise InvalidInput(f"count must be at most {len(labelled)}, the number of demonstrations, got {count}.")
    generator = random.Random(seed)
    demonstrations_by_kind = _group_by_kind(labelled)
    groups = list(demonstrations_by_kind.values())
    generator.shuffle(groups)  # if the kinds do not divide the count, some have one more at random
    for group in groups:
        generator.shuffle(group)
    largest = max(map(len, groups))
    return [group[i] for i in range(largest) for group in groups if i < len(group)][:count]


def group_demonstrations(
    demonstrations: Sequence[Demonstration], per_context: int = 2
) -> list[tuple[Demonstration, ...]]:
    """Divide demonstrations into contexts, each with different kinds if possible.

    Every demonstration is in one context. The last context is smaller if the number does not divide evenly.
    Demonstrations of one kind keep their order.

    Raises:
        InvalidInput: `per_context` is below 1, or an item is not a demonstration.

    >>> path = Path((Passage("Basel lies on the Rhine."),))
    >>> four = [Demonstration(path, f"{kind}?", kind) for kind in ("bridge", "bridge", "comparison", "comparison")]
    >>> [[item.kind for item in context] for context in group_demonstrations(four)]
    [['bridge', 'comparison'], ['bridge', 'comparison']]
    """
    check_positive(demonstrations_per_prompt=per_context)
    remaining = _group_by_kind(check_demonstrations(demonstrations))
    contexts = []
    while any(remaining.values()):
        context: list[Demonstration] = []
        n_by_kind: Counter[str | None] = Counter()
        while len(context) < per_context and any(remaining.values()):
            # The rarest kind in this context; of several, the most frequent one in the rest, so that later contexts
            # have it, too.
            kind = min(
                (kind for kind in remaining if remaining[kind]),
                key=lambda kind: (n_by_kind[kind], -len(remaining[kind])),
            )
            context.append(remaining[kind].pop(0))
            n_by_kind[kind] += 1
        contexts.append(tuple(context))
    return contexts


def check_demonstrations(demonstrations: Sequence[Demonstration]) -> tuple[Demonstration, ...]:
    """Check that all items are demonstrations, and return them.

    Raises:
        InvalidInput: An item is not a demonstration, or this is not a list.
    """
    if not isinstance(demonstrations, Iterable):
        raise InvalidInput(f"demonstrations must be a list of Demonstration objects, got {demonstrations!r:.200}.")
    for position, item in enumerate(demonstrations):
        if not isinstance(cast("object", item), Demonstration):
            raise InvalidInput(
                f"demonstrations must contain Demonstration objects, got a {type(item).__name__} at {position}."
            )
    return tuple(demonstrations)


def _group_by_kind(demonstrations: Sequence[Demonstration]) -> dict[str | None, list[Demonstration]]:
    demonstrations_by_kind: dict[str | None, list[Demonstration]] = {}
    for item in demonstrations:
        demonstrations_by_kind.setdefault(item.kind, []).append(item)
    return demonstrations_by_kind
