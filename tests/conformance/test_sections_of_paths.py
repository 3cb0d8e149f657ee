"""Path search over a plain retriever and a store of three views: a section is one candidate, as the store has it."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.conformance.mixed_stores import QUESTION, Mixed
from tests.examples import examples


class Stored(Mixed):
    """With what a plain retriever brings of it."""

    def change(self, section, text):
        """Say something else in the raw record."""
        if self.host is LangChain:
            self.store.store[section]["text"] = text
        else:
            docstore = self.store.docstore
            docstore.add_documents([docstore.get_node(section).model_copy(update={"text": text})])

    def delete(self, section):
        """The raw record is no more."""
        self.host.delete(self.store, section)
        self.rows = [row for row in self.rows if (row.section, row.view) != (section, "raw")]

    def raw(self):
        """Texts by section."""
        return {row.section: row.text for row in self.rows if row.view == "raw"}

    def without_store(self):
        """A retriever that brings all, and no more is known of it."""
        return self.host.retriever(*(row.record for row in self.rows))

    def paths(self, retriever=None, **fields):
        """Id, text and path of what a path search over the plain retriever, or another one, finds."""
        source = retriever or self.host.over(self.store, 99)
        component = self.host.ext.PromptRankRetriever(source=source, top_n=None, links=["titles"], **fields)
        found = self.host.both(component, QUESTION)
        return [(one.id, one.text, one.metadata["drillrank_path"].split(" > ")) for one in found]


@pytest.fixture(params=[LangChain, LlamaIndex])
def stored(request):
    return Stored(request.param)


@both_frameworks
@settings(max_examples=examples(15), deadline=None)
@given(
    fills=st.lists(st.tuples(st.sampled_from(["new", "foreign"]), st.integers(1, 4)), min_size=1, max_size=3),
    data=st.data(),
)
def test_each_section_and_each_chunk_is_one_candidate_with_the_text_that_the_store_holds(host, fills, data):
    stored = Stored(host)
    for number, (kind, count) in enumerate(fills):
        stored.fill(kind, f"d{number}", count, "a")
    expected = stored.raw()
    changed = data.draw(st.sampled_from(sorted(expected)))
    stored.change(changed, "It was said otherwise.")
    expected[changed] = "It was said otherwise."
    found = stored.paths()
    assert {id_: text for id_, text, _ in found} == expected
    assert len(found) == len(expected)
    assert all(len(set(path)) == len(path) and set(path) <= set(expected) for _, _, path in found)


def test_a_section_that_the_store_has_no_longer_is_left_out_and_told_once(stored):
    stored.fill("new", "book", 3, "a")
    stored.delete(next(iter(stored.raw())))
    with pytest.warns(DrillrankWarning, match="is no longer in the store") as told:
        found = stored.paths()
    assert len(told) == 1
    assert {id_ for id_, _, _ in found} == {*stored.raw()}


def test_where_no_store_can_be_asked_the_best_hit_stands_for_the_section_once(stored):
    stored.fill("new", "book", 3, "a")
    raw = stored.raw()
    by_key = stored.host.store(*(row.record for row in stored.rows if row.view == "raw"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Raw records are at hand where they were found: no other text of theirs is read.
        for found in (stored.paths(stored.without_store()), stored.paths(stored.without_store(), store=by_key)):
            assert sorted(text for _, text, _ in found) == sorted(raw.values())
    for section in raw:
        stored.delete(section)
    found = stored.paths(stored.without_store())
    assert len(found) == len(raw)
    assert {text for _, text, _ in found} <= {row.text for row in stored.rows if row.view != "raw"}
    elsewhere = stored.host.store()  # that is not the store of the hits
    assert len(stored.paths(stored.without_store(), store=elsewhere)) == len(raw)


def test_a_filter_governs_what_views_lead_to(stored):
    for tenant in ("a", "b"):
        stored.fill("new", f"book of {tenant}", 3, tenant)
    mine = {row.text for row in stored.rows if row.tenant == "a" and row.view == "raw"}
    found = stored.paths(filters=lambda record: record.metadata["tenant"] == "a")
    assert {text for _, text, _ in found} == mine


@both_frameworks
def test_context_is_of_the_index_alone(host):
    pieces = host.split([host.document("# Elm\n\nIt falls ill.\n", "elm")], context=["headings", "keywords"])
    retriever = host.ext.PromptRankRetriever(source=host.over(host.index(*pieces), 9))
    [found] = host.both(retriever, "Why does an elm fall ill?")
    assert (found.text, "drillrank_section_text" in found.metadata) == ("# Elm\n\nIt falls ill.\n", False)
