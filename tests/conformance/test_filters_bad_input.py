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
from tests.conformance.test_store_is_the_truth import CASES

COMPONENTS = [pytest.param(*case.values, id=case.id) for case in CASES if case.values[2] == "declared"]
for_each = pytest.mark.parametrize(("leaks", "filled", "way", "theirs", "form", "build"), COMPONENTS)


def where(*filters: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(filters), condition=condition)


NOBODY: dict[Any, dict[str, Any]] = {
    langchain_leaks: {"filter": {"tenant": "nobody"}},
    llama_index_leaks: {"filters": where(MetadataFilter(key="tenant", value="nobody"))},
}
NONE: dict[Any, dict[str, Any]] = {
    langchain_leaks: {"filter": {"tenant": None}},
    llama_index_leaks: {"filters": where(MetadataFilter(key="tenant", value=None))},
}
STRANGE: dict[Any, dict[str, Any]] = {
    langchain_leaks: {"filter": {"tenant": {"$near": "a"}}},
    llama_index_leaks: {"filters": {"tenant": "a"}},
}
# The host's stores in memory take no filters inside others, and components add what they want themselves.
EITHER: dict[Any, dict[str, Any]] = {
    langchain_leaks: {"filter": {"$or": [langchain_leaks.FILTER, {"tenant": {"$like": "nob%"}}]}},
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
