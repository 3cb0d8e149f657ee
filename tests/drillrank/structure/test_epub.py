"""EPUB books: chapters are XHTML, in any encoding, and are found by their addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from drillrank import read_document
from drillrank.structure.epub import convert_epub
from tests.office_files import BOOK, book_of, packed


def page(body: str, head: str = "") -> str:
    return f'<html xmlns="http://www.w3.org/1999/xhtml"><head>{head}</head><body>{body}</body></html>'


def text_of(*chapters: str | bytes) -> str:
    return convert_epub(book_of({f"{number}.xhtml": chapter for number, chapter in enumerate(chapters)})).text


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        ("<title/>", "<p>Foxes hunt.</p>", "Foxes hunt."),
        ('<title>t</title><script src="kobo.js"/>', "<p>Foxes hunt.</p>", "Foxes hunt."),
        ("<style/>", "<p>Foxes hunt.</p>", "Foxes hunt."),
        ("<script type='a'  />", "<p>Foxes hunt.</p>", "Foxes hunt."),
        ("", '<iframe src="v"/><p>Foxes hunt.</p>', "Foxes hunt."),
        ("", "<textarea/><p>Foxes hunt.</p>", "Foxes hunt."),
        ("", "<noscript/><video src='v'/><object data='o'/><p>Foxes hunt.</p>", "Foxes hunt."),
        ("", "<div hidden='hidden'/><p>Foxes hunt.</p>", "Foxes hunt."),
        ("", "<nav/><template/><select/><p>Foxes hunt.</p>", "Foxes hunt."),
        ("", "<h1/><p>Foxes hunt.</p>", "Foxes hunt."),
        ("", "<p><![CDATA[1 < 2 & 3]]></p>", "1 < 2 & 3"),
        ("", "<p>one<br></br>two</p>", "one\ntwo"),
        ("", '<p title="a > b"/><p>Foxes hunt.</p>', "Foxes hunt."),
        ("<!-- <title/> -->", "<p>Foxes hunt.</p>", "Foxes hunt."),
    ],
)
def test_chapters_are_read_as_xml(head: str, body: str, expected: str) -> None:
    assert text_of(page(body, head), page("<p>Badgers dig.</p>")) == f"{expected}\n\nBadgers dig."


def test_names_with_a_prefix_are_those_of_html() -> None:
    chapter = (
        '<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:body><h:h1>Sea</h:h1><h:p>Deep.</h:p></h:body></h:html>'
    )
    assert text_of(chapter) == "# Sea\n\nDeep."


@pytest.mark.parametrize(
    "chapter",
    [
        page("<p>Füchse</p>").encode("utf-16"),
        page("<p>Füchse</p>").encode("utf-16-le"),
        page("<p>Füchse</p>").encode("utf-16-be"),
        ('<?xml version="1.0" encoding="UTF-16"?>' + page("<p>Füchse</p>")).encode("utf-16"),
        ('<?xml version="1.0" encoding="iso-8859-1"?>' + page("<p>Füchse</p>")).encode("latin-1"),
        ("<?xml version='1.0' encoding='windows-1252'?>" + page("<p>Füchse</p>")).encode("cp1252"),
        page("<p>Füchse</p>").encode("utf-8-sig"),
    ],
)
def test_chapters_are_read_in_their_encoding(chapter: bytes) -> None:
    assert text_of(chapter) == "Füchse"


@pytest.mark.parametrize(
    ("name", "href"),
    [
        ("a.xhtml", "a.xhtml#part"),
        ("a b.xhtml", "a%20b.xhtml"),
        ("ä.xhtml", "%C3%A4.xhtml"),
        ("a.xhtml", "./x/../a.xhtml"),
        ("a.xhtml", "/in/a.xhtml"),
        ("Text/A.xhtml", "text/a.xhtml"),
        ("text/a.xhtml", "text\\a.xhtml"),
        ("a.xhtml", "a.xhtml?x=1#y"),
    ],
)
def test_chapters_are_found_by_their_addresses(name: str, href: str) -> None:
    converted = convert_epub(book_of({name: page("<p>Foxes hunt.</p>")}, {name: href}))
    assert converted.text == "Foxes hunt."
    assert not converted.warnings


def test_a_book_without_some_of_its_chapters_is_read_with_a_warning(tmp_path: Path) -> None:
    spine = '<itemref idref="1"/><itemref idref="gone"/><itemref idref="unknown"/>'
    file = tmp_path / "a.epub"
    file.write_bytes(packed(BOOK | {"in/a.opf": BOOK["in/a.opf"].replace('<itemref idref="1"/>', spine)}))
    with pytest.warns(match=r"a\.epub: 2 of its chapters are missing"):
        assert "a paragraph" in read_document(file).text


def test_a_chapter_that_is_not_text_is_a_warning() -> None:
    converted = convert_epub(book_of({"a.xhtml": page("<p>Foxes.</p>"), "b.xhtml": b"\x00\x01\x02\xff" * 50}))
    assert converted.text == "Foxes."
    assert converted.warnings == ("1 of its chapters is missing or damaged. The rest is read.",)


def test_pictures_in_the_order_are_no_chapters() -> None:
    book = {"a.xhtml": page("<p>Foxes.</p>"), "b.jpg": b"\xff\xd8\xff"}
    opf = (
        '<package><manifest><item id="1" href="b.jpg" media-type="image/jpeg" fallback="2"/>'
        '<item id="2" href="a.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="3" href="b.jpg" media-type="image/jpeg" fallback="3"/></manifest>'
        '<spine><itemref idref="1"/><itemref idref="3"/></spine></package>'
    )
    converted = convert_epub(book_of(book, **{"in/a.opf": opf}))
    assert converted.text == "Foxes."
    assert not converted.warnings


def test_chapters_that_are_protected_are_a_warning() -> None:
    encryption = '<encryption><CipherReference URI="in/b.xhtml"/><CipherReference URI="in/font.otf"/></encryption>'
    book = book_of(
        {"a.xhtml": page("<p>Foxes.</p>"), "b.xhtml": b"\xff\x00"}, **{"META-INF/encryption.xml": encryption}
    )
    assert convert_epub(book).text == "Foxes."
    assert "protected against copying" in convert_epub(book).warnings[0]


def test_a_document_type_of_an_old_book_is_accepted() -> None:
    opf = '<!DOCTYPE package PUBLIC "+//ISBN 0-9673008-1-9//DTD OEB 1.0 Package//EN" "oebpkg1.dtd">' + BOOK["in/a.opf"]
    assert "a paragraph" in convert_epub(packed(BOOK | {"in/a.opf": opf})).text


def test_forms_are_shown() -> None:
    assert text_of(page("<p>a<sup>1</sup></p><form><label>Agreed</label></form>")).endswith("Agreed")


@pytest.mark.parametrize(
    "repeated", ["<a ", "<a b='", '<a b="', "<!--", "<![CDATA[", "<a/", "</a", "<a b=''/ ", "<a:b.c-"]
)
def test_markup_that_never_ends_takes_linear_time(repeated: str) -> None:
    book = book_of({"a.xhtml": f"<p>Foxes hunt.</p>{repeated * 40_000}"})
    assert convert_epub(book).text.startswith("Foxes hunt.")


CONTAINER = '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>'


def package(spine: str, media_type: str = "application/xhtml+xml") -> str:
    manifest = f'<manifest><item id="1" href="c.xhtml" media-type="{media_type}"/></manifest>'
    return f"<package>{manifest}<spine>{spine}</spine></package>"


@pytest.mark.parametrize(
    "parts",
    [
        {"META-INF/container.xml": CONTAINER, "a.opf": package("")},
        {"META-INF/container.xml": CONTAINER, "a.opf": package('<itemref idref="c.xhtml"/>')},
        {"META-INF/container.xml": CONTAINER, "a.opf": package('<itemref idref="1"/>', "text/x-oeb1-document")},
        {"META-INF/container.xml": CONTAINER, "in/b.opf": package('<itemref idref="1"/>').replace("c.x", "../c.x")},
        {"a.opf": package('<itemref idref="1"/>')},
    ],
)
def test_chapters_are_found_where_the_book_does_not_say_how(parts: dict[str, str]) -> None:
    assert convert_epub(packed({**parts, "c.xhtml": page("<p>Foxes hunt.</p>")})).text == "Foxes hunt."
