"""Names and dates of documents in the metadata of frameworks' records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from drillrank.drilldown.versions import Date, find_dates

_MAX_VALUE = 200  # characters of a value that identifies a document
_TECHNICAL_KEY = re.compile(
    r"^_|drillrank|(?:^|_)ids?$|page|size|type|date|hash|producer|creator|mime|total|format|encoding|start|end|language"
)
# Dates of the document, then those of its file (LlamaIndex's readers, LangChain's of PDF files), which say less.
_DATE_KEYS: tuple[str, ...] = ("effective_date", "date", "publication_date", "published", "updated")
_DATE_KEYS += ("last_modified_date", "last_modified", "moddate", "creation_date", "creationdate")


def identifying_words(metadata: Mapping[str, object]) -> str:
    """Return the metadata by which a question may mean a document: names, titles, companies, years.

    Paths and addresses contribute their last two parts. Each part counts once. Dates of files, page numbers and ids are
    left out.

    >>> identifying_words({"file_path": "/home/reports/3M/2018.pdf", "company": "3M", "file_size": 9, "page": 3})
    '3M 2018.pdf'
    """
    words = []
    for key, value in metadata.items():
        text = str(value) if isinstance(value, str | int) else ""
        if 0 < len(text) <= _MAX_VALUE and not _TECHNICAL_KEY.search(key.lower()):
            words += re.split(r"[/\\]", text.rstrip("/\\"))[-2:]
    return " ".join(dict.fromkeys(words))


def document_date(metadata: Mapping[str, object]) -> Date | None:
    """Return the date of a document: its own before those that readers of files write.

    >>> document_date({"last_modified_date": "2024-05-01", "date": "June 2023"}), document_date({"date": "soon"})
    ((2023, 6), None)
    """
    for key in _DATE_KEYS:
        value = metadata.get(key)
        if isinstance(value, date):
            return value.year, value.month, value.day
        if isinstance(value, str | int) and (dates := find_dates(str(value))):
            return dates[0]
    return None
