"""Metadata of stored documents that no component can use: an error of ours or a result."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from drillrank.errors import InvalidInput
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
@pytest.mark.parametrize("metadata", [{"x": nested(50_000)}, {"links": nested(50_000)}], ids=["x", "links"])
def test_deep_metadata_are_an_error_of_ours(metadata):
    documents = [Document(TEXT, id="1", metadata=metadata), Document(f"{TEXT} Noon.", id="2")]
    for ask in (
        lambda: D3Retriever(documents).invoke("harbour"),
        lambda: MultiViewRetriever(documents).invoke("harbour"),
        lambda: UPRRerank().compress_documents(documents, "harbour"),
    ):
        with pytest.raises(InvalidInput, match="nested too deeply"):
            ask()


def test_metadata_that_contain_themselves_are_an_error_of_ours():
    with pytest.raises(InvalidInput, match="nested too deeply"):
        D3Retriever([Document(TEXT, id="1", metadata={"links": circle()})]).invoke("harbour")
