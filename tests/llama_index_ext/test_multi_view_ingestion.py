"""MultiViewNodeParser in the host's pipeline: processes, cache, document store; and as an index's transformation."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.ingestion import DocstoreStrategy, IngestionCache, IngestionPipeline
from llama_index.core.node_parser import MarkdownNodeParser, NodeParser, SentenceSplitter
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

from drillrank.errors import DrillrankWarning
from drillrank.views import Chunker
from llama_index_ext import D3Retriever, MultiViewNodeParser, MultiViewRetriever
from llama_index_ext.pages import join_pages
from tests.conformance.corpus import BOOK, NOTE, QUESTION
from tests.conformance.frameworks import LlamaIndex


def digest(text: str) -> list[float]:
    """A different vector for every text."""
    return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]


PARSER, EMBEDDING = MultiViewNodeParser(), LlamaIndex.embedding(digest)
LATER = BOOK.replace("The Thames flows through London.", "The Thames rises in Gloucestershire.").partition("# Towns")[0]


def book(text: str = BOOK) -> Document:
    return Document(text=text, id_="book", metadata={"source": "book.md"})


def note() -> Document:
    return Document(text=NOTE, id_="note", metadata={"source": "note.txt"})


def dumped(nodes: list[BaseNode]) -> list[str]:
    return [node.model_dump_json(exclude={"embedding"}) for node in nodes]


def expected(*documents: Document) -> list[str]:
    return dumped(PARSER.get_nodes_from_documents(documents))


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by a 1 for each document that is cut."""
    counts: list[int] = []
    make = Chunker.__call__

    def counted(self, document):
        counts.append(1)
        return make(self, document)

    monkeypatch.setattr(Chunker, "__call__", counted)
    return counts


def run(pipeline: IngestionPipeline, documents: list[Document], how: str) -> list[BaseNode]:
    if how == "async":
        return list(asyncio.run(pipeline.arun(documents=documents)))
    return list(pipeline.run(documents=documents))


both = pytest.mark.parametrize("how", ["sync", "async"])


@both
def test_documents_become_nodes(how: str):
    nodes = run(IngestionPipeline(transformations=[PARSER]), [book(), note()], how)
    assert dumped(nodes) == expected(book(), note())


def test_two_processes():
    pipeline = IngestionPipeline(transformations=[PARSER])
    nodes = pipeline.run(documents=[book(), note(), book(LATER)], num_workers=2)
    assert dumped(nodes) == expected(book(), note(), book(LATER))
    assert len(pipeline.run(documents=[book()])) == len(expected(book()))


@both
def test_the_cache_gives_the_same_nodes_without_parsing(how: str, parsed: list[int], tmp_path):
    pipeline = IngestionPipeline(transformations=[PARSER, EMBEDDING])
    first = run(pipeline, [book(), note()], how)
    assert parsed == [1, 1]
    pipeline.persist(str(tmp_path))
    loaded = IngestionPipeline(transformations=[PARSER, EMBEDDING])
    loaded.load(str(tmp_path))
    for again in (pipeline, loaded):
        nodes = run(again, [book(), note()], how)
        assert parsed == [1, 1]
        assert [node.embedding for node in nodes] == [node.embedding for node in first]
        assert dumped(nodes) == dumped(first)
        found = VectorStoreIndex(nodes, embed_model=EMBEDDING).as_retriever(similarity_top_k=99).retrieve(QUESTION)
        assert len(found) == len(nodes)


def test_a_changed_document_or_setting_misses_the_cache(parsed: list[int]):
    cache = IngestionCache()

    class Upper:
        def __call__(self, texts):
            return [text.upper() for text in texts]

    class Lower(Upper):
        def __call__(self, texts):
            return [text.lower() for text in texts]

    settings = [
        {},
        {"views": ["raw"]},
        {"context": ["headings"]},
        {"chunking": "paragraph"},
        {"settings": {"separator": "/"}},
    ]
    settings += [{"summarizer": Upper()}, {"summarizer": Lower()}]
    results = set()
    for fields in settings:
        pipeline = IngestionPipeline(transformations=[MultiViewNodeParser(**fields)], cache=cache)
        results.add(tuple(dumped(pipeline.run(documents=[book()]))))
        results.add(tuple(dumped(pipeline.run(documents=[book()]))))
    pipeline.run(documents=[book(LATER)])
    assert len(results) == len(settings)
    assert len(parsed) == len(settings) + 1


