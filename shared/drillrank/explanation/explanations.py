"""Explanations of rankings, as scores with their terms, and results that explain their ranks.

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

ResultT = TypeVar("ResultT")

_DEFAULTS = {"terms": (), "text": "", "note": "", "per": 1}  # omitted from JSON


def _json_fields(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON values, without those that have default values."""
    exported = ((name, value) for name, value in fields if name not in _DEFAULTS or value != _DEFAULTS[name])
    return {name: list(value) if isinstance(value, tuple) else value for name, value in exported}


class DisplayMixin:
    """Displays an object in notebooks, in terminals (by `print` or rich), and as a file."""

    tree: tuple[Node, ...] = ()

    def scores(self) -> Sequence[Term]:
        """Return the scores to display, best first, as terms that contain their summands."""
        raise NotImplementedError

    def svg(self) -> str:
        """Return a picture for a report. Its description contains the same text."""
        from drillrank.explanation.render import as_svg  # loads rich

        return as_svg(self.scores(), self.tree)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write a picture (`.svg`), an HTML element (`.html`) or plain text (any other suffix), in UTF-8."""
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
    """Explanation of one entry of a ranking.

    Attributes:
        rank: Rank, 1 for the best entry.
        score: Score by which the entry was ranked.
        name: Name of the entry.
        terms: Terms whose sum, divided by `per`, is the score. Each name occurs once.
        per: Divisor of the sum, such as the number of tokens in the question.
        note: Further information.

    >>> explanation = Explanation(1, -2.0, "Basel", (Term("prior", -1.0), Term("likelihood", -3.0)), per=2)
    >>> explanation.total, explanation.term("prior").value
    (-2.0, -1.0)
    """

    rank: int
    score: float
    name: str
    terms: tuple[Term, ...] = ()
    per: int = 1
    note: str = ""

    def scores(self) -> Sequence[Term]:
        """Return the score as a term."""
        return [Term(f"{self.rank}. {self.name}", self.score, self.terms, self.note, self.per)]

    @property
    def total(self) -> float:
        """Sum of the terms divided by `per`, which equals the score."""
        return math.fsum(term.value for term in self.terms) / self.per

    @property
    def tokens(self) -> tuple[Term, ...]:
        """Tokens of the question, each with its gain in nats: log p(token | passage) - log p(token | nothing).

        Empty if the score is not a likelihood of the question.
        """
        return self.term(GAINS).terms

    def term(self, name: str) -> Term:
        """Return the term with a name. Its value is 0 if there is none."""
        return next((term for term in self.terms if term.name == name), Term(name, 0.0))

    def __sub__(self, other: Explanation) -> Explanation:
        """Explain the difference between the scores of two entries, term by term."""
        gap = self.scores()[0] - other.scores()[0]
        return Explanation(self.rank, gap.value, f"{self.name} before {other.name}", gap.terms, gap.per)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON values, without fields of terms and notes that are empty."""
        return {"rank": self.rank, "terms": [], "per": 1} | asdict(self, dict_factory=_json_fields)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Explanation:
        """Build an explanation from the result of `to_dict`."""
        return cls(**{**saved, "terms": tuple(map(Term.from_dict, saved.get("terms", ())))})


