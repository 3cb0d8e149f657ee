"""What users of the two hosts met: each fault with the hosts' own classes."""

from __future__ import annotations

import asyncio
import base64
import functools
import inspect
import re
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import TextSplitter
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, Settings, StorageContext, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import ImageDocument, ImageNode, IndexNode, NodeWithScore, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

import langchain_ext
import llama_index_ext
from drillrank.errors import DrillrankWarning, InvalidInput

A, B = "# Rent\n\nThe rent of house A is 100 francs.", "# Rent\n\nThe rent of house B is 200 francs."
QUESTION = "What is the rent?"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def lc(*texts: str, **metadata: Any) -> list[Document]:
    return [Document(text, id=str(place), metadata=dict(metadata)) for place, text in enumerate(texts)]


def li(*texts: str, **metadata: Any) -> list[LlamaDocument]:
    return [LlamaDocument(text=text, id_=str(place), metadata=dict(metadata)) for place, text in enumerate(texts)]


# 1. Identity


@pytest.mark.parametrize(
    ("make", "ask"),
    [
        (lambda text: langchain_ext.D3Retriever(lc(text)), lambda one: one.invoke(QUESTION)[0].page_content),
        (lambda text: llama_index_ext.D3Retriever(li(text)), lambda one: one.retrieve(QUESTION)[0].get_content()),
    ],
)
def test_a_memo_of_answers_tells_two_retrievers_apart(make, ask):
    asked = functools.lru_cache(ask)
    one, other = make(A), make(B)
    assert one != other
    assert ("house A" in asked(one), "house B" in asked(other)) == (True, True)


# 2. Assignment


class Labelled(llama_index_ext.D3Retriever):
    """A subclass with a constructor of its own."""

    def __init__(self, label, documents):
        super().__init__(documents)
        self.label = label
        self.asked = 0

    def _retrieve(self, query_bundle):
        self.asked += 1
        return super()._retrieve(query_bundle)


def test_a_subclass_with_its_own_constructor_keeps_its_state_in_an_engine():
    mine = Labelled("x", li(A, B))
    engine = RetrieverQueryEngine.from_args(mine, llm=MockLLM(), callback_manager=CallbackManager())
    engine.query(QUESTION)
    engine.query(QUESTION)
    assert (mine.label, mine.asked) == ("x", 2)


class LabelledToo(langchain_ext.D3Retriever):
    """As `Labelled`, in LangChain."""

    label: str = "none"


def test_tags_and_names_of_a_retriever_cost_nothing_and_documents_count():
    retriever = LabelledToo(lc(*[A] * 50), label="x")
    before = retriever.core
    retriever.tags, retriever.name, retriever.top_n = ["a"], "mine", 1
    assert retriever.core is before
    assert len(retriever.invoke(QUESTION)) == 1
    retriever.documents = lc(B)
    assert "house B" in retriever.invoke(QUESTION)[0].page_content
    assert retriever.label == "x"


def test_no_update_is_lost_where_a_host_assigns_its_manager():
    reranker, stop, lost = llama_index_ext.UPRRerank(), threading.Event(), 0

    def host():
        while not stop.is_set():
            reranker.callback_manager = CallbackManager()

    thread = threading.Thread(target=host)
    thread.start()
    for number in range(1, 300):
        reranker.top_n = number
        time.sleep(0)
        lost += reranker.top_n != number
    stop.set()
    thread.join()
    assert lost == 0


def test_the_memory_of_an_llm_outlives_the_settings_of_the_host(monkeypatch):
    asked = []

    class Writes(MockLLM):
        def complete(self, prompt, **kwargs):
            asked.append(prompt)
            return super().complete(prompt, **kwargs)

    monkeypatch.setattr(Settings, "_callback_manager", CallbackManager())
    monkeypatch.setattr(Settings, "_node_parser", llama_index_ext.MultiViewNodeParser(llm=Writes(max_tokens=3)))
    Settings.node_parser(li(A))
    first = len(asked)
    Settings.node_parser(li(A))
    assert (first > 0, len(asked)) == (True, first)


