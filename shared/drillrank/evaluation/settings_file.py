"""A file of settings, as `drillrank tune` writes it.

    {"format": "drillrank-settings-1",
     "settings": {"UPR": {"prior": "retrieval", "model": "unigram", "model_options": {"mu": 1000.0}}}}

By component; `model` and `model_options` are those that they were chosen with. A file is data, whoever wrote it: what
would load files of this machine, run code, ask a server or read the environment takes effect only if it is trusted.
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
_LOADED = re.compile(r"\s*(?:tiktoken|hf|st|m2v|gguf|onnx|fastembed|unigram|https?):", re.IGNORECASE)
_OF_THE_MODEL = ("model", "model_options")
_OBJECTS = ("model", "llm", "embed", "passages", "links", "first_stage", "demonstrations", "summarizer", "writer")


def load_settings(
    path: str | os.PathLike[str],
    component: str | type,
    *,
    model: str | LanguageModel | None = None,
    trust: bool = False,
) -> dict[str, Any]:
    """The keyword arguments that a file of settings holds for a component.

    Args:
        path: The file, as `drillrank tune` writes it.
        component: A core class or its name, which also do for a host's component that takes the same arguments; or the
            class of a component of either host.
        model: A language model in place of the file's; with the unigram model, the file's options stay.
        trust: Whether the file may run code or reach beyond itself. This includes models and tokenizers other than the
            unigram model, `trust_remote_code`, `model_kwargs` and the variable that contains a key.

    Returns:
        Arguments by name, with `settings` and `model` where the component takes them.

    Raises:
        InvalidInput: the file cannot be read, is something else, says nothing for this component, holds what it does
            not know or cannot use, or what is not trusted.

    Warns:
        DrillrankWarning: the settings were chosen with another model than the one given.

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
            raise InvalidInput(f"{component} is a class of the hosts: give the class itself, or {row.name!r:.200}.")
        component = row.core_class
    else:  # perhaps a subclass of one's own
        bases = [base.__name__ for base in component.__mro__]
        known = {name for one in COMPONENTS for name in (one.name, *one.llama_index, *one.langchain)}
        row = row_of(next((name for name in bases if name in known), bases[0]))
    of_paths = row.name in ("PathSearch", "PromptRank") and not issubclass(
        component, row.core_class
    )  # a host's has both
    names = ["PathSearch", "PromptRank"] if of_paths else [row.name]
    found = settings_in_file(path, names, trust=trust, own_model=model is not None)
    of_model = {name: found.pop(name) for name in _OF_THE_MODEL if name in found}
    arguments = keyword_arguments(component, found)
    if "model" not in (getattr(component, "model_fields", None) or inspect.signature(component).parameters):
        return arguments
    chosen, options = _model_and_options(path, of_model, model)
    load = load_evidence_model if row.name == "D3" else load_language_model
    return {**arguments, "model": load(chosen, **options) if options else chosen}


def settings_in_file(
    path: str | os.PathLike[str], components: Sequence[str], *, trust: bool = False, own_model: bool = False
) -> dict[str, Any]:
    """All that a file says for some core classes, by name, with `model` and `model_options` if they are there.

    Args:
        path: The file.
        components: Names of core classes.
        trust: As for `load_settings`.
        own_model: Whether the file's model is not loaded, but one that the user names.

    Raises:
        InvalidInput: as `load_settings`.
    """
    sections = read_settings_file(path)["settings"]
    found: dict[str, Any] = {}
    for name in components:
        section = sections.get(name, {})
        cls = row_of(name).core_class
        known = setting_defaults(cls)
        unknown = section.keys() - {*known, *_OF_THE_MODEL}
        if unknown:
            raise InvalidInput(
                f"{path}, {name}: settings are {', '.join(known)}; not {', '.join(sorted(unknown)):.200}."
            )
        if not trust:
            _check_harmless(f"{path}, {name}", section, own_model=own_model)
        settings = keyword_arguments(cls, {key: section[key] for key in known.keys() & section.keys()}).get("settings")
        if settings:
            try:
                as_settings(type(inspect.signature(cls).parameters["settings"].default), settings)
            except (InvalidInput, TypeError, ValueError) as problem:
                raise InvalidInput(f"{path}, {name}: {problem}") from problem
        found |= section
    if not sections.keys() & set(components):
        raise InvalidInput(f"{path} holds {', '.join(sections) or 'no settings'}; nothing for {components[0]}.")
    return found


