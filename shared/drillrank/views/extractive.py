"""Keywords and summaries out of the text alone: the two views without an LLM (MC-indexing, section 3.3)."""

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
from drillrank.text import SPACELESS, count_tokens, first_words, terms, word_count
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
_WORD = re.compile(rf"{_NOT_WORD}|{_PAIR}|(?P<word>{_LETTER}(?:{_INSIDE}*{_LETTER})?(?:(?<=\d)\.\d+)*)", re.IGNORECASE)
_HIRAGANA = re.compile("[\u3041-\u3096]")  # between and after words
_CONTRACTED = re.compile(r"['’](?!s\b)\w")  # after the "don" of "don't", but not after the "model" of "model's"
_JOINT = re.compile(r"[\s-]")  # between the words of a phrase

SUMMARY_WORDS = 100
SHORT_SECTION = 200  # tokens; up to this length a section is its own summary (MC-indexing, Appendix G)

Summarizer = Callable[[list[str]], Iterable[str]]
"""From texts to their summaries, for example a `HuggingFaceSummarizer`."""


def extractive_texts(
    chunks: Sequence[Chunk], views: Collection[View], language: str = "english"
) -> dict[View, list[str]]:
    """What the views of a document's chunks show, but for the raw one: keywords between commas, and summaries."""
    bodies = [chunk.body for chunk in chunks]
    texts: dict[View, list[str]] = {}
    if "keywords" in views:
        texts["keywords"] = list(map(", ".join, keywords(bodies, language=language)))
    if "summary" in views:
        texts["summary"] = summaries(bodies, language=language)
    return texts


def keywords(texts: Sequence[str], n: int = KEYWORDS, language: str = "english") -> list[list[str]]:
    """The words and two-word phrases that set each section apart from the others of its document.

    Weighted by TF-IDF over the sections. Inflections of a word count as one, shown in the form that is most frequent
    in the section. A phrase must occur twice, and replaces those of its words that occur mostly inside it. With a
    single section all inverse document frequencies are equal, so term frequency decides.

    Args:
        texts: The sections of one document.
        n: Largest number of keywords of a section.
        language: Whose stemmer tells inflections; of scripts without spaces, words are two characters side by side.

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
    """Key (lower-cased stems) and written form of every content word, and of every two that stand side by side."""
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
    """The first `n` keys, without phrases that occur once and words of which a chosen phrase holds at least half."""
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
    """What a function makes of texts.

    Raises:
        InvalidInput: it does not return one string a text.

    >>> summarized(lambda texts: [text[:8] for text in texts], ["Rain fell all day."])
    ['Rain fel']
    """
    given = summarizer(list(texts))
    returned = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    if len(returned) != len(texts) or not all(isinstance(text, str) for text in returned):
        raise InvalidInput(f"A summarizer must return one string for each of {len(texts)} texts; not {given!r:.200}.")
    return returned


def check_summarizer(summarizer: object) -> None:
    """Refuse what cannot be called.

    Raises:
        InvalidInput: see above.
    """
    if not callable(summarizer):
        raise InvalidInput(f"A summarizer is a function from texts to their summaries; not {summarizer!r:.100}.")


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
    is_brief = is_short if raw_up_to is None else lambda text: word_count(text) <= raw_up_to
    long = [position for position, text in enumerate(texts) if not is_brief(text)]
    split = [[texts[position][start:end] for start, end in sentences(texts[position])] for position in long]
    vectors = Tfidf(terms(sentence, language) for section in split for sentence in section).vectors
    first = 0
    for position, section in zip(long, split, strict=True):
        inside = vectors.between(first, first + len(section))
        first += len(section)
        nearness = inside.times(inside.column_sums())  # the centroid's own length changes no order
        shortened[position] = _extract(section, nearness, max_words)
    return shortened


def is_short(text: str) -> bool:
    """Whether a section is its own summary: up to 200 tokens.

    >>> is_short("Few words."), is_short("many words " * 101)
    (True, False)
    """
    return count_tokens(text) <= SHORT_SECTION


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
