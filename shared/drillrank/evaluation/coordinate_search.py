"""Coordinate search for settings, and its validation on questions that did not choose them.

One setting after the other takes the candidate with the best mean; earlier settings stay as they were chosen. The
questions are divided into parts at random. The whole search runs on the first part, and its choice is measured on the
second; then on the first two for the third, and so on (prequential validation, Dawid 1984). The mean of these
differences from the defaults is the gain of settings that are chosen in this way, on other questions. It is one
difference, however many settings are tried, so its paired randomization test needs no correction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.components import component as row_of
from drillrank.errors import InvalidInput
from drillrank.evaluation.settings_file import keyword_arguments, setting_defaults
from drillrank.likelihood import LanguageModel, UnigramModel
from drillrank.multihop.search import PathSearch
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, PromptRank
from drillrank.settings import as_json
from drillrank.vectors import Floats
from drillrank.views import MultiViewIndex

Changes = Mapping[str, Any]
"""Settings that differ from the defaults, by name."""
Grid = Mapping[str, Sequence[Any]]
"""Candidates to try for each setting."""
Indices = npt.NDArray[np.intp]

MU = "mu"  # a setting of the model, not of the method
_BETTER = 1e-12  # sums of the same numbers in another order differ by less
_PRIOR: Grid = {"prior": (None, "retrieval"), "prior_weight": (0.25, 0.5, 1.0, 2.0)}
_PROMPTS: Grid = {
    "instructions": (*((instruction,) for instruction in PROMPTRANK_INSTRUCTIONS), PROMPTRANK_INSTRUCTIONS),
    "ensemble": ("max", "mean"),
    "temperature": (0.7, 1.0, 1.4, 2.0),
}
_WEIGHTS = ((1, 1, 1), (2, 1, 1), (4, 1, 1), (1, 2, 1), (1, 1, 2), (1, 0, 1), (1, 1, 0), (1, 0, 0))
GRIDS: Mapping[str, Grid] = {
    "UPR": {MU: (30.0, 100.0, 300.0, 1000.0, 3000.0), **_PRIOR},
    "PromptRank": {MU: (30.0, 100.0, 300.0, 1000.0, 3000.0), **_PROMPTS, **_PRIOR},
    "PathSearch": {
        "hops": (None, 2, 3),
        "link_prior": tuple({"jump": jump, "named": named} for jump in (0.2, 0.5, 0.8) for named in (0.2, 0.5, 0.8)),
        MU: (30.0, 100.0, 300.0, 1000.0),
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
    "D3": {MU: (100.0, 300.0, 1000.0, 3000.0), "sections": (3, 5, 8, 16), "max_documents": (3, 8, 20)},
}
"""Candidates of each component, in the order of the search."""


def search_settings(
    steps: Sequence[Sequence[Changes]],
    groups: Sequence[Indices],
    measure: Callable[[Changes], Floats | None],
    defaults: Changes,
) -> list[dict[str, Any]]:
    """Return the choice of each group of questions, step after step. Of equal candidates, the first one wins.

    The groups choose side by side, so that each candidate is measured once for all of them.

    Args:
        steps: Candidates of each step.
        groups: Indices of the questions of each group.
        measure: Function from settings to the measure of every question; None if they fail.
        defaults: Settings without any change.
    """
    choices: list[dict[str, Any]] = [{} for _ in groups]
    for candidates in steps:
        for group_index, question_indices in enumerate(groups):
            best, earlier = -np.inf, choices[group_index]
            for candidate in ({}, *candidates):
                settings = {**earlier, **candidate}
                changes = {key: value for key, value in settings.items() if value != defaults.get(key)}
                values = measure(changes)
                if values is not None and values[question_indices].mean() > best + _BETTER:
                    best, choices[group_index] = float(values[question_indices].mean()), changes
    return choices


def validate_forward(
    steps: Sequence[Sequence[Changes]],
    parts: Sequence[Indices],
    measure: Callable[[Changes], Floats | None],
    defaults: Changes,
) -> tuple[list[dict[str, Any]], dict[str, Any], Floats]:
    """Run the search before each part of the questions and on all of them, and measure the former on the part.

    The choice for a part has seen neither its questions nor later ones. If no setting helps, a difference is therefore
    as likely negative as positive, whatever earlier ones are. In cross-validation, all choices would prefer what is
    lucky in the other parts.

    Returns:
        The choices before each part except the first, the choice of all questions, and the differences from the
        defaults for the questions of all parts except the first.
    """
    groups = [np.sort(np.concatenate(parts[:end])) for end in range(1, len(parts) + 1)]
    *choices, best = search_settings(steps, groups, measure, defaults)
    default_values: Any = measure({})
    chosen_values: list[Any] = [measure(choice) for choice in choices]  # settings that fail are never chosen
    gains = [(values - default_values)[part] for values, part in zip(chosen_values, parts[1:], strict=True)]
    return choices, best, np.concatenate(gains)


def list_steps(component: str, model: LanguageModel | None, grid: Grid | None) -> list[list[dict[str, Any]]]:
    """Return the candidates of each step of the search: one setting, or the prior together with its weight.

    Args:
        component: Name of the component.
        model: Its language model. Settings that have no effect on it are left out.
        grid: Candidates that replace those of `GRIDS`.

    Raises:
        InvalidInput: A setting is unknown or has no effect on this model, or a candidate cannot be used.

    >>> list_steps("UPR", UnigramModel(), {"mu": [100], "prior": ["retrieval"], "prior_weight": [1, 2]})
    [[{'mu': 100.0}], [{'prior': 'retrieval', 'prior_weight': 1}, {'prior': 'retrieval', 'prior_weight': 2}]]
    """
    grid, names = grid or {}, {*read_settings(component, {}, model), MU}
    for name in grid:
        if name not in names:
            raise InvalidInput(
                f"grid must name settings of {component}: {', '.join(sorted(names))}; got {name!r:.200}."
            )
    has_prompts = model is not None and model.reads_instructions
    without_effect = set() if has_prompts else {"instructions", "ensemble"}
    if not (isinstance(model, UnigramModel) or (model is not None and MU in model.options)):
        without_effect.add(MU)
    if unusable := without_effect & grid.keys():
        raise InvalidInput(
            f"{min(unusable)} has no effect on the model {getattr(model, 'spec', None)!r:.200}. Remove it."
        )
    steps: dict[str, list[dict[str, Any]]] = {}
    for name, candidates in {**GRIDS[component], **grid}.items():
        if isinstance(candidates, str) or not isinstance(candidates, Sequence):
            raise InvalidInput(f"Candidates of {name} must be a list, got {candidates!r:.100}.")
        if name not in without_effect:
            steps[name] = [{name: _check_candidate(component, name, value, model)} for value in candidates]
    if steps.get("prior") and steps.get("prior_weight"):  # neither has an effect without the other
        priors, weights = steps["prior"], steps.pop("prior_weight")
        pairs = [{**prior, **weight} for prior, weight in product(priors, weights) if prior["prior"] is not None]
        steps["prior"] = [prior for prior in priors if prior["prior"] is None] + pairs
    return [step for step in steps.values() if step]


def _check_candidate(component: str, name: str, value: Any, model: LanguageModel | None) -> Any:
    """Return a candidate as a JSON value."""
    if name == "instructions" and isinstance(value, str):
        value = (value,)
    try:
        if name == MU:
            return UnigramModel(value).mu
        return json.loads(json.dumps(read_settings(component, {name: value}, model)[name]))
    except (InvalidInput, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"{name}={value!r:.100} cannot be tried: {error}") from error


def read_settings(component: str, changes: Changes, model: LanguageModel | None) -> dict[str, Any]:
    """Return all settings of a component that is built with some changes, as JSON values.

    Those of `PathSearch` include the settings of its `PromptRank`.
    """
    settings: dict[str, Any] = {}
    classes: tuple[type, ...] = (row_of(component).core_class,)
    if component == "PathSearch":
        classes = (PathSearch, PromptRank)
    for cls in classes:
        names = setting_defaults(cls).keys()
        required: dict[str, Any] = {"model": model or "unigram"}
        if cls is MultiViewIndex:
            required = {"chunks": []}
        elif cls is PathSearch:
            required = {"prompt_rank": PromptRank(), "passages": ()}
        built = cls(**required, **keyword_arguments(cls, {name: changes[name] for name in names & changes.keys()}))
        settings |= {name: getattr(built if hasattr(built, name) else built.settings, name) for name in names}
    return {name: as_json(value) for name, value in settings.items()}
