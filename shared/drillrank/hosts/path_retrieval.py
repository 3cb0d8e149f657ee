"""Path search as a retriever of either host: records given beside a retriever, and the search for one question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from drillrank.drilldown.last_used import LastUsed
from drillrank.errors import WarnOnce
from drillrank.explanation import Explanation, Explanations
from drillrank.explanation.explanations import explains
from drillrank.hosts.equal_ids import EqualIds
from drillrank.hosts.lookups import answered
from drillrank.hosts.notes import notes, path_notes
from drillrank.hosts.path_records import PathHost, RecordSource
from drillrank.hosts.settings import LinkedRecordSettings
from drillrank.hosts.shared import Shared, shared
from drillrank.llm import Requests, Usage
from drillrank.multihop.path_rerank import LinkName, PathRerank, named_links
from drillrank.multihop.prior import check_by_order
from drillrank.multihop.record_names import GivenPassages, RecordNames
from drillrank.multihop.search import PathSearch, Scope
from drillrank.passages import Passage, Ranking
from drillrank.rerank.promptrank import PromptRank
from drillrank.vectors import Embed

Record = TypeVar("Record")

_TENANTS = 16  # for whom of those whose records have equal ids an index is kept


@dataclass(frozen=True, slots=True)
class FoundRecord(Generic[Record]):
    """A record on a scored path.

    Attributes:
        record: As the store has it.
        id: What the store calls it, or else its name.
        score: Of its best path.
        notes: Metadata of ours.
        details: Of the ranking.
        explanation: Why it stands where it stands, if that was asked for.
    """

    record: Record
    id: str
    score: float
    notes: dict[str, Any]
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
        settings: Of the component.
        prompt_rank: Scores paths.
        records: What was given to it.
        host: Of no question.
        restricts: Whether anything may not be seen.
        links: By name.
        embed: From texts to vectors.
        explains: Whether each result is explained.
        missing_prompt: Asks an LLM what a path lacks; None asks nobody.
        given_as: Name of the parameter that the records were given as.
        component: That warns.
        fields: Of some records what an index of them is made of, if components of equal fields are to share it.

    Raises:
        InvalidInput: nothing hides records, and two share an id; or the first stage's scores would count, which a
            retriever of paths does not know.
    """

    def __init__(
        self,
        settings: LinkedRecordSettings,
        prompt_rank: PromptRank,
        records: Sequence[Record],
        host: PathHost[Record],
        *,
        links: Iterable[LinkName],
        embed: Embed | None,
        explains: bool,
        restricts: Callable[[], bool],
        missing_prompt: Callable[..., str] | None,
        given_as: str,
        component: str,
        fields: Callable[[Iterable[Record]], Mapping[str, object]] | None = None,
    ) -> None:
        check_by_order(prompt_rank.prior)
        self._records = records
        self._component = component
        self._explains = explains
        self._fields = fields
        self._passage = host.passage
        self._reranks = partial(path_rerank, settings, prompt_rank, tuple(links), embed)
        self._missing = None if missing_prompt is None else replace(settings, missing_prompt=missing_prompt)
        self._names = host.names(records)
        self._equal_ids = EqualIds(self._names, given_as)
        self._told = WarnOnce()
        self._prepared: LastUsed[tuple[int, ...], Shared[tuple[GivenPassages, PathSearch]]] = LastUsed(_TENANTS)
        if not (self._equal_ids and restricts()):
            self._search_of(range(len(records)))

    def retrieve(
        self, query: str, host: PathHost[Record], top_n: int | None, usage: Usage, *, asked: Any = None
    ) -> Requests[list[FoundRecord[Record]]]:
        """Records for a question, best first.

        Args:
            query: The question.
            host: Of this question.
            top_n: Records wanted; None wants all.
            usage: Where the caller counts what the LLM costs that names what a path lacks.
            asked: The question as the host asks its retriever, if that is not the string.
        """
        source, search = self._source(host)
        first = yield from source.found(query if asked is None else asked, self._component)
        scope = Scope(None if len(source.given) == len(self._records) else source.given.keys(), fetched=True)
        requests = search.requests(query, top_n, candidates=first, scope=scope, missing=self._missing, usage=usage)
        ranking = yield from answered(requests, source.handlers(query))
        why = ranking.explain() if explains(self._explains) else None
        return self._found(ranking, source, why)

    def _source(self, host: PathHost[Record]) -> tuple[RecordSource[Record], PathSearch]:
        """Answers the lookups of one question, of what may be seen; and the search that asks them."""
        allowed = set(map(id, host.guard.allowed(self._records))) if self._records else set()
        shown = {number for number, record in enumerate(self._records) if id(record) in allowed}
        given, search = self._search_of(shown)
        seen = {self._names[number]: self._records[number] for number in sorted(shown)}
        return RecordSource(host, RecordNames(given, seen), seen, self._told), search

    def _search_of(self, shown: Collection[int]) -> tuple[GivenPassages, PathSearch]:
        """Of all that was given, but for the hidden ones under the id of another."""
        chosen = self._equal_ids.chosen(shown)

        def made() -> tuple[GivenPassages, PathSearch]:
            passages = [self._passage(self._records[number], self._names[number]) for number in chosen]
            return GivenPassages(passages), self._reranks(passages).path_search

        def prepared() -> Shared[tuple[GivenPassages, PathSearch]]:
            made_of = None if self._fields is None else self._fields([self._records[number] for number in chosen])
            return shared("paths", made_of, made)

        return self._prepared.make(chosen, prepared).made

    def _found(
        self, ranking: Ranking[Passage], source: RecordSource[Record], why: Explanations | None
    ) -> list[FoundRecord[Record]]:
        source.record_names.warn(source.missed, self._told)
        found = []
        for item, reason in zip(ranking, why or [None] * len(ranking), strict=True):
            [own_id] = source.own_ids([item.passage.id])
            told = path_notes(source.own_ids(item.details["path"]), item.score, item.details) | notes(item.details)
            record = source.records[item.passage.id]
            found.append(FoundRecord(record, own_id, item.score, told, item.details, reason))
        return found
