"""The layout of a PDF's pages: runs of text become rows of cells, paragraphs, items, tables and headings."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Literal
from unicodedata import bidirectional

from drillrank.structure.plain import named_rank

_BOLD = re.compile(r"bold|black|heavy|demi|bd(?![a-z])", re.IGNORECASE)
_BOLD_WEIGHT = 600
_GAP = 0.9  # between two cells, in heights of a line; a space takes about a quarter
_BEFORE_NUMBER = re.compile(r"[$€£¥(]+")  # a sign that stands apart from the number to its right
_BEHIND_NUMBER = re.compile(r"[%)]+|\)?\s?%")
_CURRENCY = re.compile(r"[$€£¥]")
_NUMBER_END = re.compile(r".*[\d%)–—-]")
_TRAILING = re.compile(r"(?P<own>.*\S)\s+(?P<sign>[$€£¥])")
_MARKER = re.compile(r"[•●◦▪■·–—*-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]")
# Where two columns, and where three, may part, of the width of the text.
_GUTTERS = ((range(40, 61),), (range(28, 39), range(62, 73)))
_MATCHING = 0.6  # part of baselines that two columns may share; the halves of a table share nearly all
_LEAST_ROWS = 6  # of a column
_SHORT = 3  # letters of every part but one
_RARER = 10  # times, the rarest part beside the whole word
_SPELLED = 4  # letters that stand alone one after the other: what they spell need not be frequent
_LEAST_LETTERS, _MOST_LETTERS = 3, 60  # of a word
_AROUND = "([{\"'“‘.,;:!?)]}”’"
_OUTERMOST = 4  # rows at the top and at the bottom that may be
_LEAST_PAGES = 3  # pages that they are on
_PART = 0.04  # of all pages
_LARGE = 1.15  # of the size of most text: a heading that many pages begin with
_SMALL_NUMBER = re.compile(r"(?<![\d,.$])\d{1,3}(?![\d,]|\.\d)")
_PAGE_NUMBER = re.compile(r"(?:page\s*)?[-–|]?\s*(?:\d{1,4}|[ivxlc]{1,6}|[A-Z]{1,2}-\d{1,3})\s*[-–|]?", re.IGNORECASE)
_WIDE = 0.7  # of its column: a line of prose that goes on in the next one
_NARROW = 0.6  # of its column: a line inside of a table that names the rows below it
_ENDS = (".", "!", "?", ":", ";")
_DEEPEST = 6  # of Markdown
_LONGEST = 140  # characters of a heading
_USUAL = 3  # headings of a style, where there are many in all
_MANY = 20
_LEAST_NAMED = 3  # headings that call themselves a part, chapter or item
_Style = tuple[float, bool, bool]  # size, bold, capitals
_WORD = re.compile(r"\w+")
_CAPTION = re.compile(r"\(|.*\b(?:ended|as of|(?:in|of) (?:millions|thousands|billions))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Run:
    """Text that is printed in one go; points, from the page's top left corner."""

    text: str
    x: float
    y: float
    width: float
    height: float
    bold: bool

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.x + self.width

    @property
    def middle(self) -> float:
        """Half of its height."""
        return self.y + self.height / 2


def run_of(text: str, box: tuple[float, float, float, float], font: str = "", weight: int = 0, angle: int = 0) -> Run:
    """A run as it stands on a page that is turned so that it reads from left to right.

    Args:
        text: What it says.
        box: Its left and upper edge, width and height.
        font: As the file names it.
        weight: Of the font, 400 if it is regular.
        angle: Clockwise, from 0 to 359.
    """
    x, y, width, height = box
    if angle in (90, 270):
        x, y = (y, -x - width) if angle == 90 else (-y - height, x)
        width, height = height, width
    elif angle == 180:
        x, y = -x - width, -y - height
    bold = weight >= _BOLD_WEIGHT or _BOLD.search(font) is not None
    return Run(" ".join(text.split()), x, y, width, height, bold)


