"""What MultiViewRetriever returns is what the store holds when it is asked, under one filter, whoever filled it."""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.hosts.filters import from_dictionary
from langchain_ext import MultiViewRetriever, MultiViewTextSplitter
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.hosts import WordEmbeddings

VIEWS = ("raw", "keywords", "summary")


class CountedEmbeddings(WordEmbeddings):
    """Counts the questions."""

    def __init__(self):
        self.questions = 0

    def embed_query(self, text):
        self.questions += 1
        return super().embed_query(text)

    def embed_documents(self, texts):
        return [WordEmbeddings.embed_query(self, text) for text in texts]


class CountedStore(InMemoryVectorStore):
    """Counts what it is asked; and takes dictionaries as filters, as most stores do."""

    def __init__(self, pieces=(), embedding=None):
        super().__init__(embedding or CountedEmbeddings())
        self.asked = Counter()
        self.add_documents(list(pieces))

    def similarity_search_by_vector(self, embedding, k=4, **kwargs):
        self.asked["search"] += 1
        return super().similarity_search_by_vector(embedding, k, **kwargs)

    async def asimilarity_search_by_vector(self, embedding, k=4, **kwargs):
        self.asked["search"] += 1
        return super().similarity_search_by_vector(embedding, k, **kwargs)

    def get_by_ids(self, ids):
        self.asked["ids"] += 1
        return super().get_by_ids(ids)

    async def aget_by_ids(self, ids):
        self.asked["ids"] += 1
        return super().get_by_ids(ids)

    def change(self, id_, **changed):
        self.store[id_] = {**self.store[id_], **changed}

    def texts(self):
        return {entry["text"] for entry in self.store.values()}


def pieces(text=BOOK, id_="book", **metadata):
    document = Document(text, id=id_, metadata=metadata)
    return MultiViewTextSplitter(**namespaced(metadata)).split_documents([document])


def namespaced(metadata):
    return {"namespace_key": "tenant"} if "tenant" in metadata else {}


