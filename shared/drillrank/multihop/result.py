"""Results of a path search: rankings of passages or paths, and the trace from which they are explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, overload

from drillrank.errors import InvalidInput
from drillrank.explanation import Explanations
from drillrank.explanation.explanations import SCORING
from drillrank.multihop.prior import PathPrior
from drillrank.passages import Item, Passage, Path, Ranked


@dataclass(frozen=True, slots=True)
class Hop:
    """Round of the search that scores all its paths of a certain number of passages.

    The search yields it as a progress event that needs no answer.

    Attributes:
        number: Number of the hop, starting at 1. It is the number of passages in each of its paths.
        paths: Paths of the hop with their scores, best first.
    """

    number: int
    paths: tuple[Ranked[Path], ...]


OnHop = Callable[[Hop], object]


@dataclass(frozen=True, slots=True)
class PathStep:
    """Step of a path to one of its passages.

    Attributes:
        passage: The passage.
        kind: Kind of the link that leads to the passage. "start" for the first passage, "jump" without a link.
        log_prior: Log-probability of the step times the weight of the prior. 0 without a prior.
    """

    passage: Passage
    kind: str
    log_prior: float


@dataclass(frozen=True, slots=True)
class CandidatePath:
    """Path with its log-prior. `PathScorer.rank_by_posterior` adds it to the log-likelihood of the question.

    Attributes:
        path: The path.
        log_prior: Sum of the log-priors of all steps, `log_length` and `alignment`. For more than one passage, it also
            includes the first stage's log-prior of the first passage, if there is one. For a single passage,
            `FirstStagePrior` adds that.
        steps: Step to each passage.
        log_length: Log-probability of the path's length times the weight of the prior.
        alignment: Gain in log-likelihood from knowing which passage explains which word of the question. 0 for a single
            passage.
    """

    path: Path
    log_prior: float = 0.0
    steps: tuple[PathStep, ...] = ()
    log_length: float = 0.0
    alignment: float = 0.0


@dataclass(frozen=True, slots=True)
class FollowedLinks:
    """Links of one path that were followed.

    Attributes:
        path: The path.
        passages: Passages that the links lead to, in the order of the links.
        chance_by_kind: Kinds of links that lead to existing passages, each with the chance of every passage by its id.
        retrieval_kind: Kind of the links that request a retrieval. None if no links do.
    """

    path: Path
    passages: tuple[Passage, ...]
    chance_by_kind: tuple[tuple[str, Mapping[str, float]], ...]
    retrieval_kind: str | None


class StopReason(Enum):
    """Reason why a search ended."""

    NO_PATHS = "there were no paths to score"
    LONGEST_PATH = "paths have the greatest length that the settings allow"
    LESS_LIKELY = "the best path of the last hop is less likely than the best shorter one"
    NO_LINKS = "no link leads on from the best paths"


@dataclass(frozen=True, slots=True)
class PathTrace:
    """Record of a search.

    Attributes:
        question: The question.
        hops: Hops with their scored paths.
        candidate_by_ids: Every scored path with its steps, by the ids of its passages.
        links: Links that were followed, of all hops.
        prior: Settings of the prior. None if paths are scored by the likelihood alone.
        counts_alignment: True if the log-prior of a path includes its alignment.
        stop_reason: Reason why the search ended.
        missing: Queries for missing information, as the LLM named them.
        problems: Failed calls of the LLM.
    """

    question: str
    hops: tuple[Hop, ...] = ()
    candidate_by_ids: Mapping[tuple[str, ...], CandidatePath] = field(default_factory=dict)
    links: tuple[FollowedLinks, ...] = ()
    prior: PathPrior | None = None
    counts_alignment: bool = False
    stop_reason: StopReason = StopReason.NO_PATHS
    missing: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class PathResult(Sequence[Ranked[Item]]):
    """Passages or paths, best first: a sequence of `Ranked` that equals a list of the same entries.

    A slice is a `PathResult`, too. A pickle lacks the model, so an unpickled result cannot be explained.

    Attributes:
        ranking: The entries.
        trace: Record of the search.
        why: Function from some of the entries to their explanations. None without the model.
        scoring: Version of the scores. Scores of different versions cannot be compared.
    """

    ranking: tuple[Ranked[Item], ...]
    trace: PathTrace
    why: Callable[[Sequence[Any]], Explanations] | None = field(default=None, repr=False)
    scoring: str = SCORING

    def explain(self) -> Explanations:
        """Explain the rank of each entry.

        Raises:
            InvalidInput: This result was unpickled, or made without a model.
        """
        if self.why is None:
            raise InvalidInput(
                "This copy of a ranking does not have the model that ranked it. Call "
                "drillrank.evaluation.explain(query, results, ranker) instead."
            )
        return self.why(self.ranking)

    def __len__(self) -> int:
        return len(self.ranking)

    @overload
    def __getitem__(self, index: int) -> Ranked[Item]: ...
    @overload
    def __getitem__(self, index: slice) -> PathResult[Item]: ...
    def __getitem__(self, index: int | slice) -> Ranked[Item] | PathResult[Item]:
        if isinstance(index, slice):
            return replace(self, ranking=self.ranking[index])
        return self.ranking[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PathResult | list | tuple):
            return list(self) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # entries can be changed

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "why": None}
