"""The registry of file formats: a third party adds a format without a change of ours."""

from __future__ import annotations

import pytest

from drillrank.errors import InvalidInput
from drillrank.structure import (
    Block,
    ConvertedText,
    Heading,
    Pages,
    Scan,
    formats,
    parse_document,
    read_document,
    register_format,
    registered_formats,
)


def scan_stars(text: str) -> Scan:
    """Read lines that begin with a star as headings and other lines as paragraphs."""
    blocks, headings, start = [], {}, 0
    for line in text.splitlines(keepends=True):
        end = start + len(line.rstrip())
        if line.startswith("*"):
            level = len(line) - len(line.lstrip("*"))
            blocks.append(Block("heading", start, end))
            headings[start] = Heading(level, line.strip("* \n"))
        elif line.strip():
            blocks.append(Block("paragraph", start, end))
        start += len(line)
    return Scan(blocks, headings)


def convert_reversed(content: bytes) -> ConvertedText:
    """Convert a file whose bytes are reversed Markdown."""
    if content.startswith(b"broken"):
        raise InvalidInput("is broken: write it backwards.")
    return ConvertedText(content[::-1].decode(), Pages((0, 3), (1, 2), ("i", "1")), ("has been reversed.",))


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    for name in ("_format_by_name", "_format_by_suffix", "_format_by_media_type"):
        monkeypatch.setattr(formats, name, dict(getattr(formats, name)))


def test_a_text_format_is_parsed_by_name_by_suffix_and_by_media_type(tmp_path):
    register_format("stars", [".Stars"], ["text/x-stars"], scan_stars)
    text = "* Sea\nDeep.\n** Fish\nCod.\n"
    (tmp_path / "a.STARS").write_text(text)
    documents = [
        parse_document(text, "stars"),
        parse_document(text, metadata={"file_name": "a.stars"}),
        parse_document(text, metadata={"content_type": "text/x-stars; charset=utf-8"}),
        read_document(tmp_path / "a.STARS"),
    ]
    for document in documents:
        assert document.format == "stars"
        assert [section.path for section in document.sections()] == [("Sea",), ("Sea", "Fish")]


def test_a_whole_file_name_has_a_format():
    register_format("stars", ["STARS"], [], scan_stars)
    assert parse_document("* Sea\n", metadata={"source": "a/b/Stars"}).format == "stars"
    assert parse_document("* Sea\n", metadata={"source": "a/b.stars"}).format == "text"


def test_a_converted_file_is_read_with_its_pages_and_warnings(tmp_path):
    register_format("reversed", [".rev"], [], "markdown", convert=convert_reversed)
    (tmp_path / "a.rev").write_bytes(b"# Sea\n\nDeep."[::-1])
    with pytest.warns(match=r"a\.rev: has been reversed\."):
        document = read_document(tmp_path / "a.rev")
    assert (document.text, document.format) == ("# Sea\n\nDeep.", "markdown")
    assert document.pages == Pages((0, 3), (1, 2), ("i", "1"))


def test_the_message_of_a_converter_continues_the_name_of_the_file(tmp_path):
    register_format("reversed", [".rev"], [], "markdown", convert=convert_reversed)
    (tmp_path / "a.rev").write_bytes(b"broken")
    with pytest.raises(InvalidInput, match=r"a\.rev is broken: write it backwards\.$"):
        read_document(tmp_path / "a.rev")


def test_a_signature_decides_whatever_the_name_of_the_file(tmp_path):
    register_format("reversed", [".rev"], [], "markdown", convert=convert_reversed, signature=b"REV")
    (tmp_path / "a.txt").write_bytes(b"REV\n.peeD\n\naeS #")
    with pytest.warns(match="has been reversed"):
        assert read_document(tmp_path / "a.txt").text == "# Sea\n\nDeep.\nVER"


def test_a_format_of_the_same_name_is_replaced():
    register_format("markdown", [".md"], [], scan_stars)
    assert [section.path for section in parse_document("* Sea\n", "markdown").sections()] == [("Sea",)]
    assert [file_format.name for file_format in registered_formats()].count("markdown") == 1


def test_text_formats_are_found_in_metadata_and_converted_ones_are_not():
    register_format("reversed", [".rev"], [], "markdown", convert=convert_reversed)
    assert parse_document("Deep.", metadata={"file_name": "a.rev"}).format == "text"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", [".a"], [], scan_stars), "name must be the name of a format, other than 'auto', got ''"),
        (("auto", [".a"], [], scan_stars), "other than 'auto', got 'auto'"),
        (("stars", [""], [], scan_stars), "must be an ending such as '.md' or a whole name, got ''"),
        (("stars", ["."], [], scan_stars), "got '.'"),
        (("stars", [".a"], [], "asciidoc"), "Unknown format 'asciidoc'. Choose one of: auto, markdown"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        register_format(*arguments)
