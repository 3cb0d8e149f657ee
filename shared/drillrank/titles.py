"""Titles as texts mention them: without what stands in parentheses at their end, token by token."""

from __future__ import annotations

import re

from drillrank.passages import Passage
from drillrank.text import SPACELESS, name_tokens

PARENTHETICAL = re.compile(r"\s*\((?P<inside>[^()]*)\)\s*$")
MIN_TITLE_LENGTH = 4  # shorter titles ("It", "Up") are mostly ordinary words
MAX_TITLE_TOKENS = 64  # bounds the work at each word of a text; nobody mentions a longer title


def short_title(passage: Passage) -> str:
    """The title without its trailing parenthetical.

    >>> short_title(Passage("", title="Mercury (planet)"))
    'Mercury'
    """
    return PARENTHETICAL.sub("", passage.title).strip()


def counted_name(name: str, shortest: int = MIN_TITLE_LENGTH) -> list[str]:
    """The tokens by which a name is found; none if it is too short or too long to count."""
    length = len(name) + len(SPACELESS.findall(name))  # two such characters are a word
    tokens = name_tokens(name) if length >= shortest else []
    return tokens if len(tokens) <= MAX_TITLE_TOKENS else []


def counted_title(passage: Passage) -> list[str]:
    """The tokens by which a passage's title is found, letters of either case being the same; none if it counts not.

    >>> counted_title(Passage("", title="Silent Pier (film)")), counted_title(Passage("", title="Up"))
    (['silent', 'pier'], [])
    """
    return [token.casefold() for token in counted_name(short_title(passage))]
