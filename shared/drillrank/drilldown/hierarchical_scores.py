"""Question likelihood of every paragraph or passage, from term statistics on four levels.

    p(w|d) = λ cf(w, d) / |d| + (1 - λ) p(w|C)                              a document in its collection
    p(w|s) = (cf(w, s) + μ p(w|d)) / (|s| + μ)                              a page in its document
    p(w|p) = (tf(w, p) + νμ p(w|s)) / (|p| + νμ)                            a paragraph or passage on its page
    S(p)   = Σ_t log p(q_t | p) + ω Σ_w a(w) log [ (v(w, d) + ε) / (mean_d v(w, d) + ε) ]

Each level is smoothed by the level above it: Dirichlet smoothing (Zhai & Lafferty 2001) along a tree, as McCallum &
Nigam (1998) do. A page contains what belongs together, even if no line or table cell repeats it. A document without
pages has sections. Sections do not smooth: a word that a whole section or paper shares still indicates where its
evidence is (QASPER: F1 .29 without, .20 with). Then p(w|s) = p(w|d).

| unit | λ | ν | ω |
|---|---|---|---|
| paragraphs of documents without pages | 0 | 1 | 6 n / (n + 150) |
| paragraphs, if any document has pages; sections count as pages | .6 | 1/10 | 6 n / (n + 150) |
| passages; the name of the document is one of their headings | .1 | 6/10 | 6 n² / (n² + 150²) |

A paragraph on a page is often one line, which says little without its page. A passage has about 200 words under its
headings, so it needs less of the levels above it. ω depends on n, the number of pages or sections in a document (the
geometric mean): in short documents, paragraphs and passages show well enough which document is meant.

A question names the document it means by words such as a company and a year. They are in few of its paragraphs, but on
its cover, in its name and here and there on all of its pages. So each different word w of the question is also evidence
for a document as a whole. v(w, d) is the share of the document's pages or sections that contain w, plus 1 if the
beginning of the document does, plus 1 if its name does. Names, which a question writes with a capital letter, count
more: a(w) is 3 for them, else 1. If all paragraphs are of one document, the term is 0.

The posterior of a paragraph is proportional to exp(S / T). The posterior of a section or of a document is the sum over
its paragraphs. So one computation ranks documents, sections and paragraphs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from drillrank.corpus.documents import Unit
from drillrank.drilldown.question_terms import (
    JoinedIndex,
    LevelIndex,
    QuestionTermCounts,
    first_occurrence_mask,
    look_up_counts,
)
from drillrank.explanation.terms import GAINS, NOTHING, Term
from drillrank.vectors import Floats, Integers, sum_by_index

# Chosen on FinanceBench's reports whose names begin with A to J.
MU = 1000.0  # μ in words, for sections and pages
NAME_WEIGHT = 3.0  # a of names
DOCUMENT_WEIGHT = 6.0  # ω of very long documents
HALF_WEIGHT_SIZE = 150.0  # pages or sections of a document at which ω is half of that
FLOOR = 0.05  # ε
UNIGRAM_MU = 300.0  # μ of `UnigramModel`


@dataclass(frozen=True, slots=True)
class LevelWeights:
    """Weights of the levels for one unit of evidence.

    Attributes:
        document_share: λ.
        unit_part: ν.
        document_exponent: Exponent of n and 150 in ω.
    """

    document_share: float
    unit_part: float
    document_exponent: int


PARAGRAPHS = LevelWeights(document_share=0.0, unit_part=1.0, document_exponent=1)
# Chosen on FinanceBench's reports whose names begin with A to J.
PARAGRAPHS_ON_PAGES = LevelWeights(document_share=0.6, unit_part=0.1, document_exponent=1)
# Chosen on the tuning folder of `benchmarks.folders`. From .1 to .2 and from .4 to .7 they are as good.
PASSAGES = LevelWeights(document_share=0.1, unit_part=0.6, document_exponent=2)


class HierarchicalScores:
    """S of every paragraph for one question, and its parts.

    Args:
        counts: Counts of the question's terms.
        mu: μ.
        unit: Unit of evidence.

    Attributes:
        words: Terms of the question.
        counts: Counts of the question's terms.
        totals: S, shape (paragraphs,). log p(q|C) for each if no paragraph contains a term of the question.
        matched: True if a paragraph contains a term of the question, shape (paragraphs,).
        any_matched: True if any paragraph does.
    """

    def __init__(self, counts: QuestionTermCounts, mu: float = MU, unit: Unit = "paragraph") -> None:
        if unit == "passage":
            counts = counts.with_names()
            weights, smooths = PASSAGES, counts.paged[counts.document_of]
        else:
            smooths = np.full(len(counts.document_of), bool(counts.paged.any()))
            weights = PARAGRAPHS_ON_PAGES if counts.paged.any() else PARAGRAPHS
        self.words, self.counts = counts.words, counts
        self._unit = unit
        self._unit_mu = weights.unit_part * mu  # νμ
        self._smooth_levels(mu, weights.document_share, smooths)
        n_sections = counts.count_sections()
        self._document_evidence = _score_documents(counts, n_sections, weights)
        gains, self.matched = np.zeros(len(counts.section_of)), np.zeros(len(counts.section_of), dtype=bool)
        of_sections_alone = np.zeros(len(counts.document_of))  # likelihood of paragraphs without a term
        for (paragraph_indices, tf), in_sections in zip(counts.paragraphs, self._in_sections, strict=True):
            of_sections_alone += np.log(in_sections)
            smoothing = self._unit_mu * in_sections[counts.section_of[paragraph_indices]]
            gains[paragraph_indices] += np.log1p(tf / smoothing)
            self.matched[paragraph_indices] = True
        above = of_sections_alone + self._document_evidence.sum(axis=0)[counts.document_of]
        length_penalty = len(self.words) * np.log1p(counts.lengths / self._unit_mu)
        self._sums = gains + above[counts.section_of] - length_penalty
        self.any_matched = bool(self.matched.any())
        nothing = np.full(len(counts.section_of), np.log(counts.collection).sum())
        self.totals = self._sums if self.any_matched else nothing

    def _smooth_levels(self, mu: float, share: float, smooths: npt.NDArray[np.bool_]) -> None:
        """Compute p(w|d) and p(w|s) of each term.

        Args:
            mu: μ.
            share: λ.
            smooths: True if a section is a level of its own, shape (sections,).
        """
        counts = self.counts
        section_of, document_of = counts.section_of, counts.document_of
        lengths = sum_by_index(section_of, counts.text_lengths, len(document_of))
        document_lengths = np.maximum(sum_by_index(document_of, lengths, counts.n_documents), 1)
        self._in_documents: list[Floats] = []  # p(w|d), shape (documents,) per term
        self._in_sections: list[Floats] = []  # p(w|s), shape (sections,) per term
        for (paragraph_indices, tf), in_collection in zip(counts.texts, counts.collection, strict=True):
            section_counts = sum_by_index(section_of[paragraph_indices], tf, len(document_of))
            document_counts = sum_by_index(document_of, section_counts, counts.n_documents)
            in_documents = share * document_counts / document_lengths + (1 - share) * in_collection
            above = in_documents[document_of]
            self._in_documents.append(in_documents)
            in_sections = (section_counts + mu * above) / (lengths + mu)
            self._in_sections.append(np.where(smooths, in_sections, above))

    def context(self, paragraph_indices: Integers) -> Floats:
        """Return what pages and documents add to the likelihood of some paragraphs under `UnigramModel`."""
        own_likelihoods = np.zeros(len(paragraph_indices))
        for (posted_indices, counts), in_collection in zip(self.counts.paragraphs, self.counts.collection, strict=True):
            tf = np.zeros(len(self.counts.section_of))
            tf[posted_indices] = counts
            smoothed = tf[paragraph_indices] + UNIGRAM_MU * in_collection
            own_likelihoods += np.log(smoothed / (self.counts.lengths[paragraph_indices] + UNIGRAM_MU))
        context: Floats = self._sums[paragraph_indices] - own_likelihoods
        return context

    def token_log_likelihoods(self, paragraph_indices: Integers) -> Floats:
        """Return the part of S that each token of the question has in some paragraphs, shape (paragraphs, words)."""
        counts = self.counts
        sections = counts.section_of[paragraph_indices]
        penalties = np.log1p(counts.lengths[paragraph_indices] / self._unit_mu)
        parts = [
            np.log(in_sections[sections])
            + np.log1p(look_up_counts(paragraph_indices, postings) / (self._unit_mu * in_sections[sections]))
            - penalties
            for postings, in_sections in zip(counts.paragraphs, self._in_sections, strict=True)
        ]
        likelihoods: Floats = np.stack(parts, axis=1) + self._document_evidence[:, counts.document_of[sections]].T
        return likelihoods

    def complement_gains(self, best_index: int, candidate_indices: Integers, stop_words: Collection[str]) -> Floats:
        """Return how much each candidate adds to what the best paragraph says about the question.

        Args:
            best_index: Index of the best paragraph.
            candidate_indices: Indices of the candidates.
            stop_words: Terms that do not count.

        Returns:
            Log-likelihood that each candidate's occurrences of the question's words add to those in the best paragraph,
            shape (candidates,).
        """
        counts, added = self.counts, np.zeros(len(candidate_indices))
        indices = np.append(best_index, candidate_indices)
        for word, (posted_indices, tf), in_sections in zip(
            self.words, counts.paragraphs, self._in_sections, strict=True
        ):
            if word in stop_words:
                continue
            occurrences = look_up_counts(indices, (posted_indices, tf))
            gains = np.log1p(occurrences / (self._unit_mu * in_sections[counts.section_of[indices]]))
            added += np.maximum(gains[1:] - gains[0], 0)
        return added

    def explain(self, paragraph_index: int) -> tuple[Term, ...]:
        """Split S of a paragraph into terms: the gain of each token by level. No gains if no paragraph matches."""
        counts = self.counts
        section = counts.section_of[paragraph_index]
        document = counts.document_of[section]
        nothing = Term.sum(NOTHING, map(Term, self.words, np.log(counts.collection).tolist()))
        if not self.any_matched:
            return (nothing,)
        gains = []
        for word, (posted_indices, tf) in enumerate(counts.paragraphs):
            above = self._in_sections[word][section]
            smoothed = tf[posted_indices == paragraph_index].sum() + self._unit_mu * above
            probability = smoothed / (counts.lengths[paragraph_index] + self._unit_mu)
            levels = np.log([counts.collection[word], self._in_documents[word][document], above, probability])
            parts = zip(("document", "page", self._unit), np.diff(levels).tolist(), strict=True)
            gains.append(Term.sum(self.words[word], (Term(level, gain) for level, gain in parts)))
        evidence = self._document_evidence[:, document].tolist()
        more = [Term.sum("which document", map(Term, self.words, evidence))] if any(evidence) else []
        return nothing, Term.sum(GAINS, gains), *more


def score_index(
    index: LevelIndex | JoinedIndex, question: str, mu: float = MU, unit: Unit = "paragraph"
) -> HierarchicalScores:
    """Score all paragraphs or passages of an index.

    >>> from drillrank.drilldown.question_terms import IndexedParagraph
    >>> paragraphs = [IndexedParagraph("Nine hours.", ["Battery"], 0, 0), IndexedParagraph("Dry.", ["Screen"], 1, 0)]
    >>> index = LevelIndex(paragraphs, {0: "Kettle"}, {0: "Kettle"})
    >>> score_index(index, "How long does the battery last?").totals.argmax().item()
    0
    """
    return HierarchicalScores(index.count(question), mu, unit)


def log_posteriors(totals: Floats, parts: Integers, temperature: float) -> Floats:
    """Return the log-posterior of each part of the documents, up to a constant: T log Σ exp(S(p) / T).

    Args:
        totals: S, shape (paragraphs,).
        parts: Index of each paragraph's part, starting at 0, shape (paragraphs,).
        temperature: T.

    Returns:
        Log-posteriors, shape (parts,).
    """
    sums = np.full(int(parts.max(initial=-1)) + 1, -np.inf)
    np.logaddexp.at(sums, parts, totals / temperature)
    return temperature * sums


def _score_documents(counts: QuestionTermCounts, n_sections: Floats, weights: LevelWeights) -> Floats:
    """Return the evidence of each term for each document as a whole, shape (words, documents).

    Args:
        counts: Counts of the question's terms.
        n_sections: Number of pages or sections with each term, shape (words, documents).
        weights: Weights of the levels.
    """
    if not counts.n_documents:
        return n_sections
    sizes = np.bincount(counts.document_of, minlength=counts.n_documents)
    presence = n_sections / np.maximum(sizes, 1) + counts.openings + counts.names  # v
    size = np.exp(np.log(np.maximum(sizes, 1)).mean())
    power = size**weights.document_exponent
    weight = DOCUMENT_WEIGHT * power / (power + HALF_WEIGHT_SIZE**weights.document_exponent)
    term_weights = first_occurrence_mask(counts.words) * (1 + (NAME_WEIGHT - 1) * counts.capitalized)
    ratios = np.log((presence + FLOOR) / (presence.mean(axis=1, keepdims=True) + FLOOR))
    evidence: Floats = weight * term_weights[:, None] * ratios
    return evidence
