"""PDF files that were made to harm, or that other programs made badly, written by code; and what to expect of each."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from tests.pdf_files import Mark, Pdf, Text, lines, pdf_of

PROSE = "The fox hunts mice at night and sleeps by day, which is what most people know of it from stories. " * 4
SAID = "fox hunts mice"
FIRST_PAGE, FIRST_CONTENT = 6, 7  # numbers of objects that `pdf_of` writes
BROKEN = "cannot be read as PDF"


@dataclass(frozen=True)
class Hostile:
    """A file.

    Attributes:
        name: What is wrong with it.
        make: Writes it.
        text: What its text holds, if it must be read.
        problem: What the error says, if it must not be read. Without both, either is good.
        unread: How many of its pages a warning says are left out.
    """

    name: str
    make: Callable[[], bytes]
    text: str = ""
    problem: str = ""
    unread: int = 0


def pages(count: int = 3) -> list[list[Text]]:
    return [lines(f"{number} {PROSE}") for number in range(count)]


def changed(at: int, old: bytes, new: bytes, marks: int = 0) -> Callable[[], bytes]:
    """A good file whose object `at` has another text in one place."""

    def make() -> bytes:
        pdf = pdf_of(pages(), [Mark(f"M{number}", number) for number in range(marks)])
        assert old in pdf.objects[at - 1]
        pdf.objects[at - 1] = pdf.objects[at - 1].replace(old, new, 1)
        return pdf.content()

    return make


def page_with(entry: bytes) -> Callable[[], bytes]:
    """A file whose first page has one entry more."""
    return changed(FIRST_PAGE, b"/Type /Page ", b"/Type /Page " + entry + b" ")


def drawn(operators: bytes, *objects: bytes, resources: bytes = b"") -> bytes:
    """A file of one page that draws this; more objects begin at 8."""
    pdf = pdf_of([[]])
    pdf.objects[FIRST_CONTENT - 1] = stream(operators)
    pdf.objects[FIRST_PAGE - 1] = pdf.objects[FIRST_PAGE - 1].replace(b"/Font <<", resources + b" /Font <<")
    return Pdf([*pdf.objects, *objects]).content()


def stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), entries, content)


def deflated(piece: bytes, times: int, rounds: int = 1) -> bytes:
    """A stream that grows to `times` pieces when it is read."""
    packer = zlib.compressobj(9)
    content = b"".join(packer.compress(piece * 1000) for _ in range(times // 1000)) + packer.flush()
    for _ in range(rounds - 1):
        content = zlib.compress(content, 9)
    return stream(content, b"/Filter [%s]" % (b"/FlateDecode " * rounds))


def packed_page(content: bytes) -> bytes:
    pdf = pdf_of(pages(1))
    pdf.objects[FIRST_CONTENT - 1] = content
    return pdf.content()


def shown(text: bytes, before: bytes = b"") -> bytes:
    return b"BT %s /R 10 Tf 72 700 Td (%s) Tj ET" % (before, text)


def mapped(codes: bytes, content: bytes = b"BT /U 10 Tf 72 700 Td (abcd) Tj ET ") -> bytes:
    """A page whose font /U has codes that stand for what a CMap says."""
    cmap = b"/CIDInit /ProcSet findresource begin begincmap\n" + codes + b"\nendcmap end"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 8 0 R >>"
    made = drawn(content + shown(b"The fox hunts mice"), stream(cmap), font)
    return made.replace(b"/R 4 0 R", b"/R 4 0 R /U 9 0 R")


def outlined(entries: bytes, count: int = 1) -> Callable[[], bytes]:
    """A file with so many bookmarks in a row; `%d` in an entry is its own number, `%(next)` the next one's."""

    def make() -> bytes:
        pdf = pdf_of(pages())
        first = len(pdf.objects) + 1
        pdf.objects[2] = b"<< /Type /Outlines /First %d 0 R /Last %d 0 R >>" % (first, first + count - 1)
        for at in range(count):
            after = b"/Next %d 0 R" % (first + at + 1) if at + 1 < count else b""
            entry = entries.replace(b"OWN", b"%d 0 R" % (first + at))
            pdf.objects.append(b"<< /Parent 3 0 R %s %s >>" % (after, entry))
        return pdf.content()

    return make


