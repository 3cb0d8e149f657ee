"""What all components with fields share: unknown ones are refused, assigned ones take effect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.documents import Document
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


def index_fields(component: Any, model: LanguageModel, documents: Iterable[Document]) -> dict[str, object]:
    """What an index of these documents is made of: them, and a component's fields but those of the results' form."""
    of_results = {"documents", "filter", "model", "model_options", "score_key", "top_n"}
    names = type(component).model_fields.keys() - of_results
    texts = [(document.id, document.page_content, document.metadata) for document in documents]
    fields = {name: getattr(component, name) for name in sorted(names)}
    return fields | {"model": model_fields(model), "documents": texts}
