"""What is indexed as one thing: whole sections, parts of them, paragraphs, or chunks of fixed length.

A cutter makes chunks of a parsed document (MC-indexing, sections 3.2 and 5.6). Sizes are tokens as
`drillrank.text.count_tokens` counts them, or what is named in its place; white space around a chunk does not count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from drillrank.errors import InvalidInput, check_positive
from drillrank.structure import Document, Section
from drillrank.text import TokenCount, Tokens, token_counter
from drillrank.views.packing import Run, atoms, block_runs, body_of, fitted, packed, text_of

Chunking = Literal["section", "paragraph", "content_aware_fixed", "fixed"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A section, a part of one, or several small ones.

    Attributes:
        text: As a reader sees it: the source of the span, or its rendering where markup hides that. A later part of a
            table begins with the table's first lines, which are not in its span.
        body: The text without the heading that it begins with, and without white space around it.
        path: Headings from the root, own heading included.
        level: Depth of the heading as written; 0 without one.
        start: Offset of the first character in the document's text.
        end: Offset just after the last one.
        ordinal: Place of the section, or of the first one, in `document.sections()`.
        part: 0 for the first chunk that begins in that section, 1 for the second, ...
        depth: Number of headings on the way to it, own heading included.
    """

    text: str
    body: str
    path: tuple[str, ...]
    level: int
    start: int
    end: int
    ordinal: int
    part: int
    depth: int


Cutter = Callable[[Document], list[Chunk]]


def whole_sections(max_tokens: int | None = None, min_tokens: int | None = None, tokens: Tokens = None) -> Cutter:
    r"""Sections. One of more than `max_tokens` is cut inside: between blocks, then between lines, sentences, words.

    Code is cut only if it is too long alone, then between lines. So are tables, and the later parts repeat the first
    lines. Where a block's text is a rendering (HTML, LaTeX), each part of it has the span of the whole block.

    Args:
        max_tokens: Largest size of a chunk; None for no limit.
        min_tokens: A section of fewer tokens joins the one before it, if that is its parent or has the same parent and
            is as small, until they have as many together; sections with others below them join nothing. The chunk has
            the parent's path. None keeps all sections apart.
        tokens: What counts the tokens of a text: see `drillrank.text.token_counter`.

    Raises:
        InvalidInput: a limit is below 1, or `min_tokens` is above `max_tokens`.

    >>> from drillrank.structure import parse_document
    >>> document = parse_document("# Trees\n\n## Oak\n\nTall.\n\n## Elm\n\nTaller.\n\n## Ash\n\nTallest.\n")
    >>> [chunk.path for chunk in whole_sections()(document)]
    [('Trees',), ('Trees', 'Oak'), ('Trees', 'Elm'), ('Trees', 'Ash')]
    >>> [(chunk.path, chunk.text) for chunk in whole_sections(min_tokens=9)(document)]
    [(('Trees',), '# Trees\n\n## Oak\n\nTall.\n\n## Elm\n\nTaller.\n\n'), (('Trees', 'Ash'), '## Ash\n\nTallest.\n')]
    """
    _check_sizes(max_tokens, min_tokens)
    count = token_counter(tokens)

    def cut(document: Document, section: Section) -> list[Run]:
        runs = block_runs(document, section)
        if max_tokens is None:
            return [[span for run in runs for span in run]]
        return packed(document, fitted(document, runs, max_tokens, count), max_tokens, count)

    def cutter(document: Document) -> list[Chunk]:
        chunks = _chunks_of_sections(document, cut)
        return _small_joined(document, chunks, min_tokens, max_tokens, count) if min_tokens else chunks

    return cutter