class Headline:
    def __call__(self, texts):
        return [text.partition(".")[0] for text in texts]


def test_a_summarizer_is_named_without_its_place_in_memory():
    assert "object at" not in str(MultiViewNodeParser(summarizer=Headline()).to_dict())


def test_another_version_misses_the_cache(parsed: list[int], monkeypatch: pytest.MonkeyPatch):
    pipeline = IngestionPipeline(transformations=[PARSER])
    pipeline.run(documents=[book()])
    monkeypatch.setattr("llama_index_ext.multi_view_parser.VERSION", "0.0.1")
    pipeline.run(documents=[book()])
    assert parsed == [1, 1]


class Stored:
    """A pipeline with a document store and a vector store; what the latter holds is seen by ids and vectors."""

    def __init__(self, strategy: DocstoreStrategy) -> None:
        self.vectors = SimpleVectorStore()
        self.pipeline = IngestionPipeline(
            transformations=[PARSER, EMBEDDING],
            vector_store=self.vectors,
            docstore=SimpleDocumentStore(),
            docstore_strategy=strategy,
        )

    def holds(self, *documents: Document) -> bool:
        nodes = PARSER.get_nodes_from_documents(documents)
        texts = {node.node_id: node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes}
        return self.vectors.data.embedding_dict == {
            id_: EMBEDDING.get_text_embedding(text) for id_, text in texts.items()
        }


@both
@pytest.mark.parametrize("strategy", list(DocstoreStrategy))
def test_unchanged_documents_are_skipped(strategy: DocstoreStrategy, how: str, parsed: list[int]):
    stored = Stored(strategy)
    for _ in range(3):
        run(stored.pipeline, [book(), note()], how)
    assert sum(parsed) == 2
    assert stored.holds(book(), note())


@both
@pytest.mark.parametrize("strategy", [DocstoreStrategy.UPSERTS, DocstoreStrategy.UPSERTS_AND_DELETE])
def test_a_changed_document_replaces_itself(strategy: DocstoreStrategy, how: str):
    stored = Stored(strategy)
    run(stored.pipeline, [book(), note()], how)
    nodes = run(stored.pipeline, [book(LATER), note()], how)
    assert dumped(nodes) == expected(book(LATER))
    assert stored.holds(book(LATER), note())


@both
def test_a_document_that_is_gone_is_deleted_if_so_wanted(how: str):
    for strategy, left in (
        (DocstoreStrategy.UPSERTS, [book(), note()]),
        (DocstoreStrategy.UPSERTS_AND_DELETE, [note()]),
    ):
        stored = Stored(strategy)
        run(stored.pipeline, [book(), note()], how)
        run(stored.pipeline, [note()], how)
        assert stored.holds(*left)


@both
def test_duplicates_are_told_by_their_text(how: str):
    stored = Stored(DocstoreStrategy.DUPLICATES_ONLY)
    run(stored.pipeline, [book(), note()], how)
    assert run(stored.pipeline, [book().model_copy(update={"id_": "copy"}), note()], how) == []
    assert stored.holds(book(), note())


def index_of(*documents: Document) -> VectorStoreIndex:
    return VectorStoreIndex.from_documents(list(documents), transformations=[PARSER], embed_model=EMBEDDING)


def in_docstore(index: VectorStoreIndex) -> list[str]:
    """The nodes of an index, which keeps them by the ids that the vector store knows."""
    return sorted(dumped(list(index.docstore.docs.values())))


