"""MonoT5 as a LlamaIndex node postprocessor."""

from __future__ import annotations

from pydantic import Field

from drillrank import MonoT5
from drillrank.hosts.reranking import OfRelevance
from llama_index_ext._rerank import LikelihoodRerank


class MonoT5Rerank(OfRelevance, LikelihoodRerank):
    """Reranks nodes by the probability that a language model calls them relevant to the question.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that reads instructions.
        top_n: Nodes to keep; None keeps all.
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

    max_passage_tokens: int | None = Field(default=None, description="Tokens that a passage may keep.")

    def _prepare(self) -> None:
        self._ranker = MonoT5(self._language_model, max_passage_tokens=self.max_passage_tokens)
