"""Path search as a retriever of either host: what the search asks for, answered from stores and retrievers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.explanation import Explanation, Explanations
from drillrank.explanation.explanations import explains
from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.metadata import describe_details, describe_path
from drillrank.frameworks.sections import deduplicate_sections, warn_missing
from drillrank.frameworks.settings import LinkedRecordSettings
from drillrank.frameworks.shared import CachedValue, Indexes, get_or_compute
from drillrank.llm import FunctionRequest, Handlers, LookupRequest, Requests, RetrievalRequest, Usage
from drillrank.multihop.path_rerank import LinkName, PathRerank, named_links
from drillrank.multihop.prior import check_by_order
from drillrank.multihop.search import Hop, PathSearch
from drillrank.passages import Passage, Ranking, by_id, stable_uuid
from drillrank.rerank.base import RetrievalScores
from drillrank.rerank.promptrank import PromptRank
from drillrank.structure.record_store import RecordStore, get_request, search_request
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.vectors import Embed

Record = TypeVar("Record")
Result = TypeVar("Result")


@dataclass(frozen=True)
class PathHost(Generic[Record]):
    """What a path search needs of its host for one question.

    Attributes:
        access_filter: What may be seen.
        retrieves: Whether there is a retriever.
        docstore: Knows records by id, if there is one; without one, the store behind the retriever knows the given.
        certain: Whether all that the retriever brings is from one store, which is asked for more.
        lookups: From the component that warns if the filter hides all that is found, empty if none does, to the source
            and, for raw records of sections, the store behind it or else the docstore.
        by_id: The docstore, or without one the store behind the retriever, without regard to what may be seen.
        own_id: What the store calls a record.
        names: Of each record a name that no other one has: its id, if it has one.
        passage: From a record and its name to what is ranked.
        event: Sends the host's event of a hop: `query`, `hop`, `paths`, `best_path` and `best_score`.
    """

    access_filter: AccessFilter[Any]
    retrieves: bool
    docstore: object | None
    certain: bool
    lookups: Callable[[str], RecordStore]
    by_id: Callable[[], RecordStore]
    own_id: Callable[[Record], str | None]
    names: Callable[[Sequence[Record]], list[str]]
    passage: Callable[[Record, str], Passage]
    event: Callable[[dict[str, Any]], FunctionRequest]


class GivenPassages:
    """Given passages, by id and by text; made once for all questions."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.by_id = by_id(passages)
        self.by_text = {(given.text, given.title): given.id for given in reversed(self.by_id.values())}


class RecordNames:
    """The records of one search under one name each: that of the given passage that they are, or else their own id.

    So a link to a given passage leads to its record, though the store calls it otherwise, and neither comes twice.

    >>> records = RecordNames(GivenPassages([Passage("It is old.", id="a.md", title="Basel")]))
    >>> records.name(Passage("It is old.", id="17", title="Basel")), records.own_id("a.md")
    ('a.md', '17')
    """

    def __init__(self, given: GivenPassages) -> None:
        self._given = given
        self._names: dict[str, str] = {}  # by the store's id
        self._own_ids: dict[str, str] = {}  # by name
        self._changed: list[str] = []

    def name(self, record: Passage) -> str:
        """What the search calls a record."""
        if record.id not in self._names:
            alike = self._given.by_text.get((record.text, record.title), record.id)
            name = record.id if record.id in self._given.by_id else alike
            if name in self._own_ids:
                name = record.id if record.id not in self._own_ids else stable_uuid(name, record.id)
            self._names[record.id], self._own_ids[name] = name, record.id
            if record.id in self._given.by_id and self._given.by_id[record.id].text != record.text:
                self._changed.append(record.id)
        return self._names[record.id]

    def own_id(self, name: str) -> str:
        """What the store calls it."""
        return self._own_ids.get(name, name)

    def warn(self, missed: Collection[str], warned: WarnOnce) -> None:
        """Say once what of the given passages is not as the store has it.

        Args:
            missed: Ids of given passages that the store was asked for and did not bring.
            warned: What there was a warning about before.
        """
        if changed := warned.new("changed", self._changed):
            warn(
                f"{len(changed)} of the documents given are not what the store holds under their id now, such as "
                f"{changed[0]!r:.200}: the store's text and metadata are used. Give the documents anew."
            )
        if missed and self._given.by_id.keys().isdisjoint(self._names) and warned.new("unknown", ["all"]):
            warn(
                "The store knows none of the documents given by their ids, so that no link leads to them: pass "
                "store=..., one that knows the documents under these ids, or give them the ids that they have in the "
                "store."
            )


