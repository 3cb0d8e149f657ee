"""Views, as both hosts do them: rankings of a store's views merged, sections in memory, documents cut into views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import InitVar, dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.explanation import Explanation
from drillrank.explanation.explanations import explains
from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.metadata import prefixed, result_metadata, user_metadata, with_result_metadata
from drillrank.frameworks.models import FrameworkEmbedding
from drillrank.frameworks.pages import read_pages, with_pages_of_span
from drillrank.frameworks.sections import (
    LINKS_BY_EXPANSION,
    check_searched,
    fetch_raw_sections,
    first_raw_by_id,
    index_raw_sections,
    warn_missing,
)
from drillrank.frameworks.settings import SplitterSettings, check_switch
from drillrank.frameworks.shared import CachedValue, Indexes, get_or_compute
from drillrank.llm import LLM, FunctionRequest, Requests
from drillrank.passages import stable_uuid
from drillrank.settings import check_one_of
from drillrank.structure import breadcrumb, parse_document
from drillrank.structure.record_store import RecordStore, search_request
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.vectors import Embed
from drillrank.views import (
    VIEWS,
    Expansion,
    MergedSection,
    MultiViewChunker,
    MultiViewIndex,
    SectionChunk,
    View,
    ViewText,
    ViewWriter,
    check_index_settings,
    expanded,
    explain_views,
    merge_views,
)

Rankings = dict[str, list[StoredChunk[Any]]]
"""By view the records of it, best first."""

_Identity = tuple[str, "str | None"]

_OF_SECTIONS = VIEWS[1:]  # what only sections have; anything else stands by its own text


def oversampled(k: int) -> int:
    """How many records are searched for without a view, so that `k` are seldom not among them that are none.

    Twice the views of `k` sections, and room for chance where `k` is small.

    >>> oversampled(5)
    80
    """
    return 2 * len(VIEWS) * k + 50


def of_store(
    store: RecordStore, question: str, k: int, views: Sequence[View] = VIEWS
) -> Requests[tuple[Rankings, list[StoredChunk[Any]]]]:
    """The `k` best records of some views in a store, and all that the search without a view found.

    One search, one each of the keywords and the summaries where these are wanted, and one more where fewer than `k`
    raw texts are in sight.

    Args:
        store: Store that obeys limits.
        question: The question.
        k: Records of each view.
        views: Those that are ranked.
    """
    of_sections = [view for view in _OF_SECTIONS if view in views]

    def of_view(view: View) -> FunctionRequest:
        return search_request(store, question, k, {prefixed("view"): view})

    near, *others = yield [search_request(store, question, oversampled(k)), *map(of_view, of_sections)]
    there = set(map(_identity, near))  # all that there is, unless an approximate index brings less
    whole = len(near) < oversampled(k) and all(_identity(one) in there for more in others for one in more)
    found: Rankings = {view: _only(near, view) for view in views}
    for view, more in zip(of_sections, others, strict=True):
        found[view] += _only(more, view)
    if "raw" in views and not whole and len(found["raw"]) + len(_only(near, None)) < k:
        [answer] = yield [of_view("raw")]
        found["raw"] += _only(answer, "raw")
    return _ranked(found, near, views, k), list(near)


def of_hits(sections: Iterable[StoredChunk[Any]], views: Sequence[View] = VIEWS) -> Rankings:
    """The rankings of a single one by view; other splitters' chunks are in each of them."""
    near = list(sections)
    there = dict.fromkeys(section.view for section in near if section.view in views)
    return _ranked({str(view): _only(near, view) for view in there}, near, views)


def texts_of(
    sections: Sequence[StoredChunk[Any]], texts: Iterable[str], views: Sequence[View] = VIEWS
) -> tuple[list[ViewText], list[int]]:
    """What an index in memory is made of, and for each of it the number of its section.

    Args:
        sections: As they were given.
        texts: What is to be indexed of each.
        views: Those that are searched.
    """
    there = {"raw", views[0], *(section.view for section in sections)}
    made: list[ViewText] = []
    owners: list[int] = []
    for number, (section, text) in enumerate(zip(sections, texts, strict=True)):
        for view in [view for view in VIEWS if view in there] if section.view is None else [section.view]:
            made.append(ViewText(section.id, view, text))  # type: ignore[arg-type]  # one of the views
            owners.append(number)
    return made, owners


