"""Results of a comparison in a JSON Lines file, so that an interrupted comparison continues where it stopped."""

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
class QuestionResult:
    """Result of one component for one question.

    Attributes:
        component: Name of the component.
        spec: Name and digest of the component (`component_spec`).
        question: Id of the question.
        ids: Ids of the passages, best first.
        scores: Score of each passage; None if the component gave none.
        seconds: Time of the component, without that of the answer.
        usage: Tokens and calls of an LLM, as far as the component counts them.
        error: Message of the error that the component raised; there are no ids then.
        is_explainable: True if the component can explain its results.
        texts: Title and text of passages that are not in the corpus, by id.
        candidates: Digest of the candidates. Empty for a component that searches.
        answer: The LLM's answer from these passages. Empty if it found none, None if it was not asked.
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
    is_explainable: bool = False
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    candidates: str = ""
    answer: str | None = None
    answer_usage: dict[str, int] = field(default_factory=dict)

    def passages(self, known_passages: Mapping[str, Passage]) -> list[Passage]:
        """Return the passages: those that are known by id, and the others from `texts`."""
        return [
            known_passages[id_]
            if id_ in known_passages
            else Passage(self.texts[id_][1], id=id_, title=self.texts[id_][0])
            for id_ in self.ids
        ]


class ResultsFile:
    """File of results, which is read at the start and appended to. Without a file, results stay in memory.

    Args:
        file: Path of the file; None for memory.
        fingerprint: Digest of the questions and passages (`fingerprint`).

    Raises:
        InvalidInput: The file contains results of other questions, is another kind of file, or cannot be written.
    """

    def __init__(self, file: str | os.PathLike[str] | None, fingerprint: str) -> None:
        self._file = None if file is None else Path(file)
        self._results: dict[tuple[str, str], dict[tuple[str, str], QuestionResult]] = {}
        self._warned_components: set[str] = set()
        if self._file is None:
            return
        with self._open() as lines:
            lines.seek(0)
            content = lines.read()
            end = content.rfind(b"\n") + 1
            if end or not _BEGINNING.startswith(content[: len(_BEGINNING)]):
                self._read(content[:end].splitlines(), fingerprint)
            lines.truncate(end)  # an interruption may leave half a line
            if not end:
                lines.write(json.dumps({"format": _FORMAT, "of": fingerprint}).encode() + b"\n")

    def _read(self, lines: Sequence[bytes], fingerprint: str) -> None:
        try:
            header, *rows = (
                read_json(line.decode(), f"{self._file}, line {number},") for number, line in enumerate(lines, start=1)
            )
            if header != {"format": _FORMAT, "of": fingerprint}:
                raise ValueError
            for row in rows:
                self._keep(QuestionResult(**row))
        except (ValueError, TypeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(
                f"{self._file} contains results of other questions, candidates or passages, or is another kind of "
                "file. Give another file."
            ) from error

    def _keep(self, result: QuestionResult) -> None:
        """Remember a result. Later results replace earlier ones, and failed questions are asked again."""
        if not result.error:
            results = self._results.setdefault((result.component, result.question), {})
            results[result.spec, result.candidates] = result

    def get(self, component: str, spec: str, question: str, candidates: str = "") -> QuestionResult | None:
        """Return a result, or None. Warn if the file contains results of another component with this name."""
        results = self._results.get((component, question), {})
        result = results.get((spec, candidates))
        if result is None and results and component not in self._warned_components:
            self._warned_components.add(component)
            warn(
                f"{self._file} contains results of {component} with other settings, of another version or over other "
                "candidates. They are computed again."
            )
        return result

    def add(self, result: QuestionResult) -> None:
        """Remember a result, and write it to the file at once."""
        self._keep(result)
        if self._file is not None:
            with self._open() as lines:
                lines.write(json.dumps(asdict(result)).encode() + b"\n")

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        assert self._file is not None
        try:
            with self._file.open("a+b") as lines:
                yield lines
        except OSError as error:
            raise InvalidInput(
                f"{self._file} cannot be written: {error.strerror}. Its content is kept. Make room and run again."
            ) from error


def component_spec(specification: Any) -> str:
    """Return a component's name with a digest of its settings and version. Other settings have another digest.

    The settings of an object are the arguments of its class, if attributes of these names contain them, and its
    language models. Code is identified by its name and by the version of its package.

    >>> plain, other = component_spec("UPR"), component_spec({"component": "UPR", "prior": "retrieval"})
    >>> plain == component_spec({"component": "UPR"}) != other
    True
    """
    settings = specification if isinstance(specification, Mapping) else {"component": specification}
    target = _describe(settings["component"])
    name = target if isinstance(target, str) else target[0]
    package = re.split(r"[.:]", name)[0]
    versions = [version("drillrank"), str(getattr(sys.modules.get(package), "__version__", ""))]
    return f"{name} {digest([_describe({**settings, 'component': target}), versions])[:16]}"


def _describe(value: Any, depth: int = 3) -> Any:
    """Return a setting as a JSON value; an object becomes its class and, up to a depth, its own settings."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _describe(item, depth) for key, item in sorted(value.items())}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_describe(item, depth) for item in items]
    if isinstance(value, LanguageModel):
        return [value.spec, _describe(value.options)]
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
        {key: _describe(item, depth - 1) for key, item in settings.items()},
    ]


def fingerprint(questions: Sequence[Question], passages: Mapping[str, Passage], n_candidates: int) -> str:
    """Return a digest of questions, candidates and passages."""
    parts: list[Any] = [n_candidates]
    for question in questions:
        candidates = [item if isinstance(item, str) else (item.id, item.text) for item in question.candidates or ()]
        parts.append([question.id, question.text, candidates, question.scores, question.document])
    return digest([*parts, *([passage.id, passage.title, passage.text] for passage in passages.values())])


def digest(items: Iterable[Any]) -> str:
    """Return a digest of JSON values."""
    hasher = hashlib.blake2b(digest_size=16)
    for item in items:
        hasher.update(json.dumps(item).encode())
    return hasher.hexdigest()