def paragraphs(max_tokens: int | None = None, tokens: Tokens = None) -> Cutter:
    r"""Paragraphs, lists, tables and code blocks, the first of a section with its heading.

    One of more than `max_tokens` is cut as `whole_sections` does it.

    Raises:
        InvalidInput: `max_tokens` is below 1.

    >>> from drillrank.structure import parse_document
    >>> [chunk.text for chunk in paragraphs()(parse_document("# Oak\n\nTall.\n\nOld.\n"))]
    ['# Oak\n\nTall.\n\n', 'Old.\n']
    """
    _check_sizes(max_tokens)
    count = token_counter(tokens)

    def cut(document: Document, section: Section) -> list[Run]:
        runs = block_runs(document, section)
        lead = 2 if runs[0][0].block.kind == "heading" else 1
        if max_tokens is None:
            return [[span for run in runs[:lead] for span in run], *runs[lead:]]
        first = fitted(document, runs[:lead], max_tokens, count)
        return [*packed(document, first, max_tokens, count), *fitted(document, runs[lead:], max_tokens, count)]

    return lambda document: _chunks_of_sections(document, cut)


def content_aware_fixed(max_tokens: int, tokens: Tokens = None) -> Cutter:
    r"""Chunks of fixed length inside sections (MC-indexing, section 5.6): sentences, packed up to `max_tokens`.

    Lines take the place of sentences in tables, lists and code.

    Raises:
        InvalidInput: `max_tokens` is below 1.

    >>> from drillrank.structure import parse_document
    >>> text = "# Oak\n\nOaks grow tall in the old forests of the north. Their wood is hard and heavy, and dear.\n"
    >>> [chunk.text for chunk in content_aware_fixed(18)(parse_document(text))]
    ['# Oak\n\nOaks grow tall in the old forests of the north. ', 'Their wood is hard and heavy, and dear.\n']
    """
    _check_sizes(max_tokens)
    count = token_counter(tokens)

    def cut(document: Document, section: Section) -> list[Run]:
        found = [part for run in block_runs(document, section) for part in atoms(document, run, max_tokens, count)]
        return packed(document, found, max_tokens, count)

    return lambda document: _chunks_of_sections(document, cut)


def fixed(max_tokens: int, tokens: Tokens = None) -> Cutter:
    r"""Chunks of fixed length without regard to structure, as most splitters make them; their paths are empty.

    Raises:
        InvalidInput: `max_tokens` is below 1.

    >>> from drillrank.structure import parse_document
    >>> [one.text for one in fixed(12)(parse_document("# Oak\n\nIt grows tall.\n\n# Elm\n\nIt is soft and light.\n"))]
    ['# Oak\n\nIt grows tall.\n\n# Elm\n\n', 'It is soft and light.\n']
    """
    _check_sizes(max_tokens)
    count = token_counter(tokens)

    def cutter(document: Document) -> list[Chunk]:
        sections = document.sections()
        starts = [section.start for section in sections]
        parts = [
            part
            for section in sections
            for run in block_runs(document, section)
            for part in atoms(document, run, max_tokens, count)
        ]
        chunks: list[Chunk] = []
        for run in packed(document, parts, max_tokens, count):
            text = text_of(document, run)
            if text.strip():
                ordinal = bisect_right(starts, run[0].start) - 1
                part = chunks[-1].part + 1 if chunks and chunks[-1].ordinal == ordinal else 0
                chunks.append(Chunk(text, text.strip(), (), 0, run[0].start, run[-1].end, ordinal, part, 0))
        return chunks

    return cutter


def make_cutter(
    chunking: Chunking = "section",
    max_tokens: int | None = None,
    min_tokens: int | None = None,
    tokens: Tokens = None,
) -> Cutter:
    """A cutter by its name, for configurations: `"content_aware_fixed"` and `"fixed"` need `max_tokens`.

    Args:
        chunking: The cutter's name.
        max_tokens: Largest size of a chunk.
        min_tokens: See `whole_sections`.
        tokens: What counts the tokens of a text: see `drillrank.text.token_counter`, as for every cutter.

    Raises:
        InvalidInput: the name is unknown, or the sizes do not go with it.
    """
    if chunking == "section":
        return whole_sections(max_tokens, min_tokens, tokens)
    if min_tokens is not None:
        raise InvalidInput(f"min_tokens joins small sections: it goes with chunking='section', not {chunking!r}.")
    if chunking == "paragraph":
        return paragraphs(max_tokens, tokens)
    if chunking not in get_args(Chunking):
        raise InvalidInput(f"Unknown chunking {chunking!r}. Choose one of: {', '.join(get_args(Chunking))}.")
    if max_tokens is None:
        raise InvalidInput(f"chunking={chunking!r} needs max_tokens, the length of a chunk.")
    cutter = content_aware_fixed if chunking == "content_aware_fixed" else fixed
    return cutter(max_tokens, tokens)


