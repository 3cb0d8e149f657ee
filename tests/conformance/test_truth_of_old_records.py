"""Stores that were filled before are as true as new ones; what is given without a store is filtered, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from langchain_ext import D3Retriever as LangChainD3
from langchain_ext import MultiViewRetriever as LangChainViews
from llama_index_ext import D3Retriever as LlamaIndexD3
from llama_index_ext import MultiViewRetriever as LlamaIndexViews
from tests.conformance import langchain_leaks, llama_index_leaks
from tests.conformance.leaks import check_story
from tests.conformance.old_records import OldDocuments, OldNodes
from tests.conformance.test_store_is_the_truth import CASES, STORES

OLD = {langchain_leaks.Sections: OldDocuments, llama_index_leaks.Sections: OldNodes}
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


@pytest.mark.parametrize(
    ("leaks", "filled", "way", "theirs", "form", "build"), [case for case in CASES if case.values[4] in OLD]
)
def test_of_an_old_store_is_heard_what_may_be_seen(
    leaks: Any, filled: Any, way: str, theirs: bool, form: Any, build: Any
):
    """What the host's own retriever makes of old copies, with a filter or without, is not the component's doing."""
    theirs = theirs or way == "inherited"
    world = filled(OLD[form])
    scene = leaks.scene(world, way)
    component = build(scene)
    asyncio.run(check_story(world, lambda asynchronous: leaks.ask(component, theirs, scene.llm, asynchronous)))


@pytest.mark.parametrize("form", ["new", "old"])
@pytest.mark.parametrize("way", ["declared", "function"])
@pytest.mark.parametrize(("store", "build"), GIVEN.values(), ids=GIVEN)
def test_of_what_is_given_is_heard_what_may_be_seen(store: str, build: Any, way: str, form: str):
    leaks, filled = STORES[store]
    world = filled(OLD[leaks.Sections] if form == "old" else leaks.Sections)
    scene = leaks.scene(world, way)
    component = build(scene)
    for asynchronous in (False, True):
        heard = asyncio.run(leaks.ask(component, False, scene.llm, asynchronous))
        world.check(heard)
        assert heard.results
