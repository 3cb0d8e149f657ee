"""Results by question and component in one JSON Lines file, so that nothing computed is lost."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from drillrank.errors import InvalidInput
from drillrank.evaluation.questions import Question
from drillrank.limits import read_json
from drillrank.passages import Passage

FORMAT = "drillrank-compare-1"
_BEGINNING = json.dumps({"format": FORMAT}).encode()[:-1]


@dataclass
class Record:
    """What one component brought for one question.

    Attributes:
        component: Its name.
        spec: What it is.
        question: The question's id.
        ids: Best first.
        scores: One for each id; None where it told none.
        seconds: It took.
        usage: Tokens and calls of an LLM, as far as it told.
        error: What it raised, if it did; then there are no ids.
        explains: Whether it can say why; None where nobody knows.
        explanation: Of the first few, as `Explanations.to_dict` tells them, where a report has asked for them.
        texts: Title and text of passages that are not in the corpus, by id.
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

    def passages(self, known: Mapping[str, Passage]) -> list[Passage]:
        """The passages themselves."""
        return [
            known[id_] if id_ in known else Passage(self.texts[id_][1], id=id_, title=self.texts[id_][0])
            for id_ in self.ids
        ]


def fingerprint(questions: Sequence[Question], passages: Mapping[str, Passage], depth: int) -> str:
    """Of what is asked of what: other questions, candidates or passages have another one."""
    digest = hashlib.blake2b(digest_size=16)
    for question in questions:
        given = [item if isinstance(item, str) else (item.id, item.text) for item in question.candidates or ()]
        digest.update(json.dumps([question.id, question.text, given, question.scores]).encode())
    for passage in passages.values():
        digest.update(json.dumps([passage.id, passage.title, passage.text]).encode())
    digest.update(str(depth).encode())
    return digest.hexdigest()


class Records:
    """A file of results, read at the start and added to; or memory alone.

    Raises:
        InvalidInput: the file holds results of other questions, is something else, or cannot be written.
    """

    def __init__(self, file: str | os.PathLike[str] | None, of: str) -> None:
        self._file = None if file is None else Path(file)
        self._known: dict[tuple[str, str, str], Record] = {}
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
                self.keep(Record(**row))
            except (ValueError, TypeError, AttributeError) as problem:
                if isinstance(problem, InvalidInput):
                    raise
                raise InvalidInput(
                    f"{file}, line {number}, is no result: {problem!s:.200}. Give another file."
                ) from problem
        if header is None or header.get("of") != of:
            raise InvalidInput(f"{file} holds results of other questions, candidates or passages: give another file.")

    def keep(self, record: Record) -> None:
        """Remember a result; that of a later try replaces an earlier one."""
        self._known[record.component, record.spec, record.question] = record

    def get(self, component: str, spec: str, question: str) -> Record | None:
        """The result, if there is one."""
        return self._known.get((component, spec, question))

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
