"""Scores of reasoning paths: likelihood of the question and prior of the path, a pruning model before the main one.

Score(c) = (log P(q | c) + log P(c | q)) / |q|      the mean log-likelihood of PromptRank, and the prior spread over
                                                    the same |q| tokens; |q| is 1 where a formula adds up
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from drillrank.errors import InvalidInput
from drillrank.likelihood import EmbeddingModel, UnigramModel
from drillrank.multihop.residual import DocumentModel, Residual
from drillrank.passages import Path, Ranked, ranked
from drillrank.rerank.base import divisor
from drillrank.rerank.promptrank import PromptRank
from drillrank.vectors import CollectionStatistics, Embed


class PathWithPrior(NamedTuple):
    """A path that waits for its score, with the logarithm of its prior."""

    path: Path
    log_prior: float


def with_meaning(prompt_rank: PromptRank, embed: Embed | None) -> tuple[PromptRank, EmbeddingModel | None]:
    """The ranker, and what reads meaning; a unigram model is part of that, and reads it, too.

    Raises:
        InvalidInput: the model embeds texts by itself, or `embed` is no function.
    """
    if embed is None:
        return prompt_rank, None
    own = prompt_rank.language_model
    if isinstance(own, EmbeddingModel):
        raise InvalidInput(f"The model {own.spec!r} embeds texts by itself: leave embed out.")
    if not isinstance(own, UnigramModel):
        return prompt_rank, EmbeddingModel(embed)
    meaning = EmbeddingModel(embed, own)
    return prompt_rank.with_model(meaning), meaning


class PathScorer:
    """Scores paths by their posterior.

    Args:
        prompt_rank: The likelihood of the question after a path.
        texts: The collection, on which a copy of a lexical model is fitted that has not been fitted; or its statistics.
        cascade: How many paths of each call are scored by the main model, that of `prompt_rank`; a pruning model, the
            embedded unigram model, chooses them. None for all. The others follow in the order of the pruning model:
            after the worst of the chosen ones, with the pruning model's distances, and counted in the tokens of the
            main model.
        meaning: Says what each passage explains where the main model is no document model; None lets the embedded
            unigram model say it.
    """

    def __init__(
        self,
        prompt_rank: PromptRank,
        texts: Sequence[str] | CollectionStatistics,
        cascade: int | None = None,
        meaning: EmbeddingModel | None = None,
    ) -> None:
        self.prompt_rank = prompt_rank.with_model(prompt_rank.language_model.fitted(texts)) if texts else prompt_rank
        own = self.prompt_rank.language_model
        self.language = own.language
        self.document_model: DocumentModel
        if isinstance(own, DocumentModel) and texts:
            self.document_model = own
        else:
            self.document_model = meaning.fitted(texts) if meaning else UnigramModel(language=own.language).fit(texts)
        self._cascade = (
            None if cascade is None else (PromptRank(UnigramModel(language=own.language).fit(texts)), cascade)
        )

    def residual(self, query: str) -> Residual:
        """What paths explain of a question, by the main model or, if it is no document model, the unigram one."""
        return Residual(self.document_model, query)

    def ranked(self, query: str, paths: Sequence[PathWithPrior]) -> list[Ranked[Path]]:
        """The paths, best first; ties keep the input order."""
        pruning, most = self._cascade or (self.prompt_rank, len(paths))
        if len(paths) <= most:
            return _posteriors(self.prompt_rank, query, paths)
        by_pruning = _posteriors(pruning, query, paths)
        chosen, pruned = by_pruning[:most], by_pruning[most:]
        first = sorted(item.details["position"] for item in chosen)
        kept = _posteriors(self.prompt_rank, query, [paths[position] for position in first])
        fall = kept[-1].score - chosen[-1].score
        for item in pruned:
            item.score = min(item.score + fall, kept[-1].score)  # rounding must not lift it
            item.details |= {
                "model": "unigram",
                **{name: kept[-1].details[name] for name in ("tokens", "reduce", "nothing_matched")},
            }
        return kept + pruned


def _posteriors(prompt_rank: PromptRank, query: str, paths: Sequence[PathWithPrior]) -> list[Ranked[Path]]:
    scored = prompt_rank.score_paths(query, [path for path, _ in paths])
    scores, details = [], []
    for (path, log_prior), (score, detail) in zip(paths, scored, strict=True):
        scores.append(score + log_prior / divisor(detail))
        details.append({**detail, "path": path.ids, "log_prior": log_prior})
    return ranked([path for path, _ in paths], scores, details)
