"""The prior of a path over links: how a reader would walk who knows the question's words, but no passage's text.

    P(d | q)     = ν [d is named in q] / (number of passages named) + (1 - ν) / N
    P(d' | d, q) = (1 - γ) F(d' | d) + γ P(d' | q)
    F(d' | d)    = [d links to d'] / (number of links of d), or the chance of d' by names of d; half and half if both
    P(c | q)     = P(|c|) P(d1 | q) Π P(d_i+1 | d_i, q),    P(|c|) = σ for one passage, 1 - σ for more

A random surfer whose jumps are personalised by the question: a path over links is cheap, a jump to a passage that the
question names by its title costs little, and a jump to anywhere costs log N. With the likelihood of the question this
makes the posterior of a path, log P(q | c) + log P(c | q). Who searches paths has questions that few single passages
answer: σ is small.
                           random surfer: Brin & Page (1998); personalised jumps: Haveliwala (2002)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Protocol

from drillrank.errors import InvalidInput
from drillrank.multihop.title_mentions import TitleIndex
from drillrank.passages import Passage
from drillrank.text import name_tokens


@dataclass(frozen=True, slots=True)
class PathPrior:
    """The habits of the reader.

    Attributes:
        jump: γ, the share of steps that follow no link.
        named: ν, the share of jumps to passages that the question names.
        single: σ, the share of questions that one passage answers.

    Raises:
        InvalidInput: a share that is not between 0 and 1.

    >>> reader = PathPrior().reader(1000, {"turing"})
    >>> reader.start("turing") > reader.start("vale")
    True
    >>> reader.step("vale", ["vale", "london"]) > reader.step("basel", ["vale", "london"])
    True
    """

    jump: float = 0.5
    named: float = 0.5
    single: float = 0.05

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> PathPrior:
        """A prior from `dataclasses.asdict`, as JSON has it.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.

        >>> PathPrior.from_dict({"jump": 0.2}).jump
        0.2
        """
        known = [item.name for item in fields(PathPrior)]
        if not set(given) <= set(known):
            raise InvalidInput(f"A PathPrior has {', '.join(known)}; not {given!r:.200}.")
        return PathPrior(**given)

    def __post_init__(self) -> None:
        for name, share in (("jump", self.jump), ("named", self.named), ("single", self.single)):
            if not isinstance(share, int | float) or not 0 < share < 1:
                raise InvalidInput(f"{name} is a share between 0 and 1, without these themselves; not {share!r}.")

    def reader(self, size: int, named: Collection[str]) -> Reader:
        """The reader of one question.

        Args:
            size: Number of passages, N.
            named: Ids of those that the question names.
        """
        return Reader(self, size, named)


@dataclass(frozen=True, slots=True)
class Reader:
    """Log-probabilities (natural, at most 0) of a reader's walk, for one question."""

    prior: PathPrior
    size: int
    named: Collection[str]

    def start(self, passage_id: str) -> float:
        """Log P(d | q)."""
        return math.log(self._arrives_at(passage_id))

    def length(self, passages: int) -> float:
        """Log P(|c|) of a path of so many passages."""
        single = self.prior.single
        return math.log(single if passages == 1 else 1 - single)

    def step(
        self, passage_id: str, links: Collection[str], mentions: Mapping[str, float] = MappingProxyType({})
    ) -> float:
        """Log P(d' | d, q); where d leads nowhere, the reader jumps.

        Args:
            passage_id: d'.
            links: Where d links to.
            mentions: Where its names lead, with the chance of each; they add up to 1 at most.
        """
        if not links and not mentions:
            return self.start(passage_id)
        jump = self.prior.jump
        followed = 1 / len(links) if passage_id in links else 0.0
        if mentions:
            named = mentions.get(passage_id, 0.0)
            followed = (followed + named) / 2 if links else named
        return math.log((1 - jump) * followed + jump * self._arrives_at(passage_id))

    def _arrives_at(self, passage_id: str) -> float:
        anywhere = 1 / max(self.size, 1)
        if not self.named:
            return anywhere
        share = self.prior.named
        return (share / len(self.named) if passage_id in self.named else 0) + (1 - share) * anywhere


class NamedPassages:
    """Tells which passages a question names by their titles.

    Questions are written with less care than articles: letters of either case are the same, if only one letter of
    the mention is a capital or a digit, so that ordinary words stay ordinary, or of a script without
    small letters. Of overlapping titles the first and longest counts.

    >>> named = NamedPassages([Passage("", id="film", title="The More the Merrier (film)"), Passage("", title="more")])
    >>> named("Who directed The More The Merrier?")
    {'film'}
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._titles = TitleIndex(passages, fold_case=True)

    def within(self, ids: Container[str]) -> NamedPassages:
        """The same of the passages with these ids alone."""
        view = copy(self)
        view._titles = self._titles.within(ids)
        return view

    def __call__(self, question: str) -> set[str]:
        """Ids of the named passages."""
        return named_in(question, self._titles)


class Titles(Protocol):
    """Titles of passages, wherever they are kept; letters of either case are the same."""

    def mentions(self, tokens: Sequence[str], /) -> Iterable[tuple[int, int, Sequence[str]]]:
        """Where each title begins and ends among the tokens, with its passages' ids; of one start the longest first."""
        ...


def named_in(question: str, titles: Titles) -> set[str]:
    """Ids of the passages that a question names by their titles, as `NamedPassages` finds them."""
    tokens = name_tokens(question)
    named: set[str] = set()
    end_of_last = 0
    for start, end, ids in titles.mentions(tokens):
        if start >= end_of_last and any(token[0].isalnum() and not token[0].islower() for token in tokens[start:end]):
            named.update(ids)
            end_of_last = end
    return named
