"""Drilling down in a host's records: which documents a question is asked about, and what evidence of them says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from drillrank.drilldown.d3 import D3, EvidenceRanking
from drillrank.drilldown.drill import Step
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.rebuilding import PreparedCache
from drillrank.drilldown.settings import MAX_DOCUMENTS
from drillrank.errors import WarnOnce
from drillrank.explanation import Explanation, Node
from drillrank.explanation.explanations import explains, request
from drillrank.hosts.chunks import ChunkRecord
from drillrank.hosts.filters import Guarding
from drillrank.hosts.lookups import Store, answered
from drillrank.hosts.metadata import notes, prefixed
from drillrank.hosts.page_records import paragraph_metadata, with_pages_joined
from drillrank.hosts.proposing import Paragraph, Proposed, Reading, grouped, proposed
from drillrank.hosts.settings import D3RetrieverSettings
from drillrank.hosts.shared import Indexes, Shared, shared
from drillrank.llm import LLM, Call, Requests

Record = TypeVar("Record")

_VIEWS = 3  # of a section in a store: to find so many documents, ask for more


@dataclass(frozen=True, slots=True)
class Evidence(Generic[Record]):
    """An evidence paragraph.

    Attributes:
        paragraph: Where it comes from.
        score: As `D3` gives it.
        metadata: The user's, of the record that it stands in; pages are the paragraph's own.
        place: Bare names of ours that say where it stands.
        told: Metadata that depend on the question.
        explanation: Why it stands where it stands, if that was asked for.
    """

    paragraph: Paragraph[Record]
    score: float
    metadata: dict[str, Any]
    place: dict[str, str | None]
    told: dict[str, Any]
    explanation: Explanation | None


@dataclass(frozen=True, slots=True)
class Drilled(Generic[Record]):
    """What drilling down for one question has brought.

    Attributes:
        evidence: Best first.
        usage: What the LLM calls cost, as metadata.
        problems: All that went wrong, in the store and with the LLM.
        tree: What was opened, read and left, and why, if that was asked for.
    """

    evidence: list[Evidence[Record]]
    usage: dict[str, int | bool]
    problems: list[str]
    tree: tuple[Node, ...] = ()


class Drilling(Generic[Record]):
    """What a drill-down retriever holds between questions, and does for each.

    Args:
        d3: Drills down.
        settings: Of the component.
        records: What was given to it.
        given: What each of these is a chunk of.
        reading: How the host's records are read.
        asks_llm: Whether an LLM is asked.
        given_alone: The guard of records that are given without a source: these are prepared now.
        fields: Of some records what an index of them is made of, if components of equal fields are to share it.
    """

    def __init__(
        self,
        d3: D3,
        settings: D3RetrieverSettings,
        records: Sequence[Record],
        given: Sequence[ChunkRecord[Record]],
        reading: Reading[Record],
        *,
        asks_llm: bool,
        explains: bool,
        given_alone: Guarding[Any] | None,
        fields: Callable[[Sequence[Record]], Mapping[str, object]] | None = None,
    ) -> None:
        self._d3 = d3
        self._most, self._explains = settings.max_documents or MAX_DOCUMENTS, explains
        self._guarded = bool(settings.guard_tokens)
        self._given = given
        self._reading = reading
        self._asks_llm = asks_llm
        self._join_pages = settings.join_pages
        self._told = WarnOnce()
        self._cache = PreparedCache(d3.prepare, settings.separator)
        self._alone = given_alone is not None
        self._fields = fields
        self._indexes = Indexes(records, self._index, [chunk.record for chunk in given])
        if given_alone is not None:
            self._indexes.of(self._indexes.numbers(given_alone))

    def _index(self, seen: tuple[int, ...]) -> tuple[Proposed[Record], Shared[PreparedDocuments]]:
        """Documents of given records that may be seen, prepared."""
        found = grouped(self._chunks(seen), hidden=len(seen) < len(self._given))
        found.tell(self._told)
        made_of = self._fields and self._fields([self._indexes.records[number] for number in seen])
        return found, shared("drill", made_of, lambda: self._cache.ready(found.material()))

    def retrieve(
        self,
        question: str,
        store: Store,
        guard: Guarding[Any],
        top_n: int | None,
        *,
        llm: LLM | None = None,
        on_step: Callable[[Step], object],
    ) -> Requests[Drilled[Record]]:
        """Evidence for a question.

        Args:
            question: The question.
            store: Answers look-ups.
            guard: What may be seen.
            top_n: Paragraphs wanted.
            llm: Is asked in place of that of `d3`.
            on_step: Callback, called with each step, on worker threads in asynchronous use.
        """
        seen = yield from self._indexes.seen(guard)
        if self._alone:
            [(stored, made)] = yield [Call(partial(self._indexes.of, seen))]
            ready = made.made
        else:
            given, k = self._chunks(seen), _VIEWS * self._most
            requests = proposed(self._reading, given, k, self._most, guard.restriction, not store.retrieves)
            stored = yield from answered(requests, store.handlers)
            stored.tell(self._told)
            [ready] = yield [Call(partial(self._cache.ready, stored.material()))]
        retrieve, aretrieve = (
            partial(method, question, ready, top_n, llm=llm, on_step=on_step)
            for method in (self._d3.retrieve, self._d3.aretrieve)
        )
        [found] = yield [Call(retrieve, aretrieve)]
        return self._drilled(found, stored)

    def _chunks(self, seen: Sequence[int]) -> list[ChunkRecord[Record]]:
        """Of given records that may be seen; one that leads to a hidden copy is hidden itself."""
        chunks = [self._given[number] for number in seen]
        return with_pages_joined(chunks) if self._join_pages else chunks

    def _drilled(self, found: EvidenceRanking, stored: Proposed[Record]) -> Drilled[Record]:
        usage = found.usage.as_metadata()
        why = found.explain() if explains(self._explains) else None
        if why is not None and (asked := request.get()) is not None:
            asked.tree = why.tree
        evidence = []
        for item, reason in zip(found, why or [None] * len(found), strict=True):
            paragraph, details = stored.at(item.passage), item.details
            told = {name: details[name] for name in ("section_score",) if name in details}
            if self._asks_llm:
                told |= usage
            if self._guarded:
                told["guarded"] = details["guarded"]
            if "also_at" in details:
                also = (stored.documents[at["document"]].name[1] for at in details["also_at"])
                told["also_in"] = "; ".join(map(str, dict.fromkeys(also)))
            if "other_versions" in details:
                others = "; ".join(details["other_versions"])
                told |= {name: details[name] for name in ("version",) if name in details} | {"other_versions": others}
            if "problems" in details:
                told["problems"] = "; ".join(details["problems"])
            keyed = {prefixed(name): value for name, value in told.items()} | notes(details)
            place = {"section_path": item.passage.title, "namespace": paragraph.document.name[0] or None}
            evidence.append(Evidence(paragraph, item.score, paragraph_metadata(paragraph), place, keyed, reason))
        problems = [*map(str, stored.problems), *found.problems]
        return Drilled(evidence, usage, problems, why.tree if why is not None else ())
