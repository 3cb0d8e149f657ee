"""MC-indexing as a LangChain document transformer: every section in three views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_text_splitters import TextSplitter

from drillrank import structure
from drillrank.frameworks.constructors import component
from drillrank.frameworks.settings import SplitterSettings
from drillrank.frameworks.views import SourceDocument, chunker_of, namespace_of, split
from drillrank.llm import Requests, arun, run
from drillrank.settings import as_settings
from drillrank.views import (
    MAX_TOKENS,
    MIN_TOKENS,
    VIEWS,
    Chunking,
    Context,
    SectionChunk,
    Summarizer,
    View,
)
from langchain_ext._llm import FrameworkLLM, cache_key
from langchain_ext._records import document_names
from langchain_ext.loader import convert_document
from langchain_ext.pages import join_pages


@component
@dataclass(eq=False, repr=False)
class MultiViewTextSplitter(TextSplitter):
    r"""Cuts documents along their own sections and gives each section as raw text, keywords and summary.

    The raw view's text is the section, byte for byte, in later parts of a long table behind its head; the others lead
    to it by `drillrank_section_id` and hold no copy of it: `MultiViewRetriever` fetches it from the store.
    `Document.id` depends on the namespace, the document and the section only. Metadata are the document's, and
    `drillrank_` with `section_path`, `section_level`, `section_id`, `view`, `start`, `end`, `source_id`, and, where
    there are such sections, `previous_id`, `next_id` and `parent_id`; and the host's `start_index`, unless the document
    has one of its own.

    With `context`, the headings and the section's keywords stand in front of the raw text in `page_content`, which is
    what a vector store embeds; the source is in `drillrank_section_text`, and `MultiViewRetriever` returns that.

    With `namespace` or `namespace_key`, documents of one id in two namespaces (tenants, collections) have different
    pieces; the namespace is the metadata `drillrank_namespace`.

    Args:
        llm: Chat model or text model that writes keywords and summaries; None computes them. Its calls belong to the
            run that surrounds the splitter, if there is one.
        cache: Remembers what the LLM wrote: any mutable mapping of strings; by default in memory.
        show_progress: Whether a bar counts the LLM calls.
        views: Views to make: `raw`, which the others lead to, `keywords`, `summary`.
        chunking: What is indexed as one thing: `"section"`, `"passage"` (consecutive blocks of up to 1,200
            characters, short sections joined), `"paragraph"`, `"content_aware_fixed"` (sentences of one section, up to
            `max_tokens`), or `"fixed"` (the same across sections).
        max_tokens: Largest size of a chunk, by default what most encoders read; longer sections are cut between
            paragraphs, then sentences. None for no limit.
        min_tokens: Neighbouring sections of fewer tokens are joined under their parent; None for none.
        context: What stands in front of the raw text in the index: `"headings"`, `"keywords"` of the section, or both.
        summarizer: Makes the summaries, in the LLM's place too: a function from texts to summaries, for example a
            `drillrank.views.HuggingFaceSummarizer`.
        namespace: Of all documents.
        namespace_key: Key of the documents' metadata that holds the namespace of each.
        settings: What is rarely touched: `drillrank.frameworks.settings.SplitterSettings`.

    Raises:
        InvalidInput: unknown views, none, settings that do not go together, or a document without a
            namespace under `namespace_key`.
        LLMFailure: A call failed or its answer is unusable, and `settings.on_failure` says to raise.

    >>> splitter = MultiViewTextSplitter(views=["raw", "keywords"])
    >>> documents = splitter.create_documents(["# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n"])
    >>> [(document.metadata["drillrank_section_path"], document.metadata["drillrank_view"]) for document in documents]
    [('Foxes', 'raw'), ('Foxes', 'keywords'), ('Whales', 'raw'), ('Whales', 'keywords')]
    """

    views: Sequence[View] = VIEWS
    _: KW_ONLY
    llm: Runnable[Any, Any] | None = None
    chunking: Chunking = "section"
    max_tokens: int | None = MAX_TOKENS
    min_tokens: int | None = MIN_TOKENS
    context: Sequence[Context] = ()
    summarizer: Summarizer | None = None
    namespace: str | None = None
    namespace_key: str | None = None
    cache: MutableMapping[str, str] | None = None
    show_progress: bool = False
    settings: SplitterSettings | Mapping[str, Any] = SplitterSettings()

    def __post_init__(self) -> None:
        TextSplitter.__init__(self)
        self.settings = self._settings = as_settings(SplitterSettings, self.settings)
        llm = None if self.llm is None else FrameworkLLM(self.llm, "write a view")
        who = "" if self.llm is None else cache_key(self.llm)
        self._chunker = chunker_of(self, llm, who, {} if self.cache is None else self.cache)

    def split_text(self, text: str) -> list[str]:
        """The texts of one text's views; `split_documents` and `create_documents` say of each what it is, too."""
        return [document.page_content for document in self.split_documents([Document(page_content=text)])]

    def create_documents(self, texts: list[str], metadatas: list[dict[str, Any]] | None = None) -> list[Document]:
        """The views of several texts, each with its metadata."""
        each = zip(texts, metadatas or [{}] * len(texts), strict=True)
        return self.split_documents([Document(page_content=text, metadata=metadata) for text, metadata in each])

    def split_documents(self, documents: Iterable[Document | structure.Document]) -> list[Document]:
        """Return the views of all documents, also of those of `read_document`, in order.

        Documents without an id are told apart by metadata and text.
        """
        return run(self._split(documents))

    def transform_documents(self, documents: Sequence[Document | structure.Document], **kwargs: Any) -> list[Document]:
        """As `split_documents`; the host's name for it."""
        return self.split_documents(documents)

    async def atransform_documents(
        self, documents: Sequence[Document | structure.Document], **kwargs: Any
    ) -> list[Document]:
        """As `transform_documents`; computes on a worker thread and awaits the LLM."""
        return await arun(self._split(documents))

    def _split(self, documents: Iterable[Document | structure.Document]) -> Requests[list[Document]]:
        sources = self._sources([convert_document(document) for document in documents])
        chunks = yield from split(self._chunker, sources, self.show_progress)
        return [*chain(*map(self._pieces, sources, chunks))]

    def _sources(self, documents: Sequence[Document]) -> list[SourceDocument]:
        documents = join_pages(documents) if self._settings.join_pages else documents
        spaces = [namespace_of(self, document.metadata, _called(document)) for document in documents]
        names = {
            space: iter(
                document_names(
                    document for document, namespace in zip(documents, spaces, strict=True) if namespace == space
                )
            )
            for space in dict.fromkeys(spaces)
        }
        return [
            SourceDocument(next(names[space]), space, document.page_content, document.metadata)
            for document, space in zip(documents, spaces, strict=True)
        ]

    def _pieces(self, document: SourceDocument, chunks: Sequence[SectionChunk]) -> Iterator[Document]:
        raw = [chunk for chunk in chunks if chunk.view == "raw"]
        order = [None, *(chunk.id for chunk in raw), None]
        around = {
            chunk.id: {"previous_id": before, "next_id": behind, "parent_id": chunk.parent_id}
            for before, chunk, behind in zip(order, raw, order[2:], strict=False)
        }
        for chunk in chunks:
            names: dict[str, Any] = {"source_id": document.name, "section_text": chunk.text if chunk.context else None}
            metadata = document.metadata_of(chunk, self._settings, **names | around.get(chunk.section_id, {}))
            yield Document(
                id=chunk.id, page_content=chunk.indexed_text, metadata={"start_index": chunk.start, **metadata}
            )


def _called(document: Document) -> str:
    return document.id or str(document.metadata.get("source", document.page_content[:40]))
