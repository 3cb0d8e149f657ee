"""A small file of each registered format, and the parts of which its generated files consist."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.drillrank.structure.generated import html, latex, nasty, plain
from tests.drillrank.structure.spreadsheets import sheet_of, xlsx_of
from tests.office_files import book_of, packed, shape, slides_of
from tests.pdf_files import Text, pdf_of
from tests.word_files import word_file

NESTED = [("Sea",), ("Sea", "Fish")]
FLAT: list[tuple[str, ...]] = [("Sea",)]
WITHOUT: list[tuple[str, ...]] = [()]
ODT = "application/vnd.oasis.opendocument.text"


@dataclass(frozen=True)
class FormatCase:
    """A file of a format.

    Attributes:
        content: A file with the sentences "Deep water." and "Cod swim.".
        paths: Paths of its sections.
        endings: Endings of its files; the content has the first one.
        is_text: True if the text of the file is that of the document. Such a file may be empty.
        pieces: Generated texts, or parts of generated files.
        head: Beginning of a file that is generated from parts.
        library: Module that reads the format.
    """

    content: bytes
    paths: list[tuple[str, ...]]
    endings: tuple[str, ...]
    is_text: bool = False
    pieces: Sequence[bytes] | st.SearchStrategy[str] = ()
    head: bytes = b""
    library: str = "drillrank"


def odt_of(body: str) -> bytes:
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text"))
    content = f"<office:document-content {spaces}><office:body><office:text>{body}</office:text></office:body>"
    return packed({"mimetype": ODT, "content.xml": content + "</office:document-content>"})


def notebook_of(*sources: str) -> bytes:
    return json.dumps({"cells": [{"cell_type": "markdown", "source": source} for source in sources]}).encode()


MARKDOWN = "# Sea\n\nDeep water.\n\n## Fish\n\nCod swim.\n"
UNDERLINED = "Sea\n===\n\nDeep water.\n\nFish\n----\n\nCod swim.\n"
HTML = "<h1>Sea</h1><p>Deep water.</p><h2>Fish</h2><p>Cod swim.</p>"
WORD = [("Sea", 1), ("Deep water.", 0), ("Fish", 2), ("Cod swim.", 0)]
RTF = rb"\pard\s1 Sea\par\pard Deep water.\par\pard\s2 Fish\par\pard Cod swim.\par"
PRINTED = [Text("Sea", y=72, size=18, bold=True), Text("Deep water.", y=140), Text("Cod swim.", y=180)]
MAIL = b"Subject: Sea\n\nDeep water. Cod swim.\n"
RTF_PIECES = (
    r"\par;\super;\cell;\row;{;};\'e4;\'83;\u8217?;\f1;\v;\pard;\intbl;\*;a;\bin3;\footnote;\fonttbl;\stylesheet"
)
MAIL_PIECES = [
    *(b"Content-Type: multipart/mixed; boundary=b\n", b"Content-Type: text/html\n", b"Content-Type: message/rfc822\n"),
    *(b"--b\n", b"--b--\n", b"\n", b"text\n", b"Subject: x\n", b"Content-Transfer-Encoding: base64\n", b"\xff\n"),
    *(b"From a b\n", b"Content-Type: ;\n", b"Content-Disposition: attachment; filename*=utf-8''%ff\n"),
    b"Content-Type: text/plain; charset=\xff\n",
]
RST_PIECES = [
    *("a", "Title", "====", "=", "----", "== ==", "+--+--+", "|a|b|", ".. note::", ".. code::", ".. _a:"),
    *("- b", "1. c", "(a) d", ".. |a| replace:: b", "::", "x::", "  in", "    deep", ":f: v", "``l``", "*e*", "|a|"),
    *("`t <u>`_", "\\", ">>> p", "| l", "..", "\t", "\x0c", "\u2028", "\ud800", ".. list-table::", "   * - a", "__ x"),
    *(".. csv-table::", '   "a', ".. [1] f", "\n", "\n", "\n\n", "\r\n", "\r", " \n"),
]
CODE_PIECES = ["def a():", "    x", "}", "# b", "\t", "x" * 90, "\x0c", "\u2028", "\n", "\n\n", "\r\n", "\r"]


def texts_of(pieces: Sequence[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), max_size=20).map("".join)


JSON = st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3))
CELLS = st.lists(
    st.dictionaries(
        st.sampled_from(["cell_type", "source", "outputs", "level", "input"]),
        st.sampled_from(["code", "markdown", "heading"]) | JSON,
    ),
    max_size=4,
)
CASES = {
    "markdown": FormatCase(MARKDOWN.encode(), NESTED, ("md",), True, nasty),
    "html": FormatCase(HTML.encode(), NESTED, ("html",), True, html),
    "latex": FormatCase(rb"\section{Sea}Deep water. \subsection{Fish}Cod swim.", NESTED, ("tex",), True, latex),
    "text": FormatCase(UNDERLINED.encode(), NESTED, ("txt", ""), True, plain),
    "rst": FormatCase(UNDERLINED.encode(), NESTED, ("rst",), True, texts_of(RST_PIECES)),
    "code": FormatCase(b'print("Deep water.")\nprint("Cod swim.")\n', WITHOUT, ("py",), True, texts_of(CODE_PIECES)),
    "csv": FormatCase(
        b"sea,fish\nDeep water.,Cod swim.\n", WITHOUT, ("csv",), True, texts_of([*'ab1 ,;\t|"\r\n\ufeff'])
    ),
    "tsv": FormatCase(b"sea\tfish\nDeep water.\tCod swim.\n", WITHOUT, ("tsv",), True, texts_of([*'ab1 ,\t"\r\n'])),
    "json": FormatCase(
        b'{"sea": "Deep water.", "fish": "Cod swim."}', WITHOUT, ("json",), True, texts_of([*'{}[]:,"\\ab1 \n/*'])
    ),
    "jsonl": FormatCase(b'"Deep water."\n"Cod swim."\n', WITHOUT, ("jsonl",), True, texts_of([*'{}[]:,"\\ab1 \n/*'])),
    "yaml": FormatCase(
        b"sea: Deep water.\nfish: Cod swim.\n", WITHOUT, ("yaml",), True, texts_of([*"ab:- \n#'\"|>[]{}&*!?%\t\r"])
    ),
    "pdf": FormatCase(pdf_of([PRINTED]).content(), FLAT, ("pdf",), library="liteparse"),
    "docx": FormatCase(word_file(WORD), NESTED, ("docx",)),
    "pptx": FormatCase(slides_of(shape("Sea", "title") + shape("Deep water.") + shape("Cod swim.")), FLAT, ("pptx",)),
    "epub": FormatCase(book_of({"a.xhtml": HTML}), NESTED, ("epub",)),
    "odt": FormatCase(
        odt_of(
            '<text:h text:outline-level="1">Sea</text:h><text:p>Deep water.</text:p>'
            '<text:h text:outline-level="2">Fish</text:h><text:p>Cod swim.</text:p>'
        ),
        NESTED,
        ("odt",),
    ),
    "spreadsheet": FormatCase(xlsx_of({"Sea": sheet_of([["Deep water.", "Cod swim."]])}), FLAT, ("xlsx", "xls", "ods")),
    "notebook": FormatCase(
        notebook_of("# Sea\n\nDeep water.", "## Fish\n\nCod swim."),
        NESTED,
        ("ipynb",),
        pieces=CELLS.map(lambda cells: json.dumps({"cells": cells})),
    ),
    "rtf": FormatCase(
        b"{\\rtf1{\\stylesheet{\\s1 heading 1;}{\\s2 heading 2;}}" + RTF + b"}",
        NESTED,
        ("rtf",),
        pieces=[piece.encode() + b" " for piece in RTF_PIECES.split(";")],
        head=rb"{\rtf1\ansi ",
    ),
    "eml": FormatCase(MAIL, FLAT, ("eml",), pieces=MAIL_PIECES, head=b"Subject: a\n"),
    "mbox": FormatCase(b"From a@b Mon\n" + MAIL, FLAT, ("mbox",), pieces=MAIL_PIECES, head=b"From a\nSubject: a\n"),
}
