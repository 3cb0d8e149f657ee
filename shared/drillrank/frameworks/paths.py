"""Path search over a framework's stores.

For each question, `PathRetrieval` does the following. The search itself is in `drillrank.multihop`: the hops, the prior
of a path, and the rule that stops the search.

1. Select the given records that the caller may see, and the index of their titles and links.
2. Search the source for the first records of paths.
3. After each hop, fetch the records that the best paths link to, by id. Search the source again for links by retrieval
   and for what an LLM names as missing. Report the hop.
4. Return each record on a scored path, with its best path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from drillrank.drilldown.last_used import LastUsed
from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.explanation import Explainable, Explanation
from drillrank.explanation.explanations import explains
from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.metadata import describe_path
from drillrank.frameworks.models import FrameworkEmbedding
from drillrank.frameworks.sections import deduplicate_sections, warn_missing
from drillrank.frameworks.settings import LinkedRecordSettings, PathRetrieverSettings
from drillrank.frameworks.shared import MAX_INDEXES, CachedValue, get_or_compute, list_visible
from drillrank.frameworks.stored_vectors import StoredVectors
from drillrank.likelihood import LanguageModel
from drillrank.llm import FunctionRequest, LookupRequest, Requests, RetrievalRequest, Usage
from drillrank.multihop.link_names import LinkName, default_link_names, named_links
from drillrank.multihop.path_rerank import PathRerank
from drillrank.multihop.prior import check_rank_prior
from drillrank.multihop.result import Hop
from drillrank.multihop.search import PathSearch
from drillrank.multihop.sources import EmptySource
from drillrank.passages import Passage, Ranking, by_id, stable_uuid
from drillrank.rerank.base import RetrievalScores
from drillrank.settings import with_preset
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
class PathStores(ABC, Generic[RecordT]):
    """Stores of a path search for one question. An adapter implements the methods for the records of its framework.

    Attributes:
        access_filter: Filter of the records that the caller may see.
        source: Source of the first records of paths. None if records are reranked without one.
        linked_store: Store that linked records are fetched from by id, without a filter.
        knows_all_ids: True if `linked_store` was named by the user, so that it may be asked for any id. Otherwise it is
            the store behind the source, which is asked for given records only.
        is_one_store: True if all records of the source are from the store that is asked for raw sections.
    """

    access_filter: AccessFilter[Any]
    source: RecordStore | None
    linked_store: RecordStore
    knows_all_ids: bool
    is_one_store: bool

    @abstractmethod
    def own_id(self, record: RecordT) -> str | None:
        """Return the id of a record in the store; None if it has no id."""

    @abstractmethod
    def name_records(self, records: Sequence[RecordT]) -> list[str]:
        """Return the ids of records, or names made from their content."""

    @abstractmethod
    def to_passage(self, record: RecordT, name: str) -> Passage:
        """Return the passage that is ranked for a record. Its id is `name`."""

    @abstractmethod
    def hop_event(self, hop: dict[str, Any]) -> FunctionRequest:
        """Return the request that sends the framework's event of a hop.

        Args:
            hop: `query`, `hop`, `paths`, `best_path` and `best_score`.
        """


# Names of records


class GivenPassages:
    """Passages that were given to a component, by id and by text."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.by_id = by_id(passages)
        self.id_by_text = {(passage.text, passage.title): passage.id for passage in reversed(self.by_id.values())}


