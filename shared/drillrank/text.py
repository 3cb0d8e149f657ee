"""Terms, words and tokens of texts, and repair of invalid Unicode.

Lexical models, indexes, links and views match texts by `terms`. Forms of a word have the same term if they differ in
inflection (by the Snowball stemmer of the language), accents, case, width of letters, or format of numbers and years.
Scripts without spaces between words are matched by their characters, also in mixed text.
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

ANALYZER = 2  # version of `terms`; stored counts of another version cannot be used
LANGUAGES = (*Stemmer.algorithms(), "none")

_MAX_CACHED_WORDS = 100_000  # a large report has some ten thousand
_MAX_CACHED_LENGTH = 50  # letters; longer words rarely occur twice
_FIRST_YEAR_OF_1900S = 40  # smaller two-digit years are in the 2000s
# Other languages have decimal commas.
_DECIMAL_POINT_LANGUAGES = {"english", "porter", "none", "hindi", "irish", "nepali", "tamil", "yiddish"}
_ELISION_LANGUAGES = {"french", "italian", "catalan"}

# Explicit ranges, because `\w` depends on the Unicode version of Python and does not match combining marks.
_HAN = "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_THAI_LAO_MYANMAR_KHMER = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u1049\u1050-\u109f\u1780-\u17d3"
_SPACELESS = _HAN + _KANA + _THAI_LAO_MYANMAR_KHMER
_ACCENTS = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670"
# Soft hyphens, joiners, marks of direction and variation selectors.
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
_COUNTED_WORD = re.compile(rf"[{_SPACELESS}]{{1,2}}|[^\s{_SPACELESS}]{{1,20}}")  # a longer run counts as several words
_WORD_START = re.compile(rf"[{_SPACELESS}]|[^\s{_SPACELESS}]+")
_SURROGATE = re.compile("[\ud800-\udfff]")

_ASCII_TOKEN, _LATIN_TOKEN, _ANY_TOKEN = (  # a year as in '98, a word, or a number
    # The limit of 15 groups of digits is for rows of numbers without spaces, which may have thousands of groups.
    re.compile(rf"'\d\ds?\b(?!')|[{letters}]+(?:(?<=\d)[.,'\u00a0]\d+){{0,15}}")
    for letters in ("0-9A-Za-z", _LATIN, rf"\w{_MARKS}{_SPACELESS}")
)
_BEYOND_LATIN = re.compile("[\u02b0-\u1fff\u2070-\u209f\u2100-\u218f\u2460-\u24ff\u2776-\u2793\u2c00-\U0010ffff]")
_SPACELESS_RUN = re.compile(f"[{_SPACELESS}]+")
_ELISION = re.compile(r"\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|un|nell|dell|dall|all|sull)['’](?=\w)", re.I)

_ACCENT_OR_INVISIBLE = re.compile(f"[{_ACCENTS}{_INVISIBLE}]")
_INVISIBLE_RUN = re.compile(f"[{_INVISIBLE}]+")
# Powers, footnote marks, fractions and circled numbers do not belong to the number before them.
_SEPARATE_DIGITS = re.compile(
    "([²³¹⁰⁴-⁹]+|[¼-¾\u2150-\u215f\u2189\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u3251-\u325f\u32b1-\u32bf])"
)
_MAX_MARKS = 30  # per letter, as in the stream-safe format of Unicode
_LONG_MARK_RUN = re.compile(rf"[^\w\s\x00-\x7f]{{{_MAX_MARKS + 1},}}")  # no combining mark is a word character
_SHORT_YEAR = re.compile(r"('|fy|cy|\d[qh])(\d\d)(s?)")
_MIXED_WORD = re.compile(r"[^\W\d_]{2,5}\d+|\d+(?!(?:st|nd|rd|th)$)[^\W\d_]*|(?s:.*)\d\W\d(?s:.*)")
_MIXED_WORD_PART = re.compile(r"\d+(?:[.,']\d+)*|[^\W\d]+")
_THOUSANDS = {  # by the decimal separator
    mark: re.compile(rf"\d{{1,3}}(?:[{other}']\d{{2,3}}){{0,15}}[{other}']\d{{3}}(?!\d)")
    for mark, other in (".,", ",.")
}

_thread_local = threading.local()  # a Snowball stemmer has a working buffer, so threads must not share one


def terms(text: str, language: str = "english") -> list[str]:
    """Return the terms of a text: stemmed words in lower case without accents, and numbers in one form.

    - Scripts without spaces (Chinese, Japanese, Thai, Lao, Myanmar, Khmer) have a term for each pair of adjacent
      characters. Chinese characters, and characters without neighbors, are terms of their own, too.
    - Digits are separated from letters (10K like 10-K), except in ordinals and after a single letter (19th, F1, H2O).
    - Thousands separators are removed and decimal separators become points, as is usual in the language.
    - Two-digit years get four digits after a mark of a year: FY22, 4Q22, '22.

    Args:
        text: Any text.
        language: Language of the Snowball stemmer, one of `LANGUAGES`. `"none"` does not stem words.

    Returns:
        Terms in the order of the text.

    Raises:
        InvalidInput: The language is not one of `LANGUAGES`.

    >>> terms("Which rivers were crossed in FY22, for $1,577?")
    ['which', 'river', 'were', 'cross', 'in', 'fy', '2022', 'for', '1577']
    >>> terms("Die Flüsse: 1.577,5 km", "german"), terms("東京の川")
    (['die', 'fluss', '1577.5', 'km'], ['東京', '京の', 'の川', '東', '京', '川'])
    """
    terms_by_token = _cached_terms(language)
    tokens = _find_tokens(_ELISION.sub("", text) if language in _ELISION_LANGUAGES else text)
    terms_of_tokens = list(map(terms_by_token.__getitem__, tokens))  # `map`, because this is the slowest step
    if terms_by_token.tokens_to_split.isdisjoint(tokens):
        return terms_of_tokens
    # Only some tokens have several terms, which are joined by spaces. Copy the others in slices.
    separate_terms: list[str] = []
    end = 0
    for index in compress(count(), map(terms_by_token.tokens_to_split.__contains__, tokens)):
        separate_terms += terms_of_tokens[end:index]
        separate_terms += terms_of_tokens[index].split()
        end = index + 1
    return separate_terms + terms_of_tokens[end:]


def _find_tokens(text: str) -> list[str]:
    """Return the words, numbers and years of a text. The fastest expression for its characters finds them."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    text = _INVISIBLE_RUN.sub("", _drop_excess_marks(text)).replace("’", "'")
    text = text.replace("\u202f", "\u00a0").replace("\u2009", "\u00a0")  # thin spaces, as in "10 000"
    if _BEYOND_LATIN.search(text):
        return _ANY_TOKEN.findall(_SPACELESS_RUN.sub(_character_terms, text))
    return _LATIN_TOKEN.findall(text)


