"""Why a passage stands where it stands: what each token of the question adds to its score.

    score = (Σ_t log p(q_t | nothing) + Σ_t [log p(q_t | c) - log p(q_t | nothing)] + log prior) / |q|

Nothing is an empty passage: for a model that counts words, the collection. In a path c of documents d a word's
contribution comes from each with the share p(q_t | d) / Σ_d' p(q_t | d'), for models that know documents one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.likelihood import Likelihood
from drillrank.likelihood.collection import Floats
from drillrank.multihop.residual import DocumentModel
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.scale import divisor
from drillrank.rerank.upr import UPR

_EXACT = 1e-6


@dataclass(frozen=True)
class TokenContribution:
    """What one token of the question says.

    Attributes:
        token: As the model sees it.
        gain: log p(token | passage) - log p(token | nothing), in nats.
        nothing: log p(token | nothing).
        shares: Of each document of the path; empty where the model does not tell.
    """

    token: str
    gain: float
    nothing: float
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """One entry of a ranking, explained.

    Attributes:
        rank: 1 for the best.
        score: As it was ranked by.
        documents: Names of what was read: one passage, or a path's, in order.
        tokens: Of the question, in order.
        log_prior: Of the passage or path; 0 where there is none.
        levelled: What the score was lowered by, in nats, because no word of the question is in the passage.
        per: What the sum is divided by: the number of tokens, or 1 where a formula adds up.
    """

    rank: int
    score: float
    documents: tuple[str, ...]
    tokens: tuple[TokenContribution, ...]
    log_prior: float
    levelled: float
    per: int

    @property
    def total(self) -> float:
        """The score again, from its parts; equal to it within 1e-6."""
        parts = sum(token.gain + token.nothing for token in self.tokens)
        return (parts + self.log_prior + self.levelled) / self.per

    def __str__(self) -> str:
        lines = [f"{self.rank}. {' → '.join(self.documents)}: {self.score:.3f}"]
        for token in sorted(self.tokens, key=lambda token: -abs(token.gain)):
            shares = token.shares if len(token.shares) > 1 else ()
            where = ", ".join(f"{share:.0%} {name}" for share, name in zip(shares, self.documents, strict=False))
            lines.append(f"   {token.gain:+7.3f}  {token.token}{f'  ({where})' if where and token.gain > 0 else ''}")
        if self.log_prior:
            lines.append(f"   {self.log_prior:+7.3f}  prior")
        if self.levelled:
            lines.append(f"   {self.levelled:+7.3f}  no word of the question: as the least likely passage")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks: the question's tokens, coloured by what each brings; the numbers stand under them."""
        cells = []
        for token in self.tokens:
            strength = min(abs(token.gain) / 6, 1)
            color = f"rgba({'46,125,50' if token.gain >= 0 else '198,40,40'},{0.45 * strength:.2f})"
            cells.append(
                f'<td style="background:{color};text-align:center;padding:2px 6px">{escape(token.token)}'
                f"<br><small>{token.gain:+.2f}</small></td>"
            )
        named = escape(" → ".join(self.documents))
        rest = "".join(
            f" · {name} {value:+.2f}"
            for name, value in (("prior", self.log_prior), ("no match", self.levelled))
            if value
        )
        return (
            f"<div><b>{self.rank}.</b> {named} <small>{self.score:.3f}{rest}</small>"
            f"<table><tr>{''.join(cells)}</tr></table></div>"
        )


