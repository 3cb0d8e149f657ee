"""The outline of one or several documents: their sections in pre-order, and the paragraphs of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drillrank.errors import InvalidInput
from drillrank.passages import Passage
from drillrank.structure import Document, breadcrumb, parse_document


@dataclass(frozen=True, slots=True)
class OutlineSection:
    """A section with something to read in it.

    Attributes:
        passage: The section's own text; the title is its path from the root, joined.
        paragraphs: Its blocks but for the heading, text as in the source, under the same title. Their metadata hold
            `document` (its place in the input), `section_path`, `start` and `end`.
    """

    passage: Passage
    paragraphs: tuple[Passage, ...]


def outline(documents: Sequence[Document | str]) -> list[OutlineSection]:
    r"""Sections of all documents that hold at least one paragraph, in order.

    Raises:
        InvalidInput: an item is neither a parsed document nor a string, or a single one was given.

    >>> [section.passage.title for section in outline(["# A\n\nOne.\n\n## B\n\nTwo."])]
    ['A', 'A > B']
    """
    if isinstance(documents, (str, Document)):
        raise InvalidInput("Expected a list of documents, not a single one: wrap it in a list.")
    sections: list[OutlineSection] = []
    for number, given in enumerate(documents):
        if not isinstance(given, (str, Document)):
            raise InvalidInput(f"Document {number} is a {type(given).__name__}, not a parsed document or a string.")
        document = parse_document(given) if isinstance(given, str) else given
        for section in document.sections():
            title = breadcrumb(section.path)
            blocks = [block for block in document.blocks(section) if block.kind != "heading"]
            paragraphs = tuple(
                Passage(
                    document.slice(block),
                    id=f"{number}:{block.start}",
                    title=title,
                    metadata={
                        "document": number,
                        "section_path": section.path,
                        "start": block.start,
                        "end": block.end,
                    },
                )
                for block in blocks
            )
            if paragraphs:
                text = document.text[blocks[0].start : blocks[-1].end]
                sections.append(OutlineSection(Passage(text, id=f"{number}:{section.start}", title=title), paragraphs))
    return sections
