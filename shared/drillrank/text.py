"""Text as words: what lexical models, indexes, links and views match by; lengths in words; invalid Unicode.

`terms` is what two texts are matched by. What is written in several ways has one form: inflections (the Snowball
stemmer of the language), letters with accents, of either case and of any width, numbers and years. Scripts without
spaces between words are told by their characters, in mixed text too.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Iterator, Sized
from functools import partial
from itertools import compress, count, islice, pairwise
from typing import Any
from unicodedata import combining, normalize

import Stemmer

from drillrank.data import read_table
from drillrank.errors import InvalidInput, require

ANALYZER = 2  # raised whenever `terms` changes: words that were counted before are those of another analyzer
LANGUAGES = (*Stemmer.algorithms(), "none")

_REMEMBERED = 100_000  # words; a large report has some ten thousand
_LONG = 50  # letters of a word that is hardly met again
_CENTURY = 40  # two-digit years below it are of this century
_DECIMAL_POINT = {"english", "porter", "none", "hindi", "irish", "nepali", "tamil", "yiddish"}  # others have commas
_ELIDING = {"french", "italian", "catalan"}

# Explicit ranges, because `\w` follows the Unicode version of the running Python, and knows no combining marks.
_HAN = "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_THAI_LAO_MYANMAR_KHMER = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u1049\u1050-\u109f\u1780-\u17d3"
_SPACELESS = _HAN + _KANA + _THAI_LAO_MYANMAR_KHMER
_ACCENTS = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670"
# Soft hyphens, joiners, marks of direction, variation selectors: a reader does not see them.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e01ef"
)
_MARKS = f"{_ACCENTS}\u0900-\u0963\u0966-\u0df3"
_LATIN = "0-9A-Za-zª²³µ¹º¼-¾À-ÖØ-öø-ʯ"

SPACELESS = re.compile(f"[{_SPACELESS}]")  # a character of a script without spaces
WORD = re.compile(r"\w+")
_WORD_PART = rf"(?:[^\W{_SPACELESS}]|[{_MARKS}])+"
_WORD_OR_CHARACTER = re.compile(rf"[{_SPACELESS}]|{_WORD_PART}(?:[{_INVISIBLE}]+{_WORD_PART})*")
_NAME_TOKEN, _ANY_NAME_TOKEN = (re.compile(rf"{word.pattern}|[^\w\s]") for word in (WORD, _WORD_OR_CHARACTER))
_WRITTEN = re.compile(rf"[{_SPACELESS}]{{1,2}}|[^\s{_SPACELESS}]{{1,20}}")  # a longer run counts as several words
_WORD_START = re.compile(rf"[{_SPACELESS}]|[^\s{_SPACELESS}]+")
_SURROGATE = re.compile("[\ud800-\udfff]")

_ASCII_TOKEN, _LATIN_TOKEN, _ANY_TOKEN = (  # a year as in '98, or a word, or a number
    # No number has more groups of digits than that; a row of numbers without spaces may have thousands.
    re.compile(rf"'\d\ds?\b(?!')|[{letters}]+(?:(?<=\d)[.,'\u00a0]\d+){{0,15}}")
    for letters in ("0-9A-Za-z", _LATIN, rf"\w{_MARKS}{_SPACELESS}")
)
_BEYOND_LATIN = re.compile("[\u02b0-\u1fff\u2070-\u209f\u2100-\u218f\u2460-\u24ff\u2776-\u2793\u2c00-\U0010ffff]")
_RUN = re.compile(f"[{_SPACELESS}]+")
_ELISION = re.compile(r"\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|un|nell|dell|dall|all|sull)['’](?=\w)", re.I)

_NOT_FOLDED = re.compile(f"[{_ACCENTS}{_INVISIBLE}]")
_INVISIBLE_RUN = re.compile(f"[{_INVISIBLE}]+")
# Powers, footnote marks, fractions and circled numbers are not digits of the number before them.
_SEPARATE_DIGITS = re.compile(
    "([²³¹⁰⁴-⁹]+|[¼-¾\u2150-\u215f\u2189\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u3251-\u325f\u32b1-\u32bf])"
)
_MAX_MARKS = 30  # for one letter, as in the stream-safe format of Unicode
_LONG_MARK_RUN = re.compile(rf"[^\w\s\x00-\x7f]{{{_MAX_MARKS + 1},}}")  # no combining mark is a word character
_SHORT_YEAR = re.compile(r"('|fy|cy|\d[qh])(\d\d)(s?)")
_APART = re.compile(r"[^\W\d_]{2,5}\d+|\d+(?!(?:st|nd|rd|th)$)[^\W\d_]*|(?s:.*)\d\W\d(?s:.*)")
_PART = re.compile(r"\d+(?:[.,']\d+)*|[^\W\d]+")
_THOUSANDS = {  # by the decimal separator
    mark: re.compile(rf"\d{{1,3}}(?:[{other}']\d{{2,3}}){{0,15}}[{other}']\d{{3}}(?!\d)")
    for mark, other in (".,", ",.")
}

_per_thread = threading.local()  # a Snowball stemmer keeps its working buffer, so threads must not share one


def terms(text: str, language: str = "english") -> list[str]:
    """What a text is matched by: its words, stemmed, without accents, in small letters; numbers in one form.

    - Scripts without spaces (Chinese, Japanese, Thai, Lao, Myanmar, Khmer): every two characters that stand side by
      side, and of Chinese ones also each alone. A character that stands alone is a term in any of them.
    - Digits come apart from letters (10K as 10-K), but for ordinals and names of one letter (19th, F1, H2O).
    - Separators of thousands are left out, decimal ones become points; the stemmer's language tells which is which.
    - Years of two digits have four where they are known by what stands before: FY22, 4Q22, '22.

    Args:
        text: Any text.
        language: A Snowball stemmer, one of `LANGUAGES`; `"none"` leaves words as they are.

    Returns:
        Terms in the order of the text.

    Raises:
        InvalidInput: there is no such language.

    >>> terms("Which rivers were crossed in FY22, for $1,577?")
    ['which', 'river', 'were', 'cross', 'in', 'fy', '2022', 'for', '1577']
    >>> terms("Die Flüsse: 1.577,5 km", "german"), terms("東京の川")
    (['die', 'fluss', '1577.5', 'km'], ['東京', '京の', 'の川', '東', '京', '川'])
    """
    known = _known(language)
    if language in _ELIDING:
        text = _ELISION.sub("", text)
    if text.isascii():
        tokens = _ASCII_TOKEN.findall(text)
    else:
        text = (
            _INVISIBLE_RUN.sub("", _drop_excess_marks(text))
            .replace("’", "'")
            .replace("\u202f", "\u00a0")
            .replace("\u2009", "\u00a0")
        )
        if _BEYOND_LATIN.search(text):
            tokens = _ANY_TOKEN.findall(_RUN.sub(_pairs, text))
        else:
            tokens = _LATIN_TOKEN.findall(text)
    terms_of_tokens = list(map(known.__getitem__, tokens))
    if known.several.isdisjoint(tokens):
        return terms_of_tokens
    separate_terms: list[str] = []
    end = 0
    for index in compress(count(), map(known.several.__contains__, tokens)):
        separate_terms += terms_of_tokens[end:index]
        separate_terms += terms_of_tokens[index].split()
        end = index + 1
    return separate_terms + terms_of_tokens[end:]


def check_language(language: object) -> str:
    """The language itself.

    Raises:
        InvalidInput: it is none of `LANGUAGES`.
    """
    if isinstance(language, str) and language in LANGUAGES:
        return language
    raise InvalidInput(f"language is one of {', '.join(LANGUAGES)}; not {language!r:.200}.")


class _Terms(dict[str, str]):
    """The terms of each word, as it is written, that was met before; several are joined by spaces.

    Attributes:
        several: The words that have several, or none.
    """

    def __init__(self, language: str) -> None:
        self._stemmer = None if check_language(language) == "none" else Stemmer.Stemmer(language)
        self._pinned = read_table("pinned_stems.tsv") if language == "english" else {}
        self._folds_first = language in ("english", "porter")  # other stemmers know their accents
        self._decimal = "." if language in _DECIMAL_POINT else ","
        self.several: set[str] = set()

    def __missing__(self, token: str) -> str:
        found = list(filter(None, self._terms(token)))
        if len(found) != 1:
            self.several.add(token)
        joined = " ".join(found)
        if len(token) <= _LONG:
            self[token] = joined
        return joined

    def _terms(self, token: str) -> Iterator[str]:
        word = token.lower() if token.isascii() else _plain(token)
        if year := _SHORT_YEAR.fullmatch(word):
            before, two, decade = year.groups()
            century = "20" if int(two) < _CENTURY else "19"
            word = before.strip("'") + " " + century + two + decade
        for piece in word.replace("_", " ").split():
            if not _APART.fullmatch(piece):
                yield self._stem(piece)
                continue
            parts = _PART.findall(piece)
            for part, before in zip(parts, ["", *parts], strict=False):
                if part[0].isdigit():
                    yield from self._numbers(part)
                elif part != "s" or not before:  # of a decade
                    yield self._stem(part)

    def _numbers(self, written: str) -> Iterator[str]:
        number = _THOUSANDS[self._decimal].sub(lambda whole: re.sub(r"\D", "", whole[0]), written)
        for one in re.split("[,']", number.replace(self._decimal, ".")):
            yield from [one] if one.count(".") == 1 else one.split(".")

    def _stem(self, word: str) -> str:
        if self._stemmer is None or self._folds_first:
            word = unaccented(word)
        stem = self._pinned.get(word) or (self._stemmer.stemWord(word) if self._stemmer else word)
        return unaccented(stem)


def _known(language: str) -> _Terms:
    """What this thread remembers."""
    by_language: dict[str, _Terms] | None = getattr(_per_thread, "terms", None)
    if by_language is None:
        by_language = _per_thread.terms = {}
    known = by_language.get(language)
    if known is None or len(known) + len(known.several) > _REMEMBERED:
        known = by_language[check_language(language)] = _Terms(language)
    return known


def _pairs(run: re.Match[str]) -> str:
    """Terms of characters between which there are no spaces."""
    characters = normalize("NFKC", run[0])
    found = [*map("".join, pairwise(characters)), *(c for c in characters if c >= "\u3400")]
    return f" {' '.join(found or characters)} "


def _plain(word: str) -> str:
    """A word of any letters in small ones of the usual width, and its digits as 0 to 9."""
    word = normalize("NFKC", _SEPARATE_DIGITS.sub(r" \1 ", word.replace("\u00a0", "'"))).lower()
    return "".join(str(int(c)) if c.isdecimal() else c for c in word)


def unaccented(word: str) -> str:
    """A word without its accents and the like.

    >>> unaccented("Wałęsa"), unaccented("Zürich")
    ('Wałesa', 'Zurich')
    """
    if word.isascii():
        return word
    return normalize("NFC", _NOT_FOLDED.sub("", normalize("NFD", _drop_excess_marks(word)))).replace("ß", "ss")


def _drop_excess_marks(text: str) -> str:
    """Return a text with at most `_MAX_MARKS` combining marks in a row: to sort them takes quadratic time."""
    return _LONG_MARK_RUN.sub(_drop_excess_marks_of_run, text)


def _drop_excess_marks_of_run(run: re.Match[str]) -> str:
    """Return the characters of a run without those after `_MAX_MARKS` combining marks."""
    characters: list[str] = []
    n_marks = 0
    for character in run[0]:
        n_marks = n_marks + 1 if combining(character) else 0
        if n_marks <= _MAX_MARKS:
            characters.append(character)
    return "".join(characters)


def find_words(text: str) -> Iterator[re.Match[str]]:
    """The words of a text as they are written, one after the other; characters of scripts without spaces one by one.

    >>> [word[0] for word in find_words("Who, me? 東京")]
    ['Who', 'me', '東', '京']
    """
    return (WORD if text.isascii() else _WORD_OR_CHARACTER).finditer(text)


def words(text: str) -> list[str]:
    r"""Return the words that `find_words` finds, without invisible characters such as soft hyphens.

    >>> words("Who, m\u00ade?"), len(words("東京"))
    (['Who', 'me'], 2)
    """
    return WORD.findall(text) if text.isascii() else _WORD_OR_CHARACTER.findall(_INVISIBLE_RUN.sub("", text))


def name_tokens(text: str) -> list[str]:
    """The words and punctuation marks that names and titles are compared by, letters and case as they are.

    >>> name_tokens("Malcolm X's life"), name_tokens("東京")
    (['Malcolm', 'X', "'", 's', 'life'], ['東', '京'])
    """
    if text.isascii():
        return _NAME_TOKEN.findall(text)
    return _ANY_NAME_TOKEN.findall(normalize("NFC", _INVISIBLE_RUN.sub("", _drop_excess_marks(text))))


def word_starts(text: str) -> list[int]:
    """Offsets at which words begin, without that of the first one.

    >>> word_starts(" The Rhine flows")
    [5, 11]
    """
    return [word.start() for word in _WORD_START.finditer(text)][1:]


def word_count(text: str) -> int:
    """How long a text is in words; a run of more than 20 characters counts as several, as do scripts without spaces.

    >>> word_count("The Rhine flows"), word_count("x" * 50), word_count("東京の川")
    (3, 3, 2)
    """
    return sum(1 for _ in _WRITTEN.finditer(text))


def first_words(text: str, count: int) -> str:
    """The text up to the end of its `count`-th word, or of its last one.

    >>> first_words("The Rhine flows through Basel. ", 3), first_words("The Rhine. ", 3), first_words(" ", 3)
    ('The Rhine flows', 'The Rhine.', '')
    """
    end = 0
    for word in islice(_WRITTEN.finditer(text), count):
        end = word.end()
    return text[:end]


def without_surrogates(text: str) -> str:
    r"""A document's text with U+FFFD for each half of a character (lone surrogate); all offsets stay.

    >>> without_surrogates("a\ud83eb") == "a\ufffdb"
    True
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def check_surrogates(text: str, what: str) -> None:
    r"""Refuse a text in which there is half a character, such as a question, which nobody meant so.

    Raises:
        InvalidInput: says where.

    >>> check_surrogates("Why\ud83e?", "The question")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: The question holds half a character, '\ud83e' at offset 3: decode it anew.
    """
    if not text.isascii() and (found := _SURROGATE.search(text)):
        raise InvalidInput(f"{what} holds half a character, {found[0]!r} at offset {found.start()}: decode it anew.")


