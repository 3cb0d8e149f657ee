"""Relevance as a LangChain document compressor."""

from __future__ import annotations

from drillrank import Relevance
from drillrank.hosts.reranking import OfRelevance
from drillrank.rerank.relevance import RelevanceSettings
from langchain_ext._rerank import LikelihoodCompressor


class RelevanceRerank(OfRelevance, LikelihoodCompressor, RelevanceSettings):
    """Reranks documents by the probability that a language model calls them relevant, asked as it was trained to be.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that tells the probabilities of
            its next token.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.

    The other fields: `score` ("log_likelihood": the score of the transform, the logarithm of P(relevant) or its
    log-odds; "probability": P(relevant); "softmax": each document's share of the sum of all P(relevant)),
    `score_threshold` (inclusive), `explain`, and those that are listed below.

    Raises:
        LacksCapability: the model does not tell the probabilities of its next token, as the unigram model.
        InvalidInput: the query is blank, or a setting cannot be used.

    >>> reranker = RelevanceRerank("hf:Qwen/Qwen3-Reranker-0.6B", preset="qwen3-reranker", score="probability")
    >>> reranker.compress_documents([], "Which novel?")  # the model is loaded for the first document
    []
    """

    _method = Relevance
