"""Components from fields of all kinds, by name: what is rarely touched goes into their settings."""

from __future__ import annotations

from typing import Any

from drillrank.evaluation.settings_file import keyword_arguments


def build(cls: Any, *arguments: Any, **fields: Any) -> Any:
    """A component; fields that are none of its arguments are its settings."""
    return cls(*arguments, **keyword_arguments(cls, fields))
