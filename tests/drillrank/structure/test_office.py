"""A document of each format that has one of everything: each part is in the text, as what the table says."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from drillrank import read_document
from drillrank.errors import InvalidInput
from drillrank.structure import Document
from tests.pdf_files import Mark, Text, lines, pdf_of
from tests.word_files import word_file

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
C = "http://schemas.openxmlformats.org/drawingml/2006/chart"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
D = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
WPS = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
WP = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"
SPACES = f'xmlns:w="{W}" xmlns:r="{R}" xmlns:c="{C}" xmlns:a="{A}" xmlns:dgm="{D}" xmlns:m="{M}" xmlns:mc="{MC}"'
SPACES += f' xmlns:wps="{WPS}" xmlns:wp="{WP}" xmlns:p="{P}"'

CHART = (
    f"<c:chartSpace {SPACES}><c:chart><c:title><a:p><a:r><a:t>chart title</a:t></a:r></a:p></c:title><c:ser>"
    "<c:tx><c:v>sales</c:v></c:tx><c:cat><c:v>spring</c:v><c:v>autumn</c:v></c:cat>"
    "<c:val><c:v>17</c:v><c:v>23</c:v></c:val></c:ser></c:chart></c:chartSpace>"
)
DIAGRAM = (
    f"<dgm:dataModel {SPACES}><dgm:pt><dgm:t><a:p><a:r><a:t>diagram node</a:t></a:r></a:p></dgm:t></dgm:pt>"
    "</dgm:dataModel>"
)


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def paragraph(*content: str) -> str:
    return f"<w:p>{''.join(content)}</w:p>"


def box(text: str) -> str:
    inside = f"<wps:wsp><wps:txbx><w:txbxContent>{paragraph(run(text))}</w:txbxContent></wps:txbx></wps:wsp>"
    return f'<mc:AlternateContent><mc:Choice Requires="wps">{drawing(inside)}</mc:Choice></mc:AlternateContent>'


def drawing(content: str) -> str:
    return (
        f"<w:drawing><wp:inline><a:graphic><a:graphicData>{content}</a:graphicData></a:graphic></wp:inline></w:drawing>"
    )


def relations(*named: tuple[str, str, str]) -> str:
    found = "".join(f'<Relationship Id="{id_}" Type="{R}/{kind}" Target="{part}"/>' for id_, kind, part in named)
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{found}</Relationships>'
    )


def packed(parts: Mapping[str, str | bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


def repacked(content: bytes, parts: Mapping[str, str | bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    """The archive with these parts added or replaced."""
    with zipfile.ZipFile(io.BytesIO(content)) as before:
        return packed({name: before.read(name) for name in before.namelist()} | parts, how)


def word() -> bytes:
    note = '<w:r><w:footnoteReference w:id="1"/></w:r><w:r><w:endnoteReference w:id="1"/></w:r>'
    note += '<w:r><w:commentReference w:id="1"/></w:r>'
    body = [
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>a heading</w:t></w:r></w:p>',
        paragraph(run("a paragraph"), note),
        paragraph(
            f'<w:hyperlink w:anchor="none">{run("a link")}</w:hyperlink>', f"<w:ins>{run('an insertion')}</w:ins>"
        ),
        "<w:tbl>"
        + "".join(f"<w:tr><w:tc>{paragraph(run(text))}</w:tc></w:tr>" for text in ("column head", "a cell"))
        + "</w:tbl>",
        f"<w:sdt><w:sdtContent>{paragraph(run('a control'))}</w:sdtContent></w:sdt>",
        paragraph(f"<w:r>{box('a text box')}</w:r>"),
        paragraph("<m:oMath><m:r><m:t>a = b</m:t></m:r></m:oMath>"),
        paragraph(f"<w:r>{drawing('<c:chart r:id=' + chr(34) + 'chart' + chr(34) + '/>')}</w:r>"),
        paragraph(f"<w:r>{drawing('<dgm:relIds r:dm=' + chr(34) + 'diagram' + chr(34) + '/>')}</w:r>"),
    ]
    notes = {
        f"{kind}s": f'<w:{kind}s {SPACES}><w:{kind} w:id="1">{paragraph(run(f"a {kind}"))}</w:{kind}></w:{kind}s>'
        for kind in ("footnote", "endnote", "comment")
    }
    running = {
        f"{kind}1": f"<w:{short} {SPACES}>{paragraph(run(f'a {kind} line'))}</w:{short}>"
        for kind, short in (("header", "hdr"), ("footer", "ftr"))
    }
    parts = {f"word/{name}.xml": text for name, text in {**notes, **running, "chart": CHART, "data": DIAGRAM}.items()}
    named = [(name, name.rstrip("1"), f"{name}.xml") for name in (*notes, *running)]
    parts["word/_rels/document.xml.rels"] = relations(
        ("s", "styles", "styles.xml"), ("chart", "chart", "chart.xml"), ("diagram", "diagramData", "data.xml"), *named
    )
    parts["word/document.xml"] = f"<w:document {SPACES}><w:body>{''.join(body)}</w:body></w:document>"
    return repacked(word_file([("a", 1)]), parts)


def shape(text: str, place: str = "") -> str:
    ph = f'<p:ph type="{place}"/>' if place else ""
    said = f"<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody>"
    return f'<p:sp><p:nvSpPr><p:cNvPr id="1"/><p:nvPr>{ph}</p:nvPr></p:nvSpPr>{said}</p:sp>'


def frame(content: str) -> str:
    return f"<p:graphicFrame><a:graphic><a:graphicData>{content}</a:graphicData></a:graphic></p:graphicFrame>"


def presentation() -> bytes:
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    table = "".join(f"<a:tr>{cell.format(text)}</a:tr>" for text in ("column head", "a cell"))
    shapes = [
        shape("a title", "title"),
        shape("a paragraph"),
        f"<p:grpSp>{shape('in a group')}<p:grpSp>{shape('in a group of a group')}</p:grpSp></p:grpSp>",
        frame(f"<a:tbl>{table}</a:tbl>"),
        frame('<c:chart r:id="chart"/>'),
        frame('<dgm:relIds r:dm="diagram"/>'),
        '<p:pic><p:nvPicPr><p:cNvPr id="2" descr="a described picture"/></p:nvPicPr></p:pic>',
        shape("7", "sldNum"),
    ]
    slide = f"<p:sld {SPACES}><p:cSld><p:spTree>{''.join(shapes)}</p:spTree></p:cSld></p:sld>"
    notes = f"<p:notes {SPACES}><p:spTree>{shape('a note', 'body')}{shape('7', 'sldNum')}</p:spTree></p:notes>"
    comments = f"<p:cmLst {SPACES}><p:cm><p:text>a comment</p:text></p:cm></p:cmLst>"
    parts = {
        "_rels/.rels": relations(("a", "officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f'<p:presentation {SPACES}><p:sldIdLst><p:sldId id="256" r:id="one"/></p:sldIdLst>'
        "</p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(("one", "slide", "slides/slide1.xml")),
        "ppt/slides/slide1.xml": slide,
        "ppt/slides/_rels/slide1.xml.rels": relations(
            ("chart", "chart", "../charts/chart.xml"),
            ("diagram", "diagramData", "../data.xml"),
            ("notes", "notesSlide", "../notes.xml"),
            ("comments", "comments", "../comments.xml"),
        ),
        "ppt/charts/chart.xml": CHART,
        "ppt/data.xml": DIAGRAM,
        "ppt/notes.xml": notes,
        "ppt/comments.xml": comments,
    }
    return packed(parts)


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

BOOK = {
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="in/a.opf"/></rootfiles></container>',
    "in/a.opf": '<package><manifest><item id="1" href="a&amp;b.xhtml"/><item id="gone" href="gone.xhtml"/></manifest>'
    '<spine><itemref idref="1"/></spine></package>',
    "in/a&b.xhtml": '<html xmlns:epub="http://www.idpf.org/2007/ops"><body><h1>a heading</h1><p>a paragraph</p>'
    '<aside epub:type="footnote" hidden="hidden">a note</aside><img alt="a described picture"/></body></html>',
}

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
    paragraph="a long title;an author;some thanks;a date;a keyword;an abstract;a paragraph;a footnote;emphasis;"
    "colour;a link;some code;x = y;key;a legend;e = m;a quote;a box;a margin;a reference",
    heading="a heading;an appendix;References",
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
    "docx": (word, DOCX, "mammoth"),
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


def test_a_book_without_one_of_its_chapters_is_read_with_a_warning(tmp_path: Path) -> None:
    spine = '<itemref idref="1"/><itemref idref="gone"/><itemref idref="unknown"/>'
    file = tmp_path / "a.epub"
    file.write_bytes(packed(BOOK | {"in/a.opf": BOOK["in/a.opf"].replace('<itemref idref="1"/>', spine)}))
    with pytest.warns(match=r"a\.epub: 2 of its chapters are missing"):
        assert "a paragraph" in read_document(file).text


def test_slides_are_pages(tmp_path: Path) -> None:
    made = pytest.importorskip("pptx", reason="needs the extra office").Presentation()
    for title, text in (("Foxes", "They hunt."), ("Badgers", "They dig.")):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    made.save(str(tmp_path / "a.pptx"))
    document = read_document(tmp_path / "a.pptx")
    found = [(section.path, document.page_numbers(section.start, section.end)) for section in document.sections()]
    assert found == [(("Foxes",), (1, 1)), (("Badgers",), (2, 2))]


def test_cells_and_hashes_of_a_word_file_are_text(tmp_path: Path) -> None:
    pytest.importorskip("mammoth", reason="needs the extra office")
    file = tmp_path / "a.docx"
    file.write_bytes(word_file([("Animals", 1), ("# of them", 0), ("Foxes", 2), [["Fox", "42"], ["Fox", "42"]]]))
    document = read_document(file)
    assert [section.path for section in document.sections()] == [("Animals",), ("Animals", "Foxes")]
    assert "# of them" in document.text
    assert document.text.count("| Fox | 42 |") == 2


@pytest.mark.parametrize("ending", ["docx", "pptx", "epub"])
@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 broken", b"\xd0\xcf\x11\xe0 a password", packed({"other.xml": "<a/>"})]
)
def test_what_cannot_be_read_names_the_file(tmp_path: Path, ending: str, content: bytes) -> None:
    file = tmp_path / f"a.{ending}"
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match=rf"a\.{ending} cannot be read"):
        read_document(file)
