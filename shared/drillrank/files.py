"""Files that are read: plain ones only, and those of a folder within its limits."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from drillrank import limits
from drillrank.errors import DrillrankWarning, InvalidInput


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A plain file, open for reading; a pipe in its place blocks nobody.

    Raises:
        InvalidInput: it cannot be opened or read, or is a folder, a pipe or a device.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidInput(f"{path} cannot be read: it is no plain file.")
            yield file
    except InvalidInput:
        raise
    except (OSError, ValueError) as cause:  # ValueError: a name that no file can have
        raise InvalidInput(f"{path} cannot be read: {getattr(cause, 'strerror', None) or cause}.") from cause


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def why_not_read(path: Path) -> str:
    """Why a file that nobody has named is left out, to stand behind its name; empty where it can be read."""
    try:
        found = path.stat()
    except OSError as cause:
        return f"cannot be read: {cause.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return "is no file"
    larger = found.st_size > limits.FILE_BYTES
    return f"is larger than {limits.FILE_BYTES // 1_000_000} MB: name it to have it read" if larger else ""


def files_below(folder: Path, *, follow_links: bool = False) -> Iterator[tuple[Path, str]]:
    """The files below a folder by name, each with `why_not_read`.

    Names that begin with a dot are passed over. Each folder is entered once, however many links lead to it.

    Args:
        folder: Where to look, no deeper than `limits.FOLDER_DEPTH`.
        follow_links: Whether links that lead outside the folder are followed; else a warning counts them.
    """
    seen: set[str] = set()
    failed: list[OSError] = []
    outside = 0
    for here, folders, files in os.walk(folder, onerror=failed.append, followlinks=True):
        if (real := os.path.realpath(here)) in seen:
            folders.clear()
            continue
        seen.add(real)
        for names in (folders, files):
            found = [Path(here, name) for name in sorted(names) if not name.startswith(".")]
            inside = [path for path in found if follow_links or not (path.is_symlink() and leads_outside(path, folder))]
            names[:] = [path.name for path in inside]
            outside += len(found) - len(inside)
        if folders and len(Path(here).parts) - len(folder.parts) >= limits.FOLDER_DEPTH:
            folders.clear()
            yield Path(here), "has folders that lie too deep: name them to have them read"
        yield from ((path, why_not_read(path)) for path in (Path(here, name) for name in files))
    yield from ((Path(error.filename), f"cannot be read: {error.strerror}") for error in failed)
    warn_of_links(outside, folder)


def leads_outside(path: Path, folder: Path) -> bool:
    """Whether links on a path lead to what does not lie in a folder."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def warn_of_links(number: int, folder: Path) -> None:
    """One warning of all links that lead outside a folder."""
    if number:
        left = f"{number} links in {folder} lead outside it and are not followed"
        warnings.warn(f"{left}: name what they lead to, or ask with --follow-links.", DrillrankWarning, stacklevel=3)
