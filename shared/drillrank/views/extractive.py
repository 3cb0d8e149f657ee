"""Compute keywords and summaries from the text alone: two views without an LLM (MC-indexing, section 3.3)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from drillrank.data import read_words
from drillrank.errors import InvalidInput, check_positive
from drillrank.structure import sentences
from drillrank.text import SPACELESS, Tokens, first_words, terms, token_counter, word_count
from drillrank.vectors import Tfidf
from drillrank.views.chunks import Chunk

View = Literal["raw", "keywords", "summary"]
VIEWS: tuple[View, ...] = get_args(View)

KEYWORDS = 20  # per section
_LONGEST_WORD = 40  # characters; longer runs are encoded data or text without spaces

# Addresses, tags and TeX commands are passed over.
_NOT_WORD = r"https?://[^\s)>\]]+|</?[a-z][^<>]*>|\\[a-z]+"
_PAIR = rf"(?=(?P<pair>{SPACELESS.pattern}{{2}})){SPACELESS.pattern}"
_LETTER, _INSIDE = (f"[^{other}{SPACELESS.pattern[1:]}" for other in (r"\W_", r"\W"))
_WORD = re.compile(rf"(?i:{_NOT_WORD})|{_PAIR}|(?P<word>{_LETTER}(?:{_INSIDE}*{_LETTER})?(?:(?<=\d)\.\d+)*)")
_HIRAGANA = re.compile("[\u3041-\u3096]")  # between and after words
_CONTRACTED = re.compile(r"['’](?!s\b)\w")  # after the "don" of "don't", but not after the "model" of "model's"
_JOINT = re.compile(r"[\s-]")  # between the words of a phrase

SUMMARY_WORDS = 100
SHORT_SECTION = 200  # tokens; up to this length a section is its own summary (MC-indexing, Appendix G)

Summarizer = Callable[[list[str]], Iterable[str]]
"""Function from texts to their summaries, for example a `HuggingFaceSummarizer`."""


def extractive_texts(
    chunks: Sequence[Chunk], views: Collection[View], language: str = "english", tokens: Tokens = None
) -> dict[View, list[str]]:
    """Return the texts of a document's keyword and summary views. Commas separate keywords."""
    bodies = [chunk.body for chunk in chunks]
    texts: dict[View, list[str]] = {}
    if "keywords" in views:
        texts["keywords"] = list(map(", ".join, keywords(bodies, language=language)))
    if "summary" in views:
        texts["summary"] = summaries(bodies, language=language, tokens=tokens)
    return texts


def keywords(texts: Sequence[str], n: int = KEYWORDS, language: str = "english") -> list[list[str]]:
    """Return the words and two-word phrases that distinguish each section from the others of its document.

    Weighted by TF-IDF over the sections. Inflections of a word count as one, shown in the form that is most frequent
    in the section. A phrase must occur twice, and replaces those of its words that occur mostly inside it. With a
    single section all inverse document frequencies are equal, so term frequency decides.

    Args:
        texts: The sections of one document.
        n: Largest number of keywords of a section.
        language: Language of the stemmer. In scripts without spaces, two adjacent characters are a word.

    Returns:
        One list per section, best first; of equal weight, phrases come first, then what occurs first. Empty where a
        section has no content words.

    Raises:
        InvalidInput: `n` is below 1.

    >>> keywords(["Red foxes hunt. The red fox barks.", "A whale dives; the whale sings.", "42!"], n=2)
    [['Red foxes', 'hunt'], ['whale', 'dives'], []]
    """
    check_positive(n=n)
    candidates = [list(_candidates(text, language)) for text in texts]
    counts = [Counter(key for key, _ in section) for section in candidates]
    sections_with = Counter(key for count in counts for key in count)

    def weight(key: str, count: Counter[str]) -> float:
        return count[key] * (1 + math.log((1 + len(texts)) / (1 + sections_with[key])))

    chosen = []
    for section, count in zip(candidates, counts, strict=True):
        order = sorted(count, key=lambda key: (-weight(key, count), " " not in key))
        forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for key, form in section:
            forms[key][form] += 1
        chosen.append([forms[key].most_common(1)[0][0] for key in _prune(order, count, n)])
    return chosen