class NamedRecords(Generic[RecordT]):
    """Records of one search under their names: the id of the equal given passage, or else the record's own id.

    Thus a link to a given passage leads to its record if the store has another id for it, and neither comes twice.

    Attributes:
        record_by_name: The first record of each name, from which all of its result is.

    >>> records = NamedRecords(GivenPassages([Passage("It is old.", id="a.md", title="Basel")]))
    >>> records.add(Passage("It is old.", id="17", title="Basel"), "a record").id, records.own_ids(["a.md"])
    ('a.md', ['17'])
    """

    def __init__(self, given_passages: GivenPassages) -> None:
        self.record_by_name: dict[str, RecordT] = {}
        self._given_passages = given_passages
        self._passage_by_own_id: dict[str, Passage] = {}
        self._own_id_by_name: dict[str, str] = {}
        self._changed_ids: list[str] = []

    def add(self, passage: Passage, record: RecordT) -> Passage:
        """Add a record, and return its passage with the record's name as id.

        Args:
            passage: Passage of the record, with the record's own id.
            record: The record.
        """
        own_id, given_by_id = passage.id, self._given_passages.by_id
        if own_id not in self._passage_by_own_id:
            id_by_text = self._given_passages.id_by_text.get((passage.text, passage.title), own_id)
            name = own_id if own_id in given_by_id else id_by_text
            if name in self._own_id_by_name:
                name = own_id if own_id not in self._own_id_by_name else stable_uuid(name, own_id)
            if own_id in given_by_id and given_by_id[own_id].text != passage.text:
                self._changed_ids.append(own_id)
            self.record_by_name[name], self._own_id_by_name[name] = record, own_id
            self._passage_by_own_id[own_id] = passage if name == own_id else replace(passage, id=name)
        return self._passage_by_own_id[own_id]

    def own_ids(self, names: Iterable[str]) -> list[str]:
        """Return the ids of records in their store."""
        return [self._own_id_by_name.get(name, name) for name in names]

    def warn(self, missing_ids: Collection[str], warned: WarnOnce) -> None:
        """Warn once if the store has other records than those given.

        Args:
            missing_ids: Ids of given passages that the store was asked for and did not return.
            warned: Warnings that were given before.
        """
        if self._changed_ids and warned.new("changed", self._changed_ids):
            warn(
                "The store has other texts under the ids of some of the documents given. drillrank used the store's "
                "texts and metadata. Give the documents as they are stored now."
            )
        has_none = missing_ids and self._given_passages.by_id.keys().isdisjoint(self._passage_by_own_id)
        if has_none and warned.new("unknown", ["all"]):
            warn(
                "The store has none of the documents given under their ids, so no link leads to them. Pass store=..., "
                "a store with these ids, or give the documents the ids that they have in the store."
            )


# Requests of a search


@dataclass
class StoreSearch(Generic[RecordT]):
    """Answers the requests of one path search with records that the caller may see.

    Attributes:
        query: The question.
        stores: Stores of the search.
        records: Receives the records.
        given_by_name: Given records that the caller may see.
        warned: Warnings that were given before.
        missing_ids: Names of given records that the store did not return.
        vectors: Receives the vectors of records. None if they do not count.
    """

    query: str
    stores: PathStores[RecordT]
    records: NamedRecords[RecordT]
    given_by_name: Mapping[str, RecordT] = field(default_factory=dict)
    warned: WarnOnce = field(default_factory=WarnOnce)
    missing_ids: set[str] = field(default_factory=set)
    vectors: StoredVectors | None = None

    def run(self, requests: Requests[Result]) -> Requests[Result]:
        """Run a path search. Its requests for passages become calls of the stores; others are passed on."""
        answers: Sequence[Any] | None = None
        with closing(requests):
            while True:
                try:
                    step = requests.send(answers)  # type: ignore[arg-type]  # None starts the generator
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]
                answers = yield list(map(self._as_store_request, step))

    def _as_store_request(self, request: Any) -> Any:
        if isinstance(request, RetrievalRequest):
            return FunctionRequest(partial(self.retrieve, request.query, request.n, is_limited=True))
        if isinstance(request, LookupRequest):
            return FunctionRequest(partial(self._fetch, request.ids))
        if not isinstance(request, Hop):
            return request
        if not request.paths:
            return FunctionRequest(lambda: None)
        best_path = request.paths[0]
        return self.stores.hop_event(
            {
                "query": self.query,
                "hop": request.number,
                "paths": len(request.paths),
                "best_path": self.records.own_ids(best_path.passage.ids),
                "best_score": best_path.score,
            }
        )

    def retrieve(self, query: str, n: int, *, is_limited: bool = False) -> Requests[list[Passage]]:
        """Return the passages that the source finds, one for each section.

        Args:
            query: The query.
            n: Number of passages to ask for.
            is_limited: True to return at most `n` passages of a retriever that returns more.
        """
        stores = self.stores
        if stores.source is None:
            return []
        [hits] = yield [search_request(stores.source, query, n)]
        chunks, deleted_ids = yield from deduplicate_sections(
            hits, stores.source, self.given_by_name, is_store_of_hits=stores.is_one_store
        )
        if deleted_ids and not stores.access_filter.restricts:  # a warning would reveal that hidden sections exist
            warn_missing("PromptRank", self.warned.new("raw", deleted_ids))
        text_by_name: dict[str, str] = {}
        passages = []
        names = stores.name_records([chunk.record for chunk in chunks])
        for name, chunk in zip(names, chunks, strict=True):
            passage = stores.to_passage(chunk.record, name)
            if text_by_name.setdefault(name, passage.text) != passage.text:  # two stores with the same id
                passage = replace(passage, id=stable_uuid(name, passage.text))
            passages.append(self.records.add(passage, chunk.record))
        if self.vectors is not None:
            self.vectors.add_question(query, read_question_vector(stores.source, query))
            # The vector of a view that represents its section is of another text.
            raw = [(chunk, passage) for chunk, passage in zip(chunks, passages, strict=True) if chunk.is_raw]
            yield from self._read_vectors(stores.source, raw)
        return passages[:n] if is_limited else passages

    def _fetch(self, requested_ids: Sequence[str]) -> Requests[list[tuple[str, Passage]]]:
        """Return the passages with these ids as the store has them now, with the ids."""
        stores = self.stores
        # A store that the user did not name need not understand ids that are not of given records.
        ids = [id_ for id_ in requested_ids if stores.knows_all_ids or id_ in self.given_by_name]
        if not ids:
            return []
        [chunks] = yield [get_request(stores.linked_store, ids)]
        if chunks is None:
            if stores.knows_all_ids:
                raise InvalidInput("store finds no documents by id. Pass another store.")
            given = [(id_, self.given_by_name[id_]) for id_ in ids]
            return [(id_, self.records.add(stores.to_passage(record, id_), record)) for id_, record in given]
        fetched = [(id_, chunk) for chunk in chunks if (id_ := stores.own_id(chunk.record))]
        self.missing_ids |= {id_ for id_ in ids if id_ in self.given_by_name}.difference(id_ for id_, _ in fetched)
        permitted = set(map(id, stores.access_filter.filter_fetched(chunk.record for _, chunk in fetched)))
        visible = [(id_, chunk) for id_, chunk in fetched if id(chunk.record) in permitted]
        passages = [self.records.add(stores.to_passage(chunk.record, id_), chunk.record) for id_, chunk in visible]
        chunks_and_passages = [(chunk, passage) for (_, chunk), passage in zip(visible, passages, strict=True)]
        yield from self._read_vectors(stores.linked_store, chunks_and_passages)
        return [(id_, passage) for (id_, _), passage in zip(visible, passages, strict=True)]

    def _read_vectors(
        self, store: RecordStore, chunks_and_passages: Sequence[tuple[StoredChunk[RecordT], Passage]]
    ) -> Requests[None]:
        """Keep the vectors of passages, if vectors count."""
        if self.vectors is not None:
            chunks = [chunk for chunk, _ in chunks_and_passages]
            [vectors] = yield [FunctionRequest(partial(read_chunk_vectors, store, chunks))]
            self.vectors.add([passage for _, passage in chunks_and_passages], vectors)


