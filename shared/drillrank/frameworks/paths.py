"""Path search over a framework's stores: answers the requests of the search with records that the caller may see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.explanation import Explainable, Explanation, Explanations
from drillrank.explanation.explanations import explains
from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.metadata import describe_details, describe_path
from drillrank.frameworks.models import FrameworkEmbedding
from drillrank.frameworks.sections import deduplicate_sections, warn_missing
from drillrank.frameworks.settings import LinkedRecordSettings, PathRetrieverSettings
from drillrank.frameworks.shared import CachedValue, Indexes, get_or_compute
from drillrank.frameworks.stored_vectors import StoredVectors
from drillrank.llm import FunctionRequest, Handlers, LookupRequest, Requests, RetrievalRequest, Usage
from drillrank.multihop.link_names import LinkName, named_links
from drillrank.multihop.path_rerank import PathRerank
from drillrank.multihop.prior import check_rank_prior
from drillrank.multihop.result import Hop, PathResult
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage, Ranking, by_id, stable_uuid
from drillrank.rerank.base import RetrievalScores
from drillrank.rerank.promptrank import PromptRank
from drillrank.structure.record_store import (
    RecordStore,
    get_request,
    read_chunk_vectors,
    read_question_vector,
    search_request,
)
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.vectors import Embed

RecordT = TypeVar("RecordT")
Result = TypeVar("Result")


@dataclass(frozen=True)
class PathStores(Generic[RecordT]):
    """Stores of a path search for one question, and the framework's view of their records.

    Attributes:
        access_filter: Filter of the records that the caller may see.
        source: Source of the first records of paths. None if records are reranked without one.
        linked_store: Store that linked records are fetched from by id, without a filter. None if there is none.
        knows_all_ids: True if `linked_store` was named by the user, so that it may be asked for any id. Otherwise it is
            the store behind the source, which is asked for given records only.
        is_one_store: True if all records of the source are from the store that is asked for raw sections.
        own_id: Function from a record to its id in the store. None if it has no id.
        name_records: Function from records to their ids, or to names made from their content.
        to_passage: Function from a record and its name to the passage that is ranked.
        hop_event: Function from a hop's data (`query`, `hop`, `paths`, `best_path`, `best_score`) to the request that
            sends the framework's event.
    """

    access_filter: AccessFilter[Any]
    source: RecordStore | None
    linked_store: RecordStore | None
    knows_all_ids: bool
    is_one_store: bool
    own_id: Callable[[RecordT], str | None]
    name_records: Callable[[Sequence[RecordT]], list[str]]
    to_passage: Callable[[RecordT, str], Passage]
    hop_event: Callable[[dict[str, Any]], FunctionRequest]


class GivenPassages:
    """Passages that were given to a component, by id and by text."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.by_id = by_id(passages)
        self.id_by_text = {(passage.text, passage.title): passage.id for passage in reversed(self.by_id.values())}


class RecordNames:
    """Names of the records of one search: the id of the equal given passage, or else the record's own id.

    Thus a link to a given passage leads to its record if the store has another id for it, and neither comes twice.

    >>> records = RecordNames(GivenPassages([Passage("It is old.", id="a.md", title="Basel")]))
    >>> records.name(Passage("It is old.", id="17", title="Basel")), records.own_id("a.md")
    ('a.md', '17')
    """

    def __init__(self, given_passages: GivenPassages) -> None:
        self._given_passages = given_passages
        self._name_by_own_id: dict[str, str] = {}
        self._own_id_by_name: dict[str, str] = {}
        self._changed_ids: list[str] = []

    def name(self, record: Passage) -> str:
        """Return the name of a record in the search."""
        own_id = record.id
        if own_id not in self._name_by_own_id:
            id_by_text = self._given_passages.id_by_text.get((record.text, record.title), own_id)
            name = own_id if own_id in self._given_passages.by_id else id_by_text
            if name in self._own_id_by_name:
                name = own_id if own_id not in self._own_id_by_name else stable_uuid(name, own_id)
            self._name_by_own_id[own_id], self._own_id_by_name[name] = name, own_id
            if own_id in self._given_passages.by_id and self._given_passages.by_id[own_id].text != record.text:
                self._changed_ids.append(own_id)
        return self._name_by_own_id[own_id]

    def own_id(self, name: str) -> str:
        """Return the id of a record in the store."""
        return self._own_id_by_name.get(name, name)

    def warn(self, missing_ids: Collection[str], warned: WarnOnce) -> None:
        """Warn once if the store has other records than those given.

        Args:
            missing_ids: Ids of given passages that the store was asked for and did not return.
            warned: Warnings that were given before.
        """
        if warned.new("changed", self._changed_ids):
            warn(
                "The store has other texts under the ids of some of the documents given. drillrank used the store's "
                "texts and metadata. Give the documents as they are stored now."
            )
        if (
            missing_ids
            and self._given_passages.by_id.keys().isdisjoint(self._name_by_own_id)
            and warned.new("unknown", ["all"])
        ):
            warn(
                "The store has none of the documents given under their ids, so no link leads to them. Pass store=..., "
                "a store with these ids, or give the documents the ids that they have in the store."
            )


