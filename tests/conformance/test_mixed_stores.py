"""Nothing that a store holds and the filter shows is lost beside something else, whoever wrote it, and when."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning
from drillrank.views import merge_views
from tests.conformance.mixed_stores import HOSTS, QUESTION, LangChain

KINDS = ["new", "foreign"]
FILL = st.tuples(st.sampled_from(KINDS), st.integers(1, 12), st.sampled_from("ab"))


def found_by(ask):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        return ask(QUESTION)


@pytest.mark.parametrize("host", HOSTS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    fills=st.lists(st.lists(FILL, max_size=3), min_size=1, max_size=3),
    k=st.integers(1, 8),
    tenant=st.sampled_from([None, "a"]),
    form=st.sampled_from(["declared", "function"]),
)
def test_what_is_found_is_what_is_nearest_of_all_kinds_at_every_moment(host, fills, k, tenant, form):
    store = HOSTS[host]()
    ask = store.retriever(k, tenant, form)
    for step, several in enumerate(fills):
        for number, (kind, sections, owner) in enumerate(several):
            store.fill(kind, f"{owner}{step}{number}", sections, owner)
        cut = merge_views({view: ranking[:k] for view, ranking in store.model(tenant).items()}, k)
        assert found_by(ask) == [section.section_id for section in cut]


@pytest.mark.parametrize("host", HOSTS)
def test_one_more_document_takes_no_other_one_and_no_chunk_away(host):
    store = HOSTS[host]()
    for number in range(20):
        store.fill("new", f"old{number}", 3, "a")
        store.fill("foreign", f"foreign{number}", 3, "a")
    ask = store.retriever(6, None, "declared")
    before = found_by(ask)
    store.fill("new", "one new document", 1, "a")
    after = found_by(ask)
    assert len(set(before) & set(after)) >= 4
    assert after == [section.section_id for section in merge_views({v: r[:6] for v, r in store.model(None).items()}, 6)]


@pytest.mark.parametrize("sections", [1, 40])
def test_an_ordinary_store_is_searched_three_times_for_one_embedding(sections):
    store = LangChain()
    store.fill("new", "book", sections, "a")
    ask = store.retriever(5, None, "declared")
    for question in range(1, 4):
        ask(QUESTION)
        assert (store.searched, store.embedded()) == (3 * question, question)


def test_a_store_of_all_kinds_is_searched_four_times_at_most():
    store = LangChain()
    for kind in KINDS:
        store.fill(kind, kind, 40, "a")
    found_by(store.retriever(5, None, "declared"))
    assert store.searched <= 4
    assert store.embedded() == 1
