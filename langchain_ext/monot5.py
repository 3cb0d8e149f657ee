"""MonoT5 as a LangChain document compressor."""

from __future__ import annotations

from pydantic import Field

from drillrank import MonoT5
from drillrank.hosts.reranking import OfRelevance
from langchain_ext._rerank import LikelihoodCompressor


class MonoT5Rerank(OfRelevance, LikelihoodCompressor):
    """Reranks documents by the probability that a language model calls them relevant to the question.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that reads instructions.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.
        score: `"log_likelihood"`, the logarithm of P(relevant), at most 0; `"probability"`, P(relevant) itself; or
            `"softmax"`, each one's share of the sum of all P(relevant).
        explain: Whether results say why they stand where they stand.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.RerankSettings`.

    Raises:
        InvalidInput: the query is blank, or the model reads no instructions, as the unigram model.

    >>> reranker = MonoT5Rerank("hf:castorini/monot5-base-msmarco-10k", score="probability")
    >>> reranker.compress_documents([], "Which novel?")  # the model is loaded for the first document
    []
    """

    max_passage_tokens: int | None = Field(default=None, description="Tokens that a passage may keep.")

    def _prepare(self) -> None:
        self._ranker = MonoT5(self._language_model, max_passage_tokens=self.max_passage_tokens)
