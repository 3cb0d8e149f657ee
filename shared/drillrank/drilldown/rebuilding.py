"""Rebuild the section trees of documents from the chunks in a framework's store.

Chunks of drillrank have their section's path and offset (`StoredChunk`). Those of other splitters are spans of a text
(`CoveredText`), and no paragraph contains more than these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from drillrank.corpus.documents import DEFAULT_UNIT, Unit
from drillrank.drilldown.covered_text import CoveredText, covered_sections
from drillrank.drilldown.d3 import D3
from drillrank.drilldown.outline import OutlineSection
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.preparing import IndexedSections
from drillrank.drilldown.record_metadata import document_date, identifying_words
from drillrank.drilldown.stored_chunks import ChunkAssembler, StoredChunk
from drillrank.structure.read import document_name
from drillrank.vectors import Floats

SourceText = Sequence[StoredChunk] | Sequence[CoveredText]
"""Stored text of one document: its chunks, sections or all of it, or texts of which chunks contain spans."""


def rebuild_sections(
    documents: Sequence[SourceText], separator: str = " > ", unit: Unit = "paragraph"
) -> list[OutlineSection]:
    r"""Return the sections of documents, as `D3.prepare` takes them.

    Parts of one section are joined before they are parsed, so that no paragraph is cut. If chunks are missing, only
    their sections are missing. Paragraphs and passages have exact offsets. Those of a chunk that is a rendering of its
    source have the chunk's span, and `part` in their metadata distinguishes them. `chunk` in the metadata is the index
    of the chunk in which a paragraph begins.

    Args:
        documents: Chunks of each document in any order, or its covered texts. Equal chunks count once.
        separator: Text between the headings of a chunk's path.
        unit: Unit of evidence. Passages are packed as in `drillrank.structure.passages`, from neighbors only.

    >>> chunks = [StoredChunk("## Fish\n\nCod.\n\nTuna.", "Sea > Fish", 14), StoredChunk("# Sea\n\nDeep.\n", "Sea")]
    >>> [(s.passage.title, [p.metadata["start"] for p in s.paragraphs]) for s in rebuild_sections([chunks])]
    [('Sea', [7]), ('Sea > Fish', [23, 29])]
    >>> [[p.text for p in s.paragraphs] for s in rebuild_sections([chunks], unit="passage")]
    [['# Sea\n\nDeep.'], ['## Fish\n\nCod.\n\nTuna.']]
    """
    return [
        section
        for document_index, stored in enumerate(documents)
        for section in _rebuild_document(document_index, stored, separator, unit)
    ]


def _rebuild_document(document_index: int, stored: SourceText, separator: str, unit: Unit) -> list[OutlineSection]:
    chunks = [chunk for chunk in stored if isinstance(chunk, StoredChunk)]
    covered_texts = [text for text in stored if isinstance(text, CoveredText)]
    sections = ChunkAssembler(document_index, separator, unit).build_sections(chunks) if chunks else []
    for text_index, text in enumerate(covered_texts):
        prefix = f"{text_index}:" if len(covered_texts) > 1 else ""
        sections += covered_sections(document_index, prefix, text, unit)
    return sections


def index_stored(d3: D3, document: SourceText, separator: str = " > ") -> IndexedSections:
    """Return the sections of one stored document with their index; arguments as for `rebuild_sections`."""
    sections = rebuild_sections([document], separator, d3.settings.unit or DEFAULT_UNIT)
    name = identifying_words(_metadata(document))
    return d3.preparer.index(sections, {0: name} if name else {})


def join_stored(
    d3: D3, documents: Sequence[SourceText], parts: Sequence[IndexedSections], cosines: Floats | None = None
) -> PreparedDocuments:
    """Join the indexes of stored documents for `D3.retrieve`.

    Args:
        d3: Finds the evidence.
        documents: The documents.
        parts: Result of `index_stored` for each document.
        cosines: Cosines of all passages with the question that will be asked; see `DocumentPreparer.join`.
    """
    metadata = list(map(_metadata, documents))
    words: dict[int | str, str] = {index: name for index, name in enumerate(map(identifying_words, metadata)) if name}
    prepared = d3.preparer.join(parts, words, list(map(document_date, metadata)), cosines)
    # Results name the other versions as their files.
    names = list(map(document_name, metadata))
    name_by_document: dict[int | str, str] = {
        index: name if names.count(name) == 1 else f"{name} ({index + 1})" for index, name in enumerate(names) if name
    }
    prepared.versions.names = {**prepared.versions.names, **name_by_document}
    return replace(prepared, names=name_by_document)


def prepare_stored(d3: D3, documents: Sequence[SourceText], separator: str = " > ") -> PreparedDocuments:
    r"""Prepare stored documents for `D3.retrieve`; arguments as for `rebuild_sections`.

    >>> from drillrank import D3
    >>> prepared = prepare_stored(D3(), [[StoredChunk("# Sea\n\nDeep.")]])
    >>> [item.passage.text for item in D3().retrieve("How deep is the sea?", prepared)]
    ['# Sea\n\nDeep.']
    """
    return join_stored(d3, documents, [index_stored(d3, document, separator) for document in documents])


def _metadata(document: SourceText) -> Mapping[str, object]:
    return document[0].metadata if document else {}
