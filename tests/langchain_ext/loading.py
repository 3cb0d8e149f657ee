"""LangChain's serialization of components."""

from __future__ import annotations

import warnings
from typing import Any

from langchain_core.documents import Document
from langchain_core.load import dumps, loads
from langchain_core.prompts import PromptTemplate


def restored(component: Any, *others: type) -> Any:
    """What `loads` makes of it, as the page on LangChain says."""
    allowed = [type(component), Document, PromptTemplate, *others]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that `loads` is in beta
        return loads(dumps(component), allowed_objects=allowed, valid_namespaces=["langchain_ext"])
