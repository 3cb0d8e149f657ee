"""Passages as encyclopaedias have them, made up: words by Zipf's law, titles, texts that mention titles and link there.

Everything depends on the seed alone, and a passage on its number, so that any part of a collection can be made alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from drillrank.passages import Passage
from drillrank.vectors import BM25Index, top

_WORDS = 200_000  # the vocabulary grows towards this as Heaps' law has it
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]
_EXPONENT = 1.07


def word(rank: int) -> str:
    """The word of a rank: frequent ones are short, no two are alike.

    >>> word(0), word(70), word(4970)
    ('ba', 'baba', 'bababa')
    """
    syllables = []
    while rank >= 0:
        rank, syllable = divmod(rank, len(_SYLLABLES))
        syllables.append(_SYLLABLES[syllable])
        rank -= 1
    return "".join(reversed(syllables))


_VOCABULARY: list[str] = []
_CUMULATIVE: list[float] = []


def _vocabulary() -> tuple[list[str], list[float]]:
    if not _VOCABULARY:
        _CUMULATIVE.extend(accumulate((rank + 1) ** -_EXPONENT for rank in range(_WORDS)))
        _VOCABULARY.extend(map(word, range(_WORDS)))
    return _VOCABULARY, _CUMULATIVE


def title(number: int) -> str:
    """Two words with capitals, another pair for each number up to 25 million."""
    first, second = divmod(number, 5_000)
    return f"{word(5_000 + first).capitalize()} {word(100 + (second * 1_009 + first) % 5_000).capitalize()}"


def linked_passages(size: int, *, seed: int = 0, words: int = 50) -> Iterator[Passage]:
    """So many passages of about 50 words; each mentions the titles of three others and links to them."""
    vocabulary, cumulative = _vocabulary()
    for number in range(size):
        drawn = random.Random(f"{seed}/{number}")
        text = drawn.choices(vocabulary, cum_weights=cumulative, k=drawn.randint(words // 2, words * 3 // 2))
        others = [int(size * drawn.random() ** 2) for _ in range(3)]  # a few passages are linked to by many
        for other in others:
            text.insert(drawn.randrange(len(text)), title(other))
        links = tuple(f"p{other}" for other in dict.fromkeys(others) if other != number)
        yield Passage(f"{' '.join(text)}.", id=f"p{number}", title=title(number), links=links)


def questions(passages: Sequence[Passage], count: int, *, seed: int = 0) -> list[str]:
    """Questions with a passage's title and rare words of one that it links to, and of another that nothing leads to."""
    drawn = random.Random(f"questions {seed}")
    by_id = {passage.id: passage for passage in passages}
    asked = []
    for _ in range(count):
        start = drawn.choice(passages)
        linked = [by_id[name] for name in start.links if name in by_id] or [start]
        rare = [rare for one in (drawn.choice(linked), drawn.choice(passages)) for rare in _rare(one)]
        asked.append(f"Which {' '.join(rare)} is that of {start.title}?")
    return asked


def _rare(passage: Passage) -> list[str]:
    return sorted(passage.text.rstrip(".").split(), key=len)[-2:]


def first_stage(passages: Sequence[Passage]) -> Callable[[str, int], list[Passage]]:
    """BM25 in memory over these passages, as a corpus finds."""
    index = BM25Index([passage.titled_text for passage in passages])

    def found(query: str, n: int) -> list[Passage]:
        scores = index.scores(query)
        return [passages[place] for place in top(scores, n) if scores[place] > 0]

    return found
