"""The first stage as prior of a path search: it says where a reader begins, the links say where the reader goes on.

P(c | q) ∝ P(d1 | first stage) P(d1 | q) Π P(d_i+1 | d_i, q), where `drillrank.multihop.link_prior` has all factors but
the first.
Longer paths inherit it from the path that they extend.
"""

from __future__ import annotations

from collections.abc import Sequence

from drillrank.errors import InvalidInput
from drillrank.passages import Passage, Path, Ranked, ranked
from drillrank.rerank.base import RetrievalScores, divisor
from drillrank.rerank.prior import NO_PRIOR, FirstStage, Prior, check_paired, posteriors


def check_by_order(prior: Prior | None) -> None:
    """Refuse a prior that needs scores, where only the order of the first stage is known.

    Raises:
        InvalidInput: the prior counts cosines.

    >>> check_by_order("retrieval")
    """
    if prior == "cosine":
        raise InvalidInput(
            'A retriever of paths knows the order of what it finds, not the scores: give prior="retrieval", or rerank '
            'its documents with PromptRankRerank(prior="cosine").'
        )


class FirstHop:
    """The prior of the paths of one passage.

    Args:
        prior: What the first stage's scores are; None counts nothing.
        candidates: What the first stage brought. Of passages with the same id the first one counts.
        scores: Their scores, if they are known.
        weight: How much the prior counts.

    Raises:
        InvalidInput: as for `FirstStage.read`, or there are scores, but no prior to count them.
    """

    def __init__(
        self,
        prior: Prior | None,
        candidates: Sequence[Passage],
        scores: RetrievalScores | None,
        weight: float = 1.0,
    ) -> None:
        self._first_stage: FirstStage | None = None
        self._places: dict[str, int] = {}
        if prior is None:
            if scores is not None:
                raise InvalidInput(NO_PRIOR)
            return
        if scores is not None:
            check_paired(scores, candidates)
        for place, passage in enumerate(candidates):
            self._places.setdefault(passage.id, place)
        places = self._places.values()
        counted = None if scores is None else [scores[place] for place in places]
        self._first_stage = FirstStage.read(prior, [candidates[place] for place in places], counted, weight)

    @property
    def counts(self) -> bool:
        """Whether there is a prior."""
        return self._first_stage is not None

    def posteriors(self, found: Sequence[Ranked[Path]]) -> list[Ranked[Path]]:
        """The paths of one passage, all of them, with the prior: best first, ties in the order of the candidates."""
        if self._first_stage is None:
            return list(found)
        items = sorted(found, key=lambda item: self._places[item.passage.ids[0]])
        of_links = [item.details["log_prior"] for item in items]
        likelihoods = [
            (item.score - log_prior / divisor(item.details), item.details)
            for item, log_prior in zip(items, of_links, strict=True)
        ]
        scored = posteriors(likelihoods, self._first_stage)
        details = [
            {**detail, "log_prior": detail["log_prior"] + log_prior}
            for (_, detail), log_prior in zip(scored, of_links, strict=True)
        ]
        scores = [
            score + log_prior / divisor(detail) for (score, detail), log_prior in zip(scored, of_links, strict=True)
        ]
        return ranked([item.passage for item in items], scores, details)