def check_language(language: object) -> str:
    """Check a language, and return it.

    Raises:
        InvalidInput: The language is not one of `LANGUAGES`.

    >>> check_language("german")
    'german'
    """
    if isinstance(language, str) and language in LANGUAGES:
        return language
    raise InvalidInput(f"language must be one of {', '.join(LANGUAGES)}, got {language!r:.200}.")


class _TermCache(dict[str, str]):
    """Mapping from tokens to terms, which computes and stores missing ones. Spaces join several terms of a token.

    Attributes:
        tokens_to_split: Tokens that do not have exactly one term.
    """

    def __init__(self, language: str) -> None:
        self._stemmer = None if check_language(language) == "none" else Stemmer.Stemmer(language)
        self._pinned_stems = read_table("pinned_stems.tsv") if language == "english" else {}
        self._unaccents_first = language in ("english", "porter")  # other stemmers expect accents
        self._decimal_separator = "." if language in _DECIMAL_POINT_LANGUAGES else ","
        self.tokens_to_split: set[str] = set()

    def __missing__(self, token: str) -> str:
        token_terms = list(filter(None, self._terms(token)))
        if len(token_terms) != 1:
            self.tokens_to_split.add(token)
        joined_terms = " ".join(token_terms)
        if len(token) <= _MAX_CACHED_LENGTH:
            self[token] = joined_terms
        return joined_terms

    def _terms(self, token: str) -> Iterator[str]:
        word = token.lower() if token.isascii() else _normalized(token)
        if year := _SHORT_YEAR.fullmatch(word):
            prefix, digits, decade = year.groups()
            century = "20" if int(digits) < _FIRST_YEAR_OF_1900S else "19"
            word = prefix.strip("'") + " " + century + digits + decade
        for piece in word.replace("_", " ").split():
            if not _MIXED_WORD.fullmatch(piece):
                yield self._stem(piece)
                continue
            parts = _MIXED_WORD_PART.findall(piece)
            for part, previous_part in zip(parts, ["", *parts], strict=False):
                if part[0].isdigit():
                    yield from self._numbers(part)
                elif part != "s" or not previous_part:  # drops the "s" of a decade
                    yield self._stem(part)

    def _numbers(self, text: str) -> Iterator[str]:
        number = _THOUSANDS[self._decimal_separator].sub(lambda match: re.sub(r"\D", "", match[0]), text)
        for part in re.split("[,']", number.replace(self._decimal_separator, ".")):
            yield from [part] if part.count(".") == 1 else part.split(".")

    def _stem(self, word: str) -> str:
        if self._stemmer is None or self._unaccents_first:
            word = unaccented(word)
        stem = self._pinned_stems.get(word) or (self._stemmer.stemWord(word) if self._stemmer else word)
        return unaccented(stem)


