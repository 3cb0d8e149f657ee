"""Models that a name and options build: these are kept, shown and pickled in place of what was loaded."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from drillrank.likelihood.base import LanguageModel


class FromOptions(LanguageModel):
    """What such models have in common; the keyword-only arguments of the class are its options.

    Args:
        name: Model id, directory or address.
        given: The constructor's `locals()`.
    """

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        parameters = inspect.signature(type(self).__init__).parameters.values()
        self._name = name
        self._options = {one.name: given[one.name] for one in parameters if one.kind is one.KEYWORD_ONLY}

    @property
    def options(self) -> dict[str, Any]:
        """The options, as given."""
        return dict(self._options)

    def __getstate__(self) -> dict[str, Any]:
        """Without weights and connections: they are loaded and made again."""
        return {"name": self._name, "options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["name"], **state["options"])  # type: ignore[misc]
