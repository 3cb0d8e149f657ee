"""Rebuild the section trees of documents from the chunks in a framework's store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from drillrank.corpus.documents import DEFAULT_UNIT, Unit
from drillrank.drilldown.d3 import D3
from drillrank.drilldown.heading_paths import HeadingPaths
from drillrank.drilldown.outline import OutlineSection
from drillrank.drilldown.parsed_runs import ParsedRun, parse_run
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.preparing import IndexedSections
from drillrank.drilldown.record_metadata import document_date, identifying_words
from drillrank.drilldown.stored_passages import pack_sections
from drillrank.structure import parse_document
from drillrank.structure.packing import SourceBlock
from drillrank.structure.read import document_name, document_path
from drillrank.structure.reassembly import ReassembledDocument


def rebuild_sections(
    documents: Sequence[ReassembledDocument[Any]], separator: str = " > ", unit: Unit = "paragraph"
) -> list[OutlineSection]:
    r"""Return the sections of documents, as `D3.prepare` takes them.

    If chunks are missing, only their text is missing. Paragraphs and passages have exact offsets, if these are known.
    Their metadata have `document`, `section_path`, `chunk` (index of the chunk in which they begin), and `start` and
    `end` in the document. Without known offsets, they have `part`, their offset in the chunk. Those of a chunk that is
    a rendering of its source have the chunk's span, and `part` distinguishes them.

    Args:
        documents: The documents.
        separator: Text between the headings of a chunk's joined path.
        unit: Unit of evidence. Passages are packed as in `drillrank.structure.passages`, from neighbors only.

    >>> from drillrank.structure.reassembly import reassemble
    >>> from drillrank.structure.stored_chunks import StoredChunk
    >>> sea = StoredChunk(1, "1", "# Sea\n\nDeep.\n", ("", "a"), "section", "raw", path="Sea", start=0)
    >>> fish = StoredChunk(2, "2", "## Fish\n\nCod.\n\nTuna.", ("", "a"), "section", "raw", path="Sea > Fish", start=14)
    >>> sections = rebuild_sections([reassemble([fish, sea])])
    >>> [(section.passage.title, [p.metadata["start"] for p in section.paragraphs]) for section in sections]
    [('Sea', [7]), ('Sea > Fish', [23, 29])]
    >>> sections = rebuild_sections([reassemble([fish, sea])], unit="passage")
    >>> [[p.text for p in section.paragraphs] for section in sections]
    [['# Sea\n\nDeep.'], ['## Fish\n\nCod.\n\nTuna.']]
    """
    return [
        section
        for document_index, document in enumerate(documents)
        for section in _rebuild_document(document_index, document, separator, unit)
    ]


def index_document(d3: D3, document: ReassembledDocument[Any], separator: str = " > ") -> IndexedSections:
    """Return the sections of one stored document with their index; arguments as for `rebuild_sections`."""
    sections = rebuild_sections([document], separator, d3.settings.unit or DEFAULT_UNIT)
    name = identifying_words(document.metadata)
    return d3.preparer.index(sections, {0: name} if name else {})


def join_documents(
    d3: D3,
    documents: Sequence[ReassembledDocument[Any]],
    parts: Sequence[IndexedSections],
) -> PreparedDocuments:
    """Join the indexes of stored documents for `D3.retrieve`.

    Args:
        d3: Finds the evidence.
        documents: The documents.
        parts: Result of `index_document` for each document.
    """
    metadata = [document.metadata for document in documents]
    words: dict[int | str, str] = {index: name for index, name in enumerate(map(identifying_words, metadata)) if name}
    paths: dict[int | str, str] = {index: path for index, path in enumerate(map(document_path, metadata)) if path}
    prepared = d3.preparer.join(parts, words, list(map(document_date, metadata)), paths)
    # Results name the other versions as their files.
    names = list(map(document_name, metadata))
    name_by_document: dict[int | str, str] = {
        index: name if names.count(name) == 1 else f"{name} ({index + 1})" for index, name in enumerate(names) if name
    }
    prepared.versions.names = {**prepared.versions.names, **name_by_document}
    return replace(prepared, names=name_by_document)


def prepare_documents(
    d3: D3, documents: Sequence[ReassembledDocument[Any]], separator: str = " > "
) -> PreparedDocuments:
    r"""Prepare stored documents for `D3.retrieve`; arguments as for `rebuild_sections`.

    >>> from drillrank import D3
    >>> from drillrank.structure.reassembly import reassemble
    >>> from drillrank.structure.stored_chunks import StoredChunk
    >>> prepared = prepare_documents(D3(), [reassemble([StoredChunk(1, "1", "# Sea\n\nDeep.", ("", "1"))])])
    >>> [item.passage.text for item in D3().retrieve("How deep is the sea?", prepared)]
    ['# Sea\n\nDeep.']
    """
    return join_documents(d3, documents, [index_document(d3, document, separator) for document in documents])


def _rebuild_document(
    document_index: int, document: ReassembledDocument[Any], separator: str, unit: Unit
) -> list[OutlineSection]:
    format, paths = _find_format(document), HeadingPaths(separator)
    runs = []
    for run_index, run in enumerate(document.runs):
        has_own_ids = not run.is_section and len(document.runs) > 1
        id_prefix = f"{document_index}:{run_index}:" if has_own_ids else f"{document_index}:"
        runs.append(parse_run(run, paths, format, document_index, id_prefix))
    if unit == "passage":
        groups = [group for neighbors in _group_adjacent(runs) for group in _join_blocks(neighbors)]
        return pack_sections(document_index, groups)
    return _list_paragraphs(runs)


def _find_format(document: ReassembledDocument[Any]) -> str:
    """Return the format of the whole document, which its runs alone may not show."""
    if len(document.runs) <= 1:
        return "auto"
    if any(run.path and not run.is_section for run in document.runs):
        return "markdown"
    is_section = document.runs[0].is_section
    texts = [run.text for run in document.runs] if is_section else [chunk.text for chunk in document.chunks]
    metadata = (document.runs[0] if is_section else document.chunks[0]).metadata
    return parse_document("\n\n".join(texts), metadata=metadata).format


# --- Paragraphs


def _list_paragraphs(runs: Sequence[ParsedRun]) -> list[OutlineSection]:
    sections: list[OutlineSection] = []
    end: int | None = None
    for parsed in runs:
        run_sections = list(parsed.list_sections())
        # An empty section is shown by its heading, unless the next run continues below it. A run with an equal heading
        # of its own begins another section.
        if (
            run_sections
            and sections
            and parsed.run.start == end
            and _has_only_heading(sections[-1], run_sections[0])
            and sections[-1].path[1:] not in parsed.paths.values()
        ):
            sections.pop()
        sections += run_sections
        end = parsed.run.end
    return sections


def _has_only_heading(section: OutlineSection, next_section: OutlineSection) -> bool:
    """Return True if a section has only its heading, which is above the next section."""
    depth = len(section.path)
    return not section.passage.text and len(next_section.path) > depth and next_section.path[:depth] == section.path


# --- Passages


def _group_adjacent(runs: Sequence[ParsedRun]) -> Iterator[list[ParsedRun]]:
    """Yield groups of sections without a missing text between them. Runs of other chunks are groups of their own."""
    group: list[ParsedRun] = []
    for parsed in runs:
        if group and not (parsed.run.is_section and group[-1].run.end == parsed.run.start):
            yield group
            group = []
        group.append(parsed)
    if group:
        yield group


def _join_blocks(runs: Sequence[ParsedRun]) -> list[list[list[SourceBlock]]]:
    """Return the blocks of each section in adjacent runs, with the white space between the runs."""
    if len(runs) == 1:
        return runs[0].list_blocks()
    sections: list[list[SourceBlock]] = []
    text_after = ""  # after the last block
    for parsed in runs:
        run_sections = [section for group in parsed.list_blocks() for section in group]
        if not run_sections:
            text_after += parsed.run.text
            continue
        first, last = run_sections[0][0], run_sections[-1][-1]
        between = text_after + parsed.run.text[: first.start - parsed.packing_offset]
        if sections and sections[-1][-1].is_exact and first.is_exact and not between.strip():
            run_sections[0][0] = replace(first, gap=between)
        sections += run_sections
        text_after = parsed.run.text[last.end - parsed.packing_offset :]
    return [sections]