def _ranked(
    rankings: Rankings, near: Sequence[StoredChunk[Any]], views: Sequence[View], k: int | None = None
) -> Rankings:
    """Rankings of views with other splitters' chunks, which have no views: each stands in all by its own text.

    In one alone they would be behind every section that two views found, near or not.

    Args:
        rankings: Of each view.
        near: What was found together, best first, the chunks among it.
        views: Those that are ranked.
        k: Records of each view.
    """
    third_party = _only(near, None)
    location = {_identity(section): number for number, section in reversed(list(enumerate(near)))}
    if third_party:
        rankings = {views[0]: rankings.get(views[0], []), **{view: found for view, found in rankings.items() if found}}
    ranked: Rankings = {}
    for view, found in rankings.items():
        in_order = sorted([*third_party, *found], key=lambda section: location.get(_identity(section), len(near)))
        ranked[view] = list({_identity(section): section for section in reversed(in_order)}.values())[::-1][:k]
    return ranked


def _only(sections: Iterable[StoredChunk[Any]], view: str | None) -> list[StoredChunk[Any]]:
    """Those of a view: a user may have its name under the key, and a store may heed no filter."""
    return [section for section in sections if section.view == view]


def _distinct(found: Iterable[StoredChunk[Any]]) -> Iterator[StoredChunk[Any]]:
    """Other splitters' chunks of two stores may share an id: what has another text gets another one."""
    texts: dict[str, str] = {}
    for one in found:
        alike = one.view is not None or texts.setdefault(one.id, one.text) == one.text
        yield one if alike else replace(one, id=stable_uuid(one.id, one.text))


def _identity(section: StoredChunk[Any]) -> _Identity:
    return section.id, section.view


Merged = tuple[StoredChunk[Any], MergedSection, str | None]
"""A section, how it was found, and for one that was not found the id of the section that it stands around."""


