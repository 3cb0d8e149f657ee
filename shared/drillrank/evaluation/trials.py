"""A component under many settings, each asked every question once, whoever wants to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput
from drillrank.evaluation.comparison import measured
from drillrank.evaluation.corpus import Corpus
from drillrank.evaluation.evidence import Evidence
from drillrank.evaluation.questions import Question
from drillrank.evaluation.records import Records
from drillrank.evaluation.running import FirstStage, OnProgress, run_all
from drillrank.evaluation.statistics import Floats
from drillrank.evaluation.systems import System, system
from drillrank.evaluation.tuned import Changes, setting_line
from drillrank.evaluation.tuning_grid import MU

Places = npt.NDArray[np.intp]
_BETTER = 1e-12  # by which sums of the same numbers in another order differ


@dataclass
class Trials:
    """What every setting that was tried brought to every question.

    Attributes:
        base: The component, as `system` takes it.
        defaults: Every setting where nothing is tuned.
        measure: What counts.
        questions: All that are asked.
        evidence: Of each question, by its id.
        corpus: What is searched.
        first_stage: How candidates are found, and what that is called.
        records: Of everything asked.
        on_progress: Callback, called as `(done, total)` after every question.
        means: Of what was tried, in words.
        problems: What failed.
    """

    base: Mapping[str, Any]
    defaults: Mapping[str, Any]
    measure: str
    questions: Sequence[Question]
    evidence: Mapping[str, Evidence]
    corpus: Corpus
    first_stage: FirstStage
    records: Records
    on_progress: OnProgress | None
    means: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _found: dict[str, Floats | None] = field(default_factory=dict)
    _seconds: dict[str, float] = field(default_factory=dict)
    _planned: int = 0

    def changed(self, changes: Changes, more: Changes) -> dict[str, Any]:
        """Other settings than the defaults, with more of them set."""
        together = {**changes, **more}
        return {key: given for key, given in together.items() if given != self.defaults.get(key)}

    def values(self, changes: Changes) -> Floats | None:
        """The measure of every question, shape (questions,); None where the component failed.

        Raises:
            InvalidInput: it failed with its defaults.
            KeyboardInterrupt: Ctrl-C.
        """
        key = setting_line(changes)
        if key not in self._found:
            self._found[key] = self._asked(changes, key)
        return self._found[key]

    def known(self, changes: Changes) -> Floats:
        """As `values`, of settings that did not fail."""
        found = self.values(changes)
        assert found is not None  # what fails is not chosen
        return found

    def milliseconds(self, changes: Changes) -> float:
        """The median question's."""
        return 1000 * self._seconds[setting_line(changes)]

    def plan(self, more: Sequence[Changes]) -> None:
        """What will be asked for, so that progress knows."""
        self._planned = len(self._found) + len({setting_line(changes) for changes in more} - self._found.keys())

    def _asked(self, changes: Changes, name: str) -> Floats | None:
        before, n = len(self._found), len(self.questions)

        def progress(done: int, _whole: int) -> None:
            if self.on_progress is not None:
                self.on_progress(before * n + done, max(self._planned, before + 1) * n)

        one = f"{self.base['component']}: {name}"  # as the file of results calls it
        run = run_all(
            self.questions, [self._system(changes, one)], self.first_stage, self.corpus, self.records, progress
        )
        if run.interrupted:
            raise KeyboardInterrupt
        results = run.results[one]
        if run.problems:
            if not changes:
                raise InvalidInput(f"Nothing can be tuned. {run.problems[0]}")
            self.problems.append(run.problems[0])
            return None
        ranks = {
            question.id: self.evidence[question.id].ranks(results[question.id].passages(self.corpus.known(question)))
            for question in self.questions
        }
        found = measured([self.measure], self.questions, self.evidence, results, ranks, self.corpus)[self.measure]
        self.means[name] = float(found.mean())
        self._seconds[name] = median(record.seconds for record in results.values())
        return found

    def _system(self, changes: Changes, name: str) -> System:
        settings = {key: value for key, value in changes.items() if key != MU}
        given = {**self.base, **settings}
        if MU in changes:
            given["model_options"] = {**self.base.get("model_options", {}), MU: changes[MU]}
        return system(name, given, self.corpus)


def searched(steps: Sequence[Sequence[Changes]], groups: Sequence[Places], trials: Trials) -> list[dict[str, Any]]:
    """What each group of questions chooses, step after step; the earlier candidate of equal ones, defaults first.

    The groups choose side by side, so that what several of them want is asked once.
    """
    chosen: list[dict[str, Any]] = [{} for _ in groups]
    for candidates in steps:
        options = [[changes, *(trials.changed(changes, more) for more in candidates)] for changes in chosen]
        trials.plan([changes for some in options for changes in some])
        for place, (rows, some) in enumerate(zip(groups, options, strict=True)):
            best = -np.inf
            for changes in some:
                found = trials.values(changes)
                if found is not None and found[rows].mean() > best + _BETTER:
                    best, chosen[place] = float(found[rows].mean()), changes
    return chosen


def forward_validated(
    steps: Sequence[Sequence[Changes]], parts: Sequence[Places], trials: Trials
) -> tuple[list[dict[str, Any]], dict[str, Any], Floats]:
    """What the parts before each one choose, what all questions choose, and what the former bring to the part itself.

    A question is measured by a choice that has seen neither it nor any that comes later, so that where nothing helps a
    difference is as likely negative as positive, whatever the earlier ones are. In cross-validation it is not: all
    choose what is lucky in all the others.

    Returns:
        The choices before each part but the first, the choice of all questions, and the differences from the defaults
        of the questions in all parts but the first.
    """
    before = [np.sort(np.concatenate(parts[:count])) for count in range(1, len(parts) + 1)]
    *by_part, best = searched(steps, before, trials)
    pairs = zip(by_part, parts[1:], strict=True)
    return by_part, best, np.concatenate([(trials.known(one) - trials.known({}))[part] for one, part in pairs])