@dataclass
class PathRecords(Generic[RecordT]):
    """Answers the requests of one path search, and keeps the records behind its passages.

    Attributes:
        stores: Stores of the search.
        record_names: Names of the records in the search.
        given_by_name: Given records that the caller may see.
        warned: Warnings that were given before.
        record_by_name: The first record of each name, from which all of its result is.
        missing_ids: Names of given records that the store did not return.
        vectors: Receives the vectors of records. None if they do not count.
    """

    stores: PathStores[RecordT]
    record_names: RecordNames
    given_by_name: Mapping[str, RecordT] = field(default_factory=dict)
    warned: WarnOnce = field(default_factory=WarnOnce)
    record_by_name: dict[str, RecordT] = field(default_factory=dict)
    missing_ids: set[str] = field(default_factory=set)
    vectors: StoredVectors | None = None
    _passage_by_name: dict[str, Passage] = field(default_factory=dict)

    def handlers(self, query: str) -> Handlers:
        """Return the functions that answer a search's requests."""
        return {RetrievalRequest: self._retrieve, LookupRequest: self._fetch, Hop: partial(self._send_event, query)}

    def search(self, question: str, n: int) -> Requests[list[Passage]]:
        """Return the passages that the source finds, one for each section."""
        stores = self.stores
        assert stores.source is not None
        [hits] = yield [search_request(stores.source, question, n)]
        chunks, deleted_ids = yield from deduplicate_sections(
            hits, stores.source, self.given_by_name, is_store_of_hits=stores.is_one_store
        )
        records = [chunk.record for chunk in chunks]
        if not stores.access_filter.restricts:  # a warning would reveal that hidden sections exist
            warn_missing("PromptRank", self.warned.new("raw", deleted_ids))
        text_by_name: dict[str, str] = {}
        passages = []
        for name, record in zip(stores.name_records(records), records, strict=True):
            passage = stores.to_passage(record, name)
            if text_by_name.setdefault(name, passage.text) != passage.text:  # two stores with the same id
                passage = replace(passage, id=stable_uuid(name, passage.text))
            passages.append(self._remember(passage, record))
        if self.vectors is not None:
            self.vectors.add_question(question, read_question_vector(stores.source, question))
            # The vector of a view that represents its section is of another text.
            raw = [(chunk, passage) for chunk, passage in zip(chunks, passages, strict=True) if chunk.is_raw]
            yield from self._read_vectors(stores.source, raw)
        return passages

    def own_ids(self, names: Sequence[str]) -> list[str]:
        """Return the ids of records in their store."""
        return [self.record_names.own_id(name) for name in names]

    def _retrieve(self, request: RetrievalRequest) -> Requests[Sequence[Passage]]:
        if self.stores.source is None:
            return ()
        return (yield from self.search(request.query, request.n))[: request.n]

    def _fetch(self, request: LookupRequest) -> Requests[Sequence[tuple[str, Passage]]]:
        """Return the records with these ids as the store has them now."""
        stores = self.stores
        # A store that the user did not name need not understand ids that are not of given records.
        ids = [id_ for id_ in request.ids if stores.knows_all_ids or id_ in self.given_by_name]
        if not ids:
            return []
        [chunks] = (yield [get_request(stores.linked_store, ids)]) if stores.linked_store is not None else [None]
        if chunks is not None:
            visible = self._permit(ids, chunks)
            passages = [self._remember(stores.to_passage(chunk.record, id_), chunk.record) for id_, chunk in visible]
            if stores.linked_store is not None:
                pairs = zip((chunk for _, chunk in visible), passages, strict=True)
                yield from self._read_vectors(stores.linked_store, list(pairs))
            return [(id_, passage) for (id_, _), passage in zip(visible, passages, strict=True)]
        if stores.knows_all_ids:
            raise InvalidInput("store finds no documents by id. Pass another store.")
        records = ((id_, self.given_by_name[id_]) for id_ in ids)
        return [(id_, self._remember(stores.to_passage(record, id_), record)) for id_, record in records]

    def _read_vectors(
        self, store: RecordStore, passages: Sequence[tuple[StoredChunk[RecordT], Passage]]
    ) -> Requests[None]:
        """Keep the vectors of passages and their chunks, if vectors count."""
        if self.vectors is not None:
            [vectors] = yield [FunctionRequest(partial(read_chunk_vectors, store, [chunk for chunk, _ in passages]))]
            self.vectors.add([passage for _, passage in passages], vectors)

    def _permit(
        self, ids: Sequence[str], chunks: Sequence[StoredChunk[RecordT]]
    ) -> list[tuple[str, StoredChunk[RecordT]]]:
        """Return the fetched chunks that the caller may see, each with its id in the store."""
        fetched = [(id_, chunk) for chunk in chunks if (id_ := self.stores.own_id(chunk.record))]
        self.missing_ids |= {id_ for id_ in ids if id_ in self.given_by_name}.difference(id_ for id_, _ in fetched)
        permitted = set(map(id, self.stores.access_filter.filter_fetched(chunk.record for _, chunk in fetched)))
        return [(id_, chunk) for id_, chunk in fetched if id(chunk.record) in permitted]

    def _send_event(self, query: str, hop: Hop) -> Requests[None]:
        """Send the framework's event of a hop. There is none for a hop without paths."""
        if hop.paths:
            best = hop.paths[0]
            event = {
                "query": query,
                "hop": hop.number,
                "paths": len(hop.paths),
                "best_path": self.own_ids(best.passage.ids),
                "best_score": best.score,
            }
            yield [self.stores.hop_event(event)]

    def _remember(self, passage: Passage, record: RecordT) -> Passage:
        name = self.record_names.name(passage)
        if name not in self._passage_by_name:
            self.record_by_name[name] = record
            self._passage_by_name[name] = replace(passage, id=name)
        return self._passage_by_name[name]


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
    reranker: PathRerank, query: str, passages: Sequence[Passage], scores: RetrievalScores, stores: PathStores[Any]
) -> Requests[Ranking[Passage]]:
    """Rank given passages and those that are reached from them.

    `details["reached"]` of a result that was not given is its record.
    """
    records = PathRecords(stores, RecordNames(GivenPassages(passages)))
    first_stage_scores = scores if reranker.counts_first_stage else None
    requests = reranker.requests(query, passages, scores=first_stage_scores)
    result = yield from bind_handlers(requests, records.handlers(query))
    for item in result:
        if item.details["position"] >= len(passages):
            item.details["reached"] = records.record_by_name[item.passage.id]
    return Explainable(result, result.why)


