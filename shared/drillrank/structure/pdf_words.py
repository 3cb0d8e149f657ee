"""Words of a PDF that its layout has split: by the spacing of letters, or by hyphens at the ends of lines."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

from drillrank.data import read_table
from drillrank.structure.pdf_text import LayoutRow
from drillrank.text import terms

WORDS = re.compile(r"[^\W\d_]+")
_COMPOUND = re.compile(r"(?<![^\W\d_])[^\W\d_]+-[^\W\d_]+")
_LINE_END_HYPHEN = re.compile(r"(?P<chain>-?)\b(?P<word>\w*[^\W\d_])(?P<hyphen>[-\u00ad\u2010])$")
_CONJUNCTIONS = frozenset(["and", "or", "to", "und", "oder", "bis", "et", "ou", "y", "e", "en", "of", "og", "och"])
_LONGEST_WORD = 100
_SHORT_PART = 3  # letters of every part but one
_RARER = 10  # a joined word is at least this many times as frequent as its rarest part
_SPELLED = 4  # letters that are printed apart: the word that they spell need not be frequent
_LEAST_LETTERS, _MOST_LETTERS = 3, 60  # of a word
_AROUND = "([{\"'“‘.,;:!?)]}”’"
# Counts of English words, of 1.2 billion: a hyphenated word, one of two common words, and one that letters spell.
_ENGLISH, _COMMON, _SURELY_ENGLISH = 50, 5_000, 1_000
_LETTER_SPACED = re.compile(r"(?:^|\s)[^\W\d_](?:\s+[^\W\d_]{1,2}){2,}(?=\s|$)")


class Vocabulary:
    """Words of a file, with their counts.

    Args:
        texts: Texts of the rows of the file.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.counts: Counter[str] = Counter()
        self._compounds: Counter[str] = Counter()
        for text in texts:
            folded = text.casefold()
            self.counts.update(WORDS.findall(folded))
            if "-" in folded:
                self._compounds.update(_COMPOUND.findall(folded))

    def drops_hyphen(self, word: str, rest: str) -> bool:
        """Return True if a hyphen at the end of a line is not part of the word.

        The word without it is a word of the file or of English, and the word with it is not more frequent in the file.
        """
        joined, compound = f"{word}{rest}".casefold(), f"{word}-{rest}".casefold()
        if self.counts[joined] or self._compounds[compound]:
            return self.counts[joined] > self._compounds[compound]
        if len(word) < 2 or (rest[0].isupper() and not word.isupper()):
            return False
        count = count_in_english(joined)
        are_common = min(count_in_english(word.casefold()), count_in_english(rest.casefold())) >= _COMMON
        return count >= (_SURELY_ENGLISH if are_common else _ENGLISH)


@cache
def _english_counts() -> dict[str, str]:
    return read_table("english_stems.tsv.gz")


def count_in_english(word: str) -> int:
    """Return the count of the stem of a lower-case word in English subtitles, or 0 if it is unknown."""
    stems = terms(word)
    return int(_english_counts().get(stems[0], 0)) if len(stems) == 1 else 0


def join_spaced_letters(text: str, char_codes: Sequence[int]) -> str:
    """Return the text of an item without the spaces that stand for the spacing of its letters.

    Args:
        text: Text as liteparse gives it.
        char_codes: Codes that the file has for the letters: a space that has none is spacing.

    >>> join_spaced_letters("P R O F I T", [80, 82, 79, 70, 73, 84]), join_spaced_letters("A B", [65, 32, 66])
    ('PROFIT', 'A B')
    """
    letters = text.replace(" ", "")
    codes = list(char_codes)
    while codes and codes[-1] in (0, 32):
        codes.pop()
    if len(codes) == len(letters):
        return letters
    if len(codes) - codes.count(32) != len(letters) or codes.count(32) >= text.count(" "):
        return text
    signs = iter(letters)
    return "".join(" " if code == 32 else next(signs) for code in codes)


def is_letter_spaced(text: str) -> bool:
    """Return True if a text has at least three letters in a row with spaces between them."""
    return _LETTER_SPACED.search(text) is not None


def join_row_words(row: LayoutRow, word_counts: Mapping[str, int]) -> LayoutRow:
    """Return a row with its split words joined.

    Args:
        row: Row of the file.
        word_counts: Number of occurrences of each lower-case word in the file.
    """
    texts = [join_split_words(run.text, word_counts) for run in row.runs]
    if texts == [run.text for run in row.runs]:
        return row
    return replace(row, runs=tuple(replace(run, text=text) for run, text in zip(row.runs, texts, strict=True)))


