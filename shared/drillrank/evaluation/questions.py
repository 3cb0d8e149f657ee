"""Questions with their gold labels, from JSON Lines, CSV or lists."""

from __future__ import annotations

import math
import os
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.evaluation.corpora import EvaluationCorpus, read_passage
from drillrank.evaluation.tables import is_integer, read_items, read_rows, read_strings
from drillrank.passages import Passage, check_query

_COLUMNS = ("id", "question", "gold", "spans", "answers", "candidates", "scores", "document", "type")
_GOLD_COLUMNS = ("gold", "spans", "answers")


@dataclass(frozen=True)
class Question:
    """Question with its gold labels.

    Attributes:
        id: Id of the question, by default the number of its row.
        text: The question itself.
        gold: Ids of the passages that are evidence.
        spans: Texts that are evidence, word by word.
        answers: Right answers; any of them will do.
        candidates: Passages, or ids of passages in the corpus, for every reranker. None: the first stage finds them.
        scores: Score of the first stage for each candidate. None if unknown.
        row_name: File and line of the question, for messages.
        annotations: Ids that each annotator marked as evidence, if there are several; `gold` is their union. An empty
            set means that the annotator found no evidence.
        document: Name of the document that the question is about. Nothing else is searched. None searches the corpus.
        types: Type of the question, or one type for each of its answers. Empty if unknown.
    """

    id: str
    text: str
    gold: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    candidates: tuple[Passage | str, ...] | None = None
    scores: tuple[float, ...] | None = None
    row_name: str = ""
    annotations: tuple[frozenset[str], ...] = ()
    document: str | None = None
    types: tuple[str, ...] = ()

    def known_passages(self, corpus: EvaluationCorpus) -> Mapping[str, Passage]:
        """Return the passages that count for this question by id: its own candidates, and those of the corpus."""
        own_passages = {item.id: item for item in self.candidates or () if isinstance(item, Passage)}
        return ChainMap(own_passages, corpus.within(self.document).passages)


QuestionSource = str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Iterable[Question]


def read_questions(source: QuestionSource, columns: Mapping[str, str] | None = None) -> list[Question]:
    """Read the questions of a file or a list.

    A row has `question` and at least one of `gold` (ids, or a list of ids for each annotator), `spans` (texts) and
    `answers` (strings). It may have `id`, `candidates` (ids, or objects with `text`, `id` and `title`), their `scores`,
    `document` (the name of the only document to search) and `type`. Other columns are ignored. A cell of a CSV file
    contains several items as a JSON list, or separated by `|`.

    Args:
        source: A `.csv` file, any other file as JSON Lines, mappings, or questions of `drillrank.evaluation.datasets`.
        columns: Names of columns in the file, if they differ, such as `{"candidates": "bm25_top"}`.

    Raises:
        InvalidInput: The file cannot be read, or a row cannot be used. The message names file and line.

    >>> read_questions([{"question": "Who wrote Emma?", "answers": ["Jane Austen"]}])[0].answers
    ('Jane Austen',)
    >>> read_questions([{"question": "Who wrote Emma?", "answer": "Jane Austen"}])
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: Question 1 must have gold, spans or answers, got the columns question, answer.
    """
    name_by_column = {name: name for name in _COLUMNS} | dict(columns or {})
    if unknown := name_by_column.keys() - {*_COLUMNS}:
        raise InvalidInput(f"columns must rename {', '.join(_COLUMNS)}, got {', '.join(sorted(unknown)):.200}.")
    if isinstance(source, str | os.PathLike):
        rows: Iterable[tuple[str, Any]] = read_rows(Path(source))
    else:
        rows = ((f"Question {number}", row) for number, row in enumerate(source, start=1))
    question_by_id: dict[str, Question] = {}
    for row_name, row in rows:
        question = row if isinstance(row, Question) else _read_question(row_name, row, name_by_column)
        if question.id in question_by_id:
            other = question_by_id[question.id].row_name
            raise InvalidInput(f"{row_name} has the id {question.id!r:.200} of {other}. Make the ids differ.")
        question_by_id[question.id] = question
    if not question_by_id:
        raise InvalidInput(f"questions must contain at least one question, got none in {source!r:.200}.")
    return list(question_by_id.values())


