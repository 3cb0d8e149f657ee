"""Section chunks: every section of a document in up to three views (MC-indexing, sections 3.2 and 3.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from drillrank.errors import InvalidInput
from drillrank.passages import stable_uuid
from drillrank.structure import Document, Section, breadcrumb
from drillrank.views.keywords import keywords
from drillrank.views.summaries import summaries

View = Literal["raw", "keywords", "summary"]
VIEWS: tuple[View, ...] = get_args(View)


@dataclass(frozen=True, slots=True)
class SectionChunk:
    """One view of one section.

    Attributes:
        id: UUID made from the document's id, the section's ordinal and the view; the same in every run.
        text: The text to index. `raw`: the source, unchanged. `keywords` and `summary`: the section's headings joined
            by " > ", without a title that heads the whole document, and on the next line the keywords separated by
            commas, or the summary.
        view: Which view this is.
        path: Headings from the root, own heading included.
        level: Depth of the heading as written; 0 for text before the first heading.
        start: Offset of the section's first character in the document's text.
        end: Offset just behind its last character.
        ordinal: The section's place in `document.sections()`.
        section_id: Id of the section's raw chunk.
        parent_id: Id of the raw chunk of the nearest section above that has one, or None. As in `Document`, text
            before the first heading lies above all other sections.
    """

    id: str
    text: str
    view: View
    path: tuple[str, ...]
    level: int
    start: int
    end: int
    ordinal: int
    section_id: str
    parent_id: str | None


def section_chunks(
    document: Document,
    document_id: str,
    views: Collection[View] = VIEWS,
    *,
    keyword_lists: Sequence[Sequence[str]] | None = None,
    summary_texts: Sequence[str] | None = None,
) -> list[SectionChunk]:
    r"""Every section of a document as chunks; no chunk crosses two sections.

    A section with any character that is not white space gets a raw chunk, so that each such character of the
    document is in exactly one. Sections without text below their heading, or without keywords, get no keyword chunk;
    likewise for summaries.

    Args:
        document: A parsed document.
        document_id: What tells this document from others; part of every chunk's id.
        views: The views wanted. `raw` must be among them: it is what the others lead to.
        keyword_lists: Keywords for each of `section_bodies(document)`, for example an LLM's; by default `keywords`.
        summary_texts: Summaries for each of them; by default `summaries`.

    Returns:
        The chunks section by section; within a section raw, keywords, summary.

    Raises:
        InvalidInput: `views` lacks `raw` or names an unknown view, `document_id` is no string, or the given lists do
            not match the document's sections.

    >>> from drillrank.structure import parse_document
    >>> document = parse_document("# Foxes\n\nFoxes hunt mice.\n\n## Red foxes\n\nThey are orange.\n")
    >>> for chunk in section_chunks(document, "doc-1", views=("raw", "keywords")):
    ...     print(repr(chunk.text))
    '# Foxes\n\nFoxes hunt mice.\n\n'
    'Foxes\nFoxes, hunt, mice'
    '## Red foxes\n\nThey are orange.\n'
    'Red foxes\norange'
    """
    check_views(views)
    if not isinstance(document_id, str):
        raise InvalidInput(f"document_id must be a string, not {document_id!r}.")
    raw = _raw_chunks(document, document_id)
    bodies = section_bodies(document)
    derived: dict[View, list[str]] = {}
    if "keywords" in views:
        lists = keywords(bodies) if keyword_lists is None else keyword_lists
        derived["keywords"] = [", ".join(words) for words in lists]
    if "summary" in views:
        derived["summary"] = list(summaries(bodies) if summary_texts is None else summary_texts)
    for view, texts in derived.items():
        if len(texts) != len(raw):
            raise InvalidInput(f"The {view} view needs one entry for each of {len(raw)} sections, not {len(texts)}.")

    roots = {section.path[:1] for section in raw if section.path}
    below_title = 1 if len(roots) == 1 else 0  # the title of the whole document tells no section apart
    chunks = []
    for position, section in enumerate(raw):
        chunks.append(section)
        headings = breadcrumb(section.path[below_title:] or section.path)
        for view, texts in derived.items():
            if texts[position].strip():
                text = "\n".join(filter(None, (headings, texts[position])))
                id_ = stable_uuid(document_id, section.ordinal, view)
                chunks.append(replace(section, id=id_, text=text, view=view))
    return chunks


def section_bodies(document: Document) -> list[str]:
    r"""The text below the heading of every section that has a raw chunk, without white space around it.

    >>> from drillrank.structure import parse_document
    >>> section_bodies(parse_document("Intro.\n\n# A\n\n## B\n\nTwo.\n"))
    ['Intro.', '', 'Two.']
    """
    bodies = []
    for _, section in _sections_with_text(document):
        blocks = document.blocks(section)
        start = blocks[0].end if blocks and blocks[0].kind == "heading" else section.start
        bodies.append(document.text[start : section.end].strip())
    return bodies


def check_views(views: Collection[View]) -> None:
    """Reject views that do not exist, and a choice of views without `raw`.

    Raises:
        InvalidInput: see above; also for a single string in place of a list.
    """
    if isinstance(views, str) or "raw" not in views or not set(views) <= set(VIEWS):
        raise InvalidInput(f"views is a list of names out of {VIEWS} that holds 'raw'; not {views!r}.")


def _sections_with_text(document: Document) -> list[tuple[int, Section]]:
    return [(at, section) for at, section in enumerate(document.sections()) if document.slice(section).strip()]


def _raw_chunks(document: Document, document_id: str) -> list[SectionChunk]:
    chunks: list[SectionChunk] = []
    above: list[SectionChunk] = []  # the chunks on the way from the root, paths growing longer
    for ordinal, section in _sections_with_text(document):
        while above and len(above[-1].path) >= len(section.path):
            above.pop()
        id_ = stable_uuid(document_id, ordinal, "raw")
        chunk = SectionChunk(
            id=id_,
            text=document.slice(section),
            view="raw",
            path=section.path,
            level=section.level,
            start=section.start,
            end=section.end,
            ordinal=ordinal,
            section_id=id_,
            parent_id=above[-1].id if above else None,
        )
        above.append(chunk)
        chunks.append(chunk)
    return chunks
