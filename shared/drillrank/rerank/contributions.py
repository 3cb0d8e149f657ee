"""What a score is added up from: each token of the question, the prior, links; or the answers of a model.

    score = (Σ_t log p(q_t | nothing) + Σ_t [log p(q_t | c) - log p(q_t | nothing)] + log prior + other terms) / per
    score = log-odds [+ log P(not relevant)]

Nothing is an empty passage: for a model that counts words the collection, for a neural one the prompt around it. In a
path c of documents d a word's gain comes from each with the share p(q_t | d) / Σ_d' p(q_t | d'), for models that know
documents one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput
from drillrank.explanation import Explanation, Term
from drillrank.explanation.terms import GAINS, NOTHING, ODDS
from drillrank.likelihood import LanguageModel, Likelihood
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.scale import divisor, log_sigmoid

PRIOR, UNMATCHED = "prior of the first stage", "no word of the question: as the least likely"
ROUNDING = "rounding of the model"
_ROUNDING = 1e-9
# Nats by which a token may differ where a model is asked again in other company; a neural one may count in 16 bits.
_AGAIN, _AGAIN_NEURAL = 1e-4, 0.1
_NAME = 60  # characters of a text that stand for a passage without title or id
_NO_TOKENS = "The model answers about the question as a whole: it tells no contribution of a token."


def likelihood_explained(
    item: Ranked[Any],
    likelihood: Likelihood,
    nothing: Likelihood,
    *,
    model: LanguageModel,
    shares: Sequence[tuple[str, npt.NDArray[np.float64]]] = (),
    path: Term | None = None,
    parts: Iterable[Term] = (),
) -> Explanation:
    """The explanation of an entry whose score was made of the likelihood of the question.

    Args:
        item: The entry.
        likelihood: Of the question after it.
        nothing: Of the question after an empty passage, by the same prompt.
        model: That was asked.
        shares: Documents by name, each with its share in every token; none of one alone, or where nobody can tell.
        path: How it was reached, with the log-prior of each step.
        parts: What else is added.

    Raises:
        InvalidInput: all this does not add up to the score.
    """
    gains = (likelihood.log_probs - nothing.log_probs).tolist()
    by_document = [
        tuple(Term(name, gain * float(share[at])) for name, share in shares) for at, gain in enumerate(gains)
    ]
    named = list(zip(map(str, likelihood.tokens), gains, nothing.log_probs.tolist(), by_document, strict=True))
    log_prior = float(item.details.get("log_prior", 0.0)) - (path.value if path else 0.0)
    terms = [
        *([path] if path else []),
        Term.sum(NOTHING, (Term(token, base) for token, _, base, _ in named)),
        Term.sum(GAINS, (Term(token, gain, inside) for token, gain, _, inside in named)),
        *(part for part in (*parts, Term(PRIOR, log_prior)) if abs(part.value) > _ROUNDING),
    ]
    per = divisor(item.details) if "tokens" in item.details else max(len(likelihood.tokens), 1)
    rest = item.score * per - math.fsum(term.value for term in terms)
    allowed = _AGAIN_NEURAL if model.reads_instructions else _AGAIN
    if likelihood.matched and abs(rest) > allowed * max(len(likelihood.tokens), 1):
        raise InvalidInput(
            f"{name_of(item.passage)!r:.200} scores {item.score:.6f}, but {item.score - rest / per:.6f} by this "
            "ranker: give the ranker that made the ranking, and all candidates unless its model is fitted."
        )
    if abs(rest) > _ROUNDING:
        terms.append(Term(ROUNDING if likelihood.matched else UNMATCHED, rest))
    return Explanation(item.rank, item.score, name_of(item.passage), tuple(terms), per)


class ScoresPaths(Protocol):
    """What scores paths under one or several prompts, such as `PromptRank`."""

    @property
    def language_model(self) -> LanguageModel: ...  # noqa: D102
    @property
    def ensemble(self) -> str: ...  # noqa: D102

    def likelihoods(self, query: str, paths: Sequence[Path]) -> list[list[Likelihood]]:
        """Of the question after each path, under each prompt."""
        ...


def paths_explained(
    ranker: ScoresPaths,
    query: str,
    paths: Sequence[Path],
    groups: Sequence[Sequence[Likelihood]],
    ranking: Sequence[Ranked[Any]],
    places: Sequence[int],
    taken: Sequence[Term | None] | None = None,
) -> list[Explanation]:
    """Explanations of a ranking of paths, or of passages by their best paths.

    Of several prompts the best counts, and what is likely after nothing is compared under the same one; or the mean of
    both.

    Args:
        ranker: Scored the paths.
        query: The question.
        paths: That were read.
        groups: Their likelihoods.
        ranking: Entries that some of these paths brought.
        places: Of the path of each entry.
        taken: How a reader takes the path of each entry.

    Raises:
        InvalidInput: an entry has another score by this ranker.
    """
    if not ranking:
        return []
    collection = paths if ranker.language_model.wants_fit else ()  # all of them are
    nothing = ranker.likelihoods(query, [*collection, Path((Passage(""),))])[-1]
    shares = _shares(ranker, query, paths)
    found = []
    for item, place, path in zip(ranking, places, taken or [None] * len(ranking), strict=True):
        group = groups[place]
        if ranker.ensemble == "mean":
            own, base = _mean(group), _mean(nothing)
        else:
            totals = [likelihood.total for likelihood in group]
            own, base = group[totals.index(max(totals))], nothing[totals.index(max(totals))]
        names = map(name_of, paths[place].passages)
        of_each = list(zip(names, shares[place], strict=True)) if shares and len(shares[place]) > 1 else []
        found.append(likelihood_explained(item, own, base, model=ranker.language_model, shares=of_each, path=path))
    return found


def _shares(ranker: ScoresPaths, query: str, paths: Sequence[Path]) -> list[npt.NDArray[np.float64]]:
    """Of each document of each path in each token, shape (documents, tokens); none for models that read whole paths."""
    if ranker.language_model.reads_instructions:
        return []
    alone = ranker.likelihoods(query, [Path((passage,)) for path in paths for passage in path.passages])
    probabilities = np.exp([group[0].log_probs for group in alone])
    ends = np.cumsum([len(path.passages) for path in paths])[:-1]
    return [own / own.sum(axis=0) for own in np.split(probabilities, ends)]


def _mean(group: Sequence[Likelihood]) -> Likelihood:
    """Under several prompts as one."""
    mean = np.mean([likelihood.log_probs for likelihood in group], axis=0)
    return replace(group[0], log_probs=mean, total=float(mean.sum()))


def answered(
    item: Ranked[Passage],
    answers: Sequence[tuple[str, float, bool]],
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    in_logs: bool,
) -> Explanation:
    """The explanation of an entry whose score was made of a model's yes and no.

    Args:
        item: The entry.
        answers: Text, log-probability, and whether a server told no more than that it is at most this, of the one that
            calls a passage relevant and of the other; or text and raw logit of the one that counts.
        scale: Factor of their difference, or of the logit.
        shift: Added behind that: the sum is the log-odds of relevance.
        in_logs: Whether the score is log P(relevant).
    """
    terms = []
    for (text, value, bound), sign in zip(answers, (scale, -scale), strict=False):
        told = f"P = {math.exp(value):.4g}" if len(answers) == 2 else f"logit {value:+.3f}"
        terms.append(Term(text, sign * value, text=f"at most {told}" if bound else told))
    if shift:
        terms.append(Term("shift", shift))
    margin = f"margin {answers[0][1] - answers[1][1]:+.3f} nats" if len(answers) == 2 else ""
    odds = Term.sum(ODDS, terms, margin)
    others = [Term("log P(not relevant)", log_sigmoid(-odds.value))] if in_logs else []
    return Explanation(item.rank, item.score, name_of(item.passage), (odds, *others), note=_NO_TOKENS)


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
