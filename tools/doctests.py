"""For the site: doctests at the end of a docstring are code, not quotations."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object  # type: ignore[import-not-found]


class Doctests(Extension):
    """Puts fences around them, before docstrings are read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for everything that has been found."""
        if obj.docstring:
            fenced = re.sub(r"^( *)(>>> (?:.+\n?)+)", r"\1```pycon\n\1\2\n\1```\n", obj.docstring.value, flags=re.M)
            obj.docstring.value = fenced
