"""Titles as texts mention them: without what stands in parentheses at their end, token by token."""

from __future__ import annotations

import re

from drillrank.passages import Passage

PARENTHETICAL = re.compile(r"\s*\((?P<inside>[^()]*)\)\s*$")
MIN_TITLE_LENGTH = 4  # shorter titles ("It", "Up") are mostly ordinary words
MAX_TITLE_TOKENS = 64  # bounds the work at each word of a text; nobody mentions a longer title
_TOKEN = re.compile(r"\w+|[^\w\s]")


def title_tokens(text: str) -> list[str]:
    """The words and punctuation marks that titles are compared by.

    >>> title_tokens("Malcolm X's life")
    ['Malcolm', 'X', "'", 's', 'life']
    """
    return _TOKEN.findall(text)


def short_title(passage: Passage) -> str:
    """The title without its trailing parenthetical.

    >>> short_title(Passage("", title="Mercury (planet)"))
    'Mercury'
    """
    return PARENTHETICAL.sub("", passage.title).strip()


def name_tokens(name: str, shortest: int = MIN_TITLE_LENGTH) -> list[str]:
    """The tokens by which a name is found; none if it is too short or too long to count."""
    tokens = title_tokens(name) if len(name) >= shortest else []
    return tokens if len(tokens) <= MAX_TITLE_TOKENS else []


def counted_title(passage: Passage) -> list[str]:
    """The tokens by which a passage's title is found, letters of either case being the same; none if it counts not.

    >>> counted_title(Passage("", title="Silent Pier (film)")), counted_title(Passage("", title="Up"))
    (['silent', 'pier'], [])
    """
    return [token.casefold() for token in name_tokens(short_title(passage))]
