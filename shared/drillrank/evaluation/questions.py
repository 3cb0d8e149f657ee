"""Questions with what is right for them: JSON Lines, CSV, or a list of mappings."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.limits import read_json
from drillrank.passages import Passage, check_query

COLUMNS = ("id", "question", "gold", "spans", "answers", "candidates", "scores")
_RIGHT = ("gold", "spans", "answers")
_LONGEST_CELL = 2**31 - 1  # characters: a cell may hold the texts of all candidates

QuestionSource = str | os.PathLike[str] | Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Question:
    """One question and what is right for it.

    Attributes:
        id: Its id; the number of its row where none is given.
        text: The question itself.
        gold: Ids of the passages that are evidence.
        spans: Texts that are evidence, word by word.
        answers: Strings any of which answers it.
        candidates: Passages, or ids of passages in the corpus, for every reranker; None where a first stage finds them.
        scores: The first stage's score of each candidate, if known.
        place: Where it stands, for messages.
        annotations: Where several people marked evidence, the ids of each; `gold` is all of them together.
    """

    id: str
    text: str
    gold: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    candidates: tuple[Passage | str, ...] | None = None
    scores: tuple[float, ...] | None = None
    place: str = ""
    annotations: tuple[frozenset[str], ...] = ()


def read_questions(source: QuestionSource, columns: Mapping[str, str] | None = None) -> list[Question]:
    """Questions of a file or a list.

    A row has `question` and one at least of `gold` (ids, or a list of ids by each annotator), `spans` (texts) and
    `answers` (strings); it may have `id`, `candidates` (ids, or objects with `text`, `id` and `title`) and their
    `scores`. Other columns are ignored. In CSV a cell holds several items as a JSON list, or separated by `|`.

    Args:
        source: A `.csv` file, any other file as JSON Lines, or mappings.
        columns: What the file calls a column that has another name there, such as `{"candidates": "bm25_top"}`.

    Raises:
        InvalidInput: the file cannot be read, or a row cannot be used: the message names file and line.

    >>> read_questions([{"question": "Who wrote Emma?", "answers": ["Jane Austen"]}])[0].answers
    ('Jane Austen',)
    >>> read_questions([{"question": "Who wrote Emma?", "answer": "Jane Austen"}])
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: Question 1 has neither gold nor spans nor answers; its columns: question, answer.
    """
    names = {name: name for name in COLUMNS} | dict(columns or {})
    if unknown := names.keys() - {*COLUMNS}:
        raise InvalidInput(f"Columns of questions are {', '.join(COLUMNS)}; not {', '.join(sorted(unknown)):.200}.")
    questions: list[Question] = []
    places: dict[str, str] = {}
    for place, row in _rows(source):
        question = _question(place, {name: row.get(called) for name, called in names.items()}, row)
        if question.id in places:
            raise InvalidInput(f"{place} has the id {question.id!r:.200} of {places[question.id]}: ids differ.")
        places[question.id] = place
        questions.append(question)
    if not questions:
        raise InvalidInput(f"There is no question in {source!r:.200}.")
    return questions


def _rows(source: QuestionSource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(source, str | os.PathLike):
        yield from rows_of_file(Path(source))
        return
    for number, row in enumerate(source, start=1):
        if not isinstance(row, Mapping):
            raise InvalidInput(f"Question {number} is a {type(row).__name__}; give mappings with {', '.join(COLUMNS)}.")
        yield f"Question {number}", row


def rows_of_file(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rows of a CSV or JSON Lines file, each with its place, such as "questions.csv, line 7".

    Cells of CSV stand between commas, semicolons or tabs, whatever the line of names has most of.

    Raises:
        InvalidInput: the file cannot be read, or a line is not what it should be.
    """
    longest = csv.field_size_limit(_LONGEST_CELL)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            if file.suffix.lower() == ".csv":
                names = lines.readline()
                lines.seek(0)
                table = csv.DictReader(lines, delimiter=max(",;\t", key=names.count))  # spreadsheets differ by country
                table.fieldnames = [name.strip() for name in table.fieldnames or ()]
                for row in table:
                    if not any(cell.strip() for cell in row.values() if isinstance(cell, str)):
                        continue  # spreadsheets write them below the last row
                    place = f"{file.name}, line {table.line_num}"
                    if None in row or None in row.values():
                        raise InvalidInput(f"{place} has not as many cells as the {len(table.fieldnames)} names.")
                    yield place, row
                return
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield f"{file.name}, line {number}", _json_object(line, f"{file.name}, line {number}")
    except UnicodeDecodeError as problem:
        raise InvalidInput(f"{file} is no UTF-8: {problem}. Save it in that encoding.") from problem
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be read: {problem.strerror}.") from problem
    except csv.Error as problem:
        raise InvalidInput(f"{file} cannot be read: {problem}.") from problem
    finally:
        csv.field_size_limit(longest)