def _read_question(row_name: str, row: Any, name_by_column: Mapping[str, str]) -> Question:
    """Return the question of a row."""
    if not isinstance(row, Mapping):
        raise InvalidInput(f"{row_name} must be a mapping with {', '.join(_COLUMNS)}, got a {type(row).__name__}.")
    values = {column: row.get(name) for column, name in name_by_column.items()}
    cells = {column: value for column, value in values.items() if value not in (None, "")}
    column_names = f"{', '.join(map(str, row)):.200}"
    text = _read_text(cells.get("question"), row_name, column_names)
    annotations: tuple[frozenset[str], ...] = ()
    gold = cells.get("gold")
    if isinstance(gold, list) and gold and all(isinstance(ids, list) for ids in gold):
        annotations = tuple(frozenset(read_strings(ids, f"{row_name}, gold")) for ids in gold)
        cells["gold"] = list(dict.fromkeys(id_ for ids in gold for id_ in ids))
    labels = {
        column: read_strings(cells[column], f"{row_name}, {column}") for column in _GOLD_COLUMNS if column in cells
    }
    if not labels:
        raise InvalidInput(f"{row_name} must have gold, spans or answers, got the columns {column_names}.")
    if not any(labels.values()):
        raise InvalidInput(
            f"{row_name} must have a label, but {' and '.join(labels)} are empty. Leave out questions without answers."
        )
    candidates = scores = None
    if "candidates" in cells:
        items = read_items(cells["candidates"], f"{row_name}, candidates")
        candidates = tuple(_read_candidate(item, row_name) for item in items)
    if "scores" in cells:
        scores = _read_scores(read_items(cells["scores"], f"{row_name}, scores"), candidates or (), row_name)
    return Question(
        str(cells.get("id", row_name.rpartition(" ")[2])),
        text,
        **labels,
        candidates=candidates,
        scores=scores,
        row_name=row_name,
        annotations=annotations,
        document=str(cells["document"]) if "document" in cells else None,
        types=(str(cells["type"]),) if "type" in cells else (),
    )


def _read_text(value: Any, row_name: str, column_names: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{row_name} must have a question, got the columns {column_names}.")
    try:
        return check_query(value)
    except InvalidInput as error:
        raise InvalidInput(f"{row_name}: {error}") from error


def _read_candidate(item: Any, row_name: str) -> Passage | str:
    if isinstance(item, str | Passage):
        return item
    if is_integer(item):
        return str(item)
    if isinstance(item, Mapping) and isinstance(item.get("text"), str):
        return read_passage(item, f"{row_name}, candidates")
    raise InvalidInput(f"{row_name}: a candidate must be an id or an object with text, id and title, got {item!r:.80}.")


def _read_scores(items: Sequence[Any], candidates: Sequence[object], row_name: str) -> tuple[float, ...]:
    if len(items) != len(candidates):
        raise InvalidInput(f"{row_name} must have a score for each of {len(candidates)} candidates, got {len(items)}.")
    try:
        scores = tuple(map(float, items))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{row_name}: scores must be numbers ({error}).") from error
    if any(map(math.isnan, scores)):
        raise InvalidInput(f"{row_name}: scores must be numbers, got NaN.")
    return scores


def check_questions(questions: Sequence[Question], corpus: EvaluationCorpus) -> None:
    """Check that the corpus contains the gold passages, candidates and documents of all questions.

    Raises:
        InvalidInput: An id or a document is missing. The message names the first question.
    """
    for question in questions:
        if question.document is not None and question.document not in corpus.documents:
            raise InvalidInput(f"{question.row_name}: the document {question.document!r:.200} is not in the corpus.")
        passages = question.known_passages(corpus)
        for candidate in question.candidates or ():
            if isinstance(candidate, str) and candidate not in passages:
                raise InvalidInput(f"{question.row_name}: the candidate {candidate!r:.200} is not in the corpus.")
        for id_ in question.gold if corpus.passages else ():
            if id_ not in passages:
                raise InvalidInput(
                    f"{question.row_name}: the gold id {id_!r:.80} is not in the corpus of {len(passages):,} passages, "
                    f"whose first id is {next(iter(passages), None)!r:.80}."
                )
