"""Text encodings: the bytes of a file become characters."""

from __future__ import annotations

import codecs
import re

from drillrank.errors import InvalidInput

_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # bytes that no text in a Latin encoding contains
_CHARSET = re.compile(
    rb"""<(?:meta\b[^<>]{0,200}?\bcharset|\?xml\b[^<>]{0,200}?\bencoding)\s*=\s*["']?\s*([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_BOMS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}  # before those of UTF-16, which begin alike
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_HEAD_BYTES = 1024


def decode_text(content: bytes, *, may_declare: bool) -> tuple[str, tuple[str, ...]]:
    """Decode the bytes of a text file.

    Args:
        content: Content of the file.
        may_declare: Whether the file may declare its encoding, as HTML and XML do.

    Returns:
        The text, and warnings about what could not be decoded; each continues the file's name.

    Raises:
        InvalidInput: The file is not text; the message continues its name.
    """
    encoding = next((name for mark, name in _BOMS.items() if content.startswith(mark)), "utf-8-sig")
    if encoding == "utf-8-sig" and b"\0" in content:
        raise InvalidInput("is not text.")
    declared = _declared_encoding(content) if may_declare else ""
    if encoding == "utf-8-sig" and declared and b"\x1b" in content:  # in seven bits, as ISO-2022-JP is
        encoding = declared
    try:
        return content.decode(encoding), ()
    except UnicodeDecodeError:
        if encoding == "utf-8-sig" and declared:
            return content.decode(declared, errors="replace"), ()
        if encoding == "utf-8-sig" and _BINARY.search(content):
            raise InvalidInput("is not text.") from None
        name = encoding.upper().removesuffix("-SIG")
        return content.decode(encoding, errors="replace"), (f"is not {name}: unreadable bytes are shown as \ufffd.",)


def _declared_encoding(content: bytes) -> str:
    """Return the encoding that a page declares, as browsers read it; an empty string if it declares none."""
    declaration = _CHARSET.search(content[:_HEAD_BYTES])
    try:
        name = codecs.lookup(declaration[1].decode()).name if declaration else ""
    except LookupError:
        return ""
    return "cp1252" if name in ("iso8859-1", "ascii") else name