def asked(retriever, question=QUESTION):
    """The same sync and async, warnings included."""
    told = []
    outcomes = []
    for ask in (retriever.invoke, lambda question: asyncio.run(retriever.ainvoke(question))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcomes.append(ask(question))
        told.append([str(warning.message) for warning in caught if warning.category is DrillrankWarning])
    assert outcomes[0] == outcomes[1]
    assert {*told[1]} <= {*told[0]}  # some things are told once
    return outcomes[0], told[0]


def text_of(found):
    return [hit.page_content for hit in found]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_every_result_s_text_is_what_the_store_holds_at_that_moment(data):
    made = pieces()
    store = CountedStore(made)
    given_documents = data.draw(st.sampled_from([[], made]))
    source = data.draw(st.sampled_from([store, store.as_retriever(search_kwargs={"k": 20})]))
    expand = data.draw(st.sampled_from([None, "neighbours", "parent"]))
    retriever = MultiViewRetriever(documents=given_documents, source=source, top_n=3, expand=expand)
    for step in range(3):
        id_ = data.draw(st.sampled_from(made)).id
        change = data.draw(st.sampled_from(["redact", "delete", "retag"]))
        if id_ in store.store and change == "delete":
            store.delete([id_])
        elif id_ in store.store:
            entry = store.store[id_]
            metadata = {**entry["metadata"], "tag": str(step)} if change == "retag" else entry["metadata"]
            store.change(id_, text=f"Redacted {step}." if change == "redact" else entry["text"], metadata=metadata)
        found, _ = asked(retriever)
        for hit in found:
            held = store.store[hit.id]
            assert hit.page_content == held["text"]
            assert hit.metadata.items() >= held["metadata"].items()
            assert held["metadata"]["drillrank_view"] == "raw"


def test_a_view_is_a_reference_that_nothing_redacted_comes_back_through():
    store = CountedStore(pieces())
    for id_, entry in list(store.store.items()):
        if "Basel and Cologne" in entry["text"] and entry["metadata"]["drillrank_view"] == "raw":
            store.change(id_, text="[redacted]")
    for source in (store, store.as_retriever(search_kwargs={"k": 20})):
        found, _ = asked(MultiViewRetriever(documents=pieces(), source=source, top_n=9))
        assert "[redacted]" in text_of(found)
        assert not any("Cologne" in text for text in text_of(found))


def test_a_section_whose_raw_record_is_deleted_is_left_out_and_told():
    made = pieces()
    gone = next(piece for piece in made if "flows through Basel" in piece.page_content)
    store = CountedStore(made)
    store.delete([gone.id])
    found, told = asked(MultiViewRetriever(documents=made, source=store, top_n=9))
    assert len(found) == len({piece.metadata["drillrank_section_id"] for piece in made}) - 1
    assert gone.page_content not in text_of(found)
    assert "no longer in the store" in "".join(told)


def test_stale_documents_give_way():
    later = BOOK.replace("Basel and Cologne", "Basel and Strasbourg")
    store = CountedStore(pieces(later))
    found, told = asked(MultiViewRetriever(documents=pieces(), source=store, expand="neighbours"))
    assert set(text_of(found)) <= store.texts()
    assert told == []


def test_documents_stand_in_where_no_store_can_be_asked_unless_they_differ():
    made = pieces(version=1)
    keywords = [piece for piece in made if piece.metadata["drillrank_view"] == "keywords"]
    source = {"keywords": RunnableLambda(lambda question: keywords)}
    found, told = asked(MultiViewRetriever(documents=made, source=source, top_n=9))
    assert {hit.metadata["drillrank_section_id"] for hit in found} == {
        k.metadata["drillrank_section_id"] for k in keywords
    }
    assert told == []
    found, told = asked(MultiViewRetriever(documents=pieces(version=2), source=source, top_n=9))
    assert found == []
    assert len(told) == 1
    found, told = asked(MultiViewRetriever(source=source, top_n=9))
    assert found == []
    assert "pass documents" in told[0]


def test_one_embedding_three_searches_and_one_look_up():
    store = CountedStore(pieces())
    for expand, look_ups in ((None, 1), ("neighbours", 2)):
        store.asked.clear()
        store.embeddings.questions = 0
        MultiViewRetriever(source=store, top_n=2, expand=expand).invoke(QUESTION)
        assert store.asked["search"] == 3
        assert store.asked["ids"] <= look_ups
        assert store.embeddings.questions == 1


def test_a_store_that_the_host_s_index_filled_is_searched_as_often():
    store, records = CountedStore(), InMemoryRecordManager("book")
    records.create_schema()
    index(pieces(source="book.md"), records, store, cleanup="full", source_id_key="source", key_encoder="sha256")
    store.asked.clear()
    store.embeddings.questions = 0
    found = MultiViewRetriever(source=store, top_n=2).invoke(QUESTION)
    assert len(found) == 2
    assert store.asked["search"] <= 3
    assert store.asked["ids"] <= 1
    assert store.embeddings.questions == 1


# Filters


FILTERS = [
    {"tenant": "a"},
    {"tenant": {"$in": ["a", "c"]}},
    {"$and": [{"tenant": {"$ne": "b"}}, {"year": {"$gte": 2000}}]},
    lambda document: document.metadata["tenant"] == "a",
]
SECRET = BOOK.replace("Basel and Cologne", "the secret caves")


def two_tenants():
    return [*pieces(tenant="a", year=2020), *pieces(SECRET, tenant="b", year=2020)]


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("expand", [None, "neighbours", "parent"])
@pytest.mark.parametrize("kind", ["memory", "store", "retriever", "inherited", "by view"])
def test_one_filter_governs_every_look_up(filter, expand, kind):
    made = two_tenants()
    store = CountedStore(made)
    predicate = filter if callable(filter) else lambda document: document.metadata["tenant"] == "a"
    own = {"filters": filter}
    if kind == "memory":
        where = {"documents": made}
    elif kind == "store":
        where = {"source": store}
    elif kind == "retriever":
        where = {"source": store.as_retriever(search_kwargs={"k": 40})}
    elif kind == "inherited":
        where, own = {"source": store.as_retriever(search_kwargs={"k": 40, "filter": predicate})}, {}
    else:

        def of_view(view):
            chosen = lambda document: predicate(document) and document.metadata["drillrank_view"] == view  # noqa: E731
            return store.as_retriever(search_kwargs={"k": 40, "filter": chosen})

        where, own = {"source": {view: of_view(view) for view in VIEWS}, "documents": made}, {}
    found, told = asked(MultiViewRetriever(**where, **own, expand=expand, top_n=9), "Where are the secret caves?")
    assert {hit.metadata["tenant"] for hit in found} == {"a"}
    assert len(found) == len({piece.metadata["drillrank_section_id"] for piece in made}) / 2
    assert not any("secret" in str(hit) for hit in found)
    assert told == []


class DictionaryStore(VectorStore):
    """Takes dictionaries as filters only, no vectors, and knows nothing by id; as little as a store may do."""

    def __init__(self, pieces):
        self.inner = InMemoryVectorStore(WordEmbeddings())
        self.inner.add_documents(pieces)
        self.searched = []

    def similarity_search(self, query, k=4, filter=None, **kwargs):
        assert not kwargs
        holds = from_dictionary({} if filter is None else filter)
        self.searched.append(k)
        return self.inner.similarity_search(query, k=k, filter=lambda document: holds(document.metadata) is True)

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **kwargs):
        raise NotImplementedError


