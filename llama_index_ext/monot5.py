"""MonoT5 as a LlamaIndex node postprocessor."""

from __future__ import annotations

from drillrank import MonoT5
from drillrank.hosts.reranking import OfRelevance
from drillrank.rerank.monot5 import MonoT5Settings
from llama_index_ext._rerank import LikelihoodRerank


class MonoT5Rerank(OfRelevance, LikelihoodRerank, MonoT5Settings):
    """Reranks nodes by the probability that a language model calls them relevant to the question.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that reads instructions.
        top_n: Nodes to keep; None keeps all.

    The other fields: `score` ("log_likelihood": the logarithm of P(relevant), at most 0; "probability": P(relevant)
    itself; "softmax": each node's share of the sum of all P(relevant)), `score_threshold` (inclusive), `explain`,
    `metadata_mode`, `keep_retrieval_score`, `max_passage_tokens`, `model_options`.

    Raises:
        InvalidInput: the query is missing or blank, or the model reads no instructions, as the unigram model.

    >>> reranker = MonoT5Rerank("hf:castorini/monot5-base-msmarco-10k", score="probability", score_threshold=0.5)
    >>> reranker.postprocess_nodes([], query_str="Which novel?")  # the model is loaded for the first node
    []
    """

    _method = MonoT5
