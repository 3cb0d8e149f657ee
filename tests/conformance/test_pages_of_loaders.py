"""A PDF as the hosts' own loaders read it: evidence and citations with the host's page, and right text on that page."""

from __future__ import annotations

import warnings
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import MockEmbedding, StorageContext, load_index_from_storage
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

import langchain_ext
import llama_index_ext
from drillrank.frameworks.pages import join_pages
from langchain_ext.pages import join_pages as join_langchain_pages
from llama_index_ext.pages import join_pages as join_llama_pages
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.conformance.loaded_pages import ASKED, BADGER, PARAGRAPHS, folded, pages
from tests.pdf_files import pdf_of


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "animals.pdf"
    path.write_bytes(pdf_of(pages()).content())
    return path


def read_by_langchain(file) -> list[Document]:
    """By `PyPDFLoader`, or, as its package is no longer looked after and need not be here, as that does it."""
    pypdf = pytest.importorskip("pypdf", reason="needs pypdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from langchain_community.document_loaders import PyPDFLoader
        except ImportError:
            read = pypdf.PdfReader(str(file)).pages
            return [
                Document(page.extract_text(), metadata={"source": str(file), "page": n, "page_label": str(n + 1)})
                for n, page in enumerate(read)
            ]
        return PyPDFLoader(str(file)).load()


def read_by_llama_index(file):
    pytest.importorskip("llama_index.readers.file", reason="needs llama-index-readers-file")
    from llama_index.core import SimpleDirectoryReader

    return SimpleDirectoryReader(input_files=[str(file)], filename_as_id=True).load_data()


READ = {LangChain: read_by_langchain, LlamaIndex: read_by_llama_index}


@pytest.fixture
def documents(file):
    return read_by_langchain(file)


@pytest.fixture
def nodes(file):
    return read_by_llama_index(file)


def check(host, retriever) -> None:
    for question, (page, section, answer) in ASKED.items():
        found = host.both(retriever, question)[0]
        assert answer in folded(found.text)
        assert (found.metadata.get("page", page - 1), found.metadata["page_label"]) == (page - 1, str(page))
        assert found.metadata["drillrank_section_path"] == section


@both_frameworks
def test_evidence_is_found_on_its_page(host, file, tmp_path):
    documents = READ[host](file)
    sections = host.split(documents)
    check(host, host.ext.D3Retriever(documents, settings=PARAGRAPHS))
    check(host, host.ext.MultiViewRetriever(sections))
    store = host.index(*sections)
    check(host, host.ext.D3Retriever(source=store, settings=PARAGRAPHS))
    if host is LangChain:
        store.dump(str(tmp_path / "store.json"))
        loaded = InMemoryVectorStore.load(str(tmp_path / "store.json"), host.embedding())
    else:
        store.storage_context.persist(str(tmp_path / "index"))
        stored = StorageContext.from_defaults(persist_dir=str(tmp_path / "index"))
        loaded = load_index_from_storage(stored, embed_model=host.embedding())
    check(host, host.ext.D3Retriever(source=loaded, settings=PARAGRAPHS))
    second = (lambda one: one.metadata["page"] == 1) if host is LangChain else host.filters(page_label="2")
    found = host.retrieve(
        host.ext.D3Retriever(source=store, filters=second, top_n=9, settings=PARAGRAPHS), "badgers and foxes"
    )
    assert [folded(one.text) for one in found] == list(BADGER)


CATS = "# Cats\n\nCats sleep on the sofa."


@both_frameworks
def test_pages_are_joined_next_to_other_documents(host, file):
    read = READ[host](file)
    whole = host.document(CATS, "cats", **({"source": "cats.md"} if host is LangChain else {}))
    sections = host.split([host.document(CATS, "other cats")])
    for others in ([whole], sections, [*sections, whole]):
        for documents in ([*read, *others], [*others, *read]):
            retriever = host.ext.D3Retriever(documents, settings=PARAGRAPHS)
            check(host, retriever)
            assert host.retrieve(retriever, "Where do cats sleep?")[0].text == "Cats sleep on the sofa."


@both_frameworks
def test_pages_and_documents_lend_structure_to_the_pages_that_a_source_returns(host, file):
    read = READ[host](file)
    sections = host.split([host.document(CATS, "cats")])
    for source in (host.index(*read), host.over(host.index(*read)), host.finds(lambda question: read)):
        check(host, host.ext.D3Retriever([*read, *sections], source=source, settings=PARAGRAPHS))


def test_pages_of_a_store_are_joined_by_their_source(documents):
    blank = [Document("Left blank.", metadata={**documents[0].metadata, "page": at}) for at in (3, 4)]
    for page in blank:
        page.metadata["page_label"] = str(page.metadata["page"] + 1)
    store = LangChain.index(*reversed([*documents, *blank]))
    retriever = langchain_ext.D3Retriever(source=store, top_n=20, settings=PARAGRAPHS)
    check(LangChain, retriever)
    found = [one for one in LangChain.retrieve(retriever, "What is left blank?") if one.text == "Left blank."]
    for one in found:  # a page whose text is that of another
        assert one.metadata["page"] + 1 == one.metadata["drillrank_first_page"] >= 4
    hides = langchain_ext.D3Retriever(
        source=store, filters=lambda one: one.metadata["page"] != 1, top_n=20, settings=PARAGRAPHS
    )
    assert "badger" not in " ".join(one.text for one in LangChain.retrieve(hides, "fox, badger, owl")).casefold()


def test_parts_of_pages_that_a_function_returns_are_not_joined(documents):
    parts = [Document(one.page_content[:60], metadata=one.metadata) for one in documents]
    retriever = langchain_ext.D3Retriever(source=LangChain.finds(lambda question: parts), settings=PARAGRAPHS)
    assert "drillrank_first_page" not in LangChain.retrieve(retriever, "foxes and owls")[0].metadata


def test_pages_whose_source_is_their_number(file):
    """As LlamaIndex's `PyMuPDFReader` describes them."""
    names = {"total_pages": 3, "file_path": str(file)}
    read = [
        LlamaIndex.document(page.text, **names, source=str(number))
        for number, page in enumerate(read_by_llama_index(file), 1)
    ]
    for fields in ({}, {"source": LlamaIndex.index(*read)}):
        retriever = llama_index_ext.D3Retriever(read, settings=PARAGRAPHS, **fields)
        for question, (page, section, _) in ASKED.items():
            [best] = LlamaIndex.both(retriever, question)[:1]
            assert (best.metadata["source"], best.metadata["drillrank_first_page"]) == (str(page), page)
            assert best.metadata["drillrank_section_path"] == section


def test_pages_next_to_nodes_that_a_parser_cut_are_split_as_one_document(nodes):
    cut = SentenceSplitter(chunk_size=100, chunk_overlap=0)([LlamaIndex.document(CATS, "cats")])
    assert [node.node_id for node in join_llama_pages([*cut, *nodes])] == [cut[0].node_id, nodes[0].node_id]


def test_citations_of_llama_index_name_the_page(nodes):
    index = LlamaIndex.index(*LlamaIndex.split(nodes))
    for retriever in (
        llama_index_ext.D3Retriever(nodes, top_n=1, settings=PARAGRAPHS),
        llama_index_ext.D3Retriever(source=index, top_n=1, settings=PARAGRAPHS),
    ):
        engine = CitationQueryEngine.from_args(index, retriever=retriever, llm=MockLLM())
        answer = engine.query("Where does the badger dig its sett?")
        assert [source.metadata["page_label"] for source in answer.source_nodes] == ["2"]
        assert f"page_label: 2\nfile_path: {nodes[0].metadata['file_path']}\n\nSource 1:\nThe badger digs" in str(
            answer
        )


def test_a_plain_chain_of_langchain_cites_the_page(documents):
    def cited(found):
        return "\n".join(f"[p. {one.metadata['page_label']}] {one.page_content}" for one in found)

    prompts = []
    chain = (
        {
            "found": langchain_ext.D3Retriever(documents=documents, top_n=1, settings=PARAGRAPHS) | cited,
            "question": RunnablePassthrough(),
        }
        | ChatPromptTemplate.from_template("{found}\n\n{question}")
        | RunnableLambda(lambda prompt: prompts.append(prompt.to_string()) or prompt)
        | FakeListChatModel(responses=["In the forest [p. 2]."])
    )
    assert chain.invoke("Where does the badger dig its sett?").content == "In the forest [p. 2]."
    assert "[p. 2] The badger digs its sett" in prompts[0]


@pytest.mark.parametrize("size", [60, 150])
def test_pages_that_another_splitter_cut_are_not_joined(documents, size):
    cut = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=0).split_documents(documents)
    assert len(cut) > len(documents)
    assert join_langchain_pages(cut) == cut
    for question, (page, _, answer) in ASKED.items():
        found = langchain_ext.D3Retriever(documents=cut, top_n=1, settings=PARAGRAPHS).invoke(question)[0]
        assert found.metadata["page"] == page - 1
        assert folded(found.page_content)[:30] in answer


