"""What was parsed or indexed before is known to be outdated: a change of parsers or words raises their version."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from drillrank.structure import PARSER_VERSION, read_document
from drillrank.structure.document import document_to_json
from drillrank.text import ANALYZER, terms
from tests.drillrank.test_structure_complete import FILES
from tests.pdf_files import Mark, Text, pdf_of
from tests.word_files import word_file

# Of what each version makes: these stay. Where another digest comes out, raise the version in
# `drillrank.structure.read`, or in `drillrank.text`, and add it here.
PARSED = {2: "a018e680e7cc05dfb30e4e49e5fb306d"}
WORDS = {1: "d27ee5b90aae2b30235aca9d3bd7b0c5"}

TEXTS = {
    "markdown.md": (
        "---\ntitle: Sea\n---\n\nIntro *of* it.\n\n# Sea\n\n- cod\n- eel\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "Fish\n----\n\n```\ncode # no heading\n```\n\n> quoted\n\n![picture](a.png) and [link](b.md).\n"
    ),
    "flat.md": "1. Introduction\n\nThe sea is deep, and nobody knows it.\n\n2. Fish\n\nCod live there.\n",
    "page.html": (
        "<!doctype html><title>Sea</title><nav>Home</nav><main><h1>Sea</h1><p>It is <b>deep</b>.<ul><li>cod<li>eel</ul>"
        "<h2>Fish</h2><table><tr><th>a<td>b</table><pre>x  y</pre><p hidden>no</p></main>"
    ),
    "paper.tex": (
        "\\documentclass{article}\\title{Sea}\\begin{document}\\maketitle\\section{Fish}\\label{f}Cod~\\cite{a} in "
        "\\emph{water} % comment\n\n\\subsection*{Eels}\\begin{itemize}\\item one\\item two\\end{itemize}$a^2$"
        "\\end{document}"
    ),
    "plain.txt": (
        "SEA\n===\n\nIt is deep.\n\n1.1 Fish\n\nCod live there,\nand eels.\n\n  * one\n  * two\n\nAPPENDIX A\n\nEnd.\n"
    ),
    "latin.txt": "Die See\r\n\r\nSie ist tief – überall.\r\n",
}
SPOKEN = (
    "The rivers' crossings WERE crossed in FY22 by 10,000 naïve foxes; a_b x86 e-mail 北京大学 東京 Straßen déjà-vu."
)


def written(folder: Path) -> list[Path]:
    """A file of each format."""
    for name, text in TEXTS.items():
        (folder / name).write_bytes(text.encode())
    table = [["Fox", "42"], ["Owl", "7"]]
    (folder / "word.docx").write_bytes(word_file([("Sea", 1), ("It is deep.", 0), ("Fish", 2), table]))
    _write_slides(folder / "slides.pptx")
    with zipfile.ZipFile(folder / "book.epub", "w") as book:
        rootfile = '<rootfile full-path="a.opf"/>'
        book.writestr("META-INF/container.xml", f"<container><rootfiles>{rootfile}</rootfiles></container>")
        item, spine = '<item id="one" href="one.xhtml"/>', '<itemref idref="one"/>'
        book.writestr("a.opf", f"<package><manifest>{item}</manifest><spine>{spine}</spine></package>")
        book.writestr("one.xhtml", "<html><body><h1>Sea</h1><p>It is <i>deep</i>.</p></body></html>")
    pages = [
        [Text("Sea", size=18, bold=True), Text("It is deep, and nobody knows how deep it is.", y=110)],
        [Text("Fish", size=18, bold=True), Text("Cod live there, and", y=110), Text("eels.", y=122)],
    ]
    (folder / "pages.pdf").write_bytes(pdf_of(pages, [Mark("Sea", 0), Mark("Fish", 1)]).content())
    for ending, (make, _, _) in FILES.items():
        (folder / f"all.{ending}").write_bytes(make())
    return sorted(folder.iterdir())


def _write_slides(file: Path) -> None:
    pptx = pytest.importorskip("pptx", reason="needs the extra office")
    presentation = pptx.Presentation()
    for title, text in (("Sea", "It is deep."), ("Fish", "Cod live there.")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    presentation.save(file)


def test_a_change_of_a_parser_raises_its_version(tmp_path):
    hashed = hashlib.blake2b(digest_size=16)
    for file in written(tmp_path):
        hashed.update(f"{file.name} {document_to_json(read_document(file))}\n".encode())
    assert PARSED[PARSER_VERSION] == hashed.hexdigest()


def test_a_change_of_words_raises_their_version():
    digest = hashlib.blake2b("\n".join(terms(SPOKEN)).encode(), digest_size=16).hexdigest()
    assert WORDS[ANALYZER] == digest
