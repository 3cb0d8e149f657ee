"""One language model with four levels: paragraph ← page ← document ← collection.

    p(w|d) = λ cf(w, d) / |d| + (1 - λ) p(w|C)                              a document in its collection
    p(w|s) = (cf(w, s) + μ p(w|d)) / (|s| + μ)                              a page in its document
    p(w|p) = (tf(w, p) + μ/10 p(w|s)) / (|p| + μ/10)                        a paragraph on its page
    S(p)   = Σ_t log p(q_t | p) + ω Σ_w a(w) log [ (v(w, d) + ε) / (mean_d v(w, d) + ε) ]

Each level is smoothed by the one above it: Dirichlet smoothing (Zhai & Lafferty 2001) along a tree, as McCallum & Nigam
(1998) shrink. A page holds what belongs together, whether or not a line or a cell says it. A document without pages has
sections; these do not smooth, because a word that a whole section or paper shares still says where its evidence stands
(QASPER: F1 .29 without, .20 with): p(w|p) = (tf(w, p) + μ p(w|C)) / (|p| + μ). Among documents of both kinds, sections
count as pages: likelihoods are compared only with those of one kind.

What a question says of the document that it means, such as a company and a year, stands on few of its paragraphs, but
on its cover, in its name and here and there on all of its pages. So each different word w of the question is also
evidence for a document as a whole: v(w, d) is the share of its pages or sections that hold w, plus 1 if the beginning
of the document does, plus 1 if its name does. Names, which a question writes with a capital letter, count more: a(w) is
3 for them, else 1. In short documents paragraphs say all that already: with n pages or sections in a document (the
geometric mean), ω = 6 n / (n + 150). Among paragraphs of one document only, this is 0.

How probable it is that the documents speak of the question at all follows from how much of it their likeliest document
covers: with i(w) = ln(1 + n / (n_w + 1/2)), where n_w of n pages or sections hold w, five times that for names, and 0
for English stop words,

    c = max_d (Σ_w i(w) min(1, v(w, d) / .3) + κ) / (Σ_w i(w) + κ),    P = 1 / (1 + exp(7.2 - 8.1 c - 4.5 s))

where d goes through the documents of the five best paragraphs, v counts marks as 1 as above, s is the share of
Σ_w i(w) + κ, names as other words, that any page holds, and κ = 100 / n, because few pages tell little of words that
they do not hold. Fitted on FinanceBench's reports A to J, asked with and without those of the company, on 25 papers of
QASPER and on READMEs, each also asked for what stands in the others.

The posterior of a paragraph is proportional to exp(S / T); that of a section or of a document is the sum over its
paragraphs. So which document, which section and which paragraph follow from one computation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from drillrank.corpus.index import DocumentCounts, Layout
from drillrank.data import read_words
from drillrank.explanation.terms import GAINS, NOTHING, Term
from drillrank.likelihood.unigram import Collection
from drillrank.text import terms
from drillrank.vectors import Floats, Integers, sum_by_index, top, word_counts

# Chosen on FinanceBench's reports whose names begin with A to J.
MU = 1000.0  # μ in words, for sections and pages
PARAGRAPH_PART = 0.1  # of μ, for paragraphs
DOCUMENT_SHARE = 0.6  # λ
DOCUMENT_WEIGHT = 6.0  # ω of very long documents
NAME_WEIGHT = 3.0  # a of names
SHORT = 150.0  # pages or sections of a document at which ω is half of that
FLOOR = 0.05  # ε
ALONE = 300.0  # μ of `UnigramModel`
COVERED = 0.3  # v(w, d) from which on a document speaks of a word as of its own
_NAME = re.compile(r"(?<=[^.?!\s]\s)[\"“(]?[A-Z][\w&'’.-]*|\b[A-Z][\w&]*[A-Z\d]\w*")
_NAMED = 5.0  # how much more a name tells
_ASKING = ("does", "did", "doing", "long", "shall")  # that the list of stop words lacks
_BEST = 5  # paragraphs whose documents are asked
_FEW = 100.0  # κ n
_REST = "\0"  # stands for all words that are not asked about


Entries = tuple[Integers, Floats]
"""Numbers of the paragraphs that hold a word, and how often each does."""


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How often paragraphs hold the words of a question, and where they stand.

    Attributes:
        words: Of the question, in order, repeated ones too.
        collection: p(w|C), shape (words,).
        paragraphs: Of each word, which paragraphs hold it, headings included.
        texts: Of each word, which hold it in their own text.
        lengths: Words of each paragraph, headings included; `text_lengths` without them.
        section_of: The page or section of each paragraph.
        document_of: The document of each page or section.
        paged: Whether any document has pages.
        openings: 1 where the beginning of a document holds w, shape (words, documents); `names`, where its name does.
        named: 1 where the question writes w as a name, with a capital letter, shape (words,).
    """

    words: Sequence[str]
    collection: Floats
    paragraphs: Sequence[Entries]
    texts: Sequence[Entries]
    lengths: Floats
    text_lengths: Floats
    section_of: Integers
    document_of: Integers
    paged: bool
    openings: Floats
    names: Floats
    named: Floats


