"""What every format keeps: all text, exact spans, nested sections, errors that name the file, limits and linear time.

`format_cases.CASES` has a file of each registered format. The tests of one format check only what is particular to it.
"""

from __future__ import annotations

import os
import re
import struct
import time
import warnings
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import limits, read_document
from drillrank.errors import InvalidInput
from drillrank.structure import Document, registered_formats
from tests.drillrank.structure.checks import check_spans
from tests.drillrank.structure.format_cases import CASES, ODT, FormatCase
from tests.drillrank.structure.spreadsheets import archive_of, ods_of, ods_row, sheet_of, xlsx_of
from tests.examples import IS_THOROUGH, size
from tests.office_files import BOOK, SPACES, book_of, book_with, packed, presentation, repacked, word
from tests.word_files import word_file

OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # first bytes of old office files
EXAMPLES = int(os.environ.get("DRILLRANK_FUZZ", "20"))
each_format = pytest.mark.parametrize("name", CASES)


def written(folder: Path, name: str, content: bytes, ending: str | None = None) -> Path:
    """Write a file with an ending; without one, with the first one of the format."""
    pytest.importorskip(CASES[name].library, reason="needs the extra of this format")
    ending = CASES[name].endings[0] if ending is None else ending
    file = folder / (f"a.{ending}" if ending else "a")
    file.write_bytes(content)
    return file


