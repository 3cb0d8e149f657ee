"""Answers in a form: JSON objects and tables put into words, rule 2 of `answers`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from drillrank.drilldown.answer_words import KINDS, plain
from drillrank.text import WORD

_SHOWN = 80  # characters of a word outside quotation marks, and of a verdict
_OBJECT = re.compile(r"\{\s*(?:[\"'“][^\"'“”\n]{1,80}[\"'”]|\w{1,40})\s*:")
_JSON = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"?|(?<![\w])'(?:[^'\\\n]|\\.)*'?|[{}\[\]:,]|[^\s{}\[\]:,\"']+|'")
_ASIDE = re.compile(
    r"reason|expla|why|text|thought|think|analysis|score|confiden|probab|question|quer|rank|summary|quote|snippet"
    r"|title of|page|year|count|total|num(?:ber)?_?of|comment|note|justif|rational|status|model|topic|title",
    re.IGNORECASE,
)
_MARKED = re.compile(r"([^:=\d]*\d[^:=]*)[:=]\W*([01yn])\W*", re.IGNORECASE)  # an item, and whether it is relevant
_IS = re.compile(r"^(?:is|are)?[_ ]*")
_ID_KEY = re.compile(r"\W*(?:[a-z]+[ _-]?)?(\d+)\W*", re.IGNORECASE)


def in_words(said: str) -> str:
    """The answer with its JSON objects, or its table of ids with 0 or 1, put into words."""
    begin = _OBJECT.search(said)
    if begin:
        lines = [line for value in _values(said[begin.start() :]) for line in _lines(value)]
        said = "\n".join(lines) or "none"
    parts = [part for part in re.split(r"[\n,;]", said) if WORD.search(part)]
    marked = [_MARKED.fullmatch(part) for part in parts]
    if parts and all(marked):
        said = "\n".join(f"{mark[1]}: {'yes' if mark[2] in '1yY' else 'no'}" for mark in marked if mark)
    return said


def _values(text: str) -> list[object]:
    """The objects and lists in a text: JSON, and what models write in its place. Numbers stay as they are written."""
    outer: list[object] = []
    stack: list[list[object] | dict[str, object]] = []
    keys: list[str | None] = []
    word = ""

    def put(value: object) -> None:
        if not stack:
            if not isinstance(value, str):
                outer.append(value)
        elif isinstance(stack[-1], list):
            stack[-1].append(value)
        elif keys[-1] is None:
            keys[-1] = str(value)
        else:
            stack[-1].setdefault(keys[-1], value)

    for match in _JSON.finditer(text):
        token = match[0]
        if token[0] in "{}[],:" and word:
            put(word)
            word = ""
        if token in "{[":
            value: list[object] | dict[str, object] = {} if token == "{" else []
            put(value)
            stack.append(value)
            keys.append(None)
        elif token in "}]":
            if stack:
                stack.pop()
                keys.pop()
        elif token == ",":
            if keys:
                keys[-1] = None
        elif token[0] in "\"'" and len(token) > 1 and not word:
            put(_string(token))
        elif token != ":":
            word = f"{word} {token}".strip() if len(word) < _SHOWN * 10 else word
    if word:
        put(word)
    return outer


def _string(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return token.strip("\"'")


def _lines(value: object) -> Iterator[str]:
    """What a value says, a line for each id, name or sentence."""
    open_: list[tuple[object, str]] = [(value, "")]  # with what is said of it
    while open_:
        value, verdict = open_.pop()
        if isinstance(value, list):
            open_ += [(inner, verdict) for inner in reversed(value)]
        elif isinstance(value, dict):
            told = {key: inner for key, inner in value.items() if not _ASIDE.search(key)}
            for key, inner in list(told.items()):
                own = _ID_KEY.fullmatch(key)
                judges = KINDS.get(plain(_IS.sub("", key))) == "r"
                truth = inner == "1" if judges and inner in ("0", "1") and len(told) > 1 else _truth(inner)
                if own and isinstance(inner, dict):
                    open_.append(({"id": own[1], **inner}, verdict))
                elif own and isinstance(inner, str):
                    yield f"[{own[1]}]: {inner}"
                elif truth is None:
                    continue
                elif judges:
                    verdict = verdict if truth else ": no"
                else:
                    yield f"{key.replace('_', ' ')}: {'yes' if truth else 'no'}"
                del told[key]
            for key, inner in reversed(told.items()):
                denies = re.search(r"irrelevant|not?[_ ]?relevant|unrelated|exclud|reject", key, re.IGNORECASE)
                open_.append((inner, ": no" if denies else verdict))
        elif isinstance(value, str) and value.strip():
            bare = re.fullmatch(r"\s*(-?\d+)(?:\.0+)?\s*", value)
            yield f"[{bare[1]}]{verdict}" if bare else f"{value}{verdict}"


def _truth(value: object) -> bool | None:
    """What a value says of its key, if it is a verdict: true or false, a word for that, or "not relevant"."""
    if not isinstance(value, str) or len(value) > _SHOWN:
        return None
    kinds = {KINDS.get(word) for word in plain(value).split()}
    if not kinds or not kinds <= set("xursg"):
        return None
    return not kinds & set("xu")


def without_tables(said: str) -> str:
    """Rows of tables as an id, a colon, and what the other cells say of it."""
    lines: list[str] = []
    column: int | None = None  # that of the ids, within a table
    for line in said.split("\n"):
        cells = [cell.strip(" *_") for cell in line.strip().strip("|").split("|")]
        heads = [KINDS.get(plain(cell).partition(" ")[0]) for cell in cells]
        if len(cells) < 2:
            lines.append(line)
        elif "n" in heads and not re.search(r"\d|\ue000", line):
            column = next(
                at for at, kind in enumerate(heads) if kind == "n" and (cells[at] != "#" or "n" not in heads[at + 1 :])
            )
        elif column is None and (line.count("|") < 2 or not re.search(r"[^\W\d]", line)):
            lines.append(line.replace("|", ","))
        else:
            lines.append(_row(cells, column or 0))
    return "\n".join(lines)


def _row(cells: list[str], column: int) -> str:
    column = min(column, len(cells) - 1)
    marked = next((at for at, cell in enumerate(cells) if "\ue000" in cell), column)
    others = [cell for at, cell in enumerate(cells) if at != marked]
    return f"[{cells[marked]}]: {' '.join(others)}"