@dataclass(eq=False)
class ViewRetrieval:
    """What a retriever over views holds between questions, and looks up for each.

    Where there is no source, an index in memory is searched; a store by metadata, for each view; of several retrievers
    each is asked for its view; and the results of a single one are ranked by their view.

    Args:
        component: Whose fields say what is searched and how, as for `MultiViewIndex`; and what comes after each section
            found: `"neighbours"`, `"parent"` or nothing.
        sections: What was given to it.
        texts: What is indexed of each, where an index in memory is searched.
        maker: What cuts sections, in this host.
        embed: As for `MultiViewIndex`.

    Raises:
        InvalidInput: a setting cannot be used, `embed` is given where no index in memory is searched, or nothing hides
            sections in memory, and two are one with different texts.
    """

    component: InitVar[Any]
    sections: Sequence[StoredChunk[Any]]
    texts: InitVar[Callable[[], Sequence[str]]]
    maker: str
    embed: Embed | None

    def __post_init__(self, component: Any, texts: Callable[[], Sequence[str]]) -> None:
        check_searched(component)
        names = ("retriever", "weights", "language", "merge", "views")
        self._settings: dict[str, Any] = {name: getattr(component, name) for name in names}
        check_index_settings(**self._settings)
        check_switch(explain=component.explain)
        if component.expand is not None:
            check_one_of(Expansion, expand=component.expand)
        self._weights, self._merge, self._views = component.weights, component.merge, component.views
        self._expand, self._explains = component.expand, component.explain
        self._in_memory = component.source is None
        self._by_view: list[View] | None = None
        if isinstance(component.source, Mapping):
            if not component.source or not set(component.source) <= set(VIEWS):
                raise InvalidInput(f"The views of source are some of {VIEWS}; not {list(component.source)!r:.100}.")
            self._by_view = [view for view in component.source if view in component.views]
        self._warned = WarnOnce()
        self._indexes = Indexes([section.record for section in self.sections], self._index)
        if self.embed is not None and not self._in_memory:
            raise InvalidInput("embed ranks what is indexed in memory; a source searches with its own embedding.")
        if self._in_memory:
            self._warn_third_party(self.sections)
            indexed, owners = texts_of(self.sections, texts(), component.views)
            missing = {one.section_id for one in indexed} - {one.section_id for one in indexed if one.view == "raw"}
            if missing:
                raise InvalidInput(f"{len(missing)} sections have no raw view, for example {min(missing)!r:.200}.")
            self._indexed = list(zip(indexed, owners, strict=True))
            if component.filters is None:
                self._indexes.get(tuple(range(len(self.sections))))

    def _index(self, seen: tuple[int, ...]) -> tuple[dict[str, StoredChunk[Any]], CachedValue[MultiViewIndex]]:
        """The raw sections that may be seen, and an index of their views."""
        raw, there = index_raw_sections([self.sections[number] for number in seen]), set(seen)
        shown = [one for one, owner in self._indexed if owner in there and one.section_id in raw]
        model = self.embed.model if isinstance(self.embed, FrameworkEmbedding) else self.embed
        made_of = {"texts": shown, "embed": model, **self._settings}
        return raw, get_or_compute("views", made_of, lambda: MultiViewIndex(shown, embed=self.embed, **self._settings))

    def retrieve(
        self, query: str, store: RecordStore, access_filter: AccessFilter[Any], top_n: int
    ) -> Requests[list[tuple[Merged, Explanation | None]]]:
        """The sections found, best first, each once, and after each those around it; each with its explanation.

        There is none where nobody asked for it, nor of what was not found itself.

        Args:
            query: The question.
            store: Answers look-ups.
            access_filter: What may be seen.
            top_n: Sections wanted.
        """
        if self._in_memory:
            raw, index = self._indexes.get((yield from self._indexes.request_visible(access_filter)))
            sections = index.value.search(query, top_n)
            if not sections and access_filter.restricts:
                _warn("nothing was found: the index holds nothing, or nothing that the filter shows")
            found = _with_those_around(sections, raw, self._around(sections, raw))
        else:
            found = yield from self._looked_up(query, store, top_n, access_filter)
        ranks = count(1)
        explained = explains(self._explains)
        return [(merged, self._why(*merged, ranks, top_n) if explained else None) for merged in found]

    def _why(
        self, section: StoredChunk[Any], merged: MergedSection, origin: str | None, ranks: Iterator[int], top_n: int
    ) -> Explanation | None:
        if origin is not None:
            return None
        name = str(result_metadata(section.record.metadata).get("section_path") or section.id)
        return explain_views(merged, next(ranks), name, top_n, self._weights, self._merge)

    def _looked_up(
        self, query: str, store: RecordStore, top_n: int, access_filter: AccessFilter[Any]
    ) -> Requests[list[Merged]]:
        """Sections out of a store or retrievers, their raw records and those around them looked up."""
        hits, near = yield from self._hits(query, store, top_n)
        found = [section for of_view in hits.values() for section in of_view]
        self._warn_third_party(found)
        ids = {section.id for section in found}
        known = first_raw_by_id((*found, *near), ids)
        store_answers = True
        if wanted := [section.id for section in found if section.id not in known]:
            fetched, store_answers = yield from fetch_raw_sections(store, wanted)
            known |= fetched if store_answers else self._given(wanted, access_filter, found)
        missing = [id_ for id_ in dict.fromkeys(wanted) if id_ not in known]
        if not (store_answers and access_filter.restricts):  # perhaps they are hidden: nothing is said of them
            where = "is no longer in the store" if store_answers else "cannot be looked up: pass documents, too"
            warn_missing("MultiViewRetriever", self._warned.new("raw", missing), where)
        rankings = {view: [section.id for section in of_view if section.id in known] for view, of_view in hits.items()}
        sections = merge_views(rankings, top_n, self._weights, self._merge)
        if not sections and (access_filter.restricts or (not found and store.obeys_limits)):
            hidden = ", or nothing that the filter shows" if access_filter.restricts else ""
            _warn(f"nothing was found: the source holds nothing{hidden}")
        around = self._around(sections, known)
        if wanted := [id_ for ids in around.values() for id_ in ids if id_ not in known]:
            fetched, store_answers = yield from fetch_raw_sections(store, wanted)
            known |= fetched if store_answers else self._given(wanted, access_filter, found)
            documents = {
                known[section_id].document: id_
                for section_id, ids in around.items()
                for id_ in ids
                if id_ not in known and not access_filter.restricts
            }
            if new := self._warned.new("around", documents):
                _warn(
                    f"sections around those found are not at hand in {len(new)} documents, for example "
                    f"{documents[new[0]]!r:.200}. They are left out"
                )
        return _with_those_around(sections, known, around)

    def _hits(self, query: str, store: RecordStore, top_n: int) -> Requests[tuple[Rankings, list[StoredChunk[Any]]]]:
        """The rankings, and what else was found."""
        if store.obeys_limits:
            return (yield from of_store(store, query, top_n, self._views))
        if self._by_view is None:
            [answer] = yield [search_request(store, query, top_n)]
            return of_hits(_distinct(answer), self._views), []
        answers = yield [search_request(store, query, top_n, {prefixed("view"): view}) for view in self._by_view]
        return dict(zip(map(str, self._by_view), answers, strict=True)), []

    def _given(
        self, ids: Iterable[str], access_filter: AccessFilter[Any], found: Iterable[StoredChunk[Any]]
    ) -> dict[str, StoredChunk[Any]]:
        """Raw sections that were given beside a source, where no store can be asked; none of another version."""
        seen = set(map(id, access_filter.filter_fetched(section.record for section in self.sections)))
        given = {(one.id, one.view): one for one in self.sections if id(one.record) in seen}
        outdated = {
            section.document
            for section in found
            if (given_section := given.get((section.id, section.view)) or given.get((section.id, "raw")))
            and _differ(given_section, section)
        }
        stand_ins = [given[id_, "raw"] for id_ in ids if (id_, "raw") in given]
        return {section.id: section for section in stand_ins if section.document not in outdated}

    def _around(self, found: Iterable[MergedSection], known: Mapping[str, StoredChunk[Any]]) -> dict[str, list[str]]:
        around = ((one.section_id, known[one.section_id].links) for one in found)
        return {
            id_: [links[name] for name in LINKS_BY_EXPANSION[self._expand] if name in links] for id_, links in around
        }

    def _warn_third_party(self, sections: Iterable[StoredChunk[Any]]) -> None:
        if any(section.view is None for section in sections) and self._warned.new("foreign", [self.maker]):
            _warn(
                f"there are chunks that {self.maker} did not make: they are ranked as they are, each by its text "
                f"alone, without keywords and summaries. Cut the documents with {self.maker} to have these"
            )


