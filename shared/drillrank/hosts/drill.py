"""Drilling down in a host's records: which documents a question is asked about, and what evidence of them says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Generic

from drillrank.drilldown.d3 import D3, EvidenceRanking
from drillrank.drilldown.drill import Step
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.rebuilding import Material, PreparedCache
from drillrank.drilldown.settings import MAX_DOCUMENTS
from drillrank.errors import WarnOnce, warn
from drillrank.explanation import Explanation, Node
from drillrank.explanation.explanations import explains, request
from drillrank.hosts.filters import AccessFilter
from drillrank.hosts.metadata import notes, prefixed
from drillrank.hosts.pages import Joined, at_pages, joined, without_page
from drillrank.hosts.records import ChunkRecord, Name, Record, StoredDocument, located
from drillrank.hosts.settings import D3RetrieverSettings
from drillrank.hosts.shared import Indexes, Shared, shared
from drillrank.hosts.store import THE_QUESTION, Answer, Store, answered
from drillrank.llm import LLM, Call, Fetch, Requests, Retrieve
from drillrank.passages import Passage, stable_uuid


@dataclass(frozen=True)
class Reading(Generic[Record]):
    """How a host's records are read.

    Attributes:
        chunks: Translates records.
        holding: Asks for all records of a chunk's document; None if it is one by itself.
        copies: Whether a source may bring copies of records that are no longer in its store.
        ordered: Whether records are answered in the order in which they were stored.
    """

    chunks: Callable[[Iterable[Any]], list[ChunkRecord[Record]]]
    holding: Callable[[ChunkRecord[Record]], Fetch | None]
    copies: bool = False
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """What was missing, or did not agree.

    Attributes:
        kind: What is wrong.
        words: Says it of some documents.
        documents: Of which; none where it is wrong with the question's answer as a whole.
    """

    kind: str
    words: Callable[[Sequence[Name]], str]
    documents: tuple[Name, ...] = ()

    def __str__(self) -> str:
        """Said of all of its documents."""
        return self.words(self.documents)


@dataclass
class Proposed(Generic[Record]):
    """The documents to be drilled into.

    Attributes:
        documents: Best first.
        problems: What was missing, or did not agree.
    """

    documents: list[StoredDocument[Record]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def tell(self, told: WarnOnce) -> None:
        """Warn of the problems, of one kind with one document once.

        Args:
            told: What was told before.
        """
        for problem in self.problems:
            anew = told.new(problem.kind, problem.documents)
            if anew or not problem.documents:
                warn(problem.words(anew))

    def material(self) -> list[Material]:
        """For the core, document by document."""
        return [document.material() for document in self.documents]

    def at(self, passage: Passage) -> Paragraph[Record]:
        """Where a paragraph comes from."""
        place = passage.metadata
        document = self.documents[place["document"]]
        return Paragraph(document, document.chunk(place["chunk"]), place, passage.text)


@dataclass(frozen=True, slots=True)
class Paragraph(Generic[Record]):
    """Where a paragraph comes from.

    Attributes:
        document: Its document.
        chunk: The record in which it begins.
        place: Where, as the core tells it.
        text: What it says.
    """

    document: StoredDocument[Record]
    chunk: ChunkRecord[Record]
    place: Mapping[str, Any]
    text: str

    @property
    def start(self) -> int | None:
        """Offset in the document; None if that is not known."""
        return self.place.get("start")

    @property
    def end(self) -> int | None:
        """Offset just behind it; None likewise."""
        return self.place.get("end")

    @property
    def id(self) -> str:
        """The same for each question."""
        space, id_ = self.document.name
        name = (space, id_) if space else id_
        where = [str(self.place["part"])] if "part" in self.place else []
        if self.document.apart:
            where.append(self.text)
        if self.start is None or self.chunk.page is not None or self.document.apart:
            return stable_uuid(name, self.chunk.id, self.start, *where)
        return stable_uuid(name, self.start, self.end, *where)


def grouped(chunks: Sequence[ChunkRecord[Record]], hidden: bool = False) -> Proposed[Record]:
    """Documents that are given, by their chunks; those that only repeat one text are documents of their own.

    Args:
        chunks: Those that may be seen.
        hidden: Whether a filter hides others.
    """
    documents = []
    for name, own in _by_document(chunks).items():
        copies = len({chunk.text for chunk in own}) == 1 and own[0].kind != "section"
        documents += [
            (name, StoredDocument(name, some), some) for some in ([[one] for one in own] if copies else [own])
        ]
    result = _checked(documents)
    if not any(chunk.text.strip() for chunk in chunks):
        why = "passes the filter" if hidden and not chunks else "holds any text"
        result.problems.append(_of_all(f"Nothing that was given {why}: there is nothing to drill into."))
    return result


def proposed(
    reading: Reading[Record],
    given: Sequence[ChunkRecord[Record]],
    k: int,
    limit: int,
    restriction: str,
    whole: bool = False,
) -> Requests[Proposed[Record]]:
    """Looks up the documents of the best records.

    Args:
        reading: Of the host.
        given: What was given beside the source and may be seen: lends structure, and stands in for what cannot be
            looked up, as far as it agrees with what the source found.
        k: Records to search for.
        limit: Documents to look up.
        restriction: What decides on what may be seen, and may be why nothing is found.
        whole: Whether the source is a store that is searched, and no retriever, which may find nothing.
    """
    [found] = yield [Retrieve(THE_QUESTION, k)]
    hits = _by_document(reading.chunks(found or ()))
    names = list(hits)[:limit]
    stored = yield from _stored(reading, {name: hits[name] for name in names})
    beside = _by_alias(given)
    documents = []
    missing: list[Name] = []
    outdated: list[Name] = []
    for name in names:
        mine, there = hits[name], stored.get(name)
        records = _readable(mine if there is None else there, asked=there is not None)
        if not records:
            missing.append(name)
            continue
        document, agrees = _with_given(name, records, there is not None, beside)
        if not agrees:
            outdated.append(name)
        ids = {hit.id for hit in mine}
        documents.append((name, document, [record for record in records if record.id in ids] or records))
    result = _checked(documents)
    if not hits and (restriction or whole):
        shown = f"found nothing that {restriction} shows" if restriction else "holds nothing"
        result.problems.append(_of_all(f"The source {shown}: there is nothing to drill into."))
    if hits and not missing and not any(chunk.text.strip() for found in result.documents for chunk in found.chunks):
        result.problems.append(_of_all("What the source found holds no text: there is nothing to drill into."))
    if outdated:
        result.problems.insert(0, Problem("stale", _outdated, tuple(outdated)))
    if missing:
        result.problems.append(Problem("lost", _missing, tuple(missing)))
    return result


def _stored(
    reading: Reading[Record], hits: dict[Name, list[ChunkRecord[Record]]]
) -> Requests[dict[Name, list[ChunkRecord[Record]]]]:
    """What the store has of the documents, as far as it can be asked."""
    wanted = {name: holding for name, own in hits.items() if (holding := reading.holding(own[0])) is not None}
    answers: Sequence[Answer] = (yield list(wanted.values())) if wanted else []
    stored: dict[Name, list[ChunkRecord[Record]]] = {}
    unknown = []
    for name, answer in zip(wanted, answers, strict=True):
        if answer is None:
            continue
        chunks = [chunk for chunk in reading.chunks(answer) if chunk.document == name]
        if chunks:
            stored[name] = chunks if reading.ordered else sorted(chunks, key=lambda chunk: (chunk.id, chunk.text))
        elif reading.copies:
            unknown.append(name)
    if unknown:
        [found] = yield [Fetch(tuple(hit.id for name in unknown for hit in hits[name]))]
        if found is not None:
            known = _by_document(reading.chunks(found))
            stored |= {name: known.get(name, []) for name in unknown}
    return stored


def _readable(chunks: Sequence[ChunkRecord[Record]], asked: bool) -> list[ChunkRecord[Record]]:
    """Those that hold text of the document; a view may carry some, which counts where its section cannot be had."""
    return [chunk for chunk in chunks if chunk.raw or (chunk.text and not asked)]


def _with_given(
    name: Name,
    records: list[ChunkRecord[Record]],
    asked: bool,
    beside: dict[str, dict[Name, list[ChunkRecord[Record]]]],
) -> tuple[StoredDocument[Record], bool]:
    """The document with what was given of it, and whether that agrees with the records."""
    plain = StoredDocument(name, records)
    candidates = [own for their, own in beside.get(name[1], {}).items() if their[0] in ("", name[0])]
    if not candidates:
        return plain, True
    for own in candidates:
        if any(_labels_differ(chunk, record) for chunk in own[:1] for record in records):
            continue
        if len(own) == 1 and own[0].is_bare:
            original = located(own[0], records)
            if original is not None and (not asked or records[0].kind == "chunk"):
                return StoredDocument(name, records, original, None if asked else own[0]), True
            if original is not None:
                return plain, True
        elif _are_among(records, own):
            placed = _placed(records, own)
            return StoredDocument(name, placed if asked else [*placed, *own]), True
    return plain, False


def _labels_differ(given: ChunkRecord[Any], record: ChunkRecord[Any]) -> bool:
    """Whether a whole document has metadata that its record contradicts."""
    labels = given.metadata.items() if given.pages is None else without_page(given.metadata).items()
    return given.is_bare and any(record.metadata.get(key, value) != value for key, value in labels)


def _are_among(records: Sequence[ChunkRecord[Any]], given: Sequence[ChunkRecord[Any]]) -> bool:
    known = {chunk.id: chunk for chunk in given if chunk.raw} or {chunk.id: chunk for chunk in given}
    return all(
        record.id in known
        and known[record.id].text == record.text
        and all(record.metadata.get(key) == value for key, value in known[record.id].metadata.items())
        for record in records
    )


def _placed(records: Iterable[ChunkRecord[Record]], given: Iterable[ChunkRecord[Any]]) -> list[ChunkRecord[Record]]:
    """Records, and where those stand that do not say so themselves."""
    places = {chunk.id: chunk for chunk in given if chunk.span is not None}
    return [
        replace(record, start=places[record.id].start, end=places[record.id].end)
        if record.is_bare and record.id in places
        else record
        for record in records
    ]


def _checked(found: Iterable[tuple[Name, StoredDocument[Record], list[ChunkRecord[Record]]]]) -> Proposed[Record]:
    """Documents as they are, or, of one that contradicts itself, each record that was found."""
    result: Proposed[Record] = Proposed()
    conflicting: list[Name] = []
    for name, document, hits in found:
        if document.contradicts_itself():
            conflicting.append(name)
            apart = {(hit.id, hit.text): hit for hit in hits}
            result.documents += [StoredDocument(name, [hit], apart=True) for hit in apart.values()]
        else:
            result.documents.append(document)
    if conflicting:
        result.problems.append(Problem("mixed", _conflicting, tuple(conflicting)))
    lacking = [document.name for document in result.documents if document.lacks_offsets()]
    if lacking:
        result.problems.append(Problem("offsets", _without_offsets, tuple(lacking)))
    return result


def _of_all(said: str) -> Problem:
    return Problem("nothing", lambda _: said)


def _outdated(documents: Sequence[Name]) -> str:
    return (
        f"What was given of {len(documents)} documents differs from what the source found, for example of "
        f"{documents[0][1]!r:.200}: the source's text is taken. Give the documents as they are stored now."
    )


def _missing(documents: Sequence[Name]) -> str:
    return (
        f"Sections of {len(documents)} documents were found whose raw records are neither in the source nor in its "
        f"store, for example of {documents[0][1]!r:.200}: pass them as documents."
    )


def _conflicting(documents: Sequence[Name]) -> str:
    return (
        f"Records of {len(documents)} documents claim the same place with different texts, for example of "
        f"{documents[0][1]!r:.200}: two versions, or two owners, under one id. They are not put together: each record "
        "that was found is read by itself. Delete old versions, or filter by owner, or give ids a namespace."
    )


def _without_offsets(documents: Sequence[Name]) -> str:
    return (
        f"Chunks of {len(documents)} documents do not say where in the document they stand, for example of "
        f"{documents[0][1]!r:.200}: paragraphs of theirs have no offsets, and end where a chunk ends. Pass the "
        "originals as documents, or split so that offsets are noted (in LangChain: add_start_index=True)."
    )


def _by_document(chunks: Iterable[ChunkRecord[Record]]) -> dict[Name, list[ChunkRecord[Record]]]:
    """Chunks by their documents; of different whole documents with one id, the later ones are numbered."""
    documents: dict[Name, list[ChunkRecord[Record]]] = {}
    for chunk in chunks:
        space, id_ = name = chunk.document
        copies = count(2)
        while chunk.kind == "document" and name in documents and documents[name][0].text != chunk.text:
            name = space, f"{id_} ({next(copies)})"
        documents.setdefault(name, []).append(chunk)
    return documents


def _by_alias(given: Iterable[ChunkRecord[Record]]) -> dict[str, dict[Name, list[ChunkRecord[Record]]]]:
    known: dict[str, dict[Name, list[ChunkRecord[Record]]]] = {}
    for name, own in _by_document(given).items():
        for alias in dict.fromkeys([name[1], *(alias for chunk in own for alias in chunk.aliases)]):
            known.setdefault(alias, {})[name] = own
    return known


def with_pages_joined(chunks: Sequence[ChunkRecord[Record]]) -> list[ChunkRecord[Record]]:
    """Records that are pages of one file, each whole, as one; the others as they are."""
    bare = [chunk for chunk in chunks if chunk.is_bare and (chunk.kind == "document" or chunk.page is not None)]
    if len(bare) < len(chunks):
        return list(chunks)
    return [
        _of_file([chunks[at] for at in one.members], one)
        for one in joined((chunk.text, chunk.metadata) for chunk in chunks)
    ]


def paragraph_metadata(paragraph: Paragraph[Any]) -> dict[str, Any]:
    """The user's, of the record that a paragraph stands in; pages are the paragraph's own."""
    return at_pages(paragraph.chunk.metadata, paragraph.chunk.pages, paragraph.start, paragraph.end)


def _of_file(members: Sequence[ChunkRecord[Record]], one: Joined) -> ChunkRecord[Record]:
    first = members[0]
    if len(members) == 1:
        return replace(first, pages=first.pages or one.pages)
    aliases = tuple(dict.fromkeys(alias for page in members for alias in (*page.aliases, page.id)))
    return replace(first, text=one.text, kind="document", page=None, pages=one.pages, aliases=aliases)


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
        given_alone: AccessFilter[Any] | None,
        fields: Callable[[Sequence[Record]], Mapping[str, object]] | None = None,
    ) -> None:
        self._d3 = d3
        self._most, self._explains = settings.max_documents or MAX_DOCUMENTS, explains
        self._guarded = bool(settings.guard_tokens)
        self._given = given
        self._reading = reading
        self._asks_llm = asks_llm
        self._join_pages = settings.join_pages
        self._warned = WarnOnce()
        self._cache = PreparedCache(d3.prepare, settings.separator)
        self._alone = given_alone is not None
        self._fields = fields
        self._indexes = Indexes(records, self._index, [chunk.record for chunk in given])
        if given_alone is not None:
            self._indexes.of(self._indexes.numbers(given_alone))

    def _index(self, seen: tuple[int, ...]) -> tuple[Proposed[Record], Shared[PreparedDocuments]]:
        """Documents of given records that may be seen, prepared."""
        found = grouped(self._chunks(seen), hidden=len(seen) < len(self._given))
        found.tell(self._warned)
        made_of = self._fields and self._fields([self._indexes.records[number] for number in seen])
        return found, shared("drill", made_of, lambda: self._cache.ready(found.material()))

    def retrieve(
        self,
        question: str,
        store: Store,
        guard: AccessFilter[Any],
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
            requests = proposed(
                self._reading, given, k, self._most, "the filter" if guard.restricts else "", not store.retrieves
            )
            stored = yield from answered(requests, store.handlers)
            stored.tell(self._warned)
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
