"""Statistical keywords of every section of one document: the keyword view without an LLM (MC-indexing, section 3.3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from drillrank.terms import terms

# A word may hold hyphens. What stands before an apostrophe counts only in a possessive: "model's", but not "don't".
WORD = re.compile(r"\w+(?:-\w+)*\b(?!['’](?!s\b)\w)")
LONGEST_WORD = 40  # longer runs of letters are encoded data or addresses

Candidate = tuple[str, str]  # key (lower-cased stems) and surface form


def keywords(texts: Sequence[str], n: int = 15) -> list[list[str]]:
    """The `n` words and two-word phrases that set each section apart from the document's other sections.

    TF-IDF over the sections: inflections of a word count as one, and are shown in the form most frequent in that
    section. A word is left out where at least half of its occurrences lie inside a chosen phrase; so is a phrase that
    occurs only once. With a single section the inverse document frequency is constant, so that term frequency decides.

    Args:
        texts: The sections of one document.
        n: Largest number of keywords of a section.

    Returns:
        One list per section, best first, ties in order of occurrence; empty where a section has no content words.

    >>> keywords(["The red foxes hunt. A red fox sleeps.", "A whale dives and the whale sings.", "42!"], n=2)
    [['red foxes', 'hunt'], ['whale', 'dives'], []]
    """
    candidates = [list(_candidates(text)) for text in texts]
    counts = [Counter(key for key, _ in section) for section in candidates]
    if not any(counts):
        return [[] for _ in texts]
    vectorizer = TfidfVectorizer(analyzer=lambda section: [key for key, _ in section])
    weights = vectorizer.fit_transform(candidates).tocsr()
    vocabulary = vectorizer.get_feature_names_out()
    chosen = []
    for row, section in enumerate(candidates):
        span = slice(weights.indptr[row], weights.indptr[row + 1])
        weight = dict(zip(vocabulary[weights.indices[span]], weights.data[span].tolist(), strict=True))
        order = sorted(counts[row], key=weight.__getitem__, reverse=True)  # stable: ties in order of occurrence
        chosen.append(_surfaces(_prune(order, counts[row], n), section))
    return chosen
