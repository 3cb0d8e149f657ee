"""MC-indexing as a LangChain document transformer: each section in three views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_text_splitters import TextSplitter

from drillrank import structure
from drillrank.frameworks.constructors import component
from drillrank.frameworks.settings import SplitterSettings
from drillrank.frameworks.splitting import Namespaces, SourceDocument, build_chunker, split_documents
from drillrank.llm import Requests, arun, run
from drillrank.settings import Preset, as_settings
from drillrank.views import VIEWS, Chunking, Context, SectionChunk, SizeLimit, Summarizer, View
from langchain_ext._llm import FrameworkLLM, cache_key
from langchain_ext._records import document_names
from langchain_ext.loader import convert_document
from langchain_ext.pages import join_pages


@component
@dataclass(eq=False, repr=False)
class MultiViewTextSplitter(TextSplitter):
    r"""Splits documents into their own sections and returns each section as raw text, keywords and summary.

    The text of the raw view is the section, byte for byte. Later parts of a long table begin with the table's header.
    The other views refer to it by `drillrank_section_id` and contain no copy of it: `MultiViewRetriever` fetches it
    from the store. `Document.id` depends only on the namespace, the document, the section and the view. Metadata are
    those of the document and, with the prefix `drillrank_`: `section_path`, `section_level`, `section_id`, `view`,
    `start`, `end`, `source_id`, and, if there are such sections, `previous_id`, `next_id` and `parent_id`. The
    framework's `start_index` is added unless the document has one of its own.

    With `context`, headings and keywords of the section are in front of the raw text in `page_content`, which a vector
    store embeds. The source is in `drillrank_section_text`, and `MultiViewRetriever` returns it.

    With `namespace` or `namespace_key`, documents with the same id in two namespaces (tenants, collections) have
    different ids of their pieces. The metadata `drillrank_namespace` contains the namespace.

    Args:
        llm: Chat model or text model that writes keywords and summaries. None computes them. Its calls belong to the
            run around the splitter, if there is one.
        cache: Answers of the LLM in earlier runs: any mutable mapping of strings. By default in memory.
        show_progress: True shows a bar that counts the LLM calls.
        views: Views to make: `raw`, which the others refer to, `keywords`, `summary`.
        chunking: Unit of the index: `"section"`, `"passage"` (consecutive blocks of up to 1,200 characters, short
            sections joined), `"paragraph"`, `"content_aware_fixed"` (sentences of one section, up to `max_tokens`), or
            `"fixed"` (the same across sections).
        max_tokens: Largest size of a chunk. Longer sections are split between paragraphs, then sentences. None sets no
            limit. `"default"` is 512, what most encoders read, or no limit with the preset.
        min_tokens: Neighboring sections of fewer tokens are joined under their parent. None joins none. `"default"` is
            64, or None with the preset.
        context: Text in front of the raw text in the index: `"headings"`, `"keywords"` of the section, or both.
        summarizer: Function from texts to summaries, for example a `drillrank.views.HuggingFaceSummarizer`. It replaces
            the LLM for summaries.
        namespace: Namespace of all documents.
        namespace_key: Metadata key of each document's namespace.
        preset: `"paper"` sets what the paper fixes and other arguments leave open: whole sections, and keywords and
            summaries without headings. `MultiViewRetriever` has the rest of it. The paper's LLM writes the views. None
            keeps `settings.preset`.
        settings: Settings that rarely change: `drillrank.frameworks.settings.SplitterSettings`.

    Raises:
        InvalidInput: A view is unknown, there are no views, settings exclude each other, or a document has no
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
    max_tokens: SizeLimit = "default"
    min_tokens: SizeLimit = "default"
    context: Sequence[Context] = ()
    summarizer: Summarizer | None = None
    namespace: str | None = None
    namespace_key: str | None = None
    preset: Preset | None = None
    cache: MutableMapping[str, str] | None = None
    show_progress: bool = False
    settings: SplitterSettings | Mapping[str, Any] = SplitterSettings()

    def __post_init__(self) -> None:
        TextSplitter.__init__(self)
        self.settings = self._settings = as_settings(SplitterSettings, self.settings)
        self._namespaces = Namespaces(self.namespace, self.namespace_key)
        llm = None if self.llm is None else FrameworkLLM(self.llm, "write a view")
        llm_identity = "" if self.llm is None else cache_key(self.llm)
        self._chunker = build_chunker(self, llm, llm_identity, {} if self.cache is None else self.cache)

    def split_text(self, text: str) -> list[str]:
        """Return the texts of one text's views. `split_documents` and `create_documents` add metadata."""
        return [document.page_content for document in self.split_documents([Document(page_content=text)])]

    def create_documents(self, texts: list[str], metadatas: list[dict[str, Any]] | None = None) -> list[Document]:
        """Return the views of several texts, each with the metadata of its text."""
        texts_and_metadata = zip(texts, metadatas or [{}] * len(texts), strict=True)
        return self.split_documents(
            [Document(page_content=text, metadata=metadata) for text, metadata in texts_and_metadata]
        )

    def split_documents(self, documents: Iterable[Document | structure.Document]) -> list[Document]:
        """Return the views of all documents, also of those of `read_document`, in order.

        Documents without an id are distinguished by metadata and text.
        """
        return run(self._split(documents))

    def transform_documents(self, documents: Sequence[Document | structure.Document], **kwargs: Any) -> list[Document]:
        """Do the same as `split_documents`, under the framework's name for it."""
        return self.split_documents(documents)

    async def atransform_documents(
        self, documents: Sequence[Document | structure.Document], **kwargs: Any
    ) -> list[Document]:
        """Do the same as `transform_documents`, on a worker thread, and await the LLM."""
        return await arun(self._split(documents))

    def _split(self, documents: Iterable[Document | structure.Document]) -> Requests[list[Document]]:
        sources = self._read_documents([convert_document(document) for document in documents])
        chunk_lists = yield from split_documents(self._chunker, sources, self.show_progress)
        return [
            piece
            for source, chunks in zip(sources, chunk_lists, strict=True)
            for piece in self._build_documents(source, chunks)
        ]

    def _read_documents(self, documents: Sequence[Document]) -> list[SourceDocument]:
        """Return the documents with names that are unique in their namespaces."""
        documents = join_pages(documents) if self._settings.join_pages else documents
        namespaces = [
            self._namespaces.find(document.metadata, _name_in_error(number, document))
            for number, document in enumerate(documents, 1)
        ]
        documents_by_namespace: dict[str | None, list[Document]] = {}
        for document, namespace in zip(documents, namespaces, strict=True):
            documents_by_namespace.setdefault(namespace, []).append(document)
        names = {namespace: iter(document_names(members)) for namespace, members in documents_by_namespace.items()}
        return [
            SourceDocument(next(names[namespace]), namespace, document.page_content, document.metadata)
            for document, namespace in zip(documents, namespaces, strict=True)
        ]

    def _build_documents(self, document: SourceDocument, chunks: Sequence[SectionChunk]) -> Iterator[Document]:
        """Yield the views of a document, with links between neighboring sections."""
        raw_chunks = [chunk for chunk in chunks if chunk.view == "raw"]
        order = [None, *(chunk.id for chunk in raw_chunks), None]
        links_by_id = {
            chunk.id: {"previous_id": previous_id, "next_id": next_id, "parent_id": chunk.parent_id}
            for previous_id, chunk, next_id in zip(order, raw_chunks, order[2:], strict=False)
        }
        for chunk in chunks:
            names: dict[str, Any] = {"source_id": document.name, "section_text": chunk.text if chunk.context else None}
            metadata = document.piece_metadata(chunk, self._settings, **names | links_by_id.get(chunk.section_id, {}))
            yield Document(
                id=chunk.id, page_content=chunk.indexed_text, metadata={"start_index": chunk.start, **metadata}
            )


def _name_in_error(number: int, document: Document) -> str:
    return document.id or str(document.metadata.get("source", number))
