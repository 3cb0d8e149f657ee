"""Data files of the package: tables of two columns."""

from __future__ import annotations

import gzip
from importlib import resources


def read_table(name: str) -> dict[str, str]:
    """The rows of a file beside this module, in its order.

    >>> read_table("pinned_stems.tsv")["organization"]
    'organiz'
    """
    content = resources.files(__name__).joinpath(name).read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode("utf-8")
    rows = (line.split("\t") for line in text.split("\n") if line and not line.startswith("#"))
    return {key: value for key, value in rows}  # noqa: C416  # a row of another length is an error
