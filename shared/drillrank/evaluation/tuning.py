"""Find settings for your own questions, without training a model.

Settings replace the defaults only if the test of their gain on other questions is significant
(`drillrank.evaluation.coordinate_search`). Then they are those that all questions choose.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from drillrank.components import component as row_of
from drillrank.errors import InvalidInput, check_positive
from drillrank.evaluation.coordinate_search import (
    GRIDS,
    MU,
    Changes,
    Grid,
    Indices,
    list_steps,
    read_settings,
    validate_forward,
)
from drillrank.evaluation.corpora import CorpusSource
from drillrank.evaluation.experiment import Experiment
from drillrank.evaluation.measures import check_measures, default_measures
from drillrank.evaluation.named_components import load_model, resolve_settings
from drillrank.evaluation.questions import QuestionSource
from drillrank.evaluation.settings_file import FORMAT, read_settings_file, setting_defaults
from drillrank.evaluation.statistics import Difference, difference, least_questions, questions_that_would_tell, verdict
from drillrank.files import replace_file
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.unigram import UNSAVED
from drillrank.multihop.search import PathSearch
from drillrank.progress import OnProgress
from drillrank.rerank.promptrank import PromptRank
from drillrank.vectors import Floats

_DOCUMENT_COMPONENTS = ("MultiViewIndex", "D3")


@dataclass(frozen=True)
class Tuned:
    """Settings for your own questions, and their gain.

    Attributes:
        component: Name of the component.
        model: Specification of its language model; None without one.
        fixed: Settings that were passed and not tuned.
        best: Changes from the defaults that were best on all questions.
        by_fold: Changes that were chosen on the questions before each fold except the first.
        gain: Gain of these choices on the folds' questions over the defaults: mean, interval, test.
        needed: Number of such questions that show this gain with a probability of 80 %; None without a gain.
        least: Smallest number of questions that can show any gain.
        measure: Name of the measure.
        trials: Mean of the measure over all questions by settings, defaults first. The best mean is too optimistic.
        milliseconds: Median time of a question with the defaults, and with the best settings.
        problems: Messages about settings that failed.
    """

    component: str
    model: str | None
    fixed: Changes
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
        """True if the gain is more than noise, so that the best settings replace the defaults."""
        return is_adopted(self.best, self.gain)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings to use: those that were passed, and the best ones if they are adopted."""
        return {**self.fixed, **(self.best if self.adopted else {})}

    @property
    def advice(self) -> str:
        """Conclusion in words."""
        mean, low, high, p, n = self.gain
        gain = f"{self.measure} {mean:+.3f} ({low:+.3f} to {high:+.3f}, p = {p:.3f}) on {n:,} questions"
        if self.adopted:
            return f"{setting_line(self.best)} helps {self.component}: {gain} that did not choose."
        if not self.best and not any(self.by_fold):
            return f"No setting that was tried is better than the defaults of {self.component}, which are kept."
        if n < least_questions():
            reason = f"so few questions cannot show that others are better, {self.least} are the least that can"
        else:
            reason = f"the gain of others may be chance, {gain} that did not choose"
        if mean > 0 and self.needed:
            reason += f"; about {self.needed:,} such questions would tell"
        return f"The defaults of {self.component} are kept: {reason}."

    def __str__(self) -> str:
        best_first = sorted(self.trials.items(), key=lambda trial: -trial[1])
        lines = [f"{self.measure:<12} settings (on the questions that chose them)"]
        lines += [f"{mean:<12.3f} {name}" for name, mean in best_first]
        lines.append(f"Chosen before each fold: {'; '.join(map(setting_line, self.by_fold))}.")
        before, after = self.milliseconds
        best = setting_line(self.best)
        lines.append(f"Median of a question: {before:.2f} ms with the defaults, {after:.2f} ms with {best}.")
        return "\n".join([*lines, *self.problems, self.advice])

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        outcome = {"adopted": self.adopted, "settings": self.settings, "advice": self.advice}
        return {**asdict(self), "gain": self.gain._asdict(), **outcome}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the settings to a file that `load_settings` reads. Keep those of other components in it.

        Raises:
            InvalidInput: The file is another kind of file, or cannot be written.
        """
        content: dict[str, Any] = {"format": FORMAT, "settings": {}, "tuned": {}}
        content |= read_settings_file(path) if Path(path).exists() else {}
        content["settings"] |= self._sections()
        content["tuned"][self.component] = {
            "measure": self.measure,
            "adopted": self.adopted,
            "gain": self.gain._asdict(),
            "best": dict(self.best),
        }
        try:
            with replace_file(Path(path)) as file:
                file.write((json.dumps(content, indent=1) + "\n").encode())
        except OSError as error:
            raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error

    def _sections(self) -> dict[str, Any]:
        """Return the settings by component, with the model. The prompts of a path search are a section of their own."""
        settings = self.settings
        model: dict[str, Any] = {} if self.model is None else {"model": self.model}
        if MU in settings:
            model["model_options"] = {MU: settings.pop(MU)}
        if self.component != "PathSearch":
            return {self.component: {**settings, **model}}
        search_settings = {name: settings[name] for name in setting_defaults(PathSearch).keys() & settings.keys()}
        search_only = search_settings.keys() - setting_defaults(PromptRank).keys()  # both have a preset
        prompt_settings = {name: value for name, value in settings.items() if name not in search_only}
        return {"PathSearch": search_settings, "PromptRank": {**prompt_settings, **model}}


def is_adopted(best: Changes, gain: Difference) -> bool:
    """Return True if there are better settings, and their gain is more than noise."""
    return bool(best) and verdict(gain.mean, gain.p) == "better"


def setting_line(changes: Changes) -> str:
    """Return settings on one line.

    >>> setting_line({"mu": 100.0, "prior": "retrieval"}), setting_line({})
    ('mu=100.0, prior="retrieval"', 'the defaults')
    """
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in changes.items()) or "the defaults"


def tune(
    questions: QuestionSource,
    component: str | Mapping[str, Any] = "UPR",
    corpus: CorpusSource | None = None,
    *,
    grid: Grid | None = None,
    folds: int = 10,
    seed: int = 0,
    measure: str | None = None,
    first_stage: Any = None,
    candidates: int = 50,
    columns: Mapping[str, str] | None = None,
    results: str | os.PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
) -> Tuned:
    """Find settings for your own questions, and test if they are better than the defaults.

    With n questions and c candidates in the grid, the component is asked about n · c times, and more often if the
    choices of the parts differ.

    Args:
        questions: As for `compare`.
        component: `"UPR"`, `"PromptRank"`, `"PathSearch"`, `"MultiViewIndex"` or `"D3"` (without an LLM), or a mapping
            with `component` and fixed settings, such as `model`; `fitted` as for `compare`.
        corpus: As for `compare`.
        grid: Candidates by setting, which replace those of `drillrank.evaluation.coordinate_search.GRIDS`. An empty
            list keeps a setting fixed. `mu` is a setting of the unigram model. `instructions` may come from
            `generate_instructions`.
        folds: Number of parts of the questions. Each one except the first is measured with the choice of those before.
        seed: Seed that assigns questions to parts.
        measure: Measure that decides. None is nDCG@10, or, for components that read documents, the spans at equal
            tokens, if the questions have spans.
        first_stage: As for `compare`.
        candidates: As for `compare`.
        columns: As for `compare`.
        results: As for `compare`; both may share a file.
        on_progress: Callback, called as `(done, total)` after every question. The total is an estimate.

    Returns:
        The settings, their gain with its interval, and all that was tried.

    Raises:
        InvalidInput: A row, the component, a candidate or the measure cannot be used, there are fewer than two
            questions, or the component fails with its defaults.
        KeyboardInterrupt: Ctrl-C. `results` contains what was computed.
        MissingExtra: ir-measures or scipy is not installed.

    >>> town = {"id": "1", "text": "Basel is a town. The Rhine flows through it."}
    >>> river = {"id": "2", "text": "The Rhine flows through Basel."}
    >>> rows = [{"question": "Which river flows through Basel?", "gold": ["2"], "candidates": [town, river]}] * 5
    >>> tuned = tune([{**row, "id": str(n)} for n, row in enumerate(rows)], grid={"prior": []}, measure="RR")
    >>> tuned.adopted, tuned.settings
    (False, {})
    """
    # 1. Check the arguments.
    check_positive(folds=folds)
    base = _read_component(component)
    kind: str = base["component"]
    experiment = Experiment(questions, corpus, first_stage, candidates, columns, results)
    measure = _choose_measure(kind, measure, experiment)
    parts = _divide(len(experiment.questions), folds, seed)
    # 2. List the settings and their candidates.
    model = None if kind == "MultiViewIndex" else load_model(kind, base, experiment.corpus, is_fitted=False)
    options = model.options if model is not None else {}
    fixed = {name: value for name, value in base.items() if name in read_settings(kind, {}, model)}
    defaults = read_settings(kind, fixed, model) | ({MU: options[MU]} if MU in options else {})
    steps = list_steps(kind, model, grid)
    if not steps:
        raise InvalidInput(f"grid must contain candidates for {kind}, got none. Pass some.")
    # 3. Search before each part and on all questions, and measure the gain on the parts.
    trials = _Trials(experiment, base, measure, on_progress, 1 + sum(map(len, steps)))
    by_fold, best, gains = validate_forward(steps, parts, trials.measure, defaults)
    fixed_mu = {MU: options[MU]} if MU in base.get("model_options", {}) and MU in options else {}
    return Tuned(
        component=kind,
        model=_model_name(model),
        fixed={**fixed, **fixed_mu},
        best=best,
        by_fold=by_fold,
        gain=difference(gains),
        needed=questions_that_would_tell(gains),
        least=_least_questions(folds),
        measure=measure,
        trials=trials.means,
        milliseconds=(trials.milliseconds[setting_line({})], trials.milliseconds[setting_line(best)]),
        problems=trials.problems,
    )


def _read_component(component: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the component with its fixed settings, under the name of its core class."""
    base = dict(component) if isinstance(component, Mapping) else {"component": component}
    kind = row_of(base["component"]).name if isinstance(base.get("component"), str) else ""
    if kind not in GRIDS:
        raise InvalidInput(f"component must be one of {', '.join(GRIDS)}, got {base.get('component')!r:.100}.")
    return {**resolve_settings(base), "component": kind}


