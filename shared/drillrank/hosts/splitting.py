"""Cutting a host's documents into views: namespaces, and what pieces say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.hosts.metadata import user_metadata, with_result_metadata
from drillrank.hosts.pages import at_pages, pages_of
from drillrank.hosts.settings import SplitterSettings
from drillrank.llm import LLM, Call, Requests
from drillrank.passages import stable_uuid
from drillrank.structure import breadcrumb, parse_document
from drillrank.views import MultiViewChunker, SectionChunk, ViewWriter


def chunker_of(component: Any, llm: LLM | None, who: str, cache: MutableMapping[str, str]) -> MultiViewChunker:
    """What cuts documents as a component's fields say.

    Args:
        component: Of the host.
        llm: Writes keywords and summaries; None computes them.
        who: Tells the LLM's answers from another's.
        cache: Remembers what the LLM wrote.

    Raises:
        InvalidInput: a field cannot be used, or a namespace is said twice.
    """
    space, key, settings = component.namespace, component.namespace_key, component.settings
    if space is not None and key is not None:
        raise InvalidInput("A namespace is given as namespace or read from the metadata under namespace_key, not both.")
    for name, value in (("namespace", space), ("namespace_key", key)):
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise InvalidInput(f"{name} is a string that is not blank, or None; not {value!r:.200}.")
    return MultiViewChunker(
        component.views,
        llm=llm,
        chunking=component.chunking,
        max_tokens=component.max_tokens,
        min_tokens=component.min_tokens,
        context=component.context,
        summarizer=component.summarizer,
        writer=ViewWriter(who, cache, on_failure=settings.on_failure, max_calls=settings.max_calls),
        settings=settings,
    )


def namespace_of(component: Any, metadata: Mapping[str, Any], document: str) -> str | None:
    """The namespace of a document: the one given, or what its metadata hold under the key.

    Args:
        component: Of the host.
        metadata: Of the document.
        document: What an error calls it.

    Raises:
        InvalidInput: the document has no string or number under the key, or a blank one.
    """
    if component.namespace_key is None:
        return component.namespace  # type: ignore[no-any-return]
    value = metadata.get(component.namespace_key)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise InvalidInput(
            f"Document {document!r:.200} has {value!r:.200} under {component.namespace_key!r:.200}, its namespace_key: "
            "a name is needed there, so that no two namespaces are mixed."
        )
    return str(value)


def in_namespace(document_id: str, namespace: str | None) -> str:
    """What tells a document from all others of all namespaces; its id, where it is in none.

    >>> in_namespace("guide.md", None)
    'guide.md'
    >>> in_namespace("guide.md", "a") == in_namespace("guide.md", "b")
    False
    """
    return document_id if namespace is None else stable_uuid("namespace", namespace, document_id)


@dataclass(frozen=True, slots=True)
class SourceDocument:
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
        self, chunk: SectionChunk, settings: SplitterSettings, *, placed: bool = True, **names: Any
    ) -> dict[str, Any]:
        """The user's metadata, at the piece's pages, and ours.

        Args:
            chunk: The piece.
            settings: Of the splitter.
            placed: Whether it is a document, in which offsets count, and not a piece of one.
            names: What else of ours the host writes, by bare names.
        """
        start, end = (chunk.start, chunk.end) if placed else (None, None)
        section_metadata: dict[str, Any] = {
            "section_path": breadcrumb(chunk.path, settings.separator),
            "section_level": chunk.level,
            "section_id": chunk.section_id,
            "view": chunk.view,
            "start": start,
            "end": end,
            "namespace": self.namespace,
        }
        return with_result_metadata(
            at_pages(user_metadata(self.metadata), pages_of(self.metadata), start, end), **section_metadata | names
        )


def split(
    chunker: MultiViewChunker, documents: Iterable[SourceDocument], show_progress: bool
) -> Requests[list[Sequence[SectionChunk]]]:
    """The views of each document."""
    arguments = [_parsed(document) for document in documents], show_progress
    [chunks] = yield [Call(partial(chunker.chunks, *arguments), partial(chunker.achunks, *arguments))]
    return chunks  # type: ignore[no-any-return]


def _parsed(document: SourceDocument) -> tuple[str, Any]:
    id_ = in_namespace(document.name, document.namespace)
    return id_, parse_document(document.text, metadata=document.metadata)
