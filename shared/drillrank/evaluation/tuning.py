"""Settings for one's own questions, without training a model: a coordinate search, judged by questions to come.

One setting after the other takes the candidate with the best mean, the earlier ones as they were chosen. The questions
are cut into parts at random. The whole search is done on the first part, and what it chooses is measured on the second;
then on the first two for the third, and so on (prequential validation, Dawid 1984). The mean of these differences from
the defaults is what settings chosen in this way bring to questions that did not choose them. It is one difference,
however many settings are tried, so that its paired randomisation test needs no correction. Only a gain that the test
shows changes anything; then the settings are those that all questions choose.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count, product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.components import component as row_of
from drillrank.errors import InvalidInput, check_positive
from drillrank.evaluation.experiment import Experiment
from drillrank.evaluation.measures import check_measures, default_measures
from drillrank.evaluation.questions import CorpusSource, QuestionSource
from drillrank.evaluation.settings_file import FORMAT, keyword_arguments, read_settings_file, setting_defaults
from drillrank.evaluation.statistics import Difference, difference, least_questions, questions_that_would_tell, verdict
from drillrank.evaluation.systems import own_model, resolved, system
from drillrank.files import replace_file
from drillrank.likelihood import LanguageModel, UnigramModel
from drillrank.likelihood.unigram import UNSAVED
from drillrank.multihop.search import PathSearch
from drillrank.progress import OnProgress
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, PromptRank
from drillrank.settings import as_json
from drillrank.vectors import Floats
from drillrank.views import MultiViewIndex

Changes = Mapping[str, Any]
Grid = Mapping[str, Sequence[Any]]
Places = npt.NDArray[np.intp]

_BETTER = 1e-12  # by which sums of the same numbers in another order differ
_MU = "mu"  # of the model, not of the method
_PRIOR: Grid = {"prior": (None, "retrieval"), "prior_weight": (0.25, 0.5, 1.0, 2.0)}
_PROMPTS: Grid = {
    "instructions": (*((wording,) for wording in PROMPTRANK_INSTRUCTIONS), PROMPTRANK_INSTRUCTIONS),
    "ensemble": ("max", "mean"),
    "temperature": (0.7, 1.0, 1.4, 2.0),
}
_WEIGHTS = ((1, 1, 1), (2, 1, 1), (4, 1, 1), (1, 2, 1), (1, 1, 2), (1, 0, 1), (1, 1, 0), (1, 0, 0))
GRIDS: Mapping[str, Grid] = {
    "UPR": {_MU: (30.0, 100.0, 300.0, 1000.0, 3000.0), **_PRIOR},
    "PromptRank": {_MU: (30.0, 100.0, 300.0, 1000.0, 3000.0), **_PROMPTS, **_PRIOR},
    "PathSearch": {
        "hops": (None, 2, 3),
        "link_prior": tuple({"jump": jump, "named": named} for jump in (0.2, 0.5, 0.8) for named in (0.2, 0.5, 0.8)),
        _MU: (30.0, 100.0, 300.0, 1000.0),
        **_PROMPTS,
        "beam": (None, 5, 10, 20),
        "branch": (None, 3, 8, 16),
        "pairs": (0, 6, 12),
        **_PRIOR,
    },
    "MultiViewIndex": {
        "retriever": ("bm25", "tfidf"),
        "weights": (None, *({"raw": float(r), "keywords": float(k), "summary": float(s)} for r, k, s in _WEIGHTS)),
    },
    "D3": {_MU: (100.0, 300.0, 1000.0, 3000.0), "sections": (3, 5, 8, 16), "max_documents": (3, 8, 20)},
}
"""What is tried: for each component of ours its settings, in the order of the search, with their candidates."""


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
        outcome = {"adopted": self.adopted, "settings": self.settings, "advice": self.advice}
        return {**asdict(self), "gain": self.gain._asdict(), **outcome}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the settings to a file that `load_settings` reads; those of other components that it holds stay.

        Raises:
            InvalidInput: the file holds something else, or cannot be written.
        """
        content: dict[str, Any] = {"format": FORMAT, "settings": {}, "tuned": {}}
        content |= read_settings_file(path) if Path(path).exists() else {}
        settings = self.settings
        of_model: dict[str, Any] = {} if self.model is None else {"model": self.model}
        if _MU in settings:
            of_model["model_options"] = {_MU: settings.pop(_MU)}
        if self.component == "PathSearch":  # whose prompts are a section of their own
            of_search = {name: settings[name] for name in setting_defaults(PathSearch).keys() & settings.keys()}
            search_only = of_search.keys() - setting_defaults(PromptRank).keys()  # both take a preset
            of_prompts = {name: value for name, value in settings.items() if name not in search_only}
            content["settings"] |= {"PathSearch": of_search, "PromptRank": {**of_prompts, **of_model}}
        else:
            content["settings"][self.component] = {**settings, **of_model}
        why = {"measure": self.measure, "adopted": self.adopted, "gain": self.gain._asdict(), "best": dict(self.best)}
        content["tuned"][self.component] = why
        try:
            with replace_file(Path(path)) as file:
                file.write((json.dumps(content, indent=1) + "\n").encode())
        except OSError as problem:
            raise InvalidInput(f"{path} cannot be written: {problem.strerror}.") from problem


