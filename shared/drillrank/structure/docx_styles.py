"""Styles of Word files: which of them make a heading, number a paragraph, hide or raise text."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from drillrank.structure.office_archive import child_value, is_on, parse_count
from drillrank.structure.office_text import Script

_BODY_TEXT_LEVEL = 9  # outline level of paragraphs that are no headings
# Word stores "heading 1" in all languages. Other programs store the name that they show.
_HEADING_NAME = re.compile(
    r"(?:heading|überschrift|titre|título|titulo|titolo|titlu|kop|rubrik|overskrift|otsikko|nadpis|nagłówek|naslov"
    r"|címsor|başlık|заголовок|επικεφαλίδα|כותרת|عنوان|見出し|标题|標題|제목|tiêu đề|judul|tajuk)[\s_-]*\[?([1-9])\]?",
    re.IGNORECASE,
)
_TITLE_NAME = re.compile(
    r"title|titel|titre|título|titulo|titolo|titlu|tittel|otsikko|název|tytuł|naslov|cím|başlık|название|заголовок|τίτλος"
    r"|表題|标题|標題|제목",
    re.IGNORECASE,
)
_SUBTITLE_NAME = re.compile(
    r"sub-?title|untertitel|sous-titre|subtítulo|subtítol|sottotitolo|subtitlu|ondertitel|underrubrik|undertitel"
    r"|alaotsikko|podnadpis|podtytuł|alcím|altyazı|подзаголовок|副題|副标题|副標題|부제",
    re.IGNORECASE,
)
_MAX_BASES = 20  # styles that a style is based on, one on another; Word allows half as many
_RAISED_BY = 4  # half points of w:position that make text an exponent or an index
_SCRIPTS: dict[str, Script] = {"superscript": "^", "subscript": "_"}


@dataclass(frozen=True, slots=True)
class RunFormat:
    """Properties of a run; None where the style below decides.

    Attributes:
        is_hidden: Whether the text is not shown.
        script: Height of the text.
        font: Font of its symbols.
    """

    is_hidden: bool | None = None
    script: Script | None = None
    font: str | None = None

    def over(self, base: RunFormat) -> RunFormat:
        """Return these properties, and those of the base where these say nothing."""
        return RunFormat(
            base.is_hidden if self.is_hidden is None else self.is_hidden,
            base.script if self.script is None else self.script,
            base.font if self.font is None else self.font,
        )


@dataclass(frozen=True, slots=True)
class WordStyle:
    """Style, with all that it inherits.

    Attributes:
        ids: Its id, and those of the styles that it is based on, nearest first.
        heading_level: Level of its headings, starting at 1; 0 for other paragraphs.
        is_title: Whether its paragraphs are the title of the document.
        list_id: List that numbers its paragraphs; empty if there is none.
        list_level: Level in that list, starting at 0; None if the list decides.
        run_format: Properties of its text.
    """

    ids: tuple[str, ...] = ()
    heading_level: int = 0
    is_title: bool = False
    list_id: str = ""
    list_level: int | None = None
    run_format: RunFormat = RunFormat()


class WordStyles:
    """All styles of a document.

    Attributes:
        list_id_by_style: Lists of the list styles, by the id of the style.
    """

    def __init__(self, styles: Element | None) -> None:
        elements = [] if styles is None else styles.findall("style")
        self._elements = {element.get("styleId", ""): element for element in elements}
        self._styles: dict[str, WordStyle] = {}
        self._default_id = next(
            (
                element.get("styleId", "")
                for element in elements
                if element.get("type") == "paragraph" and element.get("default") and is_on(element.get("default"))
            ),
            "",
        )
        self.list_id_by_style = {
            id_: child_value(element.find("pPr/numPr"), "numId")
            for id_, element in self._elements.items()
            if element.get("type") == "numbering"
        }

    def find(self, style_id: str) -> WordStyle:
        """Return a style by its id; an empty id is the default style of paragraphs."""
        style_id = style_id or self._default_id
        chain: list[str] = []
        next_id = style_id
        while next_id and next_id not in self._styles and len(chain) < _MAX_BASES:
            chain.append(next_id)
            next_id = child_value(self._elements.get(next_id), "basedOn")
        for id_ in reversed(chain):
            base = self._styles.get(child_value(self._elements.get(id_), "basedOn"), WordStyle())
            self._styles[id_] = _with_own_properties(id_, self._elements.get(id_), base)
        return self._styles.get(style_id, WordStyle())


def _with_own_properties(style_id: str, element: Element | None, base: WordStyle) -> WordStyle:
    name = child_value(element, "name") or style_id
    ids = (style_id, *base.ids)[:_MAX_BASES]
    if element is None:
        return WordStyle(ids, _level_in_name(name), is_title_name(name))
    properties = element.find("pPr")
    list_properties = None if properties is None else properties.find("numPr")
    heading_level = _level_in_name(name) or read_outline_level(properties)
    is_other_kind = heading_level or _SUBTITLE_NAME.fullmatch(name.strip())  # even if it looks like the title
    level = child_value(list_properties, "ilvl")
    return replace(
        base,
        ids=ids,
        heading_level=base.heading_level if heading_level is None else heading_level,
        is_title=not is_other_kind and (base.is_title or is_title_name(name)),
        list_id=child_value(list_properties, "numId", base.list_id),
        list_level=parse_count(level, 0) if level else base.list_level,
        run_format=read_run_format(element.find("rPr")).over(base.run_format),
    )


def is_title_name(name: str) -> bool:
    """Return True if a style of this name is the one for the title of a document."""
    return _TITLE_NAME.fullmatch(name.strip()) is not None


def _level_in_name(name: str) -> int:
    match = _HEADING_NAME.fullmatch(name.split(",")[0].strip())
    return int(match[1]) if match else 0


def read_outline_level(properties: Element | None) -> int | None:
    """Return the heading level that properties of a paragraph set: 0 for body text, None if they set none."""
    value = child_value(properties, "outlineLvl")
    if not value:
        return None
    level = parse_count(value, _BODY_TEXT_LEVEL)
    return level + 1 if level < _BODY_TEXT_LEVEL else 0


def read_run_format(properties: Element | None) -> RunFormat:
    """Return what properties of a run set themselves."""
    if properties is None or not len(properties):
        return RunFormat()
    hidden = properties.find("vanish")
    fonts = properties.find("rFonts")
    return RunFormat(
        None if hidden is None else is_on(hidden.get("val")),
        _read_script(properties),
        None if fonts is None else fonts.get("ascii") or fonts.get("hAnsi"),
    )


def _read_script(properties: Element) -> Script | None:
    alignment = properties.find("vertAlign")
    if alignment is not None:
        return _SCRIPTS.get(alignment.get("val", ""), "")
    position = child_value(properties, "position")
    if parse_count(position.removeprefix("-"), 0) < _RAISED_BY:
        return None
    return "_" if position.startswith("-") else "^"
