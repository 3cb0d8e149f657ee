"""Check if passages support the sentences of an answer.

    support = σ(b · (1, e, o)), halved if a number, a name or a negation does not fit

    e   explained: share of the sentence's information that at most two windows of the passages explain together
    o   order: share of the pairs of adjacent words that a passage has in the same order

A window is a sentence of a passage or two neighbors, with the passage's title. The information of a word, log p(w |
window) - log p(w), is ln(1 + (n + 1) / (n_w + 1/2)) in a window that contains it, if n_w of n windows do, and 0 in
another. Stop words count in o alone.

A number or name does not fit if no window has it, or if another window explains the words near it much better than each
window with it. In a second passage, it may fit to the words that the best window lacks.
Negations do not fit if only one of the sentence and its best window has one or, for sentences that are
nearly copies, if their numbers differ.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from drillrank.drilldown.confidence import read_stop_words
from drillrank.errors import InvalidInput
from drillrank.generation.claims import Claim, Token, describe_row, read_tokens, split_claims, split_sentences_and_rows
from drillrank.passages import Passage, as_passages
from drillrank.text import check_language

# Fitted on the tuning sets by `python -m benchmarks support --steps fit`: intercept, e, o.
WEIGHTS = (-2.2, 3.9, 0.4)
SUPPORTED = 0.5

MAX_TERMS = 400  # of a sentence
CONTEXT_WORDS = 4.0  # distance at which a word counts 1/e as context of a number or name
MAX_DISTANCE = 12  # words farther away do not count
LEAST_FIT = 0.8  # share of the best explanation of the words near a number or name that a window with it must reach
LEAST_NEAR = 0.1  # share of the words near a number that its own sentence must explain
LEAST_ADDED = 0.1  # share of a sentence that a second passage must add
NEARLY_COPY = 0.6  # e from which the number of negations counts, not only if there is one
_NEGATION_REACH = 3  # words after a negation in a window, two before it, of which one must be in the sentence
_NEGATIONS = frozenset(
    ("not", "no", "never", "none", "nor", "neither", "without", "lack", "fail", "unabl", "nobodi", "noth", "nowher")
)


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """Judgment on one sentence of an answer.

    Attributes:
        sentence: The sentence.
        support: Estimated probability that the passages support it, from 0 to 1.
        supported: True if `support` is at least 0.5.
        passages: The one or two passages that explain most of the sentence, best first. Empty if no passage has a word
            of it.
        doubts: Numbers and names that no passage has near the words that are near them in the sentence, and "negation"
            if the sentence denies what the passages say, or the reverse.
    """

    sentence: str
    support: float
    supported: bool
    passages: tuple[Passage, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SupportFeatures:
    """Features of a sentence and the passages, as in the formula of this module.

    Attributes:
        explained: e.
        order: o.
        passage_indices: Indices of the passages that explain the sentence, best first.
        doubts: Numbers, names and "negation" that do not fit.
    """

    explained: float
    order: float
    passage_indices: tuple[int, ...]
    doubts: tuple[str, ...]


def check_support(
    answer: str,
    passages: Iterable[Passage | str],
    *,
    language: str = "english",
) -> list[SentenceSupport]:
    """Check for each sentence of an answer if passages support it, alone or two of them together.

    Nothing but the passages is read. A sentence that differs from its source in a number, a name or a negation is not
    supported. A sentence without content words is.

    Args:
        answer: The answer; any text.
        passages: Passages, or strings.
        language: Language of the passages, for the stemmer and the stop words: one of `drillrank.text.LANGUAGES`.

    Returns:
        One judgment for each sentence, in order. Empty for a blank answer.

    Raises:
        InvalidInput: The answer is not a string, an item is not a passage, or the language is unknown.

    >>> passages = ["The Rhine is 1,233 km long. It flows through Basel.", "Basel has two airports."]
    >>> for item in check_support("The Rhine flows through Basel. It is 1,320 km long.", passages):
    ...     print(item.supported, item.doubts)
    True ()
    False ('1,320',)
    """
    if not isinstance(answer, str):
        raise InvalidInput(f"answer must be a string, got {answer!r:.200}. Pass its text.")
    evidence = SupportEvidence(as_passages(passages), check_language(language))
    judgments = []
    for claim in split_claims(answer):
        features = evidence.compute_claim_features(claim)
        support = combine_features(features)
        supporting = tuple(evidence.passages[index] for index in features.passage_indices)
        judgments.append(SentenceSupport(claim.sentence, support, support >= SUPPORTED, supporting, features.doubts))
    return judgments


def combine_features(features: SupportFeatures) -> float:
    """Return the estimated probability of support."""
    intercept, explained, order = WEIGHTS
    log_odds = intercept + explained * features.explained + order * features.order
    probability = 1 / (1 + math.exp(-log_odds))
    return probability / 2 if features.doubts else probability


@dataclass(frozen=True, slots=True)
class _Window:
    """Sentence of a passage, or two neighbors, as terms, and the terms of the passage's title."""

    passage_index: int
    terms: tuple[str, ...]
    vocabulary: frozenset[str]
    is_sentence: bool


