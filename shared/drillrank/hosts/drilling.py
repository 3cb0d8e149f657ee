"""Drilling down in a host's records: which documents a question is asked about, and what evidence of them says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from drillrank.hosts.guarding import Guarding
from drillrank.hosts.keys import prefixed
from drillrank.hosts.lookups import Store, answered
from drillrank.hosts.notes import notes
from drillrank.hosts.page_records import paragraph_metadata, with_pages_joined
from drillrank.hosts.proposing import Paragraph, Proposed, Reading, grouped, proposed
from drillrank.hosts.settings import D3RetrieverSettings
from drillrank.hosts.shared import Shared, shared
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
        fields: Callable[[Iterable[Record]], Mapping[str, object]] | None = None,
    ) -> None:
        self._d3 = d3
        self._most, self._explains = settings.max_documents or MAX_DOCUMENTS, explains
        self._guarded = bool(settings.guard_tokens)
        self._records = records
        self._given = given
        self._reading = reading
        self._asks_llm = asks_llm
        self._join_pages = settings.join_pages
        self._told = WarnOnce()
        self._cache = PreparedCache(d3.prepare, settings.separator)
        self._ready: Shared[PreparedDocuments] | None = None
        if given_alone is not None:
            seen = self._seen(given_alone)
            self._alone = grouped(seen, hidden=len(seen) < len(given))
            self._alone.tell(self._told)
            made_of = None if fields is None else fields([chunk.record for chunk in seen])
            self._ready = shared("drill", made_of, lambda: self._cache.ready(self._alone.material()))

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
        stored: Proposed[Record] = yield from answered(self._documents(guard), store.handlers)
        arguments = question, self._prepared(stored), top_n
        retrieve, aretrieve = (
            partial(method, *arguments, llm=llm, on_step=on_step) for method in (self._d3.retrieve, self._d3.aretrieve)
        )
        [found] = yield [Call(retrieve, aretrieve)]
        return self._drilled(found, stored)

    def _documents(self, guard: Guarding[Any]) -> Requests[Proposed[Record]]:
        """What the question is asked about."""
        if self._ready is not None:
            return self._alone
        stored = yield from proposed(
            self._reading, self._seen(guard), _VIEWS * self._most, self._most, guard.restriction
        )
        stored.tell(self._told)
        return stored

    def _seen(self, guard: Guarding[Any]) -> list[ChunkRecord[Record]]:
        """What was given and may be seen."""
        if not self._records:
            return []
        pairs = list(zip(self._records, self._given, strict=True))
        # A chunk's record may be a copy that was left in what was given: it may be open, and that not.
        all_records = {id(record): record for given, chunk in pairs for record in (given, chunk.record)}
        seen = set(map(id, guard.allowed(all_records.values())))
        chunks = [chunk for given, chunk in pairs if {id(given), id(chunk.record)} <= seen]
        return with_pages_joined(chunks) if self._join_pages else chunks

    def _prepared(self, stored: Proposed[Record]) -> PreparedDocuments:
        return self._cache.ready(stored.material()) if self._ready is None else self._ready.made

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
            if "problems" in details:
                told["problems"] = "; ".join(details["problems"])
            keyed = {prefixed(name): value for name, value in told.items()} | notes(details)
            place = {"section_path": item.passage.title, "namespace": paragraph.document.name[0] or None}
            evidence.append(Evidence(paragraph, item.score, paragraph_metadata(paragraph), place, keyed, reason))
        problems = [*map(str, stored.problems), *found.problems]
        return Drilled(evidence, usage, problems, why.tree if why is not None else ())
