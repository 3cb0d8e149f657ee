"""References in a text such as "see Section 8", and what they name."""

from __future__ import annotations

import re

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
    return _KINDS.get(name, name)


def _folded(title: str) -> str:
    return " ".join(title.lower().split())
