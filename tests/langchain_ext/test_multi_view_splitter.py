from __future__ import annotations

import threading

from langchain_core.documents import BaseDocumentTransformer, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore

from drillrank.text import count_tokens
from langchain_ext import MultiViewRetriever, MultiViewTextSplitter

BOOK = "Preface.\n\n# Rivers\n\nThey carry water.\n\n## The Rhine\n\nIt flows through Basel.\n"


def documents() -> list[Document]:
    return [
        Document(id="a", page_content=BOOK, metadata={"source": "a.md"}),
        Document(page_content=BOOK, metadata={"source": "b.md"}),
        Document(page_content=BOOK, metadata={"source": "b.md"}),
    ]


def dumped(pieces: list[Document]) -> list[str]:
    return [piece.model_dump_json() for piece in pieces]


async def test_transform_documents_sync_and_async():
    splitter = MultiViewTextSplitter()
    expected = dumped(splitter.split_documents(documents()))
    assert isinstance(splitter, BaseDocumentTransformer)
    assert dumped(splitter.transform_documents(documents())) == expected
    threads = []

    def recorded(text):
        threads.append(threading.get_ident())
        return count_tokens(text)

    splitter = MultiViewTextSplitter(settings={"tokens": recorded})
    threads.clear()  # of what it was made with
    assert dumped(await splitter.atransform_documents(documents())) == expected
    assert threads
    assert threading.get_ident() not in threads


def test_pieces_go_into_a_vector_store():
    pieces = MultiViewTextSplitter().split_documents(documents())
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    assert store.add_documents(pieces) == [piece.id for piece in pieces]
    store.add_documents(pieces)  # once more: ids are the same, so nothing doubles
    assert len(store.similarity_search("Basel", k=99)) == len(pieces)


def test_context_is_in_the_page_content_and_the_source_in_the_metadata():
    splitter = MultiViewTextSplitter(chunking="paragraph", max_tokens=50, context=["headings", "keywords"])
    raw = [piece for piece in splitter.split_documents(documents()) if piece.metadata["drillrank_view"] == "raw"]
    for piece in raw:
        start, text = piece.metadata["start_index"], piece.metadata.get("drillrank_section_text", piece.page_content)
        assert BOOK[start : start + len(text)] == text
        assert piece.page_content.endswith(text)
    assert raw[2].page_content.startswith("The Rhine\nflows, Basel\n\n## The Rhine")
    found = MultiViewRetriever(documents=splitter.split_documents(documents()), top_n=1).invoke("the Rhine")[0]
    assert BOOK[found.metadata["start_index"] :].startswith(found.page_content)
    assert found.metadata["drillrank_section_path"] == "Rivers > The Rhine"


def test_pieces_name_what_is_around_them():
    raw = [
        piece for piece in MultiViewTextSplitter().create_documents([BOOK]) if piece.metadata["drillrank_view"] == "raw"
    ]
    preface, rivers, rhine = (piece.metadata for piece in raw)
    assert "drillrank_previous_id" not in preface
    assert "drillrank_next_id" not in rhine
    assert (preface["drillrank_next_id"], rivers["drillrank_next_id"]) == (
        rivers["drillrank_section_id"],
        rhine["drillrank_section_id"],
    )
    assert (rivers["drillrank_previous_id"], rhine["drillrank_previous_id"]) == (
        preface["drillrank_section_id"],
        rivers["drillrank_section_id"],
    )
    assert (rivers["drillrank_parent_id"], rhine["drillrank_parent_id"]) == (
        preface["drillrank_section_id"],
        rivers["drillrank_section_id"],
    )


async def test_a_model_writes_the_views_once(capsys):
    class Counting(FakeListChatModel):
        calls: int = 0

        def _call(self, *arguments, **keywords):
            self.calls += 1
            return super()._call(*arguments, **keywords)

    llm, cache = Counting(responses=['["written words"]']), {}
    splitter = MultiViewTextSplitter(llm=llm, cache=cache, show_progress=True)
    pieces = splitter.create_documents([BOOK])
    assert llm.calls == len(cache) == 3
    assert "The Rhine\nwritten words" in [piece.page_content for piece in pieces]
    again = await splitter.atransform_documents([Document(page_content=BOOK)])
    assert dumped(again) == dumped(pieces)
    assert llm.calls == 3
    assert "Writing views" in capsys.readouterr().err
