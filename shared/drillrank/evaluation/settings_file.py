"""Files of settings, as `drillrank tune` writes them.

    {"format": "drillrank-settings-1",
     "settings": {"UPR": {"prior": "retrieval", "model": "unigram", "model_options": {"mu": 1000.0}}}}

`model` and `model_options` of a component are those with which its settings were chosen. A file may come from anyone.
Values that load local files, run code, ask a server or read the environment therefore require the user's trust.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from drillrank.components import COMPONENTS
from drillrank.components import component as row_of
from drillrank.drilldown.paragraph_scores import load_evidence_model
from drillrank.errors import InvalidInput, warn
from drillrank.files import open_file
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.likelihood.load import split_sum
from drillrank.limits import read_json
from drillrank.settings import as_settings

FORMAT = "drillrank-settings-1"

_HARMLESS_OPTIONS = {"mu", "device", "dtype", "batch_tokens", "max_length", "chat"}
# Kinds of models and tokenizers that are loaded from a folder or downloaded from a server.
_LOADED = re.compile(r"\s*(?:tiktoken|hf|st|m2v|ce|gguf|onnx|fastembed|unigram|https?):", re.IGNORECASE)
_MODEL_KEYS = ("model", "model_options")
_OBJECTS = ("model", "llm", "embed", "passages", "links", "first_stage", "demonstrations", "summarizer", "writer")


def load_settings(
    path: str | os.PathLike[str],
    component: str | type,
    *,
    model: str | LanguageModel | None = None,
    trust: bool = False,
) -> dict[str, Any]:
    """Return the keyword arguments that a file of settings contains for a component.

    Args:
        path: The file, as `drillrank tune` writes it.
        component: A core class or its name, or the class of a component of either framework. The arguments of a core
            class suit a framework's component that takes the same ones.
        model: Language model that replaces the file's. With the unigram model, the file's options are kept.
        trust: True to let the file run code or name other resources. These are models and tokenizers other than the
            unigram model, `trust_remote_code`, `model_kwargs` and the variable that contains a key.

    Returns:
        Arguments by name, with `settings` and `model` if the component takes them.

    Raises:
        InvalidInput: The file cannot be read, is another kind of file, contains nothing for this component, or has an
            unknown, invalid or untrusted value.

    Warns:
        DrillrankWarning: The settings were chosen with another model.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from drillrank import UPR
    >>> file = Path(tempfile.mkdtemp(), "tuned.json")
    >>> _ = file.write_text('{"format": "drillrank-settings-1", "settings": {"UPR": {"prior": "retrieval"}}}')
    >>> UPR(**load_settings(file, "UPR")).prior
    'retrieval'
    """
    if isinstance(component, str):
        row = row_of(component)
        if component != row.name:
            raise InvalidInput(
                f"component must be a class or the name of a core class, got {component!r:.200}. Pass the class "
                f"itself, or {row.name!r:.200}."
            )
        component = row.core_class
    else:  # it may be a subclass
        bases = [base.__name__ for base in component.__mro__]
        class_names = {name for one in COMPONENTS for name in (one.name, *one.llama_index, *one.langchain)}
        row = row_of(next((name for name in bases if name in class_names), bases[0]))
    # A framework's component has the settings of both.
    has_both = row.name in ("PathSearch", "PromptRank") and not issubclass(component, row.core_class)
    names = ["PathSearch", "PromptRank"] if has_both else [row.name]
    settings = settings_in_file(path, names, trust=trust, own_model=model is not None)
    tuned_model = {name: settings.pop(name) for name in _MODEL_KEYS if name in settings}
    arguments = keyword_arguments(component, settings)
    if "model" not in (getattr(component, "model_fields", None) or inspect.signature(component).parameters):
        return arguments
    chosen_model, options = _model_and_options(path, tuned_model, model)
    load = load_evidence_model if row.name == "D3" else load_language_model
    return {**arguments, "model": load(chosen_model, **options) if options else chosen_model}


def settings_in_file(
    path: str | os.PathLike[str], components: Sequence[str], *, trust: bool = False, own_model: bool = False
) -> dict[str, Any]:
    """Return the settings that a file contains for some core classes, including `model` and `model_options`.

    Args:
        path: The file.
        components: Names of core classes.
        trust: As for `load_settings`.
        own_model: True if the user's model replaces the file's.

    Raises:
        InvalidInput: As for `load_settings`.
    """
    sections = read_settings_file(path)["settings"]
    settings_by_name: dict[str, Any] = {}
    for name in components:
        section = sections.get(name, {})
        cls = row_of(name).core_class
        names = setting_defaults(cls)
        unknown = section.keys() - {*names, *_MODEL_KEYS}
        if unknown:
            raise InvalidInput(
                f"{path}, {name}: settings must be among {', '.join(names)}, got {', '.join(sorted(unknown)):.200}."
            )
        if not trust:
            _check_harmless(f"{path}, {name}", section, own_model=own_model)
        settings = keyword_arguments(cls, {key: section[key] for key in names.keys() & section.keys()}).get("settings")
        if settings:
            try:
                as_settings(type(inspect.signature(cls).parameters["settings"].default), settings)
            except (InvalidInput, TypeError, ValueError) as error:
                raise InvalidInput(f"{path}, {name}: {error}") from error
        settings_by_name |= section
    if not sections.keys() & set(components):
        raise InvalidInput(f"{path} must have settings of {components[0]}, got {', '.join(sections) or 'none'}.")
    return settings_by_name


def read_settings_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check a file of settings.

    Raises:
        InvalidInput: The file cannot be read, or is another kind of file.
    """
    with open_file(path) as file:
        data = file.read()
    try:
        content = read_json(data.decode(), str(path))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidInput(f'{path} must have "format": "{FORMAT}". Pass a file that `drillrank tune` wrote.')
    for key in ("settings", "tuned"):
        mapping = content.setdefault(key, {} if key == "tuned" else None)
        if not isinstance(mapping, dict) or not all(isinstance(section, dict) for section in mapping.values()):
            raise InvalidInput(f'{path}: "{key}" must contain a mapping of names and values for each component.')
    for name, section in content["settings"].items():
        if not isinstance(section.get("model", ""), str) or not isinstance(section.get("model_options", {}), dict):
            raise InvalidInput(f'{path}, {name}: "model" must be a specification, and "model_options" a mapping.')
    return content


