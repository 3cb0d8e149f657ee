"""UPR as a LlamaIndex node postprocessor."""

from __future__ import annotations

from llama_index.core.bridge.pydantic import Field

from drillrank import UPR, Passage, Ranked
from drillrank.prompts import UPR_PROMPT
from llama_index_ext._rerank import LikelihoodRerank


class UPRRerank(LikelihoodRerank):
    """Reranks nodes by the likelihood of the question, given the node.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Nodes to keep; None keeps all.

    The other fields: `score` ("log_likelihood", at most 0; "probability"; "softmax"), `score_threshold` (inclusive),
    `metadata_mode`, `keep_retrieval_score`, `template`, `max_passage_tokens`, `model_options`.

    Raises:
        InvalidInput: the query is missing or blank, or the template is malformed.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> nodes = [NodeWithScore(node=TextNode(text=text)) for text in ("Basel lies on the Rhine.", "Emma is a novel.")]
    >>> UPRRerank(top_n=1).postprocess_nodes(nodes, query_str="Which novel?")[0].node.text
    'Emma is a novel.'
    """

    template: str = Field(default=UPR_PROMPT, description="Prompt with {text}; {title} stays empty for nodes.")
    max_passage_tokens: int | None = Field(default=None, gt=0, description="Tokens that a passage may keep.")

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
        return "UPRRerank"

    def _rank(self, query: str, passages: list[Passage]) -> list[Ranked[Passage]]:
        upr = UPR(self._language_model, template=self.template, max_passage_tokens=self.max_passage_tokens)
        return upr.rank(query, passages)
