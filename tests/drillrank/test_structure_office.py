"""Word, PowerPoint and EPUB files."""

from __future__ import annotations

import zipfile

import pytest

from drillrank import read_document
from drillrank.errors import InvalidInput
from tests.word_files import word_file


def packed(path, parts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def outline(document):
    return [section.path for section in document.sections()]


def test_word(tmp_path):
    pytest.importorskip("mammoth", reason="needs the extra office")
    table = [["Fox", "42"], ["Fox", "42"]]
    file = tmp_path / "a.docx"
    file.write_bytes(word_file([("Animals", 1), ("# of them", 0), ("Foxes", 2), table]))
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
