"""What each token of the question adds to the score of a passage or path, from the likelihoods that it was made of.

    score = (Σ_t log p(q_t | nothing) + Σ_t [log p(q_t | c) - log p(q_t | nothing)] + log prior + other parts) / per

Nothing is an empty passage: for a model that counts words the collection, for a neural one the prompt around it. In a
path c of documents d a word's contribution comes from each with the share p(q_t | d) / Σ_d' p(q_t | d'), for models
that know documents one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput
from drillrank.explanation import Explanation, Part, PathStep, TokenContribution
from drillrank.likelihood import Likelihood
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.scale import divisor

PRIOR, UNMATCHED = "prior of the first stage", "no word of the question: as the least likely"
_ROUNDING = 1e-9
_EXACT = 1e-4  # a neural model that is asked again in other company differs by as much at most
_NAME = 60  # characters of a text that stand for a passage without title or id


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a ranking, and what its score was made of.

    Attributes:
        item: The entry.
        read: Its documents.
        likelihood: Of the question after them.
        nothing: Of the question after an empty passage, by the same prompt.
        shares: Of each document in each token, shape (documents, tokens); None where nobody can tell.
        steps: How the path came to each document, with the prior.
        parts: Summands beside.
    """

    item: Ranked[Any]
    read: Path
    likelihood: Likelihood
    nothing: Likelihood
    shares: npt.NDArray[np.float64] | None = None
    steps: tuple[PathStep, ...] = ()
    parts: tuple[Part, ...] = ()

    def explained(self, ranker: str) -> Explanation:
        """Its explanation.

        Args:
            ranker: Is named where the parts do not add up to the score.

        Raises:
            InvalidInput: they do not.
        """
        item, likelihood = self.item, self.likelihood
        per = divisor(item.details) if "tokens" in item.details else max(len(likelihood.tokens), 1)
        log_prior = float(item.details.get("log_prior", 0.0)) - sum(step.log_prior for step in self.steps)
        parts = [*self.parts, Part(PRIOR, log_prior)]
        left = item.score * per - likelihood.total - sum(step.log_prior for step in self.steps)
        left -= sum(part.value for part in parts)
        if not likelihood.matched:
            parts.append(Part(UNMATCHED, left))
        elif abs(left) / per > _EXACT:
            raise InvalidInput(
                f"{name_of(self.read.passages[0])!r} scores {item.score:.6f}, but {item.score - left / per:.6f} by "
                f"{ranker}: give the ranker that made the ranking, and all candidates unless its model is fitted."
            )
        gains = (likelihood.log_probs - self.nothing.log_probs).tolist()
        shares = [()] * len(gains) if self.shares is None else [tuple(column) for column in self.shares.T.tolist()]
        return Explanation(
            item.rank,
            item.score,
            name_of(item.passage),
            tuple(map(name_of, self.read.passages)),
            tuple(
                TokenContribution(str(token), gain, base, share)
                for token, gain, base, share in zip(
                    likelihood.tokens, gains, self.nothing.log_probs.tolist(), shares, strict=True
                )
            ),
            tuple(part for part in parts if abs(part.value) > _ROUNDING),
            self.steps,
            per=per,
        )


def name_of(passage: Passage | Path) -> str:
    """What a reader knows a passage or a path by.

    >>> name_of(Passage("Some text.", title="Basel", id="1")), name_of(Passage("Some text.", id="1"))
    ('Basel', '1')
    >>> name_of(Passage("Some text."))
    'Some text.'
    """
    if isinstance(passage, Path):
        return " → ".join(map(name_of, passage.passages))
    nameless = not passage.title and Passage(passage.text).id == passage.id
    return passage.text[:_NAME] if nameless else passage.title or passage.id
