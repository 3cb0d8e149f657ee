"""FinanceBench over pages as the hosts' loaders give them: pypdf's text, which marks no headings and few paragraphs.

As `financebench`, with the same options and parts; the pages of a report are joined as both hosts' components join
them. "The text without its headings" is what D3 finds where none of the lines that are taken for headings is one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from drillrank import parse_document
from drillrank.errors import InvalidInput, require
from drillrank.frameworks.pages import join_pages
from drillrank.structure import Block, Document, Section

from .financebench import METHODS, Method, Report, drilled, print_tables, reports


def main(data: str, questions: int | None = None) -> None:
    console = Console(width=120)
    methods = METHODS | {"D3, the text without its headings": flat}
    print_tables(console, reports(Path(data), console, questions, loaded), methods)


def loaded(file: Path) -> Document:
    """A report as `PyPDFLoader` and `SimpleDirectoryReader` give it to a retriever."""
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    pypdf = require("pypdf", "dev")
    try:
        texts = [page.extract_text() for page in pypdf.PdfReader(file).pages]
    except (OSError, pypdf.errors.PyPdfError, pypdf.errors.DependencyError) as cause:  # encrypted ones need more
        raise InvalidInput(f"{file} cannot be read: {cause}") from cause
    [one] = join_pages((text, {"source": str(file), "page": at}) for at, text in enumerate(texts))
    return replace(parse_document(one.text, metadata={"source": str(file)}), pages=one.pages)


def flat(report: Report) -> Method:
    """D3 over one section that is the whole report."""
    document = report.document

    def blocks() -> Iterator[Block]:
        for section in document.sections():
            for block in document.blocks(section):
                yield replace(block, kind="paragraph") if block.kind == "heading" else block

    whole = Section((), 0, 0, len(document.text))
    return drilled(
        replace(report, document=Document(document.text, (whole,), (tuple(blocks()),), pages=document.pages))
    )
