"""Retrieval over the views of sections in memory, and one ranking from several views (MC-indexing, section 3.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_positive
from drillrank.explanation import Explainable, Explanation, Explanations, Term
from drillrank.passages import check_query
from drillrank.settings import check_one_of
from drillrank.structure import breadcrumb
from drillrank.text import check_language
from drillrank.vectors import BM25Index, Embed, TfidfIndex, embedded, of_unit_length
from drillrank.views.extractive import VIEWS, View
from drillrank.views.views import SectionChunk, check_views

Ranks = npt.NDArray[np.int64]
RetrieverName = Literal["bm25", "tfidf"]
Expansion = Literal["neighbours", "parent"]
Merge = Literal["fusion", "union"]

RANK_OFFSET = 60  # of reciprocal rank fusion (Cormack et al. 2009)
_RETRIEVERS: dict[str, type[BM25Index] | type[TfidfIndex]] = {"bm25": BM25Index, "tfidf": TfidfIndex}


@dataclass(frozen=True, slots=True)
class MergedSection:
    """A section as found by one or more views.

    Attributes:
        section_id: Identifier of the section.
        score: Sum of 1 / (60 + rank) over the views that rank the section, each times the view's weight; higher is
            better. Without weights at most views / 61.
        ranks: Rank of the section in each view that ranks it; 1 for the best.
    """

    section_id: str
    score: float
    ranks: Mapping[str, int]

    @property
    def best_rank(self) -> int | None:
        """The lowest rank in any view; None if no view ranks the section."""
        return min(self.ranks.values(), default=None)

    @property
    def matched_views(self) -> str:
        """The ranks on one line, for metadata that must be flat.

        >>> MergedSection("a", 0.03, {"raw": 2, "summary": 1}).matched_views
        'raw:2 summary:1'
        """
        return " ".join(f"{view}:{rank}" for view, rank in self.ranks.items())


def merge_views(
    rankings: Mapping[str, Sequence[str]],
    k: int,
    weights: Mapping[str, float] | None = None,
    merge: Merge = "fusion",
) -> list[MergedSection]:
    """The best `k` sections of several rankings.

    MC-indexing takes the top k' = 2k/3 (here rounded up) of every view and expects their union to hold about k
    sections: that is `"union"`. With `"fusion"` it is exactly k as long as the rankings hold that many: a larger union
    loses, and a smaller one gains, by reciprocal rank fusion. Only ranks are compared, since the scores of different
    views have no common scale.

    Fusion with `weights` is weighted reciprocal rank fusion alone: no view has seats of its own.

    Args:
        rankings: For each view, section ids from best to worst. A section named twice keeps its better rank, and
            takes no second one from those after it.
        k: Number of sections wanted.
        weights: How much each view counts, at least 0; 1 for a view that is not named. A view of weight 0 still
            brings sections, after all others.
        merge: `"fusion"` or `"union"`; see above.

    Returns:
        Sections by falling score: `min(k, number of different sections)`, or all of the union. Among equal scores the
        ranks in the views named first decide.

    Raises:
        InvalidInput: `k` is not a positive integer, a weight is no number from 0 on or of no view, or `merge` is
            something else.

    >>> merged = merge_views({"raw": ["a", "b", "c"], "summary": ["b", "d"]}, k=2)
    >>> [(section.section_id, section.ranks) for section in merged]
    [('b', {'raw': 2, 'summary': 1}), ('a', {'raw': 1})]
    """
    numbers = {id_: number for number, id_ in enumerate(dict.fromkeys(chain.from_iterable(rankings.values())))}
    ranks = {view: np.zeros(len(numbers), dtype=np.int64) for view in rankings}
    for view, ranking in rankings.items():
        different = list(dict.fromkeys(ranking))
        ranks[view][[numbers[id_] for id_ in different]] = range(1, len(different) + 1)
    names = list(numbers)
    return [
        MergedSection(names[number], score, section_ranks)
        for number, score, section_ranks in merge_ranks(ranks, k, weights, merge)
    ]


def merge_ranks(
    ranks: Mapping[str, Ranks], k: int, weights: Mapping[str, float] | None, merge: Merge
) -> list[tuple[int, float, dict[str, int]]]:
    """`merge_views` for sections that are numbered: of many that are ranked only the best are looked at one by one.

    Args:
        ranks: For each view, the rank of each section, from 1 on, or 0 where the view does not rank it.
        k: Number of sections wanted.
        weights: As for `merge_views`.
        merge: As for `merge_views`.

    Returns:
        Number of the section, its score and its ranks, by falling score.

    Raises:
        InvalidInput: as `merge_views`.

    >>> merge_ranks({"raw": np.array([1, 2, 0]), "summary": np.array([0, 1, 2])}, 1, None, "fusion")
    [(1, 0.03252247488101534, {'raw': 2, 'summary': 1})]
    """
    check_positive(k=k)
    check_weights(weights)
    check_one_of(Merge, merge=merge)
    if not ranks:
        return []
    top = 0 if weights is not None and merge == "fusion" else -(-2 * k // 3)  # the first of each view have a place
    of_views = np.array([*ranks.values()])
    in_order = np.where(of_views > 0, of_views, np.iinfo(np.int64).max)
    weight = np.array([[_weight(view, weights)] for view in ranks])
    # Sorted, so that the order of the views cannot tell equal scores apart.
    scores = np.sort(np.where(of_views > 0, weight / (RANK_OFFSET + of_views), 0.0), axis=0).sum(axis=0)
    seated = in_order.min(axis=0) <= top
    best_first = np.lexsort((*in_order[::-1], -scores, ~seated))
    chosen = best_first[(seated if merge == "union" else of_views.max(axis=0) > 0)[best_first]]
    if merge == "fusion":
        chosen = chosen[:k]
    chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
    return [
        (
            number,
            float(scores[number]),
            {view: int(view_ranks[number]) for view, view_ranks in ranks.items() if view_ranks[number]},
        )
        for number in chosen.tolist()
    ]


def explain_views(
    section: MergedSection,
    rank: int,
    name: str,
    k: int,
    weights: Mapping[str, float] | None,
    merge: Merge,
) -> Explanation:
    """Which views found a section, at which rank, and what each adds to its score.

    Args:
        section: What `merge_views` returned.
        rank: Its place there, from 1 on.
        name: What a reader knows it by.
        k: As for `merge_views`.
        weights: As for `merge_views`.
        merge: As for `merge_views`.

    >>> merged = merge_views({"raw": ["a", "b", "c"], "summary": ["b", "d"]}, k=2)
    >>> print(explain_views(merged[0], 1, "The section", 2, None, "fusion"))
    1. The section: 0.03252
        raw view       summary view
    rank 2, weight 1 rank 1, weight 1
        +0.01613         +0.01639
    raw view +0.01613, summary view +0.01639 = 0.03252
    It has a place as one of the first 2 of a view.
    """
    views = tuple(
        Term(f"{view} view", weight / (RANK_OFFSET + view_rank), text=f"rank {view_rank}, weight {weight:g}")
        for view, view_rank in section.ranks.items()
        for weight in [_weight(view, weights)]
    )
    first = -(-2 * k // 3)
    if not views:
        note = "No view ranks it: it comes last, in the order given."
    elif weights is not None and merge == "fusion":
        note = "The weighted sum decides."
    elif min(section.ranks.values()) <= first:
        note = f"It has a place as one of the first {first} of a view."
    else:
        note = f"No view has it among its first {first}: it fills up by its sum."
    return Explanation(rank, section.score, name, views, note=note)


def _weight(view: str, weights: Mapping[str, float] | None) -> float:
    return float((weights or {}).get(view, 1.0))


def check_weights(weights: Mapping[str, float] | None) -> None:
    """Reject weights that are no numbers from 0 on, or that no view has.

    Raises:
        InvalidInput: names the first one.

    >>> check_weights({"keyword": 5})
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: weights are of the views raw, keywords, summary; there is no view 'keyword'.
    """
    for view, weight in (weights or {}).items():
        if view not in VIEWS:
            raise InvalidInput(f"weights are of the views {', '.join(VIEWS)}; there is no view {view!r:.200}.")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise InvalidInput(f"The weight of the view {view!r:.200} must be a number from 0 on; not {weight!r:.200}.")


def expanded(
    found: Sequence[MergedSection], around: Callable[[str], Iterable[str]]
) -> list[tuple[MergedSection, str | None]]:
    """Each section found, and after it those around it, with its score; no section twice.

    Args:
        found: Sections by falling score.
        around: From a section id to those of the sections around it.

    Returns:
        Sections, and for those that were not found the id of the one that they stand around.

    >>> found = [MergedSection("b", 0.03, {"raw": 1}), MergedSection("c", 0.02, {"raw": 2})]
    >>> [(section.section_id, origin) for section, origin in expanded(found, {"b": "ac", "c": "bd"}.get)]
    [('b', None), ('a', 'b'), ('c', None), ('d', 'c')]
    """
    seen = {section.section_id for section in found}
    result: list[tuple[MergedSection, str | None]] = []
    for section in found:
        result.append((section, None))
        for neighbour in around(section.section_id):
            if neighbour not in seen:
                seen.add(neighbour)
                result.append((MergedSection(neighbour, section.score, {}), section.section_id))
    return result


class ViewText(NamedTuple):
    """What the index reads of a `SectionChunk`, for chunks that live elsewhere, such as in a framework's nodes."""

    section_id: str
    view: View
    indexed_text: str


