"""What a score is added up from, and what a search did to find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Fate = Literal["opened", "evidence", "read", "left"]


@dataclass(frozen=True, slots=True)
class TokenContribution:
    """What one token of the question says.

    Attributes:
        token: As the model sees it; `<meaning>` is that of an `st:` model.
        gain: log p(token | passage) - log p(token | nothing), in nats.
        nothing: log p(token | nothing): after an empty passage, which for a model that counts words is the collection.
        shares: Of each document of the path; empty where the model does not tell.
    """

    token: str
    gain: float
    nothing: float
    shares: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A summand beside the question's tokens.

    Attributes:
        name: What it is.
        value: In nats, or in the unit of the score where there are no tokens.
    """

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class PathStep:
    """How a path came to one of its documents.

    Attributes:
        document: Its name.
        by: `"start"`, or the kind of the link: such as `"title mention"`, `"hyperlink"`, `"second retrieval"`, or
            `"jump"` where no link leads there.
        log_prior: Log-probability with which a reader takes this step, in nats; 0 where there is no prior.
    """

    document: str
    by: str
    log_prior: float


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a model that was asked whether a passage is relevant.

    Attributes:
        text: The token, or its id.
        log_prob: Of the answer behind the prompt, in nats, or its raw logit.
        is_logit: Whether it is that.
        at_most: Whether a server told no more than that it is at most this.
    """

    text: str
    log_prob: float
    is_logit: bool = False
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class ViewRank:
    """How one view of a section found it.

    Attributes:
        view: Its name.
        rank: 1 for the best.
        weight: Of the view.
        value: weight / (60 + rank), a summand of the score.
    """

    view: str
    rank: int
    weight: float
    value: float


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A document, section or paragraph, and what drilling down made of it.

    Attributes:
        name: Of a document or section; of a paragraph, how it begins.
        kind: Which of the three.
        depth: 0 for the roots of the tree.
        fate: `"opened"` (documents and sections), `"evidence"` or `"read"` (paragraphs), or `"left"`.
        why: Who decided so, and by what.
        score: By likelihood or relevance, where it was scored.
        id: Of the paragraph, or of the document: its place among those given.
    """

    name: str
    kind: Literal["document", "section", "paragraph"]
    depth: int
    fate: Fate
    why: str
    score: float | None = None
    id: str | None = None
