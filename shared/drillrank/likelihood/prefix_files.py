"""Prefixes on disk: one file for each segment of a prefix, shared by processes, and bounded in bytes.

A file is written under a temporary name and renamed, so that a reader never sees half of it. A file that is damaged
nevertheless is found by its size and checksum, and computed again. The folder contains what documents say, in a form
that the model can be made to repeat. So only its owner can read it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, WarnOnce, warn

Bytes = npt.NDArray[np.uint8]

_HEADER = struct.Struct("<16sQQQQ")  # magic, tokens, bytes of a token, sum and exclusive or of the words
_MAGIC = b"drillrank-prefix"
_PART = ".part"
_OWN_NAME = re.compile(rf"[0-9a-f]{{40}}|[0-9a-f]{{16}}{re.escape(_PART)}")  # the folder may have other files, too
_LISTING_SHARE = 16  # of the bound that this process writes before it counts again what others have written
_UNWRITABLE = (errno.EROFS, errno.ENOSPC, errno.EDQUOT)  # read-only, or full
_ABANDONED_SECONDS = 3600  # then the process that wrote a temporary file is taken for dead
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?B)?", re.IGNORECASE | re.ASCII)


def parse_bytes(name: str, size: str | int) -> int:
    """Return a number of bytes.

    Args:
        name: Name of the option, for the message of an error.
        size: Number of bytes, or a number with a unit: B, kB, MB, GB or TB. A kilobyte has 1,000 bytes.

    Raises:
        InvalidInput: The size is something else, or less than one byte.

    >>> parse_bytes("prefix_cache", "1.5 GB")
    1500000000
    """
    match = _SIZE.fullmatch(size.strip()) if isinstance(size, str) else None
    n_bytes = int(float(match[1]) * _UNITS[(match[2] or "").upper()]) if match else size
    if not isinstance(n_bytes, int) or isinstance(n_bytes, bool) or n_bytes < 1:
        raise InvalidInput(f'{name} must be a positive number of bytes, such as "1 GB", got {size!r:.200}.')
    return n_bytes


class _StoredFile(NamedTuple):
    """File of a segment, as the folder lists it."""

    last_used: float
    n_bytes: int
    path: Path


class PrefixFiles:
    """Segments of prefixes in a folder.

    Args:
        folder: Folder, which several models may use. It is created for its owner alone.
        fingerprint: Name of all that the states depend on except the tokens: weights, configuration, layout.
        max_bytes: Bytes that the files of all models may have together. The least recently used ones give way.

    On a disk that is full or read-only, files that are there are read, and a warning says that none are written.

    Raises:
        InvalidInput: The folder cannot be created, or belongs to another user.
    """

    def __init__(self, folder: str | os.PathLike[str], fingerprint: str, max_bytes: int) -> None:
        self._root = Path(folder).expanduser().absolute()
        self._folder = self._root / f"prefixes-{fingerprint}"
        self.max_bytes = max_bytes
        self._warned = WarnOnce()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if stat.S_IMODE(self._folder.stat().st_mode) != 0o700:  # the umask was applied, or the folder is older
                self._folder.chmod(0o700)
        except OSError as cause:
            if cause.errno not in _UNWRITABLE:
                raise InvalidInput(
                    f"prefix_cache_dir {str(folder)!r:.200} cannot be used: {cause.strerror}. Name a folder that you "
                    "own."
                ) from cause
            self._warn_unwritable()
        self._count_bytes()

    def has(self, key: bytes) -> bool:
        """Return True if there is a file for the segment. It may turn out to be damaged."""
        return self._path(key).exists()

    def load(self, key: bytes, n_tokens: int, token_bytes: int) -> Bytes | None:
        """Return the states of a segment, mapped into memory: [n_tokens, token_bytes]. None if there are none.

        A damaged file is deleted. One that cannot be opened, such as that of another user, is not. Both are a warning.
        """
        path = self._path(key)
        try:
            content = np.memmap(path, np.uint8, "c")  # copy on write: PyTorch warns about arrays that are read-only
        except FileNotFoundError:
            return None
        except OSError:
            self._warn_once("The prefix cache has a file that cannot be read. Its prefix is computed again.")
            return None
        except ValueError:  # the file is empty
            content = None
        states = None if content is None else _check_content(content, n_tokens, token_bytes)
        if states is None:
            self._warn_once("The prefix cache had a damaged file. It was deleted, and its prefix is computed again.")
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)  # marks it as used
        return states

    def save(self, key: bytes, states: Bytes) -> None:
        """Write the states of a segment, [n_tokens, token_bytes]. A failure, such as a full disk, is a warning."""
        header = _HEADER.pack(_MAGIC, *states.shape, *_checksum(states))
        n_bytes = len(header) + states.nbytes
        if n_bytes > self.max_bytes:
            return
        path = self._path(key)
        part = path.with_name(f"{secrets.token_hex(8)}{_PART}")
        try:
            self._make_room(n_bytes)
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(header)
                file.write(states.data)
            part.replace(path)
            self._n_bytes += n_bytes
            self._n_written += n_bytes
        except OSError:
            with suppress(OSError):
                part.unlink()
            self._warn_unwritable()

    def _warn_unwritable(self) -> None:
        self._warn_once("The prefix cache cannot be written to its folder. Prefixes are kept in memory only.")

    def _warn_once(self, message: str) -> None:
        if self._warned.new("files", [message]):
            warn(message)

    def _path(self, key: bytes) -> Path:
        return self._folder / key.hex()

    def _list_files(self) -> Iterator[_StoredFile]:
        """List the files of all models. Temporary files of processes that ended are deleted."""
        for path in self._root.glob("prefixes-*/*"):
            if not _OWN_NAME.fullmatch(path.name):
                continue
            with suppress(OSError):  # another process deleted it meanwhile
                status = path.stat()
                if path.suffix != _PART:
                    yield _StoredFile(status.st_mtime, status.st_size, path)
                elif status.st_mtime < time.time() - _ABANDONED_SECONDS:
                    path.unlink()

    def _count_bytes(self) -> list[_StoredFile]:
        """Count the bytes of all files, and list them, least recently used first."""
        files = sorted(self._list_files())
        self._n_bytes, self._n_written = sum(file.n_bytes for file in files), 0
        return files

    def _make_room(self, n_bytes: int) -> None:
        """Delete the least recently used files if the new one would exceed the bound. A tenth is then free."""
        is_counted = self._n_written + n_bytes <= self.max_bytes // _LISTING_SHARE
        if is_counted and self._n_bytes + n_bytes <= self.max_bytes:
            return
        files = self._count_bytes()
        if self._n_bytes + n_bytes <= self.max_bytes:
            return
        for file in files:
            if self._n_bytes + n_bytes <= self.max_bytes * 9 // 10:
                break
            with suppress(OSError):  # Windows does not delete a file that a process has mapped
                file.path.unlink(missing_ok=True)
                self._n_bytes -= file.n_bytes


def _checksum(states: Bytes) -> tuple[int, int]:
    """Return the sum and the exclusive or of the 64-bit words: as fast as memory, unlike a hash."""
    words = np.frombuffer(states.data, np.uint64)
    return int(np.add.reduce(words)), int(np.bitwise_xor.reduce(words))


def _check_content(content: Bytes, n_tokens: int, token_bytes: int) -> Bytes | None:
    """Return the states in the content of a file, or None if it is damaged."""
    if len(content) != _HEADER.size + n_tokens * token_bytes:
        return None
    magic, *shape_and_checksum = _HEADER.unpack(content[: _HEADER.size].tobytes())
    states = content[_HEADER.size :].reshape(n_tokens, token_bytes)
    if (magic, *shape_and_checksum) != (_MAGIC, n_tokens, token_bytes, *_checksum(states)):
        return None
    return states