# 4. and 6. Async


@pytest.mark.parametrize("where", ["documents", "reranker"])
def test_an_asynchronous_runnable_is_awaited(where):
    async def finds(question):
        await asyncio.sleep(0)
        return lc(A, B)

    retriever = RunnableLambda(finds)
    if where == "reranker":
        reranker = langchain_ext.PromptRankRerank(source=retriever)
        assert asyncio.run(reranker.acompress_documents(lc(A), QUESTION))
    else:
        assert asyncio.run(langchain_ext.PromptRankRetriever(source=retriever).ainvoke(QUESTION))


class Only(BaseRetriever):
    """Counts who is asked."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def _retrieve(self, query_bundle):
        self.calls.append("sync")
        return [NodeWithScore(node=TextNode(text=A, id_="a"), score=1.0)]

    async def _aretrieve(self, query_bundle):
        self.calls.append("async")
        return [NodeWithScore(node=TextNode(text=A, id_="a"), score=1.0)]


def test_a_reranker_awaits_the_retriever_of_llama_index():
    only = Only()
    reranker = llama_index_ext.PromptRankRerank(source=only)
    nodes = [NodeWithScore(node=TextNode(text=B, id_="b"), score=1.0)]
    asyncio.run(reranker.apostprocess_nodes(nodes, query_str=QUESTION))
    assert set(only.calls) == {"async"}


class Duck:
    """Has the methods of a retriever, and no more."""

    def retrieve(self, query):
        return [NodeWithScore(node=TextNode(text=A, id_="a"), score=1.0)]


@pytest.mark.parametrize("cls", [llama_index_ext.D3Retriever, llama_index_ext.PromptRankRetriever])
def test_what_retrieves_is_a_retriever(cls):
    retriever = cls(source=Duck())
    assert "house A" in retriever.retrieve(QUESTION)[0].get_content()
    assert "house A" in asyncio.run(retriever.aretrieve(QUESTION))[0].get_content()


def test_a_time_limit_of_a_search_hides_nothing():
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(lc(A, B, source="lease.md"))
    source = store.as_retriever(search_kwargs={"k": 2})
    source.search_kwargs["timeout"] = 5
    store.similarity_search = functools.partial(
        lambda search, *a, timeout=None, **k: search(*a, **k), store.similarity_search
    )
    assert langchain_ext.PromptRankRetriever(lc(A), source=source).invoke(QUESTION)
    index = VectorStoreIndex([TextNode(text=A, id_="a")], embed_model=MockEmbedding(8))
    limited = index.as_retriever(vector_store_kwargs={"timeout": 5})
    assert llama_index_ext.PromptRankRetriever([TextNode(text=A, id_="a")], source=limited).retrieve(QUESTION)


# 5. The caller's own


def test_the_caller_s_list_may_grow_and_results_share_nothing_with_the_caller():
    documents = li(A, page={"number": 1})
    retriever = llama_index_ext.D3Retriever(documents)
    documents.extend(li(B))
    found = retriever.retrieve(QUESTION)[0].node
    assert "house A" in found.get_content()
    found.metadata["page"]["number"] = 2
    assert documents[0].metadata["page"] == {"number": 1}
    nodes = [NodeWithScore(node=TextNode(text=text, id_=text, metadata={"page": {"number": 1}})) for text in (A, B)]
    reranker = llama_index_ext.UPRRerank(settings={"keep_retrieval_score": True})
    reranker.postprocess_nodes(nodes, query_str=QUESTION)[0].node.metadata["page"]["number"] = 2
    assert all(one.node.metadata["page"] == {"number": 1} for one in nodes)
    given = lc(A, B, page={"number": 1})
    langchain_ext.UPRRerank().compress_documents(given, QUESTION)[0].metadata["page"]["number"] = 2
    assert all(one.metadata["page"] == {"number": 1} for one in given)


# 6. Images


def test_an_image_keeps_its_image(tmp_path):
    image = tmp_path / "plan.png"
    image.write_bytes(base64.b64decode(PIXEL))
    nodes = llama_index_ext.MultiViewNodeParser()([ImageDocument(text=A, image_path=str(image), id_="a")])
    raw = [node for node in nodes if node.metadata["drillrank_view"] == "raw"]
    assert [(type(node), node.image_path) for node in raw] == [(ImageNode, str(image))]


# 6. What an index points to


@pytest.mark.parametrize("component", ["D3Retriever", "MultiViewRetriever", "PromptRankRetriever"])
@pytest.mark.parametrize("filters", [None, lambda node: node.metadata["tenant"] == "a"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_object_of_an_index_is_what_its_pointer_leads_to(component, filters, asynchronous):
    objects = [
        IndexNode(
            text=f"Summary of lease {tenant}.",
            index_id=tenant,
            obj=TextNode(text=text, id_=tenant, metadata={"tenant": tenant}),
            metadata={"tenant": "a"},  # what a pointer says counts no more than what its object says
        )
        for tenant, text in (("a", A), ("b", B))
    ]
    index = VectorStoreIndex(objects=objects, embed_model=MockEmbedding(8))
    source = index.as_retriever() if component == "PromptRankRetriever" else index
    retriever = getattr(llama_index_ext, component)(source=source, filters=filters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MultiViewRetriever: of chunks that are no sections
        found = asyncio.run(retriever.aretrieve(QUESTION)) if asynchronous else retriever.retrieve(QUESTION)
    texts = " ".join(hit.get_content() for hit in found)
    assert ("house A" in texts, "house B" in texts, "Summary" in texts) == (True, filters is None, False)


# 7. Splitters, made once, warnings


def test_the_splitter_is_the_child_splitter_of_a_parents_retriever():
    splitter = langchain_ext.MultiViewTextSplitter()
    assert isinstance(splitter, TextSplitter)
    parents = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(DeterministicFakeEmbedding(size=8)),
        docstore=InMemoryStore(),
        child_splitter=splitter,
    )
    parents.add_documents(lc(A, B))
    assert "house" in parents.invoke(QUESTION)[0].page_content
    assert splitter.split_text(A)[0] == A


def test_four_callers_at_once_of_a_configured_retriever_build_one_index(monkeypatch):
    made = []

    class Counted(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            made.append(len(texts))
            time.sleep(0.05)
            return super().embed_documents(texts)

    pieces = langchain_ext.MultiViewTextSplitter().split_documents(lc(A, B))
    retriever = langchain_ext.MultiViewRetriever(pieces, embed=Counted(size=8))
    first = len(made)
    configured = retriever.configurable_fields(top_n=ConfigurableField(id="top_n"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: configured.with_config(configurable={"top_n": k}).invoke(QUESTION), [1, 2, 1, 2]))
    assert len(made) - first <= 8  # questions alone


def test_a_warning_points_to_the_user_s_line():
    reranker = langchain_ext.UPRRerank(settings={"score_threshold": 0.5})
    for warned in (
        lambda: reranker.compress_documents(lc(A), QUESTION),
        lambda: langchain_ext.MultiViewRetriever(lc(A)),
        lambda: llama_index_ext.MultiViewRetriever([TextNode(text=A)]),
    ):
        with pytest.warns(DrillrankWarning) as caught:
            warned()
        assert {one.filename for one in caught} == {__file__}


# 8. Type checks


@pytest.mark.parametrize("host", [langchain_ext, llama_index_ext])
def test_signatures_show_plain_types_and_defaults(host):
    """What type checkers say of a user's file: `tests/typed`."""
    for name in host.__all__:
        shown = str(inspect.signature(getattr(host, name)))
        assert not re.search(r"InstanceOf|Validator|Gt\(|<function|PydanticUndefined", shown), shown
        assert "settings" not in shown or "settings: " in shown


