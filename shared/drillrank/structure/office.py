"""Word, PowerPoint and EPUB files as Markdown.

Word is read by mammoth, which keeps styles, lists, tables, text boxes, notes and comments; charts, diagrams, formulas,
running headers and footers are given to it as text. PowerPoint is read from its XML: python-pptx takes time quadratic
in the rows of a table, and does not see diagrams.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element, TreeBuilder, XMLParser, tostring

from drillrank import limits
from drillrank.errors import InvalidInput, MissingExtra, require
from drillrank.structure.formats import ConvertedText
from drillrank.structure.html import scan_html
from drillrank.structure.markdown import as_markdown, heading, prose, table
from drillrank.structure.pages import Pages, join_pages
from drillrank.structure.scan import assemble

Converted = tuple[str, Pages | None]
"""Markdown, and its pages: the slides of a presentation."""

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STYLES = "comment-reference => sup"


class _Tree(TreeBuilder):
    """Builds a tree within limits; what declares a document type, and so entities, is refused."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = self._count = 0

    def start(self, tag: str, attributes: dict[Any, Any], /) -> Element:
        self._depth += 1
        self._count += 1
        if self._depth > limits.XML_DEPTH or self._count > limits.XML_ELEMENTS:
            raise InvalidInput("its elements are nested too deeply, or too many")
        return super().start(tag, attributes)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, *_: object) -> None:
        raise InvalidInput("it declares a document type")


class _Package:
    """The parts of an archive, read within limits whatever its headers say."""

    def __init__(self, content: bytes) -> None:
        self.warnings: list[str] = []
        self._archive = zipfile.ZipFile(BytesIO(content))
        self.names = frozenset(self._archive.namelist())
        self._size = len(content)
        self._unpacked = 0
        self._written = 0

    def read(self, name: str) -> bytes:
        """A part."""
        try:
            with self._archive.open(name) as part:
                pieces = []
                while piece := part.read(1 << 20):
                    self._unpacked += len(piece)
                    limits.check_extracted(self._unpacked, self._size)
                    pieces.append(piece)
        except (RuntimeError, NotImplementedError) as cause:  # encrypted, packed in an unknown way
            raise InvalidInput(f"its part {name!r:.80} cannot be read: {cause}") from cause
        return b"".join(pieces)

    def tree(self, name: str) -> Element:
        """A part of XML."""
        parser = XMLParser(target=_Tree())
        parser.feed(self.read(name))
        root = parser.close()
        assert isinstance(root, Element)
        return root

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """The parts that a part names, by id: the last word of the relation's type, and the name; links left out."""
        folder, file = posixpath.split(name)
        try:
            relations = self.tree(f"{folder}/_rels/{file}.rels".lstrip("/"))
        except KeyError:
            return {}
        return {
            relation.get("Id", ""): (
                posixpath.basename(relation.get("Type", "")),
                posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/"),
            )
            for relation in relations
            if relation.get("TargetMode") != "External"
        }

    def written(self, texts: Iterable[str]) -> Iterator[str]:
        """The texts, as long as they are not too many."""
        for text in texts:
            self._written += len(text)
            limits.check_extracted(self._written, self._size)
            yield text


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _attribute(element: Element, name: str) -> str:
    """An attribute of another namespace, such as the id of a relation."""
    return next((value for key, value in element.attrib.items() if key.endswith(f"}}{name}")), "")


def _below(element: Element, *names: str) -> Iterator[Element]:
    """Elements of these names, in order; not those that stand for others in older programs."""
    pending = [element]
    while pending:
        found = pending.pop()
        if _name(found) in names:
            yield found
        pending += [part for part in reversed(found) if _name(part) != "Fallback"]


def _text(element: Element) -> str:
    """All text of an element, on one line."""
    parts = (found.text or "" if _name(found) == "t" else " " for found in _below(element, "t", "br", "tab"))
    return " ".join("".join(parts).split())


def _drawn(package: _Package, related: dict[str, tuple[str, str]], frame: Element) -> Iterator[list[list[str]]]:
    """The charts and diagrams that an element refers to, as rows of cells."""
    for found in _below(frame, "chart", "relIds"):
        kind, name = related.get(_attribute(found, "id") or _attribute(found, "dm"), ("", ""))
        if name and kind in ("chart", "chartEx", "diagramData"):
            yield list(_chart(package.tree(name)) if kind != "diagramData" else _diagram(package.tree(name)))


