"""Links between passages: which passages a passage points to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from drillrank.passages import Passage

Links = Callable[[Passage], Iterable[str]]
"""From a passage to the ids of the passages that it points to, best known first."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_PARENTHETICAL = re.compile(r"\s*\([^()]*\)\s*$")
_MIN_TITLE_LENGTH = 4  # shorter titles ("It", "Up") are mostly ordinary words


def given_links(passage: Passage) -> Iterable[str]:
    """The links that the passage itself carries."""
    return passage.links


def title_mentions(passages: Sequence[Passage]) -> Links:
    """Link a passage to those whose title its text mentions, in the order of the mentions.

    A title counts without its trailing parenthetical, with the same letters and case, at word borders, from 4
    characters on; white space around punctuation does not matter. One pass over the text finds all titles: every title
    is filed under its first word.

    >>> turing = Passage("He was born in London.", id="1", title="Alan Turing")
    >>> london = Passage("A town on the Thames.", id="2", title="London (England)")
    >>> list(title_mentions([turing, london])(turing))
    ['2']
    """
    by_first_word: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for passage in passages:
        short = _short_title(passage)
        words = tuple(_TOKEN.findall(short))
        if len(short) >= _MIN_TITLE_LENGTH and words:
            by_first_word.setdefault(words[0], {}).setdefault(words, []).append(passage.id)
    lengths = {first: sorted({len(words) for words in titles}, reverse=True) for first, titles in by_first_word.items()}

    def mentioned(passage: Passage) -> Iterable[str]:
        words = _TOKEN.findall(passage.text)
        own = tuple(_TOKEN.findall(_short_title(passage)))
        found: dict[str, None] = {}
        for position, first in enumerate(words):
            for length in lengths.get(first, ()):
                mention = tuple(words[position : position + length])
                if mention != own:
                    found |= dict.fromkeys(by_first_word[first].get(mention, ()))
        return found

    return mentioned


def links_from_metadata(value: object) -> tuple[str, ...]:
    """Ids from a metadata value: a list of ids, or one comma-separated string, since many stores take flat values only.

    >>> links_from_metadata("a, b"), links_from_metadata(["a", 7]), links_from_metadata(None)
    (('a', 'b'), ('a', '7'), ())
    """
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple | set | frozenset):
        return ()
    return tuple(text for text in (str(item).strip() for item in value if item is not None) if text)


def combined(*sources: Links) -> Links:
    """The links of several sources, without repetition."""
    return lambda passage: dict.fromkeys(target for source in sources for target in source(passage))


def linked_passages(passage: Passage, links: Links, by_id: Mapping[str, Passage]) -> list[Passage]:
    """The passages that a passage points to; links to itself or to nowhere are left out."""
    targets = dict.fromkeys(links(passage))
    return [by_id[target] for target in targets if target in by_id and target != passage.id]


def _short_title(passage: Passage) -> str:
    return _PARENTHETICAL.sub("", passage.title).strip()