@dataclass
class RecordSource(Generic[Record]):
    """Answers the lookups of one search, and remembers the records behind the passages.

    Attributes:
        host: Looks up.
        record_names: What the search calls the records.
        given: The given records that may be seen, by name.
        warned: What there was a warning about before.
        records: Every record met so far, by name: the first one of each, which all of its result is from.
        missed: Names of given records that the store did not bring.
    """

    host: PathHost[Record]
    record_names: RecordNames
    given: Mapping[str, Record] = field(default_factory=dict)
    warned: WarnOnce = field(default_factory=WarnOnce)
    records: dict[str, Record] = field(default_factory=dict)
    missed: set[str] = field(default_factory=set)
    _met: dict[str, Passage] = field(default_factory=dict)

    def handlers(self, query: str) -> Handlers:
        """Who answers a search's requests: the host's retriever and stores, and for hops its event."""
        return {RetrievalRequest: self._retrieve, LookupRequest: self._fetch, Hop: partial(self._send, query)}

    def found(self, question: str, n: int, component: str = "") -> Requests[list[Passage]]:
        """What the retriever brings and may be seen, remembered and turned into passages; of a section one."""
        return self._retrieved(self.host.lookups(component), question, n)

    def _retrieve(self, request: RetrievalRequest) -> Requests[Sequence[Passage]]:
        if not self.host.retrieves:
            return ()
        return (yield from self.found(request.query, request.n))[: request.n]

    def _fetch(self, request: LookupRequest) -> Requests[Sequence[tuple[str, Passage]]]:
        """The records with these ids that there are, as the store has them now."""
        wanted = self._known(request.ids)
        [chunks] = (yield [get_request(self.host.by_id(), wanted)]) if wanted else [()]
        return self._answered(wanted, chunks)

    def _send(self, query: str, hop: Hop) -> Requests[None]:
        """Have the host send its event of a hop; one without paths has none."""
        if hop.paths:
            best = hop.paths[0]
            event = {
                "query": query,
                "hop": hop.number,
                "paths": len(hop.paths),
                "best_path": self.own_ids(best.passage.ids),
                "best_score": best.score,
            }
            yield [self.host.event(event)]

    def own_ids(self, names: Sequence[str]) -> list[str]:
        """What the records are called where they come from."""
        return [self.record_names.own_id(name) for name in names]

    def _retrieved(self, store: RecordStore, question: str, n: int) -> Requests[list[Passage]]:
        host = self.host
        [hits] = yield [search_request(store, question, n)]
        records, missing = yield from deduplicate_sections(hits, store, self.given, is_store_of_hits=host.certain)
        if not host.access_filter.restricts:  # perhaps they are hidden: nothing is said of them
            warn_missing("PromptRank", self.warned.new("raw", missing))
        texts: dict[str, str] = {}
        found = []
        for name, record in zip(host.names(records), records, strict=True):
            passage = host.passage(record, name)
            if texts.setdefault(name, passage.text) != passage.text:  # of another store, under the same id
                passage = replace(passage, id=stable_uuid(name, passage.text))
            found.append(self._remembered(passage, record))
        return found

    def _known(self, ids: Sequence[str]) -> tuple[str, ...]:
        """A store that nobody named need not understand ids that nobody gave."""
        return tuple(ids) if self.host.docstore is not None else tuple(id_ for id_ in ids if id_ in self.given)

    def _answered(self, ids: Sequence[str], found: Sequence[StoredChunk[Record]] | None) -> list[tuple[str, Passage]]:
        if found is None and self.host.docstore is not None:
            docstore = type(self.host.docstore).__name__
            raise InvalidInput(f"{docstore} finds no documents by id: pass another store.")
        if found is None:  # no store that can be asked
            given = ((id_, self.given[id_]) for id_ in ids)
            return [(id_, self._remembered(self.host.passage(record, id_), record)) for id_, record in given]
        named = [(id_, chunk.record) for chunk in found if (id_ := self.host.own_id(chunk.record))]
        self.missed |= {id_ for id_ in ids if id_ in self.given}.difference(id_ for id_, _ in named)
        permitted = set(map(id, self.host.access_filter.filter_fetched(record for _, record in named)))
        seen = ((id_, record) for id_, record in named if id(record) in permitted)
        return [(id_, self._remembered(self.host.passage(record, id_), record)) for id_, record in seen]

    def _remembered(self, passage: Passage, record: Record) -> Passage:
        name = self.record_names.name(passage)
        if name not in self._met:
            self.records[name] = record
            self._met[name] = replace(passage, id=name)
        return self._met[name]


def bind_handlers(requests: Requests[Result], handlers: Handlers) -> Requests[Result]:
    """Run a generator, and turn its requests that have a handler here into calls of the handler.

    >>> from drillrank.llm import run
    >>> def once():
    ...     [results] = yield [RetrievalRequest("who?", 1)]
    ...     return results
    >>> run(bind_handlers(once(), {RetrievalRequest: lambda request: [request.query]}))
    ['who?']
    """
    answers: Sequence[Any] | None = None
    with closing(requests):
        while True:
            try:
                step = requests.send(answers)  # type: ignore[arg-type]  # None starts the generator
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            answers = yield [
                FunctionRequest(partial(handlers[type(request)], request)) if type(request) in handlers else request
                for request in step
            ]


def rank_linked(
    reranker: PathRerank, query: str, passages: Sequence[Passage], scores: RetrievalScores, host: PathHost[Any]
) -> Requests[Ranking[Passage]]:
    """Given passages and those that were reached from them; `details["reached"]` is the record of one of these."""
    source = RecordSource(host, RecordNames(GivenPassages(passages)))
    counted = scores if reranker.counts_first_stage else None
    ranking = yield from bind_handlers(reranker.requests(query, passages, scores=counted), source.handlers(query))
    for item in ranking:
        if item.details["position"] >= len(passages):
            item.details["reached"] = source.records[item.passage.id]
    return ranking


