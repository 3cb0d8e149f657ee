"""Numbers of lists and headings in the formats of office programs: 3, c, iii, III, 3rd, three, 三.

The formats are listed in `number_formats.tsv` of `drillrank.data`. Each has a rule and the signs that the rule uses:

- pattern: pattern of `str.format`
- letters: the alphabet; later rounds repeat the letter, as Word does
- digits: signs from 0 to 9
- tens: signs from 0 to 9, and the sign of ten
- values: values and their signs, largest first, which are added up
- words: words for 1, 2 and so on
"""

from __future__ import annotations

import re
from functools import cache

from drillrank.data import read_rows

_MAX_DIGITS = 9
_MAX_ROMAN = 3999
_MAX_LETTERS = 780  # Word's own limit: 30 times the same letter
_VALUE = re.compile(r"([0-9]{1,4})([^0-9 ]+)")


@cache
def _formats() -> dict[str, tuple[str, str]]:
    """Return the rule and the signs of each format."""
    return {name: (rule, signs) for name, rule, signs in read_rows("number_formats.tsv")}


def format_number(number: int, number_format: str) -> str:
    """Return a number in a format of Open XML. Formats that are not known are decimal.

    >>> [format_number(28, name) for name in ("decimal", "lowerLetter", "upperRoman", "ordinal", "cardinalText")]
    ['28', 'bb', 'XXVIII', '28th', 'Twenty-eight']
    """
    if number_format.startswith("0"):  # a custom format, by its first number, such as "001"
        return str(number).zfill(min(len(number_format), _MAX_DIGITS))
    if number < 1:
        return str(number)
    rule, signs = _formats().get(number_format, ("", ""))
    match rule:
        case "pattern":
            return signs.format(number)
        case "letters" if number <= _MAX_LETTERS:
            repeats, index = divmod(number - 1, len(signs))
            return signs[index] * (repeats + 1)
        case "values" if number <= _MAX_ROMAN:
            return _add_up(number, signs)
        case "tens" if number < 100:
            return _count_tens(number, signs)
        case "digits" | "tens":
            return "".join(signs[int(digit)] for digit in str(number))
        case "words" if number <= len(words := signs.split()):
            return words[number - 1]
    return _ordinal(number) if number_format in ("ordinal", "ordinalText") else str(number)


def _add_up(number: int, values: str) -> str:
    """Return the signs whose values add up to a number."""
    signs = ""
    for value, sign in _VALUE.findall(values):
        signs += sign * (number // int(value))
        number %= int(value)
    return signs


def _count_tens(number: int, signs: str) -> str:
    """Return a number below 100 in digits, with the sign of ten between them."""
    tens, unit = divmod(number, 10)
    return (signs[tens] if tens > 1 else "") + (signs[10] if tens else "") + (signs[unit] if unit else "")


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
