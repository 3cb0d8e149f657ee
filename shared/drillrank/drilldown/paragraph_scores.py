"""Evidence without an LLM: which paragraphs, and how many.

    P(p | q) = exp(S(p) / T) / Σ_p' exp(S(p') / T)

`drillrank.drilldown.question_scores` computes S from lexical and embedding evidence. A language model other than the
unigram model reads the best paragraphs, under their headings. The likelihood of a reader in a sum, such as
`"unigram+hf:..."`, is added (`drillrank.drilldown.passage_reader`). The likelihood of a model alone replaces that of
the paragraph's own terms; the contributions of section, document and embeddings stay. Evidence is as many of the best
paragraphs as maximize the expected F1 under the posterior P, if m paragraphs are expected in all:

    π(p) = min(1, m P(p | q)),    n = argmax_n 2 Σ_{i<=n} π(p_i) / (n + Σ_p π(p))

A question may need two passages. So the one that follows the best passage is chosen for its score and for what it adds:
S(p) + β Σ_t max(0, g_t(p) - g_t(best)), where g_t(p) is what the occurrences of content word t add to log p(q_t | p).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.corpus.documents import Unit
from drillrank.drilldown.confidence import read_stop_words
from drillrank.drilldown.evidence_paths import EvidencePath
from drillrank.drilldown.hierarchical_scores import MU, HierarchicalScores, log_posteriors
from drillrank.drilldown.passage_reader import PassageJudge, PassageReader, ReadsPassages
from drillrank.drilldown.question_scores import EMBEDDING_WEIGHTS, QuestionScores
from drillrank.explanation import Explanation, Term
from drillrank.likelihood import LanguageModel, Likelihood, load_language_model
from drillrank.likelihood.unigram import UnigramModel
from drillrank.passages import Passage, Ranked
from drillrank.rerank.explaining import UNREAD, explain_likelihood
from drillrank.rerank.prior import Scored
from drillrank.rerank.upr import UPR
from drillrank.text import words
from drillrank.vectors import Floats, Integers, top

FOLLOWED = "what points here"
# Chosen on the tuning half of QASPER, with the unigram model. A factor of two in T changes little.
TEMPERATURE = 2.0  # T
EXPECTED = 2.0  # m
FUSED_TEMPERATURE = 2.5  # T with embeddings
JUDGED_TEMPERATURE = 3.0  # T with a judge
COMPLEMENT = "adds to the best passage"
REACHED = "a better passage leads here"
COMPLEMENT_WEIGHT = 0.2  # β. From .25, one-place questions of the tuning folder lose (`benchmarks two_places`).
N_COMPLEMENTS = 10  # passages that may complement the best one
MIN_GAP = 1e-6  # between the best passage and its complement


class ParagraphScorer:
    """Paragraphs, prepared for many questions.

    Args:
        paragraphs: The paragraphs as a reader sees them.
        titles: Heading path of each paragraph.
        lm: A language model; fitted if it is lexical.
        question_scores: Function from a question to the scores of the same paragraphs, and perhaps of others.
        corpus_indices: Index of each paragraph in the question scores.
        unit: Unit of evidence.
        has_vectors: True if embeddings are part of the question scores.
        n_read: Number of paragraphs that a neural model reads: those with the best question scores.
        judge: Model that judges them, if the language model is lexical.
    """

    def __init__(
        self,
        paragraphs: Sequence[Passage],
        titles: Sequence[str],
        lm: LanguageModel,
        question_scores: Callable[[str], QuestionScores],
        corpus_indices: Integers,
        unit: Unit,
        *,
        has_vectors: bool,
        n_read: int,
        judge: PassageJudge | None = None,
    ) -> None:
        self._paragraphs, self._titles = paragraphs, titles
        self._lm, self._n_read, self._is_judged = lm, n_read, judge is not None
        self._reader: ReadsPassages | None = judge or PassageReader.from_model(lm)
        self._uses_term_statistics = type(lm) is UnigramModel or self._reader is not None
        self.question_scores, self._corpus_indices = question_scores, corpus_indices
        self._weights, self._unit, self._has_vectors = EMBEDDING_WEIGHTS[unit], unit, has_vectors

    def with_question_scores(self, question_scores: Callable[[str], QuestionScores]) -> ParagraphScorer:
        """Return a copy with other question scores, of which embeddings are a part."""
        scorer = copy(self)
        scorer.question_scores, scorer._has_vectors = question_scores, True
        return scorer

    @cached_property
    def _titled(self) -> tuple[Passage, ...]:
        """The paragraphs under their headings, as a neural model reads them."""
        return tuple(replace(p, title=title) for p, title in zip(self._paragraphs, self._titles, strict=True))

    @cached_property
    def _ranker(self) -> UPR:
        return UPR(self._lm, prior=None)

    @property
    def language(self) -> str:
        """Language of the stemmer."""
        return self._lm.language

    @property
    def is_lexical(self) -> bool:
        """True if only term statistics decide."""
        return not self._has_vectors and type(self._lm) is UnigramModel and not self._is_judged

    def hierarchical_scores(self, question: str) -> HierarchicalScores:
        """Return the scores of all paragraphs from term statistics alone."""
        return self.question_scores(question).lexical

    def log_posteriors(self, question: str, parts: Integers) -> Floats:
        """Return the log-posterior of each section or document.

        Args:
            question: The question.
            parts: Index of each paragraph's section or document, shape (paragraphs,).
        """
        return log_posteriors(self.question_scores(question).totals[self._corpus_indices], parts, TEMPERATURE)

    def list_best(self, question: str, n: int) -> list[Passage]:
        """Return the `n` paragraphs with the best question scores, under their headings."""
        totals = self.question_scores(question).totals[self._corpus_indices]
        return [self._titled[index] for index in top(totals, n)]

    def score(self, question: str, paragraph_indices: Sequence[int]) -> ParagraphScores:
        """Score some paragraphs.

        A neural model reads the best paragraphs. The others rank below them in their order; their detail `read` is
        False.
        """
        scores = self.question_scores(question)
        lexical = scores.lexical
        indices = np.array(paragraph_indices, dtype=np.intp)
        corpus_indices = self._corpus_indices[indices]
        totals, n_tokens = scores.totals[corpus_indices], len(lexical.words)
        details = _Details(
            nothing_matched=self.is_lexical and not lexical.any_matched,
            matched=lexical.matched[corpus_indices] if self._uses_term_statistics else None,
            cosines=None if scores.cosines is None else scores.cosines[:, corpus_indices],
        )
        n_first = 1 + N_COMPLEMENTS
        if (self._reader is not None or not self._uses_term_statistics) and len(indices):
            read = np.array(top(totals, self._n_read))
            if self._reader is not None:
                titled = [self._titled[index] for index in indices[read]]
                for row, (gain, reader_details) in enumerate(self._reader.read(question, titled)):
                    totals[read[row]] += gain
                    details.by_model[int(read[row])] = reader_details
            else:
                lexical_totals = lexical.totals[corpus_indices]
                n_tokens, by_model = self._read(question, lexical, indices[read])
                for row, total, model_details in by_model:
                    # The embedding terms stay; the likelihood of the model replaces the lexical one.
                    totals[read[row]] += total - lexical_totals[read[row]]
                    details.by_model[int(read[row])] = model_details
            unread_mask = np.ones(len(indices), dtype=np.bool_)
            unread_mask[read] = False
            if unread_mask.any():
                totals[unread_mask] += totals[read].min() - 1 - totals[unread_mask].max()
                details.unread_mask = unread_mask
            n_first = min(n_first, len(read))
        if self._unit == "passage" and lexical.any_matched and min(len(indices), n_first) > 1:
            row, gain = self._choose_complement(lexical, corpus_indices, totals, n_first)
            totals[row] += gain
            details.complements[row] = gain
        return ParagraphScores(totals, n_tokens, details)

    def _choose_complement(
        self, lexical: HierarchicalScores, corpus_indices: Integers, totals: Floats, n_first: int
    ) -> tuple[int, float]:
        """Choose the passage that follows the best one, for its score and for what it adds to the best one.

        Returns:
            Row of the passage, and what its score gains. It stays below the best passage.
        """
        best, *candidates = top(totals, n_first)
        gains = lexical.complement_gains(
            corpus_indices[best], corpus_indices[candidates], read_stop_words(self.language)
        )
        sums = totals[candidates] + COMPLEMENT_WEIGHT * gains
        chosen = int(np.argmax(sums))
        row = candidates[chosen]
        limit = totals[best] - MIN_GAP
        return row, max(float(min(sums[chosen], limit) - totals[row]), 0.0)

    def _read(
        self, question: str, hierarchical: HierarchicalScores, indices: Integers
    ) -> tuple[int, list[tuple[int, float, dict[str, Any]]]]:
        """Score paragraphs with the neural model.

        Returns:
            The number of tokens in the question; for each paragraph its row in `indices`, S, and its details.
        """
        ranking = self._ranker.rank(question, [self._titled[index] for index in indices])
        contexts = hierarchical.context(self._corpus_indices[indices]).tolist()
        n_tokens: int = ranking[0].details["tokens"]
        results = []
        for item in ranking:
            row = item.details["position"]
            # The score is the mean. If no term matches, the detail `total` depends on the length alone.
            total = item.score * n_tokens + contexts[row]
            results.append((row, total, {**item.details, "context": contexts[row], "read": True}))
        return n_tokens, results

    def contains_question_word(self, question: str, paragraph_index: int) -> bool:
        """Return True if a paragraph or its headings contain a term of the question."""
        return bool(self.hierarchical_scores(question).matched[self._corpus_indices[paragraph_index]])

    def explain(
        self, question: str, ranking: Sequence[Ranked[Passage]], paragraph_indices: Sequence[int]
    ) -> list[Explanation]:
        """Split the score of each ranked paragraph into terms.

        Args:
            question: The question.
            ranking: Paragraphs with the details of `score`.
            paragraph_indices: Index of the paragraph of each entry.
        """
        entries = list(zip(ranking, paragraph_indices, strict=True))
        neural = [self._uses_neural_model(item) for item in ranking]
        likelihoods: Iterator[Likelihood] = iter(())
        if any(neural):
            read = [self._titled[index] for (_, index), is_neural in zip(entries, neural, strict=True) if is_neural]
            *answers, nothing = self._ranker.likelihoods(question, [*read, Passage("")])
            likelihoods = iter(answers)
        by_reader = self._explain_reader(question, entries)
        explanations = []
        for (item, index), is_neural in zip(entries, neural, strict=True):
            if is_neural:
                parts = (
                    Term("section and document", item.details["context"]),
                    *self._embedding_terms(question, index),
                    *_gain_terms(item),
                )
                explanations.append(explain_likelihood(item, next(likelihoods), nothing, model=self._lm, parts=parts))
            else:
                terms = next(by_reader) if self._reader is not None and item.details["read"] else []
                explanations.append(self._explain_term_statistics(question, item, index, terms))
        return explanations

    def _explain_reader(self, question: str, entries: Sequence[tuple[Ranked[Passage], int]]) -> Iterator[list[Term]]:
        """Return the terms of the reader for each entry that it read."""
        if self._reader is None:
            return iter(())
        read = [(item.details, self._titled[index]) for item, index in entries if item.details["read"]]
        return iter(self._reader.explain(question, [passage for _, passage in read], [details for details, _ in read]))

    def _uses_neural_model(self, item: Ranked[Passage]) -> bool:
        return not self._uses_term_statistics and bool(item.details["read"])

    def _explain_term_statistics(
        self, question: str, item: Ranked[Passage], paragraph_index: int, reader_terms: Sequence[Term]
    ) -> Explanation:
        scores, corpus_index = self.question_scores(question), int(self._corpus_indices[paragraph_index])
        gains = _gain_terms(item)
        moved = item.details["total"] - float(scores.totals[corpus_index])
        reason = FOLLOWED if "followed" in item.details else UNREAD
        if moved and ("followed" in item.details or not item.details.get("read", True)):
            gains = [Term(reason, moved)]
        terms = (
            *scores.lexical.explain(corpus_index),
            *self._embedding_terms(question, paragraph_index),
            *reader_terms,
            *gains,
        )
        return Explanation(item.rank, item.score, item.passage.title, terms, max(item.details["tokens"], 1))

    def _embedding_terms(self, question: str, paragraph_index: int) -> tuple[Term, ...]:
        """Return the terms of S that come from embeddings."""
        scores, corpus_index = self.question_scores(question), self._corpus_indices[paragraph_index]
        if scores.cosines is None:
            return ()
        cosine, section_cosine = scores.cosines[:, corpus_index].tolist()
        terms = (
            ("cosine", self._weights.cosine, cosine),
            ("cosine of the section", self._weights.section_cosine, section_cosine),
            ("length", self._weights.log_length, float(scores.log_lengths[corpus_index])),
        )
        return tuple(Term(name, weight * value) for name, weight, value in terms if weight)

    def count_best(self, totals: Sequence[float] | Floats) -> int:
        """Return the number of best paragraphs that maximizes the expected F1, given S of all candidates."""
        temperature = FUSED_TEMPERATURE if self._has_vectors else TEMPERATURE
        if self._is_judged:
            temperature = JUDGED_TEMPERATURE
        return maximize_expected_f1(totals, temperature=temperature)


@dataclass(frozen=True, slots=True, eq=False)
class ParagraphScores:
    """Scores of some paragraphs for one question. Indexing returns a paragraph's mean score and its details.

    Attributes:
        totals: S, shape (paragraphs,).
        n_tokens: Number of tokens in the question.
    """

    totals: Floats
    n_tokens: int
    _details: _Details

    @property
    def means(self) -> Floats:
        """S divided by the number of tokens, shape (paragraphs,)."""
        return self.totals / max(self.n_tokens, 1)

    @property
    def own_totals(self) -> Floats:
        """S without the gain of the complement, shape (paragraphs,)."""
        totals: Floats = self.totals.copy()
        for row, gain in self._details.complements.items():
            totals[row] -= gain
        return totals

    def with_paths(self, paths: Sequence[EvidencePath], row_by_index: Mapping[int, int]) -> ParagraphScores:
        """Return scores in which the last paragraph of a path ranks by the score of the path, behind the first one.

        Args:
            paths: Paths, best first.
            row_by_index: Row of each paragraph that may be evidence, by its index.
        """
        details, totals = copy(self._details), self.totals.copy()
        details.paths = {}
        for path in paths:
            start, end = row_by_index.get(path.start), row_by_index.get(path.end)
            if start is None or end is None:
                continue
            # Paths from one paragraph keep their order.
            limit = self.totals[start] - (1 + len(details.paths)) * MIN_GAP
            gain = float(min(self.totals[start] + path.gain, limit) - totals[end])
            if gain > 0:
                totals[end] += gain
                details.paths[end] = path, gain
        return replace(self, totals=totals, _details=details)

    @property
    def path_by_row(self) -> Mapping[int, EvidencePath]:
        """Path of each paragraph that ranks by the score of a path, by its row."""
        return {row: path for row, (path, _) in self._details.paths.items()}

    def details(self, row: int) -> dict[str, Any]:
        """Return the details of one paragraph, without its total.

        Keys: `tokens` and `nothing_matched`; `matched` with the unigram model; the details of `UPR` with another model;
        `log_likelihood`, `cut_tokens` and `read` with a reader, `log_odds` in place of the first with a judge; `cosine`
        and `section_cosine` with an embedding; `read`, False, if the paragraph was not read; `complement`, what a
        passage gains because it adds to the best one; `link` and `path_gain` at the end of a path.
        """
        return {"tokens": self.n_tokens, **self._details.of_row(row)}

    def __getitem__(self, row: int) -> Scored:
        total = float(self.totals[row])
        return total / max(self.n_tokens, 1), {**self.details(row), "total": total}


class _Details:
    """Details of scored paragraphs by their rows."""

    def __init__(self, nothing_matched: bool, matched: Any, cosines: Floats | None) -> None:
        self.nothing_matched, self.matched, self.cosines = nothing_matched, matched, cosines
        self.by_model: dict[int, dict[str, Any]] = {}
        self.unread_mask: npt.NDArray[np.bool_] | None = None  # shape (paragraphs,); None if all were read
        self.complements: dict[int, float] = {}
        self.paths: dict[int, tuple[EvidencePath, float]] = {}  # with the gain of the total

    def of_row(self, row: int) -> dict[str, Any]:
        details: dict[str, Any] = {"nothing_matched": self.nothing_matched}
        details |= {} if self.matched is None else {"matched": bool(self.matched[row])}
        details |= self.by_model.get(row, {})
        if self.cosines is not None:
            cosine, section_cosine = self.cosines[:, row].tolist()
            details |= {"cosine": cosine, "section_cosine": section_cosine, "nothing_matched": False}
        if gain := self.complements.get(row):
            details["complement"] = gain
        if row in self.paths:
            path, path_gain = self.paths[row]
            details |= {"link": {"kind": path.kind, "text": path.text}, "path_gain": path_gain}
        is_unread = self.unread_mask is not None and bool(self.unread_mask[row])
        return {**details, **({"read": False} if is_unread else {})}


def _gain_terms(item: Ranked[Passage]) -> list[Term]:
    """Return the terms of S that a passage gains because it adds to the best one, and because a link leads to it."""
    names = (("complement", COMPLEMENT), ("path_gain", REACHED))
    return [Term(name, item.details[key]) for key, name in names if key in item.details]


def group_near_duplicates(texts: Iterable[str], most: int) -> dict[int, list[int]]:
    """Group texts that say the same, until `most` groups are complete.

    Two texts say the same if they have the same numbers and share nine of ten words: a licence in many files, a table
    that is printed twice.

    Args:
        texts: The texts, best first. Those after the last group are not read.
        most: Largest number of groups.

    Returns:
        By index of the first text of each group, the indices of its repetitions.

    >>> group_near_duplicates(["Sales were 5 million.", "SALES: were 5 million", "Sales were 6 million."], 9)
    {0: [1], 2: []}
    """
    groups: dict[int, list[int]] = {}
    candidates: dict[tuple[str, ...], list[tuple[int, int, Counter[str]]]] = {}  # by numbers in the text
    for index, text in enumerate(texts):
        counts = Counter(words(text.casefold()))
        numbers = tuple(sorted(word for word in counts.elements() if word[0].isdigit()))
        similar = candidates.setdefault(numbers, [])
        size = counts.total()
        for first_index, first_size, first_counts in similar:
            least = 9 * (size + first_size)  # of 20 shared words; the shorter text limits the number of shared words
            if 20 * min(size, first_size) >= least and 20 * (counts & first_counts).total() >= least:
                groups[first_index].append(index)
                break
        else:
            if len(groups) == most:
                break
            groups[index] = []
            similar.append((index, size, counts))
    return groups


def load_evidence_model(model: str | LanguageModel = "unigram", **options: Any) -> LanguageModel:
    """Load a language model. The unigram model gets the μ that suits paragraphs under their headings.

    >>> load_evidence_model().options
    {'mu': 1000.0}
    """
    return load_language_model(model, **({"mu": MU} if model == "unigram" else {}) | options)


def maximize_expected_f1(
    totals: Sequence[float] | Floats, expected: float = EXPECTED, temperature: float = TEMPERATURE
) -> int:
    """Return the number of best paragraphs that maximizes the expected F1.

    Args:
        totals: S of every paragraph, in any order.
        expected: m.
        temperature: T.

    >>> maximize_expected_f1([-10.0, -30.0]), maximize_expected_f1([-10.0, -10.0, -31.0]), maximize_expected_f1([])
    (1, 2, 0)
    """
    if not len(totals):
        return 0
    scores = np.sort(np.asarray(totals, dtype=np.float64))[::-1]
    posterior = np.exp((scores - scores[0]) / temperature)
    chances = np.minimum(1.0, expected * posterior / posterior.sum())
    f1 = 2 * np.cumsum(chances) / (np.arange(1, len(scores) + 1) + chances.sum())
    return int(np.argmax(f1)) + 1
