"""Models that score the relevance of a document to a query: cross-encoders and rerank servers.

Their scale is the log-odds of relevance. As a language model, such a model has one token:

    log p("<relevant>" | q, c) = log σ(log-odds / T)

so that it can be an expert of a sum with likelihoods, such as `"unigram+ce:<model>"`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from drillrank.errors import InvalidInput, LacksCapability
from drillrank.likelihood.base import LanguageModel, Likelihood, RelevanceRequest, RelevanceScore, Request
from drillrank.prompts import TruncatableText

RELEVANT = "<relevant>"
"""Name of the token that stands for the relevance of a document in explanations."""


def log_sigmoid(odds: float) -> float:
    """Return the logarithm of the probability with the given log-odds, exact if the probability rounds to 0 or 1.

    >>> log_sigmoid(-1000.0)
    -1000.0
    """
    return min(odds, 0.0) - math.log1p(math.exp(-abs(odds)))


class RelevanceModel(LanguageModel):
    """Base class of models that score the relevance of a document to a query. A subclass implements `relevance_batch`.

    `log_likelihood` reads a request's target as the query and the documents of its prompt, joined by line breaks, as
    the document. The fixed text of a prompt has no effect. A temperature divides the log-odds.
    """

    reads_instructions = False
    reads_meaning = True
    scores_relevance = True

    @abstractmethod
    def relevance_batch(self, requests: Sequence[RelevanceRequest]) -> list[RelevanceScore]:
        """Compute the relevance of documents, in order.

        Args:
            requests: At least one request.
        """

    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        """Compute log P(relevant) of each request's documents for its target."""
        if include_eos:
            raise InvalidInput(
                f"{self.spec!r:.200} has no end-of-sequence token, got include_eos=True. Remove include_eos."
            )
        scores = self.relevance_batch([_as_relevance_request(request) for request in requests])
        results = []
        for score in scores:
            log_probability = log_sigmoid(score.log_odds / temperature)
            results.append(Likelihood([RELEVANT], np.array([log_probability]), log_probability, score.cut_tokens))
        return results


def _as_relevance_request(request: Request) -> RelevanceRequest:
    documents = [part for part in request.prompt if isinstance(part, TruncatableText)]
    limits = [part.max_tokens for part in documents]
    if any(limit is not None for limit in limits) and len(documents) > 1:
        limits = [None]  # a model counts tokens of a whole document only
    text = "\n".join(part.text for part in documents)
    return RelevanceRequest(request.target, TruncatableText(text, limits[0] if limits else None))


def check_likelihood_of_texts(model: LanguageModel, purpose: str, advice: str) -> None:
    """Refuse a model that scores the relevance of documents only, if the likelihood of a text is needed.

    Args:
        model: The model, or a sum with it.
        purpose: Subject of the message.
        advice: Last sentence of the message.

    Raises:
        LacksCapability: The model is such a model.
    """
    experts = getattr(model, "experts", [model])
    for expert in experts:
        if expert.scores_relevance:
            raise LacksCapability(
                f"{purpose} needs the likelihood of a text, which {expert.spec!r:.200} does not compute. {advice}"
            )
