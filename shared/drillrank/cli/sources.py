"""The files that the command line is given: by name, in folders, by patterns, on standard input."""

from __future__ import annotations

import glob
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from drillrank.errors import DrillrankError, InvalidInput

STANDARD_INPUT = "-"
LARGEST = 100_000_000  # bytes of a file that is found in a folder
_UNNAMED = "(standard input)"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read.

    Attributes:
        name: As the user knows it.
        path: Where it is read.
        named: Whether the user named it, so that it is an error if it cannot be read.
    """

    name: str
    path: Path
    named: bool = True


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is left out.

    Attributes:
        name: As the user knows it.
        reason: Why, as a sentence that names it.
    """

    name: str
    reason: str


@contextmanager
def found_sources(arguments: Sequence[str]) -> Iterator[tuple[list[Source], list[Skipped]]]:
    """The files that arguments name, each once, in order; those of a folder by name.

    Folders are walked with all that is in them, but for names that begin with a dot; links are followed, in circles
    once. What is no plain file, such as a pipe or standard input, is copied to a file that lives as long as the
    context.

    Raises:
        InvalidInput: something that was named does not exist, or a pattern matches nothing.
    """
    sources: list[Source] = []
    skipped: list[Skipped] = []
    with tempfile.TemporaryDirectory(prefix="drillrank-") as copies:
        for argument in arguments:
            for source in _named(argument, copies):
                if source.path.is_dir():
                    in_folder, left_out = _walked(source.path)
                    sources += in_folder
                    skipped += left_out
                else:
                    sources.append(source)
        yield list({os.path.realpath(source.path): source for source in reversed(sources)}.values())[::-1], skipped


@contextmanager
def reported(source: Source) -> Iterator[None]:
    """Errors name the file as the user knows it."""
    try:
        yield
    except DrillrankError as error:
        raise type(error)(str(error).replace(str(source.path), source.name)) from error


def _named(argument: str, copies: str) -> list[Source]:
    """The files and folders of one argument, in order."""
    if argument == STANDARD_INPUT:
        return [_copied(_UNNAMED, copies)]
    path = Path(argument)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as cause:
        matches = sorted(glob.glob(argument, recursive=True)) if glob.has_magic(argument) else []
        if matches:
            return [Source(match, Path(match), named=len(matches) == 1) for match in matches]
        what = "matches no file" if glob.has_magic(argument) else getattr(cause, "strerror", None) or str(cause)
        raise InvalidInput(f"{argument} cannot be read: {what}.") from cause
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return [Source(argument, path)]
    return [_copied(argument, copies)]


def _copied(name: str, copies: str) -> Source:
    """A copy of what can be read only once; its name may tell its format."""
    path = Path(tempfile.mkdtemp(dir=copies)) / ("input" if name == _UNNAMED else Path(name).name)
    try:
        with path.open("wb") as copy:
            if name == _UNNAMED:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            else:
                with Path(name).open("rb") as stream:
                    shutil.copyfileobj(stream, copy)
    except (OSError, AttributeError) as cause:  # AttributeError: there is no standard input
        raise InvalidInput(f"{name} cannot be read: {getattr(cause, 'strerror', None) or 'it is closed'}.") from cause
    return Source(name, path)


def _walked(folder: Path) -> tuple[list[Source], list[Skipped]]:
    """The plain files below a folder, and what was left out."""
    sources: list[Source] = []
    skipped: list[Skipped] = []
    seen: set[tuple[int, int]] = set()

    def cannot(error: OSError) -> None:
        skipped.append(Skipped(str(error.filename), f"{error.filename} cannot be read: {error.strerror}."))

    for here, folders, files in os.walk(folder, onerror=cannot, followlinks=True):
        known = Path(here).stat()
        if (known.st_dev, known.st_ino) in seen:
            folders.clear()
            continue
        seen.add((known.st_dev, known.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in files if not name.startswith(".")):
            path = Path(here, name)
            reason = _reason_to_skip(path)
            if reason:
                skipped.append(Skipped(str(path), f"{path} {reason}."))
            else:
                sources.append(Source(str(path), path, named=False))
    return sources, skipped


def _reason_to_skip(path: Path) -> str | None:
    try:
        found = path.stat()
    except OSError as cause:
        return f"cannot be read: {cause.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return "is no file"
    return f"is larger than {LARGEST // 1_000_000} MB: name it to have it read" if found.st_size > LARGEST else None
