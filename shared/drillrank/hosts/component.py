"""What all components with fields share, in both hosts: the fields are the method's settings and the host's own.

Unknown fields are refused, assigned ones take effect. Needs pydantic, which both hosts bring.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import BaseModel, Field, PrivateAttr, model_validator

from drillrank.hosts.fields import Rebuilt, check_fields
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.settings import Settings, described


class Component(Rebuilt, BaseModel):
    """In front of the host's class, with settings behind it: `class UPRRerank(Component, HostsClass, UPRSettings)`.

    A setting that it annotates anew has another type there; default and description stay.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Make fields of the settings, before pydantic collects what is annotated."""
        super().__init_subclass__(**arguments)
        if issubclass(cls, Settings):
            annotated = inspect.get_annotations(cls)
            known = {name for base in cls.__bases__ if issubclass(base, BaseModel) for name in base.model_fields}
            for declared in fields(cls):
                name = declared.name
                if name not in vars(cls) and (name in annotated or name not in known):
                    setattr(cls, name, Field(default=declared.default, description=declared.metadata["description"]))
            described(cls)

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, given: Any) -> Any:
        check_fields(cls, given)
        if issubclass(cls, Settings) and isinstance(given, Mapping):
            names = {declared.name for declared in fields(cls)}  # of which lists, such as JSON's, are tuples
            plain = {name: tuple(given[name]) for name in names & given.keys() if isinstance(given[name], list)}
            given = {**given, **plain}
        return given

    @model_validator(mode="after")
    def _usable_settings(self) -> Component:
        if isinstance(self, Settings):
            self.check()
        return self


class WithModel(Component):
    """A component that a language model scores for."""

    model: str = Field(default="unigram", description="Specification of the language model.")
    model_options: dict[str, Any] = Field(default_factory=dict, description="Options of the language model.")

    _language_model: LanguageModel = PrivateAttr()

    def __init__(self, model: str | LanguageModel = "unigram", **fields: Any) -> None:
        loaded = self._load(model, **fields.pop("model_options", {}))
        fields |= {"model": loaded.spec, "model_options": loaded.options}
        super().__init__(**fields)
        self._language_model = loaded
        self._prepare()

    @staticmethod
    def _load(model: str | LanguageModel, **options: Any) -> LanguageModel:
        """The model, as the method loads it."""
        return load_language_model(model, **options)

    def _prepare(self) -> None:
        """Make what is made once, and refuse now what would fail at the first question."""
