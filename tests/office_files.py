"""Small writers of office files: archives, Word documents and presentations with one of everything, a book."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

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


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*content: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{''.join(content)}</w:p>"


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


BOOK = {
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="in/a.opf"/></rootfiles></container>',
    "in/a.opf": '<package><manifest><item id="1" href="a&amp;b.xhtml"/><item id="gone" href="gone.xhtml"/></manifest>'
    '<spine><itemref idref="1"/></spine></package>',
    "in/a&b.xhtml": '<html xmlns:epub="http://www.idpf.org/2007/ops"><body><h1>a heading</h1><p>a paragraph</p>'
    '<aside epub:type="footnote" hidden="hidden">a note</aside><img alt="a described picture"/></body></html>',
}


PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def raised(text: str, height: str = "superscript") -> str:
    return run(text, f'<w:vertAlign w:val="{height}"/>')


def word_document(body: str, styles: str = "", numbering: str = "", more: str = "", **parts: str) -> bytes:
    """A Word file of a body, with further styles, lists, relations and parts."""
    heading_styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in range(1, 4)
    )
    related = relations(("s", "styles", "styles.xml"), ("n", "numbering", "numbering.xml"))
    return packed(
        {
            "_rels/.rels": relations(("a", "officeDocument", "word/document.xml")),
            "word/_rels/document.xml.rels": related.replace("</Relationships>", f"{more}</Relationships>"),
            "word/document.xml": f"<w:document {SPACES}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": f"<w:styles {SPACES}>{heading_styles}{styles}</w:styles>",
            "word/numbering.xml": f"<w:numbering {SPACES}>{numbering}</w:numbering>",
            **{f"word/{name}.xml": text for name, text in parts.items()},
        }
    )


def slides_of(*slides: str, attributes: tuple[str, ...] = ()) -> bytes:
    """A presentation of slides, each the shapes of its tree."""
    names = [f"slide{number}" for number in range(1, len(slides) + 1)]
    listed = "".join(f'<p:sldId id="{256 + index}" r:id="{name}"/>' for index, name in enumerate(names))
    marks = (*attributes, *[""] * len(slides))
    parts = {
        f"ppt/slides/{name}.xml": f"<p:sld {SPACES} {mark}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        for name, shapes, mark in zip(names, slides, marks, strict=False)
    }
    return packed(
        {
            "_rels/.rels": relations(("a", "officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": f"<p:presentation {SPACES}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(*((name, "slide", f"slides/{name}.xml") for name in names)),
            **parts,
        }
    )


def book_of(chapters: Mapping[str, str | bytes], hrefs: Mapping[str, str] | None = None, **parts: str) -> bytes:
    """A book whose chapters are read in the order in which they are given; hrefs differ from names where given."""
    items = "".join(
        f'<item id="i{index}" media-type="application/xhtml+xml" href="{(hrefs or {}).get(name, name)}"/>'
        for index, name in enumerate(chapters)
    )
    order = "".join(f'<itemref idref="i{index}"/>' for index in range(len(chapters)))
    opf = f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{order}</spine></package>'
    container = BOOK["META-INF/container.xml"]
    contents = {f"in/{name}": chapter for name, chapter in chapters.items()}
    return packed({"META-INF/container.xml": container, "in/a.opf": opf, **contents, **parts})


def book_with(**changes: str) -> bytes:
    """Return the book with another `container`, `package` or `chapter`."""
    names = {"container": "META-INF/container.xml", "package": "in/a.opf", "chapter": "in/a&b.xhtml"}
    return packed(BOOK | {names[name]: text for name, text in changes.items()})
