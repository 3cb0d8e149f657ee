"""One language model with four levels: paragraph ← page ← document ← collection.

    p(w|d) = λ cf(w, d) / |d| + (1 - λ) p(w|C)                              a document in its collection
    p(w|s) = (cf(w, s) + μ p(w|d)) / (|s| + μ)                              a page in its document
    p(w|p) = (tf(w, p) + μ/10 p(w|s)) / (|p| + μ/10)                        a paragraph on its page
    S(p)   = Σ_t log p(q_t | p) + ω Σ_w log [ (v(w, d) + ε) / (mean_d v(w, d) + ε) ]

Each level is smoothed by the one above it: Dirichlet smoothing (Zhai & Lafferty 2001) along a tree, as McCallum & Nigam
(1998) shrink. A page holds what belongs together, whether or not a line or a cell says it. A document without pages has
sections; these do not smooth, because a word that a whole section or paper shares still says where its evidence stands
(QASPER: F1 .29 without, .20 with): p(w|p) = (tf(w, p) + μ p(w|C)) / (|p| + μ).

What a question says of the document that it means, such as a company and a year, stands on few of its paragraphs, but
on its cover, in its name and here and there on all of its pages. So each different word w of the question is also
evidence for a document as a whole: v(w, d) is the share of its pages or sections that hold w, plus 1 if the beginning
of the document does, plus 1 if its name does. In short documents paragraphs say all that already: with n pages or
sections in a document (the geometric mean), ω = 4 n / (n + 50). Among paragraphs of one document only, this is 0.

The posterior of a paragraph is proportional to exp(S / T); that of a section or of a document is the sum over its
paragraphs. So which document, which section and which paragraph follow from one computation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.explanation.terms import GAINS, NOTHING, Term
from drillrank.likelihood.unigram import Collection
from drillrank.text import terms
from drillrank.vectors import Floats, Integers, SparseMatrix, added_up, word_counts

# Chosen on FinanceBench's reports whose names begin with A to J; half or double of each is about as good.
MU = 1000.0  # μ in words, for sections and pages
PARAGRAPH_PART = 0.1  # of μ, for paragraphs
DOCUMENT_SHARE = 0.6  # λ
DOCUMENT_WEIGHT = 4.0  # ω of very long documents
SHORT = 50.0  # pages or sections of a document at which ω is half of that
FLOOR = 0.05  # ε
ALONE = 300.0  # μ of `UnigramModel`
BEGINNING = 1000  # characters at the beginning of a document


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How often each level holds the words of a question.

    Attributes:
        words: Of the question, in order, repeated ones too.
        collection: p(w|C), shape (words,).
        paragraphs: tf(w, p), shape (words, paragraphs); `lengths` has the words of each paragraph.
        sections: cf(w, s), shape (words, sections), and `section_lengths`.
        documents: cf(w, d), shape (words, documents), and `document_lengths`.
        beginnings: 1 where the beginning of a document holds w, shape (words, documents); `names`, where its name does.
        paged: Whether a document has pages, shape (documents,).
        section_of: The section of each paragraph.
        document_of: The document of each section.
    """

    words: Sequence[str]
    collection: Floats
    paragraphs: Floats
    lengths: Floats
    sections: Floats
    section_lengths: Floats
    documents: Floats
    document_lengths: Floats
    beginnings: Floats
    names: Floats
    paged: npt.NDArray[np.bool_]
    section_of: Integers
    document_of: Integers


