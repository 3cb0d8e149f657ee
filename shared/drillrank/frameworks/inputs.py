"""Input values from frameworks and stores: one that cannot be used does not fail a question if it can be repaired."""

from __future__ import annotations

from math import isfinite
from numbers import Real
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.passages import check_query
from drillrank.text import without_surrogates


def clean_question(question: str) -> str:
    r"""Check a question, and replace each lone surrogate, which is half a character, with U+FFFD.

    Raises:
        InvalidInput: The question is not a string or is blank.

    >>> clean_question("Who\ud83e?") == "Who\ufffd?"
    True
    """
    return check_query(without_surrogates(question) if isinstance(question, str) else question)


def finite_score(value: object) -> float | None:
    """Return a stored value as a score; None if it is not a finite number.

    >>> finite_score(2), finite_score(float("nan")), finite_score(10**400), finite_score("best")
    (2.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        score = float(value)
    except OverflowError:
        return None
    return score if isfinite(score) else None


def check_text(text: object, record: str) -> str:
    """Return the text of a record. Frameworks do not validate a record that was built with `model_construct`.

    Raises:
        InvalidInput: The text is not a string.

    >>> check_text(None, "Document")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: The text of a Document must be a string, got a NoneType. ...
    """
    if not isinstance(text, str):
        raise InvalidInput(
            f"The text of a {record} must be a string, got a {type(text).__name__}. Leave out records without text."
        )
    return text


def value_text(value: Any) -> str:
    """Return the text of a metadata value; empty for None, and for a value that is nested too deeply.

    >>> value_text("A title"), value_text(None)
    ('A title', '')
    """
    try:
        return str(value or "")
    except RecursionError:
        return ""
