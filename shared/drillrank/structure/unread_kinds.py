"""Kinds of files that drillrank does not read: what they are, and what to do about them.

The kinds are listed in `unread_kinds.tsv` and `file_signatures.tsv` of `drillrank.data`.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePath
from typing import NamedTuple

from drillrank.data import read_rows, read_table

_TAR_MARK_OFFSET = 257  # of b"ustar" in a tar archive
_NOT_READ = "which drillrank does not read"


class _UnreadKind(NamedTuple):
    """Kind of file that is not read.

    Attributes:
        what: Noun phrase such as "an image (PNG)".
        advice: Imperative sentence without its period, such as "save it as DOCX"; empty if there is nothing to do.
    """

    what: str
    advice: str = ""

    def describe(self) -> str:
        """Return a message that continues a file's name."""
        return f"is {self.what}, {_NOT_READ}{': ' + self.advice if self.advice else ''}."


@cache
def _kinds() -> dict[str, _UnreadKind]:
    """Return the kinds by the endings of their files, without the dot."""
    rows = read_rows("unread_kinds.tsv")
    return {
        ending: _UnreadKind(what.replace("{}", ending.upper()), advice)
        for what, advice, endings in rows
        for ending in endings.split()
    }


@cache
def _signatures() -> dict[bytes, _UnreadKind]:
    """Return the kinds by the first bytes of their files."""
    escaped = read_table("file_signatures.tsv")
    return {
        signature.encode().decode("unicode_escape").encode("latin-1"): _kinds()[ending]
        for signature, ending in escaped.items()
    }


_TEXT_SIGNATURES = frozenset({b"BZh", b"ID3", b"PAR1", b"GGUF", b"wOFF", b"wOF2"})  # a text may begin like this
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MEDIA_TYPE_OFFSET = 30  # of b"mimetype" in a package of OpenDocument
_DRAWINGS = b"mimetypeapplication/vnd.oasis.opendocument.graphics"
_OLD_OFFICE = _UnreadKind("an old Office file", "save it as DOCX, XLSX or PPTX")
_CONTAINERS = {b"WEBP": "webp", b"WAVE": "wav", b"AVI ": "avi"}
_MEDIA_BRANDS = {b"heic": "heic", b"heix": "heic", b"mif1": "heif", b"avif": "avif", b"M4A ": "m4a"}


def describe_unread(name: str, head: bytes) -> str | None:
    r"""Describe a file of a kind that drillrank does not read.

    The first bytes decide before the name, so that an image called `image.md` is described as an image.

    Args:
        name: Name of the file.
        head: First bytes of the file, 1,024 or more unless the file is shorter.

    Returns:
        A message that continues the file's name, or None if neither its first bytes nor its name are known.

    >>> describe_unread("image.md", b"\x89PNG\r\n\x1a\n")
    'is an image (PNG), which drillrank does not read: use text recognition (OCR) if it shows text.'
    >>> describe_unread("letter.doc", b"")
    'is an old Word file (DOC), which drillrank does not read: save it as DOCX.'
    >>> describe_unread("notes.md", b"# Notes")
    """
    kind = _find_kind_by_content(name, head) or _find_kind_by_suffix(name)
    return kind.describe() if kind else None


def _find_kind_by_suffix(name: str) -> _UnreadKind | None:
    """Return the kind of an ending that is not read; None if the ending is not known."""
    return _kinds().get(PurePath(name).suffix.lower().removeprefix("."))


def _find_kind_by_content(name: str, head: bytes) -> _UnreadKind | None:
    """Return the kind that the first bytes show; None if they show none."""
    by_name = _find_kind_by_suffix(name)
    if head.startswith(_OLE):
        return by_name or _OLD_OFFICE
    if head.startswith(_DRAWINGS, _MEDIA_TYPE_OFFSET):
        return _kinds()["odg"]
    if head[:4] == b"RIFF" and head[8:12] in _CONTAINERS:
        return _kinds()[_CONTAINERS[head[8:12]]]
    if head[4:8] == b"ftyp":
        return _kinds()[_MEDIA_BRANDS.get(head[8:12], "mp4")]
    if head[_TAR_MARK_OFFSET : _TAR_MARK_OFFSET + 5] == b"ustar":
        return _kinds()["tar"]
    for signature, kind in _signatures().items():
        if head.startswith(signature) and (signature not in _TEXT_SIGNATURES or b"\0" in head):
            # A package of software and a camera image begin like an archive and a TIFF: their names say more.
            return by_name or kind if kind.what.startswith(("an archive", "an image (TIFF)")) else kind
    return None
