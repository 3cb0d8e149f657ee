r"""What an LLM chose of a numbered or named list; every answer is read, and none of them can raise.

The prompts ask for JSON, or for "comma-separated" names or ids as the paper's do. Models also send lists, labels,
refusals and essays. Of those only what is plainly a choice counts, in this order:

1. JSON, wherever it stands: the last list or object that names an item, or the last empty one.
2. A denial that stands for the whole answer: "None of the sections is relevant.", "[]", nothing at all.
3. The last lines that hold nothing but ids or names and what separates them, perhaps behind a label ("Answer: 2, 4").
   In a list, some may not have been offered; of names, at most half.

Everything else is unreadable: whoever asked chooses by likelihood, and says so. Ids and names that are only mentioned
in a sentence never count, so an answer that argues about paragraphs chooses none of them by accident.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from drillrank.llm import strip_reasoning
from drillrank.text import words

LIKENESS = 0.88  # of a misspelled name, as `difflib.SequenceMatcher.ratio` has it: 1 is equal
_SHOWN = 80  # characters of a part of the answer that stands for nothing
_LONGEST = 20_000  # characters of an answer, from its end, that are read
_TRIES = 200  # brackets at which JSON may begin, and unknown names that are compared letter by letter

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

Find = Callable[[str], "Sequence[int] | None"]
"""From what an answer calls an item to the positions that this may mean; None if it is not even a name or an id."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The items that an answer names.

    Attributes:
        positions: Positions of the chosen items, each once, rising.
        unknown: What it names that was not offered, shortened.
        usable: False if the answer is no choice by the rules above.
    """

    positions: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    usable: bool = True


def parse_ids(answer: str, count: int) -> Choice:
    """The ids from 1 to `count` that an answer chooses, as 0-based positions.

    >>> parse_ids("Relevant paragraphs: [1], 3-4 and 12", 5)
    Choice(positions=(0, 2, 3), unknown=('12',), usable=True)
    >>> parse_ids('Paragraph 4 has it all: {"ids": [4, 2]}', 5).positions
    (1, 3)
    >>> parse_ids("None of the paragraphs is relevant.", 5)
    Choice(positions=(), unknown=(), usable=True)
    >>> parse_ids("Paragraph 2 says so, paragraph 3 does not.", 5).usable
    False
    """

    def find(written: str) -> Sequence[int] | None:
        if between := _RANGE.fullmatch(written):
            first, last = map(int, between.groups())
            return range(max(first, 1) - 1, min(last, count))
        found = _ID.fullmatch(written)
        if found is None:
            return None
        number = int(found[1].replace("−", "-"))
        return [number - 1] if 1 <= number <= count else []

    def parts(line: str) -> list[str]:
        bullet = _BULLET.match(line)
        if bullet and (not re.search(r"\d", bullet[0]) or _MARKED_ID.match(line, bullet.end())):
            line = line[bullet.end() :]
        if re.search(r"\d[.)]\s+\S", line):
            return [line]  # numbers of a list, or ids?
        bare = re.sub(r"[\[\](){}\"'`*#_]|\.(?=\s|$)", " ", line)
        return [part for part in _ID_SEPARATOR.split(_RANGE.sub(r"\1-\2", _KIND.sub(" ", bare))) if part]

    return _chosen(answer, find, parts)


def parse_names(answer: str, names: Sequence[str]) -> Choice:
    r"""The names that an answer chooses: whole ones ("Results > Speed") or last headings ("Speed").

    Case, punctuation, a heading's number, bullets and small misspellings do not matter; a heading stands for every name
    that ends so.

    Args:
        answer: Any string.
        names: What could be chosen, all different.

    >>> names = ["Introduction", "Data, and how we got it", "Results > Speed", "Results > Quality"]
    >>> parse_names('1. "data, and how we got it"\n2. Speed, Qualty, and the weather', names)
    Choice(positions=(1, 2, 3), unknown=('and the weather',), usable=True)
    """
    table: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        heading = _plain(name.rpartition(" > ")[2])
        before = _plain(name.rpartition(" > ")[2].partition(":")[0])  # "Data" for "Data: where it is from"
        for key in dict.fromkeys((_plain(name), heading, _LAST_HEADING_NUMBER.sub("", heading), before)):
            table.setdefault(key, []).append(position)
    exact = {_plain(name): [position] for position, name in enumerate(names)}
    same = {name: [position] for position, name in enumerate(names)}
    commas = 1 + max((len(_NAME_SEPARATOR.findall(name)) for name in names), default=0)
    tries = _TRIES

    def known(written: str) -> list[int] | None:
        for text in (
            written,
            _BULLET.sub("", written),
            re.sub(r"(?i)^\W*(?:section|name)s?\s*:|\(\d+\)\W*$", "", _BULLET.sub("", written)),
        ):
            if found := same.get(text.strip()):
                return found
            key = _plain(text)
            for option in (key, _LAST_HEADING_NUMBER.sub("", key)):
                if option and (found := exact.get(option) or table.get(option)):
                    return found
        return None if "[" in written else exact.get(_plain(written.rpartition(" > ")[2]))  # a heading that is hidden

    def find(written: str) -> Sequence[int] | None:
        nonlocal tries
        if found := known(written):
            return found
        key = _plain(_BULLET.sub("", written))
        tries -= 1
        like = get_close_matches(key, table, 1, LIKENESS) if tries > 0 and len(key) < 500 else []
        return table[like[0]] if like else [] if key else None

    def parts(line: str) -> list[str]:
        """Names may hold separators: as many parts together as are a name, else one."""
        single = [part for part in _NAME_SEPARATOR.split(line) if words(part)]
        joined, at = [], 0
        while at < len(single):
            longest = (", ".join(single[at : at + size]) for size in range(min(commas, len(single) - at), 1, -1))
            whole = next((text for text in longest if known(text)), single[at])
            at += 1 if whole is single[at] else len(_NAME_SEPARATOR.split(whole))
            joined.append(whole)
        return joined

    return _chosen(answer, find, parts, known)


def parse_yes_no(answer: str) -> Choice:
    """The only item that was asked about, if the answer says yes.

    >>> parse_yes_no("**Yes**, it does.").positions, parse_yes_no("No.").positions, parse_yes_no("Hard to say").usable
    ((0,), (), False)
    """
    verdict = _YES.match(strip_reasoning(answer[-_LONGEST:]) or "")
    return Choice((0,) if verdict and verdict[1].casefold() == "yes" else (), usable=verdict is not None)


def _chosen(answer: str, find: Find, parts: Callable[[str], list[str]], known: Find | None = None) -> Choice:
    reply = strip_reasoning(answer[-_LONGEST:])
    if reply is None:
        return Choice((), usable=False)
    first, *more = _NEXT_QUESTION.split(reply, maxsplit=1)
    if more and not first.strip():  # it only repeats what it was asked
        return Choice((), usable=False)
    reply = first
    values = list(_json_values(reply))
    if sum(isinstance(value, list) for value in values) > 1:  # one of each line
        values = [value for value in values if isinstance(value, dict)]
    for value in reversed(values):
        items = _items(value)
        found = {item: find(item) for item in items or ()}
        if items is not None and (not items or any(found.values())):
            return _choice(found)
    if any(isinstance(value, dict) for value in values):
        return Choice((), usable=False)
    if known and (whole := known(reply.strip())):
        return _choice({reply: whole})
    if not reply.strip().strip(" \t\r\n\"'[]()") or _NOTHING.fullmatch(reply):
        return Choice(())
    written = [line for line in reply.splitlines() if line.strip(" \t`*-_|:")]
    if known is None and any(map(_BRACE.search, written)):  # JSON without its end, or of another form
        return Choice((), usable=False)
    lines = [_line(line, find, parts, known is not None) for line in written]
    chosen = [number for number, line in enumerate(lines) if line and any(line.values())]
    block = lines[chosen[0] : chosen[-1] + 1] if chosen else [None]
    named = {part: found for line in (block if known else lines) for part, found in (line or {}).items()}
    others = any(
        line is None and known is None and re.match(r"\W*\d", text) for line, text in zip(lines, written, strict=True)
    )
    denied = reply if known is None else "\n".join(map(_without_names, written, lines))
    if None in block or others or _DENIAL.search(denied) or (known and _known_share(named) < 0.5):
        return Choice((), usable=False)
    return _choice(named)


def _line(
    line: str, find: Find, parts: Callable[[str], list[str]], named: bool
) -> dict[str, Sequence[int] | None] | None:
    """What each part of a line stands for; None if the line holds something else, too.

    Nothing of it may be offered: ids alone, or an item of a list of names.
    """
    if _BOX.search(line):
        return None
    share = 0 if not named else 1 if "|" in line else 0.5
    label = _LABEL.match(line)
    if label and label[0].count('"') > 2:  # a sentence that quotes
        label = None
    if named and label and all(map(find, parts(line))):
        label = None  # a name holds the colon
    item = not named
    for text in (line[label.end() :] if label else "", line):
        found = {part: find(part) for part in parts(text)}
        if not found or None in found.values() or (named and _BRACE.search(_without_names(line, found))):
            continue
        if any(found.values()) and _known_share(found) >= share:
            return found
        item = item or (_BULLET.match(line) is not None and len(line) < _SHOWN and not any(found.values()))
    return found if item and found and None not in found.values() and not any(found.values()) else None


def _known_share(found: dict[str, Sequence[int] | None]) -> float:
    """Of what is named, how much was offered."""
    return sum(map(bool, found.values())) / max(len(found), 1)


def _without_names(line: str, found: dict[str, Sequence[int] | None] | None) -> str:
    """What a line says beside names that were offered, in which "not" is no denial."""
    for part in (part for part, positions in (found or {}).items() if positions):
        line = line.replace(part, " ", 1)
    return line


def _choice(found: dict[str, Sequence[int] | None]) -> Choice:
    positions = tuple(sorted({position for some in found.values() for position in some or ()}))
    return Choice(positions, tuple(" ".join(part.split())[:_SHOWN] for part, some in found.items() if not some))


def _json_values(text: str) -> Iterator[Any]:
    """The JSON objects anywhere in a text, and the lists that fill a line or more."""
    decoder, end = json.JSONDecoder(), 0
    for bracket, _ in zip(re.finditer(r"\{|^\s*\[", text, re.MULTILINE), range(_TRIES), strict=False):
        if bracket.end() <= end:
            continue
        try:
            value, stop = decoder.raw_decode(text, bracket.end() - 1)
        except (ValueError, RecursionError):
            continue
        if bracket[0] == "{" or not text[stop:].partition("\n")[0].strip(" \t`.;"):
            end = stop
            yield value


def _items(value: Any) -> list[str] | None:
    """What a JSON value names: the elements of a list, or of the only list in an object; None if it is another form."""
    if isinstance(value, dict):
        lists = [inner for key, inner in value.items() if isinstance(inner, list) or key.casefold() == "ids"]
        value = lists[0] if len(lists) == 1 else None if value else []
    if not isinstance(value, list) or any(isinstance(item, list | dict | float) for item in value):
        return None
    return list(
        dict.fromkeys(str(item)[:_LONGEST] for item in value if item is not None and not isinstance(item, bool))
    )


def _plain(text: str) -> str:
    return " ".join(words(text.casefold()))
