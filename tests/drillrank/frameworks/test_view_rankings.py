"""The rankings of a store's views, where what is near the question is all of one kind, and where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.frameworks.sections import fetch_raw_sections
from drillrank.frameworks.view_rankings import search_views
from drillrank.llm import run
from drillrank.structure.stored_chunks import StoredChunk
from tests.examples import examples

VIEWS = ("raw", "keywords", "summary")


def record(view, number):
    return StoredChunk(None, f"{'section' if view else 'foreign'} {number}", "", ("", "document"), view=view)


class Store:
    """Records, nearest first; heeds a filter or none, and may bring less than it is asked for."""

    def __init__(self, records, most=None, careless=False):
        self.records, self.most, self.careless = records, most, careless
        self.searches = []

    def search(self, question, n, where=None):
        self.searches.append(where or {})
        found = self.records
        for view in () if self.careless else (where or {}).values():
            found = [one for one in found if one.view == view]
        return found[: n if self.most is None else min(n, self.most)]

    asearch = search


def rankings(store, k):
    hits = run(search_views(store, "Who?", k))
    return {view: [section.id for section in own] for view, own in hits.rankings.items()}


def expected(records, k):
    there = ["raw", *(view for view in VIEWS[1:] if any(one.view == view for one in records))]
    return {
        view: [one.id for one in records if one.view in (view, None)][:k]
        for view in (there if any(one.view is None for one in records) else VIEWS)
    }


APART = [record(view, number) for number in range(60) for view in ("keywords", "summary")]


@pytest.mark.parametrize(
    ("records", "options", "k"),
    [
        ([*APART, *(record("raw", number) for number in range(60))], {}, 5),  # raw texts are far from the question
        ([*(record(view, number) for number in range(4) for view in VIEWS), record(None, 0)], {}, 9),
        ([record(view, number) for view in VIEWS[::-1] for number in range(40)], {"most": 10}, 5),
        ([record(view, number) for number in range(12) for view in VIEWS], {"careless": True}, 6),
    ],
)
def test_a_store_is_searched_as_often_as_it_takes(records, options, k):
    store = Store(records, **options)
    assert rankings(store, k) == expected(records, k)
    assert len(store.searches) == (3 if not options and len(records) < 20 else len(store.searches))


OF_ALL_KINDS = [record(view, number) for number in range(8) for view in VIEWS] + [record(None, n) for n in range(4)]


@settings(max_examples=examples(100))
@given(st.permutations(OF_ALL_KINDS), st.integers(1, 6))
def test_of_a_store_that_is_in_sight_each_ranking_is_that_of_all_its_records(records, k):
    store = Store(records)
    assert rankings(store, k) == expected(records, k)
    assert len(store.searches) == 3


# Raw records of sections, looked up in a store


class StoreWithOwnIds:
    """Knows sections by metadata alone."""

    def __init__(self):
        self.lookups = []

    def get(self, ids):
        self.lookups.append(ids)
        return []

    def find(self, where):
        self.lookups.append(where)
        return [StoredChunk("record", "7", "text", ("", "document"), view="raw")]

    aget, afind = get, find


def test_records_are_looked_up_by_id_and_then_by_metadata():
    store = StoreWithOwnIds()
    raw_by_id, store_answers = run(fetch_raw_sections(store, ["7", "7"]))
    assert (raw_by_id["7"].record, store_answers) == ("record", True)
    assert store.lookups == [["7"], {"drillrank_section_id": ("7",), "drillrank_view": "raw"}]