@dataclass(frozen=True, eq=False)
class Levels:
    """log p(q|p), level by level; arrays of shape (words, paragraphs), and S of shape (paragraphs,).

    Attributes:
        words: Of the question.
        collection: log p(w|C), shape (words,).
        document: What the document adds to it: log p(w|d) - log p(w|C).
        section: What the section adds: log p(w|s) - log p(w|d).
        paragraph: What the paragraph adds: log p(w|p) - log p(w|s).
        which: What each word says of the document as a whole, ω log [...]; 0 where it occurs again.
        alone: log p(w|p) of the paragraph smoothed by the collection only, as `UnigramModel` has it.
        matched: Whether a paragraph holds a word of the question, shape (paragraphs,).
    """

    words: Sequence[str]
    collection: Floats
    document: Floats
    section: Floats
    paragraph: Floats
    which: Floats
    alone: Floats
    matched: npt.NDArray[np.bool_]

    @cached_property
    def totals(self) -> Floats:
        """S, shape (paragraphs,)."""
        gains: Floats = (self.document + self.section + self.paragraph + self.which).sum(axis=0)
        return gains + float(self.collection.sum())

    @property
    def context(self) -> Floats:
        """What section and document add to the words of a paragraph alone: S less its own Dirichlet likelihood."""
        own: Floats = self.alone.sum(axis=0)
        return self.totals - own

    def terms(self, paragraph: int) -> tuple[Term, ...]:
        """S of a paragraph as terms, each token's gain by level; of none where no paragraph matches."""
        by_level = zip(
            self.document[:, paragraph].tolist(),
            self.section[:, paragraph].tolist(),
            self.paragraph[:, paragraph].tolist(),
            strict=True,
        )
        gains = [tuple(map(Term, ("document", "page", "paragraph"), of_word)) for of_word in by_level]
        which = self.which[:, paragraph].tolist()
        nothing = Term.sum(NOTHING, map(Term, self.words, self.collection.tolist()))
        if not self.matched.any():
            return (nothing,)
        return (
            nothing,
            Term.sum(GAINS, (Term.sum(word, of_word) for word, of_word in zip(self.words, gains, strict=True))),
            *([Term.sum("which document", map(Term, self.words, which))] if any(which) else []),
        )


def levels(counts: Counts, mu: float = MU) -> Levels:
    """The levels of each paragraph."""
    document_of, section_of = counts.document_of, counts.section_of
    of_collection = counts.collection[:, None]
    shares = DOCUMENT_SHARE * counts.paged
    of_documents = shares * counts.documents / np.maximum(counts.document_lengths, 1) + (1 - shares) * of_collection
    above = of_documents[:, document_of]
    of_sections = np.where(
        counts.paged[document_of], (counts.sections + mu * above) / (counts.section_lengths + mu), above
    )
    around = of_sections[:, section_of]
    own_mu = np.where(counts.paged[document_of][section_of], PARAGRAPH_PART * mu, mu)
    log_paragraphs = np.log((counts.paragraphs + own_mu * around) / (counts.lengths + own_mu))
    log_collection, log_documents, log_sections = np.log(counts.collection), np.log(of_documents), np.log(of_sections)
    return Levels(
        counts.words,
        log_collection,
        (log_documents - log_collection[:, None])[:, document_of][:, section_of],
        (log_sections - log_documents[:, document_of])[:, section_of],
        log_paragraphs - log_sections[:, section_of],
        _which_document(counts)[:, document_of][:, section_of],
        np.log((counts.paragraphs + ALONE * of_collection) / (counts.lengths + ALONE)),
        np.any(counts.paragraphs > 0, axis=0),
    )


