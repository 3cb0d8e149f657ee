"""One store with a filter, a retriever for each view, one retriever, or memory: the same sections, async and sync."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from llama_index.core import StorageContext, SummaryIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.storage.docstore import SimpleDocumentStore

from drillrank.errors import DrillrankWarning
from drillrank.views import VIEWS
from tests.conformance.corpus import BOOK, QUESTION, QUESTIONS
from tests.conformance.frameworks import AsyncFinds, LangChain, LlamaIndex, both_frameworks

SECTIONS = {host: host.sections(("book", BOOK)) for host in (LlamaIndex, LangChain)}


def view_of(record):
    return record.metadata["drillrank_view"]


def of_view(host, view, order=None):
    records = [record for record in SECTIONS[host] if view_of(record) == view]
    return records if order is None else [records[i] for i in order]


def scripted(host, view, *order, asked=None):
    """A retriever that always finds the same."""

    def finds(query):
        if asked is not None:
            asked.append(view)
        return of_view(host, view, order)

    return host.finds(finds, asynchronous=True)


def retriever(host, source=None, **fields):
    return host.ext.MultiViewRetriever(source=source, **fields)


def store(host, records=None, **how):
    return host.index(*(SECTIONS[host] if records is None else records), **how)


def outcome(found):
    return [(one.id, one.text, one.score, one.metadata.get("drillrank_matched_views")) for one in found]


async def both_ways(host, component, question=QUESTION):
    """What is found synchronously, which is what is found asynchronously."""
    found = host.retrieve(component, question)
    assert outcome(await host.aretrieve(component, question)) == outcome(found)
    return found


def ids_of(host, *order):
    found = host.retrieve(host.retriever(*of_view(host, "raw", order)), QUESTION)
    return [one.id for one in found]


@both_frameworks
async def test_one_store_with_a_view_filter(host):
    found = await both_ways(host, retriever(host, store(host), top_n=2))
    assert found[0].metadata["drillrank_section_path"] == "Rivers > The Rhine"
    assert {entry.split(":")[0] for entry in found[0].metadata["drillrank_matched_views"].split()} == set(VIEWS)
    for one in found:
        assert one.metadata["drillrank_view"] == "raw"
        assert one.id == one.metadata["drillrank_section_id"]
        assert "drillrank_section_text" not in one.metadata
        assert BOOK[one.metadata["drillrank_start"] : one.metadata["drillrank_end"]] == one.text
    if host is LangChain:
        fewer = retriever(host, store(host), top_n=2).invoke(QUESTION, top_n=1)
        assert fewer == retriever(host, store(host), top_n=1).invoke(QUESTION)


@both_frameworks
async def test_a_retriever_for_each_view_and_a_single_one(host):
    orders = {"raw": (0, 1), "keywords": (2, 1), "summary": (1, 2)}
    asked = []
    by_view = {view: scripted(host, view, *order, asked=asked) for view, order in orders.items()}
    everything = [record for view, order in orders.items() for record in of_view(host, view, order)]
    for source in (by_view, host.finds(lambda query: everything, asynchronous=True)):
        found = await both_ways(host, retriever(host, source, documents=SECTIONS[host], top_n=3))
        assert [one.metadata["drillrank_matched_views"] for one in found] == [
            "raw:2 keywords:2 summary:1",
            "keywords:1 summary:2",
            "raw:1",
        ]
        assert [one.id for one in found] == ids_of(host, 1, 2, 0)
    assert sorted(asked) == sorted([*orders] * 2)


@both_frameworks
async def test_retrievers_of_any_kind(host):
    if host is LlamaIndex:
        summaries = host.over(store(host, of_view(host, "summary")), 3)
        fused = QueryFusionRetriever(
            [summaries, scripted(host, "summary", 2)],
            llm=MockLLM(),
            num_queries=1,
            similarity_top_k=3,
            use_async=False,
        )
        in_order = SummaryIndex(of_view(host, "keywords")).as_retriever()
    else:
        summaries = host.over(store(host, of_view(host, "summary")))
        fused = EnsembleRetriever(retrievers=[summaries, scripted(host, "summary", 2)])
        in_order = RunnableLambda(lambda query: of_view(host, "keywords"))
    source = {"raw": host.over(store(host, of_view(host, "raw")), 2), "keywords": in_order, "summary": fused}
    found = await both_ways(host, retriever(host, source, documents=SECTIONS[host], top_n=9))
    assert found[0].metadata["drillrank_section_path"] == "Rivers > The Rhine"
    assert found[0].metadata["drillrank_matched_views"] == "raw:1 keywords:2 summary:2"
    assert sorted(one.id for one in found) == sorted(ids_of(host, *range(len(of_view(host, "raw")))))


@both_frameworks
@pytest.mark.parametrize("hidden", [False, True])
async def test_a_store_for_each_view_is_asked_for_raw_texts_as_its_retriever_shows_them(host, hidden):
    shown = {"drillrank_section_path": "Towns"} if hidden else {}
    raw = host.over(store(host, of_view(host, "raw")), 1, **shown)
    summary = host.over(store(host, of_view(host, "summary")), 9)
    found = await both_ways(host, retriever(host, {"summary": summary, "raw": raw}, top_n=9))
    assert len(found) == (1 if hidden else len(of_view(host, "raw")))


async def test_a_retriever_is_any_runnable():
    inner = scripted(LangChain, "raw", 1, 0)
    expected = outcome(LangChain.retrieve(retriever(LangChain, {"raw": inner}), QUESTION))
    lists = RunnableLambda(lambda query: of_view(LangChain, "raw", (1, 0)))
    for runnable in (lists, inner.with_config(tags=["a"]), inner.with_retry(), inner.with_fallbacks([lists])):
        for source in ({"raw": runnable}, runnable):
            assert outcome(await both_ways(LangChain, retriever(LangChain, source))) == expected


@both_frameworks
def test_eight_threads_over_one_store(host):
    component = retriever(host, store(host), expand="neighbours")
    expected = [outcome(host.retrieve(component, question)) for question in QUESTIONS]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda question: outcome(host.retrieve(component, question)), QUESTIONS)) == expected


@both_frameworks
def test_weights(host):
    source = {"raw": scripted(host, "raw", 0), "keywords": scripted(host, "keywords", 1)}
    for heavy, first in (("raw", 0), ("keywords", 1)):
        component = retriever(host, source, documents=SECTIONS[host], top_n=1, weights={heavy: 3.0})
        assert [one.id for one in host.retrieve(component, QUESTION)] == ids_of(host, first)


@both_frameworks
@pytest.mark.parametrize(
    ("expand", "path", "start", "end"),
    [
        ("neighbours", "Rivers > The Rhine", "# Rivers", "# Towns"),
        ("parent", "Rivers", "# Rivers", "# Towns"),
    ],
)
async def test_expansion_in_memory_and_in_a_store(host, expand, path, start, end):
    kinds = [{"documents": SECTIONS[host]}, {"source": store(host)}]
    if host is LlamaIndex:
        storage = StorageContext.from_defaults(docstore=SimpleDocumentStore())
        storage.docstore.add_documents(SECTIONS[host])
        index = host.index(*SECTIONS[host], storage_context=storage)
        kinds += [{"source": index}, {"source": store(host), "documents": SECTIONS[host]}]
    for fields in kinds:
        [rhine] = host.retrieve(retriever(host, **fields, top_n=1), QUESTION)
        [hit] = await both_ways(host, retriever(host, **fields, top_n=1, expand=expand))
        assert hit.text == BOOK[BOOK.index(start) : BOOK.index(end)]
        assert hit.start == hit.metadata["drillrank_start"] == BOOK.index(start)
        assert hit.metadata["drillrank_end"] == BOOK.index(end)
        assert hit.metadata["drillrank_section_path"] == path
        assert hit.metadata["drillrank_expanded_from"] == rhine.id
        assert hit.metadata["drillrank_matched_views"] == rhine.metadata["drillrank_matched_views"]
        assert (hit.id == rhine.id) == (expand == "neighbours")
        assert hit.score == rhine.score


@both_frameworks
def test_a_section_that_the_source_lacks_is_taken_from_the_documents(host):
    lonely = {"keywords": scripted(host, "keywords", 0)}
    with_documents = host.retrieve(retriever(host, lonely, documents=SECTIONS[host]), QUESTION)
    assert [one.id for one in with_documents] == ids_of(host, 0)
    alone = {"source": {"raw": scripted(host, "raw", 1)}, "expand": "neighbours"}
    with pytest.warns(DrillrankWarning, match="not complete"):
        assert [one.id for one in host.retrieve(retriever(host, **alone), QUESTION)] == ids_of(host, 1)
    [whole] = host.retrieve(retriever(host, **alone, documents=SECTIONS[host]), QUESTION)
    assert whole.text == BOOK[: BOOK.index("# Towns")]


def test_events_are_balanced_with_inner_retrievers():
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    inner = AsyncFinds(lambda query: of_view(LlamaIndex, "raw"))
    inner.callback_manager = manager
    retriever(LlamaIndex, {"raw": inner}, callback_manager=manager).retrieve(QUESTION)
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 2
    assert not debug.get_events(CBEventType.EXCEPTION)


def test_inner_retrievers_are_children_of_the_run():
    class Runs(BaseCallbackHandler):
        parents: list = []  # noqa: RUF012
        ended = 0

        def on_retriever_start(self, serialized, query, *, parent_run_id=None, **keywords):
            self.parents.append(parent_run_id)

        def on_retriever_end(self, documents, **keywords):
            self.ended += 1

    runs = Runs()
    source = {view: LangChain.retriever(*of_view(LangChain, view, (0,))) for view in ("raw", "keywords")}
    retriever(LangChain, source).invoke(QUESTION, {"callbacks": [runs]})
    assert [parent is None for parent in runs.parents] == [True, False, False]
    assert runs.ended == 3


@both_frameworks
def test_a_joined_text_names_the_pages_that_it_is_on(host):
    texts = ["# Rivers\n\nThey flow.", "## Rhine\n\nIt flows through Basel.", "## Thames\n\nIt flows through London."]
    pages = [host.document(text, source="rivers.pdf", page=number) for number, text in enumerate(texts)]
    records = host.split(pages, min_tokens=None)
    for fields in ({"documents": records}, {"source": host.index(*records)}):
        [rhine] = host.retrieve(retriever(host, top_n=1, **fields), QUESTION)
        assert (rhine.metadata["page"], rhine.metadata["drillrank_first_page"]) == (1, 2)
        for expand in ("parent", "neighbours"):
            [hit] = host.retrieve(retriever(host, top_n=1, expand=expand, **fields), QUESTION)
            assert hit.text == "\n\n".join(texts)
            names = ("page", "drillrank_first_page", "drillrank_last_page")
            assert [hit.metadata[name] for name in names] == [0, 1, 3]
