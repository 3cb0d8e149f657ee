"""Corpora of a comparison: passages, and the documents that contain them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from drillrank.errors import DrillrankError, InvalidInput, warn
from drillrank.evaluation.tables import read_items, read_rows
from drillrank.files import list_files
from drillrank.passages import Passage
from drillrank.structure import Document, breadcrumb, read_document
from drillrank.structure.read import is_readable_name
from drillrank.views import section_chunks

_TABLE_SUFFIXES = (".jsonl", ".csv")


@dataclass
class EvaluationCorpus:
    """Passages by id, and the documents that contain them.

    Attributes:
        passages: Passages by id, in order.
        documents: Documents by name. Empty for a corpus of passages alone.
        document_by_passage: Name of the document of each passage, by the passage's id.
    """

    passages: dict[str, Passage] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    document_by_passage: dict[str, str] = field(default_factory=dict)

    def add(self, passage: Passage, row_name: str, document: str | None = None) -> None:
        """Add a passage.

        Args:
            passage: The passage.
            row_name: File and line of the passage, for an error.
            document: Name of the passage's document; None if there is none.

        Raises:
            InvalidInput: Another passage has the same id.
        """
        if self.passages.setdefault(passage.id, passage) != passage:
            raise InvalidInput(f"{row_name} has the id {passage.id!r:.200} of another passage. Make the ids differ.")
        if document is not None:
            self.document_by_passage[passage.id] = document

    def within(self, document: str | None) -> EvaluationCorpus:
        """Return the part of the corpus that one document contains; the whole corpus for None."""
        return self if document is None else self._parts[document]

    @cached_property
    def _parts(self) -> dict[str, EvaluationCorpus]:
        parts = {name: EvaluationCorpus(documents={name: document}) for name, document in self.documents.items()}
        for id_, name in self.document_by_passage.items():
            parts[name].passages[id_] = self.passages[id_]
        return parts

    @cached_property
    def by_text(self) -> dict[str, Passage]:
        """First passage of each text, for copies that have lost their id."""
        return {passage.text: passage for passage in reversed(self.passages.values())}


CorpusSource = (
    str | os.PathLike[str] | EvaluationCorpus | Sequence[str | os.PathLike[str]] | Iterable[Passage | Mapping[str, Any]]
)


def read_corpus(source: CorpusSource | None) -> EvaluationCorpus:
    """Read a corpus of files, of all files below a folder, or of passages.

    `.jsonl` and `.csv` are tables of passages: `text`, and optionally `id`, `title` and `links`. Every other file is a
    document, whose sections are the passages. Their ids are made of the file's name and the section.

    A document in a folder that cannot be read is skipped with a warning. Hidden files and links that lead outside the
    folder are not read. A corpus of `drillrank.evaluation.datasets` is returned unchanged.

    Raises:
        InvalidInput: A named file cannot be read, there are no passages, or two of them share an id. The message names
            the row.

    >>> list(read_corpus([{"text": "Basel lies on the Rhine.", "id": "basel"}]).passages)
    ['basel']
    """
    if isinstance(source, EvaluationCorpus):
        return source
    corpus = EvaluationCorpus()
    if source is None:
        return corpus
    items: list[Any] = [source] if isinstance(source, str | os.PathLike) else list(source)
    for number, item in enumerate(items, start=1):
        if isinstance(item, str | os.PathLike):
            _add_files(corpus, Path(item))
        elif isinstance(item, Passage | Mapping):
            row_name = f"Passage {number}"
            corpus.add(item if isinstance(item, Passage) else read_passage(item, row_name), row_name)
        else:
            raise InvalidInput(f"Item {number} of the corpus must be a file or a passage, got a {type(item).__name__}.")
    if not corpus.passages:
        raise InvalidInput(f"The corpus must contain passages, got none in {source!r:.200}.")
    return corpus


def read_passage(row: Mapping[str, Any], row_name: str) -> Passage:
    """Return the passage of a row with `text`, and optionally `id`, `title` and `links`.

    Raises:
        InvalidInput: The row has no text, or a value cannot be used.
    """
    if "text" not in row:
        raise InvalidInput(f"{row_name} must have a column 'text', got the columns {', '.join(map(str, row)):.200}.")
    id_: Any = None if row.get("id") in (None, "") else str(row["id"])
    try:
        links = tuple(read_items(row.get("links") or [], f"{row_name}, links"))
        return Passage(row["text"], id=id_, title=row.get("title") or "", links=links)
    except InvalidInput as error:
        raise InvalidInput(f"{row_name}: {error}") from error


def _add_files(corpus: EvaluationCorpus, path: Path) -> None:
    """Add a file, or the files of a folder."""
    if not path.is_dir():
        if path.suffix.lower() in _TABLE_SUFFIXES:
            _add_rows(corpus, read_rows(path))
        else:
            _add_document(corpus, path.name, read_document(path))
        return
    for file, problem in sorted(list_files(path)):
        is_table = file.suffix.lower() in _TABLE_SUFFIXES
        is_readable = is_table or is_readable_name(file.name)
        if problem and (is_readable or file.is_dir()):
            warn(f"{file} {problem}.")
        if problem or not is_readable:
            continue
        if is_table:
            rows = list(read_rows(file))
            if any("text" in row for _, row in rows):
                _add_rows(corpus, rows)
            else:  # a table of numbers, for example
                warn(f"{file} is skipped: no row has a 'text'.")
            continue
        try:
            document = read_document(file)
        except (DrillrankError, MemoryError, RecursionError) as error:
            skipped = f"{file} is skipped: {str(error) or type(error).__name__}"
            warn(skipped)
        else:
            _add_document(corpus, file.relative_to(path).as_posix(), document)


def _add_rows(corpus: EvaluationCorpus, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    for row_name, row in rows:
        corpus.add(read_passage(row, row_name), row_name)


def _add_document(corpus: EvaluationCorpus, name: str, document: Document) -> None:
    """Add a document, with its sections as passages."""
    if name in corpus.documents:
        raise InvalidInput(f"Two documents are called {name!r:.200}. Pass the folder that contains both.")
    corpus.documents[name] = document
    for passage in section_passages(document, name):
        corpus.add(passage, name, name)


def section_passages(document: Document, name: str) -> Iterator[Passage]:
    """Yield the sections of a document as passages."""
    for chunk in section_chunks(document, name, ["raw"]):
        yield Passage(chunk.text, id=chunk.section_id, title=breadcrumb(chunk.path))
