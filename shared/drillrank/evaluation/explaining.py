"""Why a component ranked a question of a comparison as it did: it is asked again, and this once says why."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation.corpus import Corpus
from drillrank.evaluation.questions import Question
from drillrank.evaluation.records import Record, Records
from drillrank.evaluation.running import FIRST_STAGE, GIVE_UP, candidates_of
from drillrank.evaluation.systems import Found, System
from drillrank.explanation import Explanations

SHOWN = 3  # results of a question that are shown and explained
_CANNOT = "It cannot say why; what it told is in the table."


class Explained(NamedTuple):
    """Why a component ranked as it did, or why nobody knows.

    Attributes:
        why: Of its first few results; None where there is a note.
        note: For readers.
        failed: Whether something went wrong.
    """

    why: Explanations | None
    note: str = ""
    failed: bool = False


@dataclass
class Explainer:
    """Asks the components of a comparison.

    Attributes:
        systems: By name.
        corpus: What is searched.
        records: Keep what they say.
        results: By component and question id.
    """

    systems: Mapping[str, System]
    corpus: Corpus
    records: Records
    results: Mapping[str, Mapping[str, Record]]
    _notes: dict[tuple[str, str], Explained] = field(default_factory=dict)
    _failures: dict[str, int] = field(default_factory=dict)
    _ended: bool = False

    def explained(self, record: Record, question: Question) -> Explained:
        """Of one result. Nothing that goes wrong is raised; after Ctrl-C nothing more is asked."""
        key = record.component, record.question
        if record.error or record.explanation or record.explains is False or record.component not in self.systems:
            return stored(record)
        if key not in self._notes:
            try:
                if self._ended:
                    return Explained(None, "Not explained: interrupted.", failed=True)
                if self._failures.get(record.component, 0) >= GIVE_UP:
                    return Explained(None, f"Not explained: {GIVE_UP} questions failed before.", failed=True)
                self._notes[key] = self._asked(record, question)
            except KeyboardInterrupt:
                self._ended = True
                return self.explained(record, question)
            except Exception as problem:  # whatever a component raises costs one explanation, not the report
                self._failures[record.component] = self._failures.get(record.component, 0) + 1
                said = f"Not explained: {type(problem).__name__}: {problem}"[:500]
                self._notes[key] = Explained(None, said, failed=True)
        return self._notes[key]

    def _asked(self, record: Record, question: Question) -> Explained:
        candidates, scores = candidates_of(question, self.results[FIRST_STAGE][question.id], self.corpus)
        found, why = self.systems[record.component].explained(question.text, candidates, scores, self.corpus, SHOWN)
        if not _same(record, found):
            said = "Not explained: asked again, it ranks otherwise. It has changed, or its results differ by chance."
            return Explained(None, said, failed=True)
        if not why:
            return Explained(None, _CANNOT)
        record.explanation = why.to_dict()
        try:
            self.records.add(record)
        except InvalidInput as problem:  # no room
            warnings.warn(str(problem), DrillrankWarning, stacklevel=4)
        return Explained(why)


def stored(record: Record) -> Explained:
    """What is known without asking."""
    if record.error:
        return Explained(None, f"It failed: {record.error}", failed=True)
    if not record.explanation:
        return Explained(None, "Not explained." if record.explains else _CANNOT)
    try:
        return Explained(Explanations.from_dict(record.explanation))
    except InvalidInput as problem:
        return Explained(None, str(problem), failed=True)


def _same(record: Record, found: Found) -> bool:
    """Whether the first few results are the compared ones, with their scores."""
    if record.ids[:SHOWN] != [passage.id for passage in found.passages[:SHOWN]]:
        return False
    pairs = zip_longest(record.scores[:SHOWN], found.scores[:SHOWN])
    return all(
        one is other or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-3))
        for one, other in pairs
    )
