"""Documents that evidence is retrieved from: those of given records, or those of the records that a store finds.

A view counts as its section, whose raw record is read. If that is missing, a view that contains the section's text is
read; other documents with views alone are left out. If two records of a document have different texts at one offset,
such as two versions, each record that was found is a document of its own. All of this is reported as a problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any, Generic

from drillrank.errors import WarnOnce, warn
from drillrank.frameworks.metadata import prefixed
from drillrank.frameworks.pages import join_pages, without_page_keys
from drillrank.llm import Requests
from drillrank.structure.reassembly import ReassembledDocument, reassemble
from drillrank.structure.record_store import RecordStore, find_requests, search_request
from drillrank.structure.stored_chunks import DocumentName, RecordT, StoredChunk, Where

Chunks = Sequence[StoredChunk[RecordT]]

_N_VIEWS = 3  # records of a section in a store: to find `n` documents, ask for more records

_WARNINGS = {
    "outdated": "Given documents differ from what the source found. The text of the source was read. Give the "
    "documents as they are stored now; no splitter may have changed white space.",
    "missing": "Sections were found whose raw records are neither in the source nor in its store. They were left out. "
    "Pass their documents as documents.",
    "conflicting": "Records of one document have different texts at the same offset: two versions, or two owners, "
    "share an id. Each record that was found was read by itself. Delete old versions, filter by owner, or give ids a "
    "namespace.",
    "offsets": "Chunks do not say where in their document they are. Their paragraphs have no offsets and end where a "
    "chunk ends. Pass the originals as documents, or note offsets when splitting (LangChain: add_start_index=True).",
}


@dataclass(frozen=True)
class CandidateDocuments(Generic[RecordT]):
    """Documents that evidence is retrieved from.

    Attributes:
        documents: The documents; those of a store with the best first.
        names_by_problem: Documents that something is wrong with, by kind of problem.
        empty_reason: Reason why the documents have no text. Empty if they have some.
        hits: Records that a search returned, best first.
    """

    documents: Sequence[ReassembledDocument[RecordT]]
    names_by_problem: Mapping[str, Sequence[DocumentName]] = field(default_factory=dict)
    empty_reason: str = ""
    hits: Chunks[RecordT] = ()

    @property
    def problems(self) -> list[str]:
        """Messages about all problems, each with the number of its documents and the id of one."""
        messages = [
            f"{_WARNINGS[kind]} Documents: {len(names)}, such as {names[0][1]!r:.200}."
            for kind, names in self.names_by_problem.items()
            if names
        ]
        return [*messages, self.empty_reason] if self.empty_reason else messages

    def warn(self, warned: WarnOnce) -> None:
        """Warn about problems, once for each document and kind of problem. A warning does not name documents."""
        for kind, names in self.names_by_problem.items():
            if warned.new(kind, names):
                warn(_WARNINGS[kind])
        if self.empty_reason:
            warn(self.empty_reason)


# --- Given records


def read_given(chunks: Chunks[RecordT], is_filtered: bool) -> CandidateDocuments[RecordT]:
    """Return the documents of given chunks. Chunks that repeat one text are documents of their own.

    Args:
        chunks: The chunks that the caller may see.
        is_filtered: True if some chunks were given that the caller may not see.
    """
    documents = []
    for name, chunks_of_document in group_by_document(chunks).items():
        has_one_text = len({chunk.text for chunk in chunks_of_document}) == 1
        is_repeated = has_one_text and chunks_of_document[0].kind != "section"
        groups = [[chunk] for chunk in chunks_of_document] if is_repeated else [chunks_of_document]
        documents += [(reassemble(group, name=name), group) for group in groups]
    empty_reason = ""
    if not any(chunk.text.strip() for chunk in chunks):
        is_hidden = is_filtered and not chunks
        reason = "No given document passes the filter" if is_hidden else "The given documents contain no text"
        empty_reason = f"{reason}, so there is nothing to read."
    return _split_conflicting(documents, {}, empty_reason)


def join_page_chunks(chunks: Chunks[RecordT]) -> Chunks[RecordT]:
    """Join chunks that are pages of one file, each whole. Other chunks stay as they are."""
    documents = []
    for document in join_pages(((chunk.text, chunk.metadata) for chunk in chunks), list(map(_may_be_page, chunks))):
        first, *others = (chunks[index] for index in document.page_indices)
        if others:
            aliases = dict.fromkeys(alias for page in (first, *others) for alias in (*page.aliases, page.id))
            first = replace(
                first,
                text=document.text,
                kind="document",
                page=None,
                pages=document.pages,
                aliases=tuple(aliases),
                is_joined=True,
            )
        elif document.pages is not None and first.pages is None:
            first = replace(first, pages=document.pages)
        documents.append(first)
    return documents


def _may_be_page(chunk: StoredChunk[Any]) -> bool:
    """Return True if a chunk may be a page of a file, and the whole page."""
    return chunk.has_no_position and (chunk.kind == "document" or chunk.page is not None)


def group_by_document(chunks: Iterable[StoredChunk[RecordT]]) -> dict[DocumentName, list[StoredChunk[RecordT]]]:
    """Group chunks by document. Different whole documents with one id get numbers."""
    documents: dict[DocumentName, list[StoredChunk[RecordT]]] = {}
    for chunk in chunks:
        namespace, id_ = name = chunk.document
        numbers = count(2)
        while chunk.kind == "document" and name in documents and documents[name][0].text != chunk.text:
            name = namespace, f"{id_} ({next(numbers)})"
        documents.setdefault(name, []).append(chunk)
    return documents


def _split_conflicting(
    documents: Iterable[tuple[ReassembledDocument[RecordT], Chunks[RecordT]]],
    names_by_problem: Mapping[str, Sequence[DocumentName]],
    empty_reason: str,
) -> CandidateDocuments[RecordT]:
    """Replace each document that contradicts itself by its records that were found, each as a document.

    Args:
        documents: Documents, each with the records of it that were found.
        names_by_problem: Problems of other kinds.
        empty_reason: As for `CandidateDocuments`.
    """
    consistent: list[ReassembledDocument[RecordT]] = []
    conflicting: list[DocumentName] = []
    for document, hits in documents:
        if document.is_contradictory:
            conflicting.append(document.name)
            hit_by_text = {(hit.id, hit.text): hit for hit in hits}
            consistent += [reassemble([hit], name=document.name, is_separate=True) for hit in hit_by_text.values()]
        else:
            consistent.append(document)
    without_offsets = [document.name for document in consistent if not document.has_offsets]
    problems = {**names_by_problem, "conflicting": conflicting, "offsets": without_offsets}
    return CandidateDocuments(consistent, problems, empty_reason)


# --- Records of a store


def find_candidates(
    question: str,
    store: RecordStore,
    given_chunks: Chunks[RecordT],
    max_documents: int,
    joins_pages: bool,
    is_filtered: bool = False,
) -> Requests[CandidateDocuments[RecordT]]:
    """Find the documents of the records nearest to a question.

    The store has the documents' text. Given records add structure and offsets. They represent a document that the store
    cannot be asked for, if they agree with what the search found.

    Args:
        question: The question.
        store: The store.
        given_chunks: Chunks that were given and that the caller may see.
        max_documents: Number of documents.
        joins_pages: True to join records that are the pages of a document.
        is_filtered: True if a filter may have hidden records of the store.
    """
    nearest: Chunks[RecordT]
    [nearest] = yield [search_request(store, question, _N_VIEWS * max_documents)]
    hits_by_name = dict(list(group_by_document(nearest).items())[:max_documents])
    stored_by_name = yield from _find_stored(store, hits_by_name)
    given_by_alias = _index_by_alias(given_chunks)
    documents = []
    outdated: list[DocumentName] = []
    missing: list[DocumentName] = []
    for name, hits in hits_by_name.items():
        is_stored = name in stored_by_name
        # A view may contain the text of its section, which counts if the section itself is missing.
        records: Chunks[RecordT] = [
            chunk for chunk in stored_by_name.get(name, hits) if chunk.is_raw or (chunk.text and not is_stored)
        ]
        given_documents: list[Chunks[RecordT]] = [
            chunks for (space, _), chunks in given_by_alias.get(name[1], {}).items() if space in ("", name[0])
        ]
        if joins_pages and is_stored and not given_documents:  # no record is a part of a page, as all are known
            records, given_documents = _join_stored_pages(records)
        document = _combine_with_given(name, records, hits, is_stored, given_documents)
        if document is None and not records:
            missing.append(name)
            continue
        if document is None:
            outdated.append(name)
            document = reassemble(records, name=name)
        hit_ids = {hit.id for hit in hits}
        documents.append((document, [record for record in records if record.id in hit_ids] or records))
    candidates = _split_conflicting(documents, {"outdated": outdated, "missing": missing}, "")
    empty_reason = _explain_empty(candidates, bool(nearest), store, is_filtered)
    return replace(candidates, empty_reason=empty_reason, hits=nearest)


def _find_stored(
    store: RecordStore, hits_by_name: Mapping[DocumentName, Chunks[RecordT]]
) -> Requests[dict[DocumentName, list[StoredChunk[RecordT]]]]:
    """Find all records of documents in the store. The result lacks documents that the store cannot be asked for."""
    siblings: dict[DocumentName, Where] = {}
    for name, hits in hits_by_name.items():
        if hits[0].siblings is not None:
            is_view = hits[0].view is not None
            siblings[name] = {**hits[0].siblings, **({prefixed("view"): "raw"} if is_view else {})}
    if not siblings:
        return {}
    answers = yield find_requests(store, siblings.values())
    stored_by_name: dict[DocumentName, list[StoredChunk[RecordT]]] = {}
    for chunk in chain.from_iterable(answer or () for answer in answers):
        if chunk.document in siblings:
            stored_by_name.setdefault(chunk.document, []).append(chunk)
    return stored_by_name


def _join_stored_pages(records: Chunks[RecordT]) -> tuple[Chunks[RecordT], list[Chunks[RecordT]]]:
    """Join all records of a document if they are its pages.

    Returns:
        The records, with offsets if they were joined, and the joined document.
    """
    if not all(map(_may_be_page, records)):
        return records, []
    pages = sorted(records, key=lambda record: record.page if isinstance(record.page, int) else -1)
    joined = join_page_chunks(pages)
    if len(joined) != 1 or joined[0].pages is None or not joined[0].is_joined:
        return records, []
    starts = joined[0].pages.starts
    return [replace(page, start=start) for page, start in zip(pages, starts, strict=True)], [joined]


def _index_by_alias(given_chunks: Chunks[RecordT]) -> dict[str, dict[DocumentName, list[StoredChunk[RecordT]]]]:
    """Return given documents by each id that chunks may name them by."""
    given_by_alias: dict[str, dict[DocumentName, list[StoredChunk[RecordT]]]] = {}
    for name, chunks in group_by_document(given_chunks).items():
        for alias in dict.fromkeys([name[1], *(alias for chunk in chunks for alias in chunk.aliases)]):
            given_by_alias.setdefault(alias, {})[name] = chunks
    return given_by_alias


def _explain_empty(
    candidates: CandidateDocuments[RecordT], has_hits: bool, store: RecordStore, is_filtered: bool
) -> str:
    """Return the reason why candidates from a store have no text. Empty if they do, or if another problem says it."""
    if not has_hits:
        if not is_filtered and not store.obeys_limits:  # a retriever may find nothing on purpose
            return ""
        reason = "found nothing that passes the filter" if is_filtered else "is empty"
        return f"The source {reason}, so there is nothing to read."
    has_text = any(chunk.text.strip() for document in candidates.documents for chunk in document.chunks)
    if has_text or candidates.names_by_problem["missing"]:
        return ""
    return "The records that the source found contain no text, so there is nothing to read."


# --- Given records next to those of a store


def _combine_with_given(
    name: DocumentName,
    records: Chunks[RecordT],
    hits: Chunks[RecordT],
    is_stored: bool,
    given_documents: Sequence[Chunks[RecordT]],
) -> ReassembledDocument[RecordT] | None:
    """Combine the records of a document with what was given of it.

    1. If nothing was given, the records are the document.
    2. If the search found views only, the given document is read, unless its metadata contradict them.
    3. If the whole document was given, each record must be a part of its text. It adds structure and offsets, except to
       sections of a store, which have both.
    4. If chunks were given, each record must be one of them, with the same text and metadata. They add offsets. If the
       store cannot be asked for the document, all given chunks are read.

    Args:
        name: Name of the document.
        records: Records with text: all of the document if it is stored, otherwise those that the search found.
        hits: Records that the search found, views included.
        is_stored: True if the store was asked for all records of the document.
        given_documents: Given documents with this id. The first that agrees with the records counts.

    Returns:
        The document. None if there are no records, or if no given document agrees with them.
    """
    for chunks in given_documents:
        first = chunks[0]
        if (first.has_no_position or not records) and _contradicts(first, records, hits):
            continue
        if not records:
            return reassemble(chunks, name=name)
        if len(chunks) == 1 and first.has_no_position:
            document = reassemble(records, first, name=name, shows_rest=not is_stored)
            if document.original is not None:
                has_structure = is_stored and records[0].kind == "section"
                return reassemble(records, name=name) if has_structure else document
        elif (located := _locate_by_given(records, chunks)) is not None:
            return reassemble(located if is_stored else [*located, *chunks], name=name)
    return None if given_documents or not records else reassemble(records, name=name)


def _contradicts(first: StoredChunk[RecordT], records: Chunks[RecordT], hits: Chunks[RecordT]) -> bool:
    """Return True if metadata of a given document differ from those of the records, or of the hits without records."""
    metadata = first.metadata if first.pages is None else without_page_keys(first.metadata)
    if not records:  # a view has the offset of its section
        metadata = {key: value for key, value in metadata.items() if key != "start_index"}
    return any(
        record.metadata.get(key, value) != value for record in records or hits for key, value in metadata.items()
    )


def _locate_by_given(records: Chunks[RecordT], given_chunks: Chunks[RecordT]) -> list[StoredChunk[RecordT]] | None:
    """Return records with the offsets of given chunks. None if one of them is not among these."""
    given_by_id = {chunk.id: chunk for chunk in given_chunks if chunk.is_raw} or {
        chunk.id: chunk for chunk in given_chunks
    }
    located = []
    for record in records:
        chunk = given_by_id.get(record.id)
        if (
            chunk is None
            or chunk.text != record.text
            or any(record.metadata.get(key) != value for key, value in chunk.metadata.items())
        ):
            return None
        located.append(replace(record, start=chunk.start, end=chunk.end) if record.has_no_position else record)
    return located