def _check_harmless(where: str, section: Mapping[str, Any], *, own_model: bool) -> None:
    advice = "trust the file (trust=True, --trust-settings) if it is your own"
    model = section.get("model", "unigram")
    if not own_model and any(name != "unigram" for _, name in split_sum(model)):
        raise InvalidInput(f'{where}: "model" is {model!r:.200}, which is loaded from a folder or a server: {advice}.')
    for name, value in section.items():
        if name not in _MODEL_KEYS and (spec := _find_loaded(value)):
            raise InvalidInput(
                f'{where}: "{name}" is {spec!r:.200}, which is loaded from a folder or a server: {advice}.'
            )
    options = dict(section.get("model_options", {}))
    experts = options.pop("experts", [])
    if not isinstance(experts, list) or not all(isinstance(one, dict) for one in experts):
        raise InvalidInput(f'{where}: "experts" of "model_options" must be a list of mappings, one for each expert.')
    for name in set().union(options, *experts) - _HARMLESS_OPTIONS:
        raise InvalidInput(
            f'{where}: "model_options" contains {name!r:.200}, which does more than set scores: {advice}.'
        )


def _find_loaded(value: object) -> str:
    """Return a string in a JSON value that names something to load from a folder or a server; empty if none does."""
    values: list[object] = [value]
    while values:
        match values.pop():
            case str(text) if _LOADED.match(text):
                return text
            case list(items):
                values += items
            case dict(mapping):
                values += mapping.values()
    return ""


def _model_and_options(
    path: str | os.PathLike[str], tuned: Mapping[str, Any], own_model: str | LanguageModel | None
) -> tuple[str | LanguageModel, Mapping[str, Any]]:
    """Return the user's model, or that of the file, with the file's options if they suit it."""
    model, options = tuned.get("model", "unigram"), tuned.get("model_options", {})
    if own_model is None or own_model == model:
        return model, options
    spec = own_model if isinstance(own_model, str) else own_model.spec
    if isinstance(own_model, str) and {name.partition(":")[0] for name in (spec, model)} == {"unigram"}:
        return own_model, options
    own_options = {} if isinstance(own_model, str) else {name: own_model.options.get(name) for name in options}
    if spec != model or own_options != options:
        models = ((model, options), (spec, own_options))
        tuned_with, got = (f"{name!r:.200} {dict(more) or ''}".rstrip() for name, more in models)
        warn(f"The settings of {path} were chosen with {tuned_with}, not with {got}.")
    return own_model, {}


def keyword_arguments(component: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a component takes them: those that are not its own arguments go into `settings`.

    >>> class Search:
    ...     def __init__(self, top_n: int = 5, settings: object = None) -> None: ...
    >>> keyword_arguments(Search, {"top_n": 3, "width": 2})
    {'top_n': 3, 'settings': {'width': 2}}
    """
    parameters = getattr(component, "model_fields", None) or inspect.signature(component).parameters
    flat = {name: value for name, value in settings.items() if name in parameters or "settings" not in parameters}
    inside = {name: value for name, value in settings.items() if name not in flat}
    return flat | ({"settings": {**flat.get("settings", {}), **inside}} if inside else {})


def setting_defaults(component: type) -> dict[str, Any]:
    """Return the settings of a core class with their defaults, including those in `settings`, without objects."""
    defaults: dict[str, Any] = {}
    for name, parameter in inspect.signature(component).parameters.items():
        if name == "settings":
            defaults |= {item.name: item.default for item in fields(parameter.default)}
        elif parameter.default is not parameter.empty and name not in _OBJECTS:
            defaults[name] = parameter.default
    return defaults
