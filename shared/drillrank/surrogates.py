"""Lone surrogates: halves of characters, left by broken decoding, which no tokenizer reads."""

from __future__ import annotations

import re

from drillrank.errors import InvalidInput

_SURROGATE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    r"""A document's text with U+FFFD, the replacement character, for each; all offsets stay.

    >>> without_surrogates("a\ud83eb") == "a\ufffdb"
    True
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def check_surrogates(text: str, what: str) -> None:
    r"""Refuse a text in which there is one, such as a question, which nobody meant so.

    Raises:
        InvalidInput: says where.

    >>> check_surrogates("Why\ud83e?", "The question")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: The question holds half a character, '\ud83e' at offset 3: decode it anew.
    """
    if not text.isascii() and (found := _SURROGATE.search(text)):
        raise InvalidInput(f"{what} holds half a character, {found[0]!r} at offset {found.start()}: decode it anew.")