def join_split_words(text: str, word_counts: Mapping[str, int]) -> str:
    """Return a text with its split words joined.

    >>> join_split_words("Net Incom e (loss) of an e-mail", {"income": 50, "incom": 2, "e": 5, "net": 40})
    'Net Income (loss) of an e-mail'
    >>> join_split_words("R e v e n u e grew", {"revenue": 1})
    'Revenue grew'
    >>> join_split_words("A N N U A L R E P O R T for B o a r d", {})
    'ANNUAL REPORT for Board'
    """
    parts = text.split(" ")
    if len(parts) < 2:
        return text
    joined_words: list[str] = []
    start = 0
    spelled_from = 0 if is_letter_spaced(text) else len(parts)  # before it, no words are spelled
    while start < len(parts):
        if _is_long(parts[start]) and _is_long(parts[min(start + 1, len(parts) - 1)]):  # a shortcut: most words are
            joined_words.append(parts[start])
            start += 1
            continue
        end = _word_end(parts, start, word_counts)
        words = ["".join(parts[start:end])]
        if end == start + 1 and start >= spelled_from:
            run = _letter_run(parts, start)
            spelled_from = start + max(len(run), 1)
            if spelled_words := _segment(run, word_counts):
                words, end = spelled_words, start + len(run)
        joined_words += words
        start = end
    return " ".join(joined_words)


def _is_long(part: str) -> bool:
    return len(part) > _SHORT_PART and part.isalpha()


def _word_end(parts: Sequence[str], start: int, word_counts: Mapping[str, int]) -> int:
    """Return the end of the longest split word that begins at `start`, or the next index if no word is split."""
    best_end, word, rarest, n_long = start + 1, "", math.inf, 0
    for end in range(start + 1, len(parts) + 1):
        raw_part = parts[end - 1]
        part = raw_part.rstrip(_AROUND) if word else raw_part.lstrip(_AROUND)
        n_long += len(part) > _SHORT_PART
        if not part.isalpha() or n_long > 1 or len(word) > _MOST_LETTERS:
            break
        word += part.casefold()
        rarest = min(rarest, word_counts.get(part.casefold(), 0))
        count = word_counts.get(word, 0) if len(word) >= _LEAST_LETTERS else 0
        is_spelled = end - start >= _SPELLED and end - start == len(word)
        if end > start + 1 and count and (is_spelled or count >= _RARER * rarest):
            best_end = end
        if end > start + 1 and part != raw_part:  # another word begins after a comma
            break
    return best_end


def _letter_run(parts: Sequence[str], start: int) -> list[str]:
    """Return the parts at `start` that are one or two letters, or nothing if they cannot be letters of words."""
    end = start
    while end < len(parts) and end - start < _MOST_LETTERS and parts[end].isalpha() and len(parts[end]) <= 2:
        end += 1
    run = list(parts[start:end])
    n_single = sum(len(part) == 1 for part in run)
    return run if len(run) >= _SPELLED and n_single >= 0.6 * len(run) and not _is_alphabet(run) else []


def _is_alphabet(letters: Sequence[str]) -> bool:
    """Return True if letters follow each other as in the alphabet: they are names of things in a list."""
    folded = [letter.casefold() for letter in letters]
    return any(len(letter) == 1 for letter in folded) and all(
        len(before) == len(after) == 1 and ord(after) - ord(before) in (0, 1) for before, after in pairwise(folded)
    )


def _segment(run: Sequence[str], word_counts: Mapping[str, int]) -> list[str]:
    """Return the fewest words that the parts of a run spell; nothing if a part belongs to no word."""
    # For each end: number of words, negative frequency of the rarest, start of the last word.
    best: list[tuple[int, int, int] | None] = [(0, 0, 0)]
    for end in range(1, len(run) + 1):
        choices = []
        for start in range(max(0, end - _MOST_LETTERS // 2), end):
            before = best[start]
            word = "".join(run[start:end]).casefold()
            if before is None or len(word) < 2:
                continue
            count = count_in_english(word)
            is_word = count >= _SURELY_ENGLISH if len(word) <= _SPELLED else count >= _ENGLISH
            if is_word or (word_counts.get(word, 0) and len(word) >= _LEAST_LETTERS):
                choices.append((before[0] + 1, -count, start))
        best.append(min(choices, default=None))
    words: list[str] = []
    end = len(run)
    while end:
        choice = best[end]
        if choice is None:
            return []
        words.append("".join(run[choice[2] : end]))
        end = choice[2]
    return words[::-1] if sum(map(len, words)) >= _LEAST_LETTERS * len(words) else []


def append_line(lines: list[str], line: str, vocabulary: Vocabulary) -> None:
    """Append a line to the lines of a paragraph, without the hyphen between them if it only breaks the word.

    Args:
        lines: Lines so far, each with the space before it.
        line: Next line.
        vocabulary: Words of the file.
    """
    hyphen = _LINE_END_HYPHEN.search(lines[-1][-_LONGEST_WORD:]) if lines else None
    rest = WORDS.match(line)
    if hyphen is None or rest is None:
        lines.append(line if hyphen or not lines else f" {line}")
    elif hyphen["hyphen"] == "\u00ad" or (not hyphen["chain"] and vocabulary.drops_hyphen(hyphen["word"], rest[0])):
        lines[-1] = lines[-1][:-1]
        lines.append(line)
    else:  # "short- and long-term", but "held-to-maturity"
        is_suspended = rest[0].casefold() in _CONJUNCTIONS and line[rest.end() : rest.end() + 1] != "-"
        lines.append(f" {line}" if is_suspended else line)


def ends_with_hyphen(text: str) -> bool:
    """Return True if a text ends inside a hyphenated word."""
    return _LINE_END_HYPHEN.search(text[-_LONGEST_WORD:]) is not None
