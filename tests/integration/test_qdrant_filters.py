"""Filters of LangChain components over Qdrant: translated to Qdrant's classes, and Qdrant's own understood."""

from __future__ import annotations

import pytest

from drillrank.errors import InvalidInput
from drillrank.frameworks.filters import parse_filter, split_conditions
from langchain_ext import MultiViewRetriever
from langchain_ext._qdrant import parse_qdrant_filter, qdrant_filter
from tests.conformance.frameworks import LangChain, hashed
from tests.integration.conftest import langchain_qdrant, needed

METADATA = [
    {"tenant": "a", "year": 2019, "score": 0.5, "draft": True, "tags": ["x", "y"]},
    {"tenant": "a", "year": 2021, "score": 1.5, "draft": False, "tags": ["y"]},
    {"tenant": "b", "year": 2021, "score": 2.5},
    {"tenant": "b.c", "year": 2024, "a.b": "dotted"},
    {"year": 2024},
    {"tenant": None},
]
FILTERS = [
    {"tenant": "a"},
    {"tenant": {"$ne": "a"}},
    {"tenant": {"$in": ["a", "b.c"]}},
    {"tenant": {"$nin": ["a"]}},
    {"tenant": {"$exists": False}},
    {"tenant": {"$exists": True}, "year": {"$gte": 2021}},
    {"year": {"$gt": 2019, "$lt": 2024}},
    {"year": {"$between": [2019, 2021]}},
    {"year": {"$in": [2019, 2024]}},
    {"score": 1.5},
    {"score": {"$in": [0.5, 2.5]}},
    {"score": {"$lte": 1.5}},
    {"draft": True},
    {"draft": {"$ne": True}},
    {"a.b": "dotted"},
    {"$or": [{"tenant": "b"}, {"year": 2019}]},
    {"$and": [{"tenant": "a"}, {"$or": [{"year": 2019}, {"score": {"$gt": 1}}]}]},
    {"year": 2021, "$not": {"tenant": "a"}},
    {"$not": [{"tenant": "a"}, {"tenant": "b"}]},
]
LACKING = [{"tenant": {"$like": "a%"}}, {"tags": {"$contains": "x"}}, {"tenant": {"$gt": "a"}}]


@pytest.fixture
def store(opened):
    return opened(langchain_qdrant, hashed, 64).vectors


def add(store, metadata):
    records = [LangChain.record(f"Record {n}.", f"{n:032x}", **fields) for n, fields in enumerate(metadata)]
    store.add_documents(records)


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_qdrant_finds_what_the_filter_says(store, filters):
    add(store, METADATA)
    is_met = parse_filter(filters)
    expected = [f"Record {n}." for n, fields in enumerate(METADATA) if is_met(fields) is True]
    hits = store.similarity_search("Record?", 99, filter=qdrant_filter(store, split_conditions(filters)))
    if "$not" in filters:  # Qdrant also returns records without the key, which drillrank then hides
        hits = [hit for hit in hits if is_met(hit.metadata)]
    assert sorted(hit.page_content for hit in hits) == expected


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_a_filter_of_qdrant_is_understood(store, filters):
    translated = qdrant_filter(store, split_conditions(filters))
    is_met, again = parse_filter(filters), parse_filter(parse_qdrant_filter(translated, "metadata"))
    for fields in METADATA:
        assert (again(fields) is True) == (is_met(fields) is True)


@pytest.mark.parametrize("filters", LACKING, ids=str)
def test_what_qdrant_lacks_is_refused_and_a_function_works(store, filters):
    store.add_documents(LangChain.sections(("a", "# Fox\n\nThe fox hunts.")))
    with pytest.raises(InvalidInput, match=next(iter(filters))):
        MultiViewRetriever(source=store, filters=filters).invoke("Which fox?")
    assert MultiViewRetriever(source=store, filters=lambda document: True).invoke("Which fox?")


@pytest.mark.parametrize(
    "condition",
    [{"geo_radius": {"center": {"lon": 0, "lat": 0}, "radius": 1}}, {"values_count": {"gt": 1}}],
)
def test_a_condition_that_drillrank_cannot_evaluate_is_refused(condition):
    models = needed("qdrant_client").models
    filter = models.Filter(must=[models.FieldCondition(key="metadata.place", **condition)])
    with pytest.raises(InvalidInput, match="cannot evaluate"):
        parse_qdrant_filter(filter, "metadata")


def test_a_retriever_with_a_filter_of_qdrant_hides_what_is_fetched_next_to_it(store):
    models = needed("qdrant_client").models
    for tenant in "ab":
        text = f"# Fox\n\nThe fox of {tenant} hunts.\n\n## Den\n\nThe den of {tenant} is deep."
        store.add_documents(LangChain.split([LangChain.document(text, "fox", tenant=tenant)], namespace=tenant))
    match = models.FieldCondition(key="metadata.tenant", match=models.MatchValue(value="a"))
    source = store.as_retriever(search_kwargs={"k": 9, "filter": models.Filter(must=[match])})
    for expand in (None, "parent", "neighbours"):
        documents = MultiViewRetriever(source=source, expand=expand).invoke("Which fox hunts?")
        assert documents
        assert {document.metadata["tenant"] for document in documents} == {"a"}
