"""The rankings of a store's views, where what is near the question is all of one kind, and where it is not."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.hosts.sections import StoredSection
from drillrank.hosts.views import of_hits, of_store, oversampled, texts_of
from drillrank.llm import Retrieve, run

VIEWS = ("raw", "keywords", "summary")


def record(view, number):
    return StoredSection(None, f"{'section' if view else 'foreign'} {number}", view, None, "", {}, (), {})


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
    found, _ = run(of_store(k, lambda one: one), handlers={Retrieve: store.answer})
    return {view: [section.section_id for section in own] for view, own in found.items()}


def expected(records, k):
    there = ["raw", *(view for view in VIEWS[1:] if any(one.view == view for one in records))]
    return {
        view: [one.section_id for one in records if one.view in (view, None)][:k]
        for view in (there if any(one.view is None for one in records) else VIEWS)
    }


def test_raw_texts_that_are_far_from_the_question_are_searched_for():
    near = [record(view, number) for number in range(60) for view in ("keywords", "summary")]
    records = near + [record("raw", number) for number in range(60)]
    store = Store(records)
    assert rankings(store, 5) == expected(records, 5)
    assert store.searches == [
        {},
        {"drillrank_view": "keywords"},
        {"drillrank_view": "summary"},
        {"drillrank_view": "raw"},
    ]


def test_a_small_store_is_searched_three_times_though_it_has_less_than_is_wanted():
    records = [record(view, number) for number in range(4) for view in VIEWS]
    store = Store([*records, record(None, 0)])
    assert rankings(store, 9) == expected(store.records, 9)
    assert len(store.searches) == 3


def test_an_index_that_brings_less_than_it_is_asked_for_is_searched_again():
    records = [record(view, number) for view in ("keywords", "summary", "raw") for number in range(40)]
    assert rankings(Store(records, most=10), 5) == expected(records, 5)


def test_a_store_that_heeds_no_filter_shows_what_is_in_sight():
    records = [record(view, number) for number in range(12) for view in VIEWS]
    assert rankings(Store(records, careless=True), 6) == expected(records, 6)


@settings(max_examples=100, deadline=None)
@given(
    st.permutations(
        [record(view, number) for number in range(8) for view in VIEWS] + [record(None, number) for number in range(4)]
    ),
    st.integers(1, 6),
)
def test_of_a_store_that_is_in_sight_each_ranking_is_that_of_all_its_records(records, k):
    store = Store(records)
    assert rankings(store, k) == expected(records, k)
    assert len(store.searches) == 3


def test_in_sight_are_all_views_of_as_many_sections_as_are_wanted():
    assert all(oversampled(k) >= 3 * k for k in (1, 7, 1000))


def test_a_chunk_stands_in_each_ranking_of_hits_and_among_all_texts_in_memory():
    chunk, raw, summary = record(None, 0), record("raw", 1), record("summary", 1)
    assert of_hits([chunk, summary, raw]) == {"raw": [chunk, raw], "summary": [chunk, summary]}
    assert of_hits([summary, raw]) == {"summary": [summary], "raw": [raw]}
    texts, owners = texts_of([chunk, raw, summary], ["c", "r", "s"])
    assert [(text.view, text.indexed_text) for text in texts] == [
        ("raw", "c"),
        ("summary", "c"),
        ("raw", "r"),
        ("summary", "s"),
    ]
    assert owners == [0, 0, 1, 2]