def _cached_terms(language: str) -> _TermCache:
    """Return the terms that this thread has computed. A full cache starts again from scratch."""
    cache_by_language: dict[str, _TermCache] | None = getattr(_thread_local, "terms", None)
    if cache_by_language is None:
        cache_by_language = _thread_local.terms = {}
    cache = cache_by_language.get(language)
    if cache is None or len(cache) + len(cache.tokens_to_split) > _MAX_CACHED_WORDS:
        cache = cache_by_language[check_language(language)] = _TermCache(language)
    return cache


def _character_terms(run: re.Match[str]) -> str:
    """Return the terms of characters without spaces between them, joined by spaces."""
    characters = normalize("NFKC", run[0])
    pairs_and_ideographs = [*map("".join, pairwise(characters)), *(c for c in characters if c >= "\u3400")]
    return f" {' '.join(pairs_and_ideographs or characters)} "


def _normalized(word: str) -> str:
    """Return a word in lower-case letters of normal width, with digits from 0 to 9."""
    word = normalize("NFKC", _SEPARATE_DIGITS.sub(r" \1 ", word.replace("\u00a0", "'"))).lower()
    return "".join(str(int(c)) if c.isdecimal() else c for c in word)


def unaccented(word: str) -> str:
    """Remove accents and invisible characters from a word.

    >>> unaccented("Wałęsa"), unaccented("Zürich")
    ('Wałesa', 'Zurich')
    """
    if word.isascii():
        return word
    return normalize("NFC", _ACCENT_OR_INVISIBLE.sub("", normalize("NFD", _drop_excess_marks(word)))).replace("ß", "ss")


def _drop_excess_marks(text: str) -> str:
    """Return a text with at most `_MAX_MARKS` combining marks in a row, which Unicode sorts in quadratic time."""
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
    """Find the words of a text. Each character of a script without spaces is a word.

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
    """Return the words and punctuation marks of a name or title, with case and accents, to match it in texts.

    >>> name_tokens("Malcolm X's life"), name_tokens("東京")
    (['Malcolm', 'X', "'", 's', 'life'], ['東', '京'])
    """
    if text.isascii():
        return _NAME_TOKEN.findall(text)
    return _ANY_NAME_TOKEN.findall(normalize("NFC", _INVISIBLE_RUN.sub("", _drop_excess_marks(text))))


def word_starts(text: str) -> list[int]:
    """Return the offsets at which words begin, except for the first word.

    >>> word_starts(" The Rhine flows")
    [5, 11]
    """
    return [word.start() for word in _WORD_START.finditer(text)][1:]


def word_count(text: str) -> int:
    """Count words. Every 20 characters of a longer word and every two of a script without spaces count as one word.

    >>> word_count("The Rhine flows"), word_count("x" * 50), word_count("東京の川")
    (3, 3, 2)
    """
    return sum(1 for _ in _COUNTED_WORD.finditer(text))


def first_words(text: str, count: int) -> str:
    """Return the text up to the end of its `count`-th word, or of its last word if there are fewer.

    >>> first_words("The Rhine flows through Basel. ", 3), first_words("The Rhine. ", 3), first_words(" ", 3)
    ('The Rhine flows', 'The Rhine.', '')
    """
    end = 0
    for word in islice(_COUNTED_WORD.finditer(text), count):
        end = word.end()
    return text[:end]


def without_surrogates(text: str) -> str:
    r"""Replace each lone surrogate, which is half a character, with U+FFFD. Offsets in the text do not change.

    >>> without_surrogates("a\ud83eb") == "a\ufffdb"
    True
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def check_surrogates(text: str, what: str) -> None:
    r"""Refuse a text with a lone surrogate, which is half a character.

    Args:
        text: The text.
        what: Name of the text in the message.

    Raises:
        InvalidInput: There is one. The message contains its offset.

    >>> check_surrogates("Why\ud83e?", "The question")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: The question contains half a character, '\ud83e' at offset 3. Decode it again.
    """
    if not text.isascii() and (match := _SURROGATE.search(text)):
        raise InvalidInput(
            f"{what} contains half a character, {match[0]!r} at offset {match.start()}. Decode it again."
        )