# Reranking


def build_path_rerank(component: Any, embed: Embed | None) -> PathRerank:
    """Return the path reranker of a `PromptRankRerank`. With a source, each path also leads to what that finds."""
    settings: LinkedRecordSettings = with_preset(component.settings, component.preset)
    links = default_link_names(settings.preset) if component.links is None else component.links
    return PathRerank(
        settings.prompt_rank(component.language_model, component.prior),
        links=named_links(links if component.source is None else (*links, "retrieval"), settings.links_key),
        embed=embed,
        settings=settings,
    )


def rank_linked(
    reranker: PathRerank, query: str, passages: Sequence[Passage], scores: RetrievalScores, stores: PathStores[Any]
) -> Requests[Ranking[Passage]]:
    """Rank given passages and those that are reached from them.

    `details["reached"]` of a result that was not given is its record.
    """
    records: NamedRecords[Any] = NamedRecords(GivenPassages(passages))
    first_stage_scores = scores if reranker.counts_first_stage else None
    requests = reranker.requests(query, passages, scores=first_stage_scores)
    ranking = yield from StoreSearch(query, stores, records).run(requests)
    for item in ranking:
        if item.details["position"] >= len(passages):
            item.details["reached"] = records.record_by_name[item.passage.id]
    return Explainable(ranking, ranking.why)


# Retrieval


