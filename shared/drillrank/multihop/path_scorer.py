"""Scores of paths, and the likelihood by which a path is extended.

    score of c = (log P(q | c) + log-prior of c) / number of tokens in q         (`PathScorer.rank_by_posterior`)
    L(c)       = Σ_t (1 - α) log mean_d p(q_t | d) + α log max_d p(q_t | d)      over the passages d of c

`PromptRank` scores each path jointly, which gives log P(q | c). `CandidatePath.log_prior` is the log-prior. L(c) needs
no further pass of the model once each passage has been read, so it chooses which longer paths are scored
(`TokenCoverage`). A word that the path explains already gains nothing from one more passage. Thus the words that it
does not explain, the residual question, decide how the path is extended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.likelihood import EmbeddingModel, UnigramModel
from drillrank.multihop.result import CandidatePath
from drillrank.passages import Passage, Path, Ranked, ranked
from drillrank.rerank.prior import divisor
from drillrank.rerank.promptrank import PromptRank
from drillrank.vectors import CollectionStatistics, Embed, Floats


@runtime_checkable
class DocumentModel(Protocol):
    """Language model that scores each token of a question after each document alone."""

    @property
    def reads_meaning(self) -> bool:
        """True if a document without a word of the question may be likelier than one with some."""
        ...

    def document_log_probs(self, target: str, texts: Sequence[str], /) -> Floats:
        """Return log p(q_t | d), shape [n_texts, n_tokens]."""
        ...


@dataclass
class TokenCoverage:
    """Log-probability of each token of the question after each passage. Each passage is read once.

    Attributes:
        model: Model fitted on the collection.
        question: The question.
        aligned: α, from 0 to 1. At 0, all passages of a path explain a word alike. At 1, the best one explains it.
    """

    model: DocumentModel
    question: str
    aligned: float = 0.0
    _row_by_id: dict[str, int] = field(default_factory=dict)
    _log_probs: Floats = field(default_factory=partial(np.empty, (0, 0)))  # [n_texts, n_tokens]

    def read(self, passages: Iterable[Passage]) -> None:
        """Score passages that have not been read, in one call of the model. Equal texts are scored once."""
        new = [passage for passage in passages if passage.id not in self._row_by_id]
        if texts := dict.fromkeys([passage.titled_text for passage in new]):
            first_row = len(self._log_probs)
            row_by_text = dict(zip(texts, range(first_row, first_row + len(texts)), strict=True))
            log_probs = self.model.document_log_probs(self.question, list(texts))
            self._log_probs = np.concatenate([self._log_probs, log_probs]) if first_row else log_probs
            self._row_by_id |= {passage.id: row_by_text[passage.titled_text] for passage in new}

    def score_extensions(self, path: Path, passages: Sequence[Passage]) -> tuple[Floats, Floats]:
        """Score a path extended by each of some passages. All of these and the path must have been read (`read`).

        Returns:
            L(c) of each longer path, and its alignment α Σ_t log (max_d p(q_t | d) / mean_d p(q_t | d)). Both have the
            shape [n_passages].
        """
        of_path = self._log_probs[[self._row_by_id[id_] for id_ in path.ids]]  # [n_path_passages, n_tokens]
        added = self._log_probs[[self._row_by_id[passage.id] for passage in passages]]  # [n_passages, n_tokens]
        means = np.logaddexp(np.logaddexp.reduce(of_path), added) - np.log(len(of_path) + 1)
        gains = np.maximum(of_path.max(axis=0), added) - means
        return (means + self.aligned * gains).sum(axis=1), self.aligned * gains.sum(axis=1)

    def order_by_gain(self, path: Path) -> list[Passage]:
        """Return the passages of a path in an order in which each explains most of what those before it do not."""
        remaining = list(path.passages)
        if len(remaining) == 1:
            return remaining
        ordered: list[Passage] = []
        explained: Floats = np.array(-np.inf)
        while remaining:
            log_probs = self._log_probs[[self._row_by_id[passage.id] for passage in remaining]]
            with_each = np.maximum(explained, log_probs)
            best_index = int(with_each.sum(axis=1).round(9).argmax())  # rounding must not choose between equal ones
            explained = with_each[best_index]
            ordered.append(remaining.pop(best_index))
        return ordered


class PathScorer:
    """Scorer of paths by their posterior.

    Args:
        prompt_rank: Ranker whose model gives the likelihood of the question after a path. If that main model is lexical
            and not fitted, a copy is fitted with the texts.
        texts: Texts of the collection, or their statistics.
        embedding_model: Document model for a main model that cannot score a question after each document alone. None
            for the embedded unigram model.

    Attributes:
        prompt_rank: The ranker with the fitted model.
        document_model: Model that scores the question after each passage alone, to choose extensions.
        reads_documents: True if the main model is the document model.
        language: Language of the main model.
    """

    def __init__(
        self,
        prompt_rank: PromptRank,
        texts: Sequence[str] | CollectionStatistics,
        embedding_model: EmbeddingModel | None = None,
    ) -> None:
        self.prompt_rank = prompt_rank.with_model(prompt_rank.language_model.fitted(texts)) if texts else prompt_rank
        model = self.prompt_rank.language_model
        self.language = model.language
        self.document_model: DocumentModel
        self.reads_documents = isinstance(model, DocumentModel) and bool(texts)
        if isinstance(model, DocumentModel) and texts:
            self.document_model = model
        elif embedding_model:
            self.document_model = embedding_model.fitted(texts)
        else:
            self.document_model = UnigramModel(language=model.language).fit(texts)

    def rank_by_posterior(self, query: str, candidates: Sequence[CandidatePath]) -> list[Ranked[Path]]:
        """Rank paths by the log-likelihood of the question plus their log-prior, best first.

        Both are divided by the number of tokens in the question, unless the formula of `PromptRank` adds up tokens.
        """
        paths = [candidate.path for candidate in candidates]
        likelihoods = self.prompt_rank.score_paths(query, paths)
        scores, all_details = [], []
        for candidate, (log_likelihood, details) in zip(candidates, likelihoods, strict=True):
            scores.append(log_likelihood + candidate.log_prior / divisor(details))
            all_details.append({**details, "log_prior": candidate.log_prior})
        return ranked(paths, scores, all_details)


def add_embedding_model(prompt_rank: PromptRank, embed: Embed | None) -> tuple[PromptRank, EmbeddingModel | None]:
    """Return the ranker with the embedding model added, and that model (None without `embed`).

    A unigram model is combined with the embedding model. A neural model scores paths alone, and the embedding model
    then only chooses how paths are extended.

    Raises:
        InvalidInput: The model embeds texts by itself, or `embed` is not a function.
    """
    if embed is None:
        return prompt_rank, None
    model = prompt_rank.language_model
    if isinstance(model, EmbeddingModel):
        raise InvalidInput(f"The model {model.spec!r:.200} embeds texts by itself: leave embed out.")
    if not isinstance(model, UnigramModel):
        return prompt_rank, EmbeddingModel(embed)
    combined = EmbeddingModel(embed, model)
    return prompt_rank.with_model(combined), combined
