"""Counts of a question's terms in paragraphs, sections and documents.

`LevelIndex` counts documents in memory, `count_stored_terms` counts documents in a corpus. Both return the same
`QuestionTermCounts` for the same documents. A term is a stemmed word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.corpus.layout import DocumentCounts, Layout
from drillrank.likelihood.unigram import CollectionModel
from drillrank.text import terms
from drillrank.vectors import Floats, Integers, sum_by_index, word_counts

Postings = tuple[Integers, Floats]
"""Indices of the paragraphs that contain a term, and its number of occurrences in each."""

_CAPITALIZED = re.compile(r"(?<=[^.?!\s]\s)[\"“(]?[A-Z][\w&'’.-]*|\b[A-Z][\w&]*[A-Z\d]\w*")
_OTHER_TERMS = "\0"  # counts all terms that are not in the question


@dataclass(frozen=True, slots=True, eq=False)
class QuestionTermCounts:
    """Number of occurrences of each term of a question in each paragraph, and the position of the paragraphs.

    Attributes:
        words: Terms of the question in order, with repetitions.
        collection: Probability of each term in the collection, p(w|C), shape (words,).
        paragraphs: Postings of each term in paragraphs with their headings.
        texts: Postings of each term in paragraphs without their headings.
        lengths: Number of terms in each paragraph with its headings, shape (paragraphs,).
        text_lengths: Number of terms in each paragraph without its headings, shape (paragraphs,).
        section_of: Index of each paragraph's page or section.
        document_of: Index of each section's document.
        paged: True if a document has pages, shape (documents,).
        openings: 1 if the beginning of a document contains the term, else 0, shape (words, documents).
        names: 1 if the name of a document contains the term, else 0, shape (words, documents).
        name_lengths: Number of different terms in the name of a document, shape (documents,).
        capitalized: 1 if the question writes the term with a capital letter, else 0, shape (words,).
    """

    words: Sequence[str]
    collection: Floats
    paragraphs: Sequence[Postings]
    texts: Sequence[Postings]
    lengths: Floats
    text_lengths: Floats
    section_of: Integers
    document_of: Integers
    paged: npt.NDArray[np.bool_]
    openings: Floats
    names: Floats
    name_lengths: Floats
    capitalized: Floats

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return int(self.names.shape[1])

    def frequencies(self) -> dict[str, int]:
        """Count each term in the paragraphs without headings. All terms that are not in the question count as one."""
        return _count_terms(self.words, self.texts, self.text_lengths)

    def with_names(self) -> QuestionTermCounts:
        """Return counts in which the name of a document is a heading of each of its paragraphs."""
        document_of = self.document_of[self.section_of]
        paragraphs = []
        for (paragraph_indices, counts), in_names in zip(self.paragraphs, self.names, strict=True):
            with_name = in_names[document_of]
            with_name[paragraph_indices] += counts
            named_indices = with_name.nonzero()[0]
            paragraphs.append((named_indices, with_name[named_indices]))
        return replace(self, paragraphs=paragraphs, lengths=self.lengths + self.name_lengths[document_of])

    def count_sections(self) -> Floats:
        """Count the pages or sections of each document that contain each term, shape (words, documents)."""
        n_sections = np.zeros((len(self.words), self.n_documents))
        for word, (paragraph_indices, counts) in enumerate(self.texts):
            in_sections = sum_by_index(self.section_of[paragraph_indices], counts, len(self.document_of))
            n_sections[word] = sum_by_index(self.document_of, (in_sections > 0).astype(float), self.n_documents)
        return n_sections


# --- Documents in memory


@dataclass(frozen=True, slots=True)
class IndexedParagraph:
    """A paragraph as it is counted.

    Attributes:
        text: Text of the paragraph.
        headings: Heading path, without a heading that names the whole document.
        section: Key of the paragraph's section or page, unique among all documents.
        document: Key of the paragraph's document.
        paged: True if the document has pages and `section` is a page.
    """

    text: str
    headings: Sequence[str]
    section: object
    document: object
    paged: bool = False


class _TermPostings:
    """Postings of all terms in a list of texts.

    Args:
        texts: The terms of each text.
    """

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        counts, self._columns = word_counts(texts)
        self.lengths = counts.row_sums()
        self._texts = counts.transposed()

    def find(self, word: str) -> Postings:
        """Return the postings of a term."""
        column = self._columns.get(word)
        start, end = (0, 0) if column is None else self._texts.bounds[column : column + 2]
        return self._texts.columns[start:end], self._texts.data[start:end]

    def count(self, word: str) -> Floats:
        """Count a term in each text, shape (texts,)."""
        counts = np.zeros(len(self.lengths))
        text_indices, text_counts = self.find(word)
        counts[text_indices] = text_counts
        return counts

    def frequencies(self) -> dict[str, int]:
        """Count each term in all texts."""
        return dict(zip(self._columns, self._texts.row_sums().astype(int).tolist(), strict=True))


class LevelIndex:
    """Term counts of paragraphs, sections and documents in memory, for many questions.

    Args:
        texts: Paragraphs. Those of one document and of one section are consecutive.
        names: Name by document; "" if it is not known.
        openings: Beginning of the text by document.
        language: Language of the stemmer.
        collection: Collection model p(w|C). None estimates it from all the paragraphs.

    >>> paragraphs = [IndexedParagraph("Nine hours.", ["Battery"], 0, 0), IndexedParagraph("Dry.", ["Screen"], 1, 0)]
    >>> index = LevelIndex(paragraphs, {0: "Kettle"}, {0: "Kettle"})
    >>> [postings[0].tolist() for postings in index.count("battery hours").paragraphs]
    [[0], [0]]
    """

    def __init__(
        self,
        texts: Sequence[IndexedParagraph],
        names: Mapping[Any, str],
        openings: Mapping[Any, str],
        language: str = "english",
        collection: CollectionModel | None = None,
    ) -> None:
        self.language = language
        sections: dict[object, int] = {}
        documents: dict[object, int] = {}
        self._section_of = np.array([sections.setdefault(text.section, len(sections)) for text in texts], dtype=np.intp)
        document_of_texts = [documents.setdefault(text.document, len(documents)) for text in texts]
        self._document_of = np.zeros(len(sections), dtype=np.intp)
        self._document_of[self._section_of] = document_of_texts
        paths: dict[tuple[str, ...], int] = {}
        self._path_of = np.array([paths.setdefault(tuple(text.headings), len(paths)) for text in texts], dtype=np.intp)
        self._texts = _TermPostings(terms(text.text, language) for text in texts)
        self._headings = _TermPostings(terms(" ".join(path), language) for path in paths)
        self._names = [names.get(document, "") for document in documents]
        self._openings = [openings.get(document, "") for document in documents]
        self._paged = np.zeros(len(documents), dtype=bool)
        self._paged[document_of_texts] = [text.paged for text in texts]
        self._collection = collection

    def frequencies(self) -> dict[str, int]:
        """Count each term in the paragraphs without headings."""
        return self._texts.frequencies()

    def find_texts(self, words: Sequence[str]) -> list[Integers]:
        """Return the indices of the paragraphs that contain each term, headings left out."""
        return [self._texts.find(word)[0] for word in words]

    @property
    def n_paragraphs(self) -> int:
        """Number of paragraphs."""
        return len(self._section_of)

    def count(self, question: str) -> QuestionTermCounts:
        """Count the terms of a question in all paragraphs."""
        words = terms(question, self.language)
        texts = list(map(self._texts.find, words))
        titled = (self._texts.count(word) + self._headings.count(word)[self._path_of] for word in words)
        lengths = self._texts.lengths
        return QuestionTermCounts(
            words,
            _collection_probabilities(words, texts, lengths, self.language, self._collection),
            [(counts.nonzero()[0], counts[counts > 0]) for counts in titled],
            texts,
            lengths + self._headings.lengths[self._path_of],
            lengths,
            self._section_of,
            self._document_of,
            self._paged,
            term_occurrences(words, self._openings, self.language),
            term_occurrences(words, self._names, self.language),
            _count_unique_terms(self._names, self.language),
            capitalized_mask(question, words, self.language),
        )


class JoinedIndex:
    """Term counts of the documents in several indexes. They equal those of one index of all documents.

    Args:
        parts: At least one index. No document is in two of them.
        collection: Collection model p(w|C). None estimates it from all the paragraphs.

    >>> parts = [LevelIndex([IndexedParagraph(text, [], 0, 0)], {0: ""}, {0: ""}) for text in ("Nine hours.", "Dry.")]
    >>> [indices.tolist() for indices, _ in JoinedIndex(parts).count("Is it dry?").texts]
    [[], [], [1]]
    """

    def __init__(self, parts: Sequence[LevelIndex], collection: CollectionModel | None = None) -> None:
        self._parts = parts
        self._collection = collection

    def frequencies(self) -> dict[str, int]:
        """Count each term in the paragraphs without headings."""
        total: Counter[str] = Counter()
        for part in self._parts:
            total.update(part.frequencies())
        return dict(sorted(total.items()))

    def find_texts(self, words: Sequence[str]) -> list[Integers]:
        """Return the indices of the paragraphs that contain each term, headings left out."""
        starts = _list_starts(part.n_paragraphs for part in self._parts)
        return [
            _join_indices(indices, starts)
            for indices in zip(*(part.find_texts(words) for part in self._parts), strict=True)
        ]

    def count(self, question: str) -> QuestionTermCounts:
        """Count the terms of a question in all paragraphs."""
        counts = [part.count(question) for part in self._parts]
        if len(counts) == 1:
            return counts[0]
        words, language = counts[0].words, self._parts[0].language
        paragraph_starts = _list_starts(len(part.lengths) for part in counts)
        section_starts = _list_starts(len(part.document_of) for part in counts)
        document_starts = _list_starts(part.n_documents for part in counts)
        texts = _join_postings([part.texts for part in counts], paragraph_starts)
        text_lengths = np.concatenate([part.text_lengths for part in counts])
        return QuestionTermCounts(
            words,
            _collection_probabilities(words, texts, text_lengths, language, self._collection),
            _join_postings([part.paragraphs for part in counts], paragraph_starts),
            texts,
            np.concatenate([part.lengths for part in counts]),
            text_lengths,
            _join_indices([part.section_of for part in counts], section_starts),
            _join_indices([part.document_of for part in counts], document_starts),
            np.concatenate([part.paged for part in counts]),
            np.concatenate([part.openings for part in counts], axis=1),
            np.concatenate([part.names for part in counts], axis=1),
            np.concatenate([part.name_lengths for part in counts]),
            counts[0].capitalized,
        )


def _list_starts(sizes: Iterable[int]) -> list[int]:
    return list(accumulate(sizes, initial=0))[:-1]


def _join_indices(indices: Sequence[Integers], starts: Sequence[int]) -> Integers:
    return np.concatenate([part + start for part, start in zip(indices, starts, strict=True)])


def _join_postings(postings: Sequence[Sequence[Postings]], starts: Sequence[int]) -> list[Postings]:
    """Join the postings of each term, given by part and term."""
    return [
        (_join_indices([indices for indices, _ in of_term], starts), np.concatenate([counts for _, counts in of_term]))
        for of_term in zip(*postings, strict=True)
    ]


# --- Documents in a corpus


def count_stored_terms(
    question: str,
    layout: Layout,
    found_counts: DocumentCounts,
    names: Mapping[str, str],
    collection: CollectionModel | None = None,
    *,
    whole_paths: bool = False,
) -> QuestionTermCounts:
    """Count the terms of a question in the documents of a corpus, as `LevelIndex` counts them in memory.

    Args:
        question: The question.
        layout: Positions of the documents' paragraphs.
        found_counts: Counts of the question's terms in the corpus.
        names: Name by document id.
        collection: Collection model p(w|C). None estimates it from all the paragraphs.
        whole_paths: True if headings that name a whole document count for its paragraphs.
    """
    texts, titled = [], []
    for word, (paragraph_indices, counts) in enumerate(found_counts.entries[0]):
        in_headings, hidden = _count_headings(layout, found_counts, word)
        texts.append(_drop_zeros(paragraph_indices, counts - in_headings - hidden))
        titled.append((paragraph_indices, counts) if whole_paths else _drop_zeros(paragraph_indices, counts - hidden))
    in_headings, hidden = (layout.lengths[level][layout.headings_of] for level in (1, 2))
    text_lengths = layout.lengths[0] - in_headings - hidden
    openings = np.zeros((len(found_counts.words), len(layout.ids)))
    for word, (paragraph_indices, _) in enumerate(found_counts.entries[3]):
        openings[word, np.searchsorted(layout.starts, paragraph_indices, side="right") - 1] = 1
    stored_names = [names.get(id_, "") for id_ in layout.ids]
    return QuestionTermCounts(
        found_counts.words,
        _collection_probabilities(found_counts.words, texts, text_lengths, layout.language, collection),
        titled,
        texts,
        layout.lengths[0] - (0 if whole_paths else hidden),
        text_lengths,
        layout.section_of,
        layout.document_of,
        layout.paged,
        openings,
        term_occurrences(found_counts.words, stored_names, layout.language),
        _count_unique_terms(stored_names, layout.language),
        capitalized_mask(question, found_counts.words, layout.language),
    )


def find_stored_texts(layout: Layout, found_counts: DocumentCounts) -> list[Integers]:
    """Return the indices of the paragraphs that contain each term, headings left out, as `find_texts` in memory."""
    positions = []
    for word, (paragraph_indices, counts) in enumerate(found_counts.entries[0]):
        in_headings, hidden = _count_headings(layout, found_counts, word)
        positions.append(paragraph_indices[counts > in_headings + hidden])
    return positions


def _count_headings(layout: Layout, found_counts: DocumentCounts, word: int) -> tuple[Floats, Floats]:
    """Count a term in the headings of the paragraphs that contain it, and in headings that name a whole document."""
    paragraph_indices, _ = found_counts.entries[0][word]
    heading_indices = layout.headings_of[paragraph_indices]
    in_headings, hidden = (look_up_counts(heading_indices, found_counts.entries[level][word]) for level in (1, 2))
    return in_headings, hidden


def look_up_counts(paragraph_indices: Integers, postings: Postings) -> Floats:
    """Look up the count of a term in some paragraphs; 0 if a paragraph is not in its postings."""
    posted_indices, counts = postings
    if not len(posted_indices):
        return np.zeros(len(paragraph_indices))
    rows = np.minimum(np.searchsorted(posted_indices, paragraph_indices), len(posted_indices) - 1)
    looked_up: Floats = np.where(posted_indices[rows] == paragraph_indices, counts[rows], 0.0)
    return looked_up


def _drop_zeros(paragraph_indices: Integers, counts: Floats) -> Postings:
    return paragraph_indices[counts > 0], counts[counts > 0]


# --- Terms of a question


def _collection_probabilities(
    words: Sequence[str], texts: Sequence[Postings], lengths: Floats, language: str, collection: CollectionModel | None
) -> Floats:
    """Return p(w|C), shape (words,)."""
    if collection is None:
        collection = CollectionModel(_count_terms(words, texts, lengths), language)
    return collection.probability(words)


def _count_terms(words: Sequence[str], texts: Sequence[Postings], lengths: Floats) -> dict[str, int]:
    counts = {word: int(counts.sum()) for word, (_, counts) in zip(words, texts, strict=True) if len(counts)}
    return {**counts, _OTHER_TERMS: int(lengths.sum()) - sum(counts.values())}


def term_occurrences(words: Sequence[str], texts: Sequence[str], language: str) -> Floats:
    """Return 1 if a text contains a term, else 0, shape (words, texts).

    >>> term_occurrences(["oak", "ash"], ["An oak.", "Two ash trees, one oak."], "english").tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    terms_of_texts = [_unique_terms(text, language) for text in texts]
    rows = [[word in text_terms for text_terms in terms_of_texts] for word in words]
    return np.array(rows, dtype=float).reshape(len(words), len(texts))


def capitalized_mask(question: str, words: Sequence[str], language: str) -> Floats:
    """Return 1 for each term that the question capitalizes as a name, else 0, shape (words,).

    The first word of a sentence does not count.

    >>> capitalized_mask("What did Ada Holm read in FY2018?", ["ada", "holm", "read", "fy", "2018"], "english").tolist()
    [1.0, 1.0, 0.0, 1.0, 0.0]
    """
    names = {word for name in _CAPITALIZED.findall(question) for word in terms(name, language) if not word.isdigit()}
    return np.array([word in names for word in words], dtype=float)


def first_occurrence_mask(words: Sequence[str]) -> Floats:
    """Return 1 for the first occurrence of each term of a question, 0 for repetitions, shape (words,)."""
    return np.array([word not in words[:index] for index, word in enumerate(words)], dtype=float)


def _count_unique_terms(texts: Sequence[str], language: str) -> Floats:
    return np.array([len(_unique_terms(text, language)) for text in texts], dtype=float)


@lru_cache(maxsize=10_000)
def _unique_terms(text: str, language: str) -> frozenset[str]:
    return frozenset(terms(text, language))
