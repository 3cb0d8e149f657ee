"""Chroma and PostgreSQL: nothing that the store does not hold, or that a filter hides, comes out of a component."""

from __future__ import annotations

import pytest

from tests.conformance.hearing import ask
from tests.conformance.leaks import QUESTION, World, cases, check_story, letters, scene
from tests.integration.conftest import STORES, langchain_pgvector, llama_index_faiss, llama_index_pgvector

CASES = cases({store.__name__: store for store in STORES})


@pytest.mark.parametrize(
    ("store", "way", "theirs", "form", "build"),
    [case for case in CASES if case.values[:2] != (llama_index_faiss, "inherited")],  # it takes no filters
)
async def test_what_is_heard_of_a_store_is_what_may_be_seen(opened, store, way, theirs, form, build):
    stored = opened(store, letters, 26)
    world = World(stored.host, stored.source, form)
    beside = scene(world, way)
    component, both = build(beside), store is not langchain_pgvector  # which is either synchronous or asynchronous
    await check_story(
        world, lambda asynchronous: ask(stored.host, component, QUESTION, beside.llm, theirs, asynchronous and both)
    )
    if store is llama_index_pgvector:
        await stored.aclose()
