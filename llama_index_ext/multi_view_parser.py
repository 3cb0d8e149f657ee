"""MC-indexing as a LlamaIndex node parser: every section in three views."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any
from uuid import uuid4

from llama_index.core.bridge.pydantic import (
    Field,
    SerializeAsAny,
    ValidationInfo,
    field_serializer,
    field_validator,
)
from llama_index.core.llms import LLM
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    NodeRelationship,
    TextNode,
)
from llama_index.core.utils import get_tqdm_iterable
from pydantic import PrivateAttr, computed_field, model_validator

from drillrank import structure
from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.frameworks.components import ComponentFields
from drillrank.frameworks.metadata import prefixed
from drillrank.frameworks.pages import PAGE_NAMES
from drillrank.frameworks.settings import SplitterSettings
from drillrank.frameworks.views import SourceDocument, chunker_of, namespace_of, split
from drillrank.llm import Requests, arun, run
from drillrank.settings import as_json
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
from llama_index_ext._llm import FrameworkLLM, cache_key
from llama_index_ext._records import copy_templates, refer_to
from llama_index_ext.pages import join_pages
from llama_index_ext.reader import convert_documents

VERSION = metadata.version("drillrank")
_IMAGE = ("image", "image_path", "image_url", "image_mimetype")  # of a document that is one
UNREAD = ("section_path", "section_level", "section_id", "view", "start", "end", "namespace", "format", *PAGE_NAMES)


class MultiViewNodeParser(ComponentFields, NodeParser):
    r"""Cuts documents along their own sections and indexes each section as raw text, keywords and summary.

    The raw view is a `TextNode` whose text is the section, byte for byte. Later parts of a long table begin with the
    table's header. The other views refer to the raw node by `drillrank_section_id` and contain no copy of it.
    `MultiViewRetriever` returns raw nodes. A plain `index.as_retriever()` returns the views that it found.

    What is embedded is the text of the view alone. Metadata are the document's, and, read by no model,
    `drillrank_section_path`, `drillrank_section_level`, `drillrank_section_id`, `drillrank_view`, `drillrank_start`,
    `drillrank_end`. PREVIOUS and NEXT link raw nodes of one document, PARENT and CHILD its section tree.

    Sections of what another parser cut have no offsets, and a `DrillrankWarning` says so.

    With `context`, the headings and the section's keywords stand in front of the raw text where it is embedded, as
    metadata `drillrank_context`; what the LLM reads stays the source.

    With `namespace` or `namespace_key`, documents of one id in two namespaces (tenants, collections) have different
    node ids; the namespace is the metadata `drillrank_namespace`.

    Pages of one file that are given together are read as one document, under the first page's id. To an
    `IngestionPipeline` with a docstore give `llama_index_ext.pages.join_pages(documents)`: it would hand over only the
    pages that have changed.

    A serialised parser names its `llm`, `summarizer` and `id_func`, and the `tokens` of its settings unless that is a
    string; `from_dict` refuses it unless they are given again: `from_dict(data, llm=llm)`. The cache of an
    `IngestionPipeline` knows documents by text and metadata, not by id: equal ones share their nodes.

    Args:
        llm: Writes keywords and summaries; None computes them.
        cache: Remembers what the LLM wrote: any mutable mapping of strings; by default in memory.
        id_func: From a running number and the document to a node id. By default ids are UUIDs that depend on the
            namespace, the document's id, the section and the view only.
        include_metadata: Whether nodes carry the document's metadata.
        include_prev_next_rel: Whether raw nodes are linked to their neighbours.
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

    >>> document = Document(text="# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n")
    >>> nodes = MultiViewNodeParser(views=["raw", "keywords"]).get_nodes_from_documents([document])
    >>> [(node.metadata["drillrank_section_path"], node.metadata["drillrank_view"]) for node in nodes]
    [('Foxes', 'raw'), ('Foxes', 'keywords'), ('Whales', 'raw'), ('Whales', 'keywords')]
    """

    llm: SerializeAsAny[LLM] | None = Field(default=None, description="Writes keywords and summaries.")
    cache: Any = Field(default_factory=dict, exclude=True, description="Remembers what the LLM wrote.")
    id_func: Callable[[int, BaseNode], str] | None = Field(  # type: ignore[assignment]  # the host's has no "none"
        default=None, description="From a running number and the document to a node id."
    )
    views: tuple[View, ...] = Field(default=VIEWS, description="Views to make.")
    chunking: Chunking = Field(default="section", description="What is indexed as one thing.")
    max_tokens: int | None = Field(default=MAX_TOKENS, description="Largest size of a chunk.")
    min_tokens: int | None = Field(default=MIN_TOKENS, description="Sections of fewer tokens are joined.")
    context: tuple[Context, ...] = Field(default=(), description="What stands in front of the raw text in the index.")
    summarizer: Summarizer | None = Field(default=None, description="Makes the summaries.")
    namespace: str | None = Field(default=None, description="Of all documents.")
    namespace_key: str | None = Field(default=None, description="Metadata key of each document's namespace.")
    settings: SplitterSettings | dict[str, Any] = Field(
        default=SplitterSettings(), description="What is rarely touched."
    )

    _warned: WarnOnce = PrivateAttr(default_factory=WarnOnce)
    _parser_id: str = PrivateAttr(default_factory=lambda: uuid4().hex)

    @field_validator("llm", "summarizer", "id_func", mode="before")
    @classmethod
    def _restore(cls, value: Any, info: ValidationInfo) -> Any:
        return _given_again(value, info.field_name) if isinstance(value, dict | str) else value

    @field_validator("settings", mode="before")
    @classmethod
    def _convert_settings(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("tokens"), dict):
            _given_again(given["tokens"], "settings")
        return super()._convert_settings(given)

    @field_serializer("settings")
    def _serialize_settings(self, settings: SplitterSettings) -> Any:
        tokens = settings.tokens
        named = tokens if tokens is None or isinstance(tokens, str) else {"class": self._name(tokens)}
        return {**as_json(settings), "tokens": named}

    @model_validator(mode="after")
    def _usable(self) -> MultiViewNodeParser:
        chunker_of(self, None, "", {})
        return self

    @field_serializer("summarizer", "id_func")
    def _name(self, value: Any) -> str | None:
        """Names, so that the host's cache of transformations tells one setting from another."""
        return None if value is None else re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def version(self) -> str:
        """Version of drillrank; what another one cached is made anew."""
        return VERSION

    @classmethod
    def from_defaults(cls, **fields: Any) -> MultiViewNodeParser:
        """The parser with the given fields; the host's usual way to build one."""
        return cls(**fields)

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
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
        # An LLM whose identity nobody knows has one within this parser.
        who = "" if self.llm is None else cache_key(self.llm) or f"{self._parser_id} {id(self.llm)}"
        chunker = chunker_of(self, llm, who, self.cache)
        documents = list(map(self._source, nodes))
        shown = get_tqdm_iterable(documents, show_progress, "Parsing sections")
        chunks = yield from split(chunker, shown, show_progress)
        return self._nodes(nodes, documents, chunks)

    def _source(self, node: BaseNode) -> SourceDocument:
        space = namespace_of(self, node.metadata, node.node_id)
        return SourceDocument(node.node_id, space, node.get_content(), node.metadata)

    def _postprocess_parsed_nodes(self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]) -> list[BaseNode]:
        """Nothing to do: the host would guess offsets with `find` and chain all views to each other."""
        return nodes

    def _nodes(
        self, nodes: Sequence[BaseNode], documents: Sequence[SourceDocument], chunks: Sequence[Sequence[SectionChunk]]
    ) -> list[BaseNode]:
        pieces = [node.ref_doc_id for node in nodes if node.ref_doc_id not in (None, node.node_id)]
        if unplaced := self._warned.new("offsets", pieces):
            warn(
                f"MultiViewNodeParser: sections of nodes that another parser cut have no offsets, those of "
                f"{len(unplaced)} documents, for example of {unplaced[0]!r}. Let it cut the documents themselves."
            )
        each = zip(nodes, documents, chunks, strict=True)
        return [made for one in each for made in self._section_nodes(*one)]

    def _section_nodes(
        self, node: BaseNode, document: SourceDocument, chunks: Sequence[SectionChunk]
    ) -> list[BaseNode]:
        ids = {chunk.id: self.id_func(i, node) if self.id_func else chunk.id for i, chunk in enumerate(chunks)}
        source = node.source_node or refer_to(node)
        placed = node.ref_doc_id in (None, node.node_id)
        raw: dict[str, TextNode] = {}
        nodes: list[BaseNode] = []
        image = {name: value for name in _IMAGE if (value := getattr(node, name, None)) is not None}
        described = document if self.include_metadata else replace(document, metadata={})
        for chunk in chunks:
            names = {"section_id": ids[chunk.section_id], "context": chunk.context or None}
            metadata = described.metadata_of(chunk, self._settings, placed=placed, **names)
            unread = [prefixed(name) for name in UNREAD if prefixed(name) in metadata]
            fields: dict[str, Any] = {
                "id_": ids[chunk.id],
                "text": chunk.text,
                "relationships": {NodeRelationship.SOURCE: source},
                "start_char_idx": metadata.get(prefixed("start")),
                "end_char_idx": metadata.get(prefixed("end")),
                "metadata": metadata,
                "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, *unread],
                "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, *unread, prefixed("context")],
                **copy_templates(node),
            }
            # No view is an `IndexNode`. In a store with texts, an index lists these nodes alone, and its own retriever
            # asks stores such as Qdrant for listed nodes only: the raw nodes would be lost.
            if chunk.view == "raw":
                nodes.append(raw.setdefault(chunk.id, ImageNode(**fields, **image) if image else TextNode(**fields)))
            else:
                nodes.append(TextNode(**fields))
        self._relate([chunk for chunk in chunks if chunk.view == "raw"], raw)
        return nodes

    def _relate(self, chunks: Sequence[SectionChunk], raw: dict[str, TextNode]) -> None:
        infos: dict[str | None, Any] = {}  # without metadata: a node with a hundred children would carry theirs
        for id_, node in raw.items():
            infos[id_] = refer_to(node).model_copy(update={"metadata": {}})
        order, children = [None, *(chunk.id for chunk in chunks), None], NodeRelationship.CHILD
        for chunk, before, behind in zip(chunks, order, order[2:], strict=False):
            related = {NodeRelationship.PARENT: chunk.parent_id}
            if self.include_prev_next_rel:
                related |= {NodeRelationship.PREVIOUS: before, NodeRelationship.NEXT: behind}
            raw[chunk.id].relationships |= {kind: infos[id_] for kind, id_ in related.items() if id_ is not None}
            if chunk.parent_id is not None:
                below: Any = raw[chunk.parent_id].relationships.setdefault(children, [])
                below.append(infos[chunk.id])


def _given_again(value: object, name: str | None) -> None:
    raise InvalidInput(
        f"A serialised MultiViewNodeParser holds only the name of its {name}, {value!r:.100}: give it again, "
        f"as in MultiViewNodeParser.from_dict(data, {name}={name}), or {name}=None to do without."
    )
