"""References in a text such as "see Section 8", and the labels of sections, tables and figures that they name."""

from __future__ import annotations

import re

Label = tuple[str, str]
"""Kind of the labelled thing, such as "section", and its number or title in lower case."""

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
_LABEL = re.compile(rf"\s{{0,99}}(?:(?i:{_NAME})\s*(?P<number>{_NUMBER})|(?P<plain>\d{{1,3}}(?:\.\d{{1,3}})*)\.?\s+\S)")


def references(text: str) -> list[Label]:
    """Return the labels that a text refers to, without duplicates, in order. Titles are those in quotation marks.

    >>> references("See Sections 8 and 9.1, Table 3 and § 5; Note 12 has more, as has Section “Rents”.")
    [('section', '8'), ('section', '9.1'), ('table', '3'), ('section', '5'), ('note', '12'), ('title', 'rents')]
    """
    labels: list[Label] = []
    for match in _REFERENCE.finditer(text):
        if match["title"]:
            labels.append(("title", _fold(match["title"])))
        else:
            kind = _normalize_kind(match["name"])
            labels += [(kind, number.lower()) for number in re.findall(rf"(?<!\w){_NUMBER}", match["numbers"])]
    return list(dict.fromkeys(labels))


def heading_labels(heading: str) -> list[Label]:
    """Return the labels by which a text may refer to a heading: its name and number, and its title.

    >>> heading_labels("8.2 Term"), heading_labels("Note 12. Leases")
    ([('section', '8.2'), ('title', '8.2 term'), ('title', 'term')], [('note', '12'), ('title', 'note 12. leases')])
    """
    labels = [("title", _fold(heading))]
    match = _LABEL.match(heading)
    if match and match["plain"]:
        labels.append(("title", _fold(heading.strip()[len(match["plain"]) :].lstrip(". "))))
    return [*([_build_label(match)] if match else ()), *labels]


def caption_label(text: str) -> Label | None:
    """Return the label of a paragraph that is a caption; None for other paragraphs.

    >>> caption_label("Table 3: Rents"), caption_label("Table 3 shows rents.")
    (('table', '3'), None)
    """
    match = _LABEL.match(text)
    if match is None or match["name"] is None or text[match.end() :].lstrip()[:1] not in (":", ".", "–"):
        return None
    return _build_label(match)


def _build_label(match: re.Match[str]) -> Label:
    """Return the label that a match of `_LABEL` names."""
    return ("section", match["plain"]) if match["plain"] else (_normalize_kind(match["name"]), match["number"].lower())


def _normalize_kind(name: str) -> str:
    """Return the kind that a name such as "Secs." means."""
    name = name.lower().rstrip(".")
    name = name[0] if name.startswith("§") else name.removesuffix("s")
    return _KINDS.get(name, name)


def _fold(title: str) -> str:
    """Return a title in lower case with single spaces."""
    return " ".join(title.lower().split())
