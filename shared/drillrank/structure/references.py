"""What a document points to: links, references such as "see Section 8" and what they name, bibliographies."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from drillrank.structure.document import Document, Section
from drillrank.structure.html import html_links
from drillrank.structure.latex import latex_links
from drillrank.structure.markdown import markdown_links

_FINDERS: dict[str, Callable[[str], list[tuple[int, str, str]]]] = {
    "markdown": markdown_links,
    "html": html_links,
    "latex": latex_links,
}

Label = tuple[str, str]
"""What is labelled, and its number or title in lower case."""

_KINDS = {"sec": "section", "§": "section", "clause": "section", "tab": "table", "fig": "figure", "eq": "equation"}
_KINDS |= {"annex": "appendix", "appendice": "appendix"}
_NAME = (
    r"(?P<name>sections?|secs?\.|clauses?|§{1,2}|tables?|tabs?\.|figures?|figs?\.|equations?|eqs?\.|notes?|items?|"
    r"articles?|chapters?|parts?|appendix|appendices|annex|schedules?|exhibits?)"
)
_NUMBER = r"(?:\d{1,3}(?:\.\d{1,3})*[a-z]?|[IVXLC]+|[A-Z](?:\.\d{1,3})*)(?![\w])"
_REFERENCE = re.compile(
    rf"(?<!\w)(?i:{_NAME})\s*(?:(?P<numbers>{_NUMBER}(?:(?:\s*,\s*|\s+(?:and|or|to)\s+){_NUMBER})*)"
    r"|[\"“](?P<title>[^\"”\n]{1,80})[\"”])"
)
_LABEL = re.compile(rf"\s*(?:(?i:{_NAME})\s*(?P<number>{_NUMBER})|(?P<plain>\d{{1,3}}(?:\.\d{{1,3}})*)\.?\s+\S)")
_HEADING_NUMBER = re.compile(r"^(?:[\d.]+|[IVX]+\.)\s+")
_BIBLIOGRAPHIES = frozenset({
    "bibliography", "citations", "external links", "footnotes", "further reading", "notes", "notes and references",
    "references", "references and notes", "see also", "works cited",
})  # fmt: skip


class Link(NamedTuple):
    """A link as the author wrote it.

    Attributes:
        target: The address, relative or absolute; nothing is resolved.
        text: What a reader sees of it.
    """

    target: str
    text: str


def section_links(document: Document) -> list[list[Link]]:
    r"""The links of every section, in the order of `document.sections()`.

    Markdown's links and autolinks, HTML's visible anchors, LaTeX's `\href` and `\url`. Plain text has none. The text is
    searched anew at every call.

    >>> from drillrank.structure import parse_document
    >>> section_links(parse_document("# Foxes\n\nSee [whales](/whales) and <http://a.b>.\n\n# Whales\n"))
    [[Link(target='/whales', text='whales'), Link(target='http://a.b', text='http://a.b')], []]
    """
    starts = [section.start for section in document.sections()]
    links: list[list[Link]] = [[] for _ in starts]
    finder = _FINDERS.get(document.format)
    for at, target, text in finder(document.text) if finder else ():
        links[bisect_right(starts, at) - 1].append(Link(target, text))
    return links


def references(text: str) -> list[Label]:
    """What a text refers to, each once, in order; titles are those in quotation marks.

    >>> references("See Sections 8 and 9.1, Table 3 and § 5; Note 12 has more, as has Section “Rents”.")
    [('section', '8'), ('section', '9.1'), ('table', '3'), ('section', '5'), ('note', '12'), ('title', 'rents')]
    """
    labels: list[Label] = []
    for found in _REFERENCE.finditer(text):
        if found["title"]:
            labels.append(("title", _folded(found["title"])))
        else:
            labels += [(_kind(found["name"]), number.lower()) for number in re.findall(_NUMBER, found["numbers"])]
    return list(dict.fromkeys(labels))


def heading_labels(heading: str) -> list[Label]:
    """What a heading may be called: by its name and number, and by its title.

    >>> heading_labels("8.2 Term"), heading_labels("Note 12. Leases")
    ([('section', '8.2'), ('title', '8.2 term'), ('title', 'term')], [('note', '12'), ('title', 'note 12. leases')])
    """
    labels = [("title", _folded(heading))]
    found = _LABEL.match(heading)
    if found and found["plain"]:
        labels.append(("title", _folded(heading.strip()[len(found["plain"]) :].lstrip(". "))))
    return [*([_label(found)] if found else ()), *labels]


def caption_label(text: str) -> Label | None:
    """What a paragraph that is a caption is called.

    >>> caption_label("Table 3: Rents"), caption_label("Table 3 shows rents.")
    (('table', '3'), None)
    """
    found = _LABEL.match(text)
    captioned = found is not None and found["name"] is not None and text[found.end() :].lstrip()[:1] in (":", ".", "–")
    return _label(found) if found and captioned else None


def _label(found: re.Match[str]) -> Label:
    return ("section", found["plain"]) if found["plain"] else (_kind(found["name"]), found["number"].lower())


def _kind(name: str) -> str:
    name = name.lower().rstrip(".")
    name = name[0] if name.startswith("§") else name.removesuffix("s")
    return {"appendice": "appendix"}.get(name, _KINDS.get(name, name))


def _folded(title: str) -> str:
    return " ".join(title.lower().split())


def is_reference_section(section: Section) -> bool:
    """Whether a section, or one above it, has a heading such as "See also", "Notes" or "7. References".

    MC-indexing (section 3.2) leaves such sections out of its index.

    >>> is_reference_section(Section(("Foxes", "External links"), 2, 0, 9))
    True
    """
    return any(_HEADING_NUMBER.sub("", heading).strip(" .:").casefold() in _BIBLIOGRAPHIES for heading in section.path)
