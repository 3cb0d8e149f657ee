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
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document as NodesDocument
from llama_index.core.schema import IndexNode, TextNode, TransformComponent
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

import langchain_ext
from drillrank.errors import DrillrankWarning
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.dictionary_stores import DictionaryStore, pieces, tenant
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.conformance.text_store import TextStore
from tests.examples import examples

VIEWS = ("raw", "keywords", "summary")
SECRET = BOOK.replace("Basel and Cologne", "the secret caves")


def two_tenants(host):
    return [*pieces(host, tenant="a", year=2020), *pieces(host, SECRET, tenant="b", year=2020)]


def id_of(record):
    return record.id if isinstance(record, Document) else record.node_id


def text_of(record):
    return record.page_content if isinstance(record, Document) else record.text


def changed(record, text=None, **metadata):
    update = {"metadata": {**record.metadata, **metadata}}
    if text is not None:
        update["page_content" if isinstance(record, Document) else "text"] = text
    return record.model_copy(update=update)


def of_view(records, view):
    return [record for record in records if record.metadata["drillrank_view"] == view]


def sections(records):
    return {record.metadata["drillrank_section_id"] for record in records}


class CountedStore(InMemoryVectorStore):
    """Counts what it is asked."""

    def __init__(self, embedding):
        super().__init__(embedding)
        self.asked = Counter()

    def similarity_search_by_vector(self, embedding, k=4, **kwargs):
        self.asked["search"] += 1
        return super().similarity_search_by_vector(embedding, k, **kwargs)

    def get_by_ids(self, ids):
        self.asked["records"] += 1
        return super().get_by_ids(ids)

    async def aget_by_ids(self, ids):
        return self.get_by_ids(ids)


class Held:
    """An index over vectors with a document store, or over a store of texts, or a vector store; and what it holds."""

    def __init__(self, kind, records):
        self.kind, self.host = kind, HOSTS[kind]
        if self.host is LangChain:
            self.embedding = LangChain.embedding()
            self.store = CountedStore(self.embedding)
            self.store.add_documents(list(records))
            return
        self.embedding, self.store = LlamaIndex.embedding(), TextStore(nested=True)
        storage = StorageContext.from_defaults(vector_store=self.store) if kind == "texts" else None
        self.index = VectorStoreIndex(records, embed_model=self.embedding, storage_context=storage)

    def records(self):
        if self.host is LangChain:
            return {
                id_: Document(entry["text"], id=id_, metadata=entry["metadata"])
                for id_, entry in self.store.store.items()
            }
        if self.kind == "texts":
            return self.store.held()
        return {id_: self.index.docstore.docs[id_] for id_ in self.index.vector_store.data.embedding_dict}

    def change(self, record):
        if self.host is LangChain:
            self.store.store[record.id] |= {"text": record.page_content, "metadata": record.metadata}
        elif self.kind == "texts":
            self.store.change(record)
        else:
            self.index.docstore.add_documents([record])

    def delete(self, *ids):
        if self.host is LangChain:
            self.store.delete(list(ids))
        else:
            (self.store if self.kind == "texts" else self.index).delete_nodes(list(ids))

    @property
    def source(self):
        return self.store if self.host is LangChain else self.index

    def retriever(self, filters=None):
        """The host's, with a filter of its own: declared, or for LangChain's store in memory a function."""
        if self.host is LlamaIndex:
            return self.index.as_retriever(similarity_top_k=40, filters=filters)
        return self.store.as_retriever(search_kwargs={"k": 40, **({} if filters is None else {"filter": filters})})

    def sources(self):
        return self.source, self.retriever()


HOSTS = {"vectors": LlamaIndex, "texts": LlamaIndex, "langchain": LangChain}
kinds = pytest.mark.parametrize("kind", HOSTS)


