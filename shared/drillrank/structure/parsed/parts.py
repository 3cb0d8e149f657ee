"""Parts that another tool has found, written one after the other as a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.limits import read_json
from drillrank.structure.document import Block, BlockKind, Document
from drillrank.structure.pages import Pages
from drillrank.structure.parsed.levels import rebuilt_levels
from drillrank.structure.scan import Scan, assemble


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a document.

    Attributes:
        kind: What it is.
        text: As a reader sees it.
        level: Of a heading, from 1 on.
        page: Number of the page that it begins on, if that is known.
    """

    kind: BlockKind
    text: str
    level: int = 1
    page: int | None = None


def document_of(parts: Iterable[Part], *, rebuild: bool = False) -> Document:
    r"""The parts as a document; blank ones are left out, a page earlier than the one before does not count.

    Args:
        parts: In reading order.
        rebuild: Whether headings on one level may be given several.

    >>> document = document_of([Part("heading", "Sea", page=1), Part("paragraph", "Deep.", page=2)])
    >>> document.text, document.page_numbers(0, 3), document.page_numbers(5, 10)
    ('Sea\n\nDeep.', (1, 1), (2, 2))
    """
    texts: list[str] = []
    blocks: list[Block] = []
    headings: list[tuple[int, str]] = []
    marks: list[tuple[int, int, str]] = []
    at = 0
    for part in parts:
        text = " ".join(part.text.split()) if part.kind == "heading" else part.text.strip()
        if not text:
            continue
        if part.page is not None and (not marks or part.page > marks[-1][1]):
            marks.append((at, part.page, str(part.page)))
        if part.kind == "heading":
            headings.append((part.level, text))
        texts.append(text)
        blocks.append(Block(part.kind, at, at + len(text)))
        at += len(text) + 2
    scan = Scan(blocks, rebuilt_levels(headings) if rebuild else headings)
    document = assemble("\n\n".join(texts), scan, "text")
    return replace(document, pages=Pages.of(marks) if marks else None)


def as_mapping(given: object, tool: str) -> Mapping[str, Any]:
    """A dictionary, or the JSON of one, or what a pydantic model or a dataclass of the tool turns into.

    Raises:
        InvalidInput: it is none of these.
    """
    if isinstance(given, str):
        given = read_json(given, f"The output of {tool}")
    for name in ("export_to_dict", "to_dict", "model_dump"):
        if not isinstance(given, Mapping) and callable(turn := getattr(given, name, None)):
            given = turn(mode="json") if name == "model_dump" else turn()
    if not isinstance(given, Mapping):
        raise InvalidInput(f"Expected output of {tool}, a mapping, not a {type(given).__name__}.")
    return given


def page_number(value: object) -> int | None:
    """A page's number, where it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