class _DenseIndex:
    """Cosines of embeddings, every text with the question."""

    def __init__(self, embed: Embed, texts: Sequence[str]) -> None:
        self._vectors = of_unit_length(embedded(embed, texts)) if texts else None

    def scores(self, question: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Shape `(texts,)`, each raised above 0: an encoder ranks all texts."""
        return np.zeros(0) if self._vectors is None else self._vectors @ question + 2


def check_index_settings(
    retriever: RetrieverName, weights: Mapping[str, float] | None, language: str, merge: Merge, views: Sequence[View]
) -> None:
    """Refuse settings of a `MultiViewIndex` that cannot be used.

    Raises:
        InvalidInput: says which.
    """
    check_one_of(RetrieverName, retriever=retriever)
    check_one_of(Merge, merge=merge)
    check_language(language)
    check_weights(weights)
    check_views(views)


class MultiViewIndex:
    r"""Sections, ranked in each view separately and merged (MC-indexing, section 3.3).

    With words, a view ranks only texts that hold one of the query's. Sections that no view ranks come last, in the
    order given, with score 0, so that a search finds `top_n` sections wherever there are as many.

    Args:
        chunks: The views of the sections of any number of documents; every section has its raw view, or none has.
        retriever: `"bm25"` or `"tfidf"`: one index for each view, in memory.
        weights: How much each view counts; None takes the best of every view: see `drillrank.views.merge_views`.
        language: Whose stemmer words go through: one of `drillrank.text.LANGUAGES`.
        embed: Ranks by meaning in place of words: turns texts into an array of shape (texts, dimensions).
        merge: `"fusion"`, or `"union"` as in the paper: see `drillrank.views.merge_views`.
        views: The views that are searched, among those of the chunks.

    Raises:
        InvalidInput: a weight is below 0, the retriever, a view or `merge` is unknown, or some sections lack their raw
            view.

    >>> from drillrank.structure import parse_document
    >>> from drillrank.views import Chunker, section_chunks
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> chunks = section_chunks(parse_document(text), "animals", chunker=Chunker(min_tokens=None))
    >>> best = MultiViewIndex(chunks).search("Who sings?", top_n=1)[0]
    >>> best.matched_views, [chunk.path for chunk in chunks if chunk.id == best.section_id]
    ('raw:1 keywords:1 summary:1', [('Whales',)])
    """

    def __init__(
        self,
        chunks: Iterable[ViewText | SectionChunk],
        retriever: RetrieverName = "bm25",
        weights: Mapping[str, float] | None = None,
        language: str = "english",
        *,
        embed: Embed | None = None,
        merge: Merge = "fusion",
        views: Sequence[View] = VIEWS,
    ) -> None:
        check_index_settings(retriever, weights, language, merge, views)
        self.retriever = retriever
        self.weights = weights
        self.language = language
        self.merge: Merge = merge
        self.views = tuple(views)
        by_view: dict[str, list[tuple[int, ViewText | SectionChunk]]] = {view: [] for view in VIEWS}
        self._names: dict[str, str] = {}
        for number, chunk in enumerate(chunks):
            if chunk.view not in by_view:
                raise InvalidInput(
                    f"Unknown view {chunk.view!r:.200} of section {chunk.section_id!r:.200}; known: {VIEWS}."
                )
            by_view[chunk.view].append((number, chunk))
            path = chunk.path if isinstance(chunk, SectionChunk) else ()
            self._names.setdefault(chunk.section_id, breadcrumb(path) or chunk.section_id)
        with_raw = dict.fromkeys(chunk.section_id for _, chunk in by_view["raw"])
        if with_raw and (orphans := self._names.keys() - with_raw):
            raise InvalidInput(f"{len(orphans)} sections have no raw view, for example {min(orphans)!r:.200}.")
        self._ids = list(with_raw or self._names)
        numbers = {section_id: number for number, section_id in enumerate(self._ids)}
        self._chunks: dict[str, Ranks] = {}
        self._sections: dict[str, Ranks] = {}
        self._embed = embed
        self._indexes: dict[str, BM25Index | TfidfIndex | _DenseIndex] = {}
        for view, of_view in by_view.items():
            self._chunks[view] = np.array([number for number, _ in of_view], dtype=np.int64)
            self._sections[view] = np.array([numbers[chunk.section_id] for _, chunk in of_view], dtype=np.int64)
            if view in self.views:
                texts = [chunk.indexed_text for _, chunk in of_view]
                lexical = _RETRIEVERS[retriever]
                self._indexes[view] = _DenseIndex(embed, texts) if embed else lexical(texts, language=language)

    def search(self, query: str, top_n: int = 5, among: Collection[int] | None = None) -> Explainable[MergedSection]:
        """The best sections for a query, best first, each once.

        Args:
            query: The question.
            top_n: Sections wanted; with `merge="union"` about so many.
            among: Numbers of the chunks that may be seen, in the order in which they were given; None for all. A
                section that has a raw view needs it among them. Ranks are those among these; how rare words are is
                counted in all chunks.

        Returns:
            Sections; `explain` of them says which views found each, at which rank and with which weight.

        Raises:
            InvalidInput: the query is blank, or `top_n` is not a positive integer.
        """
        check_query(query)
        check_positive(top_n=top_n)
        seen = None if among is None else np.fromiter(among, dtype=np.int64)
        shown = np.arange(len(self._ids))  # sections in the order of what may be seen of them
        if seen is not None and len(self._sections["raw"]):
            shown = self._sections["raw"][np.isin(self._chunks["raw"], seen)]
        searched = np.isin(np.arange(len(self._ids)), shown)
        question: Any = query
        if self._embed is not None:
            question = of_unit_length(embedded(getattr(self._embed, "questions", self._embed), [query]))[0]
        ranks = {str(view): self._ranks(view, question, seen, searched) for view in self.views}
        merged = merge_ranks(ranks, top_n, self.weights, self.merge)
        found = [MergedSection(self._ids[number], score, section_ranks) for number, score, section_ranks in merged]
        if self.merge == "fusion":
            searched[[number for number, _, _ in merged]] = False
            unranked = list(dict.fromkeys(shown[searched[shown]].tolist()))[: top_n - len(merged)]
            found += [MergedSection(self._ids[number], 0.0, {}) for number in unranked]

        def explained(some: Sequence[MergedSection]) -> Explanations:
            ranks = {section.section_id: rank for rank, section in enumerate(found, 1)}
            return Explanations(
                (
                    explain_views(one, ranks[id_], self._names[id_], top_n, self.weights, self.merge)
                    for one in some
                    for id_ in [one.section_id]
                ),
                query,
            )

        return Explainable(found, explained)

    def _ranks(self, view: str, question: Any, seen: Ranks | None, searched: npt.NDArray[np.bool_]) -> Ranks:
        """Of each section in the view, from 1 on; 0 of those whose text there does not match or may not be seen."""
        scores = self._indexes[view].scores(question)
        found = np.flatnonzero(scores > 0)
        if seen is not None:
            found = found[np.isin(self._chunks[view][found], seen)]
        best_first = self._sections[view][found[np.argsort(-scores[found], kind="stable")]]
        best_first = best_first[searched[best_first]]
        first = np.sort(np.unique(best_first, return_index=True)[1])  # a section may have several texts in a view
        ranks = np.zeros(len(searched), dtype=np.int64)
        ranks[best_first[first]] = np.arange(1, len(first) + 1)
        return ranks
