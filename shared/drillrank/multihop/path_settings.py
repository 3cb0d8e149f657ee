"""Settings of a path search, and what they were called before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import wraps
from typing import Any, TypeVar
from warnings import warn

from drillrank.embedding import Embed
from drillrank.errors import InvalidInput, check_limits, check_positive
from drillrank.multihop.link_prior import PathPrior
from drillrank.rerank.promptrank import PromptRankSettings
from drillrank.settings import Settings, declared, setting

Class = TypeVar("Class", bound=type)

_OF_TODAY = {"link_prior", "preset"}


@declared
class PathSearchSettings(Settings):
    """How paths are searched.

    Raises:
        InvalidInput: a number is too small, or the prior is no `PathPrior`.

    >>> PathSearchSettings.from_dict(PathSearchSettings(hops=3).to_dict()).link_prior
    PathPrior(jump=0.5, named=0.5, first_stage=None, single=0.05)
    """

    hops: int | None = setting(
        default=None,
        description="Longest path; None for as many as a question needs, the paper's 2 at most, or 3 with the unigram "
        "model.",
    )
    beam: int | None = setting(
        default=None,
        description="Paths that are extended after each hop; None for the paper's 5, or 10 with the unigram model.",
    )
    branch: int | None = setting(
        default=None,
        description="Links followed from each of them; None for the paper's 3, or 8 with the unigram model.",
    )
    pairs: int = setting(
        default=6,
        description="Any two of so many best passages are a path as well if neither links to the other, and all of "
        "them compete with the links of paths of two and more; 0 for none.",
    )
    link_prior: PathPrior | None = setting(
        default=PathPrior(),
        description="How likely a path is before its texts are read: a reader follows links, or jumps. None scores "
        "by the likelihood alone, as the paper does.",
    )
    cascade: int | None = setting(
        default=None,
        description="Paths of each hop that the model scores; the embedded unigram model chooses them. None for all.",
    )
    embed: Embed | None = setting(
        default=None,
        description="A function from texts to an array of shape (texts, dimensions): meaning then counts in an own "
        "first stage, in the choice among links and, beside the words of a unigram model, in the score.",
    )

    def __post_init__(self) -> None:
        given: object = self.link_prior
        if isinstance(given, Mapping):  # from JSON
            object.__setattr__(self, "link_prior", PathPrior.from_dict(given))
        super().__post_init__()

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_limits(hops=self.hops, beam=self.beam, branch=self.branch, cascade=self.cascade)
        if self.pairs != 0:
            check_positive(pairs=self.pairs)
        if not isinstance(self.link_prior, PathPrior | None):
            raise InvalidInput(f"link_prior is a PathPrior or None, not {self.link_prior!r:.100}.")


@declared
class PathSettings(PathSearchSettings, PromptRankSettings):
    """How paths are searched and scored, in one: `PathSearchSettings` and `PromptRankSettings`.

    Raises:
        InvalidInput: as both.
    """


def link_prior_was_prior(cls: Class) -> Class:
    """Let `prior=` go on for one release as it was: the prior over links, with the first stage's as a part of it.

    `prior=None` was a search without a prior over links. It is so as long as no setting beside it is one that came with
    the new name, as in what `to_dict` or a host's serialisation of today gives.
    """
    construct = cls.__init__  # type: ignore[misc]  # of a class that is made here
    of_first_stage = "prior" in {item.name for item in fields(cls)}

    @wraps(construct)
    def dividing(self: Any, *arguments: Any, **given: Any) -> None:
        if "prior" in given:
            prior, name = given["prior"], type(self).__name__
            if isinstance(prior, PathPrior | Mapping) or (prior is None and not _OF_TODAY & given.keys()):
                warn(
                    f"{name}: the prior over links is called 'link_prior' now; 'prior' is what the first stage said.",
                    DeprecationWarning,
                    stacklevel=2,
                )
                given["link_prior"] = given.pop("prior")
            elif not of_first_stage:
                warn(
                    f"{name}: 'prior' is a setting of the PromptRank that it is given now.",
                    DeprecationWarning,
                    stacklevel=2,
                )
                prompt_rank, *arguments_left = arguments or (given.pop("prompt_rank"),)
                arguments = (replace(prompt_rank, prior=given.pop("prior")), *arguments_left)
        construct(self, *arguments, **given)

    cls.__init__ = dividing  # type: ignore[misc]
    return cls