class Levels:
    """S of every paragraph, and what it is added up from.

    Args:
        counts: Of the question's words.
        mu: μ.

    Attributes:
        words: Of the question.
        totals: S, shape (paragraphs,); log p(q|C) of each where no paragraph holds a word of the question.
        matched: Whether a paragraph holds a word of the question; `any_matched`, whether any of all does.
        answerable: Probability that the documents speak of the question.
    """

    def __init__(self, counts: Counts, mu: float = MU) -> None:
        self.words, self._counts = counts.words, counts
        section_of, document_of, documents = counts.section_of, counts.document_of, counts.names.shape[1]
        lengths = sum_by_index(section_of, counts.text_lengths, len(document_of))
        document_lengths = np.maximum(sum_by_index(document_of, lengths, documents), 1)
        share = DOCUMENT_SHARE if counts.paged else 0.0
        self._mu = PARAGRAPH_PART * mu if counts.paged else mu  # of paragraphs
        self._sections: list[Floats] = []
        self._documents: list[Floats] = []
        holding = np.zeros((len(self.words), documents))
        of_paragraphs, self.matched = np.zeros(len(section_of)), np.zeros(len(section_of), dtype=bool)
        without = np.zeros(len(document_of))  # of paragraphs that hold no word, by section
        for word, of_collection in enumerate(counts.collection):
            where, times = counts.texts[word]
            in_sections = sum_by_index(section_of[where], times, len(document_of))
            in_documents = sum_by_index(document_of, in_sections, documents)
            of_documents = share * in_documents / document_lengths + (1 - share) * of_collection
            above = of_documents[document_of]
            of_sections = (in_sections + mu * above) / (lengths + mu) if counts.paged else above
            without += np.log(of_sections)
            places, tf = counts.paragraphs[word]
            of_paragraphs[places] += np.log1p(tf / (self._mu * of_sections[section_of[places]]))
            self.matched[places] = True
            self._sections.append(of_sections)
            self._documents.append(of_documents)
            holding[word] = sum_by_index(document_of, (in_sections > 0).astype(float), documents)
        self._which = _which_document(counts, holding)
        above = without + self._which.sum(axis=0)[document_of]
        self._sums = of_paragraphs + above[section_of] - len(self.words) * np.log1p(counts.lengths / self._mu)
        nothing = np.full(len(section_of), np.log(counts.collection).sum())
        self.any_matched = bool(self.matched.any())
        self.totals = self._sums if self.any_matched else nothing
        best = document_of[section_of[top(self.totals, _BEST)]]
        self.answerable = _answerable(counts, holding, best) if self.any_matched else 0.0

    def frequencies(self) -> dict[str, int]:
        """How often each word of the question occurs in the paragraphs, headings left out, and all others together."""
        return _frequencies(self.words, self._counts.texts, self._counts.text_lengths)

    def context(self, paragraphs: Integers) -> Floats:
        """What pages and documents add to these paragraphs' own likelihood under `UnigramModel`."""
        alone = np.zeros(len(paragraphs))
        for word, of_collection in enumerate(self._counts.collection):
            tf = np.zeros(len(self._counts.section_of))
            places, times = self._counts.paragraphs[word]
            tf[places] = times
            smoothed = tf[paragraphs] + ALONE * of_collection
            alone += np.log(smoothed / (self._counts.lengths[paragraphs] + ALONE))
        context: Floats = self._sums[paragraphs] - alone
        return context

    def terms(self, paragraph: int) -> tuple[Term, ...]:
        """S of a paragraph as terms, each token's gain by level; of none where no paragraph matches."""
        counts = self._counts
        section = counts.section_of[paragraph]
        document = counts.document_of[section]
        nothing = Term.sum(NOTHING, map(Term, self.words, np.log(counts.collection).tolist()))
        if not self.any_matched:
            return (nothing,)
        gains = []
        for word, (places, tf) in enumerate(counts.paragraphs):
            above = self._sections[word][section]
            probability = (tf[places == paragraph].sum() + self._mu * above) / (counts.lengths[paragraph] + self._mu)
            levels = np.log([counts.collection[word], self._documents[word][document], above, probability])
            parts = zip(("document", "page", "paragraph"), np.diff(levels).tolist(), strict=True)
            gains.append(Term.sum(self.words[word], (Term(level, gain) for level, gain in parts)))
        which = self._which[:, document].tolist()
        more = [Term.sum("which document", map(Term, self.words, which))] if any(which) else []
        return nothing, Term.sum(GAINS, gains), *more


