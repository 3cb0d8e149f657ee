"""BRMGR as a LlamaIndex node postprocessor."""

from __future__ import annotations

from llama_index.core.schema import BaseNode, MetadataMode

from drillrank import Passage
from drillrank.hosts.generated import GeneratedRecordSettings
from drillrank.hosts.reranking import OfTwoKinds
from llama_index_ext._rerank import LikelihoodRerank


class BRMGRRerank(LikelihoodRerank, OfTwoKinds, GeneratedRecordSettings):
    """Merges retrieved nodes with nodes that an LLM wrote: each kind ranked its own way, then paired by rank.

    A node whose metadata says `"generated"` under `origin_key` was written by an LLM; all others were retrieved.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Nodes to keep; None keeps all.

    The other fields: those of `UPRRerank`, and `origin_key`, `generated_template`, `first`, `guard`,
    `generated_share`. `prior` counts for retrieved nodes alone. The score of both nodes of a pair is the sum of
    their mean log-likelihoods, or with "probability" its exponential.

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

    def _passage(self, node: BaseNode) -> Passage:
        generated = node.metadata.get(self.origin_key) == "generated"
        mode = MetadataMode.NONE if generated else self.metadata_mode  # the LLM did not write the metadata
        return Passage(node.get_content(metadata_mode=mode), id=node.node_id, metadata={"generated": generated})
