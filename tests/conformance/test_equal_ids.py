"""Given documents of two tenants may have equal ids: a filter decides first, and only what it shows may not clash."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

import langchain_ext
import llama_index_ext
from drillrank import load_language_model
from drillrank.errors import InvalidInput
from tests.conformance import langchain_leaks, llama_index_leaks

QUESTION = "What is the code of the harbour door?"
SECRET = "9876"
TEXTS = {
    "a": "# Doors\n\nThe code of the harbour is 1234.\n",
    "b": f"# Doors\n\nThe code of the harbour is {SECRET}.\n",
}
MINE = MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")])


def mine(record: Any) -> bool:
    return record.metadata["tenant"] == "a"


def documents(tenants: str = "ba") -> list[LangChainDocument]:
    return [LangChainDocument(TEXTS[one], id="guide", metadata={"tenant": one, "title": "Doors"}) for one in tenants]


def nodes(tenants: str = "ba") -> list[BaseNode]:
    return [TextNode(text=TEXTS[one], id_="guide", metadata={"tenant": one, "title": "Doors"}) for one in tenants]


def wholes(tenants: str = "ba") -> list[Document]:
    return [Document(text=TEXTS[one], id_="guide", metadata={"tenant": one}) for one in tenants]


def views(tenants: str = "ba") -> list[BaseNode]:
    return [node for one in wholes(tenants) for node in llama_index_ext.MultiViewNodeParser()([one])]


def split(tenants: str = "ba") -> list[LangChainDocument]:
    return langchain_ext.MultiViewTextSplitter().split_documents(documents(tenants))


def one_by_one(tenants: str) -> list[LangChainDocument]:
    """Cut apart, so that sections of two tenants have one id."""
    return [piece for one in tenants for piece in split(one)]


def finds(question: str) -> list[LangChainDocument]:
    return documents("a")


def store(tenants: str = "a") -> InMemoryVectorStore:
    filled = InMemoryVectorStore(langchain_leaks.Words())
    filled.add_documents(documents(tenants))
    return filled


def index() -> VectorStoreIndex:
    return VectorStoreIndex(nodes("a"), embed_model=llama_index_leaks.Words())


def summaries(question: str) -> list[LangChainDocument]:
    """Views of tenant a's sections, in a store that nobody can ask for the sections."""
    return [piece for piece in split("a") if piece.metadata["drillrank_view"] == "summary"]


class Summaries(BaseRetriever):
    """As `summaries`."""

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [NodeWithScore(node=node) for node in views("a") if node.metadata["drillrank_view"] == "summary"]


IN_LANGCHAIN: dict[str, Callable[[Any], Runnable]] = {
    "d3": lambda filter: langchain_ext.D3Retriever(documents=documents(), filters=filter),
    "d3 over sections": lambda filter: langchain_ext.D3Retriever(documents=split(), filters=filter),
    "views": lambda filter: langchain_ext.MultiViewRetriever(documents=split(), filters=filter),
    "views lent": lambda filter: langchain_ext.MultiViewRetriever(
        source=summaries, documents=one_by_one("ab"), filters=filter
    ),
    "paths": lambda filter: langchain_ext.PromptRankRetriever(source=finds, documents=documents(), filters=filter),
    "paths behind a store": lambda filter: langchain_ext.PromptRankRetriever(
        source=store().as_retriever(), documents=documents(), filters=filter
    ),
}
IN_LLAMA_INDEX: dict[str, Callable[[Any], Any]] = {
    "d3": lambda filters: llama_index_ext.D3Retriever(wholes(), filters=filters),
    "d3 over sections": lambda filters: llama_index_ext.D3Retriever(views(), filters=filters),
    "views": lambda filters: llama_index_ext.MultiViewRetriever(views(), filters=filters),
    "views lent": lambda filters: llama_index_ext.MultiViewRetriever(views("ab"), source=Summaries(), filters=filters),
    "paths behind an index": lambda filters: llama_index_ext.PromptRankRetriever(
        source=index().as_retriever(), documents=nodes(), filters=filters
    ),
}


def texts_of(found: Sequence[Any]) -> list[str]:
    return [one.page_content if isinstance(one, LangChainDocument) else one.node.get_content() for one in found]


@pytest.mark.parametrize("build", IN_LANGCHAIN.values(), ids=IN_LANGCHAIN)
@pytest.mark.parametrize("filter", [{"tenant": "a"}, mine], ids=["dictionary", "function"])
def test_langchain_sees_the_one_that_the_filter_shows(build: Callable[[Any], Runnable], filter: Any):
    retriever = build(filter)
    for found in (retriever.invoke(QUESTION), asyncio.run(retriever.ainvoke(QUESTION))):
        assert any("1234" in text for text in texts_of(found))
        assert SECRET not in repr(found)


