"""Text of documents, questions and names as it may be shown anywhere: data, on one line."""

from __future__ import annotations

import re

# C0 and C1 codes, by which a text could drive a terminal, signs that turn the direction of writing, lone surrogates,
# and what XML cannot hold.
CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def on_one_line(text: str, most: int | None = None) -> str:
    r"""The text with � for each control character, and a blank for all white space.

    Args:
        text: From wherever.
        most: Characters to keep; … stands for the others.

    >>> on_one_line("a\n\x1b[31mred\u202e"), on_one_line("a long name", 6)
    ('a �[31mred�', 'a lon…')
    """
    shown = CONTROL.sub("�", " ".join(text.split()))
    return shown if most is None or len(shown) <= most else f"{shown[: most - 1]}…"