def _check_sizes(max_tokens: int | None, min_tokens: int | None = None) -> None:
    sizes = {"max_tokens": max_tokens, "min_tokens": min_tokens}
    check_positive(**{name: size for name, size in sizes.items() if size is not None})
    if max_tokens is not None and min_tokens is not None and min_tokens > max_tokens:
        raise InvalidInput(f"min_tokens ({min_tokens}) is above max_tokens ({max_tokens}).")


def _sections_with_text(document: Document) -> list[tuple[int, Section]]:
    return [(at, section) for at, section in enumerate(document.sections()) if document.blocks(section)]


def _chunks_of_sections(document: Document, cut: Callable[[Document, Section], list[Run]]) -> list[Chunk]:
    chunks = []
    for ordinal, section in _sections_with_text(document):
        path, part = section.path, 0
        for run in cut(document, section):
            text = text_of(document, run)
            if text.strip():
                body = body_of(document, run).strip()
                start, end = run[0].start, run[-1].end
                chunks.append(Chunk(text, body, path, section.level, start, end, ordinal, part, len(path)))
                part += 1
    return chunks


def _small_joined(
    document: Document, chunks: Sequence[Chunk], min_tokens: int, max_tokens: int | None, count: TokenCount
) -> list[Chunk]:
    sections = document.sections()
    cut = {chunk.ordinal for chunk in chunks if chunk.part}
    sizes = {chunk.ordinal: count(chunk.text.strip()) for chunk in chunks if chunk.ordinal not in cut}
    groups: list[list[Chunk]] = []

    def is_leaf(chunk: Chunk) -> bool:
        following = sections[chunk.ordinal + 1 : chunk.ordinal + 2]
        return not following or len(following[0].path) <= chunk.depth

    def joins(group: Sequence[Chunk], chunk: Chunk) -> bool:
        first, parent = group[0], chunk.path[:-1]
        related = first.path == parent or (is_leaf(first) and first.path[:-1] == parent and first.depth == chunk.depth)
        return (
            chunk.depth > 0
            and related
            and is_leaf(chunk)
            and all(sizes.get(member.ordinal, min_tokens) < min_tokens for member in (*group, chunk))
            and sum(sizes[member.ordinal] for member in group) < min_tokens
            and (max_tokens is None or count(_text(document, [*group, chunk]).strip()) <= max_tokens)
        )

    for chunk in chunks:
        if groups and joins(groups[-1], chunk):
            groups[-1].append(chunk)
        else:
            groups.append([chunk])
    levels: dict[tuple[str, ...], int] = {}
    joined = []
    for group in groups:
        levels |= {chunk.path: chunk.level for chunk in group}
        joined.append(_joined(document, group, levels) if len(group) > 1 else group[0])
    return joined


def _joined(document: Document, group: Sequence[Chunk], levels: dict[tuple[str, ...], int]) -> Chunk:
    """One chunk of neighbours: a section and some below it, or some with the same parent."""
    first = group[0]
    path = group[-1].path[:-1]
    text = _text(document, group)
    body = "\n\n".join(filter(None, (first.body, text[len(first.text) :].strip()))) if first.path == path else text
    return replace(
        first,
        text=text,
        body=body.strip(),
        path=path,
        level=levels.get(path, 0),
        end=group[-1].end,
    )


def _text(document: Document, group: Sequence[Chunk]) -> str:
    if all(chunk.text == document.text[chunk.start : chunk.end] for chunk in group):
        return document.text[group[0].start : group[-1].end]
    return "\n\n".join(chunk.text for chunk in group)
