"""Path search over a plain retriever and a store of three views: a section is one candidate, as the store has it."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.storage.docstore import SimpleDocumentStore

import langchain_ext
import llama_index_ext
from drillrank.errors import DrillrankWarning
from drillrank.hosts.metadata import result_metadata
from tests.conformance.hosts import Nodes
from tests.conformance.mixed_stores import QUESTION, Host, LangChain, LlamaIndex


class Retrieved:
    """A host's store, and what its plain retriever brings of it."""

    def __init__(self, store: Host) -> None:
        self.store = store

    def raw(self, section: str) -> Any:
        """The section's raw record."""
        raise NotImplementedError

    def change(self, section: str, text: str) -> None:
        """Say something else in the raw record."""
        raise NotImplementedError

    def delete(self, section: str) -> None:
        """The raw record is no more."""
        raise NotImplementedError

    def paths(self, retriever: Any = None, **fields: Any) -> Any:
        """A path search over the plain retriever, or another one."""
        raise NotImplementedError

    def asked(self, component: Any) -> list[tuple[str, str, list[str]]]:
        """Id, text and path of each result, the same sync and async."""
        raise NotImplementedError


class InLangChain(Retrieved):
    store: LangChain

    def __init__(self) -> None:
        super().__init__(LangChain())

    def hits(self) -> list[Document]:
        return self.store.store.as_retriever(search_kwargs={"k": 99}).invoke(QUESTION)

    def change(self, section: str, text: str) -> None:
        self.store.store.store[section]["text"] = text

    def delete(self, section: str) -> None:
        self.store.store.delete([section])

    def paths(self, retriever: Any = None, **fields: Any) -> Any:
        plain = self.store.store.as_retriever(search_kwargs={"k": 99})
        return langchain_ext.PromptRankRetriever(source=retriever or plain, top_n=None, links=["titles"], **fields)

    def without_store(self) -> Any:
        hits = self.hits()
        return lambda question: hits

    def by_key(self) -> Any:
        docstore = InMemoryStore()
        docstore.mset([(one.id, one) for one in self.hits() if result_metadata(one.metadata)["view"] == "raw"])
        return docstore

    def asked(self, component: Any) -> list[tuple[str, str, list[str]]]:
        found = component.invoke(QUESTION)
        assert asyncio.run(component.ainvoke(QUESTION)) == found
        return [(one.id, one.page_content, one.metadata["drillrank_path"].split(" > ")) for one in found]


class InLlamaIndex(Retrieved):
    store: LlamaIndex

    def __init__(self) -> None:
        super().__init__(LlamaIndex())

    def hits(self) -> list[NodeWithScore]:
        return self.store.index.as_retriever(similarity_top_k=99).retrieve(QueryBundle(QUESTION))

    def change(self, section: str, text: str) -> None:
        docstore = self.store.index.docstore
        docstore.add_documents([docstore.get_node(section).model_copy(update={"text": text})])

    def delete(self, section: str) -> None:
        self.store.index.delete_nodes([section])

    def paths(self, retriever: Any = None, **fields: Any) -> Any:
        plain = self.store.index.as_retriever(similarity_top_k=99)
        return llama_index_ext.PromptRankRetriever(source=retriever or plain, top_n=None, links=["titles"], **fields)

    def without_store(self) -> Any:
        return Nodes([hit.node for hit in self.hits()])

    def by_key(self) -> Any:
        docstore = SimpleDocumentStore()
        docstore.add_documents([hit.node for hit in self.hits() if result_metadata(hit.node.metadata)["view"] == "raw"])
        return docstore

    def asked(self, component: Any) -> list[tuple[str, str, list[str]]]:
        found = component.retrieve(QUESTION)
        again = asyncio.run(component.aretrieve(QUESTION))
        assert [(hit.node.node_id, hit.score) for hit in again] == [(hit.node.node_id, hit.score) for hit in found]
        return [(hit.node.node_id, hit.text, hit.metadata["drillrank_path"].split(" > ")) for hit in found]


@pytest.fixture(params=[InLangChain, InLlamaIndex])
def made(request: pytest.FixtureRequest) -> Any:
    return request.param()


def sections(made: Any, view: str = "raw") -> dict[str, str]:
    """Texts of a view by section, as they were stored."""
    return {row.section: row.text for row in made.store.rows if row.view == view}


@pytest.mark.parametrize("host", [InLangChain, InLlamaIndex])
@settings(max_examples=15, deadline=None)
@given(
    fills=st.lists(st.tuples(st.sampled_from(["new", "foreign"]), st.integers(1, 4)), min_size=1, max_size=3),
    data=st.data(),
)
def test_each_section_and_each_chunk_is_one_candidate_with_the_text_that_the_store_holds(host, fills, data):
    made = host()
    for number, (kind, count) in enumerate(fills):
        made.store.fill(kind, f"d{number}", count, "a")
    expected = sections(made)
    changed = data.draw(st.sampled_from(sorted(expected)))
    made.change(changed, "It was said otherwise.")
    expected[changed] = "It was said otherwise."
    found = made.asked(made.paths())
    assert {id_: text for id_, text, _ in found} == expected
    assert len(found) == len(expected)
    assert all(len(set(path)) == len(path) and set(path) <= set(expected) for _, _, path in found)


def test_a_section_that_the_store_has_no_longer_is_left_out_and_told_once(made):
    made.store.fill("new", "book", 3, "a")
    expected = sections(made)
    gone = next(iter(expected))
    made.delete(gone)
    component = made.paths()
    with pytest.warns(DrillrankWarning, match="is no longer in the store") as told:
        found = made.asked(component)
    assert len(told) == 1
    assert {id_ for id_, _, _ in found} == expected.keys() - {gone}


def test_where_no_store_can_be_asked_the_best_hit_stands_for_the_section_once(made):
    made.store.fill("new", "book", 3, "a")
    raw, retriever = sections(made), made.without_store()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = made.asked(made.paths(retriever))
        lent = made.asked(made.paths(made.without_store(), store=made.by_key()))
    assert len(found) == len(raw)
    assert {text for _, text, _ in lent} == set(raw.values())
    # Raw records are at hand where they were found: no other text of theirs is read.
    assert {text for _, text, _ in found} == set(raw.values())


def test_views_alone_stand_once_where_no_store_can_be_asked(made):
    made.store.fill("new", "book", 3, "a")
    raw = sections(made)
    for section in raw:
        made.delete(section)
    found = made.asked(made.paths(made.without_store()))
    views = {row.text for row in made.store.rows if row.view != "raw"}
    assert len(found) == len(raw)
    assert {text for _, text, _ in found} <= views


def test_a_filter_governs_what_views_lead_to(made):
    for tenant in ("a", "b"):
        made.store.fill("new", f"book of {tenant}", 3, tenant)
    mine = {row.text for row in made.store.rows if row.tenant == "a" and row.view == "raw"}
    name = "filters"
    found = made.asked(made.paths(**{name: lambda record: record.metadata["tenant"] == "a"}))
    assert {text for _, text, _ in found} == mine


def test_a_docstore_that_is_not_the_store_of_the_hits_takes_none_away(made):
    made.store.fill("new", "book", 3, "a")
    raw = sections(made)
    for section in raw:
        made.delete(section)
    empty = InMemoryStore() if isinstance(made, InLangChain) else SimpleDocumentStore()
    assert len(made.asked(made.paths(made.without_store(), store=empty))) == len(raw)
