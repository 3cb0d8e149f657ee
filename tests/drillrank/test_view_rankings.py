"""The rankings of a store's views, where what is near the question is all of one kind, and where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.frameworks.records import StoredSection, raw_records
from drillrank.frameworks.views import of_store
from drillrank.llm import LookupRequest, RetrievalRequest, run
from tests.examples import examples

VIEWS = ("raw", "keywords", "summary")


def record(view, number):
    return StoredSection(None, f"{'section' if view else 'foreign'} {number}", view, None, "", {})


class Store:
    """Records, nearest first; heeds a filter or none, and may bring less than it is asked for."""

    def __init__(self, records, most=None, careless=False):
        self.records, self.most, self.careless = records, most, careless
        self.searches = []

    def answer(self, search):
        self.searches.append(dict(search.where))
        found = self.records
        for view in () if self.careless else search.where.values():
            found = [one for one in found if one.view == view]
        return found[: search.n if self.most is None else min(search.n, self.most)]


def rankings(store, k):
    found, _ = run(of_store(k, lambda one: one), handlers={RetrievalRequest: store.answer})
    return {view: [section.section_id for section in own] for view, own in found.items()}


def expected(records, k):
    there = ["raw", *(view for view in VIEWS[1:] if any(one.view == view for one in records))]
    return {
        view: [one.section_id for one in records if one.view in (view, None)][:k]
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


def test_records_are_looked_up_by_id_and_then_by_metadata():
    asked = []

    def answer(lookup):
        asked.append(lookup)
        record = StoredSection("record", "7", "raw", None, "text", {})
        return [record] if lookup.where is not None else []

    found, could = run(raw_records(["7", "7"], lambda one: one), handlers={LookupRequest: answer})
    assert (found["7"].record, could) == ("record", True)
    assert asked == [
        LookupRequest(("7",)),
        LookupRequest(where={"drillrank_section_id": ("7",), "drillrank_view": "raw"}),
    ]
