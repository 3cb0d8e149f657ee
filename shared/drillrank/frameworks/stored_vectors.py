"""Embedding function that takes the vectors of records from their store, so that only the question is embedded."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from drillrank.frameworks.models import FrameworkEmbedding
from drillrank.passages import Passage

_MAX_VECTORS = 20_000  # the latest ones; 30 MB at 384 dimensions and 4 bytes


class StoredVectors:
    """Embedding function with the vectors of a store. Texts without one are embedded by the store's model.

    Args:
        embedding: The store's embedding model.

    >>> embedding = FrameworkEmbedding("toy", lambda texts: [[0.0, 1.0] for _ in texts], lambda question: [1.0, 0.0])
    >>> vectors = StoredVectors(embedding)
    >>> vectors.add([Passage("A fox.", id="1")], [[1.0, 0.0]])
    >>> vectors(["A fox.", "A hen."]), vectors.questions(["Who?"])
    ([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0]])
    """

    def __init__(self, embedding: FrameworkEmbedding) -> None:
        self._embedding = embedding
        self._lock = threading.Lock()
        self._vector_by_text: dict[str, Sequence[float]] = {}
        self._vector_by_question: dict[str, Sequence[float]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without vectors. They are read again."""
        return StoredVectors, (self._embedding,)

    def add(self, passages: Iterable[Passage], vectors: Iterable[Sequence[float] | None]) -> None:
        """Add the vectors of passages. None means that a passage has none."""
        with self._lock:
            for passage, vector in zip(passages, vectors, strict=True):
                if vector is not None:
                    self._keep(self._vector_by_text, passage.text, vector)
                    self._keep(self._vector_by_text, passage.titled_text, vector)

    def add_question(self, question: str, vector: Sequence[float] | None) -> None:
        """Add the vector of a question that a store has embedded."""
        if vector is not None:
            with self._lock:
                self._keep(self._vector_by_question, question, vector)

    def has_all(self, passages: Iterable[Passage]) -> bool:
        """Return True if the vectors of all passages are known."""
        return all(passage.text in self._vector_by_text for passage in passages)

    def __call__(self, texts: list[str]) -> list[Any]:
        """Return the vectors of texts."""
        vectors: list[Any] = [self._vector_by_text.get(text) for text in texts]
        missing = [index for index, vector in enumerate(vectors) if vector is None]
        if missing:
            for index, vector in zip(missing, self._embedding([texts[index] for index in missing]), strict=True):
                vectors[index] = vector
        return vectors

    def questions(self, texts: list[str]) -> list[Any]:
        """Return the vectors of questions."""
        vectors = [self._vector_by_question.get(text) for text in texts]
        return [
            self._embedding.questions([text])[0] if vector is None else vector
            for text, vector in zip(texts, vectors, strict=True)
        ]

    def _keep(self, vectors: dict[str, Sequence[float]], text: str, vector: Sequence[float]) -> None:
        vectors.pop(text, None)
        vectors[text] = vector
        while len(vectors) > _MAX_VECTORS:
            del vectors[next(iter(vectors))]
