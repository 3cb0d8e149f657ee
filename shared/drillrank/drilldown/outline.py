"""Outline of documents: sections in pre-order, the paragraphs of each, and coarser levels above."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter

import numpy as np

from drillrank.corpus.documents import Unit, beginning, list_paragraphs, pieces, split_headings
from drillrank.drilldown.question_terms import IndexedParagraph, LevelIndex
from drillrank.errors import InvalidInput
from drillrank.likelihood.unigram import CollectionModel
from drillrank.passages import Passage
from drillrank.structure import Document, breadcrumb, parse_document
from drillrank.structure.document import has_title
from drillrank.vectors import Integers

BEGINNING = "(beginning)"  # name of the text before the first heading
OutlinePath = tuple[int | str, ...]
"""Document (index in the input, or id in a corpus), then the headings from its root."""

_MAX_LISTED_HEADINGS = 12  # headings below a chapter that represent it in an outline


@dataclass(frozen=True, slots=True)
class OutlineSection:
    """Section with at least one paragraph, before it is part of an `Outline`.

    Attributes:
        passage: The section's own text. The title is its heading path, joined. The metadata have `document` (index in
            the input) and `section_path`.
        paragraphs: Its blocks without the heading, with the text of the source, under the same title. Their metadata
            also have `start` and `end`, and `pages`, numbers of the first and last, if the document has pages.
        readable: The same paragraphs with readable text, which is scored and shown to an LLM.
    """

    passage: Passage
    paragraphs: tuple[Passage, ...]
    readable: tuple[Passage, ...]

    @property
    def path(self) -> OutlinePath:
        """Document, then the headings from its root."""
        return (self.passage.metadata["document"], *self.passage.metadata["section_path"])


@dataclass(frozen=True, eq=False, slots=True)
class Paragraph:
    """Unit of evidence in an outline: a paragraph, or a passage of several.

    Attributes:
        index: Index among all paragraphs of the outline.
        section_index: Index of its section in the outline.
        passage: Readable text, with the heading path as title.
        source: The same with the text of the source.
    """

    index: int
    section_index: int
    passage: Passage
    source: Passage


@dataclass(frozen=True, eq=False, slots=True)
class ListedSection:
    """Section in an outline.

    Attributes:
        index: Index in the outline.
        path: Document, then the headings from its root.
        passage: The section's own text.
        paragraphs: Its paragraphs, in order.
    """

    index: int
    path: OutlinePath
    passage: Passage
    paragraphs: tuple[Paragraph, ...]


@dataclass(frozen=True, eq=False, slots=True)
class OutlineEntry:
    """Line of an outline: one section, or a chapter with several.

    Attributes:
        name: Heading path, joined.
        path: Document, then the headings that all its sections share.
        sections: Its sections; a chapter has more than one.
    """

    name: str
    path: OutlinePath
    sections: tuple[ListedSection, ...]


def outline(documents: Sequence[Document | str], unit: Unit = "paragraph") -> list[OutlineSection]:
    r"""Return the sections of all documents that have at least one paragraph, in order.

    Raises:
        InvalidInput: An item is neither a parsed document nor a string, or `documents` is a single document.

    >>> [section.passage.title for section in outline(["# A\n\nOne.\n\n## B\n\nTwo."])]
    ['A', 'A > B']
    """
    if isinstance(documents, (str, Document)):
        raise InvalidInput("documents must be a list of documents, got a single one. Wrap it in a list.")
    sections: list[OutlineSection] = []
    for number, document in enumerate(documents):
        if not isinstance(document, (str, Document)):
            raise InvalidInput(
                f"Document {number} must be a parsed document or a string, got a {type(document).__name__}."
            )
        parsed = parse_document(document) if isinstance(document, str) else document
        sections.extend(_list_sections(number, parsed, unit))
    return sections


def _list_sections(number: int, document: Document, unit: Unit) -> Iterator[OutlineSection]:
    for section, entries in groupby(list_paragraphs(document, number, unit), itemgetter(0)):
        sources, readable = zip(*((source, passage) for _, source, passage in entries), strict=True)
        metadata = {"document": number, "section_path": section.path}
        text, title = document.body(section).strip(), breadcrumb(section.path)
        if unit == "passage":  # a passage may contain the sections that follow
            text = "\n\n".join(passage.text for passage in readable)
        passage = Passage(text, id=f"{number}:{section.start}", title=title, metadata=metadata)
        yield OutlineSection(passage, sources, readable)


def stored_sections(id_: str, passages: Sequence[Passage], section_of: Sequence[int]) -> Iterator[OutlineSection]:
    """Yield the sections of a document in a corpus.

    Args:
        id_: Id of the document.
        passages: Its paragraphs, with readable text.
        section_of: Section of each paragraph.
    """
    for _, entries in groupby(zip(section_of, passages, strict=True), itemgetter(0)):
        readable = tuple(passage for _, passage in entries)
        metadata = {"document": id_, "section_path": readable[0].metadata["section_path"]}
        text = "\n\n".join(passage.text for passage in readable)
        section_passage = Passage(text, f"{readable[0].id}:section", readable[0].title, metadata=metadata)
        yield OutlineSection(section_passage, readable, readable)


def number_section(section: OutlineSection, document: int) -> OutlineSection:
    r"""Return a section of document 0 as a section of another document, in ids and metadata.

    >>> [section] = outline(["# Sea\n\nIt is deep."])
    >>> number_section(section, 7).paragraphs[0].id
    '7:7'
    """

    def number(passage: Passage) -> Passage:
        position = passage.id.partition(":")[2]
        return replace(passage, id=f"{document}:{position}", metadata={**passage.metadata, "document": document})

    paragraphs = tuple(map(number, section.paragraphs))
    pairs = zip(section.paragraphs, paragraphs, section.readable, strict=True)
    readable = tuple(numbered if text is source else number(text) for source, numbered, text in pairs)
    return OutlineSection(number(section.passage), paragraphs, readable)


class Outline:
    r"""Sections of documents as a tree that can be read level by level.

    Args:
        sections: Result of `outline`, or sections from elsewhere. Those of one document are adjacent and in pre-order.
        whole_paths: True if names of sections begin with the document's title: the sole heading above all others.

    >>> book = Outline(outline(["# Sea\n\n## Fish\n\nCod.\n\n## Whales\n\nBlue.\n\n# Land\n\nOwls."]))
    >>> [entry.name for entry in book.top()]
    ['Sea', 'Land']
    >>> [entry.name for entry in book.below(book.top()[0])]
    ['Sea > Fish', 'Sea > Whales']
    """

    def __init__(self, sections: Sequence[OutlineSection], *, whole_paths: bool = False) -> None:
        self.sections = tuple(_number_sections(sections))
        paths_by_document: dict[int | str, list[tuple[str, ...]]] = {}
        for section in self.sections:
            paths = [path for paragraph in section.paragraphs for path in _heading_paths(section, paragraph)]
            paths_by_document.setdefault(section.path[0], []).extend(dict.fromkeys(paths))
        self._titles = {
            document: next(path[0] for path in paths if path)
            for document, paths in paths_by_document.items()
            if has_title(paths)
        }
        has_several = len(paths_by_document) > 1
        # A title is dropped from the names of its sections. With several documents, it is a prefix of all names.
        self._n_title_headings = {
            document: int(document in self._titles and not whole_paths) for document in paths_by_document
        }
        self._numbers = {
            document: f"Document {number}" if has_several else ""
            for number, document in enumerate(paths_by_document, start=1)
        }
        prefixed = set() if whole_paths or not has_several else set(self._titles)
        self._prefixes = {
            document: (self._titles[document],) if document in prefixed else () for document in self._numbers
        }
        for document in _find_clashes(self.sections, self._name):
            if document not in self._titles:
                self._prefixes[document] = (self._numbers[document],)

    @cached_property
    def paragraphs(self) -> tuple[Paragraph, ...]:
        """All paragraphs, in document order."""
        return tuple(paragraph for section in self.sections for paragraph in section.paragraphs)

    @cached_property
    def section_of(self) -> Integers:
        """Index of each paragraph's section, shape (paragraphs,)."""
        return np.array([paragraph.section_index for paragraph in self.paragraphs], dtype=np.intp)

    def section(self, paragraph: Paragraph) -> ListedSection:
        """Return the section of a paragraph."""
        return self.sections[paragraph.section_index]

    def document_name(self, document: int | str, known_name: str | None = None) -> str:
        """Return the title of a document; without one, the name that the caller knows, or its number."""
        if document in self._titles:
            return self._titles[document]
        return known_name or self._numbers[document] or "Document"

    def n_title_headings(self, document: int | str) -> int:
        """Return how many of the first headings are the document's title, which names of its sections omit."""
        return self._n_title_headings[document]

    def index(
        self, names: Mapping[int | str, str], language: str = "english", collection: CollectionModel | None = None
    ) -> LevelIndex:
        """Count the words of all paragraphs, sections and documents.

        In a document with pages, pages count instead of sections: guessed headings separate what belongs together.

        Args:
            names: Names of documents, if they are known.
            language: Language of the stemmer.
            collection: p(w|C); None takes that of all the sections.
        """
        texts = []
        pieces_by_document: dict[int | str, list[tuple[tuple[str, ...], str]]] = {}
        for section in self.sections:
            document, headings = section.path[0], tuple(map(str, section.path[1:]))
            for paragraph in section.paragraphs:
                paths, has_document_title = _heading_paths(section, paragraph), self._n_title_headings[document] > 0
                own_headings, _ = split_headings(paths, has_document_title)
                text = paragraph.passage.text
                pieces_by_document.setdefault(document, []).append((headings, text))
                page = paragraph.passage.metadata.get("pages", (None,))[0]
                part = section.index if page is None else (document, page)
                texts.append(IndexedParagraph(text, own_headings, part, document, paged=page is not None))
        openings = {document: beginning(pieces(entries)) for document, entries in pieces_by_document.items()}
        known_names = {document: names.get(document, "") for document in pieces_by_document}
        return LevelIndex(texts, known_names, openings, language, collection)

    def leaves(self, sections: Iterable[ListedSection]) -> list[OutlineEntry]:
        """Return sections as entries of their own."""
        return [OutlineEntry(self._name(section.path), section.path, (section,)) for section in sections]

    def top(self, sections: Sequence[ListedSection] | None = None) -> list[OutlineEntry]:
        """Return the coarsest level with more than one entry: the documents, or the chapters of the only one.

        Args:
            sections: Sections to show; None shows all.
        """
        return self._level(self.sections if sections is None else sections, 0)

    def below(self, entry: OutlineEntry) -> list[OutlineEntry]:
        """Return the next finer level of a chapter: its own text and the entries directly below it."""
        return self._level(entry.sections, len(entry.path))

    def summary(self, entry: OutlineEntry, summaries: Mapping[ListedSection, str]) -> str:
        """Return a section's summary; for a chapter, the summary of its own text and the headings below."""
        if len(entry.sections) == 1:
            return summaries[entry.sections[0]]
        below = self.below(entry)
        texts = [summaries[part.sections[0]] for part in below if part.path == entry.path]
        headings = [str(part.path[-1]) for part in below if part.path != entry.path]
        n_more = len(headings) - _MAX_LISTED_HEADINGS
        more = f"; and {n_more} more" if n_more > 0 else ""
        listed = [f"Contains: {'; '.join(headings[:_MAX_LISTED_HEADINGS])}{more}."] if headings else []
        return " ".join(filter(None, texts + listed))

    def _level(self, sections: Sequence[ListedSection], depth: int) -> list[OutlineEntry]:
        """Return the entries of the first level below `depth` that separates the sections."""
        paths = [section.path for section in sections]
        while True:
            depth += 1
            prefixes = [path[:depth] for path in paths]
            # Where all headings are equal, the next level may differ. A chapter's own text is an entry of its own.
            n_different = len({prefix for prefix in prefixes if len(prefix) == depth})
            if n_different > 1 or all(len(path) < depth for path in paths):
                break
        entries: list[OutlineEntry] = []
        for prefix, run in groupby(zip(prefixes, sections, strict=True), itemgetter(0)):
            members = tuple(section for _, section in run)
            if len(members) == 1 or len(prefix) < depth:
                entries += self.leaves(members)
            else:
                entries.append(OutlineEntry(self._name(prefix), prefix, members))
        return entries

    def _name(self, path: OutlinePath) -> str:
        document, headings = path[0], tuple(map(str, path[1:]))
        own_headings = headings[self._n_title_headings[document] :] or headings
        return breadcrumb((*self._prefixes[document], *own_headings)) or self._numbers[document] or BEGINNING


def _find_clashes(sections: Sequence[ListedSection], name: Callable[[OutlinePath], str]) -> set[int | str]:
    """Return the documents with a section whose name another document has too."""
    documents_by_name: dict[str, set[int | str]] = {}
    for section in sections:
        documents_by_name.setdefault(name(section.path), set()).add(section.path[0])
    clashes = (documents for documents in documents_by_name.values() if len(documents) > 1)
    return set().union(*clashes)


def _heading_paths(section: ListedSection, paragraph: Paragraph) -> Sequence[tuple[str, ...]]:
    """Return the heading paths of all sections in a paragraph or passage."""
    paths: Sequence[tuple[str, ...]] = paragraph.passage.metadata.get("section_paths") or (
        tuple(map(str, section.path[1:])),
    )
    return paths


def _number_sections(sections: Sequence[OutlineSection]) -> Iterator[ListedSection]:
    n_paragraphs = 0
    for section_index, section in enumerate(sections):
        pairs = zip(section.readable, section.paragraphs, strict=True)
        members = tuple(
            Paragraph(index, section_index, readable, source)
            for index, (readable, source) in enumerate(pairs, start=n_paragraphs)
        )
        n_paragraphs += len(members)
        yield ListedSection(section_index, section.path, section.passage, members)
