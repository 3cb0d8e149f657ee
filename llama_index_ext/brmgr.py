"""BRMGR as a LlamaIndex node postprocessor."""

from __future__ import annotations

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import BaseNode, MetadataMode

from drillrank import BRMGR, Passage, Ranked
from drillrank.hosts.keys import prefixed
from drillrank.prompts import GENERATED_PROMPT, UPR_PROMPT
from drillrank.rerank.brmgr import Origin
from drillrank.rerank.first_stage import Prior, RetrievalScores
from llama_index_ext._rerank import LikelihoodRerank


class BRMGRRerank(LikelihoodRerank):
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

    origin_key: str = Field(
        default=prefixed("origin"), description='Metadata key; "generated" marks a node that an LLM wrote.'
    )
    template: str = Field(default=UPR_PROMPT, description="Prompt for retrieved nodes, with {text}.")
    generated_template: str = Field(
        default=GENERATED_PROMPT, description="Prompt for generated nodes, with {question}."
    )
    first: Origin = Field(default="generated", description="Which node of a pair comes first.")
    guard: bool | float = Field(
        default=False,
        ge=0,
        le=1,
        description="Drop generated nodes that no retrieved one supports: True, or the least support from 0 to 1.",
    )
    generated_share: float = Field(default=1.0, ge=0, le=1, description="Largest share of generated nodes returned.")
    max_passage_tokens: int | None = Field(default=None, gt=0, description="Tokens that a retrieved node may keep.")
    prior: Prior | None = Field(default=None, description="What the scores of retrieved nodes are to their ranking.")

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
        return "BRMGRRerank"

    def _passage(self, node: BaseNode) -> Passage:
        generated = node.metadata.get(self.origin_key) == "generated"
        mode = MetadataMode.NONE if generated else self.metadata_mode  # the LLM did not write the metadata
        return Passage(node.get_content(metadata_mode=mode), id=node.node_id, metadata={"generated": generated})

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> list[Ranked[Passage]]:
        brmgr = BRMGR(
            self._language_model,
            template=self.template,
            generated_template=self.generated_template,
            first=self.first,
            guard=self.guard,
            generated_share=self.generated_share,
            max_passage_tokens=self.max_passage_tokens,
            prior=self.prior,
        )
        generated = [passage.metadata["generated"] for passage in passages]
        return brmgr.rank_mixed(query, passages, generated, self.top_n, scores=scores if self.prior else None)
