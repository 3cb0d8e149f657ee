"""What differs between two records."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from .names import IGNORED, KEYS, VALUES

LEXICAL, NEURAL = 1e-9, 1e-5
ABSENT = "(nothing)"
_SHOWN = 60  # characters of a value


@dataclass(frozen=True)
class Difference:
    """One value that is not the same.

    Attributes:
        call: Its name.
        place: Of the value in what came out.
        old: In the reference.
        new: In the other record.
    """

    call: str
    place: str
    old: Any
    new: Any

    @property
    def kind(self) -> str:
        """Alike for the same value of other calls and entries."""
        return re.sub(r"\[[^\]]*\]|, place \d+.*", "", self.place)


@dataclass
class Compared:
    """Two records of a group.

    Attributes:
        calls: In the reference.
        changed: Calls that differ.
        differences: All of them.
    """

    calls: int = 0
    changed: set[str] = field(default_factory=set)
    differences: list[Difference] = field(default_factory=list)


def read_record(file: Path) -> dict[str, dict[str, Any]]:
    """The calls of a record, by name, under the present names."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return {line["call"]: renamed(line) for line in map(json.loads, lines)}


def compare(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> Compared:
    """What differs, in the order of the reference's calls; neural scores have a wider tolerance."""
    compared = Compared(len(old))
    for call in dict.fromkeys([*old, *new]):
        if call not in old or call not in new:
            there = {True: "taken", False: ABSENT}
            found = [Difference(call, "the call", there[call in old], there[call in new])]
        else:
            tolerance = NEURAL if old[call].get("neural") else LEXICAL
            found = [Difference(call, *one) for one in unequal(old[call], new[call], tolerance)]
        compared.differences += found
        compared.changed |= {call} if found else set()
    return compared


def renamed(value: Any, key: str = "") -> Any:
    """A record under the present names."""
    if isinstance(value, dict):
        present = ((KEYS.get(name, name), one) for name, one in value.items() if name not in IGNORED)
        return {name: renamed(one, str(name)) for name, one in present if name not in IGNORED}
    if isinstance(value, list):
        return [renamed(one, key) for one in value]
    return VALUES.get(key, {}).get(value, value) if isinstance(value, str) else value


def unequal(old: Any, new: Any, tolerance: float, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Place, old and new value of all that differs; of two lists in another order the order alone."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            inside = f"{place}.{key}" if place else key
            yield from unequal(old.get(key, ABSENT), new.get(key, ABSENT), tolerance, inside)
    elif isinstance(old, list) and isinstance(new, list):
        ids, others = ([one.get("id") if isinstance(one, dict) else None for one in items] for items in (old, new))
        if ids != others:
            yield from _order(ids, others, place)
        elif len(old) != len(new):
            yield f"{place} length", len(old), len(new)
        else:
            for at, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from unequal(one, other, tolerance, f"{place}[{ids[at] or at}]")
    elif _is_number(old) and _is_number(new):
        if not (math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance) or (math.isnan(old) and math.isnan(new))):
            yield place, old, new
    elif old != new:
        yield place, old, new


def _order(old: list[Any], new: list[Any], place: str) -> Iterator[tuple[str, Any, Any]]:
    if len(old) != len(new) and (None in old or None in new):
        yield f"{place} length", len(old), len(new)
        return
    at = next(
        (at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), min(map(len, (old, new)))
    )
    shown = [ids[at] if at < len(ids) else ABSENT for ids in (old, new)]
    what = "order" if sorted(map(str, old)) == sorted(map(str, new)) else "ids"
    yield f"{place} {what}, place {at + 1} of {len(old)}", shown[0], shown[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def report(groups: dict[str, Compared], most: int = 30) -> list[str]:
    """Counts of each group, then each kind of difference with its first one: at most so many lines, all groups."""
    differing = {name: compared for name, compared in groups.items() if compared.differences}
    counts = [
        f"{name}: {len(one.changed)} of {one.calls} calls differ, in {len(one.differences)} values"
        for name, one in differing.items()
    ]
    kinds = [
        [f"{name}: {_first(found)}" for found in _by_kind(compared.differences)] for name, compared in differing.items()
    ]
    in_turn = [line for turn in zip_longest(*kinds) for line in turn if line is not None]
    room = max(most - len(counts) - 1, 1)
    left = len(in_turn) - room
    return [*counts, *in_turn[:room], *([f"... and {left} more kinds of differences"] if left > 0 else [])]


def _by_kind(differences: Sequence[Difference]) -> list[list[Difference]]:
    """Calls that are missing or fail and lists in another order before single values, then the frequent ones."""
    kinds: dict[str, list[Difference]] = {}
    for one in differences:
        kinds.setdefault(one.kind, []).append(one)
    grave = re.compile(r"the call|error|(?: order| ids| length)$")
    return sorted(kinds.values(), key=lambda found: (grave.search(found[0].kind) is None, -len(found)))


def _first(found: Sequence[Difference]) -> str:
    first = found[0]
    times = f" (and {len(found) - 1} more in {len({one.call for one in found})} calls)" if len(found) > 1 else ""
    return f"{first.call}: {first.place}: {_shown(first.old)} -> {_shown(first.new)}{_distance(first)}{times}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _distance(one: Difference) -> str:
    return f" ({one.new - one.old:+.2e})" if _is_number(one.old) and _is_number(one.new) else ""
