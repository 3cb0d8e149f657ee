"""Summaries: extractive ones, the summary view without an LLM (MC-indexing, section 3.3 and Appendix G), or others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_positive
from drillrank.structure.sentences import sentences
from drillrank.text import count_tokens, first_words, terms, word_count
from drillrank.vectors import Tfidf

SUMMARY_WORDS = 100
SHORT_SECTION = 200  # tokens; up to this length a section is its own summary (MC-indexing, Appendix G)


Summarize = Callable[[list[str]], Iterable[str]]


@runtime_checkable
class Summarizer(Protocol):
    """Summarises texts, for example a `HuggingFaceSummarizer`."""

    def summaries(self, texts: Sequence[str], /) -> list[str]:
        """One summary per text."""
        ...


def summarized(summarizer: Summarizer | Summarize, texts: Sequence[str]) -> list[str]:
    """What an object with `summaries`, or a function, makes of texts.

    Raises:
        InvalidInput: it does not return one string a text.

    >>> summarized(lambda texts: [text[:8] for text in texts], ["Rain fell all day."])
    ['Rain fel']
    """
    given = check_summarizer(summarizer)(list(texts))
    returned = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    if len(returned) != len(texts) or not all(isinstance(text, str) for text in returned):
        raise InvalidInput(f"A summarizer must return one string for each of {len(texts)} texts; not {given!r:.200}.")
    return returned


def check_summarizer(summarizer: object) -> Summarize:
    """Its function from texts to summaries.

    Raises:
        InvalidInput: it has none, and is none.
    """
    function: Any = getattr(summarizer, "summaries", summarizer)
    if not callable(function):
        raise InvalidInput(f"A summarizer is a function from texts to summaries, or has one; not {summarizer!r:.100}.")
    return function  # type: ignore[no-any-return]


def summary(text: str, max_words: int = SUMMARY_WORDS, raw_up_to: int | None = None, language: str = "english") -> str:
    """Extractive summary of one section; see `summaries`.

    >>> summary("Rain fell. Cats purr and cats hiss. Cats purr.", max_words=7, raw_up_to=7)
    'Cats purr and cats hiss. Cats purr.'
    """
    return summaries([text], max_words, raw_up_to, language)[0]


def summaries(
    texts: Sequence[str], max_words: int = SUMMARY_WORDS, raw_up_to: int | None = None, language: str = "english"
) -> list[str]:
    """The sentences nearest to each section's centroid, in their original order (Radev et al. 2004).

    A sentence is a TF-IDF vector of unit length, the centroid of a section the sum of its sentences, and nearness
    their cosine. Inverse document frequencies come from the sentences of all sections given. Sentences are taken by
    falling nearness, ties in order, as long as they fit. Where none fits, the nearest one is cut.

    Args:
        texts: The sections of one document.
        max_words: Word limit of a summary.
        raw_up_to: A section of at most this many words is its own summary, unchanged; None for `is_short`.
        language: Whose stemmer words go through.

    Returns:
        One summary per section: whole sentences as they stand in the text, joined by spaces.

    Raises:
        InvalidInput: `max_words` is below 1.
    """
    check_positive(max_words=max_words)
    shortened = list(texts)
    long = [position for position, text in enumerate(texts) if not _is_own_summary(text, raw_up_to)]
    split = [[texts[position][start:end] for start, end in sentences(texts[position])] for position in long]
    vectors = Tfidf(terms(sentence, language) for section in split for sentence in section).vectors
    first = 0
    for position, section in zip(long, split, strict=True):
        own = vectors.between(first, first + len(section))
        first += len(section)
        nearness = own.times(own.column_sums())  # the centroid's own length changes no order
        shortened[position] = _extract(section, nearness, max_words)
    return shortened


def is_short(text: str) -> bool:
    """Whether a section is its own summary: up to 200 tokens.

    >>> is_short("Few words."), is_short("many words " * 101)
    (True, False)
    """
    return count_tokens(text) <= SHORT_SECTION


def _is_own_summary(text: str, raw_up_to: int | None) -> bool:
    return is_short(text) if raw_up_to is None else word_count(text) <= raw_up_to


def _extract(section: Sequence[str], nearness: npt.NDArray[np.float64], max_words: int) -> str:
    order: list[int] = np.argsort(-nearness, kind="stable").tolist()
    chosen = []
    left = max_words
    for position in order:
        length = word_count(section[position])
        if length <= left:
            chosen.append(position)
            left -= length
    if chosen:
        return " ".join(section[position] for position in sorted(chosen))
    return first_words(section[order[0]], max_words)
