"""A document of each format that has one of everything: each part is in the text, as what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from drillrank import read_document
from drillrank.structure import Document
from tests.office_files import BOOK, packed, presentation, word
from tests.pdf_files import Mark, Text, lines, pdf_of

PAGE = """<!doctype html><html><head><meta charset="utf-8"><title>hidden title</title><style>p {}</style></head><body>
<header>a header</header><nav>hidden navigation</nav><h1>a heading</h1><p>a paragraph with <a href="x">a link</a>,
<b>bold</b> and <ruby>base<rt>reading</rt></ruby></p><ul><li>an item<ol><li>a deeper item</li></ol></li></ul>
<dl><dt>a term</dt><dd>a definition</dd></dl><table><caption>a caption</caption><tr><th>column head</th></tr>
<tr><td>a cell</td></tr></table><pre>some  code</pre><blockquote>a quote</blockquote><figure>
<img alt="a described picture"><figcaption>a legend</figcaption></figure>
<details><summary>a summary</summary>closed details</details>
<form><label>a label</label><select><option>a choice</option></select><textarea>typed text</textarea>
<button>a button</button></form><math><mi>x</mi></math>
<aside>an aside</aside><svg><title>hidden</title><text>a drawing</text></svg>
<footer>a footer</footer><p hidden>hidden text</p>
<script>hidden()</script></body></html>"""

LATEX = r"""\documentclass{article}
\title[a hidden title]{a long title}\author[s]{an author\thanks{some thanks}}\date{a date}\newcommand{\hidden}{hidden}
\keywords{a keyword}
\begin{document}\maketitle
\begin{abstract}an abstract\end{abstract}
\section[hidden heading]{a heading}\label{hidden}
a paragraph\footnote[3]{a footnote} with \emph{emphasis}, \textcolor{red}{colour}, \href{http://a.b}{a link},
\verb|some code|, $x = y$ and \cite[p.~3]{key}. % hidden
\begin{itemize}\item[first] an item\item another\end{itemize}
\begin{table}\caption[hidden]{a caption}\begin{tabular}{ll}column head & b\\ a cell & \multicolumn{2}{c}{a wide cell}
\end{tabular}\end{table}
\begin{figure}\includegraphics{hidden}\caption{a legend}\end{figure}
\begin{equation}e = m\end{equation}
\begin{verbatim}verbatim  text\end{verbatim}
\begin{quote}a quote\end{quote}\parbox{3cm}{a box}\marginpar{a margin}
\appendix\section{an appendix}
\begin{thebibliography}{9}\bibitem{key} a reference\end{thebibliography}
\end{document}"""


def printed() -> bytes:
    page = [Text("A heading", y=72, size=18, bold=True), *lines("a paragraph which goes on for a while. " * 8)]
    page += [Text("• an item", y=220)]
    page += [Text(text, x, y) for y in (300, 312, 324) for text, x in (("a cell", 72), ("12", 300), ("13", 420))]
    pdf = pdf_of([page, lines("another page")], [Mark("A heading", 0)])
    stream = next(at for at, body in enumerate(pdf.objects) if b"A heading" in body and b"stream" in body)
    turned = b"".join(
        b"\nBT /R 10 Tf %s Tm (%s) Tj ET" % (matrix, text)
        for matrix, text in [
            (b"0 1 -1 0 40 300", b"upwards"),
            (b"0 -1 1 0 580 300", b"downwards"),
            (b"-1 0 0 -1 400 60", b"upside down"),
            (b"0.7 0.7 -0.7 0.7 300 100", b"slanted"),
        ]
    )
    body = pdf.objects[stream].partition(b"stream\n")[2].removesuffix(b"\nendstream") + turned
    pdf.objects[stream] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(body), body)
    return pdf.content()


# What each is kept as: the kind of the block that holds it, or "hidden" where it is left out on purpose.


def kept(**kinds: str) -> dict[str, str]:
    return {part: kind for kind, parts in kinds.items() for part in parts.split(";")}


HTML = kept(
    heading="a heading",
    paragraph="a paragraph;a link;bold;reading;a quote;a described picture;a legend;a summary;closed details;"
    "a label;a choice;typed text;a button;x;an aside;a drawing;a header;a footer",
    list="an item;a deeper item;a term;a definition",
    table="a caption;column head;a cell",
    code="some  code",
    hidden="hidden",
)
TEX = kept(
    paragraph="an author;some thanks;a date;a keyword;an abstract;a paragraph;a footnote;emphasis;"
    "colour;a link;some code;x = y;key;a legend;e = m;a quote;a box;a margin;a reference",
    heading="a long title;a heading;an appendix;References",
    list="first;an item",
    table="a caption;column head;a wide cell",
    code="verbatim  text",
    hidden="hidden",
)
DOCX = kept(
    heading="a heading",
    paragraph="a paragraph;a link;an insertion;a control;a text box;a = b;chart title;sales | 17 | 23;"
    "diagram node;a comment;a header line;a footer line",
    table="column head;a cell",
    list="a footnote;a endnote",
)
PPTX = kept(
    heading="a title",
    paragraph="a paragraph;in a group;in a group of a group;a described picture;a note;a comment",
    table="column head;a cell;chart title;spring;| sales | 17 | 23 |;diagram node",
    hidden="7\n",
)
EPUB = kept(heading="a heading", paragraph="a paragraph;a note;a described picture")
PDF = kept(
    heading="A heading",
    paragraph="a paragraph;another page;upwards;downwards;upside down;slanted",
    list="an item",
    table="a cell",
)

FILES = {
    "docx": (word, DOCX, ""),
    "pptx": (presentation, PPTX, ""),
    "epub": (lambda: packed(BOOK), EPUB, ""),
    "pdf": (printed, PDF, "liteparse"),
    "html": (PAGE.encode, HTML, ""),
    "tex": (LATEX.encode, TEX, ""),
}


def kinds(document: Document, part: str) -> list[str]:
    """Of the blocks that show a text."""
    blocks = [block for section in document.sections() for block in document.blocks(section)]
    return [block.kind for block in blocks if part in document.readable(block)]


@pytest.mark.parametrize("ending", FILES)
def test_nothing_is_lost(ending: str, tmp_path: Path) -> None:
    make, parts, library = FILES[ending]
    if library:
        pytest.importorskip(library, reason="needs the extra of this format")
    file = tmp_path / f"all.{ending}"
    file.write_bytes(make())
    document = read_document(file)
    assert "".join(document.slice(section) for section in document.sections()) == document.text
    found = {part: (kinds(document, part) or ["hidden"])[0] for part in parts}
    assert found == parts


def test_a_page_is_read_in_the_encoding_that_it_declares(tmp_path: Path) -> None:
    for charset, encoding in (("iso-8859-1", "cp1252"), ("shift_jis", "shift_jis"), ("iso-2022-jp", "iso-2022-jp")):
        text = "“é”" if encoding == "cp1252" else "東京は都"
        file = tmp_path / "a.html"
        file.write_bytes(f'<html><head><meta charset="{charset}"></head><p>{text}</p></html>'.encode(encoding))
        assert text in read_document(file).text
    file.write_bytes('<html><meta charset="iso-8859-1"><p>é</p></html>'.encode())  # which it is not
    assert "<p>é</p>" in read_document(file).text
