"""A recorder runs calls and writes, for each, what came out: one line of JSON."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import gzip
import hashlib
import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from .building import NotBuilt

SHOWN = 200  # characters of a text that stand in a record; of a longer one the beginning and a digest do
CONVERTERS: list[Callable[[Any], Any]] = []
"""Of objects of the hosts: each gives plain data, or `NotImplemented` for what it does not know."""


class Recorder:
    """Writes the calls of one group.

    Args:
        file: Where to, compressed.
        share: Of the questions, for a quick look; 1 for all.
        folder: For whatever the calls write and read; its path is left out of the records.
    """

    def __init__(self, file: Path, share: float, folder: Path) -> None:
        self.folder = folder
        self.calls = self.errors = 0
        self.warned: list[warnings.WarningMessage] = []
        self.asked: list[str] = []
        self.events: list[Any] = []
        self._share = share
        self._names: set[str] = set()
        self._lines = gzip.open(file, "wt", encoding="utf-8", compresslevel=5)  # noqa: SIM115  # closed by `__exit__`

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()

    def some(self, items: Sequence[Any], count: int) -> Sequence[Any]:
        """The first so many, or the share of them that was asked for, one at least."""
        return items[: max(1, round(count * self._share))]

    @contextmanager
    def before(self) -> Iterator[None]:
        """What is warned of in the block belongs to the next call: of a component that is built for several calls."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        self.warned += caught

    def take(self, name: str, call: Callable[[], Any], *, neural: bool = False) -> Any:
        """Run a call, or the coroutine that it returns, and write result, warnings, prompts, events or error.

        Args:
            name: Of the call, once in a group; what stands before the last `/` is its kind.
            call: Without arguments.
            neural: Whether a neural model scored, so that its last digits depend on the batch.

        Returns:
            What the call returned; None if it failed.
        """
        assert name not in self._names, name
        self._names.add(name)
        self.asked, self.events = [], []
        line: dict[str, Any] = {"call": name}
        if neural:
            line["neural"] = True
        found = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = call()
                if inspect.iscoroutine(found):
                    found = asyncio.run(found)
                line["out"] = plain(found)
            except (NotBuilt, AssertionError, ImportError, AttributeError, NameError):
                raise  # the recorder's own fault
            except Exception as error:
                line["error"] = f"{type(error).__name__}: {error}"
                self.errors += 1
        told = [(one.category.__name__, str(one.message)) for one in [*self.warned, *caught] if _ours(one.category)]
        self.warned = []
        line |= {"warnings": told} if told else {}
        line |= {"asked": list(map(brief, self.asked))} if self.asked else {}
        line |= {"events": plain(self.events)} if self.events else {}
        self._lines.write(self._without_folder(json.dumps(line, ensure_ascii=False)) + "\n")
        self.calls += 1
        return found

    def _without_folder(self, text: str) -> str:
        return text.replace(os.path.realpath(self.folder), "<folder>").replace(str(self.folder), "<folder>")


def _ours(category: type[Warning]) -> bool:
    return category.__module__.startswith(("drillrank", "llama_index_ext", "langchain_ext"))


def plain(value: Any) -> Any:
    """As JSON has it.

    Raises:
        TypeError: nobody knows what to keep of an object.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return brief(str(value))
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.ndarray | np.integer | np.bool_):
        return plain(value.tolist())
    for convert in CONVERTERS:
        converted = convert(value)
        if converted is not NotImplemented:
            return converted if isinstance(converted, str) else plain(converted)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if hasattr(value, "passage") and hasattr(value, "details"):
        return _ranked(value)
    if hasattr(value, "passages") and hasattr(value, "ids"):
        return list(value.ids)
    if hasattr(value, "text") and hasattr(value, "links") and hasattr(value, "title"):
        return {"id": value.id, "title": value.title, "text": brief(value.text)}
    if hasattr(value, "log_probs") and hasattr(value, "mean"):
        names = ("tokens", "log_probs", "total", "mean", "cut_tokens", "matched")
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if isinstance(value, Iterable):
        return [plain(one) for one in value]
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.repr}
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"what to keep of {type(value).__name__}?")


def _ranked(item: Any) -> dict[str, Any]:
    """A rank is its place in the list; a passage is its id."""
    ids = getattr(item.passage, "ids", None)
    return {
        "id": item.passage.id if ids is None else " > ".join(ids),
        "score": float(item.score),
        "rank": item.rank,
        "details": plain(item.details),
    }


def brief(text: str) -> str:
    """A text, or the beginning of a long one with its length and a digest."""
    if len(text) <= SHOWN:
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{text[: SHOWN // 2]}... [{len(text)} characters, {digest}]"


class ScriptedLLM:
    """Answers every prompt as a function says, or with the next of some answers, and tells the recorder what it read.

    Args:
        recorder: Is told.
        answers: A function from a prompt to an answer, or answers in turn; an exception among them is raised.
    """

    def __init__(self, recorder: Recorder, answers: Callable[[str], str] | Sequence[Any]) -> None:
        self._recorder = recorder
        self._answers = answers
        self._calls = 0

    def complete(self, prompt: str) -> str:
        """The answer to one prompt."""
        self._recorder.asked.append(prompt)
        if callable(self._answers):
            return self._answers(prompt)
        answer = self._answers[self._calls % len(self._answers)]
        self._calls += 1
        if isinstance(answer, Exception):
            raise answer
        return answer(prompt) if callable(answer) else answer


class ScriptedJSON(ScriptedLLM):
    """The same with structured answers."""

    def complete_json(self, prompt: str, schema: Mapping[str, Any]) -> Any:
        """The answer to one prompt, as JSON."""
        return json.loads(self.complete(f"{prompt}\n{json.dumps(schema, sort_keys=True)}"))


def embed(texts: Sequence[str]) -> Any:
    """Vectors that tell texts apart: counts of hashed words, of length 1. They know no meaning and need no model."""
    vectors = np.zeros((len(texts), 96))
    for row, text in enumerate(texts):
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            vectors[row, digest[0] % 96] += 1.0
            vectors[row, digest[1] % 96] += 0.5
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
