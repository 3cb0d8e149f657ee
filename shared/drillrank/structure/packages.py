"""Office files recognized by what they contain, whatever their names: zip packages and old Excel files."""

from __future__ import annotations

import zipfile
from io import BytesIO

_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLD_WORKBOOKS = tuple("".join(f"{letter}\0" for letter in name).encode() for name in ("Workbook", "Book\0"))
_MAX_PARTS = 100_000
_PART_ENTRY = b"PK\x01\x02"
_MAX_MEDIA_TYPE = 100
_FORMAT_BY_FOLDER = {"word": "docx", "ppt": "pptx", "xl": "spreadsheet"}
_FORMAT_BY_MEDIA_TYPE = {
    "application/epub+zip": "epub",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.presentation": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "spreadsheet",
}

PACKAGE_FORMATS = frozenset({*_FORMAT_BY_FOLDER.values(), *_FORMAT_BY_MEDIA_TYPE.values()})
"""Names of the formats that are recognized here."""


def is_package(head: bytes) -> bool:
    """Return True if the first bytes of a file are those of an archive that may be an office file."""
    return head.startswith((_ZIP, _OLE))


def find_package_format(content: bytes) -> str | None:
    """Return the name of the format of an office file; None for other files.

    Open XML keeps its parts in a folder for each program, next to the list of their types. OpenDocument and EPUB have a
    part that names their media type.
    """
    if content.startswith(_OLE):
        return "spreadsheet" if any(name in content for name in _OLD_WORKBOOKS) else None
    if not content.startswith(_ZIP) or content.count(_PART_ENTRY) > _MAX_PARTS:
        return None
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            names = {name.replace("\\", "/").lower().lstrip("/") for name in archive.namelist()}
            if "mimetype" in names:
                with archive.open("mimetype") as part:
                    media_type = part.read(_MAX_MEDIA_TYPE).decode("ascii", "replace").strip()
                return _FORMAT_BY_MEDIA_TYPE.get(media_type.removesuffix("-template"))
    except Exception:  # broken, encrypted or unknown: its name decides
        return None
    if "meta-inf/container.xml" in names and any(name.endswith(".opf") for name in names):
        return "epub"
    if "[content_types].xml" not in names:
        return None
    folders = {name.partition("/")[0] for name in names if name.endswith((".xml", ".bin"))}
    formats = [name for folder, name in _FORMAT_BY_FOLDER.items() if folder in folders]
    return formats[0] if len(formats) == 1 else None
