"""One store with a filter, a retriever for each view, one retriever, or memory: the same sections, async and sync."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.text import terms
from drillrank.views import VIEWS
from langchain_ext import MultiViewRetriever, MultiViewTextSplitter
from tests.conformance.corpus import BOOK, QUESTION, QUESTIONS

PIECES = MultiViewTextSplitter().create_documents([BOOK])
RAW = [piece for piece in PIECES if piece.metadata["drillrank_view"] == "raw"]


class WordEmbeddings(Embeddings):
    """Words hashed into 64 places."""

    def embed_query(self, text):
        vector = [0.01] * 64
        for word in terms(text):
            vector[sum(map(ord, word)) % 64] += 1.0
        return vector

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


class Scripted(BaseRetriever):
    """Returns what it is given; knows whether it was asked asynchronously."""

    documents: list[Document]
    awaited: int = 0

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents

    async def _aget_relevant_documents(self, query, *, run_manager):
        self.awaited += 1
        return self.documents


def of_view(view, order):
    pieces = [piece for piece in PIECES if piece.metadata["drillrank_view"] == view]
    return Scripted(documents=[pieces[i] for i in order])


def outcome(found):
    return [
        (hit.id, hit.page_content, hit.metadata["relevance_score"], hit.metadata.get("drillrank_matched_views"))
        for hit in found
    ]


def store(pieces=PIECES):
    filled = InMemoryVectorStore(WordEmbeddings())
    filled.add_documents(pieces)
    return filled


async def test_one_store_with_a_view_filter():
    retriever = MultiViewRetriever(source=store(), top_n=2)
    found = retriever.invoke(QUESTION)
    assert found[0].metadata["drillrank_section_path"] == "Rivers > The Rhine"
    assert {entry.split(":")[0] for entry in found[0].metadata["drillrank_matched_views"].split()} == {
        "raw",
        "keywords",
        "summary",
    }
    for hit in found:
        assert hit.metadata["drillrank_view"] == "raw"
        assert "drillrank_section_text" not in hit.metadata
        assert BOOK[hit.metadata["start_index"] :].startswith(hit.page_content)
        assert hit.id == hit.metadata["drillrank_section_id"]
    assert outcome(await retriever.ainvoke(QUESTION)) == outcome(found)
    assert outcome(retriever.invoke(QUESTION, top_n=1)) == outcome(
        MultiViewRetriever(source=store(), top_n=1).invoke(QUESTION)
    )


async def test_a_retriever_for_each_view_and_a_single_one():
    by_view = {
        "raw": of_view("raw", [0, 1]),
        "keywords": of_view("keywords", [2, 1]),
        "summary": of_view("summary", [1, 2]),
    }
    single = Scripted(documents=[piece for inner in by_view.values() for piece in inner.documents])
    expected = None
    for source in (by_view, single):
        retriever = MultiViewRetriever(documents=PIECES, source=source, top_n=3)
        found = retriever.invoke(QUESTION)
        assert [hit.metadata["drillrank_matched_views"] for hit in found] == [
            "raw:2 keywords:2 summary:1",
            "keywords:1 summary:2",
            "raw:1",
        ]
        assert [hit.page_content for hit in found] == [RAW[i].page_content for i in (1, 2, 0)]
        assert outcome(await retriever.ainvoke(QUESTION)) == outcome(found)
        assert expected in (None, outcome(found))
        expected = outcome(found)
    assert [inner.awaited for inner in (*by_view.values(), single)] == [1, 1, 1, 1]


async def test_retrievers_of_any_kind():
    by_view = {view: [piece for piece in PIECES if piece.metadata["drillrank_view"] == view] for view in VIEWS}
    ensemble = EnsembleRetriever(retrievers=[store(by_view["summary"]).as_retriever(), of_view("summary", [2])])
    source = {
        "raw": store(by_view["raw"]).as_retriever(search_kwargs={"k": 2}),
        "keywords": RunnableLambda(lambda query: by_view["keywords"]),
        "summary": ensemble,
    }
    retriever = MultiViewRetriever(documents=PIECES, source=source, top_n=9)
    found = retriever.invoke(QUESTION)
    assert found[0].metadata["drillrank_section_path"] == "Rivers > The Rhine"
    assert found[0].metadata["drillrank_matched_views"] == "raw:1 keywords:2 summary:2"
    assert sorted(hit.id for hit in found) == sorted(piece.id for piece in RAW)
    assert outcome(await retriever.ainvoke(QUESTION)) == outcome(found)


async def test_a_retriever_is_any_runnable():
    inner = of_view("raw", [1, 0])
    expected = outcome(MultiViewRetriever(source={"raw": inner}).invoke(QUESTION))
    lists = RunnableLambda(lambda query: inner.documents)
    for runnable in (lists, inner.with_config(tags=["a"]), inner.with_retry(), inner.with_fallbacks([lists])):
        for source in ({"raw": runnable}, runnable):
            retriever = MultiViewRetriever(source=source)
            assert outcome(retriever.invoke(QUESTION)) == outcome(await retriever.ainvoke(QUESTION)) == expected


def test_eight_threads_over_one_store():
    retriever = MultiViewRetriever(source=store(), expand="neighbours")
    expected = [outcome(retriever.invoke(question)) for question in QUESTIONS]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda question: outcome(retriever.invoke(question)), QUESTIONS)) == expected


def test_weights():
    source = {"raw": of_view("raw", [0]), "keywords": of_view("keywords", [1])}
    for heavy, first in (("raw", 0), ("keywords", 1)):
        (hit,) = MultiViewRetriever(documents=PIECES, source=source, top_n=1, weights={heavy: 3.0}).invoke(QUESTION)
        assert hit.page_content == RAW[first].page_content


@pytest.mark.parametrize(
    ("expand", "expected"),
    [
        ("neighbours", ["Rivers > The Rhine", "Rivers", "Rivers > The Thames"]),
        ("parent", ["Rivers > The Rhine", "Rivers"]),
    ],
)
def test_expansion_in_memory_and_by_id_in_a_store(expand, expected):
    for settings in ({"documents": PIECES}, {"source": store()}):
        found = MultiViewRetriever(**settings, top_n=1, expand=expand).invoke(QUESTION)
        assert [hit.metadata["drillrank_section_path"] for hit in found] == expected
        assert {hit.metadata["relevance_score"] for hit in found} == {found[0].metadata["relevance_score"]}
        assert [hit.metadata.get("drillrank_expanded_from") for hit in found] == [
            None,
            *[found[0].id] * (len(found) - 1),
        ]


def test_neighbours_that_are_nowhere_are_left_out_with_a_warning():
    retriever = MultiViewRetriever(source={"raw": of_view("raw", [1])}, expand="neighbours")
    with pytest.warns(DrillrankWarning, match="not at hand"):
        (hit,) = retriever.invoke(QUESTION)
    assert hit.page_content == RAW[1].page_content
    assert len(MultiViewRetriever(**dict(retriever) | {"documents": PIECES}).invoke(QUESTION)) == 3


def test_inner_retrievers_are_children_of_the_run():
    class Runs(BaseCallbackHandler):
        parents: list = []  # noqa: RUF012
        ended = 0

        def on_retriever_start(self, serialized, query, *, parent_run_id=None, **keywords):
            self.parents.append(parent_run_id)

        def on_retriever_end(self, documents, **keywords):
            self.ended += 1

    runs = Runs()
    source = {"raw": of_view("raw", [0]), "keywords": of_view("keywords", [0])}
    MultiViewRetriever(source=source).invoke(QUESTION, {"callbacks": [runs]})
    assert [parent is None for parent in runs.parents] == [True, False, False]
    assert runs.ended == 3


def test_an_empty_store_finds_nothing_and_says_so():
    with pytest.warns(DrillrankWarning, match="holds nothing"):
        assert MultiViewRetriever(source=store([])).invoke(QUESTION) == []


def test_unusable_settings_are_named():
    with pytest.raises(InvalidInput, match="weight"):
        MultiViewRetriever(documents=PIECES, weights={"raw": -1.0})
    with pytest.raises(InvalidInput, match="source"):
        MultiViewRetriever(documents=PIECES, source={})
    with pytest.raises(ValueError, match="source"):
        MultiViewRetriever(source="store")
    with pytest.raises(ValueError, match="expand"):
        MultiViewRetriever(documents=PIECES, expand="all")
