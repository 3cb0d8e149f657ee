"""What is searched: passages of a table, or sections of documents."""

from __future__ import annotations

import os
import warnings
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from drillrank.errors import DrillrankError, DrillrankWarning, InvalidInput
from drillrank.evaluation.questions import Question, passage_of, rows_of_file
from drillrank.files import files_below
from drillrank.passages import Passage
from drillrank.structure import Document, breadcrumb, read_document
from drillrank.structure.read import named_format
from drillrank.vectors import BM25Index, top
from drillrank.views import section_chunks

CorpusSource = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Iterable[Passage | Mapping[str, Any]]


@dataclass
class Corpus:
    """Passages by id, and the documents that they come from, if they do.

    Attributes:
        passages: By id, in order.
        documents: By name.
    """

    passages: dict[str, Passage] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)

    def add(self, passage: Passage, place: str) -> None:
        """One more passage.

        Raises:
            InvalidInput: another one has its id.
        """
        if self.passages.setdefault(passage.id, passage) != passage:
            raise InvalidInput(f"{place} has the id {passage.id!r:.200} of another passage: ids differ.")

    def known(self, question: Question) -> Mapping[str, Passage]:
        """What a question can be judged by, by id: the candidates that it names, and the corpus."""
        given = {item.id: item for item in question.candidates or () if isinstance(item, Passage)}
        return ChainMap(given, self.passages)

    @cached_property
    def by_text(self) -> dict[str, Passage]:
        """The first passage of each text, for copies that have lost their id."""
        return {passage.text: passage for passage in reversed(self.passages.values())}


def read_corpus(source: CorpusSource | None) -> Corpus:
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
    corpus = Corpus()
    if source is None:
        return corpus
    items: list[Any] = [source] if isinstance(source, str | os.PathLike) else list(source)
    for number, item in enumerate(items, start=1):
        if isinstance(item, Passage):
            corpus.add(item, f"Passage {number}")
        elif isinstance(item, Mapping):
            corpus.add(passage_of(item, f"Passage {number}"), f"Passage {number}")
        elif isinstance(item, str | os.PathLike):
            _add_files(corpus, Path(item))
        else:
            raise InvalidInput(f"Item {number} of the corpus is a {type(item).__name__}: give files or passages.")
    if not corpus.passages:
        raise InvalidInput(f"There is no passage in {source!r:.200}.")
    return corpus


def _add_files(corpus: Corpus, given: Path) -> None:
    if not given.is_dir():
        _add_file(corpus, given, given.name)
        return
    for file, problem in sorted(files_below(given)):
        known = file.suffix.lower() in (".jsonl", ".csv", ".pdf") or named_format({"file_name": file.name})
        if problem and (known or file.is_dir()):
            warnings.warn(f"{file} {problem}.", DrillrankWarning, stacklevel=2)
        elif known:
            _add_file(corpus, file, file.relative_to(given).as_posix(), named=False)


def _add_file(corpus: Corpus, file: Path, name: str, *, named: bool = True) -> None:
    if file.suffix.lower() in (".jsonl", ".csv"):
        for place, row in rows_of_file(file):
            corpus.add(passage_of(row, place), place)
        return
    if name in corpus.documents:
        raise InvalidInput(f"Two documents are called {name!r:.200}: give the folder that holds both.")
    try:
        corpus.documents[name] = document = read_document(file)
    except (DrillrankError, MemoryError, RecursionError) as error:
        if named:
            raise
        warnings.warn(f"{file} is left out: {str(error) or type(error).__name__}", DrillrankWarning, stacklevel=2)
        return
    for chunk in section_chunks(document, name):
        if chunk.view == "raw":
            corpus.add(Passage(chunk.text, id=chunk.section_id, title=breadcrumb(chunk.path)), name)


def check_gold(questions: Sequence[Question], corpus: Corpus) -> None:
    """Refuse gold ids and candidates that no passage has.

    Raises:
        InvalidInput: names the first question and its id.
    """
    for question in questions:
        known = corpus.known(question)
        for id_ in question.candidates or ():
            if isinstance(id_, str) and id_ not in known:
                raise InvalidInput(f"{question.place}: the candidate {id_!r:.200} is not in the corpus.")
        for id_ in question.gold if corpus.passages else ():
            if id_ not in known:
                raise InvalidInput(
                    f"{question.place}: the gold id {id_!r:.80} is not in the corpus of {len(corpus.passages):,} "
                    f"passages, whose first id is {next(iter(corpus.passages))!r:.80}."
                )


class Bm25:
    """BM25 over passages: the first stage where none is given, and what every other one is compared with.

    >>> bm25 = Bm25([Passage("a red fox", id="1"), Passage("a blue whale", id="2")])
    >>> bm25.search("foxes", 1)[0][0].id
    '1'
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = list(passages)
        self._places = {passage.id: place for place, passage in enumerate(self._passages)}
        self._index = BM25Index([passage.titled_text for passage in self._passages])

    def search(self, query: str, n: int) -> list[tuple[Passage, float]]:
        """The best `n` passages with their scores."""
        scores = self._index.scores(query)
        return [(self._passages[place], float(scores[place])) for place in top(scores, n)]

    def rank(self, query: str, passages: Sequence[Passage]) -> list[tuple[Passage, float]]:
        """Some of the passages, best first."""
        scores = self._index.scores(query)
        found = [(passage, float(scores[self._places[passage.id]])) for passage in passages]
        return sorted(found, key=lambda item: -item[1])
