"""Split documents into the views of their sections: namespaces, document names and the metadata of the pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.frameworks.metadata import user_metadata, with_result_metadata
from drillrank.frameworks.pages import read_pages, with_pages_of_span
from drillrank.frameworks.settings import SplitterSettings
from drillrank.llm import LLM, FunctionRequest, Requests
from drillrank.passages import stable_uuid
from drillrank.settings import with_preset
from drillrank.structure import Document, breadcrumb, parse_document
from drillrank.views import MultiViewChunker, SectionChunk, ViewWriter


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Namespaces of documents: the same for all of them, or read from the metadata of each.

    Args:
        namespace: Namespace of all documents. None: the key decides.
        namespace_key: Metadata key of each document's namespace. None reads no metadata.

    Raises:
        InvalidInput: Both are set, or one is blank or not a string.

    >>> Namespaces(namespace_key="tenant").find({"tenant": 7}, "guide.md")
    '7'
    """

    namespace: str | None = None
    namespace_key: str | None = None

    def __post_init__(self) -> None:
        if self.namespace is not None and self.namespace_key is not None:
            raise InvalidInput(
                "namespace and namespace_key exclude each other, got "
                f"{self.namespace!r:.200} and {self.namespace_key!r:.200}. Remove one of them."
            )
        for name, value in (("namespace", self.namespace), ("namespace_key", self.namespace_key)):
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise InvalidInput(f"{name} must be a string that is not blank, or None, got {value!r:.200}.")

    def find(self, metadata: Mapping[str, Any], document_name: str) -> str | None:
        """Return the namespace of a document; None if documents have none.

        Args:
            metadata: Metadata of the document.
            document_name: Name of the document in an error.

        Raises:
            InvalidInput: The metadata value under the key is missing, blank, or neither a string nor a whole number.
        """
        if self.namespace_key is None:
            return self.namespace
        value = metadata.get(self.namespace_key)
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise InvalidInput(
                f"Document {document_name!r:.200} has {value!r:.200} under {self.namespace_key!r:.200}, its "
                "namespace_key. Give each document a string or whole number there."
            )
        return str(value)


def qualified_name(document_name: str, namespace: str | None) -> str:
    """Return an id that no other document of any namespace has. Without a namespace, it is the name.

    >>> qualified_name("guide.md", None)
    'guide.md'
    >>> qualified_name("guide.md", "a") == qualified_name("guide.md", "b")
    False
    """
    return document_name if namespace is None else stable_uuid("namespace", namespace, document_name)


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """Document to split.

    Attributes:
        name: Name that no other document of the namespace has.
        namespace: Namespace of the document. None if documents have none.
        text: Text of the document.
        metadata: Metadata of the framework's document, which may name its format and pages.
    """

    name: str
    namespace: str | None
    text: str
    metadata: Mapping[str, Any]

    def parse(self) -> tuple[str, Document]:
        """Return the qualified name and the parsed document."""
        return qualified_name(self.name, self.namespace), parse_document(self.text, metadata=self.metadata)

    def piece_metadata(
        self, chunk: SectionChunk, settings: SplitterSettings, *, has_offsets: bool = True, **names: Any
    ) -> dict[str, Any]:
        """Return the metadata of a piece: those of the user, for the pages of the piece, and those of drillrank.

        Args:
            chunk: The piece.
            settings: Settings of the splitter.
            has_offsets: False if the document is a piece of another one, so that its offsets are not written.
            names: Further metadata of drillrank, under names without the prefix.
        """
        start, end = (chunk.start, chunk.end) if has_offsets else (None, None)
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
            with_pages_of_span(user_metadata(self.metadata), read_pages(self.metadata), start, end),
            **section_metadata | names,
        )


def build_chunker(
    component: Any, llm: LLM | None, llm_identity: str, cache: MutableMapping[str, str]
) -> MultiViewChunker:
    """Return the chunker of a splitter.

    Args:
        component: The splitter. It has all fields of the chunker.
        llm: LLM that writes views. None computes them.
        llm_identity: Key of the LLM in the cache.
        cache: Answers of the LLM in earlier runs.
    """
    settings = with_preset(component._settings, component.preset)
    chunker = MultiViewChunker(
        component.views,
        llm=llm,
        chunking=component.chunking,
        max_tokens=component.max_tokens,
        min_tokens=component.min_tokens,
        context=component.context,
        summarizer=component.summarizer,
        settings=settings,
    )
    return chunker.with_writer(ViewWriter(llm_identity, cache, settings.on_failure, settings.max_calls))


def split_documents(
    chunker: MultiViewChunker, documents: Iterable[SourceDocument], show_progress: bool
) -> Requests[list[list[SectionChunk]]]:
    """Return the views of each document's chunks.

    Args:
        chunker: Chunker of the splitter.
        documents: Documents to split.
        show_progress: True shows a bar that counts the LLM calls.
    """
    parsed = [document.parse() for document in documents]
    [chunks] = yield [FunctionRequest.of(chunker.chunks, chunker.achunks, parsed, show_progress)]
    return chunks  # type: ignore[no-any-return]
