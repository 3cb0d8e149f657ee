"""Word, PowerPoint and EPUB files."""

from __future__ import annotations

import zipfile

import pytest

from drillrank import read_document
from drillrank.errors import InvalidInput

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def packed(path, parts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def outline(document):
    return [section.path for section in document.sections()]


def test_word(tmp_path):
    pytest.importorskip("mammoth", reason="needs the extra office")

    def paragraph(text, style=""):
        properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"

    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("Fox", "42"))
    body = paragraph("Animals", "Heading1") + paragraph("# of them") + paragraph("Foxes", "Heading2")
    body += f"<w:tbl><w:tr>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>"
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/></w:style>' for n in (1, 2)
    )
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    types = "application/vnd.openxmlformats-officedocument.wordprocessingml"

    def relations(target, kind):
        one = f'<Relationship Id="a" Type="{office}/{kind}" Target="{target}"/>'
        return f'<Relationships xmlns="{_PACKAGE}/relationships">{one}</Relationships>'

    file = packed(
        tmp_path / "a.docx",
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
            f'<Override PartName="/word/document.xml" ContentType="{types}.document.main+xml"/></Types>',
            "_rels/.rels": relations("word/document.xml", "officeDocument"),
            "word/_rels/document.xml.rels": relations("styles.xml", "styles"),
            "word/styles.xml": f'<w:styles xmlns:w="{_W}">{styles}</w:styles>',
            "word/document.xml": f'<w:document xmlns:w="{_W}"><w:body>{body}</w:body></w:document>',
        },
    )
    document = read_document(file)
    assert outline(document) == [("Animals",), ("Animals", "Foxes")]
    assert "# of them" in document.text
    assert document.text.count("| Fox | 42 |") == 2


def test_presentation(tmp_path):
    pptx = pytest.importorskip("pptx", reason="needs the extra office")
    presentation = pptx.Presentation()
    for title, text in (("Foxes", "They hunt."), ("Badgers", "They dig.")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    presentation.save(tmp_path / "a.pptx")
    document = read_document(tmp_path / "a.pptx")
    assert outline(document) == [("Foxes",), ("Badgers",)]
    assert [document.page_numbers(s.start, s.end) for s in document.sections()] == [(1, 1), (2, 2)]


def test_book(tmp_path):
    package = (
        '<package><manifest><item id="two" href="text/two%20b.xhtml"/><item href="text/one.xhtml" id="one"/></manifest>'
        '<spine><itemref idref="one"/><itemref idref="two"/></spine></package>'
    )
    file = packed(
        tmp_path / "a.epub",
        {
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="in/a.opf"/></rootfiles></container>',
            "in/a.opf": package,
            "in/text/one.xhtml": "<html><body><h1>One</h1><p>Foxes hunt.</p></body></html>",
            "in/text/two b.xhtml": "<html><body><h1>Two</h1><p>Badgers dig.</p></body></html>",
        },
    )
    document = read_document(file)
    assert outline(document) == [("One",), ("Two",)]
    assert document.text == "# One\n\nFoxes hunt.\n\n# Two\n\nBadgers dig."


@pytest.mark.parametrize("ending", ["docx", "pptx", "epub"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\xd0\xcf\x11\xe0 a password"])
def test_what_cannot_be_read_names_the_file(tmp_path, ending, content):
    file = tmp_path / f"a.{ending}"
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match=rf"a\.{ending} cannot be read"):
        read_document(file)
    packed(file, {"other.xml": "<a/>"})
    if ending == "epub":
        with pytest.raises(InvalidInput, match=rf"a\.{ending} cannot be read"):
            read_document(file)


def test_a_file_that_unpacks_to_gigabytes_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.epub", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"0" * 1000)
        archive.infolist()[0].file_size = 10**10
    with pytest.raises(InvalidInput, match=r"a\.epub cannot be read as EPUB: it is too large"):
        read_document(tmp_path / "a.epub")