@pytest.mark.parametrize("build", IN_LLAMA_INDEX.values(), ids=IN_LLAMA_INDEX)
@pytest.mark.parametrize("filters", [MINE, mine], ids=["declared", "function"])
def test_llama_index_sees_the_one_that_the_filters_show(build: Callable[[Any], Any], filters: Any):
    retriever = build(filters)
    for found in (retriever.retrieve(QUESTION), asyncio.run(retriever.aretrieve(QUESTION))):
        assert any("1234" in text for text in texts_of(found))
        assert SECRET not in repr(found)


def test_the_filter_of_the_source_decides_as_well():
    source = store("a").as_retriever(search_kwargs={"filter": mine})
    found = langchain_ext.PromptRankRetriever(source=source, documents=documents()).invoke(QUESTION)
    assert texts_of(found) == [TEXTS["a"]]
    filtered = index().as_retriever(filters=MINE)
    assert texts_of(llama_index_ext.PromptRankRetriever(source=filtered, documents=nodes()).retrieve(QUESTION)) == [
        TEXTS["a"]
    ]


def test_who_asks_may_change_from_question_to_question():
    """One component for both tenants: what it has prepared for one is not shown to the other."""
    start = LangChainDocument("See the Doors.", id="start", metadata={"tenant": "b", "title": "Start"})
    asking = ["a"]
    retriever = langchain_ext.PromptRankRetriever(
        source=lambda question: [start.model_copy(update={"metadata": {"tenant": asking[0]}})],
        documents=documents(),
        links=("titles",),
        filters=lambda document: document.metadata["tenant"] == asking[0],
    )
    for tenant in "abab":
        asking[0] = tenant
        assert sorted(texts_of(retriever.invoke(QUESTION))) == sorted(["See the Doors.", TEXTS[tenant]])


BUILDERS = {
    "langchain": lambda filter: langchain_ext.PromptRankRetriever(
        source=finds, documents=documents("aba"), filters=filter
    ),
    "llama_index": lambda filters: llama_index_ext.PromptRankRetriever(
        source=index().as_retriever(), documents=nodes("aba"), filters=filters
    ),
}


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
@pytest.mark.parametrize("filter", [mine, None], ids=["a filter", "none"])
def test_a_clash_of_what_may_be_seen_is_refused_and_shows_no_text(build: Callable[[Any], Any], filter: Any):
    def asked() -> None:
        retriever = build(filter)
        (retriever.invoke if isinstance(retriever, Runnable) else retriever.retrieve)(QUESTION)

    with pytest.raises(InvalidInput, match="share the id 'guide'") as caught:
        asked()
    assert not any(text in str(caught.value) for text in (SECRET, "1234", "Doors"))


IN_MEMORY = {
    "langchain": lambda filter: langchain_ext.MultiViewRetriever(documents=one_by_one("aba"), filters=filter),
    "llama_index": lambda filters: llama_index_ext.MultiViewRetriever(views("aba"), filters=filters),
}


@pytest.mark.parametrize("build", IN_MEMORY.values(), ids=IN_MEMORY)
def test_sections_of_one_id_are_refused_where_two_texts_may_be_seen(build: Callable[[Any], Any]):
    def asked(filter: Any) -> list[str]:
        retriever = build(filter)
        return texts_of((retriever.invoke if isinstance(retriever, Runnable) else retriever.retrieve)(QUESTION))

    assert "1234" in asked(mine)[0]  # the same twice is one
    with pytest.raises(InvalidInput, match="with different texts") as caught:
        asked(None)
    assert not any(text in str(caught.value) for text in (SECRET, "1234", "Doors"))
    with pytest.raises(InvalidInput, match="with different texts"):
        asked(lambda record: True)


records = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["1", "2", "3"]),
        st.sampled_from(["The Pier", "Ada Holm", "Esbjerg"]),
        st.sampled_from(["The Pier", "Ada Holm lives in Esbjerg", "[x](s1.md)", "nothing"]),
        st.sampled_from(["1", "2,3", ""]),
    ),
    max_size=5,
    unique_by=lambda record: record[:2],
)
WORDS = load_language_model("unigram").fit(["The Pier", "Ada Holm lives in Esbjerg"])


@settings(max_examples=60, deadline=None)
@given(records, st.booleans())
@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
def test_what_is_hidden_under_an_equal_id_might_as_well_not_be_there(made: list[tuple], function: bool):
    held = [
        LangChainDocument(
            text, id=id_, metadata={"tenant": one, "title": title, "source": f"s{id_}.md", "links": links}
        )
        for one, id_, title, text, links in made
    ]
    theirs = [document for document in held if mine(document)]
    common: dict[str, Any] = {"model": WORDS, "top_n": None, "links": ("metadata", "titles", "hyperlinks")}

    def found(given: list[LangChainDocument], filter: Any) -> dict[str | None, tuple[str, float]]:
        retriever = langchain_ext.PromptRankRetriever(
            source=lambda question: theirs[:2], documents=given, filters=filter, **common
        )
        ranked = retriever.invoke("Where does Ada Holm of The Pier live?")
        return {one.id: (one.page_content, round(one.metadata["relevance_score"], 9)) for one in ranked}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found(held, mine if function else {"tenant": "a"}) == found(theirs, None)
