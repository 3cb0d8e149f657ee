"""A store that fails in the middle of a question: the application hears of it, and the next question is whole."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document as Page
from llama_index.core import Document, StorageContext, VectorStoreIndex

import langchain_ext
import llama_index_ext
from tests.conformance import langchain_leaks, llama_index_leaks
from tests.conformance.building import build
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.server_store import ServerStore
from tests.conformance.text_store import TextStore

TEXTS = [f"{BOOK}\n\n# Volume {number}\n\nIt is number {number}.\n" for number in range(4)]
MOST = 50  # calls of one question


class Failing(Counter[str]):
    """Counts what a store is asked; the one that is to fail does."""

    fails_at = 0

    def __setitem__(self, key: str, value: int) -> None:
        super().__setitem__(key, value)
        if self.total() == self.fails_at:
            raise ConnectionError("the store went away")


def in_langchain(name: str, **fields: Any) -> tuple[Failing, Callable[[bool], list[Any]]]:
    store = ServerStore(langchain_leaks.Words())
    pages = [Page(text, id=str(n), metadata={"source": f"{n}.md"}) for n, text in enumerate(TEXTS)]
    store.add_documents(langchain_ext.MultiViewTextSplitter().split_documents(pages))
    store.asked = Failing()
    place = "source"
    given = store.as_retriever() if name == "PromptRankRetriever" else store
    component = build(getattr(langchain_ext, name), **{place: given}, **fields)

    def ask(asynchronous: bool) -> list[Any]:
        found = asyncio.run(component.ainvoke(QUESTION)) if asynchronous else component.invoke(QUESTION)
        return [(one.id, one.page_content, one.metadata) for one in found]

    return store.asked, ask


def in_llama_index(name: str, **fields: Any) -> tuple[Failing, Callable[[bool], list[Any]]]:
    store = TextStore()
    nodes = llama_index_ext.MultiViewNodeParser()([Document(text=text, id_=str(n)) for n, text in enumerate(TEXTS)])
    context = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(nodes, storage_context=context, embed_model=llama_index_leaks.Words())
    store.asked = Failing()
    place = "source"
    given = index.as_retriever() if name == "PromptRankRetriever" else index
    component = build(getattr(llama_index_ext, name), **{place: given}, **fields)

    def ask(asynchronous: bool) -> list[Any]:
        found = asyncio.run(component.aretrieve(QUESTION)) if asynchronous else component.retrieve(QUESTION)
        return [(one.node_id, one.score, one.node.get_content(), one.metadata) for one in found]

    return store.asked, ask


COMPONENTS = {
    "views": ("MultiViewRetriever", {"expand": "parent"}),
    "neighbours": ("MultiViewRetriever", {"expand": "neighbours"}),
    "drilling down": ("D3Retriever", {"max_documents": 3}),
    "paths": ("PromptRankRetriever", {}),
}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("build", [in_langchain, in_llama_index])
def test_each_call_of_a_store_may_fail_and_leaves_nothing_behind(build, component, asynchronous):
    name, fields = COMPONENTS[component]
    _, untroubled = build(name, **fields)
    wanted = untroubled(asynchronous)
    assert wanted
    asked, ask = build(name, **fields)
    failures = 0
    for at in range(1, MOST):
        asked.clear()
        asked.fails_at = at
        try:
            found = ask(asynchronous)
        except ConnectionError:
            failures += 1
        else:
            assert found == wanted  # the component was done before
            break
        finally:
            asked.fails_at = 0
        assert ask(asynchronous) == wanted
    assert 0 < failures < MOST - 1
