"""The earliest hosts that the adapters declare: their versions, and which tests fail on them, each for its reason.

    python -m pip install $(python tools/lowest.py)   # what `pyproject.toml` names as the floors
    python -m pytest -p tools.lowest tests/llama_index_ext tests/langchain_ext tests/conformance

A test that is listed and passes is a failure, too.
"""

from __future__ import annotations

import re
from pathlib import Path

HOSTS = ("llama-index-core", "langchain-core", "langchain-classic")
EXPECTED: dict[str, str] = {}


def floors(pyproject: str) -> list[str]:
    """The hosts at the versions that their ranges begin with."""
    found = (re.search(rf'"{host}>=([\d.]+)', pyproject) for host in HOSTS)
    return [f"{host}=={floor[1]}" for host, floor in zip(HOSTS, found, strict=True) if floor]


def pytest_collection_modifyitems(items: list) -> None:  # type: ignore[type-arg]
    """Expect what is listed to fail."""
    import pytest

    for item in items:
        for name, reason in EXPECTED.items():
            if item.nodeid.startswith(name):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


if __name__ == "__main__":
    print(*floors(Path("pyproject.toml").read_text(encoding="utf-8")))