def _differ(given: StoredChunk[Any], found: StoredChunk[Any]) -> bool:
    """Whether two records of a section are of different versions: hosts add metadata, but do not change them."""
    metadata = found.record.metadata
    return (given.view == found.view and given.view_text != found.view_text) or any(
        isinstance(value, str | int) and given.view == found.view and metadata.get(key, value) != value
        for key, value in given.record.metadata.items()
    )


def _with_those_around(
    sections: Sequence[MergedSection], known: Mapping[str, StoredChunk[Any]], around: Mapping[str, list[str]]
) -> list[Merged]:
    return [
        (known[section.section_id], _as_matched(section, known[section.section_id]), origin)
        for section, origin in expanded(sections, around.__getitem__)
        if section.section_id in known
    ]


def _as_matched(section: MergedSection, stored: StoredChunk[Any]) -> MergedSection:
    """Of another splitter's chunk, which stands in all rankings, the view that it has."""
    if stored.view is not None or section.best_rank is None:
        return section
    return replace(section, ranks={"raw": section.ranks.get("raw", section.best_rank)})


def _warn(what: str) -> None:
    warn(f"MultiViewRetriever: {what}.")


def chunker_of(component: Any, llm: LLM | None, who: str, cache: MutableMapping[str, str]) -> MultiViewChunker:
    """What cuts documents as a component's fields say.

    Args:
        component: Of the host.
        llm: Writes keywords and summaries; None computes them.
        who: Tells the LLM's answers from another's.
        cache: Remembers what the LLM wrote.

    Raises:
        InvalidInput: a field cannot be used, or a namespace is said twice.
    """
    space, key, settings = component.namespace, component.namespace_key, component.settings
    if space is not None and key is not None:
        raise InvalidInput("A namespace is given as namespace or read from the metadata under namespace_key, not both.")
    for name, value in (("namespace", space), ("namespace_key", key)):
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise InvalidInput(f"{name} is a string that is not blank, or None; not {value!r:.200}.")
    return MultiViewChunker(
        component.views,
        llm=llm,
        chunking=component.chunking,
        max_tokens=component.max_tokens,
        min_tokens=component.min_tokens,
        context=component.context,
        summarizer=component.summarizer,
        writer=ViewWriter(who, cache, on_failure=settings.on_failure, max_calls=settings.max_calls),
        settings=settings,
    )


