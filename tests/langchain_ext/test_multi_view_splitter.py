from __future__ import annotations

import pickle
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import BaseDocumentTransformer, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore

from drillrank.errors import DrillrankWarning, InvalidInput
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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["# A\n", "## B\n", "text\n", "\n", "~~~\n", "# in code\n", "é\u2028x\r\n", "\t"])).map(
        "".join
    )
    | st.text(max_size=60)
)
def test_raw_pieces_are_exact_slices_and_lose_nothing(text):
    pieces = MultiViewTextSplitter().create_documents([text])
    raw = [piece for piece in pieces if piece.metadata["drillrank_view"] == "raw"]
    kept = set()
    for piece in raw:
        start = piece.metadata["start_index"]
        assert text[start : start + len(piece.page_content)] == piece.page_content
        span = set(range(start, start + len(piece.page_content)))
        assert not span & kept
        kept |= span
    assert all(i in kept for i, character in enumerate(text) if not character.isspace())


def test_ids_are_unique_even_for_equal_documents_and_the_same_in_every_run():
    pieces = MultiViewTextSplitter().split_documents(documents())
    ids = [piece.id for piece in pieces]
    assert len(set(ids)) == len(ids)
    assert dumped(pieces) == dumped(MultiViewTextSplitter().split_documents(documents()))


def test_other_views_lead_to_their_section_and_hold_no_copy_of_it():
    pieces = MultiViewTextSplitter().split_documents(documents())
    raw = {piece.id: piece for piece in pieces if piece.metadata["drillrank_view"] == "raw"}
    others = [piece for piece in pieces if piece.metadata["drillrank_view"] != "raw"]
    assert {piece.metadata["drillrank_view"] for piece in others} == {"keywords", "summary"}
    for piece in others:
        section = raw[piece.metadata["drillrank_section_id"]]
        assert section.page_content not in piece.page_content
        assert not any(section.page_content in str(value) for value in piece.metadata.values())


def test_metadata_is_kept_and_flat_and_the_path_is_whole():
    pieces = MultiViewTextSplitter(settings={"separator": " / "}).split_documents(documents()[:1])
    assert all(piece.metadata["source"] == "a.md" for piece in pieces)
    assert all(isinstance(value, str | int) for piece in pieces for value in piece.metadata.values())
    assert [p.metadata["drillrank_section_path"] for p in pieces if p.metadata["drillrank_view"] == "raw"] == [
        "",
        "Rivers",
        "Rivers / The Rhine",
    ]


def test_documents_are_not_mutated():
    given_documents = documents()
    before = dumped(given_documents)
    MultiViewTextSplitter().split_documents(given_documents)
    assert dumped(given_documents) == before


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


def test_empty_input_and_pickle():
    splitter = MultiViewTextSplitter(views=["raw"])
    assert splitter.split_documents([]) == splitter.create_documents([""]) == splitter.create_documents([" \n"]) == []
    copy = pickle.loads(pickle.dumps(splitter))
    assert dumped(copy.create_documents([BOOK])) == dumped(splitter.create_documents([BOOK]))


@pytest.mark.parametrize("views", [[], ["raw", "title"], "raw"])
def test_senseless_views_are_rejected(views):
    with pytest.raises(InvalidInput, match="views"):
        MultiViewTextSplitter(views=views)


def test_pieces_go_into_a_vector_store():
    pieces = MultiViewTextSplitter().split_documents(documents())
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    assert store.add_documents(pieces) == [piece.id for piece in pieces]
    store.add_documents(pieces)  # once more: ids are the same, so nothing doubles
    assert len(store.similarity_search("Basel", k=99)) == len(pieces)


def test_documents_of_another_splitter_are_ranked_as_they_are_with_a_warning():
    plain = [Document(page_content="plain", metadata={"view": "of the lake"}), Document(page_content="other")]
    with pytest.warns(DrillrankWarning, match="MultiViewTextSplitter did not make"):
        retriever = MultiViewRetriever(documents=plain, top_n=1)
    (hit,) = retriever.invoke("plain")
    assert (hit.page_content, hit.metadata["view"]) == ("plain", "of the lake")


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


@pytest.mark.parametrize(
    "settings",
    [
        {"chunking": "fixed", "max_tokens": None},
        {"max_tokens": 0},
        {"max_tokens": 5, "min_tokens": 6},
        {"context": ["title"]},
    ],
)
def test_senseless_settings_are_rejected(settings):
    with pytest.raises(InvalidInput, match=r"max_tokens|context"):
        MultiViewTextSplitter(**settings)


def test_what_counts_tokens_is_named():
    settings = {
        "views": ["raw"],
        "chunking": "fixed",
        "max_tokens": 4,
        "settings": {"tokens": lambda text: len(text.split())},
    }
    pieces = MultiViewTextSplitter(**settings).create_documents(["One two three four five six seven eight nine."])
    assert [len(piece.page_content.split()) for piece in pieces] == [4, 4, 1]
