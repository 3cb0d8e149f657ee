"""LangChain documents, grouped into the source documents that they are pieces of."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from drillrank.dialogue import Finished, advance
from drillrank.drilldown.rebuilding import Piece
from drillrank.hosts import keys
from langchain_ext._documents import document_names
from langchain_ext._sections import astored_sections, stored_sections


class StoredDocuments:
    """Source documents by name, in order: each is one document, or what `MultiViewTextSplitter` made of it."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._sections: dict[str, dict[str, Document]] = {}
        documents = list(documents)
        whole = [document for document in documents if not is_section(document)]
        names = iter(document_names(whole))
        for document in documents:
            self.add(next(names) if not is_section(document) else source_id(document), [document])

    def __len__(self) -> int:
        return len(self._sections)

    def add(self, name: str, documents: Iterable[Document]) -> None:
        """Take documents in, each section once, whatever its view."""
        for document in documents:
            if keys.own(document.metadata).get("view", "raw") == "raw" or not is_section(document):
                self._sections.setdefault(name, {}).setdefault(_section_id(document), document)

    def of(self, name: str) -> list[Document]:
        """What the source document of that name is made of, or nothing."""
        return list(self._sections.get(name, {}).values())

    def pieces(self) -> list[list[Piece]]:
        """For the core, source by source."""
        return [list(map(_piece, documents.values())) for documents in self._sections.values()]

    def named_at(self, number: int, start: int) -> tuple[str, Document]:
        """The name of the source document with that number, and the document that holds its text at that offset."""
        name, documents = list(self._sections.items())[number]
        return name, max((found for found in documents.values() if _start(found) <= start), key=_start)


def is_section(document: Document) -> bool:
    """Whether `MultiViewTextSplitter` made it."""
    return keys.is_section(document.metadata)


def source_id(document: Document) -> str:
    """The source document of a section."""
    return str(keys.own(document.metadata).get("source_id") or _section_id(document))


def all_sections(store: VectorStore, query: str, sections: Sequence[Document]) -> list[Document]:
    """The sections given, and what the store knows of those before and behind them."""
    lookups = _section_lookups(sections)
    step = advance(lookups, None)
    while not isinstance(step, Finished):
        step = advance(lookups, stored_sections(store, query, step))
    return step.result


async def aall_sections(store: VectorStore, query: str, sections: Sequence[Document]) -> list[Document]:
    """As `all_sections`, without blocking the event loop."""
    lookups = _section_lookups(sections)
    step = advance(lookups, None)
    while not isinstance(step, Finished):
        step = advance(lookups, await astored_sections(store, query, step))
    return step.result


def _section_lookups(sections: Sequence[Document]) -> Generator[list[str], Sequence[Document], list[Document]]:
    """Walks along the links between sections: yields ids, receives what there is of them."""
    found = {_section_id(section): section for section in sections if _is_raw(section)}
    latest: Iterable[Document] = sections
    while True:
        names = ("section_id", "previous_id", "next_id")
        around = [keys.own(section.metadata).get(name) for section in latest for name in names]
        wanted = [id_ for id_ in dict.fromkeys(around) if id_ and id_ not in found]
        if not wanted:
            return list(found.values())
        answered = yield wanted
        latest = [section for section in answered if _is_raw(section) and _section_id(section) not in found]
        found |= {_section_id(section): section for section in latest}


def _piece(document: Document) -> Piece:
    metadata = keys.own(document.metadata)
    if not is_section(document):
        return Piece(document.page_content, metadata=document.metadata)
    text = str(metadata.get("section_text", document.page_content))
    return Piece(text, str(metadata.get("section_path", "")), _start(document), metadata=document.metadata)


def _start(document: Document) -> int:
    return int(keys.own(document.metadata).get("start", 0)) if is_section(document) else 0


def _is_raw(document: Document) -> bool:
    return is_section(document) and keys.own(document.metadata)["view"] == "raw"


def _section_id(document: Document) -> str:
    return str(keys.own(document.metadata)["section_id"]) if is_section(document) else str(document.id)
