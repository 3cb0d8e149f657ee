"""Compare documents by digests of their words: a sketch of bounded size, whatever the length of a document.

Shingles are runs of 2, 5 and 20 consecutive words of a paragraph. A shorter paragraph is one shingle. Of each length,
a document's digests are its 256 smallest hashes of shingles, a sample that is equal for equal documents (bottom-k
min-hash, Broder 1997). Short documents are compared by short shingles: a changed number changes two of them. Long ones
are compared by long shingles, which reports of two years seldom share, though they share most of their words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from drillrank.text import words
from drillrank.vectors import Integers

_MAX_PER_LENGTH = 256  # digests for each length of shingles
_MIN_SAMPLE = 8  # shingles of a shorter document in the sample of a longer one; with fewer, it is another document
# Words of a shingle, the most 2-word shingles of the shorter of two documents that are compared by it, and the share
# that similar documents have in common. A single change affects a larger share of a short document.
_LEVELS = ((2, 150, 0.6), (5, 600, 0.7), (20, float("inf"), 0.8))
MAX_DIGESTS = _MAX_PER_LENGTH * len(_LEVELS)  # of a document

_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n")
_LEVEL_BITS = 60  # digests below have the number of their length above these bits
_BASE = 0x9E3779B97F4A7C15  # of a polynomial hash modulo 2^64; any odd number
_INVERSE = pow(_BASE, -1, 1 << 64)


def text_digests(texts: Iterable[str]) -> list[int]:
    r"""Return the digests of a document: at most 768 integers from 0 to 2^62.

    They do not depend on case, punctuation and white space, nor on how paragraphs are grouped into texts.

    Args:
        texts: Texts of the document, such as its paragraphs or passages, in order.

    >>> text_digests(["No dogs.\n\nNo cats."]) == text_digests(["no dogs", "no  cats"])
    True
    """
    paragraphs = (words(part.casefold()) for text in texts for part in _PARAGRAPH_END.split(text))
    hash_by_word: dict[str, int] = {}
    hashes: list[int] = []
    ends: list[int] = []
    for paragraph in paragraphs:
        for word in paragraph:
            if word not in hash_by_word:
                hash_by_word[word] = _hash_word(word)
            hashes.append(hash_by_word[word])
        ends += [len(hashes)] * len(paragraph)
    word_hashes, paragraph_ends = np.array(hashes, np.uint64), np.array(ends, np.int64)
    return [
        digest + (level << _LEVEL_BITS)
        for level, (length, _, _) in enumerate(_LEVELS)
        for digest in _hash_shingles(word_hashes, paragraph_ends, length)[:_MAX_PER_LENGTH].tolist()
    ]


class DocumentDigests:
    """Digests of one document by length of shingles.

    Args:
        digests: Result of `text_digests`, in any order.

    >>> text = "The rent is {} francs a month, without heating."
    >>> old, new = (DocumentDigests(text_digests([text.format(rent)])) for rent in (900, 950))
    >>> old.share_in_common(new), old.is_similar(new)
    (0.75, True)
    """

    def __init__(self, digests: Iterable[int]) -> None:
        self._by_level: list[list[int]] = [[] for _ in _LEVELS]
        for digest in sorted(digests):
            if 0 <= digest >> _LEVEL_BITS < len(_LEVELS):  # a damaged corpus may contain others
                self._by_level[digest >> _LEVEL_BITS].append(digest & ((1 << _LEVEL_BITS) - 1))
        self._n_shingles = _estimate_size(self._by_level[0])

    def share_in_common(self, other: DocumentDigests) -> float:
        """Return the share of the shorter document's shingles that the other document contains, from 0 to 1."""
        level = self._choose_level(other)
        return _estimate_containment(self._by_level[level], other._by_level[level])

    def is_similar(self, other: DocumentDigests) -> bool:
        """Return True if the documents have most of their wording in common."""
        return self.share_in_common(other) >= _LEVELS[self._choose_level(other)][2]

    def _choose_level(self, other: DocumentDigests) -> int:
        n_shingles = min(self._n_shingles, other._n_shingles)
        return next(level for level, (_, most, _) in enumerate(_LEVELS) if n_shingles <= most)


def _hash_word(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _hash_shingles(word_hashes: np.typing.NDArray[np.uint64], ends: Integers, length: int) -> Integers:
    """Return the distinct hashes of all shingles, rising, from 0 to 2^60.

    Args:
        word_hashes: Hash of each word of the document.
        ends: For each word, the index after the last word of its paragraph.
        length: Words of a shingle.
    """
    n_words = len(word_hashes)
    starts = np.arange(n_words)
    is_first = np.ones(n_words, bool)
    is_first[1:] = ends[1:] != ends[:-1]
    starts = starts[is_first | (starts + length <= ends)]
    stops = np.minimum(starts + length, ends[starts])
    # A window of prefix sums of word * base^index, divided by base^start, does not depend on where it starts.
    powers, inverses = (_list_powers(base, n_words) for base in (_BASE, _INVERSE))
    sums = np.zeros(n_words + 1, np.uint64)
    np.cumsum(word_hashes * powers, out=sums[1:])
    hashes = (sums[stops] - sums[starts]) * inverses[starts]
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):  # finalizer of MurmurHash3: spreads all bits
        hashes = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(factor)
    return np.unique(hashes >> np.uint64(64 - _LEVEL_BITS)).astype(np.int64)


def _list_powers(base: int, n_powers: int) -> np.typing.NDArray[np.uint64]:
    """Return 1, base, base^2 and so on, modulo 2^64."""
    factors = np.full(n_powers, base, np.uint64)
    factors[:1] = 1
    return np.cumprod(factors, dtype=np.uint64)


def _estimate_size(digests: list[int]) -> float:
    """Return the number of shingles. Beyond the sample, the largest digest shows how dense all hashes are."""
    if len(digests) < _MAX_PER_LENGTH:
        return len(digests)
    return (len(digests) - 1) * float(1 << _LEVEL_BITS) / max(digests[-1], 1)


def _estimate_containment(one: list[int], other: list[int]) -> float:
    if not one or not other:
        return 0.0
    # Below both limits, each document's digests are complete.
    limit = min(digests[-1] if len(digests) == MAX_DIGESTS else 1 << _LEVEL_BITS for digests in (one, other))
    one_sample, other_sample = ({digest for digest in digests if digest <= limit} for digests in (one, other))
    n_shorter = min(len(one_sample), len(other_sample))
    if n_shorter < _MIN_SAMPLE and limit < 1 << _LEVEL_BITS:
        return 0.0
    return len(one_sample & other_sample) / n_shorter
