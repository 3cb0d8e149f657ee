"""Problems with an LLM while it works on one question: a text for each case, and a constant warning for each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from drillrank.errors import LLMFailure, UnusableAnswer, warn


class ProblemKind(Enum):
    """Kind of a problem, for which there is one warning."""

    FAILED_CALL = auto()
    UNUSABLE_ANSWER = auto()
    PARTLY_USED_ANSWER = auto()
    CALL_LIMIT = auto()
    TRUNCATED_TEXT = auto()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that went wrong with an LLM, and what was done instead.

    Attributes:
        kind: Kind of the problem.
        text: Description of the case. It may quote the LLM's answer or error.
    """

    kind: ProblemKind
    text: str

    def __str__(self) -> str:
        return self.text


def kind_of_failure(failure: LLMFailure) -> ProblemKind:
    """Return the kind of a failure: an answer that cannot be used, or no answer."""
    return ProblemKind.UNUSABLE_ANSWER if isinstance(failure, UnusableAnswer) else ProblemKind.FAILED_CALL


def warn_about_problems(problems: Iterable[Problem], text_by_kind: Mapping[ProblemKind, str], where: str) -> None:
    """Warn once about each kind of problem.

    Args:
        problems: The problems of one question.
        text_by_kind: Constant text for each kind: what was wrong, what was done instead, and what to do.
        where: Sentence that says where the user finds the problems.
    """
    for kind in sorted({problem.kind for problem in problems}, key=lambda kind: kind.value):
        warn(f"{text_by_kind[kind]} {where}")
