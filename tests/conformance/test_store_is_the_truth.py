"""Nothing that a store does not hold, or that a filter hides, comes out of a component, in whatever way.

A new component is in this test by default: it is in a table of `leaks`, or that says why it fetches nothing.
"""

from __future__ import annotations

import asyncio
import inspect

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conformance.frameworks import both_frameworks
from tests.conformance.leaks import (
    DOCUMENTS,
    OVER_RETRIEVERS,
    OVER_STORES,
    PLACES,
    TENANTS,
    cases,
    check_story,
    scene,
)
from tests.conformance.stale_stores import CASES, asked, in_memory, vectors_only
from tests.examples import examples, some

PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]


ALONE = cases({"langchain": in_memory, "simple": vectors_only}, ("declared", "function"), given=True)


@both_frameworks
def test_every_component_is_in_the_test_or_fetches_nothing(host):
    fetch = {"source", "retriever", "docstore", "filter", "filters"}
    arguments = {name: {*inspect.signature(getattr(host.ext, name)).parameters} for name in host.ext.__all__}
    fields = {name: {*getattr(getattr(host.ext, name), "model_fields", ())} for name in host.ext.__all__}
    fetching = {name for name in host.ext.__all__ if fetch & (arguments[name] | fields[name])}
    tried = {*OVER_STORES, *OVER_RETRIEVERS}
    names = {"SelfAskChain": "SelfAsk", "SelfAskQueryEngine": "SelfAsk"}
    assert {names.get(name, name) for name in fetching} == tried, "a component that fetches needs a builder"


@pytest.mark.parametrize(("filled", "way", "theirs", "form", "build"), some(CASES, 2))
def test_what_is_heard_of_a_store_is_what_may_be_seen(filled, way, theirs, form, build):
    world = filled(form)
    beside = scene(world, way)
    component = build(beside)
    asyncio.run(check_story(world, lambda asynchronous: asked(world, component, beside.llm, theirs, asynchronous)))


@pytest.mark.parametrize(("filled", "way", "theirs", "form", "build"), ALONE)
def test_of_what_is_given_is_heard_what_may_be_seen(filled, way, theirs, form, build):
    world = filled(form)
    beside = scene(world, way)
    component = build(beside)
    for asynchronous in (False, True):
        heard = asyncio.run(asked(world, component, beside.llm, theirs, asynchronous))
        world.check(heard)
        assert heard.results


steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write", "delete"]), st.sampled_from(TENANTS), st.sampled_from(DOCUMENTS)),
        st.tuples(
            st.sampled_from(["redact", "restrict"]),
            st.sampled_from(TENANTS),
            st.sampled_from(DOCUMENTS),
            st.integers(0, PLACES - 1),
        ),
        st.tuples(
            st.just("restrict"), st.just("a"), st.sampled_from(DOCUMENTS), st.integers(0, PLACES - 1), st.just(1)
        ),
        st.just(("ask",)),
    ),
    max_size=6,
)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(st.sampled_from(CASES), steps, st.booleans())
def test_whatever_happens_to_the_store(case, happens, asynchronous):
    filled, way, theirs, form, build = case.values
    world = filled(form)
    beside = scene(world, way)
    component = build(beside)
    for name, *arguments in [*happens, ("ask",)]:
        if name == "ask":
            world.check(asyncio.run(asked(world, component, beside.llm, theirs, asynchronous)))
        else:
            getattr(world, name)(*arguments)
