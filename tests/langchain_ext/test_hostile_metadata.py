"""Metadata of stored documents that no component can use are passed through."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from langchain_ext import D3Retriever, MultiViewRetriever, UPRRerank

TEXT = "# Harbour\n\nThe harbour opens at dawn."


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


def circle() -> dict:
    value: dict = {}
    value["self"] = value
    return value


@pytest.mark.parametrize("score", [10**400, -(10**400), float("nan"), float("inf"), "9", True])
def test_a_stored_score_that_is_no_finite_number_is_no_score(score):
    documents = [Document(TEXT, id="1", metadata={"relevance_score": score}), Document(f"{TEXT} Noon.", id="2")]
    assert len(UPRRerank().compress_documents(documents, "When does the harbour open?")) == 2


@pytest.mark.filterwarnings("ignore:.*there are chunks:drillrank.errors.DrillrankWarning")
@pytest.mark.parametrize("metadata", [{"x": nested(50_000)}, {"links": nested(50_000)}, {"links": circle()}])
def test_deep_and_circular_metadata_are_passed_through(metadata):
    documents = [Document(TEXT, id="1", metadata=metadata), Document(f"{TEXT} Noon.", id="2")]
    for found in (
        D3Retriever(documents).invoke("harbour"),
        MultiViewRetriever(documents).invoke("harbour"),
        UPRRerank().compress_documents(documents, "harbour"),
    ):
        assert any(metadata.keys() <= document.metadata.keys() for document in found)