def namespace_of(component: Any, metadata: Mapping[str, Any], document: str) -> str | None:
    """The namespace of a document: the one given, or what its metadata hold under the key.

    Args:
        component: Of the host.
        metadata: Of the document.
        document: What an error calls it.

    Raises:
        InvalidInput: the document has no string or number under the key, or a blank one.
    """
    if component.namespace_key is None:
        return component.namespace  # type: ignore[no-any-return]
    value = metadata.get(component.namespace_key)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise InvalidInput(
            f"Document {document!r:.200} has {value!r:.200} under {component.namespace_key!r:.200}, its namespace_key: "
            "a name is needed there, so that no two namespaces are mixed."
        )
    return str(value)


def in_namespace(document_id: str, namespace: str | None) -> str:
    """What tells a document from all others of all namespaces; its id, where it is in none.

    >>> in_namespace("guide.md", None)
    'guide.md'
    >>> in_namespace("guide.md", "a") == in_namespace("guide.md", "b")
    False
    """
    return document_id if namespace is None else stable_uuid("namespace", namespace, document_id)


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document to be cut.

    Attributes:
        name: Different from all others of its namespace.
        namespace: None if there is none.
        text: The document.
        metadata: The host's, which say what format it has and what pages.
    """

    name: str
    namespace: str | None
    text: str
    metadata: Mapping[str, Any]

    def metadata_of(
        self, chunk: SectionChunk, settings: SplitterSettings, *, placed: bool = True, **names: Any
    ) -> dict[str, Any]:
        """The user's metadata, at the piece's pages, and ours.

        Args:
            chunk: The piece.
            settings: Of the splitter.
            placed: Whether it is a document, in which offsets count, and not a piece of one.
            names: What else of ours the host writes, by bare names.
        """
        start, end = (chunk.start, chunk.end) if placed else (None, None)
        section_metadata: dict[str, Any] = {
            "section_path": breadcrumb(chunk.path, settings.separator),
            "section_level": chunk.level,
            "section_id": chunk.section_id,
            "view": chunk.view,
            "start": start,
            "end": end,
            "namespace": self.namespace,
        }
        return with_result_metadata(
            with_pages_of_span(user_metadata(self.metadata), read_pages(self.metadata), start, end),
            **section_metadata | names,
        )


def split(
    chunker: MultiViewChunker, documents: Iterable[SourceDocument], show_progress: bool
) -> Requests[list[Sequence[SectionChunk]]]:
    """The views of each document."""
    arguments = [_parsed(document) for document in documents], show_progress
    [chunks] = yield [FunctionRequest(partial(chunker.chunks, *arguments), partial(chunker.achunks, *arguments))]
    return chunks  # type: ignore[no-any-return]


def _parsed(document: SourceDocument) -> tuple[str, Any]:
    id_ = in_namespace(document.name, document.namespace)
    return id_, parse_document(document.text, metadata=document.metadata)
