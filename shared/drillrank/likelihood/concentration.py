"""The concentration κ of an encoder on a user's own texts, by maximum likelihood.

A sentence s of each text must find the rest r of its own text among all rests:

    κ = argmax Σ_i log [ exp(κ cos(s_i, r_i)) / Σ_j exp(κ cos(s_i, r_j)) ]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from drillrank.errors import DrillrankWarning
from drillrank.structure.sentences import sentences

LEAST = 30  # texts of two sentences or more, for an estimate
MOST = 500
BOUNDS = (1.0, 200.0)

Vectors = Callable[[Sequence[str]], npt.NDArray[np.float32]]


def fitted_concentration(texts: Sequence[str], questions: Vectors, documents: Vectors, otherwise: float) -> float:
    """κ by maximum likelihood, on at most 500 of the texts, evenly spread.

    Args:
        texts: Passages; those of one sentence tell nothing.
        questions: From sentences to unit vectors.
        documents: From the rests of the texts to unit vectors.
        otherwise: κ where fewer than 30 texts have two sentences; a `DrillrankWarning` says so.
    """
    split = [(text, spans) for text in dict.fromkeys(texts) if len(spans := sentences(text)) > 1]
    if len(split) < LEAST:
        warnings.warn(
            f"kappa stays {otherwise}: only {len(split)} texts have two sentences or more, {LEAST} are needed.",
            DrillrankWarning,
            stacklevel=3,
        )
        return otherwise
    chosen = [split[number] for number in np.linspace(0, len(split) - 1, min(len(split), MOST)).astype(int)]
    held_out = [spans[len(spans) // 2] for _, spans in chosen]
    asked = [text[start:end] for (text, _), (start, end) in zip(chosen, held_out, strict=True)]
    rests = [f"{text[:start]}{text[end:]}" for (text, _), (start, end) in zip(chosen, held_out, strict=True)]
    cosines = questions(asked).astype(np.float64) @ documents(rests).astype(np.float64).T

    from scipy.optimize import minimize_scalar  # takes longer to load than all of this package
    from scipy.special import logsumexp

    def loss(kappa: float) -> float:
        return float(np.mean(logsumexp(kappa * cosines, axis=1) - kappa * np.diag(cosines)))

    return float(minimize_scalar(loss, bounds=BOUNDS, method="bounded").x)
