"""Numbers of lists and headings of Word files, counted as Word counts them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree.ElementTree import Element

from drillrank.structure.list_numbers import format_number
from drillrank.structure.office_archive import child_value, descendants, is_switched_on, parse_count

MAX_LEVELS = 9
_MAX_TEXT = 200  # characters before an item
_PLACEHOLDER = re.compile(r"%([1-9])")


class NumberedLevel(NamedTuple):
    """Level of a list: which list definition a paragraph belongs to, and how deep it is in it.

    Attributes:
        list_id: Value of `w:numId`.
        level: Depth, starting at 0.
    """

    list_id: str
    level: int


@dataclass(frozen=True)
class _LevelFormat:
    """Definition of one level of a list.

    Attributes:
        start: First number.
        number_format: Format of the number; "bullet" for none.
        text: Text before the item, in which "%1" stands for the number of level 1.
        restart_after: Numbers start again after an item of a level below this one; 0 if they never do.
        is_legal: Whether all numbers in the text are decimal.
        style_id: Paragraph style that this level belongs to; empty if there is none.
    """

    start: int = 1
    number_format: str = "decimal"
    text: str = ""
    restart_after: int = MAX_LEVELS
    is_legal: bool = False
    style_id: str = ""


@dataclass(frozen=True)
class _List:
    """List as paragraphs refer to it: the definition that it counts with, its levels, and its own starts."""

    definition_id: str
    levels: dict[int, _LevelFormat]
    start_overrides: dict[int, int]


class ListNumbers:
    """Counts the items of all lists of a document, in its order.

    Lists with the same definition continue each other, unless one of them overrides the start.
    """

    def __init__(self, numbering: Element | None, list_id_by_style: dict[str, str]) -> None:
        self._lists = _read_lists(numbering, list_id_by_style) if numbering is not None else {}
        self._numbers_by_definition: dict[str, dict[int, int]] = {}
        self._applied_overrides: set[tuple[str, int]] = set()

    def level_of_style(self, list_id: str, style_ids: Iterable[str]) -> int | None:
        """Return the level that a list reserves for one of these paragraph styles; None if there is none."""
        known_list = self._lists.get(list_id)
        if known_list is None:
            return None
        level_by_style = {format_.style_id: level for level, format_ in known_list.levels.items() if format_.style_id}
        return next((level_by_style[style_id] for style_id in style_ids if style_id in level_by_style), None)

    def next_label(self, position: NumberedLevel) -> str | None:
        """Count an item, and return its number as printed: "" for a bullet, None if the list does not exist."""
        known_list = self._lists.get(position.list_id)
        if known_list is None:
            return None
        level_format = known_list.levels.get(position.level, _LevelFormat(text=f"%{position.level + 1}."))
        numbers = self._numbers_by_definition.setdefault(known_list.definition_id, {})
        self._count(known_list, position, numbers, level_format)
        if level_format.number_format == "bullet":
            return ""

        def show(match: re.Match[str]) -> str:
            level = int(match[1]) - 1
            shown_format = known_list.levels.get(level, _LevelFormat())
            is_decimal = level_format.is_legal or shown_format.number_format == "bullet"
            name = "decimal" if is_decimal else shown_format.number_format
            return format_number(numbers.get(level, shown_format.start), name)

        return _PLACEHOLDER.sub(show, level_format.text).strip()

    def _count(
        self, known_list: _List, position: NumberedLevel, numbers: dict[int, int], level_format: _LevelFormat
    ) -> None:
        level = position.level
        if level in known_list.start_overrides and position not in self._applied_overrides:
            self._applied_overrides.add(position)
            numbers[level] = known_list.start_overrides[level]
        else:
            numbers[level] = numbers[level] + 1 if level in numbers else level_format.start
        for deeper in range(level + 1, MAX_LEVELS):
            deeper_format = known_list.levels.get(deeper, _LevelFormat())
            if level < deeper_format.restart_after:
                numbers.pop(deeper, None)


def _read_lists(numbering: Element, list_id_by_style: dict[str, str]) -> dict[str, _List]:
    definitions: dict[str, Element] = {}
    definition_by_style: dict[str, str] = {}
    for definition in descendants(numbering, "abstractNum"):
        definition_id = definition.get("abstractNumId", "")
        definitions[definition_id] = definition
        if style_id := child_value(definition, "styleLink"):
            definition_by_style[style_id] = definition_id
    instances = list(descendants(numbering, "num"))
    definition_by_list = {instance.get("numId", ""): child_value(instance, "abstractNumId") for instance in instances}
    levels_by_definition = {id_: _read_levels(definition) for id_, definition in definitions.items()}
    lists: dict[str, _List] = {}
    for instance in instances:
        list_id = instance.get("numId", "")
        definition_id = definition_by_list[list_id]
        # A definition may refer to a list style, whose own list has the levels.
        if style_id := child_value(definitions.get(definition_id), "numStyleLink"):
            linked = definition_by_list.get(list_id_by_style.get(style_id, ""), "")
            definition_id = definition_by_style.get(style_id, linked)
        levels, overrides = _override(levels_by_definition.get(definition_id, {}), instance)
        lists[list_id] = _List(definition_id, levels, overrides)
    return lists


def _override(levels: dict[int, _LevelFormat], instance: Element) -> tuple[dict[int, _LevelFormat], dict[int, int]]:
    overrides = instance.findall("lvlOverride")
    if not overrides:
        return levels, {}
    levels, starts = dict(levels), {}
    for override in overrides:
        level = min(parse_count(override.get("ilvl"), 0), MAX_LEVELS)
        for definition in override.findall("lvl"):
            levels[level] = _read_level(definition)
        start = parse_count(child_value(override, "startOverride"), -1)
        if start >= 0:
            starts[level] = start
    return levels, starts


def _read_levels(definition: Element) -> dict[int, _LevelFormat]:
    levels = {parse_count(level.get("ilvl"), 0): _read_level(level) for level in definition.findall("lvl")}
    return {depth: level for depth, level in levels.items() if depth < MAX_LEVELS}


def _read_level(level: Element) -> _LevelFormat:
    number_format = next(descendants(level, "numFmt"), None)  # may be an alternative for newer programs
    name = "decimal" if number_format is None else number_format.get("val", "decimal")
    if name == "custom" and number_format is not None:
        name = number_format.get("format", "").split(",")[0].strip()
    depth = parse_count(level.get("ilvl"), 0)
    restart = child_value(level, "lvlRestart")
    return _LevelFormat(
        start=parse_count(child_value(level, "start"), 1),
        number_format=name,
        text=child_value(level, "lvlText", "" if name in ("bullet", "none") else f"%{depth + 1}.")[:_MAX_TEXT],
        restart_after=parse_count(restart, MAX_LEVELS),
        is_legal=is_switched_on(level, "isLgl"),
        style_id=child_value(level, "pStyle"),
    )
