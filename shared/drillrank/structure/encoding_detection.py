"""Detection of legacy encodings by the letters and signs that each one would show.

charset-normalizer is made for long texts: it misreads most sentences of fewer than a hundred characters. Therefore the
usual encodings are compared first. Each decodes a sample, and the characters are scored as a reader would judge them:
letters by their rank in a language, signs inside words, capitals after small letters, letters of two scripts in one
word. charset-normalizer decides if no usual encoding gives a plausible text.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import log
from typing import NamedTuple

from drillrank.data import read_rows, read_table, read_words

_SAMPLE_BYTES = 4000
_MIN_SCORE = -7.5  # for each byte that is not ASCII; texts below it are not plausible

_RARE_LETTER, _FOREIGN_LETTER = -9.0, -10.0
_LATIN_PRIOR = -2.5  # most letters of such texts are ASCII

_KANA = ("\u3041", "\u30ff")
_WIDE_SIGNS = frozenset("\u3000、。，．・：；？！「」『』（）【】《》〈〉％～〜ー々—－　０１２３４５６７８９")
_SIGNS = frozenset("“”‘’„‚«»‹›–—…•·§°©®™€£¥¿¡№\u00a0²³½¼¾±×µ")
_APOSTROPHES = frozenset("’\u00ad")


class _Frequencies(NamedTuple):
    """Frequencies of encodings, letters and characters.

    Attributes:
        priors: Encodings in the order in which they win ties, with the logarithm of their prior probability.
        latin_letters: Letters beyond ASCII of each language that is written in Latin letters, most frequent first.
        alphabets: Small letters of other alphabets, most frequent first.
        characters: Frequent characters of Chinese, Japanese and Korean.
    """

    priors: dict[str, float]
    latin_letters: list[str]
    alphabets: list[str]
    characters: frozenset[str]


@cache
def _frequencies() -> _Frequencies:
    languages = read_rows("letters_by_language.tsv")
    return _Frequencies(
        {encoding: float(prior) for encoding, prior in read_table("encoding_priors.tsv").items()},
        [letters for _, kind, letters in languages if kind == "latin"],
        [letters for _, kind, letters in languages if kind == "other"],
        frozenset("".join(read_words("frequent_characters.txt"))),
    )


def detect_encoding(content: bytes) -> str:
    """Return the Python name of the likeliest encoding of a text that is not UTF-8.

    The encoding may fail on some bytes of the content.

    >>> detect_encoding("Die Straße ist “lang”.".encode("cp1252"))
    'cp1252'
    >>> detect_encoding("Арендатор платит.".encode("koi8_r")), detect_encoding("賃料です。".encode("shift_jis"))
    ('koi8_r', 'cp932')
    """
    sample = _take_sample(content)
    scores: dict[str, float] = {}
    for encoding, prior in _frequencies().priors.items():
        text = _decode_sample(sample, content, encoding)
        if text is not None:
            scores[encoding] = prior + _score_text(text)
    n_high_bytes = sum(byte > 0x7F for byte in sample)
    for encoding in sorted(scores, key=scores.__getitem__, reverse=True):  # stable: ties keep their order
        if scores[encoding] < _MIN_SCORE * n_high_bytes:
            break
        if _can_decode(content, encoding):
            return encoding
    return _ask_charset_normalizer(sample) or next(iter(scores), "cp1252")


def _take_sample(content: bytes) -> bytes:
    """Return the first lines that are not ASCII, up to `_SAMPLE_BYTES` bytes."""
    lines: list[bytes] = []
    n_bytes = 0
    for line in content.splitlines(keepends=True):
        if not line.isascii():
            lines.append(line[: _SAMPLE_BYTES - n_bytes])
            n_bytes += len(lines[-1])
            if n_bytes >= _SAMPLE_BYTES:
                break
    return b"".join(lines)


def _decode_sample(sample: bytes, content: bytes, encoding: str) -> str | None:
    """Return the text of a sample that may end inside a character; None if the encoding does not fit."""
    if encoding.startswith("utf_16"):  # its lines do not end at the byte of a line feed
        if len(content) % 2:
            return None
        sample = content[:_SAMPLE_BYTES]
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(sample, False)
    except UnicodeDecodeError:
        return None


def _can_decode(content: bytes, encoding: str) -> bool:
    """Return True if the encoding decodes all bytes."""
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _ask_charset_normalizer(sample: bytes) -> str:
    """Return the encoding that charset-normalizer detects; an empty string if it detects none."""
    import charset_normalizer  # few files need it

    match = charset_normalizer.from_bytes(sample).best()
    return "" if match is None or match.encoding.startswith(("utf", "ascii")) else match.encoding


def _score_text(text: str) -> float:
    """Return the logarithm of the probability of the characters beyond ASCII, in the language that fits best."""
    letters: Counter[str] = Counter()
    score = 0.0
    padded = f" {text} "
    for index, character in enumerate(padded):
        if character < "\x80":
            continue
        before, after = padded[index - 1], padded[index + 1]
        if character.isalpha() or unicodedata.category(character).startswith("M"):
            if character < "\u1100":
                letters[character] += 1
                score += _score_letter_context(character, before, after)
            else:
                score += _score_wide_letter(character, before, after)
        else:
            score += _score_sign(character, before, after)
    return score + _score_letters(letters)


def _score_letter_context(character: str, before: str, after: str) -> float:
    """Return the penalty for a letter of an alphabet between two other characters."""
    if not before.isalpha():
        is_alone = not after.isalpha()
        return -1.5 * is_alone - 2.0 * (before.isdigit() or after.isdigit())
    if before > "\u2e7f":
        return -6.0
    is_latin = character < "\u0250"
    penalty = 0.0
    if is_latin != (before < "\u0250"):
        penalty -= 6
    elif is_latin and before > "\x7f":
        penalty -= 1.5
    if character.isupper():
        penalty -= 6 if before.islower() else 0.5
    return penalty


def _score_wide_letter(character: str, before: str, after: str) -> float:
    """Return the score of a Chinese, Japanese or Korean character."""
    penalty = -3.0 * (before < "\x80" and before.isalpha()) - 3.0 * (after < "\x80" and after.isalpha())
    if _is_hangul(character) != _is_hangul(before) and before > "\u2e7f" and before.isalpha():
        penalty -= 3.0  # Korean words have no Chinese characters today
    if _KANA[0] <= character <= _KANA[1]:
        return penalty - (3.5 if character < "\u30a0" else 4.5)
    if character in _frequencies().characters:
        return penalty - 4.5
    if "\uff61" <= character <= "\uff9f":  # katakana of half width, which any high byte may be
        return penalty - 8
    if _is_hangul(character):
        return penalty - (7.5 if _lead_byte(character, "euc_kr") else 12)
    is_common = (
        0xB0 <= _lead_byte(character, "gb2312") <= 0xD7
        or 0xB0 <= _lead_byte(character, "euc_jp") <= 0xCF
        or 0xA4 <= _lead_byte(character, "big5") <= 0xC6
    )
    return penalty - (7 if is_common else 12)


def _is_hangul(character: str) -> bool:
    """Return True for a Korean syllable."""
    return "\uac00" <= character <= "\ud7a3"


def _lead_byte(character: str, encoding: str) -> int:
    """Return the first byte of a character in an encoding that sorts by frequency; 0 if it is not in there."""
    return (character.encode(encoding, errors="ignore") or b"\0")[0]


def _score_sign(character: str, before: str, after: str) -> float:
    """Return the score of a character that is not a letter."""
    if character in _WIDE_SIGNS:
        return -4.0 if before > "\x7f" or not before.isalpha() else -7.0
    is_inside_word = before.isalpha() and after.isalpha()
    if character in _APOSTROPHES or (character == "·" and before + after in ("ll", "LL")):  # Catalan
        return -3.5
    if character in _SIGNS:
        is_attached = (
            before.isalpha()
            if character in "„‚‹«¿¡"
            else character in "§£¥€№¼½¾±µ" and (before.isalpha() or after.isalpha())
        )
        return -9.0 if is_inside_word else -6.5 if is_attached else -4.0
    if "\u2500" <= character <= "\u259f":  # lines of tables in DOS texts
        return -8.0 if before.isalpha() or after.isalpha() else -5.0
    if unicodedata.category(character) in ("Cc", "Co", "Cn", "Cs"):
        return -20.0
    return -10.0 if is_inside_word else -7.0


def _score_letters(letters: Counter[str]) -> float:
    """Return the score of letters in the language that fits them best."""
    scores = [0.0] if not letters else []
    for language in _frequencies().latin_letters if letters else ():
        rank_by_letter = {letter: rank for rank, letter in enumerate(language)}
        scores.append(
            _sum_scores(
                (_LATIN_PRIOR - 0.8 - 0.3 * rank_by_letter[letter] if letter in rank_by_letter else _RARE_LETTER, n)
                if letter < "\u0250"
                else (_FOREIGN_LETTER, n)
                for letter, n in letters.items()
            )
        )
    for language in _frequencies().alphabets if letters else ():
        rank_by_letter = {letter: rank for rank, letter in enumerate(language)}
        scale = len(language) / 3.6  # frequencies fall exponentially with the rank
        scores.append(
            _sum_scores(
                (
                    -log(scale) - rank_by_letter[letter.lower()] / scale
                    if letter.lower() in rank_by_letter
                    else _RARE_LETTER,
                    n,
                )
                for letter, n in letters.items()
            )
        )
    return max(scores)


def _sum_scores(scores_and_counts: Iterable[tuple[float, int]]) -> float:
    """Return the sum of scores, each as often as it occurs."""
    return sum(score * n for score, n in scores_and_counts)
