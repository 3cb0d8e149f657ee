"""Records that were given under one id, as two tenants' documents may be: which of them a question is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from drillrank.errors import InvalidInput


class EqualIds:
    """Of records that share an id, one may be seen at a time.

    Args:
        ids: Of the records, in order.
        name: Of the parameter that they were given as.

    >>> tenants = EqualIds(["guide", "rules", "guide"], "documents")
    >>> tenants.chosen({1, 2}), tenants.chosen({0})
    ((1, 2), (0, 1))
    """

    def __init__(self, ids: Sequence[str], name: str) -> None:
        counted = Counter(ids)
        self._ids = ids
        self._name = name
        self._shared = [number for number, id_ in enumerate(ids) if counted[id_] > 1]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._shared)

    def chosen(self, seen: Collection[int]) -> tuple[int, ...]:
        """Numbers of the records that an index for a question holds: no two share an id.

        Args:
            seen: Numbers of those that may be seen. Others with an id of their own are among the chosen all the same,
                so that one index serves many questions.

        Raises:
            InvalidInput: two that may be seen share an id.
        """
        hidden = {number for number in self._shared if number not in seen}
        known: set[str] = set()
        for number in self._shared:
            if number not in hidden and self._ids[number] in known:
                raise InvalidInput(
                    f"Two of the {self._name} share the id {self._ids[number]!r}: give each an id of its own, or a "
                    "filter that shows one of them."
                )
            known |= set() if number in hidden else {self._ids[number]}
        return tuple(number for number in range(len(self._ids)) if number not in hidden)
