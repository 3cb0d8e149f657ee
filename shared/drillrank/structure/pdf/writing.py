"""Printed blocks as Markdown, and where each page begins in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from drillrank.structure.markdown_text import heading, prose, table
from drillrank.structure.pages import Pages
from drillrank.structure.pdf.blocks import PrintedBlock
from drillrank.structure.pdf.headings import without_continued
from drillrank.structure.pdf.rows import Row

_BULLET = re.compile(r"[•●◦▪■·–—*-]\s+")
_HYPHEN = re.compile(r"(\w*[^\W\d_])[-\u00ad]$")
_BEGINNING = re.compile(r"[^\W\d_]+")
_WORDS = re.compile(r"[^\W\d_]+")


class MarkdownText:
    """A text that grows block by block.

    Args:
        words: All words of the file: a word that is parted at the end of a line is written as one if it is one of them.
    """

    def __init__(self, words: Collection[str]) -> None:
        self._words = words
        self._parts: list[str] = []
        self._length = 0
        self._last: PrintedBlock | None = None
        self._heading = ""

    def __str__(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    def page(self) -> int:
        """A page begins: where what comes next will stand."""
        return self._length + (2 if self._parts else 0)

    def heading(self, level: int, title: str) -> None:
        """Write a heading, unless it only says that the section goes on."""
        title = without_continued(" ".join(title.split()))
        if title == self._heading:
            return
        self._heading = title
        self._write(heading(level, title))
        self._last = None

    def block(self, block: PrintedBlock) -> int | None:
        """Write a block; where it stands if it goes on with the sentence that the page before broke off."""
        if block.kind == "table":
            self._write(table([row.cells for row in block.rows]))
        else:
            text = self._prose(block.rows)
            if self._breaks_off(block, text):
                at = self._length + 1
                self._parts.append(f" {text}")
                self._length += len(text) + 1
                self._last = block
                return at
            self._write(f"- {_BULLET.sub('', text, count=1)}" if block.kind == "item" and _BULLET.match(text) else text)
        self._last = block
        return None

    def _breaks_off(self, block: PrintedBlock, text: str) -> bool:
        last = self._last
        if last is None or last.kind == "table" or last.page == block.page or block.kind == "item":
            return False
        before = self._parts[-1][-1:]
        return text[:1].islower() and (before.isalpha() or before == ",")

    def _write(self, text: str) -> None:
        if self._parts:
            text = f"\n\n{text}"
        self._parts.append(text)
        self._length += len(text)

    def _prose(self, rows: Sequence[Row]) -> str:
        text = ""
        for row in rows:
            line = " | ".join(row.cells) if len(rows) == 1 and len(row.cells) > 1 else row.text
            if parted := _HYPHEN.search(text):
                rest = _BEGINNING.match(line)
                whole = rest is not None and (parted[1] + rest[0]).casefold() in self._words
                text = (text[:-1] if whole else text) + line
            else:
                text = f"{text} {line}" if text else line
        return prose(text)


def words_of(rows: Iterable[Row]) -> Counter[str]:
    """How often each word stands inside of lines."""
    return Counter(word for row in rows for word in _WORDS.findall(row.text.casefold()))


def written(
    pages: Sequence[Sequence[PrintedBlock]],
    levels: Mapping[int, int],
    marked: Mapping[int, Mapping[str, int]],
    labels: Sequence[str],
    words: Collection[str],
) -> tuple[str, Pages]:
    """The whole file as Markdown.

    Args:
        pages: The blocks of each page.
        levels: Of blocks that are headings, by identity.
        marked: Titles and levels of bookmarks, by the identity of the row that they name.
        labels: Of the pages.
        words: Of the file.
    """
    text = MarkdownText(words)
    starts = []
    for blocks in pages:
        starts.append(text.page())
        for number, block in enumerate(blocks):
            entries = marked.get(id(block.rows[0]), {})
            for title, level in entries.items():
                text.heading(level, title)
            said = " ".join(row.text for row in block.rows)
            if id(block) in levels and not entries:
                text.heading(levels[id(block)], said)
            elif not (entries and len(block.rows) == 1 and _repeats(said, entries)):
                at = text.block(block)
                if at is not None and number == 0:
                    starts[-1] = at
    result = f"{text}\n"
    for number in reversed(range(len(starts))):  # a blank page begins where the next one does
        starts[number] = min([starts[number], len(result) - 1, *starts[number + 1 : number + 2]])
    return result, Pages(tuple(starts), tuple(range(1, len(pages) + 1)), tuple(labels))


def _repeats(said: str, titles: Iterable[str]) -> bool:
    """Whether a row says nothing but what its bookmark says."""
    words = _WORDS.findall(said.casefold())
    return any(words == _WORDS.findall(title.casefold())[: len(words)] for title in titles)
