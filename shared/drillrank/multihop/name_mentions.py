"""Links over names: from a text to others that mention a name that it mentions, whether or not that is a title.

    P(d' | d) = Σ_n 1 / (names of d) · 1 / (other texts that mention n)

A reader takes one of the names of a passage, and then one of the other passages that mention it: a rare name leads
somewhere, a common one nowhere in particular. Names that the question holds are no news, and are not followed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from copy import copy

import numpy as np
import numpy.typing as npt

from drillrank.multihop.links import Mention
from drillrank.passages import Passage, Path
from drillrank.text import name_tokens

_MOST_PASSAGES = 100  # a name that more of them mention hardly tells where to go, and bounds the work of a hop
_MOST_TARGETS = 100  # the likeliest passages that one path leads to

Places = npt.NDArray[np.int64]


class NameMentions:
    """Links a passage to those that mention a name that it mentions itself, with how likely a reader takes each.

    A name is a run of words that begin with a capital, in the title or the text, whichever letters follow; a word that
    the passages mostly write small ("The") is none. Names that the question holds, and those that more than 100
    passages mention, are not followed. A path leads to the 100 likeliest passages at most; the search chooses those
    that explain most of what the path has left unexplained.

    >>> wesson = Passage("He played for the Houston Astros.", id="1", title="Barry Wesson")
    >>> series = Passage("It was won by the Houston Astros.", id="2", title="2017 World Series")
    >>> links = NameMentions().over([wesson, series])
    >>> list(links.follow("Whose team won the series?", Path((wesson,))))
    [Mention(id='2', chance=1.0)]
    """

    kind = "name mention"

    def over(self, passages: Sequence[Passage], /) -> NameIndex:
        """Links to these passages."""
        return NameIndex(passages)


class NameIndex:
    """The names that some passages mention; follows a path's last passage, which need not be one of them.

    Args:
        passages: Where the names are from.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        tokens = [_tokens(passage) for passage in passages]
        written, capital = Counter[str](), Counter[str]()
        for words in tokens:
            written.update(word.lower() for word in words)
            capital.update(word.lower() for word in words if word[0].isupper())
        self._small = {word for word, count in capital.items() if 2 * count <= written[word]}
        self._ids = [passage.id for passage in passages]
        self._place = {name: place for place, name in enumerate(self._ids)}
        self._names = {
            passage.titled_text: self._names_among(words) for passage, words in zip(passages, tokens, strict=True)
        }
        places = defaultdict[str, list[int]](list)
        for place, passage in enumerate(passages):
            for name in self._names[passage.titled_text]:
                places[name].append(place)
        self._places: dict[str, Places] = {name: np.array(found) for name, found in places.items() if len(found) > 1}
        self._seen: npt.NDArray[np.bool_] | None = None

    def follow(self, query: str, path: Path, /) -> Iterable[Mention]:
        """The passages that a name of the path's last one leads to, likeliest first."""
        last = path.passages[-1]
        names = self._names.get(last.titled_text)
        if names is None:
            names = self._names_among(_tokens(last))
        asked = f" {' '.join(name_tokens(query)).lower()} "
        led_to = [
            others
            for name in names
            if f" {name} " not in asked and 0 < len(others := self._others(name, last.id)) <= _MOST_PASSAGES
        ]
        if not led_to:
            return ()
        found, of_place = np.unique(np.concatenate(led_to), return_inverse=True)
        weights = np.repeat([1 / len(others) for others in led_to], [len(others) for others in led_to])
        chances = np.bincount(of_place, weights=weights) / len(led_to)
        best = np.argsort(-chances, kind="stable")[:_MOST_TARGETS]
        return [
            Mention(self._ids[place], chance) for place, chance in zip(found[best], chances[best].tolist(), strict=True)
        ]

    def within(self, ids: Container[str], /) -> NameIndex:
        """The names of the passages with these ids alone; what counts as a name stays."""
        view = copy(self)
        view._seen = np.array([name in ids for name in self._ids], dtype=bool)
        return view

    def _others(self, name: str, own: str) -> Places:
        places = self._places.get(name, _NOWHERE)
        if self._seen is not None:
            places = places[self._seen[places]]
        others: Places = places[places != self._place.get(own, -1)]
        return others

    def _names_among(self, words: Sequence[str]) -> list[str]:
        """Distinct names in the order of their first mention, in small letters."""
        names: dict[str, None] = {}
        run: list[str] = []
        for word in [*words, "."]:
            if word[0].isupper() and len(word) > 1 and word.lower() not in self._small:
                run.append(word.lower())
            elif run:
                names[" ".join(run)] = None
                run = []
        return list(names)


_NOWHERE: Places = np.zeros(0, dtype=np.int64)


def _tokens(passage: Passage) -> list[str]:
    """Words and punctuation marks; a title and the text after it are no run."""
    return [*name_tokens(passage.title), ".", *name_tokens(passage.text)]
