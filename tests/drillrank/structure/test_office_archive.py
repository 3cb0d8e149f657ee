"""Archives of office files: within limits, and read around their damage."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest

from drillrank.errors import InvalidInput
from drillrank.structure.docx import convert_docx
from drillrank.structure.formats import ConvertedText
from drillrank.structure.office_archive import OfficeArchive, UnreadablePart
from tests.office_files import SPACES, packed, paragraph, run, word, word_document


def text_or_message(convert: Callable[[bytes], ConvertedText], content: bytes) -> str:
    try:
        return convert(content).text
    except InvalidInput as problem:
        return str(problem)


def test_each_part_of_a_word_file_may_be_missing() -> None:
    content = word()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for missing in parts:
        remaining = packed({name: part for name, part in parts.items() if name != missing})
        if missing == "word/document.xml":
            with pytest.raises(InvalidInput, match="is missing"):
                convert_docx(remaining)
        else:
            assert "a paragraph" in convert_docx(remaining).text


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("<a>" * 600, "nested too deeply"),
        ("<r>" + "<a/>" * 300_000 + "</r>", "too many"),
        ("<r>" + '<a b="" c="" d="" e=""/>' * 60_000 + "</r>", "too many"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type with entities"),
        ('<!DOCTYPE a SYSTEM "x>y" [<!ENTITY b "c">]><a>&b;</a>', "document type with entities"),
        ("<!--" + " " * 70_000 + "--><!DOCTYPE a><a/>", "document type"),
        ("<a>" + " " * 30_000_000 + "</a>", "too large"),
    ],
)
def test_trees_are_bounded(part: str, message: str) -> None:
    archive = OfficeArchive(packed({"a.xml": part}))
    with pytest.raises(InvalidInput, match=message):
        archive.read_tree("a.xml")


def test_a_tree_ends_at_its_damage() -> None:
    archive = OfficeArchive(packed({"a.xml": "<a><b>kept</b><c", "b.xml": "<a"}))
    assert [child.text for child in archive.read_tree("a.xml")] == ["kept"]
    assert archive.problems["parts"] == 1
    with pytest.raises(UnreadablePart):
        archive.read_tree("b.xml")
    assert archive.try_read_tree("gone.xml") is None


@pytest.mark.parametrize("name", ["word/document.xml", "/word/document.xml", "Word/Document.XML", "word\\document.xml"])
def test_names_of_parts_are_compared_without_case(name: str) -> None:
    document = f"<w:document {SPACES}><w:body>{paragraph(run('Foxes.'))}</w:body></w:document>"
    assert convert_docx(packed({name: document})).text == "Foxes."


def test_warnings_hold_no_text_of_the_document() -> None:
    content = word_document(paragraph(run("secret"), '<w:r><w:footnoteReference w:id="secret"/></w:r>'))
    assert convert_docx(content).warnings == ("1 of its notes and comments is missing or damaged. The rest is read.",)


def test_charts_that_are_referred_to_often_are_bounded() -> None:
    chart = f"<c:c {SPACES}><c:title><a:t>{'a' * 200_000}</a:t></c:title></c:c>"
    body = paragraph('<w:r><w:drawing><c:chart r:id="c"/></w:drawing></w:r>') * 3000
    related = '<Relationship Id="c" Type="x/chart" Target="c.xml"/>'
    with pytest.raises(InvalidInput, match="too large"):
        convert_docx(word_document(body, more=related, c=chart))


DEEP = {
    "fractions": paragraph("<m:oMath>" + "<m:f><m:num>" * 200 + "<m:t>x</m:t>" + "</m:num></m:f>" * 200 + "</m:oMath>"),
    "brackets": paragraph("<m:oMath>" + "<m:d><m:e>" * 200 + "<m:t>x</m:t>" + "</m:e></m:d>" * 200 + "</m:oMath>"),
    "tables": "<w:tbl><w:tr><w:tc>" * 100 + paragraph(run("x")) * 1000 + "</w:tc></w:tr></w:tbl>" * 100,
    "controls": paragraph("<w:sdt><w:sdtContent>" * 200 + run("x") * 1000 + "</w:sdtContent></w:sdt>" * 200),
    "fields": paragraph('<w:r><w:fldChar w:fldCharType="begin"/></w:r>' * 2000 + run("x") * 1000),
    "continued": paragraph(run("x" * 50), properties="<w:rPr><w:del/></w:rPr>") * 5000,
}


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_elements_within_each_other_take_linear_work(body: str) -> None:
    assert len(text_or_message(convert_docx, word_document(body))) < 400_000


def test_styles_based_on_each_other_take_linear_work() -> None:
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="S{number}"><w:basedOn w:val="S{number + 1}"/></w:style>'
        for number in range(10_000)
    )
    body = "".join(paragraph(run("x"), properties=f'<w:pStyle w:val="S{number}"/>') for number in range(0, 10_000, 10))
    assert convert_docx(word_document(body, styles=styles)).text.count("x") == 1000