class SupportEvidence:
    """Passages, prepared to check many sentences.

    Args:
        passages: The passages.
        language: Language of the stemmer.
    """

    def __init__(self, passages: Sequence[Passage], language: str = "english") -> None:
        self.passages, self._language = passages, language
        self._windows: list[_Window] = []
        self._names: set[str] = set()
        self._lower_case: set[str] = set()
        self._word_pairs: set[tuple[str, str]] = set()
        for index, passage in enumerate(passages):
            self._add_windows(index, passage)
        self._windows_by_term: dict[str, list[int]] = defaultdict(list)
        for index, window in enumerate(self._windows):
            for term in window.vocabulary:
                self._windows_by_term[term].append(index)

    def _add_windows(self, passage_index: int, passage: Passage) -> None:
        """Add the windows of a passage."""
        title_terms = [token.term for token in read_tokens(passage.title, self._language)]
        previous_terms: tuple[str, ...] = ()
        for sentence, row in split_sentences_and_rows(passage.text):
            tokens = read_tokens(describe_row(row) if row else sentence, self._language)
            self._names.update(token.term for token in tokens if token.is_name)
            self._lower_case.update(token.term for token in tokens if token.form[:1].islower())
            sentence_terms = tuple(token.term for token in tokens)
            self._word_pairs.update(pairwise(sentence_terms))
            for window_terms in (sentence_terms, previous_terms + sentence_terms)[: 2 if previous_terms else 1]:
                vocabulary = frozenset((*title_terms, *window_terms))
                self._windows.append(_Window(passage_index, window_terms, vocabulary, window_terms is sentence_terms))
            previous_terms = sentence_terms

    def compute_claim_features(self, claim: Claim) -> SupportFeatures:
        """Compute the features of a claim. Column names count if the passages contain all of them."""
        has_header = all(token.term in self._windows_by_term for token in read_tokens(claim.header, self._language))
        return self.compute_features(claim.text_with_header if has_header else claim.text)

    def compute_features(self, sentence: str) -> SupportFeatures:
        """Compute the features of a sentence."""
        tokens = read_tokens(sentence, self._language)[:MAX_TERMS]
        information_by_term = {token.term: self._information(token.term) for token in tokens}
        information_by_term = {term: value for term, value in information_by_term.items() if value}
        total = sum(information_by_term.values())
        first, second = self._find_best_windows(information_by_term)
        windows = [self._windows[index] for index in (first, second) if index is not None]
        explained = sum(
            value for term, value in information_by_term.items() if any(term in one.vocabulary for one in windows)
        )
        share = explained / total if total else 1.0
        pairs = list(pairwise(token.term for token in tokens))
        order = sum(pair in self._word_pairs for pair in pairs) / len(pairs) if pairs else share
        doubts = self._find_misfits(tokens, information_by_term, windows[0].vocabulary if windows else frozenset())
        if windows and _differ_in_negations(tokens, windows[0], information_by_term, share, self._language):
            doubts = (*doubts, "negation")
        passage_indices = tuple(dict.fromkeys(window.passage_index for window in windows))
        return SupportFeatures(share, order, passage_indices, doubts)

    def _information(self, term: str) -> float:
        """Return the information of a term, 0 for a stop word."""
        if term in read_stop_words(self._language) and not term.isdigit():
            return 0.0
        return math.log1p((len(self._windows) + 1) / (len(self._windows_by_term.get(term, ())) + 0.5))

    def _find_best_windows(self, information_by_term: Mapping[str, float]) -> tuple[int | None, int | None]:
        """Return the index of the window that explains most, and of the one that adds most, or None."""
        explained = self._explain(information_by_term.items())
        if not explained:
            return None, None
        # Of windows that explain the same, a single sentence is best.
        first = max(explained, key=lambda index: (explained[index], -len(self._windows[index].terms), -index))
        vocabulary = self._windows[first].vocabulary
        added = self._explain(item for item in information_by_term.items() if item[0] not in vocabulary)
        second = max(added, key=lambda index: (added[index], -index), default=None)
        if second is not None and added[second] < LEAST_ADDED * sum(information_by_term.values()):
            second = None
        return first, second

    def _explain(self, weighted_terms: Iterable[tuple[str, float]]) -> dict[int, float]:
        """Return the sum of the weights of the terms in each window that contains one of them."""
        explained: dict[int, float] = defaultdict(float)
        for term, weight in weighted_terms:
            for index in self._windows_by_term.get(term, ()):
                explained[index] += weight
        return explained

    def _find_misfits(
        self, tokens: Sequence[Token], information_by_term: Mapping[str, float], vocabulary: frozenset[str]
    ) -> tuple[str, ...]:
        """Return the numbers and names that do not fit.

        Args:
            tokens: Words of the sentence.
            information_by_term: Information of its content words.
            vocabulary: Terms of its best window. A fact of another one fits there if it fits to the rest of the words.
        """
        misfits: dict[str, None] = {}
        names = self._names - self._lower_case
        has_capitals = any(token.form != token.form.lower() for token in tokens)
        facts = {
            token.term
            for token in tokens
            if token.is_number
            or token.is_name
            or (token.term in names and (not has_capitals or token.form[:1].isupper()) and len(token.form) > 1)
        }
        for index, token in enumerate(tokens):
            if token.term not in facts or token.term not in information_by_term:
                continue
            weight_by_term: dict[str, float] = defaultdict(float)
            first = max(index - MAX_DISTANCE, 0)
            for other_index, other in enumerate(tokens[first : index + MAX_DISTANCE + 1], start=first):
                if other.term != token.term:
                    nearness = math.exp(-abs(other_index - index) / CONTEXT_WORDS)
                    weight_by_term[other.term] += nearness * information_by_term.get(other.term, 0.0)
            rest = {
                term: weight for term, weight in weight_by_term.items() if weight and term not in vocabulary | facts
            }
            if not self._fits(token, weight_by_term) and not (self._explain(rest.items()) and self._fits(token, rest)):
                misfits[token.form] = None
        return tuple(misfits)

    def _fits(self, token: Token, weight_by_term: Mapping[str, float]) -> bool:
        """Return True if a window with a number or name explains the words near it about as well as any window.

        A sentence with a number must explain some of these words itself: its neighbor may have another number.
        """
        explained = self._explain(weight_by_term.items())
        indices = self._windows_by_term.get(token.term, [])
        if token.is_number and any(weight_by_term.values()):
            in_sentence = [explained.get(index, 0.0) for index in indices if self._windows[index].is_sentence]
            if max(in_sentence, default=0.0) < LEAST_NEAR * sum(weight_by_term.values()):
                return False
        best_with_fact = max((explained.get(index, 0.0) for index in indices), default=0.0)
        return bool(indices) and best_with_fact >= LEAST_FIT * max(explained.values(), default=0.0)


def _differ_in_negations(
    tokens: Sequence[Token], window: _Window, information_by_term: dict[str, float], share: float, language: str
) -> bool:
    """Return True if only one of a sentence and a window is negated, or if near copies have unequal negations.

    A negation of the window must occur in the sentence if most content words next to it do. It may, if one does.
    """
    ignored = read_stop_words(language) | _NEGATIONS
    pairs = set(pairwise(token.term for token in tokens))
    n_required = n_allowed = 0
    for index, term in enumerate(window.terms):
        if term in _NEGATIONS:
            is_same = not pairs.isdisjoint(pairwise(window.terms[max(index - 1, 0) : index + 2]))
            neighbors = window.terms[max(index - 2, 0) : index + 1 + _NEGATION_REACH]
            is_shared = [other in information_by_term for other in neighbors if other not in ignored]
            n_required += is_same or 2 * sum(is_shared) > len(is_shared)
            n_allowed += is_same or any(is_shared)
    in_sentence = sum(token.term in _NEGATIONS for token in tokens)
    if share <= NEARLY_COPY:
        in_sentence, n_required, n_allowed = (min(count, 1) for count in (in_sentence, n_required, n_allowed))
    return not n_required <= in_sentence <= n_allowed
