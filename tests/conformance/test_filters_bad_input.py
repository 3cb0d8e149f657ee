"""Filters that match nothing, say nothing, or ask what nobody knows: an honest empty result, or a clear error."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from drillrank.errors import InvalidInput
from tests.conformance import langchain_leaks, llama_index_leaks
from tests.conformance.leaks import World, variants
from tests.conformance.server_store import ServerStore
from tests.conformance.test_store_is_the_truth import CASES

COMPONENTS = [pytest.param(*case.values, id=case.id) for case in CASES if case.values[2] == "declared"]
for_each = pytest.mark.parametrize(("leaks", "filled", "way", "theirs", "form", "build"), COMPONENTS)


def where(*filters: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(filters), condition=condition)


NOBODY: dict[Any, dict[str, Any]] = {
    langchain_leaks: {"filters": {"tenant": "nobody"}},
    llama_index_leaks: {"filters": where(MetadataFilter(key="tenant", value="nobody"))},
}
NONE: dict[Any, dict[str, Any]] = {
    langchain_leaks: {"filters": {"tenant": None}},
    llama_index_leaks: {"filters": where(MetadataFilter(key="tenant", value=None))},
}
STRANGE: dict[Any, dict[str, Any]] = {
    langchain_leaks: {"filters": {"tenant": {"$near": "a"}}},
    llama_index_leaks: {"filters": {"tenant": "a"}},
}
# The host's stores in memory take no filters inside others, and components add what they want themselves.
EITHER: dict[Any, dict[str, Any]] = {
    langchain_leaks: {"filters": {"$or": [langchain_leaks.FILTER, {"tenant": {"$like": "nob%"}}]}},
    llama_index_leaks: {
        "filters": where(
            llama_index_leaks.FILTERS,
            MetadataFilter(key="tenant", value=["nobody"], operator=FilterOperator.IN),
            condition=FilterCondition.OR,
        )
    },
}


@for_each
def test_a_filter_that_nothing_passes_brings_nothing(
    leaks: Any, filled: Any, way: str, theirs: bool, form: Any, build: Any
):
    world = filled(form)
    scene = replace(leaks.scene(world, way), filters=NOBODY[leaks])
    world.pieces.clear()  # as far as anybody may see
    for asynchronous in (False, True):
        heard = asyncio.run(leaks.ask(build(scene), theirs, scene.llm, asynchronous))
        world.check(heard)
        assert heard.results == []


@for_each
@pytest.mark.parametrize("filters", [NONE, STRANGE], ids=["none", "strange"])
def test_a_filter_that_cannot_be_meant_is_refused_when_a_component_is_built(
    leaks: Any, filled: Any, way: str, theirs: bool, form: Any, build: Any, filters: dict
):
    scene = replace(leaks.scene(filled(form), way), filters=filters[leaks])
    with pytest.raises((InvalidInput, ValueError), match="tenant"):  # pydantic's errors are the latter
        build(scene)


@for_each
def test_a_filter_that_the_store_cannot_take_is_kept_or_refused(
    leaks: Any, filled: Any, way: str, theirs: bool, form: Any, build: Any
):
    world = filled(form)
    scene = replace(leaks.scene(world, way), filters=EITHER[leaks])
    component = build(scene)
    nested = leaks is llama_index_leaks and not theirs and world.host.index.vector_store.stores_text
    with pytest.raises(ValueError, match="Nested MetadataFilters are not supported") if nested else nullcontext():
        heard = asyncio.run(leaks.ask(component, theirs, scene.llm, asynchronous=False))
        world.check(heard)
        assert heard.results


def nobodys(form: Any, tenant: Any) -> Any:
    """A form whose records of tenant b say another tenant, or none."""

    class Nobodys(form):
        def made(self, owner: str, document: str, version: int) -> Any:
            made = super().made(owner, document, version)
            return [(place, _said(record, tenant)) for place, record in made] if owner == "b" else made

    return Nobodys


def _said(record: Any, tenant: Any) -> Any:
    others = {key: value for key, value in record.metadata.items() if key != "tenant"}
    return record.model_copy(update={"metadata": others | ({} if tenant is MISSING else {"tenant": tenant})})


MISSING = object()


@pytest.mark.parametrize("tenant", [MISSING, None], ids=["missing", "None"])
@pytest.mark.parametrize(
    ("leaks", "filled", "way", "theirs", "form", "build"),
    [case for case in CASES if case.values[2] != "inherited"],
)
def test_a_record_that_does_not_say_whose_it_is_is_nobodys(
    leaks: Any, filled: Any, way: str, theirs: bool, form: Any, build: Any, tenant: Any
):
    world = filled(nobodys(form, tenant))
    scene = leaks.scene(world, way)
    heard = asyncio.run(leaks.ask(build(scene), theirs, scene.llm, asynchronous=False))
    world.check(heard)
    assert theirs or heard.results  # a retriever without a filter may bring nobody's alone


ON_A_SERVER = [
    pytest.param(theirs, *entry, id=name)
    for theirs, table in ((True, langchain_leaks.OVER_RETRIEVERS), (False, langchain_leaks.OVER_STORES))
    for name, entry in variants(table).items()
]


@pytest.mark.parametrize(
    ("theirs", "form", "build", "way"),
    [
        pytest.param(*case.values, way, id=f"{way}-{case.id}")
        for way in ("declared", "inherited")
        for case in ON_A_SERVER
        if (way == "inherited") is case.values[0]
    ],
)
def test_an_operator_that_the_store_lacks_is_an_error_that_names_it(theirs: bool, form: Any, build: Any, way: str):
    """Of the store, whether a component or its retriever sends the filter there."""
    world = World(form(ServerStore(langchain_leaks.Words(), refuses=["$lt"])))
    scene = langchain_leaks.scene(world, way)
    with pytest.raises(ValueError, match=r"^Unknown operator \$lt$"):
        asyncio.run(langchain_leaks.ask(build(scene), theirs, scene.llm, asynchronous=False))


@pytest.mark.parametrize(("theirs", "form", "build"), ON_A_SERVER)
def test_a_function_is_kept_to_whatever_the_store_lacks(theirs: bool, form: Any, build: Any):
    world = World(form(ServerStore(langchain_leaks.Words(), refuses=["$lt"])))
    scene = langchain_leaks.scene(world, "function")
    heard = asyncio.run(langchain_leaks.ask(build(scene), theirs, scene.llm, asynchronous=True))
    world.check(heard)
    assert heard.results
