"""What an LLM chose, read from whatever it answered: total functions that never raise and never invent an item.

D3 asks for "comma-separated" names or ids. Models also send bullets, numbering, quotes, JSON lists, ranges, spelling of
their own and prose around them; names hold commas themselves.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain

from drillrank.terms import WORD

LIKENESS = 0.88  # of a misspelled name, as `SequenceMatcher.ratio`: 1 is equal

_PART = re.compile(r"[^,;\n]+")
_SEPARATOR = re.compile(r"[,;\n]+")
_NUMBER = re.compile(r"^(?:\d+ )+")  # of a heading, once its punctuation is gone
_AROUND = " \t\r\"'`“”‘’«»()[]{}*_#"
_LEADING = re.compile(r"(?:[-*•–+]|\(?\d{1,4}[.):]|\[\d{1,4}\])\s+|(?:section|name)\s*:\s*", re.IGNORECASE)
_NO = r"no(?=\W*$| (?:relevant|such|sections?|paragraphs?|ids?|one)\b)"
_NOTHING = re.compile(rf"\W*(?:(?:none|nothing|empty|n/?a|null|not relevant|{_NO})\b.*)?", re.IGNORECASE | re.DOTALL)
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*)```\s*", re.IGNORECASE | re.DOTALL)  # as code in Markdown
_SHOWN = 80  # characters of a part of the answer that stands for nothing
_MISSPELLED = 50  # unknown parts from which on no more are compared letter by letter, for the sake of time

# A number that is no part of a word or of another number, and a second one behind a dash.
_ID = r"(?<![\w.])(?P<first>\d{1,9})(?:\s*(?:-|–|to)\s*(?P<last>\d{1,9}))?(?![\w%]|\.\d)"
_MARKED = re.compile(r"(?:paragraphs?|passages?|sections?|ids?|numbers?|no\.?|¶|#|\[|\()\W*" + _ID, re.IGNORECASE)
_LISTED = re.compile(_ID + r"(?=\s*(?:[,;:.\n\])}\"'*|/&]|and\b|or\b|$))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Choice:
    """The items that an answer names.

    Attributes:
        positions: Positions of the chosen items, each once, rising.
        unknown: Parts of the answer that stand for no item, shortened.
        usable: False if the answer names nothing and does not say that nothing is relevant either.
    """

    positions: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    usable: bool = True


def chosen_names(answer: str, names: Sequence[str]) -> Choice:
    r"""The names that an answer lists: matched exactly, then by their words, then by likeness, then inside a sentence.

    A part of the answer may match a whole name ("Results > Speed"), or its last heading ("Speed"), with or without
    its number; a heading stands for every name that ends so.

    Args:
        answer: Any string.
        names: What could be chosen, all different.

    >>> names = ["Introduction", "Data, and how we got it", "Results > Speed", "Results > Quality"]
    >>> chosen_names('1. "data, and how we got it"\n2. Speed, Qualty, and the weather', names)
    Choice(positions=(1, 2, 3), unknown=('and the weather',), usable=True)
    >>> chosen_names("None of the sections are relevant.", names)
    Choice(positions=(), unknown=(), usable=True)
    """
    table = _Names(names)
    parts = [(match.start(), match.end()) for match in _PART.finditer(answer) if match[0].strip()]
    longest = 1 + max((len(_SEPARATOR.findall(name)) for name in names), default=0)
    chosen: set[int] = set()
    unknown: list[str] = []
    at = 0
    while at < len(parts):
        for count in range(min(longest, len(parts) - at), 0, -1):
            found = table.find(answer[parts[at][0] : parts[at + count - 1][1]])
            if found:
                break
        else:
            count = 1
            written = answer[slice(*parts[at])]
            if len(unknown) < _MISSPELLED:
                found = table.resembling(written) or table.inside(written)
            if not found:
                unknown.append(" ".join(written.split())[:_SHOWN])
        chosen.update(found)
        at += count
    return _choice(answer, chosen, unknown)


def chosen_ids(answer: str, count: int) -> Choice:
    """The ids from 1 to `count` that an answer lists, ranges such as 3-5 included, as 0-based positions.

    A number counts if it stands in a list or behind a word such as "paragraph"; one inside a sentence does not. Of a
    JSON object or list, all whole numbers count.

    >>> chosen_ids("[1], 3-4 and 12", 5)
    Choice(positions=(0, 2, 3), unknown=('12',), usable=True)
    >>> chosen_ids("Paragraph 2 gives 5 reasons.", 5).positions
    (1,)
    >>> chosen_ids('{"ids": [5, 1], "reason": "Paragraph 3 is about rain."}', 5).positions
    (0, 4)
    >>> chosen_ids("I cannot say.", 5).usable
    False
    """
    numbers = _json_numbers(answer)
    if numbers is not None:
        offered = [number - 1 for number in numbers if 1 <= number <= count]
        return _choice(answer if numbers else "", offered, [str(n)[:_SHOWN] for n in numbers if not 1 <= n <= count])
    chosen: set[int] = set()
    unknown: dict[str, None] = {}  # a set that keeps its order
    for match in sorted([*_MARKED.finditer(answer), *_LISTED.finditer(answer)], key=lambda match: match.start("first")):
        first = int(match["first"])
        last = int(match["last"] or first)
        inside = range(max(first, 1), min(last, count) + 1)
        chosen.update(position - 1 for position in inside)
        if first < 1 or last > count or not inside:
            unknown.setdefault(answer[match.start("first") : match.end("last" if match["last"] else "first")])
    return _choice(answer, chosen, list(unknown))


def _json_numbers(answer: str) -> list[int] | None:
    """The whole numbers in a JSON object or list, at any depth; None if it is none, or holds only words."""
    fenced = _FENCED.fullmatch(answer)
    try:
        open_ = [json.loads(fenced[1] if fenced else answer)]
    except (ValueError, RecursionError):
        return None
    if not isinstance(open_[0], dict | list):
        return None
    numbers, words = [], False
    while open_:
        value = open_.pop()
        if isinstance(value, dict | list):
            open_ += reversed(list(value.values() if isinstance(value, dict) else value))
        elif isinstance(value, str) and re.fullmatch(r"\d{1,9}", value.strip()):
            numbers.append(int(value))
        elif isinstance(value, int) and not isinstance(value, bool):
            numbers.append(value)
        else:
            words = words or bool(value)
    return numbers if numbers or not words else None


def _choice(answer: str, chosen: Iterable[int], unknown: Sequence[str]) -> Choice:
    positions = tuple(sorted(chosen))
    if positions:
        return Choice(positions, tuple(unknown))
    if _NOTHING.fullmatch(answer.strip(_AROUND)):
        return Choice(())
    return Choice((), tuple(unknown), usable=False)


class _Names:
    """Names by their spelling, and by the words of the whole name, of its last heading, and of that without number."""

    def __init__(self, names: Sequence[str]) -> None:
        self._exact = {name: (position,) for position, name in enumerate(names)}
        self._by_words: tuple[defaultdict[str, list[int]], ...] = tuple(defaultdict(list) for _ in range(3))
        for position, name in enumerate(names):
            words = _words(name)
            heading = _words(name.rpartition(" > ")[2])
            for table, key in zip(self._by_words, (words, heading, _NUMBER.sub("", heading)), strict=True):
                if key:
                    table[key].append(position)

    def find(self, written: str) -> Sequence[int]:
        """The names that are written so, give or take case, punctuation, numbering and quotes."""
        stripped = written.strip()
        if stripped in self._exact:
            return self._exact[stripped]
        for words in dict.fromkeys((_words(stripped), _bare(stripped))):
            for table in self._by_words:
                if words in table:
                    return table[words]
        return ()

    def resembling(self, written: str) -> Sequence[int]:
        """The names most like it, if they are like enough."""
        best = LIKENESS
        found: tuple[int, ...] = ()
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(_bare(written))
        for name, positions in chain.from_iterable(table.items() for table in self._by_words):
            matcher.set_seq1(name)
            # The quick ratios are upper bounds.
            if matcher.real_quick_ratio() < best or matcher.quick_ratio() < best:
                continue
            ratio = matcher.ratio()
            if ratio > best or (ratio == best and not found):
                best, found = ratio, tuple(positions)
        return found

    def inside(self, written: str) -> Sequence[int]:
        """The names that it holds letter by letter, longer ones first, so that no name is found inside another."""
        found: list[int] = []
        for name in sorted(self._exact, key=len, reverse=True):
            if len(name) > 2 and name in written:
                at = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", written)
                if at:
                    found += self._exact[name]
                    written = f"{written[: at.start()]}\0{written[at.end() :]}"
        return found


def _words(text: str) -> str:
    return " ".join(WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _bare(written: str) -> str:
    """The words of a part of an answer, without a bullet, a number or the word "section" in front."""
    return _words(_LEADING.sub("", written.strip(_AROUND), count=1))
