"""MC-indexing as a LlamaIndex node parser: each section in three views."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any
from uuid import uuid4

from llama_index.core.bridge.pydantic import Field, SerializeAsAny, ValidationInfo, field_serializer, field_validator
from llama_index.core.llms import LLM
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document, ImageNode, NodeRelationship, TextNode
from llama_index.core.utils import get_tqdm_iterable
from pydantic import PrivateAttr, computed_field, model_validator

from drillrank import structure
from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.frameworks.components import ComponentFields
from drillrank.frameworks.metadata import prefixed
from drillrank.frameworks.pages import PAGE_NAMES
from drillrank.frameworks.settings import SplitterSettings
from drillrank.frameworks.splitting import Namespaces, SourceDocument, build_chunker, split_documents
from drillrank.llm import Requests, arun, run
from drillrank.settings import Preset, as_json
from drillrank.views import VIEWS, Chunking, Context, SectionChunk, SizeLimit, Summarizer, View
from llama_index_ext._llm import FrameworkLLM, cache_key
from llama_index_ext._records import copy_templates, refer_to
from llama_index_ext.pages import join_pages
from llama_index_ext.reader import convert_documents

VERSION = metadata.version("drillrank")
_IMAGE_FIELDS = ("image", "image_path", "image_url", "image_mimetype")
UNREAD = ("section_path", "section_level", "section_id", "view", "start", "end", "namespace", "format", *PAGE_NAMES)


class MultiViewNodeParser(ComponentFields, NodeParser):
    r"""Splits documents into their own sections and indexes each section as raw text, keywords and summary.

    The raw view is a `TextNode` whose text is the section, byte for byte. Later parts of a long table begin with the
    table's header. The other views refer to the raw node by `drillrank_section_id` and contain no copy of it.
    `MultiViewRetriever` returns raw nodes. A plain `index.as_retriever()` returns the views that it found.

    Only the text of a view is embedded. Metadata are those of the document. No model reads the keys
    `drillrank_section_path`, `drillrank_section_level`, `drillrank_section_id`, `drillrank_view`, `drillrank_start` and
    `drillrank_end`. PREVIOUS and NEXT link the raw nodes of a document, PARENT and CHILD its tree of sections.

    Sections of nodes that another parser made have no offsets. A `DrillrankWarning` says so.

    With `context`, headings and keywords of the section are embedded in front of the raw text, as metadata
    `drillrank_context`. The LLM does not read them.

    With `namespace` or `namespace_key`, documents with the same id in two namespaces (tenants, collections) have
    different node ids. The metadata `drillrank_namespace` contains the namespace.

    Pages of one file are joined to one document, with the first page's id. Before an `IngestionPipeline` with a
    docstore, join them with `llama_index_ext.pages.join_pages(documents)`: the pipeline passes on changed pages only.

    A serialized parser contains only the names of its `llm`, `summarizer`, `id_func` and of `tokens` in its settings,
    unless that is a string. `from_dict` needs them again: `from_dict(data, llm=llm)`. The cache of an
    `IngestionPipeline` identifies documents by text and metadata, not by id: equal documents share their nodes.

    Args:
        llm: LLM that writes keywords and summaries. None computes them.
        cache: Answers of the LLM in earlier runs: any mutable mapping of strings. By default in memory.
        id_func: Function from a running number and the document to a node id. By default, ids are UUIDs that depend
            only on the namespace, the document's id, the section and the view.
        include_metadata: True copies the document's metadata to the nodes.
        include_prev_next_rel: True links raw nodes to the previous and the next one.
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

    >>> document = Document(text="# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n")
    >>> nodes = MultiViewNodeParser(views=["raw", "keywords"]).get_nodes_from_documents([document])
    >>> [(node.metadata["drillrank_section_path"], node.metadata["drillrank_view"]) for node in nodes]
    [('Foxes', 'raw'), ('Foxes', 'keywords'), ('Whales', 'raw'), ('Whales', 'keywords')]
    """

    llm: SerializeAsAny[LLM] | None = Field(default=None, description="LLM that writes keywords and summaries.")
    cache: Any = Field(default_factory=dict, exclude=True, description="Answers of the LLM in earlier runs.")
    id_func: Callable[[int, BaseNode], str] | None = Field(  # type: ignore[assignment]  # the framework allows no None
        default=None, description="Function from a running number and the document to a node id."
    )
    views: tuple[View, ...] = Field(default=VIEWS, description="Views to make.")
    chunking: Chunking = Field(default="section", description="Unit of the index.")
    max_tokens: SizeLimit = Field(default="default", description="Largest size of a chunk.")
    min_tokens: SizeLimit = Field(default="default", description="Size below which sections are joined.")
    context: tuple[Context, ...] = Field(default=(), description="Text in front of the raw text in the index.")
    summarizer: Summarizer | None = Field(default=None, description="Function from texts to summaries.")
    namespace: str | None = Field(default=None, description="Namespace of all documents.")
    namespace_key: str | None = Field(default=None, description="Metadata key of each document's namespace.")
    preset: Preset | None = Field(default=None, description='"paper" sets what the paper fixes.')
    settings: SplitterSettings | dict[str, Any] = Field(
        default=SplitterSettings(), description="Settings that rarely change."
    )

    _warned: WarnOnce = PrivateAttr(default_factory=WarnOnce)
    _parser_id: str = PrivateAttr(default_factory=lambda: uuid4().hex)

    @field_validator("llm", "summarizer", "id_func", mode="before")
    @classmethod
    def _restore(cls, value: Any, info: ValidationInfo) -> Any:
        return _refuse_name(value, info.field_name) if isinstance(value, dict | str) else value

    @field_validator("settings", mode="before")
    @classmethod
    def _convert_settings(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("tokens"), dict):
            _refuse_name(value["tokens"], "settings")
        return super()._convert_settings(value)

    @field_serializer("settings")
    def _serialize_settings(self, settings: SplitterSettings) -> Any:
        tokens = settings.tokens
        named_tokens = tokens if tokens is None or isinstance(tokens, str) else {"class": self._name(tokens)}
        return {**as_json(settings), "tokens": named_tokens}

    @model_validator(mode="after")
    def _check(self) -> MultiViewNodeParser:
        Namespaces(self.namespace, self.namespace_key)
        build_chunker(self, None, "", self.cache)
        return self

    @field_serializer("summarizer", "id_func")
    def _name(self, value: Any) -> str | None:
        """Return a name, so that the framework's cache of transformations distinguishes settings."""
        return None if value is None else re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def version(self) -> str:
        """Version of drillrank. The framework does not use results that another version cached."""
        return VERSION

    @classmethod
    def from_defaults(cls, **fields: Any) -> MultiViewNodeParser:
        """Build a parser with these fields, as other node parsers do."""
        return cls(**fields)

    @classmethod
    def class_name(cls) -> str:
        """Return the name used in serialization."""
        return "MultiViewNodeParser"

    def get_nodes_from_documents(
        self, documents: Sequence[BaseNode | structure.Document], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        """Split documents of LlamaIndex, or those of `read_document`."""
        return super().get_nodes_from_documents(convert_documents(documents), show_progress, **kwargs)

    async def aget_nodes_from_documents(
        self, documents: Sequence[BaseNode | structure.Document], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        """Split documents without blocking the event loop."""
        return await super().aget_nodes_from_documents(convert_documents(documents), show_progress, **kwargs)

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any) -> list[BaseNode]:
        return run(self._split(nodes, show_progress))

    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        return await arun(self._split(nodes, show_progress))

    def _split(self, nodes: Sequence[BaseNode], show_progress: bool) -> Requests[list[BaseNode]]:
        nodes = join_pages(nodes) if self._settings.join_pages else nodes
        llm = None if self.llm is None else FrameworkLLM(self.llm, "write a view")
        # An LLM that cannot be identified has an identity of its own in each parser.
        llm_identity = "" if self.llm is None else cache_key(self.llm) or f"{self._parser_id} {id(self.llm)}"
        documents = list(map(self._read_document, nodes))
        documents_with_bar = get_tqdm_iterable(documents, show_progress, "Parsing sections")
        chunker = build_chunker(self, llm, llm_identity, self.cache)
        chunk_lists = yield from split_documents(chunker, documents_with_bar, show_progress)
        self._warn_about_missing_offsets(nodes)
        return [
            piece
            for node, document, chunks in zip(nodes, documents, chunk_lists, strict=True)
            for piece in self._build_nodes(node, document, chunks)
        ]

    def _read_document(self, node: BaseNode) -> SourceDocument:
        namespace = Namespaces(self.namespace, self.namespace_key).find(node.metadata, node.node_id)
        return SourceDocument(node.node_id, namespace, node.get_content(), node.metadata)

    def _postprocess_parsed_nodes(self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]) -> list[BaseNode]:
        # The framework would guess offsets with `find` and link all views to each other.
        return nodes

    def _warn_about_missing_offsets(self, nodes: Sequence[BaseNode]) -> None:
        document_ids = [node.ref_doc_id for node in nodes if not _is_document(node)]
        if self._warned.new("offsets", document_ids):
            warn(
                "MultiViewNodeParser: sections of nodes that another parser made have no offsets. Parse the documents "
                "themselves."
            )

    def _build_nodes(self, node: BaseNode, document: SourceDocument, chunks: Sequence[SectionChunk]) -> list[BaseNode]:
        """Return the nodes of a document's views, the raw ones linked."""
        node_ids = {
            chunk.id: self.id_func(number, node) if self.id_func else chunk.id for number, chunk in enumerate(chunks)
        }
        image = {name: value for name in _IMAGE_FIELDS if (value := getattr(node, name, None)) is not None}
        described = document if self.include_metadata else replace(document, metadata={})
        raw_by_id: dict[str, TextNode] = {}
        nodes: list[BaseNode] = []
        for chunk in chunks:
            section_id = node_ids.get(chunk.section_id, chunk.section_id)  # the raw node may not be among the views
            names = {"section_id": section_id, "context": chunk.context or None}
            metadata = described.piece_metadata(chunk, self._settings, has_offsets=_is_document(node), **names)
            fields = {"id_": node_ids[chunk.id], "text": chunk.text, **_node_fields(node, metadata)}
            # No view is an `IndexNode`. In a store with texts, an index lists these nodes alone, and its own retriever
            # asks stores such as Qdrant for listed nodes only: the raw nodes would be lost.
            if chunk.view == "raw":
                raw_node = ImageNode(**fields, **image) if image else TextNode(**fields)
                nodes.append(raw_by_id.setdefault(chunk.id, raw_node))
            else:
                nodes.append(TextNode(**fields))
        self._link_nodes([chunk for chunk in chunks if chunk.view == "raw"], raw_by_id)
        return nodes

    def _link_nodes(self, chunks: Sequence[SectionChunk], raw_by_id: dict[str, TextNode]) -> None:
        """Link raw nodes to their parents, children and neighbors."""
        # Without metadata: a node with a hundred children would contain all of theirs.
        info_by_id: dict[str | None, Any] = {
            id_: refer_to(node).model_copy(update={"metadata": {}}) for id_, node in raw_by_id.items()
        }
        order = [None, *(chunk.id for chunk in chunks), None]
        for chunk, previous_id, next_id in zip(chunks, order, order[2:], strict=False):
            links = {NodeRelationship.PARENT: chunk.parent_id}
            if self.include_prev_next_rel:
                links |= {NodeRelationship.PREVIOUS: previous_id, NodeRelationship.NEXT: next_id}
            raw_by_id[chunk.id].relationships |= {
                relationship: info_by_id[id_] for relationship, id_ in links.items() if id_ is not None
            }
            if chunk.parent_id is not None:
                parent = raw_by_id[chunk.parent_id]
                children: Any = parent.relationships.setdefault(NodeRelationship.CHILD, [])
                children.append(info_by_id[chunk.id])


def _is_document(node: BaseNode) -> bool:
    """Return True if the node is not a piece of another one."""
    return node.ref_doc_id in (None, node.node_id)


def _node_fields(node: BaseNode, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a piece that depend on its document and metadata."""
    unread_keys = [prefixed(name) for name in UNREAD if prefixed(name) in metadata]
    return {
        "relationships": {NodeRelationship.SOURCE: node.source_node or refer_to(node)},
        "start_char_idx": metadata.get(prefixed("start")),
        "end_char_idx": metadata.get(prefixed("end")),
        "metadata": metadata,
        "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, *unread_keys],
        "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, *unread_keys, prefixed("context")],
        **copy_templates(node),
    }


def _refuse_name(value: object, name: str | None) -> None:
    """Refuse the name of an object that was serialized without it."""
    raise InvalidInput(
        f"{name} of a serialized MultiViewNodeParser is only a name, got {value!r:.100}. Pass it again, as in "
        f"MultiViewNodeParser.from_dict(data, {name}={name}), or pass {name}=None to do without."
    )
