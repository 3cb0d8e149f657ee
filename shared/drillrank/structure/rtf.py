r"""RTF: paragraphs, headings, tables and notes, as Markdown.

A scanner of its own: striprtf loses footnotes, headings and the code pages of fonts, and shows hidden text. Tokens are
read one after the other, and groups keep their state on a stack, so time is linear.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field, replace

from drillrank.errors import InvalidInput
from drillrank.structure.docx_styles import is_title_name
from drillrank.structure.formats import ConvertedText
from drillrank.structure.markdown import heading, prose, table
from drillrank.structure.office_text import with_symbols

_TOKEN = re.compile(
    r"\\(?P<word>[A-Za-z]{1,32})(?P<number>-?\d{1,10})?[ ]?"
    r"|\\'(?P<hex>[0-9A-Fa-f]{2})"
    r"|\\(?P<symbol>[^A-Za-z]|\Z)"
    r"|(?P<brace>[{}])"
    r"|(?P<text>[^\\{}\r\n]+)"
    r"|[\r\n]+",
    re.DOTALL,
)
_HEADING_STYLE = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|rubrik|kop|overskrift|otsikko|nagłówek|заголовок|见出し|標題|标题)\s*([1-9])",
    re.IGNORECASE,
)
_BULLET = re.compile(r"[•·▪◦‣●○■\uf0b7\uf0a7]\s*|[-–*]\s+")
_MAX_NAME = 100
_BODY_TEXT_LEVEL = 9  # outline level of paragraphs that are no headings
_SURROGATE = re.compile("[\ud800-\udfff]")

# Groups whose text a reader does not see where it stands. Unknown groups that begin with \* are left out, too.
_LEFT_OUT = frozenset({
    "author", "buptim", "colortbl", "comment", "company", "creatim", "doccomm", "filetbl", "footer", "footerf",
    "footerl", "footerr", "ftncn", "ftnsep", "ftnsepc", "header", "headerf", "headerl", "headerr", "info", "keywords",
    "listtable", "manager", "nonshppict", "objdata", "operator", "pict", "printim", "private", "revtbl", "revtim",
    "rxe", "shprslt", "sp", "subject", "tc", "title", "txe", "upr", "xe",
})  # fmt: skip
_KEPT_STARRED = frozenset({"shpinst", "annotation", "shptxt", "footnote"})
_NOTES = {"footnote": "Note", "annotation": "Comment"}
_CHARACTERS = {
    "emdash": "—", "endash": "–", "emspace": " ", "enspace": " ", "qmspace": " ", "bullet": "•", "lquote": "‘",
    "rquote": "’", "ldblquote": "“", "rdblquote": "”", "tab": " ", "line": " ", "lbr": " ", "nestcell": " | ",
    "nestrow": "; ",
}  # fmt: skip
_SYMBOLS = {"~": "\xa0", "_": "-", "\\": "\\", "{": "{", "}": "}"}
_PARAGRAPH_ENDS = frozenset({"par", "sect", "page", "column"})
_CODE_PAGES = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_SYMBOL_CHARSET = 2
_CHARSET_CODE_PAGES = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "cp950", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
    254: "cp437", 255: "cp850",
}  # fmt: skip


def convert_rtf(content: bytes) -> ConvertedText:
    r"""Convert an RTF file to Markdown.

    Raises:
        InvalidInput: The file is not RTF; the message continues its name.

    >>> convert_rtf(rb"{\rtf1\ansi\ansicpg1251 \'d0\'e5\'ed\'f2\'e0\par}").text
    'Рента'
    """
    if not content.lstrip()[:5].lower() == b"{\\rtf":
        raise InvalidInput("cannot be read as RTF: it does not begin with {\\rtf.")
    reader = _RtfReader()
    reader.read(content.decode("latin-1"))
    return ConvertedText("\n\n".join(reader.finish()))


@dataclass(frozen=True, slots=True)
class _Group:
    """State that ends with a group.

    Attributes:
        destination: What the text of the group is: "text", "fonttbl", "stylesheet" or "" if it is left out.
        is_hidden: True if a reader does not see the text.
        is_deleted: True if the text was deleted while changes were recorded.
        is_raised: True if the text is a superscript.
        font: Number of the font.
        fallback_length: Number of characters that follow a Unicode character for old readers.
        note: Label of the note that the group is; empty if it is none.
    """

    destination: str = "text"
    is_hidden: bool = False
    is_deleted: bool = False
    is_raised: bool = False
    font: int | None = None
    fallback_length: int = 1
    note: str = ""


@dataclass(slots=True)
class _Paragraph:
    """Paragraph that is being read.

    Attributes:
        pieces: Its text so far.
        cells: Cells of its table row so far.
        is_in_table: True inside of a table.
        style: Number of its style.
        outline_level: Level of a heading, starting at 0; None if it is not set.
    """

    pieces: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    is_in_table: bool = False
    style: int = 0
    outline_level: int | None = None


class _RtfReader:
    """Reads tokens and collects blocks of Markdown."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._rows: list[list[str]] = []
        self._group = _Group()
        self._groups: list[_Group] = []
        self._paragraph = _Paragraph()
        self._outer_paragraphs: list[_Paragraph] = []
        self._pending_notes: list[str] = []
        self._bytes = bytearray()
        self._n_skipped = 0  # characters of a fallback that are still to come
        self._is_starred = False
        self._code_page = "cp1252"
        self._font_code_pages: dict[int, str] = {}
        self._symbol_fonts: dict[int, str] = {}  # names of the fonts of symbols
        self._style_levels: dict[int, int] = {}
        self._title_styles: set[int] = set()
        self._heading_shift: int | None = None  # levels that the title adds; None before the first heading
        self._style_number = 0
        self._style_name: list[str] = []

    def read(self, text: str) -> None:
        """Read a file whose bytes are characters."""
        offset = 0
        while offset < len(text):
            token = _TOKEN.match(text, offset)
            assert token is not None  # every character begins a token
            offset = token.end()
            if token["word"]:
                number = int(token["number"]) if token["number"] else None
                if token["word"] == "bin":
                    offset += max(number or 0, 0)
                else:
                    self._read_word(token["word"], number)
            elif token["hex"]:
                self._add_bytes(bytes.fromhex(token["hex"]))
            elif token["brace"]:
                self._read_brace(token["brace"])
            elif token["text"]:
                self._add_bytes(token["text"].encode("latin-1"))
            elif token["symbol"]:
                self._read_symbol(token["symbol"])

    def finish(self) -> list[str]:
        """Return all blocks."""
        while self._groups:
            self._read_brace("}")
        self._flush_bytes()
        self._end_cell_or_paragraph()
        self._end_row()
        self._end_table()
        return self._blocks

    def _read_brace(self, brace: str) -> None:
        self._flush_bytes()
        self._n_skipped = 0
        if brace == "{":
            self._groups.append(self._group)
            self._is_starred = False
        elif self._groups:
            outer = self._groups.pop()
            if self._group.note and not outer.note:
                self._end_note(self._group.note)
            self._group = outer

    def _read_symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._is_starred = True
        elif symbol in "\r\n":
            self._read_word("par", None)
        elif symbol in _SYMBOLS:
            self._add_text(_SYMBOLS[symbol])

    def _read_word(self, word: str, number: int | None) -> None:
        is_starred, self._is_starred = self._is_starred, False
        if word == "u" and number is not None:
            self._add_text(chr(number % 0x10000) if number < 0x10000 else chr(min(number, 0x10FFFF)))
            self._n_skipped = self._group.fallback_length
            return
        self._flush_bytes()
        self._n_skipped = 0
        if word in ("fonttbl", "stylesheet"):
            self._group = replace(self._group, destination=word)
        elif word == "ud" and len(self._groups) > 1:  # the Unicode form of the text before it in its group
            self._group = replace(self._group, destination=self._groups[-2].destination)
        elif word in _LEFT_OUT or (is_starred and word not in _KEPT_STARRED):
            self._group = replace(self._group, destination="")
        elif word in _NOTES and self._group.destination == "text":
            self._begin_note(_NOTES[word])
        elif not (self._set_character_property(word, number) or self._set_paragraph_property(word, number)):
            self._read_layout(word)

    def _set_character_property(self, word: str, number: int | None) -> bool:
        """Apply a property of characters or of the file; return False if the word is something else."""
        is_on = number != 0
        match word:
            case "f":
                self._group = replace(self._group, font=number)
            case "fcharset" if self._group.destination == "fonttbl":
                if self._group.font is not None and number == _SYMBOL_CHARSET:
                    self._symbol_fonts[self._group.font] = ""
                if self._group.font is not None and number in _CHARSET_CODE_PAGES:
                    self._font_code_pages[self._group.font] = _CHARSET_CODE_PAGES[number]
            case "ansicpg":
                self._code_page = _find_code_page(number) or self._code_page
            case "mac" | "pc" | "pca":
                self._code_page = _CODE_PAGES[word]
            case "uc":
                self._group = replace(self._group, fallback_length=min(max(number or 0, 0), 100))
            case "v":
                self._group = replace(self._group, is_hidden=is_on)
            case "deleted":
                self._group = replace(self._group, is_deleted=is_on)
            case "super":
                self._group = replace(self._group, is_raised=is_on)
            case "nosupersub" | "sub":
                self._group = replace(self._group, is_raised=False)
            case "plain":
                self._group = replace(self._group, is_hidden=False, is_deleted=False, is_raised=False)
            case _:
                return False
        return True

    def _set_paragraph_property(self, word: str, number: int | None) -> bool:
        """Apply a property of paragraphs or styles; return False if the word is something else."""
        in_stylesheet = self._group.destination == "stylesheet"
        match word:
            case "s" if in_stylesheet:
                self._style_number = number or 0
            case "outlinelevel" if in_stylesheet:
                if number is not None and 0 <= number < _BODY_TEXT_LEVEL:
                    self._style_levels[self._style_number] = number + 1
            case "s":
                self._paragraph.style = number or 0
            case "outlinelevel":
                self._paragraph.outline_level = number
            case "pard" if self._group.destination == "text":
                self._paragraph.style, self._paragraph.outline_level = 0, None
                self._paragraph.is_in_table = False
            case "intbl":
                self._paragraph.is_in_table = True
            case _:
                return False
        return True

    def _read_layout(self, word: str) -> None:
        """Read a word that ends something or is a character."""
        if self._group.destination != "text":
            return
        if word in _PARAGRAPH_ENDS:
            if self._paragraph.is_in_table:
                self._add_text(" ")
            else:
                self._end_cell_or_paragraph()
        elif word == "cell":
            self._paragraph.cells.append(_join(self._paragraph.pieces))
            self._paragraph.pieces.clear()
        elif word == "row":
            self._end_row()
        elif word in _CHARACTERS:
            self._add_text(_CHARACTERS[word])

    def _add_bytes(self, content: bytes) -> None:
        """Add bytes in the code page of the font."""
        if self._n_skipped:
            n_skipped = min(self._n_skipped, len(content))
            self._n_skipped -= n_skipped
            content = content[n_skipped:]
        self._bytes += content

    def _flush_bytes(self) -> None:
        if self._bytes:
            code_page = self._code_page
            if self._group.font is not None:
                code_page = self._font_code_pages.get(self._group.font, code_page)
            text = self._bytes.decode(code_page, errors="replace")
            self._bytes.clear()
            self._add_visible(text)

    def _add_text(self, text: str) -> None:
        self._flush_bytes()
        if self._n_skipped:
            self._n_skipped -= 1
        else:
            self._add_visible(text)

    def _add_visible(self, text: str) -> None:
        font = self._group.font
        if self._group.destination == "stylesheet":
            self._add_style_name(text)
        elif self._group.destination == "fonttbl" and font in self._symbol_fonts:
            self._symbol_fonts[font] = (self._symbol_fonts[font] + text)[:_MAX_NAME]
        elif self._group.destination == "text" and not self._group.is_hidden and not self._group.is_deleted:
            if font in self._symbol_fonts:
                text = with_symbols(text, self._symbol_fonts[font].rstrip("; "))
            pieces = self._paragraph.pieces
            if self._group.is_raised and pieces and pieces[-1][-1:].isalnum() and text[:1].isalnum():
                pieces.append("^")  # 10² is not 102
            pieces.append(text)

    def _add_style_name(self, text: str) -> None:
        """Collect the name of a style. A semicolon ends it."""
        self._style_name.append(text)
        if ";" not in text:
            return
        name = "".join(self._style_name).strip(" ;")
        match = _HEADING_STYLE.match(name)
        if is_title_name(name):
            self._title_styles.add(self._style_number)
        if match:
            self._style_levels.setdefault(self._style_number, int(match[1]))
        self._style_name.clear()
        self._style_number = 0

    def _begin_note(self, label: str) -> None:
        if not self._group.note:
            self._outer_paragraphs.append(self._paragraph)
            self._paragraph = _Paragraph()
        self._group = replace(self._group, note=label)

    def _end_note(self, label: str) -> None:
        """Keep the text of a note until its paragraph ends."""
        note = self._paragraph
        self._paragraph = self._outer_paragraphs.pop()
        text = _join([" | ".join(note.cells), *note.pieces])
        if text:
            self._pending_notes.append(f"{label}: {text}")

    def _end_cell_or_paragraph(self) -> None:
        """End a paragraph outside of tables, or one of a note."""
        paragraph = self._paragraph
        if self._outer_paragraphs:
            paragraph.pieces.append(" ")
            return
        text = _join(paragraph.pieces)
        paragraph.pieces.clear()
        if text or not paragraph.cells:
            self._end_table()
        if text:
            level = paragraph.outline_level
            level = self._style_levels.get(paragraph.style, 0) if level is None else level + 1
            is_title = paragraph.style in self._title_styles
            if is_title or 0 < level <= _BODY_TEXT_LEVEL:
                if self._heading_shift is None:
                    self._heading_shift = 1 if is_title else 0
                self._blocks.append(heading(1 if is_title else level + self._heading_shift, text))
            else:
                bullet = _BULLET.match(text)
                self._blocks.append(f"- {text[bullet.end() :]}" if bullet else prose(text))
        self._add_notes()

    def _end_row(self) -> None:
        paragraph = self._paragraph
        if paragraph.pieces and paragraph.cells:
            paragraph.cells.append(_join(paragraph.pieces))
            paragraph.pieces.clear()
        if any(paragraph.cells):
            self._rows.append(paragraph.cells)
        paragraph.cells = []

    def _end_table(self) -> None:
        if self._rows:
            width = max(map(len, self._rows))
            self._blocks.append(table([row + [""] * (width - len(row)) for row in self._rows]))
            self._rows = []
            self._add_notes()

    def _add_notes(self) -> None:
        self._blocks += self._pending_notes
        self._pending_notes = []


def _find_code_page(number: int | None) -> str:
    """Return the name of a code page; an empty string if Python does not know it."""
    try:
        return codecs.lookup("utf-8" if number == 65001 else f"cp{number}").name
    except LookupError:
        return ""


def _join(pieces: list[str]) -> str:
    """Join pieces of text: halves of a character become one, white space becomes a single space."""
    text = "".join(pieces)
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return " ".join(text.split())