def quietly_read(file: Path) -> Document:
    """Read a file without the warnings about what is wrong in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_document(file)


def test_each_registered_format_has_a_case():
    assert {file_format.name for file_format in registered_formats()} == CASES.keys()


@each_format
@pytest.mark.parametrize("change", [str.lower, str.upper])
def test_a_file_is_known_by_its_ending_and_read_whole(name, change, tmp_path):
    case = CASES[name]
    document = read_document(written(tmp_path, name, case.content, change(case.endings[0])))
    registered = {file_format.name: file_format for file_format in registered_formats()}
    assert document.format == (name if registered[name].convert is None else "markdown")
    assert [section.path for section in document.sections()] == case.paths
    shown = "".join(map(document.readable, document.sections()))
    assert shown.index("Deep water.") < shown.index("Cod swim.")
    check_spans(document)


@each_format
@pytest.mark.parametrize("content", [b"", b" \n"], ids=["empty", "blank"])
def test_a_file_without_text_is_an_empty_document_or_an_error_that_names_it(name, content, tmp_path):
    file = written(tmp_path, name, content)
    if CASES[name].is_text:
        assert not quietly_read(file).text.strip()
    else:
        with pytest.raises(InvalidInput, match=rf"^{re.escape(str(file))} (cannot be read as|is not a) "):
            read_document(file)


@pytest.mark.parametrize("name", ["docx", "pptx", "epub", "odt", "spreadsheet", "notebook", "eml", "mbox"])
def test_a_file_whose_text_exceeds_the_limit_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "EXTRACTED_CHARACTERS", 5)
    with pytest.raises(InvalidInput, match="too large"):
        read_document(written(tmp_path, name, CASES[name].content))


# Any content


def joined(case: FormatCase) -> st.SearchStrategy[bytes]:
    """Return generated files: parts of the format in any order."""
    if isinstance(case.pieces, st.SearchStrategy):
        return case.pieces.map(lambda text: text.encode("utf-8", "surrogatepass"))
    return st.lists(st.sampled_from(case.pieces), max_size=20).map(lambda pieces: case.head + b"".join(pieces))


def damaged(case: FormatCase) -> st.SearchStrategy[bytes]:
    """Return files of which some bytes are others, or which break off."""
    whole = case.content
    places = st.integers(0, len(whole))
    return st.one_of(
        st.tuples(places, st.binary(min_size=1, max_size=8)).map(
            lambda pair: whole[: pair[0]] + pair[1] + whole[pair[0] + len(pair[1]) :]
        ),
        places.map(lambda end: whole[:end]),
    )


def started(case: FormatCase) -> st.SearchStrategy[bytes]:
    """Return any bytes, also behind the first ones of a file of the format and of old office files."""
    return st.tuples(
        st.sampled_from([b"", case.content[:4], OLD, b"PK\x03\x04", b"\x09\x08"]), st.binary(max_size=200)
    ).map(b"".join)


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        pytest.param(name, contents, id=f"{name}-{contents.__name__}")
        for name, case in CASES.items()
        for contents in (joined, damaged, started)
        if contents is not joined or case.pieces != ()
    ],
)
def test_any_file_is_read_whole_or_refused_by_its_name(name, contents, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")

    # Each PDF file takes a process.
    @settings(max_examples=EXAMPLES if name != "pdf" else max(EXAMPLES // 8, 4))
    @given(contents(CASES[name]), st.sampled_from(CASES[name].endings))
    def holds(content, ending):
        file = written(folder, name, content, ending)
        try:
            document = quietly_read(file)
        except InvalidInput as problem:
            assert str(file) in str(problem)  # noqa: PT017
        else:
            check_spans(document)

    holds()


# Files that are refused


def lying(content: bytes) -> bytes:
    """Return the archive whose directory says of each part that it has 100 bytes."""
    found, at = bytearray(content), content.find(b"PK\x01\x02")
    while at >= 0:
        found[at + 24 : at + 28] = struct.pack("<I", 100)
        at = content.find(b"PK\x01\x02", at + 1)
    return bytes(found)


def word_of(body: str, before: str = "") -> bytes:
    document = f"{before}<w:document {SPACES}><w:body>{body}</w:body></w:document>"
    return repacked(word_file([("a", 0)]), {"word/document.xml": document})


def part_of(name: str, share: float) -> bytes:
    content = CASES[name].content
    return content[: int(share * len(content))]


def one_slide_often() -> bytes:
    slide = '<p:sldId id="256" r:id="one"/>'
    main = f"<p:presentation {SPACES}><p:sldIdLst>{slide * 1000}</p:sldIdLst></p:presentation>"
    said = f"<p:sld {SPACES}><p:sp><a:p><a:t>{'word ' * 10_000}</a:t></a:p></p:sp></p:sld>"
    parts = {"ppt/presentation.xml": main, "ppt/slides/slide1.xml": said}
    return repacked(presentation(), parts, zipfile.ZIP_DEFLATED)


ENTITY = f'<!DOCTYPE w [<!ENTITY a "{"word " * 1000}">]>'
OFTEN = BOOK["in/a.opf"].replace("<spine>", "<spine>" + '<itemref idref="1"/>' * 1000)
WHOLE = {"docx": word, "pptx": presentation, "epub": lambda: CASES["epub"].content}
SHEET = xlsx_of({"Data": sheet_of([["a"]])})
ENCRYPTED = OLD + b"\0" * 512 + "EncryptedPackage".encode("utf-16-le")
METHODS = {"bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}

# By format: what is wrong, a maker of the file, and what the message says.
REFUSED: list[tuple[str, str, Callable[[], bytes], str]] = [
    *(
        (name, what, lambda content=content: content, "cannot be read")
        for name in WHOLE
        for what, content in (
            ("a broken archive", b"PK\x03\x04 broken"),
            ("an old office file", OLD[:4] + b" a password"),
            ("an archive of other parts", packed({"other.xml": "<a/>"})),
        )
    ),
    *(
        (name, f"{share:.0%} of an archive", lambda name=name, share=share: part_of(name, share), "cannot be read as")
        for name in ("docx", "pptx", "epub", "odt", "spreadsheet")
        for share in (0.02, 0.3, 0.6, 0.9)
    ),
    *(
        (
            name,
            f"parts packed by {method}",
            lambda name=name, how=how: repacked(WHOLE[name](), {}, how),
            "another method than deflate",
        )
        for name in WHOLE
        for method, how in METHODS.items()
    ),
    ("docx", "entities", lambda: word_of("<w:p><w:r><w:t>&a;</w:t></w:r></w:p>" * 90, ENTITY), "document type"),
    ("docx", "deep elements", lambda: word_of("<w:p>" * 1000 + "</w:p>" * 1000), "nested too deeply"),
    ("pptx", "one slide often", one_slide_often, "too large"),
    ("epub", "a header that lies", lambda: lying(book_with(chapter="x" * 5_000_000)), "broken"),
    ("epub", "one chapter often", lambda: book_with(package=OFTEN, chapter=f"<p>{' ' * 100_000}x</p>"), "too large"),
    ("epub", "a chapter of megabytes", lambda: book_with(chapter=f"<p>{' ' * 5_000_000}x</p>"), "too large"),
    ("epub", "entities", lambda: book_with(package=ENTITY + "<p>&a;</p>"), "document type"),
    ("epub", "open tags", lambda: book_with(package="<item " * 20_000), "cannot be read as EPUB"),
    (
        "odt",
        "encrypted",
        lambda: packed({"mimetype": ODT, "content.xml": b"\x8f\x01\xff" * 30}),
        "cannot be read as OpenDocument",
    ),
    *(
        ("spreadsheet", what, lambda content=content: content, "spreadsheet")
        for what, content in (
            ("a text", b"name;age\nAnn;3\n"),
            ("a page", b"<table><tr><td>a</td></tr></table>"),
            ("an old one, broken", OLD + b"\0" * 600),
            ("a broken archive", b"PK\x03\x04 broken"),
            ("an archive of other parts", archive_of({"a.txt": "a"})),
            ("one that breaks off", SHEET[:-100]),
        )
    ),
    ("spreadsheet", "encrypted", lambda: ENCRYPTED, "encrypted"),
    (
        "spreadsheet",
        "encrypted, OpenDocument",
        lambda: ods_of("", **{"META-INF/manifest.xml": "<manifest:encryption-data/>"}),
        "encrypted",
    ),
    ("spreadsheet", "many rows", lambda: ods_of(ods_row("a", repeated=1_000_000_000)), "cells"),
    ("spreadsheet", "many cells", lambda: ods_of(ods_row(*["a"] * 20, repeated=1_000_000)), "cells"),
    (
        "spreadsheet",
        "a part of megabytes",
        lambda: xlsx_of({"Data": sheet_of([["a"]])}, **{"xl/bomb.xml": b" " * 50_000_000}),
        "too large",
    ),
    (
        "spreadsheet",
        "parts packed by lzma",
        lambda: archive_of({"xl/workbook.xml": "x" * 1000}, zipfile.ZIP_LZMA),
        "compressed",
    ),
    *(
        ("notebook", what, lambda content=content: content, "notebook")
        for what, content in (
            ("an open object", b"{"),
            ("a list", b"[]"),
            ("no cells", b'{"a": 1}'),
            ("deep lists", b"[" * 100_000),
            ("deep cells", b'{"cells": ' + b"[" * 1000),
            ("no text", b"\xff\xfe"),
        )
    ),
    *(
        ("rtf", what, lambda content=content: content, "RTF")
        for what, content in (("a text", b"text"), ("no brace", b"\\rtf1"), ("no backslash", b"{rtf1}"))
    ),
    *(
        (name, what, lambda content=content: content, "mail")
        for name, what, content in (
            ("mbox", "bytes", b"\0\1"),
            ("mbox", "a text", b"Just a text."),
            ("mbox", "a text with a colon", b"\n\nA text: not a header line first\xff"),
            ("eml", "bytes", b"\0\1"),
            ("eml", "a text", b"Just a text."),
        )
    ),
]


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [pytest.param(name, make, message, id=f"{name}, {what}") for name, what, make, message in REFUSED],
)
def test_a_file_that_cannot_be_read_is_refused_by_its_name(name, make, message, tmp_path):
    file = written(tmp_path, name, make())
    with pytest.raises(InvalidInput) as raised:
        read_document(file)
    assert str(raised.value).startswith(f"{file} ")
    assert message in str(raised.value)


# Content that asks a reader to run a program or to read another file

EVALUATED = {
    "markdown": "![a](file://{secret})\n\n<iframe src='file://{secret}'></iframe>\n",
    "html": "<script>touch('{mark}')</script><iframe src='file://{secret}'></iframe><p>words</p>",
    "latex": "\\immediate\\write18{{touch {mark}}}\\input{{{secret}}}\\include{{{secret}}} words",
    "rst": "a\n\n.. include:: {secret}\n\n.. raw:: html\n   :file: {secret}\n\n.. csv-table::\n   :file: {secret}\n",
    "yaml": "a: !!python/object/apply:os.system ['touch {mark}']\nb: !include {secret}\n",
    "csv": "a,b\n=cmd|'/C touch {mark}'!A0,=WEBSERVICE(\"file://{secret}\")\n",
    "notebook": '{{"cells": [{{"cell_type": "code", "source": "!touch {mark}"}}]}}',
    "rtf": '{{\\rtf1{{\\field{{\\*\\fldinst INCLUDETEXT "{secret}"}}{{\\fldrslt words}}}}}}',
    "eml": 'Subject: a\nContent-Type: message/external-body; access-type=local-file; name="{secret}"\n\nwords\n',
}
EXTERNAL = '<!DOCTYPE a [<!ENTITY b SYSTEM "file://{secret}">]>'


def archive_with_entity(name: str, secret: Path) -> bytes:
    """Return an office file whose text is an entity that refers to another file."""
    entity = EXTERNAL.format(secret=secret)
    if name == "docx":
        return word_of("<w:p><w:r><w:t>&b;</w:t></w:r></w:p>", entity)
    if name == "epub":
        return book_of({"a.xhtml": f"{entity}<p>&b;</p>"})
    if name == "odt":
        return packed({"mimetype": ODT, "content.xml": f"{entity}<a>&b;</a>"})
    return xlsx_of({"Data": entity + sheet_of([["words"]]).replace("words", "&b;")})


@pytest.mark.parametrize("name", [*EVALUATED, "docx", "epub", "odt", "spreadsheet"])
def test_nothing_in_a_file_is_run_or_fetched(name, tmp_path):
    secret, mark = tmp_path / "secret.txt", tmp_path / "mark"
    secret.write_text("wombat")
    text = EVALUATED[name].format(secret=secret, mark=mark) if name in EVALUATED else ""
    content = text.encode() or archive_with_entity(name, secret)
    try:
        shown = quietly_read(written(tmp_path, name, content)).text
    except InvalidInput as problem:
        shown = str(problem)
    assert "wombat" not in shown
    assert not mark.exists()


# Time


@dataclass(frozen=True)
class Pumped:
    """Files in which one part is repeated.

    Attributes:
        n: Number of characters, or of repetitions if `is_repeated`.
        seconds: Time in which each file is read.
        parts: Parts to repeat.
        frames: Beginnings and ends of the files.
        is_repeated: True if `n` counts repetitions.
    """

    n: int
    seconds: float
    parts: Sequence[str]
    frames: Sequence[tuple[str, str]] = (("", ""),)
    is_repeated: bool = True

    def files(self, part: str) -> list[bytes]:
        count = size(self.n) if self.is_repeated else size(self.n) // len(part)
        return [(head + part * count + tail).encode() for head, tail in self.frames]


JSON_PARTS = ["[1,", '{"a":', '[{"a":1},', '"', "/*", '"a",', '"\\', "]", "//\n", '{"a":{"b":[']
YAML_PARTS = ["a: ", "- ", "a:\n", "\n", "a: b\n\n", 'a: "x\n ', "- a\n", "a: |\n x\n", "'", "a: b\n  \n", '"a\\']
PUMPED = {
    "csv": Pumped(100_000, 1, ['"a"b,', '"', '""x,', "a,", ",\n", '"\n', ' "']),
    "json": Pumped(50_000, 1, JSON_PARTS, (("", ""), ("[", "1]"))),
    "yaml": Pumped(50_000, 1, [*YAML_PARTS, "#\n", "[", "? "]),
    "rtf": Pumped(
        50_000,
        1,
        ["{", r"\'e4", r"{\footnote ", r"a\cell ", r"\row\par x", r"\u55357?", "a{b}", "\\"],
        ((r"{\rtf1\ansi\ansicpg1252 ", "}"),),
    ),
    "rst": Pumped(
        50_000,
        2,
        [
            *("a\n", "a\n=\n", "=\n", "== ==\na b\n\n", "  == ==\n  a\n\n", ".. a::\n", ".. a::\n\n   b\n", "- a\n"),
            *("- a::\n", "``a ", "`a ", "``", "`", "**a ", "*a ", "|a ", "[a]_", "a_ ", ":a:", ":a: b\n", "+--+\n"),
            *("| a\n", "+-", ".. [1] a\n", "\\", "::\n\n  a\n\n", ">>> a\n", "\t", " ", "`a <", "`a" + " " * 500),
            *("a_a", "..\n", "#. a\n", "a\n  b\n", "____ ", "   .. note::\n"),
        ],
        [(head, "") for head in ("", "a\n", ".. list-table::\n\n   ", ".. csv-table::\n\n   ", "- ")],
        is_repeated=False,
    ),
}


@pytest.mark.parametrize(
    ("name", "part"),
    [pytest.param(name, part, id=f"{name}-{part!r:.20}") for name in PUMPED for part in PUMPED[name].parts],
)
def test_a_part_that_is_repeated_is_read_in_linear_time(name, part, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "READ_HERE_BYTES", 10_000_000)  # in this process, whose time is measured
    files = [written(tmp_path, name, content) for content in PUMPED[name].files(part)]
    start = time.process_time()
    for file in files:
        with suppress(InvalidInput):  # it has no text
            quietly_read(file)
    assert time.process_time() - start < PUMPED[name].seconds * (10 if IS_THOROUGH else 1)
