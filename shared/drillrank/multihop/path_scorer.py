"""Scores of paths, and how much of the question each passage explains.

    log P(q | c) = Σ_t (1 - α) log mean_d p(q_t | d) + α log max_d p(q_t | d)     over the passages d of c

A word that the path explains already gains nothing from one more passage. The words that it does not explain, the
residual question, decide where the path goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.likelihood import EmbeddingModel, UnigramModel
from drillrank.multihop.result import CandidatePath
from drillrank.passages import Passage, Path, Ranked, ranked
from drillrank.rerank.base import divisor
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


class TokenCoverage:
    """Log-probability of each token of a question after each passage. Each passage is read once.

    Args:
        model: Fitted model.
        query: The question.
        aligned: α.
    """

    def __init__(self, model: DocumentModel, query: str, aligned: float = 0.0) -> None:
        self._model, self._query, self._aligned = model, query, aligned
        self._row_by_id: dict[str, int] = {}
        self._log_probs: Floats = np.empty((0, 0))  # [n_texts, n_tokens]

    def read(self, passages: Iterable[Passage]) -> None:
        """Score passages that have not been read, in one call of the model. Equal texts are scored once."""
        new = [passage for passage in passages if passage.id not in self._row_by_id]
        if texts := dict.fromkeys([passage.titled_text for passage in new]):
            first_row = len(self._log_probs)
            row_by_text = dict(zip(texts, range(first_row, first_row + len(texts)), strict=True))
            log_probs = self._model.document_log_probs(self._query, list(texts))
            self._log_probs = np.concatenate([self._log_probs, log_probs]) if first_row else log_probs
            self._row_by_id |= {passage.id: row_by_text[passage.titled_text] for passage in new}

    def score_extensions(self, path: Path, passages: Sequence[Passage]) -> tuple[Floats, Floats]:
        """Score a path with each of some passages at its end. All passages have been read.

        Returns:
            Log-likelihood of the question after each longer path, shape [n_passages], and the alignment of each,
            α Σ_t log (max_d p(q_t | d) / mean_d p(q_t | d)), shape [n_passages].
        """
        of_path = self._log_probs[[self._row_by_id[id_] for id_ in path.ids]]  # [n_path_passages, n_tokens]
        added = self._log_probs[[self._row_by_id[passage.id] for passage in passages]]  # [n_passages, n_tokens]
        means = np.logaddexp(np.logaddexp.reduce(of_path), added) - np.log(len(of_path) + 1)
        gains = np.maximum(of_path.max(axis=0), added) - means
        return (means + self._aligned * gains).sum(axis=1), self._aligned * gains.sum(axis=1)

    def order_by_gain(self, path: Path) -> list[Passage]:
        """Return the passages of a path: first the one that explains most, then the one that adds most, and so on."""
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
        prompt_rank: Likelihood of the question after a path. If its model is lexical and not fitted, a fitted copy is
            used.
        texts: Texts of the collection, or their statistics.
        meaning: Scores what each passage explains if the main model does not score documents alone. None for the
            embedded unigram model.

    Attributes:
        prompt_rank: The ranker with the fitted model.
        document_model: Model that scores what each passage explains.
        reads_documents: True if the main model itself does that.
        language: Language of the main model.
    """

    def __init__(
        self,
        prompt_rank: PromptRank,
        texts: Sequence[str] | CollectionStatistics,
        meaning: EmbeddingModel | None = None,
    ) -> None:
        self.prompt_rank = prompt_rank.with_model(prompt_rank.language_model.fitted(texts)) if texts else prompt_rank
        model = self.prompt_rank.language_model
        self.language = model.language
        self.document_model: DocumentModel
        self.reads_documents = isinstance(model, DocumentModel) and bool(texts)
        if isinstance(model, DocumentModel) and texts:
            self.document_model = model
        elif meaning:
            self.document_model = meaning.fitted(texts)
        else:
            self.document_model = UnigramModel(language=model.language).fit(texts)

    def rank(self, query: str, candidates: Sequence[CandidatePath]) -> list[Ranked[Path]]:
        """Score paths by the mean log-likelihood of the question plus their log-prior per token, best first."""
        paths = [candidate.path for candidate in candidates]
        scores, details = [], []
        for candidate, (score, detail) in zip(candidates, self.prompt_rank.score_paths(query, paths), strict=True):
            scores.append(score + candidate.log_prior / divisor(detail))
            details.append({**detail, "log_prior": candidate.log_prior})
        return ranked(paths, scores, details)


def add_embedding_model(prompt_rank: PromptRank, embed: Embed | None) -> tuple[PromptRank, EmbeddingModel | None]:
    """Return the ranker with the embedding model added, and that model (None without `embed`).

    A unigram model is combined with it. A neural model scores alone, and the embedding model chooses links.

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
    meaning = EmbeddingModel(embed, model)
    return prompt_rank.with_model(meaning), meaning
