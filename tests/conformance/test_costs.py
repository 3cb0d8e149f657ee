"""What a question costs a store: one embedding, and so many calls; and what a failing store leaves behind."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.conformance.stored import DOCUMENTS, Stored

STORES = [(LangChain, ""), (LangChain, "index()"), (LlamaIndex, "")]


@pytest.mark.parametrize(("host", "how"), STORES)
@pytest.mark.parametrize(("expand", "look_ups"), [(None, 2), ("neighbours", 4), ("parent", 4)])
def test_sections_cost_one_embedding_and_three_searches(host, how, expand, look_ups):
    """Look-ups do not depend on how many sections there are: by ids, and by metadata where ids are not ours."""
    stored = Stored(host, how)
    component = stored.component("MultiViewRetriever", top_n=6, expand=expand)
    for asynchronous in (False, True):
        found, asked = stored.asked(component, asynchronous)
        assert len(found) == 6 or expand == "parent"
        assert asked["questions"] == 1
        assert asked["search"] <= 3
        assert asked["records"] <= look_ups


@pytest.mark.parametrize(("host", "how"), [*STORES, (LlamaIndex, "chunks")])
@pytest.mark.parametrize("documents", [1, DOCUMENTS])
def test_drilling_down_costs_one_embedding_and_two_calls_however_many_documents_there_are(host, how, documents):
    stored = Stored(host, how)
    component = stored.component("D3Retriever", max_documents=documents, top_n=9)
    for asynchronous in (False, True):
        found, asked = stored.asked(component, asynchronous)
        assert found
        assert asked["questions"] == 1
        assert asked["search"] + asked["records"] <= 3


MOST = 50  # calls of one question


class Failing(Counter[str]):
    """Counts what a store is asked; the one that is to fail does."""

    fails_at = 0

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if self.total() == self.fails_at:
            raise ConnectionError("the store went away")


@both_frameworks
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("MultiViewRetriever", {"expand": "parent"}),
        ("MultiViewRetriever", {"expand": "neighbours"}),
        ("D3Retriever", {"max_documents": 3}),
        ("PromptRankRetriever", {}),
    ],
)
def test_each_call_of_a_store_may_fail_the_application_hears_of_it_and_the_next_question_is_whole(
    host, name, fields, asynchronous
):
    stored = Stored(host)
    wanted, _ = stored.asked(stored.component(name, **fields), asynchronous)
    assert wanted
    component, stored.store.asked = stored.component(name, **fields), Failing()
    failures = 0
    for at in range(1, MOST):
        stored.store.asked.fails_at = at
        try:
            found, _ = stored.asked(component, asynchronous)
        except ConnectionError:
            failures += 1
        else:
            assert found == wanted  # the component was done before
            break
        finally:
            stored.store.asked.fails_at = 0
        assert stored.asked(component, asynchronous)[0] == wanted
    assert 0 < failures < MOST - 1
