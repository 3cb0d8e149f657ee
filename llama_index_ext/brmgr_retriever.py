"""Retrieval together with generation as a LlamaIndex retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from typing import Any

from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode

from drillrank import LanguageModel, Passage
from drillrank.errors import check_positive, warn
from drillrank.hosts.store import retrieved_and_generated
from drillrank.llm import Call, Requests, Usage
from drillrank.passages import check_top_n
from drillrank.rerank.prior import Prior
from drillrank.settings import as_settings
from llama_index_ext._filters import Filters, NodeFilter, underlying_index
from llama_index_ext._llm import FrameworkLLM
from llama_index_ext._lookups import StoreLookups
from llama_index_ext._records import check_retriever, unread
from llama_index_ext._retriever import QueryRetriever
from llama_index_ext.rerank import BRMGRRerank
from llama_index_ext.settings import BRMGRRetrieverSettings


@dataclass(eq=False, repr=False)
class BRMGRRetriever(QueryRetriever):
    """Retrieves nodes, lets an LLM write some more, and merges the two (see `BRMGRRerank`).

    Args:
        source: Any LlamaIndex retriever.
        llm: Writes the passages; None takes `Settings.llm` at each query.
        n_generated: Passages to ask for, one call each.
        model: Language model that ranks: a `load_language_model` specification, or a ready one.
        model_options: Options of that model.
        top_n: Nodes to return; None returns all.
        filters: The host's `MetadataFilters`, or a function from a node to True or False: what else the retriever
            brings is left out.
        prior: What the scores of the retriever's nodes say, as for `UPRRerank`.
        guard: Drop generated nodes that no retrieved one supports, as for `BRMGRRerank`.
        generated_share: The largest share of generated nodes among those returned.
        explain: Whether results say why they stand where they stand.
        settings: What is rarely touched: `llama_index_ext.settings.BRMGRRetrieverSettings`, or a mapping of its fields.
        callback_manager: As for every LlamaIndex retriever.

    Generated nodes are made for one query and stored nowhere. A call that fails or brings nothing costs no retrieved
    node: there is a `DrillrankWarning`, and the others are merged. Give the LLM a time limit: a call that runs into it
    is a call that failed.

    Raises:
        InvalidInput: a setting cannot be used, or the question is blank.

    >>> from llama_index.core.llms import MockLLM
    >>> from llama_index.core import Document
    >>> from llama_index_ext import D3Retriever
    >>> inner = D3Retriever([Document(text="Emma is a novel that Jane Austen wrote.")])
    >>> found = BRMGRRetriever(inner, MockLLM(), n_generated=1).retrieve("Who wrote Emma?")  # answers with the prompt
    >>> [node.metadata.get("drillrank_origin", "retrieved") for node in found]
    ['generated', 'retrieved']
    """

    source: BaseRetriever
    llm: LLM | None = None
    n_generated: int = 3
    _: KW_ONLY
    model: str | LanguageModel = "unigram"
    model_options: dict[str, Any] | None = None
    top_n: int | None = 5
    filters: Filters | None = None
    prior: Prior | None = "retrieval"
    guard: bool | float = False
    generated_share: float = 1.0
    explain: bool = False
    settings: BRMGRRetrieverSettings | Mapping[str, Any] = BRMGRRetrieverSettings()
    callback_manager: InitVar[CallbackManager | None] = None

    def __post_init__(self, callback_manager: CallbackManager | None) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager)
        self.settings = self._settings = as_settings(BRMGRRetrieverSettings, self.settings)
        check_retriever(self, self.source)
        check_positive(n_generated=self.n_generated)
        check_top_n(self.top_n)
        NodeFilter(self.filters)  # says now what is wrong with them
        if self.prior == "cosine":
            _check_cosines(self.source)
        names = ("model", "top_n", "prior", "guard", "generated_share", "explain", "settings", "callback_manager")
        self._rerank = BRMGRRerank(
            model_options=self.model_options or {}, **{name: getattr(self, name) for name in names}
        )

    @property
    def _workers(self) -> int:
        return self._settings.workers

    def _framework_llm(self) -> FrameworkLLM:
        return FrameworkLLM(self.llm or Settings.llm, "write a passage")

    def _found(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        access_filter = NodeFilter(self.filters, self.source)
        store = StoreLookups(query_bundle, self.source, access_filter, component=type(self).__name__)
        found, written = yield from retrieved_and_generated(self._settings, query, self.n_generated, store)
        retrieved = [NodeWithScore(node=self._retrieved(hit.node), score=hit.score) for hit in found or ()]
        rerank, arguments = self._rerank, ([*retrieved, *map(self._node, written)], query_bundle)
        [merged] = yield [
            Call(partial(rerank.postprocess_nodes, *arguments), partial(rerank.apostprocess_nodes, *arguments))
        ]
        return merged  # type: ignore[no-any-return]

    def _retrieved(self, node: BaseNode) -> BaseNode:
        """What was retrieved was written by nobody's LLM here, whatever is stored with it."""
        key = self._settings.origin_key
        if key not in node.metadata:
            return node
        return unread(node, {name: value for name, value in node.metadata.items() if name != key}, [])

    def _node(self, passage: Passage) -> NodeWithScore:
        node = TextNode(
            id_=passage.id,
            text=passage.text,
            metadata={self._settings.origin_key: "generated"},
            excluded_embed_metadata_keys=[self._settings.origin_key],
            excluded_llm_metadata_keys=[self._settings.origin_key],
        )
        return NodeWithScore(node=node)


def _check_cosines(source: BaseRetriever) -> None:
    """Warn where the store behind a retriever says that it scores with something else than cosines."""
    index = underlying_index(source)
    store = index and index.vector_store
    metric = str(getattr(store, "similarity_metric", "") or "").lower()  # of Milvus and those like it
    if type(store).__name__ in ("ChromaVectorStore", "FaissVectorStore") or metric in ("l2", "euclidean"):
        warn(
            f'BRMGRRetriever: prior="cosine" takes scores for cosines; those of {type(store).__name__} are made of '
            'distances. Give prior="retrieval", which takes their ranks.'
        )