def _choose_measure(kind: str, measure: str | None, experiment: Experiment) -> str:
    has_spans = all(question.spans for question in experiment.questions)
    if measure is None:
        is_by_spans = kind in _DOCUMENT_COMPONENTS and has_spans
        measure = "SpanR@500" if is_by_spans else default_measures(experiment.questions)[0]
    check_measures([measure], experiment.questions)
    return measure


def _divide(n_questions: int, folds: int, seed: int) -> list[Indices]:
    """Divide the indices of the questions into parts at random."""
    n_parts = min(folds, n_questions)
    if n_parts < 2:
        raise InvalidInput(
            f"folds must be at least 2, for at least 2 questions; got {folds} for {n_questions} questions."
        )
    return np.array_split(np.random.default_rng(seed).permutation(n_questions), n_parts)


def _model_name(model: LanguageModel | None) -> str | None:
    """Return the specification of a model before it was fitted."""
    if model is None:
        return None
    spec = model.spec.replace(f"unigram:{UNSAVED}", "unigram")
    return "unigram" if UNSAVED in spec else spec


def _least_questions(folds: int) -> int:
    """Return the smallest number of questions whose later parts can show a gain."""
    return next(n for n in count(2) if n - math.ceil(n / min(folds, n)) >= least_questions())


@dataclass
class _Trials:
    """Component under many settings, each of which is measured once.

    Attributes:
        experiment: Questions and corpus.
        base: Component with its fixed settings.
        measure_name: Name of the measure.
        on_progress: Callback for each question.
        n_planned: Estimated number of trials.
        means: Mean of the measure by settings.
        milliseconds: Median time of a question by settings.
        problems: First problem of each failed trial.
    """

    experiment: Experiment
    base: Mapping[str, Any]
    measure_name: str
    on_progress: OnProgress | None
    n_planned: int
    means: dict[str, float] = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _values: dict[str, Floats | None] = field(default_factory=dict)

    def measure(self, changes: Changes) -> Floats | None:
        """Return the measure of every question, shape `(questions,)`; None if the component failed."""
        key = setting_line(changes)
        if key not in self._values:
            self._values[key] = self._run_trial(changes, key)
        return self._values[key]

    def _run_trial(self, changes: Changes, line: str) -> Floats | None:
        n_trials, n_questions = len(self._values), len(self.experiment.questions)

        def report(n_done: int, _total: int) -> None:
            if self.on_progress is not None:
                n_all = max(self.n_planned, n_trials + 1) * n_questions
                self.on_progress(n_trials * n_questions + n_done, n_all)

        specification = {**self.base, **{key: value for key, value in changes.items() if key != MU}}
        if MU in changes:
            specification["model_options"] = {**self.base.get("model_options", {}), MU: changes[MU]}
        name = f"{self.base['component']}: {line}"  # in the file of results
        run = self.experiment.run([self.experiment.build_system(name, specification)], report)
        if run.is_interrupted:
            raise KeyboardInterrupt
        if run.problems and not changes:
            raise InvalidInput(f"{self.base['component']} failed with its defaults: {run.problems[0]}")
        if run.problems:
            self.problems.append(run.problems[0])
            return None
        columns, _ = self.experiment.measure([self.measure_name], run.results[name])
        values = columns[self.measure_name]
        self.means[line] = float(np.nanmean(values))
        self.milliseconds[line] = 1000 * median(result.seconds for result in run.results[name].values())
        return values
