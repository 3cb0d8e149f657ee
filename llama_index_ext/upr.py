"""UPR as a LlamaIndex node postprocessor."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from drillrank import UPR
from drillrank.rerank.base import LikelihoodFormula
from drillrank.rerank.prior import Prior
from drillrank.rerank.upr import UPR_PROMPT
from llama_index_ext._rerank import LikelihoodRerank


class UPRRerank(LikelihoodRerank):
    """Reranks nodes by the likelihood of the question, given the node.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Nodes to keep; None keeps all.
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

    prior: Prior | None = Field(default="retrieval", description="What nodes' scores say before their texts are read.")
    template: str = Field(default=UPR_PROMPT, description="Prompt with `{text}` and, if wanted, `{title}` before it.")
    max_passage_tokens: int | None = Field(default=None, description="Tokens that a passage may keep.")
    prior_weight: float = Field(default=1.0, description="How much the prior counts.")
    read: int | Literal["all"] | None = Field(default=None, description="How many the whole of a sum reads.")
    preset: str | LikelihoodFormula | None = Field(default=None, description="Score as published code does.")

    def _prepare(self) -> None:
        self._ranker = UPR(
            self._language_model,
            template=self.template,
            max_passage_tokens=self.max_passage_tokens,
            prior=self.prior,
            prior_weight=self.prior_weight,
            read="all" if self.score == "softmax" else self.read,
            preset=self.preset,
        )
