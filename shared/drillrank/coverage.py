"""Number of passages that keeps the evidence for a share of questions, by split conformal prediction.

A ranking keeps the passages whose score is at most `margin` below that of the best one. The margin is the k-th smallest
distance of the best evidence from the best score among n questions whose evidence is known, with k = ⌈share · (n + 1)⌉
(Vovk et al. 2005). If a new question is exchangeable with these n, its evidence is kept with a probability of at least
`share`, provided that the candidates contain it. The guarantee is an average over questions, not for each of them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from drillrank.errors import InvalidInput
from drillrank.files import open_file, replace_file
from drillrank.limits import read_json

FORMAT = "drillrank-coverage-1"
_ROUNDING = 1e-9  # by which equal scores may differ
_COMMAND = "drillrank tune QUESTIONS CORPUS --coverage"


@dataclass(frozen=True)
class Coverage:
    """Smallest number of passages that keeps the evidence for a share of questions, for `top_n` of rerankers.

    It needs a calibration on questions whose evidence is known: `drillrank tune QUESTIONS CORPUS --coverage 0.9` writes
    a file for `Coverage.load`. A calibration counts for one reranker with one model and one first stage.

    Attributes:
        share: Share of questions whose evidence is kept, above 0 and below 1.
        margin: Largest distance of a score from the best one. None before the calibration.
        n_questions: Number of questions of the calibration.
        component: Reranker of the calibration; empty if it is unknown.

    Raises:
        InvalidInput: The share or the margin is out of range.

    >>> coverage = Coverage.calibrate(0.8, [0.0, 0.1, 0.3, 0.0])
    >>> coverage.margin, coverage.count([-1.0, -1.2, -2.0])
    (0.3, 2)
    """

    share: float
    margin: float | None = None
    n_questions: int = 0
    component: str = ""

    def __post_init__(self) -> None:
        if not _is_number(self.share) or not 0 < self.share < 1:
            raise InvalidInput(f"share must be a number above 0 and below 1, got {self.share!r:.200}.")
        if self.margin is not None and not (_is_number(self.margin) and self.margin >= 0):
            raise InvalidInput(f"margin must be a number of at least 0, or None, got {self.margin!r:.200}.")

    @classmethod
    def calibrate(cls, share: float, distances: Iterable[float], component: str = "") -> Coverage:
        """Choose the margin on questions whose evidence is among the candidates.

        Args:
            share: Share of questions whose evidence is kept.
            distances: Distance of each question's best evidence from its best score, at least 0.
            component: Name of the reranker.

        Raises:
            InvalidInput: There are too few questions for this share, or a distance is negative.
        """
        coverage, ordered = cls(share), sorted(distances)
        if ordered and not ordered[0] >= 0:
            raise InvalidInput(f"distances must be at least 0, got {ordered[0]!r:.200}. Subtract from the best score.")
        rank = math.ceil(share * (len(ordered) + 1) - _ROUNDING)
        if rank > len(ordered):
            least = math.ceil(share / (1 - share) - _ROUNDING)
            raise InvalidInput(
                f"Coverage({share}) needs at least {least} questions whose evidence is among the candidates, got "
                f"{len(ordered)}. Add questions or candidates."
            )
        return cls(coverage.share, float(ordered[rank - 1]), len(ordered), component)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Coverage:
        """Return the calibration in a file that `save` or `drillrank tune --coverage` wrote.

        Raises:
            InvalidInput: The file cannot be read, or is something else.
        """
        with open_file(path) as file:
            content = read_json(file.read().decode(errors="replace"), str(path))
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise InvalidInput(f"{path} must be a calibration, with the format {FORMAT}. Write one: {_COMMAND} 0.9")
        try:
            return cls(**content)
        except TypeError as cause:
            raise InvalidInput(f"{path} has other fields than a calibration: {cause}. Write it again.") from cause

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibration as JSON.

        Raises:
            InvalidInput: The file cannot be written.
        """
        try:
            with replace_file(Path(path)) as file:
                file.write(json.dumps({"format": FORMAT, **asdict(self)}).encode())
        except OSError as cause:
            raise InvalidInput(f"{path} cannot be written: {cause.strerror}.") from cause

    def count(self, scores: Sequence[float]) -> int:
        """Return the number of passages to keep, at least 1 if there is one.

        Args:
            scores: Scores of the ranker, best first, as they were calibrated.

        Raises:
            InvalidInput: The coverage is not calibrated.
        """
        lowest = scores[0] - self.check_margin() - _ROUNDING if scores else 0.0
        return sum(score >= lowest for score in scores)

    def check_margin(self) -> float:
        """Return the margin.

        Raises:
            InvalidInput: The coverage is not calibrated.
        """
        if self.margin is None:
            raise InvalidInput(
                f"Coverage({self.share}) is not calibrated. Run `{_COMMAND} {self.share} --out coverage.json`, and "
                'pass top_n=Coverage.load("coverage.json").'
            )
        return self.margin


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
