"""Readers of files for both frameworks: one document per file, whose sections, pages and spans our components find."""

from __future__ import annotations

import asyncio
import os
import pickle
import warnings
from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import SimpleDirectoryReader
from llama_index.core.node_parser import SentenceSplitter

import langchain_ext
import llama_index_ext
from drillrank import D3, parse_document, read_document
from drillrank.errors import DrillrankWarning, InvalidInput
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.conformance.loaded_pages import ASKED, PARAGRAPHS, folded, pages
from tests.pdf_files import pdf_of
from tests.word_files import word_file

pytest.importorskip("liteparse", reason="needs the extra files")

SENTENCES = ("The fox hunts mice at night.", "The badger digs its sett.", "The owl flies without a sound.")
QUESTION = "Who digs a sett?"


def written(name: str, sentences: tuple[str, ...] = SENTENCES) -> bytes:
    """Content of a file with one section or row for each sentence, in the format of the name."""
    titles = [f"Part {number}" for number, _ in enumerate(sentences, 1)]
    parts = list(zip(titles, sentences, strict=True))
    form = {
        ".md": lambda: "\n\n".join(f"# {title}\n\n{text}" for title, text in parts),
        ".html": lambda: "".join(f"<h1>{title}</h1><p>{text}</p>" for title, text in parts),
        ".tex": lambda: "".join(f"\\section{{{title}}}\n{text}\n\n" for title, text in parts),
        ".rst": lambda: "\n\n".join(f"{title}\n{'=' * len(title)}\n\n{text}" for title, text in parts),
        ".csv": lambda: "title,text\n" + "".join(f"{title},{text}\n" for title, text in parts),
        ".txt": lambda: "\n\n".join(f"{number} {text}" for number, text in enumerate(sentences, 1)),
        "": lambda: "\n\n".join(sentences),
        ".docx": lambda: word_file([part for title, text in parts for part in ((title, 1), (text, 0))]),
    }[Path(name).suffix]()
    return form if isinstance(form, bytes) else form.encode()


FORMATS = ("a.md", "a.html", "a.tex", "a.rst", "a.csv", "a.txt", "a", "a.docx")


def load(host, paths, **options):
    if host is LlamaIndex:
        return llama_index_ext.DrillrankReader(**options).load_data(paths)
    return langchain_ext.DrillrankLoader(paths, **options).load()


@pytest.fixture
def pdf(tmp_path):
    file = tmp_path / "animals.pdf"
    file.write_bytes(pdf_of(pages()).content())
    return file


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "a.md").write_bytes(written("a.md"))
    (folder / "below" / "b.html").write_bytes(written("b.html"))
    (folder / "broken.docx").write_bytes(b"PK\x03\x04broken")
    (folder / ".hidden.md").write_bytes(b"Hidden.")
    return folder


@both_frameworks
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=5, deadline=None)
@given(sentences=st.permutations(SENTENCES))
def test_documents_are_those_of_read_document_and_spans_point_into_them(host, name, sentences, tmp_path_factory):
    file = tmp_path_factory.mktemp("files") / name
    file.write_bytes(written(name, tuple(sentences)))
    expected = read_document(file)
    [document] = load(host, file)
    assert host.text_of(document) == expected.text
    assert parse_document(expected.text, metadata=document.metadata).sections() == expected.sections()
    in_core = D3(settings=PARAGRAPHS).retrieve(QUESTION, [expected], 9)
    spans = {(one.passage.text, one.details["span"][0], one.passage.metadata["section_path"]) for one in in_core}
    found = host.both(host.ext.D3Retriever([document], top_n=9, settings=PARAGRAPHS), QUESTION)
    paths = {" > ".join(path): path for _, _, path in spans}
    assert {(one.text, one.start, paths[one.metadata["drillrank_section_path"]]) for one in found} == spans
    for one in host.retrieve(host.ext.D3Retriever([document], top_n=9), QUESTION):
        start, end = (one.metadata[f"drillrank_best_{side}"] for side in ("start", "end"))
        assert any(text in expected.text[start:end] for text in (*sentences, *expected.text.splitlines()))
        assert "drillrank_format" not in one.metadata  # what is readable is not in the format of the file


def check_pages(host, retriever):
    for question, (page, section, answer) in ASKED.items():
        best = host.both(retriever, question)[0]
        assert answer[:60] in folded(best.text)
        assert best.metadata["page_label"] == str(page)
        assert best.metadata["drillrank_first_page"] == page
        assert best.metadata["drillrank_section_path"] == section
        if host is LangChain:
            assert best.metadata["page"] == page - 1


