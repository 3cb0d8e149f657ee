r"""Read the answer of an LLM that chooses from a numbered or named list.

The prompts ask for JSON, or for comma-separated names or ids as the prompts of the papers do. Models also send lists,
labels, refusals and essays. Only plain choices count, in this order:

1. JSON, anywhere in the answer: the last list or object that names an item, or the last empty one. Trailing commas,
   whole numbers as floats, numbers in a string, a single number and objects with an id are understood.
2. A denial that is the whole answer: "None of the sections is relevant.", "[]", or a blank answer.
3. The last lines that contain only ids or names and separators, perhaps after a label ("Answer: 2, 4").
   Some items of a list may be unknown, but at most half of the names.

Every other answer is unusable, and the caller falls back to likelihood. A sentence that mentions ids or names chooses
none of them. No answer raises an error, and reading takes time linear in its length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

from drillrank.llm import strip_reasoning
from drillrank.text import words

LIKENESS = 0.88  # of a misspelled name, as `difflib.SequenceMatcher.ratio` has it: 1 is equal
_SHOWN = 80  # characters of an unknown part of the answer
_LONGEST = 20_000  # characters of an answer, from its end, that are read
_TRIES = 200  # brackets at which JSON may begin, and unknown names that are compared letter by letter
_MAX_COMPARED = 10_000_000  # pairs of letters of unknown and offered names
_MAX_WORDS = 100  # of a name with separators

_NOTHING = re.compile(
    r"\W*(?:(?:answer|response|output)\W+)?(?:(?:none|nothing|n/?a|empty|null|keiner?s?|aucune?|ninguna?|nessuna?)\b"
    r"(?:[^.\n;:\d]{0,160}\b(?:relevant|relevante?s?|pertinente?s?|above|apply|applicable|answers?|them|these))?"
    r"|no|(?:there (?:is|are) )?no (?:\w+ ){0,3}(?:sections?|paragraphs?|ids?|names?|items?)\b[^.\n;:\d]{0,100})"
    r"[.!]?\W*",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|no|non|none|cannot|irrelevant|except|but|kein\w*|nicht)\b|n[’']t\b|\[ \]|☐", re.IGNORECASE
)
_LABEL = re.compile(r"[^\n:：\d]{0,100}[:：]\s*(?=\S)")
_NEXT_QUESTION = re.compile(r"\n[^\w\n]*(?:question|q)\b[^:\n]{0,9}:", re.IGNORECASE)
_BULLET = re.compile(r"\s*(?:[-*•–+#]+|\(?(?:\d{1,4}|[a-z]|[ivx]{1,5})[.)](?!\d))\s+(?=\S)", re.IGNORECASE)
_MARKED_ID = re.compile(r"\W*(?:[\[#]|[a-z]+ )", re.IGNORECASE)
_BOX = re.compile(r"\[[ xX]\]|☐|☑")  # of a line that means something else than its ids or names
_BRACE = re.compile(r"[{}]")  # likewise
_RANGE = re.compile(r"(\d{1,9})\s*(?:-|–|to)\s*(\d{1,9})", re.IGNORECASE)
_ID = re.compile(r"(?:(?:paragraphs?|sections?|ids?|numbers?|§)\W{0,3})?([-−]?\d{1,9})", re.IGNORECASE)
_KIND = re.compile(r"\b(?:paragraph|section|id|number)s?[\s:#.]+(?=[\d\[(#])", re.IGNORECASE)
_ID_SEPARATOR = re.compile(r"[,;、，/\s]+|\b(?:and|und|et|y|e|or)\b|&", re.IGNORECASE)
_NAME_SEPARATOR = re.compile(r"[,;|]")
_LAST_HEADING_NUMBER = re.compile(r"^(?:\d+ )+")

_YES = re.compile(r"\W*(?:answer\W+)?(yes|no)\b", re.IGNORECASE)

_RANKED = re.compile(r"(?<=[\d\]]) {0,3}>{1,3} {0,3}(?=[\[\d])")
_STATED = re.compile(
    r"\W{0,9}(?:(?:so|thus|hence|therefore),? )?(?:(?:the|my) )?(?:(?:final|correct|best|most|relevant) ){0,3}"
    r"(?:answers?|choices?|paragraphs?|sections?|passages?|documents?|ids?)(?: (?:ids?|numbers?))? (?:is|are):? ",
    re.IGNORECASE,
)
_SCORED = re.compile(
    r"\W{0,9}(?:doc(?:ument)?|passage|paragraph|section|id)s?\W{1,3}(\d{1,9})\W{1,5}"
    r"(?:relevance|score|rating)(?: score)?\W{1,4}(\d{1,9}(?:\.\d{1,9})?)(?:/\d{1,4})?\W{0,9}",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(\d{1,4})[.)] {1,3}(\d{1,9})\.?")
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"?|,(?=\s*[}\]])', re.DOTALL)
_ID_KEY = re.compile(
    r"(?:(?:paragraph|section|passage|doc|document|chosen|selected|relevant)[_ ]?)?(?:ids?|numbers?|index)"
    r"|answers?|paragraphs?|sections?|passages?|docs?|documents?|choices?",
    re.IGNORECASE,
)
_REASON_KEY = re.compile(r"reason(?:ing)?|explanation|rationale|why|title|name|heading|text", re.IGNORECASE)
_SCORE_KEY = re.compile(r"score|relevance|rating|confidence", re.IGNORECASE)
_REJECTED_KEY = re.compile(r"irrelevant|not|non|unrelated|exclu|reject|discard|omit", re.IGNORECASE)

Positions = Sequence[int]
Matches = dict[str, "Positions | None"]
"""Positions by the part of the answer: empty for an item that was not offered, None if the part is not an item."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Items that an answer names.

    Attributes:
        positions: Positions of the chosen items in rising order, without repetitions.
        unknown: Parts of the answer that name items that were not offered, truncated.
        usable: False if the answer is not a plain choice.
    """

    positions: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    usable: bool = True


_UNUSABLE = Choice((), usable=False)


def chosen_ids(answer: str, count: int) -> Choice:
    """Return the ids from 1 to `count` that an answer chooses, as 0-based positions.

    >>> chosen_ids("Relevant paragraphs: [1], 3-4 and 12", 5)
    Choice(positions=(0, 2, 3), unknown=('12',), usable=True)
    >>> chosen_ids('Paragraph 4 has it all: {"ids": [4, 2,]}', 5).positions
    (1, 3)
    >>> chosen_ids("None of the paragraphs is relevant.", 5)
    Choice(positions=(), unknown=(), usable=True)
    >>> chosen_ids("Paragraph 2 says so, paragraph 3 does not.", 5).usable
    False
    """
    return _parse(answer, _IdVocabulary(count))


def chosen_names(answer: str, names: Sequence[str]) -> Choice:
    r"""Return the names that an answer chooses: whole ones ("Results > Speed") or last headings ("Speed").

    Case, punctuation, the number of a heading, bullets and small misspellings do not matter. A heading chooses every
    name that ends with it.

    Args:
        answer: Any string.
        names: The names that were offered, all different.

    >>> names = ["Introduction", "Data, and how we got it", "Results > Speed", "Results > Quality"]
    >>> chosen_names('1. "data, and how we got it"\n2. Speed, Qualty, and the weather', names)
    Choice(positions=(1, 2, 3), unknown=('and the weather',), usable=True)
    """
    return _parse(answer, _NameVocabulary(names))


def said_yes(answer: str) -> Choice:
    """Return the only item that was asked about if the answer says yes, and no item if it says no.

    >>> said_yes("**Yes**, it does.").positions, said_yes("No.").positions, said_yes("Hard to say").usable
    ((0,), (), False)
    """
    verdict = _YES.match(strip_reasoning(answer[-_LONGEST:]) or "")
    return Choice((0,) if verdict and verdict[1].casefold() == "yes" else (), usable=verdict is not None)


class _IdVocabulary:
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
        if scored := _SCORED.fullmatch(line):
            return [scored[1] if float(scored[2]) else line]
        if stated := _STATED.match(line):
            line = line[stated.end() :]
        line = _RANKED.sub(", ", line)
        bullet = _BULLET.match(line)
        if bullet and (not re.search(r"\d", bullet[0]) or _MARKED_ID.match(line, bullet.end())):
            line = line[bullet.end() :]
        if re.search(r"\d[.)]\s+\S", line):
            return [line]  # numbers of a list, or ids?
        bare = re.sub(r"[\[\](){}\"'`*#_]|\.(?=\s|$)", " ", line)
        return [part for part in _ID_SEPARATOR.split(_RANGE.sub(r"\1-\2", _KIND.sub(" ", bare))) if part]

    def lines(self, reply: str) -> list[str]:
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
            is_reason = _REASON_KEY.fullmatch(key) and isinstance(inner, str) and not _DENIAL.search(inner)
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
            return [str(value)[:_LONGEST]]
        if not isinstance(value, str):
            return None
        parts = self.split(value)
        if not parts or _NOTHING.fullmatch(value.strip()):
            return []
        return None if None in map(self.find, parts) else parts


class _NameVocabulary:
    """Names that were offered and the ways in which models write them."""

    has_names = True

    def __init__(self, names: Sequence[str]) -> None:
        self._table: dict[str, list[int]] = {}
        self._exact = {_normalize(name): [position] for position, name in enumerate(names)}
        self._verbatim = {name: [position] for position, name in enumerate(names)}
        self._tries = _TRIES
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
        self._effort = _MAX_COMPARED

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
        self._tries -= 1
        self._effort -= len(key) * self._size
        similar = (
            get_close_matches(key, self._table, 1, LIKENESS)
            if min(self._tries, self._effort) > 0 and len(key) < 500
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
            parts.append(", ".join(single[index : index + size]))
            index += size
        return parts

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

    def lines(self, reply: str) -> list[str]:
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
        texts = (str(item)[:_LONGEST] for item in value if item is not None and not isinstance(item, bool))
        return list(dict.fromkeys(texts))


_Vocabulary = _IdVocabulary | _NameVocabulary


def _parse(answer: str, vocabulary: _Vocabulary) -> Choice:
    """Read JSON, else a denial, else lines of items."""
    reply = strip_reasoning(answer[-_LONGEST:])
    if reply is None:
        return _UNUSABLE
    first, *more = _NEXT_QUESTION.split(reply, maxsplit=1)
    if more and not first.strip():  # the answer only repeats the question
        return _UNUSABLE
    choice = _parse_json(first, vocabulary)
    if choice is not None:
        return choice
    if positions := vocabulary.find_exact(first.strip()):
        return _make_choice({first: positions})
    if not first.strip().strip(" \t\r\n\"'[]()") or _NOTHING.fullmatch(first):
        return Choice(())
    return _parse_lines(first, vocabulary)


def _parse_json(reply: str, vocabulary: _Vocabulary) -> Choice | None:
    """Read the last JSON value that names an item. Return None if the reply contains no JSON."""
    values = list(_find_json(_TRAILING_COMMA.sub(lambda match: match[0] if match[0] != "," else "", reply)))
    if sum(isinstance(value, list) for value in values) > 1:  # a list on each line
        values = [value for value in values if isinstance(value, dict)]
    objects = [value for value in values if isinstance(value, dict) and value]
    if len(objects) > 1 and not any(isinstance(inner, list) for inner in objects[-1].values()):
        return _UNUSABLE  # one object for each item: all, or corrections?
    for value in reversed(values):
        items = vocabulary.read_json(value)
        matches = {item: vocabulary.find(item) for item in items or ()}
        if items is not None and (not items or any(matches.values())):
            return _make_choice(matches)
    has_objects = any(isinstance(value, dict) or _has_objects(value) for value in values)
    return _UNUSABLE if has_objects else None


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(element, dict) for element in value)


def _parse_lines(reply: str, vocabulary: _Vocabulary) -> Choice:
    """Read the lines that contain only items. No other line may be between them."""
    named = vocabulary.has_names
    texts = vocabulary.lines(reply)
    if not named and any(map(_BRACE.search, texts)):  # JSON without its end, or of another form
        return _UNUSABLE
    lines = [_match_line(text, vocabulary) for text in texts]
    chosen = [index for index, matches in enumerate(lines) if matches and any(matches.values())]
    block = lines[chosen[0] : chosen[-1] + 1] if chosen else [None]
    items = {part: positions for line in (block if named else lines) for part, positions in (line or {}).items()}
    has_other_ids = not named and any(
        line is None and re.match(r"\W*\d", text) for line, text in zip(lines, texts, strict=True)
    )
    statement = "\n".join(map(_remove_names, texts, lines)) if named else reply
    if None in block or has_other_ids or _DENIAL.search(statement) or (named and _offered_share(items) < 0.5):
        return _UNUSABLE
    return _make_choice(items)


def _filled_lines(reply: str) -> list[str]:
    return [line for line in reply.splitlines() if line.strip(" \t`*-_|:")]


def _match_line(line: str, vocabulary: _Vocabulary) -> Matches | None:
    """Return the positions by part of a line, or None if the line contains something else, too.

    A line of unknown items counts if it contains only ids or is an item of a list of names.
    """
    if _BOX.search(line):
        return None
    named = vocabulary.has_names
    share = 0 if not named else 1 if "|" in line else 0.5
    label = _LABEL.match(line)
    if label and label[0].count('"') > 2:  # a sentence that quotes
        label = None
    if not named and _SCORED.fullmatch(line):
        label = None
    if named and label and all(map(vocabulary.find, vocabulary.split(line))):
        label = None  # a name contains the colon
    is_item = not named
    for text in (line[label.end() :] if label else "", line):
        matches = {part: vocabulary.find(part) for part in vocabulary.split(text)}
        if not matches or None in matches.values() or (named and _BRACE.search(_remove_names(line, matches))):
            continue
        if any(matches.values()) and _offered_share(matches) >= share:
            return matches
        is_item = is_item or (_BULLET.match(line) is not None and len(line) < _SHOWN and not any(matches.values()))
    has_unknown_only = bool(matches) and None not in matches.values() and not any(matches.values())
    return matches if is_item and has_unknown_only else None


def _offered_share(matches: Matches) -> float:
    """Return the share of the named items that were offered."""
    return sum(map(bool, matches.values())) / max(len(matches), 1)


def _remove_names(line: str, matches: Matches | None) -> str:
    """Return a line without the names that were offered: "not" in a name is not a denial."""
    for part in (part for part, positions in (matches or {}).items() if positions):
        line = line.replace(part, " ", 1)
    return line


def _make_choice(matches: Matches) -> Choice:
    chosen = tuple(sorted({position for positions in matches.values() for position in positions or ()}))
    unknown = (" ".join(part.split())[:_SHOWN] for part, positions in matches.items() if not positions)
    return Choice(chosen, tuple(unknown))


def _find_json(text: str) -> Iterator[Any]:
    """Yield the JSON objects anywhere in a text, and the lists that fill a line or more."""
    decoder, end = json.JSONDecoder(), 0
    starts = re.finditer(r"\{|^[^\S\n]*\[", text, re.MULTILINE)
    for bracket, _ in zip(starts, range(_TRIES), strict=False):
        if bracket.end() <= end:
            continue
        try:
            value, stop = decoder.raw_decode(text, bracket.end() - 1)
        except (ValueError, RecursionError):
            continue
        if bracket[0] == "{" or not text[stop:].partition("\n")[0].strip(" \t`.;"):
            end = stop
            yield value


def _without_bullets(text: str) -> str:
    for _ in range(3):  # "- 1. Introduction"
        bullet = _BULLET.match(text)
        if bullet is None:
            break
        text = text[bullet.end() :]
    return text


def _normalize(text: str) -> str:
    """Return the words of a text, lowercased, with single spaces."""
    return " ".join(words(text.casefold()))
