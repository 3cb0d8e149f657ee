"""Nodes for a path search: what the search asks for, and what it tells of its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, QueryBundle, RelatedNodeInfo
from llama_index.core.storage.docstore.types import BaseDocumentStore

from drillrank import Passage
from drillrank.multihop.lookups import Hop
from llama_index_ext._waiting import afetched, aretrieved
from llama_index_ext.events import PathHopEvent

dispatcher = get_dispatcher(__name__)

# Not SOURCE: that is the whole document, which the node is a part of.
_FOLLOWED = (NodeRelationship.NEXT, NodeRelationship.PREVIOUS, NodeRelationship.CHILD, NodeRelationship.PARENT)


def tell(query: str, hop: Hop) -> None:
    """Send the event; a hop without paths has nothing to tell."""
    for best in hop.paths[:1]:
        dispatcher.event(
            PathHopEvent(
                query=query,
                hop=hop.number,
                paths=len(hop.paths),
                best_path=list(best.passage.ids),
                best_score=best.score,
            )
        )


@dataclass
class NodeSource:
    """Answers the lookups of one search, and remembers the nodes behind the passages.

    Attributes:
        as_passage: From a node to the passage that is ranked.
        retriever: Answers retrievals, if there is one.
        docstore: Knows nodes by id, if there is one.
        nodes: Every node met so far, by id.
    """

    as_passage: Callable[[BaseNode], Passage]
    retriever: BaseRetriever | None = None
    docstore: BaseDocumentStore | None = None
    nodes: MutableMapping[str, BaseNode] = field(default_factory=dict)

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """The retriever's first results."""
        return self.passages(hit.node for hit in self.retriever.retrieve(query)[:n]) if self.retriever else ()

    async def aretrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """The retriever's first results."""
        if self.retriever is None:
            return ()
        [found] = await aretrieved([self.retriever], QueryBundle(query))
        return self.passages(hit.node for hit in found[:n])

    def fetch(self, ids: Sequence[str], /) -> Sequence[Passage]:
        """The nodes with these ids that the docstore has."""
        return self.passages(self.docstore.get_nodes(list(ids), raise_error=False)) if self.docstore else ()

    async def afetch(self, ids: Sequence[str], /) -> Sequence[Passage]:
        """The nodes with these ids that the docstore has."""
        return self.passages(await afetched(self.docstore, ids)) if self.docstore else ()

    def passages(self, nodes: Iterable[BaseNode]) -> list[Passage]:
        """Remember nodes and turn them into passages."""
        nodes = list(nodes)
        for node in nodes:
            self.nodes.setdefault(node.node_id, node)
        return [self.as_passage(node) for node in nodes]


def related_ids(node: BaseNode) -> tuple[str, ...]:
    """Ids of the next, previous, child and parent nodes."""
    related = (node.relationships.get(kind, []) for kind in _FOLLOWED)
    infos = (info for entry in related for info in ([entry] if isinstance(entry, RelatedNodeInfo) else entry))
    return tuple(dict.fromkeys(info.node_id for info in infos))
