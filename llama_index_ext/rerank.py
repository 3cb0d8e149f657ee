"""Rerankers as LlamaIndex node postprocessors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import BoundArguments
from typing import Any

from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.instrumentation.span_handlers import NullSpanHandler
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from pydantic import Field

from drillrank import LanguageModel, Passage
from drillrank.errors import InvalidInput, warn
from drillrank.explanation.explanations import explains
from drillrank.frameworks.components import (
    BRMGRRerankFields,
    MonoT5Fields,
    RelevanceFields,
    RerankerComponentFields,
    UPRFields,
)
from drillrank.frameworks.metadata import RANKING_KEYS, RANKING_NOTES, added_metadata, with_notes
from drillrank.passages import Ranking
from llama_index_ext._records import RankedNode, unread
from llama_index_ext.events import send_explanations
from llama_index_ext.settings import BRMGRRerankSettings, RelevanceRerankSettings, RerankSettings

dispatcher = get_dispatcher(__name__)


class _CutOff(NullSpanHandler):
    """Says so where the host's cut-off on similarities is behind scores that are logarithms, and leaves nothing."""

    def span_exit(
        self, id_: str, bound_args: BoundArguments, instance: Any = None, result: Any = None, **kwargs: Any
    ) -> None:
        """A postprocessor of the host's is done."""
        nodes = [] if result else bound_args.arguments["nodes"]
        negative = nodes and all(isinstance(hit, RankedNode) and (hit.score or 0) < 0 for hit in nodes)
        if negative and isinstance(instance, SimilarityPostprocessor):
            warn(
                f"SimilarityPostprocessor(similarity_cutoff={instance.similarity_cutoff}) drops all {len(nodes)} "
                "nodes: their scores are negative, as logarithms of likelihoods are. Take it away, or give a reranker "
                'score="probability", which is between 0 and 1.'
            )


get_dispatcher(SimilarityPostprocessor.__module__).add_span_handler(_CutOff())


class LikelihoodRerank(RerankerComponentFields, BaseNodePostprocessor):
    """Base of the rerankers.

    Nodes are handed back unchanged, best first, with the new score. Copied are those with something to say in their
    metadata: `drillrank_cut_tokens` where the model did not read all of one, or with `keep_retrieval_score`.
    """

    settings: RerankSettings | dict[str, Any] = Field(default=RerankSettings(), description="What is rarely touched.")

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
        return cls.__name__

    def _passage(self, node: BaseNode) -> Passage:
        settings: Any = self.settings
        return Passage(node.get_content(metadata_mode=settings.metadata_mode), id=node.node_id)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        with self._events(nodes, query_bundle) as best:
            if nodes and query_bundle:
                passages, scores = [self._passage(hit.node) for hit in nodes], [hit.score for hit in nodes]
                best += self._best(nodes, query_bundle.query_str, self._rank(query_bundle.query_str, passages, scores))
        return best

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await self.language_model.run_in_worker(self._postprocess_nodes, nodes, query_bundle)

    @contextmanager
    def _events(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None) -> Iterator[list[NodeWithScore]]:
        """The host's events around a ranking, which adds its results to the list; none where nothing is ranked."""
        if query_bundle is None:
            raise InvalidInput(f"{self.class_name()} needs a query: pass query_bundle or query_str.")
        best: list[NodeWithScore] = []
        if not nodes:
            yield best
            return
        name = self.model.spec if isinstance(self.model, LanguageModel) else self.model
        dispatcher.event(
            ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=self.top_n or len(nodes), model_name=name)
        )
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: query_bundle.query_str,
            EventPayload.TOP_K: self.top_n,
        }
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            try:
                yield best
            except BaseException as exception:  # as the host ends the calls of an LLM
                dispatcher.event(ExceptionEvent(exception=exception))
                raise
            event.on_end(payload={EventPayload.NODES: best})
        dispatcher.event(ReRankEndEvent(nodes=best))

    def _best(self, nodes: list[NodeWithScore], query: str, ranking: Ranking[Passage]) -> list[NodeWithScore]:
        """What is kept, with the new scores; `details["reached"]` is a node that was not given."""
        settings: Any = self.settings
        best: list[NodeWithScore] = []
        why = []
        for item, reason in self._selected(ranking):
            reached = item.details.get("reached")
            hit = nodes[item.details["position"]] if reached is None else NodeWithScore(node=reached)
            node, first_stage = hit.node, {"retrieval_score": hit.score} if settings.keep_retrieval_score else {}
            if first_stage or any(map(item.details.get, RANKING_NOTES)) or not RANKING_KEYS.isdisjoint(node.metadata):
                metadata = with_notes(node.metadata, item.details) | first_stage
                node = unread(node, metadata, [*added_metadata(item.details), *first_stage])
            best.append(RankedNode(node=node, score=item.score))
            why.append(reason)
        if explains(self.explain):
            send_explanations(query, best, why)
        return best


