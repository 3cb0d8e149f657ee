"""PowerPoint files: slides, numbers, tables and charts as they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from drillrank import read_document
from drillrank.structure.pptx import convert_pptx
from tests.office_files import CHART, SPACES, frame, packed, presentation, relations, repacked, shape, slides_of


def text_of(*slides: str, attributes: tuple[str, ...] = ()) -> str:
    return convert_pptx(slides_of(*slides, attributes=attributes)).text


def line(*runs: str, properties: str = "") -> str:
    return f"<a:p>{properties}{''.join(runs)}</a:p>"


def run(text: str, attributes: str = "") -> str:
    return f"<a:r><a:rPr {attributes}/><a:t>{text}</a:t></a:r>"


def body(*lines: str) -> str:
    return f"<p:sp><p:txBody>{''.join(lines)}</p:txBody></p:sp>"


def numbered(text: str, kind: str = "arabicPeriod", level: int = 0, start: str = "") -> str:
    return line(
        run(text),
        properties=f'<a:pPr lvl="{level}"><a:buAutoNum type="{kind}" {start and f"startAt={start!r}"}/></a:pPr>',
    )


def cell(text: str, attributes: str = "") -> str:
    return f"<a:tc {attributes}><a:txBody>{line(run(text))}</a:txBody></a:tc>"


def table(*rows: str) -> str:
    return frame("<a:tbl>" + "".join(f"<a:tr>{row}</a:tr>" for row in rows) + "</a:tbl>")


def test_slides_are_pages(tmp_path: Path) -> None:
    made = pytest.importorskip("pptx", reason="needs the extra office").Presentation()
    for title, text in (("Foxes", "They hunt."), ("Badgers", "They dig.")):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    made.save(str(tmp_path / "a.pptx"))
    document = read_document(tmp_path / "a.pptx")
    found = [(section.path, document.page_numbers(section.start, section.end)) for section in document.sections()]
    assert found == [(("Foxes",), (1, 1)), (("Badgers",), (2, 2))]


@pytest.mark.parametrize("mark", ['show="0"', 'show="false"'])
def test_hidden_slides_are_left_out_and_the_others_keep_their_numbers(mark: str) -> None:
    converted = convert_pptx(slides_of(shape("a"), shape("b"), shape("c"), attributes=("", mark)))
    assert converted.text == "# Slide 1\n\na\n\n# Slide 3\n\nc"
    assert converted.pages is not None
    assert converted.pages.numbers == (1, 3)


def test_hidden_shapes_are_left_out() -> None:
    hidden = shape("gone").replace('<p:cNvPr id="1"/>', '<p:cNvPr id="1" hidden="1"/>')
    assert text_of(shape("a") + hidden + f"<p:grpSp>{hidden}{shape('b')}</p:grpSp>") == "# Slide 1\n\na\n\nb"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([cell("Year", 'gridSpan="2"') + cell("", 'hMerge="1"') + cell("2024"), cell("a") + cell("b") + cell("c")],
         ["| Year |  | 2024 |", "| a | b | c |"]),
        ([cell("North", 'rowSpan="2"') + cell("1"), cell("", 'vMerge="1"') + cell("2")], ["| North | 1 |", "|  | 2 |"]),
        ([cell("") + cell("2024"), cell("Sales") + cell("")], ["|  | 2024 |", "| Sales |  |"]),
        ([cell("Title"), cell("a") + cell("b")], ["| Title |  |", "| a | b |"]),
    ],
)  # fmt: skip
def test_cells_stay_in_their_columns(rows: list[str], expected: list[str]) -> None:
    lines = text_of(table(*rows)).split("\n")[2:]
    assert [row for row in lines if "---" not in row] == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([numbered("a"), numbered("b")], ["1. a", "2. b"]),
        ([numbered("a", "alphaLcParenR", start="3"), numbered("b", "alphaLcParenR", start="3")], ["- c) a", "- d) b"]),
        ([numbered("a"), numbered("b", level=1), numbered("c"), numbered("d", level=1)],
         ["1. a", "1. b", "2. c", "1. d"]),
        ([numbered("a", "romanUcPeriod"), line(run("between")), numbered("b", "romanUcPeriod")],
         ["- I. a", "between", "- I. b"]),
        ([numbered("a", "arabicParenBoth"), line(), numbered("b", "arabicParenBoth")], ["- (1) a", "- (2) b"]),
    ],
)  # fmt: skip
def test_automatic_numbers_are_counted(lines: list[str], expected: list[str]) -> None:
    assert text_of(body(*lines)).split("\n\n")[1:] == expected


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (run("10") + run("5", 'baseline="30000"') + run(" units"), "10^5 units"),
        (run("12") + run("3", 'baseline="30000"'), "12^3"),
        (run("CO") + run("2", 'baseline="-25000"'), "CO2"),
        (run("one") + "<a:br/>" + run("two"), "one\ntwo"),
        (run("x ") + "<m:oMath><m:f><m:num><m:t>1</m:t></m:num><m:den><m:t>2</m:t></m:den></m:f></m:oMath>", "x 1/2"),
    ],
)  # fmt: skip
def test_raised_text_never_runs_into_a_number(runs: str, expected: str) -> None:
    assert text_of(body(line(runs))) == f"# Slide 1\n\n{expected}"


def test_a_slide_that_is_missing_is_a_warning() -> None:
    content = slides_of(shape("a"), shape("b"))
    converted = convert_pptx(repacked(content, {"ppt/slides/slide1.xml": "<p:sld"}))
    assert converted.text == "# Slide 2\n\nb"
    assert converted.warnings == ("1 of its slides is missing or damaged. The rest is read.",)


def test_a_chart_keeps_the_columns_of_missing_values() -> None:
    points = '<c:pt idx="{}"><c:v>{}</c:v></c:pt>'
    categories = "".join(points.format(index, name) for index, name in enumerate(("spring", "summer", "autumn")))
    values = points.format(0, 17) + points.format(2, 23)
    chart = CHART.replace("<c:v>spring</c:v><c:v>autumn</c:v>", categories).replace(
        "<c:v>17</c:v><c:v>23</c:v>", values
    )
    text = convert_pptx(repacked(presentation(), {"ppt/charts/chart.xml": chart})).text
    assert "|  | spring | summer | autumn |" in text
    assert "| sales | 17 |  | 23 |" in text


def test_tables_of_notes_are_read() -> None:
    slide = f"<p:sld {SPACES}>{shape('a')}</p:sld>"
    parts = {
        "ppt/presentation.xml": f'<p:presentation {SPACES}><p:sldId r:id="one"/></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations(("one", "slide", "slide.xml")),
        "ppt/slide.xml": slide,
        "ppt/_rels/slide.xml.rels": relations(("n", "notesSlide", "notes.xml"), ("c", "comments", "gone.xml")),
        "ppt/notes.xml": f"<p:notes {SPACES}>{table(cell('noted'))}{shape('7', 'sldNum')}</p:notes>",
    }
    converted = convert_pptx(packed(parts))
    assert converted.text == "# Slide 1\n\na\n\n| noted |\n| --- |"
    assert converted.warnings == ("1 of its notes and comments is missing or damaged. The rest is read.",)


def test_tables_and_titles_within_each_other_take_linear_work() -> None:
    letters = "a" * 20_000
    opening, closing = "<a:tbl><a:tr><a:tc>", "</a:tc></a:tr></a:tbl>"
    assert len(text_of(opening * 100 + line(run(letters)) + closing * 100)) < 2 * len(letters)
    chart = f"<c:c {SPACES}>" + "<c:title>" * 400 + f"<a:t>{letters}</a:t>" + "</c:title>" * 400 + "</c:c>"
    assert convert_pptx(repacked(presentation(), {"ppt/charts/chart.xml": chart})).text.count("a") < 2 * len(letters)
    assert "x" in text_of("<p:sp>" * 300 + "<a:b/>" * 20_000 + line(run("x")) + "</p:sp>" * 300)


@pytest.mark.parametrize("ending", ["pptm", "ppsx", "potx"])
def test_shows_templates_and_files_with_macros_are_read(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.{ending}"
    file.write_bytes(presentation())
    assert read_document(file).sections()[0].path == ("a title",)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ('<p:sp><p:nvSpPr><p:cNvPr id="1" descr="An arrow to Kent"/></p:nvSpPr></p:sp>', "An arrow to Kent"),
        ('<p:grpSp><p:nvGrpSpPr><p:cNvPr id="1" descr="Foxes"/></p:nvGrpSpPr></p:grpSp>', "Foxes"),
        ('<p:pic><p:nvPicPr><p:cNvPr id="1" title="Map of Kent"/></p:nvPicPr></p:pic>', "Map of Kent"),
        (
            "<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr descr='Sales'/></p:nvGraphicFramePr></p:graphicFrame>",
            "Sales",
        ),
        (shape("Annual_x000B_Report"), "Annual\nReport"),
        (shape("x").replace("<a:t>x", '<a:rPr><a:sym typeface="Wingdings"/></a:rPr><a:t>\uf0e0 next'), "→ next"),
    ],
)
def test_descriptions_line_breaks_and_symbols_are_read(shapes: str, expected: str) -> None:
    assert convert_pptx(slides_of(shapes)).text == f"# Slide 1\n\n{expected}"


def test_numbers_of_paragraphs_in_a_cell_are_kept() -> None:
    number = '<a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr>'
    steps = "".join(f"<a:p>{number}<a:r><a:t>{text}</a:t></a:r></a:p>" for text in ("dig", "rest"))
    cells = f"<a:tc><a:txBody>{steps}</a:txBody></a:tc><a:tc><a:txBody><a:p/></a:txBody></a:tc>"
    assert "| 1. dig 2. rest |  |" in convert_pptx(slides_of(frame(f"<a:tbl><a:tr>{cells}</a:tr></a:tbl>"))).text
