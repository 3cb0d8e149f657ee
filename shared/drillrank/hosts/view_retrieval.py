"""Retrieval over views, as both hosts do it: of sections in memory, or out of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Literal

from drillrank.explanation import Explanation
from drillrank.explanation.on_request import explains
from drillrank.hosts.calls import Calls
from drillrank.hosts.guarding import Guarding
from drillrank.hosts.keys import own
from drillrank.hosts.lookups import Lookups, Store, looked_up
from drillrank.hosts.merged_views import Merged, MergedViews, merged_in_memory, tell_foreign
from drillrank.hosts.settings import ViewRetrieverSettings
from drillrank.hosts.shared import Shared, shared
from drillrank.hosts.stored_sections import Given, StoredSection, by_view, raw_sections
from drillrank.hosts.view_rankings import texts_of
from drillrank.once import Told
from drillrank.views import MergedSection, MultiViewIndex, View
from drillrank.views.merging import explain_views

Searched = Literal["store", "memory"] | list[View] | None
"""What is searched: a store by metadata, for each view; an index in memory; the views that have a retriever each; or
None for a single retriever, whose results are ranked by their view."""


class ViewRetrieval:
    """What a retriever over views holds between questions, and looks up for each.

    Args:
        settings: Of the component.
        sections: What was given to it.
        texts: What is indexed of each, where an index in memory is searched.
        searched: See above.
        read: Reads a host's record, or hit.
        name: Of the parameter that sections were given as.
        maker: What cuts sections, in this host.
        filtered: Whether the component has a filter of its own.
        resolved: Whether the source's retrievers replace views by a copy of their section.

    Raises:
        InvalidInput: nothing hides sections in memory, and two are one with different texts.
    """

    def __init__(
        self,
        settings: ViewRetrieverSettings,
        sections: Sequence[StoredSection],
        texts: Callable[[], Sequence[str]],
        searched: Searched,
        read: Callable[[Any], StoredSection],
        *,
        name: str,
        maker: str,
        filtered: bool,
        resolved: bool = False,
    ) -> None:
        self._weights, self._expand, self._explains = settings.weights, settings.expand, settings.explain
        self._sections = sections
        self._searched = searched
        self._read = read
        self._name = name
        self._maker = maker
        self._filtered = filtered
        self._resolved = resolved
        self._told = Told()
        if searched == "memory":
            self._raw = {} if filtered else raw_sections(sections, name)
            tell_foreign(sections, maker, self._told)
            indexed, self._owners = texts_of(sections, texts())
            fields = {name: getattr(settings, name) for name in ("retriever", "weights", "language")}
            fields["texts"] = indexed
            self._index: Shared[MultiViewIndex] = shared(
                "views", fields, lambda: MultiViewIndex.configured(settings, indexed)
            )

    def retrieve(
        self, query: str, store: Store, guard: Guarding[Any], top_n: int
    ) -> Calls[list[tuple[Merged, Explanation | None]]]:
        """The sections found, best first, each once, and after each those around it; each with its explanation.

        There is none where nobody asked for it, nor of what was not found itself.

        Args:
            query: The question.
            store: Answers look-ups.
            guard: What may be seen.
            top_n: Sections wanted.
        """
        found: list[Merged] = yield looked_up(self._lookups(query, top_n, guard), store)
        ranks = count(1)
        explained = explains(self._explains)
        return [(merged, self._why(*merged, ranks, top_n) if explained else None) for merged in found]

    def _why(
        self, section: StoredSection, merged: MergedSection, origin: str | None, ranks: Iterator[int], top_n: int
    ) -> Explanation | None:
        if origin is not None:
            return None
        name = str(own(section.record.metadata).get("section_path") or section.section_id)
        return explain_views(merged, next(ranks), name, top_n, self._weights)

    def _lookups(self, query: str, top_n: int, guard: Guarding[Any]) -> Lookups[list[Merged]]:
        searched = self._searched
        if searched == "memory":
            return self._in_memory(query, top_n, guard)
        views = MergedViews(
            top_n=top_n,
            weights=self._weights,
            expand=self._expand,
            source=searched,
            read=self._read,
            given=Given(by_view(self._sections, guard.visible), self._name, guard.allowed, self._told),
            restricted=guard.restriction,
            resolved=self._resolved,
            maker=self._maker,
            told=self._told,
        )
        return (yield from views.lookups())

    def _in_memory(self, query: str, top_n: int, guard: Guarding[Any]) -> list[Merged]:
        raw, among = self._raw, None
        if self._filtered:
            seen = {number for number, section in enumerate(self._sections) if guard.kept([section.record])}
            among = {number for number, owner in enumerate(self._owners) if owner in seen}
            raw = raw_sections([self._sections[number] for number in sorted(seen)], self._name)
        found = self._index.made.search(query, top_n, among)
        return merged_in_memory(found, raw, self._expand, self._filtered)