def read_settings_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The file's content, once it is known to be one of settings.

    Raises:
        InvalidInput: it cannot be read, or is something else.
    """
    with open_file(path) as file:
        written = file.read()
    try:
        content = read_json(written.decode(), str(path))
    except UnicodeDecodeError as problem:
        raise InvalidInput(f"{path} is not JSON: {problem}.") from problem
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidInput(f'{path} is no file of settings: "format" is "{FORMAT}", as `drillrank tune` writes it.')
    for key in ("settings", "tuned"):
        mapping = content.setdefault(key, {} if key == "tuned" else None)
        if not isinstance(mapping, dict) or not all(isinstance(section, dict) for section in mapping.values()):
            raise InvalidInput(f'{path}: "{key}" holds, by component, a mapping of names and values.')
    for name, section in content["settings"].items():
        if not isinstance(section.get("model", ""), str) or not isinstance(section.get("model_options", {}), dict):
            raise InvalidInput(f'{path}, {name}: "model" is a specification, and "model_options" a mapping.')
    return content


def _check_harmless(where: str, section: Mapping[str, Any], *, own_model: bool) -> None:
    advice = "trust the file (trust=True, --trust-settings) if it is your own"
    model = section.get("model", "unigram")
    if not own_model and any(name != "unigram" for _, name in split_sum(model)):
        raise InvalidInput(f'{where}: "model" is {model!r:.200}, which is loaded from a folder or a server: {advice}.')
    for name, value in section.items():
        if name not in _OF_THE_MODEL and (spec := _find_loaded(value)):
            raise InvalidInput(
                f'{where}: "{name}" is {spec!r:.200}, which is loaded from a folder or a server: {advice}.'
            )
    options = dict(section.get("model_options", {}))
    experts = options.pop("experts", [])
    if not isinstance(experts, list) or not all(isinstance(one, dict) for one in experts):
        raise InvalidInput(f'{where}: "experts" of "model_options" is a list of mappings, options of each expert.')
    for name in set().union(options, *experts) - _HARMLESS_OPTIONS:
        raise InvalidInput(f'{where}: "model_options" holds {name!r:.200}, which is no setting of scores: {advice}.')


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
    path: str | os.PathLike[str], tuned: Mapping[str, Any], given: str | LanguageModel | None
) -> tuple[str | LanguageModel, Mapping[str, Any]]:
    """The model given, else that of the file; the file's options, where they are those of such a model."""
    model, options = tuned.get("model", "unigram"), tuned.get("model_options", {})
    if given is None or given == model:
        return model, options
    spec = given if isinstance(given, str) else given.spec
    if isinstance(given, str) and {name.partition(":")[0] for name in (spec, model)} == {"unigram"}:
        return given, options
    has = {} if isinstance(given, str) else {name: given.options.get(name) for name in options}
    if spec != model or has != options:
        chosen, got = (f"{name!r:.200} {dict(more) or ''}".rstrip() for name, more in ((model, options), (spec, has)))
        warn(f"The settings of {path} were chosen with {chosen}, not with {got}.")
    return given, {}


def keyword_arguments(component: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name as a component takes them: what is no argument of its own goes into `settings`.

    >>> class Search:
    ...     def __init__(self, top_n: int = 5, settings: object = None) -> None: ...
    >>> keyword_arguments(Search, {"top_n": 3, "width": 2})
    {'top_n': 3, 'settings': {'width': 2}}
    """
    parameters = getattr(component, "model_fields", None) or inspect.signature(component).parameters
    flat = {name: value for name, value in given.items() if name in parameters or "settings" not in parameters}
    inside = {name: value for name, value in given.items() if name not in flat}
    return flat | ({"settings": {**flat.get("settings", {}), **inside}} if inside else {})


def setting_defaults(component: type) -> dict[str, Any]:
    """What may be set by name in a core class, `settings` included, with the defaults: no objects such as a model."""
    found: dict[str, Any] = {}
    for name, given in inspect.signature(component).parameters.items():
        if name == "settings":
            found |= {item.name: item.default for item in fields(given.default)}
        elif given.default is not given.empty and name not in _OBJECTS:
            found[name] = given.default
    return found
