"""Evidence without an LLM: which paragraphs, and how many.

    S(p) = Σ_t log p(q_t | p) + which document   [ + γ cos(q, p) + δ cos(q, section of p) + log |p| ]
    P(p | q) = exp(S(p) / T) / Σ_p' exp(S(p') / T)

The first two terms are of `drillrank.drilldown.levels`. Another language model than the unigram model reads the best
paragraphs by their words, under their headings: its likelihood takes the place of that of the paragraph's words alone,
and what section and document add stays. The terms in brackets are there if texts are embedded: the cosine of the
question's vector with the paragraph's and with the mean of its section's paragraphs, which is context, and a prior that
grows with the paragraph's length in words, as evidence is seldom a short line. From the posterior P, evidence is as
many of the best paragraphs as make the expected F1 largest, where m paragraphs are expected in all:

    π(p) = min(1, m P(p | q)),    n = argmax_n 2 Σ_{i<=n} π(p_i) / (n + Σ_p π(p))
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from drillrank.drilldown.levels import MU, Levels, log_posteriors
from drillrank.explanation import Explanation, Term
from drillrank.likelihood import LanguageModel, Likelihood, load_language_model
from drillrank.likelihood.unigram import UnigramModel
from drillrank.passages import Passage, Ranked
from drillrank.rerank.base import UNREAD, Scored, likelihood_explained
from drillrank.rerank.upr import UPR
from drillrank.text import words
from drillrank.vectors import Embed, Floats, Integers, embedded, of_unit_length, top

FOLLOWED = "what points here"
READ = 50  # paragraphs that a neural model reads, best by their words
# Chosen on the tuning half of QASPER, with the unigram model; T hardly matters by a factor of two.
TEMPERATURE = 2.0  # T
EXPECTED = 2.0  # m
# With embeddings, those of all-MiniLM-L6-v2; from 6 to 12 and from 0 to 8 the weights are about as good.
FUSED_TEMPERATURE = 2.5  # T
COSINE_WEIGHT = 8.0  # γ
SECTION_WEIGHT = 4.0  # δ


class Evidence:
    """Paragraphs, made ready for scoring.

    Args:
        paragraphs: What a model reads, as a reader sees it; `titles` are what each stands under.
        lm: A language model; fitted, if it is lexical.
        levels: From a question to the levels of the same paragraphs, and perhaps of others.
        vectors: Of the paragraphs that are embedded, without their headings.
        among: Positions of these, rising; the others follow them, in the order of their words.
        places: Of the paragraphs among all that `levels` has.
    """

    def __init__(
        self,
        paragraphs: Sequence[Passage],
        titles: Sequence[str],
        lm: LanguageModel,
        levels: Callable[[str], Levels],
        vectors: Vectors | None,
        among: Integers,
        places: Integers,
    ) -> None:
        self._paragraphs, self._titles = tuple(paragraphs), tuple(titles)
        self._lm, self._lexical = lm, type(lm) is UnigramModel
        self._levels = levels
        self._last: tuple[str, Levels] | None = None  # of the last question
        self._vectors, self._among, self._places = vectors, among, places

    @cached_property
    def _ranker(self) -> UPR:
        return UPR(self._lm, prior=None)

    @property
    def language(self) -> str:
        """Whose stemmer words go through."""
        return self._lm.language

    @property
    def by_words(self) -> bool:
        """Whether words alone decide."""
        return self._vectors is None and self._lexical

    def levels(self, question: str) -> Levels:
        """What the words say of all paragraphs."""
        known = self._last
        if known is None or known[0] != question:
            self._last = known = question, self._levels(question)
        return known[1]

    def log_posteriors(self, question: str, parts: Integers) -> Floats:
        """By words, of parts of the documents, given the part of each paragraph (`levels.log_posteriors`)."""
        return log_posteriors(self.levels(question).totals[self._places], parts, TEMPERATURE)

    def scored(self, question: str, positions: Sequence[int]) -> Scores:
        """S(p) divided by the question's tokens; details: `tokens`, `total` (S), `matched`, `nothing_matched`, cosines.

        With a neural model, also those of `UPR`; it reads the best by their words. What is neither read nor embedded
        follows the others, in the order of its words (`read` is False).
        """
        levels, chosen = self.levels(question), np.array(positions, dtype=np.intp)
        places = self._places[chosen]
        totals, matched, tokens = levels.totals[places], levels.matched[places], len(levels.words)
        by_model: dict[int, dict[str, Any]] = {}
        read: Integers = np.arange(len(chosen))
        if not self._lexical and positions:
            read = np.array(top(totals, READ))
            ranking = self._ranker.rank(question, [self._read_as(position) for position in chosen[read]])
            tokens = ranking[0].details["tokens"]
            contexts = levels.context(places[read]).tolist()
            for item in ranking:
                at = item.details["position"]
                # Of the score, which is the mean: where no word matches, the likelihood itself tells the length alone.
                totals[read[at]] = item.score * tokens + contexts[at]
                by_model[int(read[at])] = {**item.details, "context": contexts[at], "read": True}
        elif self._vectors is not None:
            read = np.flatnonzero(np.isin(chosen, self._among))
        near = np.full((3, len(chosen)), np.nan)
        if self._vectors is not None and positions:
            inside = read[np.isin(chosen[read], self._among)]
            near[:, inside] = self._vectors.near(question, np.searchsorted(self._among, chosen[inside]))
            totals[inside] += np.dot((COSINE_WEIGHT, SECTION_WEIGHT, 1.0), near[:, inside])
        unread = np.setdiff1d(np.arange(len(chosen)), read)
        if len(unread):
            totals[unread] += (totals[read].min() if len(read) else 0.0) - 1 - totals[unread].max()
        left = set(unread.tolist())

        def details(location: int) -> dict[str, Any]:
            found: dict[str, Any] = {"tokens": tokens, "nothing_matched": self.by_words and not levels.any_matched}
            found |= {"matched": bool(matched[location])} if self._lexical else by_model.get(location, {})
            if not np.isnan(near[0, location]):
                cosine, section_cosine, _ = near[:, location].tolist()
                found |= {"cosine": cosine, "section_cosine": section_cosine, "nothing_matched": False}
            return found | ({"read": False} if location in left else {})

        return Scores(totals, tokens, details)

    def matched(self, question: str, position: int) -> bool:
        """Whether a paragraph holds a word of the question."""
        return bool(self.levels(question).matched[self._places[position]])

    def _read_as(self, position: int) -> Passage:
        return replace(self._paragraphs[position], title=self._titles[position])

    def explain(self, question: str, ranking: Sequence[Ranked[Passage]], positions: Sequence[int]) -> list[Explanation]:
        """What S of each entry is added up from, given its paragraph's position."""
        found = self.levels(question)
        by_words = [self._lexical or not item.details["read"] for item in ranking]
        read = [at for at, lexical in zip(positions, by_words, strict=True) if not lexical]
        likelihoods: Iterator[Likelihood] = iter(())
        if read:
            texts = [self._read_as(position) for position in read]
            *answers, nothing = self._ranker.likelihoods(question, [*texts, Passage("")])
            likelihoods = iter(answers)
        explained = []
        for item, at, lexical in zip(ranking, positions, by_words, strict=True):
            fused = _fused(item, self._paragraphs[at])
            if lexical:
                moved = item.details["total"] - float(found.totals[self._places[at]])
                why = FOLLOWED if "followed" in item.details else UNREAD
                moves = [Term(why, moved)] if moved and {"followed", "read"} & item.details.keys() else []
                terms = (*found.terms(int(self._places[at])), *fused, *moves)
                per = max(item.details["tokens"], 1)
                explained.append(Explanation(item.rank, item.score, item.passage.title, terms, per))
            else:
                parts = (Term("section and document", item.details["context"]), *fused)
                explained.append(likelihood_explained(item, next(likelihoods), nothing, model=self._lm, parts=parts))
        return explained

    def best(self, totals: Sequence[float] | Floats) -> int:
        """How many of the best paragraphs make the expected F1 largest, given S of all that could be chosen."""
        return expected_best(totals, temperature=TEMPERATURE if self._vectors is None else FUSED_TEMPERATURE)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Of some paragraphs for one question, by their places.

    Attributes:
        totals: S, shape (paragraphs,).
        tokens: Of the question.
        details: From a place to details of the model.
    """

    totals: Floats
    tokens: int
    details: Callable[[int], Mapping[str, Any]]

    @property
    def means(self) -> Floats:
        """S by token."""
        return self.totals / max(self.tokens, 1)

    def __getitem__(self, location: int) -> Scored:
        total = float(self.totals[location])
        return total / max(self.tokens, 1), {**self.details(location), "total": total}


class Vectors:
    """Embeddings of paragraphs and of their sections.

    Args:
        embed: From questions to an array of shape (questions, dimensions); if it has a method `questions`, by that.
        embed_paragraphs: From the paragraphs to such an array.
        texts: The paragraphs.
        section_of: The section of each, from 0.

    Raises:
        InvalidInput: the embeddings are not one finite vector a text.
    """

    def __init__(self, embed: Any, embed_paragraphs: Embed, texts: list[str], section_of: Integers) -> None:
        self._embed_questions = getattr(embed, "questions", embed)
        self._paragraphs = of_unit_length(embed_paragraphs(texts))
        self._lengths = np.log([max(len(text.split()), 1) for text in texts])
        sums = np.zeros((section_of.max() + 1, self._paragraphs.shape[1]))
        np.add.at(sums, section_of, self._paragraphs)
        self._sections = of_unit_length(sums)[section_of]
        self._last_question: tuple[str, Floats] | None = None  # the last question and its vector

    def near(self, question: str, positions: Integers) -> Floats:
        """Cosines with paragraphs and their sections, and logarithms of their lengths, shape (3, positions)."""
        known = self._last_question
        if known is None or known[0] != question:
            self._last_question = known = question, of_unit_length(embedded(self._embed_questions, [question]))[0]
        vector = known[1]
        return np.array(
            [self._paragraphs[positions] @ vector, self._sections[positions] @ vector, self._lengths[positions]]
        )


def _fused(item: Ranked[Passage], paragraph: Passage) -> tuple[Term, ...]:
    """What embeddings add to S."""
    if "cosine" not in item.details:
        return ()
    return (
        Term("cosine", COSINE_WEIGHT * item.details["cosine"]),
        Term("cosine of the section", SECTION_WEIGHT * item.details["section_cosine"]),
        Term("length", math.log(max(len(paragraph.text.split()), 1))),
    )


def distinct(texts: Iterable[str], most: int) -> dict[int, list[int]]:
    """Places of the first texts that differ, each with the places of those that repeat it, as far as was looked.

    Texts with the same numbers that share nine of ten words say the same: a licence in many files, a table that is
    printed twice. Where a number differs, they do not.

    >>> distinct(["Net sales were 5 million.", "Net SALES: were 5 million", "Net sales were 6 million."], 9)
    {0: [1], 2: []}
    """
    found: dict[int, list[int]] = {}
    alike: dict[tuple[str, ...], list[tuple[int, int, Counter[str]]]] = {}
    for location, text in enumerate(texts):
        counted = Counter(words(text.casefold()))
        numbers = tuple(sorted(word for word in counted.elements() if word[0].isdigit()))
        others = alike.setdefault(numbers, [])
        size = counted.total()
        for at, length, other in others:
            least = 9 * (size + length)  # of 20 shared words; the shorter text bounds what they share
            if 20 * min(size, length) >= least and 20 * (counted & other).total() >= least:
                found[at].append(location)
                break
        else:
            if len(found) == most:
                break
            found[location] = []
            others.append((location, size, counted))
    return found


def load_evidence_model(model: str | LanguageModel = "unigram", **options: Any) -> LanguageModel:
    """As `load_language_model`; the unigram model comes with the μ that suits paragraphs under their headings.

    >>> load_evidence_model().options
    {'mu': 1000.0}
    """
    return load_language_model(model, **({"mu": MU} if model == "unigram" else {}) | options)


def expected_best(
    totals: Sequence[float] | Floats, expected: float = EXPECTED, temperature: float = TEMPERATURE
) -> int:
    """How many of the best make the expected F1 largest, given S of every paragraph, in any order.

    >>> expected_best([-10.0, -30.0, -31.0]), expected_best([-10.0, -10.0, -31.0]), expected_best([])
    (1, 2, 0)
    """
    if not len(totals):
        return 0
    scores = np.sort(np.asarray(totals, dtype=np.float64))[::-1]
    posterior = np.exp((scores - scores[0]) / temperature)
    chances = np.minimum(1.0, expected * posterior / posterior.sum())
    f1 = 2 * np.cumsum(chances) / (np.arange(1, len(scores) + 1) + chances.sum())
    return int(np.argmax(f1)) + 1