def _chart(chart: Element) -> Iterator[list[str]]:
    """Its titles; a row of categories, and one of values for each series."""
    yield from ([_text(title)] for title in _below(chart, "title") if _text(title))
    named: list[str] = []
    for series in _below(chart, "ser"):
        cells = {_name(part): [value.text or "" for value in _below(part, "v")] for part in series}
        categories = cells.get("cat", cells.get("xVal", []))
        if categories and categories != named:
            named = categories
            yield ["", *categories]
        yield [" ".join(cells.get("tx", [])), *cells.get("val", cells.get("yVal", []))]


def _diagram(data: Element) -> Iterator[list[str]]:
    yield from ([_text(paragraph)] for paragraph in _below(data, "p") if _text(paragraph))


def _main(package: _Package, usual: str) -> str:
    """The part that all others belong to."""
    return next((name for kind, name in package.related("").values() if kind == "officeDocument"), usual)


def _docx(package: _Package) -> Converted:
    """Give mammoth what was read within limits, and what it does not know as text."""
    mammoth = require("mammoth", "files")
    main = _main(package, "word/document.xml")
    document, related = package.tree(main), package.related(main)
    _spell_out(package, document, related)
    body = document.find(f"{_WORD}body")
    if body is None:
        raise InvalidInput("it has no text")
    for kind in ("header", "footer"):
        names = sorted({name for found, name in related.values() if found == kind})
        texts = dict.fromkeys(_text(package.tree(name)) for name in names)
        for text in texts if kind == "footer" else reversed(texts):
            if any(map(str.isalpha, text)):
                body.insert(0 if kind == "header" else len(body), _element("p", _element("r", _element("t", text))))
    copy = BytesIO()
    with zipfile.ZipFile(copy, "w") as archive:
        archive.writestr(main, tostring(document))
        for name in sorted(package.names - {main}):
            if name.startswith((posixpath.dirname(main), "_rels/", "[")) and name.endswith((".xml", ".rels")):
                archive.writestr(name, tostring(package.tree(name)))
    described = mammoth.images.img_element(lambda _: {"src": ""})  # mammoth's own would write all of it into the text
    page = mammoth.convert_to_html(copy, convert_image=described, style_map=_STYLES).value
    return _from_html(package, [page]), None


def _spell_out(package: _Package, document: Element, related: dict[str, tuple[str, str]]) -> None:
    """Write what mammoth leaves out so that it reads it: formulas, charts, diagrams and text boxes."""
    pending = [document]
    while pending:
        parent = pending.pop()
        for at, child in enumerate(parent):
            if _name(child) == "AlternateContent" and len(child):
                parent[at] = child = child[0]
                child.tag = f"{_WORD}smartTag"  # which means nothing more than what is in it
            elif _name(child) in ("oMath", "oMathPara"):
                parent[at] = child = _element("r", _element("t", _text(child)))
            elif _name(child) == "drawing":
                rows = [" | ".join(row) for drawn in _drawn(package, related, child) for row in drawn]
                boxes = _below(child, "txbxContent")
                parent[at] = child = _element(
                    "smartTag", child, *boxes, *([_element("t", "; ".join(rows))] * bool(rows))
                )
                pending += child[1:]
                continue
            pending.append(child)


def _element(name: str, *content: Element | str) -> Element:
    element = Element(f"{_WORD}{name}")
    for part in content:
        if isinstance(part, str):
            element.text = part
        else:
            element.append(part)
    return element


def _pptx(package: _Package) -> Converted:
    """Each slide is a section, and a page."""
    main = _main(package, "ppt/presentation.xml")
    related = package.related(main)
    slides = [related.get(_attribute(slide, "id"), ("", ""))[1] for slide in _below(package.tree(main), "sldId")]
    return join_pages(
        ("\n\n".join(package.written(_slide(package, name, number))), number) for number, name in enumerate(slides, 1)
    )


