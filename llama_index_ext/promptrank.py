"""Path search in LlamaIndex, as a node postprocessor and as a retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from typing import Any, Literal

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store import VectorStoreIndex
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
from drillrank.frameworks.constructors import component
from drillrank.frameworks.inputs import clean_question, finite_score, value_text
from drillrank.frameworks.metadata import without_ranking
from drillrank.frameworks.paths import PathResultRecord, PathRetrieval, PathStores, build_path_rerank, rank_linked
from drillrank.frameworks.settings import check_switch
from drillrank.llm import FunctionRequest, Requests, Usage, arun, run
from drillrank.multihop.link_names import LinkName, TextLinkName
from drillrank.multihop.path_rerank import PathRerank
from drillrank.passages import Ranking, check_top_n
from drillrank.rerank.base import RetrievalScores
from drillrank.rerank.prior import Prior
from drillrank.settings import Preset, as_settings, with_preset
from drillrank.structure.record_store import RecordStore
from drillrank.vectors import Embed
from llama_index_ext._filters import Filters, NodeFilter
from llama_index_ext._llm import FrameworkLLM, StepPrompts, embedding_of
from llama_index_ext._records import annotate_node, check_nodes, check_source, check_type, read_content, select_hits
from llama_index_ext._retriever import QueryRetriever
from llama_index_ext._store import LlamaIndexStore, underlying_index
from llama_index_ext.events import PathHopEvent, send_explanations
from llama_index_ext.rerank import LikelihoodRerank
from llama_index_ext.settings import PromptRankRerankSettings, PromptRankRetrieverSettings

dispatcher = get_dispatcher(__name__)

# Not SOURCE, which is the whole document of the node.
_FOLLOWED = (NodeRelationship.NEXT, NodeRelationship.PREVIOUS, NodeRelationship.CHILD, NodeRelationship.PARENT)


@dataclass(frozen=True)
class _NodeStores(PathStores[BaseNode]):
    """Stores of a path search for one question. `settings` are those of the component."""

    settings: Any

    def own_id(self, record: BaseNode) -> str:
        return record.node_id

    def name_records(self, records: Sequence[BaseNode]) -> list[str]:
        return [node.node_id for node in records]

    def to_passage(self, record: BaseNode, name: str) -> Passage:
        return linked_passage(record, name, self.settings.title_key, self.settings.metadata_mode)

    def hop_event(self, hop: dict[str, Any]) -> FunctionRequest:
        return FunctionRequest(partial(dispatcher.event, PathHopEvent(**hop)))


def _open_stores(component: Any, query_bundle: QueryBundle | None = None, name: str = "") -> _NodeStores:
    """Return the stores of a component for one question. `name` is that of a component that warns of its filter."""
    source, docstore = component.source, component.store
    access_filter = NodeFilter(component.filters, source)
    query = query_bundle or QueryBundle("")
    linked_source = source if docstore is None else None
    return _NodeStores(
        access_filter=access_filter,
        source=None if source is None else LlamaIndexStore(query, source, access_filter, docstore, name),
        linked_store=LlamaIndexStore(QueryBundle(""), linked_source, NodeFilter(None), docstore),
        knows_all_ids=docstore is not None,
        is_one_store=underlying_index(source) is not None,
        settings=component.settings,
    )


def linked_passage(node: BaseNode, id: str, title_key: str, metadata_mode: MetadataMode) -> Passage:
    """Return the passage of a node that is linked to others.

    Args:
        node: The node.
        id: Id of the passage.
        title_key: Metadata key of the title.
        metadata_mode: Metadata that the model reads in addition to the title.
    """
    return Passage(
        read_content(node, metadata_mode),
        id=id,
        title=value_text(node.metadata.get(title_key)),
        links=list_related_ids(node),
        metadata=node.metadata,
    )


def list_related_ids(node: BaseNode) -> tuple[str, ...]:
    """Return the ids of the next, previous, child and parent nodes."""
    related = (node.relationships.get(kind, []) for kind in _FOLLOWED)
    infos = (info for entry in related for info in ([entry] if isinstance(entry, RelatedNodeInfo) else entry))
    return tuple(dict.fromkeys(info.node_id for info in infos))


class PromptRankRerank(LikelihoodRerank):
    """Reranks nodes by the best path of linked nodes, for multi-hop questions.

    Paths lead through the given nodes, and through other nodes if `store` or `source` is given.

    Args:
        model: A `load_language_model` specification, or a language model.
        top_n: Maximum number of nodes, 3 by default. None keeps all.
        links: Kinds of links between nodes: `"metadata"` (node ids that the metadata list under `links_key`),
            `"hyperlinks"` (Markdown and HTML, to addresses in the metadata), `"titles"` (the text mentions another
            node's title, metadata `title_key`), `"names"` (two nodes mention the same name), `"relationships"` (next,
            previous, parent and child nodes). None is the first four, or those of the preset.
        store: Document store, such as `index.docstore`, from which linked nodes are fetched by id. They may enter the
            result. It has no default, because a postprocessor does not know where its nodes come from.
        source: Retriever, index or record store. Each path also leads to the three nodes that it finds with the
            question and the path's last node as its query, for texts without links.
        filters: `MetadataFilters`, or a function that returns True for nodes that may be seen. No other node is read,
            whether it is given, fetched or retrieved. Fetched nodes obey the filters of `source`, too.
        embed: An embedding model of the framework, an encoder's specification such as `"onnx:DIR"`, or a function from
            texts to vectors. Its similarities count in addition to the likelihood.
        prior: Prior from the nodes' scores, as for `UPRRerank`.
        preset: `"paper"` sets what the paper fixes and other arguments leave open: prompts, temperature, ensemble,
            search, links (`"metadata"` and `"hyperlinks"`) and the paths that each hop extends. It requires a neural
            model. None keeps `settings.preset`.
        score: Scale of the scores, as for `UPRRerank`.
        explain: Explain the rank of each result.
        model_options: Options of the language model.
        settings: Further settings: `llama_index_ext.settings.PromptRankRerankSettings`. `tune` finds its
            `instructions`, `ensemble` and `temperature`.

    `store`, `source`, `filters` and `embed` are not part of the serialized configuration.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> turing = TextNode(text="Alan Turing was born in Maida Vale.", metadata={"title": "Alan Turing"})
    >>> vale = TextNode(text="It is a district of London.", metadata={"title": "Maida Vale"})
    >>> london = TextNode(text="London is the capital of England.", metadata={"title": "London"})
    >>> nodes = [NodeWithScore(node=node) for node in (london, vale, turing)]
    >>> question = "Which London district was Turing born in?"
    >>> [node.node.metadata["title"] for node in PromptRankRerank().postprocess_nodes(nodes, query_str=question)]
    ['Alan Turing', 'Maida Vale', 'London']
    """

    links: tuple[TextLinkName | Literal["relationships"], ...] | None = Field(
        default=None, description="Kinds of links between nodes."
    )
    prior: Prior | None = Field(default=None, description="Prior from the nodes' scores, as for UPRRerank.")
    preset: Preset | None = Field(
        default=None, description='Values for all that is left open: "paper" for those of the paper.'
    )
    store: BaseDocumentStore | None = Field(default=None, exclude=True, description="Store of linked nodes.")
    source: BaseRetriever | VectorStoreIndex | RecordStore | None = Field(
        default=None, exclude=True, description="Finds more nodes for each path."
    )
    filters: Filters | None = Field(default=None, exclude=True, description="Nodes that may be seen.")
    embed: BaseEmbedding | Embed | str | None = Field(
        default=None, exclude=True, description="An embedding model, an encoder's specification, or a function."
    )
    settings: PromptRankRerankSettings | dict[str, Any] = Field(
        default=PromptRankRerankSettings(), description="Further settings."
    )

    def _build_core(self) -> PathRerank:
        NodeFilter(self.filters)  # checks them
        return build_path_rerank(self, embedding_of(self.embed))

    def _passage(self, node: BaseNode) -> Passage:
        settings: Any = self.settings
        return linked_passage(node, node.node_id, settings.title_key, settings.metadata_mode)

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
                hits = select_hits(nodes)
                query, passages = clean_question(query_bundle.query_str), [self._passage(hit.node) for hit in hits]
                ranking = await arun(self._requests(query, passages, [finite_score(hit.score) for hit in hits]))
                results += await asyncio.to_thread(self._build_results, hits, query, ranking)
        return results

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        return run(self._requests(query, passages, scores))

    def _requests(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Requests[Ranking[Passage]]:
        return rank_linked(self.core, query, passages, scores, _open_stores(self))


@component
@dataclass(eq=False, repr=False)
class PromptRankRetriever(StepPrompts, QueryRetriever):
    """Finds nodes that answer a question together, by searching paths of linked nodes (multi-hop questions).

    Args:
        documents: Nodes that may be linked to, although `source` does not find them. Titles and addresses of the
            visible ones are indexed once, and a lexical model takes its statistics from them. If there is a store,
            texts and metadata are read from it by id.
        source: A retriever, an index or a record store. Its results are the first nodes of paths: all that a retriever
            returns, up to `settings.pool` of an index. Let a retriever return many; the paper takes 100.
        store: Document store from which linked nodes are fetched by id. By default, `documents` are fetched from the
            index behind `source`. If there is none, they are used as they were given.
        filters: `MetadataFilters`, or a function that returns True for nodes that may be seen. No other node is read,
            named or linked to. Linked nodes obey the filters of `source`, too.
        links: Kinds of links between nodes, as for `PromptRankRerank`; also `"retrieval"`: each path leads to the three
            nodes that `source` finds with the question and the path's last node as its query.
        preset: `"paper"` as for `PromptRankRerank`. The vectors of an index then do not count by default.
        llm: LLM that names what the best path of each hop but the last lacks, with one short call and one query to
            `source` each. None asks no LLM; `Settings.llm` is not used.
        model: A `load_language_model` specification, or a language model.
        model_options: Options of the language model.
        top_n: Maximum number of nodes. None returns every node on a scored path.
        embed: An embedding model, an encoder's specification such as `"onnx:DIR"`, or a function from texts to vectors.
            `documents` are embedded when the retriever is built, other nodes when they are first found. By default, the
            vectors of the index behind `source` count, if it has one for each of the `documents`.
        explain: Explain the rank of each result.
        settings: Further settings: `llama_index_ext.settings.PromptRankRetrieverSettings`, or a mapping of its fields.
        callback_manager: Callback manager, as for every LlamaIndex retriever.

    Each node is returned once, as a copy: `metadata["drillrank_path"]` are the ids of its best path, joined by " > ",
    and `drillrank_path_score` is the score of that path and of the node (see `PathSearch.search`). Every hop sends a
    `PathHopEvent`. With an `llm`, `drillrank_missing` is what it named, joined by " | ", and
    `drillrank_prompt_tokens`, `drillrank_completion_tokens` and `drillrank_llm_calls` are its cost;
    `drillrank_problems` describes calls that failed. `update_prompts` changes its prompt, too.

    The views of a section that `MultiViewNodeParser` made are one candidate: its raw node, fetched from the index
    behind `source` or else from `store`. If neither can be asked, the best hit represents the section.

    A `DrillrankWarning` is given if the store has other texts under the ids of `documents`, or none of these ids.

    Raises:
        InvalidInput: A setting cannot be used, two visible `documents` share an id, the question is blank, or the
            retriever has a filter that cannot be applied to linked nodes.
        LLMFailure: A call failed or its answer is unusable, and `settings.on_failure` says to raise.

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
    source: BaseRetriever | VectorStoreIndex | RecordStore
    store: BaseDocumentStore | None = None
    filters: Filters | None = None
    links: Sequence[LinkName] | None = None
    preset: Preset | None = None
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
        self.settings = settings = with_preset(as_settings(PromptRankRetrieverSettings, self.settings), self.preset)
        check_switch(explain=self.explain)
        check_source(self, self.source)
        self.documents = check_nodes(self, self.documents)
        check_type(self, BaseDocumentStore, store=self.store)
        check_top_n(self.top_n)
        missing_prompt: Any = settings.missing_prompt  # of the framework, or a text
        prompt = self._step_prompt("missing_prompt", missing_prompt)
        self._missing_llm = None if self.llm is None else FrameworkLLM(self.llm, "name what is missing")
        model = load_language_model(self.model, **(self.model_options or {}))
        index = underlying_index(self.source)
        self._paths = PathRetrieval(
            self.documents,
            model,
            _open_stores(self),
            settings=settings,
            links=self.links,
            embed=embedding_of(self.embed),
            index_embed=None if index is None else embedding_of(index._embed_model),
            missing_prompt=None if self.llm is None else prompt,
            explain=self.explain,
        )

    def _retrieve_requests(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        stores = _open_stores(self, query_bundle, type(self).__name__)
        results = yield from self._paths.retrieve_requests(query, stores, self.top_n, usage)
        nodes = list(map(_build_hit, results))
        if explains(self.explain):
            send_explanations(query, nodes, [result.explanation for result in results])
        return nodes

    def _framework_llm(self) -> FrameworkLLM | None:
        return self._missing_llm


def _build_hit(result: PathResultRecord[BaseNode]) -> NodeWithScore:
    metadata = without_ranking(result.record.metadata) | result.added_metadata
    return NodeWithScore(node=annotate_node(result.record, metadata, result.added_metadata), score=result.score)