@dataclass(frozen=True, eq=False)
class Row:
    """What stands on one line of a column; each is equal to itself alone.

    Attributes:
        runs: From left to right.
        left: Of the column.
        right: Of the column.
    """

    runs: tuple[Run, ...]
    left: float
    right: float

    @property
    def y(self) -> float:
        """Its upper edge."""
        return min(run.y for run in self.runs)

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return max(run.y + run.height for run in self.runs)

    @property
    def x(self) -> float:
        """Where its text begins."""
        return self.runs[0].x

    @property
    def end(self) -> float:
        """Where its text ends."""
        return self.runs[-1].right

    @cached_property
    def size(self) -> float:
        """Height of most of its characters, to half a point."""
        sizes: Counter[float] = Counter()
        for run in self.runs:
            sizes[round(2 * run.height) / 2] += len(run.text)
        return sizes.most_common(1)[0][0]

    @cached_property
    def bold(self) -> bool:
        """Whether all of its letters are."""
        return all(run.bold for run in self.runs if any(map(str.isalpha, run.text)))

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Its text, apart where wide gaps part it; currency and percent signs go with their numbers."""
        cells: list[str] = []
        last: Run | None = None
        for run in _signs_apart(self.runs):
            near = last is not None and run.x - last.right < _GAP * min(run.height, last.height)
            if cells and _CURRENCY.fullmatch(run.text) and _NUMBER_END.fullmatch(cells[-1]):
                near = False  # of the next number
            signed = bool(cells) and (_BEFORE_NUMBER.fullmatch(cells[-1]) or _BEHIND_NUMBER.fullmatch(run.text))
            if cells and (near or signed or (len(cells) == 1 and _MARKER.fullmatch(cells[0]))):
                # A run that begins where another ends goes on with its word.
                cells[-1] += f"{'' if last and run.x - last.right < 0.1 * run.height else ' '}{run.text}"
            else:
                cells.append(run.text)
            last = run
        return tuple(cells)

    @property
    def text(self) -> str:
        """Its text, cells apart by spaces."""
        return " ".join(self.cells)

    @property
    def is_item(self) -> bool:
        """Whether it begins with the marker of a list."""
        first, _, rest = self.text.partition(" ")
        return bool(rest) and _MARKER.fullmatch(first) is not None


def _signs_apart(runs: Iterable[Run]) -> Iterator[Run]:
    """The runs; a currency sign at the end of one belongs to the number behind it."""
    for run in runs:
        found = _TRAILING.fullmatch(run.text)
        if not found:
            yield run
            continue
        step = run.width / len(run.text)
        width = step * len(found["own"])
        yield Run(found["own"], run.x, run.y, width, run.height, run.bold)
        yield Run(found["sign"], run.right - step, run.y, step, run.height, run.bold)


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """The rows of a page: where there are two or three columns, those of a left one before those of a right one.

    A page that is written from right to left is seen in a mirror.
    """
    runs = [run for run in runs if run.text]
    if not runs:
        return []
    from_right = [bidirectional(sign) in ("R", "AL") for run in runs for sign in run.text if sign.isalpha()]
    if 2 * sum(from_right) > len(from_right):
        runs = [replace(run, x=-run.right) for run in runs]
    left, right = min(run.x for run in runs), max(run.right for run in runs)
    rows: list[Row] = []
    for gutters, band in _bands(_lines(runs), left, right):
        inside = [run for line in band for run in line]
        for start, end in pairwise([left, *gutters, right]):
            column = [run for run in inside if start <= run.x < end] if gutters else inside
            rows += [Row(tuple(line), start, end) for line in (_lines(column) if gutters else band)]
    return rows


def _lines(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that share a line, from left to right; lines from above."""
    lines: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: run.middle):
        if lines and run.middle - lines[-1][-1].middle < 0.4 * min(run.height, lines[-1][-1].height):
            lines[-1].append(run)
        else:
            lines.append([run])
    return [sorted(line, key=lambda run: run.x) for line in lines]


def _bands(lines: list[list[Run]], left: float, right: float) -> Iterator[tuple[list[float], list[list[Run]]]]:
    """The page from above in bands, each with the places of its gutters if it has columns."""
    three, two = (_gutters(lines, left, right, places) for places in reversed(_GUTTERS))
    gutters = three if three and _are_columns([line for line in lines if not _crosses(line, three)], three) else two
    for crossed, group in groupby(lines, key=lambda line: _crosses(line, gutters)):
        band = list(group)
        yield (gutters if gutters and not crossed and _are_columns(band, gutters) else []), band


def _crosses(line: Sequence[Run], gutters: Sequence[float]) -> bool:
    return any(run.x < gutter < run.right for run in line for gutter in gutters)