TokenCount = Callable[[str], int]
Tokens = str | TokenCount | Any | None
"""What counts: None for `count_tokens`, `"tiktoken:<encoding>"`, a function, a tokenizer, or a model that counts."""

# What an LLM's tokenizer makes of a text, more or less; explicit ranges, as above.
_TOKEN = re.compile(
    r"[a-z]{1,11}"  # most words are one token
    r"|[A-Z][a-z]{1,4}|[A-Z]{1,4}"  # names and acronyms are seldom
    r"|[0-9]{1,3}"
    r"|[!-/:-@\[-`{-~]{1,3}"
    r"|[ \t\r\n]{2,64}|\n"  # a single space belongs to the next word
    r"|[\u0250-\u0dff]{1,2}"  # Greek, Cyrillic, Hebrew, Arabic, scripts of India
    r"|[^ \t\r]"  # accented letters, Chinese, Japanese, Korean, emoji, ...
)
_SLICE = 20_000  # characters; byte-pair merging is super-linear in unbroken runs


def count_tokens(text: str) -> int:
    r"""An estimate from the characters alone: no vocabulary, no files, the same number wherever it runs.

    English prose, Markdown and JSON, added up, are within 2 % of the encodings cl100k_base and o200k_base, code within
    8 %; single passages stray by 8 %. For other languages it is too low or too high, by a fourth for German:
    `python -m tests.benchmarks tokens` tells.

    >>> count_tokens("The Rhine flows through Basel, a town of 180,000 people.\n")
    15
    """
    return sum(1 for _ in _TOKEN.finditer(text))


