"""What is given without a store is filtered, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from langchain_ext import D3Retriever as LangChainD3
from langchain_ext import MultiViewRetriever as LangChainViews
from llama_index_ext import D3Retriever as LlamaIndexD3
from llama_index_ext import MultiViewRetriever as LlamaIndexViews
from tests.conformance.test_store_is_the_truth import STORES

GIVEN = {
    "langchain views": ("langchain", lambda s: LangChainViews(documents=s.given, **s.filters)),
    "langchain views and neighbours": (
        "langchain",
        lambda s: LangChainViews(documents=s.given, expand="neighbours", **s.filters),
    ),
    "langchain d3": ("langchain", lambda s: LangChainD3(documents=s.given, llm=s.llm, **s.filters)),
    "llama_index views": ("simple", lambda s: LlamaIndexViews(s.given, **s.filters)),
    "llama_index views and neighbours": (
        "simple",
        lambda s: LlamaIndexViews(s.given, expand="neighbours", **s.filters),
    ),
    "llama_index d3": ("simple", lambda s: LlamaIndexD3(s.given, s.llm, **s.filters)),
}


@pytest.mark.parametrize("way", ["declared", "function"])
@pytest.mark.parametrize(("store", "build"), GIVEN.values(), ids=GIVEN)
def test_of_what_is_given_is_heard_what_may_be_seen(store: str, build: Any, way: str):
    leaks, filled = STORES[store]
    world = filled(leaks.Sections)
    scene = leaks.scene(world, way)
    component = build(scene)
    for asynchronous in (False, True):
        heard = asyncio.run(leaks.ask(component, False, scene.llm, asynchronous))
        world.check(heard)
        assert heard.results
