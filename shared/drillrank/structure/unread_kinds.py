"""Kinds of files that drillrank does not read: what they are, and what to do about them."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

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


_READ_TEXT_IN_IMAGE = "use text recognition (OCR) if it shows text"
_UNPACK = "unpack it first"
_EXPORT = "export what it contains as CSV"
_SAVE_AS_DOCX = "save it as DOCX"
_SAVE_AS_PPTX = "save it as PPTX"
_CONVERT_BOOK = "convert it to EPUB"

_kind_by_suffix: dict[str, _UnreadKind] = {}


def _add(suffixes: str, what: str, advice: str = "") -> None:
    """Add kinds of one group; `{}` in `what` becomes the ending in capitals."""
    for suffix in suffixes.split():
        _kind_by_suffix[f".{suffix}"] = _UnreadKind(what.replace("{}", suffix.upper()), advice)


_add("png gif bmp webp heic heif avif ico icns psd jp2 jxl tga pcx", "an image ({})", _READ_TEXT_IN_IMAGE)
_add("jpg jpeg jpe jfif", "an image (JPEG)", _READ_TEXT_IN_IMAGE)
_add("tif tiff", "an image (TIFF)", _READ_TEXT_IN_IMAGE)
_add("raw cr2 cr3 nef arw dng orf", "a camera image ({})")
_add("svgz emf wmf eps ai xcf sketch fig cdr", "a drawing ({})", "export it as PDF")
_add("dwg dxf stl step stp blend fbx glb", "a drawing or 3D model ({})", "export it as PDF")
_add("mp3 wav flac ogg oga opus m4a aac wma aif aiff mid midi amr", "an audio file ({})", "transcribe it first")
_add("mp4 m4v mov avi mkv webm wmv flv mpg mpeg 3gp ogv", "a video ({})", "transcribe it first")
_add("zip tar gz tgz bz2 tbz xz txz 7z rar zst lz lz4 lzma cab arj jar war ear", "an archive ({})", _UNPACK)
_add("whl egg deb rpm apk xpi crx nupkg", "a package of software ({})", _UNPACK)
_add("iso dmg img vhd vhdx vmdk qcow2", "a disk image ({})", _UNPACK)
_add("exe dll msi com scr sys", "a program for Windows ({})")
_add("so dylib o a lib obj ko elf", "compiled code ({})")
_add("pyc pyo pyd class wasm beam", "compiled code ({})")
_add("ttf otf woff woff2 eot ttc", "a font ({})")
_add("sqlite sqlite3 db db3 mdb accdb dbf mdf ldf frm ibd", "a database ({})", _EXPORT)
_add("parquet feather arrow orc avro", "a table of data ({})", _EXPORT)
_add("h5 hdf5 hdf nc mat rds rdata sav dta sas7bdat npy npz", "scientific data ({})", _EXPORT)
_add("pkl pickle joblib dill", "a Python pickle ({}), and loading one can run code")
_add("pt pth ckpt safetensors gguf ggml onnx pb tflite keras mlmodel bst", "the weights of a model ({})")
_add("doc dot", "an old Word file ({})", _SAVE_AS_DOCX)
_add("ppt pps pot", "an old PowerPoint file ({})", _SAVE_AS_PPTX)
_add("fodt sxw", "a text of OpenOffice ({})", "save it as ODT")
_add("fodp sxi", "a presentation of OpenOffice ({})", "save it as ODP")
_add("odg vsd vsdx", "a drawing ({})", "export it as PDF")
_add("msg oft", "an Outlook message ({})", "save it as EML")
_add("pst ost nsf", "a mailbox ({})", "export the messages as EML")
_add("pages wpd wps hwp hwpx", "a word processor's file ({})", _SAVE_AS_DOCX)
_add("numbers qpw wk1 wks", "a spreadsheet of another program ({})", "save it as XLSX")
_add("key", "a Keynote presentation or a key file ({})", _SAVE_AS_PPTX)
_add("one onetoc2", "a OneNote notebook ({})", "export it as PDF")
_add("pub", "a Publisher file ({})", "export it as PDF")
_add("mpp", "a Project plan ({})", "export it as XLSX")
_add("mobi azw azw3 kfx prc lit lrf", "an e-book ({})", _CONVERT_BOOK)
_add("djvu djv", "a scanned document ({})", "convert it to PDF with a text layer")
_add("ps xps oxps", "a printed document ({})", "convert it to PDF")
_add("torrent lnk swf dat bin", "binary data ({})")

_KINDS_BY_SIGNATURE: tuple[tuple[bytes, _UnreadKind], ...] = (
    (b"\x89PNG", _kind_by_suffix[".png"]),
    (b"\xff\xd8\xff", _kind_by_suffix[".jpg"]),
    (b"GIF87a", _kind_by_suffix[".gif"]),
    (b"GIF89a", _kind_by_suffix[".gif"]),
    (b"II*\0", _kind_by_suffix[".tiff"]),
    (b"MM\0*", _kind_by_suffix[".tiff"]),
    (b"8BPS\0", _kind_by_suffix[".psd"]),
    (b"\0\0\1\0", _kind_by_suffix[".ico"]),
    (b"\0\0\0\x0cJXL ", _kind_by_suffix[".jxl"]),
    (b"ID3", _kind_by_suffix[".mp3"]),
    (b"OggS\0", _kind_by_suffix[".ogg"]),
    (b"fLaC\0", _kind_by_suffix[".flac"]),
    (b"MThd\0", _kind_by_suffix[".mid"]),
    (b"\x1aE\xdf\xa3", _UnreadKind("a video (Matroska)", "transcribe it first")),
    (b"FLV\x01", _kind_by_suffix[".flv"]),
    (b"\x1f\x8b\x08", _kind_by_suffix[".gz"]),
    (b"BZh", _kind_by_suffix[".bz2"]),
    (b"\xfd7zXZ\0", _kind_by_suffix[".xz"]),
    (b"7z\xbc\xaf\x27\x1c", _kind_by_suffix[".7z"]),
    (b"Rar!\x1a\x07", _kind_by_suffix[".rar"]),
    (b"\x28\xb5\x2f\xfd", _kind_by_suffix[".zst"]),
    (b"MSCF\0", _kind_by_suffix[".cab"]),
    (b"\x7fELF", _UnreadKind("compiled code (ELF)")),
    (b"MZ\x90\0", _kind_by_suffix[".exe"]),
    (b"\xcf\xfa\xed\xfe", _UnreadKind("compiled code (Mach-O)")),
    (b"\xca\xfe\xba\xbe", _kind_by_suffix[".class"]),
    (b"\0asm", _kind_by_suffix[".wasm"]),
    (b"\0\1\0\0\0", _kind_by_suffix[".ttf"]),
    (b"OTTO\0", _kind_by_suffix[".otf"]),
    (b"wOFF", _kind_by_suffix[".woff"]),
    (b"wOF2", _kind_by_suffix[".woff2"]),
    (b"SQLite format 3\0", _kind_by_suffix[".sqlite"]),
    (b"\0\1\0\0Standard ", _kind_by_suffix[".mdb"]),
    (b"PAR1", _kind_by_suffix[".parquet"]),
    (b"ARROW1\0", _kind_by_suffix[".arrow"]),
    (b"\x89HDF\r\n\x1a\n", _kind_by_suffix[".hdf5"]),
    (b"\x93NUMPY", _kind_by_suffix[".npy"]),
    (b"GGUF", _kind_by_suffix[".gguf"]),
    (b"AT&TFORM", _kind_by_suffix[".djvu"]),
    (b"%!PS-Adobe", _kind_by_suffix[".ps"]),
    (b"!BDN", _kind_by_suffix[".pst"]),
    (b"PK\x03\x04", _kind_by_suffix[".zip"]),
    (b"PK\x05\x06", _kind_by_suffix[".zip"]),
    *((b"\x80" + bytes([protocol]), _UnreadKind("a Python pickle")) for protocol in (2, 3, 4, 5)),
)
_TEXT_SIGNATURES = frozenset({b"BZh", b"ID3", b"PAR1", b"GGUF", b"wOFF", b"wOF2"})  # a text may begin like this
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MEDIA_TYPE_OFFSET = 30  # of b"mimetype" in a package of OpenDocument
_DRAWINGS = b"mimetypeapplication/vnd.oasis.opendocument.graphics"
_OLD_OFFICE = _UnreadKind("an old Office file", "save it as DOCX, XLSX or PPTX")
_CONTAINERS = {b"WEBP": ".webp", b"WAVE": ".wav", b"AVI ": ".avi"}
_MEDIA_BRANDS = {b"heic": ".heic", b"heix": ".heic", b"mif1": ".heif", b"avif": ".avif", b"M4A ": ".m4a"}


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
    return _kind_by_suffix.get(PurePath(name).suffix.lower())


def _find_kind_by_content(name: str, head: bytes) -> _UnreadKind | None:
    """Return the kind that the first bytes show; None if they show none."""
    by_name = _find_kind_by_suffix(name)
    if head.startswith(_OLE):
        return by_name or _OLD_OFFICE
    if head.startswith(_DRAWINGS, _MEDIA_TYPE_OFFSET):
        return _kind_by_suffix[".odg"]
    if head[:4] == b"RIFF" and head[8:12] in _CONTAINERS:
        return _kind_by_suffix[_CONTAINERS[head[8:12]]]
    if head[4:8] == b"ftyp":
        return _kind_by_suffix[_MEDIA_BRANDS.get(head[8:12], ".mp4")]
    if head[_TAR_MARK_OFFSET : _TAR_MARK_OFFSET + 5] == b"ustar":
        return _kind_by_suffix[".tar"]
    for signature, kind in _KINDS_BY_SIGNATURE:
        if head.startswith(signature) and (signature not in _TEXT_SIGNATURES or b"\0" in head):
            # A package of software and a camera image begin like an archive and a TIFF: their names say more.
            return by_name or kind if kind.what.startswith(("an archive", "an image (TIFF)")) else kind
    return None