def encrypted(user: bytes, owner: bytes) -> bytes:
    """A file of one page under the standard handler of revision 2 (ISO 32000-1, 7.6.3)."""
    padding = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
    pdf = pdf_of([[Text("The fox hunts mice.")]])
    sealed = rc4(hashlib.md5((owner + padding)[:32]).digest()[:5], (user + padding)[:32])
    given = (user + padding)[:32] + sealed + (-4 & 0xFFFFFFFF).to_bytes(4, "little") + b"A"
    key = hashlib.md5(given).digest()[:5]
    number = FIRST_CONTENT.to_bytes(3, "little") + b"\0\0"
    content = pdf.objects[FIRST_CONTENT - 1].split(b"stream\n", 1)[1].removesuffix(b"\nendstream")
    pdf.objects[FIRST_CONTENT - 1] = stream(rc4(hashlib.md5(key + number).digest()[:10], content))
    entries = (sealed.hex().encode(), rc4(key, padding).hex().encode())
    pdf.objects.append(b"<< /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >>" % entries)
    pdf.trailer = b"/Encrypt %d 0 R /ID [<41> <41>]" % len(pdf.objects)
    return pdf.content()


def rc4(key: bytes, content: bytes) -> bytes:
    box, at = list(range(256)), 0
    for step in range(256):
        at = (at + box[step] + key[step % len(key)]) % 256
        box[step], box[at] = box[at], box[step]
    result, one, two = bytearray(), 0, 0
    for byte in content:
        one = (one + 1) % 256
        two = (two + box[one]) % 256
        box[one], box[two] = box[two], box[one]
        result.append(byte ^ box[(box[one] + box[two]) % 256])
    return bytes(result)


def _whole(trailer: bytes = b"", count: int = 3) -> bytes:
    pdf = pdf_of(pages(count), [Mark("A", 0), Mark("B", 1, level=2), Mark("C", 2)][:count])
    pdf.trailer = trailer
    return pdf.content()


def _circle() -> bytes:
    pdf = pdf_of(pages(), [Mark("A", 0), Mark("B", 1), Mark("C", 2)])
    first = len(pdf.objects) - 2
    pdf.objects[-1] = pdf.objects[-1].replace(b"/Title", b"/Next %d 0 R /First %d 0 R /Title" % (first, first))
    return pdf.content()


def _deep_tree(depth: int) -> bytes:
    pdf = pdf_of(pages(1))
    first = len(pdf.objects) + 1
    kids = [b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (first + at + 1) for at in range(depth)]
    pdf.objects[1] = pdf.objects[1].replace(b"%d 0 R" % FIRST_PAGE, b"%d 0 R" % first)
    return Pdf([*pdf.objects, *kids, pdf.objects[FIRST_PAGE - 1]]).content()