@both_frameworks
def test_evidence_of_a_pdf_has_its_page_and_section(host, pdf):
    documents = load(host, pdf)
    assert not {"page", "page_label", "page_number"} & documents[0].metadata.keys()  # which of them would be wrong
    check_pages(host, host.ext.D3Retriever(documents, settings=PARAGRAPHS))
    sections = host.split(documents)
    labels = {one.metadata["drillrank_section_path"]: one.metadata["page_label"] for one in sections}
    assert labels == {"1 Foxes": "1", "2 Badgers": "2", "3 Owls": "3"}
    check_pages(host, host.ext.D3Retriever(source=host.index(*sections), settings=PARAGRAPHS))


@both_frameworks
def test_chunks_of_other_splitters_keep_pages_and_spans(host, pdf):
    documents = load(host, pdf)
    if host is LlamaIndex:
        chunks = SentenceSplitter(chunk_size=60, chunk_overlap=0)(documents)
    else:
        splitter = RecursiveCharacterTextSplitter(chunk_size=250, chunk_overlap=0, add_start_index=True)
        chunks = splitter.split_documents(documents)
    assert len(chunks) > 3
    question, (page, _, answer) = next(iter(ASKED.items()))
    for fields in ({}, {"documents": documents}):
        retriever = host.ext.D3Retriever(source=host.index(*chunks), top_n=1, settings=PARAGRAPHS, **fields)
        [best] = host.both(retriever, question)
        assert folded(best.text)[:50] == answer[:50]
        assert best.metadata["page_label"] == str(page)
        assert host.text_of(documents[0])[best.start :].startswith(best.text)


@both_frameworks
def test_a_folder_is_read_without_the_files_that_are_broken_or_hidden(host, folder):
    with pytest.warns(DrillrankWarning) as caught:
        documents = load(host, folder)
    assert [str(one.message).partition(" ")[0] for one in caught] == [str(folder / "broken.docx")]
    names = [one.metadata["file_path" if host is LlamaIndex else "source"] for one in documents]
    assert names == [str(folder / "a.md"), str(folder / "below" / "b.html")]
    with pytest.raises(InvalidInput, match=r"broken\.docx"):
        load(host, folder, on_error="raise")


@both_frameworks
def test_a_named_file_that_is_broken_is_an_error(host, folder):
    good, broken, missing = folder / "a.md", folder / "broken.docx", folder / "c.md"
    for file, words in ((broken, "broken"), (missing, "c.md cannot be read"), ("", "must be a string"), (7, "7")):
        with pytest.raises(InvalidInput, match=words):
            load(host, file)
        with pytest.raises(InvalidInput, match=words):
            load(host, [good, file])
    with pytest.raises(InvalidInput, match="on_error must be"):
        load(host, good, on_error="ignore")
    with pytest.warns(DrillrankWarning, match=r"broken\.docx.* was skipped"):
        assert len(load(host, [str(good), broken, good], on_error="skip")) == 1  # each file once


@both_frameworks
def test_a_file_without_text_is_an_error(host, tmp_path):
    (tmp_path / "blank.txt").write_text(" \n")
    with pytest.raises(InvalidInput, match=r"blank\.txt has no text"):
        load(host, tmp_path / "blank.txt")


@both_frameworks
@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_links_that_lead_outside_a_folder_are_not_followed(host, folder, tmp_path):
    (tmp_path / "secret.md").write_text("# Secret\n\nA password.")
    (folder / "broken.docx").unlink()
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    with pytest.warns(DrillrankWarning, match="outside"):
        documents = load(host, folder)
    assert not any("password" in host.text_of(document) for document in documents)


@both_frameworks
def test_ids_depend_on_the_path_only(host, folder):
    (folder / "broken.docx").unlink()
    first, other = map(host.id_of, load(host, folder))
    assert first != other
    (folder / "a.md").write_text("Changed.")
    assert list(map(host.id_of, load(host, [folder / "a.md", folder / "below"]))) == [first, other]


@both_frameworks
def test_asynchronous_readers_give_the_same_documents(host, folder):
    (folder / "broken.docx").unlink()

    async def read():
        if host is LlamaIndex:
            reader = llama_index_ext.DrillrankReader()
            return await reader.aload_data(folder), list(await reader.alazy_load_data(folder))
        loader = langchain_ext.DrillrankLoader(folder)
        return await loader.aload(), [document async for document in loader.alazy_load()]

    assert asyncio.run(read()) == (load(host, folder), load(host, folder))


