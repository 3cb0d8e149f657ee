"""Multi-view retrieval in memory: one index for each group of sections that a caller may see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from drillrank.drilldown.last_used import LastUsed
from drillrank.errors import InvalidInput
from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.models import FrameworkEmbedding
from drillrank.frameworks.sections import index_raw_sections
from drillrank.frameworks.shared import MAX_INDEXES, CachedValue, get_or_compute, list_visible
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.vectors import Embed
from drillrank.views import (
    VIEWS,
    Merge,
    MergedSection,
    MultiViewIndex,
    RetrieverName,
    View,
    ViewText,
    check_index_settings,
)

RecordT = TypeVar("RecordT")


@dataclass(frozen=True)
class ViewSearchSettings:
    """Settings of a search in several views: see `drillrank.views.MultiViewIndex`.

    Attributes:
        views: Views to search.
        weights: Weight of each view. None takes the best of every view.
        merge: `"fusion"` or `"union"`.
        retriever: `"bm25"` or `"tfidf"`, for an index in memory.
        language: Language of the stemmer, for an index in memory.

    Raises:
        InvalidInput: A setting is invalid.
    """

    views: Sequence[View] = VIEWS
    weights: Mapping[str, float] | None = None
    merge: Merge = "fusion"
    retriever: RetrieverName = "bm25"
    language: str = "english"

    def __post_init__(self) -> None:
        check_index_settings(**vars(self))


class InMemoryViews(Generic[RecordT]):
    """Indexes of sections in memory.

    A caller searches an index of exactly the sections that it may see, so that no score depends on a hidden section.

    Args:
        sections: Views of sections.
        texts: Text to index of each of the sections.
        settings: Settings of the indexes.
        embed: Function from texts to vectors. None: lexical matching.
        is_filtered: True if searches come with an access filter. If not, the index of all sections is built now.

    Raises:
        InvalidInput: A section has no raw view, or two sections have the same id and different texts.
    """

    def __init__(
        self,
        sections: Sequence[StoredChunk[RecordT]],
        texts: Sequence[str],
        settings: ViewSearchSettings,
        embed: Embed | None,
        *,
        is_filtered: bool = False,
    ) -> None:
        self._sections = sections
        self._records = [section.record for section in sections]
        self._settings = settings
        self._embed = embed
        self._indexed_texts = list_view_texts(sections, texts, settings.views)
        indexed = [view_text for view_text, _ in self._indexed_texts]
        ids_with_raw = {view_text.section_id for view_text in indexed if view_text.view == "raw"}
        missing_ids = {view_text.section_id for view_text in indexed} - ids_with_raw
        if missing_ids:
            raise InvalidInput(
                f"{len(missing_ids)} sections have no raw view, for example {min(missing_ids)!r:.200}. Pass all views "
                "that the splitter returned."
            )
        self._indexes: LastUsed[
            tuple[int, ...], tuple[dict[str, StoredChunk[RecordT]], CachedValue[MultiViewIndex]]
        ] = LastUsed(MAX_INDEXES)
        if not is_filtered:
            self._index(tuple(range(len(sections))))

    def search(
        self, question: str, top_n: int, access_filter: AccessFilter[Any]
    ) -> tuple[Sequence[MergedSection], dict[str, StoredChunk[RecordT]]]:
        """Return the best sections, and all raw sections that may be seen by id."""
        raw_by_id, index = self._index(list_visible(self._records, access_filter))
        return index.value.search(question, top_n), raw_by_id

    def _index(
        self, visible_indices: tuple[int, ...]
    ) -> tuple[dict[str, StoredChunk[RecordT]], CachedValue[MultiViewIndex]]:
        """Return the visible raw sections by id, and an index of their views."""
        return self._indexes.make(visible_indices, lambda: self._build_index(visible_indices))

    def _build_index(
        self, visible_indices: tuple[int, ...]
    ) -> tuple[dict[str, StoredChunk[RecordT]], CachedValue[MultiViewIndex]]:
        raw_by_id = index_raw_sections([self._sections[section_index] for section_index in visible_indices])
        visible = set(visible_indices)
        view_texts = [
            view_text
            for view_text, section_index in self._indexed_texts
            if section_index in visible and view_text.section_id in raw_by_id
        ]
        model = self._embed.model if isinstance(self._embed, FrameworkEmbedding) else self._embed
        fields = {"texts": view_texts, "embed": model, **vars(self._settings)}
        index = get_or_compute(
            "views", fields, lambda: MultiViewIndex(view_texts, embed=self._embed, **vars(self._settings))
        )
        return raw_by_id, index


def list_view_texts(
    sections: Sequence[StoredChunk[Any]], texts: Iterable[str], views: Sequence[View]
) -> list[tuple[ViewText, int]]:
    """Return the texts to index, each with the index of its section.

    A chunk of another splitter is indexed in each view by the same text.

    Args:
        sections: Views of sections, and chunks of other splitters.
        texts: Text to index of each of them.
        views: Views to search.
    """
    known_views = {"raw", views[0], *(section.view for section in sections)}
    all_views: Sequence[Any] = [view for view in VIEWS if view in known_views]
    return [
        (ViewText(section.id, view, text), section_index)  # type: ignore[arg-type]  # one of the views
        for section_index, (section, text) in enumerate(zip(sections, texts, strict=True))
        for view in (all_views if section.view is None else [section.view])
    ]
