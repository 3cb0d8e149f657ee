"""Word files: headings, numbers, tables, notes and text as Word shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from drillrank import parse_document, read_document
from drillrank.structure.docx import convert_docx
from tests.office_files import SPACES, M, R, W, packed, paragraph, raised, relations, repacked, run, word_document
from tests.word_files import word_file


def text_of(body: str, **parts: str) -> str:
    return convert_docx(word_document(body, **parts)).text


def style(id_: str, name: str, properties: str = "", base: str = "", kind: str = "paragraph") -> str:
    based = f'<w:basedOn w:val="{base}"/>' if base else ""
    return f'<w:style w:type="{kind}" w:styleId="{id_}"><w:name w:val="{name}"/>{based}{properties}</w:style>'


def levels(*formats: tuple[str, str], start: int = 1, more: str = "") -> str:
    """Levels of a list, by number format and text."""
    return "".join(
        f'<w:lvl w:ilvl="{level}"><w:start w:val="{start}"/><w:numFmt w:val="{name}"/><w:lvlText w:val="{text}"/>'
        f"{more}</w:lvl>"
        for level, (name, text) in enumerate(formats)
    )


def lists(definition: str, *overrides: str) -> str:
    """Lists 1, 2, ... with the same definition, each with its override."""
    instances = "".join(
        f'<w:num w:numId="{number}"><w:abstractNumId w:val="0"/>{override}</w:num>'
        for number, override in enumerate(overrides or ("",), start=1)
    )
    return f'<w:abstractNum w:abstractNumId="0">{definition}</w:abstractNum>{instances}'


def item(text: str, level: int = 0, number: int = 1) -> str:
    properties = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return paragraph(run(text), properties=properties)


def styled(text: str, style_id: str, properties: str = "") -> str:
    return paragraph(run(text), properties=f'<w:pStyle w:val="{style_id}"/>{properties}')


def table(*rows: str) -> str:
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(run(text) if text else '')}</w:tc>"


def field(kind: str, control: str = "") -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}">{control}</w:fldChar></w:r>'


def code(text: str) -> str:
    return f"<w:r><w:instrText>{text}</w:instrText></w:r>"


STYLES = (
    style("Corp", "Corporate Chapter", base="Heading1")
    + style("Sub", "Corporate Section", base="Corp")
    + style("Outline", "Nadpis [1]", '<w:pPr><w:outlineLvl w:val="0"/></w:pPr>')
    + style("berschrift2", "Überschrift 2")
    + style("Contents", "TOC Heading", '<w:pPr><w:outlineLvl w:val="9"/></w:pPr>', base="Heading1")
)


@pytest.mark.parametrize(
    ("paragraph_of", "expected"),
    [
        (styled("Notice", "Corp"), "# Notice"),
        (styled("Notice", "Sub"), "# Notice"),
        (styled("Notice", "Outline"), "# Notice"),
        (styled("Notice", "berschrift2"), "## Notice"),
        (styled("Notice", "Heading3"), "### Notice"),
        (styled("Notice", "Heading2", '<w:outlineLvl w:val="0"/>'), "# Notice"),
        (paragraph(run("Notice"), properties='<w:outlineLvl w:val="1"/>'), "## Notice"),
        (styled("Notice", "Contents"), "Notice"),
        (styled("Notice", "Corp", '<w:outlineLvl w:val="9"/>'), "Notice"),
        (styled("Notice", "Unknown"), "Notice"),
    ],
)
def test_styles_and_outline_levels_make_headings(paragraph_of: str, expected: str) -> None:
    assert text_of(paragraph_of, styles=STYLES) == expected


def test_styles_that_are_based_on_each_other_are_read() -> None:
    circle = style("A", "a", base="B") + style("B", "b", base="A")
    assert text_of(styled("Notice", "A"), styles=circle) == "Notice"


def test_headings_have_their_automatic_numbers() -> None:
    numbering = lists(
        '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:pStyle w:val="Heading1"/><w:lvlText w:val="%1."/></w:lvl>'
        '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:pStyle w:val="Heading2"/><w:lvlText w:val="%1.%2"/></w:lvl>'
    )
    numbered = style("Heading1", "heading 1", '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>')
    numbered += style("Heading2", "heading 2", '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>')
    body = [styled("Scope", "Heading1"), styled("Notice", "Heading1"), styled("Period", "Heading2")]
    body += [styled("Form", "Heading2"), styled("Costs", "Heading1"), styled("Rent", "Heading2")]
    text = text_of("".join(body), styles=numbered, numbering=numbering)
    assert text.split("\n\n") == [
        "# 1. Scope", "# 2. Notice", "## 2.1 Period", "## 2.2 Form", "# 3. Costs", "## 3.1 Rent"
    ]  # fmt: skip


def test_a_style_may_switch_the_numbers_of_its_base_off() -> None:
    numbered = style("Heading1", "heading 1", '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>')
    numbered += style("Annex", "Annex", '<w:pPr><w:numPr><w:numId w:val="0"/></w:numPr></w:pPr>', base="Heading1")
    body = styled("Scope", "Heading1") + styled("Annex", "Annex")
    numbering = lists(levels(("upperRoman", "Article %1")))
    assert text_of(body, styles=numbered, numbering=numbering) == "# Article I Scope\n\n# Annex"


@pytest.mark.parametrize(
    ("name", "pattern", "start", "expected"),
    [
        ("lowerLetter", "(%1)", 5, ["- (e) pay", "- (f) leave"]),
        ("lowerLetter", "%1)", 26, ["- z) pay", "- aa) leave"]),
        ("upperLetter", "%1.", 1, ["- A. pay", "- B. leave"]),
        ("lowerRoman", "%1.", 3, ["- iii. pay", "- iv. leave"]),
        ("upperRoman", "%1", 9, ["- IX pay", "- X leave"]),
        ("decimal", "%1.", 9, ["9. pay", "10. leave"]),
        ("decimal", "%1)", 1, ["1) pay", "2) leave"]),
        ("decimal", "§ %1", 7, ["- § 7 pay", "- § 8 leave"]),
        ("decimalZero", "%1", 9, ["- 09 pay", "- 10 leave"]),
        ("ordinal", "%1", 2, ["- 2nd pay", "- 3rd leave"]),
        ("cardinalText", "Clause %1", 1, ["- Clause One pay", "- Clause Two leave"]),
        ("ordinalText", "%1:", 11, ["- Eleventh: pay", "- Twelfth: leave"]),
        ("bullet", "•", 1, ["- pay", "- leave"]),
        ("none", "Note:", 1, ["- Note: pay", "- Note: leave"]),
        ("unknownFormat", "%1.", 4, ["4. pay", "5. leave"]),
    ],
)
def test_list_numbers_are_shown_as_printed(name: str, pattern: str, start: int, expected: list[str]) -> None:
    numbering = lists(levels((name, pattern), start=start))
    assert text_of(item("pay") + item("leave"), numbering=numbering).split("\n") == expected


def test_a_remark_between_items_does_not_restart_their_numbers() -> None:
    body = item("pay") + paragraph(run("A remark.")) + item("leave")
    assert text_of(body, numbering=lists(levels(("decimal", "%1.")))) == "1. pay\n\nA remark.\n\n2. leave"


def test_deeper_levels_start_again_below_each_item() -> None:
    numbering = lists(levels(("decimal", "%1."), ("lowerLetter", "%2)"), ("decimal", "%1.%2.%3")))
    body = item("a") + item("b", 1) + item("c", 2) + item("d", 1) + item("e") + item("f", 1)
    assert text_of(body, numbering=numbering).split("\n") == [
        "1. a", "   - a) b", "     - 1.a.1 c", "   - b) d", "2. e", "   - a) f"
    ]  # fmt: skip


def test_legal_numbering_shows_all_levels_as_decimals() -> None:
    upper = '<w:lvl w:ilvl="0"><w:start w:val="4"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1"/></w:lvl>'
    lower = '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:isLgl/><w:lvlText w:val="%1.%2"/></w:lvl>'
    assert text_of(item("a") + item("b", 1), numbering=lists(upper + lower)).split("\n") == ["- IV a", "  - 4.1 b"]


def test_a_level_that_never_restarts_counts_on() -> None:
    never = '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:lvlText w:val="(%2)"/><w:lvlRestart w:val="0"/></w:lvl>'
    body = item("a") + item("b", 1) + item("c") + item("d", 1)
    text = text_of(body, numbering=lists(levels(("decimal", "%1.")) + never))
    assert text.split("\n") == ["1. a", "   - (1) b", "2. c", "   - (2) d"]


def test_lists_of_one_definition_continue_unless_the_start_is_overridden() -> None:
    restart = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    numbering = lists(levels(("decimal", "%1.")), "", "", restart)
    body = item("a") + item("b", number=2) + item("c", number=3) + item("d", number=3)
    assert text_of(body, numbering=numbering).split("\n") == ["1. a", "2. b", "1. c", "2. d"]


def test_a_list_may_take_its_levels_from_a_list_style() -> None:
    definition = f'<w:abstractNum w:abstractNumId="5"><w:styleLink w:val="L"/>{levels(("lowerRoman", "%1)"))}'
    numbering = definition + "</w:abstractNum>" + lists('<w:numStyleLink w:val="L"/>')
    assert text_of(item("a") + item("b"), numbering=numbering) == "- i) a\n- ii) b"


def test_deleted_items_do_not_count_and_empty_ones_do() -> None:
    deleted = paragraph(
        f"<w:del>{run('gone')}</w:del>",
        properties='<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr><w:rPr><w:del/></w:rPr>',
    )
    numbering = lists(levels(("decimal", "%1.")))
    assert text_of(item("a") + deleted + item("b") + item("") + item("c"), numbering=numbering) == "1. a\n2. b\n4. c"


def test_huge_start_values_stay_short() -> None:
    numbering = lists(levels(("lowerLetter", "%1"), start=999_999_999))
    assert len(text_of(item("a"), numbering=numbering)) < 30


@pytest.mark.parametrize(
    "wrapped",
    ["<w:dir w:val='rtl'>{}</w:dir>", "<w:bdo w:val='rtl'>{}</w:bdo>", "<w:smartTag>{}</w:smartTag>",
     "<w:ins>{}</w:ins>", "<w:customXml>{}</w:customXml>", "<w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt>",
     "<w:moveTo>{}</w:moveTo>",
     "<w:fldSimple w:instr='REF a'>{}</w:fldSimple>", "<w:hyperlink r:id='gone'>{}</w:hyperlink>",
     "<w:dir><w:smartTag><w:ins>{}</w:ins></w:smartTag></w:dir>"],
)  # fmt: skip
def test_text_within_marks_is_kept(wrapped: str) -> None:
    assert text_of(paragraph(run("before "), wrapped.format(run("inside")), run(" after"))) == "before inside after"


def test_ruby_shows_its_base_text() -> None:
    ruby = f"<w:r><w:ruby><w:rt>{run('かんじ')}</w:rt><w:rubyBase>{run('漢字')}</w:rubyBase></w:ruby></w:r>"
    assert text_of(paragraph(run("今日は"), ruby, run("を学ぶ"))) == "今日は漢字を学ぶ"


HIDDEN = (
    style("Secret", "Secret", "<w:rPr><w:vanish/></w:rPr>", kind="character")
    + style("SecretLine", "Secret line", "<w:rPr><w:vanish/></w:rPr>")
    + style("SecretChild", "Secret child", base="SecretLine")
)


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        (paragraph(run("The fee is "), run("90, ", "<w:vanish/>"), run("120.")), "The fee is 120."),
        (paragraph(run("The fee is "), run("90, ", '<w:rStyle w:val="Secret"/>'), run("120.")), "The fee is 120."),
        (styled("90", "SecretLine") + paragraph(run("120")), "120"),
        (styled("90", "SecretChild") + paragraph(run("120")), "120"),
        (paragraph(run("shown", '<w:vanish w:val="0"/>')), "shown"),
        (paragraph(run("120", '<w:rStyle w:val="Secret"/><w:vanish w:val="false"/>')), "120"),
        (paragraph(run("is "), "<w:del><w:r><w:delText>90</w:delText></w:r></w:del>", run("120")), "is 120"),
        (paragraph(run("a"), f"<w:moveFrom>{run('b')}</w:moveFrom>"), "a"),
        (paragraph(run("joined ", ""), properties="<w:rPr><w:del/></w:rPr>") + paragraph(run("line")), "joined line"),
        (table(cell("kept"), "<w:trPr><w:del/></w:trPr>" + cell("gone")), "| kept |\n| --- |"),
    ],
)  # fmt: skip
def test_hidden_and_deleted_text_is_not_shown(hidden: str, expected: str) -> None:
    assert text_of(hidden, styles=HIDDEN) == expected


def test_codes_of_fields_are_not_shown_and_their_results_are() -> None:
    nested = field("begin") + code("IF ") + field("begin") + code("X") + field("separate") + run("hidden")
    nested += field("end") + code(" = 1") + field("separate") + run("shown") + field("end")
    assert text_of(paragraph(run("a "), nested, run(" b"))) == "a shown b"


def test_a_field_that_never_ends_hides_nothing() -> None:
    body = paragraph(field("begin"), code("PAGE"), run("a")) + paragraph(field("begin"), run("b")) + paragraph(run("c"))
    assert text_of(body) == "a\n\nb\n\nc"


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (run("The count was 10") + raised("5") + run(" units."), "The count was 10^5 units."),
        (run("due") + raised("1") + run("."), "due^1."),
        (run("10") + raised("-3") + run(" m") + raised("2"), "10^-3 m^2"),
        (run("2") + raised("n+1"), "2^(n+1)"),
        (run("the 5") + raised("th") + run(" of May"), "the 5th of May"),
        (raised("1") + run("Net of tax"), "1 Net of tax"),
        (run("H") + raised("2", "subscript") + run("O"), "H2O"),
        (run("1010") + raised("2", "subscript"), "1010_2"),
        (run("12") + run("3", '<w:position w:val="6"/>'), "12^3"),
        (run("12") + run("3", '<w:rStyle w:val="Mark"/>'), "12^3"),
        (run("12") + '<w:r><w:footnoteReference w:id="1"/></w:r>', "12[1]"),
    ],
)
def test_raised_text_never_runs_into_a_number(runs: str, expected: str) -> None:
    mark = style("Mark", "Mark", '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>', kind="character")
    assert text_of(paragraph(runs), styles=mark).split("\n")[0] == expected


def math(content: str) -> str:
    return f"<m:oMath>{content}</m:oMath>"


def part(name: str, text: str) -> str:
    return f"<m:{name}><m:r><m:t>{text}</m:t></m:r></m:{name}>"


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (f"<m:sSup>{part('e', '10')}{part('sup', '5')}</m:sSup>", "10^5"),
        (f"<m:f>{part('num', '1')}{part('den', '2')}</m:f>", "1/2"),
        (f"<m:r><m:t>2</m:t></m:r><m:f>{part('num', '1')}{part('den', '2')}</m:f>", "2 1/2"),
        (f"<m:f>{part('num', 'a+b')}{part('den', 'c')}</m:f>", "(a+b)/c"),
        (f"<m:rad>{part('deg', '3')}{part('e', 'x+1')}</m:rad>", "3√(x+1)"),
        (f"<m:sSub>{part('e', 'x')}{part('sub', 'i')}</m:sSub>", "x_i"),
        (f"<m:d>{part('e', 'a')}</m:d>", "(a)"),
    ],
)
def test_formulas_keep_fractions_and_powers(formula: str, expected: str) -> None:
    assert M in SPACES
    assert text_of(paragraph(run("x "), math(formula))) == f"x {expected}"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([cell("") + cell("2023") + cell("2024"), cell("Sales") + cell("1") + cell("2")],
         ["|  | 2023 | 2024 |", "| Sales | 1 | 2 |"]),
        ([cell("A") + cell("B"), cell("Cost") + cell("")], ["| A | B |", "| Cost |  |"]),
        ([cell("a | b") + cell("c"), cell("d") + cell("e")], [r"| a \| b | c |", "| d | e |"]),
        ([cell("Year", '<w:gridSpan w:val="2"/>') + cell("2024"), cell("a") + cell("b") + cell("c")],
         ["| Year |  | 2024 |", "| a | b | c |"]),
        ([cell("North", '<w:vMerge w:val="restart"/>') + cell("1"), cell("", "<w:vMerge/>") + cell("2")],
         ["| North | 1 |", "|  | 2 |"]),
        ([cell("a") + cell("b"), '<w:trPr><w:gridBefore w:val="1"/></w:trPr>' + cell("c")], ["| a | b |", "|  | c |"]),
        ([cell("Title"), cell("a") + cell("b")], ["| Title |  |", "| a | b |"]),
        (["<w:sdt><w:sdtContent>" + cell("a") + "</w:sdtContent></w:sdt>" + cell("b"), cell("c") + cell("d")],
         ["| a | b |", "| c | d |"]),
        ([cell("a", '<w:gridSpan w:val="999999999"/>')], ["| a |" + "  |" * 63]),
    ],
)  # fmt: skip
def test_cells_stay_in_their_columns(rows: list[str], expected: list[str]) -> None:
    lines = text_of(table(*rows)).split("\n")
    assert [line for line in lines if "---" not in line] == expected


def test_a_table_that_arranges_headings_and_tables_is_read_as_its_blocks() -> None:
    inner = table(cell("a") + cell("b"))
    outer = table(f"<w:tc>{styled('Notice', 'Heading1')}{paragraph(run('Text.'))}</w:tc><w:tc>{inner}</w:tc>")
    assert text_of(outer) == "# Notice\n\nText.\n\n| a | b |\n| --- | --- |"


def control(checked: str, content: str) -> str:
    return (
        f'<w:sdt><w:sdtPr><w14:checkbox xmlns:w14="urn:w14"><w14:checked w14:val="{checked}"/></w14:checkbox></w:sdtPr>'
        f"<w:sdtContent>{content}</w:sdtContent></w:sdt>"
    )


CHECK_BOX = '<w:ffData><w:checkBox><w:default w:val="0"/>{}</w:checkBox></w:ffData>'
ENTRIES = '<w:result w:val="1"/><w:listEntry w:val="Hen"/><w:listEntry w:val="Fox"/>'
DROP_DOWN = f"<w:ffData><w:ddList>{ENTRIES}</w:ddList></w:ffData>"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (control("1", run("☒")), "☒"),
        (control("0", run("☐")), "☐"),
        (control("1", run("R", '<w:rFonts w:ascii="Wingdings 2"/>')), "☒"),
        (control("0", '<w:r><w:sym w:font="Wingdings" w:char="F0A8"/></w:r>'), "☐"),
        (field("begin", CHECK_BOX.format("<w:checked/>")) + code("FORMCHECKBOX") + field("end"), "☒"),
        (field("begin", CHECK_BOX.format("")) + code("FORMCHECKBOX") + field("end"), "☐"),
        (field("begin", DROP_DOWN) + code("FORMDROPDOWN") + field("end"), "Fox"),
        ('<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>', "☑"),
        ('<w:r><w:sym w:font="Symbol" w:char="F061"/></w:r>', "α"),
        (run("\uf0b3", '<w:rFonts w:ascii="Symbol"/>'), "≥"),
    ],
)
def test_form_controls_and_symbols_are_shown(content: str, expected: str) -> None:
    assert text_of(paragraph(run("Agreed: "), content)) == f"Agreed: {expected}"


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("", f'<Relationship Id="q" Type="{R}/header" Target="header9.xml"/>'),
        ("", f'<Relationship Id="q" Type="{R}/footer" Target="NULL"/>'),
        ('<w:p><w:r><w:footnoteReference w:id="7"/></w:r></w:p>', ""),
        ('<w:p><w:r><w:commentReference w:id="9"/></w:r></w:p>', ""),
        ('<w:p><w:r><w:drawing><c:chart r:id="gone"/></w:drawing></w:r></w:p>', ""),
        ('<w:altChunk r:id="gone"/>', ""),
    ],
)
def test_a_reference_that_leads_nowhere_is_a_warning(body: str, more: str) -> None:
    converted = convert_docx(word_document(paragraph(run("Notice.")) + body, more=more))
    assert converted.text.startswith("Notice.")
    assert [warning for warning in converted.warnings if "missing or damaged" in warning]


def test_pictures_and_links_without_relation_are_read() -> None:
    picture = '<w:drawing><wp:inline><wp:docPr id="1" descr="A chart"/><a:blip r:embed="gone"/></wp:inline></w:drawing>'
    assert text_of(paragraph(run("See "), f"<w:r>{picture}</w:r>")) == "See A chart"
    hidden = picture.replace('id="1"', 'id="1" hidden="1"')
    assert text_of(paragraph(run("See"), f"<w:r>{hidden}</w:r>")) == "See"


@pytest.mark.parametrize("damage", ["<w:styles", "<w:styles><w:style>", "", "no XML"])
def test_damaged_styles_and_lists_are_a_warning(damage: str) -> None:
    converted = convert_docx(word_document(paragraph(run("Notice.")), numbering="<broken>"))
    assert converted.text == "Notice."
    assert converted.warnings
    broken = packed(
        {
            "word/document.xml": f"<w:document {SPACES}><w:body>{styled('Notice.', 'Heading1')}</w:body></w:document>",
            "word/styles.xml": damage,
        }
    )
    assert convert_docx(broken).text == "# Notice."


def test_a_document_that_breaks_off_is_read_to_the_damage() -> None:
    document = f"<w:document {SPACES}><w:body>{paragraph(run('Notice.'))}<w:p><w:r><w:t>cut"
    converted = convert_docx(packed({"word/document.xml": document}))
    assert converted.text.startswith("Notice.")
    assert converted.warnings


def strict(text: str) -> str:
    return text.replace(W, "http://purl.oclc.org/ooxml/wordprocessingml/main").replace(
        R, "http://purl.oclc.org/ooxml/officeDocument/relationships"
    )


def test_strict_open_xml_reads_like_the_usual_one() -> None:
    body = styled("Scope", "Heading1") + item("pay") + table(cell("a") + cell("b"))
    parts = {
        "_rels/.rels": relations(("a", "officeDocument", "word/document.xml")),
        "word/_rels/document.xml.rels": relations(("s", "styles", "styles.xml"), ("n", "numbering", "numbering.xml")),
        "word/document.xml": f"<w:document {SPACES}><w:body>{body}</w:body></w:document>",
        "word/styles.xml": f"<w:styles {SPACES}>{style('Heading1', 'heading 1')}</w:styles>",
        "word/numbering.xml": f"<w:numbering {SPACES}>{lists(levels(('decimal', '%1.')))}</w:numbering>",
    }
    expected = "# Scope\n\n1. pay\n\n| a | b |\n| --- | --- |"
    assert convert_docx(packed(parts)).text == expected
    assert convert_docx(packed({name: strict(text) for name, text in parts.items()})).text == expected


def test_each_note_is_written_once_with_its_mark() -> None:
    reference = '<w:r><w:footnoteReference w:id="{}"/></w:r>'
    body = paragraph(run("a"), reference.format(5), run(" b"), reference.format(2), run(" c"), reference.format(5))
    kept = "".join(f'<w:footnote w:id="{id_}">{paragraph(run(f"note {id_}"))}</w:footnote>' for id_ in (2, 5, 7))
    text = text_of(body, footnotes=f"<w:footnotes {SPACES}>{kept}</w:footnotes>")
    assert text == "a[1] b[2] c[1]\n\n- [1] note 5\n- [2] note 2"


def test_notes_that_refer_to_each_other_end() -> None:
    reference = '<w:r><w:footnoteReference w:id="{}"/></w:r>'
    circle = "".join(
        f'<w:footnote w:id="{id_}">{paragraph(run(f"note {id_}"), reference.format(3 - id_))}</w:footnote>'
        for id_ in (1, 2)
    )
    text = text_of(paragraph(run("a"), reference.format(1)), footnotes=f"<w:footnotes {SPACES}>{circle}</w:footnotes>")
    assert text == "a[1]\n\n- [1] note 1[2]\n- [2] note 2[1]"


def test_tables_in_notes_and_headers_are_text() -> None:
    cells = table(cell("a") + cell("b"))
    converted = convert_docx(
        word_document(
            paragraph(run("x"), '<w:r><w:endnoteReference w:id="1"/></w:r>'),
            more=f'<Relationship Id="q" Type="{R}/header" Target="h.xml"/>',
            endnotes=f'<w:endnotes {SPACES}><w:endnote w:id="1">{cells}</w:endnote></w:endnotes>',
            h=f"<w:hdr {SPACES}>{cells}</w:hdr>",
        )
    )
    assert converted.text == "a | b\n\nx[i]\n\n- [i] a | b"
    assert not converted.warnings


def test_text_boxes_within_each_other_take_linear_work() -> None:
    opening, closing = "<w:drawing><w:txbxContent><w:p><w:r>", "</w:r></w:p></w:txbxContent></w:drawing>"
    body = paragraph("<w:r>" + opening * 90 + "<w:t>a</w:t>" + closing * 90 + "</w:r>")
    assert text_of(body) == "a"


def test_an_initial_belongs_to_the_word_that_it_begins() -> None:
    initial = paragraph(run("O"), properties='<w:framePr w:dropCap="drop"/>')
    assert text_of(initial + paragraph(run("nce upon a time"))) == "Once upon a time"


def test_embedded_pages_are_read() -> None:
    parts = {"more": f'<Relationship Id="page" Type="{R}/aFChunk" Target="page.html"/>'}
    content = word_document(paragraph(run("a")) + '<w:altChunk r:id="page"/>', **parts)
    whole = repacked(content, {"word/page.html": "<h2>Foxes</h2><p>They hunt.</p>"})
    assert convert_docx(whole).text == "a\n\n## Foxes\n\nThey hunt."


def test_cells_and_hashes_of_a_word_file_are_text(tmp_path: Path) -> None:
    file = tmp_path / "a.docx"
    file.write_bytes(word_file([("Animals", 1), ("# of them", 0), ("Foxes", 2), [["Fox", "42"], ["Fox", "42"]]]))
    document = read_document(file)
    assert [section.path for section in document.sections()] == [("Animals",), ("Animals", "Foxes")]
    assert "# of them" in document.text
    assert document.text.count("| Fox | 42 |") == 2


@pytest.mark.parametrize("ending", ["docm", "dotx", "dotm", "DOCX"])
def test_templates_and_files_with_macros_are_read(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.{ending}"
    file.write_bytes(word_document(styled("Scope", "Heading1")))
    assert read_document(file).sections()[0].path == ("Scope",)


TITLES = style("Title", "Title") + style("Subtitle", "Subtitle", base="Title") + style("Cover", "Cover", base="Title")


def paths_of(body: str, styles: str = TITLES) -> list[tuple[str, ...]]:
    text = convert_docx(word_document(body, styles=styles)).text
    return [section.path for section in parse_document(text, "markdown").sections()]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (styled("Report", "Title") + styled("One", "Heading1"), [("Report",), ("Report", "One")]),
        (styled("Report", "Cover") + styled("One", "Heading1"), [("Report",), ("Report", "One")]),
        (styled("Annual", "Title") + styled("Report", "Title") + item("x"), [("Annual Report",)]),
        (styled("Report", "Title") + styled("of 2031", "Subtitle"), [("Report",)]),
        (
            styled("One", "Heading1") + styled("Annex", "Title") + styled("Two", "Heading1"),
            [("One",), ("Annex",), ("Two",)],
        ),
        (
            styled("Report", "Title") + styled("One", "Heading1") + styled("Part", "Heading2"),
            [("Report",), ("Report", "One"), ("Report", "One", "Part")],
        ),
    ],
)
def test_title_that_stands_first_is_above_the_headings(body: str, expected: list[tuple[str, ...]]) -> None:
    assert paths_of(body) == expected


def test_subtitle_is_a_paragraph() -> None:
    body = styled("Report", "Title") + styled("of 2031", "Subtitle") + styled("One", "Heading1")
    assert text_of(body, styles=TITLES) == "# Report\n\nof 2031\n\n## One"


def test_table_with_heads_in_heading_styles_stays_a_table() -> None:
    def head(text: str) -> str:
        return f"<w:tc>{styled(text, 'Heading2')}</w:tc>"

    text = text_of(table(head("Year") + head("Sales"), cell("2031") + cell("12"), cell("2032") + cell("")))
    assert text == "| Year | Sales |\n| --- | --- |\n| 2031 | 12 |\n| 2032 |  |"


@pytest.mark.parametrize(
    ("number_format", "second"),
    [
        ("hebrew1", "ב"),
        ("arabicAlpha", "ب"),
        ("arabicAbjad", "ب"),
        ("decimalFullWidth", "２"),
        ("aiueoFullWidth", "イ"),
        ("iroha", "ロ"),
        ("ganada", "나"),
        ("thaiLetters", "ข"),
        ("hex", "2"),
        ("chicago", "†"),
        ("ideographTraditional", "乙"),
        ("ideographZodiac", "丑"),
        ("ideographEnclosedCircle", "㊁"),
        ("chineseLegalSimplified", "贰"),
        ("koreanCounting", "이"),
        ("koreanDigital", "이"),
    ],
)
def test_numbers_of_lists_are_in_the_script_of_the_list(number_format: str, second: str) -> None:
    text = text_of(item("a") + item("b"), numbering=lists(levels((number_format, "%1:"))))
    assert text.endswith(f"- {second}: b")


@pytest.mark.parametrize("merge", ["<w:vMerge/>", '<w:vMerge w:val="continue"/>', "<w:hMerge/>"])
def test_text_in_a_cell_that_is_merged_away_is_left_out(merge: str) -> None:
    text = text_of(table(cell("A") + cell("B"), cell("ghost", merge) + cell("2")))
    assert text == "| A | B |\n| --- | --- |\n|  | 2 |"


def test_deleted_terms_of_a_formula_are_left_out() -> None:
    deleted = "<w:del><m:r><m:t>7</m:t></m:r></w:del>"
    assert text_of(paragraph(f"<m:oMath>{deleted}<m:r><m:t>8</m:t></m:r></m:oMath>")) == "8"


def test_picture_that_has_a_title_only_is_described_by_it() -> None:
    picture = '<w:drawing><wp:inline><wp:docPr id="1" descr="" title="Map of Kent"/></wp:inline></w:drawing>'
    assert text_of(paragraph(f"<w:r>{picture}</w:r>")) == "Map of Kent"
