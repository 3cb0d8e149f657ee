"""Checks of a parsed document."""

from __future__ import annotations

from drillrank.structure import Document


def check_spans(document: Document) -> None:
    text, sections = document.text, document.sections()
    levels: dict[tuple[str, ...], int] = {}
    for section in sections:
        levels[section.path] = section.level
        assert levels.get(section.path[:-1], 0) < section.level or not section.path
    assert "".join(document.slice(section) for section in sections) == text
    assert [section.start for section in sections[1:]] == [section.end for section in sections[:-1]]
    end = 0
    all_blocks = [block for section in sections for block in document.blocks(section)]
    is_source = document.format in ("text", "code") or (
        document.format in ("json", "markdown") and all(block.rendering is None for block in all_blocks)
    )
    for section in sections:
        blocks = document.blocks(section)
        assert section.start < section.end
        assert [block.kind == "heading" for block in blocks] == [
            bool(section.level) and i == 0 for i in range(len(blocks))
        ]
        assert bool(section.path) == bool(section.level) == any(block.kind == "heading" for block in blocks)
        if is_source:
            assert document.readable(section) == document.slice(section)
        for block in blocks:
            assert (block.rendering is None) == is_source
            assert section.start <= block.start < block.end <= section.end
            assert block.start >= end
            assert not text[end : block.start].strip(), "lost text"
            assert not document.slice(block)[-1].isspace()
            end = block.end
    assert not text[end:].strip(), "lost text"
