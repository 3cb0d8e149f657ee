"""Versions of one document: the newest one, and the one that was current at a date.

Documents are versions of each other if their names differ only in dates and version numbers, and if the longer one
contains most of the shorter one's wording (`drillrank.text_digests`). Two drafts of a contract are versions, reports of
two years are not.

The date of a document is the last one in its name. Names without dates are ordered by the number after "v", "version"
or "rev", and documents without either by their given date, such as that of the file.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.text import words
from drillrank.text_digests import DocumentDigests

Date = tuple[int, ...]
"""Year, year and month, or year, month and day."""

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?P<{}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)(?![a-z])\.?"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?:19|20)\d\d"
_DATE = re.compile(
    rf"(?<!\d)(?P<y1>{_YEAR})[-_./]?(?P<m1>0[1-9]|1[0-2])(?:[-_./]?(?P<d1>0[1-9]|[12]\d|3[01]))?(?!\d)"
    rf"|(?:(?<!\d)(?P<d2>{_DAY})[\s_.-]+)?\b{_MONTH.format('m2')}[\s_.-]+(?P<y2>{_YEAR})(?!\d)"
    rf"|\b{_MONTH.format('m3')}[\s_.-]+(?P<d3>{_DAY}),?[\s_.-]+(?P<y3>{_YEAR})(?!\d)"
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
_MAX_CANDIDATES = 8  # groups of versions that a document is compared with, so that many documents take linear time


def find_dates(text: str) -> list[Date]:
    """Return the dates in a text, in order.

    >>> find_dates("lease_2023-06-15 of May 2021, 3 June 2022 and FY19")
    [(2023, 6, 15), (2021, 5), (2022, 6, 3), (2019,)]
    """
    dates = []
    for match in _DATE.finditer(text.replace("_", " ")):
        groups = {name[0]: value for name, value in match.groupdict().items() if value}
        year, month = int(groups["y"]), groups.get("m", "")
        date = [2000 + year if year < 100 else year]
        date += [int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1] if month else []
        date += [int(groups["d"])] if "d" in groups else []
        dates.append(tuple(date))
    return dates


def parse_date(text: str) -> Date:
    """Return a year, month or day.

    Raises:
        InvalidInput: The text is not a date.

    >>> parse_date("2023-06")
    (2023, 6)
    """
    try:
        [date] = find_dates(text) if _DATE.fullmatch(text.strip().replace("_", " ")) else []
        datetime.date(*(*date, 1, 1)[:3])
    except (ValueError, AttributeError) as cause:
        message = f"A date is a year, month or day, such as 2023-06 or 2023-06-30; not {text!r:.200}."
        raise InvalidInput(message) from cause
    return date


def format_date(date: Date) -> str:
    """Return a date as text.

    >>> format_date((2023, 6))
    '2023-06'
    """
    return "-".join(f"{part:02}" for part in date)


class Versions:
    """Groups of documents that are versions of one.

    Args:
        names: Names by document. Documents without a name have no versions.
        list_digests: Function from a document to the `text_digests` of its text. It is called for documents with equal
            names only.
        dates: Dates by document, for names without dates.

    >>> from drillrank.text_digests import text_digests
    >>> texts = ["Rent: 5. No dogs in the flat, no cats.", "Rent: 6. No dogs in the flat, no cats.", "Whales."]
    >>> digests = [text_digests([text]) for text in texts]
    >>> versions = Versions({0: "lease 2021.md", 1: "lease 2023.md", 2: "whales 2020.md"}, digests.__getitem__)
    >>> versions.find_outdated([0, 1, 2], "What is the rent?")
    {0}
    >>> versions.find_outdated([0, 1, 2], "What is the rent?", (2022,))
    {1}
    """

    def __init__(
        self,
        names: Mapping[Any, str],
        list_digests: Callable[[Any], Iterable[int]],
        dates: Mapping[Any, Date] | None = None,
    ) -> None:
        self.names = names
        self.dates: dict[Any, Date] = dict(dates or {})
        self._list_digests = list_digests
        self._sort_keys: dict[Any, tuple[Date, tuple[int, ...], Date]] = {}
        self._bare_names = {document: _remove_version(name) for document, name in names.items()}
        self._documents_by_bare_name: dict[tuple[str, ...], list[Any]] = {}
        self._groups_by_bare_name: dict[tuple[str, ...], list[list[Any]]] = {}
        for document, name in names.items():
            named_date, other_date = (find_dates(name)[-1:] or [()])[0], (dates or {}).get(document, ())
            number = next((match[1] for match in _VERSION.finditer(name.replace("_", " ")) if match[1]), "")
            number_parts = tuple(map(int, number.split("."))) if number else ()
            self._sort_keys[document] = named_date, number_parts, other_date
            if named_date or other_date:
                self.dates[document] = named_date or other_date
            self._documents_by_bare_name.setdefault(self._bare_names[document], []).append(document)

    def list_versions(self, document: Any) -> list[Any]:
        """Return the versions of a document and itself, newest first. Empty if there are no others."""
        if (bare_name := self._bare_names.get(document)) is None:
            return []
        if bare_name not in self._groups_by_bare_name:
            groups = self._group_versions(self._documents_by_bare_name[bare_name])
            self._groups_by_bare_name[bare_name] = list(groups)
        return next((group for group in self._groups_by_bare_name[bare_name] if document in group), [])

    def _group_versions(self, documents: Sequence[Any]) -> Iterator[list[Any]]:
        """Yield the groups of versions among documents with equal names, each newest first."""
        if len(documents) < 2:
            return
        newest_first = sorted(documents, key=self._sort_keys.__getitem__, reverse=True)
        groups = _group_by_wording({document: list(self._list_digests(document)) for document in newest_first})
        yield from (group for group in groups if len({self._sort_keys[document] for document in group}) > 1)

    def find_outdated(self, documents: Iterable[Any], question: str, as_of: Date | None = None) -> set[Any]:
        """Return the documents not to read: those dated after `as_of`, and older versions of the others.

        If the question contains a date, older versions are read, too.
        """
        too_new = self.find_too_new(as_of)
        reads_all_versions = bool(find_dates(question))
        outdated = set()
        for document in documents:
            newest = document
            if not reads_all_versions:
                newest = next((version for version in self.list_versions(document) if version not in too_new), document)
            if document in too_new or newest != document:
                outdated.add(document)
        return outdated

    def find_too_new(self, as_of: Date | None) -> set[Any]:
        """Return the documents dated after `as_of`; none if it is None."""
        if as_of is None:
            return set()
        return {document for document, date in self.dates.items() if date[: len(as_of)] > as_of}

    def details(self, document: Any) -> dict[str, object]:
        """Return a document's date as `version` and the names of its `other_versions`. Empty if it has none."""
        others = [self.names[version] for version in self.list_versions(document) if version != document]
        date = {"version": format_date(self.dates[document])} if document in self.dates else {}
        return {**date, "other_versions": tuple(others)} if others else {}


