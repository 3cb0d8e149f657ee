"""Cosines of a question with records of a store, and with the passages that overlap them.

The cosine of a passage is the highest among the records that it overlaps. Only the question is embedded. Records
without a vector have the lowest cosine of the question.

If a store returns no vectors, the scores of its search count as cosines: those of one search that are all between -1
and 1 and never rise from rank to rank. Distances rise, so they are ignored. Records that the search did not return have
its lowest score.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from drillrank.drilldown.outline import OutlineSection
from drillrank.llm import FunctionRequest, Requests
from drillrank.structure.reassembly import ReassembledDocument
from drillrank.structure.record_store import RecordStore, read_chunk_vectors, read_question_vector
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.vectors import Floats, Integers, of_unit_length

Overlaps = tuple[Integers, Integers]
"""Pairs of a passage and a chunk that overlap: indices of the passages, and indices of the chunks."""


def find_record_cosines(
    question: str,
    store: RecordStore,
    documents: Sequence[ReassembledDocument[Any]],
    hits: Sequence[StoredChunk[Any]],
) -> Requests[list[Floats] | None]:
    """Return the cosine of each chunk with the question, by document. NaN if it is not known.

    Args:
        question: The question.
        store: The store. If it has a method `question_vector`, that returns the vector with which it searched. If it
            has a method `read_vectors`, that returns the vectors of chunks. By default, chunks have their vectors.
        documents: Documents of the store.
        hits: Records that the search returned, best first.

    Returns:
        The cosines. None if no vector and no score is known.
    """
    chunks = [chunk for document in documents for chunk in document.chunks]
    question_vector = read_question_vector(store, question)
    cosines = None
    if question_vector is not None and chunks:
        [vectors] = yield [FunctionRequest(partial(read_chunk_vectors, store, chunks))]
        cosines = _compute_cosines(question_vector, vectors)
    if cosines is None:
        cosines = _convert_scores(chunks, hits)
    if cosines is None:
        return None
    bounds = np.cumsum([len(document.chunks) for document in documents])[:-1]
    return np.split(cosines, bounds)


def _compute_cosines(question_vector: Sequence[float], vectors: Sequence[Any]) -> Floats | None:
    """Return the cosine of each vector with the question's, shape (vectors,). None if there are no vectors.

    Vectors of another length are of another model.
    """
    indices = [
        index for index, vector in enumerate(vectors) if vector is not None and len(vector) == len(question_vector)
    ]
    if not indices:
        return None
    cosines = np.full(len(vectors), np.nan)
    matrix = np.nan_to_num(np.array([vectors[index] for index in indices], dtype=np.float64))
    question_row = np.nan_to_num(np.array([question_vector], dtype=np.float64))
    cosines[indices] = of_unit_length(matrix) @ of_unit_length(question_row)[0]
    return cosines


def _convert_scores(chunks: Sequence[StoredChunk[Any]], hits: Sequence[StoredChunk[Any]]) -> Floats | None:
    """Return the scores of a search as cosines, shape (chunks,). None if they cannot be cosines."""
    scores = np.array([np.nan if hit.score is None else hit.score for hit in hits], dtype=np.float64)
    is_similarity = len(scores) > 1 and bool(np.all(np.abs(scores) <= 1)) and bool(np.all(np.diff(scores) <= 0))
    if not is_similarity or scores[0] == scores[-1]:
        return None
    best_scores: dict[Any, float] = {}
    for hit, score in zip(hits, scores.tolist(), strict=True):
        best_scores.setdefault((hit.document, hit.id), score)
    return np.array([best_scores.get((chunk.document, chunk.id), np.nan) for chunk in chunks])


def find_overlaps(document: ReassembledDocument[Any], sections: Sequence[OutlineSection]) -> Overlaps:
    """Return the pairs of a passage and a chunk that overlap.

    Args:
        document: The document.
        sections: Its sections, with passages or paragraphs.
    """
    n_chunks = len(document.chunks)
    spans = [
        (run.find_offset(span.start), run.find_end(span.end), span.chunk_index)
        for run in document.runs
        if run.shifts
        for span in run.spans
    ]
    starts, ends, span_chunks = np.array(spans, dtype=np.int64).reshape(-1, 3).T  # [n_spans] each
    pages = np.array([str(document.chunks[index].page) for index in span_chunks])
    passage_indices: list[int] = []
    chunk_indices: list[int] = []
    passages = (passage for section in sections for passage in section.paragraphs)
    for passage_index, passage in enumerate(passages):
        position = passage.metadata
        own_index = position["chunk"]
        overlapping = {own_index} if own_index < n_chunks else set()
        if "start" in position:
            is_overlapping = (starts < position["end"]) & (ends > position["start"])
            if own_index < n_chunks:  # offsets may count from each page
                is_overlapping &= pages == str(document.chunks[own_index].page)
            overlapping.update(span_chunks[is_overlapping].tolist())
        passage_indices += [passage_index] * len(overlapping)
        chunk_indices += sorted(overlapping)
    return np.array(passage_indices, dtype=np.intp), np.array(chunk_indices, dtype=np.intp)


def compute_passage_cosines(
    overlaps: Sequence[Overlaps], n_passages: Sequence[int], record_cosines: Sequence[Floats]
) -> Floats:
    """Return the cosine of each passage, shape (passages,): the highest among the records that it overlaps.

    Args:
        overlaps: Result of `find_overlaps` for each document.
        n_passages: Number of passages in each document.
        record_cosines: Cosines of the records of each document, NaN if they are not known. At least one is.

    >>> overlaps = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> compute_passage_cosines([overlaps], [3], [np.array([0.5, 0.25])]).tolist()
    [0.5, 0.25, 0.25]
    """
    lowest = min(float(np.nanmin(cosines)) for cosines in record_cosines if not np.isnan(cosines).all())
    by_document = []
    for (passage_indices, chunk_indices), size, cosines in zip(overlaps, n_passages, record_cosines, strict=True):
        passage_cosines = np.full(size, lowest)
        np.maximum.at(passage_cosines, passage_indices, np.nan_to_num(cosines, nan=lowest)[chunk_indices])
        by_document.append(passage_cosines)
    return np.concatenate(by_document)
