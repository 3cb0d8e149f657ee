"""Texts as dense vectors, by a function that the user brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput

Floats = npt.NDArray[np.float64]
Embed = Callable[[list[str]], Any]
"""From texts to an array of shape (texts, dimensions). With a method `questions`, that embeds the questions."""


class HostEmbedding:
    """A framework's embedding model as such a function.

    Args:
        texts: From texts to their vectors, all at once.
        question: From a question to its vector, in the way that the model wants questions.

    >>> embed = HostEmbedding(lambda texts: [[1.0] for text in texts], lambda question: [2.0])
    >>> embed(["a", "b"]), embed.questions(["c"])
    ([[1.0], [1.0]], [[2.0]])
    """

    def __init__(self, texts: Embed, question: Callable[[str], list[float]]) -> None:
        self._texts = texts
        self._question = question

    def __call__(self, texts: list[str]) -> Any:
        """Vectors of texts."""
        return self._texts(texts)

    def questions(self, texts: list[str]) -> list[list[float]]:
        """Vectors of questions."""
        return list(map(self._question, texts))


def embedded(embed: Embed, texts: Sequence[str]) -> Floats:
    """One vector a text, shape (texts, dimensions).

    Raises:
        InvalidInput: there is not one finite vector a text.

    >>> embedded(lambda texts: [[len(text), 1] for text in texts], ["a", "bcd"]).tolist()
    [[1.0, 1.0], [3.0, 1.0]]
    """
    given = embed(list(texts))
    vectors = np.asarray(list(given) if isinstance(given, Iterator) else given, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise InvalidInput(
            f"embed takes {len(texts)} texts to {len(texts)} vectors of finite numbers; it gave an array of shape "
            f"{vectors.shape}."
        )
    return vectors


def of_unit_length(vectors: Floats) -> Floats:
    """Each row divided by its Euclidean length; a zero vector stays zero.

    >>> of_unit_length(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
