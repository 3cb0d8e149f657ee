"""A language model that reads the best paragraphs or passages, next to term statistics and embeddings.

    S(p) = lexical S(p) + weighted cosines + ρ Σ_r w_r log p_r(q | p)      PassageReader
    S(p) = lexical S(p) + weighted cosines + ω log P(yes | q, p) / P(no | q, p)      PassageJudge

The model is a sum such as `"unigram+hf:..."`. Its first expert, the unigram model, stands for the lexical scores of D3.
Each other expert r reads the best paragraphs under their headings. log p_r(q | p) is the sum over its tokens of the
question, and w_r is its weight in the sum, divided by the weight of the unigram model. A judge is asked instead whether
a paragraph contains relevant information. Its answer is not a decision but one more term of the score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from drillrank.explanation import Term
from drillrank.likelihood import LanguageModel, Likelihood, SumOfExperts
from drillrank.likelihood.unigram import UnigramModel
from drillrank.passages import Passage
from drillrank.rerank.explaining import ROUNDING, SMALLEST_TERM, baseline_and_gains
from drillrank.rerank.relevance import MonoT5, Relevance
from drillrank.rerank.upr import UPR

# Chosen on the tuning folder of `benchmarks.folder_readers`, with SmolLM2. Weights from .5 to 2 change the other
# English sets by at most .022. On a German folder, larger weights did more harm.
READER_WEIGHT = 0.5  # ρ
# Chosen on the tuning half of QASPER, with Qwen2.5-Coder-1.5B-Instruct (`benchmarks.llm_evidence`).
JUDGE_WEIGHT = 2.0  # ω

Gain = tuple[float, dict[str, Any]]
"""What a model adds to S of a passage, and the details of the passage."""


class ReadsPassages(Protocol):
    """Model whose reading of a passage adds to S."""

    def read(self, question: str, passages: Sequence[Passage]) -> list[Gain]:
        """Read passages."""

    def explain(
        self, question: str, passages: Sequence[Passage], details: Sequence[Mapping[str, Any]]
    ) -> list[list[Term]]:
        """Split what was added to S of each passage into terms."""


class PassageJudge:
    """Model that answers for each passage whether it contains relevant information.

    Args:
        ranker: Ranker by relevance, which is asked for its log-odds.
    """

    def __init__(self, ranker: MonoT5 | Relevance) -> None:
        self._ranker = ranker

    def read(self, question: str, passages: Sequence[Passage]) -> list[Gain]:
        """Return the weighted log-odds of each passage, and its details `log_odds`, `cut_tokens` and `read`."""
        gains: list[Gain] = [(0.0, {})] * len(passages)
        for item in self._ranker.rank(question, passages):
            details = item.details
            log_odds = float(details["log_odds"] if "log_odds" in details else details["logit"])
            new_details = {"log_odds": log_odds, "cut_tokens": details.get("cut_tokens", 0), "read": True}
            gains[details["position"]] = JUDGE_WEIGHT * log_odds, new_details
        return gains

    def explain(
        self,
        question: str,  # noqa: ARG002
        passages: Sequence[Passage],  # noqa: ARG002
        details: Sequence[Mapping[str, Any]],
    ) -> list[list[Term]]:
        """Return one term for each passage."""
        name, text = self._ranker.language_model.spec, f"log-odds of relevance, weight {JUDGE_WEIGHT:g}"
        return [[Term(name, JUDGE_WEIGHT * one["log_odds"], text=text)] for one in details]


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

    def read(self, question: str, passages: Sequence[Passage]) -> list[Gain]:
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

    def explain(
        self, question: str, passages: Sequence[Passage], details: Sequence[Mapping[str, Any]]
    ) -> list[list[Term]]:
        """Split what the reader added to S of each passage into a term for each expert.

        Args:
            question: The question.
            passages: The passages, as they were read.
            details: Details of each passage.
        """
        if not passages:
            return []
        *likelihoods, nothing = self._ranker.likelihoods(question, [*passages, Passage("")])
        return [
            self._explain_one(likelihood, nothing, one["log_likelihood"])
            for likelihood, one in zip(likelihoods, details, strict=True)
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