def _remove_version(name: str) -> tuple[str, ...]:
    """Return the words of a name without its ending, dates and version numbers."""
    plain_name = _ENDING.sub("", name).replace("_", " ")
    return tuple(words(_VERSION.sub(" ", _DATE.sub(" ", plain_name)).casefold()))


def _group_by_wording(digests_by_document: Mapping[Any, Sequence[int]]) -> list[list[Any]]:
    """Group documents with the first one of each group that has similar wording."""
    groups: list[list[Any]] = []
    first_digests: list[DocumentDigests] = []
    groups_by_digest: dict[int, list[int]] = {}
    for document, digests in digests_by_document.items():
        wording = DocumentDigests(digests)
        n_shared = Counter(group for digest in digests for group in groups_by_digest.get(digest, ()))
        candidates = sorted(group for group, _ in n_shared.most_common(_MAX_CANDIDATES))
        similar = (group for group in candidates if wording.is_similar(first_digests[group]))
        group = next(similar, len(groups))
        if group < len(groups):
            groups[group].append(document)
            continue
        groups.append([document])
        first_digests.append(wording)
        for digest in digests:
            sharing_groups = groups_by_digest.setdefault(digest, [])
            if len(sharing_groups) < _MAX_CANDIDATES:
                sharing_groups.append(group)
    return groups
