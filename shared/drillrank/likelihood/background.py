"""p(w|English), or of another language: how often a stemmed word occurs in general.

The candidates of one question are a poor collection: retrieval chose them because they hold the question's words, so
those look common. General English keeps "where" cheap and "cathedral" telling. The counts come with the package, so
that scores do not depend on what else is installed: the frequencies of pyspellchecker 0.9.1 (MIT licence), which
`tools/stems.py` added up over words with the same stem. Of other languages, the common stems are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from drillrank.data import read_table

LISTED = {"english", "dutch", "french", "german", "italian", "portuguese", "russian", "spanish"}
UNLISTED = 1e-7  # probability of a word that the list lacks, such as most names; rarer listed ones count as such


@lru_cache(maxsize=4)
def background(language: str = "english") -> Mapping[str, float]:
    """Probability of each listed stem; they add up to 1. A language without a list has the English one.

    >>> background()["the"] > background()["river"] > background()["cathedr"] > UNLISTED
    True
    >>> background("german")["der"] > background("german")["flucht"]
    True
    """
    if language not in LISTED:
        return background("english")
    counts = {stem: int(count) for stem, count in read_table(f"{language}_stems.tsv.gz").items()}
    total = sum(counts.values())
    return {stem: count / total for stem, count in counts.items()}


@lru_cache(maxsize=16)
def log_power_sum(power: float, language: str = "english") -> float:
    """Log of Σ p(w|English)^power over the listed stems; 0 for power 1."""
    return float(np.logaddexp.reduce(power * np.log(np.fromiter(background(language).values(), dtype=np.float64))))
