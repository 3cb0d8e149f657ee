"""The corpus of the command line: files are parsed once, and kept for who asks about them next."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TypeVar

from drillrank.cli.sources import Skipped, Source
from drillrank.corpus import Corpus, CorpusError
from drillrank.drilldown.d3 import D3
from drillrank.drilldown.prepared import PreparedCorpus
from drillrank.drilldown.versions import Date
from drillrank.errors import DrillrankError, DrillrankWarning, InvalidInput
from drillrank.structure import file_key

Found = TypeVar("Found")
Track = Callable[[Sequence[tuple[str, Source]]], Iterable[tuple[str, Source]]]
_KEPT = 30 * 24 * 3600.0  # seconds since a document was asked about


def cache_folder() -> Path | None:
    """Where the system keeps what programs can make anew; None, with a warning, where the user has no home."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        base = base if Path(base).is_absolute() else "~/.cache"
    try:
        return Path(base).expanduser() / "drillrank"
    except RuntimeError as cause:
        warnings.warn(f"Nothing is cached: {cause}", DrillrankWarning, stacklevel=2)
        return None


class FileCorpus:
    """Files as documents, each under the hash of its content; of several with the same content the first counts.

    Args:
        sources: The files.
        folder: Where the corpus is kept; None for nowhere.
        track: Goes through files that are new, and shows how far it is.
        language: Whose stemmer words go through.

    Attributes:
        names: Of the files that were read, by the ids of their documents.
        skipped: Files of folders that were not read, and why.

    Raises:
        DrillrankError: a file that the user named cannot be read.
    """

    def __init__(
        self, sources: Sequence[Source], folder: Path | None, track: Track = iter, language: str = "english"
    ) -> None:
        self._sources = sources
        self._language = language
        self._ready: tuple[D3, PreparedCorpus] | None = None
        self._track = track
        self._file: Path | None = None
        try:
            if folder is not None:
                _make_private(folder)
                self._file = folder / f"corpus-{version('drillrank')}-{language}.sqlite"
        except OSError as cause:
            warnings.warn(f"Nothing is cached in {folder}: {cause}.", DrillrankWarning, stacklevel=2)
        try:
            self._corpus = Corpus(self._file, language=self._language)
            if self._file is not None:
                self._file.chmod(0o600)
                self._corpus.expire(_KEPT)
            self._read()
        except CorpusError as error:
            self._start_anew(error)

    def ask(self, d3: D3, question: Callable[[PreparedCorpus], Found]) -> Found:
        """What a function finds in the files; where the cache turns out to be damaged, it is called once more."""
        try:
            return question(self._prepared(d3))
        except CorpusError as error:
            self._start_anew(error)
            return question(self._prepared(d3))

    def _prepared(self, d3: D3) -> PreparedCorpus:
        if self._ready is None or self._ready[0] is not d3:
            dates = {id_: date for id_, name in self.names.items() if (date := _changed(name))}
            self._ready = d3, d3.prepare_corpus(self._corpus, self.names, dates)
        return self._ready[1]

    def _read(self) -> None:
        self._ready = None
        self.names: dict[str, str] = {}
        self.skipped: list[Skipped] = []
        alike: dict[bytes, list[Source]] = {}
        for source in self._sources:
            with self._left_out_if_bad([source]):
                alike.setdefault(file_key(source.path), []).append(source)
        ids = [(key.hex(), key) for key in alike]
        known = self._corpus.known(ids)
        files = iter(self._track([(id_, alike[key][0]) for id_, key in ids if id_ not in known]))
        for one in files:
            self._add(chain([one], files))
        known = self._corpus.known(ids)
        for id_, key in ids:
            first, *others = alike[key]
            if id_ in known:
                self.names[id_] = first.name
            for source in others:
                if id_ in known:
                    reason = f"{source.name} has the same content as {first.name}."
                    self.skipped.append(Skipped(source.name, reason))
                else:  # and is as bad
                    self._add([(id_, source)])

    def _add(self, files: Iterable[tuple[str, Source]]) -> None:
        """Add files, up to one that cannot be read."""
        taken: list[Source] = []

        def paths() -> Iterator[tuple[str, Path]]:
            for id_, source in files:
                taken.append(source)
                yield id_, source.path

        with self._left_out_if_bad(taken):
            self._corpus.add(paths())

    @contextmanager
    def _left_out_if_bad(self, taken: Sequence[Source]) -> Iterator[None]:
        """Where the last file that was taken cannot be read, and is one of a folder's, go on."""
        try:
            yield
        except CorpusError:
            raise
        except (DrillrankError, MemoryError, RecursionError) as error:
            source = taken[-1]
            reason = str(error).replace(str(source.path), source.name)
            if not isinstance(error, DrillrankError):  # it takes more memory than there is
                reason = f"{source.name} cannot be read: {type(error).__name__}."
            if source.named:
                raise (type(error) if isinstance(error, DrillrankError) else InvalidInput)(reason) from error
            self.skipped.append(Skipped(source.name, reason if source.name in reason else f"{source.name}: {reason}"))

    def _start_anew(self, error: CorpusError) -> None:
        """Go on in memory; a file that is damaged is removed, so that the next command makes a new one."""
        warnings.warn(f"The cache cannot be used, all is read anew: {error}", DrillrankWarning, stacklevel=2)
        cause: BaseException | None = error
        while isinstance(cause, CorpusError):
            cause = cause.__cause__
        if self._file is not None and not isinstance(cause, sqlite3.OperationalError | OSError):  # locked, or no room
            for ending in ("", "-wal", "-shm"):
                Path(f"{self._file}{ending}").unlink(missing_ok=True)
        self._corpus, self._file = Corpus(language=self._language), None
        self._read()


def _changed(file: str) -> Date | None:
    """The day on which a file was changed last."""
    try:
        day = date.fromtimestamp(Path(file).stat().st_mtime)
    except (OSError, ValueError, OverflowError):  # standard input
        return None
    return day.year, day.month, day.day


def _make_private(folder: Path) -> None:
    """A folder that only the user may write to: what others put there would be shown as evidence.

    Raises:
        OSError: it cannot be made, or others may write there.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.lstat()
    if sys.platform != "win32" and (
        not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022
    ):
        raise PermissionError("others may write there")
