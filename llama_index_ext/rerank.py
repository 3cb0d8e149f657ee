"""Rerankers as LlamaIndex node postprocessors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from pydantic import Field

from drillrank import LanguageModel, Passage
from drillrank.coverage import Coverage
from drillrank.errors import InvalidInput
from drillrank.explanation.explanations import explains
from drillrank.frameworks.components import (
    BRMGRRerankFields,
    MonoT5Fields,
    RelevanceFields,
    RerankerComponentFields,
    UPRFields,
)
from drillrank.frameworks.inputs import clean_question, finite_score, value_text
from drillrank.frameworks.metadata import RANKING_KEYS, describe_details, without_ranking
from drillrank.likelihood import PrefixEstimate
from drillrank.passages import Ranking
from drillrank.progress import OnProgress
from llama_index_ext._records import annotate_node, read_content, select_hits
from llama_index_ext.events import send_explanations
from llama_index_ext.settings import BRMGRRerankSettings, NodeRerankSettings, RelevanceRerankSettings, RerankSettings

dispatcher = get_dispatcher(__name__)


class LikelihoodRerank(RerankerComponentFields, BaseNodePostprocessor):
    """Base class of the rerankers.

    They return the given nodes unchanged, best first, with the new score. Only a node with new metadata is copied:
    `drillrank_cut_tokens` if the model did not read all of it, or `retrieval_score` with `keep_retrieval_score`. The
    views of a section (raw text, keywords, summary) are one candidate: the raw node if it is among them, or else the
    view with the best score.
    """

    settings: NodeRerankSettings | dict[str, Any] = Field(default=RerankSettings(), description="Further settings.")

    @classmethod
    def class_name(cls) -> str:
        """Return the name used in serialisation."""
        return cls.__name__

    def _passage(self, node: BaseNode) -> Passage:
        return self._titled_passage(node, self._settings.metadata_mode)

    def _titled_passage(self, node: BaseNode, mode: MetadataMode) -> Passage:
        """Return the passage of a node. Its title is not part of the text."""
        title_key = self._settings.title_key
        if title_key is None and getattr(self, "preset", None) == "paper":  # prompts of the papers have titles
            title_key = "title"
        title = value_text(node.metadata.get(title_key))
        if title:
            metadata = {key: value for key, value in node.metadata.items() if key != title_key}
            node = node.model_copy(update={"metadata": metadata})
        return Passage(read_content(node, mode), id=node.node_id, title=title)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        with self._send_events(nodes, query_bundle) as results:
            if nodes and query_bundle:
                hits = select_hits(nodes)
                query, passages = clean_question(query_bundle.query_str), [self._passage(hit.node) for hit in hits]
                ranking = self._rank(query, passages, [finite_score(hit.score) for hit in hits])
                results += self._build_results(hits, query, ranking)
        return results

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await self.language_model.run_in_worker(self._postprocess_nodes, nodes, query_bundle)

    @contextmanager
    def _send_events(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> Iterator[list[NodeWithScore]]:
        """Send the framework's events around a ranking that adds its results to the list. Without nodes, send none."""
        if query_bundle is None:
            raise InvalidInput(f"{self.class_name()} needs a query: pass query_bundle or query_str.")
        results: list[NodeWithScore] = []
        if not nodes:
            yield results
            return
        name = self.model.spec if isinstance(self.model, LanguageModel) else self.model
        top_n = None if isinstance(self.top_n, Coverage) else self.top_n
        dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=top_n or len(nodes), model_name=name))
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: query_bundle.query_str,
            EventPayload.TOP_K: top_n,
        }
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            try:
                yield results
            except BaseException as exception:  # the framework ends failed LLM calls likewise
                dispatcher.event(ExceptionEvent(exception=exception))
                raise
            event.on_end(payload={EventPayload.NODES: results})
        dispatcher.event(ReRankEndEvent(nodes=results))

    def _build_results(self, nodes: list[NodeWithScore], query: str, ranking: Ranking[Passage]) -> list[NodeWithScore]:
        """Return the best nodes with the new scores. `details["reached"]` is a node that a path search added."""
        results: list[NodeWithScore] = []
        explanations = []
        for item, explanation in self._select_results(ranking):
            reached = item.details.get("reached")
            hit = nodes[item.details["position"]] if reached is None else NodeWithScore(node=reached)
            node, added = hit.node, describe_details(item.details) | self._describe_hit(hit)
            if added or not RANKING_KEYS.isdisjoint(node.metadata):
                node = annotate_node(node, without_ranking(node.metadata) | added, added)
            results.append(NodeWithScore(node=node, score=item.score))
            explanations.append(explanation)
        if explains(self.explain):
            send_explanations(query, results, explanations)
        return results

    def _describe_hit(self, hit: NodeWithScore) -> dict[str, Any]:
        """Return metadata for a result that do not depend on the ranking."""
        return {"retrieval_score": hit.score} if self._settings.keep_retrieval_score else {}


