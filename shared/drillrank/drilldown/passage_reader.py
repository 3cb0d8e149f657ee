"""A language model that reads the best paragraphs or passages, next to term statistics and embeddings.

    S(p) = lexical S(p) + weighted cosines + ρ Σ_r w_r log p_r(q | p)

The model is a sum such as `"unigram+hf:..."`. Its first expert, the unigram model, stands for the lexical scores of D3.
Each other expert r reads the best paragraphs under their headings. log p_r(q | p) is the sum over its tokens of the
question, and w_r is its weight in the sum, divided by the weight of the unigram model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from drillrank.explanation import Term
from drillrank.likelihood import LanguageModel, Likelihood, SumOfExperts
from drillrank.likelihood.unigram import UnigramModel
from drillrank.passages import Passage
from drillrank.rerank.explaining import ROUNDING, SMALLEST_TERM, baseline_and_gains
from drillrank.rerank.upr import UPR

# Chosen on the tuning folder of `benchmarks.folder_readers`, with SmolLM2. Weights from .5 to 2 change other sets in
# English by at most .022. In a language that the reader does not know, larger weights do more harm.
READER_WEIGHT = 0.5  # ρ


class PassageReader:
    """Reader of passages for one question after the other.

    Args:
        experts: Language models that read.
        weights: Weight of each expert next to the lexical scores.
    """

    def __init__(self, experts: Sequence[LanguageModel], weights: Sequence[float]) -> None:
        self._ranker = UPR(SumOfExperts(experts, weights), prior=None)
        self._names = [expert.spec for expert in experts]
        self._weights = tuple(weights)

    @classmethod
    def from_model(cls, model: LanguageModel) -> PassageReader | None:
        """Return the reader that a sum contains. None if the sum is not of a unigram model and neural models."""
        if not isinstance(model, SumOfExperts) or type(model.experts[0]) is not UnigramModel:
            return None
        readers = model.experts[1:]
        # The log-probability of relevance is on another scale than the log-likelihood of a question.
        if not readers or any(expert.scores_relevance or not expert.is_neural for expert in readers):
            return None
        return cls(readers, [weight / model.weights[0] for weight in model.weights[1:]])

    def read(self, question: str, passages: Sequence[Passage]) -> list[tuple[float, dict[str, Any]]]:
        """Return what the likelihood of the question adds to S of each passage, with the details of the passage.

        Keys of the details: `log_likelihood`, the weighted sum over the experts; `cut_tokens` of the passage; `read`.
        """
        results = []
        for likelihood in self._ranker.likelihoods(question, passages):
            parts = zip(self._weights, likelihood.parts, strict=True)
            total = math.fsum(weight * part.total for weight, part in parts)
            details = {"log_likelihood": total, "cut_tokens": likelihood.cut_tokens, "read": True}
            results.append((READER_WEIGHT * total, details))
        return results

    def explain(self, question: str, passages: Sequence[Passage], log_likelihoods: Sequence[float]) -> list[list[Term]]:
        """Split what the reader added to S of each passage into a term for each expert.

        Args:
            question: The question.
            passages: The passages, as they were read.
            log_likelihoods: Detail `log_likelihood` of each passage.
        """
        if not passages:
            return []
        *likelihoods, nothing = self._ranker.likelihoods(question, [*passages, Passage("")])
        return [
            self._explain_one(likelihood, nothing, log_likelihood)
            for likelihood, log_likelihood in zip(likelihoods, log_likelihoods, strict=True)
        ]

    def _explain_one(self, likelihood: Likelihood, nothing: Likelihood, log_likelihood: float) -> list[Term]:
        terms = []
        for name, weight, part, baseline in zip(
            self._names, self._weights, likelihood.parts, nothing.parts, strict=True
        ):
            factor = READER_WEIGHT * weight
            scaled, scaled_baseline = (replace(one, log_probs=factor * one.log_probs) for one in (part, baseline))
            terms.append(Term.sum(name, baseline_and_gains(scaled, scaled_baseline), text=f"weight {factor:g}"))
        rest = READER_WEIGHT * log_likelihood - math.fsum(term.value for term in terms)
        return [*terms, Term(ROUNDING, rest)] if abs(rest) > SMALLEST_TERM else terms
