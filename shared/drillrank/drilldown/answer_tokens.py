"""An answer as tokens, and which of its numbers are ids: rules 4 and 5 of `answers`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from drillrank.drilldown.answer_words import CHINESE, KINDS, plain

_LETTER = rf"(?:(?![{CHINESE}])[^\W\d_])"
_GLYPHS = "|".join(sorted((re.escape(k) for k in KINDS if re.search(f"[{CHINESE}]", k)), key=len, reverse=True))
_TOKEN = rf"""(?P<name>\ue000\d+\ue001)
    |(?P<other>\d+(?:\.\d+)+|\d{{1,3}}(?:,\d{{3}})+(?=\s(?!(?:are|is|and|or)\b){_LETTER})|\d{{4}}-\d\d-\d\d|\d+\s?%|\d+⁄\d+|[$€£]\s?\d[\d.,]*|\d\d?:\d\d(?!\d)
        |(?!\d+(?:st|nd|rd|th|º|ª|er?|e|o|a)\b)\d+{_LETTER}\w*)
    |(?P<number>(?:(?<![\w)\]])[-−])?\d+)(?P<ordinal>(?:st|nd|rd|th|er?|o|a)\b)?
    |(?P<marker>\bno\.\s*(?=\d)|\bn°\s*|\b(?:p|para|par|paragraph|section|sec|id|no)(?=\d)|و(?=\d))
    |(?P<word>n/a\b|t/m\b|(?:qu|dell|nell|all|sull|[ldnsjcm])'(?={_LETTER})|{_LETTER}+(?:['-]{_LETTER}+)*(?:\d\w*)?)
    |(?P<glyphs>{_GLYPHS}|[{CHINESE}])
    |(?P<mark>[^\w\s]|\n)"""
_BULLET = re.compile(r"(?m)^[ \t>]*(?:(?:[-*+•·▪◦‣●○–—]|\(?(?:[a-z]|[ivx]{1,5})[.)])[ \t]+)*")
_TICK = re.compile(r"(?m)^([ \t]*(?:[-*+][ \t]+)?)\[([ xX])\]")
_EMPHASIS = re.compile(r"[*_`\"“”„«»‹›「」『』{}\ufe0f\u20e3\u200b-\u200f]|(?<!\w)'|'(?!\w)")
_CIRCLED = re.compile("([①-⓿❶-➓])")
_LONGEST = 4  # words of a phrase
_BIG = 10**9
_BEHIND_ID = {
    "and",
    "not",
    "none",
    "irrelevant",
    "relevant",
    "because",
    "tells",
    "except",
    "retract",
    "but",
    "if",
    "also",
}
_BEHIND_ID |= {
    "to",
    "number",
    "name",
    "\n",
    ".",
    ",",
    ";",
    ":",
    "(",
    ")",
    "[",
    "]",
    "|",
    "!",
    "?",
    "。",
    "…",
    "all",
    "is",
    "<",
    ">",
}


@dataclass(slots=True)
class Token:
    """A word, phrase, mark or number; a number may stand for a range, a name for several positions."""

    kind: str
    text: str
    ids: range | tuple[int, ...] = ()
    ordinal: bool = False
    explicit: bool = False


@lru_cache(maxsize=1)
def _token() -> re.Pattern[str]:
    """Compiled at the first use: that takes as long as loading a library."""
    return re.compile(_TOKEN, re.VERBOSE)


def tokens_of(text: str, names: Sequence[Sequence[int]] | None = None) -> list[Token]:
    """Tokens of a text; if it has names in it, written as marked numbers, its own numbers are none."""
    text = _CIRCLED.sub(r" \1 ", text)
    text = _TICK.sub(lambda tick: tick[1] + ("✗" if tick[2] == " " else ""), text)
    text = _EMPHASIS.sub(" ", _BULLET.sub("", plain(text)))
    found: list[Token] = []
    raw = list(_token().finditer(text))
    at = 0
    while at < len(raw):
        match, kind = raw[at], raw[at].lastgroup
        at += 1
        if kind == "name":
            positions = names[int(match[0][1:-1])] if names is not None else ()
            found.append(Token("number", match[0], tuple(p + 1 for p in positions), explicit=True))
        elif match["number"] and names is None:
            number = int(match["number"].replace("−", "-")) if len(match["number"]) < 10 else _BIG
            found.append(Token("number", match["number"], range(number, number + 1), ordinal=bool(match["ordinal"])))
        elif kind == "marker":
            found.append(Token("and" if match[0] == "و" else "noun", match[0]))
        elif kind in ("word", "mark", "glyphs"):
            phrase = match[0]
            for count in range(min(_LONGEST, len(raw) - at + 1), 1, -1) if kind == "word" else ():
                if all(m.lastgroup == "word" for m in raw[at : at + count - 1]):
                    longer = " ".join(m[0] for m in raw[at - 1 : at + count - 1])
                    if longer in KINDS:
                        phrase, at = longer, at + count - 1
                        break
            default = "other" if kind != "mark" else phrase
            if phrase[-1] == "'":
                default = "not" if phrase == "n'" else "glue"
            found.append(Token(KINDS.get(phrase, default), phrase))
        else:
            found.append(Token("other" if names is None else "glue", match[0]))
    return _with_ids(_with_ranges(found))


def _with_ranges(tokens: list[Token]) -> list[Token]:
    """Two numbers with a dash or a "to" between them made one token."""
    merged: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.kind == "number" and isinstance(token.ids, range):
            to = at + (at < len(tokens) and tokens[at].kind in ("]", "noun"))
            while to < len(tokens) and tokens[to].kind in ("to", ".", "…") and to < at + 4:
                to += 1
            then = to
            while then < len(tokens) and tokens[then].kind in ("noun", "[", "glue", "is") and then < to + 2:
                then += 1
            last = tokens[then].ids if then < len(tokens) and tokens[then].kind == "number" else ()
            between = [t.text for t in tokens[at:to] if t.kind == "to" or t.text in ".…"]
            if isinstance(last, range) and between and between != ["."] and "\n" not in between:
                token = Token("number", f"{token.text}-{tokens[then].text}", range(token.ids.start, last.stop))
                at = then + 1
        merged.append(token)
    return merged


def _with_ids(tokens: list[Token]) -> list[Token]:
    """Numbers that are ids told from those of prose and from those that number a list."""
    inside, explicit_before = False, False
    for at, token in enumerate(tokens):
        if token.kind in ("[", "]", "\n"):
            inside = token.kind == "["
        if token.kind != "number":
            explicit_before = explicit_before and token.kind in ("and", "noun", "]", "[", "#")
            continue
        behind = tokens[at + 1] if at + 1 < len(tokens) else Token("\n", "")
        before = _introduced(tokens, at)
        token.explicit = (
            token.explicit
            or inside
            or explicit_before
            or before == "noun"
            or (behind.kind == "noun" and (token.ordinal or bool(re.match(f"[{CHINESE}]", behind.text))))
        )
        if not token.explicit and (before in ("prose", "all") or behind.kind not in _BEHIND_ID):
            token.kind = "other"
        if (
            token.kind == "number"
            and behind.kind in (".", ")", ":")
            and before in ("\n", "start", "(", ",", ".", "number")
        ):
            head = _head(tokens, at + 2, bare=behind.kind != ":" and before in ("\n", "start"))
            if head and not (token.explicit and inside):
                token.kind = "glue"
            elif before in ("\n", "start") and behind.kind != ":":
                behind.kind = ":"
        explicit_before = token.explicit and token.kind == "number"
    return _without_numbering(tokens)


def _introduced(tokens: list[Token], at: int) -> str:
    """The kind of what introduces a number, marks and auxiliary words left out."""
    steps = 0
    at -= 1
    direct = True
    while at >= 0 and steps < 4:
        kind = tokens[at].kind
        if kind in ("noun", "prose", "all", "\n"):
            return kind
        if kind in ("and", ".") or (kind == "(" and at == 0):
            return "," if kind == "and" else "."
        if not (kind in ("glue", "is", ":", "(", "[", "#", "=") or (direct and kind == "to")):
            return kind
        direct = False
        at -= 1
        steps += 1
    return "start" if at < 0 else ""


def _head(tokens: list[Token], at: int, *, bare: bool) -> bool:
    """Whether an id stands right here: behind a word for it, in brackets, or alone."""
    first = at
    while at < len(tokens) and at < first + 4 and tokens[at].kind in ("noun", "glue", "is", "[", ":", "#"):
        at += 1
    if at >= len(tokens) or tokens[at].kind != "number":
        return False
    if tokens[at].explicit or any(t.kind in ("noun", "[", "#") for t in tokens[first:at]):
        return True
    return bare and at == first and (at + 1 == len(tokens) or tokens[at + 1].kind in ("\n", "and", "to", "(", ":"))


def _without_numbering(tokens: list[Token]) -> list[Token]:
    """A list that counts from 1, and has an id in every item, is only numbered."""
    starts = [0, *(at + 1 for at, token in enumerate(tokens) if token.kind == "\n")]
    heads: list[int] = []
    numbered = True
    for start, end in zip(starts, [*starts[1:], len(tokens) + 1], strict=True):
        line = tokens[start : end - 1]
        if len(line) > 2 and line[0].kind == "number" and not line[0].explicit and line[1].kind == ":":
            heads.append(start)
            numbered = numbered and line[0].text == str(len(heads)) and any(token.explicit for token in line[2:])
    if numbered:
        for at in heads:
            tokens[at].kind = "glue"
    return tokens
