"""Results by question and component in one JSON Lines file, so that nothing computed is lost."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation.questions import Question
from drillrank.likelihood import LanguageModel
from drillrank.limits import read_json
from drillrank.passages import Passage

FORMAT = "drillrank-compare-1"
_BEGINNING = json.dumps({"format": FORMAT}).encode()[:-1]


@dataclass
class Record:
    """What one component brought for one question.

    Attributes:
        component: Its name.
        spec: What it is (`spec_of`).
        question: The question's id.
        ids: Best first.
        scores: One for each id; None where it told none.
        seconds: It took.
        usage: Tokens and calls of an LLM, as far as it told.
        error: What it raised, if it did; then there are no ids.
        explains: Whether it can say why; None where nobody knows.
        explanation: Of the first few, as `Explanations.to_dict` tells them, where a report has asked for them.
        texts: Title and text of passages that are not in the corpus, by id.
        candidates: A digest of what it was given to rank; empty where it looks for itself.
    """

    component: str
    spec: str
    question: str
    ids: list[str] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    seconds: float = 0.0
    usage: dict[str, int] = field(default_factory=dict)
    error: str = ""
    explains: bool | None = None
    explanation: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    candidates: str = ""

    def passages(self, known: Mapping[str, Passage]) -> list[Passage]:
        """The passages themselves; those that are not known are in `texts`."""
        return [
            known[id_] if id_ in known else Passage(self.texts[id_][1], id=id_, title=self.texts[id_][0])
            for id_ in self.ids
        ]


def spec_of(given: Any) -> str:
    """What a component is, by its name and a digest of its settings and version: other ones have other results.

    Of an object the settings are the arguments of its class, as far as attributes of these names hold them, and its
    language models. Code is known by its name, and by the version of the package that it stands in.

    >>> spec_of("UPR") == spec_of({"component": "UPR"}) != spec_of({"component": "UPR", "prior": "retrieval"})
    True
    """
    named = given if isinstance(given, Mapping) else {"component": given}
    what = _described(named["component"])
    name = what if isinstance(what, str) else what[0]
    home = re.split(r"[.:]", name)[0]
    versions = ["drillrank", version("drillrank")]
    if home not in ("llama_index_ext", "langchain_ext", *versions[:1], name):  # ours by name have no dots
        versions += [home, str(getattr(sys.modules.get(home), "__version__", ""))]
    content = json.dumps([_described({**named, "component": what}), versions], sort_keys=True)
    return f"{name} {hashlib.blake2b(content.encode(), digest_size=8).hexdigest()}"


def _described(value: Any, depth: int = 3) -> Any:
    """A setting as JSON has it; of an object its class and, so deep, its own settings."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _described(item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_described(item, depth) for item in items]
    if isinstance(value, LanguageModel):
        return [value.spec, _described(value.options)]
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    try:
        arguments = inspect.signature(type(value)).parameters if depth else ()
    except (TypeError, ValueError):
        arguments = ()
    attributes = getattr(value, "__dict__", {})
    if is_dataclass(value):
        attributes = {item.name: getattr(value, item.name) for item in fields(value)}
    own = {key: item for key, item in attributes.items() if key in arguments or isinstance(item, LanguageModel)}
    return [name, {key: _described(item, depth - 1) for key, item in own.items()}]


def fingerprint(questions: Sequence[Question], passages: Mapping[str, Passage], depth: int) -> str:
    """Of what is asked of what: other questions, candidates or passages have another one."""
    asked: list[Any] = [depth]
    for question in questions:
        given = [item if isinstance(item, str) else (item.id, item.text) for item in question.candidates or ()]
        asked.append([question.id, question.text, given, question.scores])
    return digest([*asked, *([passage.id, passage.title, passage.text] for passage in passages.values())])


def digest(items: Iterable[Any]) -> str:
    """Of what JSON can hold, item by item."""
    found = hashlib.blake2b(digest_size=16)
    for item in items:
        found.update(json.dumps(item).encode())
    return found.hexdigest()


class Records:
    """A file of results, read at the start and added to; or memory alone.

    Raises:
        InvalidInput: the file holds results of other questions, is something else, or cannot be written.
    """

    def __init__(self, file: str | os.PathLike[str] | None, of: str) -> None:
        self._file = None if file is None else Path(file)
        self._known: dict[tuple[str, str, str, str], Record] = {}
        self._read_in: set[tuple[str, str]] = set()  # components and questions of the file; no more after a warning
        if self._file is None:
            return
        try:
            content = self._file.read_bytes() if self._file.exists() else b""
        except OSError as problem:
            raise InvalidInput(f"{self._file} cannot be read: {problem.strerror}.") from problem
        complete = content.rfind(b"\n") + 1
        if complete or not _BEGINNING.startswith(content[: len(_BEGINNING)]):
            self._read(self._file, content[:complete], of)
        with self._written() as lines:
            lines.truncate(complete)  # an interruption left half a line
        if not complete:
            self._append({"format": FORMAT, "of": of})

    def _read(self, file: Path, content: bytes, of: str) -> None:
        header: Any = None
        for number, line in enumerate(content.splitlines(), start=1):
            try:
                row = read_json(line.decode(), f"{file}, line {number},")
                if number == 1:
                    header = row
                    if header.get("format") != FORMAT:
                        raise InvalidInput(f"{file} is no file of results.")
                    continue
                record = Record(**row)
                self.keep(record)
                if not record.error:
                    self._read_in.add((record.component, record.question))
            except (ValueError, TypeError, AttributeError) as problem:
                if isinstance(problem, InvalidInput):
                    raise
                raise InvalidInput(
                    f"{file}, line {number}, is no result: {problem!s:.200}. Give another file."
                ) from problem
        if header is None or header.get("of") != of:
            raise InvalidInput(f"{file} holds results of other questions, candidates or passages: give another file.")

    def keep(self, record: Record) -> None:
        """Remember a result; that of a later try replaces an earlier one, and what failed is tried again."""
        if not record.error:
            self._known[record.component, record.spec, record.candidates, record.question] = record

    def get(self, component: str, spec: str, question: str, candidates: str = "") -> Record | None:
        """The result, if there is one; a warning where the file has results of another component of this name."""
        record = self._known.get((component, spec, candidates, question))
        if record is None and (component, question) in self._read_in:
            self._read_in = {other for other in self._read_in if other[0] != component}
            warnings.warn(
                f"{self._file} holds results of {component} with other settings, of another version or over other "
                "candidates: they are computed anew.",
                DrillrankWarning,
                stacklevel=4,
            )
        return record

    def add(self, record: Record) -> None:
        """Remember a result and write it down at once."""
        self.keep(record)
        if self._file is not None:
            self._append(asdict(record))

    def _append(self, row: Mapping[str, Any]) -> None:
        with self._written() as lines:
            lines.write(json.dumps(row).encode() + b"\n")

    @contextmanager
    def _written(self) -> Iterator[BinaryIO]:
        assert self._file is not None
        try:
            with self._file.open("ab") as lines:
                yield lines
        except OSError as problem:
            raise InvalidInput(
                f"{self._file} cannot be written: {problem.strerror}. What it holds is kept: make room, and run again."
            ) from problem