def test_an_index_of_documents_with_the_parser_as_transformation():
    index = index_of(book(), note())
    assert in_docstore(index) == sorted(expected(book(), note()))
    plain = index.as_retriever(similarity_top_k=99).retrieve(QUESTION)
    assert {hit.node.node_id for hit in plain} == {node.node_id for node in PARSER([book(), note()])}
    found = MultiViewRetriever(source=index, top_n=2, expand="parent").retrieve(QUESTION)
    assert {hit.node.metadata["drillrank_view"] for hit in found} == {"raw"}


def test_an_index_follows_its_documents():
    index = index_of(book(), note())
    assert index.refresh_ref_docs([book(), note()]) == [False, False]
    assert index.refresh_ref_docs([book(LATER), note()]) == [True, False]
    assert in_docstore(index) == sorted(expected(book(LATER), note()))
    index.update_ref_doc(book())
    assert in_docstore(index) == sorted(expected(book(), note()))
    index.delete_ref_doc("book", delete_from_docstore=True)
    assert in_docstore(index) == sorted(expected(note()))
    found = index.as_retriever(similarity_top_k=99).retrieve(QUESTION)
    assert {hit.node.ref_doc_id for hit in found} == {"note"}


def test_an_index_follows_pages_of_one_file_that_are_joined_before():
    def pages(metres: str) -> list[BaseNode]:
        texts = ["Foxes hunt at night.", f"Badgers dig {metres} metres.", "Owls hoot."]
        return join_pages(
            [
                Document(text=text, id_=f"part_{n}", metadata={"file_path": "a.pdf", "page_label": str(n)})
                for n, text in enumerate(texts, 1)
            ]
        )

    index = index_of(*pages("forty"))
    for found, metres in ((False, "forty"), (True, "ninety")):
        assert index.refresh_ref_docs(pages(metres)) == [found]
        hits = {
            hit.text
            for hit in D3Retriever(source=index, settings={"unit": "paragraph"}).retrieve(
                "How many metres do badgers dig?"
            )
        }
        assert hits == {"Foxes hunt at night.", f"Badgers dig {metres} metres.", "Owls hoot."}
    index.delete_ref_doc("part_1", delete_from_docstore=True)
    assert in_docstore(index) == []


def test_an_index_is_the_same_after_it_was_stored(tmp_path):
    index = index_of(book(), note())
    index.storage_context.persist(str(tmp_path))
    loaded = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)), embed_model=EMBEDDING)
    for make in (lambda index: index.as_retriever(similarity_top_k=9), lambda index: MultiViewRetriever(source=index)):
        before, after = (make(each).retrieve(QUESTION) for each in (index, loaded))
        assert [(hit.node.node_id, hit.score) for hit in after] == [(hit.node.node_id, hit.score) for hit in before]
        assert dumped([hit.node for hit in after]) == dumped([hit.node for hit in before])


@pytest.mark.parametrize(
    "first", [MarkdownNodeParser(), SentenceSplitter(chunk_size=60, chunk_overlap=0, include_metadata=False)]
)
def test_sections_of_what_another_parser_cut_have_no_offsets(first: NodeParser):
    documents = [Document(text=BOOK, id_=f"book {number}") for number in range(2)]
    pipeline = IngestionPipeline(transformations=[first, MultiViewNodeParser()], disable_cache=True)
    with pytest.warns(DrillrankWarning, match="have no offsets") as caught:
        nodes = pipeline.run(documents=documents)
    assert len(caught) == 1
    pipeline.run(documents=documents)  # a second warning would be an error
    raw = [node for node in nodes if node.metadata["drillrank_view"] == "raw"]
    assert {node.ref_doc_id for node in raw} == {"book 0", "book 1"}
    assert {(node.start_char_idx, node.metadata.get("drillrank_start")) for node in raw} == {(None, None)}
    with pytest.warns(DrillrankWarning, match="do not say where"):
        retriever = D3Retriever(nodes, top_n=50)
    found = retriever.retrieve(QUESTION)
    assert found
    assert {hit.node.start_char_idx for hit in found} == {None}
    assert all(any(hit.node.text in node.text for node in raw) for hit in found)
