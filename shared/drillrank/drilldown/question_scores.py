"""One score from lexical and embedding evidence, for all paragraphs of the documents.

    S(p) = lexical S(p) + γ cos(q, p) + δ cos(q, section of p) + η log |p|

`hierarchical_scores` computes the lexical score. The other terms need an encoder: the cosine of the question's vector
with the paragraph's and with the mean of its section's paragraphs, and a prior that grows with the paragraph's length
in words, because evidence is seldom a short line. A passage has its headings in its vector and is not short: for
passages γ is 40, and δ and η are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.corpus.documents import Unit
from drillrank.drilldown.hierarchical_scores import HierarchicalScores
from drillrank.errors import InvalidInput
from drillrank.vectors import Floats, Integers, embedded, of_unit_length

Floats32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbeddingWeights:
    """Weights of the embedding terms.

    Attributes:
        cosine: γ.
        section_cosine: δ.
        log_length: η.
    """

    cosine: float
    section_cosine: float
    log_length: float


EMBEDDING_WEIGHTS: Mapping[Unit, EmbeddingWeights] = {
    # Chosen on the tuning half of QASPER, with all-MiniLM-L6-v2. From 6 to 12 and from 0 to 8 they are about as good.
    "paragraph": EmbeddingWeights(cosine=8.0, section_cosine=4.0, log_length=1.0),
    # Chosen on the tuning folder of `benchmarks.folders`. From 30 to 60 it is about as good.
    "passage": EmbeddingWeights(cosine=40.0, section_cosine=0.0, log_length=0.0),
}


class ParagraphVectors:
    """Vectors of all paragraphs, for the cosines of questions.

    Args:
        encoder: Function from texts to vectors. Questions go through its method `questions` if it has one.
        vectors: Vectors of the paragraphs, shape (paragraphs, dimensions). A row of NaN stands for a missing vector,
            whose cosines are 0.
        section_of: Index of each paragraph's section, starting at 0. None if the weights ignore sections.
    """

    def __init__(self, encoder: Any, vectors: npt.NDArray[np.floating[Any]], section_of: Integers | None) -> None:
        self.encoder = encoder
        self._embed_questions = getattr(encoder, "questions", encoder)
        # Only rows of other lengths are divided, so that stored vectors of unit length are used as they are.
        vectors = np.nan_to_num(vectors)
        lengths = np.linalg.norm(vectors, axis=1)
        if not np.allclose(lengths[lengths > 0], 1, atol=1e-5):
            vectors = of_unit_length(vectors.astype(np.float64))
        self._paragraphs: Floats32 = vectors.astype(np.float32)
        self._sections: Floats32 | None = None
        if section_of is not None:
            sums = np.zeros((int(section_of.max(initial=-1)) + 1, vectors.shape[1]))
            np.add.at(sums, section_of, self._paragraphs)
            self._sections, self._section_of = of_unit_length(sums).astype(np.float32), section_of

    def compute_cosines(self, question: str) -> Floats:
        """Return the cosines with paragraphs and with their sections, shape (2, paragraphs).

        Raises:
            InvalidInput: The question's vector has another number of dimensions than those of the paragraphs.
        """
        n_paragraphs, n_dimensions = self._paragraphs.shape
        if not n_paragraphs:
            return np.zeros((2, 0))
        vector = of_unit_length(embedded(self._embed_questions, [question]))[0].astype(np.float32)
        if len(vector) != n_dimensions:
            raise InvalidInput(
                f"embed returned {len(vector)} dimensions for the question, the paragraphs have {n_dimensions}. "
                "Prepare the documents with the same encoder."
            )
        cosines = (self._paragraphs @ vector).astype(np.float64)
        if self._sections is None:
            return np.array([cosines, np.zeros(len(cosines))])
        return np.array([cosines, (self._sections @ vector).astype(np.float64)[self._section_of]])


@dataclass(frozen=True, eq=False, slots=True)
class KnownCosines:
    """Cosines of one question, computed elsewhere.

    Attributes:
        paragraphs: Cosine of each paragraph, shape (paragraphs,).
        section_of: Index of each paragraph's section. None if the weights ignore sections.
    """

    paragraphs: Floats
    section_of: Integers | None

    def compute_cosines(self, _question: str) -> Floats:
        """Return the cosines with paragraphs and with their sections, shape (2, paragraphs).

        The cosine of a section is the highest of its paragraphs.
        """
        if self.section_of is None or not len(self.paragraphs):
            return np.array([self.paragraphs, np.zeros(len(self.paragraphs))])
        of_sections = np.full(int(self.section_of.max()) + 1, -1.0)
        np.maximum.at(of_sections, self.section_of, self.paragraphs)
        return np.array([self.paragraphs, of_sections[self.section_of]])


@dataclass(frozen=True, eq=False, slots=True)
class QuestionScores:
    """Scores of all paragraphs for one question.

    Attributes:
        lexical: Scores from term statistics.
        totals: S, shape (paragraphs,).
        cosines: Cosines with paragraphs and with their sections, shape (2, paragraphs). None without an encoder.
        log_lengths: log |p|, shape (paragraphs,).
    """

    lexical: HierarchicalScores
    totals: Floats
    cosines: Floats | None
    log_lengths: Floats


def combine_scores(
    lexical: HierarchicalScores,
    question: str,
    vectors: ParagraphVectors | KnownCosines | None,
    weights: EmbeddingWeights,
) -> QuestionScores:
    """Add the embedding terms to lexical scores.

    Args:
        lexical: Scores from term statistics.
        question: The question.
        vectors: Vectors of the same paragraphs; None without an encoder.
        weights: Weights of the embedding terms.
    """
    log_lengths = np.log(np.maximum(lexical.counts.text_lengths, 1))
    if vectors is None:
        return QuestionScores(lexical, lexical.totals, None, log_lengths)
    cosines = vectors.compute_cosines(question)
    added = np.array([weights.cosine, weights.section_cosine]) @ cosines + weights.log_length * log_lengths
    return QuestionScores(lexical, lexical.totals + added, cosines, log_lengths)


class QuestionScorer:
    """Scores all paragraphs for one question after the other. The scores of the last question are kept.

    Args:
        score_lexically: Function from a question to the lexical scores.
        vectors: Vectors of the paragraphs; None without an encoder.
        weights: Weights of the embedding terms.
    """

    def __init__(
        self,
        score_lexically: Callable[[str], HierarchicalScores],
        vectors: ParagraphVectors | KnownCosines | None,
        weights: EmbeddingWeights,
    ) -> None:
        self._score_lexically, self._vectors, self._weights = score_lexically, vectors, weights
        self._last: tuple[str, QuestionScores] | None = None

    def with_cosines(self, cosines: Floats, section_of: Integers) -> QuestionScorer:
        """Return the scorer for one question whose cosines are known without an encoder.

        Args:
            cosines: Cosine of each paragraph with the question, shape (paragraphs,).
            section_of: Index of each paragraph's section, shape (paragraphs,).
        """
        vectors = KnownCosines(cosines, section_of if self._weights.section_cosine else None)
        return QuestionScorer(self._score_lexically, vectors, self._weights)

    def __call__(self, question: str) -> QuestionScores:
        """Return the scores of a question."""
        last = self._last
        if last is None or last[0] != question:
            scores = combine_scores(self._score_lexically(question), question, self._vectors, self._weights)
            self._last = last = question, scores
        return last[1]
