"""Evidence in a host's records: which documents a question is asked about, and the paragraphs that are found."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Generic

from drillrank.drilldown.d3 import D3
from drillrank.drilldown.last_used import LastUsed
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.rebuilding import prepare_stored
from drillrank.drilldown.result import EvidenceResult
from drillrank.drilldown.settings import MAX_DOCUMENTS
from drillrank.drilldown.trace import StepReport
from drillrank.errors import WarnOnce, warn
from drillrank.explanation import Explanation, Node
from drillrank.explanation.explanations import explains, explanation_request
from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.metadata import PREFIX, RANKING_NOTES, copy_metadata
from drillrank.frameworks.pages import join_pages, with_pages_of_span, without_page_keys
from drillrank.frameworks.sections import check_searched
from drillrank.frameworks.settings import BaseD3RetrieverSettings
from drillrank.frameworks.shared import CachedValue, Indexes, get_or_compute
from drillrank.frameworks.store import report_usage
from drillrank.llm import LLM, FunctionRequest, Requests
from drillrank.passages import Passage, stable_uuid
from drillrank.structure import breadcrumb
from drillrank.structure.read import FORMAT_KEY
from drillrank.structure.reassembly import ReassembledDocument, reassemble
from drillrank.structure.record_store import RecordStore, find_request, search_request
from drillrank.structure.stored_chunks import DocumentName, StoredChunk
from drillrank.structure.stored_chunks import RecordT as Record

_REMEMBERED = 4  # collections of a store; each may be large
_VIEWS = 3  # of a section in a store: to find so many documents, ask for more

# What is wrong with some documents: how many, and the id of one.
_PROBLEMS = {
    "outdated": "What was given of {0} documents differs from what the source found, for example of {1!r:.200}: the "
    "source's text is taken. Give the documents as they are stored now; no splitter may have changed white space.",
    "missing": "Sections of {0} documents were found whose raw records are neither in the source nor in its store, for "
    "example of {1!r:.200}: pass them as documents.",
    "conflicting": "Records of {0} documents claim the same place with different texts, for example of {1!r:.200}: two "
    "versions, or two owners, under one id. They are not put together: each record that was found is read by itself. "
    "Delete old versions, or filter by owner, or give ids a namespace.",
    "offsets": "Chunks of {0} documents do not say where in the document they stand, for example of {1!r:.200}: "
    "paragraphs of theirs have no offsets, and end where a chunk ends. Pass the originals as documents, or split so "
    "that offsets are noted (in LangChain: add_start_index=True).",
}


@dataclass
class Candidates(Generic[Record]):
    """The documents that a question is asked about.

    Attributes:
        documents: Best first.
        problems: By kind the documents that something is wrong with.
        nothing: Why there is nothing to read; empty if there is something.
    """

    documents: list[ReassembledDocument[Record]] = field(default_factory=list)
    problems: dict[str, list[DocumentName]] = field(default_factory=dict)
    nothing: str = ""

    def messages(self, problems: Mapping[str, Sequence[DocumentName]]) -> list[str]:
        """What is wrong, in words."""
        found = [_PROBLEMS[kind].format(len(names), names[0][1]) for kind, names in problems.items() if names]
        return found + ([self.nothing] if self.nothing else [])

    def warn(self, warned: WarnOnce) -> None:
        """Warn of the problems, of one kind with one document once."""
        for message in self.messages({kind: warned.new(kind, names) for kind, names in self.problems.items()}):
            warn(message)

    def add(self, found: Iterable[tuple[ReassembledDocument[Record], Sequence[StoredChunk[Record]]]]) -> None:
        """Documents as they are, or, of one that contradicts itself, each record that was found."""
        for document, hits in found:
            if document.is_contradictory:
                self.problems.setdefault("conflicting", []).append(document.name)
                alone = {(hit.id, hit.text): hit for hit in hits}
                self.documents += [reassemble([hit], name=document.name, is_separate=True) for hit in alone.values()]
            else:
                self.documents.append(document)
        self.problems["offsets"] = [document.name for document in self.documents if not document.has_offsets]


@dataclass(frozen=True, slots=True)
class Evidence(Generic[Record]):
    """An evidence passage or paragraph.

    Attributes:
        text: What it says.
        id: The same for each question.
        score: As `D3` gives it.
        start: Offset in the document; None if that is not known.
        end: Offset just behind it; None likewise.
        chunk: The record in which it begins.
        document: Id of its document.
        metadata: The user's, of that record, at the paragraph's pages; and ours.
        explanation: Why it stands where it stands, if that was asked for.
        page_start: Where the page begins that it begins on, if the document was put together from pages.
    """

    text: str
    id: str
    score: float
    start: int | None
    end: int | None
    chunk: StoredChunk[Record]
    document: str
    metadata: dict[str, Any]
    explanation: Explanation | None
    page_start: int


@dataclass(frozen=True, slots=True)
class FoundEvidence(Generic[Record]):
    """What was found for one question.

    Attributes:
        evidence: Best first.
        usage: What the LLM calls cost, as metadata.
        problems: All that went wrong, in the store and with the LLM.
        found: False if the documents speak of another subject, or if there is no evidence. None if terms and cosines
            cannot tell.
        confidence: Probability that the documents answer the question. None if an LLM chose the evidence.
        tree: What was opened, read and left, and why, if that was asked for.
    """

    evidence: list[Evidence[Record]]
    usage: dict[str, int | bool]
    problems: list[str]
    found: bool | None
    confidence: float | None
    tree: tuple[Node, ...] = ()

    @property
    def judgment(self) -> dict[str, bool | float]:
        """Return `found` and `confidence` by name, where they are known."""
        return _judgment(self.found, self.confidence)


@dataclass(eq=False)
class EvidenceRetrieval(Generic[Record]):
    """What a retriever of evidence holds between questions, and does for each.

    Args:
        component: Whose fields say how documents are put together, and whether results are explained.
        d3: Finds evidence.
        given: What was given to it.
        access: What may be seen: of records that are given without a source, which are prepared now.
        fields: Of some records what an index of them is made of, if components of equal fields are to share it.
    """

    component: InitVar[Any]
    d3: D3
    given: Sequence[StoredChunk[Record]]
    access: InitVar[AccessFilter[Any]]
    fields: Callable[[Sequence[Record]], Mapping[str, object]] | None = None

    def __post_init__(self, component: Any, access: AccessFilter[Any]) -> None:
        check_searched(type(component).__name__, component.documents, component.source)
        self._settings: BaseD3RetrieverSettings = component.settings
        self._explains: bool = component.explain
        self._most = self._settings.max_documents or MAX_DOCUMENTS
        self._warned = WarnOnce()
        self._stored: LastUsed[Hashable, PreparedDocuments] = LastUsed(_REMEMBERED)
        self._indexes = Indexes([chunk.record for chunk in self.given], self._index)
        self._prepared = self._of_given(access) if component.source is None else None

    def _index(self, seen: tuple[int, ...]) -> tuple[Candidates[Record], CachedValue[PreparedDocuments]]:
        """Documents of given records that may be seen, prepared; those that repeat one text are documents each."""
        chunks = self._joined([self.given[number] for number in seen])
        found: Candidates[Record] = Candidates()
        documents = []
        for name, of_document in _by_document(chunks).items():
            copies = len({chunk.text for chunk in of_document}) == 1 and of_document[0].kind != "section"
            documents += [
                (reassemble(some, name=name), some)
                for some in ([[one] for one in of_document] if copies else [of_document])
            ]
        found.add(documents)
        if not any(chunk.text.strip() for chunk in chunks):
            why = "holds any text" if chunks or len(seen) == len(self.given) else "passes the filter"
            found.nothing = f"Nothing that was given {why}: there is nothing to drill into."
        found.warn(self._warned)
        made_of = self.fields and self.fields([self.given[number].record for number in seen])
        return found, get_or_compute("evidence", made_of, partial(self._rebuilt, found.documents))

    def _rebuilt(self, documents: Sequence[ReassembledDocument[Record]]) -> PreparedDocuments:
        return prepare_stored(self.d3, documents, self._settings.separator)

    def _of_store(self, documents: Sequence[ReassembledDocument[Record]]) -> PreparedDocuments:
        """Documents of a store, prepared; the last few collections are remembered by what is in them."""
        return self._stored.make(tuple(one.key for one in documents), lambda: self._rebuilt(documents))

    def _of_given(self, access: AccessFilter[Any]) -> tuple[Candidates[Record], CachedValue[PreparedDocuments]]:
        return self._indexes.get(self._indexes.list_visible(access))

    def _joined(self, chunks: list[StoredChunk[Record]]) -> list[StoredChunk[Record]]:
        """Join records that are pages of one file, each whole. Other records stay as they are."""
        if not self._settings.join_pages:
            return chunks
        may_be_page = [chunk.has_no_place and (chunk.kind == "document" or chunk.page is not None) for chunk in chunks]
        found = []
        for one in join_pages(((chunk.text, chunk.metadata) for chunk in chunks), may_be_page):
            members = [chunks[at] for at in one.page_indices]
            first = replace(members[0], pages=members[0].pages or one.pages, is_joined=len(members) > 1)
            if len(members) > 1:
                aliases = tuple(dict.fromkeys(alias for page in members for alias in (*page.aliases, page.id)))
                first = replace(first, text=one.text, kind="document", page=None, pages=one.pages, aliases=aliases)
            found.append(first)
        return found

    def _join_stored(
        self, records: list[StoredChunk[Record]]
    ) -> tuple[list[StoredChunk[Record]], list[list[StoredChunk[Record]]]]:
        """Join the records of a document if they are its pages: return them with offsets, and the joined document."""
        pages = sorted(records, key=lambda record: record.page if isinstance(record.page, int) else -1)
        joined = self._joined(pages)
        if len(joined) != 1 or joined[0].pages is None or not joined[0].is_joined:
            return records, []
        starts = joined[0].pages.starts
        return [replace(page, start=start) for page, start in zip(pages, starts, strict=True)], [joined]

    def retrieve(
        self,
        question: str,
        access: AccessFilter[Any] | None,
        top_n: int | None,
        *,
        max_tokens: int | None = None,
        llm: LLM | None = None,
        on_step: Callable[[StepReport], object],
    ) -> FoundEvidence[Record]:
        """Evidence for a question in what was given.

        Args:
            question: The question.
            access: What may be seen; None is all.
            top_n: Maximum number of results, as for `D3.retrieve`.
            max_tokens: Token limit of all texts together, as for `D3.retrieve`.
            llm: Is asked in place of that of `d3`.
            on_step: Callback, called with each step, on worker threads in asynchronous use.
        """
        candidates, ready = (access and self._of_given(access)) or self._prepared  # type: ignore[misc]  # prepared
        result = self.d3.retrieve(question, ready.value, top_n, max_tokens=max_tokens, llm=llm, on_step=on_step)
        return self._found(result, candidates)

    def requests(
        self,
        question: str,
        store: RecordStore | None,
        access: AccessFilter[Any],
        top_n: int | None,
        *,
        max_tokens: int | None = None,
        llm: LLM | None = None,
        on_step: Callable[[StepReport], object],
    ) -> Requests[FoundEvidence[Record]]:
        """As `retrieve`, in what a store holds, if there is one."""
        if store is None:
            [(candidates, made)] = yield [FunctionRequest(partial(self._of_given, access))]
            ready = made.value
        else:
            candidates = yield from self._candidates(question, store, access)
            candidates.warn(self._warned)
            [ready] = yield [FunctionRequest(partial(self._of_store, candidates.documents))]
        sync, asynchronous = (
            partial(function, question, ready, top_n, max_tokens=max_tokens, llm=llm, on_step=on_step)
            for function in (self.d3.retrieve, self.d3.aretrieve)
        )
        [found] = yield [FunctionRequest(sync, asynchronous)]
        return self._found(found, candidates)

    def _candidates(self, question: str, store: RecordStore, access: AccessFilter[Any]) -> Requests[Candidates[Record]]:
        """The documents of the best records, looked up.

        What was given beside the source lends structure, and stands in for what cannot be looked up, as far as it
        agrees with what the source found.
        """
        given = self._joined([self.given[number] for number in (yield from self._indexes.request_visible(access))])
        beside: dict[str, dict[DocumentName, list[StoredChunk[Record]]]] = {}
        for name, of_document in _by_document(given).items():
            for alias in dict.fromkeys([name[1], *(alias for chunk in of_document for alias in chunk.aliases)]):
                beside.setdefault(alias, {})[name] = of_document
        [nearest] = yield [search_request(store, question, _VIEWS * self._most)]
        hits = _by_document(nearest)
        names = list(hits)[: self._most]
        wanted = {name: siblings for name in names if (siblings := hits[name][0].siblings) is not None}
        answers = (yield [find_request(store, where) for where in wanted.values()]) if wanted else []
        stored = {
            name: chunks
            for name, answer in zip(wanted, answers, strict=True)
            if (chunks := [chunk for chunk in answer or () if chunk.document == name])
        }
        result: Candidates[Record] = Candidates(problems={"outdated": [], "missing": []})
        found = []
        for name in names:
            is_stored = name in stored
            records = [
                chunk for chunk in stored.get(name, hits[name]) if chunk.is_raw or (chunk.text and not is_stored)
            ]  # a view may carry some of the text, which counts where its section cannot be had
            others = [
                of_document for their, of_document in beside.get(name[1], {}).items() if their[0] in ("", name[0])
            ]
            if is_stored and not others:  # all of its records are known, so that none is a part of a page
                records, others = self._join_stored(records)
            document = _with_given(name, records, hits[name], is_stored, others)
            if document is None and not records:
                result.problems["missing"].append(name)
                continue
            if document is None:
                result.problems["outdated"].append(name)
                document = reassemble(records, name=name)
            ids = {hit.id for hit in hits[name]}
            found.append((document, [record for record in records if record.id in ids] or records))
        result.add(found)
        if not hits and (access.restricts or store.obeys_limits):
            shown = "found nothing that the filter shows" if access.restricts else "holds nothing"
            result.nothing = f"The source {shown}: there is nothing to drill into."
        texts = [chunk.text for document in result.documents for chunk in document.chunks]
        if hits and not "".join(texts).strip() and not result.problems["missing"]:
            result.nothing = "What the source found holds no text: there is nothing to drill into."
        return result

    def _found(self, found: EvidenceResult, candidates: Candidates[Record]) -> FoundEvidence[Record]:
        report_usage(found.usage)
        usage = found.usage.as_metadata()
        judgment = _judgment(found.found, found.confidence)
        why = found.explain() if explains(self._explains) else None
        if why is not None and (current_request := explanation_request.get()) is not None:
            current_request.tree = why.tree
        evidence = []
        for item, reason in zip(found, why or [None] * len(found), strict=True):
            location, details, text = item.passage.metadata, item.details, item.passage.text
            document = candidates.documents[location["document"]]
            number = location["chunk"]
            chunk = document.find_chunk(number)
            start, end = location.get("start"), location.get("end")
            ours: dict[str, Any] = {name: details[name] for name in ("section_score",) if name in details}
            ours |= {name: details[name] for name in RANKING_NOTES if details.get(name)}
            ours |= usage if self.d3.llm is not None else {}
            ours |= judgment | _describe_best_paragraph(details)
            if self._settings.guard_tokens:
                ours["guarded"] = details["guarded"]
            if "also_at" in details:
                also = (candidates.documents[at["document"]].name[1] for at in details["also_at"])
                ours["also_in"] = "; ".join(map(str, dict.fromkeys(also)))
            if "other_versions" in details and "version" in details:
                ours["version"] = details["version"]
            ours |= {name: "; ".join(details[name]) for name in ("other_versions", "problems") if name in details}
            ours |= _describe_sections(item.passage)
            space, id_ = document.name
            if space:
                ours["namespace"] = space
            whole: Any = document.original or chunk
            metadata = (
                chunk.metadata if chunk.pages is None else with_pages_of_span(chunk.metadata, chunk.pages, start, end)
            )
            if chunk.pages is None and whole.pages is not None:  # a page's or a chunk's own, which names its page
                metadata = {**metadata, **with_pages_of_span({}, whole.pages, start, end)}
            page_start = whole.pages.within(start, end).starts[0] if whole.is_joined and start is not None else 0
            metadata = {key: value for key, value in metadata.items() if key != FORMAT_KEY}  # of the source, not of it
            keyed = copy_metadata({**metadata, **{PREFIX + name: value for name, value in ours.items()}})
            where = [
                *([str(location["part"])] if "part" in location else []),
                *([text] if document.is_separate else []),
            ]
            known = start is not None and chunk.page is None and not document.is_separate
            spot = (start, end) if known else (chunk.id, start)
            name = stable_uuid((space, id_) if space else id_, *spot, *where)
            evidence.append(Evidence(text, name, item.score, start, end, chunk, id_, keyed, reason, page_start))
        problems = [*candidates.messages(candidates.problems), *found.problems]
        tree = why.tree if why is not None else ()
        return FoundEvidence(evidence, usage, problems, found.found, found.confidence, tree)


def _judgment(found: bool | None, confidence: float | None) -> dict[str, bool | float]:
    judgment = {"found": found, "confidence": confidence}
    return {name: value for name, value in judgment.items() if value is not None}


def _describe_sections(passage: Passage) -> dict[str, str]:
    """Return the path of the section in which a passage begins, and all paths if it joins several sections."""
    described = {"section_path": breadcrumb(passage.metadata["section_path"])}
    if "section_paths" in passage.metadata:
        described["section_paths"] = "; ".join(map(breadcrumb, passage.metadata["section_paths"]))
    return described


def _describe_best_paragraph(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return text and span of a passage's best paragraph as metadata. Stores take no pairs as values."""
    if "best_paragraph" not in details:
        return {}
    best = details["best_paragraph"]
    start, end = best.get("span", (None, None))
    return {"best_paragraph": best["text"], **({} if start is None else {"best_start": start, "best_end": end})}


