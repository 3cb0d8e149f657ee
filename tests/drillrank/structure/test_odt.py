"""OpenDocument texts and presentations: headings, numbers, tables, notes and slides as LibreOffice shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from drillrank import read_document
from drillrank.errors import InvalidInput
from drillrank.structure.odt import convert_odt
from tests.office_files import packed

NAMESPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "style", "drawing", "draw", "presentation", "svg")
)
OUTLINE = (
    '<text:outline-style><text:outline-level-style text:level="1" style:num-format="1" style:num-suffix="."/>'
    '<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/></text:outline-style>'
)
LISTS = (
    '<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1"'
    ' style:num-suffix="."/><text:list-level-style-number text:level="2" style:num-format="a" style:num-prefix="("'
    ' style:num-suffix=")"/></text:list-style>'
    '<text:list-style style:name="B1"><text:list-level-style-bullet text:level="1" text:bullet-char="-"/>'
    "</text:list-style>"
)
STYLES = (
    '<style:style style:name="Title" style:family="paragraph"/>'
    '<style:style style:name="Subtitle" style:family="paragraph" style:parent-style-name="Title"/>'
    '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
    '<style:style style:name="Up"><style:text-properties style:text-position="super 58%"/></style:style>'
    '<style:style style:name="Down"><style:text-properties style:text-position="-33% 58%"/></style:style>'
    '<style:style style:name="Gone"><style:text-properties text:display="none"/></style:style>'
    '<style:style style:name="NoNumber" style:family="paragraph" style:list-style-name=""/>'
    '<style:style style:name="Away"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
)


def document(body: str, kind: str = "text", sheet: str = "", **parts: str) -> bytes:
    content = (
        f"<office:document-content {NAMESPACES}><office:automatic-styles>{STYLES}{LISTS}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    style_sheet = (
        f"<office:document-styles {NAMESPACES}><office:styles>{sheet}</office:styles></office:document-styles>"
    )
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": content,
            "styles.xml": style_sheet,
            **{f"{name}/content.xml": text for name, text in parts.items()},
        }
    )


def text_of(body: str, sheet: str = "", **parts: str) -> str:
    return convert_odt(document(body, sheet=sheet, **parts)).text


def p(text: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def h(text: str, level: int, style: str = "", more: str = "") -> str:
    return f'<text:h text:style-name="{style}" text:outline-level="{level}"{more}>{text}</text:h>'


def items(*contents: str, style: str = "L1", more: str = "") -> str:
    inside = "".join(f"<text:list-item>{content}</text:list-item>" for content in contents)
    return f'<text:list text:style-name="{style}"{more}>{inside}</text:list>'


def cell(text: str, more: str = "") -> str:
    return f"<table:table-cell{more}>{p(text) if text else ''}</table:table-cell>"


def rows(*contents: str) -> str:
    return (
        "<table:table>"
        + "".join(f"<table:table-row>{content}</table:table-row>" for content in contents)
        + "</table:table>"
    )


def test_headings_have_their_outline_level_and_number() -> None:
    body = h("Scope", 1) + h("Notice", 1) + h("Period", 2) + p("Three months.") + h("Annex", 1, "NoNumber")
    assert text_of(body, OUTLINE) == "# 1. Scope\n\n# 2. Notice\n\n## 2.1 Period\n\nThree months.\n\n# Annex"


def test_title_that_stands_first_is_above_the_headings() -> None:
    body = p("Report", "P1") + p("of 2031", "Subtitle") + h("One", 1)
    assert text_of(body) == "# Report\n\nof 2031\n\n## One"


def test_lists_count_and_continue() -> None:
    first = items(p("one"), p("two") + items(p("deep"), p("deeper"), style=""))
    more = ' text:continue-numbering="true"'
    text = text_of(first + p("between") + items(p("three"), more=more) + items(p("new")) + items(p("x"), style="B1"))
    assert text == "1. one\n2. two\n   - (a) deep\n   - (b) deeper\n\nbetween\n\n3. three\n1. new\n- x"


def test_list_starts_where_it_says_and_a_header_has_no_number() -> None:
    started = '<text:list text:style-name="L1"><text:list-header><text:p>head</text:p></text:list-header>'
    started += '<text:list-item text:start-value="7"><text:p>seven</text:p><text:p>more</text:p></text:list-item>'
    assert text_of(started + "</text:list>") == "head\n\n7. seven\n   more"


def test_tables_keep_their_columns() -> None:
    covered = "<table:covered-table-cell/>"
    body = rows(
        cell("") + cell("2031") + cell("2032"),
        cell("Sales") + cell("", ' table:number-columns-repeated="1"') + cell("2"),
        cell("All", ' table:number-columns-spanned="2"') + covered + cell("3"),
        cell("", ' table:number-columns-repeated="16000"'),
    )
    assert text_of(body) == "|  | 2031 | 2032 |\n| --- | --- | --- |\n| Sales |  | 2 |\n| All |  | 3 |"


def test_copies_of_cells_count_as_text() -> None:
    repeated = cell("word " * 200, ' table:number-columns-repeated="64"')
    assert text_of(rows(repeated)).count("word") == 64 * 200
    with pytest.raises(InvalidInput, match="too large when it is unpacked"):
        text_of(rows(repeated).replace("<table:table-row>", '<table:table-row table:number-rows-repeated="64">'))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('10<text:span text:style-name="Up">5</text:span> units', "10^5 units"),
        ('CO<text:span text:style-name="Down">2</text:span>', "CO2"),
        ('a<text:span text:style-name="Gone"> secret</text:span> b', "a b"),
        ('a<text:hidden-text text:string-value="secret" text:is-hidden="true"/> b', "a b"),
        ('a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d', "a b c\nd"),
        ("<text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>かん</text:ruby-text></text:ruby>字", "漢字"),
        ("see <text:a>the <text:span>link</text:span></text:a>.", "see the link."),
        ("page <text:page-number>4</text:page-number>", "page 4"),
    ],
)
def test_text_is_what_a_reader_sees(body: str, expected: str) -> None:
    assert text_of(p(body)) == expected


def test_deleted_text_and_hidden_sections_are_left_out() -> None:
    tracked = "<text:tracked-changes><text:deletion><text:p>deleted</text:p></text:deletion></text:tracked-changes>"
    hidden = '<text:section text:display="none"><text:p>hidden</text:p></text:section>'
    assert text_of(tracked + p("kept <text:change-start/>inserted<text:change-end/>") + hidden) == "kept inserted"


def test_notes_and_comments_follow_the_text() -> None:
    note = (
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Source.</text:p></text:note-body>"
    )
    comment = "<office:annotation><text:p>Check it.</text:p></office:annotation>"
    assert text_of(p(f"Fact{note}</text:note> here{comment}.")) == (
        "Fact[1] here[1].\n\n- [1] Source.\n\nComment [1]: Check it."
    )


def test_text_boxes_pictures_and_formulas_are_read() -> None:
    box = f"<draw:frame><draw:text-box>{p('boxed')}</draw:text-box></draw:frame>"
    picture = "<draw:frame><draw:image/><svg:desc>A chart of foxes</svg:desc></draw:frame>"
    formula = '<draw:frame><draw:object xlink:href="./Object 1" xmlns:xlink="x"/></draw:frame>'
    math = (
        "<math><semantics><mfrac><mn>1</mn><mn>2</mn></mfrac><annotation>{1} over {2}</annotation></semantics></math>"
    )
    text = text_of(p(f"Around {box}") + p(picture) + p(formula), **{"Object 1": math})
    assert text == "Around\n\nboxed\n\nA chart of foxes\n\n{1} over {2}"


def test_headers_and_footers_surround_the_text() -> None:
    master = f"<style:header>{p('Foxes Ltd.')}</style:header><style:footer>{p('Confidential')}</style:footer>"
    assert text_of(p("Text."), master) == "Foxes Ltd.\n\nText.\n\nConfidential"


def test_slides_are_sections_and_pages(tmp_path: Path) -> None:
    def frame(text: str, kind: str) -> str:
        return f'<draw:frame presentation:class="{kind}"><draw:text-box>{text}</draw:text-box></draw:frame>'

    notes = f"<presentation:notes>{frame(p('Say hello.'), 'notes')}</presentation:notes>"
    slides = (
        f"<draw:page>{frame(items(p('dig'), style='B1'), 'outline')}{frame(p('Badgers'), 'title')}{notes}</draw:page>"
        f'<draw:page draw:style-name="Away">{frame(p("Secret"), "title")}</draw:page>'
        f"<draw:page>{frame(p('No title'), 'outline')}</draw:page>"
    )
    path = tmp_path / "talk"
    path.write_bytes(document(slides, "presentation"))
    read = read_document(path)
    assert read.text == "# Badgers\n\n- dig\n\nSay hello.\n\n# Slide 2\n\nNo title"
    assert read.pages is not None