@pytest.mark.parametrize("expand", [None, "neighbours"])
@pytest.mark.parametrize("filter", FILTERS)
def test_a_store_that_can_do_little_is_searched_by_metadata_and_its_results_are_checked(filter, expand):
    made = [*pieces(SECRET * 3, tenant="b", year=2020), *pieces(tenant="a", year=2020)]
    store = DictionaryStore(made)
    found, told = asked(
        MultiViewRetriever(source=store, filters=filter, top_n=2, expand=expand), "the secret caves of Basel"
    )
    assert len(found) >= 2
    assert {hit.metadata["tenant"] for hit in found} == {"a"}
    assert told == []
    # Of each view, without a view, and perhaps all of a document; more only where the store cannot filter.
    assert (len({k for k in store.searched if k < 10_000}) > 2) is callable(filter)


class CarelessStore(DictionaryStore):
    """Takes any filter and heeds none."""

    def similarity_search(self, query, k=4, filter=None, **kwargs):
        return super().similarity_search(query, k)


def test_a_store_that_heeds_no_filter_is_checked_all_the_same():
    store = CarelessStore(two_tenants())
    for filter in ({"tenant": "a"}, FILTERS[-1]):
        found, _ = asked(MultiViewRetriever(source=store, filters=filter, top_n=3, expand="neighbours"))
        assert found
        assert all(BOOK[hit.metadata["drillrank_start"] :].startswith(hit.page_content) for hit in found)
        assert {(hit.metadata["tenant"], hit.metadata["drillrank_view"]) for hit in found} == {("a", "raw")}


def test_a_neighbour_that_the_store_has_deleted_is_not_lent_by_documents():
    made = pieces()
    gone = next(piece for piece in made if "Thames flows" in piece.page_content)
    store = CountedStore(made)
    store.delete([piece.id for piece in made if piece.metadata["drillrank_section_id"] == gone.id])
    found, told = asked(MultiViewRetriever(documents=made, source=store, top_n=1, expand="neighbours"))
    assert len(found) == 2
    assert gone.page_content not in text_of(found)
    assert "not at hand" in "".join(told)


def test_neighbours_are_not_lent_by_a_document_that_has_changed():
    later = pieces(BOOK.replace("Basel and Cologne", "Basel and Strasbourg"))
    rhine = next(piece for piece in later if "Strasbourg" in piece.page_content)
    found, told = asked(MultiViewRetriever(documents=pieces(), source=lambda question: [rhine], expand="neighbours"))
    assert text_of(found) == [rhine.page_content]
    assert any("not at hand" in line for line in told)
    found, told = asked(MultiViewRetriever(documents=later, source=lambda question: [rhine], expand="neighbours"))
    assert len(found) == 3
    assert told == []


def test_what_is_given_is_under_the_source_s_filter_too():
    made = two_tenants()
    keywords = [piece for piece in made if piece.metadata["drillrank_view"] == "keywords"]
    found, _ = asked(
        MultiViewRetriever(documents=made, source=lambda question: keywords, filters={"tenant": "a"}, top_n=9)
    )
    assert {hit.metadata["tenant"] for hit in found} == {"a"}
    raw_is_secret = [
        piece.model_copy(update={"metadata": {**piece.metadata, "open": piece.metadata["drillrank_view"] != "raw"}})
        for piece in made
    ]
    views = [piece for piece in raw_is_secret if piece.metadata["open"]]
    found, _ = asked(MultiViewRetriever(documents=raw_is_secret, source=lambda question: views, filters={"open": True}))
    assert found == []


