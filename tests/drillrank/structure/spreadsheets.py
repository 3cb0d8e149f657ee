"""Small writers of spreadsheets: workbooks of Excel and of OpenDocument."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns"


def archive_of(parts: dict[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def column_name(index: int) -> str:
    return ("" if index < 26 else column_name(index // 26 - 1)) + chr(ord("A") + index % 26)


def sheet_of(rows: Sequence[Sequence[object]], merged: str = "") -> str:
    """Write a sheet; None is a blank cell, and a pair of a number and 1 is a date."""
    body = ""
    for number, row in enumerate(rows, 1):
        cells = ""
        for index, value in enumerate(row):
            name = f'r="{column_name(index)}{number}"'
            if isinstance(value, tuple):
                cells += f'<c {name} s="1"><v>{value[0]}</v></c>'
            elif isinstance(value, bool):
                cells += f'<c {name} t="b"><v>{int(value)}</v></c>'
            elif isinstance(value, int | float):
                cells += f"<c {name}><v>{value}</v></c>"
            elif value is not None:
                cells += f'<c {name} t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>'
        body += f'<row r="{number}">{cells}</row>'
    ranges = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    return f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData>{ranges}</worksheet>'


def xlsx_of(sheets: dict[str, str], hidden: Sequence[str] = (), **more: str | bytes) -> bytes:
    listed, relations, types = "", "", ""
    for number, name in enumerate(sheets, 1):
        state = ' state="hidden"' if name in hidden else ""
        listed += f'<sheet name="{name}" sheetId="{number}"{state} r:id="r{number}"/>'
        relations += (
            f'<Relationship Id="r{number}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        )
        types += f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="x"/>'
    relations += f'<Relationship Id="s" Type="{RELATIONS}/styles" Target="styles.xml"/>'
    book = f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>'
    root = f'<Relationship Id="a" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/>'
    formats = f'<styleSheet xmlns="{MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
    return archive_of(
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">{types}</Types>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{root}</Relationships>',
            "xl/workbook.xml": book,
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{relations}</Relationships>',
            "xl/styles.xml": formats,
            **{f"xl/worksheets/sheet{number}.xml": sheet for number, sheet in enumerate(sheets.values(), 1)},
            **more,
        }
    )


def ods_of(rows: str, **more: str) -> bytes:
    body = (
        f'<office:document-content xmlns:office="{OFFICE}:office:1.0" xmlns:table="{OFFICE}:table:1.0" '
        f'xmlns:text="{OFFICE}:text:1.0" office:version="1.2"><office:body><office:spreadsheet>'
        f'<table:table table:name="Sales">{rows}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        f'<manifest:manifest xmlns:manifest="{OFFICE}:manifest:1.0"><manifest:file-entry manifest:full-path="/" '
        f'manifest:media-type="{kind}"/></manifest:manifest>'
    )
    return archive_of({"mimetype": kind, "content.xml": body, "META-INF/manifest.xml": manifest, **more})


def ods_row(*texts: str, repeated: int = 1) -> str:
    cells = "".join(
        f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'
        if text
        else "<table:table-cell/>"
        for text in texts
    )
    return f'<table:table-row table:number-rows-repeated="{repeated}">{cells}</table:table-row>'
