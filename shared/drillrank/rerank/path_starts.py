"""The first stage as prior of paths: P(c | first stage) is that of the document that a path begins with.

    log P(c | q)           = log P(q | c) + log P(c | first stage) + const
    log P(c | first stage) = log P(d1 | first stage)           see `drillrank.rerank.first_stage`

The first stage found documents, not paths. How a path goes on is up to the prior over links, where there is one
(`drillrank.multihop.link_prior`): the two are multiplied. However many paths begin with a document, it has one rank,
and what the likelihood tells of it is that of the best of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from drillrank.errors import InvalidInput
from drillrank.passages import Path
from drillrank.rerank.base import Scored
from drillrank.rerank.first_stage import FirstStage, Prior, RetrievalScores, posteriors
from drillrank.rerank.scale import divisor


class PathStarts(NamedTuple):
    """What the first stage says of the documents that paths begin with.

    Attributes:
        first_stage: Of each document, in the order of the paths.
        places: Of each, where in the list of paths those are that begin with it.
    """

    first_stage: FirstStage
    places: list[list[int]]

    @staticmethod
    def read(prior: Prior, paths: Sequence[Path], scores: RetrievalScores | None, weight: float = 1.0) -> PathStarts:
        """Scores of the paths' first documents, one for each path, checked.

        Raises:
            InvalidInput: as for `FirstStage.read`, or paths that begin with the same document differ in its score.
        """
        if scores is not None and len(scores) != len(paths):
            raise InvalidInput(f"{len(scores)} scores and {len(paths)} paths cannot be paired.")
        places: dict[str, list[int]] = {}
        for place, path in enumerate(paths):
            places.setdefault(path.ids[0], []).append(place)
        starts = [paths[own[0]].passages[0] for own in places.values()]
        if scores is None:
            return PathStarts(FirstStage.read(prior, starts, None, weight), list(places.values()))
        first_stage = FirstStage.read(prior, starts, [scores[own[0]] for own in places.values()], weight)
        for own in places.values():
            if any(scores[place] != scores[own[0]] for place in own):
                raise InvalidInput(
                    f"Paths {own[0]} and {own[-1]} begin with the same passage (id {paths[own[0]].ids[0]!r}), but "
                    "their scores differ: the score of a path is the first stage's of its first passage."
                )
        return PathStarts(first_stage, list(places.values()))

    def posteriors(self, scored: Sequence[Scored]) -> list[Scored]:
        """Scores of the paths by likelihood, with the prior, in order; the details hold `log_prior`."""
        best = [max((scored[place] for place in own), key=lambda item: item[0]) for own in self.places]
        found = list(scored)
        for own, (_, details) in zip(self.places, posteriors(best, self.first_stage), strict=True):
            log_prior = details["log_prior"]
            for place in own:
                score, known = scored[place]
                found[place] = (score + log_prior / divisor(known), {**known, "log_prior": log_prior})
        return found
