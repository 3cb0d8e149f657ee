"""Numbers of lists and headings in the formats of office programs: 3, c, iii, III, 3rd, three, 三."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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
_ALPHABETS = {
    "hebrew2": "אבגדהוזחטיכלמנסעפצקרשת",
    "arabicAlpha": "أبتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "arabicAbjad": "أبجدهوزحطيكلمنسعفصقرشتثخذضظغ",
    "aiueo": "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン",
    "iroha": "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセスン",
    "ganada": "가나다라마바사아자차카타파하",
    "chosung": "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "thaiLetters": "กขคงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรลวศษสหฬอฮ",
    "chicago": "*†‡§",
    "ideographTraditional": "甲乙丙丁戊己庚辛壬癸",
    "ideographZodiac": "子丑寅卯辰巳午未申酉戌亥",
    "ideographEnclosedCircle": "㊀㊁㊂㊃㊄㊅㊆㊇㊈㊉",
}
_ALPHABETS |= {"aiueoFullWidth": _ALPHABETS["aiueo"], "irohaFullWidth": _ALPHABETS["iroha"]}
_DIGITS = {
    "decimalFullWidth": "０１２３４５６７８９",
    "decimalFullWidth2": "０１２３４５６７８９",
    "thaiNumbers": "๐๑๒๓๔๕๖๗๘๙",
    "hindiNumbers": "०१२३४५६७८९",
    "koreanDigital": "영일이삼사오육칠팔구",
    "koreanDigital2": "零一二三四五六七八九",
}
_IDEOGRAPHS = {  # digits and the sign of ten
    "koreanCounting": ("영일이삼사오육칠팔구", "십"),
    "chineseLegalSimplified": ("零壹贰叁肆伍陆柒捌玖", "拾"),
    "ideographLegalTraditional": ("零壹貳參肆伍陸柒捌玖", "拾"),
    "japaneseLegal": ("〇壱弐参四伍六七八九", "拾"),
}
_HEBREW = (
    *((400, "ת"), (300, "ש"), (200, "ר"), (100, "ק"), (90, "צ"), (80, "פ"), (70, "ע"), (60, "ס"), (50, "נ"), (40, "מ")),
    *((30, "ל"), (20, "כ"), (16, "טז"), (15, "טו"), (10, "י")),
    *((9, "ט"), (8, "ח"), (7, "ז"), (6, "ו"), (5, "ה"), (4, "ד"), (3, "ג"), (2, "ב"), (1, "א")),
)
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


def _roman(number: int, values: tuple[tuple[int, str], ...] = _ROMAN_DIGITS) -> str:
    if number > _MAX_ROMAN:
        return str(number)
    digits = ""
    for value, digit in values:
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


def _chinese(number: int, digits: str = _CHINESE_DIGITS, ten: str = "十") -> str:
    if number >= 100:
        return _digits(number, digits)
    tens, unit = divmod(number, 10)
    leading = "" if not tens else ten if tens == 1 else f"{digits[tens]}{ten}"
    return leading + (digits[unit] if unit else "")


def _digits(number: int, digits: str) -> str:
    return "".join(digits[int(digit)] for digit in str(number))


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
    "hex": lambda number: f"{number:X}",
    "hebrew1": partial(_roman, values=_HEBREW),
    "none": lambda _: "",
    **{name: partial(_letters, alphabet=alphabet) for name, alphabet in _ALPHABETS.items()},
    **{name: partial(_digits, digits=digits) for name, digits in _DIGITS.items()},
    **{name: partial(_chinese, digits=digits, ten=ten) for name, (digits, ten) in _IDEOGRAPHS.items()},
    **dict.fromkeys(
        (
            "chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting",
            "taiwaneseCountingThousand", "ideographDigital", "japaneseDigitalTenThousand",
        ),
        _chinese,
    ),
}  # fmt: skip