@dataclass(frozen=True, slots=True)
class FoundRecord(Generic[Record]):
    """A record on a scored path.

    Attributes:
        record: As the store has it.
        id: What the store calls it, or else its name.
        score: Of its best path.
        added_metadata: Metadata of ours.
        details: Of the ranking.
        explanation: Why it stands where it stands, if that was asked for.
    """

    record: Record
    id: str
    score: float
    added_metadata: dict[str, Any]
    details: Mapping[str, Any]
    explanation: Explanation | None


def path_rerank(
    settings: LinkedRecordSettings,
    prompt_rank: PromptRank,
    links: Iterable[LinkName],
    embed: Embed | None,
    corpus: Iterable[Passage] = (),
) -> PathRerank:
    """The search with these settings, over links by name; `embed` takes the place of the host's embedding model."""
    sources = named_links(links, settings.links_key)
    return PathRerank(prompt_rank, links=sources, corpus=corpus, embed=embed, settings=settings)


class PathRetrieval(Generic[Record]):
    """What a retriever of paths holds between questions, and does for each.

    Args:
        component: Whose fields name links, and say whether each result is explained.
        prompt_rank: Scores paths.
        host: Of no question.
        embed: From texts to vectors.
        missing_prompt: Asks an LLM what a path lacks.
        fields: Of some records what an index of them is made of, if components of equal fields are to share it.

    Raises:
        InvalidInput: nothing hides records, and two share an id; or the first stage's scores would count, which a
            retriever of paths does not know.
    """

    def __init__(
        self,
        component: Any,
        prompt_rank: PromptRank,
        host: PathHost[Record],
        *,
        embed: Embed | None,
        missing_prompt: Callable[..., str],
        fields: Callable[[Sequence[Record]], Mapping[str, object]] | None = None,
    ) -> None:
        settings, links, records = component.settings, component.links, component.documents
        check_by_order(prompt_rank.prior)
        if isinstance(links, str):
            raise InvalidInput(f"links are a list of names, such as [{links!r:.200}]; not {links!r:.200}.")
        self._passage, self._names = host.passage, host.names(records)
        self._reranks = partial(path_rerank, settings, prompt_rank, tuple(links), embed)
        self._fields, self._component, self._explains = fields, type(component).__name__, component.explain
        self._missing = None if component.llm is None else replace(settings, missing_prompt=missing_prompt)
        self._n_candidates = settings.pool
        self._warned = WarnOnce()
        self._indexes = Indexes(records, self._index)
        if not host.access_filter.restricts:
            self._indexes.get(tuple(range(len(records))))

    def _index(self, seen: tuple[int, ...]) -> CachedValue[tuple[GivenPassages, PathSearch]]:
        """A search of the given records that may be seen."""
        names = [self._names[number] for number in seen]
        records = [self._indexes.records[number] for number in seen]
        for name, copies in Counter(names).items():
            if copies > 1:
                raise InvalidInput(
                    f"Two of the documents share the id {name!r:.200}: give each an id of its own, or filters that "
                    "show one."
                )

        def made() -> tuple[GivenPassages, PathSearch]:
            passages = list(map(self._passage, records, names))
            return GivenPassages(passages), self._reranks(passages).path_search

        return get_or_compute("paths", self._fields and self._fields(records), made)

    def retrieve(
        self, query: str, host: PathHost[Record], top_n: int | None, usage: Usage
    ) -> Requests[list[FoundRecord[Record]]]:
        """Records for a question, best first.

        Args:
            query: The question.
            host: Of this question.
            top_n: Records wanted; None wants all.
            usage: Where the caller counts what the LLM costs that names what a path lacks.
        """
        seen = yield from self._indexes.request_visible(host.access_filter)
        [made] = yield [FunctionRequest(partial(self._indexes.get, seen))]
        given, search = made.value
        records = {self._names[number]: self._indexes.records[number] for number in seen}
        source = RecordSource(host, RecordNames(given), records, self._warned)
        first = yield from source.found(query, self._n_candidates, self._component)
        requests = search.requests(query, top_n, candidates=first, fetched=True, missing=self._missing, usage=usage)
        ranking = yield from bind_handlers(requests, source.handlers(query))
        why = ranking.explain() if explains(self._explains) else None
        return self._found(ranking, source, why)

    def _found(
        self, ranking: Ranking[Passage], source: RecordSource[Record], why: Explanations | None
    ) -> list[FoundRecord[Record]]:
        source.record_names.warn(source.missed, self._warned)
        found = []
        for item, reason in zip(ranking, why or [None] * len(ranking), strict=True):
            [own_id] = source.own_ids([item.passage.id])
            described = describe_path(
                source.own_ids(item.details["path"]), item.score, item.details
            ) | describe_details(item.details)
            record = source.records[item.passage.id]
            found.append(FoundRecord(record, own_id, item.score, described, item.details, reason))
        return found
