"""Look up sections that drillrank cut: the raw record of a view that a search found, and neighboring sections."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from drillrank.errors import InvalidInput, warn
from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.metadata import is_section, prefixed, result_metadata
from drillrank.llm import Requests
from drillrank.structure.record_store import RecordStore, find_request, find_requests, get_request
from drillrank.structure.stored_chunks import StoredChunk, Where


def index_raw_sections(chunks: Iterable[StoredChunk[Any]]) -> dict[str, StoredChunk[Any]]:
    """Return the raw chunks by id.

    Raises:
        InvalidInput: Two of them have the same id and different texts.
    """
    raw_by_id: dict[str, StoredChunk[Any]] = {}
    for chunk in chunks:
        if chunk.is_raw and raw_by_id.setdefault(chunk.id, chunk).text != chunk.text:
            raise InvalidInput(
                f"Two of the documents are section {chunk.id!r:.200} with different texts, such as two versions or "
                "two documents with one id. Give documents unique ids or a namespace, or a filter that shows one."
            )
    return raw_by_id


def first_raw_by_id(
    chunks: Iterable[StoredChunk[Any]], ids: Collection[str] | None = None
) -> dict[str, StoredChunk[Any]]:
    """Return the first raw chunk of each section by section id; only of these ids if `ids` are given."""
    raw_by_id: dict[str, StoredChunk[Any]] = {}
    for chunk in chunks:
        if chunk.is_raw and (ids is None or chunk.id in ids):
            raw_by_id.setdefault(chunk.id, chunk)
    return raw_by_id


def fetch_raw_sections(store: RecordStore, ids: Iterable[str]) -> Requests[tuple[dict[str, StoredChunk[Any]], bool]]:
    """Fetch raw chunks of sections by id, or by metadata from a store with ids of its own.

    Returns:
        Raw chunks by section id, and True if the store could be asked.
    """
    section_ids = list(dict.fromkeys(ids))
    [chunks] = yield [get_request(store, section_ids)]
    raw_by_id = first_raw_by_id(chunks or (), section_ids)
    missing_ids = tuple(id_ for id_ in section_ids if id_ not in raw_by_id)
    if not missing_ids:
        return raw_by_id, True
    where: Where = {prefixed("section_id"): missing_ids, prefixed("view"): "raw"}
    [chunks_by_metadata] = yield [find_request(store, where)]
    raw_by_id |= first_raw_by_id(chunks_by_metadata or (), missing_ids)
    return raw_by_id, not (chunks is None and chunks_by_metadata is None)


def fetch_documents(store: RecordStore, chunks: Iterable[StoredChunk[Any]]) -> Requests[dict[str, StoredChunk[Any]]]:
    """Fetch all raw sections of the documents of some sections, by id.

    The result is empty if the store cannot be asked for records by metadata.
    """
    siblings = [chunk.siblings for chunk in chunks if chunk.view == "raw" and chunk.siblings]
    answers = yield find_requests(store, [{**where, prefixed("view"): "raw"} for where in siblings])
    return first_raw_by_id(chunk for answer in answers for chunk in answer or () if chunk.view == "raw")


def deduplicate_sections(
    hits: Sequence[StoredChunk[Any]],
    store: RecordStore,
    fallbacks: Mapping[str, Any] = MappingProxyType({}),
    *,
    is_store_of_hits: bool,
) -> Requests[tuple[list[StoredChunk[Any]], list[str]]]:
    """Return one chunk for each section, its raw record, at the rank and with the score of its first view.

    Args:
        hits: Chunks that a search found, best first.
        store: Store that has the raw records.
        fallbacks: Records by section id, for sections that no store can be asked for.
        is_store_of_hits: True if the hits are from this store, so that a missing record was deleted.

    Returns:
        Chunks, best first, and the ids of sections whose raw record was deleted. If it is unknown whether a record was
        deleted, the best hit of the section represents it.
    """
    if all(hit.view is None for hit in hits):  # drillrank cut none of them
        return list(hits), []
    raw_by_id = first_raw_by_id(hits)
    view_ids = [hit.id for hit in hits if hit.view is not None and hit.id not in raw_by_id]
    fetched, store_answers = (yield from fetch_raw_sections(store, view_ids)) if view_ids else ({}, False)
    raw_by_id |= fetched
    chunks: list[StoredChunk[Any]] = []
    deleted_ids: list[str] = []
    section_ids: set[str] = set()
    for hit in hits:
        if hit.view is None:
            chunks.append(hit)
        elif hit.id not in section_ids:
            section_ids.add(hit.id)
            if hit.id in raw_by_id:
                chunks.append(replace(raw_by_id[hit.id], score=hit.score))
            elif store_answers and is_store_of_hits:
                deleted_ids.append(hit.id)
            else:
                chunks.append(replace(hit, record=fallbacks.get(hit.id, hit.record)))
    return chunks, deleted_ids


@dataclass(frozen=True, slots=True)
class SectionCandidate:
    """Candidate of a reranker.

    Attributes:
        index: Index of the record to score and return.
        best_index: Index of the view of its section with the best rank in the first stage. Other records have one
            view.
    """

    index: int
    best_index: int


def select_candidates(
    records: Sequence[tuple[Mapping[str, Any], str]], scores: Sequence[float | None]
) -> list[SectionCandidate]:
    """Return the candidates of a reranker: one for each section, and all other records.

    A section is represented by its raw record if that is among the records, or else by the view with the best rank.
    Records of one view with different texts, such as two versions of a section, all remain candidates.

    Args:
        records: Metadata and text of each record, in the order of the first stage.
        scores: Score of each record in the first stage, if it is known. Without scores, the order decides.

    >>> raw, summary = ({"drillrank_section_id": "7", "drillrank_view": view} for view in ("raw", "summary"))
    >>> select_candidates([(summary, "Whales."), ({}, "A note."), (raw, "Whales sing.")], [0.9, 0.8, 0.7])
    [SectionCandidate(index=2, best_index=0), SectionCandidate(index=1, best_index=1)]
    """
    groups: dict[object, list[int]] = {}
    for index, (metadata, _) in enumerate(records):
        names = result_metadata(metadata)
        key = (str(names["section_id"]), names.get("namespace")) if is_section(metadata) else index
        groups.setdefault(key, []).append(index)
    candidates: list[SectionCandidate] = []
    for indices in groups.values():
        if len(indices) == 1 or _have_versions([records[index] for index in indices]):
            candidates += [SectionCandidate(index, index) for index in indices]
        else:
            best_index = min(indices, key=lambda index: (scores[index] is None, -(scores[index] or 0.0)))
            raw_indices = (index for index in indices if records[index][0][prefixed("view")] == "raw")
            candidates.append(SectionCandidate(next(raw_indices, best_index), best_index))
    return sorted(candidates, key=lambda candidate: candidate.best_index)


def _have_versions(records: Iterable[tuple[Mapping[str, Any], str]]) -> bool:
    """Return True if records of the same view of a section have different texts."""
    views_and_texts = {(metadata[prefixed("view")], text) for metadata, text in records}
    return len({view for view, _ in views_and_texts}) < len(views_and_texts)


def select_substitutes(
    sections: Sequence[StoredChunk[Any]],
    ids: Iterable[str],
    hits: Iterable[StoredChunk[Any]],
    access_filter: AccessFilter[Any],
) -> dict[str, StoredChunk[Any]]:
    """Return raw sections that a caller passed, by id, for sections that no store can be asked for.

    A document of which a hit differs from the passed section is of another version. Its sections are left out.

    Args:
        sections: Views of sections that the caller passed.
        ids: Ids of the sections to return.
        hits: Records that a search returned.
        access_filter: Filter of the sections.
    """
    permitted = set(map(id, access_filter.filter_fetched(section.record for section in sections)))
    section_by_key = {(section.id, section.view): section for section in sections if id(section.record) in permitted}
    outdated_documents = {
        hit.document
        for hit in hits
        if (section := section_by_key.get((hit.id, hit.view)) or section_by_key.get((hit.id, "raw")))
        and _is_other_version(section, hit)
    }
    substitutes = [section_by_key[id_, "raw"] for id_ in ids if (id_, "raw") in section_by_key]
    return {section.id: section for section in substitutes if section.document not in outdated_documents}


def _is_other_version(section: StoredChunk[Any], hit: StoredChunk[Any]) -> bool:
    """Return True if two records of a view differ. Frameworks add metadata, but do not change them."""
    metadata = hit.record.metadata
    return section.view == hit.view and (
        section.view_text != hit.view_text
        or any(
            isinstance(value, str | int) and metadata.get(key, value) != value
            for key, value in section.record.metadata.items()
        )
    )


def check_searched(component: str, documents: Sequence[Any] | None, source: object) -> None:
    """Check that a component has something to search.

    Raises:
        InvalidInput: It has neither documents nor a source.
    """
    if source is None and not documents:
        raise InvalidInput(f"{component} has nothing to search. Pass documents or a source.")


def warn_missing(component: str, ids: Sequence[str], where: str = "is no longer in the store") -> None:
    """Warn about sections that are left out because their raw records are missing.

    Args:
        component: Name of the component that warns.
        ids: Ids of the sections. Without any, nothing is reported.
        where: Reason, as the rest of a sentence about the raw records.
    """
    if ids:
        warn(f"{component}: the raw record of a section, found by keywords or summary, {where}. It is left out.")
