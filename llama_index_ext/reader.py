"""Read files as LlamaIndex documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.readers.file.base import is_default_fs
from llama_index.core.schema import Document

from drillrank import structure
from drillrank.frameworks.files import FILE_NAMES, FilePath, OnError, check_sections, file_metadata, read_files
from drillrank.frameworks.metadata import prefixed
from drillrank.passages import stable_uuid


class DrillrankReader(BaseReader):
    r"""Reads files and folders as documents with sections and pages, one document per file.

    PDF, Word, PowerPoint, spreadsheets, e-books, HTML, LaTeX and others are read as by `drillrank.read_document`. The
    document of a file has the whole text. `D3Retriever` and `MultiViewNodeParser` find its sections, pages and exact
    spans, also in nodes that another node parser cut.

    Metadata are `file_path`, `file_name`, those of `extra_info`, `drillrank_format`, the format of the text, and
    `drillrank_pages`, the offset, number and label of each page. Models do not read the last two. Ids depend on the
    path only.

    In `SimpleDirectoryReader`, it replaces the readers of some endings:
    `SimpleDirectoryReader("reports", file_extractor={".pdf": DrillrankReader()})`.

    Args:
        on_error: Reaction to a file that cannot be read: `"raise"`, or `"skip"` with a warning that names the file.
            None raises an error for a file that is named, and skips a file of a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "sea.md").write_text("# Sea\n\nDeep.")
    ...     [document] = DrillrankReader().load_data(folder)
    >>> document.text, document.metadata["file_name"], document.metadata["drillrank_format"]
    ('# Sea\n\nDeep.', 'sea.md', 'markdown')
    """

    def __init__(self, *, on_error: OnError | None = None) -> None:
        self.on_error = on_error

    def lazy_load_data(
        self,
        file: FilePath | Iterable[FilePath],
        extra_info: Mapping[str, Any] | None = None,
        fs: Any = None,
    ) -> Iterator[Document]:
        """Read files one after the other, as `load_data` does.

        Args:
            file: A file, a folder, or several of them. Hidden files, and files that a `.gitignore` excludes, are not
                read.
            extra_info: Metadata of each document.
            fs: File system of the files, one of fsspec; None is the local one. Folders of others are not listed.

        Raises:
            InvalidInput: A file cannot be read, or has no text, and is not skipped.
            MissingExtra: A library that reads this format is not installed.
        """

        def read_bytes(path: Path) -> bytes:
            assert fs is not None
            with fs.open(path.as_posix(), "rb") as stream:
                return bytes(stream.read())

        is_local = fs is None or is_default_fs(fs)
        for read_file in read_files(file, self.on_error, None if is_local else read_bytes):
            path = read_file.path
            names = {"file_path": str(path) if is_local else path.as_posix(), "file_name": path.name}
            yield _build_document(read_file.id, read_file.document, {**names, **(extra_info or {})})

    async def alazy_load_data(self, *args: Any, **load_kwargs: Any) -> Iterable[Document]:
        """Read all files on a worker thread: a generator would read them on the thread of the event loop."""
        return await self.aload_data(*args, **load_kwargs)


def convert_documents(documents: Iterable[Any]) -> list[Any]:
    """Convert the documents of drillrank among nodes to documents of LlamaIndex, with ids that depend on the text only.

    Raises:
        InvalidInput: Another tool found the sections of a document.
    """
    return [_convert(document) if isinstance(document, structure.Document) else document for document in documents]


def _convert(document: structure.Document) -> Document:
    check_sections(document)
    return _build_document(stable_uuid("document", document.text), document, {})


def _build_document(id_: str, document: structure.Document, metadata: Mapping[str, Any]) -> Document:
    keys = [prefixed(name) for name in FILE_NAMES]
    return Document(
        id_=id_,
        text=document.text,
        metadata={**metadata, **file_metadata(document)},
        excluded_embed_metadata_keys=keys,
        excluded_llm_metadata_keys=list(keys),
    )
