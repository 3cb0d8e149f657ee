"""Nodes for a path search: what the search asks for, and what it tells of its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo
from llama_index.core.storage.docstore.types import BaseDocumentStore

from drillrank import Passage
from drillrank.hosts.lookups import ById, Lookup, Lookups, arun_lookups, run_lookups
from drillrank.hosts.raw_records import each_section_once, tell_gone
from drillrank.multihop.lookups import Hop
from drillrank.multihop.record_names import RecordNames
from drillrank.once import Told
from llama_index_ext._filters import Guard, index_behind
from llama_index_ext._lookups import StoreLookups, without_copies
from llama_index_ext._sections import read_section
from llama_index_ext._waiting import afetched, aretrieved
from llama_index_ext.events import PathHopEvent

dispatcher = get_dispatcher(__name__)

Found = tuple[list[BaseNode], list[str]]

# Not SOURCE: that is the whole document, which the node is a part of.
_FOLLOWED = (NodeRelationship.NEXT, NodeRelationship.PREVIOUS, NodeRelationship.CHILD, NodeRelationship.PARENT)


@dataclass
class NodeSource:
    """Answers the lookups of one search, and remembers the nodes behind the passages.

    Attributes:
        as_passage: From a node to the passage that is ranked.
        guard: What may be seen.
        record_names: What the search calls the nodes.
        retriever: Answers retrievals, if there is one.
        docstore: Knows nodes by id, if there is one; without one, the index behind the retriever knows the given.
        given: The given nodes that may be seen, by id.
        nodes: Every node met so far, by name: the first record of each, which all of its result is from.
        missed: Ids of given nodes that the store did not bring.
        told: What was told before.
    """

    as_passage: Callable[[BaseNode], Passage]
    guard: Guard
    record_names: RecordNames
    retriever: BaseRetriever | None = None
    docstore: BaseDocumentStore | None = None
    given: Mapping[str, BaseNode] = field(default_factory=dict)
    nodes: dict[str, BaseNode] = field(default_factory=dict)
    missed: set[str] = field(default_factory=set)
    told: Told = field(default_factory=Told)
    _met: dict[str, Passage] = field(default_factory=dict)

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """The retriever's first results."""
        return self.found(query, self.retriever.retrieve(query))[:n] if self.retriever else ()

    async def aretrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """The retriever's first results."""
        if self.retriever is None:
            return ()
        [found] = await aretrieved([self.retriever], QueryBundle(query))
        return (await self.afound(query, found))[:n]

    def fetch(self, ids: Sequence[str], /) -> Sequence[tuple[str, Passage]]:
        """The nodes with these ids that there are, as the store has them now."""
        if self.docstore is not None:
            return self._fetched(ids, self.docstore.get_nodes(list(ids), raise_error=False))
        wanted = self._wanted(ids)
        return self._answered(wanted, self._lookups("", Guard(None)).answer(ById(wanted)) if wanted else None)

    async def afetch(self, ids: Sequence[str], /) -> Sequence[tuple[str, Passage]]:
        """As `fetch`, without blocking the event loop."""
        if self.docstore is not None:
            return self._fetched(ids, await afetched(self.docstore, ids))
        wanted = self._wanted(ids)
        return self._answered(wanted, await self._lookups("", Guard(None)).aanswer(ById(wanted)) if wanted else None)

    def found(self, query: str, hits: Iterable[NodeWithScore], told_by: str = "") -> list[Passage]:
        """What a retriever brought and may be seen, remembered and turned into passages; of a section one."""
        return self._passages(run_lookups(self._sections(hits, told_by), partial(self._answer, query)))

    async def afound(self, query: str, hits: Iterable[NodeWithScore], told_by: str = "") -> list[Passage]:
        """As `found`, without blocking the event loop."""
        lookups = self._sections(hits, told_by)
        return self._passages(await arun_lookups(lookups, partial(self._aanswer, query)))

    def own_ids(self, names: Iterable[str]) -> list[str]:
        """What the nodes are called where they come from."""
        return [self.record_names.own_id(name) for name in names]

    def tell(self, query: str, hop: Hop) -> None:
        """Send the event; a hop without paths has nothing to tell."""
        for best in hop.paths[:1]:
            dispatcher.event(
                PathHopEvent(
                    query=query,
                    hop=hop.number,
                    paths=len(hop.paths),
                    best_path=self.own_ids(best.passage.ids),
                    best_score=best.score,
                )
            )

    def _sections(self, hits: Iterable[NodeWithScore], told_by: str) -> Lookups[Found]:
        kept, sure = self.guard.hits(hits, told_by), index_behind(self.retriever) is not None
        if self.retriever is not None:
            kept = without_copies(kept, self.retriever, self.guard)
        return (yield from each_section_once(kept, read_section, self.given, resolved=True, sure=sure))

    def _answer(self, query: str, lookup: Lookup) -> Sequence[BaseNode] | None:
        """From the index behind the retriever, or else from the docstore."""
        if self.docstore is None or index_behind(self.retriever) is not None:
            return self._lookups(query, self.guard).answer(lookup)
        if not isinstance(lookup, ById):
            return None
        return self.guard.allowed(self.docstore.get_nodes(list(lookup.ids), raise_error=False))

    async def _aanswer(self, query: str, lookup: Lookup) -> Sequence[BaseNode] | None:
        """As `_answer`."""
        if self.docstore is None or index_behind(self.retriever) is not None:
            return await self._lookups(query, self.guard).aanswer(lookup)
        if not isinstance(lookup, ById):
            return None
        return self.guard.allowed(await afetched(self.docstore, lookup.ids))

    def _passages(self, found: Found) -> list[Passage]:
        kept, missing = found
        if not self.guard.restriction:  # perhaps they are hidden: nothing is said of them
            tell_gone("PromptRank", self.told.anew("raw", missing))
        return [self._remembered(node) for node in kept]

    def _wanted(self, ids: Sequence[str]) -> tuple[str, ...]:
        """A store that nobody named need not understand ids that nobody gave."""
        return tuple(id_ for id_ in ids if id_ in self.given)

    def _lookups(self, query: str, guard: Guard) -> StoreLookups:
        return StoreLookups(QueryBundle(query), {} if self.retriever is None else self.retriever, guard)

    def _answered(self, ids: Sequence[str], found: Sequence[BaseNode] | None) -> list[tuple[str, Passage]]:
        if found is None:  # no store that can be asked
            return [(id_, self._remembered(self.given[id_])) for id_ in ids]
        return self._fetched(ids, found)

    def _fetched(self, ids: Sequence[str], found: Sequence[BaseNode]) -> list[tuple[str, Passage]]:
        self.missed |= {id_ for id_ in ids if id_ in self.given}.difference(node.node_id for node in found)
        return [(node.node_id, self._remembered(node, fetched=True)) for node in self.guard.allowed(found)]

    def _remembered(self, node: BaseNode, *, fetched: bool = False) -> Passage:
        passage = self.as_passage(node)
        name = self.record_names.name(passage, fetched=fetched)
        if name not in self._met:
            self.nodes[name] = node
            self._met[name] = replace(passage, id=name)
        return self._met[name]


def related_ids(node: BaseNode) -> tuple[str, ...]:
    """Ids of the next, previous, child and parent nodes."""
    related = (node.relationships.get(kind, []) for kind in _FOLLOWED)
    infos = (info for entry in related for info in ([entry] if isinstance(entry, RelatedNodeInfo) else entry))
    return tuple(dict.fromkeys(info.node_id for info in infos))
