"""Settings of a path search."""

from __future__ import annotations

from collections.abc import Mapping

from drillrank.embedding import Embed
from drillrank.errors import InvalidInput, check_limits, check_positive
from drillrank.multihop.link_prior import PathPrior
from drillrank.rerank.promptrank import PromptRankSettings
from drillrank.settings import Settings, declared, setting


@declared
class PathSearchSettings(Settings):
    """How paths are searched.

    Raises:
        InvalidInput: a number is too small, or the prior is no `PathPrior`.

    >>> PathSearchSettings.from_dict(PathSearchSettings(hops=3).to_dict()).link_prior
    PathPrior(jump=0.5, named=0.5, single=0.05)
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
