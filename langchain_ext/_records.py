"""LangChain documents: their names, and how they are read as passages, sections and chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document

from drillrank import LanguageModel, Passage
from drillrank.frameworks.headings import headings_by_level
from drillrank.frameworks.metadata import count, is_section, prefixed, result_metadata, user_metadata
from drillrank.frameworks.pages import pages_of
from drillrank.frameworks.shared import model_fields
from drillrank.passages import stable_uuid
from drillrank.structure.stored_chunks import StoredChunk


def document_names(documents: Iterable[Document]) -> list[str]:
    """A name for each document, different from all others and the same in every run.

    It is the document's id; without one, it depends on metadata and text; repeated ones are counted.

    >>> first, second = document_names([Document(page_content="same"), Document(page_content="same")])
    >>> first != second
    True
    """
    seen: Counter[str] = Counter()
    names = []
    for document in documents:
        name = document.id or stable_uuid(sorted(document.metadata.items(), key=repr), document.page_content)
        copies, seen[name] = seen[name], seen[name] + 1
        names.append(name if not copies else stable_uuid(name, copies))
    return names


def index_fields(component: Any, model: LanguageModel) -> Callable[[Iterable[Document]], dict[str, object]]:
    """What an index of documents is made of: them, and a component's fields but those of the results' form."""
    of_results = {"documents", "filters", "model", "model_options", "settings", "top_n", "explain"}
    names = type(component).model_fields.keys() - of_results
    fields = {name: getattr(component, name) for name in sorted(names)}
    settings = {name: value for name, value in vars(component._settings).items() if name != "score_key"}
    return partial(
        _with_documents, fields | {"settings": settings, "model": model_fields(model)}
    )  # the component itself is not kept alive


def _with_documents(fields: dict[str, object], documents: Iterable[Document]) -> dict[str, object]:
    return fields | {"documents": [(document.id, document.page_content, document.metadata) for document in documents]}


def names_of(documents: Sequence[Document]) -> list[str]:
    """The documents' ids, also equal ones; those without one get a name that depends on what they hold."""
    return [document.id or name for document, name in zip(documents, document_names(documents), strict=True)]


def passage_of(document: Document, id: str, title_key: str, metadata_fields: Iterable[str] = ()) -> Passage:
    """What a model reads of a document.

    Args:
        document: The document.
        id: Of the passage.
        title_key: Metadata key of the title.
        metadata_fields: Metadata keys that the model reads, too.
    """
    described = [f"{key}: {document.metadata[key]}" for key in metadata_fields if key in document.metadata]
    return Passage(
        "\n".join([*described, document.page_content]),
        id=id,
        title=str(document.metadata.get(title_key) or ""),
        metadata=document.metadata,
    )


def as_raw(document: Document, text: str) -> Document:
    """The section itself; its id is the section's, whatever the store calls the record."""
    names = result_metadata(document.metadata)
    metadata = {key: value for key, value in document.metadata.items() if key != prefixed("section_text")}
    return document.model_copy(update={"id": str(names["section_id"]), "page_content": text, "metadata": metadata})


SOURCE = "source"
"""The host's name for the key that says what a chunk was cut from."""

_PAGE = ("page", "page_number")


def given_chunks(documents: Iterable[Document]) -> list[StoredChunk[Document]]:
    """What each of the documents given to a component is a piece of; no two are the same, if they have no ids."""
    documents = list(documents)
    return [read_chunk(document, name) for document, name in zip(documents, document_names(documents), strict=True)]


def found_chunks(documents: Iterable[Document]) -> list[StoredChunk[Document]]:
    """As `given_chunks`, for what a store or retriever brings, perhaps the same one more than once."""
    return list(map(read_chunk, documents))


def read_chunk(document: Document, id: str | None = None) -> StoredChunk[Document]:
    """What a document is a piece of, and where in it it stands; without an id of its own it is called as given."""
    if is_section(document.metadata):
        return _section(document)
    name = id or document_names([document])[0]
    metadata = user_metadata(document.metadata)
    source, start = metadata.get(SOURCE), count(metadata.get("start_index"))
    headings = headings_by_level(metadata)
    start = None if start is None or start < 0 else start
    pages = [count(value) if isinstance(value, float) else value for value in map(metadata.get, _PAGE)]
    cut = isinstance(source, str) or start is not None or bool(headings)
    return StoredChunk(
        document,
        name,
        document.page_content,
        ("", source if isinstance(source, str) else name),
        kind="chunk" if cut else "document",
        view_text=document.page_content,
        path=headings,
        # Splitters that write headings know no offsets: what has one was cut again, and it counts from there.
        start=None if headings else start,
        page=next((page for page in pages if isinstance(page, int | str)), None),
        aliases=(name,),
        metadata=metadata,
        pages=pages_of(document.metadata),
        siblings={SOURCE: source} if isinstance(source, str) else None,
    )


def _section(document: Document) -> StoredChunk[Document]:
    found: dict[str, Any] = result_metadata(document.metadata)
    is_raw = found["view"] == "raw"
    space, source = str(found.get("namespace") or ""), str(found.get("source_id") or found["section_id"])
    text = str(found.get("section_text", document.page_content if is_raw else ""))
    links = {name: str(found[name]) for name in ("parent_id", "previous_id", "next_id") if found.get(name) is not None}
    return StoredChunk(
        document,
        str(found["section_id"]),
        text,
        (space, source),
        kind="section",
        view=found["view"],
        view_text=text if is_raw else document.page_content,
        path=str(found.get("section_path", "")),
        start=found.get("start"),
        end=found.get("end"),
        metadata=user_metadata(document.metadata),
        pages=pages_of(document.metadata),
        links=links,
        siblings={prefixed("source_id"): source, **({prefixed("namespace"): space} if space else {})},
    )
