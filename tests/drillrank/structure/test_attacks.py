"""Files and texts that were made to cost time or memory: an error that names them, or a document, and little work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from drillrank import limits, parse_document, read_document
from drillrank.errors import InvalidInput
from drillrank.structure.imported import document_from_docling
from drillrank.structure.isolation import close_workers
from tests.office_files import SPACES, book_with, presentation, repacked
from tests.pdf_files import lines, pdf_of


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
