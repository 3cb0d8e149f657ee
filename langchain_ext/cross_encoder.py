"""Question likelihood as a LangChain cross-encoder."""

from __future__ import annotations

from typing import Any

from langchain_core.cross_encoders import BaseCrossEncoder

from drillrank import UPR, LanguageModel, load_language_model
from drillrank.rerank.upr import UPR_PROMPT


class LikelihoodCrossEncoder(BaseCrossEncoder):
    """Scores (query, text) pairs by the likelihood of the query, for `CrossEncoderReranker` and its kin.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        model_options: Options of the language model.
        template: Prompt with `{text}`.

    Scores are mean log-probabilities per question token: at most 0, comparable within one query only.

    >>> pairs = [("Which novel?", "Basel is a town."), ("Which novel?", "Emma, a novel.")]
    >>> scores = LikelihoodCrossEncoder().score(pairs)
    >>> scores[1] > scores[0]
    True
    """

    def __init__(
        self,
        model: str | LanguageModel = "unigram",
        *,
        model_options: dict[str, Any] | None = None,
        template: str = UPR_PROMPT,
    ) -> None:
        self._upr = UPR(load_language_model(model, **(model_options or {})), template=template)

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """One plain float per pair, in order; the pairs of one query are scored as its candidates.

        Raises:
            InvalidInput: a query is blank.
        """
        places: dict[str, list[int]] = {}
        for location, (query, _) in enumerate(text_pairs):
            places.setdefault(query, []).append(location)
        scores = [0.0] * len(text_pairs)
        rankings = self._upr.rank_many(list(places), [[text_pairs[i][1] for i in of] for of in places.values()])
        for of_query, ranking in zip(places.values(), rankings, strict=True):
            for item in ranking:
                scores[of_query[item.details["position"]]] = item.score
        return scores
