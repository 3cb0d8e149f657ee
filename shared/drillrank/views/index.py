"""Retrieval over the views of section chunks, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from drillrank.errors import InvalidInput
from drillrank.passages import check_query
from drillrank.retrieval import BM25Index, TextIndex, TfidfIndex, top
from drillrank.views.chunks import VIEWS, SectionChunk
from drillrank.views.merging import merge_views

_RETRIEVERS: dict[str, type[BM25Index] | type[TfidfIndex]] = {"bm25": BM25Index, "tfidf": TfidfIndex}


@dataclass(frozen=True, slots=True)
class SectionHit:
    """A section found by a search.

    Attributes:
        chunk: The section's raw chunk.
        score: As in `MergedSection`: sum of 1 / (60 + rank) over the views that match; 0 where none does.
        ranks: Rank of the section in each view that matches the query, 1 for the best.
    """

    chunk: SectionChunk
    score: float
    ranks: Mapping[str, int]


class MultiViewIndex:
    r"""Sections, ranked in each view separately and merged (MC-indexing, section 3.3).

    A view ranks only chunks that score above 0. Sections that no view ranks come last, in order, so that a search
    returns `k` sections wherever there are as many.

    Args:
        chunks: The chunks of any number of documents, as `section_chunks` makes them.
        retriever: `"bm25"` or `"tfidf"`, over the texts of one view each.

    Raises:
        InvalidInput: the retriever is unknown, an id occurs twice, or a chunk's raw chunk is missing.

    >>> from drillrank.structure import parse_document
    >>> from drillrank.views import section_chunks
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> index = MultiViewIndex(section_chunks(parse_document(text), "animals"))
    >>> [(hit.chunk.path, hit.ranks) for hit in index.search("Who sings?", k=2)]
    [(('Whales',), {'raw': 1, 'keywords': 1, 'summary': 1}), (('Foxes',), {})]
    """

    def __init__(self, chunks: Iterable[SectionChunk], retriever: Literal["bm25", "tfidf"] = "bm25") -> None:
        if retriever not in _RETRIEVERS:
            raise InvalidInput(f"Unknown retriever {retriever!r}. Choose one of: {', '.join(_RETRIEVERS)}.")
        chunks = list(chunks)
        self._raw = {chunk.id: chunk for chunk in chunks if chunk.view == "raw"}
        if len({chunk.id for chunk in chunks}) < len(chunks):
            raise InvalidInput("Two chunks have the same id: give every document an id of its own.")
        orphans = [chunk.id for chunk in chunks if chunk.section_id not in self._raw]
        if orphans:
            raise InvalidInput(
                f"{len(orphans)} chunks lack the raw chunk of their section, the first being {orphans[0]}."
            )
        self._section_ids: dict[str, list[str]] = {}
        self._indexes: dict[str, TextIndex] = {}
        for view in VIEWS:
            of_view = [chunk for chunk in chunks if chunk.view == view]
            self._section_ids[view] = [chunk.section_id for chunk in of_view]
            self._indexes[view] = _RETRIEVERS[retriever]([chunk.text for chunk in of_view])

    def search(self, query: str, k: int = 5) -> list[SectionHit]:
        """The best `k` sections for a query, best first.

        Raises:
            InvalidInput: the query is blank, or `k` is not a positive integer.
        """
        check_query(query)
        merged = merge_views({view: self._ranking(view, query) for view in VIEWS}, k)
        hits = {found.section_id: SectionHit(self._raw[found.section_id], found.score, found.ranks) for found in merged}
        for section_id, chunk in self._raw.items():
            if len(hits) == k:
                break
            hits.setdefault(section_id, SectionHit(chunk, 0.0, {}))
        return list(hits.values())

    def _ranking(self, view: str, query: str) -> list[str]:
        scores = self._indexes[view].scores(query)
        best_first = top(scores, int((scores > 0).sum()))
        return [self._section_ids[view][position] for position in best_first]
