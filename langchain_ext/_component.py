"""What all components with fields share: unknown ones are refused, assigned ones take effect."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, model_validator

from drillrank import LanguageModel
from drillrank.hosts.fields import Rebuilt, check_fields
from drillrank.hosts.shared import model_fields


class Component(Rebuilt, BaseModel):
    """In front of the host's class."""

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, given: Any) -> Any:
        check_fields(cls, given)
        return given


def index_fields(component: Any, model: LanguageModel) -> dict[str, object]:
    """What the index of a component's documents is made of: all of its fields but those of the results' form."""
    of_results = {"documents", "filter", "model", "model_options", "score_key", "top_n"}
    names = type(component).model_fields.keys() - of_results
    documents = [(document.id, document.page_content, document.metadata) for document in component.documents]
    fields = {name: getattr(component, name) for name in sorted(names)}
    return fields | {"model": model_fields(model), "documents": documents}
