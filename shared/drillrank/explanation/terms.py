"""What a score is added up from: named terms, each of which may consist of others.

    value = Σ values of its terms / per        where it is known of what a term consists

A method that explains something new names new terms; how they are shown depends on no name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

# C0 and C1 codes, by which a text could drive a terminal, signs that turn the direction of writing, lone surrogates,
# and what XML cannot hold.
CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

Outcome = Literal["opened", "evidence", "read", "left"]

NOTHING, GAINS, PATH, ODDS = "question after nothing", "gains", "path", "log-odds"
"""Terms that several methods have: log p(question | nothing), what each token of the question gains over it, the
log-prior of the path that was taken, and log-odds of relevance."""


def on_one_line(text: str, most: int | None = None) -> str:
    r"""A text of anybody's as it may be shown anywhere: with � for each control character, a blank for white space.

    Args:
        text: From wherever.
        most: Characters to keep; … stands for the others.

    >>> on_one_line("a\n\x1b[31mred\u202e"), on_one_line("a long name", 6)
    ('a �[31mred�', 'a lon…')
    """
    shown = CONTROL.sub("�", " ".join(text.split()))
    return shown if most is None or len(shown) <= most else f"{shown[: most - 1]}…"


@dataclass(frozen=True, slots=True)
class Term:
    """A named summand of a score, or of another term; or a score itself.

    Attributes:
        name: What it is: a token of the question, a document on a path, a view, a prior.
        value: In nats, or in the unit of the score where that is no likelihood.
        terms: What adds up to the value; empty where nothing is known of it.
        text: What else there is to know, such as a rank, or by which link a path came to a document.
        per: What their sum is divided by.
    """

    name: str
    value: float
    terms: tuple[Term, ...] = ()
    text: str = ""
    per: int = 1

    @classmethod
    def sum(cls, name: str, terms: Iterable[Term], text: str = "") -> Term:
        """A term that consists of others.

        >>> Term.sum("path", [Term("Turing", -1.5, text="start"), Term("Maida Vale", -0.5, text="link")]).value
        -2.0
        """
        terms = tuple(terms)
        return cls(name, math.fsum(term.value for term in terms), terms, text)

    def __sub__(self, other: Term) -> Term:
        """What this one is beyond another, term by term; a term that one of them lacks is 0 there.

        >>> gap = Term("Basel", -2.0, (Term("prior", -4.0),), per=2) - Term("Bonn", -3.0, (Term("prior", -6.0),), per=2)
        >>> gap.value, gap.terms[0].value
        (1.0, 2.0)
        """
        ones, others = ({term.name: term for term in terms} for terms in (self.terms, other.terms))
        names = [term.name for term in self.terms]
        pairs: Iterable[tuple[Term, Term]] = zip(self.terms, other.terms, strict=False)
        if names != [term.name for term in other.terms]:  # names are there once, or are those of the same tokens
            pairs = ((ones.get(name, Term(name, 0.0)), others.get(name, Term(name, 0.0))) for name in ones | others)
        terms = tuple(one - two for one, two in pairs) if self.per == other.per else ()
        return Term(self.name, self.value - other.value, terms, per=self.per)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Term:
        """What `Explanation.to_dict` gave of it."""
        return cls(**{**saved, "terms": tuple(map(cls.from_dict, saved.get("terms", ())))})


@dataclass(frozen=True, slots=True)
class Node:
    """A document, section or paragraph, and what became of it when D3 drilled down.

    Attributes:
        name: Of a document or section; of a paragraph, how it begins.
        kind: Which of the three.
        depth: 0 for the roots of the tree.
        outcome: `"opened"` (documents and sections), `"evidence"` or `"read"` (paragraphs), or `"left"`.
        why: Who decided so, and by what.
        score: By likelihood or relevance, where it was scored.
        id: Of the paragraph, or of the document: its place among those given.
    """

    name: str
    kind: Literal["document", "section", "paragraph"]
    depth: int
    outcome: Outcome
    why: str
    score: float | None = None
    id: str | None = None
