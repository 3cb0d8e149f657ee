"""Corpus: documents and their passages on disk, added, changed, removed and searched."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drillrank.corpus import index, layout, rows
from drillrank.corpus import store as store_module
from drillrank.corpus.documents import DEFAULT_UNIT, Content, DocumentRecord, Unit, prepare_content
from drillrank.corpus.file_keys import read_file_keys
from drillrank.corpus.index import Scorer, bm25
from drillrank.corpus.layout import DocumentCounts, Layout, StoredLayout
from drillrank.corpus.names import NameRow, StoredNames
from drillrank.corpus.store import MARK_USED, CorpusStore, read_parse
from drillrank.corpus.vectors import embed_missing, read_vectors
from drillrank.errors import InvalidInput
from drillrank.passages import Passage, Ranked, check_query, check_top_n
from drillrank.progress import OnProgress
from drillrank.settings import check_one_of
from drillrank.structure import Document
from drillrank.text import check_language, terms, without_surrogates
from drillrank.vectors import CollectionStatistics, Embed, top

_USED_PRECISION = 3600.0  # seconds


class Corpus:
    r"""Documents and their passages in an SQLite file, with the statistics that ranking needs.

    Documents are cut into units, which the corpus calls passages: paragraphs with the path of their headings as title,
    or passages of up to about 1,200 characters with every heading in them (`drillrank.structure.passages`). A document
    that is added as a `Passage` has this one passage. Scores equal those of an index in memory over the same passages.
    They do not depend on passages that were removed. A query needs memory for its own results only.

    Threads and processes may use a corpus at the same time, also after a fork. A corpus can be sent to processes that
    can open its file. Many may read while one writes; other writers wait. Documents are committed some thousand
    passages at a time. After an interruption, the same call continues where it stopped. If another version of the
    analyzer indexed the file, the next use indexes the stored texts again.

    A corpus is a first stage for `PathSearch(first_stage=...)`, which then has statistics and titles of all passages.

    Args:
        path: Path of the file, which is created if it does not exist. None keeps everything in memory.
        language: Language of the stemmer, one of `drillrank.text.LANGUAGES`. A file in another language is indexed
            again.
        unit: Unit into which documents are cut, `"paragraph"` or `"passage"`. The documents of a file with another unit
            are cut again from their stored parses.

    Raises:
        CorpusError: The file cannot be read or written, or has other content. Every method may raise it.

    >>> from drillrank.structure import parse_document
    >>> corpus = Corpus(unit="paragraph")
    >>> corpus.add([Passage("A red fox lives in Basel.", id="fox"), Passage("A whale sings.")])
    >>> corpus.add([("rivers", parse_document("# Rhine\n\nIt flows by Basel.\n\nIt is long."))])
    >>> [(item.passage.id, item.passage.title) for item in corpus.search("How long is the Rhine?", 2)]
    [('rivers:29', 'Rhine'), ('rivers:9', 'Rhine')]
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        language: str = "english",
        unit: Unit = DEFAULT_UNIT,
    ) -> None:
        check_one_of(Unit, unit=unit)
        file = None if path is None else Path(path).expanduser().absolute()
        self._store = CorpusStore(file, check_language(language), unit)

    @property
    def language(self) -> str:
        """Language of the stemmer."""
        return self._store.language

    @property
    def unit(self) -> Unit:
        """Unit into which documents are cut."""
        return self._store.unit

    # --- Changes

    def add(self, documents: Iterable[Content | tuple[str, Content | DocumentRecord]]) -> None:
        """Add documents, and replace documents that have the same id and another content.

        Args:
            documents: Passages, parsed documents or files (`Path`), or pairs of an id and one of these. They are read
                once, a few at a time, so `tqdm(files)` shows the progress. Without an id, a passage keeps its own, a
                file has its path as id, and a parsed document has a hash. Of documents with equal ids, the last counts.
                Metadata must be JSON values. Lone surrogates become U+FFFD.

        Raises:
            DrillrankError: A document cannot be read or used, or two documents have passages with the same id. The
                documents before it are added. An iterator can continue with the next one.
        """
        batch: dict[str, DocumentRecord] = {}
        n_pending = 0
        try:
            for document in documents:
                id_, content = document if isinstance(document, tuple) else (None, document)
                record = prepare_content(content, id_, self.unit, self.mark_used)
                batch.pop(record.id, None)
                batch[record.id] = record
                n_pending += 1 + len(record.rows or ())
                if n_pending > store_module.BATCH:
                    self._store.write(batch.values())
                    batch, n_pending = {}, 0
        finally:
            self._store.write(batch.values())

    def remove(self, ids: Iterable[str]) -> None:
        """Remove documents. Unknown ids are ignored."""
        remaining = iter(ids)
        while batch := list(islice(remaining, store_module.BATCH)):
            with self._store.transaction("IMMEDIATE") as database:
                self._store.discard(database, batch)

    def mark_used(self, keys: Iterable[tuple[str, bytes]]) -> set[str]:
        """Mark files as used, and return the ids of those that are up to date.

        Args:
            keys: Ids and keys of files (`structure.file_key`).
        """
        query = "SELECT used FROM documents WHERE id = ? AND key = ?"
        with self._store.transaction() as database:
            used = {id_key: row[0] for id_key in keys for row in database.execute(query, id_key)}
        current_time = time.time()
        # Times are exact to an hour, so that most questions write nothing.
        late = [
            (current_time, *id_key)
            for id_key, last in used.items()
            if not current_time - _USED_PRECISION < last <= current_time
        ]
        if late:
            with self._store.transaction("IMMEDIATE") as database:
                database.executemany(MARK_USED, late)
        return {id_ for id_, _ in used}

    def expire(self, seconds: float) -> None:
        """Remove documents that neither `add` nor `mark_used` has used for a time."""
        with self._store.transaction() as database:
            old = database.execute("SELECT id FROM documents WHERE used < ?", (time.time() - seconds,)).fetchall()
        self.remove(id_ for (id_,) in old)

    def file_keys(
        self, paths: Iterable[Path], folder_by_path: Mapping[Path, Path] | None = None
    ) -> Iterator[bytes | InvalidInput]:
        """Yield the key of each file (`structure.file_key`), or the error if the file cannot be read.

        A file with the same size and times as before is not read again.

        Args:
            paths: The files.
            folder_by_path: Folder that must contain the file, for some of the files.
        """
        return read_file_keys(self._store, paths, folder_by_path or {})

    def embed(
        self,
        encoder: str,
        embed: Embed,
        *,
        names: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Compute and store the vectors of all passages that have none yet.

        Vectors are stored as float32 of unit length, some hundred passages at a time. After an interruption, the same
        call continues where it stopped. Vectors of removed passages are removed. Damaged vectors are computed again.

        Args:
            encoder: Name of the encoder, which must change if its vectors change (`Encoder.fingerprint`).
            embed: Function from texts to vectors. It gets a passage with the name of its document and its headings
                (`corpus.vectors.embedding_text`).
            names: Names of documents by id; only these documents are embedded. None embeds all, without names.
            on_progress: Function that gets the number of passages that are done, and the number of all to embed.

        Raises:
            InvalidInput: `embed` does not return one finite vector for each text.
        """
        embed_missing(
            self._store, encoder, embed, dict.fromkeys(self.ids(), "") if names is None else names, on_progress
        )

    # --- Search

    def search(self, query: str, top_n: int | None = None, *, scorer: Scorer = bm25) -> list[Ranked[Passage]]:
        """Rank the passages that contain a word of the query. Ties keep the order in which they were added.

        Args:
            query: The question.
            top_n: Number of passages to return; None returns all.
            scorer: Function from counts of the query's words to scores.

        Raises:
            InvalidInput: The query is blank, or `top_n` is below 1.
        """
        check_top_n(top_n)
        words = terms(check_query(query), self.language)
        scored: list[tuple[int, float]] = []
        with self._store.transaction() as database:
            for numbers, scores in scorer(index.count_by_block(database, words)):
                best = top(scores, top_n or len(scores))
                scored += zip(numbers[best].tolist(), scores[best].tolist(), strict=True)
            scored = sorted(scored, key=lambda item: -item[1])[:top_n]
            passages = rows.read_passages(database, "number", [number for number, _ in scored])
            if len(passages) < len(scored):
                raise LookupError("the index names passages that do not exist")
        return [Ranked(passages[i], score, i + 1) for i, (_, score) in enumerate(scored)]

    def retrieve(self, query: str, n: int, /) -> list[Passage]:
        """Return the passages of `search`."""
        return [item.passage for item in self.search(query, n)]

    def layout(self, ids: Iterable[str]) -> Layout:
        """Return the layout of documents.

        Args:
            ids: Ids of the documents, each once. Unknown ids are ignored.
        """
        query = "SELECT first, size, paged, pages, sections, headings FROM documents WHERE id = ? AND size > 0"
        with self._store.transaction() as database:
            documents = [StoredLayout(id_, *row) for id_ in ids for row in database.execute(query, (id_,))]
            return layout.read_layout(database, sorted(documents, key=lambda row: row.first), self.language)

    def counts(self, query: str, layout_: Layout, /) -> DocumentCounts:
        """Count the query's words in the passages of a layout, their headings and the beginnings of documents."""
        with self._store.transaction() as database:
            return layout.count_in_layout(database, terms(query, self.language), layout_)

    def term_counts(self, words: Sequence[str], layout_: Layout, /) -> DocumentCounts:
        """Count terms, which are stemmed already, as `counts` does."""
        with self._store.transaction() as database:
            return layout.count_in_layout(database, words, layout_)

    def numbers(self, ids: Iterable[str], /) -> dict[str, int]:
        """Return the numbers of passages by id. Unknown ids are ignored."""
        with self._store.transaction() as database:
            return rows.read_numbers(database, ids)

    def statistics(self) -> CollectionStatistics:
        """Return statistics of all titled texts, for `LanguageModel.fit`. Their size grows with the vocabulary."""
        with self._store.transaction() as database:
            return replace(index.read_statistics(database), language=self.language)

    def names(self, kind: str, rows: Callable[[Passage], Iterable[NameRow]], /) -> StoredNames:
        """Return the names of passages, which the corpus stores and keeps up to date.

        Args:
            kind: Identifies these names and the rule by which they are made.
            rows: Function from a passage to its names with weights. Of equal names, the first counts.
        """
        return StoredNames(self._store, kind, rows)

    # --- Documents and passages

    def ids(self) -> list[str]:
        """Return the ids of the documents in the order in which they were added."""
        with self._store.transaction() as database:
            return [id_ for (id_,) in database.execute("SELECT id FROM documents ORDER BY first, used")]

    def document(self, id_: str) -> Document:
        """Return a document that was added as a parsed document or a file.

        Raises:
            InvalidInput: The id is unknown.
        """
        with self._store.transaction() as database:
            for (parse,) in database.execute("SELECT parse FROM documents WHERE id = ? AND parse IS NOT NULL", (id_,)):
                return read_parse(parse)
        raise InvalidInput(f"The corpus has no parsed document {id_!r:.200}. Give one of Corpus.ids().")

    def digests(self, id_: str) -> frozenset[int]:
        """Return digests of the passages' texts without case and white space. Empty if the id is unknown."""
        with self._store.transaction() as database:
            stored = database.execute("SELECT digests FROM documents WHERE id = ?", (id_,)).fetchall()
            return frozenset(np.frombuffer(stored[0][0], "<i8").tolist() if stored else ())

    def passages(self, id_: str) -> list[Passage]:
        """Return the passages of a document in order. Empty if the id is unknown.

        Metadata have at least `document`, its id, and `section_path`.
        """
        with self._store.transaction() as database:
            return rows.read_document_passages(database, id_)

    def passages_by_number(self, numbers: Iterable[int]) -> list[Passage]:
        """Return the passages with these numbers, in the order of the numbers. Unknown numbers are ignored."""
        with self._store.transaction() as database:
            return rows.read_passages(database, "number", map(int, numbers))

    def fetch(self, ids: Collection[str], /) -> list[Passage]:
        """Return the passages with these ids. Unknown ids are ignored."""
        with self._store.transaction() as database:
            valid_ids = [id_ for id_ in dict.fromkeys(ids) if without_surrogates(id_) == id_]
            return rows.read_passages(database, "id", valid_ids)

    def vectors(self, encoder: str, layout_: Layout, /) -> npt.NDArray[np.float32]:
        """Return the vectors of a layout's passages that `embed` stored, shape (passages, dimensions).

        Rows of passages without a vector are NaN.

        Args:
            encoder: Name of the encoder.
            layout_: Positions of the passages.
        """
        with self._store.transaction() as database:
            return read_vectors(database, encoder, layout_)

    def version(self) -> tuple[int, int]:
        """Return a value that changes with every change of the passages."""
        with self._store.transaction() as database:
            [row] = database.execute("SELECT indexed, (SELECT total(size) FROM documents) FROM state").fetchall()
            return int(row[0]), int(row[1])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the corpus to a file, and replace the file if it exists. Its own file stays as it is.

        Raises:
            CorpusError: The file cannot be written.
        """
        self._store.save(path)

    def __len__(self) -> int:
        with self._store.transaction() as database:
            # For a damaged size, `range` raises here, inside the transaction, and not in `len`.
            return len(range(int(database.execute("SELECT total(size) FROM documents").fetchone()[0])))

    def __iter__(self) -> Iterator[Passage]:
        """Yield the passages in the order in which they were added."""
        last = 0
        while True:
            with self._store.transaction() as database:
                batch = rows.read_next_passages(database, last, store_module.BATCH)
            if not batch:
                return
            last = batch[-1][0]
            yield from (passage for _, passage in batch)
