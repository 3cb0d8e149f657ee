"""LangChain documents as sections that a store holds, whole or in a view."""

from __future__ import annotations

from langchain_core.documents import Document

from drillrank.hosts.metadata import is_section, own, prefixed
from drillrank.hosts.sections import StoredSection, stored_section
from langchain_ext._documents import document_names


def stored_sections(documents: list[Document]) -> list[StoredSection]:
    """What each of some documents is; no two are the same, if they have no ids."""
    named = zip(document_names(documents), documents, strict=True)
    return [stored_section(document, document.metadata, _text(document), id=name) for name, document in named]


def read_section(document: Document) -> StoredSection:
    """What one document is."""
    return stored_sections([document])[0]


def _text(document: Document) -> str:
    """Of the view; the raw one may have context in front of it in the store."""
    if not is_section(document.metadata):
        return document.page_content
    names = own(document.metadata)
    return str(names.get("section_text", document.page_content)) if names["view"] == "raw" else document.page_content


def as_raw(document: Document, text: str) -> Document:
    """The section itself; its id is the section's, whatever the store calls the record."""
    names = own(document.metadata)
    metadata = {key: value for key, value in document.metadata.items() if key != prefixed("section_text")}
    return document.model_copy(update={"id": str(names["section_id"]), "page_content": text, "metadata": metadata})
