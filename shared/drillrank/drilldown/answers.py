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
from typing import Any

from drillrank.drilldown.answer_vocabularies import (
    BULLET,
    DENIAL,
    MAX_CHARACTERS,
    NOTHING,
    SCORED_ID,
    IdVocabulary,
    NameVocabulary,
    Positions,
)
from drillrank.llm import strip_reasoning

_MAX_SHOWN = 80  # characters of an unknown part of the answer
_MAX_BRACKETS = 200  # brackets at which JSON may begin

_LABEL = re.compile(r"[^\n:：\d]{0,100}[:：]\s*(?=\S)")
_NEXT_QUESTION = re.compile(r"\n[^\w\n]*(?:question|q)\b[^:\n]{0,9}:", re.IGNORECASE)
# Marks of a line that means something else than its ids or names.
_BOX = re.compile(r"\[[ xX]\]|☐|☑")
_BRACE = re.compile(r"[{}]")
_YES = re.compile(r"\W*(?:answer\W+)?(yes|no)\b", re.IGNORECASE)
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"?|,(?=\s*[}\]])', re.DOTALL)

_Vocabulary = IdVocabulary | NameVocabulary
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


def parse_ids(answer: str, count: int) -> Choice:
    """Return the ids from 1 to `count` that an answer chooses, as 0-based positions.

    >>> parse_ids("Relevant paragraphs: [1], 3-4 and 12", 5)
    Choice(positions=(0, 2, 3), unknown=('12',), usable=True)
    >>> parse_ids('Paragraph 4 has it all: {"ids": [4, 2,]}', 5).positions
    (1, 3)
    >>> parse_ids("None of the paragraphs is relevant.", 5)
    Choice(positions=(), unknown=(), usable=True)
    >>> parse_ids("Paragraph 2 says so, paragraph 3 does not.", 5).usable
    False
    """
    return _parse(answer, IdVocabulary(count))


def parse_names(answer: str, names: Sequence[str]) -> Choice:
    r"""Return the names that an answer chooses: whole ones ("Results > Speed") or last headings ("Speed").

    Case, punctuation, the number of a heading, bullets and small misspellings do not matter. A heading chooses every
    name that ends with it.

    Args:
        answer: Any string.
        names: The names that were offered, all different.

    >>> names = ["Introduction", "Data, and how we got it", "Results > Speed", "Results > Quality"]
    >>> parse_names('1. "data, and how we got it"\n2. Speed, Qualty, and the weather', names)
    Choice(positions=(1, 2, 3), unknown=('and the weather',), usable=True)
    """
    return _parse(answer, NameVocabulary(names))


def parse_yes_no(answer: str) -> Choice:
    """Return the only item that was asked about if the answer says yes, and no item if it says no.

    >>> parse_yes_no("**Yes**, it does.").positions, parse_yes_no("No.").positions, parse_yes_no("Hard to say").usable
    ((0,), (), False)
    """
    verdict = _YES.match(strip_reasoning(answer[-MAX_CHARACTERS:]) or "")
    return Choice((0,) if verdict and verdict[1].casefold() == "yes" else (), usable=verdict is not None)


def _parse(answer: str, vocabulary: _Vocabulary) -> Choice:
    """Read JSON, else a denial, else lines of items."""
    reply = strip_reasoning(answer[-MAX_CHARACTERS:])
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
    if not first.strip().strip(" \t\r\n\"'[]()") or NOTHING.fullmatch(first):
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
    texts = vocabulary.list_lines(reply)
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
    if None in block or has_other_ids or DENIAL.search(statement) or (named and _offered_share(items) < 0.5):
        return _UNUSABLE
    return _make_choice(items)


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
    if not named and SCORED_ID.fullmatch(line):
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
        is_item = is_item or (BULLET.match(line) is not None and len(line) < _MAX_SHOWN and not any(matches.values()))
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
    unknown = (" ".join(part.split())[:_MAX_SHOWN] for part, positions in matches.items() if not positions)
    return Choice(chosen, tuple(unknown))


def _find_json(text: str) -> Iterator[Any]:
    """Yield the JSON objects anywhere in a text, and the lists that fill a line or more."""
    decoder, end = json.JSONDecoder(), 0
    starts = re.finditer(r"\{|^[^\S\n]*\[", text, re.MULTILINE)
    for bracket, _ in zip(starts, range(_MAX_BRACKETS), strict=False):
        if bracket.end() <= end:
            continue
        try:
            value, stop = decoder.raw_decode(text, bracket.end() - 1)
        except (ValueError, RecursionError):
            continue
        if bracket[0] == "{" or not text[stop:].partition("\n")[0].strip(" \t`.;"):
            end = stop
            yield value