@both_frameworks
def test_metadata_that_name_another_format_do_not_change_how_a_text_is_read(host):
    """A text of a PDF with one heading is otherwise taken for one with a # by chance."""
    text = "# Foxes\n\n" + "The fox hunts mice. " * 1_000
    document = host.document(text, source="a.pdf", drillrank_format="markdown")
    assert parse_document(text, metadata={"source": "a.pdf"}).format == "text"
    [found] = host.retrieve(host.ext.D3Retriever([document], top_n=1), "What does the fox hunt?")
    assert found.metadata["drillrank_section_path"] == "Foxes"
    strange = host.document(text, drillrank_format="__import__('os')")  # only a name of a format counts
    assert host.retrieve(host.ext.D3Retriever([strange], top_n=1), "What does the fox hunt?")


def test_in_simple_directory_reader(folder, capsys):
    extractor = {suffix: llama_index_ext.DrillrankReader() for suffix in (".md", ".html", ".docx")}
    reader = SimpleDirectoryReader(folder, recursive=True, file_extractor=extractor)
    documents = reader.load_data()
    assert "broken.docx" in capsys.readouterr().out
    assert [document.text for document in documents] == [written("a.md").decode(), written("b.html").decode()]
    assert {"file_path", "file_size", "drillrank_format"} <= documents[0].metadata.keys()
    assert "drillrank" not in documents[0].get_content("llm") + documents[0].get_content("embed")
    assert asyncio.run(reader.aload_data()) == documents
    assert pickle.loads(pickle.dumps(extractor[".md"])).load_data(folder / "a.md")  # for several processes


def test_extra_info_is_kept_and_cannot_name_pages():
    memory = fsspec.filesystem("memory")
    memory.pipe("/shelf/a.docx", written("a.docx"))
    extra = {"file_path": "shelf/a.docx", "owner": "me", "drillrank_format": "csv"}
    [document] = llama_index_ext.DrillrankReader().load_data("/shelf/a.docx", extra_info=extra, fs=memory)
    assert document.metadata == {**extra, "file_name": "a.docx", "drillrank_format": "markdown"}
    assert SENTENCES[1] in document.text
    read = SimpleDirectoryReader("/shelf", fs=memory, file_extractor={".docx": llama_index_ext.DrillrankReader()})
    assert [one.text for one in read.load_data()] == [document.text]
    with pytest.raises(InvalidInput, match="FileNotFoundError"):
        llama_index_ext.DrillrankReader().load_data("/shelf/b.docx", fs=memory)


def test_in_directory_loader(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaders = pytest.importorskip("langchain_community.document_loaders", reason="needs langchain-community")
    loader = loaders.DirectoryLoader(str(folder), glob="**/*.md", loader_cls=langchain_ext.DrillrankLoader)
    assert [one.page_content for one in loader.load()] == [written("a.md").decode()]


# Documents of read_document in place of a framework's


@both_frameworks
def test_d3_takes_documents_of_read_document_next_to_those_of_the_framework(host, pdf):
    cats = host.document("# Cats\n\nCats sleep on the sofa.", "cats")
    for documents in ([read_document(pdf), cats], [cats, read_document(pdf)]):
        retriever = host.ext.D3Retriever(documents, settings=PARAGRAPHS)
        check_pages(host, retriever)
        assert host.retrieve(retriever, "Where do cats sleep?")[0].document == "cats"
    first, second = (host.ext.D3Retriever([read_document(pdf)], top_n=1) for _ in range(2))
    assert host.retrieve(first, QUESTION) == host.retrieve(second, QUESTION)


@both_frameworks
def test_given_documents_of_read_document_lend_their_pages_to_chunks_of_a_store(host, pdf):
    [document] = load(host, pdf)
    chunks = host.index(*host.split([document]))
    retriever = host.ext.D3Retriever([read_document(pdf)], source=chunks, settings=PARAGRAPHS)
    check_pages(host, retriever)


@both_frameworks
def test_splitters_take_documents_of_read_document(host, pdf):
    def described(pieces):
        names = ("section_path", "view", "start", "end", "first_page")
        return [tuple(piece.metadata.get(f"drillrank_{name}") for name in names) for piece in pieces]

    cats = host.document("# Cats\n\nCats sleep.", "cats")
    expected = described(host.split(load(host, pdf))) + described(host.split([cats]))
    assert described(host.split([read_document(pdf), cats])) == expected
    splitter = host.splitter()
    acall = splitter.aget_nodes_from_documents if host is LlamaIndex else splitter.atransform_documents
    assert described(asyncio.run(acall([read_document(pdf), cats]))) == expected


def test_a_generator_of_documents_is_taken():
    found = langchain_ext.D3Retriever(Document(text) for text in SENTENCES).invoke(QUESTION)
    assert found[0].page_content == SENTENCES[1]
