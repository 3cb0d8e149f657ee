"""Files and folders that are written whole or not at all: a full disk or an interruption leaves what was there."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from drillrank.errors import InvalidInput


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a path that no file can be written to: before hours of work for that file, not after them.

    Raises:
        InvalidInput: it is a folder or a device, or one in which it would be made is a file or not to be written to.
    """
    target = Path(path).absolute()
    if target.is_dir():
        raise InvalidInput(f"{path} cannot be written: it is a folder.")
    if _is_special(target):
        raise InvalidInput(f"{path} cannot be written: {_SPECIAL}.")
    there = next(parent for parent in target.parents if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InvalidInput(f"{path} cannot be written: {there} is no folder that can be written to.")


_SPECIAL = "a pipe or device is there, whose place no file takes"


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A new file to write, which takes the path's place when the block ends without an error.

    Raises:
        OSError: it cannot be written; what stood at the path stands there still.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "notes")) as file:
    ...         _ = file.write(b"all of it")
    ...     os.listdir(folder)
    ['notes']
    """
    if _is_special(path):
        raise OSError(errno.EEXIST, _SPECIAL, str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _beside(path)
    try:
        with part.open("xb") as file:
            yield file
        _sync(part)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    """Whether a pipe or device is there: who may do anything would lose /dev/null to a report."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the path's place when the block ends without an error.

    Of processes that fill the same folder, the last one's stays.

    Raises:
        OSError: it cannot be written; what stood at the path stands there still.
    """
    part = _beside(path)
    try:
        part.mkdir(parents=True)
        yield part
        for file in filter(Path.is_file, part.rglob("*")):
            _sync(file)
        while not _moved(part, path):
            pass
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _moved(part: Path, path: Path) -> bool:
    """Give the folder its name; False if another process took that name in the meantime."""
    old = _beside(path)
    try:
        with suppress(FileNotFoundError):
            path.rename(old)
        part.rename(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            shutil.rmtree(old, ignore_errors=True)  # what stands there now is newer
            return False
        if old.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
    return True


def _sync(file: Path) -> None:
    with file.open("rb+") as content:
        os.fsync(content.fileno())  # or a power cut can leave the new name with no content


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
