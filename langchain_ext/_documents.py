"""Names for LangChain documents, which need not have an id, and what an index of them is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document

from drillrank import LanguageModel, Passage
from drillrank.hosts.shared import model_fields
from drillrank.passages import stable_uuid


def document_names(documents: Iterable[Document]) -> list[str]:
    """A name for each document, different from all others and the same in every run.

    It is the document's id; without one, it depends on metadata and text; repeated ones are counted.

    >>> first, second = document_names([Document(page_content="same"), Document(page_content="same")])
    >>> first != second
    True
    """
    seen: Counter[str] = Counter()
    names = []
    for document in documents:
        name = document.id or stable_uuid(sorted(document.metadata.items(), key=repr), document.page_content)
        copies, seen[name] = seen[name], seen[name] + 1
        names.append(name if not copies else stable_uuid(name, copies))
    return names


def index_fields(component: Any, model: LanguageModel) -> Callable[[Iterable[Document]], dict[str, object]]:
    """What an index of documents is made of: them, and a component's fields but those of the results' form."""
    of_results = {"documents", "filters", "model", "model_options", "settings", "top_n", "explain"}
    names = type(component).model_fields.keys() - of_results
    fields = {name: getattr(component, name) for name in sorted(names)}
    settings = {name: value for name, value in vars(component._settings).items() if name != "score_key"}
    return partial(
        _with_documents, fields | {"settings": settings, "model": model_fields(model)}
    )  # the component itself is not kept alive


def _with_documents(fields: dict[str, object], documents: Iterable[Document]) -> dict[str, object]:
    return fields | {"documents": [(document.id, document.page_content, document.metadata) for document in documents]}


def names_of(documents: Sequence[Document]) -> list[str]:
    """The documents' ids, also equal ones; those without one get a name that depends on what they hold."""
    return [document.id or name for document, name in zip(documents, document_names(documents), strict=True)]


def passage_of(document: Document, id: str, title_key: str, metadata_fields: Iterable[str] = ()) -> Passage:
    """What a model reads of a document.

    Args:
        document: The document.
        id: Of the passage.
        title_key: Metadata key of the title.
        metadata_fields: Metadata keys that the model reads, too.
    """
    described = [f"{key}: {document.metadata[key]}" for key in metadata_fields if key in document.metadata]
    return Passage(
        "\n".join([*described, document.page_content]),
        id=id,
        title=str(document.metadata.get(title_key) or ""),
        metadata=document.metadata,
    )
