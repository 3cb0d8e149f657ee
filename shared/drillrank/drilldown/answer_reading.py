"""What the clauses of an answer affirm and deny: rules 6 to 10 of `answers`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from drillrank.drilldown.answer_tokens import Token
from drillrank.drilldown.answer_words import CHINESE

_DENY = {"not", "none", "irrelevant"}
_VERDICT = {"not", "irrelevant", "relevant", "is", ":", "glue"}
_BREAKS = {"\n", ".", ";", "!", "?", "。", "…", "but", "retract"}


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
    chosen: bool
    described: bool = False


def read(tokens: list[Token], count: int) -> Reading:
    """What the clauses say, one after the other: the last word on an id holds."""
    reader = _Reader(count)
    clause: list[Token] = []
    for token, behind in pairwise([*tokens, Token("\n", ""), Token("\n", "")]):
        if token.text == "no" and behind.text in (",", ":") and {one.text for one in clause} <= {","}:
            clause = [Token("and", ",")]  # "no, 4": what it denies was said before
        elif token.kind == "but" and _only_denied(clause):
            clause.append(Token("except", token.text))
        elif token.kind in _BREAKS:
            reader.clause(clause, token)
            clause = []
        else:
            clause.append(token)
    if not any(reader.reading.verdicts.values()):
        for token in reader.described:
            reader.take(token, chosen=True)
    return reader.reading


def _only_denied(clause: list[Token]) -> bool:
    """Whether "but" means "except" here."""
    kinds = {token.kind for token in clause}
    return bool(kinds & {"all", "none"}) and not kinds & {"is", "relevant", "tells", "number", "other"}


class _Reader:
    def __init__(self, count: int) -> None:
        self.count = count
        self.reading = Reading()
        self.described: list[Token] = []  # ids that it tells of without a word on whether they are relevant
        self._closed = False  # it has said that nothing is relevant: ids that follow are explained, not chosen
        self._back = False  # it is about to take back what it said
        self._heading = False  # the list that follows is one of what is not relevant
        self._explaining = False
        self._before: list[Token] = []  # ids of the clause before

    def clause(self, clause: list[Token], end: Token) -> None:
        """Read one clause, which ends in this token."""
        kinds = [token.kind for token in clause]
        if "if" in kinds:
            clause = clause[: kinds.index("if")]
            kinds = kinds[: len(clause)]
        if end.kind != "?" or "noun" not in kinds:
            said = self._said(clause)
            self._settle(clause, said)
            self._before = [one.token for one in said] or (self._before if not clause else [])
            if end.kind == "\n" and kinds[-1:] == [":"] and not said:
                self._heading, self._closed = bool(_DENY & set(kinds)), False
        if end.kind == "\n":
            self._explaining = False
        if end.kind in ("but", "retract"):
            self._closed = self._explaining = self._heading = False
            self._back = self._back or end.kind == "retract"

    def _said(self, clause: list[Token]) -> list[_Said]:
        """The ids of a clause, and what it says of each."""
        said: list[_Said] = []
        if _excepts_behind(clause):
            return [_Said(token, chosen=False) for token in clause if token.kind == "number"]
        pending = 0  # as many ids at the end await their predicate
        deny = self._heading
        near = settled = False  # no word of its own since the last id or denial; the explanation so far is a verdict
        subject = False  # no comma since the last id
        opened = ""
        if self._explaining and _begins_with_id(clause):
            self._explaining = False
        for at, token in enumerate(clause):
            kind, behind = token.kind, clause[at + 1].kind if at + 1 < len(clause) else "\n"
            if kind == "number":
                if self._explaining and behind in (":", "(", "to") and (token.explicit or not opened):
                    self._explaining, opened, pending = False, "", 0
                if not self._explaining or (deny and near and opened == "("):
                    pending = pending + 1 if near or deny else 1
                    said.append(_Said(token, chosen=not deny))
                    near = subject = True
            elif kind == ")" and opened == "(":
                self._explaining, opened = False, ""
            elif kind in _DENY:
                target = _next_sense(clause, at + 1)
                about = kind == "irrelevant" or target == "relevant"
                attached = (near and clause[at - 1].text != ",") or about
                if target != "number" and pending and attached:
                    for one in said[-1:] if opened == "(" else said[-pending:]:
                        one.chosen = one.described = False
                    pending, settled = 0, True
                elif not self._explaining or target == "number":
                    deny, near, pending = True, True, 0
            elif kind == "except":
                deny, near, pending = bool(said) or not deny, True, 0
            elif kind == "relevant" and self._explaining:
                settled = settled or near
            elif kind == "relevant" and pending:
                for one in said[-pending:]:
                    one.described = False
                pending, deny = 0, self._heading
            elif pending and (kind == "because" or _opens(clause, at, behind)):
                self._explaining, opened, near, settled = True, kind, True, False
            elif kind in ("other", "tells", "prose"):
                if near and subject and not self._explaining:
                    for one in said[len(said) - pending :]:
                        one.described = one.chosen
                near = settled = False
            elif token.text == ",":
                subject = False
                if settled and self._explaining and opened != "(":
                    self._explaining = False
                if deny and (not near or clause[at - 1].kind in _DENY):
                    deny = self._heading
        if opened == "(":
            self._explaining = False
        return said

    def _settle(self, clause: list[Token], said: list[_Said]) -> None:
        """Take down what a clause says."""
        kinds = [token.kind for token in clause]
        affirms = any(one.chosen and not one.described for one in said)
        everything = not affirms and (self._says_all(kinds) or _excepts_behind(clause))
        verdicts = self.reading.verdicts
        if self._back and (affirms or everything):
            self._back = False
            if "also" not in kinds:
                verdicts.clear()
                self.reading.unknown.clear()
        if everything:
            kept = dict(verdicts) if "rest" in kinds else {}
            verdicts.update({number: kept.get(number, True) for number in range(1, self.count + 1)})
        only_ids = not set(kinds) & {"other", "prose", "tells"}
        for one in said:
            if one.described and one.chosen:
                self.described += [] if self._closed else [one.token]
            elif not (self._closed and one.chosen):
                self.take(one.token, chosen=one.chosen, tell=one.token.explicit or only_ids)
        if affirms or everything:
            return
        if said:
            denies = not any(one.chosen for one in said)
            self._back = self._back and not denies
            self.reading.nothing = self.reading.nothing or denies
        elif _is_verdict(kinds) and self._before:
            for token in self._before:
                self.take(token, chosen=False)
            self.described = [token for token in self.described if token not in self._before]
            self.reading.nothing = True
            return
        if _says_nothing(kinds):
            self.reading.nothing = True
            if self._back:
                verdicts.clear()
                self._back = False
            if not said or "none" in kinds:
                self._closed = self._closed or bool({"noun", "relevant", "tells", "irrelevant"} & set(kinds))

    def take(self, token: Token, *, chosen: bool, tell: bool = False) -> None:
        """Note the verdict on the ids of a token, and, if wanted, those that are not offered."""
        ids = token.ids
        if isinstance(ids, range):
            if chosen and tell and (ids.start < 1 or ids.stop > self.count + 1 or not ids):
                self.reading.unknown.setdefault(token.text)
            ids = range(max(ids.start, 1), min(ids.stop, self.count + 1))
        self.reading.verdicts.update(dict.fromkeys(ids, chosen))

    def _says_all(self, kinds: list[str]) -> bool:
        if "all" not in kinds:
            return False
        at = kinds.index("all")
        end = kinds.index("except") if "except" in kinds else len(kinds)
        inner = set(kinds[at + 1 : end])
        lead = set(kinds[:at]) <= {"glue", "is", "noun", "relevant", ":", "and", "("}
        known = {"noun", "relevant", "tells", "rest", "glue", "is"}
        return lead and not inner & _DENY and (bool(inner & known) or inner <= {"and", ":"})


def _excepts_behind(clause: list[Token]) -> bool:
    """Whether it excepts from everything in a language that says so behind what it excepts."""
    excepts = any(token.kind == "except" and re.match(f"[{CHINESE}]", token.text) for token in clause)
    return excepts and any(token.kind == "all" for token in clause)


def _opens(clause: list[Token], at: int, behind: str) -> bool:
    """Whether this mark, right behind an id, opens an explanation."""
    kind = clause[at].kind
    return clause[at - 1].kind in ("number", "]", ")") and (kind in (":", "(") or (kind == "to" and behind != "number"))


def _is_verdict(kinds: list[str]) -> bool:
    """Whether a clause is nothing but a denial of what stands before it."""
    said = set(kinds)
    return bool(said & {"relevant", "irrelevant"}) and bool(said & _DENY) and said <= _VERDICT and kinds[-1] != ":"


def _says_nothing(kinds: list[str]) -> bool:
    """Whether a clause without an id says that there is none to choose."""
    said = set(kinds)
    if not said & _DENY or "rest" in said or ("all" in said and kinds[max(kinds.index("all") - 1, 0)] == "not"):
        return False
    about = said & {"noun", "relevant", "tells"}
    alone = not said & {"other", "prose", "tells"}
    return alone or "irrelevant" in said or "relevant" in about or len(about) > 1 or bool(about and "none" in said)


def _begins_with_id(clause: list[Token]) -> bool:
    for token in clause:
        if token.kind == "number":
            return token.explicit
        if token.kind not in ("noun", "glue", "is", "[", "("):
            return False
    return False


def _next_sense(clause: list[Token], at: int) -> str:
    """The kind of the next word that is more than a link: "relevant" only if no number follows it."""
    relevant = False
    for place in range(at, len(clause)):
        token = clause[place]
        if token.kind == "relevant":
            relevant = True
        elif token.kind not in ("glue", "is", "noun", "(", "[", ":", "all"):
            return "relevant" if relevant and token.kind != "number" else token.kind
    return "relevant" if relevant else "\n"
