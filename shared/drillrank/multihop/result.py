"""Results of a path search: rankings of passages or paths, and the trace from which `explaining` renders reasons."""

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
    """Progress event: all paths of one hop have been scored. It needs no answer.

    Attributes:
        number: Number of the hop, 1 for single passages.
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
        kind: Kind of the link that leads there, "start" for the first passage, "jump" if no link leads there.
        log_prior: Log-probability of the step times the weight of the prior. 0 without a prior.
    """

    passage: Passage
    kind: str
    log_prior: float


@dataclass(frozen=True, slots=True)
class CandidatePath:
    """Path with the logarithm of its prior, which is added to the log-likelihood of the question.

    Attributes:
        path: The path.
        log_prior: Sum of the steps, the length, the alignment and the first stage's prior of the path's beginning.
        steps: Step to each passage.
        log_length: Log-probability of the path's length times the weight of the prior.
        alignment: Gain from knowing which passage explains which word of the question. 0 for a single passage.
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
        passages: Passages that the links lead to, each once, in the order of the links.
        chance_by_kind: Kinds of links that lead to known passages, each with the chance of every passage by its id.
        retrieval_kind: Kind of the links that retrieved passages. None if there are none.
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
        counts_alignment: True if the alignment of a path is a part of its prior.
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

    A slice is a result of its own. A pickle has the ranking and the trace without the model, so it cannot be explained.

    Attributes:
        ranking: The entries.
        trace: Record of the search.
        why: Function from some of the entries to their explanations. None if they cannot be explained.
        scoring: Version of the scores. Scores of different versions cannot be compared.
    """

    ranking: tuple[Ranked[Item], ...]
    trace: PathTrace
    why: Callable[[Sequence[Any]], Explanations] | None = field(default=None, repr=False)
    scoring: str = SCORING

    def explain(self) -> Explanations:
        """Explain the rank of each entry.

        Raises:
            InvalidInput: These entries are a copy without the model.
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
