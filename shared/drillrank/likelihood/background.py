"""p(w|English): how often a stemmed word occurs in general English.

The candidates of one question are a poor collection: retrieval chose them because they hold the question's words, so
those look common. General English keeps "where" cheap and "cathedral" telling. The counts are the frequency list that
pyspellchecker ships for its spelling corrections (MIT licence, no download).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from spellchecker import SpellChecker

from drillrank.terms import terms

UNLISTED = 1e-7  # probability of a word that the list lacks, such as most names; rarer listed ones count as such


@lru_cache(maxsize=1)
def english() -> Mapping[str, float]:
    """Probability of each listed stem from `UNLISTED` on; they add up to 1. Read once, at the first use.

    >>> english()["the"] > english()["river"] > english()["cathedr"] > UNLISTED
    True
    """
    counts = {word: count for word, count in SpellChecker(language="en").word_frequency.items() if word.isalnum()}
    stems: Counter[str] = Counter()
    for stem, count in zip(terms(" ".join(counts)), counts.values(), strict=True):
        stems[stem] += count
    rarest = UNLISTED * stems.total()
    frequent = {stem: count for stem, count in stems.items() if count > rarest}
    total = sum(frequent.values())
    return {stem: count / total for stem, count in frequent.items()}


@lru_cache(maxsize=16)
def log_power_sum(power: float) -> float:
    """Log of Σ p(w|English)^power over the listed stems; 0 for power 1."""
    return float(np.logaddexp.reduce(power * np.log(np.fromiter(english().values(), dtype=np.float64))))
