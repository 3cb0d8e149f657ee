"""What all rerankers share: fields, events, nodes in and out."""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from pydantic import InstanceOf

from drillrank import Passage, Ranked
from drillrank.errors import InvalidInput
from drillrank.explanation.explanations import explains
from drillrank.hosts.notes import noted, notes
from drillrank.hosts.reranking import Reranker
from llama_index_ext._nodes import unread
from llama_index_ext.events import send_explanations
from llama_index_ext.settings import RerankSettings

dispatcher = get_dispatcher(__name__)


class LikelihoodRerank(Reranker, BaseNodePostprocessor):
    """Base of the rerankers.

    Nodes are handed back unchanged, best first, with the new score. Copied are those with something to say in their
    metadata: `drillrank_cut_tokens` where the model did not read all of one, or with `keep_retrieval_score`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, protected_namespaces=())

    settings: InstanceOf[RerankSettings] = Field(default=RerankSettings(), description="What is rarely touched.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        model = state["__pydantic_private__"]["_language_model"]  # a fitted model stays fitted
        super().__setstate__({**state, "__dict__": {**state["__dict__"], "model": model, "model_options": {}}})

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
        return cls.__name__

    def _passage(self, node: BaseNode) -> Passage:
        return Passage(node.get_content(metadata_mode=self.settings.metadata_mode), id=node.node_id)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InvalidInput(f"{self.class_name()} needs a query: pass query_bundle or query_str.")
        if not nodes:
            return []
        dispatcher.event(
            ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=self.top_n or len(nodes), model_name=self.model)
        )
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: self.model,
            EventPayload.QUERY_STR: query_bundle.query_str,
            EventPayload.TOP_K: self.top_n,
        }
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            try:
                reranked = self._best(nodes, query_bundle.query_str)
            except BaseException as exception:  # as the host ends the calls of an LLM
                dispatcher.event(ExceptionEvent(exception=exception))
                raise
            event.on_end(payload={EventPayload.NODES: reranked})
        dispatcher.event(ReRankEndEvent(nodes=reranked))
        return reranked

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await self._language_model.run_in_worker(self._postprocess_nodes, nodes, query_bundle)

    def _best(self, nodes: list[NodeWithScore], query: str) -> list[NodeWithScore]:
        passages, scores = [self._passage(node.node) for node in nodes], [node.score for node in nodes]
        kept = list(self._selected(query, nodes, passages, scores))
        reranked = [self._reranked(before, item) for before, item, _ in kept]
        if explains(self.explain):
            send_explanations(query, reranked, [why for _, _, why in kept])
        return reranked

    def _reranked(self, before: NodeWithScore | BaseNode, item: Ranked[Passage]) -> NodeWithScore:
        node, score = (before.node, before.score) if isinstance(before, NodeWithScore) else (before, None)
        kept = {"retrieval_score": score} if self.settings.keep_retrieval_score else {}
        metadata = noted(node.metadata, item.details) | kept
        if metadata != node.metadata:
            node = unread(node, metadata, [*notes(item.details), *kept])
        return NodeWithScore(node=node, score=item.score)
