"""Filters that match nothing, say nothing, or ask what nobody knows: an honest empty result, or a clear error."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from drillrank.errors import InvalidInput
from tests.conformance.frameworks import LangChain, LlamaIndex
from tests.conformance.leaks import FILTERS, World, cases, letters, scene
from tests.conformance.server_store import ServerStore
from tests.conformance.stale_stores import CASES, STORES, asked
from tests.examples import some

for_each = pytest.mark.parametrize(("filled", "way", "theirs", "form", "build"), some(cases(STORES, ["declared"]), 2))


def where(*filters, condition=FilterCondition.AND):
    return MetadataFilters(filters=list(filters), condition=condition)


NOBODY = {
    LangChain: {"filters": {"tenant": "nobody"}},
    LlamaIndex: {"filters": where(MetadataFilter(key="tenant", value="nobody"))},
}
NONE = {
    LangChain: {"filters": {"tenant": None}},
    LlamaIndex: {"filters": where(MetadataFilter(key="tenant", value=None))},
}
STRANGE = {
    LangChain: {"filters": {"tenant": {"$near": "a"}}},
    LlamaIndex: {"filters": {"tenant": "a"}},
}
# The host's stores in memory take no filters inside others, and components add what they want themselves.
EITHER = {
    LangChain: {"filters": {"$or": [FILTERS[LangChain], {"tenant": {"$like": "nob%"}}]}},
    LlamaIndex: {
        "filters": where(
            FILTERS[LlamaIndex],
            MetadataFilter(key="tenant", value=["nobody"], operator=FilterOperator.IN),
            condition=FilterCondition.OR,
        )
    },
}


def heard(world, beside, build, theirs, asynchronous=False):
    """What is heard, which is nothing that may not be seen."""
    found = asyncio.run(asked(world, build(beside), beside.llm, theirs, asynchronous))
    world.check(found)
    return found


@for_each
def test_a_filter_that_nothing_passes_brings_nothing(filled, way, theirs, form, build):
    world = filled(form)
    beside = scene(world, way)._replace(filters=NOBODY[world.host])
    world.pieces.clear()  # as far as anybody may see
    for asynchronous in (False, True):
        assert heard(world, beside, build, theirs, asynchronous).results == []


@for_each
@pytest.mark.parametrize("filters", [NONE, STRANGE], ids=["none", "strange"])
def test_a_filter_that_cannot_be_meant_is_refused_when_a_component_is_built(filled, way, theirs, form, build, filters):
    world = filled(form)
    with pytest.raises((InvalidInput, ValueError), match="tenant"):  # pydantic's errors are the latter
        build(scene(world, way)._replace(filters=filters[world.host]))


@for_each
def test_a_filter_that_the_store_cannot_take_is_kept_or_refused(filled, way, theirs, form, build):
    world = filled(form)
    beside = scene(world, way)._replace(filters=EITHER[world.host])
    nested = world.host is LlamaIndex and not theirs and world.store.vector_store.stores_text
    with pytest.raises(ValueError, match="Nested MetadataFilters are not supported") if nested else nullcontext():
        assert heard(world, beside, build, theirs).results


MISSING = object()


@pytest.mark.parametrize("tenant", [MISSING, None], ids=["missing", "None"])
@pytest.mark.parametrize(
    ("filled", "way", "theirs", "form", "build"), some([case for case in CASES if case.values[1] != "inherited"], 3)
)
def test_a_record_that_does_not_say_whose_it_is_is_nobodys(filled, way, theirs, form, build, tenant):
    def nobodys(host, owner, document, version):
        """Records of tenant b say another tenant, or none."""
        made = form(host, owner, document, version)
        if owner == "b":
            made = [(place, host.changed(record)) for place, record in made]
            for _, record in made:
                record.metadata["tenant"] = tenant
                if tenant is MISSING:
                    del record.metadata["tenant"]
        return made

    world = filled(nobodys)
    found = heard(world, scene(world, way), build, theirs)
    assert theirs or found.results  # a retriever without a filter may bring nobody's alone


# Of the store, whether a component or its retriever sends the filter there.
@pytest.mark.parametrize(
    ("_", "way", "theirs", "form", "build"),
    [case for case in cases({"server": None}) if case.values[1] == "function" or not case.values[2]],
)
def test_an_operator_that_the_store_lacks_is_an_error_that_names_it_and_a_function_is_kept_to(
    _, way, theirs, form, build
):
    world = World(LangChain, ServerStore(LangChain.embedding(letters), refuses=["$lt"]), form)
    beside = scene(world, way)
    if way == "function":
        assert heard(world, beside, build, theirs, asynchronous=True).results
    else:
        with pytest.raises(ValueError, match=r"^Unknown operator \$lt$"):
            heard(world, beside, build, theirs)
