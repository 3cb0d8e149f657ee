"""What a path search asks of LlamaIndex: nodes for passages, and events of its progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
)
from llama_index.core.storage.docstore.types import BaseDocumentStore

from drillrank import Passage
from drillrank.hosts.sections import StoredSection
from llama_index_ext._filters import NodeFilter, index_behind
from llama_index_ext._lookups import StoreLookups
from llama_index_ext._records import read_section
from llama_index_ext.events import PathHopEvent

dispatcher = get_dispatcher(__name__)

# Not SOURCE: that is the whole document, which the node is a part of.
_FOLLOWED = (NodeRelationship.NEXT, NodeRelationship.PREVIOUS, NodeRelationship.CHILD, NodeRelationship.PARENT)


@dataclass(frozen=True)
class NodePaths:
    """The `PathHost` of one question.

    Attributes:
        guard: What may be seen.
        retriever: Answers retrievals, if there is one.
        docstore: Knows nodes by id, if there is one.
        title_key: Metadata key of the title.
        metadata_mode: Metadata that the model reads beside the title.
    """

    guard: NodeFilter
    retriever: BaseRetriever | None
    docstore: BaseDocumentStore | None
    title_key: str
    metadata_mode: MetadataMode

    @property
    def certain(self) -> bool:
        """Whether all that the retriever brings is from one index."""
        return index_behind(self.retriever) is not None

    def asked(self, question: str | QueryBundle, component: str = "") -> StoreLookups:
        """The retriever, and the index behind it or else the docstore."""
        query_bundle = QueryBundle(question) if isinstance(question, str) else question
        return StoreLookups(query_bundle, self.retriever, self.guard, self.docstore, component)

    def by_id(self) -> StoreLookups:
        """The docstore, or without one the index behind the retriever."""
        source = self.retriever if self.docstore is None else None
        return StoreLookups(QueryBundle(""), source, NodeFilter(None), self.docstore)

    def own_id(self, node: BaseNode) -> str | None:
        """Its id."""
        return node.node_id

    def names(self, nodes: Sequence[BaseNode]) -> list[str]:
        """Their ids."""
        return [node.node_id for node in nodes]

    def passage(self, node: BaseNode, name: str) -> Passage:
        """What is ranked."""
        return passage_of(node, name, self.title_key, self.metadata_mode)

    def section(self, hit: BaseNode | NodeWithScore) -> StoredSection:
        """What a node, or a hit, is of a section."""
        return read_section(hit)

    def tell(self, hop: dict[str, Any]) -> None:
        """Send the event."""
        dispatcher.event(PathHopEvent(**hop))

    async def atell(self, hop: dict[str, Any]) -> None:
        """Send the event."""
        self.tell(hop)


def passage_of(node: BaseNode, id: str, title_key: str, metadata_mode: MetadataMode) -> Passage:
    """What a model reads of a node that is linked to others.

    Args:
        node: The node.
        id: Of the passage.
        title_key: Metadata key of the title.
        metadata_mode: Metadata that is read beside the title.
    """
    return Passage(
        node.get_content(metadata_mode=metadata_mode),
        id=id,
        title=str(node.metadata.get(title_key) or ""),
        links=related_ids(node),
        metadata=node.metadata,
    )


def related_ids(node: BaseNode) -> tuple[str, ...]:
    """Ids of the next, previous, child and parent nodes."""
    related = (node.relationships.get(kind, []) for kind in _FOLLOWED)
    infos = (info for entry in related for info in ([entry] if isinstance(entry, RelatedNodeInfo) else entry))
    return tuple(dict.fromkeys(info.node_id for info in infos))
