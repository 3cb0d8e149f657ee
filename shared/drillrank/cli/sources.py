"""The files that the command line is given: by name, in folders, by patterns, on standard input."""

from __future__ import annotations

import atexit
import glob
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from uuid import uuid4

from drillrank import limits
from drillrank.errors import DrillrankError, InvalidInput
from drillrank.files import find_read_problem, is_outside, list_files, warn_about_links
from drillrank.structure import Document, read_document

STANDARD_INPUT = "-"
COPIES = Path(tempfile.gettempdir(), f"drillrank-{uuid4().hex}")
"""Where this process copies what can be read only once."""


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

    @contextmanager
    def showing_warnings(self) -> Iterator[None]:
        """Errors name the file as the user knows it; that it takes more memory than there is, is one like others."""
        try:
            yield
        except DrillrankError as error:
            words = str(error).replace(str(self.path), self.name)
            raise type(error)(words if self.name in words else f"{self.name}: {words}") from error
        except (MemoryError, RecursionError) as error:
            raise InvalidInput(f"{self.name} cannot be read: {type(error).__name__}.") from error


def list_input_files(arguments: Sequence[str], *, follow_links: bool = False) -> tuple[list[Source], list[str]]:
    """The files that arguments name, each once, in order, those of a folder by name; and why others are left out.

    What is named and is no plain file, such as a pipe or standard input, is copied to a file that lives as long as the
    process.

    Args:
        arguments: Files, folders (as `list_files` reads them), patterns, or `-` for standard input.
        follow_links: Whether links that lead outside their folder, or that of a pattern, are followed.

    Raises:
        InvalidInput: something that was named does not exist, or a pattern matches nothing.
    """
    found: list[Source] = []
    skipped: list[str] = []
    for argument in arguments:
        path = Path(argument)
        if not argument:
            raise InvalidInput("One of the files has an empty name.")
        try:
            mode = 0 if argument == STANDARD_INPUT else path.stat().st_mode
        except (OSError, ValueError) as cause:
            files = _matching(argument, cause, follow_links)
            named = len(files) == 1
        else:
            named = not stat.S_ISDIR(mode)
            if named:
                found.append(Source(argument, path) if stat.S_ISREG(mode) else _copied(argument))
                continue
            files = list(list_files(path, follow_links=follow_links))
        found += [Source(str(file), file, named) for file, problem in files if not problem]
        skipped += [f"{file} {problem}." for file, problem in files if problem]
    first = {_identity(source.path): source for source in reversed(found)}
    return list(first.values())[::-1], skipped


def _identity(path: Path) -> object:
    """The same for all names and links of a file."""
    try:
        return os.stat(path)[1:3]
    except OSError:  # it is gone, as reading it will tell
        return path


def named_document(file: str, purpose: str) -> Document:
    """The document of the one file of a name.

    Raises:
        InvalidInput: it cannot be read, or it is a folder or a pattern of several.
    """
    sources, _ = list_input_files([file])
    if len(sources) != 1 or not sources[0].named:
        raise InvalidInput(f"{file:.200} is not one file{purpose}.")
    with sources[0].showing_warnings():
        return read_document(sources[0].path)


def _matching(pattern: str, cause: Exception, follow_links: bool) -> list[tuple[Path, str]]:
    """Files that a pattern matches, by name, each with `find_read_problem`; of folders, those in them.

    Raises:
        InvalidInput: there are none, or it is no pattern, but a name that cannot be read for this cause.
    """
    parts = Path(pattern).parts
    if not glob.has_magic(pattern):
        what = getattr(cause, "strerror", None) or str(cause)
        raise InvalidInput(f"{pattern:.200} cannot be read: {what}.") from cause
    at = parts.index("**") if "**" in parts else len(parts)
    tops = sorted(map(Path, glob.glob(os.path.join(*parts[:at])) if at else ["."]))
    folder = Path(*takewhile(lambda part: not glob.has_magic(part), parts))
    inside = [top for top in tops if follow_links or not is_outside(top, folder)]
    warn_about_links(len(tops) - len(inside), folder)
    found: list[tuple[Path, str]] = []
    for top in inside:
        is_folder = top.is_dir()
        below = list_files(top, follow_links=follow_links) if is_folder else [(top, find_read_problem(top))]
        if at < len(parts):  # what follows ** means the same in a .gitignore
            from pathspec import GitIgnoreSpec

            spec = GitIgnoreSpec.from_lines(["/" + "/".join(parts[at:])])
            below = [(file, problem) for file, problem in below if is_folder and spec.match_file(file.relative_to(top))]
        found += below
    if not found and len(inside) == len(tops):
        raise InvalidInput(f"{pattern:.200} cannot be read: matches no file.") from cause
    return found


def _copied(name: str) -> Source:
    """A copy of what can be read only once; its name may tell its format."""
    shown = "(standard input)" if name == STANDARD_INPUT else name
    atexit.register(shutil.rmtree, COPIES, ignore_errors=True)
    COPIES.mkdir(mode=0o700, exist_ok=True)
    path = Path(tempfile.mkdtemp(dir=COPIES), "input" if name == STANDARD_INPUT else Path(name).name)
    try:
        with nullcontext(sys.stdin.buffer) if name == STANDARD_INPUT else Path(name).open("rb") as stream:
            content = stream.read(limits.FILE_BYTES + 1)
        path.write_bytes(content)
    except (OSError, AttributeError) as cause:  # AttributeError: there is no standard input
        raise InvalidInput(f"{shown} cannot be read: {getattr(cause, 'strerror', None) or 'it is closed'}.") from cause
    if len(content) > limits.FILE_BYTES:
        megabytes = limits.FILE_BYTES // 1_000_000
        raise InvalidInput(f"{shown} has more than {megabytes} MB: save it as a file, and name that.")
    return Source(shown, path)
