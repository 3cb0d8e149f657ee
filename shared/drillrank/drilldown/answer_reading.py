"""What the clauses of an answer affirm and deny: rules 6 to 10 of `answers`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from drillrank.drilldown.answer_tokens import Token

# Patterns of the kinds of tokens, a letter each: see `answer_words` and `answer_tokens`.
_CLAUSE = re.compile(r"([^\n.;!?。…bw]*)([\n.;!?。…bw]|\Z)")
_ONLY_BUT = re.compile(r"([az][gnkt]*)b")  # "but" means "except"
_LIST_FIRST = re.compile(r"\n*[ND,&[\]()]+\.?\n\n+(?![ND,&[\]()]+\.?(?:\n|\Z))")
_ASIDE = re.compile(r"f.*|(z[^NDcz]*)c.*")  # a condition, and what follows "none, because"
_WAIT_NO = re.compile(r"(?<=w)(,?)x(?=[,:])")
_DENIED_NEXT = re.compile(r"[gsnk([:ar]*[ND]")
_OF_THE_REST = re.compile(r"[gsnk([:a]*t")
_ALL = re.compile(r"[gsnkr:(&]*a([^xzue]*)(?:e|$)")
_REST = re.compile(r"t[gsnk]*r$")
_ID_FIRST = re.compile(r"[nkgs[(]*D")
_VERDICT = re.compile(r"[xugsr:)]*[xu][xugsr:)]*(?<!:)")


@dataclass(slots=True)
class Reading:
    """What an answer says: the ids that it affirms or denies, and whether it says that there is nothing."""

    verdicts: dict[int, bool] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    nothing: bool = False


@dataclass(slots=True)
class _Said:
    """An id in a clause; one that is only described counts if none is chosen outright."""

    token: Token
    certain: bool
    chosen: bool
    described: bool = False


def read(kinds: str, tokens: list[Token], count: int) -> Reading:
    """What the clauses say, one after the other: the last word on an id holds."""
    kinds = _WAIT_NO.sub(r"\1,", _ONLY_BUT.sub(r"\1e", kinds))
    reader = _Reader(count)
    listed = _LIST_FIRST.match(kinds)
    for clause in _CLAUSE.finditer(kinds):
        reader.closed = reader.closed or bool(listed and clause.start() == listed.end())
        reader.clause(clause[1], tokens[clause.start() : clause.end(1)], clause[2] or "\n")
    if not any(reader.reading.verdicts.values()):
        for token in reader.described:
            reader.take(token, chosen=True)
    return reader.reading


class _Reader:
    def __init__(self, count: int) -> None:
        self.count = count
        self.reading = Reading()
        self.described: list[Token] = []  # ids that it tells of without a word on whether they are relevant
        self.closed = False  # it has said that nothing is relevant: ids that follow are explained, not chosen
        self._back = False  # it is about to take back what it said
        self._heading = False  # the list that follows is one of what is not relevant
        self._explaining = ""  # the mark that began the explanation of an id
        self._before: list[Token] = []  # ids of the clause before

    def clause(self, kinds: str, tokens: list[Token], end: str) -> None:
        """Read one clause, which ends in a token of this kind."""
        kinds = _ASIDE.sub(r"\1", kinds)
        if _ID_FIRST.match(kinds):
            self._explaining = ""
        said = self._said(kinds, tokens)
        self._settle(kinds, said)
        self._before = [one.token for one in said]
        if end == "\n":
            self._explaining = ""
            if kinds[-1:] == ":" and not said:
                self._heading, self.closed = any(kind in "xzu" for kind in kinds), False
        elif end in "bw":
            self.closed = self._heading = False
            self._explaining = ""
            self._back = self._back or end == "w"

    def _said(self, kinds: str, tokens: list[Token]) -> list[_Said]:
        """The ids of a clause, and what it says of each."""
        said: list[_Said] = []
        pending = 0  # as many ids at the end await their predicate
        deny = self._heading
        near = False  # no word of its own since the last id or denial
        subject = False  # no comma since the last id
        settled = False  # the explanation so far is a verdict
        if "E" in kinds and "a" in kinds:  # what is excepted stands before or behind
            return [
                _Said(token, certain=False, chosen=False)
                for kind, token in zip(kinds, tokens, strict=False)
                if kind in "ND"
            ]
        for at, kind in enumerate(kinds):
            if kind in "ND":
                if not self._explaining or (deny and self._explaining == "("):
                    pending = pending + 1 if near or deny else 1
                    said.append(_Said(tokens[at], kind == "D", chosen=not deny))
                    near = subject = True
            elif kind == ")" and self._explaining == "(":
                self._explaining = ""
            elif kind in "xzu":
                alone = kinds[at - 1] in "ND]" and (tokens[at].text == "no" or not tokens[at].text.isalpha())
                follows = not alone and bool(_DENIED_NEXT.match(kinds, at + 1))
                if _OF_THE_REST.match(kinds, at + 1):
                    continue
                if (
                    not follows
                    and pending
                    and (
                        kind == "u"
                        or (near and kinds[at - 1] != ",")
                        or (kinds[at - 1] == "," and at + 1 == len(kinds))
                    )
                ):
                    for one in said[-1:] if self._explaining == "(" else said[-pending:]:
                        one.chosen = one.described = False
                    pending, settled = 0, True
                else:
                    deny, near, pending = True, True, 0
            elif kind in "eE":
                deny, near, pending = not deny, True, 0
            elif kind == "r" and self._explaining:
                settled = settled or near
            elif kind == "r" and pending:
                for one in said[-pending:]:
                    one.described = False
                pending, deny = 0, self._heading
            elif pending and not self._explaining and self._opens(kinds, at):
                self._explaining, near, settled = kind, True, False
            elif kind == "(":
                pending = 0
            elif kind in "ovp":
                if subject and not self._explaining:
                    for one in said[len(said) - pending :]:
                        one.described = one.chosen
                near = settled = False
            elif kind == "t":
                pending = 0
            elif kind == ",":
                subject = False
                if settled and self._explaining != "(":
                    self._explaining, pending = "", 0
                if deny and (not near or kinds[at - 1] in "xzu"):
                    deny = self._heading
        return said

    def _opens(self, kinds: str, at: int) -> bool:
        """Whether the token here, behind an id, begins its explanation."""
        return kinds[at] == "c" or (
            kinds[at - 1] in "ND])" and (kinds[at] in ":-" or (kinds[at] == "(" and kinds[at + 1 : at + 2] != "&"))
        )

    def _settle(self, kinds: str, said: list[_Said]) -> None:
        """Take down what a clause says."""
        verdicts = self.reading.verdicts
        affirms = any(one.chosen and not one.described for one in said)
        everything = not affirms and (_says_all(kinds) or (bool(_REST.search(kinds)) and not any(verdicts.values())))
        if self._back and (affirms or everything):
            self._back = False
            if "l" not in kinds:
                verdicts.clear()
                self.reading.unknown.clear()
        if everything:
            verdicts.update({number: verdicts.get(number, True) for number in range(1, self.count + 1)})
        for one in said:
            if one.described:
                self.described += [] if self.closed else [one.token]
            elif not (self.closed and one.chosen):
                self.take(one.token, chosen=one.chosen, tell=one.certain)
        if said:
            denies = not any(one.chosen for one in said)
            self._back = self._back and not denies
            self.reading.nothing = self.reading.nothing or denies
        elif self._before and _VERDICT.fullmatch(kinds):
            for token in self._before:
                self.take(token, chosen=False)
            self.described = [token for token in self.described if token not in self._before]
            self.reading.nothing = True
            return
        if _says_nothing(kinds):
            self.reading.nothing = True
            if self._back:
                verdicts.clear()
            if not said or "z" in kinds:
                self.closed = self.closed or bool(set("nkrvu") & set(kinds))

    def take(self, token: Token, *, chosen: bool, tell: bool = False) -> None:
        """Note the verdict on the ids of a token, and, if wanted, those that are not offered."""
        ids = token.ids
        if isinstance(ids, range):
            if chosen and tell and (ids.start < 1 or ids.stop > self.count + 1):
                self.reading.unknown.setdefault(token.text)
            ids = range(max(ids.start, 1), min(ids.stop, self.count + 1))
        self.reading.verdicts.update(dict.fromkeys(ids, chosen))


def _says_all(kinds: str) -> bool:
    if "E" in kinds and "a" in kinds:
        return True
    found = _ALL.match(kinds)
    return found is not None and (bool(set(found[1]) & set("nkrvtgs")) or set(found[1]) <= set(",&:"))


def _says_nothing(kinds: str) -> bool:
    """Whether a clause without an id says that there is none to choose."""
    said = set(kinds)
    if not said & set("xzu") or "xa" in kinds:
        return False
    about = said & set("nkrv")
    alone = not said & set("ovp")
    return alone or "u" in said or "r" in about or len(about) > 1 or bool(about and "z" in said)
