"""The files that the command line is given: by name, in folders, by patterns, on standard input."""

from __future__ import annotations

import glob
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from drillrank import limits
from drillrank.errors import DrillrankError, InvalidInput
from drillrank.files import files_below, leads_outside, warn_of_links, why_not_read

STANDARD_INPUT = "-"


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
def found_sources(
    arguments: Sequence[str], *, follow_links: bool = False
) -> Iterator[tuple[list[Source], list[Skipped]]]:
    """The files that arguments name, each once, in order; those of a folder by name.

    Folders are walked with all that is in them, but for names that begin with a dot. What is named and is no plain
    file, such as a pipe or standard input, is copied to a file that lives as long as the context.

    Args:
        arguments: Files, folders, patterns, or `-` for standard input.
        follow_links: Whether links that lead outside their folder, or that of a pattern, are followed.

    Raises:
        InvalidInput: something that was named does not exist, or a pattern matches nothing.
    """
    sources: list[Source] = []
    skipped: list[Skipped] = []
    with tempfile.TemporaryDirectory(prefix="drillrank-") as copies:
        for argument in arguments:
            path = Path(argument)
            try:
                mode = 0 if argument == STANDARD_INPUT else path.stat().st_mode
            except (OSError, ValueError) as cause:
                matches = _matching(argument, cause, follow_links)
            else:
                matches = [path] if stat.S_ISDIR(mode) else []
                if not matches:
                    sources.append(Source(argument, path) if stat.S_ISREG(mode) else _copied(argument, copies))
            for match in matches:
                is_folder = match.is_dir()
                found = files_below(match, follow_links=follow_links) if is_folder else [(match, why_not_read(match))]
                for file, problem in found:
                    if problem:
                        skipped.append(Skipped(str(file), f"{file} {problem}."))
                    else:
                        sources.append(Source(str(file), file, named=matches == [file]))
        yield list({os.path.realpath(source.path): source for source in reversed(sources)}.values())[::-1], skipped


@contextmanager
def reported(source: Source) -> Iterator[None]:
    """Errors name the file as the user knows it; one that takes more memory than there is is an error like others."""
    try:
        yield
    except DrillrankError as error:
        raise type(error)(str(error).replace(str(source.path), source.name)) from error
    except (MemoryError, RecursionError) as error:
        raise InvalidInput(f"{source.name} cannot be read: {type(error).__name__}.") from error


def _matching(pattern: str, cause: Exception, follow_links: bool) -> list[Path]:
    """Files and folders that a pattern matches, by name.

    Raises:
        InvalidInput: there are none, or it is no pattern, but a name that cannot be read for this cause.
    """
    is_pattern = glob.has_magic(pattern)
    found = sorted(set(_expanded(Path(pattern).parts))) if is_pattern else []
    if not found:
        what = "matches no file" if is_pattern else getattr(cause, "strerror", None) or str(cause)
        raise InvalidInput(f"{pattern:.200} cannot be read: {what}.") from cause
    if follow_links:
        return found
    folder = Path(*takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))
    inside = [path for path in found if not leads_outside(path, folder)]
    warn_of_links(len(found) - len(inside), folder)
    return inside


def _expanded(parts: Sequence[str]) -> Iterator[Path]:
    """As `glob`, but that `**` enters no link, and no folder deeper than all are read."""
    if "**" not in parts:
        yield from map(Path, glob.glob(os.path.join(*parts)))
        return
    at = parts.index("**")
    for top in _expanded(parts[:at]) if at else [Path()]:
        if at + 1 == len(parts):
            yield from filter(Path.is_dir, [top])  # a folder stands for all that is in it
            continue
        for here, folders, _ in os.walk(top):
            too_deep = len(Path(here).parts) - len(top.parts) >= limits.FOLDER_DEPTH
            folders[:] = [] if too_deep else [name for name in folders if not name.startswith(".")]
            yield from _expanded((glob.escape(here), *parts[at + 1 :]))


def _copied(name: str, copies: str) -> Source:
    """A copy of what can be read only once; its name may tell its format."""
    shown = "(standard input)" if name == STANDARD_INPUT else name
    path = Path(tempfile.mkdtemp(dir=copies)) / ("input" if name == STANDARD_INPUT else Path(name).name)
    try:
        with nullcontext(sys.stdin.buffer) if name == STANDARD_INPUT else Path(name).open("rb") as stream:
            content = stream.read(limits.FILE_BYTES + 1)
        path.write_bytes(content)
    except (OSError, AttributeError) as cause:  # AttributeError: there is no standard input
        raise InvalidInput(f"{shown} cannot be read: {getattr(cause, 'strerror', None) or 'it is closed'}.") from cause
    if len(content) > limits.FILE_BYTES:
        raise InvalidInput(
            f"{shown} has more than {limits.FILE_BYTES // 1_000_000} MB: save it as a file, and name that."
        )
    return Source(shown, path)
