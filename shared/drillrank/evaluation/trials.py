"""A component under many settings, each asked every question once, whoever wants to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput
from drillrank.evaluation.comparison import known_passages, measured
from drillrank.evaluation.contenders import Contender, contender, spec_of
from drillrank.evaluation.corpus import Corpus
from drillrank.evaluation.measures import gold_ids
from drillrank.evaluation.questions import Question
from drillrank.evaluation.records import Record, Records
from drillrank.evaluation.running import FirstStage, OnProgress, run_all
from drillrank.evaluation.statistics import Floats
from drillrank.evaluation.tuned import Changes, told
from drillrank.evaluation.tuning_grid import MU

Places = npt.NDArray[np.intp]
_BETTER = 1e-12  # by which sums of the same numbers in another order differ


@dataclass
class Trials:
    """What every setting that was tried brought to every question.

    Attributes:
        base: The component, as `contender` takes it.
        defaults: Every setting where nothing is tuned.
        measure: What counts.
        questions: All that are asked.
        corpus: What is searched.
        first_stage: How candidates are found, and what that is called.
        records: Of everything asked.
        on_progress: Is told of every question.
        means: Of what was tried, in words.
        problems: What failed.
    """

    base: Mapping[str, Any]
    defaults: Mapping[str, Any]
    measure: str
    questions: Sequence[Question]
    corpus: Corpus
    first_stage: FirstStage
    records: Records
    on_progress: OnProgress | None
    means: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _found: dict[str, Floats | None] = field(default_factory=dict)
    _seconds: dict[str, float] = field(default_factory=dict)
    _gold: dict[str, set[str]] = field(default_factory=dict)
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
        key = told(changes)
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
        return 1000 * self._seconds[told(changes)]

    def plan(self, more: Sequence[Changes]) -> None:
        """What will be asked for, so that progress knows."""
        self._planned = len(self._found) + len({told(changes) for changes in more} - self._found.keys())

    def _asked(self, changes: Changes, name: str) -> Floats | None:
        before, n = len(self._found), len(self.questions)

        def progress(done: int, _whole: int) -> None:
            if self.on_progress is not None:
                self.on_progress(before * n + done, max(self._planned, before + 1) * n)

        run = run_all(
            self.questions, [self._contender(changes, name)], self.first_stage, self.corpus, self.records, progress
        )
        if run.interrupted:
            raise KeyboardInterrupt
        results = run.results[name]
        if len(results) < n:
            failed = f"{self.base['component']} with {name}: {run.problems[0]}"
            if not changes:
                raise InvalidInput(f"Nothing can be tuned. {failed}")
            self.problems.append(failed)
            return None
        passages = {question.id: known_passages(question, self.corpus, run) for question in self.questions}
        gold = self._gold or {question.id: gold_ids(question, passages[question.id]) for question in self.questions}
        if not any(record.texts for record in results.values()):  # or what was found may be evidence itself
            self._gold = gold
        found = measured(self.questions, run, [self.measure], gold, passages)[name][self.measure]
        self.means[name] = float(found.mean())
        self._seconds[name] = median(record.seconds for record in results.values())
        return found

    def _contender(self, changes: Changes, name: str) -> Contender:
        settings = {key: value for key, value in changes.items() if key != MU}
        given = {**self.base, **settings}
        if MU in changes:
            given["model_options"] = {**self.base.get("model_options", {}), MU: changes[MU]}
        spec = spec_of(given)
        if all(_answered(self.records.get(name, spec, question.id)) for question in self.questions):
            return Contender(name, spec, True, lambda *_: [])  # nothing is left to ask, so nothing is loaded
        return contender(name, given, self.corpus)


def _answered(record: Record | None) -> bool:
    return record is not None and not record.error


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
