"""D3 over what other splitters made: whose text, from where, and what is missing, in both hosts."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document as Page
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

import langchain_ext
import llama_index_ext
from drillrank.errors import DrillrankWarning

QUESTION = "When does the fox hunt at night?"
BLOCKS = [
    "The fox hunts at night. It sleeps by day. The fox hunts at night.",
    "The fox hunts at night.",
    "An owl hunts, too.\n  This line is indented. The fox hunts at night.",
    "- a fox\n  - a fox of the night\n- an owl",
    "| animal | hunts |\n|---|---|\n| fox | at night |",
    "```\n# no heading\n\n  fox = night\n```",
    "Über 🦊 schläft man nicht. Nachts jagt er.",
]
HEADINGS = ["# Fox", "## Fox", "## Owls *and* foxes", "### Fox", "# Night"]
Found = list[tuple[str, int | None, str, dict[str, Any]]]
"""Text, offset, document, metadata."""


def markdown(blocks: Sequence[str]) -> str:
    return "\n\n".join(blocks)


texts = st.lists(st.sampled_from(BLOCKS + HEADINGS), min_size=1, max_size=10).map(markdown)


def generated(number: int) -> str:
    draw = random.Random(number)
    parts = []
    for _ in range(12):
        parts += [draw.choice(HEADINGS), *draw.choices(BLOCKS, k=3), f"Fact {draw.randint(1, 99)} of the fox at night."]
    return markdown(parts)


def recursive(size: int, overlap: int, index: bool) -> Callable[[list[Page]], list[Page]]:
    return RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap, add_start_index=index).split_documents


def along_headings(strip: bool, again: int = 0) -> Callable[[list[Page]], list[Page]]:
    def split(pages: list[Page]) -> list[Page]:
        splitter = MarkdownHeaderTextSplitter([("#", "h1"), ("##", "h2")], strip_headers=strip)
        chunks = [
            Page(page_content=chunk.page_content, metadata={**page.metadata, **chunk.metadata})
            for page in pages
            for chunk in splitter.split_text(page.page_content)
        ]
        return recursive(again, again // 3, index=True)(chunks) if again else chunks

    return split


def in_langchain(split: Callable[[list[Page]], list[Page]], originals: Sequence[str], lent: bool) -> Found:
    pages = [Page(page_content=text, metadata={"source": f"{n}.md"}) for n, text in enumerate(originals)]
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents(split(pages))
    found = langchain_ext.D3Retriever(
        source=store,
        documents=pages if lent else [],
        top_n=10_000,
        settings={"repeats": True, "max_documents": len(pages)},
    ).invoke(QUESTION)
    assert len({document.id for document in found}) == len(found)
    return [(d.page_content, d.metadata.get("start_index"), d.metadata["source"][:-3], d.metadata) for d in found]


def in_llama_index(parser: Any, originals: Sequence[str], lent: bool) -> Found:
    documents = [Document(text=text, id_=str(n)) for n, text in enumerate(originals)]
    index = VectorStoreIndex(parser.get_nodes_from_documents(documents), embed_model=MockEmbedding(4))
    hits = llama_index_ext.D3Retriever(
        documents if lent else [],
        source=index,
        top_n=10_000,
        settings={"repeats": True, "max_documents": len(documents)},
    ).retrieve(QUESTION)
    assert len({hit.node.node_id for hit in hits}) == len(hits)
    assert all((h.node.start_char_idx is None) == (h.node.end_char_idx is None) for h in hits)
    return [(h.node.get_content(), h.node.start_char_idx, h.node.ref_doc_id, h.node.metadata) for h in hits]


SPLITTERS = {
    "recursive": (in_langchain, recursive(90, 0, index=True), False),
    "recursive, overlap": (in_langchain, recursive(90, 40, index=True), False),
    "recursive, no index, lent": (in_langchain, recursive(90, 40, index=False), True),
    "sentences": (in_llama_index, SentenceSplitter(chunk_size=60, chunk_overlap=20), False),
    "sentences, lent": (in_llama_index, SentenceSplitter(chunk_size=60, chunk_overlap=0), True),
    "markdown nodes": (in_llama_index, MarkdownNodeParser(), False),
    "markdown nodes, lent": (in_llama_index, MarkdownNodeParser(), True),
}
OFFSETS = pytest.mark.parametrize(("retrieve", "splitter", "lent"), SPLITTERS.values(), ids=SPLITTERS)


@OFFSETS
def test_a_thousand_citations_are_where_they_say(retrieve, splitter, lent):
    originals = [generated(number) for number in range(40)]
    found = retrieve(splitter, originals, lent)
    assert len(found) >= 1000
    for text, start, document, _ in found:
        assert start is not None
        assert originals[int(document)][start : start + len(text)] == text


UNSURE = {
    "recursive, no index": (in_langchain, recursive(90, 40, index=False)),
    "headings": (in_langchain, along_headings(strip=True)),
    "headings, recursive": (in_langchain, along_headings(strip=False, again=60)),
    **{name: (retrieve, splitter) for name, (retrieve, splitter, lent) in SPLITTERS.items() if not lent},
}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(texts, min_size=1, max_size=3, unique=True), st.sampled_from(sorted(UNSURE)))
def test_no_citation_is_wrong_and_nothing_is_invented(originals, name):
    retrieve, splitter = UNSURE[name]
    if "headings" in name:  # a lone chunk without any cannot be told from a whole document
        originals = [f"# Fox\n\n{text}" for text in originals]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = retrieve(splitter, originals, False)
    for text, start, document, _ in found:
        original = originals[int(document)]
        if start is not None:
            assert original[start : start + len(text)] == text
        for part in text.splitlines() if "headings" in name else [text]:  # headings between two lines are left out
            assert "".join(part.split()) in "".join(original.split())
    unknown = name in ("headings", "headings, recursive", "recursive, no index")
    assert {warning.category for warning in caught} <= {DrillrankWarning}
    assert unknown or not caught
    assert len(caught) <= 1


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts, st.integers(20, 200), st.integers(0, 15), st.booleans())
def test_any_setting_of_a_splitter(text, size, overlap, lent):
    found = in_langchain(recursive(size, overlap, index=True), [text], lent)
    for shown, start, _, _ in found:
        assert text[start : start + len(shown)] == shown
    words = {word for word in text.split() if word.isalpha() and "#" not in word}
    headed = {word for line in text.splitlines() if line.startswith("#") for word in line.split()}
    assert words - headed <= {word.strip("*") for shown, *_ in found for word in shown.split()} | headed


def test_headings_come_from_metadata_where_texts_have_none():
    text = "# Animals\n\n## Foxes\n\nThe fox hunts at night.\n\n## Owls\n\nThe owl does, too."
    with pytest.warns(DrillrankWarning, match="add_start_index"):
        found = in_langchain(along_headings(strip=True), [text], False)
    paths = {shown: metadata["drillrank_section_path"] for shown, _, _, metadata in found}
    assert paths == {"The fox hunts at night.": "Animals > Foxes", "The owl does, too.": "Animals > Owls"}
    paths = {
        shown: metadata["drillrank_section_path"]
        for shown, *_, metadata in in_llama_index(MarkdownNodeParser(), [text], False)
    }
    assert paths == {"The fox hunts at night.": "Animals > Foxes", "The owl does, too.": "Animals > Owls"}


# The store


class Counting(InMemoryVectorStore):
    """Counts what it is asked."""

    searches = 0

    def _similarity_search_with_score_by_vector(self, *args: Any, **kwargs: Any) -> Any:
        type(self).searches += 1
        return super()._similarity_search_with_score_by_vector(*args, **kwargs)


class Embeddings(DeterministicFakeEmbedding):
    """Counts questions."""

    questions: int = 0

    def embed_query(self, text: str) -> list[float]:
        self.questions += 1
        return super().embed_query(text)


@pytest.mark.parametrize(
    "split", [recursive(200, 40, index=True), langchain_ext.MultiViewTextSplitter().split_documents]
)
def test_one_embedding_and_one_look_up_a_document(split):
    pages = [Page(page_content=generated(n), id=str(n), metadata={"source": f"{n}.md"}) for n in range(3)]
    embeddings = Embeddings(size=4)
    store = Counting(embeddings)
    store.add_documents([Page(page_content=c.page_content, metadata=c.metadata) for c in split(pages)])
    Counting.searches = embeddings.questions = 0
    assert langchain_ext.D3Retriever(source=store, top_n=5).invoke(QUESTION)
    assert embeddings.questions == 1
    assert Counting.searches <= 2 + len(pages)


async def test_an_update_between_two_questions_is_seen():
    for split in (recursive(200, 0, index=True), langchain_ext.MultiViewTextSplitter().split_documents):
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
        old, new = ("# Fox\n\nThe fox hunts at night.", "# Fox\n\nThe fox hunts by day.")
        page = Page(page_content=old, id="p", metadata={"source": "p.md"})
        retriever = langchain_ext.D3Retriever(source=store, documents=[page])
        ids = store.add_documents(split([page]))
        assert [d.page_content for d in retriever.invoke(QUESTION)] == ["The fox hunts at night."]
        store.delete(ids)
        with pytest.warns(DrillrankWarning, match="The source holds nothing"):
            assert retriever.invoke(QUESTION) == []
        store.add_documents(split([Page(page_content=new, id="p", metadata={"source": "p.md"})]))
        with pytest.warns(DrillrankWarning, match="differs from what the source found"):
            assert [d.page_content for d in retriever.invoke(QUESTION)] == ["The fox hunts by day."]
        assert [d.page_content for d in await retriever.ainvoke(QUESTION)] == ["The fox hunts by day."]


async def test_an_update_of_an_index_is_seen():
    for parser in (SentenceSplitter(), llama_index_ext.MultiViewNodeParser(), MarkdownNodeParser()):
        old, new = (Document(text=f"# Fox\n\nThe fox hunts {when}.", id_="fox") for when in ("at night", "by day"))
        index = VectorStoreIndex(parser.get_nodes_from_documents([old]), embed_model=MockEmbedding(4))
        retriever = llama_index_ext.D3Retriever([old], source=index)
        assert [h.node.get_content() for h in retriever.retrieve(QUESTION)] == ["The fox hunts at night."]
        index.delete_ref_doc("fox", delete_from_docstore=True)
        with pytest.warns(DrillrankWarning, match="The source holds nothing"):
            assert retriever.retrieve(QUESTION) == []
        index.insert_nodes(parser.get_nodes_from_documents([new]))
        with pytest.warns(DrillrankWarning, match="differs from what the source found"):
            found = retriever.retrieve(QUESTION)
        again = await retriever.aretrieve(QUESTION)
        assert [h.node.get_content() for h in found + again] == ["The fox hunts by day."] * 2


@pytest.mark.parametrize("tenant", [None, "a"])
def test_two_owners_in_one_index_are_never_mixed(tenant):
    words = {"a": "The fox of Ada hunts at night. " * 8, "b": "The fox of Bob hunts by day. " * 8}
    nodes = [
        node
        for owner, text in words.items()
        for node in SentenceSplitter(chunk_size=30, chunk_overlap=8).get_nodes_from_documents(
            [Document(text=text, id_="fox", metadata={"tenant": owner})]
        )
    ]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(4))
    mine = MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")]) if tenant else None
    retriever = llama_index_ext.D3Retriever(source=index, filters=mine, top_n=99)
    if tenant:
        found = [hit.node for hit in retriever.retrieve(QUESTION)]
        assert {node.metadata["tenant"] for node in found} == {"a"}
    else:
        with pytest.warns(DrillrankWarning, match="same place"):
            found = [hit.node for hit in retriever.retrieve(QUESTION)]
    assert found
    assert len({node.node_id for node in found}) == len(found)
    for node in found:
        assert words[node.metadata["tenant"]][node.start_char_idx : node.end_char_idx] == node.get_content()


def test_what_is_given_with_another_label_gives_way():
    node = TextNode(text="# Fox\n\nThe fox hunts at night.", id_="fox", metadata={"tenant": "b"})

    class Plain(langchain_ext._retriever.ConfiguredRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Page]:
            return [Page(page_content="The fox hunts at night.", metadata={"source": "fox.md", "tenant": "a"})]

    given = Page(page_content=f"{node.text}\n\nB's secret.", metadata={"source": "fox.md", "tenant": "b"})
    with pytest.warns(DrillrankWarning, match="differs"):
        found = langchain_ext.D3Retriever(source=Plain(), documents=[given], top_n=9).invoke(QUESTION)
    assert [(d.page_content, d.metadata["tenant"]) for d in found] == [("The fox hunts at night.", "a")]


@pytest.mark.parametrize("tenant", [None, "a"])
def test_two_owners_of_one_place_are_never_mixed(tenant):
    split = recursive(60, 20, index=True)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    words = {"a": "The fox of Ada hunts at night. " * 8, "b": "The fox of Bob hunts by day. " * 8}
    for owner, text in words.items():
        store.add_documents(split([Page(page_content=text, metadata={"source": "fox.md", "tenant": owner})]))
    retriever = langchain_ext.D3Retriever(source=store, top_n=99, filters={"tenant": tenant} if tenant else None)
    if tenant:
        found = retriever.invoke(QUESTION)
        assert {d.metadata["tenant"] for d in found} == {"a"}
    else:
        with pytest.warns(DrillrankWarning, match="same place"):
            found = retriever.invoke(QUESTION)
    assert found
    assert len({d.id for d in found}) == len(found)
    for document in found:
        start = document.metadata["start_index"]
        assert words[document.metadata["tenant"]][start:].startswith(document.page_content)


def test_restricted_sections_are_neither_read_nor_named():
    text = "# Fox\n\nThe fox hunts at night.\n\n## Secret den\n\nBelow the oak.\n\n# Owl\n\nIt hunts at night, too."
    pieces = langchain_ext.MultiViewTextSplitter().split_documents([Page(page_content=text, id="fox")])
    for piece in pieces:
        piece.metadata["role"] = "hunter" if piece.metadata["drillrank_section_path"].endswith("den") else "all"
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents(pieces)
    prompts: list[str] = []
    llm = RunnableLambda(
        lambda prompt: prompts.append(prompt.to_string()) or ("Fox" if "section names" in prompts[-1] else "1")
    )
    retriever = langchain_ext.D3Retriever(
        source=store,
        llm=llm,
        documents=[Page(page_content=text, id="fox")],
        filters={"role": "all"},
    )
    assert [d.page_content for d in retriever.invoke(QUESTION)] == ["The fox hunts at night."]
    assert prompts
    assert not [word for word in ("oak", "Secret") if word in "".join(prompts)]


def test_an_empty_result_says_why():
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents([Page(page_content="The fox.", metadata={"tenant": "a"})])
    with pytest.warns(DrillrankWarning, match="filter shows"):
        assert langchain_ext.D3Retriever(source=store, filters={"tenant": "c"}).invoke(QUESTION) == []


def test_offsets_in_what_was_cut_again_are_not_those_of_the_document():
    text = "Words   first, in   front.\n\n\n\nThe   fox hunts at night.\n\n# Fox\n\nIt sleeps by day. It hunts."
    with pytest.warns(DrillrankWarning, match="add_start_index"):
        found = in_langchain(along_headings(strip=True, again=30), [text], False)
    assert [start for _, start, *_ in found] == [None] * len(found)


@pytest.mark.parametrize("cut", [False, True])
def test_an_offset_of_the_users_own_stays(cut):
    page = Page(
        page_content="# Fox\n\nIt hunts at night.", id="fox", metadata={"start_index": "page 7", "view": "mine"}
    )
    given = langchain_ext.MultiViewTextSplitter().split_documents([page]) if cut else [page]
    [found] = langchain_ext.D3Retriever(documents=given, top_n=1).invoke(QUESTION)
    assert (found.metadata["start_index"], found.metadata["view"]) == ("page 7", "mine")
    assert page.page_content[found.metadata["drillrank_start"] : found.metadata["drillrank_end"]] == found.page_content
