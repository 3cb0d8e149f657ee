"""Every chunk of a document in up to three views (MC-indexing, sections 3.2, 3.3 and 5.6)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from drillrank.errors import InvalidInput
from drillrank.passages import stable_uuid
from drillrank.structure import Document, breadcrumb
from drillrank.views.cutters import Chunk, Cutter, whole_sections
from drillrank.views.keywords import keywords
from drillrank.views.summaries import summaries

View = Literal["raw", "keywords", "summary"]
VIEWS: tuple[View, ...] = get_args(View)
Context = Literal["headings", "keywords"]
CONTEXT_KEYWORDS = 10  # of the section


@dataclass(frozen=True, slots=True)
class SectionChunk:
    """One view of one section, or of another chunk that a cutter makes.

    Attributes:
        id: UUID made from the document's id, the chunk's place and the view; the same in every run.
        text: What the view shows. `raw`: the chunk's text, which is what retrieval returns. `keywords` and `summary`:
            the headings joined by " > ", without a title that heads the whole document, and on the next line the
            keywords separated by commas, or the summary.
        context: What stands in front of the text in the index, and nowhere else; of the raw view only.
        view: Which view this is.
        path: Headings from the root, own heading included.
        level: Depth of the heading as written; 0 for text before the first heading.
        start: Offset of the chunk's first character in the document's text.
        end: Offset just after its last character.
        ordinal: Place of the section in `document.sections()`.
        part: 0 for the first chunk of a section.
        section_id: Id of the chunk's raw view.
        pages: Numbers of the first and last page that the chunk is on; None where the document's pages are not known.
        parent_id: Id of the raw chunk that begins the nearest section above, or None. As in `Document`, text before
            the first heading lies above all other sections.
    """

    id: str
    text: str
    context: str
    view: View
    path: tuple[str, ...]
    level: int
    start: int
    end: int
    ordinal: int
    part: int
    section_id: str
    parent_id: str | None
    pages: tuple[int, int] | None = None

    @property
    def indexed_text(self) -> str:
        """What an index should read: the context, if there is one, and the text."""
        return f"{self.context}\n\n{self.text}" if self.context else self.text


def section_chunks(
    document: Document,
    document_id: str,
    views: Collection[View] = VIEWS,
    *,
    cutter: Cutter | None = None,
    context: Collection[Context] = (),
    keyword_lists: Sequence[Sequence[str]] | None = None,
    summary_texts: Sequence[str] | None = None,
    language: str = "english",
) -> list[SectionChunk]:
    r"""Every section of a document, or every chunk of another size, in its views.

    Each character of the document that is not white space is in exactly one raw chunk. Units without text below their
    heading, or without keywords, get no keyword chunk; likewise for summaries.

    Args:
        document: A parsed document.
        document_id: What tells this document from others; part of every chunk's id.
        views: The views wanted. `raw` must be among them: it is what the others lead to.
        cutter: Makes the chunks, for example `whole_sections(max_tokens=500)`; by default whole sections.
        context: What the raw view has in front of it in the index: `"headings"`, the path; `"keywords"`, the first 10
            keywords of the whole section. What is returned stays the source.
        keyword_lists: Keywords for each chunk, for example an LLM's; by default `keywords`.
        summary_texts: Summaries for each chunk; by default `summaries`.
        language: Whose stemmer finds keywords and summaries.

    Returns:
        The views chunk by chunk; within a chunk raw, keywords, summary.

    Raises:
        InvalidInput: `views` lacks `raw`, a view or context is unknown, `document_id` is no string, or the given
            lists do not match the chunks.

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
    check_context(context)
    if not isinstance(document_id, str):
        raise InvalidInput(f"document_id must be a string, not {document_id!r}.")
    chunks = (cutter or whole_sections())(document)
    bodies = [chunk.body for chunk in chunks]
    texts: dict[View, list[str]] = {}
    if "keywords" in views:
        lists = keywords(bodies, language=language) if keyword_lists is None else keyword_lists
        texts["keywords"] = [", ".join(words) for words in lists]
    if "summary" in views:
        texts["summary"] = list(summaries(bodies, language=language) if summary_texts is None else summary_texts)
    for view, of_view in texts.items():
        if len(of_view) != len(chunks):
            raise InvalidInput(f"The {view} view needs one entry for each of {len(chunks)} chunks, not {len(of_view)}.")

    headings = chunk_names(chunks)
    made = []
    for position, raw in enumerate(
        _raw_views(document, chunks, document_id, _contexts(document, chunks, headings, context, language))
    ):
        made.append(raw)
        for view, of_view in texts.items():
            if of_view[position].strip():
                text = "\n".join(filter(None, (headings[position], of_view[position])))
                id_ = _chunk_id(document_id, chunks[position], view)
                made.append(replace(raw, id=id_, text=text, context="", view=view))
    return made