def test_marks_of_an_earlier_question_do_not_stay():
    made = pieces()
    first = MultiViewRetriever(documents=made, top_n=1, expand="neighbours").invoke(QUESTION)
    again = MultiViewRetriever(source=lambda question: first[1:], top_n=1).invoke(QUESTION)
    assert "drillrank_expanded_from" not in again[0].metadata
    assert again[0].metadata["drillrank_matched_views"] == "raw:1"


def test_two_tenants_with_equal_ids_in_one_store():
    made = two_tenants()
    assert len({piece.id for piece in made}) == len(made)
    assert {piece.metadata["drillrank_namespace"] for piece in made} == {"a", "b"}
    assert {piece.metadata["drillrank_source_id"] for piece in made} == {"book"}
    assert len(CountedStore(made).store) == len(made)


def test_a_hidden_section_is_not_shown_through_its_views_and_nothing_is_said_of_it():
    made = pieces()
    hidden = next(piece for piece in made if "flows through Basel" in piece.page_content)
    shown = [piece.model_copy(update={"metadata": {**piece.metadata, "open": piece.id != hidden.id}}) for piece in made]
    for source in (CountedStore(shown), None):
        for expand in (None, "neighbours"):
            retriever = MultiViewRetriever(
                source=source, documents=shown, filters={"open": True}, top_n=9, expand=expand
            )
            found, told = asked(retriever)
            assert hidden.metadata["drillrank_section_id"] not in {
                hit.metadata["drillrank_section_id"] for hit in found
            }
            assert told == []


def test_a_filter_that_shows_nothing_is_told_without_a_name():
    for filter in ({"tenant": "z"}, lambda document: False):
        found, told = asked(MultiViewRetriever(source=CountedStore(two_tenants()), filters=filter))
        assert found == []
        assert len(told) == 1
        assert "filter" in told[0]
        assert not any(piece.id in told[0] for piece in two_tenants())


def test_what_is_no_filter_is_refused():
    with pytest.raises(ValueError, match="filter"):
        MultiViewRetriever(documents=pieces(), filters="tenant")
    with pytest.raises(InvalidInput, match="near"):
        MultiViewRetriever(documents=pieces(), filters={"place": {"$near": 3}})


# Old stores, other splitters' chunks, users' keys


def test_chunks_of_another_splitter_are_ranked_as_they_are_with_one_warning():
    chunks = RecursiveCharacterTextSplitter(chunk_size=80, chunk_overlap=0, add_start_index=True).split_documents(
        [Document(BOOK, metadata={"source": "book.md", "view": "of the lake"})]
    )
    store = CountedStore(chunks)
    for source in (store, store.as_retriever()):
        found, told = asked(MultiViewRetriever(source=source, top_n=2))
        assert "Basel" in found[0].page_content
        assert BOOK[found[0].metadata["start_index"] :].startswith(found[0].page_content)
        assert found[0].metadata["view"] == "of the lake"
        assert len(told) == 1
        assert "did not make" in told[0]


def test_users_keys_survive_and_hide_nothing():
    mine = {
        "view": "of the lake",
        "section_id": "7",
        "section_path": "mine",
        "context": "mine",
        "matched_views": 3,
        "expanded_from": "mine",
        "start_index": 99,
        "source_id": "mine",
    }
    made = pieces(**mine)
    for where in ({"documents": made}, {"source": CountedStore(made)}):
        found, told = asked(MultiViewRetriever(**where, expand="neighbours", top_n=1))
        assert len(found) == 3
        assert told == []
        for hit in found:
            assert mine.items() <= hit.metadata.items()
            assert BOOK[hit.metadata["drillrank_start"] : hit.metadata["drillrank_end"]] == hit.page_content


def test_a_plain_retriever_that_finds_nothing_is_no_reason_to_warn():
    class Nothing(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return []

    assert asked(MultiViewRetriever(source=Nothing())) == ([], [])
