"""Decide if documents can answer a question, and how probably.

A question without an answer belongs to one of two cases. If the documents are about another subject, terms and cosines
show this, and `found` is False. If the question sounds as if its answer were here, only a reader can judge: `found` is
None, and `confidence` is a calibrated probability.

    P(subject)          = σ(a · (1, c, d, u [, s]))       the documents are about the subject of the question
    P(answer | subject) = σ(b · (1, r [, s]))             one of them answers it
    confidence          = P(subject) · P(answer | subject)

    c   coverage: largest share of the question's content words that one passage contains
    d   document coverage: largest share of them that one document uses in many of its passages, at most .3
    u   1 if the question has a name that no passage contains, else 0
    r   1 if one passage contains all content words, else 0; 0 if the question has none
    s   similarity: the best cosine, on a scale where unrelated texts have 0 and a question and its answer 1. It counts
        only if the encoder separates both clearly (`EncoderScale`)

Content words are all terms except stop words. For c, a word counts √i(w), three times that for names, with
i(w) = ln(1 + n / (n_w + 1/2)) if n_w of n passages contain it. For d, it counts i(w) · min(1, v(w, d) / .3), where v is
the share of the document's passages that contain it. A passage contains its headings, and the name and the beginning of
its document. Consecutive paragraphs count as one passage up to 200 words, so that results do not depend on the unit.

`found` is never False if r = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from drillrank.data import read_table, read_words
from drillrank.drilldown.question_scores import QuestionScores
from drillrank.text import terms
from drillrank.vectors import Embed, Floats, Integers, embedded, of_unit_length

# Fitted by `python -m benchmarks not_here`: intercept, c, d, u and, with an encoder, s.
SUBJECT_WEIGHTS = (-6.4, 6.5, 18.7, -1.3)
SUBJECT_WEIGHTS_WITH_ENCODER = (-11.3, 12.1, 4.2, -2.2, 12.6)
LEAST_SUBJECT = 0.25  # P(subject) below which `found` is False
LEAST_SUBJECT_WITH_ENCODER = 0.45
# Intercept, r and, with an encoder, s.
ANSWER_WEIGHTS = (0.2, 1.2)
ANSWER_WEIGHTS_WITH_ENCODER = (-1.7, 1.7, 2.7)
LEAST_ANSWER = 0.75  # confidence from which `found` is True

PASSAGE_WORDS = 200
NAME_WEIGHT = 3.0
FULL_SHARE = 0.3  # share of a document's passages at which it is about a word
MAX_DOCUMENT_COVERAGE = 0.3
FREQUENT_SHARE = 0.25  # share of passages that makes a word a stop word, in languages without a list
LEAST_SEPARATION = 5.0  # 8.4 of all-MiniLM-L6-v2, 9.5 of all-mpnet-base-v2, 3.0 of a static table distilled from MiniLM


@dataclass(frozen=True, slots=True, eq=False)
class QuestionMatches:
    """Matches of a question in the paragraphs of all documents.

    Attributes:
        words: Terms of the question in order, with repetitions.
        paragraphs: Indices of the paragraphs that contain each term, headings included.
        lengths: Number of terms in each paragraph, shape (paragraphs,).
        document_of: Index of each paragraph's document, ascending.
        in_names: 1 if the name or the beginning of a document contains the term, else 0, shape (words, documents).
        capitalized: 1 if the question writes the term as a name, else 0, shape (words,).
        language: Language of the terms.
        cosines: Cosine of the question with each paragraph that has a vector. None without an encoder.
        scale: Scale of the encoder's cosines. None ignores `cosines`.
    """

    words: Sequence[str]
    paragraphs: Sequence[Integers]
    lengths: Floats
    document_of: Integers
    in_names: Floats
    capitalized: Floats
    language: str = "english"
    cosines: Floats | None = None
    scale: EncoderScale | None = None


@dataclass(frozen=True, slots=True)
class EncoderScale:
    """Typical cosines of an encoder.

    Attributes:
        unrelated: Mean cosine of a question and a text about another subject.
        related: Mean cosine of a question and a text that answers it.
        spread: Standard deviation of the cosines of unrelated texts.
    """

    unrelated: float
    related: float
    spread: float = 0.0

    def similarity(self, cosine: float) -> float | None:
        """Return a cosine on a scale from 0 (unrelated) to 1 (related). None if the encoder hardly separates them.

        >>> EncoderScale(0.25, 0.75).similarity(0.5)
        0.5
        """
        width = self.related - self.unrelated
        is_separated = width > max(LEAST_SEPARATION * self.spread, 0.01)
        return (cosine - self.unrelated) / width if is_separated else None


@dataclass(frozen=True, slots=True)
class Finding:
    """Judgment on a question and the documents.

    Attributes:
        found: False if the documents are about another subject, True if one of them probably answers the question, None
            if terms and cosines do not decide.
        confidence: Probability that the documents answer the question.
    """

    found: bool | None
    confidence: float


@dataclass(frozen=True, slots=True)
class FindingFeatures:
    """Features of a question and the documents, as in the formulas of this module.

    Attributes:
        coverage: c.
        document_coverage: d.
        has_unknown_name: u.
        is_covered: r.
        similarity: s. None without an encoder.
    """

    coverage: float
    document_coverage: float
    has_unknown_name: float
    is_covered: float
    similarity: float | None


def match_question(
    scores: QuestionScores, language: str, scale: EncoderScale | None, excluded_documents: Sequence[int] = ()
) -> QuestionMatches:
    """Return the matches of a question in the paragraphs that were scored for it.

    Args:
        scores: Scores of the paragraphs.
        language: Language of the stemmer.
        scale: Scale of the encoder's cosines; None ignores them.
        excluded_documents: Indices of documents that are not read, so that their matches do not count.
    """
    counts = scores.lexical.counts
    document_of = counts.document_of[counts.section_of]
    is_read = ~np.isin(document_of, list(excluded_documents))
    in_names = np.maximum(counts.openings, counts.names)
    in_names[:, list(excluded_documents)] = 0
    return QuestionMatches(
        counts.words,
        [paragraph_indices[is_read[paragraph_indices]] for paragraph_indices, _ in counts.paragraphs],
        counts.lengths,
        document_of,
        in_names,
        counts.capitalized,
        language,
        None if scores.cosines is None else scores.cosines[0][is_read],
        scale,
    )


def judge(matches: QuestionMatches) -> Finding:
    """Judge if the documents can answer a question.

    >>> matches = QuestionMatches(["oak", "bark"], [np.array([0]), np.array([0])], np.array([9.0]), np.array([0]),
    ...     np.zeros((2, 1)), np.zeros(2))
    >>> judge(matches).found is False
    False
    """
    if not len(matches.lengths):
        return Finding(False, 0.0)
    return judge_features(compute_features(matches))


def judge_features(features: FindingFeatures) -> Finding:
    """Judge a question by its features."""
    subject_features = (features.coverage, features.document_coverage, features.has_unknown_name)
    if features.similarity is None:
        subject = _logistic(SUBJECT_WEIGHTS, *subject_features)
        answer = _logistic(ANSWER_WEIGHTS, features.is_covered)
        least_subject = LEAST_SUBJECT
    else:
        subject = _logistic(SUBJECT_WEIGHTS_WITH_ENCODER, *subject_features, features.similarity)
        answer = _logistic(ANSWER_WEIGHTS_WITH_ENCODER, features.is_covered, features.similarity)
        least_subject = LEAST_SUBJECT_WITH_ENCODER
    confidence = subject * answer
    if subject < least_subject and not features.is_covered:
        return Finding(False, confidence)
    return Finding(True if confidence >= LEAST_ANSWER else None, confidence)


def describe_finding(found: bool | None, confidence: float) -> str:
    """Describe a finding in one sentence, for agents and the command line.

    >>> describe_finding(None, 0.5)
    'These passages are the nearest; drillrank cannot judge if they answer the question (probability 50%).'
    """
    if found is False:
        return "The documents speak of other subjects; the nearest passages follow."
    if found:
        return f"These passages probably answer the question (probability {confidence:.0%})."
    return (
        "These passages are the nearest; drillrank cannot judge if they answer the question "
        f"(probability {confidence:.0%})."
    )


# --- Features


def compute_features(matches: QuestionMatches) -> FindingFeatures:
    """Compute the features of a question and at least one paragraph."""
    passage_of = _join_paragraphs(matches.document_of, matches.lengths)
    n_passages, n_documents = int(passage_of[-1]) + 1, int(matches.document_of.max()) + 1
    passage_documents = np.zeros(n_passages, dtype=np.intp)
    passage_documents[passage_of] = matches.document_of
    document_sizes = np.maximum(np.bincount(passage_documents, minlength=n_documents), 1)
    covered, covered_completely = np.zeros(n_passages), np.ones(n_passages, dtype=bool)
    document_coverage = np.zeros(n_documents)
    weights = rarities = 0.0
    has_unknown_name = False
    for index in _select_content_words(matches, passage_of, n_passages):
        passages = np.unique(passage_of[matches.paragraphs[index]])
        contains = np.zeros(n_passages, dtype=bool)
        contains[passages] = True
        rarity = math.log1p(n_passages / (len(passages) + 0.5))
        shares = np.bincount(passage_documents[passages], minlength=n_documents) / document_sizes
        document_coverage += rarity * np.minimum(shares / FULL_SHARE, 1)
        rarities += rarity
        is_name = bool(matches.capitalized[index])
        contains |= matches.in_names[index][passage_documents] > 0
        has_unknown_name |= is_name and not contains.any()
        weight = math.sqrt(rarity) * (NAME_WEIGHT if is_name else 1)
        covered += weight * contains
        covered_completely &= contains
        weights += weight
    return FindingFeatures(
        float(covered.max() / weights) if weights else 1.0,
        min(float(document_coverage.max() / rarities), MAX_DOCUMENT_COVERAGE) if weights else MAX_DOCUMENT_COVERAGE,
        float(has_unknown_name),
        float(covered_completely.any()) if weights else 0.0,
        _best_similarity(matches),
    )


def _join_paragraphs(document_of: Integers, lengths: Floats) -> Integers:
    """Return the index of each paragraph's passage: paragraphs of one document with up to about 200 words."""
    before = np.cumsum(lengths) - lengths  # words before each paragraph
    starts = np.flatnonzero(np.diff(document_of, prepend=-1))
    before -= np.repeat(before[starts], np.diff([*starts, len(lengths)]))
    blocks = (before // PASSAGE_WORDS).astype(np.intp)
    is_new = np.diff(document_of, prepend=document_of[0]).astype(bool) | np.diff(blocks, prepend=0).astype(bool)
    passages: Integers = np.cumsum(is_new)
    return passages


def _select_content_words(matches: QuestionMatches, passage_of: Integers, n_passages: int) -> list[int]:
    """Return the index of the first occurrence of each content word."""
    stop_words = read_stop_words(matches.language)
    first_indices = {word: index for index, word in reversed([*enumerate(matches.words)])}
    if stop_words:
        return sorted(index for word, index in first_indices.items() if word not in stop_words)
    limit = max(FREQUENT_SHARE * n_passages, 1)
    return sorted(
        index for index in first_indices.values() if len(np.unique(passage_of[matches.paragraphs[index]])) <= limit
    )


@lru_cache(maxsize=16)
def read_stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language, as terms. Empty for a language without a list."""
    words = read_table("stop_words.tsv").get(language, "")
    if language == "english":
        words = " ".join([words, *read_words("english_stop_words.txt")])
    return frozenset(terms(words, language))


# --- Cosines


def measure_encoder(embed: Embed) -> EncoderScale:
    """Measure the cosines of related and unrelated texts, with 24 questions and answers of different subjects."""
    pairs = read_table("reference_pairs.tsv")
    questions = of_unit_length(embedded(getattr(embed, "questions", embed), [*pairs]))
    cosines = questions @ of_unit_length(embedded(embed, [*pairs.values()])).T  # [n_pairs, n_pairs]
    unrelated = cosines[~np.eye(len(pairs), dtype=bool)]
    return EncoderScale(float(unrelated.mean()), float(np.trace(cosines)) / len(pairs), float(unrelated.std()))


def _best_similarity(matches: QuestionMatches) -> float | None:
    """Return the best cosine on the encoder's scale. None without an encoder, or if its cosines say nothing."""
    if matches.cosines is None or matches.scale is None:
        return None
    cosines = matches.cosines[np.isfinite(matches.cosines)]
    return matches.scale.similarity(float(cosines.max())) if len(cosines) else None


def _logistic(weights: Sequence[float], *features: float) -> float:
    """Return σ of the weighted sum of the features and the intercept, which is the first weight."""
    return 1 / (1 + math.exp(-math.fsum([weights[0], *map(math.prod, zip(weights[1:], features, strict=True))])))
