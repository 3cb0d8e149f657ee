"""Evidence without an LLM: which paragraphs, and how many.

    S(p) = Σ_t log p(q_t | path of headings and text of p) + γ cos(q, p)
    P(p | q) = exp(S(p) / T) / Σ_p' exp(S(p') / T)

The first term of S is the question's likelihood, the second one is there if texts are embedded. From the posterior P,
evidence is as many of the best paragraphs as make the expected F1 largest, where m paragraphs are expected in all:

    π(p) = min(1, m P(p | q)),    n = argmax_n 2 Σ_{i<=n} π(p_i) / (n + Σ_p π(p))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.passages import Passage
from drillrank.rerank.upr import UPR

Floats = npt.NDArray[np.float64]
Embed = Callable[[list[str]], Any]

# Chosen on the tuning half of QASPER, with the unigram model; μ and T hardly matter by a factor of two.
MU = 1000.0
TEMPERATURE = 2.0  # T
COSINE_WEIGHT = 6.0  # γ, for all-MiniLM-L6-v2; 4 to 10 are about as good
EXPECTED = 2.0  # m


class Evidence:
    """Paragraphs, made ready for scoring.

    Args:
        paragraphs: What is scored, titles included.
        lm: A language model; fitted, if it is lexical.
        embed: From texts to an array of shape (texts, dimensions), for questions and for paragraphs, which it sees
            without their headings.

    Raises:
        InvalidInput: the embeddings are not one finite vector a text.
    """

    def __init__(self, paragraphs: Sequence[Passage], lm: LanguageModel, embed: Embed | None = None) -> None:
        self._paragraphs = tuple(paragraphs)
        self._ranker = UPR(lm)
        self._embed = embed
        self._vectors = embedded(embed, [p.text for p in self._paragraphs]) if embed and paragraphs else None

    def scored(self, question: str, positions: Sequence[int]) -> list[tuple[float, dict[str, Any]]]:
        """S(p) divided by the question's tokens, and the details of `UPR`, `total` (S) and `cosine`."""
        if not positions:
            return []
        ranking = self._ranker.rank(question, [self._paragraphs[position] for position in positions])
        cosines = np.zeros(len(positions))
        if self._vectors is not None and self._embed is not None:
            [vector] = embedded(self._embed, [question])
            cosines = self._vectors[list(positions)] @ vector
        scored: list[tuple[float, dict[str, Any]]] = [(0.0, {})] * len(positions)
        for item in ranking:
            at = item.details["position"]
            total = item.details["log_likelihood"] + COSINE_WEIGHT * float(cosines[at])
            details = {**item.details, "total": total}
            if self._vectors is not None:
                details["cosine"] = float(cosines[at])
            scored[at] = total / max(item.details["tokens"], 1), details
        return scored


def load_evidence_model(model: str | LanguageModel = "unigram", **options: Any) -> LanguageModel:
    """As `load_language_model`; the unigram model comes with the μ that suits paragraphs under their headings.

    >>> load_evidence_model().options
    {'mu': 1000.0}
    """
    return load_language_model(model, **({"mu": MU} if model == "unigram" else {}) | options)


def expected_best(totals: Sequence[float], expected: float = EXPECTED, temperature: float = TEMPERATURE) -> int:
    """How many of the best make the expected F1 largest, given S of every paragraph, in any order.

    >>> expected_best([-10.0, -30.0, -31.0]), expected_best([-10.0, -10.0, -31.0]), expected_best([])
    (1, 2, 0)
    """
    if not totals:
        return 0
    scores = np.sort(np.asarray(totals, dtype=np.float64))[::-1]
    posterior = np.exp((scores - scores[0]) / temperature)
    chances = np.minimum(1.0, expected * posterior / posterior.sum())
    f1 = 2 * np.cumsum(chances) / (np.arange(1, len(scores) + 1) + chances.sum())
    return int(np.argmax(f1)) + 1


def embedded(embed: Embed, texts: Sequence[str]) -> Floats:
    """One unit vector a text; a zero vector stays zero.

    Raises:
        InvalidInput: there is not one finite vector a text.
    """
    vectors = np.asarray(embed(list(texts)), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise InvalidInput(
            f"embed takes {len(texts)} texts to {len(texts)} vectors of finite numbers; it gave an array of shape "
            f"{vectors.shape}."
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