def log_posteriors(totals: Floats, parts: Integers, temperature: float) -> Floats:
    """Log of the posterior of parts of the documents, up to a constant: T log Σ exp(S(p) / T), shape (parts,).

    Args:
        totals: S, shape (paragraphs,).
        parts: The part of each paragraph, from 0.
        temperature: T.
    """
    sums = np.full(int(parts.max(initial=-1)) + 1, -np.inf)
    np.logaddexp.at(sums, parts, totals / temperature)
    return temperature * sums


def _which_document(counts: Counts, holding: Floats) -> Floats:
    """What each word of the question says of each document as a whole, shape (words, documents).

    Args:
        counts: Of the words.
        holding: How many pages or sections of each document hold each word.
    """
    if not holding.shape[1]:
        return holding
    sizes = np.bincount(counts.document_of, minlength=holding.shape[1])
    speaks = holding / np.maximum(sizes, 1) + counts.openings + counts.names
    size = np.exp(np.log(np.maximum(sizes, 1)).mean())
    weight = DOCUMENT_WEIGHT * size / (size + SHORT)
    rarity = _first(counts.words) * (1 + (NAME_WEIGHT - 1) * counts.named)
    ratios: Floats = weight * rarity[:, None] * np.log((speaks + FLOOR) / (speaks.mean(axis=1, keepdims=True) + FLOOR))
    return ratios


def _answerable(counts: Counts, holding: Floats, documents: Integers) -> float:
    """P, given the documents of the best paragraphs; `holding` as for `_which_document`."""
    sections, sizes = len(counts.document_of), np.bincount(counts.document_of, minlength=holding.shape[1])
    rarity = _first(counts.words) * np.log1p(sections / (holding.sum(axis=1) + 0.5))
    rarity[[word in _stop_terms() for word in counts.words]] = 0
    speaks = np.minimum(holding[:, documents] / sizes[documents] / COVERED, 1)
    covered = np.maximum(speaks, np.maximum(counts.openings, counts.names)[:, documents])
    weight = rarity * (1 + (_NAMED - 1) * counts.named)
    few = _FEW / sections
    most = float(((weight @ covered).max() + few) / (weight.sum() + few))
    seen = float((rarity @ (holding.sum(axis=1) > 0) + few) / (rarity.sum() + few))
    return float(1 / (1 + np.exp(7.2 - 8.1 * most - 4.5 * seen)))


def _first(words: Sequence[str]) -> Floats:
    """1 where a word of the question was not there before, shape (words,)."""
    return np.array([word not in words[:at] for at, word in enumerate(words)], dtype=float)


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


class _Postings:
    """Which texts, given as their words, hold each word, and how often."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        counts, self._columns = word_counts(texts)
        self.lengths = counts.row_sums()
        self._texts = counts.transposed()

    def of(self, word: str) -> Entries:
        """The texts that hold a word."""
        column = self._columns.get(word)
        start, end = (0, 0) if column is None else self._texts.bounds[column : column + 2]
        return self._texts.columns[start:end], self._texts.data[start:end]

    def dense(self, word: str) -> Floats:
        """How often each text holds a word, shape (texts,)."""
        times = np.zeros(len(self.lengths))
        places, counted = self.of(word)
        times[places] = counted
        return times

    def frequencies(self) -> dict[str, int]:
        """How often each word occurs."""
        return dict(zip(self._columns, self._texts.row_sums().astype(int).tolist(), strict=True))


class LevelIndex:
    """Words of paragraphs, sections and documents in memory, counted once for many questions.

    Args:
        texts: Paragraphs, those of one document and section together.
        names: By document, what it is called; "" where nothing is known.
        openings: By document, how it begins.
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
        openings: Mapping[Any, str],
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
        self._texts = _Postings(terms(text.text, language) for text in texts)
        self._headings = _Postings(terms(" ".join(path), language) for path in paths)
        self._names = [names.get(document, "") for document in documents]
        self._openings = [openings.get(document, "") for document in documents]
        self._paged = any(text.paged for text in texts)
        self._collection = collection

    def frequencies(self) -> dict[str, int]:
        """How often each word occurs in the paragraphs, headings left out."""
        return self._texts.frequencies()

    def levels(self, question: str, mu: float = MU) -> Levels:
        """The levels of all paragraphs."""
        words = terms(question, self.language)
        texts = list(map(self._texts.of, words))
        counted = (self._texts.dense(word) + self._headings.dense(word)[self._path_of] for word in words)
        lengths = self._texts.lengths
        counts = Counts(
            words,
            _of_collection(words, texts, lengths, self.language, self._collection),
            [(times.nonzero()[0], times[times > 0]) for times in counted],
            texts,
            lengths + self._headings.lengths[self._path_of],
            lengths,
            self._section_of,
            self._document_of,
            self._paged,
            marks(words, self._openings, self.language),
            marks(words, self._names, self.language),
            named(question, words, self.language),
        )
        return Levels(counts, mu)