@dataclass(frozen=True, slots=True)
class PathResultRecord(Generic[RecordT]):
    """Record on a scored path.

    Attributes:
        record: The record as the store has it.
        id: Id of the record in the store, or else its name.
        score: Score of its best path.
        added_metadata: Metadata that drillrank adds.
        explanation: Explanation of its rank, if the component explains.
    """

    record: RecordT
    id: str
    score: float
    added_metadata: dict[str, Any]
    explanation: Explanation | None


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
        model: Language model that scores paths.
        stores: Stores, for no question in particular.
        settings: Settings of the search, with the preset of the component.
        links: Kinds of links, by name. None takes those of the preset, or else those that texts state.
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
        model: LanguageModel,
        stores: PathStores[RecordT],
        *,
        settings: PathRetrieverSettings,
        links: Sequence[LinkName] | None,
        embed: Embed | None,
        index_embed: Embed | None = None,
        missing_prompt: Callable[..., str] | None,
        explain: bool,
        index_fields: Callable[[Sequence[RecordT]], Mapping[str, object]] | None = None,
    ) -> None:
        check_rank_prior(settings.prior)
        if isinstance(links, str):
            raise InvalidInput(f"links must be a list of names, got {links!r:.200}. Write [{links!r:.200}].")
        if embed is None and settings.uses_index_vectors and isinstance(index_embed, FrameworkEmbedding):
            embed = StoredVectors(index_embed)
        self._records, self._names = records, stores.name_records(records)
        self._prompt_rank, self._settings = settings.prompt_rank(model, settings.prior), settings
        self._links = named_links(default_link_names(settings.preset) if links is None else links, settings.links_key)
        self._embed = embed
        self._missing = None if missing_prompt is None else replace(settings, missing_prompt=missing_prompt)
        self._explain, self._index_fields = explain, index_fields
        self._warned = WarnOnce()
        self._indexes: LastUsed[tuple[int, ...], CachedValue[PathIndex]] = LastUsed(MAX_INDEXES)
        if not stores.access_filter.restricts:
            self._index(tuple(range(len(records))), stores)

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
        # 1. Select the given records that the caller may see.
        visible = list_visible(self._records, stores.access_filter)
        index = self._index(visible, stores)
        given_by_name = {self._names[i]: self._records[i] for i in visible}
        records: NamedRecords[RecordT] = NamedRecords(index.given_passages)
        store_search = StoreSearch(query, stores, records, given_by_name, self._warned, vectors=index.vectors)

        # 2. Search the source for the first records of paths.
        candidates = yield from store_search.retrieve(query, self._settings.pool)

        # 3. Search paths.
        requests = index.search.requests(
            query, top_n, candidates=candidates, fetched=True, missing=self._missing, usage=usage
        )
        ranking = yield from store_search.run(requests)

        # 4. Return each record with its best path.
        records.warn(store_search.missing_ids, self._warned)
        explanations = ranking.explain() if explains(self._explain) else [None] * len(ranking)
        results = []
        for item, explanation in zip(ranking, explanations, strict=True):
            [own_id] = records.own_ids([item.passage.id])
            added = describe_path(records.own_ids(item.details["path"]), item.score, item.details)
            record = records.record_by_name[item.passage.id]
            results.append(PathResultRecord(record, own_id, item.score, added, explanation))
        return results

    def _index(self, visible: tuple[int, ...], stores: PathStores[RecordT]) -> PathIndex:
        """Return the index of the visible given records."""
        return self._indexes.make(visible, lambda: self._build_index(visible, stores)).value

    def _build_index(self, visible: tuple[int, ...], stores: PathStores[RecordT]) -> CachedValue[PathIndex]:
        names = [self._names[index] for index in visible]
        records = [self._records[index] for index in visible]
        for name, n_copies in Counter(names).items():
            if n_copies > 1:
                raise InvalidInput(
                    f"Two of the documents share the id {name!r:.200}. Give each an id of its own, or filters that "
                    "show one."
                )

        def build() -> PathIndex:
            passages = list(map(stores.to_passage, records, names))
            embed = self._embed
            if isinstance(embed, StoredVectors) and not _read_given_vectors(stores.linked_store, passages, embed):
                embed = None
            source, settings = EmptySource(), self._settings
            search = PathSearch(
                self._prompt_rank, passages, links=self._links, first_stage=source, embed=embed, settings=settings
            )
            return PathIndex(GivenPassages(passages), search, embed if isinstance(embed, StoredVectors) else None)

        return get_or_compute("paths", self._index_fields and self._index_fields(records), build)


def _read_given_vectors(store: RecordStore, passages: Sequence[Passage], vectors: StoredVectors) -> bool:
    """Read the vectors of given passages from the store. Return True if it has all of them."""
    if passages:
        passage_by_id = {passage.id: passage for passage in passages}
        chunks = [chunk for chunk in store.get(list(passage_by_id)) or () if chunk.id in passage_by_id]
        vectors.add([passage_by_id[chunk.id] for chunk in chunks], read_chunk_vectors(store, chunks))
    return vectors.has_all(passages)
