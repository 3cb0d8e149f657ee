"""Files and texts that were made to cost time or memory: an error that names them, or a document, and little work."""

from __future__ import annotations

import struct
import sys
import zipfile
from pathlib import Path

import pytest

from drillrank import limits, parse_document, read_document
from drillrank.errors import InvalidInput
from drillrank.structure.imported import document_from_docling
from drillrank.structure.isolation import close_workers
from tests.office_files import BOOK, SPACES, packed, presentation, repacked
from tests.pdf_files import lines, pdf_of
from tests.word_files import word_file


def lying(content: bytes) -> bytes:
    """The archive whose directory says of each part that it has 100 bytes."""
    found, at = bytearray(content), content.find(b"PK\x01\x02")
    while at >= 0:
        found[at + 24 : at + 28] = struct.pack("<I", 100)
        at = content.find(b"PK\x01\x02", at + 1)
    return bytes(found)


def word_of(body: str, before: str = "") -> bytes:
    document = f"{before}<w:document {SPACES}><w:body>{body}</w:body></w:document>"
    return repacked(word_file([("a", 0)]), {"word/document.xml": document})


def book_with(**changes: str) -> bytes:
    names = {"container": "META-INF/container.xml", "package": "in/a.opf", "chapter": "in/a&b.xhtml"}
    return packed(BOOK | {names[name]: text for name, text in changes.items()})


def one_slide_often() -> bytes:
    slide = '<p:sldId id="256" r:id="one"/>'
    main = f"<p:presentation {SPACES}><p:sldIdLst>{slide * 1000}</p:sldIdLst></p:presentation>"
    said = f"<p:sld {SPACES}><p:sp><a:p><a:t>{'word ' * 10_000}</a:t></a:p></p:sp></p:sld>"
    parts = {"ppt/presentation.xml": main, "ppt/slides/slide1.xml": said}
    return repacked(presentation(), parts, zipfile.ZIP_DEFLATED)


ENTITY = f'<!DOCTYPE w [<!ENTITY a "{"word " * 1000}">]>'
OFTEN = BOOK["in/a.opf"].replace("<spine>", "<spine>" + '<itemref idref="1"/>' * 1000)
TOO_MUCH = {
    "a header that lies": ("epub", lambda: lying(book_with(chapter="x" * 5_000_000)), "broken"),
    "one chapter often": ("epub", lambda: book_with(package=OFTEN, chapter=f"<p>{' ' * 100_000}x</p>"), "too large"),
    "a chapter of megabytes": ("epub", lambda: book_with(chapter=f"<p>{' ' * 5_000_000}x</p>"), "too large"),
    "entities": ("docx", lambda: word_of("<w:p><w:r><w:t>&a;</w:t></w:r></w:p>" * 90, ENTITY), "document type"),
    "entities of a book": ("epub", lambda: book_with(package=ENTITY + "<p>&a;</p>"), "document type"),
    "deep elements": ("docx", lambda: word_of("<w:p>" * 1000 + "</w:p>" * 1000), "nested too deeply"),
    "one slide often": ("pptx", one_slide_often, "too large"),
    "open tags": ("epub", lambda: book_with(package="<item " * 20_000), "cannot be read as EPUB"),
}


@pytest.mark.parametrize("attack", TOO_MUCH)
def test_what_would_become_too_large_is_refused(attack: str, tmp_path: Path) -> None:
    ending, make, message = TOO_MUCH[attack]
    file = tmp_path / f"a.{ending}"
    file.write_bytes(make())
    with pytest.raises(InvalidInput, match=rf"a\.{ending} cannot be read.*{message}|{message}"):
        read_document(file)


def test_a_book_with_a_damaged_container_is_read_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "a.epub"
    file.write_bytes(book_with(container="<rootfile " * 15_000, chapter="<p>Foxes hunt.</p>"))
    with pytest.warns(match=r"a\.epub: 1 of its containers is missing or damaged"):
        assert "Foxes hunt." in read_document(file).text


def test_the_limits_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.epub"
    file.write_bytes(book_with(chapter=f"<p>{'word ' * 400_000}</p>"))
    with pytest.raises(InvalidInput, match="too large"):
        read_document(file)
    monkeypatch.setattr(limits, "EXTRACTED_PER_BYTE", 10_000)
    assert len(read_document(file).text) > 1_900_000


def test_rows_of_a_presentation_take_linear_work(tmp_path: Path) -> None:
    row = "<a:tr><a:tc><a:p><a:t>cell</a:t></a:p></a:tc></a:tr>"
    slide = f"<p:sld {SPACES}><a:tbl>{row * 12_000}</a:tbl></p:sld>"
    file = tmp_path / "a.pptx"
    file.write_bytes(repacked(presentation(), {"ppt/slides/slide1.xml": slide}))
    assert read_document(file).text.count("cell") == 12_000


def test_items_of_docling_take_linear_work() -> None:
    texts = [{"label": "text", "text": "a"} for _ in range(20_000)]
    body = {"children": [{"$ref": f"#/texts/{at}"} for at in range(len(texts))]}
    assert document_from_docling({"body": body, "texts": texts}).text.count("a") == 20_000


@pytest.mark.parametrize("format", ["markdown", "html", "latex", "text"])
def test_a_heading_of_a_megabyte_over_many_sections(format: str) -> None:
    title = "fox " * 250_000
    heading, below = {
        "markdown": (f"# {title}\n\n", "## s\n\nmice\n\n"),
        "html": (f"<h1>{title}</h1>", "<h2>s</h2>mice"),
        "latex": (rf"\section{{{title}}}", "\\subsection{s}mice\n\n"),
        "text": (f"{title}\n{'=' * len(title)}\n\n", "s\n---\n\nmice\n\n"),
    }[format]
    document = parse_document(heading + below * 1000, format)
    assert sum(len(name) for section in document.sections() for name in section.path) < 1_100_000


def test_the_process_that_reads_a_pdf_knows_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("liteparse", reason="needs the extra pdf")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "AKIA")
    told = tmp_path / "environment"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nenv > "{told}"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf_of([lines("The fox hunts.")]).content())
    close_workers()  # so that the next one is started
    assert "fox" in read_document(file).text
    assert "PATH=" in told.read_text()
    assert "AKIA" not in told.read_text()
