"""Path search as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore

from drillrank import LanguageModel, Passage, PathSearch, Ranked
from drillrank.hosts.equal_ids import EqualIds
from drillrank.hosts.fields import Fixed
from drillrank.hosts.notes import noted, notes, path_notes
from drillrank.multihop.first_hop import check_by_order
from drillrank.multihop.given import Given, Recognised
from drillrank.multihop.lookups import Hop, Steps, arun_steps, run_steps
from drillrank.multihop.path_rerank import LINKS_IN_TEXTS, LinkName
from drillrank.multihop.search import Scope
from drillrank.once import Once, Told
from drillrank.passages import check_query, check_top_n
from llama_index_ext._filters import Filters, Guard
from llama_index_ext._nodes import unread
from llama_index_ext._waiting import aretrieved
from llama_index_ext.promptrank import PromptRankRerank
from llama_index_ext.promptrank_nodes import NodeSource

_TENANTS = 16  # for whom of those whose nodes have equal ids an index is kept


class PromptRankRetriever(Fixed, BaseRetriever):
    """Finds nodes that answer a question together, by searching paths of linked nodes (multi-hop questions).

    Args:
        retriever: Any LlamaIndex retriever; all that it returns are the first nodes of paths. Let it return many, the
            paper takes 100.
        nodes: Nodes that may be linked to though they were not retrieved; their titles and addresses are indexed once,
            and a lexical model takes its statistics from them, filters or not. Where there is a store, they lend no
            more than that: the text that is read and returned is fetched from it by id.
        docstore: The store that linked nodes are fetched from by id. Without it, those in `nodes` are fetched from the
            index behind `retriever`, if it can be asked; if it cannot, they are taken as they were given.
        filters: The host's `MetadataFilters`, or a function from a node to True or False: no other node is read, named
            or linked to, wherever it comes from. Linked nodes must pass the filters of `retriever`, too.
        links: What links a node to others, as for `PromptRankRerank`; also `"retrieval"`: each path that is followed
            leads to three more nodes, those that `retriever` finds with the question and the path's last node as its
            query.
        model: Language model that scores: a `load_language_model` specification, or a ready one.
        model_options: Options of that model.
        top_n: Nodes to return; None returns every node on a scored path.
        callback_manager: As for every LlamaIndex retriever.
        settings: Other fields of `PromptRankRerank`: `links_key`, `title_key`, `metadata_mode`, and the arguments of
            `PromptRank` and `PathSearch`, such as `hops`.

    Each node comes once, as a copy: `metadata["drillrank_path"]` holds the ids of its best path, joined by
    " > ", and `drillrank_path_score` that path's score, which is the node's score too (see `PathSearch.search`). Every
    hop sends a `PathHopEvent`.

    The views of a section that `MultiViewNodeParser` made are one candidate, its raw node, fetched from the index
    behind `retriever` or else from `docstore`; where neither can be asked, the best hit stands for it.

    A node of `nodes` that differs from the store's, or a store that knows none of them by their ids, leads to a
    `DrillrankWarning`.

    Raises:
        InvalidInput: a setting is unknown or cannot be used, two of the `nodes` that may be seen share an id, the
            question is blank, or the retriever has a filter that cannot be checked on linked nodes.

    >>> from llama_index.core.schema import TextNode
    >>> turing = TextNode(text="Alan Turing was born in Maida Vale.", id_="turing", metadata={"title": "Alan Turing"})
    >>> vale = TextNode(text="It is a residential district.", id_="vale", metadata={"title": "Maida Vale"})
    >>> class OnlyTuring(BaseRetriever):
    ...     def _retrieve(self, query_bundle):
    ...         return [NodeWithScore(node=turing)]
    >>> retriever = PromptRankRetriever(OnlyTuring(), nodes=[turing, vale])
    >>> hits = retriever.retrieve("In which residential district was Turing born?")
    >>> [hit.metadata["drillrank_path"] for hit in hits]
    ['turing > vale', 'turing > vale']
    """

    _also_fixed = frozenset(PromptRankRerank.model_fields)

    def __init__(
        self,
        retriever: BaseRetriever,
        *,
        nodes: Sequence[BaseNode] = (),
        docstore: BaseDocumentStore | None = None,
        filters: Filters | None = None,
        links: Sequence[LinkName] = LINKS_IN_TEXTS,
        model: str | LanguageModel = "unigram",
        model_options: dict[str, Any] | None = None,
        top_n: int | None = 5,
        callback_manager: CallbackManager | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        check_top_n(top_n)
        self._retriever = retriever
        self._docstore = docstore
        self._filters = filters
        self._told = Told()
        Guard(filters)  # says now what is wrong with them
        self._top_n = top_n
        settings |= {
            "model": model,
            "model_options": model_options or {},
            "links": tuple(name for name in links if name != "retrieval"),
            "retriever": retriever if "retrieval" in links else None,
        }
        self._rerank = PromptRankRerank(**settings)
        check_by_order(self._rerank.prior)
        self._nodes = list(nodes)
        self._equal_ids = EqualIds([node.node_id for node in nodes], "nodes")
        self._prepared: Once[tuple[Given, PathSearch]] = Once(_TENANTS)
        if not (self._equal_ids and Guard(filters, retriever).restricts):
            self._search_of(range(len(self._nodes)))

    @property
    def _all_from(self) -> BaseRetriever | None:
        """Whose store all results are from; none, if some are from another one."""
        return self._retriever if self._docstore is None else None

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = check_query(query_bundle.query_str)
        source, search = self._source()
        first = source.found(query, self._retriever.retrieve(query_bundle), told_by=type(self).__name__)
        steps = self._steps(query, source, search, first)
        return self._found(run_steps(steps, source, partial(source.tell, query)), source)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = check_query(query_bundle.query_str)
        source, search = await asyncio.to_thread(self._source)  # filters look at all that was given

        async def atell(hop: Hop) -> None:
            source.tell(query, hop)

        [hits] = await aretrieved([self._retriever], query_bundle)
        first = await source.afound(query, hits, told_by=type(self).__name__)
        steps = self._steps(query, source, search, first)
        return self._found(await arun_steps(steps, source, atell), source)

    def _source(self) -> tuple[NodeSource, PathSearch]:
        """Answers the lookups of one question, of what may be seen; and the search that asks them."""
        guard = Guard(self._filters, self._retriever)
        allowed = set(map(id, guard.allowed(self._nodes))) if self._nodes else set()
        shown = {number for number, node in enumerate(self._nodes) if id(node) in allowed}
        given, search = self._search_of(shown)
        seen = {self._nodes[number].node_id: self._nodes[number] for number in sorted(shown)}
        recognised = Recognised(given, seen)
        source = NodeSource(
            self._rerank._passage, guard, recognised, self._retriever, self._docstore, given=seen, told=self._told
        )
        return source, search

    def _search_of(self, shown: Collection[int]) -> tuple[Given, PathSearch]:
        """Of all that was given, but for the hidden ones under the id of another."""
        chosen = self._equal_ids.chosen(shown)

        def made() -> tuple[Given, PathSearch]:
            passages = [self._rerank._passage(self._nodes[number]) for number in chosen]
            return Given(passages), self._rerank.path_rerank(passages).search

        return self._prepared.get(chosen, made)

    def _steps(
        self, query: str, source: NodeSource, search: PathSearch, first: list[Passage]
    ) -> Steps[list[Ranked[Passage]]]:
        scope = Scope(None if len(source.given) == len(self._nodes) else source.given.keys(), fetched=True)
        return search.steps(query, self._top_n, candidates=first, scope=scope)

    def _found(self, ranking: list[Ranked[Passage]], source: NodeSource) -> list[NodeWithScore]:
        source.recognised.warn(source.missed, self._told)
        return [NodeWithScore(node=_copy(source, item), score=item.score) for item in ranking]


def _copy(source: NodeSource, item: Ranked[Passage]) -> BaseNode:
    node = source.nodes[item.passage.id]
    added = path_notes(source.own_ids(item.details["path"]), item.score)
    return unread(node, noted(node.metadata, item.details) | added, [*notes(item.details), *added])
