"""A small writer of PDF files for tests: text at places, in Helvetica, with bookmarks, as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

HEIGHT = 792


@dataclass
class Text:
    """A run of text; y counts from the top of the page."""

    text: str
    x: float = 72
    y: float = 72
    size: float = 10
    bold: bool = False
    spacing: float = 0
    rise: float = 0

    def operators(self) -> bytes:
        escaped = self.text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("cp1252")
        font = b"/B" if self.bold else b"/R"
        place = self.x, HEIGHT - self.y - self.size + self.rise
        return b"BT %s %g Tf %g Tc %g %g Td (%s) Tj ET" % (font, self.size, self.spacing, *place, escaped)


@dataclass
class Mark:
    """A bookmark; pages count from 0."""

    title: str
    page: int
    level: int = 1


@dataclass
class Pdf:
    """Objects of a file, numbered from 1 on; the first is the catalogue."""

    objects: list[bytes] = field(default_factory=list)
    trailer: bytes = b""

    def content(self) -> bytes:
        """The file."""
        found = bytearray(b"%PDF-1.7\n")
        places = []
        for number, body in enumerate(self.objects, 1):
            places.append(len(found))
            found += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        start = len(found)
        found += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
        found += b"".join(b"%010d 00000 n \n" % place for place in places)
        found += b"trailer\n<< /Size %d /Root 1 0 R %s >>\n" % (len(places) + 1, self.trailer)
        return bytes(found + b"startxref\n%d\n%%%%EOF\n" % start)


def pdf_of(pages: Sequence[Sequence[Text]], marks: Sequence[Mark] = ()) -> Pdf:
    """A file of these pages and bookmarks."""
    first_page = 6
    first_mark = first_page + 2 * len(pages)
    kids = b" ".join(b"%d 0 R" % (first_page + 2 * number) for number in range(len(pages)))
    outlines = b"<< /Type /Outlines >>"
    entries = []
    if marks:
        numbers = range(len(marks))
        for at, mark in enumerate(marks):
            above = [n for n in numbers[:at] if marks[n].level < mark.level]
            parent = first_mark + above[-1] if above else 3
            behind = next((n for n in numbers[at + 1 :] if marks[n].level <= mark.level), None)
            after = behind if behind is not None and marks[behind].level == mark.level else None
            below = at + 1 if at + 1 < len(marks) and marks[at + 1].level > mark.level else None
            entry = b"<< /Title (%s) /Parent %d 0 R" % (mark.title.encode("cp1252"), parent)
            entry += b" /Dest [%d 0 R /Fit]" % (first_page + 2 * mark.page)
            entry += b"" if after is None else b" /Next %d 0 R" % (first_mark + after)
            entry += b"" if below is None else b" /First %d 0 R /Last %d 0 R" % (first_mark + below, first_mark + below)
            entries.append(entry + b" >>")
        outlines = b"<< /Type /Outlines /First %d 0 R /Last %d 0 R >>" % (first_mark, first_mark)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Outlines 3 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d /MediaBox [0 0 612 %d] >>" % (kids, len(pages), HEIGHT),
        outlines,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
    ]
    for number, page in enumerate(pages):
        stream = b"\n".join(text.operators() for text in page)
        fonts = b"<< /Font << /R 4 0 R /B 5 0 R >> >>"
        content = first_page + 2 * number + 1
        objects.append(b"<< /Type /Page /Parent 2 0 R /Resources %s /Contents %d 0 R >>" % (fonts, content))
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    return Pdf([*objects, *entries])


def with_annotations(pdf: Pdf, *annotations: bytes, form: bytes = b"") -> Pdf:
    """The file with these annotations on its first page; `OWN` in the form is the list of them."""
    first = len(pdf.objects) + 1
    own = b" ".join(b"%d 0 R" % (first + at) for at in range(len(annotations)))
    objects = [*pdf.objects, *annotations]
    objects[5] = objects[5].replace(b"/Type /Page ", b"/Type /Page /Annots [%s] " % own)
    if form:
        objects[0] = objects[0].replace(b"/Type /Catalog", b"/Type /Catalog /AcroForm " + form.replace(b"OWN", own))
    return Pdf(objects, pdf.trailer)


def lines(text: str, y: float = 100, x: float = 72, width: int = 90, **style: object) -> list[Text]:
    """Prose, broken at so many characters."""
    found: list[str] = [""]
    for word in text.split():
        if len(found[-1]) + len(word) > width:
            found.append("")
        found[-1] = f"{found[-1]} {word}".strip()
    return [Text(line, x, y + 12 * at, **style) for at, line in enumerate(found)]
