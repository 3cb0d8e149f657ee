"""Nothing that a store does not hold, or that a filter hides, comes out of a component, in whatever way.

A new component is in this test by default: it is in a table of `langchain_leaks` or `llama_index_leaks`, or that says
why it fetches nothing.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex

import langchain_ext
import llama_index_ext
from tests.conformance import langchain_leaks, llama_index_leaks
from tests.conformance.leaks import DOCUMENTS, PLACES, TENANTS, World, cases, check_story
from tests.conformance.server_store import ServerStore
from tests.conformance.text_store import TextStore

PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]


def in_memory(form: type[langchain_leaks.InStore]) -> World[Any]:
    return World(form(InMemoryVectorStore(langchain_leaks.Words())))


def on_a_server(form: type[langchain_leaks.InStore]) -> World[Any]:
    return World(form(ServerStore(langchain_leaks.Words())))


def vectors_only(form: type[llama_index_leaks.InIndex]) -> World[Any]:
    return World(form(VectorStoreIndex([], embed_model=llama_index_leaks.Words())))


def with_texts(form: type[llama_index_leaks.InIndex]) -> World[Any]:
    return World(form(VectorStoreIndex.from_vector_store(TextStore(), embed_model=llama_index_leaks.Words())))


STORES: dict[str, tuple[Any, Any]] = {
    "langchain": (langchain_leaks, in_memory),
    "server": (langchain_leaks, on_a_server),
    "simple": (llama_index_leaks, vectors_only),
    "texts": (llama_index_leaks, with_texts),
}
CASES = cases({store: (leaks, (leaks, filled)) for store, (leaks, filled) in STORES.items()})


@pytest.mark.parametrize(
    ("host", "leaks"), [(langchain_ext, langchain_leaks), (llama_index_ext, llama_index_leaks)], ids=["lc", "li"]
)
def test_every_component_is_in_the_test_or_fetches_nothing(host: Any, leaks: Any):
    tried = {*leaks.OVER_STORES, *leaks.OVER_RETRIEVERS}
    fetching = {name for name in host.__all__ if _FETCH & _arguments(getattr(host, name))}
    assert fetching == tried, "a component that fetches needs a builder in the tables"


_FETCH = {"source", "retriever", "docstore", "filter", "filters"}


def _arguments(component: type) -> set[str]:
    return {*getattr(component, "model_fields", {})} | {*inspect.signature(component).parameters}


@pytest.mark.parametrize(("leaks", "filled", "way", "theirs", "form", "build"), CASES)
def test_what_is_heard_of_a_store_is_what_may_be_seen(
    leaks: Any, filled: Any, way: str, theirs: bool, form: Any, build: Any
):
    world = filled(form)
    scene = leaks.scene(world, way)
    component = build(scene)
    asyncio.run(check_story(world, lambda asynchronous: leaks.ask(component, theirs, scene.llm, asynchronous)))


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


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(st.sampled_from(CASES), steps, st.booleans())
def test_whatever_happens_to_the_store(case: Any, happens: list[tuple], asynchronous: bool):
    leaks, filled, way, theirs, form, build = case.values
    world = filled(form)
    scene = leaks.scene(world, way)
    component = build(scene)
    for name, *arguments in [*happens, ("ask",)]:
        if name == "ask":
            world.check(asyncio.run(leaks.ask(component, theirs, scene.llm, asynchronous)))
        else:
            getattr(world, name)(*arguments)