TokenCount = Callable[[str], int]
Tokens = str | TokenCount | Any | None
"""Argument of `token_counter`."""

# Approximates the tokens of an LLM's tokenizer. Ranges are explicit, as above.
_TOKEN = re.compile(
    r"[a-z]{1,11}"  # most words are one token
    r"|[A-Z][a-z]{1,4}|[A-Z]{1,4}"  # names and acronyms are less frequent
    r"|[0-9]{1,3}"
    r"|[!-/:-@\[-`{-~]{1,3}"
    r"|[ \t\r\n]{2,64}|\n"  # a single space belongs to the next word
    r"|[\u0250-\u0dff]{1,2}"  # Greek, Cyrillic, Hebrew, Arabic, scripts of India
    r"|[^ \t\r]"  # accented letters, Chinese, Japanese, Korean, emoji, ...
)
_SLICE = 20_000  # characters; byte-pair merging is super-linear in unbroken runs


def count_tokens(text: str) -> int:
    r"""Estimate the number of tokens of a text without a vocabulary.

    The sum over English prose, Markdown and JSON is within 2 % of the encodings cl100k_base and o200k_base, over code
    within 8 %. The error of single passages is about 8 %, and larger in other languages, 25 % for German.

    >>> count_tokens("The Rhine flows through Basel, a town of 180,000 people.\n")
    15
    """
    return sum(1 for _ in _TOKEN.finditer(text))


def token_counter(tokens: Tokens = None) -> TokenCount:
    """Return a function that counts the tokens of a text.

    Args:
        tokens: None for `count_tokens`; `"tiktoken:<encoding>"`, such as `"tiktoken:o200k_base"`, which tiktoken
            downloads at its first use; a function from a text to a number; a tokenizer with `encode`, whose special
            tokens do not count; or a model with `count_tokens`.

    Raises:
        InvalidInput: `tokens` is none of these, or the encoding does not exist or cannot be downloaded.
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
            'tokens must be "tiktoken:<encoding>", a function from a text to its number of tokens, or a tokenizer with '
            f"an `encode` method, got {tokens!r:.100}."
        )
    counter_of_text: TokenCount = count
    return counter_of_text


def _token_count(encode: Callable[..., Sized], options: dict[str, bool], text: str) -> int:
    return sum(len(encode(text[i : i + _SLICE], **options)) for i in range(0, len(text), _SLICE))


def _tiktoken(spec: str) -> Callable[[str], list[int]]:
    kind, _, name = spec.partition(":")
    if kind != "tiktoken" or not name:
        raise InvalidInput(f'tokens must be "tiktoken:<encoding>", such as "tiktoken:cl100k_base", got {spec!r:.200}.')
    tiktoken = require("tiktoken", "tiktoken")
    try:
        encode: Callable[[str], list[int]] = tiktoken.get_encoding(name).encode_ordinary
    except Exception as cause:  # an unknown name, no network, a broken file
        raise InvalidInput(
            f"tokens={spec!r:.200} cannot be loaded: {cause}. Without a network, set TIKTOKEN_CACHE_DIR to the folder "
            "of its file."
        ) from cause
    return encode
