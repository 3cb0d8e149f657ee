"""An answer as tokens, each of a kind, and which of its numbers are ids: rules 4 and 5 of `answers`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from drillrank.drilldown.answer_words import CHINESE, CZECH, KINDS, plain

_LETTER = rf"(?:(?![{CHINESE}])[^\W\d_])"
_WORD = rf"{_LETTER}+(?:['-]{_LETTER}+)*(?:\d\w*)?"
_PHRASES = sorted((re.escape(phrase) for phrase in KINDS if not re.fullmatch(_WORD, phrase)), key=len, reverse=True)
_TOKEN = rf"""(?P<name>\ue000\d+\ue001)
    |(?P<figure>\d+(?:\.\d+)+|\d{{1,3}}(?:,\d{{3}})+(?=\s(?!(?:are|is|and|or)\b){_LETTER})|\d{{4}}-\d\d-\d\d|\d+\s?%|\d+⁄\d+|[$€£]\s?\d[\d.,]*|\d\d?:\d\d(?!\d)
        |(?!\d+(?:st|nd|rd|th|º|ª|er?|e|o|a)\b)\d+{_LETTER}\w*)
    |(?P<number>(?P<digits>(?:(?<![\w)\]])[-−])?\d+)(?P<ordinal>(?:st|nd|rd|th|er?|o|a)\b)?)
    |(?P<noun>(?<!\?\ )\bno\.[ ]*(?=\d)|\bn°\s*|\b(?:p|para|par|paragraph|section|sec|id|no)(?=\d))
    |(?P<and>(?:و|ו-?)(?=\d))
    |(?P<phrase>(?<!{_LETTER})(?:{"|".join(_PHRASES)})(?!{_LETTER}))
    |(?P<elided>(?:qu|dell|nell|all|sull|[ldnsjcm])'(?={_LETTER}))
    |(?P<word>{_WORD})|(?P<character>[{CHINESE}])
    |(?P<mark>[^\w\s]|\n)"""
_BULLET = re.compile(r"(?m)^[ \t>]*(?:(?:[-*+•·▪◦‣●○–—]|\(?(?:[a-z]|[ivx]{1,5})[.)])[ \t]+)*")
_EMPHASIS = re.compile(r"[*_`\"“”„«»‹›「」『』{}\\\ufe0f\u20e3\u200b-\u200f]|\$(?!\d)|(?<!\w)'|'(?!\w)")
_CIRCLED = re.compile("([①-⓿❶-➓])")
_FORMS = {"name": "D", "figure": "o", "noun": "n", "and": "&", "elided": "g", "character": "o"}
_BIG = 10**9

_CARDINALS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]

# Patterns of kinds, a letter for each token. N is a number, O an ordinal one, D an id for certain, y a short word.
_END = r"\n.;!?。…bw"  # of a clause
_ASKED = re.compile(
    rf"(?<![^{_END}])(?:[^NODnk{_END}]*[ovy],?q(?!s)|[^NODnkz{_END}]*[ovy],?qs)[gsp-]*[nkrD][^,:({_END}]*"
)
_RANGE = re.compile(r"N[]nk]?(?:\.?-\.?|\.\.\.?|…)[nk[gs]{0,2}N")
_OTHER_THAN = re.compile(r"t([nk]?)p")
_JOINED = re.compile(r"(?<=N)y(?=N)")
_EXPLICIT = re.compile(r"(?:[nk]-?[gs:([]{0,3}|\[[^]\n[]*?)[NO](?:[,&nk[\]]*[NO])*|[NO](?=k)")
_ORDINAL = re.compile(r"O(?:[,&g]*O)*(?=([,&g]*n)?)")
_OF_ALL = re.compile(r"(?<=a)([gs]{0,2})N")
_COUNT = re.compile(r"(p[gs:([]{0,3})N|N(?=[nkogpty])")
_DOTTED = re.compile(r"(?:N\.[,&]+)+N\.(?=[nk](?![gs:([]*[NO]))")
_ITEM = re.compile(r"(?:^|(?<=[\n(,.&ND]))[ND](?=[.):][nkgs[:]{0,4}D)|^N(?=[.)]N(?:$|[-,&(:]))", re.MULTILINE)
_POINT = re.compile(r"^([ND])[.)](?!N[.)])", re.MULTILINE)
_NUMBERED = re.compile(r"^N:.+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, phrase, mark or number, and what it stands for: ids that follow each other, or some."""

    text: str
    ids: range | tuple[int, ...] = ()


@lru_cache(maxsize=1)
def _token() -> re.Pattern[str]:
    """Compiled at the first use: that takes as long as loading a library."""
    return re.compile(_TOKEN, re.VERBOSE)


def tokens_of(text: str, names: Sequence[Sequence[int]] | None = None) -> tuple[str, list[Token]]:
    """The kinds of the tokens of a text, a letter each, and the tokens.

    If it has names in it, written as marked numbers, its own numbers are none.
    """
    text = _EMPHASIS.sub(" ", _BULLET.sub("", plain(_CIRCLED.sub(r" \1 ", text))))
    if CZECH.search(text):
        text = re.sub(r"\ba\b", "and", text)
    kinds: list[str] = []
    tokens: list[Token] = []
    for match in _token().finditer(text):
        kind, written = _kind(match)
        ids: range | tuple[int, ...] = ()
        if kind == "D":
            ids = tuple(position + 1 for position in names[int(match[0][1:-1])]) if names is not None else ()
        elif kind in "NO" and names is None:
            number = int(written.replace("−", "-")) if len(written) < 10 else _BIG
            ids = range(number, number + 1)
        elif kind in "NO":
            kind = "g"
        kinds.append(kind)
        tokens.append(Token(written, ids))
    return _with_ids(*_with_ranges(_without_questions("".join(kinds), tokens), tokens))


def _kind(match: re.Match[str]) -> tuple[str, str]:
    """The kind of a token, and the token as it is to be read."""
    written, form = match[0], match.lastgroup
    if form == "number":
        return ("O", match["digits"]) if match["ordinal"] else ("N", written)
    if form == "word":
        if written in _CARDINALS[1:]:
            return "N", str(_CARDINALS.index(written) + 1)
        if written in _ORDINALS:
            return "O", str(_ORDINALS.index(written) + 1)
        return KINDS.get(written, "y" if len(written) <= 3 else "o"), written
    if form == "mark":
        return written, written
    return KINDS[written] if form == "phrase" else _FORMS[str(form)], written


def _without_questions(kinds: str, tokens: Sequence[Token]) -> str:
    """Clauses that tell, or deny, that somebody knows which items are relevant say nothing of these."""
    left = list(kinds)
    # "No text which is relevant" asks nothing.
    for found in _ASKED.finditer(
        "".join("z" if token.text == "no" else kind for kind, token in zip(kinds, tokens, strict=True))
    ):
        left[found.start() : found.end()] = "o" * len(found[0])
    return "".join(left).replace("q", "g")


def _with_ranges(kinds: str, tokens: list[Token]) -> tuple[str, list[Token]]:
    """Two numbers with a dash or a "to" between them made one token."""
    at = 0
    left: list[str] = []
    merged: list[Token] = []
    for match in _RANGE.finditer(kinds):
        first, last = tokens[match.start()], tokens[match.end() - 1]
        left.append(kinds[at : match.start()])
        merged += tokens[at : match.start()]
        at = match.end()
        left.append("N")
        merged.append(Token(f"{first.text}-{last.text}", range(first.ids[0], last.ids[0] + 1)))
    return "".join([*left, kinds[at:]]), merged + tokens[at:]


def _with_ids(kinds: str, tokens: list[Token]) -> tuple[str, list[Token]]:
    """Numbers that are ids told from those of prose and from those that number a list."""
    kinds = _JOINED.sub("&", _OTHER_THAN.sub(r"e\1g", kinds))
    kinds = _DOTTED.sub(lambda found: _certain(found[0]).replace(".", "g"), kinds)
    kinds = _EXPLICIT.sub(lambda found: _certain(found[0]), kinds)
    kinds = _COUNT.sub(r"\1o", _OF_ALL.sub(r"\1g", kinds)).replace("y", "o")
    kinds = _POINT.sub(r"\1:", _ITEM.sub("g", kinds))
    kinds = _ORDINAL.sub(lambda found: _certain(found[0]) if found[1] else found[0], kinds).replace("O", "o")
    # A list that counts from 1, and has an id in every item, is only numbered.
    items = list(_NUMBERED.finditer(kinds))
    if all("D" in item[0] and tokens[item.start()].text == str(n) for n, item in enumerate(items, start=1)):
        kinds = _NUMBERED.sub(lambda item: f"g{item[0][1:]}", kinds)
    return kinds, tokens


def _certain(kinds: str) -> str:
    return kinds.replace("N", "D").replace("O", "D")
