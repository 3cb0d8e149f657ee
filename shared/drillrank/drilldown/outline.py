"""The outline of documents: their sections in pre-order, the paragraphs of each, and coarser levels above."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from drillrank.corpus.documents import Unit, beginning, list_paragraphs, pieces, split_headings
from drillrank.drilldown.levels import LevelIndex, Text
from drillrank.errors import InvalidInput
from drillrank.likelihood.unigram import Collection
from drillrank.passages import Passage
from drillrank.structure import Document, breadcrumb, parse_document
from drillrank.structure.document import has_title

BEGINNING = "(beginning)"  # the name of text before the first heading
OutlinePath = tuple[int | str, ...]

_LISTED = 12  # headings below a chapter that stand for it in an outline


@dataclass(frozen=True, slots=True)
class OutlineSection:
    """A section with something to read in it.

    Attributes:
        passage: The section's own text; the title is its path from the root, joined. Its metadata hold `document`
            (its place in the input) and `section_path`.
        paragraphs: Its blocks but for the heading, text as in the source, under the same title. Their metadata hold
            also `start` and `end`, and `pages`, numbers of the first and last, where the document has pages.
        readable: The same paragraphs, text as a reader sees it: what is scored and shown to an LLM.
    """

    passage: Passage
    paragraphs: tuple[Passage, ...]
    readable: tuple[Passage, ...]

    @property
    def path(self) -> OutlinePath:
        """The document's place in the input, then the headings from its root."""
        return (self.passage.metadata["document"], *self.passage.metadata["section_path"])


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of an outline: one section, or a chapter that holds several.

    Attributes:
        name: Path of headings, joined.
        path: The document's place in the input, then the headings that all its sections share.
        sections: Positions of its sections in the outline; a chapter has more than one.
    """

    name: str
    path: OutlinePath
    sections: tuple[int, ...]


def outline(documents: Sequence[Document | str], unit: Unit = "paragraph") -> list[OutlineSection]:
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
        sections.extend(_sections(number, parse_document(given) if isinstance(given, str) else given, unit))
    return sections


def _sections(number: int, document: Document, unit: Unit) -> Iterator[OutlineSection]:
    for section, inside in groupby(list_paragraphs(document, number, unit), itemgetter(0)):
        sources, readable = zip(*((source, shown) for _, source, shown in inside), strict=True)
        location = {"document": number, "section_path": section.path}
        text, title = document.body(section).strip(), breadcrumb(section.path)
        if unit == "passage":  # which may contain the sections that follow
            text = "\n\n".join(passage.text for passage in readable)
        yield OutlineSection(
            Passage(text, id=f"{number}:{section.start}", title=title, metadata=location), sources, readable
        )


def stored_sections(id_: str, passages: Sequence[Passage], section_of: Sequence[int]) -> Iterator[OutlineSection]:
    """Sections of a document in a corpus, given its passages, text as a reader sees it, and the section of each."""
    for _, inside in groupby(zip(section_of, passages, strict=True), itemgetter(0)):
        shown = tuple(passage for _, passage in inside)
        location = {"document": id_, "section_path": shown[0].metadata["section_path"]}
        section_passage = Passage(
            "\n\n".join(p.text for p in shown), f"{shown[0].id}:section", shown[0].title, metadata=location
        )
        yield OutlineSection(section_passage, shown, shown)


def _headings(section: OutlineSection, paragraph: Passage) -> Sequence[tuple[str, ...]]:
    """Return the heading paths of all sections in a paragraph or passage."""
    paths: Sequence[tuple[str, ...]] = paragraph.metadata.get("section_paths") or (tuple(map(str, section.path[1:])),)
    return paths


class Outline:
    r"""Sections of documents as a tree that can be read level by level.

    Args:
        sections: What `outline` returns, or sections put together from elsewhere; those of one document stand
            together and in pre-order.
        whole_paths: Whether names of sections begin with the sole heading above all others of a document.

    >>> book = Outline(outline(["# Sea\n\n## Fish\n\nCod.\n\n## Whales\n\nBlue.\n\n# Land\n\nOwls."]))
    >>> [entry.name for entry in book.top()]
    ['Sea', 'Land']
    >>> [entry.name for entry in book.below(book.top()[0])]
    ['Sea > Fish', 'Sea > Whales']
    """

    def __init__(self, sections: Sequence[OutlineSection], *, whole_paths: bool = False) -> None:
        self.sections = tuple(sections)
        self._paths = [section.path for section in self.sections]
        all_paths: dict[int | str, list[tuple[str, ...]]] = {}
        for section in self.sections:
            section_paths = [path for paragraph in section.readable for path in _headings(section, paragraph)]
            all_paths.setdefault(section.path[0], []).extend(dict.fromkeys(section_paths))
        paths_of: dict[int | str, list[OutlinePath]] = {}
        for path in self._paths:
            paths_of.setdefault(path[0], []).append(path)
        titles = {
            document: next(path[0] for path in paths if path)
            for document, paths in all_paths.items()
            if has_title(paths)
        }
        self._titles = titles
        several = len(paths_of) > 1
        # How many of the first headings are left out, and what stands in their place.
        self._hidden = {document: int(document in titles and not whole_paths) for document in paths_of}
        self._prefixes = {
            document: (titles.get(document, f"Document {number}"),)
            if several and not (whole_paths and document in titles)
            else ()
            for number, document in enumerate(paths_of, start=1)
        }

    def document_name(self, document: int | str, known: str | None = None) -> str:
        """What a document is called: by the heading above everything in it, else as it is known elsewhere."""
        if document in self._titles:
            return self._titles[document]
        return known or next(iter(self._prefixes[document]), "Document")

    def hidden(self, document: int | str) -> int:
        """How many of the first headings name the document, so that names of its sections leave them out."""
        return self._hidden[document]

    def index(
        self, names: Mapping[int | str, str], language: str = "english", collection: Collection | None = None
    ) -> LevelIndex:
        """The words of all paragraphs, sections and documents, for `drillrank.drilldown.levels`.

        A section is a page where the document has pages: headings that a parser guesses cut what belongs together.

        Args:
            names: Of documents, where they are known.
            language: Whose stemmer words go through.
            collection: p(w|C); None takes that of all the sections.
        """
        texts = []
        shown: dict[int | str, list[tuple[tuple[str, ...], str]]] = {}
        for at, section in enumerate(self.sections):
            document, headings = section.path[0], tuple(map(str, section.path[1:]))
            shown.setdefault(document, []).extend((headings, paragraph.text) for paragraph in section.readable)
            for paragraph in section.readable:
                page = paragraph.metadata.get("pages", (None,))[0]
                location = at if page is None else (document, page)
                section_headings, _ = split_headings(_headings(section, paragraph), bool(self._hidden[document]))
                texts.append(Text(paragraph.text, section_headings, location, document, paged=page is not None))
        openings = {document: beginning(pieces(some)) for document, some in shown.items()}
        known = {document: names.get(document, "") for document in shown}
        return LevelIndex(texts, known, openings, language, collection)

    def leaves(self, positions: Iterable[int]) -> list[Entry]:
        """Sections as entries of their own."""
        return [Entry(self._name(self._paths[position]), self._paths[position], (position,)) for position in positions]

    def top(self, positions: Sequence[int] | None = None) -> list[Entry]:
        """The coarsest level with more than one entry: the documents, or the chapters of the only one.

        Args:
            positions: Only these sections; all by default.
        """
        return self._level(range(len(self.sections)) if positions is None else positions, 0)

    def below(self, entry: Entry) -> list[Entry]:
        """The next finer level of a chapter: its own text and what stands directly below it.

        A section has no finer level than itself.
        """
        return self._level(entry.sections, len(entry.path))

    def summary(self, entry: Entry, summaries: Mapping[int, str]) -> str:
        """What an entry says: a section's summary; for a chapter, that of its own text and the headings below."""
        if len(entry.sections) == 1:
            return summaries[entry.sections[0]]
        below = self.below(entry)
        texts = [summaries[part.sections[0]] for part in below if part.path == entry.path]
        headings = [str(part.path[-1]) for part in below if part.path != entry.path]
        more = f"; and {len(headings) - _LISTED} more" if len(headings) > _LISTED else ""
        listed = [f"Contains: {'; '.join(headings[:_LISTED])}{more}."] if headings else []
        return " ".join(filter(None, texts + listed))

    def _level(self, positions: Sequence[int], depth: int) -> list[Entry]:
        keys = [self._paths[position] for position in positions]
        while True:
            depth += 1
            cut = [path[:depth] for path in keys]
            # Where all headings are the same, the next level may tell the sections apart; twins never differ. A
            # chapter's own text stands beside whatever is below it.
            if len({path for path in cut if len(path) == depth}) > 1 or all(len(path) < depth for path in keys):
                break
        entries: list[Entry] = []
        for key, run in groupby(zip(cut, positions, strict=True), itemgetter(0)):
            inside = tuple(position for _, position in run)
            if len(inside) == 1 or len(key) < depth:
                entries += self.leaves(inside)
            else:
                entries.append(Entry(self._name(key), key, inside))
        return entries

    def _name(self, path: OutlinePath) -> str:
        document, headings = path[0], tuple(map(str, path[1:]))
        shown = headings[self._hidden[document] :] or headings
        return breadcrumb((*self._prefixes[document], *shown)) or BEGINNING