class UPRRerank(UPRFields, LikelihoodRerank):
    """Reranks nodes by the likelihood of the question given the node.

    Args:
        model: A `load_language_model` specification, or a language model.
        top_n: Maximum number of results; None returns all nodes.
        prior: Prior from the nodes' scores (see `drillrank.UPR`). `"retrieval"` uses their ranks, so scores may have
            any scale. `"cosine"` reads them as cosines of a sentence encoder, as most vector indexes return them. A
            node without a score gets the average prior. Without any score, no prior is used, and `"cosine"` is an
            error. None ignores the scores.
        score: Scale of the new scores: `"log_likelihood"`, at most 0; `"probability"`, its exponential; or
            `"softmax"`, the share among all candidates. For a cut-off on scores, use `"softmax"` or the setting
            `min_share`: likelihoods of a perfect match differ by question, and are small on every scale.
        explain: Explain the rank of each result.
        template: Prompt with `{text}` and optionally `{title}` before it.
        max_passage_tokens: Maximum number of tokens of a passage; None means the model's own limit.
        prior_weight: Weight of the prior.
        read: With a sum of models, number of passages that all of them score, as for `drillrank.UPR`. All passages
            with `score="softmax"`.
        preset: Formula of published code, as for `drillrank.UPR`.
        model_options: Options of the language model.
        settings: Further settings, `llama_index_ext.settings.RerankSettings` or a mapping of its fields.

    Raises:
        InvalidInput: The query is missing or blank, the template is malformed, or a score cannot be used for the prior.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> nodes = [NodeWithScore(node=TextNode(text=text)) for text in ("Basel lies on the Rhine.", "Emma is a novel.")]
    >>> UPRRerank(top_n=1).postprocess_nodes(nodes, query_str="Which novel?")[0].node.text
    'Emma is a novel.'
    """

    def precompute(
        self, nodes: Sequence[BaseNode | NodeWithScore], on_progress: OnProgress | None = None
    ) -> PrefixEstimate:
        """Compute nodes at indexing time, so that a question to them costs its own tokens only.

        Args:
            nodes: The nodes, with the metadata that they have at the time of the question.
            on_progress: Callback that receives the number of passages done and of all passages.

        Raises:
            LacksCapability: The model has no prefix cache, as in `model_options={"prefix_cache": "1 GB"}`.
            InvalidInput: The nodes do not fit into the prefix cache.
        """
        estimate: PrefixEstimate = self.core.precompute(self._list_passages(nodes), on_progress)
        return estimate

    def estimate_precompute(self, nodes: Sequence[BaseNode | NodeWithScore]) -> PrefixEstimate:
        """Estimate the bytes that `precompute` keeps and the time that it takes.

        Raises:
            LacksCapability: The model has no prefix cache.
        """
        estimate: PrefixEstimate = self.core.estimate_precompute(self._list_passages(nodes))
        return estimate

    def _list_passages(self, nodes: Sequence[BaseNode | NodeWithScore]) -> list[Passage]:
        hits = [node if isinstance(node, NodeWithScore) else NodeWithScore(node=node) for node in nodes]
        return [self._passage(hit.node) for hit in select_hits(hits)]


class RelevanceRerank(RelevanceFields, LikelihoodRerank):
    """Reranks nodes by the probability that a language model calls them relevant, with the prompt of its training.

    Args:
        model: A `load_language_model` specification, or a language model. It must compute next-token probabilities, or
            score relevance without a prompt, as cross-encoders (`"ce:<model>"`) and rerank servers
            (`"http://host:port/rerank#<model>"`) do.
        top_n: Maximum number of results; None returns all nodes.
        score: Scale of the new scores: `"log_likelihood"`, the logarithm of P(relevant) or its log-odds;
            `"probability"`, P(relevant); or `"softmax"`, the share in the sum of all P(relevant).
        explain: Explain the rank of each result.
        preset: Prompt and answer words of a published model, as for `drillrank.Relevance`.
        template: Prompt with `{query}`, `{text}` and optionally `{instruction}`; None means the preset's.
        instruction: Description of the task, for prompts with `{instruction}`; None means the preset's.
        max_passage_tokens: Maximum number of tokens of a passage; None means the model's own limit.
        model_options: Options of the language model.
        settings: Further settings, `llama_index_ext.settings.RelevanceRerankSettings` or a mapping of its fields.

    Raises:
        LacksCapability: The model can do neither, such as the unigram model.
        InvalidInput: The query is missing or blank, or a setting cannot be used.

    >>> reranker = RelevanceRerank("hf:Qwen/Qwen3-Reranker-0.6B", preset="qwen3-reranker", score="probability")
    >>> reranker.postprocess_nodes([], query_str="Which novel?")  # the model is loaded for the first node
    []
    """

    settings: RelevanceRerankSettings | dict[str, Any] = Field(
        default=RelevanceRerankSettings(), description="Further settings."
    )


