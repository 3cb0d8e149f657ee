"""Retrieval over the views of sections, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_positive
from drillrank.explanation import Explainable, Explanations
from drillrank.passages import check_query
from drillrank.settings import check_one_of
from drillrank.structure import breadcrumb
from drillrank.text import check_language
from drillrank.vectors import BM25Index, TextIndex, TfidfIndex
from drillrank.views.merging import MergedSection, Ranks, check_weights, explain_views, merge_ranks
from drillrank.views.section_views import VIEWS, SectionChunk, View

RetrieverName = Literal["bm25", "tfidf"]

_RETRIEVERS: dict[str, type[BM25Index] | type[TfidfIndex]] = {"bm25": BM25Index, "tfidf": TfidfIndex}


class ViewText(NamedTuple):
    """What the index reads of a `SectionChunk`, for chunks that live elsewhere, such as in a framework's nodes."""

    section_id: str
    view: View
    indexed_text: str


class MultiViewIndex:
    r"""Sections, ranked in each view separately and merged (MC-indexing, section 3.3).

    A view ranks only texts that score above 0. Sections that no view ranks come last, in the order given, with score
    0, so that a search finds `top_n` sections wherever there are as many.

    Args:
        chunks: The views of the sections of any number of documents; every section needs its raw view.
        retriever: `"bm25"` or `"tfidf"`: one index for each view, in memory.
        weights: How much each view counts; None takes the best of every view: see `drillrank.views.merge_views`.
        language: Whose stemmer words go through: one of `drillrank.text.LANGUAGES`.

    Raises:
        InvalidInput: a weight is below 0, the retriever or a view is unknown, or the raw view of a section is missing.

    >>> from drillrank.structure import parse_document
    >>> from drillrank.views import section_chunks
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> chunks = section_chunks(parse_document(text), "animals")
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
    ) -> None:
        check_one_of(RetrieverName, retriever=retriever)
        check_language(language)
        check_weights(weights)
        self.retriever = retriever
        self.weights = weights
        self.language = language
        by_view: dict[str, list[ViewText | SectionChunk]] = {view: [] for view in VIEWS}
        chunk_numbers: dict[str, list[int]] = {view: [] for view in VIEWS}
        for number, chunk in enumerate(chunks):
            if chunk.view not in by_view:
                raise InvalidInput(f"Unknown view {chunk.view!r} of section {chunk.section_id!r}; known: {VIEWS}.")
            by_view[chunk.view].append(chunk)
            chunk_numbers[chunk.view].append(number)
        self._names: dict[str, str] = {
            chunk.section_id: breadcrumb(chunk.path) for chunk in by_view["raw"] if isinstance(chunk, SectionChunk)
        }
        self._ids = list(dict.fromkeys(chunk.section_id for chunk in by_view["raw"]))
        number_of = {section_id: number for number, section_id in enumerate(self._ids)}
        orphans = {chunk.section_id for of_view in by_view.values() for chunk in of_view} - number_of.keys()
        if orphans:
            raise InvalidInput(f"{len(orphans)} sections have no raw view, for example {min(orphans)!r}.")
        self._sections: dict[str, Ranks] = {
            view: np.array([number_of[chunk.section_id] for chunk in of_view], dtype=np.int64)
            for view, of_view in by_view.items()
        }
        self._chunks = {view: np.array(numbers, dtype=np.int64) for view, numbers in chunk_numbers.items()}
        self._indexes: dict[str, TextIndex] = {
            view: _RETRIEVERS[retriever]([chunk.indexed_text for chunk in of_view], language=language)
            for view, of_view in by_view.items()
        }

    def search(self, query: str, top_n: int = 5, among: Collection[int] | None = None) -> Explainable[MergedSection]:
        """The best sections for a query, best first, each once.

        Args:
            query: The question.
            top_n: Sections wanted.
            among: Numbers of the chunks that may be seen, in the order in which they were given; None for all. A
                section needs its raw view among them. Ranks are those among these; how rare words are is counted in
                all chunks.

        Returns:
            Sections; `explain` of them says which views found each, at which rank and with which weight.

        Raises:
            InvalidInput: the query is blank, or `top_n` is not a positive integer.
        """
        check_query(query)
        check_positive(top_n=top_n)
        seen = None if among is None else np.fromiter(among, dtype=np.int64)
        raw = self._sections["raw"]
        if seen is not None:
            raw = raw[np.isin(self._chunks["raw"], seen)]
        visible = np.zeros(len(self._ids), dtype=bool)
        visible[raw] = True
        ranks: dict[str, Ranks] = {view: self._ranks(view, query, seen, visible) for view in VIEWS}
        merged = merge_ranks(ranks, top_n, self.weights)
        found = [MergedSection(self._ids[number], score, own) for number, score, own in merged]
        if len(found) < top_n:
            visible[[number for number, _, _ in merged]] = False
            unranked = dict.fromkeys(raw[visible[raw]].tolist())
            found += [MergedSection(self._ids[number], 0.0, {}) for number in islice(unranked, top_n - len(found))]
        return Explainable(found, partial(self._explained, query, found, top_n))

    async def asearch(
        self, query: str, top_n: int = 5, among: Collection[int] | None = None
    ) -> Explainable[MergedSection]:
        """As `search`, without blocking the event loop."""
        return await asyncio.to_thread(self.search, query, top_n, among)

    def search_many(self, queries: Sequence[str], top_n: int = 5) -> list[Explainable[MergedSection]]:
        """`search` for each question."""
        return [self.search(query, top_n) for query in queries]

    def _explained(
        self, query: str, found: Sequence[MergedSection], top_n: int, some: Sequence[MergedSection]
    ) -> Explanations:
        ranks = {section.section_id: rank for rank, section in enumerate(found, 1)}
        names = ((one, self._names.get(one.section_id) or one.section_id) for one in some)
        return Explanations(
            (explain_views(one, ranks[one.section_id], name, top_n, self.weights) for one, name in names), query
        )

    def _ranks(self, view: str, query: str, seen: Ranks | None, visible: npt.NDArray[np.bool_]) -> Ranks:
        """Of each section in the view, from 1 on; 0 of those whose text there does not match or may not be seen."""
        scores = self._indexes[view].scores(query)
        found = np.flatnonzero(scores > 0)
        if seen is not None:
            found = found[np.isin(self._chunks[view][found], seen)]
        best_first = self._sections[view][found[np.argsort(-scores[found], kind="stable")]]
        best_first = best_first[visible[best_first]]
        first = np.sort(np.unique(best_first, return_index=True)[1])  # a section may have several texts in a view
        ranks = np.zeros(len(visible), dtype=np.int64)
        ranks[best_first[first]] = np.arange(1, len(first) + 1)
        return ranks
