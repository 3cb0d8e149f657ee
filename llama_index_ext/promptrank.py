"""Path search in LlamaIndex: as a node postprocessor, and as a retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Literal

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM
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
from pydantic import Field

from drillrank import LanguageModel, Passage, load_language_model
from drillrank.explanation.explanations import explains
from drillrank.frameworks.metadata import with_notes
from drillrank.frameworks.paths import FoundRecord, PathHost, PathRetrieval, path_rerank, rank_linked
from drillrank.frameworks.settings import check_switch
from drillrank.llm import FunctionRequest, Requests, Usage, arun, run
from drillrank.multihop.path_rerank import LINKS_IN_TEXTS, LinkName, PathRerank, TextLinkName
from drillrank.passages import Ranking, check_top_n
from drillrank.rerank.base import RetrievalScores
from drillrank.rerank.prior import Prior
from drillrank.settings import as_settings
from drillrank.vectors import Embed
from llama_index_ext._filters import Filters, NodeFilter
from llama_index_ext._llm import FrameworkLLM, StepPrompts, embedding_of
from llama_index_ext._records import RankedNode, check_kind, check_retriever, checked_nodes, unread
from llama_index_ext._retriever import QueryRetriever
from llama_index_ext._store import LlamaIndexStore, underlying_index
from llama_index_ext.events import PathHopEvent, send_explanations
from llama_index_ext.rerank import LikelihoodRerank
from llama_index_ext.settings import PromptRankRerankSettings, PromptRankRetrieverSettings

dispatcher = get_dispatcher(__name__)

# Not SOURCE: that is the whole document, which the node is a part of.
_FOLLOWED = (NodeRelationship.NEXT, NodeRelationship.PREVIOUS, NodeRelationship.CHILD, NodeRelationship.PARENT)


def _host(component: Any, query_bundle: QueryBundle | None = None) -> PathHost[BaseNode]:
    """Of one question."""
    source, store, settings = component.source, component.store, component.settings
    access_filter = NodeFilter(component.filters, source)

    def lookups(warns: str = "") -> LlamaIndexStore:
        return LlamaIndexStore(query_bundle or QueryBundle(""), source, access_filter, store, warns)

    return PathHost(
        access_filter=access_filter,
        retrieves=source is not None,
        docstore=store,
        certain=underlying_index(source) is not None,
        lookups=lookups,
        by_id=lambda: LlamaIndexStore(QueryBundle(""), source if store is None else None, NodeFilter(None), store),
        own_id=_id_of,
        names=lambda nodes: list(map(_id_of, nodes)),
        passage=partial(passage_of, title_key=settings.title_key, metadata_mode=settings.metadata_mode),
        event=lambda hop: FunctionRequest(partial(dispatcher.event, PathHopEvent(**hop))),
    )


_id_of = attrgetter("node_id")


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


class PromptRankRerank(LikelihoodRerank):
    """Reranks nodes by the best path of linked nodes among them, and beyond them if told where (multi-hop questions).

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Nodes to keep, 3 by default; None keeps all.
        links: What links a node to others: `"metadata"` (node ids that its metadata lists under `links_key`),
            `"hyperlinks"` (Markdown and HTML, to the addresses in the metadata), `"titles"` (its text mentions another
            node's title, metadata `title_key`), `"names"` (they mention the same name), `"relationships"` (next,
            previous, parent and child nodes).
        store: Linked nodes that were not retrieved are fetched from here by id, and may enter the result; such as
            `index.docstore`. There is no default, as a postprocessor is not told where its nodes come from.
        source: Each path that is followed leads to three more nodes, those that this retriever finds with the
            question and the path's last node as its query; for texts without links.
        filters: The host's `MetadataFilters`, or a function from a node to True or False: no other node is read,
            whether it is given, fetched over a link or retrieved. What is fetched over links obeys the filters of
            `source`, too.
        embed: An embedding model of the framework, an encoder's specification such as `"onnx:DIR"`, or a function from
            texts to vectors. Semantic similarity then counts, too.
        prior: As for `UPRRerank`.
        score: As for `UPRRerank`.
        explain: Whether results say why they stand where they stand.
        model_options: Options of the language model.
        settings: What is rarely touched: `llama_index_ext.settings.PromptRankRerankSettings`. Its `instructions`,
            `ensemble` and `temperature` are what `tune` finds.

    `store`, `source`, `filters` and `embed` are no part of the serialised configuration.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> turing = TextNode(text="Alan Turing was born in Maida Vale.", metadata={"title": "Alan Turing"})
    >>> vale = TextNode(text="It is a district of London.", metadata={"title": "Maida Vale"})
    >>> london = TextNode(text="London is the capital of England.", metadata={"title": "London"})
    >>> nodes = [NodeWithScore(node=node) for node in (london, vale, turing)]
    >>> question = "Which London district was Turing born in?"
    >>> [node.node.metadata["title"] for node in PromptRankRerank().postprocess_nodes(nodes, query_str=question)]
    ['Alan Turing', 'Maida Vale', 'London']
    """

    links: tuple[TextLinkName | Literal["relationships"], ...] = Field(
        default=LINKS_IN_TEXTS, description="What links a node to others."
    )
    prior: Prior | None = Field(default=None, description="What nodes' scores say, as for UPRRerank.")
    store: BaseDocumentStore | None = Field(default=None, exclude=True, description="Knows linked nodes by id.")
    source: BaseRetriever | None = Field(default=None, exclude=True, description="Finds more nodes for each path.")
    filters: Filters | None = Field(default=None, exclude=True, description="Which nodes may be seen.")
    embed: BaseEmbedding | Embed | str | None = Field(
        default=None, exclude=True, description="An embedding model, an encoder's specification, or a function."
    )
    settings: PromptRankRerankSettings | dict[str, Any] = Field(
        default=PromptRankRerankSettings(), description="What is rarely touched."
    )

    def _build_core(self) -> PathRerank:
        NodeFilter(self.filters)  # says what is wrong with them
        settings: Any = self.settings
        links: tuple[LinkName, ...] = self.links if self.source is None else (*self.links, "retrieval")
        prompt_rank = settings.prompt_rank(self.language_model, self.prior)
        return path_rerank(settings, prompt_rank, links, embedding_of(self.embed))

    def _passage(self, node: BaseNode) -> Passage:
        settings: Any = self.settings
        return passage_of(node, node.node_id, settings.title_key, settings.metadata_mode)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return super()._postprocess_nodes(NodeFilter(self.filters).filter_hits(nodes), query_bundle)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        nodes = await asyncio.to_thread(NodeFilter(self.filters).filter_hits, nodes)
        with self._send_events(nodes, query_bundle) as results:
            if nodes and query_bundle:
                query, passages = query_bundle.query_str, [self._passage(hit.node) for hit in nodes]
                ranking = await arun(self._requests(query, passages, [hit.score for hit in nodes]))
                results += await asyncio.to_thread(self._build_results, nodes, query, ranking)
        return results

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        return run(self._requests(query, passages, scores))

    def _requests(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Requests[Ranking[Passage]]:
        return rank_linked(self.core, query, passages, scores, _host(self))


@dataclass(eq=False, repr=False)
class PromptRankRetriever(StepPrompts, QueryRetriever):
    """Finds nodes that answer a question together, by searching paths of linked nodes (multi-hop questions).

    Args:
        source: Any LlamaIndex retriever; all that it returns are the first nodes of paths. Let it return many, the
            paper takes 100.
        documents: Nodes that may be linked to though they were not retrieved; the titles and addresses of those that
            may be seen are indexed once, and a lexical model takes its statistics from them. Where there is a store,
            they lend no more than that: the text that is read and returned is fetched from it by id.
        store: The store that linked nodes are fetched from by id. Without it, those in `documents` are fetched from the
            index behind `source`, if it can be asked; if it cannot, they are taken as they were given.
        filters: The host's `MetadataFilters`, or a function from a node to True or False: no other node is read, named
            or linked to, wherever it comes from. Linked nodes must pass the filters of `source`, too.
        links: What links a node to others, as for `PromptRankRerank`; also `"retrieval"`: each path that is followed
            leads to three more nodes, those that `source` finds with the question and the path's last node as its
            query.
        llm: An LLM that names what the best path of each hop but the last still lacks: one short call, and one question
            to `source`. None asks nobody; the host's default is not taken.
        model: Language model that scores: a `load_language_model` specification, or a ready one.
        model_options: Options of that model.
        top_n: Nodes to return; None returns every node on a scored path.
        embed: An embedding model, best that of the index, an encoder's specification such as `"onnx:DIR"`, or a
            function from texts to vectors. `documents` are embedded when the retriever is built, what it finds when it
            is first found.
        explain: Whether results say why they stand where they stand.
        settings: What is rarely touched: `llama_index_ext.settings.PromptRankRetrieverSettings`, or a mapping of its
            fields.
        callback_manager: As for every LlamaIndex retriever.

    Each node comes once, as a copy: `metadata["drillrank_path"]` holds the ids of its best path, joined by
    " > ", and `drillrank_path_score` that path's score, which is the node's score too (see `PathSearch.search`). Every
    hop sends a `PathHopEvent`. With an `llm`, `drillrank_missing` holds what it named, joined by " | ", and
    `drillrank_prompt_tokens`, `drillrank_completion_tokens` and `drillrank_llm_calls` its cost; with
    `drillrank_problems` if a call failed. `update_prompts` changes its prompt, too.

    The views of a section that `MultiViewNodeParser` made are one candidate, its raw node, fetched from the index
    behind `source` or else from `store`; where neither can be asked, the best hit stands for it.

    A node of `documents` whose text is not the store's, or a store that knows none of them by their ids, leads to a
    `DrillrankWarning`.

    Raises:
        InvalidInput: a setting is unknown or cannot be used, two of the `documents` that may be seen share an id, the
            question is blank, or the retriever has a filter that cannot be checked on linked nodes.

    >>> from llama_index.core.schema import TextNode
    >>> turing = TextNode(text="Alan Turing was born in Maida Vale.", id_="turing", metadata={"title": "Alan Turing"})
    >>> vale = TextNode(text="It is a residential district.", id_="vale", metadata={"title": "Maida Vale"})
    >>> class OnlyTuring(BaseRetriever):
    ...     def _retrieve(self, query_bundle):
    ...         return [NodeWithScore(node=turing)]
    >>> retriever = PromptRankRetriever([turing, vale], source=OnlyTuring())
    >>> hits = retriever.retrieve("In which residential district was Turing born?")
    >>> [hit.metadata["drillrank_path"] for hit in hits]
    ['turing > vale', 'turing > vale']
    """

    documents: Sequence[BaseNode] = ()
    _: KW_ONLY
    source: BaseRetriever
    store: BaseDocumentStore | None = None
    filters: Filters | None = None
    links: Sequence[LinkName] = LINKS_IN_TEXTS
    llm: LLM | None = None
    embed: BaseEmbedding | Embed | str | None = None
    model: str | LanguageModel = "unigram"
    model_options: dict[str, Any] | None = None
    top_n: int | None = 5
    explain: bool = False
    settings: PromptRankRetrieverSettings | Mapping[str, Any] = PromptRankRetrieverSettings()
    callback_manager: InitVar[CallbackManager | None] = None

    def __post_init__(self, callback_manager: CallbackManager | None) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager)
        self.settings = settings = as_settings(PromptRankRetrieverSettings, self.settings)
        check_switch(explain=self.explain)
        check_retriever(self, self.source)
        self.documents = checked_nodes(self, self.documents)
        check_kind(self, BaseDocumentStore, store=self.store)
        check_top_n(self.top_n)
        missing_prompt: Any = settings.missing_prompt  # the host's, or a text
        prompt = self._step_prompt("missing_prompt", missing_prompt)
        self._named_by = None if self.llm is None else FrameworkLLM(self.llm, "name what is missing")
        model = load_language_model(self.model, **(self.model_options or {}))
        self._paths = PathRetrieval(
            self,
            settings.prompt_rank(model, settings.prior),
            _host(self),
            embed=embedding_of(self.embed),
            missing_prompt=prompt,
        )

    def _found(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        found = yield from self._paths.retrieve(query, _host(self, query_bundle), self.top_n, usage)
        nodes = list(map(_node, found))
        if explains(self.explain):
            send_explanations(query, nodes, [one.explanation for one in found])
        return nodes

    def _framework_llm(self) -> FrameworkLLM | None:
        return self._named_by


def _node(found: FoundRecord[BaseNode]) -> NodeWithScore:
    metadata = with_notes(found.record.metadata, found.details) | found.added_metadata
    return RankedNode(node=unread(found.record, metadata, found.added_metadata), score=found.score)
