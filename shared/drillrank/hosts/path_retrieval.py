"""Path search as a retriever of either host: records given beside a retriever, and the search for one question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from drillrank.errors import InvalidInput, WarnOnce
from drillrank.explanation import Explanation, Explanations
from drillrank.explanation.explanations import explains
from drillrank.hosts.lookups import answered
from drillrank.hosts.notes import notes, path_notes
from drillrank.hosts.path_records import PathHost, RecordSource
from drillrank.hosts.settings import LinkedRecordSettings
from drillrank.hosts.shared import Indexes, Shared, check_ids, shared
from drillrank.llm import Call, Requests, Usage
from drillrank.multihop.first_hop import check_by_order
from drillrank.multihop.path_rerank import LinkName, PathRerank, named_links
from drillrank.multihop.record_names import GivenPassages, RecordNames
from drillrank.multihop.search import PathSearch, Scope
from drillrank.passages import Passage, Ranking
from drillrank.rerank.promptrank import PromptRank
from drillrank.vectors import Embed

Record = TypeVar("Record")


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
        links: By name.
        embed: From texts to vectors.
        explains: Whether each result is explained.
        missing_prompt: Asks an LLM what a path lacks; None asks nobody.
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
        missing_prompt: Callable[..., str] | None,
        component: str,
        fields: Callable[[Sequence[Record]], Mapping[str, object]] | None = None,
    ) -> None:
        check_by_order(prompt_rank.prior)
        if isinstance(links, str):
            raise InvalidInput(f"links are a list of names, such as [{links!r:.200}]; not {links!r:.200}.")
        self._host, self._names = host, host.names(records)
        self._reranks = partial(path_rerank, settings, prompt_rank, tuple(links), embed)
        self._fields = fields
        self._component = component
        self._explains = explains
        self._missing = None if missing_prompt is None else replace(settings, missing_prompt=missing_prompt)
        self._told = WarnOnce()
        self._indexes = Indexes(records, self._index)
        if not host.guard.restricts:
            self._indexes.of(tuple(range(len(records))))

    def _index(self, seen: tuple[int, ...]) -> Shared[tuple[GivenPassages, PathSearch]]:
        """A search of the given records that may be seen."""
        names = [self._names[number] for number in seen]
        records = [self._indexes.records[number] for number in seen]
        check_ids(names, "documents")

        def made() -> tuple[GivenPassages, PathSearch]:
            passages = list(map(self._host.passage, records, names))
            return GivenPassages(passages), self._reranks(passages).path_search

        return shared("paths", self._fields and self._fields(records), made)

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
        seen = yield from self._indexes.seen(host.guard)
        [made] = yield [Call(partial(self._indexes.of, seen))]
        given, search = made.made
        records = {self._names[number]: self._indexes.records[number] for number in seen}
        source = RecordSource(host, RecordNames(given, records), records, self._told)
        first = yield from source.found(query if asked is None else asked, self._component)
        scope = Scope(None, fetched=True)
        requests = search.requests(query, top_n, candidates=first, scope=scope, missing=self._missing, usage=usage)
        ranking = yield from answered(requests, source.handlers(query))
        why = ranking.explain() if explains(self._explains) else None
        return self._found(ranking, source, why)

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
