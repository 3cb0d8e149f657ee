"""Corpus of the command line: files are parsed once and cached for the next question."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from drillrank.cli.reading import EMPTY, UNREADABLE, KeyedFile, read_files
from drillrank.cli.sources import COPIES, InputFile
from drillrank.cli.terminal import progress
from drillrank.corpus import Corpus, CorpusError
from drillrank.corpus.documents import DEFAULT_UNIT, DocumentRecord, Unit
from drillrank.drilldown.d3 import D3
from drillrank.drilldown.prepared import PreparedCorpus
from drillrank.drilldown.versions import Date
from drillrank.errors import DrillrankError, InvalidInput, warn
from drillrank.files import make_private_folder
from drillrank.likelihood.encoders import Encoder
from drillrank.progress import OnProgress
from drillrank.structure import Document

FindingT = TypeVar("FindingT")
_KEPT = 30 * 24 * 3600.0  # seconds since a document was asked about


class FileCorpus:
    """Corpus of files, each under the hash of its content. Of several files with the same content, the first counts.

    Args:
        sources: Files to read.
        folder: Folder of the cache; None for no cache.
        language: Language of the stemmer.
        on_progress: Callback, called as `(done, total)` after each file that is new.
        unit: Unit into which files are cut.

    Attributes:
        names: Names of the files that were read, by the ids of their documents.
        files: The files that were read, by the ids of their documents.
        skipped: Messages about files of folders that were not read.

    Raises:
        DrillrankError: A file that the user named cannot be read.
    """

    def __init__(
        self,
        sources: Sequence[InputFile],
        folder: Path | None,
        language: str,
        on_progress: OnProgress | None = None,
        *,
        unit: Unit = DEFAULT_UNIT,
    ) -> None:
        self._sources = sources
        self._language = language
        self._unit: Unit = unit
        self._ready: tuple[D3, PreparedCorpus] | None = None
        self._on_progress = on_progress or (lambda _, __: None)
        self._file: Path | None = None
        try:
            if folder is not None:
                make_private_folder(folder)
                self._file = folder / f"corpus-{version('drillrank')}-{language}-{unit}s.sqlite"
        except OSError as cause:
            warn(f"Nothing is cached in {folder}: {cause}.")
        try:
            self._corpus = Corpus(self._file, language=self._language, unit=self._unit)
            if self._file is not None:
                self._file.chmod(0o600)
                self._corpus.expire(_KEPT)
            self._read()
        except CorpusError as error:
            self._start_over(error)

    def ask(self, d3: D3, question: Callable[[PreparedCorpus], FindingT]) -> FindingT:
        """Return the result of a function of the files. It is called again if the cache is damaged."""
        try:
            return question(self._prepared(d3))
        except CorpusError as error:
            self._start_over(error)
            return question(self._prepared(d3))

    def document(self, id_: str) -> Document:
        """Return the parsed document of an id."""
        return self._corpus.document(id_)

    def _prepared(self, d3: D3) -> PreparedCorpus:
        if self._ready is None or self._ready[0] is not d3:
            dates = {id_: date for id_, file in self.files.items() if (date := _changed(file))}
            self._ready = d3, d3.prepare_corpus(self._corpus, self.names, dates, embedded_by=self._embed(d3))
        return self._ready[1]

    def _embed(self, d3: D3) -> str | None:
        """Embed the files that are new, and return the encoder's name. None if the encoder has no name."""
        if not isinstance(d3.embed, Encoder):
            return None
        encoder = d3.embed.fingerprint()
        with ExitStack() as stack:
            bars: list[OnProgress] = []

            def on_progress(n_done: int, n_total: int) -> None:
                if not bars:  # only if there is something to embed
                    bars.append(stack.enter_context(progress("Embedding")))
                bars[0](n_done, n_total)

            self._corpus.embed(encoder, d3.embed, names=self.names, on_progress=on_progress)
        return encoder

    def _read(self) -> None:
        """Read the files that the corpus does not contain yet."""
        self._ready = None
        self.names: dict[str, str] = {}
        self.files: dict[str, InputFile] = {}
        self.skipped: list[str] = []
        files_by_key: dict[bytes, list[InputFile]] = {}
        folder_by_path = {file.path: file.folder for file in self._sources if file.folder is not None}
        keys = self._corpus.file_keys([file.path for file in self._sources], folder_by_path)
        for file, key in zip(self._sources, keys, strict=True):
            if isinstance(key, bytes):
                files_by_key.setdefault(key, []).append(file)
            else:
                self._leave_out(file, key)
        stored = {id_.partition(" ")[0]: id_ for id_ in self._corpus.ids()}  # with what there is to report
        ids = {key: stored.get(key.hex(), key.hex()) for key in files_by_key}
        up_to_date = self._corpus.mark_used((id_, key) for key, id_ in ids.items())
        ids = {key: id_ for key, id_ in ids.items() if id_ in up_to_date}
        new_files = [KeyedFile(key, files[0]) for key, files in files_by_key.items() if key not in ids]
        self._corpus.add(self._read_new(new_files, ids))
        for key, (first, *others) in files_by_key.items():
            if key not in ids:  # the first one cannot be read, and the others are as bad
                self._corpus.add(self._read_new([KeyedFile(key, file) for file in others], ids))
            else:
                self._note_file(ids[key], first, others)

    def _note_file(self, id_: str, first: InputFile, others: Sequence[InputFile]) -> None:
        """Record the name of a document, its warnings, and the files with the same content."""
        _, _, problem = id_.partition(" ")
        if problem.startswith(UNREADABLE):
            for file in (first, *others):
                self._leave_out(file, InvalidInput(problem.removeprefix(UNREADABLE).replace("{}", str(file.path))))
            return
        if problem.endswith(EMPTY):
            self.skipped += [problem.replace("{}", file.name) for file in (first, *others)]
            return
        self.names[id_] = first.name
        self.files[id_] = first
        self.skipped += [f"{file.name} has the same content as {first.name}." for file in others]
        if problem:
            warn(problem.replace("{}", first.name))

    def _read_new(self, files: Sequence[KeyedFile], ids: dict[bytes, str]) -> Iterator[tuple[str, DocumentRecord]]:
        """Yield files as they are written to the corpus, without those that cannot be read."""
        for n_read, (keyed, result) in enumerate(read_files(files, self._unit), start=1):
            self._on_progress(n_read, len(files))
            if isinstance(result, DocumentRecord):
                ids[keyed.key] = result.id
                yield result.id, result
            else:
                self._leave_out(keyed.file, result)

    def _leave_out(self, file: InputFile, error: Exception) -> None:
        """Skip a file that cannot be read, unless the user named it."""
        try:
            with file.name_in_errors():
                raise error
        except DrillrankError as named_error:
            if file.is_named:
                raise
            self.skipped.append(str(named_error))

    def _start_over(self, error: CorpusError) -> None:
        """Continue in memory, and remove a damaged file so that the next command makes a new one."""
        warn(f"The cache cannot be used, so all files are read again: {error}")
        cause: BaseException | None = error
        while isinstance(cause, CorpusError):
            cause = cause.__cause__
        if self._file is not None and not isinstance(cause, sqlite3.OperationalError | OSError):  # locked, or no room
            for ending in ("", "-wal", "-shm"):
                Path(f"{self._file}{ending}").unlink(missing_ok=True)
        self._corpus, self._file = Corpus(language=self._language, unit=self._unit), None
        self._read()


def _changed(file: InputFile) -> Date | None:
    """Return the day on which a file was last changed; None for a copy of standard input."""
    if file.path.is_relative_to(COPIES):
        return None
    try:
        day = date.fromtimestamp(file.path.stat().st_mtime)
    except (OSError, ValueError, OverflowError):
        return None
    return day.year, day.month, day.day