class MonoT5Rerank(MonoT5Fields, LikelihoodRerank):
    """Reranks nodes by the probability that a MonoT5 model calls them relevant to the question.

    Args:
        model: A `load_language_model` specification, or a language model that reads instructions.
        top_n: Maximum number of results; None returns all nodes.
        score: Scale of the new scores: `"log_likelihood"`, the logarithm of P(relevant), at most 0; `"probability"`,
            P(relevant); or `"softmax"`, the share in the sum of all P(relevant).
        explain: Explain the rank of each result.
        max_passage_tokens: Maximum number of tokens of a passage; None means the model's own limit.
        model_options: Options of the language model.
        settings: Further settings, `llama_index_ext.settings.RerankSettings` or a mapping of its fields.

    Raises:
        InvalidInput: The query is missing or blank, or the model reads no instructions, such as the unigram model.

    >>> reranker = MonoT5Rerank("hf:castorini/monot5-base-msmarco-10k", score="probability")
    >>> reranker.postprocess_nodes([], query_str="Which novel?")  # the model is loaded for the first node
    []
    """


class GeneratedNode(TextNode):
    """Node that an LLM wrote, for `BRMGRRerank`.

    Only the class marks it. A store returns a plain node, so no stored metadata can pass as generated.

    >>> GeneratedNode(text="Jane Austen wrote the novel Emma.").class_name()
    'TextNode'
    """

    @classmethod
    def class_name(cls) -> str:
        """Return the class name of a plain node, as which stores read this node."""
        return TextNode.class_name()


class BRMGRRerank(BRMGRRerankFields, LikelihoodRerank):
    """Merges retrieved nodes with nodes that an LLM wrote. Each kind is ranked in its own way, then paired by rank.

    A `GeneratedNode` was written by an LLM. All other nodes were retrieved, whatever their metadata say.
    Results that an LLM wrote have the metadata `drillrank_origin` (setting `origin_key`) with the value `"generated"`.

    Args:
        model: A `load_language_model` specification, or a language model.
        top_n: Maximum number of results; None returns all nodes.
        prior: Prior for retrieved nodes, as for `UPRRerank`.
        score: Scale of the new scores: `"log_likelihood"`, for both nodes of a pair the sum of their mean
            log-likelihoods; `"probability"`, its exponential; or `"softmax"`.
        explain: Explain the rank of each result.
        guard: Drop generated nodes that no retrieved node supports. True requires a support of 0.9; a number from 0 to
            1 sets the minimum support.
        preset: `"paper"` sets what the paper fixes, as for `drillrank.BRMGR`.
        model_options: Options of the language model.
        settings: Further settings, `llama_index_ext.settings.BRMGRRerankSettings` or a mapping of its fields.

    Raises:
        InvalidInput: The query is missing or blank, or a template is malformed.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> retrieved = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
    >>> generated = ["Emma was written by Charles Dickens.", "Jane Austen wrote the novel Emma."]
    >>> nodes = [*(TextNode(text=text) for text in retrieved), *(GeneratedNode(text=text) for text in generated)]
    >>> reranker = BRMGRRerank(guard=True)
    >>> merged = reranker.postprocess_nodes([NodeWithScore(node=node) for node in nodes], query_str="Who wrote Emma?")
    >>> [item.node.text for item in merged][:2]
    ['Jane Austen wrote the novel Emma.', 'Emma is a novel that Jane Austen wrote.']
    """

    settings: BRMGRRerankSettings | dict[str, Any] = Field(
        default=BRMGRRerankSettings(), description="Further settings."
    )

    def _passage(self, node: BaseNode) -> Passage:
        generated = isinstance(node, GeneratedNode)
        mode = MetadataMode.NONE if generated else self._settings.metadata_mode  # the LLM did not write the metadata
        return replace(self._titled_passage(node, mode), metadata={"generated": generated})

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return super()._postprocess_nodes(list(map(self._without_false_origin, nodes)), query_bundle)

    def _without_false_origin(self, hit: NodeWithScore) -> NodeWithScore:
        key, node = self._settings.origin_key, hit.node
        if isinstance(node, GeneratedNode) or node.metadata.get(key) != "generated":
            return hit
        metadata = {name: value for name, value in node.metadata.items() if name != key}
        return hit.model_copy(update={"node": annotate_node(node, metadata, [])})

    def _describe_hit(self, hit: NodeWithScore) -> dict[str, Any]:
        origin = {self._settings.origin_key: "generated"} if isinstance(hit.node, GeneratedNode) else {}
        return super()._describe_hit(hit) | origin
