"""Questions with what is right for them, and what is searched: JSON Lines, CSV, documents, or lists."""

from __future__ import annotations

import csv
import math
import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from drillrank.errors import DrillrankError, InvalidInput, warn
from drillrank.files import list_files
from drillrank.limits import read_json
from drillrank.passages import Passage, check_query
from drillrank.structure import Document, breadcrumb, read_document
from drillrank.structure.read import is_readable_name
from drillrank.views import section_chunks

_COLUMNS = ("id", "question", "gold", "spans", "answers", "candidates", "scores")
_RIGHT = ("gold", "spans", "answers")
_TABLES = (".jsonl", ".csv")
_LONGEST_CELL = 2**31 - 1  # characters: a cell may hold the texts of all candidates

QuestionSource = str | os.PathLike[str] | Iterable[Mapping[str, Any]]
CorpusSource = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Iterable[Passage | Mapping[str, Any]]


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
        location: Where it stands, for messages.
        annotations: Where several people marked evidence, the ids of each; `gold` is all of them together.
    """

    id: str
    text: str
    gold: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    candidates: tuple[Passage | str, ...] | None = None
    scores: tuple[float, ...] | None = None
    location: str = ""
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
    names = {name: name for name in _COLUMNS} | dict(columns or {})
    if unknown := names.keys() - {*_COLUMNS}:
        raise InvalidInput(f"Columns of questions are {', '.join(_COLUMNS)}; not {', '.join(sorted(unknown)):.200}.")
    if isinstance(source, str | os.PathLike):
        rows: Iterable[tuple[str, Any]] = _rows(Path(source))
    else:
        rows = ((f"Question {number}", row) for number, row in enumerate(source, start=1))
    questions: dict[str, Question] = {}
    for location, row in rows:
        if not isinstance(row, Mapping):
            raise InvalidInput(f"{location} is a {type(row).__name__}; give mappings with {', '.join(_COLUMNS)}.")
        question = _question(location, {name: row.get(called) for name, called in names.items()}, row)
        if question.id in questions:
            other = questions[question.id].location
            raise InvalidInput(f"{location} has the id {question.id!r:.200} of {other}: ids differ.")
        questions[question.id] = question
    if not questions:
        raise InvalidInput(f"There is no question in {source!r:.200}.")
    return list(questions.values())


def _rows(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rows of a CSV or JSON Lines file, each with its place, such as "questions.csv, line 7".

    Cells of CSV stand between commas, semicolons or tabs, whatever the line of names has most of.

    Raises:
        InvalidInput: the file cannot be read, or a line is not what it should be.
    """
    longest = csv.field_size_limit(_LONGEST_CELL)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            if file.suffix.lower() == ".csv":
                yield from _cells(file.name, lines)
                return
            for number, line in enumerate(lines, start=1):
                location = f"{file.name}, line {number}"
                row = read_json(line, location) if line.strip() else {}
                if not isinstance(row, dict):
                    raise InvalidInput(f"{location} is not JSON object, but a {type(row).__name__}.")
                if line.strip():
                    yield location, row
    except UnicodeDecodeError as problem:
        raise InvalidInput(f"{file} is no UTF-8: {problem}. Save it in that encoding.") from problem
    except (OSError, csv.Error) as problem:
        raise InvalidInput(f"{file} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from problem
    finally:
        csv.field_size_limit(longest)


def _cells(name: str, lines: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    names = lines.readline()
    lines.seek(0)
    table = csv.DictReader(lines, delimiter=max(",;\t", key=names.count))  # spreadsheets differ by country
    table.fieldnames = [name.strip() for name in table.fieldnames or ()]
    for row in table:
        if not any(cell.strip() for cell in row.values() if isinstance(cell, str)):
            continue  # spreadsheets write them below the last row
        location = f"{name}, line {table.line_num}"
        if None in row or None in row.values():
            raise InvalidInput(f"{location} has not as many cells as the {len(table.fieldnames)} names.")
        yield location, row


def _question(location: str, named: dict[str, Any], row: Mapping[str, Any]) -> Question:
    columns, gold = f"{', '.join(map(str, row)):.200}", named["gold"]
    annotations: tuple[frozenset[str], ...] = ()
    if isinstance(gold, list) and gold and all(isinstance(marked, list) for marked in gold):
        annotations = tuple(frozenset(_strings(marked, f"{location}, gold")) for marked in gold)
        named["gold"] = list(dict.fromkeys(id_ for marked in gold for id_ in marked))
    text = named["question"]
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"{location} has no question; its columns: {columns}.")
    try:
        text = check_query(text)
    except InvalidInput as problem:
        raise InvalidInput(f"{location}: {problem}") from problem
    given = {name: value for name, value in named.items() if value not in (None, "")}
    right = {name: _strings(given[name], f"{location}, {name}") for name in _RIGHT if name in given}
    if not right:
        raise InvalidInput(f"{location} has neither gold nor spans nor answers; its columns: {columns}.")
    if not any(right.values()):
        raise InvalidInput(
            f"{location}: {' and '.join(right)} are empty. Leave out a question that nothing can answer."
        )
    candidates = scores = None
    if "candidates" in given:
        candidates = tuple(
            _candidate(item, location) for item in _items(given["candidates"], f"{location}, candidates")
        )
    if "scores" in given:
        scores = _scores(_items(given["scores"], f"{location}, scores"), candidates or (), location)
    id_ = str(given.get("id", location.rpartition(" ")[2]))
    return Question(
        id_, text, **right, candidates=candidates, scores=scores, location=location, annotations=annotations
    )


def _items(value: Any, location: str) -> list[Any]:
    """A list as it is; a cell of a CSV file as JSON, or cut at `|`; a number as a list of one."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = read_json(value, f"{location} begins like a list, but")
    elif isinstance(value, str):
        value = [item.strip() for item in value.split("|") if item.strip()]
    elif _is_number(value):
        value = [value]
    if not isinstance(value, Sequence):
        raise InvalidInput(f"{location} is a list, not {value!r:.80}.")
    return list(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)  # as ids of data bases and years are


def _strings(value: Any, location: str) -> tuple[str, ...]:
    items = [str(item) if _is_number(item) else item for item in _items(value, location)]
    for item in items:
        if not isinstance(item, str) or not item.strip():
            raise InvalidInput(f"{location} holds strings that are not blank; not {item!r:.80}.")
    return tuple(dict.fromkeys(items))


def _candidate(item: Any, location: str) -> Passage | str:
    if isinstance(item, str | Passage):
        return item
    if _is_number(item):
        return str(item)
    if isinstance(item, Mapping) and isinstance(item.get("text"), str):
        return _passage(item, f"{location}, candidates")
    raise InvalidInput(f"{location}: a candidate is an id, or an object with text, id and title; not {item!r:.80}.")


def _scores(items: Sequence[Any], candidates: Sequence[object], location: str) -> tuple[float, ...]:
    if len(items) != len(candidates):
        raise InvalidInput(f"{location} has {len(items)} scores for {len(candidates)} candidates.")
    try:
        found = tuple(map(float, items))
    except (TypeError, ValueError) as problem:
        raise InvalidInput(f"{location}: scores are numbers ({problem}).") from problem
    if any(map(math.isnan, found)):
        raise InvalidInput(f"{location}: scores are numbers, not NaN.")
    return found


def _passage(row: Mapping[str, Any], location: str) -> Passage:
    """A passage from a row with `text`, and perhaps `id`, `title` and `links`."""
    if "text" not in row:
        raise InvalidInput(f"{location}: no 'text'; its columns: {', '.join(map(str, row)):.200}")
    id_: Any = None if row.get("id") in (None, "") else str(row["id"])
    try:
        links = tuple(_items(row.get("links") or [], f"{location}, links"))
        return Passage(row["text"], id=id_, title=row.get("title") or "", links=links)
    except InvalidInput as problem:
        raise InvalidInput(f"{location}: {problem}") from problem


# What is searched


@dataclass
class Collection:
    """Passages by id, and the documents that they come from, if they do.

    Attributes:
        passages: By id, in order.
        documents: By name.
    """

    passages: dict[str, Passage] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)

    def known(self, question: Question) -> Mapping[str, Passage]:
        """What a question can be judged by, by id: the candidates that it names, and the corpus."""
        given = {item.id: item for item in question.candidates or () if isinstance(item, Passage)}
        return ChainMap(given, self.passages)

    @cached_property
    def by_text(self) -> dict[str, Passage]:
        """The first passage of each text, for copies that have lost their id."""
        return {passage.text: passage for passage in reversed(self.passages.values())}


def read_corpus(source: CorpusSource | None) -> Collection:
    """A corpus of files, of all files below a folder, or of passages.

    `.jsonl` and `.csv` are tables of passages: `text`, and perhaps `id`, `title` and `links`. Every other file is a
    document, whose sections are the passages, with ids of the file's name and the section's.

    Of a folder's documents, one that cannot be read is left out with a warning; hidden ones and links that lead outside
    are not read.

    Raises:
        InvalidInput: a file cannot be read, there is no passage, or two share an id; the message names the row.

    >>> list(read_corpus([{"text": "Basel lies on the Rhine.", "id": "basel"}]).passages)
    ['basel']
    """
    corpus = Collection()
    if source is None:
        return corpus
    items: list[Any] = [source] if isinstance(source, str | os.PathLike) else list(source)
    for number, item in enumerate(items, start=1):
        if isinstance(item, str | os.PathLike):
            found = _in_files(corpus, Path(item))
        elif isinstance(item, Passage | Mapping):
            location = f"Passage {number}"
            found = iter([(location, item if isinstance(item, Passage) else _passage(item, location))])
        else:
            raise InvalidInput(f"Item {number} of the corpus is a {type(item).__name__}: give files or passages.")
        for location, passage in found:
            if corpus.passages.setdefault(passage.id, passage) != passage:
                raise InvalidInput(f"{location} has the id {passage.id!r:.200} of another passage: ids differ.")
    if not corpus.passages:
        raise InvalidInput(f"There is no passage in {source!r:.200}.")
    return corpus


def _in_files(corpus: Collection, given: Path) -> Iterator[tuple[str, Passage]]:
    named = not given.is_dir()
    for file, problem in [(given, "")] if named else sorted(list_files(given)):
        is_table = file.suffix.lower() in _TABLES
        reads = named or is_table or is_readable_name(file.name)
        if problem and (reads or file.is_dir()):
            warn(f"{file} {problem}.")
        if problem or not reads:
            continue
        if is_table:
            rows = list(_rows(file))
            if named or any("text" in row for _, row in rows):
                yield from ((location, _passage(row, location)) for location, row in rows)
            else:  # of numbers, say
                warn(f"{file} is left out: no passage in it has a 'text'.")
            continue
        name = file.name if named else file.relative_to(given).as_posix()
        if name in corpus.documents:
            raise InvalidInput(f"Two documents are called {name!r:.200}: give the folder that holds both.")
        try:
            corpus.documents[name] = document = read_document(file)
        except (DrillrankError, MemoryError, RecursionError) as error:
            if named:
                raise
            left = f"{file} is left out: {str(error) or type(error).__name__}"
            warn(left)
            continue
        for chunk in section_chunks(document, name):
            if chunk.view == "raw":
                yield name, Passage(chunk.text, id=chunk.section_id, title=breadcrumb(chunk.path))


def check_gold(questions: Sequence[Question], corpus: Collection) -> None:
    """Refuse gold ids and candidates that no passage has.

    Raises:
        InvalidInput: names the first question and its id.
    """
    for question in questions:
        known = corpus.known(question)
        for id_ in question.candidates or ():
            if isinstance(id_, str) and id_ not in known:
                raise InvalidInput(f"{question.location}: the candidate {id_!r:.200} is not in the corpus.")
        for id_ in question.gold if corpus.passages else ():
            if id_ not in known:
                raise InvalidInput(
                    f"{question.location}: the gold id {id_!r:.80} is not in the corpus of {len(corpus.passages):,} "
                    f"passages, whose first id is {next(iter(corpus.passages))!r:.80}."
                )
