"""Archives of office files: zip packages of XML parts that refer to each other, read within limits.

An archive is bounded by the number of its parts, which are stored or packed with deflate, by its unpacked bytes, by the
elements, depth and characters of its XML, and by the text that is written from it (`OfficeArchive`). All are counted
over the whole archive while it is read, whatever its headers declare. XML that defines entities is refused.
Spreadsheets have bounds of their own (`spreadsheet_bounds.py`).
Part names and XML names are compared without case and namespace, so strict and transitional Open XML read alike.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from drillrank import limits
from drillrank.errors import InvalidInput
from drillrank.structure.formats import ConvertedText
from drillrank.structure.pages import Pages

ELEMENTS_PER_BYTE = 5
"""Elements and attributes that an archive may have for each of its bytes, beyond `MIN_ELEMENTS`."""

MIN_ELEMENTS = 200_000
"""Elements and attributes that an archive of any size may have."""

_MAX_PARTS = 100_000
_PART_ENTRY = b"PK\x01\x02"
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_SHARE_OF_CHARACTERS = 5  # a character of XML takes up to 4 bytes, and is in the tree and in the Markdown
_LONG_VALUE = 100  # characters of an attribute that are counted as text
_CHUNK_BYTES = 1 << 16
_INTERNAL_SUBSET = re.compile(rb"""<!DOCTYPE(?:[^\[>"']|"[^"]*"|'[^']*')*\[""")


class UnreadablePart(InvalidInput):
    """A part is missing, damaged, encrypted or packed in a way that is not read."""


class Relation(NamedTuple):
    """Reference from one part to another.

    Attributes:
        kind: Last word of the relation's type, such as `"footnotes"`.
        name: Name of the other part; it need not exist.
    """

    kind: str
    name: str


class OfficeArchive:
    """Parts of an office file.

    Attributes:
        problems: How many things of each kind are missing or damaged.
    """

    def __init__(self, content: bytes) -> None:
        if content.count(_PART_ENTRY) > _MAX_PARTS:
            raise InvalidInput(f"it has more than {_MAX_PARTS} parts")
        self.problems: Counter[str] = Counter()
        self._archive = zipfile.ZipFile(BytesIO(content))
        self._entry_by_name = {_normalized_name(entry.filename): entry for entry in self._archive.infolist()}
        self._size = len(content)
        self._unpacked = self._written = 0
        self._counts = _XMLCounts(min(MIN_ELEMENTS + ELEMENTS_PER_BYTE * len(content), limits.XML_ELEMENTS))

    def __contains__(self, name: str) -> bool:
        return _normalized_name(name) in self._entry_by_name

    def part_names(self) -> list[str]:
        """Return the names of all parts, normalized."""
        return list(self._entry_by_name)

    def read(self, name: str) -> bytes:
        """Return the content of a part.

        Raises:
            UnreadablePart: The part is missing or damaged.
            InvalidInput: The archive unpacks to more than `drillrank.limits` allow.
        """
        return b"".join(self._chunks(name))

    def read_tree(self, name: str) -> Element:
        """Return the root element of a part of XML, with names without namespaces.

        An attribute of a relations namespace is named "r:id"; so is any other attribute with a namespace if the
        element has an attribute of the same name without one. If the part is damaged, the tree ends at the damage.

        Raises:
            UnreadablePart: The part is missing, or damaged at its start.
            InvalidInput: The part has too many elements, nests them too deeply, or defines entities.
        """
        builder = _BoundedTreeBuilder(self._counts)
        parser = XMLParser(target=builder)
        try:
            for index, chunk in enumerate(self._chunks(name)):
                if index == 0:
                    builder.accepts_document_type = _has_plain_document_type(chunk)
                parser.feed(chunk)
            parser.close()
        except (ParseError, UnreadablePart) as problem:
            if builder.root is None or not len(builder.root):
                raise UnreadablePart(f"its part {name!r:.80} cannot be read: {problem!s:.100}") from problem
            self.problems["parts"] += 1
        assert builder.root is not None
        return builder.root

    def try_read_tree(self, name: str, kind: str = "parts") -> Element | None:
        """Return the root element of a part, or None if it is missing or damaged; `problems` then counts its kind."""
        try:
            return self.read_tree(name)
        except UnreadablePart:
            self.problems[kind] += 1
            return None

    def relations(self, name: str) -> dict[str, Relation]:
        """Return the parts that a part refers to, by the id of the relation. Links to the outside are left out."""
        folder, file = posixpath.split(name)
        relations_name = f"{folder}/_rels/{file}.rels".lstrip("/")
        tree = self.try_read_tree(relations_name) if relations_name in self else None
        return {
            element.get("Id", ""): Relation(
                posixpath.basename(element.get("Type", "")), join_part_name(folder, element.get("Target", ""))
            )
            for element in (tree if tree is not None else ())
            if element.get("TargetMode") != "External"
        }

    def main_part(self, usual_name: str) -> str:
        """Return the name of the part to which all others belong."""
        names = [relation.name for relation in self.relations("").values() if relation.kind == "officeDocument"]
        return next((name for name in names if name in self), usual_name)

    def count_written(self, text: str) -> str:
        """Count a text that is written to the document, and return it.

        Raises:
            InvalidInput: The archive becomes more text than `drillrank.limits` allow.
        """
        self.count_characters(len(text))
        return text

    def count_characters(self, count: int) -> None:
        """Count characters that are written to the document.

        Raises:
            InvalidInput: The archive becomes more text than `drillrank.limits` allow.
        """
        self._written += count
        limits.check_extracted(self._written, self._size)

    def count_elements(self, count: int) -> None:
        """Count elements of a part that is not read as a tree.

        Raises:
            InvalidInput: The archive has more elements than a file of its size may have.
        """
        self._counts.add_elements(count)

    def warnings(self) -> tuple[str, ...]:
        """Return one sentence for each kind of problem."""
        return tuple(
            f"{count} of its {kind} {'is' if count == 1 else 'are'} missing or damaged. The rest is read."
            for kind, count in self.problems.items()
        )

    def _chunks(self, name: str) -> Iterator[bytes]:
        entry = self._entry_by_name.get(_normalized_name(name))
        if entry is None:
            raise UnreadablePart(f"its part {name!r:.80} is missing")
        if entry.compress_type not in _METHODS:
            raise UnreadablePart(f"its part {name!r:.80} is packed with another method than deflate")
        try:
            with self._archive.open(entry) as part:
                while chunk := part.read(_CHUNK_BYTES):
                    self._unpacked += len(chunk)
                    limits.check_extracted(self._unpacked, self._size)
                    yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError) as problem:
            raise UnreadablePart(f"its part {name!r:.80} is broken") from problem
        except (RuntimeError, NotImplementedError) as problem:  # encrypted, or packed in an unknown way
            raise UnreadablePart(f"its part {name!r:.80} cannot be read: {problem}") from problem


class _XMLCounts:
    """Elements and characters of an archive so far, and their limits."""

    def __init__(self, max_elements: int) -> None:
        self.elements = self.characters = 0
        self.max_elements = max_elements
        self.max_characters = limits.EXTRACTED_CHARACTERS // _SHARE_OF_CHARACTERS

    def add_elements(self, count: int) -> None:
        self.elements += count
        if self.elements > self.max_elements:
            raise InvalidInput(f"it has too many elements for its size: more than {self.max_elements}")


class _BoundedTreeBuilder(TreeBuilder):
    """Builds a tree without namespaces, within limits."""

    def __init__(self, counts: _XMLCounts) -> None:
        super().__init__()
        self.root: Element | None = None
        self.accepts_document_type = False
        self._counts = counts
        self._depth = 0
        self._names: dict[str, str] = {}

    def start(self, tag: str, attributes: dict[Any, Any], /) -> Element:
        self._depth += 1
        self._counts.add_elements(1 + len(attributes))
        if self._depth > limits.XML_DEPTH:
            raise InvalidInput("its elements are nested too deeply")
        element = super().start(self._local_name(tag), self._plain_attributes(attributes) if attributes else attributes)
        if self.root is None:
            self.root = element
        return element

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)

    def data(self, data: str, /) -> None:
        self._count_characters(len(data))
        super().data(data)

    def doctype(self, *_: object) -> None:
        if not self.accepts_document_type:
            raise InvalidInput("it declares a document type with entities")

    def _plain_attributes(self, attributes: dict[str, str]) -> dict[str, str]:
        plain: dict[str, str] = {}
        for key, value in attributes.items():
            name = self._names.get(key) or self._local_name(key)
            if len(value) > _LONG_VALUE:
                self._count_characters(len(value))
            if name is not key and name in attributes:
                name = f"r:{name}"
            plain[name] = value
        return plain

    def _local_name(self, qualified_name: str) -> str:
        name = self._names.get(qualified_name)
        if name is None:
            namespace, _, name = qualified_name.rpartition("}")
            name = qualified_name if not namespace else f"r:{name}" if namespace.endswith("/relationships") else name
            self._names[qualified_name] = name
        return name

    def _count_characters(self, count: int) -> None:
        self._counts.characters += count
        if self._counts.characters > self._counts.max_characters:
            raise InvalidInput(f"it is too large: more than {self._counts.max_characters} characters of text")


def _has_plain_document_type(head: bytes) -> bool:
    """Return True if XML begins with a document type that defines no entities of its own."""
    head = head.replace(b"\0", b"")  # of UTF-16
    start = head.find(b"<!DOCTYPE")
    return start >= 0 and not _INTERNAL_SUBSET.match(head, start)


def _normalized_name(name: str) -> str:
    return posixpath.normpath("/" + name.replace("\\", "/")).lstrip("/").lower()


def join_part_name(folder: str, target: str) -> str:
    """Return the name of the part at an address that is relative to a folder.

    >>> join_part_name("ppt/slides", "../media/a%20b.xml#top"), join_part_name("word", "/word/styles.xml")
    ('ppt/media/a b.xml', 'word/styles.xml')
    """
    path = unquote(re.split(r"[#?]", target, maxsplit=1)[0]).replace("\\", "/")
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def shown_children(element: Element) -> list[Element]:
    """Return the children of an element; of alternatives, the one that current programs show."""
    if element.tag != "AlternateContent":
        return list(element)
    choices = [child for child in element if child.tag == "Choice"] or list(element)
    return choices[:1]


def outermost(element: Element, *names: str) -> Iterator[Element]:
    """Yield the elements of these names below an element, in order, without those inside another of them."""
    return _walk(element, names, enters_matches=False)


def descendants(element: Element, *names: str) -> Iterator[Element]:
    """Yield the elements of these names below an element, in order."""
    return _walk(element, names, enters_matches=True)


def _walk(element: Element, names: Sequence[str], *, enters_matches: bool) -> Iterator[Element]:
    pending = list(reversed(shown_children(element)))
    while pending:
        child = pending.pop()
        is_match = child.tag in names
        if is_match:
            yield child
        if enters_matches or not is_match:
            pending += reversed(shown_children(child))


def child_value(element: Element | None, name: str, default: str = "") -> str:
    """Return the attribute "val" of a child element, such as `<numFmt val="decimal"/>`."""
    child = None if element is None else element.find(name)
    return default if child is None else child.get("val", default)


def parse_count(value: str | None, default: int) -> int:
    """Return a whole number that is not negative and has at most 9 digits, or the default for anything else."""
    return int(value) if value and value.isdecimal() and len(value) <= 9 else default


def is_on(value: str | None) -> bool:
    """Return True if the value of a switch in Open XML is not off; a missing value means on."""
    return value not in ("0", "false", "off", "none")


def is_switched_on(element: Element | None, name: str) -> bool:
    """Return True if an element has a child that is a switch, and the switch is not off."""
    switch = None if element is None else element.find(name)
    return switch is not None and is_on(switch.get("val"))


def convert_office(
    content: bytes, name: str, read: Callable[[OfficeArchive], tuple[str, Pages | None]]
) -> ConvertedText:
    """Convert an office file with a function from its archive to Markdown and pages.

    Raises:
        InvalidInput: The file is broken, protected by a password, or passes a limit; the message continues its name.
    """
    try:
        archive = OfficeArchive(content)
        text, pages = read(archive)
    except Exception as problem:  # zipfile and expat raise various errors for broken files
        reason = str(problem)
        if isinstance(problem, zipfile.BadZipFile):
            reason = "it is broken, or protected by a password"
        raise InvalidInput(f"cannot be read as {name}: {reason:.200}.") from problem
    if not text.strip() and archive.problems:
        raise InvalidInput(f"cannot be read as {name}: it is broken, or protected by a password.")
    return ConvertedText(text, pages, archive.warnings())
