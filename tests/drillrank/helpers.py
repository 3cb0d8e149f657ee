"""Helpers of the core's tests: tables of refusals, scripted LLMs, files of rows, and `D3` with the paper's unit."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from drillrank import D3
from drillrank.corpus.documents import Unit
from drillrank.errors import InvalidInput
from drillrank.explanation import Explanations
from drillrank.llm import arun, run

UNITS: tuple[Unit, ...] = ("passage", "paragraph")
quiet = pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")


def refuses(*rows: tuple[Callable[[], object], str], error: type[Exception] = InvalidInput) -> Callable[..., None]:
    """Return a test of calls that raise an error, each with a pattern of its message; an empty one matches all."""

    # pytest escapes a backslash once more each time that one process collects.
    @pytest.mark.parametrize(("call", "message"), rows, ids=[message.replace("\\", "") for _, message in rows])
    def refused(call: Callable[[], object], message: str) -> None:
        with pytest.raises(error, match=message or None) as raised:
            call()
        assert len(str(raised.value)) < 600

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


def terms_in(terms):
    for term in terms:
        yield term
        yield from terms_in(term.terms)


def add_up(found, ranking):
    assert [item.total for item in found] == pytest.approx([entry.score for entry in ranking], abs=1e-6)
    assert [item.rank for item in found] == [entry.rank for entry in ranking]
    assert found.question
    for item in found:
        assert len({term.name for term in item.terms}) == len(item.terms)
        for term in terms_in(item.terms):
            if term.terms:
                assert sum(part.value for part in term.terms) == pytest.approx(term.value, abs=1e-6)
    assert Explanations.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def drive(how, *given, **more):
    return run(*given, **more) if how == "run" else asyncio.run(arun(*given, **more))


both_ways = pytest.mark.parametrize("how", ["run", "arun"])


class Writer:
    """Counts its prompts, and answers when others had the time to come."""

    def __init__(self, fails=0):
        self.calls, self.fails, self.lock = Counter(), fails, threading.Lock()

    def complete(self, prompt):
        with self.lock:
            self.calls[prompt] += 1
            self.fails -= 1
            if self.fails >= 0:
                raise ConnectionError("no route")
        time.sleep(0.01)
        return prompt.upper()
