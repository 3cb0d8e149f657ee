"""Explanations of rankings: scores with the terms that they are added up from; and results that can be asked for them.

score = Σ terms / per
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, SupportsIndex, TypeVar, overload

from drillrank.errors import InvalidInput
from drillrank.explanation.terms import GAINS, Node, Term

T = TypeVar("T")

_EMPTY = {"terms": (), "text": "", "note": "", "per": 1}  # need not be told


def _plain(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """As JSON has it."""
    shown = ((name, value) for name, value in fields if name not in _EMPTY or value != _EMPTY[name])
    return {name: list(value) if isinstance(value, tuple) else value for name, value in shown}


class DisplayMixin:
    """Shows itself: in notebooks, in terminals by `print` and by rich, and as a file."""

    tree: tuple[Node, ...] = ()

    def scores(self) -> Sequence[Term]:
        """What is shown, best first: scores with the terms that they consist of."""
        raise NotImplementedError

    def svg(self) -> str:
        """A picture for a report; its text is data, and stands in its description, too."""
        from drillrank.explanation.render import as_svg  # loads rich

        return as_svg(self.scores(), self.tree)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write a picture (`.svg`), a piece of HTML (`.html`) or text (any other suffix), in UTF-8."""
        forms = {".svg": self.svg, ".html": self._repr_html_}
        Path(file).write_text(forms.get(Path(file).suffix, self.__str__)(), encoding="utf-8")

    def _repr_html_(self) -> str:
        from drillrank.explanation.render import as_html

        return as_html(self.scores(), self.tree)

    def __rich__(self) -> Any:
        from drillrank.explanation.render import renderable

        return renderable(self.scores(), self.tree)

    def __str__(self) -> str:
        from drillrank.explanation.render import as_text

        return as_text(self.scores(), self.tree)


@dataclass(frozen=True)
class Explanation(DisplayMixin):
    """One entry of a ranking, explained.

    Attributes:
        rank: 1 for the best.
        score: As it was ranked by.
        name: Of the entry.
        terms: That add up to the score times `per`; each name once.
        per: What the sum is divided by: the number of the question's tokens, or 1 where a formula adds up.
        note: What else there is to know.
    """

    rank: int
    score: float
    name: str
    terms: tuple[Term, ...] = ()
    per: int = 1
    note: str = ""

    def scores(self) -> Sequence[Term]:
        """The score, as a term."""
        return [Term(f"{self.rank}. {self.name}", self.score, self.terms, self.note, self.per)]

    @property
    def total(self) -> float:
        """The score again, from its terms."""
        return math.fsum(term.value for term in self.terms) / self.per

    @property
    def tokens(self) -> tuple[Term, ...]:
        """The question's tokens in order, each with its gain: log p(token | passage) - log p(token | nothing), in nats.

        Empty where the score is no likelihood of the question.
        """
        return self.term(GAINS).terms

    def term(self, name: str) -> Term:
        """The term of this name; of value 0 if there is none."""
        return next((term for term in self.terms if term.name == name), Term(name, 0.0))

    def __sub__(self, other: Explanation) -> Explanation:
        """Why one entry stands before another: what each term adds to the difference of their scores."""
        gap = self.scores()[0] - other.scores()[0]
        return Explanation(self.rank, gap.value, f"{self.name} before {other.name}", gap.terms, gap.per)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; in terms and at the end what is empty is left out."""
        return {"rank": self.rank, "terms": [], "per": 1} | asdict(self, dict_factory=_plain)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Explanation:
        """What `to_dict` gave."""
        return cls(**{**saved, "terms": tuple(map(Term.from_dict, saved.get("terms", ())))})


class Explanations(list[Explanation], DisplayMixin):
    """Of a ranking, best first.

    Attributes:
        question: That was asked.
        tree: Of a drill-down: documents, sections and paragraphs in pre-order, with what became of them.
    """

    def __init__(self, found: Iterable[Explanation] = (), question: str = "", tree: Iterable[Node] = ()) -> None:
        super().__init__(found)
        self.question = question
        self.tree = tuple(tree)

    def scores(self) -> Sequence[Term]:
        """Of all entries, as terms."""
        return [score for item in self for score in item.scores()]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        tree = {"tree": [asdict(node) for node in self.tree]} if self.tree else {}
        return {"question": self.question, "entries": [item.to_dict() for item in self], **tree}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Explanations:
        """What `to_dict` gave.

        Raises:
            InvalidInput: it is nothing of the kind.

        >>> saved = {"question": "?", "entries": [{"rank": 1, "score": -2.5, "name": "Basel"}]}
        >>> Explanations.from_dict(saved)[0].name
        'Basel'
        """
        try:
            tree = (Node(**node) for node in saved.get("tree", ()))
            return cls(map(Explanation.from_dict, saved["entries"]), saved["question"], tree)
        except (TypeError, KeyError, AttributeError, RecursionError) as problem:
            raise InvalidInput(f"These are no explanations: {problem}.") from problem


SCORING = "1"
"""The version of what scores say: it changes with any score, and with it the golden file of the tests."""


class Explainable(list[T], Generic[T]):
    """Results, best first, that can say why each stands where it stands. Compares as a list.

    What was asked of a model is asked again, or kept: nothing is computed before `explain` is called. Slices can be
    explained, too; copies and pickles hold the results alone.

    Args:
        found: The results.
        why: From some of them to their explanations; None where nobody knows any more.

    `scoring` is the version of the scores: results of different versions may be in another order.

    >>> Explainable([1, 2]) == [1, 2]
    True
    >>> Explainable([1, 2]).scoring
    '1'
    """

    def __init__(self, found: Iterable[T] = (), why: Callable[[Sequence[Any]], Explanations] | None = None) -> None:
        super().__init__(found)
        self.why = why
        self.scoring = SCORING

    def explain(self) -> Explanations:
        """Why each result stands where it stands.

        Raises:
            InvalidInput: this is a copy, which does not know what ranked it.
        """
        if self.why is None:
            raise InvalidInput(
                "A copy does not know what ranked it: drillrank.evaluation.explain(query, results, ranker) is told."
            )
        return self.why(self)

    @overload
    def __getitem__(self, location: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, location: slice, /) -> Explainable[T]: ...
    def __getitem__(self, location: SupportsIndex | slice, /) -> T | Explainable[T]:
        if isinstance(location, slice):
            return Explainable(super().__getitem__(location), self.why)
        return super().__getitem__(location)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "why": None}


@dataclass
class ExplanationRequest:
    """What a comparison asks of every component of a host that it calls, whatever their option `explain` says.

    It asks all questions without explanations, which would cost time, and later a few of them again. What it calls may
    be a chain with a component of ours somewhere in it.

    Attributes:
        wanted: Whether they are to explain.
        understood: Whether one of them can.
        found: Explanations by the id of the result, where the host's results have no place for them.
        tree: Of a drill-down.
    """

    wanted: bool
    understood: bool = False
    found: dict[str, Explanation] = field(default_factory=dict)
    tree: tuple[Node, ...] = ()


request: ContextVar[ExplanationRequest | None] = ContextVar("drillrank_explanations", default=None)


def explains(option: bool) -> bool:
    """Whether a component of a host explains: as a comparison asks it to, else as its option says."""
    comparison = request.get()
    if comparison is not None:
        comparison.understood = True
    return option if comparison is None else comparison.wanted
