"""Nothing that a store holds and the filter shows is lost beside something else, whoever wrote it, and when."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning
from drillrank.views import merge_views
from tests.conformance.mixed_stores import QUESTION, STORES
from tests.examples import examples

KINDS = ["new", "foreign"]
FILL = st.tuples(st.sampled_from(KINDS), st.integers(1, 12), st.sampled_from("ab"))


def found_by(store, component):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        return [one.id for one in store.host.retrieve(component, QUESTION)]


def expected(store, k, tenant=None):
    cut = merge_views({view: ranking[:k] for view, ranking in store.model_of(tenant).items()}, k)
    return [section.section_id for section in cut]


@pytest.mark.parametrize("name", STORES)
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    fills=st.lists(st.lists(FILL, max_size=3), min_size=1, max_size=3),
    k=st.integers(1, 8),
    tenant=st.sampled_from([None, "a"]),
    form=st.sampled_from(["declared", "function"]),
)
def test_what_is_found_is_what_is_nearest_of_all_kinds_at_every_moment(name, fills, k, tenant, form):
    store = STORES[name]()
    component = store.retriever(k, tenant, form)
    for step, several in enumerate(fills):
        for number, (kind, sections, owner) in enumerate(several):
            store.fill(kind, f"{owner}{step}{number}", sections, owner)
        assert found_by(store, component) == expected(store, k, tenant)


@pytest.mark.parametrize("name", STORES)
def test_one_more_document_takes_no_other_one_and_no_chunk_away(name):
    store = STORES[name]()
    for number in range(20):
        store.fill("new", f"old{number}", 3, "a")
        store.fill("foreign", f"foreign{number}", 3, "a")
    component = store.retriever(6, None, "declared")
    before = found_by(store, component)
    store.fill("new", "one new document", 1, "a")
    after = found_by(store, component)
    assert len(set(before) & set(after)) >= 4
    assert after == expected(store, 6)


@pytest.mark.parametrize(("kinds", "sections", "searches"), [(["new"], 1, 3), (["new"], 40, 3), (KINDS, 40, 4)])
def test_a_store_is_searched_three_times_for_one_embedding_one_of_all_kinds_four_times(kinds, sections, searches):
    store = STORES["langchain"]()
    for kind in kinds:
        store.fill(kind, kind, sections, "a")
    component = store.retriever(5, None, "declared")
    for question in range(1, 4):
        found_by(store, component)
        assert store.store.searches <= searches * question
        assert len(store.model.questions) == question
