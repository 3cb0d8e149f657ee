"""Sources of the retrievers: an index or a store, a retriever over it, or a record store of one's own."""

from __future__ import annotations

import pytest

from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.frameworks import both_frameworks
from tests.conformance.record_lists import Records

RHINE = "The Rhine flows through Basel"
RETRIEVERS = ["MultiViewRetriever", "BRMGRRetriever", "PromptRankRetriever", "D3Retriever"]


def sources(host):
    records = host.sections(("book", BOOK))
    store = host.index(*records)
    return {"store": store, "retriever": host.over(store, 9), "record store": Records.of(host, records)}


def build(host, name, source, **fields):
    if name not in ("MultiViewRetriever", "D3Retriever", "PromptRankRetriever"):
        fields["llm"] = host.llm(["An answer."])
    return getattr(host.ext, name)(source=source, **fields)


@both_frameworks
@pytest.mark.parametrize("name", RETRIEVERS)
@pytest.mark.parametrize("kind", ["store", "retriever", "record store"])
def test_each_retriever_takes_each_source(host, name, kind):
    found = host.both(build(host, name, sources(host)[kind], top_n=9), QUESTION)
    retrieved = [one for one in found if one.metadata.get("drillrank_origin") != "generated"]
    assert any(RHINE in one.text for one in retrieved)
    assert all(one.text.strip() in BOOK for one in retrieved)
    ids = [one.metadata.get("drillrank_section_id") for one in retrieved]
    assert name == "D3Retriever" or len(set(ids)) == len(ids)


@both_frameworks
@pytest.mark.parametrize("kind", ["store", "retriever", "record store"])
def test_self_ask_takes_each_source(host, kind):
    llm = host.llm(["Yes.\nFollow up: Which river flows through Basel?", "The Rhine", "So the final answer is: Rhine"])
    answer, texts, _ = host.answer(host.self_ask(sources(host)[kind], llm), QUESTION)
    assert answer == "Rhine"
    assert any(RHINE in text for text in texts)
    assert all(text.strip() in BOOK for text in texts)


@both_frameworks
def test_an_index_is_asked_for_as_many_records_as_results_or_for_ten(host):
    class Counted(Records):
        def search(self, question, n, where=None):
            asked.append(n)
            return super().search(question, n, where)

    for top_n, n in ((3, 3), (None, 10)):
        asked = []
        source = Counted(sources(host)["record store"].chunks)
        retriever = host.ext.BRMGRRetriever(source=source, llm=host.llm(["x"]), n_generated=1, top_n=top_n)
        host.retrieve(retriever, QUESTION)
        assert asked[0] == n


@both_frameworks
def test_a_filter_hides_records_of_a_record_store(host):
    shut = host.filters(drillrank_section_path="Towns")
    source = sources(host)["record store"]
    for expand in (None, "parent", "neighbours"):
        [hit] = host.both(host.ext.MultiViewRetriever(source=source, filters=shut, expand=expand), QUESTION)
        assert hit.text == BOOK[BOOK.index("# Towns") :]
