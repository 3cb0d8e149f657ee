"""LlamaParse: Markdown, page by page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from drillrank.errors import InvalidInput
from drillrank.structure.document import Document
from drillrank.structure.pages import Pages
from drillrank.structure.parsed.levels import rebuilt_levels
from drillrank.structure.parsed.parts import as_mapping, page_number
from drillrank.structure.scan import Scan, assemble


def document_from_llamaparse(given: object) -> Document:
    r"""Read a result of LlamaParse: the pages' Markdown as one document, so that sections run across pages.

    Where all headings are on one level, levels are rebuilt from their numbering, or from titles that recur.

    Args:
        given: The result in JSON mode (`pages`, each with `page` and `md`), a job's result with `markdown` expanded
            (`markdown.pages`, each with `page_number` and `markdown`), as object, dictionary or JSON; or a list of
            pages.

    Raises:
        InvalidInput: it is something else, or no page has Markdown.

    >>> document = document_from_llamaparse([{"page": 3, "md": "# Sea\n\nWide."}, {"page": 4, "md": "And deep."}])
    >>> document.text, [document.page_numbers(section.start, section.end) for section in document.sections()]
    ('# Sea\n\nWide.\n\nAnd deep.', [(3, 4)])
    """
    from drillrank.structure.markdown import scan_markdown

    texts: list[str] = []
    marks: list[tuple[int, int, str]] = []
    at = 0
    for place, page in enumerate(_pages(given), start=1):
        saved = as_mapping(page, "LlamaParse")
        text = saved.get("md", saved.get("markdown"))
        number = page_number(saved.get("page", saved.get("page_number", place)))
        if isinstance(text, str) and text.strip():
            text = text.strip("\r\n")
            if number is not None and (not marks or number > marks[-1][1]):
                marks.append((at, number, str(number)))
            texts.append(text)
            at += len(text) + 2
    if not texts:
        raise InvalidInput("No page of this result has Markdown: ask LlamaParse for it.")
    text = "\n\n".join(texts)
    scan = scan_markdown(text)
    document = assemble(text, Scan(scan.blocks, rebuilt_levels(scan.headings)), "markdown")
    return replace(document, pages=Pages.of(marks) if marks else None)


def _pages(given: object) -> Iterable[object]:
    if isinstance(given, list | tuple):
        return given
    saved = as_mapping(given, "LlamaParse")
    pages = saved.get("pages")
    if pages is None and isinstance(saved.get("markdown"), Mapping):
        pages = saved["markdown"].get("pages")
    if not isinstance(pages, list | tuple):
        raise InvalidInput("This is no result of LlamaParse: it has no pages.")
    return pages
