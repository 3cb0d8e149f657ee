"""Versions of one document side by side: which is the newest, and which stood at a date.

Documents are versions of each other where their names are the same but for dates and numbers of versions, and where at
least half of the paragraphs of the shorter one stand in the other, too: reports of two years are not, two wordings of a
contract are. A date is the last one in the name; where names have none, the number behind "v", "version" or "rev"; and
last the date that is given, such as that of the file.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.text import words

Date = tuple[int, ...]
"""Year; year and month; or year, month and day."""

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = r"(?P<{}>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_YEAR = r"(?:19|20)\d\d"
_DATE = re.compile(
    rf"(?<!\d)(?P<y1>{_YEAR})[-_./]?(?P<m1>0[1-9]|1[0-2])(?:[-_./]?(?P<d1>0[1-9]|[12]\d|3[01]))?(?!\d)"
    rf"|(?:(?<!\d)(?P<d2>\d\d?)[\s_.-]+)?\b{_MONTH.format('m2')}[\s_.-]+(?P<y2>{_YEAR})(?!\d)"
    rf"|\b{_MONTH.format('m3')}[\s_.-]+(?P<d3>\d\d?),?[\s_.-]+(?P<y3>{_YEAR})(?!\d)"
    rf"|(?<!\d)(?P<y4>{_YEAR})(?!\d)"
    r"|\bFY[\s_-]?(?P<y5>\d\d)(?!\d)",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"(?<![a-z])(?:v|ver|version|rev|revision)[\s._-]*(\d{1,9}(?:\.\d{1,9}){0,9})(?![a-z\d])"
    r"|(?<![a-z])(?:draft|final|copy|new|old|updated|amended)(?![a-z])",
    re.IGNORECASE,
)
_ENDING = re.compile(r"\.\w{1,5}$")
_ALIKE = 0.6  # of the paragraphs of the shorter one


def dates_in(text: str) -> list[Date]:
    """Dates in a text, in order.

    >>> dates_in("lease_2023-06-15 of May 2021, 3 June 2022 and FY19")
    [(2023, 6, 15), (2021, 5), (2022, 6, 3), (2019,)]
    """
    found = []
    for match in _DATE.finditer(text.replace("_", " ")):
        got = {name[0]: value for name, value in match.groupdict().items() if value}
        year, month = int(got["y"]), got.get("m", "")
        parts = [2000 + year if year < 100 else year]
        parts += [int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1] if month else []
        parts += [int(got["d"])] if "d" in got else []
        found.append(tuple(parts))
    return found


def as_date(given: str) -> Date:
    """A year, month or day, as it is given.

    Raises:
        InvalidInput: it is none.

    >>> as_date("2023-06")
    (2023, 6)
    """
    try:
        [found] = dates_in(given) if _DATE.fullmatch(given.strip().replace("_", " ")) else []
        datetime.date(*(*found, 1, 1)[:3])
    except (ValueError, AttributeError) as cause:
        why = f"A date is a year, month or day, such as 2023-06 or 2023-06-30; not {given!r:.200}."
        raise InvalidInput(why) from cause
    return found


def shown(date: Date) -> str:
    """A date as text.

    >>> shown((2023, 6))
    '2023-06'
    """
    return "-".join(f"{part:02}" for part in date)


class Versions:
    """Which of some documents are versions of one.

    Args:
        names: Of the documents that have one.
        texts: What stands in a document: its paragraphs, or digests of them. It is asked for documents of like names.
        dates: Of documents, where names have none.

    >>> texts = {0: {"Rent: 5.", "No dogs.", "No cats."}, 1: {"Rent: 6.", "No dogs.", "No cats."}, 2: {"Whales."}}
    >>> versions = Versions({0: "lease 2021.md", 1: "lease 2023.md", 2: "whales 2020.md"}, texts.__getitem__)
    >>> versions.outdated([0, 1, 2], "What is the rent?"), versions.outdated([0, 1, 2], "What is the rent?", (2022,))
    ({0}, {1})
    """

    def __init__(
        self,
        names: Mapping[Any, str],
        texts: Callable[[Any], Collection[Hashable]],
        dates: Mapping[Any, Date] | None = None,
    ) -> None:
        self.names = names
        self.dates: dict[Any, Date] = dict(dates or {})
        self._texts = texts
        self._keys: dict[Any, tuple[Date, tuple[int, ...], Date]] = {}
        self._bare = {document: _bare(name) for document, name in names.items()}
        self._alike: dict[tuple[str, ...], list[Any]] = {}
        self._groups: dict[tuple[str, ...], list[list[Any]]] = {}
        for document, name in names.items():
            in_name, given = dates_in(name)[-1:], (dates or {}).get(document, ())
            number = next((match[1] for match in _VERSION.finditer(name.replace("_", " ")) if match[1]), "")
            date = in_name[0] if in_name else ()
            self._keys[document] = date, tuple(map(int, number.split("."))) if number else (), given
            if date or given:
                self.dates[document] = date or given
            self._alike.setdefault(self._bare[document], []).append(document)

    def of(self, document: Any) -> list[Any]:
        """The versions that a document is one of, the newest first; none where there are no others."""
        if (name := self._bare.get(document)) is None:
            return []
        if name not in self._groups:
            self._groups[name] = list(self._grouped(self._alike[name]))
        return next((group for group in self._groups[name] if document in group), [])

    def _grouped(self, alike: Sequence[Any]) -> Iterator[list[Any]]:
        left = sorted(alike, key=self._keys.__getitem__, reverse=True)
        texts = {at: frozenset(self._texts(at)) for at in left} if len(left) > 1 else {}
        while len(left) > 1:
            newest = left[0]
            group = [newest, *(at for at in left[1:] if _overlap(texts[newest], texts[at]) >= _ALIKE)]
            left = [at for at in left if at not in group]
            if len({self._keys[at] for at in group}) > 1:
                yield group

    def outdated(self, documents: Iterable[Any], question: str, as_of: Date | None = None) -> set[Any]:
        """Those of some documents that are not to be read: those of later than a date, and older versions.

        A question that names a date itself chooses by it: then older versions are read, too.
        """
        dates = {} if as_of is None else self.dates
        late = {at for at, date in dates.items() if date[: len(as_of or ())] > (as_of or ())}
        dated = bool(dates_in(question))
        found = set()
        for document in documents:
            newest = document if dated else next((at for at in self.of(document) if at not in late), document)
            if document in late or newest != document:
                found.add(document)
        return found

    def details(self, document: Any) -> dict[str, object]:
        """What a result says of the version that it stands in, where there are others."""
        others = [self.names[at] for at in self.of(document) if at != document]
        date = {"version": shown(self.dates[document])} if document in self.dates else {}
        return {**date, "other_versions": tuple(others)} if others else {}


def _bare(name: str) -> tuple[str, ...]:
    """A name without its ending, dates and numbers of versions."""
    plain = _ENDING.sub("", name).replace("_", " ")
    return tuple(words(_VERSION.sub(" ", _DATE.sub(" ", plain)).casefold()))


def _overlap(one: frozenset[Hashable], other: frozenset[Hashable]) -> float:
    """The share of the shorter one's paragraphs that the other has, too."""
    return len(one & other) / max(min(len(one), len(other)), 1)