@dataclass(frozen=True, slots=True)
class PathResultRecord(Generic[RecordT]):
    """Record on a scored path.

    Attributes:
        record: The record as the store has it.
        id: Id of the record in the store, or else its name.
        score: Score of its best path.
        added_metadata: Metadata that drillrank adds.
        details: Details of the ranking.
        explanation: Explanation of its rank, if the component explains.
    """

    record: RecordT
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
    """Return the path reranker with these settings and kinds of links."""
    sources = named_links(links, settings.links_key)
    return PathRerank(prompt_rank, links=sources, corpus=corpus, embed=embed, settings=settings)


def build_path_rerank(component: Any, embed: Embed | None) -> PathRerank:
    """Return the path reranker of a `PromptRankRerank`. With a source, each path also leads to what that finds."""
    settings, links = component.settings, component.links
    links = links if component.source is None else (*links, "retrieval")
    return path_rerank(settings, settings.prompt_rank(component.language_model, component.prior), links, embed)


@dataclass(frozen=True)
class PathIndex:
    """Search of the visible given passages.

    Attributes:
        given_passages: The passages.
        search: Search of paths that lead to them.
        vectors: Vectors of the store that the search embeds with. None if it has another embedding function, or none.
    """

    given_passages: GivenPassages
    search: PathSearch
    vectors: StoredVectors | None