def _slide(package: _Package, name: str, number: int) -> Iterator[str]:
    """The title, shapes in their order, those in groups too, then notes and comments."""
    slide, related = package.tree(name), package.related(name)
    titles = [shape for shape in _below(slide, "sp") if _placeholder_kind(shape) in ("title", "ctrTitle")]
    yield heading(1, (_text(titles[0]) if titles else "") or f"Slide {number}")
    yield from _shapes(package, related, slide, titles[:1])
    for kind, other in related.values():
        if kind == "notesSlide":
            speaker_notes = package.tree(other)
            left_out = [shape for shape in _below(speaker_notes, "sp") if _placeholder_kind(shape) != "body"]
            yield from _shapes(package, {}, speaker_notes, left_out)
        elif kind == "comments":
            comments = (
                " ".join("".join(found.itertext()).split()) for found in _below(package.tree(other), "text", "txBody")
            )
            yield from map(prose, filter(None, comments))


def _placeholder_kind(shape: Element) -> str:
    """What a shape is the place of, as its layout says."""
    return next((found.get("type", "") for found in _below(shape, "ph")), "")


def _shapes(
    package: _Package, related: dict[str, tuple[str, str]], root: Element, left_out: list[Element]
) -> Iterator[str]:
    pending = [root]
    while pending:
        shape = pending.pop()
        kind = _name(shape)
        if shape in left_out or (kind == "sp" and _placeholder_kind(shape) == "sldNum"):
            continue
        if kind == "p":
            yield from filter(None, [prose(_text(shape)) if _text(shape) else ""])
        elif kind == "tbl":
            rows = [[_text(cell) for cell in _below(row, "tc")] for row in _below(shape, "tr")]
            yield from [table(rows)] if rows else []
        elif kind == "graphicData":
            yield from (table(rows) for rows in _drawn(package, related, shape) if rows)
            pending += reversed(shape)
        elif kind == "pic":
            described = next((found.get("descr", "") for found in _below(shape, "cNvPr")), "")
            yield from [prose(" ".join(described.split()))] if described.strip() else []
        else:
            pending += reversed([part for part in shape if _name(part) != "Fallback"])


def _epub(package: _Package) -> Converted:
    """The chapters in the order in which a book is read; those that are not there are left out, with a warning."""
    roots = _below(package.tree("META-INF/container.xml"), "rootfile")
    main = next((root.get("full-path", "") for root in roots), "")
    if main not in package.names:
        raise InvalidInput("it does not say where its contents are")
    contents = package.tree(main)
    items = {
        item.get("id"): posixpath.normpath(posixpath.join(posixpath.dirname(main), unquote(item.get("href", ""))))
        for item in _below(contents, "item")
    }
    order = [items.get(location.get("idref"), "") for location in _below(contents, "itemref")]
    if missing := sum(name not in package.names for name in order):
        package.warnings.append(f"{missing} of its chapters are missing from the file.")
    pages = (package.read(name).decode("utf-8-sig", errors="replace") for name in order if name in package.names)
    return _from_html(package, pages), None


def _from_html(package: _Package, pages: Iterable[str]) -> str:
    shown = (text for page in pages for text in as_markdown(assemble(page, scan_html(page), "html")))
    return "\n\n".join(package.written(shown))


def convert_docx(content: bytes) -> ConvertedText:
    """Convert a Word file to Markdown."""
    return _convert(content, "DOCX", _docx)


def convert_pptx(content: bytes) -> ConvertedText:
    """Convert a PowerPoint file to Markdown; its slides are its pages."""
    return _convert(content, "PPTX", _pptx)


def convert_epub(content: bytes) -> ConvertedText:
    """Convert an EPUB book to Markdown."""
    return _convert(content, "EPUB", _epub)


def _convert(content: bytes, name: str, read: Callable[[_Package], Converted]) -> ConvertedText:
    """Convert an office file.

    Raises:
        InvalidInput: The file is broken, protected by a password, or passes a limit; the message continues its name.
        MissingExtra: The extra `files` is not installed.
    """
    try:
        package = _Package(content)
        text, pages = read(package)
    except MissingExtra:
        raise
    except Exception as cause:  # the libraries raise whatever a broken file makes them stumble over
        reason = "it is broken, or protected by a password" if isinstance(cause, zipfile.BadZipFile) else str(cause)
        raise InvalidInput(f"cannot be read as {name}: {reason:.200}.") from cause
    return ConvertedText(text, pages, tuple(package.warnings))
