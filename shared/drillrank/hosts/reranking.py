"""Rerankers of both hosts: fields that all have, and ranking by a core ranker made of the fields as they are."""

from __future__ import annotations

from pydantic import Field

from drillrank.errors import warn
from drillrank.explanation import Explanation
from drillrank.explanation.explanations import explains
from drillrank.hosts.settings import EXPLAIN, ModelFields
from drillrank.likelihood import LanguageModel
from drillrank.passages import Passage, Ranked, Ranking
from drillrank.rerank.base import RetrievalScores, ScoreScale, selected


class RerankerFields(ModelFields):
    """In front of the host's class; the `method` of a reranker is the core's ranker."""

    model: LanguageModel | str = Field(
        default="unigram", kw_only=False, description="A language model, or its specification."
    )
    top_n: int | None = Field(default=3, description="How many to keep; None keeps all.")
    score: ScoreScale = Field(
        default="log_likelihood",
        description='Mean log-likelihood of the question, its exponential ("probability"), or the posterior over all '
        'candidates ("softmax").',
    )
    explain: bool = Field(default=False, description=EXPLAIN)

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        """Rank all passages, by mean log-likelihood; `scores` are those of the first stage, for a prior."""
        ranker = self.method
        return ranker.rank(query, passages, scores=None if ranker.prior is None else scores)  # type: ignore[no-any-return]

    def _selected(self, ranking: Ranking[Passage]) -> list[tuple[Ranked[Passage], Explanation | None]]:
        """What is kept, best first, and why; `details["position"]` is the place among the passages."""
        threshold = self._settings.score_threshold
        kept = selected(ranking, scale=self.score, threshold=threshold, top_n=self.top_n)
        if ranking and not kept:
            warn(
                f"{type(self).__name__}: no score reaches score_threshold={threshold}. Logarithms of likelihoods are "
                'at most 0: with score="probability" scores are between 0 and 1.'
            )
        why = ranking[: len(kept)].explain() if explains(self.explain) else [None] * len(kept)
        return list(zip(kept, why, strict=True))
