"""Numbers of lists and headings in the formats of office programs: 3, c, iii, III, 3rd, three, 三."""

from __future__ import annotations

from collections.abc import Callable

_MAX_DIGITS = 9
_MAX_ROMAN = 3999
_MAX_LETTERS = 780  # Word's own limit: 30 times the same letter
_ROMAN_DIGITS = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l")),
    *((40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_IRREGULAR_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_CHINESE_DIGITS = "〇一二三四五六七八九"
_RUSSIAN = "абвгдежзиклмнопрстуфхцчшщыэюя"
_GREEK = "αβγδεζηθικλμνξοπρστυφχψω"
_CIRCLED = {number: chr(0x2460 + number - 1) for number in range(1, 21)}


def format_number(number: int, number_format: str) -> str:
    """Return a number in a format of Open XML. Formats that are not known are decimal.

    >>> [format_number(28, name) for name in ("decimal", "lowerLetter", "upperRoman", "ordinal", "cardinalText")]
    ['28', 'bb', 'XXVIII', '28th', 'Twenty-eight']
    """
    if number_format.startswith("0"):  # a custom format, by its first number, such as "001"
        return str(number).zfill(min(len(number_format), _MAX_DIGITS))
    formatter = _FORMATTERS.get(number_format)
    return formatter(number) if formatter and number > 0 else str(number)


def _letters(number: int, alphabet: str = "abcdefghijklmnopqrstuvwxyz") -> str:
    if number > _MAX_LETTERS:
        return str(number)
    repeats, index = divmod(number - 1, len(alphabet))
    return alphabet[index] * (repeats + 1)


def _roman(number: int) -> str:
    if number > _MAX_ROMAN:
        return str(number)
    digits = ""
    for value, digit in _ROMAN_DIGITS:
        digits += digit * (number // value)
        number %= value
    return digits


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _cardinal(number: int) -> str:
    if number >= 100:
        return str(number)
    if number < 20:
        return _UNITS[number]
    tens, unit = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_UNITS[unit]}" if unit else "")


def _ordinal_word(number: int) -> str:
    if number >= 100:
        return _ordinal(number)
    first, hyphen, last = _cardinal(number).rpartition("-")
    last = _IRREGULAR_ORDINALS.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return first + hyphen + last


def _chinese(number: int) -> str:
    if number >= 100:
        return "".join(_CHINESE_DIGITS[int(digit)] for digit in str(number))
    tens, unit = divmod(number, 10)
    leading = "" if not tens else "十" if tens == 1 else f"{_CHINESE_DIGITS[tens]}十"
    return leading + (_CHINESE_DIGITS[unit] if unit else "")


_FORMATTERS: dict[str, Callable[[int], str]] = {
    "decimalZero": lambda number: f"{number:02}",
    "lowerLetter": _letters,
    "upperLetter": lambda number: _letters(number).upper(),
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "ordinal": _ordinal,
    "cardinalText": lambda number: _cardinal(number).capitalize(),
    "ordinalText": lambda number: _ordinal_word(number).capitalize(),
    "russianLower": lambda number: _letters(number, _RUSSIAN),
    "russianUpper": lambda number: _letters(number, _RUSSIAN).upper(),
    "lowerGreek": lambda number: _letters(number, _GREEK),
    "decimalEnclosedCircle": lambda number: _CIRCLED.get(number, str(number)),
    "decimalEnclosedParen": lambda number: f"({number})",
    "decimalEnclosedFullstop": lambda number: f"{number}.",
    "numberInDash": lambda number: f"- {number} -",
    "none": lambda _: "",
    **dict.fromkeys(
        (
            "chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting",
            "taiwaneseCountingThousand", "ideographDigital", "japaneseDigitalTenThousand",
        ),
        _chinese,
    ),
}  # fmt: skip
