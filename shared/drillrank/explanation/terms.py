"""Named terms of scores. A term may be a sum of other terms.

    value = Σ values of its terms / per        if its terms are known

Rendering works for any names of terms, so a method may introduce new ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

# C0 and C1 codes, which may control a terminal, characters that change the writing direction, lone surrogates, and
# characters that XML does not allow.
CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

Outcome = Literal["opened", "evidence", "read", "left"]
"""Outcome of a node in a drill-down: opened (documents and sections), evidence or only read (paragraphs), or left."""

NOTHING, GAINS, PATH, ODDS = "question after nothing", "gains", "path", "log-odds"
"""Names of terms of several methods: log p(question | nothing), the gain of each token of the question over it, the
log-prior of the path, and the log-odds of relevance."""


def on_one_line(text: str, max_length: int | None = None) -> str:
    r"""Make any text safe for display, on one line. Each control character becomes �, white space a space.

    Args:
        text: Any text.
        max_length: Maximum number of characters; a longer text ends with "…". None for no limit.

    >>> on_one_line("a\n\x1b[31mred\u202e"), on_one_line("a long name", 6)
    ('a �[31mred�', 'a lon…')
    """
    line = CONTROL.sub("�", " ".join(text.split()))
    return line if max_length is None or len(line) <= max_length else f"{line[: max_length - 1]}…"


@dataclass(frozen=True, slots=True)
class Term:
    """Named summand of a score or of another term, or a score itself.

    Attributes:
        name: Name, for example a token of the question, a document on a path, a view or a prior.
        value: Value, in nats for likelihoods, otherwise in the unit of the score.
        terms: Terms whose sum, divided by `per`, is the value. Empty if they are not known.
        text: Further information, such as a rank, or the link by which a path reached a document.
        per: Divisor of the sum of the terms.
    """

    name: str
    value: float
    terms: tuple[Term, ...] = ()
    text: str = ""
    per: int = 1

    @classmethod
    def sum(cls, name: str, terms: Iterable[Term], text: str = "") -> Term:
        """Add terms up to a new one.

        >>> Term.sum("path", [Term("Turing", -1.5, text="start"), Term("Maida Vale", -0.5, text="link")]).value
        -2.0
        """
        terms = tuple(terms)
        return cls(name, math.fsum(term.value for term in terms), terms, text)

    def __sub__(self, other: Term) -> Term:
        """Return the difference of two terms, term by term. A term that is missing from one of them counts 0 there.

        >>> gap = Term("Basel", -2.0, (Term("prior", -4.0),), per=2) - Term("Bonn", -3.0, (Term("prior", -6.0),), per=2)
        >>> gap.value, gap.terms[0].value
        (1.0, 2.0)
        """
        own_terms, other_terms = ({term.name: term for term in terms} for terms in (self.terms, other.terms))
        names = [term.name for term in self.terms]
        pairs: Iterable[tuple[Term, Term]] = zip(self.terms, other.terms, strict=False)
        if names != [term.name for term in other.terms]:  # equal lists may repeat names: those of tokens
            all_names = own_terms | other_terms
            pairs = ((own_terms.get(n, Term(n, 0.0)), other_terms.get(n, Term(n, 0.0))) for n in all_names)
        terms = tuple(minuend - subtrahend for minuend, subtrahend in pairs) if self.per == other.per else ()
        return Term(self.name, self.value - other.value, terms, per=self.per)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Term:
        """Build a term from its part of the result of `Explanation.to_dict`."""
        return cls(**{**saved, "terms": tuple(map(cls.from_dict, saved.get("terms", ())))})


@dataclass(frozen=True, slots=True)
class Node:
    """Document, section or paragraph, with its outcome in a drill-down.

    Attributes:
        name: Name of a document or section, or the first words of a paragraph.
        kind: Kind of node.
        depth: Depth in the tree, 0 for its roots.
        outcome: `"opened"` (documents and sections), `"evidence"` or `"read"` (paragraphs), or `"left"`.
        why: Reason of the outcome.
        score: Score by likelihood or relevance; None if there is none.
        id: Id of a paragraph, or index of a document among the arguments, as text.
    """

    name: str
    kind: Literal["document", "section", "paragraph"]
    depth: int
    outcome: Outcome
    why: str
    score: float | None = None
    id: str | None = None