def asked(host, documents=None, question=QUESTION, **fields):
    """What a retriever finds and warns of, the same sync and async."""
    retriever = host.ext.MultiViewRetriever(documents, **fields)
    retrieve, aretrieve = (
        (retriever.retrieve, retriever.aretrieve) if host is LlamaIndex else (retriever.invoke, retriever.ainvoke)
    )
    outcomes, told = [], []
    for ask in (retrieve, lambda question: asyncio.run(aretrieve(question))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcomes.append(ask(question))
        told.append([str(warning.message) for warning in caught if warning.category is DrillrankWarning])
    first, second = ([hit.model_dump() for hit in found] for found in outcomes)
    assert first == second
    assert {*told[1]} <= {*told[0]}  # some things are told once
    return [hit if host is LangChain else hit.node for hit in outcomes[0]], told[0]


def texts(found):
    return [text_of(record) for record in found]


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_every_result_s_text_is_what_the_store_holds_at_that_moment(data):
    kind = data.draw(st.sampled_from([*HOSTS]))
    made = pieces(HOSTS[kind])
    held = Held(kind, made)
    beside = data.draw(st.sampled_from([[], made]))
    source = held.sources()[data.draw(st.integers(0, 1))]
    expand = data.draw(st.sampled_from([None, "neighbours", "parent"]))
    for step in range(3):
        id_ = id_of(data.draw(st.sampled_from(made)))
        change = data.draw(st.sampled_from(["redact", "delete", "retag"]))
        record = held.records().get(id_)
        if record is not None and change == "delete":
            held.delete(id_)
        elif record is not None:
            held.change(changed(record, f"Redacted {step}.") if change == "redact" else changed(record, tag="x"))
        found, _ = asked(held.host, beside, source=source, top_n=3, expand=expand)
        for hit in found:
            now = held.records()[id_of(hit)]
            assert now.metadata["drillrank_view"] == "raw"
            if "drillrank_expanded_from" not in hit.metadata:
                assert text_of(hit) == text_of(now)
                assert hit.metadata.items() >= now.metadata.items()
            rest = text_of(hit)
            for text in sorted(texts(of_view(held.records().values(), "raw")), key=len, reverse=True):
                rest = rest.replace(text, "")
            assert not rest.strip()


class Redact(TransformComponent):
    """A later step of the pipeline, which sees raw nodes only."""

    def __call__(self, nodes, **keywords):
        return [redacted(node) if node.metadata["drillrank_view"] == "raw" else node for node in nodes]


def redacted(record):
    return changed(record, text_of(record).replace("Cologne", "[...]"))


@kinds
def test_a_view_is_a_reference_that_nothing_redacted_comes_back_through(kind):
    made = pieces(HOSTS[kind])
    if HOSTS[kind] is LlamaIndex:
        held = Held(kind, IngestionPipeline(transformations=[Redact()]).run(nodes=made))
    else:
        held = Held(kind, made)
        for record in of_view(made, "raw"):
            held.change(redacted(record))
    for source in held.sources():
        for beside in (None, made):
            found, _ = asked(held.host, beside, source=source, top_n=9)
            assert any("[...]" in text for text in texts(found))
            assert not any("Cologne" in str(record.model_dump()) for record in found)


def test_a_copy_that_a_view_carries_is_not_what_is_found():
    view = IndexNode(text="The view.", id_="5", index_id="1", obj=TextNode(text="Of another day.", id_="1"))
    retriever = LlamaIndex.ext.D3Retriever(source=VectorStoreIndex([view], embed_model=LlamaIndex.embedding()))
    assert [one.text for one in LlamaIndex.both(retriever, "What does the view show?")] == ["The view."]


@kinds
def test_a_section_whose_raw_record_is_deleted_is_left_out_and_told(kind):
    made = pieces(HOSTS[kind])
    gone = next(record for record in of_view(made, "raw") if "flows through Basel" in text_of(record))
    held = Held(kind, made)
    held.delete(id_of(gone))
    for source in held.sources():
        found, told = asked(held.host, made, source=source, top_n=9)
        assert len(found) == len(sections(made)) - 1
        assert text_of(gone) not in texts(found)
        assert "no longer in the store" in "".join(told)


@kinds
def test_stale_records_give_way(kind):
    held = Held(kind, pieces(HOSTS[kind], BOOK.replace("Basel and Cologne", "Basel and Strasbourg")))
    found, told = asked(held.host, pieces(held.host), source=held.source, expand="neighbours")
    assert set(texts(found)) <= set(texts(held.records().values()))
    assert told == []


@both_frameworks
def test_documents_stand_in_where_no_store_can_be_asked_unless_they_differ(host):
    made = pieces(host, version=1)
    keywords = of_view(made, "keywords")
    fields = {"source": {"keywords": host.finds(lambda question: keywords)}, "top_n": 9}
    found, told = asked(host, made, **fields)
    assert sections(found) == sections(keywords)
    assert told == []
    found, told = asked(host, pieces(host, version=2), **fields)
    assert found == []
    assert len(told) == 1
    found, told = asked(host, **fields)
    assert found == []
    assert "pass documents" in told[0]


@kinds
def test_one_embedding_three_searches_and_one_look_up(kind):
    held = Held(kind, pieces(HOSTS[kind]))
    for expand, look_ups in ((None, 1), ("neighbours", 2)):
        held.store.asked.clear()
        held.embedding.questions.clear()
        held.host.retrieve(held.host.ext.MultiViewRetriever(source=held.source, top_n=2, expand=expand), QUESTION)
        assert len(held.embedding.questions) == 1
        if kind != "vectors":
            assert held.store.asked["search"] == 3
            assert held.store.asked["records"] <= look_ups


def test_a_store_that_the_host_s_index_filled_is_searched_as_often():
    held, records = Held("langchain", []), InMemoryRecordManager("book")
    records.create_schema()
    made = pieces(LangChain, source="book.md")
    index(made, records, held.store, cleanup="full", source_id_key="source", key_encoder="sha256")
    held.store.asked.clear()
    held.embedding.questions.clear()
    assert len(langchain_ext.MultiViewRetriever(source=held.store, top_n=2).invoke(QUESTION)) == 2
    assert held.store.asked["search"] <= 3
    assert held.store.asked["records"] <= 1
    assert len(held.embedding.questions) == 1


# Filters


def only_a(record):
    return record.metadata["tenant"] == "a"


FILTERS = {
    LlamaIndex: [
        MetadataFilters(filters=[tenant()]),
        MetadataFilters(filters=[MetadataFilter(key="tenant", value=["a", "c"], operator=FilterOperator.IN)]),
        MetadataFilters(
            filters=[
                MetadataFilter(key="year", value=2000, operator=FilterOperator.GTE),
                MetadataFilters(filters=[tenant("z"), tenant()], condition=FilterCondition.OR),
            ]
        ),
        only_a,
    ],
    LangChain: [
        {"tenant": "a"},
        {"tenant": {"$in": ["a", "c"]}},
        {"$and": [{"tenant": {"$ne": "b"}}, {"year": {"$gte": 2000}}]},
        only_a,
    ],
}


@kinds
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("how", ["memory", "store", "retriever", "inherited", "by view"])
def test_one_filter_governs_every_look_up(kind, number, how):
    if kind == "vectors" and number == 2 and how != "memory":
        pytest.skip("SimpleVectorStore takes no filters inside filters, and says so")
    host, filters = HOSTS[kind], FILTERS[HOSTS[kind]][number]
    made = two_tenants(host)
    held = Held(kind, made)
    # A filter of the source's own.
    inherited = only_a if host is LangChain else MetadataFilters(filters=[tenant()]) if callable(filters) else filters

    def by_view(view):
        if host is LangChain:
            return held.retriever(lambda found: only_a(found) and found.metadata["drillrank_view"] == view)
        one = MetadataFilter(key="drillrank_view", value=view)
        return held.retriever(MetadataFilters(filters=[*inherited.filters, one]))

    where = {
        "memory": lambda: {"documents": made, "filters": filters},
        "store": lambda: {"source": held.source, "filters": filters},
        "retriever": lambda: {"source": held.retriever(), "filters": filters},
        "inherited": lambda: {"source": held.retriever(inherited)},
        "by view": lambda: {"source": {view: by_view(view) for view in VIEWS}, "documents": made},
    }[how]()
    for expand in (None, "neighbours", "parent"):
        found, told = asked(host, **where, expand=expand, top_n=9, question="Where are the secret caves?")
        assert {record.metadata["tenant"] for record in found} == {"a"}
        if expand != "parent":
            assert len(found) == len(sections(made)) / 2
        assert not any("secret" in str(record.model_dump()) for record in found)
        assert told == []


@pytest.mark.parametrize("expand", [None, "neighbours"])
@pytest.mark.parametrize("filters", FILTERS[LangChain])
def test_a_store_that_can_do_little_is_searched_by_metadata_and_its_results_are_checked(filters, expand):
    store = DictionaryStore(
        [*pieces(LangChain, SECRET * 3, tenant="b", year=2020), *pieces(LangChain, tenant="a", year=2020)]
    )
    question = "the secret caves of Basel"
    found, told = asked(LangChain, source=store, filters=filters, top_n=2, expand=expand, question=question)
    assert len(found) >= 2
    assert {record.metadata["tenant"] for record in found} == {"a"}
    assert told == []
    # Of each view, without a view, and perhaps all of a document; more only where the store cannot filter.
    assert (len({k for k in store.searched if k < 10_000}) > 2) is callable(filters)


class CarelessStore(DictionaryStore):
    """Takes any filter and heeds none."""

    def similarity_search(self, query, k=4, filter=None, **kwargs):
        return super().similarity_search(query, k)


def test_a_store_that_heeds_no_filter_is_checked_all_the_same():
    store = CarelessStore(two_tenants(LangChain))
    for filters in ({"tenant": "a"}, only_a):
        found, _ = asked(LangChain, source=store, filters=filters, top_n=3, expand="neighbours")
        assert found
        assert all(BOOK[hit.metadata["drillrank_start"] :].startswith(hit.page_content) for hit in found)
        assert {(hit.metadata["tenant"], hit.metadata["drillrank_view"]) for hit in found} == {("a", "raw")}


@kinds
def test_a_neighbour_that_the_store_has_deleted_is_not_lent_by_documents(kind):
    made = pieces(HOSTS[kind])
    gone = next(record for record in of_view(made, "raw") if "Thames flows" in text_of(record))
    held = Held(kind, made)
    held.delete(*(id_of(record) for record in made if sections([record]) == sections([gone])))
    for expand in ("neighbours", "parent"):
        [hit], told = asked(held.host, made, source=held.source, top_n=1, expand=expand)
        assert text_of(hit) == BOOK[: BOOK.index("## The Thames")]
        assert "not complete" in "".join(told)


@both_frameworks
def test_neighbours_are_not_lent_by_a_document_that_has_changed(host):
    later = pieces(host, BOOK.replace("Basel and Cologne", "Basel and Strasbourg"))
    rhine = next(record for record in of_view(later, "raw") if "Strasbourg" in text_of(record))
    source = host.finds(lambda question: [rhine])
    found, told = asked(host, pieces(host), source=source, expand="neighbours")
    assert texts(found) == [text_of(rhine)]
    assert any("not complete" in line for line in told)
    [hit], told = asked(host, later, source=source, expand="neighbours")
    assert "Strasbourg" in text_of(hit)
    assert "Thames" in text_of(hit)
    assert told == []


@both_frameworks
def test_what_is_given_is_under_the_component_s_filter_too(host):
    made = two_tenants(host)
    source = host.finds(lambda question: of_view(made, "keywords"))
    found, _ = asked(host, made, source=source, filters=host.filters(tenant="a"), top_n=9)
    assert {record.metadata["tenant"] for record in found} == {"a"}
    marked = [changed(record, open=str(record not in of_view(made, "raw"))) for record in made]
    views = [record for record in marked if record.metadata["open"] == "True"]
    source = host.finds(lambda question: views)
    assert asked(host, marked, source=source, filters=host.filters(open="True"))[0] == []


@both_frameworks
def test_marks_of_an_earlier_question_do_not_stay(host):
    first, _ = asked(host, pieces(host), top_n=1, expand="neighbours")
    [again], _ = asked(host, source=host.finds(lambda question: first), top_n=1)
    assert "drillrank_expanded_from" not in again.metadata
    assert again.metadata["drillrank_matched_views"] == "raw:1"


@both_frameworks
def test_two_tenants_with_equal_ids_in_one_store(host):
    made = two_tenants(host)
    assert len(set(map(id_of, made))) == len(made)
    assert {record.metadata["drillrank_namespace"] for record in made} == {"a", "b"}
    documents = {getattr(record, "ref_doc_id", record.metadata.get("drillrank_source_id")) for record in made}
    assert documents == {"book"}


@kinds
def test_a_hidden_section_is_not_shown_through_its_views_and_nothing_is_said_of_it(kind):
    host = HOSTS[kind]
    made = pieces(host)
    hidden = next(record for record in of_view(made, "raw") if "flows through Basel" in text_of(record))
    shown = [changed(record, open=str(record is not hidden)) for record in made]
    for source in (*Held(kind, shown).sources(), None):
        for expand in (None, "neighbours", "parent"):
            fields = {"source": source, "filters": host.filters(open="True"), "top_n": 9, "expand": expand}
            found, told = asked(host, shown, **fields)
            assert found
            assert sections([hidden]).isdisjoint(sections(found))
            assert not any("flows through Basel" in text for text in texts(found))
            assert told == []


@kinds
def test_a_filter_that_shows_nothing_is_told_without_a_name(kind):
    made = two_tenants(HOSTS[kind])
    held = Held(kind, made)
    for filters in (held.host.filters(tenant="z"), lambda record: False):
        found, told = asked(held.host, source=held.source, filters=filters)
        assert found == []
        assert len(told) == 1
        assert "filter" in told[0]
        assert not any(id_of(record) in told[0] for record in made)


# Other splitters' chunks, users' keys


@kinds
def test_chunks_of_another_splitter_are_ranked_as_they_are_with_one_warning(kind):
    metadata = {"view": "of the lake"}
    if HOSTS[kind] is LlamaIndex:
        chunks = SentenceSplitter(chunk_size=40, chunk_overlap=0)([NodesDocument(text=BOOK, metadata=metadata)])
    else:
        splitter = RecursiveCharacterTextSplitter(chunk_size=80, chunk_overlap=0, add_start_index=True)
        chunks = splitter.split_documents([Document(BOOK, metadata={"source": "book.md", **metadata})])
    held = Held(kind, chunks)
    for source in held.sources():
        found, told = asked(held.host, source=source, top_n=2, expand="neighbours")
        assert "Basel" in text_of(found[0])
        assert len(found) > 1
        assert set(texts(found)) <= set(texts(chunks))
        assert found[0].metadata["view"] == "of the lake"
        assert len(told) == 1
        assert "did not make" in told[0]


@kinds
def test_users_keys_survive_and_hide_nothing(kind):
    names = ("view", "section_id", "section_path", "context", "matched_views", "expanded_from", "source_id")
    mine = dict.fromkeys(names, "mine") | ({"start_index": 99} if HOSTS[kind] is LangChain else {})
    made = pieces(HOSTS[kind], **mine)
    for where in ({"documents": made}, {"source": Held(kind, made).source}):
        found, told = asked(HOSTS[kind], **where, expand="neighbours", top_n=1)
        assert len(found) == 1
        assert told == []
        for hit in found:
            assert mine.items() <= hit.metadata.items()
            assert BOOK[hit.metadata["drillrank_start"] : hit.metadata["drillrank_end"]] == text_of(hit)
            if HOSTS[kind] is LlamaIndex:
                read = hit.get_content(metadata_mode="llm") + hit.get_content(metadata_mode="embed")
                assert "drillrank" not in read
