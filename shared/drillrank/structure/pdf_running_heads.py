"""Running heads, running feet and page numbers of a PDF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from drillrank.structure.pdf_text import LayoutRow

_OUTERMOST = 4  # rows at the top and at the bottom that may be running heads or feet
_LEAST_PAGES = 3  # pages that they are on
_PAGE_SHARE = 0.04  # share of all pages that they are on
_LARGE = 1.15  # times the size of most text: a larger row is a heading that many pages begin with
_MOST_NUMBERS = 4  # numbers of a row of which one may be the page number and the others are the same on all pages
_LONGEST = 200  # characters of a running head
_SMALL_NUMBER = re.compile(r"(?<![\w,.$])\d{1,4}(?![\w,]|\.\d)")
_PAGE_WORD = (
    r"page|pages|pg|p|seite|s|página|pagina|pág|pag|pàgina|strona|str|sida|side|sivu|stránka|strana|stran|oldal|sayfa|"
    r"lehekülg|lappuse|puslapis|pagină|страница|стр|сторінка|σελίδα|σελ|trang|halaman|ページ|頁|页|페이지|第|صفحة|עמוד|पृष्ठ"
)
_OF_WORD = r"of|out of|von|sur|de|di|van|z|ze|av|af|/|\||din|из|от|з|από|dari|trên|共|中|من|מתוך"
_NUMBER = r"\d{1,4}|[ivxlc]{1,6}"
# Rows have single spaces.
_PAGE_NUMBER = re.compile(
    rf"[-–—|\[(•·]* ?(?P<word>(?:{_PAGE_WORD})\b\.?|[第共])? ?[-–—|:]? ?"
    rf"(?P<number>(?:[A-Z]{{1,2}}-)?(?:{_NUMBER})) ?(?:ページ|頁|页|페이지)?"
    rf"(?: ?[,(]? ?(?:{_OF_WORD}) ?(?P<total>\d{{1,4}}) ?\)? ?(?:ページ|頁|页|페이지)?)? ?[-–—|\])•·]*",
    re.IGNORECASE,
)
_NUMBERED_PAGE = re.compile(rf"\b(?:{_PAGE_WORD})\b\.?\s*\d{{1,4}}\s*(?:{_OF_WORD})\s*\d{{1,4}}\b", re.IGNORECASE)
_RowKey = tuple[str, int]  # words of a row and its height on the page; equal on two pages if the row repeats
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


class _PageNumber(NamedTuple):
    """Printed page number, such as "Page 3 of 8".

    Attributes:
        prefix: Text before the number, such as "F-"; "roman" for Roman numerals.
        offset: Number less the index of the page: equal on all pages that are counted together.
        is_certain: True if the word "page", the printed total or the index of the page says so.
    """

    prefix: str
    offset: int
    is_certain: bool


def remove_running_rows(pages: Sequence[list[LayoutRow]]) -> list[list[LayoutRow]]:
    """Return the rows of each page without page numbers and without rows at its edges that repeat on other pages.

    A number alone is a page number only if it counts with the pages.
    """
    edges = [_edge_rows(rows) for rows in pages]
    key_counts: Counter[_RowKey] = Counter()
    number_counts: Counter[tuple[str, int]] = Counter()
    sizes: Counter[float] = Counter()
    for page_index, rows in enumerate(pages):
        edge_rows = {row for side in edges[page_index] for row in side}
        key_counts.update({key for row in edge_rows for key in _row_keys(row, page_index)})
        numbers = filter(None, (_page_number(row, page_index) for row in edge_rows))
        number_counts.update({(number.prefix, number.offset) for number in numbers})
        for row in rows:
            sizes[row.size] += len(row.text)
    largest = _LARGE * sizes.most_common(1)[0][0] if sizes else 0.0
    least = max(_LEAST_PAGES, round(_PAGE_SHARE * len(pages)))

    def is_running(row: LayoutRow, page_index: int) -> bool:
        number = _page_number(row, page_index)
        if number and (number.is_certain or number_counts[number.prefix, number.offset] > 1):
            return True
        least_count = 2 if _NUMBERED_PAGE.search(row.text[:_LONGEST]) else least
        return row.size <= largest and any(key_counts[key] >= least_count for key in _row_keys(row, page_index))

    remaining = []
    for page_index, rows in enumerate(pages):
        running: set[LayoutRow] = set()
        for side in edges[page_index]:  # from the edge inwards: a row inside the text is not a running head
            for row in side:
                if not is_running(row, page_index):
                    break
                running.add(row)
        # If all rows of a page repeat, they are its text.
        remaining.append([row for row in rows if row not in running] or rows)
    return remaining


def _edge_rows(rows: Sequence[LayoutRow]) -> tuple[list[LayoutRow], list[LayoutRow]]:
    """Return the outermost rows at the top and at the bottom, from the edge inwards."""
    ordered = sorted(rows, key=lambda row: row.y)
    return ordered[:_OUTERMOST], ordered[::-1][:_OUTERMOST]


def _page_number(row: LayoutRow, page_index: int) -> _PageNumber | None:
    """Return the page number that is all of a row, or None."""
    if len(row.cells) > 1 or len(row.text) > _LONGEST:
        return None
    match = _PAGE_NUMBER.fullmatch(row.text)
    if match is None:
        return None
    prefix, _, digits = match["number"].upper().rpartition("-")
    is_roman = not digits.isdecimal()
    value = _roman_value(digits) if is_roman else int(digits)
    # "3/8" may be a fraction, and "4 of 9" a cell: without a word, the number must be the page's own.
    names_page = bool(match["word"]) and not is_roman
    is_own = value == page_index + 1 <= int(match["total"] or value)
    return _PageNumber("roman" if is_roman else prefix, value - page_index, names_page or is_own)


def _roman_value(numeral: str) -> int:
    values = [_ROMAN[letter] for letter in numeral.lower()]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))


def _row_keys(row: LayoutRow, page_index: int) -> Iterator[_RowKey]:
    """Yield the keys of a row: its words with one number, or all, relative to the index of the page.

    A page number is then equal on all pages, and so is "Page 3 of 8" for its first number. There are two bands of
    heights: a height at the border of one is in the middle of the other.
    """
    text = row.text[:_LONGEST].casefold()
    numbers = list(_SMALL_NUMBER.finditer(text))
    variants = {text, _SMALL_NUMBER.sub(lambda match: f"#{int(match[0]) - page_index}", text)}
    for match in numbers[:_MOST_NUMBERS]:
        variants.add(f"{text[: match.start()]}#{int(match[0]) - page_index}{text[match.end() :]}")
    for words in variants:
        yield words, int(row.y // 6)
        yield words, int((row.y + 3) // 6) + 10_000