# 9. and 10. Scores on other scales


class Distances(SimpleVectorStore):
    """Says that it scores with distances."""

    similarity_metric: str = "L2"


def test_a_store_of_distances_is_no_store_of_cosines():
    def built(store):
        context = StorageContext.from_defaults(vector_store=store)
        index = VectorStoreIndex([TextNode(text=A)], embed_model=MockEmbedding(8), storage_context=context)
        return llama_index_ext.BRMGRRetriever(index.as_retriever(), MockLLM(max_tokens=3), prior="cosine")

    assert built(SimpleVectorStore()).retrieve(QUESTION)
    with pytest.warns(DrillrankWarning, match="Distances makes them from distances"):
        built(Distances())


# 11. Attacks


def test_a_path_of_headings_takes_no_longer_than_it_is_long():
    nodes = [TextNode(text="Rent.", id_=str(n), metadata={"header_path": "/" * n + "a"}) for n in (3, 2_000, 200_000)]
    started = time.perf_counter()
    for node in nodes:
        node.relationships = {}
    llama_index_ext.D3Retriever(nodes).retrieve(QUESTION)
    assert time.perf_counter() - started < 20


def test_what_is_stored_as_generated_is_retrieved_all_the_same():
    poisoned = lc(A, drillrank_origin="generated") + lc("Emma is a novel.")
    llm = FakeListChatModel(responses=["Nothing."])
    found = langchain_ext.BRMGRRetriever(RunnableLambda(lambda question: poisoned), llm, n_generated=1, top_n=3)
    origins = {one.page_content: one.metadata.get("drillrank_origin") for one in found.invoke(QUESTION)}
    assert origins[A] is None
    assert origins["Nothing."] == "generated"


