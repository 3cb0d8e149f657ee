"""Explanations of a ranking, and results that can be asked for them.

    score = (Σ_t log p(q_t | nothing) + Σ_t [log p(q_t | c) - log p(q_t | nothing)] + log prior + other parts) / per

Nothing is an empty passage: for a model that counts words, the collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, SupportsIndex, TypeVar, overload

from drillrank.errors import InvalidInput
from drillrank.explanation.figures import (
    Figure,
    Heading,
    Note,
    answer_figure,
    part_figure,
    path_figure,
    token_figure,
    tree_figure,
    view_figure,
)
from drillrank.explanation.html import as_html
from drillrank.explanation.summands import Answer, Part, PathStep, TokenContribution, TreeNode, ViewRank
from drillrank.explanation.text import on_one_line

T = TypeVar("T")

_SUMMANDS = {"tokens": TokenContribution, "parts": Part, "steps": PathStep, "answers": Answer, "views": ViewRank}


class _Shown:
    """Shows itself: in notebooks, in terminals by rich and by `print`, and as a picture."""

    def figures(self) -> list[Figure]:
        """What is shown."""
        raise NotImplementedError

    def svg(self) -> str:
        """A picture for a report, as SVG; its text is data, and stands in its description, too."""
        from drillrank.explanation.svg import as_svg  # loads rich

        return as_svg(self.figures())

    def _repr_html_(self) -> str:
        return as_html(self.figures())

    def __rich__(self) -> Any:
        from drillrank.explanation.terminal import as_renderable

        return as_renderable(self.figures())

    def __str__(self) -> str:
        from drillrank.explanation.terminal import as_text

        return as_text(self.figures())


@dataclass(frozen=True)
class Explanation(_Shown):
    """One entry of a ranking, explained.

    Attributes:
        rank: 1 for the best.
        score: As it was ranked by.
        name: Of the entry.
        documents: Names of what was read for it: of one passage, or of a path's, in order.
        tokens: Of the question, in order; empty where the score is no likelihood of the question.
        parts: What is added beside the tokens, such as a prior.
        steps: How a path came to each of its documents.
        answers: Of a model that was asked whether the passage is relevant: the one that says so, and the other.
        views: That found a section.
        per: What the sum is divided by: the number of tokens, or 1 where a formula adds up.
        note: What else there is to know.
    """

    rank: int
    score: float
    name: str
    documents: tuple[str, ...] = ()
    tokens: tuple[TokenContribution, ...] = ()
    parts: tuple[Part, ...] = ()
    steps: tuple[PathStep, ...] = ()
    answers: tuple[Answer, ...] = ()
    views: tuple[ViewRank, ...] = ()
    per: int = 1
    note: str = ""

    @property
    def log_prior(self) -> float:
        """Of the path that was taken, in nats."""
        return sum(step.log_prior for step in self.steps)

    @property
    def total(self) -> float:
        """The score again, from its parts."""
        of_tokens = sum(token.gain + token.nothing for token in self.tokens)
        others = sum(part.value for part in self.parts) + sum(view.value for view in self.views)
        return (of_tokens + self.log_prior + others) / self.per

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is empty is left out."""
        return {name: value for name, value in _plain(asdict(self)).items() if value not in ([], "")}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Explanation:
        """What `to_dict` told.

        Raises:
            InvalidInput: it is nothing of the kind.
        """
        try:
            made = dict(told) | {name: tuple(told.get(name, ())) for name in ("documents", *_SUMMANDS)}
            for name, kind in _SUMMANDS.items():
                made[name] = tuple(kind(**_with_tuples(one)) for one in made[name])
            return cls(**made)
        except (TypeError, ValueError, AttributeError) as problem:
            raise InvalidInput(f"This is no explanation: {problem}.") from problem

    def figures(self) -> list[Figure]:
        """What is shown: the path, the question, and whatever else the score is made of."""
        score = f"{self.score:.5f}" if self.views else f"{self.score:.3f}"
        shown: list[Figure] = [Heading(f"{self.rank}. {on_one_line(self.name, 160)}: {score}")]
        if len(self.steps) > 1 or self.log_prior:
            shown.append(path_figure(self.steps))
        if self.tokens:
            shown.append(token_figure(self.tokens, self.documents))
        if self.answers:
            shown.append(answer_figure(self.answers))
        if self.views:
            shown.append(view_figure(self.views))
        if self.parts:
            shown.append(part_figure(self.parts))
        if self.tokens:
            shown.append(Note(self._sum()))
        if self.note:
            shown.append(Note(self.note))
        return shown

    def _sum(self) -> str:
        nothing, gains = sum(token.nothing for token in self.tokens), sum(token.gain for token in self.tokens)
        summands = {"question after nothing": nothing, "gains": gains, "path": self.log_prior}
        told = [f"{name} {value:+.3f}" for name, value in summands.items() if value]
        told += [f"{part.name} {part.value:+.3f}" for part in self.parts]
        over = f"({', '.join(told)}) / {self.per} tokens" if self.per > 1 else ", ".join(told)
        return f"{over} = {self.total:.3f}"