class Explanations(list[Explanation], DisplayMixin):
    """Explanations of the entries of a ranking, best first.

    Args:
        explanations: Explanation of each entry.
        question: The question.
        tree: Documents, sections and paragraphs of a drill-down in pre-order, with their outcomes.

    >>> print(Explanations([Explanation(1, -2.0, "Basel")], "Which town?", [Node("a.md", "document", 0, "opened", "")]))
    1. Basel: -2.000
    <BLANKLINE>
    What was opened, read and left
    ● evidence; ○ read; ▾ opened; · left
    ▾ a.md –
    """

    def __init__(self, explanations: Iterable[Explanation] = (), question: str = "", tree: Iterable[Node] = ()) -> None:
        super().__init__(explanations)
        self.question = question
        self.tree = tuple(tree)

    def scores(self) -> Sequence[Term]:
        """Return the scores of all entries as terms."""
        return [score for item in self for score in item.scores()]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanations as JSON values."""
        tree = {"tree": [asdict(node) for node in self.tree]} if self.tree else {}
        return {"question": self.question, "entries": [item.to_dict() for item in self], **tree}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Explanations:
        """Build explanations from the result of `to_dict`.

        Raises:
            InvalidInput: The argument is not such a result.

        >>> saved = {"question": "?", "entries": [{"rank": 1, "score": -2.5, "name": "Basel"}]}
        >>> Explanations.from_dict(saved)[0].name
        'Basel'
        """
        try:
            tree = (Node(**node) for node in saved.get("tree", ()))
            return cls(map(Explanation.from_dict, saved["entries"]), saved["question"], tree)
        except (TypeError, KeyError, AttributeError, RecursionError) as problem:
            raise InvalidInput(
                f"Explanations cannot be read from this value: {problem}. Pass the result of `to_dict`."
            ) from problem


SCORING = "1"
"""Version of the scores. It changes whenever a score changes, together with the golden file of the tests."""


class Explainable(list[ResultT], Generic[ResultT]):
    """List of results, best first, that can explain their ranks. It equals a list of the same results.

    Explanations are computed when `explain` is called. Slices can be explained, too. Copies and pickles cannot: they
    contain the results only.

    Args:
        results: The results.
        why: Function from some of the results to their explanations; None if they cannot be explained.

    Attributes:
        scoring: Version of the scores. Results of different versions may be in another order.

    >>> Explainable([1, 2]) == [1, 2]
    True
    >>> Explainable([1, 2]).scoring
    '1'
    """

    def __init__(
        self, results: Iterable[ResultT] = (), why: Callable[[Sequence[Any]], Explanations] | None = None
    ) -> None:
        super().__init__(results)
        self.why = why
        self.scoring = SCORING

    def explain(self) -> Explanations:
        """Explain the rank of each result.

        Raises:
            InvalidInput: These results are a copy, which does not know the ranker.
        """
        if self.why is None:
            raise InvalidInput(
                "A copy of a ranking does not know what ranked it. Call "
                "drillrank.evaluation.explain(query, results, ranker) instead."
            )
        return self.why(self)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> ResultT: ...
    @overload
    def __getitem__(self, index: slice, /) -> Explainable[ResultT]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> ResultT | Explainable[ResultT]:
        if isinstance(index, slice):
            return Explainable(super().__getitem__(index), self.why)
        return super().__getitem__(index)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "why": None}


def find_explainer(results: object) -> Callable[[Sequence[Any]], Explanations] | None:
    """Return the function that explains some of the results of a component, or None if there is none.

    Works for any type of result with `explain` and `why`, such as `Explainable` and the result of `D3`.

    >>> find_explainer(Explainable([1], why=lambda some: Explanations(question="Why?")))([1]).question
    'Why?'
    >>> find_explainer([1]) is None
    True
    """
    return getattr(results, "why", None) if callable(getattr(results, "explain", None)) else None


@dataclass
class ExplanationRequest:
    """Request of a comparison for the explanations of all drillrank components that it calls.

    A comparison asks all questions without explanations, which take time, and later asks a few of them again. The
    request has precedence over the option `explain` of a component. The called component may be a chain of a framework
    that contains drillrank components.

    Attributes:
        enabled: Whether components are to explain their results.
        is_supported: True if a component that was called can explain its results.
        explanation_by_id: Explanations by the id of the result, for frameworks whose results have no field for them.
        tree: Tree of a drill-down.
    """

    enabled: bool
    is_supported: bool = False
    explanation_by_id: dict[str, Explanation] = field(default_factory=dict)
    tree: tuple[Node, ...] = ()


explanation_request: ContextVar[ExplanationRequest | None] = ContextVar("drillrank_explanations", default=None)


def explains(option: bool) -> bool:
    """Return True if a component of a framework should explain its results.

    Args:
        option: The component's option `explain`, which a request of a comparison overrides.

    >>> explains(True), explains(False)
    (True, False)
    """
    current_request = explanation_request.get()
    if current_request is None:
        return option
    current_request.is_supported = True
    return current_request.enabled
