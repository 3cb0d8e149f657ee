"""Files: plain ones are read, those of a folder within its limits; what is written is written whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from drillrank import limits
from drillrank.errors import InvalidInput, warn

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Rules = list[tuple[str, "GitIgnoreSpec"]]
"""Folders, and what their `.gitignore` says."""
_IGNORE_BYTES = 1_000_000  # of a .gitignore
_SPECIAL = "a pipe or device is there, whose place no file takes"


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A plain file, open for reading; a pipe in its place blocks nobody.

    Raises:
        InvalidInput: it cannot be opened or read, or is a folder, a pipe or a device.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidInput(f"{path} cannot be read: it is no plain file.")
            yield file
    except InvalidInput:
        raise
    except (OSError, ValueError) as cause:  # ValueError: a name that no file can have
        raise InvalidInput(f"{path} cannot be read: {getattr(cause, 'strerror', None) or cause}.") from cause


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

    Names that begin with a dot are passed over, and what files called `.gitignore` name: those in the folders that are
    read, and those above them as far as the root of a repository. Each folder is entered once, however many links lead
    to it.

    Args:
        folder: Where to look, no deeper than `limits.FOLDER_DEPTH`; it is read even if it is ignored itself.
        follow_links: Whether links that lead outside the folder are followed; else a warning counts them.
    """
    seen: set[str] = set()
    failed: list[OSError] = []
    outside = 0
    rules = {str(folder): _rules_above(folder)}
    for here, folders, files in os.walk(folder, onerror=failed.append, followlinks=True):
        ignore = [*rules.pop(here, ()), *_rules_in(Path(here))]
        if (real := os.path.realpath(here)) in seen:
            folders.clear()
            continue
        seen.add(real)
        for names in (folders, files):
            shown = [name for name in sorted(names) if not name.startswith(".")]
            found = [
                path for path in map(Path(here).joinpath, shown) if not _is_ignored(path, names is folders, ignore)
            ]
            inside = [p.name for p in found if follow_links or not (os.path.islink(p) and leads_outside(p, folder))]
            names[:] = inside
            outside += len(found) - len(inside)
        rules |= {os.path.join(here, name): ignore for name in folders}
        if folders and len(Path(here).parts) - len(folder.parts) >= limits.FOLDER_DEPTH:
            folders.clear()
            yield Path(here), "has folders that lie too deep: name them to have them read"
        yield from ((path, why_not_read(path)) for path in (Path(here, name) for name in files))
    yield from ((Path(error.filename), f"cannot be read: {error.strerror}") for error in failed)
    warn_of_links(outside, folder)


def _rules_in(folder: Path) -> Rules:
    """Those of its file; a pattern with many asterisks, on which somebody's long name would take hours, is no rule."""
    try:
        with opened(folder / ".gitignore") as file:
            lines = file.read(_IGNORE_BYTES).decode(errors="replace").splitlines()
        few = [line for line in lines if line.count("**") < 4 and max(part.count("*") for part in line.split("/")) < 4]
    except ValueError:  # there is none that can be read
        return []
    from pathspec import GitIgnoreSpec

    return [(os.path.abspath(folder), GitIgnoreSpec.from_lines(few))]


def _rules_above(folder: Path) -> Rules:
    """Those of the repository that a folder lies in, if it does, and if they do not name the folder itself."""
    parents = Path(os.path.abspath(folder)).parents
    root = next((location for location, parent in enumerate(parents) if (parent / ".git").exists()), -1)
    found = [rule for parent in reversed(parents[: root + 1]) for rule in _rules_in(parent)]
    return [] if _is_ignored(folder, True, found) else found


def _is_ignored(path: Path, is_folder: bool, rules: Rules) -> bool:
    """As the last of the rules has it that speaks of it."""
    for folder, spec in reversed(rules):
        found = spec.check_file(os.path.relpath(path, folder) + "/" * is_folder).include
        if found is not None:
            return found
    return False


def leads_outside(path: Path, folder: Path) -> bool:
    """Whether links on a path lead to what does not lie in a folder."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def warn_of_links(number: int, folder: Path) -> None:
    """One warning of all links that lead outside a folder."""
    if number:
        links = "1 link" if number == 1 else f"{number} links"
        left = f"{links} in {folder}, to what lies outside, not followed"
        warn(f"{left}: name what they lead to, or ask with --follow-links.")


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

    Raises:
        OSError: it cannot be written; what stood at the path stands there still.
    """
    part, old = _beside(path), _beside(path)
    try:
        part.mkdir(parents=True)
        yield part
        for file in filter(Path.is_file, part.rglob("*")):
            _sync(file)
        with suppress(FileNotFoundError):
            path.rename(old)
        part.rename(path)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sync(file: Path) -> None:
    with file.open("rb+") as content:
        os.fsync(content.fileno())  # or a power cut can leave the new name with no content


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
