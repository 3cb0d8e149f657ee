"""Data files of the package: tables, and lists of words."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from importlib import resources


def read_table(name: str) -> dict[str, str]:
    """Return the rows of a file of two columns, in the order of the file.

    >>> read_table("pinned_stems.tsv")["organization"]
    'organiz'
    """
    return {key: value for key, value in read_rows(name)}  # noqa: C416  # a row of another length is an error


def read_rows(name: str) -> list[list[str]]:
    """Return the cells of each row of a file of this package, in the order of the file.

    >>> read_rows("unread_kinds.tsv")[1][:2]
    ['an image (JPEG)', 'use text recognition (OCR) if it shows text']
    """
    return [line.split("\t") for line in _lines(name)]


def read_words(name: str) -> list[str]:
    """Return the words of a file of this package, one per line, in the order of the file.

    >>> read_words("english_stop_words.txt")[:3]
    ['a', 'about', 'above']
    """
    return list(_lines(name))


def _lines(name: str) -> Iterator[str]:
    """Yield the lines of a file that are neither blank nor comments."""
    content = resources.files(__name__).joinpath(name).read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode("utf-8")
    return (line for line in text.split("\n") if line and not line.startswith("#"))
