"""Evidence retrieval over given records or a record store, for components of any framework.

`EvidenceRetrieval` puts documents together from records (`candidates.py`), lets `D3` drill down into them, and returns
each paragraph with the record that contains it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from drillrank.drilldown.d3 import D3, OnStep
from drillrank.drilldown.last_used import LastUsed
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.preparing import IndexedSections
from drillrank.drilldown.rebuilding import index_document, join_documents, prepare_documents
from drillrank.drilldown.result import EvidenceResult
from drillrank.drilldown.settings import MAX_DOCUMENTS
from drillrank.errors import WarnOnce
from drillrank.explanation import Explanation, Explanations, Node
from drillrank.explanation.explanations import explains, explanation_request
from drillrank.frameworks.candidates import CandidateDocuments, find_candidates, join_page_chunks, read_given
from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.metadata import PREFIX, RANKING_NOTES, copy_metadata
from drillrank.frameworks.pages import with_pages_of_span
from drillrank.frameworks.record_cosines import Overlaps, compute_passage_cosines, find_overlaps, find_record_cosines
from drillrank.frameworks.settings import BaseD3RetrieverSettings
from drillrank.frameworks.shared import MAX_INDEXES, CachedValue, get_or_compute, list_visible
from drillrank.frameworks.source_passages import report_usage
from drillrank.llm import LLM, FunctionRequest, Requests
from drillrank.passages import Passage, Ranked, stable_uuid
from drillrank.structure import breadcrumb
from drillrank.structure.read import FORMAT_KEY
from drillrank.structure.reassembly import ReassembledDocument
from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import RecordT, StoredChunk
from drillrank.vectors import Floats

_DEFAULT_SETTINGS = BaseD3RetrieverSettings()
_MAX_JOINED = 4  # sets of documents of a store that are kept prepared
_MAX_STORED_CHARACTERS = 20_000_000  # of documents of a store whose indexes are kept


@dataclass(frozen=True, slots=True)
class EvidenceParagraph(Generic[RecordT]):
    """A passage or paragraph of evidence.

    Attributes:
        text: Readable text.
        id: Id, equal for all questions.
        score: Score of `D3`.
        start: Offset of its first character in the document. None if it is not known.
        end: Offset just after its last character, likewise.
        chunk: Chunk in which it begins.
        document: Id of its document.
        metadata: Metadata of the user from that chunk, with the page of the paragraph, and metadata of drillrank.
        explanation: Explanation of its rank. None if results are not explained.
        page_start: Offset of its page, if the document was joined from pages. Otherwise 0.
    """

    text: str
    id: str
    score: float
    start: int | None
    end: int | None
    chunk: StoredChunk[RecordT]
    document: str
    metadata: dict[str, Any]
    explanation: Explanation | None
    page_start: int


@dataclass(frozen=True, slots=True)
class RetrievedEvidence(Generic[RecordT]):
    """Evidence for one question.

    Attributes:
        paragraphs: Passages or paragraphs, best first. With `max_tokens`, adjacent ones are in document order.
        usage: Cost of the LLM calls, as metadata.
        problems: Everything that went wrong, with the store and with the LLM.
        judgment: `found` and `confidence` as in `EvidenceResult`, without None values.
        tree: Documents, sections and paragraphs, with what became of them. Empty if results are not explained.
    """

    paragraphs: Sequence[EvidenceParagraph[RecordT]]
    usage: dict[str, int | bool]
    problems: list[str]
    judgment: dict[str, Any]
    tree: tuple[Node, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class _DocumentIndex:
    """Index of a stored document.

    Attributes:
        part: Its sections and term counts.
        overlaps: Pairs of a passage and a chunk that overlap.
    """

    part: IndexedSections
    overlaps: Overlaps

    @property
    def n_passages(self) -> int:
        """Number of passages or paragraphs."""
        return sum(len(section.paragraphs) for section in self.part.sections)

    def count_characters(self) -> int:
        """Count the characters of all passages or paragraphs."""
        return sum(len(paragraph.text) for section in self.part.sections for paragraph in section.paragraphs)


class EvidenceRetrieval(Generic[RecordT]):
    """Retrieves evidence from given chunks, or from a record store.

    Documents of a store are read for each question, through the store's own filter. If the store has vectors, their
    cosines are added to the scores (see `record_cosines.py`), unless `d3` has an encoder.

    Three things are cached: the index of each stored document, by `ReassembledDocument.key`, so that only a changed
    document is indexed again; the join of such indexes for one question; and an index of the given chunks, by those of
    them that a caller may see.

    Args:
        d3: Finds the evidence.
        chunks: Given chunks. Without a store, they are read. With one, they add structure and offsets to its records.
        settings: Settings of the component.
        explain: True to explain the rank of each paragraph.
        cache_fields: Function from records to everything that their index depends on. Components with equal values
            share an index. None shares nothing.

    >>> from drillrank.llm import run
    >>> class MemoryStore(RecordStore):
    ...     def __init__(self, chunks):
    ...         self.chunks = chunks
    ...     def search(self, question, n, where=None):
    ...         words = set(question.lower().split())
    ...         return sorted(self.chunks, key=lambda chunk: -len(words & set(chunk.text.lower().split())))[:n]
    ...     def get(self, ids):
    ...         return [chunk for chunk in self.chunks if chunk.id in ids]
    ...     def find(self, where):
    ...         return [chunk for chunk in self.chunks if chunk.document[1] in where["source"]]
    >>> chunks = [
    ...     StoredChunk({"row": row}, str(row), text, ("", "k"), "chunk", start=start, siblings={"source": "k"})
    ...     for row, start, text in [(1, 0, "# Kettle"), (2, 10, "It boils in two minutes.")]
    ... ]
    >>> retrieval = EvidenceRetrieval(D3(settings={"unit": "paragraph"}))
    >>> requests = retrieval.retrieve_requests("How fast does it boil?", MemoryStore(chunks))
    >>> [paragraph] = run(requests).paragraphs
    >>> paragraph.text, paragraph.start, paragraph.chunk.record, paragraph.metadata["drillrank_section_path"]
    ('It boils in two minutes.', 10, {'row': 2}, 'Kettle')
    """

    def __init__(
        self,
        d3: D3,
        chunks: Sequence[StoredChunk[RecordT]] = (),
        *,
        settings: BaseD3RetrieverSettings = _DEFAULT_SETTINGS,
        explain: bool = False,
        cache_fields: Callable[[Sequence[RecordT]], Mapping[str, object]] | None = None,
    ) -> None:
        self.d3 = d3
        self._chunks = chunks
        self._records = [chunk.record for chunk in chunks]
        self._settings = settings
        self._explain = explain
        self._cache_fields = cache_fields
        self._warned = WarnOnce()
        self._prepared_given: LastUsed[
            tuple[int, ...], tuple[CandidateDocuments[RecordT], CachedValue[PreparedDocuments]]
        ] = LastUsed(MAX_INDEXES)
        self._indexes: LastUsed[Any, _DocumentIndex] = LastUsed(_MAX_STORED_CHARACTERS, _DocumentIndex.count_characters)
        self._prepared_stored: LastUsed[tuple[_DocumentIndex, ...], PreparedDocuments] = LastUsed(_MAX_JOINED)

    def prepare(self, access_filter: AccessFilter[Any] | None = None) -> None:
        """Prepare the given chunks that the caller may see now, instead of with the first question."""
        self._prepare_given(self._list_visible(access_filter))

    def retrieve_requests(
        self,
        question: str,
        store: RecordStore | None = None,
        *,
        access_filter: AccessFilter[Any] | None = None,
        top_n: int | None = None,
        max_tokens: int | None = None,
        llm: LLM | None = None,
        on_step: OnStep | None = None,
    ) -> Requests[RetrievedEvidence[RecordT]]:
        """Retrieve evidence for a question, as a generator for `run` and `arun`.

        Args:
            question: The question.
            store: Store of the documents. None reads the given chunks.
            access_filter: Filter of the given chunks; a store has its own. None lets everything pass.
            top_n: Maximum number of paragraphs, as for `D3.retrieve`.
            max_tokens: Token limit of all texts together, as for `D3.retrieve`.
            llm: LLM for this question, instead of that of `d3`.
            on_step: Callback, called with the report of each step; on a worker thread in asynchronous use.

        Raises:
            LLMFailure: A call failed or its answer is unusable, and `on_failure` of the settings says to raise.
        """
        visible = self._list_visible(access_filter)

        # 1. Put together the documents, and prepare them.
        if store is None:
            candidates, shared_index = self._prepare_given(visible)
            prepared = shared_index.value
        else:
            candidates = yield from find_candidates(
                question,
                store,
                self._join_pages(visible),
                self._settings.max_documents or MAX_DOCUMENTS,
                self._settings.join_pages,
                access_filter is not None and access_filter.restricts,
            )
            candidates.warn(self._warned)
            record_cosines = None
            if self.d3.embed is None and self._settings.uses_index_vectors:
                record_cosines = yield from find_record_cosines(question, store, candidates.documents, candidates.hits)
            prepared = self._prepare_stored(candidates.documents, record_cosines)

        # 2. Drill down into them.
        options: dict[str, Any] = {"max_tokens": max_tokens, "llm": llm, "on_step": on_step}
        [result] = yield [FunctionRequest.of(self.d3.retrieve, self.d3.aretrieve, question, prepared, top_n, **options)]

        # 3. Find the record of each paragraph.
        report_usage(result.usage)
        why = result.explain() if explains(self._explain) else None
        if why is not None and (current_request := explanation_request.get()) is not None:
            current_request.tree = why.tree
        return self._build_result(result, candidates, why)

    # --- Preparing documents

    def _list_visible(self, access_filter: AccessFilter[Any] | None) -> tuple[int, ...]:
        """Return the indices of the given chunks that the caller may see."""
        if access_filter is None:
            return tuple(range(len(self._chunks)))
        return list_visible(self._records, access_filter)

    def _join_pages(self, visible: Sequence[int]) -> Sequence[StoredChunk[RecordT]]:
        chunks = [self._chunks[index] for index in visible]
        return join_page_chunks(chunks) if self._settings.join_pages else chunks

    def _prepare_given(
        self, visible: tuple[int, ...]
    ) -> tuple[CandidateDocuments[RecordT], CachedValue[PreparedDocuments]]:
        """Return the documents of given chunks, and an index of them."""

        def prepare() -> tuple[CandidateDocuments[RecordT], CachedValue[PreparedDocuments]]:
            candidates = read_given(self._join_pages(visible), len(visible) < len(self._chunks))
            candidates.warn(self._warned)
            fields = self._cache_fields and self._cache_fields([self._records[index] for index in visible])
            compute = partial(prepare_documents, self.d3, candidates.documents, self._settings.separator)
            return candidates, get_or_compute("evidence", fields, compute)

        return self._prepared_given.make(visible, prepare)

    def _prepare_stored(
        self, documents: Sequence[ReassembledDocument[RecordT]], record_cosines: Sequence[Floats] | None
    ) -> PreparedDocuments:
        """Return an index of documents of a store. Those that have not changed since an earlier question are kept.

        Args:
            documents: The documents.
            record_cosines: Cosines of the records of each document; None for lexical scores alone.
        """
        indexes = [self._indexes.make(document.key, partial(self._index_document, document)) for document in documents]
        parts = [index.part for index in indexes]
        # Each index was made of everything that the store has about its document.
        prepared = self._prepared_stored.make(tuple(indexes), lambda: join_documents(self.d3, documents, parts))
        if record_cosines is None:
            return prepared
        overlaps = [index.overlaps for index in indexes]
        return prepared.with_cosines(
            compute_passage_cosines(overlaps, [index.n_passages for index in indexes], record_cosines)
        )

    def _index_document(self, document: ReassembledDocument[RecordT]) -> _DocumentIndex:
        part = index_document(self.d3, document, self._settings.separator)
        return _DocumentIndex(part, find_overlaps(document, part.sections))

    # --- Building the result

    def _build_result(
        self, result: EvidenceResult, candidates: CandidateDocuments[RecordT], why: Explanations | None
    ) -> RetrievedEvidence[RecordT]:
        usage = result.usage.as_metadata()
        pairs = ("found", result.found), ("confidence", result.confidence)
        judgment = {name: value for name, value in pairs if value is not None}
        shared_metadata = judgment if self.d3.llm is None else usage | judgment
        explanations: Sequence[Explanation | None] = why or [None] * len(result)
        paragraphs = [
            _build_paragraph(
                item,
                candidates.documents,
                {**self._describe(item, candidates.documents), **shared_metadata},
                explanation,
            )
            for item, explanation in zip(result, explanations, strict=True)
        ]
        problems = [*candidates.problems, *result.problems]
        tree = why.tree if why is not None else ()
        return RetrievedEvidence(paragraphs, usage, problems, judgment, tree)

    def _describe(self, item: Ranked[Passage], documents: Sequence[ReassembledDocument[RecordT]]) -> dict[str, Any]:
        """Return metadata about a paragraph: its section, its best paragraph, its duplicates, and its versions."""
        details = item.details
        described = {name: details[name] for name in ("section_score",) if name in details}
        described |= {name: details[name] for name in RANKING_NOTES if details.get(name)}
        described |= _describe_best_paragraph(details) | _describe_sections(item.passage)
        if self._settings.guard_tokens:
            described["guarded"] = details["guarded"]
        if "also_at" in details:
            names = (documents[duplicate["document"]].name[1] for duplicate in details["also_at"])
            described["also_in"] = "; ".join(map(str, dict.fromkeys(names)))
        if "other_versions" in details and "version" in details:
            described["version"] = details["version"]
        described |= {name: "; ".join(details[name]) for name in ("other_versions", "problems") if name in details}
        return described


def _build_paragraph(
    item: Ranked[Passage],
    documents: Sequence[ReassembledDocument[RecordT]],
    described: Mapping[str, Any],
    explanation: Explanation | None,
) -> EvidenceParagraph[RecordT]:
    """Return a paragraph with the chunk in which it begins.

    Args:
        item: The paragraph as `D3` found it.
        documents: All documents.
        described: Metadata of drillrank, by names without prefix.
        explanation: Explanation of its rank.
    """
    position, text = item.passage.metadata, item.passage.text
    document = documents[position["document"]]
    chunk, start, end = document.find_chunk(position["chunk"]), position.get("start"), position.get("end")
    namespace, id_ = document.name
    if namespace:
        described = {**described, "namespace": namespace}

    largest: Any = document.original or chunk
    metadata = chunk.metadata if chunk.pages is None else with_pages_of_span(chunk.metadata, chunk.pages, start, end)
    if chunk.pages is None and largest.pages is not None:  # the metadata of a page or a chunk already name its page
        metadata = {**metadata, **with_pages_of_span({}, largest.pages, start, end)}
    metadata = {key: value for key, value in metadata.items() if key != FORMAT_KEY}  # the format of the source
    page_start = largest.pages.within(start, end).starts[0] if largest.is_joined and start is not None else 0

    is_located = start is not None and chunk.page is None and not document.is_separate
    id_parts = [(namespace, id_) if namespace else id_, *((start, end) if is_located else (chunk.id, start))]
    id_parts += [str(position["part"])] if "part" in position else []
    id_parts += [text] if document.is_separate else []
    return EvidenceParagraph(
        text,
        stable_uuid(*id_parts),
        item.score,
        start,
        end,
        chunk,
        id_,
        copy_metadata({**metadata, **{PREFIX + name: value for name, value in described.items()}}),
        explanation,
        page_start,
    )


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