def token_counter(tokens: Tokens = None) -> TokenCount:
    """What counts the tokens of a text.

    Args:
        tokens: None for `count_tokens`; `"tiktoken:<encoding>"`, such as `"tiktoken:o200k_base"`, which tiktoken
            downloads at its first use; a function from a text to a number; a tokenizer with `encode`, whose special
            tokens do not count; or a model with `count_tokens`.

    Raises:
        InvalidInput: it is none of these, there is no such encoding, or it cannot be had.
        MissingExtra: tiktoken is not installed.

    >>> token_counter(lambda text: len(text.split()))("one two three")
    3
    """
    if tokens is None:
        return count_tokens
    count: Any = tokens
    if isinstance(tokens, str):
        count = partial(_token_count, _tiktoken(tokens), {})
    elif callable(counter := getattr(tokens, "count_tokens", None)):
        count = counter
    elif callable(encode := getattr(tokens, "encode_ordinary", None) or getattr(tokens, "encode", None)):
        try:
            special = "add_special_tokens" in inspect.signature(encode).parameters
        except (TypeError, ValueError):  # compiled, without a signature
            special = False
        count = partial(_token_count, encode, {"add_special_tokens": False} if special else {})
    if not callable(count) or not isinstance(count("a text"), int):
        raise InvalidInput(
            f'tokens is "tiktoken:<encoding>", a function from a text to its number of tokens, or a tokenizer with '
            f"encode; not {tokens!r:.100}."
        )
    counted: TokenCount = count
    return counted


def _token_count(encode: Callable[..., Sized], options: dict[str, bool], text: str) -> int:
    return sum(len(encode(text[i : i + _SLICE], **options)) for i in range(0, len(text), _SLICE))


def _tiktoken(spec: str) -> Callable[[str], list[int]]:
    kind, _, name = spec.partition(":")
    if kind != "tiktoken" or not name:
        raise InvalidInput(f'tokens is "tiktoken:<encoding>", such as "tiktoken:cl100k_base"; not {spec!r:.200}.')
    tiktoken = require("tiktoken", "tiktoken")
    try:
        encode: Callable[[str], list[int]] = tiktoken.get_encoding(name).encode_ordinary
    except Exception as cause:  # an unknown name, no network, a broken file
        raise InvalidInput(
            f"{spec!r:.200} cannot be loaded: {cause}. Without a network, set TIKTOKEN_CACHE_DIR to a folder with "
            "its file."
        ) from cause
    return encode
