"""Relevance as a LangChain document compressor."""

from __future__ import annotations

from pydantic import Field, InstanceOf

from drillrank import Relevance
from drillrank.hosts.reranking import OfRelevance
from langchain_ext._rerank import LikelihoodCompressor
from langchain_ext.settings import RelevanceRerankSettings


class RelevanceRerank(OfRelevance, LikelihoodCompressor):
    """Reranks documents by the probability that a language model calls them relevant, asked as it was trained to be.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that tells the probabilities of
            its next token.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.
        score: `"log_likelihood"`, the score of the transform: the logarithm of P(relevant) or its log-odds;
            `"probability"`, P(relevant); or `"softmax"`, each one's share of the sum of all P(relevant).
        explain: Whether results say why they stand where they stand.
        preset: How published models are asked, as for `drillrank.Relevance`.
        template: Prompt with `{query}`, `{text}` and, if wanted, `{instruction}`; None is the preset's.
        instruction: What the model is told of the task, where the prompt has a place for it; None is the preset's.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.RelevanceRerankSettings`.

    Raises:
        LacksCapability: the model does not tell the probabilities of its next token, as the unigram model.
        InvalidInput: the query is blank, or a setting cannot be used.

    >>> reranker = RelevanceRerank("hf:Qwen/Qwen3-Reranker-0.6B", preset="qwen3-reranker", score="probability")
    >>> reranker.compress_documents([], "Which novel?")  # the model is loaded for the first document
    []
    """

    preset: str = Field(default="yes-no", description="How published models are asked.")
    template: str | None = Field(default=None, description="Prompt with `{query}`, `{text}` and `{instruction}`.")
    instruction: str | None = Field(default=None, description="What the model is told of the task.")
    max_passage_tokens: int | None = Field(default=None, description="Tokens that a passage may keep.")
    settings: InstanceOf[RelevanceRerankSettings] = Field(
        default=RelevanceRerankSettings(), description="What is rarely touched."
    )

    def _prepare(self) -> None:
        self._ranker = Relevance(
            self._language_model,
            preset=self.preset,
            template=self.template,
            instruction=self.instruction,
            max_passage_tokens=self.max_passage_tokens,
            settings=self.settings,
        )
