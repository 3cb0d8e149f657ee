"""Helpers of the core's tests: tables of refusals, scripted LLMs, files of rows, and `D3` with the paper's unit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from drillrank import D3
from drillrank.corpus.documents import Unit
from drillrank.errors import InvalidInput

UNITS: tuple[Unit, ...] = ("passage", "paragraph")
quiet = pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")


def refuses(*rows: tuple[Callable[[], object], str], error: type[Exception] = InvalidInput) -> Callable[..., None]:
    """A test of calls that cannot be: each with what its error says, or an empty string where the kind will do."""

    # pytest escapes a backslash once more each time that one process collects.
    @pytest.mark.parametrize(("call", "says"), rows, ids=[says.replace("\\", "") for _, says in rows])
    def refused(call: Callable[[], object], says: str) -> None:
        with pytest.raises(error, match=says or None):
            call()

    return refused


class Says:
    """An LLM along a script, whose last answer stays: texts, functions of the prompt, errors; keeps its prompts."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.prompts = answers, list[str]()

    def __call__(self, prompt: str) -> Any:
        self.prompts.append(prompt)
        answer = self.answers[min(len(self.prompts), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer(prompt) if callable(answer) else answer


def write_rows(file: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line."""
    Path(file).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def paragraph_d3(llm: Any = None, model: Any = "unigram", *, embed: Any = None, settings: Any = None) -> D3:
    """Return `D3` with paragraphs as evidence, the paper's unit.

    Args:
        llm: As for `D3`.
        model: As for `D3`.
        embed: As for `D3`.
        settings: Settings by name; None for the defaults.
    """
    return D3(llm, model, embed=embed, settings={"unit": "paragraph", **(settings or {})})
