"""Rerankers of both hosts: which of the core's rankers does the work, and which of the given records are kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, Field, InstanceOf, PrivateAttr

from drillrank.explanation import Explanation
from drillrank.explanation.explanations import explains
from drillrank.hosts.component import WithModel
from drillrank.hosts.path_records import PathHost, ranked_with_reached
from drillrank.hosts.path_retrieval import path_rerank
from drillrank.hosts.settings import EXPLAIN, RerankSettings
from drillrank.passages import Passage, Ranked, Ranking
from drillrank.rerank.base import RetrievalScores, ScoreScale, selected
from drillrank.rerank.brmgr import BRMGR
from drillrank.vectors import Embed

Record = TypeVar("Record")


class Reranker(WithModel):
    """A component that ranks given records; a subclass makes the core's ranker in `_prepare`."""

    top_n: int | None = Field(default=None, gt=0, description="How many to keep; None keeps all.")
    score: ScoreScale = Field(
        default="log_likelihood",
        description='Mean log-likelihood of the question, its exponential ("probability"), or the posterior over all '
        'candidates ("softmax").',
    )
    explain: bool = Field(default=False, description=EXPLAIN)
    settings: InstanceOf[RerankSettings] = Field(default=RerankSettings(), description="What is rarely touched.")

    _ranker: Any = PrivateAttr()
    """The core's."""

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        """Rank all passages, by mean log-likelihood; `scores` are those of the first stage, for a prior."""
        if getattr(self._ranker, "prior", None) is not None:
            return self._ranker.rank(query, passages, scores=scores)  # type: ignore[no-any-return]
        return self._ranker.rank(query, passages)  # type: ignore[no-any-return]

    def _selected(
        self, query: str, records: Sequence[Record], passages: list[Passage], scores: RetrievalScores
    ) -> Iterator[tuple[Record, Ranked[Passage], Explanation | None]]:
        """What is kept, best first: the given record, or another one that the ranking reached, its rank, and why."""
        ranking = self._rank(query, passages, scores)
        kept = selected(ranking, scale=self.score, threshold=self.settings.score_threshold, top_n=self.top_n)
        why = ranking[: len(kept)].explain() if explains(self.explain) else [None] * len(kept)
        for item, reason in zip(kept, why, strict=True):
            reached = item.details.get("reached")
            yield (records[item.details["position"]] if reached is None else reached), item, reason


class OfRelevance(BaseModel):
    """Fields of rerankers by P(relevant), in front of the host's base."""

    model: str = Field(description="Specification of the language model.")
    score: ScoreScale = Field(
        default="log_likelihood",
        description="The score of the transform, which is the logarithm of P(relevant) by default; P(relevant) itself "
        '("probability"); or the share of the sum of all candidates\' P(relevant) ("softmax").',
    )


class OfTwoKinds(Reranker):
    """Behind the host's base: ranks retrieved passages and generated ones, which say so in their metadata."""

    def _prepare(self) -> None:
        fields: Any = self
        self._ranker = BRMGR(
            self._language_model,
            prior=fields.prior,
            guard=fields.guard,
            generated_share=fields.generated_share,
            settings=fields.settings,
        )

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        generated = [passage.metadata["generated"] for passage in passages]
        counted = scores if self._ranker.prior else None
        return self._ranker.rank_mixed(query, passages, generated, self.top_n, scores=counted)  # type: ignore[no-any-return]


class OfPaths(Reranker):
    """Behind the host's base: ranks records by the best path of linked ones, given, or reached if it is told where."""

    @abstractmethod
    def _host(self) -> PathHost[Any]:
        """Of one question."""

    @abstractmethod
    def _embedding(self) -> Embed | None:
        """From texts to vectors, by what the host calls an embedding model, too."""

    def _prepare(self) -> None:
        fields: Any = self
        links = (*fields.links, "retrieval") if self._host().retriever is not None else fields.links
        prompt_rank = fields.settings.prompt_rank(self._language_model, fields.prior)
        self._ranker = path_rerank(fields.settings, prompt_rank, links, self._embedding())

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        return ranked_with_reached(self._ranker, query, passages, scores, self._host())
