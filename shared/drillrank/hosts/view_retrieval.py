"""Retrieval over views, as both hosts do it: of sections in memory, or out of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Literal

from drillrank.errors import InvalidInput, WarnOnce
from drillrank.explanation import Explanation
from drillrank.explanation.explanations import explains
from drillrank.hosts.guarding import Guarding
from drillrank.hosts.keys import own
from drillrank.hosts.lookups import Store, answered
from drillrank.hosts.merged_views import Merged, MergedViews, merged_in_memory, tell_foreign
from drillrank.hosts.models import HostEmbedding
from drillrank.hosts.settings import check_switch
from drillrank.hosts.shared import Indexes, Shared, shared
from drillrank.hosts.stored_sections import Given, StoredSection, by_view, raw_sections
from drillrank.hosts.view_rankings import texts_of
from drillrank.llm import Requests
from drillrank.settings import check_one_of
from drillrank.text import check_language
from drillrank.vectors import Embed
from drillrank.views import (
    VIEWS,
    Expansion,
    Merge,
    MergedSection,
    MultiViewIndex,
    RetrieverName,
    View,
    check_views,
    check_weights,
    explain_views,
)

Searched = Literal["store", "memory"] | list[View] | None
"""What is searched: a store by metadata, for each view; an index in memory; the views that have a retriever each; or
None for a single retriever, whose results are ranked by their view."""


def check_searched(component: object, documents: object, source: object) -> None:
    """Refuse a component that has nothing to search.

    Raises:
        InvalidInput: says what to give.
    """
    if source is None and documents is None:
        raise InvalidInput(f"{type(component).__name__} has nothing to search: give it documents, or a source.")


class ViewRetrieval:
    """What a retriever over views holds between questions, and looks up for each.

    Args:
        retriever: As for `MultiViewIndex`.
        weights: As for `MultiViewIndex`.
        language: As for `MultiViewIndex`.
        embed: As for `MultiViewIndex`.
        merge: As for `MultiViewIndex`.
        views: As for `MultiViewIndex`.
        expand: What comes after each section found: `"neighbours"`, `"parent"` or nothing.
        explains: Whether each result is explained.
        sections: What was given to it.
        texts: What is indexed of each, where an index in memory is searched.
        searched: See above.
        read: Reads a host's record, or hit.
        name: Of the parameter that sections were given as.
        maker: What cuts sections, in this host.
        filtered: Whether the component has a filter of its own.

    Raises:
        InvalidInput: a setting cannot be used, `embed` is given where no index in memory is searched, or nothing hides
            sections in memory, and two are one with different texts.
    """

    def __init__(
        self,
        sections: Sequence[StoredSection],
        texts: Callable[[], Sequence[str]],
        searched: Searched,
        read: Callable[[Any], StoredSection],
        *,
        name: str,
        maker: str,
        filtered: bool,
        retriever: RetrieverName = "bm25",
        weights: Mapping[str, float] | None = None,
        language: str = "english",
        embed: Embed | None = None,
        merge: Merge = "fusion",
        views: Sequence[View] = VIEWS,
        expand: Expansion | None = None,
        explains: bool = False,
    ) -> None:
        check_one_of(RetrieverName, retriever=retriever)
        check_switch(explain=explains)
        check_weights(weights)
        check_language(language)
        check_one_of(Merge, merge=merge)
        check_views(views)
        if embed is not None and searched != "memory":
            raise InvalidInput("embed ranks what is indexed in memory; a source searches with its own embedding.")
        if expand is not None:
            check_one_of(Expansion, expand=expand)
        self._weights, self._merge, self._expand, self._explains = weights, merge, expand, explains
        self._views = views
        self._sections = sections
        self._searched = [view for view in searched if view in views] if isinstance(searched, list) else searched
        self._read = read
        self._name = name
        self._maker = maker
        self._told = WarnOnce()
        if searched == "memory":
            tell_foreign(sections, maker, self._told)
            indexed, owners = texts_of(sections, texts(), views)
            missing = {one.section_id for one in indexed} - {one.section_id for one in indexed if one.view == "raw"}
            if missing:
                raise InvalidInput(f"{len(missing)} sections have no raw view, for example {min(missing)!r}.")
            self._embed = embed
            self._settings = {"retriever": retriever, "weights": weights, "language": language, "merge": merge}
            self._indexed = list(zip(indexed, owners, strict=True))
            self._indexes = Indexes([section.record for section in sections], self._index)
            if not filtered:
                self._indexes.of(tuple(range(len(sections))))

    def _index(self, seen: tuple[int, ...]) -> tuple[dict[str, StoredSection], Shared[MultiViewIndex]]:
        """The raw sections that may be seen, and an index of their views."""
        raw, there = raw_sections([self._sections[number] for number in seen], self._name), set(seen)
        shown = [one for one, owner in self._indexed if owner in there and one.section_id in raw]
        settings: dict[str, Any] = {**self._settings, "views": self._views}
        model = self._embed.model if isinstance(self._embed, HostEmbedding) else self._embed
        index = shared(
            "views",
            {"texts": shown, "embed": model, **settings},
            lambda: MultiViewIndex(shown, embed=self._embed, **settings),
        )
        return raw, index

    def retrieve(
        self, query: str, store: Store, guard: Guarding[Any], top_n: int
    ) -> Requests[list[tuple[Merged, Explanation | None]]]:
        """The sections found, best first, each once, and after each those around it; each with its explanation.

        There is none where nobody asked for it, nor of what was not found itself.

        Args:
            query: The question.
            store: Answers look-ups.
            guard: What may be seen.
            top_n: Sections wanted.
        """
        found: list[Merged] = yield from answered(self._requests(query, top_n, guard), store.handlers)
        ranks = count(1)
        explained = explains(self._explains)
        return [(merged, self._why(*merged, ranks, top_n) if explained else None) for merged in found]

    def _why(
        self, section: StoredSection, merged: MergedSection, origin: str | None, ranks: Iterator[int], top_n: int
    ) -> Explanation | None:
        if origin is not None:
            return None
        name = str(own(section.record.metadata).get("section_path") or section.section_id)
        return explain_views(merged, next(ranks), name, top_n, self._weights, self._merge)

    def _requests(self, query: str, top_n: int, guard: Guarding[Any]) -> Requests[list[Merged]]:
        searched = self._searched
        if searched == "memory":
            return (yield from self._in_memory(query, top_n, guard))
        views = MergedViews(
            top_n=top_n,
            weights=self._weights,
            expand=self._expand,
            source=searched,
            read=self._read,
            given=Given(by_view(self._sections, guard.visible), self._name, guard.allowed, self._told),
            restricted=guard.restriction,
            maker=self._maker,
            told=self._told,
            merge=self._merge,
            views=self._views,
        )
        return (yield from views.lookups())

    def _in_memory(self, query: str, top_n: int, guard: Guarding[Any]) -> Requests[list[Merged]]:
        seen = yield from self._indexes.seen(guard)
        raw, index = self._indexes.of(seen)
        return merged_in_memory(index.made.search(query, top_n), raw, self._expand, guard.restricts)