def _with_given(
    name: DocumentName,
    records: list[StoredChunk[Record]],
    hits: list[StoredChunk[Record]],
    is_stored: bool,
    given: Sequence[list[StoredChunk[Record]]],
) -> ReassembledDocument[Record] | None:
    """The document with what was given of it; None if that does not agree with the records, or where there are none."""
    for chunks in given:
        first = chunks[0]
        labels = first.metadata if first.pages is None else without_page_keys(first.metadata)
        if (first.has_no_place or not records) and any(
            record.metadata.get(key, value) != value
            for record in records or hits
            for key, value in labels.items()
            if records or key != "start_index"  # of a view that of its own section
        ):
            continue  # another one's, of the same name
        if not records:  # views alone were found
            return reassemble(chunks, name=name)
        if len(chunks) == 1 and first.has_no_place:
            document = reassemble(records, first, name=name, shows_rest=not is_stored)
            if document.original is not None:
                by_itself = is_stored and records[0].kind == "section"  # which knows its place
                return reassemble(records, name=name) if by_itself else document
            continue
        known = {chunk.id: chunk for chunk in chunks if chunk.is_raw} or {chunk.id: chunk for chunk in chunks}
        if all(
            record.id in known
            and known[record.id].text == record.text
            and all(record.metadata.get(key) == value for key, value in known[record.id].metadata.items())
            for record in records
        ):
            placed = [
                replace(record, start=known[record.id].start, end=known[record.id].end)
                if record.has_no_place
                else record
                for record in records
            ]
            return reassemble(placed if is_stored else [*placed, *chunks], name=name)
    return None if given or not records else reassemble(records, name=name)


def _by_document(chunks: Iterable[StoredChunk[Record]]) -> dict[DocumentName, list[StoredChunk[Record]]]:
    """Chunks by their documents; of different whole documents with one id, the later ones are numbered."""
    documents: dict[DocumentName, list[StoredChunk[Record]]] = {}
    for chunk in chunks:
        space, id_ = name = chunk.document
        copies = count(2)
        while chunk.kind == "document" and name in documents and documents[name][0].text != chunk.text:
            name = space, f"{id_} ({next(copies)})"
        documents.setdefault(name, []).append(chunk)
    return documents
