"""MonoT5 as a LangChain document compressor."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from drillrank import LanguageModel, MonoT5, Passage, Ranked
from drillrank.rerank.first_stage import RetrievalScores
from drillrank.rerank.scale import ScoreScale
from langchain_ext._rerank import LikelihoodCompressor


class MonoT5Rerank(LikelihoodCompressor):
    """Reranks documents by the probability that a language model calls them relevant to the question.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that reads instructions.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.

    The other fields: `score` ("log_likelihood": the logarithm of P(relevant), at most 0; "probability": P(relevant)
    itself; "softmax": each document's share of the sum of all P(relevant)), `score_threshold` (inclusive),
    `score_key`, `title_key`, `metadata_fields`, `max_passage_tokens`, `model_options`.

    Raises:
        InvalidInput: the query is blank, or the model reads no instructions, as the unigram model.

    >>> reranker = MonoT5Rerank("hf:castorini/monot5-base-msmarco-10k", score="probability", score_threshold=0.5)
    >>> reranker.compress_documents([], "Which novel?")  # the model is loaded for the first document
    []
    """

    model: str = Field(description="Specification of the language model.")
    score: ScoreScale = Field(
        default="log_likelihood",
        description='Logarithm of P(relevant), P(relevant) itself ("probability"), or the share of the sum of all '
        'candidates\' P(relevant) ("softmax").',
    )
    max_passage_tokens: int | None = Field(default=None, gt=0, description="Tokens that a passage may keep.")

    def __init__(self, model: str | LanguageModel, **fields: Any) -> None:
        super().__init__(model, **fields)
        self._mono_t5()  # refuses an unsuitable model at once

    def _mono_t5(self) -> MonoT5:
        return MonoT5(self._language_model, max_passage_tokens=self.max_passage_tokens)

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> list[Ranked[Passage]]:
        return self._mono_t5().rank(query, passages)