class PathRetrieval(Generic[RecordT]):
    """Retrieval of paths of records, for any number of questions.

    Args:
        records: Records that may be linked to, although the source does not find them.
        prompt_rank: Scorer of paths.
        stores: Stores, for no question in particular.
        settings: Settings of the search.
        links: Kinds of links, by name.
        embed: Function from texts to vectors. None takes the vectors of the index, if it has one for each of the
            `records`, so that no record has to be embedded, and else matches terms alone.
        index_embed: Embedding model of the index behind the source. None without one.
        missing_prompt: Prompt that asks an LLM for what a path lacks. None asks no LLM.
        explain: True if each result has an explanation.
        index_fields: Function from records to the fields that an index of them depends on. Components with equal
            fields share the index. None: they do not share.

    Raises:
        InvalidInput: Two records that are not hidden share an id; `links` is a string; or the prior would need scores
            of the first stage, which a retriever of paths does not know.
    """

    def __init__(
        self,
        records: Sequence[RecordT],
        prompt_rank: PromptRank,
        stores: PathStores[RecordT],
        *,
        settings: PathRetrieverSettings,
        links: Sequence[LinkName],
        embed: Embed | None,
        index_embed: Embed | None = None,
        missing_prompt: Callable[..., str] | None,
        explain: bool,
        index_fields: Callable[[Sequence[RecordT]], Mapping[str, object]] | None = None,
    ) -> None:
        check_rank_prior(prompt_rank.prior)
        if isinstance(links, str):
            raise InvalidInput(f"links must be a list of names, got {links!r:.200}. Write [{links!r:.200}].")
        self._to_passage, self._names = stores.to_passage, stores.name_records(records)
        self._build_reranker = partial(path_rerank, settings, prompt_rank, tuple(links))
        if embed is None and settings.use_index_vectors and isinstance(index_embed, FrameworkEmbedding):
            embed = StoredVectors(index_embed)
        self._embed, self._linked_store = embed, stores.linked_store
        self._index_fields, self._explain = index_fields, explain
        self._n_candidates = settings.pool
        self._missing = None if missing_prompt is None else replace(settings, missing_prompt=missing_prompt)
        self._warned = WarnOnce()
        self._indexes = Indexes(records, self._index)
        if not stores.access_filter.restricts:
            self._indexes.get(tuple(range(len(records))))

    def _index(self, visible: tuple[int, ...]) -> CachedValue[PathIndex]:
        """Return a search of the visible given records."""
        names = [self._names[index] for index in visible]
        records = [self._indexes.records[index] for index in visible]
        for name, n_copies in Counter(names).items():
            if n_copies > 1:
                raise InvalidInput(
                    f"Two of the documents share the id {name!r:.200}. Give each an id of its own, or filters that "
                    "show one."
                )

        def build() -> PathIndex:
            passages = list(map(self._to_passage, records, names))
            embed = self._embed
            if isinstance(embed, StoredVectors) and not self._has_vectors(embed, passages):
                embed = None
            vectors = embed if isinstance(embed, StoredVectors) else None
            return PathIndex(GivenPassages(passages), self._build_reranker(embed, passages).path_search, vectors)

        return get_or_compute("paths", self._index_fields and self._index_fields(records), build)

    def _has_vectors(self, vectors: StoredVectors, passages: Sequence[Passage]) -> bool:
        """Read the vectors of given passages from the store. Return True if it has all of them."""
        if not passages:
            return True
        store = self._linked_store
        chunks = (store.get([passage.id for passage in passages]) if store is not None else None) or ()
        passage_by_id = {passage.id: passage for passage in passages}
        stored = [chunk for chunk in chunks if chunk.id in passage_by_id]
        if store is not None:
            vectors.add([passage_by_id[chunk.id] for chunk in stored], read_chunk_vectors(store, stored))
        return vectors.has_all(passages)

    def retrieve_requests(
        self, query: str, stores: PathStores[RecordT], top_n: int | None, usage: Usage
    ) -> Requests[list[PathResultRecord[RecordT]]]:
        """Return records for a question, best first. A generator for `run` and `arun`.

        Args:
            query: The question.
            stores: Stores for this question.
            top_n: Maximum number of records; None for all on scored paths.
            usage: Counts the tokens and calls of the LLM that names what a path lacks.
        """
        visible = self._indexes.list_visible(stores.access_filter)
        path_index = self._indexes.get(visible).value
        given_by_name = {self._names[i]: self._indexes.records[i] for i in visible}
        names = RecordNames(path_index.given_passages)
        records = PathRecords(stores, names, given_by_name, self._warned, vectors=path_index.vectors)
        candidates = yield from records.search(query, self._n_candidates)
        requests = path_index.search.requests(
            query, top_n, candidates=candidates, fetched=True, missing=self._missing, usage=usage
        )
        ranking = yield from bind_handlers(requests, records.handlers(query))
        explanations = ranking.explain() if explains(self._explain) else None
        return self._build_results(ranking, records, explanations)

    def _build_results(
        self, ranking: PathResult[Passage], records: PathRecords[RecordT], explanations: Explanations | None
    ) -> list[PathResultRecord[RecordT]]:
        records.record_names.warn(records.missing_ids, self._warned)
        results = []
        for item, explanation in zip(ranking, explanations or [None] * len(ranking), strict=True):
            [own_id] = records.own_ids([item.passage.id])
            path_metadata = describe_path(records.own_ids(item.details["path"]), item.score, item.details)
            results.append(
                PathResultRecord(
                    records.record_by_name[item.passage.id],
                    own_id,
                    item.score,
                    path_metadata | describe_details(item.details),
                    item.details,
                    explanation,
                )
            )
        return results
