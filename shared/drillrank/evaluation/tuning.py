"""Settings for one's own questions, without training a model: a coordinate search, judged by questions to come.

One setting after the other takes the candidate with the best mean, the earlier ones as they were chosen. The questions
are cut into parts at random. The whole search is done on the first part, and what it chooses is measured on the second;
then on the first two for the third, and so on (prequential validation, Dawid 1984). The mean of these differences from
the defaults is what settings chosen in this way bring to questions that did not choose them. It is one difference,
however many settings are tried, so that its paired randomisation test needs no correction. Only a gain that the test
shows changes anything; then the settings are those that all questions choose.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np

from drillrank.components import component as row_of
from drillrank.errors import InvalidInput, check_positive
from drillrank.evaluation.comparison import candidates_by
from drillrank.evaluation.corpus import CorpusSource, check_gold, read_corpus
from drillrank.evaluation.evidence import evidence_of
from drillrank.evaluation.measures import check_measures, default_measures
from drillrank.evaluation.own import own_model
from drillrank.evaluation.questions import QuestionSource, read_questions
from drillrank.evaluation.records import Records, fingerprint
from drillrank.evaluation.running import OnProgress
from drillrank.evaluation.statistics import difference, least_questions, questions_that_would_tell
from drillrank.evaluation.systems import resolved
from drillrank.evaluation.trials import Trials, forward_validated
from drillrank.evaluation.tuned import Tuned
from drillrank.evaluation.tuning_grid import GRIDS, MU, Grid, defaults, setting_names, steps_of
from drillrank.likelihood.unigram import UNSAVED

_BY_TEXT = ("MultiViewIndex", "D3")  # what they find is best compared at equal length


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
        grid: Candidates by setting, in place of those of `drillrank.evaluation.tuning_grid`; an empty list leaves a
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
        on_progress: Callback, called as `(done, total)` after every question; the total may grow.

    Returns:
        The settings, their gain with its interval, and all that was tried.

    Raises:
        InvalidInput: a row, the component, a candidate or the measure cannot be used, there are fewer than two
            questions, or the component fails with its defaults.
        KeyboardInterrupt: Ctrl-C; what was computed is in `results`.
        MissingExtra: ir-measures or scipy is not installed.

    >>> town = {"id": "1", "text": "Basel is a town. The Rhine flows through it."}
    >>> river = {"id": "2", "text": "The Rhine flows through Basel."}
    >>> asked = [{"question": "Which river flows through Basel?", "gold": ["2"], "candidates": [town, river]}] * 5
    >>> tuned = tune([{**row, "id": str(n)} for n, row in enumerate(asked)], grid={"prior": []}, measure="RR")
    >>> tuned.adopted, tuned.settings
    (False, {})
    """
    check_positive(folds=folds, candidates=candidates)
    base = _base(component)
    asked = read_questions(questions, columns)
    if min(folds, len(asked)) < 2:
        raise InvalidInput(f"{len(asked)} questions cannot be cut into {folds} folds: there are 2 folds at least.")
    kind = base["component"]
    by_text = kind in _BY_TEXT and all(question.spans for question in asked)
    measure = measure or ("SpanR@500" if by_text else default_measures(asked)[0])
    check_measures([measure], asked)
    searched_in = read_corpus(corpus)
    check_gold(asked, searched_in)
    model = None if kind == "MultiViewIndex" else own_model(kind, base, searched_in, fitted=False)
    settings = setting_names(kind)
    given = {name: value for name, value in base.items() if name in settings}
    trials = Trials(
        base=base,
        defaults=defaults(kind, given, model),
        measure=measure,
        questions=asked,
        evidence=evidence_of(asked, searched_in.documents.values()),
        corpus=searched_in,
        first_stage=candidates_by(first_stage, asked, searched_in, candidates),
        records=Records(results, fingerprint(asked, searched_in.passages, candidates)),
        on_progress=on_progress,
    )
    steps = steps_of(kind, model, grid)
    if not steps:
        raise InvalidInput(f"There is nothing to tune in {kind}: the grid is empty.")
    parts = np.array_split(np.random.default_rng(seed).permutation(len(asked)), min(folds, len(asked)))
    by_fold, best, changes = forward_validated(steps, parts, trials)
    options = model.options if model is not None else {}
    kept_mu = {MU: options[MU]} if MU in base.get("model_options", {}) and MU in options else {}
    return Tuned(
        component=kind,
        model=None if model is None else _without_fit(model.spec),
        given={**given, **kept_mu},
        best=best,
        by_fold=by_fold,
        gain=difference(changes),
        needed=questions_that_would_tell(changes),
        least=next(n for n in count(2) if n - math.ceil(n / min(folds, n)) >= least_questions()),
        measure=measure,
        trials=trials.means,
        milliseconds=(trials.milliseconds({}), trials.milliseconds(best)),
        problems=trials.problems,
    )


def _base(given: str | Mapping[str, Any]) -> dict[str, Any]:
    base = dict(given) if isinstance(given, Mapping) else {"component": given}
    name = base.get("component")
    kind = row_of(name).name if isinstance(name, str) else name
    if kind not in GRIDS:
        raise InvalidInput(f"Components whose settings are tuned are {', '.join(GRIDS)}; not {name!r:.100}.")
    return {**resolved(base), "component": kind}


def _without_fit(spec: str) -> str:
    """The specification of a model before it was fitted, as far as it is known."""
    unfitted = spec.replace(f"unigram:{UNSAVED}", "unigram")
    return "unigram" if UNSAVED in unfitted else unfitted