def adopts(best: Changes, gain: Difference) -> bool:
    """Whether there is anything to adopt, and its gain is more than chance."""
    return bool(best) and verdict(gain.mean, gain.p) == "better"


def setting_line(changes: Changes) -> str:
    """Settings in a line.

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
    """Find settings for one's own questions, and whether they are better than the defaults by more than noise.

    With n questions and c candidates in the grid the component is asked about n · c times; parts whose choices differ
    ask for more.

    Args:
        questions: As for `compare`.
        component: `"UPR"`, `"PromptRank"`, `"PathSearch"`, `"MultiViewIndex"` or `"D3"` (without an LLM), or a mapping
            with `component` and settings that stay as they are, such as `model`; `fitted` as for `compare`.
        corpus: As for `compare`.
        grid: Candidates by setting, in place of those of `drillrank.evaluation.tuning.GRIDS`; an empty list leaves a
            setting alone. `mu` is the unigram model's. `instructions` may come from `generate_instructions`.
        folds: How many parts the questions are cut into, if there are so many; each but the first is measured with
            what those before choose.
        seed: Which question is in which part.
        measure: The measure that decides; None for nDCG@10, and for what reads documents the spans at equal tokens, if
            the questions have spans.
        first_stage: As for `compare`.
        candidates: As for `compare`.
        columns: As for `compare`.
        results: As for `compare`; both may share a file.
        on_progress: Callback, called as `(done, total)` after every question; the total is an estimate.

    Returns:
        The settings, their gain with its interval, and all that was tried.

    Raises:
        InvalidInput: a row, the component, a candidate or the measure cannot be used, there are fewer than two
            questions, or the component fails with its defaults.
        KeyboardInterrupt: Ctrl-C; what was computed is in `results`.
        MissingExtra: ir-measures or scipy is not installed.

    >>> town = {"id": "1", "text": "Basel is a town. The Rhine flows through it."}
    >>> river = {"id": "2", "text": "The Rhine flows through Basel."}
    >>> rows = [{"question": "Which river flows through Basel?", "gold": ["2"], "candidates": [town, river]}] * 5
    >>> tuned = tune([{**row, "id": str(n)} for n, row in enumerate(rows)], grid={"prior": []}, measure="RR")
    >>> tuned.adopted, tuned.settings
    (False, {})
    """
    check_positive(folds=folds)
    base = dict(component) if isinstance(component, Mapping) else {"component": component}
    kind = row_of(base["component"]).name if isinstance(base.get("component"), str) else ""
    if kind not in GRIDS:
        raise InvalidInput(
            f"Components whose settings are tuned are {', '.join(GRIDS)}; not {base.get('component')!r:.100}."
        )
    base = {**resolved(base), "component": kind}
    experiment = Experiment(questions, corpus, first_stage, candidates, columns, results)
    checked_questions = experiment.questions
    if min(folds, len(checked_questions)) < 2:
        raise InvalidInput(
            f"{len(checked_questions)} questions cannot be cut into {folds} folds: there are 2 folds at least."
        )
    by_text = kind in ("MultiViewIndex", "D3") and all(question.spans for question in checked_questions)
    measure = measure or ("SpanR@500" if by_text else default_measures(checked_questions)[0])
    check_measures([measure], checked_questions)
    model = None if kind == "MultiViewIndex" else own_model(kind, base, experiment.corpus, fitted=False)
    given = {name: value for name, value in base.items() if name in _settings(kind, {}, model)}
    options = model.options if model is not None else {}
    defaults = _settings(kind, given, model) | ({_MU: options[_MU]} if _MU in options else {})
    steps = steps_of(kind, model, grid)
    if not steps:
        raise InvalidInput(f"There is nothing to tune in {kind}: the grid is empty.")
    trials = _Trials(experiment, base, measure, on_progress, 1 + sum(map(len, steps)))
    parts = np.array_split(
        np.random.default_rng(seed).permutation(len(checked_questions)), min(folds, len(checked_questions))
    )
    by_fold, best, changes = forward_validated(steps, parts, trials, defaults)
    kept_mu = {_MU: options[_MU]} if _MU in base.get("model_options", {}) and _MU in options else {}
    spec = None if model is None else model.spec.replace(f"unigram:{UNSAVED}", "unigram")  # as before it was fitted
    return Tuned(
        component=kind,
        model="unigram" if spec is not None and UNSAVED in spec else spec,
        given={**given, **kept_mu},
        best=best,
        by_fold=by_fold,
        gain=difference(changes),
        needed=questions_that_would_tell(changes),
        least=next(n for n in count(2) if n - math.ceil(n / min(folds, n)) >= least_questions()),
        measure=measure,
        trials=trials.means,
        milliseconds=(trials.milliseconds[setting_line({})], trials.milliseconds[setting_line(best)]),
        problems=trials.problems,
    )


@dataclass
class _Trials:
    """A component under many settings, each asked every question once, whoever wants to know."""

    experiment: Experiment
    base: Mapping[str, Any]
    measure: str
    on_progress: OnProgress | None
    planned: int
    means: dict[str, float] = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _found: dict[str, Floats | None] = field(default_factory=dict)

    def __call__(self, changes: Changes) -> Floats | None:
        """The measure of every question, shape (questions,); None where the component failed."""
        key = setting_line(changes)
        if key not in self._found:
            self._found[key] = self._measured(changes, key)
        return self._found[key]

    def _measured(self, changes: Changes, line: str) -> Floats | None:
        before, n = len(self._found), len(self.experiment.questions)

        def progress(done: int, _whole: int) -> None:
            if self.on_progress is not None:
                self.on_progress(before * n + done, max(self.planned, before + 1) * n)

        given = {**self.base, **{key: value for key, value in changes.items() if key != _MU}}
        if _MU in changes:
            given["model_options"] = {**self.base.get("model_options", {}), _MU: changes[_MU]}
        name = f"{self.base['component']}: {line}"  # as the file of results calls it
        run = self.experiment.run([system(name, given, self.experiment.corpus)], progress)
        if run.interrupted:
            raise KeyboardInterrupt
        if run.problems and not changes:
            raise InvalidInput(f"Nothing can be tuned. {run.problems[0]}")
        if run.problems:
            self.problems.append(run.problems[0])
            return None
        columns, _ = self.experiment.measured([self.measure], run.results[name])
        self.means[line] = float(columns[self.measure].mean())
        self.milliseconds[line] = 1000 * median(record.seconds for record in run.results[name].values())
        return columns[self.measure]


def searched(
    steps: Sequence[Sequence[Changes]],
    groups: Sequence[Places],
    values: Callable[[Changes], Floats | None],
    defaults: Changes,
) -> list[dict[str, Any]]:
    """What each group of questions chooses, step after step; the earlier candidate of equal ones, defaults first.

    The groups choose side by side, so that what several of them want is asked once.

    Args:
        steps: Candidates, step by step.
        groups: Places of the questions of each group.
        values: The measure of every question with these settings in place of the defaults; None where they fail.
        defaults: Settings where nothing is changed.
    """
    chosen: list[dict[str, Any]] = [{} for _ in groups]
    for candidates in steps:
        for location, rows in enumerate(groups):
            best, earlier = -np.inf, chosen[location]
            for more in ({}, *candidates):
                together = {**earlier, **more}
                changes = {key: value for key, value in together.items() if value != defaults.get(key)}
                found = values(changes)
                if found is not None and found[rows].mean() > best + _BETTER:
                    best, chosen[location] = float(found[rows].mean()), changes
    return chosen


def forward_validated(
    steps: Sequence[Sequence[Changes]],
    parts: Sequence[Places],
    values: Callable[[Changes], Floats | None],
    defaults: Changes,
) -> tuple[list[dict[str, Any]], dict[str, Any], Floats]:
    """What the parts before each one choose, what all questions choose, and what the former bring to the part itself.

    A question is measured by a choice that has seen neither it nor any that comes later, so that where nothing helps a
    difference is as likely negative as positive, whatever the earlier ones are. In cross-validation it is not: all
    choose what is lucky in all the others.

    Returns:
        The choices before each part but the first, the choice of all questions, and the differences from the defaults
        of the questions in all parts but the first.
    """
    before = [np.sort(np.concatenate(parts[:end])) for end in range(1, len(parts) + 1)]
    *by_part, best = searched(steps, before, values, defaults)
    plain: Any = values({})  # what fails is not chosen
    return (
        by_part,
        best,
        np.concatenate([(values(one) - plain)[part] for one, part in zip(by_part, parts[1:], strict=True)]),
    )


def steps_of(component: str, model: LanguageModel | None, given: Grid | None) -> list[list[dict[str, Any]]]:
    """The steps of the search, each with its candidates: one setting, or the prior together with its weight.

    Args:
        component: Whose settings.
        model: Its language model; settings that make no difference to it are left out.
        given: Candidates in place of those declared.

    Raises:
        InvalidInput: a setting is unknown, does nothing with this model, or a candidate cannot be used.

    >>> steps_of("UPR", UnigramModel(), {"mu": [100], "prior": ["retrieval"], "prior_weight": [1, 2]})
    [[{'mu': 100.0}], [{'prior': 'retrieval', 'prior_weight': 1}, {'prior': 'retrieval', 'prior_weight': 2}]]
    """
    given, known = given or {}, {*_settings(component, {}, model), _MU}
    for name in given:
        if name not in known:
            raise InvalidInput(f"{component} has no setting {name!r:.200} to tune; it has {', '.join(sorted(known))}.")
    reads = model is not None and model.reads_instructions
    useless = set() if reads else {"instructions", "ensemble"}
    if not (isinstance(model, UnigramModel) or (model is not None and _MU in model.options)):
        useless.add(_MU)
    if found := useless & given.keys():
        raise InvalidInput(f"{min(found)} does nothing with the model {getattr(model, 'spec', None)!r:.200}.")
    steps: dict[str, list[dict[str, Any]]] = {}
    for name, candidates in {**GRIDS[component], **given}.items():
        if isinstance(candidates, str) or not isinstance(candidates, Sequence):
            raise InvalidInput(f"Candidates of {name} are a list, not {candidates!r:.100}.")
        if name not in useless:
            steps[name] = [{name: _checked(component, name, value, model)} for value in candidates]
    if steps.get("prior") and steps.get("prior_weight"):  # neither says anything without the other
        priors, weights = steps["prior"], steps.pop("prior_weight")
        pairs = [{**one, **weight} for one, weight in product(priors, weights) if one["prior"] is not None]
        steps["prior"] = [one for one in priors if one["prior"] is None] + pairs
    return [step for step in steps.values() if step]


def _checked(component: str, name: str, value: Any, model: LanguageModel | None) -> Any:
    """The candidate, as JSON has it."""
    if name == "instructions" and isinstance(value, str):
        value = (value,)
    try:
        if name == _MU:
            return UnigramModel(value).mu
        return json.loads(json.dumps(_settings(component, {name: value}, model)[name]))
    except (InvalidInput, TypeError, ValueError, AttributeError) as problem:
        raise InvalidInput(f"{name}={value!r:.100} cannot be tried: {problem}") from problem


def _settings(component: str, given: Mapping[str, Any], model: LanguageModel | None) -> dict[str, Any]:
    """All settings of a component that is built with some, as JSON has them, and of the ranker of paths."""
    found: dict[str, Any] = {}
    classes: tuple[type, ...] = (
        (PathSearch, PromptRank) if component == "PathSearch" else (row_of(component).core_class,)
    )
    for cls in classes:
        names = setting_defaults(cls).keys()
        needed: dict[str, Any] = {"chunks": []} if cls is MultiViewIndex else {"model": model or "unigram"}
        if cls is PathSearch:
            needed = {"prompt_rank": PromptRank(), "passages": ()}
        built = cls(**needed, **keyword_arguments(cls, {name: given[name] for name in names & given.keys()}))
        found |= {name: getattr(built if hasattr(built, name) else built.settings, name) for name in names}
    return {name: as_json(value) for name, value in found.items()}
