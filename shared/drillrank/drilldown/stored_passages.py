"""Pack the blocks of stored documents into passages, as `drillrank.structure.passages` does for whole documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from drillrank.drilldown.outline import OutlineSection
from drillrank.passages import Passage
from drillrank.structure import breadcrumb
from drillrank.structure.packing import PackedPassage, SourceBlock, join_headings, pack_blocks


def pack_sections(document_index: int, groups: Iterable[Sequence[Sequence[SourceBlock]]]) -> list[OutlineSection]:
    """Return sections whose paragraphs are passages.

    Args:
        document_index: Index of the document in the input.
        groups: Neighboring sections in order, as blocks with text. The `origin` of a block is a `BlockOrigin`. Passages
            never join two groups.
    """
    passages = [passage for group in groups for passage in pack_blocks(group)]
    return [_build_section(document_index, section) for section in _group_by_section(document_index, passages)]


def _group_by_section(
    document_index: int, packed: Sequence[PackedPassage]
) -> Iterator[list[tuple[SourceBlock, Passage, Passage]]]:
    """Yield the passages that begin in one section, each with its first block, source and readable text."""
    n_by_id: Counter[str] = Counter()
    passages = []
    for passage in packed:
        first = passage.parts[0].block
        id_, position, source_text = first.origin.run.locate(passage)
        metadata: dict[str, Any] = {"document": document_index, "section_path": first.path, **position}
        if passage.headings and passage.headings != (first.path,):
            metadata["section_paths"] = passage.headings
        n_by_id[id_] += 1
        if number := n_by_id[id_] - 1:  # parts of one block with markup
            id_ = f"{id_}:{number}"
            metadata["part"] = f"{metadata['part']}.{number}" if "part" in metadata else str(number)
        title = join_headings(passage.headings)
        source = Passage(source_text, id=id_, title=title, metadata=metadata)
        readable = Passage(passage.text, id=id_, title=title, metadata=metadata)
        passages.append((first, source, readable))
    for _, section in groupby(passages, key=lambda entry: (entry[0].origin.section_id, entry[0].path)):
        yield list(section)


def _build_section(document_index: int, entries: Sequence[tuple[SourceBlock, Passage, Passage]]) -> OutlineSection:
    first = entries[0][0]
    readable = tuple(passage for _, _, passage in entries)
    section_passage = Passage(
        "\n\n".join(passage.text for passage in readable),
        id=first.origin.section_id,
        title=breadcrumb(first.path),
        metadata={"document": document_index, "section_path": first.path},
    )
    return OutlineSection(section_passage, tuple(source for _, source, _ in entries), readable)