class Explanations(list[Explanation]):
    """Of a whole ranking, best first; prints itself in terminals and notebooks."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return "".join(item._repr_html_() for item in self)


def explain(
    query: str, ranking: Sequence[Ranked[Any]], ranker: UPR | PromptRank | PathSearch | None = None
) -> Explanations:
    """What each token of the question adds to the scores of a ranking.

    Args:
        query: The question that was asked.
        ranking: What `rank`, `search_paths` or `search` returned. For a model without a collection of its own
            (`"unigram"`, not fitted) all candidates are needed: its statistics are theirs.
        ranker: What made it: `UPR`, `PromptRank` or `PathSearch`; None is `UPR()`, or `PromptRank()` for paths.

    Returns:
        One explanation for each entry, in order; `total` equals the score within 1e-6.

    Raises:
        InvalidInput: the scores are not those of this ranker, for one of the reasons above.

    >>> ranking = UPR().rank("Who wrote Emma?", ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."])
    >>> best = explain("Who wrote Emma?", ranking)[0]
    >>> max(best.tokens, key=lambda token: token.gain).token
    'emma'
    >>> abs(best.total - best.score) < 1e-6
    True
    """
    if not ranking:
        return Explanations()
    if ranker is None:
        ranker = PromptRank() if any(isinstance(item.passage, Path) for item in ranking) else UPR()
    paths = [_path(item, ranker) for item in ranking]
    if isinstance(ranker, PathSearch):
        ranker = ranker.path_ranker
    *likelihoods, nothing = _asked(query, [*paths, Path((Passage(""),))], ranker)
    every_share = _shares(query, paths, ranker)
    found = Explanations()
    rest = []
    for place, item in enumerate(ranking):
        likelihood = likelihoods[place]
        prior = float(item.details.get("log_prior", 0.0))
        per = divisor(item.details) if "tokens" in item.details else max(len(likelihood.tokens), 1)
        gains = likelihood.log_probs - nothing.log_probs
        columns = every_share[place].T.tolist() if every_share else []
        shares = [tuple(column) for column in columns] if len(columns) == len(gains) else [()] * len(gains)
        parts = zip(likelihood.tokens, gains.tolist(), nothing.log_probs.tolist(), shares, strict=True)
        tokens = tuple(TokenContribution(str(token), gain, base, share) for token, gain, base, share in parts)
        left = item.score * per - likelihood.total - prior
        rest.append((place, left, likelihood.matched))
        levelled = left if abs(left) > _EXACT and not likelihood.matched else 0.0
        names = tuple(passage.title or passage.id for passage in paths[place].passages)
        found.append(Explanation(item.rank, item.score, names, tokens, prior, levelled, per))
    for place, left, matched in rest:
        if matched and abs(left) / found[place].per > _EXACT:
            raise InvalidInput(
                f"Entry {place} scores {ranking[place].score:.6f}, but {found[place].total:.6f} by "
                f"{type(ranker).__name__}: give the ranker that made the ranking, and all candidates unless its model "
                "is fitted."
            )
    return found


def _path(item: Ranked[Any], ranker: UPR | PromptRank | PathSearch) -> Path:
    """What was read for an entry: its passage, or the path that brought it."""
    if isinstance(item.passage, Path):
        return item.passage
    if isinstance(ranker, PathSearch):
        return Path(tuple(ranker.passage(id_) for id_ in item.details["path"]))
    return Path((item.passage,))


def _asked(query: str, paths: Sequence[Path], ranker: UPR | PromptRank) -> list[Likelihood]:
    """Of each path; of several prompts that which counts, or their mean."""
    if isinstance(ranker, UPR):
        return ranker.likelihoods(query, [path.passages[0] for path in paths])
    found = []
    for group in ranker.likelihoods(query, paths):
        best = max(group, key=lambda likelihood: likelihood.total)
        if ranker.ensemble == "mean":
            mean = np.mean([likelihood.log_probs for likelihood in group], axis=0)
            best = Likelihood(best.tokens, mean, float(mean.sum()), best.cut_tokens, best.matched)
        found.append(best)
    return found


def _shares(query: str, paths: Sequence[Path], ranker: UPR | PromptRank) -> list[Floats]:
    """For each path the share of each document in each token, shape (documents, tokens); none where nobody can tell."""
    model = ranker.language_model
    if isinstance(ranker, UPR) or not isinstance(model, DocumentModel):
        return []
    texts = [passage.titled_text for path in paths for passage in path.passages]
    probabilities = np.exp(model.document_log_probs(query, texts))
    ends = np.cumsum([len(path.passages) for path in paths])[:-1]
    return [own / own.sum(axis=0) for own in np.split(probabilities, ends)]
