"""Text of Word paragraphs: what a reader sees of runs, fields, form controls, notes, symbols and drawings."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from drillrank.structure.docx_styles import RunFormat, WordStyle, WordStyles, read_run_format
from drillrank.structure.list_numbers import format_number
from drillrank.structure.office_archive import (
    OfficeArchive,
    Relation,
    child_value,
    is_on,
    is_switched_on,
    parse_count,
    shown_children,
)
from drillrank.structure.office_drawings import referenced_drawing
from drillrank.structure.office_text import (
    PRIVATE_USE,
    Run,
    Script,
    folded_lines,
    formula_text,
    join_runs,
    with_symbols,
)

_CHECKED, _UNCHECKED = "☒", "☐"
# Elements whose content a reader does not see: deleted or moved text, codes of fields, readings above characters.
_UNSEEN = frozenset({
    "del", "moveFrom", "delText", "instrText", "delInstrText", "rPr", "pPr", "rt", "rubyPr", "sdtPr",
    "sdtEndPr", "ffData",
})  # fmt: skip
_CHARACTERS = {"tab": " ", "ptab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_NOTE_KINDS = {"footnoteReference": "footnotes", "endnoteReference": "endnotes", "commentReference": "comments"}
_NOTE_FORMATS = {"footnotes": "decimal", "endnotes": "lowerRoman"}  # of Word, unless the settings say otherwise
_DESCRIPTIONS = {"docPr": "descr", "shape": "alt", "textpath": "string"}
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]{1,4}")
_MAX_FIELDS = 20  # within each other, as in Word


class ParagraphText(NamedTuple):
    """Text of a paragraph.

    Attributes:
        lines: Lines that are not empty.
        text_boxes: Contents of the text boxes that are anchored in the paragraph.
    """

    lines: list[str]
    text_boxes: list[Element]

    @property
    def line(self) -> str:
        """The text on one line."""
        return " ".join(self.lines)


class NoteMarks:
    """Marks of the notes and comments that the text refers to.

    Attributes:
        unread_notes: Kind and id of the notes that the text refers to, and that are still to be read.
    """

    def __init__(self, formats: Mapping[str, str], initials_by_comment: Mapping[str, str]) -> None:
        self.unread_notes: deque[tuple[str, str]] = deque()
        self._mark_by_note: dict[tuple[str, str], str] = {}
        self._formats = {**_NOTE_FORMATS, **formats}
        self._initials_by_comment = initials_by_comment
        self._counts: Counter[str] = Counter()

    def mark(self, kind: str, note_id: str, custom_mark: str = "") -> str:
        """Return the mark of a note. The first reference to a note takes the next number of its kind."""
        note = (kind, note_id)
        if note not in self._mark_by_note:
            self.unread_notes.append(note)
            self._mark_by_note[note] = custom_mark or self._next_mark(kind, note_id)
        return self._mark_by_note[note]

    def _next_mark(self, kind: str, note_id: str) -> str:
        self._counts[kind] += 1
        number = format_number(self._counts[kind], self._formats.get(kind, "decimal"))
        return f"{self._initials_by_comment.get(note_id, '')}{number}" if kind == "comments" else number


class _Field(NamedTuple):
    """Field that has begun.

    Attributes:
        in_result: Whether its code has ended, so that its result follows.
        choice: Text of a form control that has no result.
    """

    in_result: bool
    choice: str


class ParagraphReader:
    """Reads the text of the paragraphs of one part, in their order: fields may span several."""

    def __init__(
        self, archive: OfficeArchive, relations: Mapping[str, Relation], styles: WordStyles, note_marks: NoteMarks
    ) -> None:
        self._archive = archive
        self._relations = relations
        self._styles = styles
        self._note_marks = note_marks
        self._fields: list[_Field] = []

    def read(self, paragraph: Element, style: WordStyle) -> ParagraphText:
        """Return the text of a paragraph that a reader sees."""
        runs: list[Run] = []
        text_boxes: list[Element] = []
        pending = [(child, style.run_format) for child in reversed(shown_children(paragraph))]
        while pending:
            element, run_format = pending.pop()
            if element.tag in _UNSEEN or _is_hidden_drawing(element):
                continue
            if element.tag == "r":
                run_format = self._run_format(element, style)
            elif element.tag == "fldChar":
                runs += self._read_field_character(element, run_format)
            elif not run_format.is_hidden:
                if element.tag == "txbxContent":
                    text_boxes.append(element)
                    continue
                if own_text := self._read_at_once(element):
                    runs.append(Run(own_text))
                    continue
                runs += self._read_own_text(element, run_format)
            pending += [(child, run_format) for child in reversed(shown_children(element))]
        self._fields = [field for field in self._fields if field.in_result]  # a code ends with its paragraph
        text = self._archive.count_written(join_runs(runs))
        return ParagraphText(folded_lines(text), text_boxes)

    def _run_format(self, run: Element, style: WordStyle) -> RunFormat:
        properties = run.find("rPr")
        if properties is None:
            return style.run_format
        run_format = read_run_format(properties)
        if style_id := child_value(properties, "rStyle"):
            run_format = run_format.over(self._styles.find(style_id).run_format)
        return run_format.over(style.run_format)

    def _read_at_once(self, element: Element) -> str:
        """Return the text of an element whose content is not read; empty for other elements."""
        if element.tag == "oMath":
            return formula_text(element)
        if element.tag in ("chart", "relIds"):
            rows = referenced_drawing(self._archive, self._relations, element)
            return " " + "; ".join(" | ".join(row) for row in rows) + " "
        return _check_box(element) if element.tag == "sdt" else ""

    def _read_own_text(self, element: Element, run_format: RunFormat) -> Iterator[Run]:
        """Yield the text that an element shows itself, without its children."""
        tag = element.tag
        script: Script = run_format.script or ""
        if tag == "t":
            # Results of fields within the code of another field are not shown.
            if element.text and all(field.in_result for field in self._fields[:-1]):
                yield Run(with_symbols(element.text, run_format.font or ""), script)
        elif tag in _CHARACTERS:
            yield Run(_CHARACTERS[tag], script)
        elif tag == "sym":
            code = element.get("char", "")
            character = chr(int(code, 16)) if _HEXADECIMAL.fullmatch(code) else ""
            symbol = with_symbols(character, element.get("font", ""))
            yield Run("" if symbol and ord(symbol) in PRIVATE_USE else symbol, script)
        elif tag in _NOTE_KINDS:
            has_own_mark = is_on(element.get("customMarkFollows", "0"))
            mark = self._note_marks.mark(_NOTE_KINDS[tag], element.get("id", ""), "*" if has_own_mark else "")
            yield Run("" if has_own_mark else f"[{mark}]")
        elif tag in _DESCRIPTIONS:
            yield Run(f" {element.get(_DESCRIPTIONS[tag]) or element.get('title') or ''} ")
        elif tag in ("p", "tc"):
            yield Run(" ")

    def _read_field_character(self, element: Element, run_format: RunFormat) -> Iterator[Run]:
        kind = element.get("fldCharType")
        control = element.find("ffData")
        if kind == "begin" and len(self._fields) < _MAX_FIELDS:
            self._fields.append(_Field(False, _selected_entry(control)))
            box = None if control is None else control.find("checkBox")
            if box is not None and not run_format.is_hidden:
                name = "default" if box.find("checked") is None else "checked"
                yield Run(_CHECKED if is_switched_on(box, name) else _UNCHECKED)
        elif kind == "separate" and self._fields:
            self._fields[-1] = _Field(True, "")
        elif kind == "end" and self._fields:
            choice = self._fields.pop().choice
            yield Run("" if run_format.is_hidden else choice)


def _selected_entry(control: Element | None) -> str:
    """Return the selected entry of a drop-down list; empty for other controls."""
    entries = [] if control is None else [entry.get("val", "") for entry in control.findall("ddList/listEntry")]
    index = parse_count(child_value(control.find("ddList"), "result"), 0) if control is not None else 0
    return entries[index] if index < len(entries) else ""


def _check_box(control: Element) -> str:
    """Return the sign of a check box; empty for other content controls."""
    box = control.find("sdtPr/checkbox")
    content = control.find("sdtContent")
    runs = list(content) if content is not None else []
    if box is None or any(run.tag != "r" for run in runs) or sum(len(run.findtext("t") or "") for run in runs) > 1:
        return ""
    return _CHECKED if is_switched_on(box, "checked") else _UNCHECKED


def _is_hidden_drawing(element: Element) -> bool:
    if element.tag not in ("inline", "anchor"):
        return False
    properties = element.find("docPr")
    return properties is not None and is_on(properties.get("hidden", "0"))
