"""Sections that only point elsewhere."""

from __future__ import annotations

import re

from drillrank.structure.document import Section

_NUMBER = re.compile(r"^(?:[\d.]+|[IVX]+\.)\s+")
REFERENCE_HEADINGS = frozenset(
    {
        "bibliography",
        "citations",
        "external links",
        "footnotes",
        "further reading",
        "notes",
        "notes and references",
        "references",
        "references and notes",
        "see also",
        "works cited",
    }
)


def is_reference_section(section: Section) -> bool:
    """Whether a section, or one above it, has a heading such as "See also", "Notes" or "7. References".

    MC-indexing (section 3.2) leaves such sections out of its index.

    >>> is_reference_section(Section(("Foxes", "External links"), 2, 0, 9))
    True
    """
    return any(_NUMBER.sub("", heading).strip(" .:").casefold() in REFERENCE_HEADINGS for heading in section.path)
