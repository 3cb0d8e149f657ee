"""MonoT5 as a LangChain document compressor."""

from __future__ import annotations

from drillrank import MonoT5
from drillrank.hosts.reranking import OfRelevance
from drillrank.rerank.monot5 import MonoT5Settings
from langchain_ext._rerank import LikelihoodCompressor


class MonoT5Rerank(OfRelevance, LikelihoodCompressor, MonoT5Settings):
    """Reranks documents by the probability that a language model calls them relevant to the question.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that reads instructions.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.

    The other fields: `score` ("log_likelihood": the logarithm of P(relevant), at most 0; "probability": P(relevant)
    itself; "softmax": each document's share of the sum of all P(relevant)), `score_threshold` (inclusive), `explain`,
    `score_key`, `title_key`, `metadata_fields`, `max_passage_tokens`, `model_options`.

    Raises:
        InvalidInput: the query is blank, or the model reads no instructions, as the unigram model.

    >>> reranker = MonoT5Rerank("hf:castorini/monot5-base-msmarco-10k", score="probability", score_threshold=0.5)
    >>> reranker.compress_documents([], "Which novel?")  # the model is loaded for the first document
    []
    """

    _method = MonoT5