def _gutters(lines: Sequence[Sequence[Run]], left: float, right: float, places: Sequence[Iterable[int]]) -> list[float]:
    """Where most lines could be parted; nowhere if those are few."""
    found: list[float] = []
    for parts in places:
        free = {
            location: sum(not _crosses(line, [location]) for line in lines)
            for location in (left + part / 100 * (right - left) for part in parts)
        }
        best = [location for location, count in free.items() if count == max(free.values())]
        if free[best[0]] < 2 * _LEAST_ROWS:
            return []
        found.append(best[len(best) // 2])
    return found


def _are_columns(band: Sequence[Sequence[Run]], gutters: Sequence[float]) -> bool:
    """Whether all sides are texts of their own: lines of prose on each, or, of two, baselines that do not agree."""
    sides = [
        [run for line in band for run in line if start <= run.x < end]
        for start, end in pairwise([-math.inf, *gutters, math.inf])
    ]
    rows = [len({round(run.middle) for run in side}) for side in sides]
    if min(rows) < _LEAST_ROWS:
        return False
    width = max(run.right for run in sides[-1]) - gutters[-1]
    prose = [sum(run.width > 0.75 * width for run in side) for side in sides]
    if len(gutters) > 1:
        return min(prose) >= _LEAST_ROWS
    matching = sum(
        abs(before.middle - after.middle) < 1
        for line in band
        for before, after in pairwise(line)
        if before.x < gutters[0] <= after.x
    )
    return min(prose) >= _LEAST_ROWS // 2 or matching < _MATCHING * min(rows)


def rejoined(row: Row, counts: Mapping[str, int]) -> Row:
    """A row whose split words are whole.

    Args:
        row: Of the file.
        counts: How often the file has each word, in small letters.
    """
    whole = [joined(run.text, counts) for run in row.runs]
    if whole == [run.text for run in row.runs]:
        return row
    return replace(row, runs=tuple(replace(run, text=text) for run, text in zip(row.runs, whole, strict=True)))


def joined(text: str, counts: Mapping[str, int]) -> str:
    """A text whose split words are whole.

    >>> joined("Net Incom e (loss) of an e-mail", {"income": 50, "incom": 2, "e": 5, "net": 40})
    'Net Income (loss) of an e-mail'
    >>> joined("R e v e n u e grew", {"revenue": 1})
    'Revenue grew'
    """
    parts = text.split(" ")
    whole: list[str] = []
    at = 0
    while at < len(parts):
        end = _end(parts, at, counts)
        whole.append("".join(parts[at:end]))
        at = end
    return " ".join(whole)


def _end(parts: Sequence[str], start: int, counts: Mapping[str, int]) -> int:
    """Where the longest word ends that is split from `start` on; the next part, if none is."""
    best, word, rarest, long = start + 1, "", math.inf, 0
    for end in range(start + 1, len(parts) + 1):
        given = parts[end - 1]
        part = given.rstrip(_AROUND) if word else given.lstrip(_AROUND)
        long += len(part) > _SHORT
        if not part.isalpha() or long > 1 or len(word) > _MOST_LETTERS:
            break
        word += part.casefold()
        rarest = min(rarest, counts.get(part.casefold(), 0))
        known = counts.get(word, 0) if len(word) >= _LEAST_LETTERS else 0
        spelled = end - start >= _SPELLED and end - start == len(word)
        if end > start + 1 and known and (spelled or known >= _RARER * rarest):
            best = end
        if end > start + 1 and part != given:  # behind a comma, another word begins
            break
    return best


PrintedKind = Literal["paragraph", "item", "table"]
_Place = tuple[str, int]  # words of a row, and how high it stands: equal on two pages, they are the same


def without_running(pages: Sequence[list[Row]]) -> list[list[Row]]:
    """The rows of each page without those at its edges that repeat on others, and without a page number."""
    seen: Counter[_Place] = Counter()
    sizes: Counter[float] = Counter()
    edges = []
    for number, rows in enumerate(pages):
        ordered = sorted(rows, key=lambda row: row.y)
        edges.append((ordered[:_OUTERMOST], ordered[::-1][:_OUTERMOST]))
        seen.update({location for side in edges[-1] for row in side for location in _places(row, number)})
        for row in rows:
            sizes[row.size] += len(row.text)
    largest = _LARGE * sizes.most_common(1)[0][0] if sizes else 0.0
    least = max(_LEAST_PAGES, round(_PART * len(pages)))
    remaining = []
    for number, rows in enumerate(pages):
        peeled: set[Row] = set()
        for side in edges[number]:  # from the edge: what stands inside of the text is no header
            for row in side:
                # of a place that falls between two others, one of both is seen on every page
                repeats = row.size <= largest and any(seen[location] >= least for location in _places(row, number))
                if not repeats and not (len(row.cells) == 1 and _PAGE_NUMBER.fullmatch(row.text)):
                    break
                peeled.add(row)
        remaining.append([row for row in rows if row not in peeled] or rows)  # a page that is all the same is no header
    return remaining


def _places(row: Row, number: int) -> tuple[_Place, _Place]:
    """Numbers count from the page's own: those that rise with it are page numbers."""
    words = _SMALL_NUMBER.sub(lambda found: f"#{int(found[0]) - number}", row.text.casefold())
    return (words, int(row.y // 6)), (words, int((row.y + 3) // 6) + 10_000)


@dataclass(frozen=True, eq=False)
class PrintedBlock:
    """Neighbouring rows that belong together; each is equal to itself alone.

    Attributes:
        kind: What they are.
        rows: From above.
        page: Where it begins, from 0.
    """

    kind: PrintedKind
    rows: tuple[Row, ...]
    page: int

    @property
    def size(self) -> float:
        """Height of its first row."""
        return self.rows[0].size

    @property
    def bold(self) -> bool:
        """Whether all of it is."""
        return all(row.bold for row in self.rows)

    @property
    def text(self) -> str:
        """Its rows, apart by spaces."""
        return " ".join(row.text for row in self.rows)


def blocks_of(rows: Sequence[Row], page: int, headings: Container[Row] = ()) -> list[PrintedBlock]:
    """The blocks of a page.

    Args:
        rows: In reading order.
        page: From 0.
        headings: Rows that are known to be headings: each stands alone.
    """
    blocks: list[PrintedBlock] = []
    in_tables = zip(_are_of_tables(rows, headings), rows, strict=True)
    for (is_table, _), group in groupby(in_tables, key=lambda pair: (pair[0], pair[1].left)):
        group_rows = [row for _, row in group]
        parts = [group_rows] if is_table else _paragraphs(group_rows, headings)
        for part in parts:
            kind: PrintedKind = "table" if is_table else "item" if part[0].is_item else "paragraph"
            blocks.append(PrintedBlock(kind, tuple(part), page))
    return blocks


def _are_of_tables(rows: Sequence[Row], headings: Container[Row]) -> list[bool]:
    """Of each row, whether it is of a table: rows of several cells, and lines inside that name those below."""
    several = [len(row.cells) > 1 and row not in headings for row in rows]
    for at in range(1, len(rows) - 1):
        if several[at - 1] and several[at + 1] and _names_rows(rows, at, headings):
            several[at] = True
    for at in range(len(rows)):  # one line with gaps is no table
        several[at] = several[at] and any(several[max(at - 1, 0) : at] + several[at + 1 : at + 2])
    return several


def _names_rows(rows: Sequence[Row], at: int, headings: Container[Row]) -> bool:
    before, row, after = rows[at - 1 : at + 2]
    narrow = row.end - row.x < _NARROW * (row.right - row.left)
    near = after.y - row.bottom < 1.2 * row.size and row.y - before.bottom < 1.2 * row.size
    return narrow and near and row not in headings and row.size <= after.size


def _paragraphs(rows: Sequence[Row], headings: Container[Row]) -> list[list[Row]]:
    parts: list[list[Row]] = []
    for row in rows:
        if not parts or not _goes_on(parts[-1], row, headings):
            parts.append([])
        parts[-1].append(row)
    return parts


def _goes_on(part: Sequence[Row], row: Row, headings: Container[Row]) -> bool:
    """Whether a row continues the rows above it."""
    last = part[-1]
    if last in headings or row in headings or row.is_item or abs(row.size - last.size) > 1:
        return False
    gap = row.y - last.bottom
    usual = part[1].y - part[0].bottom if len(part) > 1 else 0.75 * row.size
    if gap < -row.size or gap > max(usual, 0.0) + 0.4 * row.size:
        return False
    full = last.end - last.left > _WIDE * (last.right - last.left)
    if row.bold != last.bold:  # a title in the paragraph's first line
        return full and len(part) == 1 and last.bold and gap < 0.5 * row.size
    return full or (not last.text.endswith(_ENDS) and row.text[:1].islower())


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of a file's outline.

    Attributes:
        title: As a reader sees it.
        level: From 1 on.
        page: From 0.
        y: How far from the top of the page, in points; None if it names the page alone.
    """

    title: str
    level: int
    page: int
    y: float | None = None


def marked_rows(bookmarks: Iterable[Bookmark], pages: Sequence[Sequence[Row]]) -> dict[Row, dict[str, int]]:
    """Titles and levels of bookmarks, by the row that they name; a row may begin several sections.

    A bookmark whose title is not on its page or the next stands at the row that it points to.
    """
    found: dict[Row, dict[str, int]] = {}
    last = (-1, -1)
    for mark in bookmarks:
        if not 0 <= mark.page < len(pages) or not mark.title:
            continue
        location = _titled(mark, pages, last)
        if location is None and pages[mark.page]:
            tops = [0.0 if mark.y is None else abs(row.y - mark.y) for row in pages[mark.page]]
            location = mark.page, tops.index(min(tops))
        if location is not None:
            last = max(last, location)
            titles = found.setdefault(pages[location[0]][location[1]], {})
            titles.setdefault(mark.title, min(mark.level, _DEEPEST))
    return found


def _titled(mark: Bookmark, pages: Sequence[Sequence[Row]], last: tuple[int, int]) -> tuple[int, int] | None:
    """The page and the row behind `last` that hold the title of a bookmark."""
    wanted = _plain(mark.title)
    for page in range(mark.page, min(mark.page + 2, len(pages))):
        near: list[tuple[float, tuple[int, int]]] = []
        for at, row in enumerate(pages[page]):
            shown = _plain(row.text)
            # a title over two lines, or one that its text follows
            begins = len(shown) > 5 and (wanted.startswith(shown) or (shown.startswith(wanted) and len(wanted) > 5))
            if (shown == wanted or begins) and (page, at) > last:
                far = 0.0 if mark.y is None else abs(row.y - mark.y)
                near.append((far + 40 * (shown != wanted), (page, at)))
        if near:
            return min(near)[1]
    return None


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def by_fonts(blocks: Sequence[PrintedBlock], below: int) -> dict[PrintedBlock, int]:
    """Levels of blocks that stand out by their font: larger than the text's, or bold.

    What calls itself a part, chapter or item stands above the others.

    Args:
        blocks: Of the whole file.
        below: A level above all of these.
    """
    text_styles: Counter[tuple[float, bool]] = Counter({(0.0, False): 0})
    for block in blocks:
        if block.kind != "table":
            text_styles[block.size, block.bold] += sum(len(row.text) for row in block.rows)
    size, bold = text_styles.most_common(1)[0][0]
    styles: dict[PrintedBlock, _Style] = {}
    named: dict[PrintedBlock, int] = {}
    for block, after in zip(blocks, [*blocks[1:], None], strict=False):
        if _may_be(block, size, bold, after):
            text = block.text
            styles[block] = block.size, block.bold, text.isupper()
            if (rank := named_rank(text)) is not None:
                named[block] = rank
    if len(named) < _LEAST_NAMED:
        named = {}
    above = {rank: below + 1 + at for at, rank in enumerate(sorted(set(named.values())))}
    levels = _levels([style for block, style in styles.items() if block not in named])
    return {
        block: min(above[named[block]] if block in named else below + len(above) + levels[style], _DEEPEST)
        for block, style in styles.items()
    }


def _levels(styles: Sequence[_Style]) -> dict[_Style, int]:
    """Levels of styles, the largest first; one that is seldom used has the level of the next smaller one."""
    counts = Counter(styles)
    least = _USUAL if len(styles) >= _MANY else 1
    levels: dict[_Style, int] = {}
    level, usual = 1, False
    for style in sorted(counts, reverse=True):
        level += usual
        levels[style] = level
        usual = counts[style] >= least or style == styles[0]  # which may be the title
    return levels


def _may_be(block: PrintedBlock, size: float, bold: bool, after: PrintedBlock | None) -> bool:
    text = block.text
    letters = sum(map(str.isalpha, text))
    if block.kind == "table" or len(block.rows) > 2 or len(text) > _LONGEST or letters < max(3, 0.5 * len(text)):
        return False
    if text[0].islower() or text.endswith((".", ",", ";")) or _CAPTION.match(text):
        return False
    heads_table = after is not None and after.kind == "table" and len(block.rows[0].cells) > 1
    stands_out = block.size > 1.08 * size or (block.bold and not bold)
    return stands_out and block.size > 0.9 * size and not heads_table
