"""What all components with fields share, in both hosts.

Unknown fields are refused, assigned ones take effect. Needs pydantic, which both hosts bring.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, PrivateAttr, field_serializer, field_validator, model_validator

from drillrank.hosts.fields import Rebuilt, check_fields
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.settings import as_json, as_settings


class Component(Rebuilt, BaseModel):
    """In front of the host's class: `class UPRRerank(Component, HostsClass)`.

    A field `settings` is a dataclass, which may be given by name, and is dumped so.
    """

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, given: Any) -> Any:
        check_fields(cls, given)
        return given

    @field_validator("settings", mode="before", check_fields=False)
    @classmethod
    def _settings_by_name(cls, given: Any) -> Any:
        return as_settings(type(cls.model_fields["settings"].default), given)

    @field_serializer("settings", check_fields=False)
    def _settings_as_json(self, settings: Any) -> Any:
        return as_json(settings)


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
