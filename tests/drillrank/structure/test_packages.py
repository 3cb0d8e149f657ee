"""Office files recognized by their content."""

from __future__ import annotations

from pathlib import Path

import pytest

from drillrank import read_document
from drillrank.errors import InvalidInput
from drillrank.structure.packages import find_package_format
from tests.office_files import BOOK, packed, paragraph, presentation, repacked, run, word_document

TYPES = {"[Content_Types].xml": "<Types/>"}


@pytest.mark.parametrize("name", ["report", "report.bin", "report.docx", "report.doc", "report.zip", "report.pptx"])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (repacked(word_document(paragraph(run("Foxes hunt."))), TYPES), "Foxes hunt."),
        (repacked(presentation(), TYPES), "a paragraph"),
        (packed({"mimetype": "application/epub+zip", **BOOK}), "a paragraph"),
        (packed(BOOK), "a paragraph"),
    ],
)
def test_office_files_are_read_whatever_their_names(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert expected in read_document(path).text


@pytest.mark.parametrize(
    "content",
    [
        packed({"a.txt": "text"}),
        packed({"word/document.xml": "<a/>"}),
        packed({**TYPES, "3D/model.model": "<a/>"}),
        b"PK\x03\x04 broken",
        b"",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600,
    ],
)
def test_other_archives_are_not_office_files(tmp_path: Path, content: bytes) -> None:
    assert find_package_format(content) is None
    if content:
        (tmp_path / "report.zip").write_bytes(content)
        with pytest.raises(InvalidInput, match="which drillrank does not read"):
            read_document(tmp_path / "report.zip")


def test_drawing_of_libreoffice_is_named(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(packed({"mimetype": "application/vnd.oasis.opendocument.graphics"}, 0))
    with pytest.raises(InvalidInput, match="is a drawing"):
        read_document(tmp_path / "plan")
