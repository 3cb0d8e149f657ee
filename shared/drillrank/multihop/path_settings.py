"""Settings of a path search, and their values for a certain model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from drillrank.errors import InvalidInput, OnFailure, check_limits, check_on_failure, check_positive
from drillrank.multihop.prior import PathPrior
from drillrank.prompts import Template, check_placeholders
from drillrank.settings import Preset, Settings, check_one_of, check_preset

Prune = Literal["residual", "tfidf"]
# IRCoT and BridgeRAG ask an LLM between retrievals, too. The wording is ours.
MISSING_PROMPT = (
    "Documents that were found for a question:\n\n{documents}\n\nQuestion: {question}\n\nThe answer may need one more "
    "document. Name what is still missing as a short search query, with the names that the documents tell. If nothing "
    "is missing, answer: nothing.\n\nSearch query:"
)


@dataclass(frozen=True, slots=True)
class PathPlan:
    """Settings with a value for everything that `PathSettings` may leave open.

    Attributes:
        hops: H, number of passages of the longest path.
        stops_early: True to end after a hop whose best path has a lower posterior than the best shorter one.
        beams: K1 of each hop, the number of paths that are extended after it. The last number is for all later hops.
        branch: L, maximum number of links to follow from each path.
        pairs: P, number of best passages that are paired.
        link_prior: Prior of paths; None for the likelihood alone.
        prune: Rule that chooses the links to follow.
        pool: F, number of passages of the first stage.
    """

    hops: int
    stops_early: bool
    beams: tuple[int, ...]
    branch: int
    pairs: int
    link_prior: PathPrior | None
    prune: Prune
    pool: int


_NEURAL = PathPlan(
    hops=2, stops_early=True, beams=(5,), branch=3, pairs=6, link_prior=PathPrior(), prune="residual", pool=100
)
_LEXICAL = replace(_NEURAL, hops=3, beams=(10,), branch=8)  # a wider beam costs a unigram model next to nothing
# Section 2: H = 2, K1 = 5, L = 3 links by TF-IDF, F = 100.
_PAPER = PathPlan(hops=2, stops_early=False, beams=(5,), branch=3, pairs=0, link_prior=None, prune="tfidf", pool=100)


@dataclass(frozen=True, kw_only=True)
class PathSettings(Settings):
    """Settings of a search for paths. Unless stated otherwise, None leaves a value to the preset or to its default.

    Attributes:
        hops: H, number of passages of the longest path. None is at most 2, the paper's number, or 3 with the unigram
            model. The search then ends after a hop whose best path has a lower posterior than the best shorter one.
        beam: K1, number of paths that are extended after each hop, or one number for each hop. The last number is for
            all later hops. None is 5, the paper's number, or 10 with the unigram model.
        branch: L, maximum number of links to follow from each path. None is 3, the paper's number, or 8 with the
            unigram model.
        pairs: P, number of best passages that are paired. Two of them form a path unless one links to the other by
            more than a shared name. Paths of two or more passages may also be extended by these passages, without a
            link. 0 for no pairs. None is 6.
        link_prior: Prior of a path before its texts are read, by a random surfer who follows links or jumps. A mapping
            becomes a `PathPrior`. None scores by the likelihood alone, as in the paper. `"default"` is `PathPrior()`,
            or the value of the preset.
        prune: Rule that chooses the links to follow: those after which the question is likeliest (`"residual"`), or
            those whose passages are most similar to the question (`"tfidf"`, the paper's rule). None is `"residual"`.
        pool: F, number of passages of the first stage.
        preset: `"paper"` uses the paper's values for settings that are left open: exactly 2 hops, K1 = 5, L = 3, links
            by TF-IDF similarity, no pairs, and no prior of paths. Unless other links are passed, the search follows
            hyperlinks only.
        missing_prompt: Prompt that asks an LLM what the best path lacks: a template with `{documents}` and
            `{question}`, or a function of these.
        on_failure: `"raise"` raises an `LLMFailure` if a call of the LLM fails or its answer has no word. `"fallback"`
            continues by links alone, with a `DrillrankWarning`. None raises if a call fails, and falls back if an
            answer has no word.

    Raises:
        InvalidInput: A setting is out of range, or the prompt lacks a placeholder.

    >>> PathSettings.from_dict({"hops": 3, "link_prior": {"jump": 0.2}}).link_prior.jump
    0.2
    """

    hops: int | None = None
    beam: int | tuple[int, ...] | None = None
    branch: int | None = None
    pairs: int | None = None
    link_prior: PathPrior | Literal["default"] | None = "default"
    prune: Prune | None = None
    pool: int = 100
    preset: Preset | None = None
    missing_prompt: Template = MISSING_PROMPT
    on_failure: OnFailure | None = None

    def __post_init__(self) -> None:
        link_prior: object = self.link_prior
        if isinstance(link_prior, Mapping):  # from JSON
            object.__setattr__(self, "link_prior", PathPrior.from_dict(link_prior))
        elif link_prior != "default" and not isinstance(link_prior, PathPrior | None):
            raise InvalidInput(f'link_prior must be a PathPrior, None or "default", got {link_prior!r:.200}.')
        check_limits(hops=self.hops, branch=self.branch)
        check_positive(pool=self.pool)
        if self.beam is not None:
            for beam in self.beam if isinstance(self.beam, tuple) and self.beam else [self.beam]:
                check_positive(beam=beam)  # type: ignore[arg-type]  # an empty tuple is refused, too
        if self.pairs != 0:
            check_limits(pairs=self.pairs)
        if self.prune is not None:
            check_one_of(Prune, prune=self.prune)
        check_preset(self.preset)
        check_placeholders(self.missing_prompt, "documents", "question")
        check_on_failure(self.on_failure)
        super().__post_init__()

    def plan(self, *, is_neural: bool) -> PathPlan:
        """Return the settings with the values of the preset, or the defaults, for what is left open.

        Args:
            is_neural: True if the model that scores paths reads prompts. False if it matches words or embeddings.

        >>> PathSettings(preset="paper", pairs=6).plan(is_neural=True).pairs
        6
        """
        defaults = _NEURAL if is_neural else _LEXICAL
        if self.preset == "paper":
            defaults = _PAPER
        beam = defaults.beams if self.beam is None else self.beam
        return PathPlan(
            hops=self.hops or defaults.hops,
            stops_early=self.hops is None and defaults.stops_early,
            beams=beam if isinstance(beam, tuple) else (beam,),
            branch=self.branch or defaults.branch,
            pairs=defaults.pairs if self.pairs is None else self.pairs,
            link_prior=defaults.link_prior if self.link_prior == "default" else self.link_prior,
            prune=self.prune or defaults.prune,
            pool=self.pool,
        )
