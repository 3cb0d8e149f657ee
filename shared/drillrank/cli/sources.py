"""Files that the command line reads: named ones, those in folders or matching patterns, and standard input."""

from __future__ import annotations

import atexit
import glob
import os
import select
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from io import BufferedReader
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from drillrank import limits
from drillrank.cli.patterns import select_paths
from drillrank.errors import DrillrankError, InvalidInput
from drillrank.files import find_read_problem, is_outside, list_files, open_file, warn_about_links
from drillrank.structure import Document, read_document

STANDARD_INPUT = "-"
COPIES = Path(tempfile.gettempdir(), f"drillrank-{uuid4().hex}")
"""Folder into which this process copies input that can be read only once."""

_SIGNAL_SECONDS = 0.2
_PIECE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read.

    Attributes:
        name: Name as the user knows it.
        path: Path of the file or of its copy.
        is_named: True if the user named the file, so that it is an error if it cannot be read.
        folder: Folder that the file must be in when it is read; None for any place.
    """

    name: str
    path: Path
    is_named: bool = True
    folder: Path | None = None

    def read(self) -> bytes:
        """Return the content.

        Raises:
            InvalidInput: The file cannot be read, is outside its folder, or became too large after it was found.
        """
        with open_file(self.path, self.folder) as file:
            content = file.read() if self.is_named else file.read(limits.FILE_BYTES + 1)
        if not self.is_named and len(content) > limits.FILE_BYTES:
            raise InvalidInput(f"{self.path} is larger than {limits.FILE_BYTES // 1_000_000} MB.")
        return content

    @contextmanager
    def name_in_errors(self) -> Iterator[None]:
        """Let errors name the file as the user knows it, and turn a lack of memory into an `InvalidInput`."""
        try:
            yield
        except DrillrankError as error:
            message = str(error).replace(str(self.path), self.name)
            raise type(error)(message if self.name in message else f"{self.name}: {message}") from error
        except (MemoryError, RecursionError) as error:
            raise InvalidInput(f"{self.name} cannot be read: {type(error).__name__}.") from error


@dataclass(frozen=True, slots=True)
class _ListedFile:
    """A file that an argument names.

    Attributes:
        file: The file.
        relative_path: Path in the folder of the argument, with `/` between the parts.
        problem: Reason why the file is skipped, as words that follow its name. Empty if it can be read.
    """

    file: InputFile
    relative_path: str
    problem: str = ""


def list_input_files(
    arguments: Sequence[str],
    *,
    follow_links: bool = False,
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
) -> tuple[list[InputFile], list[str]]:
    """List the files that arguments name, each once, in order; those of a folder by name.

    A pipe or standard input is copied to a file that exists as long as the process.

    Args:
        arguments: Files, folders (see `list_files`), patterns, or `-` for standard input.
        follow_links: Whether to follow links that lead outside their folder, or outside that of a pattern.
        include: Patterns, one of which a file's path must match; see `select_paths`. Hidden and ignored files are not
            listed even if they match.
        exclude: Patterns, none of which a file's path may match.

    Returns:
        The files, and a message about each file that is skipped.

    Raises:
        InvalidInput: An argument does not exist, an argument matches nothing, or a pattern cannot be used.

    Warns:
        DrillrankWarning: A pattern of `include` or `exclude` matches no file.
    """
    listed = [entry for argument in arguments for entry in _list_argument(argument, follow_links)]
    is_selected = select_paths([entry.relative_path for entry in listed], include, exclude)
    listed = [entry for entry, selected in zip(listed, is_selected, strict=True) if selected]
    files = [entry.file for entry in listed if not entry.problem]
    skipped = [f"{entry.file.name} {entry.problem}." for entry in listed if entry.problem]
    first_by_identity = {_identity(file.path): file for file in reversed(files)}
    return list(first_by_identity.values())[::-1], skipped


def _list_argument(argument: str, follow_links: bool) -> list[_ListedFile]:
    """List the files of one argument; see `list_input_files`."""
    if not argument:
        raise InvalidInput("One of the files has an empty name.")
    path = Path(argument)
    try:
        mode = 0 if argument == STANDARD_INPUT else path.stat().st_mode
    except (OSError, ValueError) as cause:
        folder = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
        entries = _match_pattern(argument, folder, cause, follow_links)
        is_named = len(entries) == 1
    else:
        if not stat.S_ISDIR(mode):
            file = InputFile(argument, path) if stat.S_ISREG(mode) else _copy_input(argument)
            return [_ListedFile(file, _relative_path(path, Path()))]
        folder, entries, is_named = path, list(list_files(path, follow_links=follow_links)), False
    boundary = None if follow_links else folder
    return [
        _ListedFile(InputFile(str(file), file, is_named, boundary), _relative_path(file, folder), problem)
        for file, problem in entries
    ]


def _relative_path(file: Path, folder: Path) -> str:
    """Return the path of a file in a folder, with `/` between the parts; the whole path if it is outside."""
    if file.is_relative_to(folder):
        file = file.relative_to(folder)
    return "/".join(part for part in file.parts if part not in (file.anchor, ".."))


def _identity(path: Path) -> object:
    """Return the same value for all names and links of a file."""
    try:
        return os.stat(path)[1:3]
    except OSError:  # the file is gone, which reading it will report
        return path


def read_named_document(file: str, purpose: str) -> Document:
    """Read the one file of a name.

    Raises:
        InvalidInput: The file cannot be read, or the name is that of a folder or a pattern of several files.
    """
    files, _ = list_input_files([file])
    if len(files) != 1 or not files[0].is_named:
        raise InvalidInput(f"{file:.200} is not one file{purpose}.")
    with files[0].name_in_errors():
        return read_document(files[0].path)


def _match_pattern(pattern: str, folder: Path, cause: Exception, follow_links: bool) -> list[tuple[Path, str]]:
    """List the files that a pattern matches, by name, each with its `find_read_problem`; of folders, those in them.

    Args:
        pattern: Pattern as in a shell; after `**`, as in a `.gitignore`.
        folder: Part of the pattern before its first special character.
        cause: Error that the pattern caused when it was taken as the name of a file.
        follow_links: Whether to follow links that lead outside the folder.

    Raises:
        InvalidInput: No file matches, or the pattern is a name without special characters.
    """
    parts = Path(pattern).parts
    if not glob.has_magic(pattern):
        reason = getattr(cause, "strerror", None) or str(cause)
        raise InvalidInput(f"{pattern:.200} cannot be read: {reason}.") from cause
    n_plain_parts = parts.index("**") if "**" in parts else len(parts)
    tops = sorted(map(Path, glob.glob(os.path.join(*parts[:n_plain_parts])) if n_plain_parts else ["."]))
    outside = {top for top in tops if not follow_links and is_outside(top, folder)}
    inside = [top for top in tops if top not in outside]
    warn_about_links(sorted(outside), folder)
    entries: list[tuple[Path, str]] = []
    for top in inside:
        is_folder = top.is_dir()
        below = list_files(top, follow_links=follow_links) if is_folder else [(top, find_read_problem(top))]
        if n_plain_parts < len(parts):
            from pathspec import GitIgnoreSpec

            spec = GitIgnoreSpec.from_lines(["/" + "/".join(parts[n_plain_parts:])])
            below = [(file, problem) for file, problem in below if is_folder and spec.match_file(file.relative_to(top))]
        entries += below
    if not entries and len(inside) == len(tops):
        raise InvalidInput(f"{pattern:.200} cannot be read: matches no file.") from cause
    return entries


def _copy_input(name: str) -> InputFile:
    """Copy input that can be read only once to a file. The ending of its name may state its format."""
    shown_name = "(standard input)" if name == STANDARD_INPUT else name
    atexit.register(shutil.rmtree, COPIES, ignore_errors=True)
    COPIES.mkdir(mode=0o700, exist_ok=True)
    path = Path(tempfile.mkdtemp(dir=COPIES), "input" if name == STANDARD_INPUT else Path(name).name)
    try:
        with nullcontext(sys.stdin.buffer) if name == STANDARD_INPUT else Path(name).open("rb") as stream:
            content = _read_at_most(stream, limits.FILE_BYTES + 1)
        path.write_bytes(content)
    except (OSError, AttributeError) as cause:  # AttributeError: there is no standard input
        reason = getattr(cause, "strerror", None) or "it is closed"
        raise InvalidInput(f"{shown_name} cannot be read: {reason}.") from cause
    if len(content) > limits.FILE_BYTES:
        megabytes = limits.FILE_BYTES // 1_000_000
        raise InvalidInput(f"{shown_name} has more than {megabytes} MB: save it as a file, and name that.")
    return InputFile(shown_name, path)


def _read_at_most(stream: BinaryIO, n_bytes: int) -> bytes:
    """Read a stream to its end, or its first bytes.

    Python handles a signal between two instructions only. One that arrives just before a read would wait for the next
    input. So a read starts when there is input, and the wait for it is interrupted several times a second.
    """
    if os.name == "nt" or not isinstance(stream, BufferedReader):  # Windows waits in this way for sockets only
        return stream.read(n_bytes)
    content = bytearray()
    while len(content) < n_bytes:
        while not select.select([stream], [], [], _SIGNAL_SECONDS)[0]:
            pass
        if not (piece := stream.read1(min(n_bytes - len(content), _PIECE_BYTES))):
            break
        content += piece
    return bytes(content)
