"""Where a path goes on: to the passages that explain most of what it has left unexplained of the question.

    log P(q | c, d) = Σ_t log mean over the documents of c and d of p(q_t | d)

A word that the path explains already gains nothing from one more passage, so that the words it has not explained, the
residual question, decide. Each passage is read once a question, however many paths it might lengthen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from drillrank.passages import Passage, Path

Floats = npt.NDArray[np.float64]


@runtime_checkable
class DocumentModel(Protocol):
    """A language model that tells what each document alone says about each token of a question."""

    @property
    def reads_meaning(self) -> bool:
        """Whether a document without a word of the question may be likelier than one with some."""
        ...

    def document_log_probs(self, target: str, texts: Sequence[str], /) -> Floats:
        """Log p(q_t | d), shape (texts, tokens of the target)."""
        ...


class Residual:
    """What the paths of one question explain of it, and would with one passage more.

    Args:
        model: A fitted model.
        query: The question.
    """

    def __init__(self, model: DocumentModel, query: str) -> None:
        self._model, self._query = model, query
        self._read: dict[str, Floats] = {}

    def read(self, passages: Iterable[Passage]) -> None:
        """Score what has not been read, all of it together."""
        new = [text for text in dict.fromkeys(passage.titled_text for passage in passages) if text not in self._read]
        if new:
            self._read |= zip(new, self._model.document_log_probs(self._query, new), strict=True)

    def log_likelihoods(self, path: Path, passages: Sequence[Passage]) -> Floats:
        """Of the question after the path with each of the passages, shape (passages,); all have been read."""
        explained = np.logaddexp.reduce([self._read[passage.titled_text] for passage in path.passages], axis=0)
        added = np.stack([self._read[passage.titled_text] for passage in passages])
        tokens: Floats = np.logaddexp(explained, added) - np.log(len(path.passages) + 1)
        total: Floats = tokens.sum(axis=1)
        return total
