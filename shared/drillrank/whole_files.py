"""Files and folders that are written whole or not at all: a full disk or an interruption leaves what was there."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _beside(path)
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a power cut can leave the new name with no content
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the path's place when the block ends without an error.

    Raises:
        OSError: it cannot be written; what stood at the path stands there still.
    """
    part, old = _beside(path), _beside(path)
    try:
        part.mkdir(parents=True)
        yield part
        if path.exists():
            path.rename(old)
        part.rename(path)
    except BaseException:
        if old.exists():
            old.rename(path)
        shutil.rmtree(part, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