@given(st.lists(st.integers(1, 3), min_size=1, max_size=6), st.integers(1, 3))
def test_pages_are_joined_only_where_each_is_whole(parts, copies):
    """Of each page of a file how many parts there are; and how often the file is there."""
    one = [(f"{page}.{part}", {"source": "a.pdf", "page": page}) for page, n in enumerate(parts) for part in range(n)]
    groups = [group.page_indices for group in join_pages(one * copies)]
    assert [at for group in groups for at in group] == list(range(len(one) * copies))
    if max(parts) == 1 and len(parts) > 1:
        assert groups == [tuple(range(at, at + len(one))) for at in range(0, copies * len(one), len(one))]
    else:
        assert all(len(group) == 1 for group in groups)


def test_a_changed_page_in_a_pipeline_with_a_docstore(file):
    vectors = SimpleVectorStore()
    pipeline = IngestionPipeline(
        transformations=[llama_index_ext.MultiViewNodeParser(views=["raw"]), MockEmbedding(embed_dim=8)],
        docstore=SimpleDocumentStore(),
        vector_store=vectors,
        docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
    )
    found = pipeline.run(documents=join_llama_pages(read_by_llama_index(file)))
    assert [node.metadata["page_label"] for node in found] == ["1", "2", "3"]
    file.write_bytes(pdf_of(pages("weasel")).content())
    found = pipeline.run(documents=join_llama_pages(read_by_llama_index(file)))
    assert set(vectors.data.embedding_dict) == {node.node_id for node in found}
    check = " ".join(node.text for node in found)
    assert "weasel digs" in check
    assert "badger digs" not in check
    pipeline.run(documents=join_llama_pages(read_by_llama_index(file)[:2]))  # the last page is gone
    assert "owl flies" not in " ".join(node.text for node in pipeline.docstore.docs.values())


def test_an_evidence_paragraph_of_a_store_is_no_heading(documents):
    store = LangChain.index(*LangChain.split(documents, views=["raw"]))
    found = langchain_ext.D3Retriever(source=store, top_n=20, settings=PARAGRAPHS).invoke("badgers, foxes, owls")
    titles = {"1 Foxes", "2 Badgers", "3 Owls"}
    assert {one.metadata["drillrank_section_path"] for one in found} == titles
    assert not titles & {one.page_content.strip() for one in found}


def test_spans_of_pages_in_the_joined_text(documents, nodes):
    for host, read in ((LangChain, documents), (LlamaIndex, nodes)):
        texts = list(map(host.text_of, read))
        [one] = join_pages((text, page.metadata) for text, page in zip(texts, read, strict=True))
        assert one.pages is not None
        assert one.pages.numbers == (1, 2, 3)
        spans = pairwise([*one.pages.starts, len(one.text)])
        assert [one.text[start:end].rstrip("\n") for start, end in spans] == [text.rstrip("\n") for text in texts]