class Explanations(list[Explanation], _Shown):
    """Of a ranking, best first.

    Attributes:
        question: That was asked.
        tree: Of a drill-down: documents, sections and paragraphs in pre-order, with what became of them.
    """

    def __init__(self, found: Iterable[Explanation] = (), question: str = "", tree: Iterable[TreeNode] = ()) -> None:
        super().__init__(found)
        self.question = question
        self.tree = tuple(tree)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        tree = {"tree": [asdict(node) for node in self.tree]} if self.tree else {}
        return {"question": self.question, "entries": [item.to_dict() for item in self], **tree}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Explanations:
        """What `to_dict` told.

        Raises:
            InvalidInput: it is nothing of the kind.

        >>> told = {"question": "?", "entries": [{"rank": 1, "score": -2.5, "name": "Basel"}]}
        >>> Explanations.from_dict(told)[0].name
        'Basel'
        """
        try:
            tree = [TreeNode(**node) for node in told.get("tree", ())]
            return cls(map(Explanation.from_dict, told["entries"]), told["question"], tree)
        except (TypeError, KeyError, AttributeError) as problem:
            raise InvalidInput(f"These are no explanations: {problem}.") from problem

    def figures(self) -> list[Figure]:
        """Those of every entry, and the tree."""
        shown = [figure for item in self for figure in item.figures()]
        return [*shown, Heading("What was opened, read and left"), tree_figure(self.tree)] if self.tree else shown


class Explainable(list[T], Generic[T]):
    """Results, best first, that can say why each stands where it stands. Compares as a list.

    What was asked of a model is asked again, or kept: nothing is computed before `explain` is called. Slices can be
    explained, too; copies and pickles hold the results alone.

    Args:
        found: The results.
        why: From some of them to their explanations; None where nobody knows any more.

    >>> Explainable([1, 2]) == [1, 2]
    True
    """

    def __init__(self, found: Iterable[T] = (), why: Callable[[Sequence[Any]], Explanations] | None = None) -> None:
        super().__init__(found)
        self.why = why

    def explain(self) -> Explanations:
        """Why each result stands where it stands.

        Raises:
            InvalidInput: this is a copy, which does not know what ranked it.
        """
        if self.why is None:
            raise InvalidInput(
                "These results do not know what ranked them, as a copy or a pickle does not: "
                "drillrank.evaluation.explain(query, results, ranker) takes the ranker, too."
            )
        return self.why(self)

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, place: slice, /) -> Explainable[T]: ...
    def __getitem__(self, place: SupportsIndex | slice, /) -> T | Explainable[T]:
        if isinstance(place, slice):
            return Explainable(super().__getitem__(place), self.why)
        return super().__getitem__(place)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "why": None}


def _with_tuples(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}


def _plain(value: Any) -> Any:
    """As JSON has it: lists in place of tuples."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return list(map(_plain, value)) if isinstance(value, tuple) else value
