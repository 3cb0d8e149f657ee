"""The settings of a path search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from drillrank.errors import InvalidInput, OnFailure, check_limits, check_on_failure, check_positive
from drillrank.multihop.prior import PathPrior
from drillrank.prompts import Template, check_placeholders
from drillrank.settings import Settings, check_one_of

Prune = Literal["residual", "tfidf"]
# What a path of documents still lacks (as IRCoT and BridgeRAG ask an LLM between retrievals); the wording is ours.
MISSING_PROMPT = (
    "Documents that were found for a question:\n\n{documents}\n\nQuestion: {question}\n\nThe answer may need one more "
    "document. Name what is still missing as a short search query, with the names that the documents tell. If nothing "
    "is missing, answer: nothing.\n\nSearch query:"
)


PAPER: Mapping[str, Any] = {  # section 2
    "hops": 2,
    "beam": 5,
    "branch": 3,
    "pairs": 0,
    "link_prior": None,
    "prune": "tfidf",
}


@dataclass(frozen=True, kw_only=True)
class PathSettings(Settings):
    """How paths are searched.

    Attributes:
        hops: H, the longest path; None for as many as a question needs, the paper's 2 at most, or 3 with the unigram
            model.
        beam: K1, paths that are extended after each hop, or a number for each of them, of which the last one stands for
            all that follow; None for the paper's 5, or 10 with the unigram model.
        branch: L, links followed from each of them; None for the paper's 3, or 8 with the unigram model.
        pairs: P: any two of so many best passages are a path as well if neither links to the other, and all of them
            compete with the links of paths of two and more; 0 for none.
        link_prior: How likely a path is before its texts are read: a reader follows links, or jumps. None scores by the
            likelihood alone, as the paper does. A mapping is read by `PathPrior.from_dict`.
        prune: Which of many links are followed: those after which the question is likeliest (`"residual"`), or, as in
            the paper, those whose passages are most similar to the question (`"tfidf"`).
        pool: F, passages of the first stage.
        path_preset: `"paper"` searches as the paper does, in all that is left at its default: two hops, K1 = 5, L = 3,
            links by similarity, no pairs, no prior of paths.
        missing_prompt: Asks the LLM what the best path still lacks: with `{documents}` and `{question}`, or a function
            of these.
        on_failure: `"raise"` raises an `LLMFailure` if a call of the LLM fails or its answer has no word. `"fallback"`
            continues by links alone, with a `DrillrankWarning`. None raises if a call fails, and falls back if an
            answer has no word.

    Raises:
        InvalidInput: a number is too small, the prior is no `PathPrior`, or the prompt lacks a place.

    >>> PathSettings.from_dict({"hops": 3, "link_prior": {"jump": 0.2}}).link_prior.jump
    0.2
    """

    hops: int | None = None
    beam: int | tuple[int, ...] | None = None
    branch: int | None = None
    pairs: int = 6
    link_prior: PathPrior | None = PathPrior()
    prune: Prune = "residual"
    pool: int = 100
    path_preset: Literal["paper"] | None = None
    missing_prompt: Template = MISSING_PROMPT
    on_failure: OnFailure | None = None

    def __post_init__(self) -> None:
        given: object = self.link_prior
        if isinstance(given, Mapping):  # from JSON
            object.__setattr__(self, "link_prior", PathPrior.from_dict(given))
        if self.path_preset is not None:
            check_one_of(Literal["paper"], path_preset=self.path_preset)
            for item in fields(PathSettings):
                if item.name in PAPER and getattr(self, item.name) == item.default:
                    object.__setattr__(self, item.name, PAPER[item.name])
        for beam in self.beam if isinstance(self.beam, tuple) and self.beam else [self.beam]:
            check_limits(beam=beam)  # type: ignore[arg-type]  # an empty tuple is refused, too
        check_limits(hops=self.hops, branch=self.branch)
        check_positive(pool=self.pool)
        if self.pairs != 0:
            check_positive(pairs=self.pairs)
        if not isinstance(self.link_prior, PathPrior | None):
            raise InvalidInput(f"link_prior is a PathPrior or None, not {self.link_prior!r:.100}.")
        check_placeholders(self.missing_prompt, "documents", "question")
        check_on_failure(self.on_failure)
        check_one_of(Prune, prune=self.prune)
        super().__post_init__()
