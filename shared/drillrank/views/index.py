"""Retrieve sections in memory: rank them in each view separately and merge the rankings (MC-indexing, section 3.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_positive
from drillrank.explanation import Explainable, Explanations
from drillrank.likelihood.encoders import as_encoder
from drillrank.passages import check_query
from drillrank.settings import Preset, check_one_of
from drillrank.structure import breadcrumb
from drillrank.text import check_language
from drillrank.vectors import BM25Index, Embed, TfidfIndex, embedded, of_unit_length
from drillrank.views.extractive import VIEWS, View
from drillrank.views.merging import (
    Merge,
    MergedSection,
    ViewRanks,
    check_weights,
    complete_merge,
    explain_views,
    merge_ranks,
)
from drillrank.views.views import SectionChunk, check_views

RetrieverName = Literal["bm25", "tfidf"]

_RETRIEVERS: dict[str, type[BM25Index] | type[TfidfIndex]] = {"bm25": BM25Index, "tfidf": TfidfIndex}


class ViewText(NamedTuple):
    """The fields of a `SectionChunk` that the index reads, for chunks in a framework's nodes."""

    section_id: str
    view: View
    indexed_text: str


class _DenseIndex:
    """Cosines of embeddings, every text with the question."""

    def __init__(self, embed: Embed, texts: Sequence[str]) -> None:
        self._vectors = of_unit_length(embedded(embed, texts)) if texts else None

    def scores(self, question: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return scores of shape `(texts,)`, all above 0: an encoder ranks all texts."""
        return np.zeros(0) if self._vectors is None else self._vectors @ question + 2


@dataclass(frozen=True)
class _ViewIndex:
    """The texts of one view.

    Attributes:
        chunk_indices: Index of each text's chunk among all chunks.
        section_indices: Index of each text's section.
        retriever: Scores the texts; None if the view is not searched.
    """

    chunk_indices: npt.NDArray[np.int64]
    section_indices: npt.NDArray[np.int64]
    retriever: BM25Index | TfidfIndex | _DenseIndex | None

    def rank_sections(self, query: Any, candidates: _Candidates) -> ViewRanks:
        """Rank the candidate sections whose text matches the query. The best text of a section counts."""
        ranks = np.zeros(len(candidates.is_candidate), dtype=np.int64)
        if self.retriever is None:
            return ranks
        scores = self.retriever.scores(query)
        matches = np.flatnonzero(scores > 0)
        if candidates.chunk_indices is not None:
            matches = matches[np.isin(self.chunk_indices[matches], candidates.chunk_indices)]
        best_first = self.section_indices[matches[np.argsort(-scores[matches], kind="stable")]]
        best_first = best_first[candidates.is_candidate[best_first]]
        first_occurrences = np.sort(np.unique(best_first, return_index=True)[1])
        ranks[best_first[first_occurrences]] = np.arange(1, len(first_occurrences) + 1)
        return ranks


@dataclass(frozen=True)
class _Candidates:
    """Sections that a search may return.

    Attributes:
        chunk_indices: Indices of the chunks that may be searched; None for all.
        section_order: Indices of the sections in the order of the chunks that may be searched. May contain repeats.
        is_candidate: True for each section that may be returned, shape `(sections,)`.
    """

    chunk_indices: npt.NDArray[np.int64] | None
    section_order: npt.NDArray[np.int64]
    is_candidate: npt.NDArray[np.bool_]

    def unranked(self, ranked_indices: Iterable[int]) -> list[int]:
        """Return the other candidate sections in their order."""
        is_unranked = self.is_candidate.copy()
        is_unranked[list(ranked_indices)] = False
        return list(dict.fromkeys(self.section_order[is_unranked[self.section_order]].tolist()))


def check_index_settings(
    retriever: RetrieverName, weights: Mapping[str, float] | None, language: str, merge: Merge, views: Sequence[View]
) -> None:
    """Check the settings of a `MultiViewIndex`.

    Raises:
        InvalidInput: names the first invalid setting.
    """
    check_one_of(RetrieverName, retriever=retriever)
    check_one_of(Merge, merge=merge)
    check_language(language)
    check_weights(weights)
    check_views(views)


class MultiViewIndex:
    r"""Ranks sections in each view separately and merges the rankings (MC-indexing, section 3.3).

    With lexical matching, a view ranks only texts that contain a word of the query. Sections that no view ranks come
    last, in the order given, with score 0, so that a search returns `top_n` sections if there are that many.

    Args:
        chunks: The views of the sections of any number of documents. Every section has its raw view, or none has.
        retriever: `"bm25"` or `"tfidf"`: one index for each view, in memory.
        weights: Weight of each view; None takes the best of every view: see `drillrank.views.merge_views`.
        language: Language of the stemmer: one of `drillrank.text.LANGUAGES`.
        embed: An encoder's specification, such as `"onnx:DIR"`, or a function from texts to an array of shape (texts,
            dimensions). With it, semantic similarity replaces lexical matching.
        merge: `"fusion"`, or `"union"` as in the paper: see `drillrank.views.merge_views`. None is fusion, or union
            with the preset.
        views: The views to search, among those of the chunks.
        preset: `"paper"` sets what the paper fixes and other arguments leave open: the union of the best of each view.

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
        embed: str | Embed | None = None,
        merge: Merge | None = None,
        views: Sequence[View] = VIEWS,
        preset: Preset | None = None,
    ) -> None:
        merge = complete_merge(merge, preset)
        check_index_settings(retriever, weights, language, merge, views)
        self.retriever = retriever
        self.weights = weights
        self.language = language
        self.merge, self.preset = merge, preset
        self.views = tuple(views)
        self._embed = as_encoder(embed)
        chunk_list = list(chunks)
        self._name_by_id = _name_sections(chunk_list)
        self._section_ids = _list_section_ids(chunk_list)
        index_by_id = {section_id: index for index, section_id in enumerate(self._section_ids)}
        self._index_by_view = {view: self._index_view(view, chunk_list, index_by_id) for view in VIEWS}

    def _index_view(
        self, view: View, chunks: Sequence[ViewText | SectionChunk], index_by_id: Mapping[str, int]
    ) -> _ViewIndex:
        chunk_indices = [index for index, chunk in enumerate(chunks) if chunk.view == view]
        section_indices = [index_by_id[chunks[index].section_id] for index in chunk_indices]
        retriever: BM25Index | TfidfIndex | _DenseIndex | None = None
        if view in self.views:
            texts = [chunks[index].indexed_text for index in chunk_indices]
            if self._embed is not None:
                retriever = _DenseIndex(self._embed, texts)
            else:
                retriever = _RETRIEVERS[self.retriever](texts, language=self.language)
        return _ViewIndex(np.array(chunk_indices, np.int64), np.array(section_indices, np.int64), retriever)

    def search(self, query: str, top_n: int = 5, among: Collection[int] | None = None) -> Explainable[MergedSection]:
        """Return the best sections for a query, best first, each once.

        Args:
            query: The question.
            top_n: Number of sections; with `merge="union"` an approximate number.
            among: Indices of the chunks that may be searched, in the order in which the chunks were given; None for
                all. A section that has a raw view needs it among them. Ranks count these sections only. Document
                frequencies count all chunks.

        Returns:
            Sections. Their `explain` lists the views that found each section, with rank and weight.

        Raises:
            InvalidInput: the query is blank, or `top_n` is not a positive integer.
        """
        check_query(query)
        check_positive(top_n=top_n)
        candidates = self._select_candidates(among)
        encoded_query = self._encode(query)
        # 1. Rank the sections in each view separately.
        ranks_by_view: dict[str, ViewRanks] = {
            view: self._index_by_view[view].rank_sections(encoded_query, candidates) for view in self.views
        }
        # 2. Merge the top 2k/3 sections of every view.
        merged = merge_ranks(ranks_by_view, top_n, self.weights, self.merge)
        sections = [MergedSection(self._section_ids[index], score, ranks) for index, score, ranks in merged]
        # 3. Fill up with sections that no view ranks.
        if self.merge == "fusion":
            unranked = candidates.unranked(index for index, _, _ in merged)[: top_n - len(merged)]
            sections += [MergedSection(self._section_ids[index], 0.0, {}) for index in unranked]
        return Explainable(sections, lambda some: self._explain(some, sections, query, top_n))

    def _select_candidates(self, among: Collection[int] | None) -> _Candidates:
        n_sections = len(self._section_ids)
        chunk_indices = None if among is None else np.fromiter(among, dtype=np.int64)
        section_order = np.arange(n_sections)
        raw = self._index_by_view["raw"]
        if chunk_indices is not None and len(raw.section_indices):
            section_order = raw.section_indices[np.isin(raw.chunk_indices, chunk_indices)]
        return _Candidates(chunk_indices, section_order, np.isin(np.arange(n_sections), section_order))

    def _encode(self, query: str) -> Any:
        """Return the query's embedding, or the query itself for lexical matching."""
        if self._embed is None:
            return query
        return of_unit_length(embedded(getattr(self._embed, "questions", self._embed), [query]))[0]

    def _explain(
        self, some: Sequence[MergedSection], sections: Sequence[MergedSection], query: str, top_n: int
    ) -> Explanations:
        """Explain some sections of a result."""
        rank_by_id = {section.section_id: rank for rank, section in enumerate(sections, 1)}
        return Explanations(
            (
                explain_views(section, rank_by_id[id_], self._name_by_id[id_], top_n, self.weights, self.merge)
                for section in some
                for id_ in [section.section_id]
            ),
            query,
        )


def _name_sections(chunks: Iterable[ViewText | SectionChunk]) -> dict[str, str]:
    """Return a name for each section id: the headings of its first chunk, or the id."""
    name_by_id: dict[str, str] = {}
    for chunk in chunks:
        if chunk.view not in VIEWS:
            raise InvalidInput(
                f"Unknown view {chunk.view!r:.200} of section {chunk.section_id!r:.200}; known: {VIEWS}."
            )
        path = chunk.path if isinstance(chunk, SectionChunk) else ()
        name_by_id.setdefault(chunk.section_id, breadcrumb(path) or chunk.section_id)
    return name_by_id


def _list_section_ids(chunks: Sequence[ViewText | SectionChunk]) -> list[str]:
    """Return the ids of the sections, in the order of their raw views if there are any."""
    all_ids = dict.fromkeys(chunk.section_id for chunk in chunks)
    raw_ids = dict.fromkeys(chunk.section_id for chunk in chunks if chunk.view == "raw")
    if raw_ids and (orphan_ids := all_ids.keys() - raw_ids):
        raise InvalidInput(f"{len(orphan_ids)} sections have no raw view, for example {min(orphan_ids)!r:.200}.")
    return list(raw_ids or all_ids)
