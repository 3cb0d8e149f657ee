"""The corpus of the command line: files are parsed once, and kept for who asks about them next."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import date
from importlib.metadata import version
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import TypeVar

from drillrank.cli.sources import Source
from drillrank.corpus import Corpus, CorpusError
from drillrank.corpus.documents import Prepared, prepared
from drillrank.drilldown.d3 import D3
from drillrank.drilldown.prepared import PreparedCorpus
from drillrank.drilldown.versions import Date
from drillrank.errors import DrillrankError, DrillrankWarning, InvalidInput, warn

Found = TypeVar("Found")
OnProgress = Callable[[int, int], None]
File = tuple[bytes, Source]
"""With the key of its content."""
_EMPTY = "holds no text."
_MANY_BYTES = 3_000_000  # from which on starting processes is worth it
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
        warn(f"Nothing is cached: {cause}")
        return None


class FileCorpus:
    """Files as documents, each under the hash of its content; of several with the same content the first counts.

    Args:
        sources: The files.
        folder: Where the corpus is kept; None for nowhere.
        language: Whose stemmer words go through.
        on_progress: Callback, called as `(done, total)` after each file that is new.

    Attributes:
        names: Of the files that were read, by the ids of their documents.
        skipped: Files of folders that were not read, and why.

    Raises:
        DrillrankError: a file that the user named cannot be read.
    """

    def __init__(
        self, sources: Sequence[Source], folder: Path | None, language: str, on_progress: OnProgress | None = None
    ) -> None:
        self._sources = sources
        self._language = language
        self._ready: tuple[D3, PreparedCorpus] | None = None
        self._on_progress = on_progress or (lambda _, __: None)
        self._file: Path | None = None
        try:
            if folder is not None:
                _make_private(folder)
                self._file = folder / f"corpus-{version('drillrank')}-{language}.sqlite"
        except OSError as cause:
            warn(f"Nothing is cached in {folder}: {cause}.")
        try:
            self._corpus = Corpus(self._file, language=self._language)
            if self._file is not None:
                self._file.chmod(0o600)
                self._corpus.expire(_KEPT)
            self._read()
        except CorpusError as error:
            self._start_over(error)

    def ask(self, d3: D3, question: Callable[[PreparedCorpus], Found]) -> Found:
        """What a function finds in the files; where the cache turns out to be damaged, it is called once more."""
        try:
            return question(self._prepared(d3))
        except CorpusError as error:
            self._start_over(error)
            return question(self._prepared(d3))

    def _prepared(self, d3: D3) -> PreparedCorpus:
        if self._ready is None or self._ready[0] is not d3:
            dates = {id_: date for id_, name in self.names.items() if (date := _changed(name))}
            self._ready = d3, d3.prepare_corpus(self._corpus, self.names, dates)
        return self._ready[1]

    def _read(self) -> None:
        self._ready = None
        self.names: dict[str, str] = {}
        self.skipped: list[str] = []
        alike: dict[bytes, list[Source]] = {}
        keys = self._corpus.file_keys(source.path for source in self._sources)
        for source, key in zip(self._sources, keys, strict=True):
            if isinstance(key, bytes):
                alike.setdefault(key, []).append(source)
            else:
                self._leave_out(source, key)
        stored = {id_.partition(" ")[0]: id_ for id_ in self._corpus.ids()}  # with what there is to tell
        ids = {key: stored.get(key.hex(), key.hex()) for key in alike}
        known = self._corpus.known((id_, key) for key, id_ in ids.items())
        ids = {key: id_ for key, id_ in ids.items() if id_ in known}
        self._corpus.add(self._new([(key, alike[key][0]) for key in alike if key not in ids], ids))
        for key, (first, *others) in alike.items():
            if key not in ids:  # and the others are as bad
                self._corpus.add(self._new([(key, source) for source in others], ids))
                continue
            _, _, problem = ids[key].partition(" ")
            if problem.endswith(_EMPTY):
                self.skipped += [problem.replace("{}", source.name) for source in alike[key]]
            else:
                self.names[ids[key]] = first.name
                self.skipped += [f"{source.name} has the same content as {first.name}." for source in others]
                if problem:
                    warn(problem.replace("{}", first.name))

    def _new(self, files: Sequence[File], ids: dict[bytes, str]) -> Iterator[tuple[str, Prepared]]:
        """Files as they are written to the corpus, without those that cannot be read."""
        for number, ((key, source), found) in enumerate(_read_all(files), start=1):
            self._on_progress(number, len(files))
            if isinstance(found, Prepared):
                ids[key] = found.id
                yield found.id, found
            else:
                self._leave_out(source, found)

    def _leave_out(self, source: Source, error: Exception) -> None:
        """Go on without a file that cannot be read, unless it was named."""
        try:
            with source.showing_warnings():
                raise error
        except DrillrankError as named:
            if source.named:
                raise
            self.skipped.append(str(named))

    def _start_over(self, error: CorpusError) -> None:
        """Go on in memory; a file that is damaged is removed, so that the next command makes a new one."""
        warn(f"The cache cannot be used, all is read anew: {error}")
        cause: BaseException | None = error
        while isinstance(cause, CorpusError):
            cause = cause.__cause__
        if self._file is not None and not isinstance(cause, sqlite3.OperationalError | OSError):  # locked, or no room
            for ending in ("", "-wal", "-shm"):
                Path(f"{self._file}{ending}").unlink(missing_ok=True)
        self._corpus, self._file = Corpus(language=self._language), None
        self._read()


def _read_all(files: Sequence[File]) -> Iterator[tuple[File, Prepared | Exception]]:
    """Files, read; many by as many processes as there are cores, in the order given."""
    workers = min(os.cpu_count() or 1, len(files))
    if workers < 2 or sum(source.path.stat().st_size for _, source in files) < _MANY_BYTES:
        yield from ((file, _read(file[0].hex(), file[1].path)) for file in files)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_follow_parent) as pool:
        try:
            ids, paths = [key.hex() for key, _ in files], [source.path for _, source in files]
            yield from zip(files, pool.map(_read, ids, paths), strict=True)
        except BrokenProcessPool as error:
            raise InvalidInput("A process that read files was killed, perhaps for its memory: name fewer.") from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():
                process.kill()
            raise


def _read(id_: str, path: Path) -> Prepared | Exception:
    """A file as it is written, or the error. What it is warned of is told in its id, and so by later commands, too."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DrillrankWarning)
            found = prepared(path, id_, lambda _: set())
            problem = " ".join(str(one.message).replace(str(path), "{}") for one in caught)
            problem = problem[:500] if found.rows else f"{{}} {_EMPTY}"
            return prepared(path, f"{id_} {problem}", lambda _: set()) if problem else found
    except (DrillrankError, MemoryError, RecursionError) as error:
        return error


def _follow_parent() -> None:
    """Interrupts are the parent's to tell; where it was killed, nobody waits for this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end() -> None:
        if parent := parent_process():
            parent.join()
        os._exit(1)

    Thread(target=end, daemon=True).start()


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
