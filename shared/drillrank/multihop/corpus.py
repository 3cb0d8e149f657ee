"""A collection that is not in this process's memory, with what a path search must know of all of it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from drillrank.collection_statistics import CollectionStatistics
from drillrank.multihop.link_prior import Titles
from drillrank.multihop.lookups import Source


@runtime_checkable
class Corpus(Source, Titles, Protocol):
    """Passages elsewhere, as `PathSearch(first_stage=...)` takes them.

    `retrieve` and `fetch` bring passages; `statistics` and `mentions` (of titles) are those of the whole collection,
    so that a path has the score that it would have with all passages in one process.
    """

    @property
    def statistics(self) -> CollectionStatistics:
        """Of all titled texts (`Passage.titled_text`)."""
        ...