def chunk_names(chunks: Sequence[Chunk]) -> list[str]:
    """The path of every chunk on one line; a title that heads the whole document tells none apart and is left out."""
    roots = {chunk.path[:1] for chunk in chunks if chunk.path}
    below_title = 1 if len(roots) == 1 else 0
    return [breadcrumb(chunk.path[below_title:] or chunk.path) for chunk in chunks]


def check_views(views: Collection[View]) -> None:
    """Reject views that do not exist, and a choice of views without `raw`.

    Raises:
        InvalidInput: see above; also for a single string in place of a list.
    """
    if isinstance(views, str) or "raw" not in views or not set(views) <= set(VIEWS):
        raise InvalidInput(f"views is a list of names out of {VIEWS} that holds 'raw'; not {views!r}.")


def check_context(context: Collection[Context]) -> None:
    """Reject context that does not exist.

    Raises:
        InvalidInput: see above; also for a single string in place of a list.
    """
    if isinstance(context, str) or not set(context) <= set(get_args(Context)):
        raise InvalidInput(f"context is a list of names out of {get_args(Context)}, or empty; not {context!r}.")


def _contexts(
    document: Document, chunks: Sequence[Chunk], headings: Sequence[str], context: Collection[Context], language: str
) -> list[str]:
    """What stands in front of each chunk: its path on one line, the keywords of its section on the next."""
    lines: list[list[str]] = [[] for _ in chunks]
    if "headings" in context:
        for own, heading in zip(lines, headings, strict=True):
            own.append(heading)
    if "keywords" in context:
        sections = whole_sections()(document)
        lists = keywords([section.body for section in sections], CONTEXT_KEYWORDS, language)
        words = {section.ordinal: found for section, found in zip(sections, lists, strict=True)}
        for own, chunk in zip(lines, chunks, strict=True):
            own.append(", ".join(words.get(chunk.ordinal, ())))
    return ["\n".join(filter(None, own)) for own in lines]


def _raw_views(
    document: Document, chunks: Sequence[Chunk], document_id: str, contexts: Sequence[str]
) -> list[SectionChunk]:
    made = []
    above: list[tuple[int, str]] = []  # depth and id of the chunks from the root to the section, depths rising
    for chunk, context in zip(chunks, contexts, strict=True):
        id_ = _chunk_id(document_id, chunk, "raw")
        if not chunk.part:
            while above and above[-1][0] >= chunk.depth:
                above.pop()
            above.append((chunk.depth, id_))
        made.append(
            SectionChunk(
                id=id_,
                text=chunk.text,
                context=context,
                view="raw",
                path=chunk.path,
                level=chunk.level,
                start=chunk.start,
                end=chunk.end,
                ordinal=chunk.ordinal,
                part=chunk.part,
                section_id=id_,
                parent_id=above[-2][1] if len(above) > 1 else None,
                pages=document.page_numbers(chunk.start, chunk.end),
            )
        )
    return made


def _chunk_id(document_id: str, chunk: Chunk, view: View) -> str:
    return stable_uuid(document_id, chunk.ordinal, chunk.part, view)
