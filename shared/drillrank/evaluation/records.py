"""Results by question and component in one JSON Lines file, so that nothing computed is lost."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from drillrank.errors import InvalidInput, warn
from drillrank.evaluation.questions import Question
from drillrank.likelihood import LanguageModel
from drillrank.limits import read_json
from drillrank.passages import Passage

_FORMAT = "drillrank-compare-1"
_BEGINNING = json.dumps({"format": _FORMAT}).encode()[:-1]


@dataclass
class Record:
    """What one component brought for one question.

    Attributes:
        component: Its name.
        spec: What it is (`spec_of`).
        question: The question's id.
        ids: Best first.
        scores: One for each id; None where it gave none.
        seconds: It took, the answer apart.
        usage: Tokens and calls of an LLM, as far as it counts them.
        error: What it raised, if it did; then there are no ids.
        explains: Whether it can say why.
        texts: Title and text of passages that are not in the corpus, by id.
        candidates: A digest of what it was given to rank; empty where it looks for itself.
        answer: What an LLM answers from these passages, where it was asked; empty if it finds no answer.
        answer_usage: Tokens and calls of that answer.
    """

    component: str
    spec: str
    question: str
    ids: list[str] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    seconds: float = 0.0
    usage: dict[str, int] = field(default_factory=dict)
    error: str = ""
    explains: bool = False
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    candidates: str = ""
    answer: str | None = None
    answer_usage: dict[str, int] = field(default_factory=dict)

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
    versions = [version("drillrank"), str(getattr(sys.modules.get(home), "__version__", ""))]
    return f"{name} {digest([_described({**named, 'component': what}), versions])[:16]}"


def _described(value: Any, depth: int = 3) -> Any:
    """A setting as JSON has it; of an object its class and, so deep, its own settings."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _described(item, depth) for key, item in sorted(value.items())}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_described(item, depth) for item in items]
    if isinstance(value, LanguageModel):
        return [value.spec, _described(value.options)]
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    kind = type(value)
    try:
        arguments = {*inspect.signature(kind).parameters} if depth else set()
    except (TypeError, ValueError):
        arguments = set()
    names = [item.name for item in fields(value)] if is_dataclass(value) else getattr(value, "__dict__", {})
    attributes = {name: getattr(value, name, None) for name in names}
    settings = {key: item for key, item in attributes.items() if key in arguments or isinstance(item, LanguageModel)}
    return [
        f"{kind.__module__}.{kind.__qualname__}",
        {key: _described(item, depth - 1) for key, item in settings.items()},
    ]


def fingerprint(questions: Sequence[Question], passages: Mapping[str, Passage], depth: int) -> str:
    """Of what is asked of what: other questions, candidates or passages have another one."""
    parts: list[Any] = [depth]
    for question in questions:
        given = [item if isinstance(item, str) else (item.id, item.text) for item in question.candidates or ()]
        parts.append([question.id, question.text, given, question.scores])
    return digest([*parts, *([passage.id, passage.title, passage.text] for passage in passages.values())])


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
        self._known: dict[tuple[str, str], dict[tuple[str, str], Record]] = {}
        self._warned: set[str] = set()
        if self._file is None:
            return
        with self._open() as lines:
            lines.seek(0)
            content = lines.read()
            complete = content.rfind(b"\n") + 1
            if complete or not _BEGINNING.startswith(content[: len(_BEGINNING)]):
                self._read(content[:complete].splitlines(), of)
            lines.truncate(complete)  # an interruption left half a line
            if not complete:
                lines.write(json.dumps({"format": _FORMAT, "of": of}).encode() + b"\n")

    def _read(self, lines: Sequence[bytes], of: str) -> None:
        try:
            header, *rows = (
                read_json(line.decode(), f"{self._file}, line {number},") for number, line in enumerate(lines, start=1)
            )
            if header != {"format": _FORMAT, "of": of}:
                raise ValueError
            for row in rows:
                self._keep(Record(**row))
        except (ValueError, TypeError) as problem:
            if isinstance(problem, InvalidInput):
                raise
            raise InvalidInput(
                f"{self._file} holds results of other questions, candidates or passages, or none: give another file."
            ) from problem

    def _keep(self, record: Record) -> None:
        """Remember a result; that of a later try replaces an earlier one, and what failed is tried again."""
        if not record.error:
            of_question = self._known.setdefault((record.component, record.question), {})
            of_question[record.spec, record.candidates] = record

    def get(self, component: str, spec: str, question: str, candidates: str = "") -> Record | None:
        """The result, if there is one; a warning where the file has results of another component of this name."""
        known = self._known.get((component, question), {})
        record = known.get((spec, candidates))
        if record is None and known and component not in self._warned:
            self._warned.add(component)
            warn(
                f"{self._file} holds results of {component} with other settings, of another version or over other "
                "candidates: they are computed anew."
            )
        return record

    def add(self, record: Record) -> None:
        """Remember a result and write it down at once."""
        self._keep(record)
        if self._file is not None:
            with self._open() as lines:
                lines.write(json.dumps(asdict(record)).encode() + b"\n")

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        assert self._file is not None
        try:
            with self._file.open("a+b") as lines:
                yield lines
        except OSError as problem:
            raise InvalidInput(
                f"{self._file} cannot be written: {problem.strerror}. What it holds is kept: make room, and run again."
            ) from problem