def test_filters_of_many_wildcards_and_many_levels_are_quick_or_refused():
    like = {"title": {"$like": "%a" * 12 + "%"}}
    documents = lc(A, title="a" * 2_000 + "b")
    found = langchain_ext.D3Retriever(documents, filters=like).invoke(QUESTION)
    assert found
    deep: Any = {"tenant": "a"}
    inner: Any = MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")])
    for _ in range(2_000):
        deep = {"$and": [deep]}
    for _ in range(100):
        inner = MetadataFilters(filters=[inner])
    with pytest.raises(InvalidInput, match="deep"):
        langchain_ext.D3Retriever(documents, filters=deep)
    with pytest.raises(InvalidInput, match="deep"):
        llama_index_ext.D3Retriever(li(A), filters=inner)


def test_a_stored_score_that_is_no_number_is_none():
    documents = lc(A, relevance_score="best") + lc(B, relevance_score=float("nan"))
    assert len(langchain_ext.UPRRerank().compress_documents(documents, QUESTION)) == 2


@pytest.mark.parametrize("name", ["D3Retriever", "MultiViewRetriever", "PromptRankRetriever"])
@pytest.mark.parametrize("filters", [{"tenant": "a"}, lambda document: document.metadata["tenant"] == "a"])
def test_the_scores_of_a_tenant_tell_nothing_of_another_s_words(name, filters):
    mine = lc(A, "# Notice\n\nNotice is three months.", tenant="a")
    theirs = [Document("# Rent\n\nRent rent rent.", id=f"b{n}", metadata={"tenant": "b"}) for n in range(9)]
    if name == "MultiViewRetriever":
        split = langchain_ext.MultiViewTextSplitter().split_documents
        mine, theirs = split(mine), split(theirs)
    extra = {"source": RunnableLambda(lambda question: mine[:1])} if name == "PromptRankRetriever" else {}

    def scores(documents, filters):
        retriever = getattr(langchain_ext, name)(documents, filters=filters, top_n=9, **extra)
        return [(one.page_content, one.metadata["relevance_score"]) for one in retriever.invoke(QUESTION)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scores(mine + theirs, filters) == scores(mine, None)
