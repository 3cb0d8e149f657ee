"""Fixtures shared by the tests of file formats."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from drillrank import read_document
from drillrank.errors import InvalidInput


@pytest.fixture(scope="session")
def read_or_refuse(tmp_path_factory) -> Callable[[str, bytes], str]:
    """Return a function that reads a file of this name and content; a refusal must name the file."""
    folder = tmp_path_factory.mktemp("files")

    def read(name: str, content: bytes) -> str:
        file = folder / name
        file.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return read_document(file).text
            except InvalidInput as problem:
                return "" if str(file) in str(problem) else pytest.fail(f"The file is not named: {problem}")

    return read
