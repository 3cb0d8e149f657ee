"""Keys of files, stored with sizes and times so that unchanged files are not read again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from drillrank.corpus.store import CorpusStore
from drillrank.errors import InvalidInput
from drillrank.structure import PARSER_VERSION, file_key

_MIN_AGE = 2e9  # nanoseconds: a file may change once more within this time without another time of change


def read_file_keys(
    store: CorpusStore, paths: Iterable[Path], folder_by_path: Mapping[Path, Path]
) -> Iterator[bytes | InvalidInput]:
    """Yield the key of each file, or the error if the file cannot be read; see `Corpus.file_keys`."""
    new_rows: list[tuple[str, str, bytes]] = []
    with store.transaction() as database:
        rows = database.execute("SELECT path, stamp, key FROM files WHERE typeof(key) = 'blob'")
        stamps_and_keys = {path: (stamp, key) for path, stamp, key in rows}
    for path in paths:
        try:
            stamp = _stamp(path)
            name = os.fsencode(path).hex()
            if stamp and stamps_and_keys.get(name, ("",))[0] == stamp and os.access(path, os.R_OK):
                yield stamps_and_keys[name][1]
                continue
            key = file_key(path, folder_by_path[path]) if path in folder_by_path else file_key(path)
            if stamp:
                new_rows.append((name, stamp, key))
            yield key
        except OSError as error:
            yield InvalidInput(f"{path} cannot be read: {error.strerror}.")
        except InvalidInput as error:
            yield error
    if new_rows:
        with store.transaction("IMMEDIATE") as database:
            database.execute("DELETE FROM files WHERE key NOT IN (SELECT key FROM documents)")
            database.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", new_rows)


def _stamp(path: Path) -> str:
    """Return the size and times of a file as text. Empty if the file changed a moment ago."""
    status = path.stat()
    if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) <= _MIN_AGE:
        return ""
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    return f"{PARSER_VERSION} {status.st_dev} {status.st_ino} {status.st_size} {times}"
