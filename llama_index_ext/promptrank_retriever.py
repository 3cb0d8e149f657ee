"""Path search as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, InitVar
from functools import partial
from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore

from drillrank import LanguageModel, Passage, PathSearch, Ranked
from drillrank.dialogue import Usage
from drillrank.hosts.equal_ids import EqualIds
from drillrank.hosts.fields import Fixed
from drillrank.hosts.notes import noted, notes, path_notes
from drillrank.hosts.paths import LinkedRecordSettings, PathRetrieverSettings
from drillrank.multihop.first_hop import check_by_order, first_stage_prior
from drillrank.multihop.lookups import Hop, Steps, arun_steps, run_steps
from drillrank.multihop.missing import MissingSettings
from drillrank.multihop.path_rerank import LINKS_IN_TEXTS, LinkName
from drillrank.multihop.path_settings import link_prior_was_prior
from drillrank.multihop.record_names import GivenPassages, RecordNames
from drillrank.multihop.search import Scope
from drillrank.once import Once, Told
from drillrank.passages import check_query, check_top_n
from drillrank.rerank.demonstrations import Demonstration
from drillrank.settings import method, settings_of
from llama_index_ext._filters import Filters, Guard
from llama_index_ext._llm import FrameworkLLM, Prompts
from llama_index_ext._nodes import unread
from llama_index_ext._waiting import aretrieved
from llama_index_ext.promptrank import PromptRankRerank
from llama_index_ext.promptrank_nodes import NodeSource

_TENANTS = 16  # for whom of those whose nodes have equal ids an index is kept


@link_prior_was_prior
@method
class PromptRankRetriever(Fixed, BaseRetriever, PathRetrieverSettings):
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
        llm: An LLM that names what the best path of each hop but the last still lacks: one short call, and one question
            to `retriever`. None asks nobody; the host's default is not taken.
        model: Language model that scores: a `load_language_model` specification, or a ready one.
        model_options: Options of that model.
        top_n: Nodes to return; None returns every node on a scored path.
        title_key: Metadata key of the title.
        metadata_mode: Metadata that the model reads beside the title.
        demonstrations: Questions with their gold paths, shown to a neural model before each path.
        callback_manager: As for every LlamaIndex retriever.

    The other arguments are the settings below.

    Each node comes once, as a copy: `metadata["drillrank_path"]` holds the ids of its best path, joined by
    " > ", and `drillrank_path_score` that path's score, which is the node's score too (see `PathSearch.search`). Every
    hop sends a `PathHopEvent`. With an `llm`, `drillrank_missing` holds what it named, joined by " | ", and
    `drillrank_prompt_tokens`, `drillrank_completion_tokens` and `drillrank_llm_calls` its cost; with
    `drillrank_problems` if a call failed. `update_prompts` changes its prompt, too.

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

    retriever: BaseRetriever
    _: KW_ONLY
    nodes: Sequence[BaseNode] = ()
    docstore: BaseDocumentStore | None = None
    filters: Filters | None = None
    links: Sequence[LinkName] = LINKS_IN_TEXTS
    llm: LLM | None = None
    missing_prompt: BasePromptTemplate | str  # type: ignore[assignment]  # the host's
    model: str | LanguageModel = "unigram"
    model_options: dict[str, Any] | None = None
    top_n: int | None = 5
    title_key: str = "title"
    metadata_mode: MetadataMode = MetadataMode.NONE
    demonstrations: Sequence[Demonstration] = ()
    callback_manager: InitVar[CallbackManager | None] = None

    __repr__ = object.__repr__  # nodes may be long

    def __post_init__(self, callback_manager: CallbackManager | None) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager)
        PathRetrieverSettings.__post_init__(self)
        check_top_n(self.top_n)
        Guard(self.filters)  # says now what is wrong with them
        check_by_order(first_stage_prior(self.prior, self.link_prior))
        scoring = settings_of(self, LinkedRecordSettings) | {
            "model": self.model,
            "model_options": self.model_options or {},
            "title_key": self.title_key,
            "metadata_mode": self.metadata_mode,
            "demonstrations": tuple(self.demonstrations),
            "links": tuple(name for name in self.links if name != "retrieval"),
            "retriever": self.retriever if "retrieval" in self.links else None,
        }
        self._rerank = PromptRankRerank(**scoring)
        self._prompts = Prompts()
        prompt = self._prompts.filler(
            "missing_prompt", "name what is missing", self.missing_prompt, "documents", "question"
        )
        self._missing = MissingSettings(missing_prompt=prompt, on_failure=self.on_failure)
        self._asked = None if self.llm is None else FrameworkLLM(self.llm, "name what is missing")
        self._nodes = list(self.nodes)
        self._told = Told()
        self._equal_ids = EqualIds([node.node_id for node in self._nodes], "nodes")
        self._prepared: Once[tuple[GivenPassages, PathSearch]] = Once(_TENANTS)
        if not (self._equal_ids and Guard(self.filters, self.retriever).restricts):
            self._search_of(range(len(self._nodes)))

    @property
    def _all_from(self) -> BaseRetriever | None:
        """Whose store all results are from; none, if some are from another one."""
        return self.retriever if self.docstore is None else None

    def _get_prompts(self) -> PromptDictType:
        return dict(self._prompts.templates)

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self._prompts.update(prompts)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = check_query(query_bundle.query_str)
        source, search = self._source()
        first = source.found(query, self.retriever.retrieve(query_bundle), told_by=type(self).__name__)
        usage = Usage()
        steps = self._steps(query, source, search, first, usage)
        tell = partial(source.tell, query)
        return self._found(run_steps(steps, source, tell, llm=self._asked, usage=usage), source)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = check_query(query_bundle.query_str)
        source, search = await asyncio.to_thread(self._source)  # filters look at all that was given

        async def atell(hop: Hop) -> None:
            source.tell(query, hop)

        [hits] = await aretrieved([self.retriever], query_bundle)
        first = await source.afound(query, hits, told_by=type(self).__name__)
        usage = Usage()
        steps = self._steps(query, source, search, first, usage)
        return self._found(await arun_steps(steps, source, atell, llm=self._asked, usage=usage), source)

    def _source(self) -> tuple[NodeSource, PathSearch]:
        """Answers the lookups of one question, of what may be seen; and the search that asks them."""
        guard = Guard(self.filters, self.retriever)
        allowed = set(map(id, guard.allowed(self._nodes))) if self._nodes else set()
        shown = {number for number, node in enumerate(self._nodes) if id(node) in allowed}
        given, search = self._search_of(shown)
        seen = {self._nodes[number].node_id: self._nodes[number] for number in sorted(shown)}
        record_names = RecordNames(given, seen)
        source = NodeSource(
            self._rerank._passage, guard, record_names, self.retriever, self.docstore, given=seen, told=self._told
        )
        return source, search

    def _search_of(self, shown: Collection[int]) -> tuple[GivenPassages, PathSearch]:
        """Of all that was given, but for the hidden ones under the id of another."""
        chosen = self._equal_ids.chosen(shown)

        def made() -> tuple[GivenPassages, PathSearch]:
            passages = [self._rerank._passage(self._nodes[number]) for number in chosen]
            return GivenPassages(passages), self._rerank.path_rerank(passages).path_search

        return self._prepared.get(chosen, made)

    def _steps(
        self, query: str, source: NodeSource, search: PathSearch, first: list[Passage], usage: Usage
    ) -> Steps[list[Ranked[Passage]]]:
        scope = Scope(None if len(source.given) == len(self._nodes) else source.given.keys(), fetched=True)
        missing = None if self.llm is None else self._missing
        return search.steps(query, self.top_n, candidates=first, scope=scope, missing=missing, usage=usage)

    def _found(self, ranking: list[Ranked[Passage]], source: NodeSource) -> list[NodeWithScore]:
        source.record_names.warn(source.missed, self._told)
        return [NodeWithScore(node=_copy(source, item), score=item.score) for item in ranking]


def _copy(source: NodeSource, item: Ranked[Passage]) -> BaseNode:
    node = source.nodes[item.passage.id]
    added = path_notes(source.own_ids(item.details["path"]), item.score, item.details)
    return unread(node, noted(node.metadata, item.details) | added, [*notes(item.details), *added])