def _candidates(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield key (lower-cased stems) and written form of every content word and of every two adjacent ones."""
    previous: tuple[re.Match[str], str] | None = None
    for match in _WORD.finditer(text):
        pair, word = match["pair"], match["word"] or ""
        if pair and not _HIRAGANA.search(pair):
            key = word = pair
        elif _is_content(word) and not _CONTRACTED.match(text, match.end()):
            key = "".join(terms(word, language))
        else:
            continue
        yield key, word
        if previous and previous[1] != key and _JOINT.fullmatch(text, previous[0].end(), match.start()):
            phrase = text[previous[0].start() : match.end()]
            yield f"{previous[1]} {key}", " ".join(phrase.split())
        previous = match, key


def _is_content(word: str) -> bool:
    return 1 < len(word) <= _LONGEST_WORD and any(map(str.isalpha, word)) and word.lower() not in _stop_words()


@lru_cache(maxsize=1)
def _stop_words() -> frozenset[str]:
    return frozenset(read_words("english_stop_words.txt"))


def _prune(order: Sequence[str], count: Counter[str], n: int) -> list[str]:
    """Return the first `n` keys. Skip phrases that occur once, and words that mostly occur in a chosen phrase."""
    chosen: list[str] = []
    for key in order:
        if " " not in key:
            if not any(_covers(phrase, key, count) for phrase in chosen):
                chosen.append(key)
        elif count[key] > 1:
            chosen = [word for word in chosen if not _covers(key, word, count)] + [key]
        if len(chosen) == n:
            break
    return chosen


def _covers(phrase: str, word: str, count: Counter[str]) -> bool:
    return phrase != word and word in phrase.split(" ") and 2 * count[phrase] >= count[word]


def summarized(summarizer: Summarizer, texts: Sequence[str]) -> list[str]:
    """Return the summaries of texts, checked.

    Raises:
        InvalidInput: the summarizer does not return one string for each text.

    >>> summarized(lambda texts: [text[:8] for text in texts], ["Rain fell all day."])
    ['Rain fel']
    """
    returned = summarizer(list(texts))
    written = list(returned) if isinstance(returned, Iterable) and not isinstance(returned, str) else []
    if len(written) != len(texts) or not all(isinstance(text, str) for text in written):
        raise InvalidInput(
            f"A summarizer must return one string for each of {len(texts)} texts; not {returned!r:.200}."
        )
    return written


def check_summarizer(summarizer: object) -> None:
    """Check that a summarizer is a function.

    Raises:
        InvalidInput: the summarizer cannot be called.
    """
    if not callable(summarizer):
        raise InvalidInput(f"A summarizer is a function from texts to their summaries; not {summarizer!r:.100}.")


def summary(text: str, max_words: int = SUMMARY_WORDS, raw_up_to: int | None = None, language: str = "english") -> str:
    """Return the extractive summary of one section; see `summaries`.

    >>> summary("Rain fell. Cats purr and cats hiss. Cats purr.", max_words=7, raw_up_to=7)
    'Cats purr and cats hiss. Cats purr.'
    """
    return summaries([text], max_words, raw_up_to, language)[0]


def summaries(
    texts: Sequence[str],
    max_words: int = SUMMARY_WORDS,
    raw_up_to: int | None = None,
    language: str = "english",
    tokens: Tokens = None,
) -> list[str]:
    """Summarize each section by the sentences nearest to its centroid, in their original order (Radev et al. 2004).

    A sentence is a TF-IDF vector of unit length. The centroid of a section is the sum of its sentences, and nearness is
    their cosine. Inverse document frequencies count the sentences of all sections. Sentences are taken by falling
    nearness, ties in order, as long as they fit. If none fits, the nearest one is truncated.

    Args:
        texts: The sections of one document.
        max_words: Word limit of a summary.
        raw_up_to: A section of at most this many words is its own summary, unchanged; None for `is_short`.
        language: Language of the stemmer.
        tokens: Counter of `is_short`: see `drillrank.text.token_counter`.

    Returns:
        One summary per section: whole sentences of the text, joined by spaces.

    Raises:
        InvalidInput: `max_words` is below 1.
    """
    check_positive(max_words=max_words)
    result = list(texts)
    limit, count = (SHORT_SECTION, token_counter(tokens)) if raw_up_to is None else (raw_up_to, word_count)
    long_indices = [index for index, text in enumerate(texts) if count(text) > limit]
    sentence_lists = [[texts[index][start:end] for start, end in sentences(texts[index])] for index in long_indices]
    vectors = Tfidf(terms(sentence, language) for section in sentence_lists for sentence in section).vectors
    first = 0
    for index, section in zip(long_indices, sentence_lists, strict=True):
        section_vectors = vectors.slice_rows(first, first + len(section))
        first += len(section)
        nearness = section_vectors.multiply(section_vectors.column_sums())  # the centroid's own length changes no order
        result[index] = _extract(section, nearness, max_words)
    return result


def is_short(text: str, tokens: Tokens = None) -> bool:
    """Return True if a section is its own summary: up to 200 tokens (MC-indexing, Appendix G).

    Args:
        text: Text of the section.
        tokens: Counter of the tokens: see `drillrank.text.token_counter`.

    >>> is_short("Few words."), is_short("many words " * 101)
    (True, False)
    """
    return token_counter(tokens)(text) <= SHORT_SECTION


def _extract(section: Sequence[str], nearness: npt.NDArray[np.float64], max_words: int) -> str:
    order: list[int] = np.argsort(-nearness, kind="stable").tolist()
    chosen = []
    n_words_left = max_words
    for position in order:
        length = word_count(section[position])
        if length <= n_words_left:
            chosen.append(position)
            n_words_left -= length
    if chosen:
        return " ".join(section[position] for position in sorted(chosen))
    return first_words(section[order[0]], max_words) if order else ""