class UPRRerank(UPRFields, LikelihoodRerank):
    """Reranks nodes by the likelihood of the question, given the node.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Nodes to keep, 3 by default; None keeps all.
        prior: What the nodes' scores say before their texts are read (see `drillrank.UPR`): `"retrieval"` takes their
            ranks, on whatever scale they are; `"cosine"` takes them as the cosines of a sentence encoder, as most
            vector indexes give them. A node without a score counts as an average one; where none has one, nothing
            counts, and `"cosine"` is refused. None leaves the scores alone.
        score: `"log_likelihood"`, at most 0; `"probability"`; or `"softmax"`.
        explain: Whether results say why they stand where they stand.
        template: Prompt with `{text}` and, if wanted, `{title}` before it.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        prior_weight: How much the prior counts.
        read: With a sum of experts, how many the whole sum reads, as for `drillrank.UPR`; all for `score="softmax"`.
        preset: Score as published code does, as for `drillrank.UPR`.
        model_options: Options of the language model.
        settings: What is rarely touched: `llama_index_ext.settings.RerankSettings`.

    Raises:
        InvalidInput: the query is missing or blank, the template is malformed, or there is a prior and a node's score
            is no finite number or no cosine.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> nodes = [NodeWithScore(node=TextNode(text=text)) for text in ("Basel lies on the Rhine.", "Emma is a novel.")]
    >>> UPRRerank(top_n=1).postprocess_nodes(nodes, query_str="Which novel?")[0].node.text
    'Emma is a novel.'
    """


class RelevanceRerank(RelevanceFields, LikelihoodRerank):
    """Reranks nodes by the probability that a language model calls them relevant, asked as it was trained to be.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that tells the probabilities of
            its next token.
        top_n: Nodes to keep, 3 by default; None keeps all.
        score: `"log_likelihood"`, the score of the transform: the logarithm of P(relevant) or its log-odds;
            `"probability"`, P(relevant); or `"softmax"`, each one's share of the sum of all P(relevant).
        explain: Whether results say why they stand where they stand.
        preset: How published models are asked, as for `drillrank.Relevance`.
        template: Prompt with `{query}`, `{text}` and, if wanted, `{instruction}`; None is the preset's.
        instruction: What the model is told of the task, where the prompt has a place for it; None is the preset's.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        model_options: Options of the language model.
        settings: What is rarely touched: `llama_index_ext.settings.RelevanceRerankSettings`.

    Raises:
        LacksCapability: the model does not tell the probabilities of its next token, as the unigram model.
        InvalidInput: the query is missing or blank, or a setting cannot be used.

    >>> reranker = RelevanceRerank("hf:Qwen/Qwen3-Reranker-0.6B", preset="qwen3-reranker", score="probability")
    >>> reranker.postprocess_nodes([], query_str="Which novel?")  # the model is loaded for the first node
    []
    """

    settings: RelevanceRerankSettings | dict[str, Any] = Field(
        default=RelevanceRerankSettings(), description="What is rarely touched."
    )


class MonoT5Rerank(MonoT5Fields, LikelihoodRerank):
    """Reranks nodes by the probability that a language model calls them relevant to the question.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that reads instructions.
        top_n: Nodes to keep, 3 by default; None keeps all.
        score: `"log_likelihood"`, the logarithm of P(relevant), at most 0; `"probability"`, P(relevant) itself; or
            `"softmax"`, each one's share of the sum of all P(relevant).
        explain: Whether results say why they stand where they stand.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        model_options: Options of the language model.
        settings: What is rarely touched: `llama_index_ext.settings.RerankSettings`.

    Raises:
        InvalidInput: the query is missing or blank, or the model reads no instructions, as the unigram model.

    >>> reranker = MonoT5Rerank("hf:castorini/monot5-base-msmarco-10k", score="probability")
    >>> reranker.postprocess_nodes([], query_str="Which novel?")  # the model is loaded for the first node
    []
    """


class BRMGRRerank(BRMGRRerankFields, LikelihoodRerank):
    """Merges retrieved nodes with nodes that an LLM wrote: each kind ranked its own way, then paired by rank.

    A node whose metadata says `"generated"` under `origin_key` was written by an LLM; all others were retrieved.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Nodes to keep, 3 by default; None keeps all.
        prior: As for `UPRRerank`; it counts for retrieved nodes alone.
        score: `"log_likelihood"`, for both nodes of a pair the sum of their mean log-likelihoods; `"probability"`, its
            exponential; or `"softmax"`.
        explain: Whether results say why they stand where they stand.
        guard: Drop generated nodes that no retrieved one supports: True for support below 0.9, or a limit of your
            own from 0 to 1.
        generated_share: The largest share of generated nodes among those returned, from 0 to 1.
        model_options: Options of the language model.
        settings: What is rarely touched: `llama_index_ext.settings.BRMGRRerankSettings`.

    Raises:
        InvalidInput: the query is missing or blank, or a template is malformed.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> found = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
    >>> wrote = ["Emma was written by Charles Dickens.", "Jane Austen wrote the novel Emma."]
    >>> nodes = [TextNode(text=text) for text in found]
    >>> nodes += [TextNode(text=text, metadata={"drillrank_origin": "generated"}) for text in wrote]
    >>> reranker = BRMGRRerank(guard=True)
    >>> merged = reranker.postprocess_nodes([NodeWithScore(node=node) for node in nodes], query_str="Who wrote Emma?")
    >>> [item.node.text for item in merged][:2]
    ['Jane Austen wrote the novel Emma.', 'Emma is a novel that Jane Austen wrote.']
    """

    settings: BRMGRRerankSettings | dict[str, Any] = Field(
        default=BRMGRRerankSettings(), description="What is rarely touched."
    )

    def _passage(self, node: BaseNode) -> Passage:
        settings: Any = self.settings
        generated = node.metadata.get(settings.origin_key) == "generated"
        mode = MetadataMode.NONE if generated else settings.metadata_mode  # the LLM did not write the metadata
        return Passage(node.get_content(metadata_mode=mode), id=node.node_id, metadata={"generated": generated})
