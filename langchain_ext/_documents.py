"""Names for LangChain documents, which need not have an id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from langchain_core.documents import Document

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