def _object_stream(size: int) -> bytes:
    """An object stream that grows to a gigabyte, in a file of cross-reference streams."""
    whole = pdf_of(pages(1))
    whole.objects.append(
        deflated(b"0 " * 500, size // 1000).replace(b"<<", b"<< /Type /ObjStm /N 100000000 /First 0", 1)
    )
    whole.objects[0] = whole.objects[0].replace(b"/Outlines 3 0 R", b"/Outlines 100 0 R /Names 101 0 R")
    bomb = len(whole.objects)
    body = whole.content().rsplit(b"xref\n0", 1)[0]
    places = [body.index(b"\n%d 0 obj" % number) + 1 for number in range(1, bomb + 1)]
    table = b"\0\0\0\0\0\0" + b"".join(b"\1" + place.to_bytes(4, "big") + b"\0" for place in places)
    table += b"\1" + len(body).to_bytes(4, "big") + b"\0"
    inside = b"".join(b"\2" + bomb.to_bytes(4, "big") + bytes([at]) for at in range(2))
    entries = b"/Type /XRef /Root 1 0 R /W [1 4 1] /Size 102 /Index [0 %d 100 2]" % (bomb + 2)
    return body + b"%d 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n" % (
        bomb + 1,
        stream(table + inside, entries),
        len(body),
    )


def _xref_loop() -> bytes:
    whole = _whole()
    start = whole.rindex(b"xref\n0")
    return whole.replace(b"/Root 1 0 R", b"/Root 1 0 R /Prev %d" % start)


def _labels() -> bytes:
    return changed(1, b"/Type /Catalog", b"/Type /Catalog /PageLabels << /Nums [0 << /S /r >> 2 << /S /D >>] >>")()


def _noise(seed: int) -> Callable[[], bytes]:
    def make() -> bytes:
        random, noisy = Random(seed), bytearray(_whole(count=3))
        for _ in range(30):
            noisy[random.randrange(len(noisy))] = random.randrange(256)
        return bytes(noisy)

    return make


def _cut(part: int) -> Callable[[], bytes]:
    return lambda: _whole()[: part * len(_whole()) // 10]


def _hebrew() -> bytes:
    return mapped(b"1 beginbfrange <61> <64> <05D0> endbfrange")


BOX = b"/MediaBox [%s]"
TYPE3 = b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 1 1] /FontMatrix [1 0 0 1 0 0] /FirstChar 97 /LastChar 97"
TYPE3 += b" /Widths [1] /Encoding << /Differences [97 /a] >> /CharProcs << /a 9 0 R >>"
TYPE3 += b" /Resources << /Font << /T 8 0 R >> >> >>"
CID = b"<< /Type /Font /Subtype /Type0 /BaseFont /None /Encoding /Identity-H /DescendantFonts [%s] >>"
DESCENDANT = b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /None /CIDSystemInfo << /Ordering (X) >> %s >>"


def hostile() -> Iterator[Hostile]:
    """All of them."""
    for part in (2, 5, 8, 9):
        yield Hostile(f"cut to {part} tenths", _cut(part))
    for seed in range(5):
        yield Hostile(f"noise {seed}", _noise(seed))
    yield Hostile("an empty file", lambda: b"", problem=BROKEN)
    yield Hostile("a web page", lambda: b"<!doctype html><title>Not found</title>", problem=BROKEN)
    yield Hostile("the first line alone", lambda: b"%PDF-1.7\n", problem=BROKEN)
    yield Hostile("a picture", lambda: b"\x89PNG\r\n\x1a\n" + bytes(1000), problem=BROKEN)

    yield Hostile("a password to open it", lambda: encrypted(b"secret", b"owner"), problem="is encrypted")
    yield Hostile("a password to change it", lambda: encrypted(b"", b"owner"), text=SAID)
    yield Hostile("an unknown encryption", lambda: _whole(b"/Encrypt << /Filter /Own /V 9 >>"), problem=BROKEN)

    yield Hostile("no pages", lambda: pdf_of([]).content(), problem="report.pdf")
    yield Hostile("pages in a circle", changed(2, b"/Kids [", b"/Kids [2 0 R "))
    yield Hostile("a page tree of itself", changed(2, b"/Kids [6 0 R", b"/Kids [2 0 R"), unread=1)
    yield Hostile("two billion pages", changed(2, b"/Count 3", b"/Count 2000000000"))
    yield Hostile("fewer pages than it says", changed(2, b"/Count 3", b"/Count 40"), unread=37)
    yield Hostile("more pages than it says", changed(2, b"/Count 3", b"/Count 1"), text=SAID)
    yield Hostile("a negative number of pages", changed(2, b"/Count 3", b"/Count -3"))
    missing = changed(2, b"/Kids [6 0 R", b"/Kids [999 0 R")
    yield Hostile("a page that is missing", missing, text="1 The fox", unread=1)
    yield Hostile("a page that is a number", changed(2, b"/Kids [6 0 R", b"/Kids [42"), unread=1)
    yield Hostile("a tree of 5,000 levels", lambda: _deep_tree(5000))
    yield Hostile("the labels of pages", _labels, text=SAID)

    yield Hostile("bookmarks in a circle", _circle, text=SAID)
    yield Hostile("a bookmark below itself", outlined(b"/Title (A) /Dest [6 0 R /Fit] /First OWN"), text=SAID)
    yield Hostile("bookmarks to missing pages", outlined(b"/Title (A) /Dest [999 0 R /Fit]", 3), text=SAID)
    yield Hostile("bookmarks to page -7", outlined(b"/Title (A) /Dest [-7 /XYZ nan nan nan]", 3), text=SAID)
    yield Hostile("bookmarks to a huge page", outlined(b"/Title (A) /Dest [99999999999999 /Fit]"), text=SAID)
    yield Hostile("a bookmark at infinity", outlined(b"/Title (A) /Dest [6 0 R /XYZ 0 1e39 0]"), text=SAID)
    yield Hostile("half a character in a bookmark", outlined(b"/Title <FEFFD800> /Dest [6 0 R /Fit]"), text=SAID)
    yield Hostile("NUL in a bookmark", outlined(b"/Title <FEFF004100000042> /Dest [6 0 R /Fit]"), text=SAID)
    yield Hostile("bookmarks without titles", outlined(b"/Dest [6 0 R /Fit]", 3), text=SAID)
    yield Hostile("100,000 bookmarks", outlined(b"/Title (OWN) /Dest [6 0 R /Fit]", 100_000), text=SAID)

    for box in (
        b"0 0 0 0",
        b"612 792 0 0",
        b"-100 -100 -50 -50",
        b"0 0 1e38 1e38",
        b"nan nan nan nan",
        b"0 0",
        b"(a) 1",
    ):
        yield Hostile(f"a page of {box.decode()}", page_with(BOX % box), text="1 The fox")
    for angle in (90, 180, 270, -90, 45, 10**12):
        yield Hostile(
            f"a page turned by {angle}", page_with(b"/Rotate %d" % angle), text="0 The fox hunts mice at night and"
        )

    yield Hostile("no font", changed(FIRST_PAGE, b"/R 4 0 R", b"/R 999 0 R"), text="1 The fox")
    yield Hostile("no resources", changed(FIRST_PAGE, b"/Resources", b"/Other"), text="1 The fox")
    nothing = b"BT /C 10 Tf 72 700 Td <00240025> Tj ET " + shown(b"The fox hunts mice")
    for name, file in (("a font without Unicode", b""), ("a broken font", b"/FontDescriptor << /FontFile2 9 0 R >>")):
        font = CID % (DESCENDANT % file)
        made = drawn(nothing, font, stream(b"\0\1\0\0" * 50)).replace(b"/R 4 0 R", b"/R 4 0 R /C 8 0 R")
        yield Hostile(name, lambda made=made: made, text=SAID)
    glyph = stream(b"1 0 d0 BT /T 1 Tf (a) Tj ET")
    drawing = drawn(b"BT /T 9 Tf (aaa) Tj ET " + shown(b"The fox hunts mice"), TYPE3, glyph)
    yield Hostile("a font drawn with itself", lambda: drawing.replace(b"/R 4 0 R", b"/R 4 0 R /T 8 0 R"), text=SAID)
    lone = b"4 beginbfchar <61> <D800> <62> <0000> <63> <DC00> <64> <202E> endbfchar"
    yield Hostile("letters that are none", lambda: mapped(lone), text=SAID)
    long = b"1 beginbfchar <61> <%s> endbfchar" % (b"0041" * 250)
    yield Hostile("a letter of 250 letters", lambda: mapped(long), text=SAID)
    yield Hostile("right to left", _hebrew, text="\u05d0")

    yield Hostile("invisible text", lambda: drawn(shown(b"The fox hunts mice", b"3 Tr")), text=SAID)
    off = b"BT /R 10 Tf 90000 -90000 Td (Far away) Tj ET "
    yield Hostile("text off the page", lambda: drawn(off + shown(b"The fox hunts mice")), text=SAID)
    for size in (b"0", b"-10", b"1e30", b"0.00001"):
        odd = b"BT /R %s Tf 72 600 Td (Odd) Tj ET " % size
        yield Hostile(
            f"letters of {size.decode()} points", lambda odd=odd: drawn(odd + shown(b"The fox hunts mice")), SAID
        )
    form = stream(b"/X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 8 0 R >> >>")
    yield Hostile(
        "a drawing of itself",
        lambda: drawn(b"/X Do " + shown(b"The fox hunts mice"), form, resources=b"/XObject << /X 8 0 R >>"),
        text=SAID,
    )
    yield Hostile("100,000 nested states", lambda: drawn(b"q " * 100_000 + shown(b"The fox hunts mice")), text=SAID)
    yield Hostile("nested arrays", lambda: drawn(b"[" * 100_000 + b" TJ " + shown(b"The fox hunts mice")))
    yield Hostile("a nested object", lambda: drawn(shown(b"The fox hunts mice"), b"[" * 100_000 + b"]" * 100_000))

    yield Hostile("cross-references in a circle", _xref_loop, text=SAID)
    yield Hostile("no cross-references", lambda: _whole().rsplit(b"xref\n0", 1)[0] + b"trailer << /Root 1 0 R >>", SAID)
    yield Hostile("cross-references behind the end", lambda: _whole().replace(b"startxref\n", b"startxref\n9999"), SAID)
    yield Hostile("a length of itself", changed(FIRST_CONTENT, b"/Length ", b"/Length 7 0 R /L "))
    yield Hostile("a negative length", changed(FIRST_CONTENT, b"/Length ", b"/Length -"))
    yield Hostile("a huge length", changed(FIRST_CONTENT, b"/Length ", b"/Length 99999999"))
    yield Hostile("a page of 50 MB from 50 KB", lambda: packed_page(deflated(b" " * 1000, 50_000)), problem="no text")
    yield Hostile("an object stream of 50 MB", lambda: _object_stream(50_000_000), text=SAID)
    yield Hostile("1,000 pages", lambda: pdf_of(pages(1000)).content(), text="999 The fox")
    yield Hostile("a stream that is not packed", changed(FIRST_CONTENT, b"/Length ", b"/Filter /FlateDecode /Length "))


def large() -> Iterator[Hostile]:
    """Those that take seconds to write or to read."""
    words = b"BT /R 9 Tf 72 700 Td (fox) Tj ET\n"
    yield Hostile("a page of 100 MB", lambda: packed_page(stream(b"0 0 m 9 9 l S\n" * 7_200_000)))
    yield Hostile("a page of a million words", lambda: packed_page(stream(words * 1_000_000)), text="fox")
    yield Hostile("a page of 1 GB from 1 MB", lambda: packed_page(deflated(b" " * 1000, 1_000_000)))
    yield Hostile("a page of 1 GB, packed three times", lambda: packed_page(deflated(words, 30_000_000, rounds=3)))
    yield Hostile("an object stream of 1 GB", lambda: _object_stream(1_000_000_000))
