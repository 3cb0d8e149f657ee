"""Files as documents of a framework: read files and folders, and describe a file in metadata.

One document contains the whole text of a file. Its metadata state the format of the text and the offsets of the pages,
so that the components of drillrank find the same sections and pages as `read_document`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from drillrank.errors import DrillrankError, InvalidInput, MissingExtra, warn
from drillrank.files import list_files, open_file
from drillrank.frameworks.metadata import prefixed
from drillrank.passages import stable_uuid
from drillrank.structure import Document, parse_document
from drillrank.structure.read import FORMAT_KEY, read_content

FilePath = str | os.PathLike[str]

OnError = Literal["raise", "skip"]
"""Reaction to a file that cannot be read: raise an error, or skip the file with a warning that names it."""

FILE_NAMES = ("format", "pages")
"""Names, without prefix, under which drillrank describes a file."""


class ReadFile(NamedTuple):
    """File that was read.

    Attributes:
        path: Path of the file.
        document: Its document.
    """

    path: Path
    document: Document

    @property
    def id(self) -> str:
        """Identifier of the framework's document, which depends on the path only."""
        return stable_uuid("file", self.path.as_posix())


class _ListedFile(NamedTuple):
    """File to read.

    Attributes:
        path: Path of the file.
        folder: Folder that the file must be in; None allows any folder.
        problem: Reason why the file cannot be read, as words that follow its name. Empty if there is none.
    """

    path: Path
    folder: Path | None = None
    problem: str = ""


def read_files(
    paths: FilePath | Iterable[FilePath],
    on_error: OnError | None = None,
    read_bytes: Callable[[Path], bytes] | None = None,
) -> Iterator[ReadFile]:
    """Read files one after the other, each once. Files that are not text are converted in worker processes.

    Args:
        paths: A file, a folder, or several of them. All files below a folder are read, sorted by name, except hidden
            files, files that a `.gitignore` excludes, and links that lead outside the folder.
        on_error: Reaction to a file that cannot be read. None raises an error for a file in `paths`, and skips a file
            of a folder.
        read_bytes: Function that returns the content of a file in another file system, where no path is a folder. None
            reads local files.

    Raises:
        InvalidInput: A file cannot be read, or has no text. The message names the file.
        MissingExtra: A library that reads this format is not installed, and `on_error` is not "skip".

    Warns:
        DrillrankWarning: A file was skipped.
    """
    if on_error not in (None, "raise", "skip"):
        raise InvalidInput(f"on_error must be 'raise', 'skip' or None, got {on_error!r:.200}.")
    seen: set[str] = set()
    for file in _list_files(paths, is_local=read_bytes is None):
        identity = os.path.realpath(file.path)
        if identity in seen:
            continue
        seen.add(identity)
        try:
            document = _read_file(file, read_bytes)
        except (InvalidInput, MissingExtra) as error:
            skips = on_error is None and file.folder is not None and not isinstance(error, MissingExtra)
            if not skips and on_error != "skip":
                raise
            warn(f"{error} The file was skipped.")
            continue
        yield ReadFile(file.path, document)


def _list_files(paths: FilePath | Iterable[FilePath], *, is_local: bool) -> Iterator[_ListedFile]:
    """List files, and the files in folders."""
    given_paths = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(given_paths, Iterable):
        raise InvalidInput(f"A path, or a list of paths, is needed, got {paths!r:.200}. Name a file or a folder.")
    for given_path in given_paths:
        if not isinstance(given_path, str | os.PathLike) or not str(given_path).strip():
            raise InvalidInput(f"A path must be a string that is not blank, or a Path, got {given_path!r:.200}.")
        path = Path(given_path)
        if is_local and path.is_dir():
            yield from (_ListedFile(file, path, problem) for file, problem in list_files(path))
        else:
            yield _ListedFile(path)


def _read_file(file: _ListedFile, read_bytes: Callable[[Path], bytes] | None) -> Document:
    """Read one file.

    Raises:
        InvalidInput: The file cannot be read, or has no text.
        MissingExtra: A library that reads this format is not installed.
    """
    path, folder, problem = file
    if problem:
        raise InvalidInput(f"{path} {problem}.")
    try:
        if read_bytes is None:
            with open_file(path, folder) as stream:
                content = stream.read()
        else:
            content = read_bytes(path)
        document = read_content(content, path)
    except DrillrankError:
        raise
    except Exception as error:  # of a file system, or of a third party's format; its message may quote the file
        raise InvalidInput(f"{path} cannot be read: its reader failed with {type(error).__name__}.") from error
    if not document.text.strip():
        raise InvalidInput(f"{path} has no text.")
    return document


def file_metadata(document: Document) -> dict[str, Any]:
    """Return metadata from which `parse_document` and the components find sections and pages of a document again.

    >>> from drillrank.structure import Pages
    >>> file_metadata(Document("A", (), (), "markdown", Pages((0,), (1,), ("i",))))
    {'drillrank_format': 'markdown', 'drillrank_pages': '[[0,1,"i"]]'}
    """
    pages = {} if document.pages is None else {prefixed("pages"): document.pages.as_json()}
    return {FORMAT_KEY: document.format, **pages}


def check_sections(document: Document) -> None:
    """Refuse a document whose sections `parse_document` does not find in its text.

    Raises:
        InvalidInput: Another tool found the sections of the document.
    """
    if parse_document(document.text, metadata=file_metadata(document)).sections() != document.sections():
        raise InvalidInput(
            "documents contains a document whose sections are not those of its text, because another tool found them. "
            "Use drillrank.D3 or drillrank.views.MultiViewChunker, which take such documents."
        )
