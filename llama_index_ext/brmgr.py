"""BRMGR as a LlamaIndex node postprocessor."""

from __future__ import annotations

from llama_index.core.schema import BaseNode, MetadataMode
from pydantic import Field, InstanceOf

from drillrank import Passage
from drillrank.hosts.reranking import OfTwoKinds
from drillrank.rerank.prior import Prior
from llama_index_ext._rerank import LikelihoodRerank
from llama_index_ext.settings import BRMGRRerankSettings


class BRMGRRerank(LikelihoodRerank, OfTwoKinds):
    """Merges retrieved nodes with nodes that an LLM wrote: each kind ranked its own way, then paired by rank.

    A node whose metadata says `"generated"` under `origin_key` was written by an LLM; all others were retrieved.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Nodes to keep; None keeps all.
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

    prior: Prior | None = Field(default="retrieval", description="What nodes' scores say, as for UPRRerank.")
    guard: bool | float = Field(default=False, description="Drop what an LLM wrote and nothing retrieved supports.")
    generated_share: float = Field(default=1.0, description="Largest share of what an LLM wrote among the results.")
    settings: InstanceOf[BRMGRRerankSettings] = Field(
        default=BRMGRRerankSettings(), description="What is rarely touched."
    )

    def _passage(self, node: BaseNode) -> Passage:
        generated = node.metadata.get(self.settings.origin_key) == "generated"
        mode = MetadataMode.NONE if generated else self.settings.metadata_mode  # the LLM did not write the metadata
        return Passage(node.get_content(metadata_mode=mode), id=node.node_id, metadata={"generated": generated})
