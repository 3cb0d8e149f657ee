"""Statistical keywords of every section of one document: the keyword view without an LLM (MC-indexing, section 3.3)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

from drillrank.data import read_words
from drillrank.errors import check_positive
from drillrank.text import SPACELESS, terms

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
