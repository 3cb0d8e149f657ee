"""Ids and names in the answers of LLMs, and the ways in which models write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

from drillrank.text import words

LIKENESS = 0.88  # ratio of `difflib.SequenceMatcher` at which a name counts as misspelled: 1 is equal
MAX_CHARACTERS = 20_000  # characters of an answer, from its end, that are read
_MAX_COMPARISONS = 200  # unknown names that are compared letter by letter
_MAX_LETTER_PAIRS = 10_000_000  # pairs of letters of unknown and offered names
_MAX_WORDS = 100  # words of a name with separators

NOTHING = re.compile(
    r"\W*(?:(?:answer|response|output)\W+)?(?:(?:none|nothing|n/?a|empty|null|keiner?s?|aucune?|ninguna?|nessuna?)\b"
    r"(?:[^.\n;:\d]{0,160}\b(?:relevant|relevante?s?|pertinente?s?|above|apply|applicable|answers?|them|these))?"
    r"|no|(?:there (?:is|are) )?no (?:\w+ ){0,3}(?:sections?|paragraphs?|ids?|names?|items?)\b[^.\n;:\d]{0,100})"
    r"[.!]?\W*",
    re.IGNORECASE,
)
DENIAL = re.compile(
    r"\b(?:not|no|non|none|cannot|irrelevant|except|but|kein\w*|nicht)\b|n[’']t\b|\[ \]|☐", re.IGNORECASE
)
BULLET = re.compile(r"\s*(?:[-*•–+#]+|\(?(?:\d{1,4}|[a-z]|[ivx]{1,5})[.)](?!\d))\s+(?=\S)", re.IGNORECASE)
_MARKED_ID = re.compile(r"\W*(?:[\[#]|[a-z]+ )", re.IGNORECASE)
_RANGE = re.compile(r"(\d{1,9})\s*(?:-|–|to)\s*(\d{1,9})", re.IGNORECASE)
_ID = re.compile(r"(?:(?:paragraphs?|sections?|ids?|numbers?|§)\W{0,3})?([-−]?\d{1,9})", re.IGNORECASE)
_KIND = re.compile(r"\b(?:paragraph|section|id|number)s?[\s:#.]+(?=[\d\[(#])", re.IGNORECASE)
_ID_SEPARATOR = re.compile(r"[,;、，/\s]+|\b(?:and|und|et|y|e|or)\b|&", re.IGNORECASE)
_NAME_SEPARATOR = re.compile(r"[,;|]")
_LAST_AND = re.compile(r"(.{1,300}) (?:and|und|et|y|&) (.{1,300})", re.IGNORECASE)
_LAST_HEADING_NUMBER = re.compile(r"^(?:\d+ )+")
_RANKED = re.compile(r"(?<=[\d\]]) {0,3}>{1,3} {0,3}(?=[\[\d])")
_STATED = re.compile(
    r"\W{0,9}(?:(?:so|thus|hence|therefore),? )?(?:(?:the|my) )?(?:(?:final|correct|best|most|relevant) ){0,3}"
    r"(?:answers?|choices?|paragraphs?|sections?|passages?|documents?|ids?)(?: (?:ids?|numbers?))? (?:is|are):? ",
    re.IGNORECASE,
)
SCORED_ID = re.compile(
    r"\W{0,9}(?:doc(?:ument)?|passage|paragraph|section|id)s?\W{1,3}(\d{1,9})\W{1,5}"
    r"(?:relevance|score|rating)(?: score)?\W{1,4}(\d{1,9}(?:\.\d{1,9})?)(?:/\d{1,4})?\W{0,9}",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(\d{1,4})[.)] {1,3}(\d{1,9})\.?")
_ID_KEY = re.compile(
    r"(?:(?:paragraph|section|passage|doc|document|chosen|selected|relevant)[_ ]?)?(?:ids?|numbers?|index)"
    r"|answers?|paragraphs?|sections?|passages?|docs?|documents?|choices?",
    re.IGNORECASE,
)
_REASON_KEY = re.compile(r"reason(?:ing)?|explanation|rationale|why|title|name|heading|text", re.IGNORECASE)
_SCORE_KEY = re.compile(r"score|relevance|rating|confidence", re.IGNORECASE)
_REJECTED_KEY = re.compile(r"irrelevant|not|non|unrelated|exclu|reject|discard|omit", re.IGNORECASE)

Positions = Sequence[int]


class IdVocabulary:
    """Ids from 1 to `count` and the ways in which models write them."""

    has_names = False

    def __init__(self, count: int) -> None:
        self.count = count

    def find_exact(self, part: str) -> Positions | None:  # noqa: ARG002
        """Return None: a whole answer is read by its lines."""
        return None

    def find(self, part: str) -> Positions | None:
        """Return the positions of an id or a range, or None if the part is neither."""
        if bounds := _RANGE.fullmatch(part):
            first, last = map(int, bounds.groups())
            return range(max(first, 1) - 1, min(last, self.count))
        match = _ID.fullmatch(part)
        if match is None:
            return None
        number = int(match[1].replace("−", "-"))
        return [number - 1] if 1 <= number <= self.count else []

    def split(self, line: str) -> list[str]:
        """Split a line at separators, without bullets and the usual words around ids."""
        if scored := SCORED_ID.fullmatch(line):
            return [scored[1] if float(scored[2]) else line]
        if stated := _STATED.match(line):
            line = line[stated.end() :]
        line = _RANKED.sub(", ", line)
        bullet = BULLET.match(line)
        if bullet and (not re.search(r"\d", bullet[0]) or _MARKED_ID.match(line, bullet.end())):
            line = line[bullet.end() :]
        if re.search(r"\d[.)]\s+\S", line):
            return [line]  # numbers of a list, or ids?
        bare = re.sub(r"[\[\](){}\"'`*#_]|\.(?=\s|$)", " ", line)
        return [part for part in _ID_SEPARATOR.split(_RANGE.sub(r"\1-\2", _KIND.sub(" ", bare))) if part]

    def list_lines(self, reply: str) -> list[str]:
        """Return the lines of a reply. The numbers of a list "1. 4", "2. 7" are removed if they count from 1."""
        lines = _filled_lines(reply)
        numbered = {index: match for index, line in enumerate(lines) if (match := _NUMBERED.fullmatch(line.strip()))}
        ids = [match[2] for match in numbered.values()]
        numbers = [match[1] for match in numbered.values()]
        # A model that only counts ("1. 1", "2. 2", ...) chooses nothing.
        if len(ids) > 1 and numbers == [str(number + 1) for number in range(len(ids))] and ids != numbers:
            return [numbered[index][2] if index in numbered else line for index, line in enumerate(lines)]
        return lines

    def read_json(self, value: Any) -> list[str] | None:
        """Return the ids in a JSON value, or None if it has another form."""
        if isinstance(value, dict):
            lists = [key for key in value if isinstance(value[key], list)]
            if not value:
                return []
            if not lists:
                return self._read_object(value)
            return None if len(lists) > 1 or _REJECTED_KEY.search(lists[0]) else self.read_json(value[lists[0]])
        ids = []
        for element in value if isinstance(value, list) else [None, {}]:
            parts = self._read_object(element) if isinstance(element, dict) else self._read_scalar(element)
            if parts is None:
                return None
            ids += parts
        return list(dict.fromkeys(ids))

    def _read_object(self, value: dict[str, Any]) -> list[str] | None:
        """Return the only id of an object, or None if the object may say that its id is not relevant."""
        ids = [inner for key, inner in value.items() if _ID_KEY.fullmatch(key)]
        others = {key: inner for key, inner in value.items() if not _ID_KEY.fullmatch(key)}
        for key, inner in others.items():
            is_score = _SCORE_KEY.fullmatch(key) and type(inner) in (int, float) and inner > 0
            is_reason = _REASON_KEY.fullmatch(key) and isinstance(inner, str) and not DENIAL.search(inner)
            if not is_score and not is_reason:
                return None
        return self._read_scalar(ids[0]) if len(ids) == 1 and not isinstance(ids[0], bool) else None

    def _read_scalar(self, value: Any) -> list[str] | None:
        """Return the ids in a number or string, or None if it has another form."""
        if value is None or isinstance(value, bool):
            return []
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e9:
            value = int(value)
        if isinstance(value, int):
            return [str(value)[:MAX_CHARACTERS]]
        if not isinstance(value, str):
            return None
        parts = self.split(value)
        if not parts or NOTHING.fullmatch(value.strip()):
            return []
        return None if None in map(self.find, parts) else parts


class NameVocabulary:
    """Names that were offered and the ways in which models write them."""

    has_names = True

    def __init__(self, names: Sequence[str]) -> None:
        self._table: dict[str, list[int]] = {}
        self._exact = {_normalize(name): [position] for position, name in enumerate(names)}
        self._verbatim = {name: [position] for position, name in enumerate(names)}
        self._n_comparisons = _MAX_COMPARISONS
        self._joined: dict[str, Any] = {}  # a tree of the words of names that contain separators
        for position, name in enumerate(names):
            last = name.rpartition(" > ")[2]
            heading = _normalize(last)
            before_colon = _normalize(last.partition(":")[0])  # "Data" for "Data: where it is from"
            keys = dict.fromkeys((_normalize(name), heading, _LAST_HEADING_NUMBER.sub("", heading), before_colon))
            for key in keys:
                self._table.setdefault(key, []).append(position)
                if _NAME_SEPARATOR.search(name):
                    self._add_words(key.split()[:_MAX_WORDS])

        self._size = sum(map(len, self._table))
        self._n_letter_pairs = _MAX_LETTER_PAIRS

    def _add_words(self, key: list[str]) -> None:
        node = self._joined
        for word in key:
            node = node.setdefault(word, {})
        node[""] = True

    def find_exact(self, part: str) -> Positions | None:
        """Return the positions of a name that is spelled correctly, or None."""
        bare = _without_bullets(part)
        label = re.match(r"(?i)\W*(?:section|name)s?\s*:", bare)
        unlabelled = re.sub(r"\(\d+\)\W*$", "", bare[label.end() :] if label else bare)
        for text in (part, bare, unlabelled):
            if positions := self._verbatim.get(text.strip()):
                return positions
            key = _normalize(text)
            for option in (key, _LAST_HEADING_NUMBER.sub("", key)):
                if option and (positions := self._exact.get(option) or self._table.get(option)):
                    return positions
        # The answer may prepend a heading that is hidden.
        return None if "[" in part else self._exact.get(_normalize(part.rpartition(" > ")[2]))

    def find(self, part: str) -> Positions | None:
        """Return the positions of a name, allowing misspellings, or None if the part has no words."""
        if positions := self.find_exact(part):
            return positions
        key = _normalize(_without_bullets(part))
        self._n_comparisons -= 1
        self._n_letter_pairs -= len(key) * self._size
        similar = (
            get_close_matches(key, self._table, 1, LIKENESS)
            if min(self._n_comparisons, self._n_letter_pairs) > 0 and len(key) < 500
            else []
        )
        return self._table[similar[0]] if similar else [] if key else None

    def split(self, line: str) -> list[str]:
        """Split a line at separators, except for those in names: the longest name wins."""
        single = [part for part in _NAME_SEPARATOR.split(line) if words(part)]
        keys = [_normalize(_without_bullets(part)).split() for part in single]
        parts, index = [], 0
        while index < len(single):
            size = self._count_parts(keys, index)
            parts += self._split_at_and(", ".join(single[index : index + size]))
            index += size
        return parts

    def _split_at_and(self, part: str) -> list[str]:
        """Split "Methods and Results" if this is not a name, but both halves are."""
        halves = _LAST_AND.fullmatch(part.strip().rstrip("."))
        if halves and not self.find_exact(part) and all(map(self.find_exact, halves.groups())):
            return list(halves.groups())
        return [part]

    def _count_parts(self, keys: list[list[str]], start: int) -> int:
        """Return how many parts, starting at `start`, make up the longest name with separators; 1 if there is none."""
        size = 1
        digits = sum(1 for _ in takewhile(str.isdecimal, keys[start]))
        for first in {0, digits}:
            node: dict[str, Any] | None = self._joined
            for index in range(start, len(keys)):
                for word in keys[index][first if index == start else 0 :]:
                    node = node.get(word) if node else None
                if not node:
                    break
                if "" in node:
                    size = max(size, index + 1 - start)
        return size

    def list_lines(self, reply: str) -> list[str]:
        """Return the lines of a reply that have text."""
        return _filled_lines(reply)

    def read_json(self, value: Any) -> list[str] | None:
        """Return the names in a list, or in the only list of an object, or None if the value has another form."""
        if isinstance(value, dict):
            lists = [key for key, inner in value.items() if isinstance(inner, list) or key.casefold() == "ids"]
            if value and (len(lists) != 1 or _REJECTED_KEY.search(lists[0])):
                return None
            value = value[lists[0]] if value else []
        if not isinstance(value, list) or any(isinstance(item, list | dict | float) for item in value):
            return None
        texts = (str(item)[:MAX_CHARACTERS] for item in value if item is not None and not isinstance(item, bool))
        return list(dict.fromkeys(texts))


def _without_bullets(text: str) -> str:
    for _ in range(3):  # "- 1. Introduction"
        bullet = BULLET.match(text)
        if bullet is None:
            break
        text = text[bullet.end() :]
    return text


def _normalize(text: str) -> str:
    """Return the words of a text, lowercased, with single spaces."""
    return " ".join(words(text.casefold()))


def _filled_lines(reply: str) -> list[str]:
    return [line for line in reply.splitlines() if line.strip(" \t`*-_|:")]
