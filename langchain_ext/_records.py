"""LangChain documents: their names, and documents as passages and as stored chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document

from drillrank import LanguageModel, Passage
from drillrank.frameworks.headings import headings_by_level
from drillrank.frameworks.inputs import check_text, value_text
from drillrank.frameworks.metadata import count, is_section, prefixed, result_metadata, user_metadata
from drillrank.frameworks.pages import read_pages
from drillrank.frameworks.shared import model_fields
from drillrank.passages import stable_uuid
from drillrank.structure.stored_chunks import StoredChunk


def document_names(documents: Iterable[Document]) -> list[str]:
    """Return a unique name for each document, which is the same in every run.

    The name is the document's id, or made from its metadata and text. Repeated names are numbered.

    >>> first, second = document_names([Document(page_content="same"), Document(page_content="same")])
    >>> first != second
    True
    """
    seen: Counter[str] = Counter()
    names = []
    for document in documents:
        name = document.id or _content_id(document)
        copies, seen[name] = seen[name], seen[name] + 1
        names.append(name if not copies else stable_uuid(name, copies))
    return names


def _content_id(document: Document) -> str:
    try:
        return stable_uuid(sorted(document.metadata.items(), key=repr), document.page_content)
    except RecursionError:  # the metadata are nested too deeply
        return stable_uuid(document.page_content)


def index_fields(component: Any, model: LanguageModel) -> Callable[[Iterable[Document]], dict[str, object]]:
    """Return the function from documents to all that an index of them depends on.

    These are the documents, and the component's fields except those that only shape results.
    """
    result_fields = {"documents", "filters", "model", "model_options", "settings", "top_n", "explain"}
    names = type(component).model_fields.keys() - result_fields
    fields = {name: getattr(component, name) for name in sorted(names)}
    settings = {name: value for name, value in vars(component._settings).items() if name != "score_key"}
    fields |= {"settings": settings, "model": model_fields(model)}
    return partial(_add_documents, fields)  # does not keep the component alive


def _add_documents(fields: dict[str, object], documents: Iterable[Document]) -> dict[str, object]:
    return fields | {"documents": [(document.id, document.page_content, document.metadata) for document in documents]}


def names_of(documents: Sequence[Document]) -> list[str]:
    """Return the documents' ids, also repeated ones. Documents without an id get a name made from their content."""
    return [document.id or name for document, name in zip(documents, document_names(documents), strict=True)]


def passage_of(document: Document, id: str, title_key: str, metadata_fields: Iterable[str] = ()) -> Passage:
    """Return the passage that a model reads of a document.

    Args:
        document: The document.
        id: Id of the passage.
        title_key: Metadata key of the title.
        metadata_fields: Metadata keys that the model reads in addition to the text.
    """
    metadata = document.metadata
    metadata_lines = [f"{key}: {value_text(metadata[key])}" for key in metadata_fields if key in metadata]
    return Passage(
        "\n".join([*metadata_lines, check_text(document.page_content, "Document")]),
        id=id,
        title=value_text(metadata.get(title_key)),
        metadata=metadata,
    )


def as_raw(document: Document, text: str) -> Document:
    """Return the record of a section without added context. Its id is the section's, whatever id the store uses."""
    names = result_metadata(document.metadata)
    metadata = {key: value for key, value in document.metadata.items() if key != prefixed("section_text")}
    return document.model_copy(update={"id": str(names["section_id"]), "page_content": text, "metadata": metadata})


SOURCE = "source"
"""Metadata key under which LangChain's loaders and splitters keep the document of a chunk."""

_PAGE_KEYS = ("page", "page_number")


def read_distinct_documents(documents: Iterable[Document]) -> list[StoredChunk[Document]]:
    """Return the documents given to a component as stored chunks. Those without ids are distinguished."""
    documents = list(documents)
    return [read_chunk(document, name) for document, name in zip(documents, document_names(documents), strict=True)]


def read_documents(documents: Iterable[Document]) -> list[StoredChunk[Document]]:
    """Return each document as a chunk, with its position in the document that it was cut from.

    A `RecordStore` of a third party returns such chunks, and is then a `source` of retrievers. Equal documents without
    ids have the same id.

    Args:
        documents: Documents of `MultiViewTextSplitter`, of any other splitter, or of a loader.

    >>> [chunk] = read_documents([Document("It is old.", id="1", metadata={"source": "basel.md", "start_index": 40})])
    >>> chunk.id, chunk.document, chunk.start
    ('1', ('', 'basel.md'), 40)
    """
    return list(map(read_chunk, documents))


def read_chunk(document: Document, id: str | None = None) -> StoredChunk[Document]:
    """Return a document as a stored chunk.

    Args:
        document: The document.
        id: Id of the chunk, if drillrank did not cut it. By default the document's, or one made from its content.
    """
    check_text(document.page_content, "Document")
    if is_section(document.metadata):
        return _read_section(document)
    chunk_id = id or document_names([document])[0]
    metadata = user_metadata(document.metadata)
    source, start = metadata.get(SOURCE), count(metadata.get("start_index"))
    headings = headings_by_level(metadata)
    start = None if start is None or start < 0 else start
    pages = [count(value) if isinstance(value, float) else value for value in map(metadata.get, _PAGE_KEYS)]
    is_cut = isinstance(source, str) or start is not None or bool(headings)
    return StoredChunk(
        document,
        chunk_id,
        document.page_content,
        ("", source if isinstance(source, str) else chunk_id),
        kind="chunk" if is_cut else "document",
        view_text=document.page_content,
        path=headings,
        # Splitters that write headings write no offsets. A chunk with both was cut again, and counts from that cut.
        start=None if headings else start,
        page=next((page for page in pages if isinstance(page, int | str)), None),
        aliases=(chunk_id,),
        metadata=metadata,
        pages=read_pages(document.metadata),
        siblings={SOURCE: source} if isinstance(source, str) else None,
    )


def _read_section(document: Document) -> StoredChunk[Document]:
    names: dict[str, Any] = result_metadata(document.metadata)
    section_id, is_raw = str(names["section_id"]), names["view"] == "raw"
    namespace, source = str(names.get("namespace") or ""), str(names.get("source_id") or section_id)
    # The raw view may have context before its text in the store.
    text = str(names.get("section_text", document.page_content if is_raw else ""))
    link_names = ("parent_id", "previous_id", "next_id")
    return StoredChunk(
        document,
        section_id,
        text,
        (namespace, source),
        kind="section",
        view=names["view"],
        view_text=text if is_raw else document.page_content,
        path=str(names.get("section_path", "")),
        start=names.get("start"),
        end=names.get("end"),
        metadata=user_metadata(document.metadata),
        pages=read_pages(document.metadata),
        links={name: str(names[name]) for name in link_names if names.get(name) is not None},
        siblings={prefixed("source_id"): source, **({prefixed("namespace"): namespace} if namespace else {})},
    )