def _json_object(line: str, place: str) -> Mapping[str, Any]:
    row = read_json(line, place)
    if not isinstance(row, dict):
        raise InvalidInput(f"{place} is no JSON object, but a {type(row).__name__}.")
    return row


def _question(place: str, named: Mapping[str, Any], row: Mapping[str, Any]) -> Question:
    annotations: tuple[frozenset[str], ...] = ()
    gold = named["gold"]
    if isinstance(gold, list) and gold and all(isinstance(marked, list) for marked in gold):
        annotations = tuple(frozenset(_strings(marked, f"{place}, gold")) for marked in gold)
        named = {**named, "gold": list(dict.fromkeys(id_ for marked in gold for id_ in marked))}
    text = named["question"]
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"{place} has no question; its columns: {', '.join(map(str, row)):.200}.")
    try:
        text = check_query(text)
    except InvalidInput as problem:
        raise InvalidInput(f"{place}: {problem}") from problem
    right = {name: _strings(named[name], f"{place}, {name}") for name in _RIGHT if named[name] not in (None, "")}
    if not right:
        columns = ", ".join(map(str, row))
        raise InvalidInput(f"{place} has neither gold nor spans nor answers; its columns: {columns:.200}.")
    if not any(right.values()):
        raise InvalidInput(f"{place}: {' and '.join(right)} are empty. Leave out a question that nothing can answer.")
    candidates = None
    if named["candidates"] not in (None, ""):
        candidates = tuple(_candidate(item, place) for item in _items(named["candidates"], f"{place}, candidates"))
    scores = None
    if named["scores"] not in (None, ""):
        scores = _scores(_items(named["scores"], f"{place}, scores"), candidates, place)
    id_ = named["id"]
    return Question(
        place.rpartition(" ")[2] if id_ in (None, "") else str(id_),
        text,
        **right,
        candidates=candidates,
        scores=scores,
        place=place,
        annotations=annotations,
    )


def _items(value: Any, place: str) -> list[Any]:
    """A list as it is; a cell of a CSV file as JSON, or cut at `|`; a number as a list of one."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = read_json(value, f"{place} begins like a list, but")
    elif isinstance(value, str):
        value = [item.strip() for item in value.split("|") if item.strip()]
    elif _is_number(value):
        value = [value]
    if not isinstance(value, Sequence):
        raise InvalidInput(f"{place} is a list, not {value!r:.80}.")
    return list(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)  # as ids of data bases and years are


def _strings(value: Any, place: str) -> tuple[str, ...]:
    items = [str(item) if _is_number(item) else item for item in _items(value, place)]
    for item in items:
        if not isinstance(item, str) or not item.strip():
            raise InvalidInput(f"{place} holds strings that are not blank; not {item!r:.80}.")
    return tuple(dict.fromkeys(items))


def _candidate(item: Any, place: str) -> Passage | str:
    if isinstance(item, str | Passage):
        return item
    if _is_number(item):
        return str(item)
    if isinstance(item, Mapping) and isinstance(item.get("text"), str):
        return passage_of(item, f"{place}, candidates")
    raise InvalidInput(f"{place}: a candidate is an id, or an object with text, id and title; not {item!r:.80}.")


def passage_of(row: Mapping[str, Any], place: str) -> Passage:
    """A passage from a row with `text`, and perhaps `id`, `title` and `links`.

    Raises:
        InvalidInput: it cannot be used; the message begins with the place.
    """
    try:
        links = _items(row.get("links") or [], f"{place}, links")
        id_ = "" if row.get("id") is None else str(row["id"])
        return Passage(row["text"], id=id_ or None, title=row.get("title") or "", links=links)  # type: ignore[arg-type]
    except (KeyError, InvalidInput) as problem:
        said = (
            f"no {problem}; its columns: {', '.join(map(str, row)):.200}" if isinstance(problem, KeyError) else problem
        )
        raise InvalidInput(f"{place}: {said}") from problem


def _scores(items: Sequence[Any], candidates: Sequence[object] | None, place: str) -> tuple[float, ...]:
    if candidates is None or len(items) != len(candidates):
        raise InvalidInput(f"{place} has {len(items)} scores for {len(candidates or ())} candidates.")
    try:
        found = tuple(map(float, items))
    except (TypeError, ValueError) as problem:
        raise InvalidInput(f"{place}: scores are numbers ({problem}).") from problem
    if any(map(math.isnan, found)):
        raise InvalidInput(f"{place}: scores are numbers, not NaN.")
    return found
