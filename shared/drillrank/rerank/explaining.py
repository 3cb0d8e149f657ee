"""Explanations of likelihood scores.

    score = (Σ_t log p(q_t | nothing) + Σ_t [log p(q_t | c) - log p(q_t | nothing)] + log prior + other terms) / per

"Nothing" is an empty passage. With a model that counts words it is the collection, with a neural one the prompt alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.explanation import Explanation, Term
from drillrank.explanation.terms import GAINS, NOTHING
from drillrank.likelihood import LanguageModel, Likelihood, SumOfExperts
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.prior import divisor
from drillrank.vectors import Floats

Shares = Sequence[tuple[str, Floats]]
"""Names of a path's documents, each with the document's share in every token, shape (tokens,)."""

PRIOR, UNMATCHED = "prior of the first stage", "no word of the question: as the least likely"
ROUNDING, UNREAD = "rounding of the model", "not read: below the last that was"
SMALLEST_TERM = 1e-9  # smaller terms are left out
# Nats by which a token may differ if a model scores it again next to other texts. A neural model may use 16 bits.
_TOLERANCE, _NEURAL_TOLERANCE = 1e-4, 0.1
_MAX_NAME = 60  # characters of a text that name a passage without title or id


def explain_likelihood(
    item: Ranked[Any],
    likelihood: Likelihood,
    baseline: Likelihood,
    *,
    model: LanguageModel,
    shares: Shares = (),
    path: Term | None = None,
    parts: Iterable[Term] = (),
) -> Explanation:
    """Explain an entry whose score was computed from the likelihood of the question.

    Args:
        item: The entry.
        likelihood: Likelihood of the question given the entry.
        baseline: Likelihood of the question given an empty passage, with the same prompt.
        model: Language model that computed both.
        shares: Shares of a path's documents in every token; empty for one document or if they are unknown.
        path: Term with the log-prior of each step of the path.
        parts: Further terms of the score.

    Raises:
        InvalidInput: The terms do not add up to the score.
    """
    (first, *others), (first_baseline, *other_baselines) = likelihood.summands, baseline.summands
    names = model.names[1:] if isinstance(model, SumOfExperts) else ()
    experts = [
        Term.sum(name, baseline_and_gains(expert, expert_baseline))
        for name, expert, expert_baseline in zip(names, others, other_baselines, strict=True)
    ]
    log_prior = float(item.details.get("log_prior", 0.0)) - (path.value if path else 0.0)
    terms = [
        *([path] if path else []),
        *baseline_and_gains(first, first_baseline, shares),
        *experts,
        *(part for part in (*parts, Term(PRIOR, log_prior)) if abs(part.value) > SMALLEST_TERM),
    ]
    per = divisor(item.details)
    rest = item.score * per - math.fsum(term.value for term in terms)
    tolerance = _NEURAL_TOLERANCE if model.is_neural else _TOLERANCE
    if likelihood.matched and abs(rest) > tolerance * max(len(likelihood.tokens), 1):
        raise InvalidInput(
            f"{name_of(item.passage)!r:.200} has the score {item.score:.6f}, but this ranker computes "
            f"{item.score - rest / per:.6f}. Pass the ranker that made the ranking, and all candidates unless its "
            "model is fitted."
        )
    if abs(rest) > SMALLEST_TERM:
        terms.append(Term(ROUNDING if likelihood.matched else UNMATCHED, rest))
    return Explanation(item.rank, item.score, name_of(item.passage), tuple(terms), per)


def baseline_and_gains(likelihood: Likelihood, baseline: Likelihood, shares: Shares = ()) -> tuple[Term, Term]:
    """Return the terms of the tokens after nothing, and of their gains from the passage, split by document if known."""
    gains = (likelihood.log_probs - baseline.log_probs).tolist()
    tokens = list(map(str, likelihood.tokens))
    by_document = [
        tuple(Term(name, gain * float(share[token_index])) for name, share in shares)
        for token_index, gain in enumerate(gains)
    ]
    of_nothing = Term.sum(NOTHING, map(Term, tokens, baseline.log_probs.tolist()))
    return of_nothing, Term.sum(GAINS, map(Term, tokens, gains, by_document))


def mean_likelihood(likelihoods: Sequence[Likelihood]) -> Likelihood:
    """Return the mean of likelihoods under several prompts."""
    log_probs = np.mean([likelihood.log_probs for likelihood in likelihoods], axis=0)  # [n_tokens]
    total = float(np.mean([likelihood.total for likelihood in likelihoods]))
    parts = tuple(map(mean_likelihood, zip(*(likelihood.parts for likelihood in likelihoods), strict=True)))
    return replace(likelihoods[0], log_probs=log_probs, total=total, parts=parts)


def name_of(passage: Passage | Path) -> str:
    """Return the title of a passage, or else its id or the beginning of its text; for a path, those of its passages.

    >>> name_of(Passage("Some text.", title="Basel", id="1")), name_of(Passage("Some text.", id="1"))
    ('Basel', '1')
    >>> name_of(Passage("Some text."))
    'Some text.'
    """
    if isinstance(passage, Path):
        return " → ".join(map(name_of, passage.passages))
    is_nameless = not passage.title and Passage(passage.text).id == passage.id
    return passage.text[:_MAX_NAME] if is_nameless else passage.title or passage.id
