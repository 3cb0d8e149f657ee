"""What `tune` found, and the file of settings that it writes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.evaluation.settings_file import FORMAT, read_settings_file, setting_defaults
from drillrank.evaluation.statistics import Difference, least_questions, verdict
from drillrank.evaluation.tuning_grid import MU
from drillrank.files import whole_file
from drillrank.multihop.search import PathSearch

Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Tuned:
    """Settings for one's own questions, and what they are worth.

    Attributes:
        component: Whose settings.
        model: The specification of its language model; None without one.
        given: Settings that were not tuned, as they were given.
        best: What differs from the defaults in the settings that were best on all questions.
        by_fold: The same, chosen on the questions before each fold but the first.
        gain: What these bring to the fold's questions, over the defaults: mean, interval, test.
        needed: How many such questions would show this gain with a chance of 80 %; None where there is none.
        least: Fewer questions can show nothing.
        measure: In which.
        trials: Mean of the measure over all questions for everything tried, defaults first: optimistic for the best.
        milliseconds: Median of a question with the defaults, and with the best settings.
        problems: What could not be tried to the end, and why.
    """

    component: str
    model: str | None
    given: Changes
    best: Changes
    by_fold: Sequence[Changes]
    gain: Difference
    needed: int | None
    least: int
    measure: str
    trials: Mapping[str, float]
    milliseconds: tuple[float, float]
    problems: Sequence[str]

    @property
    def adopted(self) -> bool:
        """Whether the gain is more than noise, so that the best settings take the defaults' place."""
        return adopts(self.best, self.gain)

    @property
    def settings(self) -> dict[str, Any]:
        """What is to be set: the best settings, or none but those given."""
        return {**self.given, **(self.best if self.adopted else {})}

    @property
    def advice(self) -> str:
        """In words, whether to change anything."""
        mean, low, high, p, n = self.gain
        found = f"{self.measure} {mean:+.3f} ({low:+.3f} to {high:+.3f}, p = {p:.3f}) on {n:,} questions"
        if self.adopted:
            return f"{setting_line(self.best)} helps {self.component}: {found} that did not choose."
        if not self.best and not any(self.by_fold):
            return f"Nothing that was tried is better than the defaults of {self.component}: they are kept."
        if n < least_questions():
            why = f"so few questions cannot show that others are better, {self.least} are the least that can"
        else:
            why = f"what others bring may be chance, {found} that did not choose"
        if mean > 0 and self.needed:
            why += f"; about {self.needed:,} such questions would tell"
        return f"The defaults of {self.component} are kept: {why}."

    def __str__(self) -> str:
        ahead = sorted(self.trials.items(), key=lambda trial: -trial[1])
        lines = [f"{self.measure:<12} settings (on the questions that chose them)"]
        lines += [f"{mean:<12.3f} {name}" for name, mean in ahead]
        lines.append(f"Chosen before each fold: {'; '.join(map(setting_line, self.by_fold))}.")
        before, after = self.milliseconds
        best = setting_line(self.best)
        lines.append(f"Median of a question: {before:.2f} ms with the defaults, {after:.2f} ms with {best}.")
        return "\n".join([*lines, *self.problems, self.advice])

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "component": self.component,
            "model": self.model,
            "adopted": self.adopted,
            "settings": self.settings,
            "best": dict(self.best),
            "by_fold": [dict(changes) for changes in self.by_fold],
            "measure": self.measure,
            "gain": self.gain._asdict(),
            "needed": self.needed,
            "least": self.least,
            "trials": dict(self.trials),
            "milliseconds": list(self.milliseconds),
            "problems": list(self.problems),
            "advice": self.advice,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the settings to a file that `load_settings` reads; those of other components that it holds stay.

        Raises:
            InvalidInput: the file holds something else, or cannot be written.
        """
        content: dict[str, Any] = {"format": FORMAT, "settings": {}, "tuned": {}}
        if Path(path).exists():
            content |= read_settings_file(path)
        content["settings"] |= self._sections()
        content["tuned"] = dict(content.get("tuned") or {}) | {
            self.component: {
                "measure": self.measure,
                "adopted": self.adopted,
                "gain": self.gain._asdict(),
                "best": dict(self.best),
            }
        }
        try:
            with whole_file(Path(path)) as file:
                file.write((json.dumps(content, indent=1) + "\n").encode())
        except OSError as problem:
            raise InvalidInput(f"{path} cannot be written: {problem.strerror}.") from problem

    def _sections(self) -> dict[str, dict[str, Any]]:
        settings = self.settings
        of_model: dict[str, Any] = {} if self.model is None else {"model": self.model}
        if MU in settings:
            of_model["model_options"] = {MU: settings.pop(MU)}
        if self.component != "PathSearch":
            return {self.component: {**settings, **of_model}}
        of_search = setting_defaults(PathSearch).keys()
        return {
            "PathSearch": {name: value for name, value in settings.items() if name in of_search},
            "PromptRank": {**{name: value for name, value in settings.items() if name not in of_search}, **of_model},
        }


def adopts(best: Changes, gain: Difference) -> bool:
    """Whether there is anything to adopt, and its gain is more than chance."""
    return bool(best) and verdict(gain.mean, gain.p) == "better"


def setting_line(changes: Changes) -> str:
    """Settings in a line.

    >>> setting_line({"mu": 100.0, "prior": "retrieval"}), setting_line({})
    ('mu=100.0, prior="retrieval"', 'the defaults')
    """
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in changes.items()) or "the defaults"