def _which_document(counts: Counts) -> Floats:
    """What each word of the question says of each document as a whole, shape (words, documents)."""
    sizes = np.bincount(counts.document_of, minlength=len(counts.paged))  # none is 0
    holding = np.array([added_up(counts.document_of, row, len(sizes)) for row in (counts.sections > 0).astype(float)])
    speaks: Floats = holding.reshape(len(counts.words), len(sizes)) / sizes + counts.beginnings + counts.names
    first = np.array([word not in counts.words[:at] for at, word in enumerate(counts.words)], dtype=float)
    if not len(sizes):
        return speaks
    size = np.exp(np.log(sizes).mean())
    weight = DOCUMENT_WEIGHT * size / (size + SHORT)
    ratios: Floats = weight * first[:, None] * np.log((speaks + FLOOR) / (speaks.mean(axis=1, keepdims=True) + FLOOR))
    return ratios


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph as it is counted.

    Attributes:
        text: Its own text.
        headings: Its path of headings, without one that names the whole document.
        section: What tells its section or page from all others.
        document: What tells its document from all others.
        paged: Whether the document has pages, and `section` is one.
    """

    text: str
    headings: Sequence[str]
    section: object
    document: object
    paged: bool = False


class LevelIndex:
    """Words of paragraphs, sections and documents in memory, counted once for many questions.

    Args:
        texts: Paragraphs, those of one document and section together.
        names: By document, what it is called; "" where nothing is known.
        beginnings: By document, how it begins.
        language: Whose stemmer words go through.
        collection: p(w|C); None takes that of all the texts.

    >>> texts = [Text("Nine hours.", ["Battery"], 0, 0), Text("Use a dry cloth.", ["Screen"], 1, 0)]
    >>> index = LevelIndex(texts, {0: "Kettle"}, {0: "Kettle"})
    >>> index.levels("How long does the battery last?").totals.argmax().item()
    0
    """

    def __init__(
        self,
        texts: Sequence[Text],
        names: Mapping[Any, str],
        beginnings: Mapping[Any, str],
        language: str = "english",
        collection: Collection | None = None,
    ) -> None:
        self.language = language
        sections: dict[object, int] = {}
        documents: dict[object, int] = {}
        self._section_of = np.array([sections.setdefault(text.section, len(sections)) for text in texts], dtype=np.intp)
        of_texts = [documents.setdefault(text.document, len(documents)) for text in texts]
        self._document_of = np.zeros(len(sections), dtype=np.intp)
        self._document_of[self._section_of] = of_texts
        paths: dict[tuple[str, ...], int] = {}
        self._path_of = np.array([paths.setdefault(tuple(text.headings), len(paths)) for text in texts], dtype=np.intp)
        counts, self._columns = word_counts(terms(text.text, language) for text in texts)
        headings, self._heading_columns = word_counts(terms(" ".join(path), language) for path in paths)
        self._texts, self._headings = counts.transposed(), headings.transposed()
        self._text_lengths = counts.row_sums()
        self._lengths = self._text_lengths + headings.row_sums()[self._path_of]
        self._section_lengths = added_up(self._section_of, self._text_lengths, len(sections))
        self._document_lengths = added_up(self._document_of, self._section_lengths, len(documents))
        self._names = [set(terms(names.get(document, ""), language)) for document in documents]
        self._beginnings = [set(terms(beginnings.get(document, ""), language)) for document in documents]
        paged = dict(zip(of_texts, (text.paged for text in texts), strict=True))
        self._paged = np.array([paged[document] for document in range(len(documents))], dtype=bool)
        self.collection = collection or Collection(
            dict(zip(self._columns, map(int, counts.column_sums().tolist()), strict=True)), language
        )

    def counts(self, question: str) -> Counts:
        """Counts of the question's words."""
        words = terms(question, self.language)
        tf = _rows(words, self._texts, self._columns)
        in_sections = np.array([added_up(self._section_of, row, len(self._section_lengths)) for row in tf])
        in_sections = in_sections.reshape(len(words), len(self._section_lengths))
        size = len(self._document_lengths)
        shape = len(words), size
        in_documents = np.array([added_up(self._document_of, row, size) for row in in_sections])
        return Counts(
            words,
            self.collection.probability(words),
            tf + _rows(words, self._headings, self._heading_columns)[:, self._path_of],
            self._lengths,
            in_sections,
            self._section_lengths,
            in_documents.reshape(shape),
            self._document_lengths,
            np.array([[word in some for some in self._beginnings] for word in words], dtype=float).reshape(shape),
            np.array([[word in some for some in self._names] for word in words], dtype=float).reshape(shape),
            self._paged,
            self._section_of,
            self._document_of,
        )

    def levels(self, question: str, mu: float = MU) -> Levels:
        """The levels of all paragraphs."""
        return levels(self.counts(question), mu)


def _rows(words: Sequence[str], by_word: SparseMatrix, columns: Mapping[str, int]) -> Floats:
    """The rows of some words, shape (words, texts)."""
    rows = np.zeros((len(words), by_word.width))
    for row, word in enumerate(words):
        if (column := columns.get(word)) is not None:
            start, end = by_word.bounds[column], by_word.bounds[column + 1]
            rows[row, by_word.columns[start:end]] = by_word.data[start:end]
    return rows


def beginning(pieces: Iterable[str], most: int = BEGINNING) -> str:
    """The first pieces of a document, up to so many characters.

    >>> beginning(["One", "Two", "Three"], 6)
    'One Two'
    """

    def few() -> Iterator[str]:
        left = most
        for piece in pieces:
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return

    return " ".join(few())
