"""Cutting a host's documents into views: the core cuts, and each piece says what it is a piece of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from drillrank.hosts.metadata import theirs, with_own
from drillrank.hosts.namespaces import in_namespace
from drillrank.hosts.pages import at_pages, pages_of
from drillrank.hosts.settings import SplitterSettings
from drillrank.llm import Call, Requests
from drillrank.structure import breadcrumb, parse_document
from drillrank.views import MultiViewChunker, SectionChunk


@dataclass(frozen=True, slots=True)
class Uncut:
    """A document to be cut.

    Attributes:
        name: Different from all others of its namespace.
        namespace: None if there is none.
        text: The document.
        metadata: The host's, which say what format it has and what pages.
    """

    name: str
    namespace: str | None
    text: str
    metadata: Mapping[str, Any]

    def metadata_of(
        self, chunk: SectionChunk, settings: SplitterSettings, begin: int | None = 0, **names: Any
    ) -> dict[str, Any]:
        """The user's metadata, at the piece's pages, and ours.

        Args:
            chunk: The piece.
            settings: Of the splitter.
            begin: Where the document begins in the one that it was cut from; None if nobody knows.
            names: What else of ours the host writes, by bare names.
        """
        start, end = (None, None) if begin is None else (begin + chunk.start, begin + chunk.end)
        own: dict[str, Any] = {
            "section_path": breadcrumb(chunk.path, settings.separator),
            "section_level": chunk.level,
            "section_id": chunk.section_id,
            "view": chunk.view,
            "start": start,
            "end": end,
            "namespace": self.namespace,
        }
        return with_own(at_pages(theirs(self.metadata), pages_of(self.metadata), start, end), **own | names)


def split(
    chunker: MultiViewChunker, documents: Iterable[Uncut], show_progress: bool
) -> Requests[list[Sequence[SectionChunk]]]:
    """The views of each document."""
    arguments = [_parsed(document) for document in documents], show_progress
    [chunks] = yield [Call(partial(chunker.chunks, *arguments), partial(chunker.achunks, *arguments))]
    return chunks  # type: ignore[no-any-return]


def _parsed(document: Uncut) -> tuple[str, Any]:
    id_ = in_namespace(document.name, document.namespace)
    return id_, parse_document(document.text, metadata=document.metadata)
