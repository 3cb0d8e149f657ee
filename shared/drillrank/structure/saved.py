"""A parsed document as JSON, so that it need not be parsed again."""

from __future__ import annotations

import json
from dataclasses import astuple

from drillrank.errors import InvalidInput
from drillrank.limits import read_json
from drillrank.structure.document import Block, Document, Section
from drillrank.structure.pages import Pages


def document_to_json(document: Document) -> str:
    r"""All that a document holds.

    >>> from drillrank.structure import parse_document
    >>> document = parse_document("# Sea\n\nDeep.")
    >>> document_from_json(document_to_json(document)) == document
    True
    """
    sections = document.sections()
    return json.dumps(
        {
            "text": document.text,
            "format": document.format,
            "sections": [astuple(section) for section in sections],
            "blocks": [[astuple(block) for block in document.blocks(section)] for section in sections],
            "pages": None if document.pages is None else document.pages.as_json(),
        }
    )


def document_from_json(text: str) -> Document:
    """The document that `document_to_json` wrote.

    Raises:
        InvalidInput: it is something else.
    """
    saved = read_json(text, "The saved document")
    try:
        sections = tuple(Section(tuple(path), *place) for path, *place in saved["sections"])
        blocks = tuple(tuple(Block(*block) for block in blocks) for blocks in saved["blocks"])
        end = 0
        for section, inside in zip(sections, blocks, strict=True):
            offsets = [section.start, *(at for block in inside for at in (block.start, block.end)), section.end]
            if section.start != end or offsets != sorted(offsets) or any(type(at) is not int for at in offsets):
                raise ValueError("sections do not follow on each other, or blocks lie outside them")
            end = section.end
        if end != len(saved["text"]):
            raise ValueError("sections do not end where the text ends")
        pages = None if saved["pages"] is None else Pages.from_json(saved["pages"])
        return Document(saved["text"], sections, blocks, saved["format"], pages)
    except (ValueError, TypeError, KeyError) as cause:
        raise InvalidInput(f"This is no saved document ({cause}): {text[:80]!r}.") from cause
