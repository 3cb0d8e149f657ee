"""A file of settings, as `drillrank tune` writes it and `Settings.load` reads it.

    {"format": "drillrank-settings-1",
     "settings": {"UPRSettings": {"prior": "retrieval", "model": "unigram", "model_options": {"mu": 1000.0}}}}

By the name of the settings class that declares them; `model` and `model_options` are those that they were chosen with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drillrank.errors import InvalidInput

FORMAT = "drillrank-settings-1"
OF_THE_MODEL = ("model", "model_options")


def read_settings_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The file's content, once it is known to be one of settings.

    Raises:
        InvalidInput: it cannot be read, or is something else.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be read: {problem.strerror}.") from problem
    except ValueError as problem:  # of JSON or UTF-8
        raise InvalidInput(f"{path} is no JSON: {problem}. `drillrank tune` writes files of settings.") from problem
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidInput(
            f'{path} is no file of settings: it has no "format": "{FORMAT}", as `drillrank tune` writes.'
        )
    sections = content.get("settings")
    if not isinstance(sections, dict) or not all(isinstance(section, dict) for section in sections.values()):
        raise InvalidInput(f'{path}: "settings" holds, by settings class, a mapping of names and values.')
    if not isinstance(content.get("tuned") or {}, dict):
        raise InvalidInput(f'{path}: "tuned" holds, by component, what it was chosen by.')
    for name, section in sections.items():
        if not isinstance(section.get("model", ""), str) or not isinstance(section.get("model_options", {}), dict):
            raise InvalidInput(f'{path}, {name}: "model" is a specification, and "model_options" a mapping.')
    return content


def sections_for(path: str | os.PathLike[str], cls: type) -> dict[type, Mapping[str, Any]]:
    """What a file says for a class, by the settings classes that it inherits.

    Raises:
        InvalidInput: as `read_settings_file`, or it says nothing for this class.
    """
    sections = read_settings_file(path)["settings"]
    found = {base: sections[base.__name__] for base in cls.__mro__ if base.__name__ in sections}
    if not found:
        raise InvalidInput(f"{path} holds {', '.join(sections) or 'no settings'}; nothing for {cls.__name__}.")
    return found
