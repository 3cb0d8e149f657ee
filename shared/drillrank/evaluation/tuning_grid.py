"""What `tune` tries: for each component of ours its settings, in the order of the search, with their candidates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from drillrank.components import component as row_of
from drillrank.errors import InvalidInput
from drillrank.evaluation.settings_file import keyword_arguments, setting_defaults
from drillrank.likelihood import LanguageModel, UnigramModel
from drillrank.multihop.search import PathSearch
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, PromptRank
from drillrank.settings import as_json
from drillrank.views import MultiViewIndex

Grid = Mapping[str, Sequence[Any]]

MU = "mu"  # of the model, not of the method
_PRIOR: dict[str, Sequence[Any]] = {"prior": (None, "retrieval"), "prior_weight": (0.25, 0.5, 1.0, 2.0)}
_PROMPTS: dict[str, Sequence[Any]] = {
    "instructions": (*((wording,) for wording in PROMPTRANK_INSTRUCTIONS), PROMPTRANK_INSTRUCTIONS),
    "ensemble": ("max", "mean"),
}
GRIDS: Mapping[str, Grid] = {
    "UPR": {MU: (30.0, 100.0, 300.0, 1000.0, 3000.0), **_PRIOR},
    "PromptRank": {
        MU: (30.0, 100.0, 300.0, 1000.0, 3000.0),
        **_PROMPTS,
        "temperature": (0.7, 1.0, 1.4, 2.0),
        **_PRIOR,
    },
    "PathSearch": {
        "hops": (None, 2, 3),
        "link_prior": tuple({"jump": jump, "named": named} for jump in (0.2, 0.5, 0.8) for named in (0.2, 0.5, 0.8)),
        MU: (30.0, 100.0, 300.0, 1000.0),
        **_PROMPTS,
        "temperature": (0.7, 1.0, 1.4, 2.0),
        "beam": (None, 5, 10, 20),
        "branch": (None, 3, 8, 16),
        "pairs": (0, 6, 12),
        **_PRIOR,
    },
    "MultiViewIndex": {
        "retriever": ("bm25", "tfidf"),
        "weights": (
            None,
            {"raw": 1.0, "keywords": 1.0, "summary": 1.0},
            {"raw": 2.0, "keywords": 1.0, "summary": 1.0},
            {"raw": 4.0, "keywords": 1.0, "summary": 1.0},
            {"raw": 1.0, "keywords": 2.0, "summary": 1.0},
            {"raw": 1.0, "keywords": 1.0, "summary": 2.0},
            {"raw": 1.0, "keywords": 0.0, "summary": 1.0},
            {"raw": 1.0, "keywords": 1.0, "summary": 0.0},
            {"raw": 1.0, "keywords": 0.0, "summary": 0.0},
        ),
    },
    "D3": {MU: (100.0, 300.0, 1000.0, 3000.0), "sections": (3, 5, 8, 16), "max_documents": (3, 8, 20)},
}


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
    known = setting_names(component) | {MU}
    for name in given or {}:
        if name not in known:
            raise InvalidInput(f"{component} has no setting {name!r:.200} to tune; it has {', '.join(sorted(known))}.")
    has_mu = isinstance(model, UnigramModel) or (model is not None and MU in model.options)
    reads = model is not None and model.reads_instructions
    useless = {MU: not has_mu, "instructions": not reads, "ensemble": not reads}
    found: dict[str, tuple[Any, ...]] = {}
    for name, candidates in {**GRIDS[component], **(given or {})}.items():
        if useless.get(name):
            if name in (given or {}):
                raise InvalidInput(f"{name} does nothing with the model {getattr(model, 'spec', None)!r:.200}.")
            continue
        if isinstance(candidates, str) or not isinstance(candidates, Sequence):
            raise InvalidInput(f"Candidates of {name} are a list, not {candidates!r:.100}.")
        found[name] = tuple(_checked(component, name, value, model) for value in candidates)
    weights = found.pop("prior_weight", ())
    steps = []
    for name, candidates in found.items():
        step: list[dict[str, Any]] = [{name: value} for value in candidates]
        if name == "prior" and weights:  # neither says anything without the other
            step = [{name: None}] if None in candidates else []
            pairs = product((value for value in candidates if value is not None), weights)
            step += [{name: value, "prior_weight": weight} for value, weight in pairs]
        steps.append(step)
    if weights and not found.get("prior"):
        steps.append([{"prior_weight": weight} for weight in weights])
    return [step for step in steps if step]


def setting_names(component: str) -> set[str]:
    """What may be set in a component; in path search, also in the ranker of its paths."""
    return set().union(*(setting_defaults(cls) for cls in _classes(component)))


def _classes(component: str) -> tuple[type, ...]:
    return (PathSearch, PromptRank) if component == "PathSearch" else (row_of(component).core_class,)


def _checked(component: str, name: str, value: Any, model: LanguageModel | None) -> Any:
    """The candidate, as JSON has it."""
    if name == "instructions" and isinstance(value, str):
        value = (value,)
    try:
        if name == MU:
            return UnigramModel(value).mu
        return json.loads(json.dumps(_settings(component, {name: value}, model)[name]))
    except (InvalidInput, TypeError, ValueError, AttributeError) as problem:
        raise InvalidInput(f"{name}={value!r:.100} cannot be tried: {problem}") from problem


def defaults(component: str, given: Mapping[str, Any], model: LanguageModel | None) -> dict[str, Any]:
    """Every setting where nothing is tuned, as JSON has it; `mu` among them, if the model has one."""
    own = _settings(component, given, model)
    if model is not None and MU in model.options:
        own[MU] = model.options[MU]
    return own


def _settings(component: str, given: Mapping[str, Any], model: LanguageModel | None) -> dict[str, Any]:
    """All settings of a component that is built with some, as JSON has them."""
    found: dict[str, Any] = {}
    for cls in _classes(component):
        names = setting_defaults(cls).keys()
        needed: dict[str, Any] = {"chunks": []} if cls is MultiViewIndex else {"model": model or "unigram"}
        if cls is PathSearch:
            needed = {"prompt_rank": PromptRank(), "passages": ()}
        built = cls(**needed, **keyword_arguments(cls, {name: given[name] for name in names & given.keys()}))
        found |= {name: getattr(built if hasattr(built, name) else built.settings, name) for name in names}
    return {name: as_json(value) for name, value in found.items()}
