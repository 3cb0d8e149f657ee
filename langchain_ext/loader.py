"""Read files as LangChain documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from drillrank import structure
from drillrank.frameworks.files import FilePath, OnError, check_sections, file_metadata, read_files
from drillrank.passages import stable_uuid


class DrillrankLoader(BaseLoader):
    r"""Reads files and folders as documents with sections and pages, one document per file.

    PDF, Word, PowerPoint, spreadsheets, e-books, HTML, LaTeX and others are read as by `drillrank.read_document`. The
    document of a file has the whole text. `D3Retriever` and `MultiViewTextSplitter` find its sections, pages and exact
    spans, also in chunks of other splitters with `add_start_index=True`.

    Metadata are `source`, the path; `drillrank_format`, the format of the text; and, if the file has pages,
    `total_pages` and `drillrank_pages`, the offset, number and label of each page. Ids depend on the path only.

    In `DirectoryLoader`, it is the loader of each file: `DirectoryLoader("reports", loader_cls=DrillrankLoader)`.

    Args:
        file_path: A file, a folder, or several of them. Hidden files, and files that a `.gitignore` excludes, are not
            read.
        on_error: Reaction to a file that cannot be read: `"raise"`, or `"skip"` with a warning that names the file.
            None raises an error for a file that is named, and skips a file of a folder.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "sea.md")
    ...     _ = file.write_text("# Sea\n\nDeep.")
    ...     [document] = DrillrankLoader(file).load()
    >>> document.page_content, document.metadata["drillrank_format"]
    ('# Sea\n\nDeep.', 'markdown')
    """

    def __init__(self, file_path: FilePath | Iterable[FilePath], *, on_error: OnError | None = None) -> None:
        is_list = isinstance(file_path, Iterable) and not isinstance(file_path, str | os.PathLike)
        self.file_path: Any = [*file_path] if is_list else file_path  # type: ignore[misc]  # checked when it is read
        self.on_error = on_error

    def lazy_load(self) -> Iterator[Document]:
        """Read the files one after the other.

        Raises:
            InvalidInput: A file cannot be read, or has no text, and is not skipped.
            MissingExtra: A library that reads this format is not installed.
        """
        for read_file in read_files(self.file_path, self.on_error):
            yield _build_document(read_file.id, read_file.document, {"source": str(read_file.path)})


def convert_document(document: Document | structure.Document) -> Document:
    """Convert a document of drillrank to one of LangChain, with an id that depends on the text only.

    Raises:
        InvalidInput: Another tool found the sections of the document.
    """
    if not isinstance(document, structure.Document):
        return document
    check_sections(document)
    return _build_document(stable_uuid("document", document.text), document, {})


def _build_document(id_: str, document: structure.Document, metadata: Mapping[str, Any]) -> Document:
    pages = {} if document.pages is None else {"total_pages": len(document.pages.starts)}
    return Document(id=id_, page_content=document.text, metadata={**metadata, **pages, **file_metadata(document)})
