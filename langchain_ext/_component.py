"""What all components with fields share: unknown ones are refused, assigned ones take effect."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, model_validator

from drillrank.hosts.fields import Rebuilt, check_fields


class Component(Rebuilt, BaseModel):
    """In front of the host's class."""

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, given: Any) -> Any:
        check_fields(cls, given)
        return given