def stored_counts(
    question: str,
    layout: Layout,
    found: DocumentCounts,
    names: Mapping[str, str],
    collection: Collection | None = None,
    *,
    whole_paths: bool = False,
) -> Counts:
    """Counts of documents in a corpus: those of `LevelIndex` over the same documents.

    Args:
        question: The question.
        layout: Where the documents' paragraphs stand.
        found: What the corpus knows of the question's words.
        names: What documents are called, by their ids.
        collection: p(w|C); None takes that of all the texts.
        whole_paths: Whether headings that name a whole document count for its paragraphs.
    """
    texts, titled = [], []
    for word, (places, times) in enumerate(found.entries[0]):
        in_headings, left_out = (_at(layout.first_of[places], found.entries[level][word]) for level in (1, 2))
        texts.append(_occurring(places, times - in_headings - left_out))
        titled.append((places, times) if whole_paths else _occurring(places, times - left_out))
    in_headings, left_out = (layout.lengths[level][layout.first_of] for level in (1, 2))
    text_lengths = layout.lengths[0] - in_headings - left_out
    documents = len(layout.ids)
    openings = np.zeros((len(found.words), documents))
    for word, (places, _) in enumerate(found.entries[3]):
        openings[word, np.searchsorted(layout.starts, places, side="right") - 1] = 1
    return Counts(
        found.words,
        _of_collection(found.words, texts, text_lengths, layout.language, collection),
        titled,
        texts,
        layout.lengths[0] - (0 if whole_paths else left_out),
        text_lengths,
        layout.section_of,
        layout.document_of,
        bool(layout.paged.any()),
        openings,
        marks(found.words, [names.get(id_, "") for id_ in layout.ids], layout.language),
        named(question, found.words, layout.language),
    )


def _at(places: Integers, entries: Entries) -> Floats:
    """How often each of some places holds a word, given what all do."""
    where, times = entries
    if not len(where):
        return np.zeros(len(places))
    at = np.minimum(np.searchsorted(where, places), len(where) - 1)
    counted: Floats = np.where(where[at] == places, times[at], 0.0)
    return counted


def _occurring(places: Integers, times: Floats) -> Entries:
    return places[times > 0], times[times > 0]


def _of_collection(
    words: Sequence[str], texts: Sequence[Entries], lengths: Floats, language: str, collection: Collection | None
) -> Floats:
    """p(w|C), shape (words,): all words that are not asked about count as one."""
    if collection is None:
        collection = Collection(_frequencies(words, texts, lengths), language)
    return collection.probability(words)


def _frequencies(words: Sequence[str], texts: Sequence[Entries], lengths: Floats) -> dict[str, int]:
    counts = {word: int(times.sum()) for word, (_, times) in zip(words, texts, strict=True) if len(times)}
    return {**counts, _REST: int(lengths.sum()) - sum(counts.values())}


def marks(words: Sequence[str], texts: Sequence[str], language: str) -> Floats:
    """1 where a text holds a word, shape (words, texts)."""
    distinct = [_distinct(text, language) for text in texts]
    return np.array([[word in some for some in distinct] for word in words], dtype=float).reshape(
        len(words), len(texts)
    )


def named(question: str, words: Sequence[str], language: str) -> Floats:
    """1 where a question writes a word as a name: with a capital letter, not only because its sentence begins there.

    >>> named("What did Ada Holm read in FY2018?", ["ada", "holm", "read", "fy", "2018"], "english").tolist()
    [1.0, 1.0, 0.0, 1.0, 0.0]
    """
    names = {word for name in _NAME.findall(question) for word in terms(name, language) if not word.isdigit()}
    return np.array([word in names for word in words], dtype=float)


@lru_cache(maxsize=1)
def _stop_terms() -> frozenset[str]:
    return frozenset(terms(" ".join([*read_words("english_stop_words.txt"), *_ASKING])))


@lru_cache(maxsize=10_000)
def _distinct(text: str, language: str) -> frozenset[str]:
    return frozenset(terms(text, language))
