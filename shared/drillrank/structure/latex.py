"""LaTeX: sections, blocks and readable text of a source file.

The scanner makes one pass over the source and expands no macros. An unclosed group or environment ends at the next
paragraph or heading. Therefore it hides nothing below, and time stays linear.

No library fits: pylatexenc and TexSoup recurse into every group and fail if groups are nested deeply.
"""

from __future__ import annotations

import re
import unicodedata

from drillrank.data import read_rows, read_table
from drillrank.structure.document import BlockKind
from drillrank.structure.scan import Rendering, Scan, VisibleBlock, tile_visible_blocks


def _words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


_HEADINGS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_RANKS = dict(zip(_HEADINGS, range(-1, 6), strict=True))
_RANKS["frametitle"] = _FRAME_RANK = 4  # a slide, below all sections
_CONTAINERS: dict[str, BlockKind] = {
    **dict.fromkeys(("itemize", "enumerate", "description", "list", "compactitem"), "list"),
    **dict.fromkeys(_words("table sidewaystable tabular tabularx tabulary longtable tabu"), "table"),
    **dict.fromkeys(("algorithm", "algorithmic", "algorithm2e"), "code"),
    **dict.fromkeys(("figure", "wrapfigure", "SCfigure", "sidewaysfigure"), "paragraph"),
}
_LISTS = frozenset(name for name, kind in _CONTAINERS.items() if kind == "list")
_VERBATIM = _words(
    "verbatim verbatim* Verbatim BVerbatim LVerbatim lstlisting minted alltt filecontents filecontents* comment"
)
_MATH = _words(
    "align alignat aligned array cases displaymath eqnarray equation flalign gather gathered math multline split "
    "subequations"
)


def _count_arguments(kind: str) -> dict[str, int]:
    """Return the number of leading arguments that are not text, by the name of the command or environment."""
    rows = read_rows("latex_arguments.tsv")
    return {name: int(count) for row_kind, count, names in rows if row_kind == kind for name in names.split()}


_COMMAND_ARGUMENTS = _count_arguments("command")
_ENVIRONMENT_ARGUMENTS = _count_arguments("environment")
# Commands whose argument is shown although it is in the preamble.
_FRONT_MATTER = _words("subtitle author date abstract keywords affil affiliation address institute email")
_TITLES = _words("title Title icmltitle papertitle doctitle maintitle")
_TITLE_RANK = -2  # above a part
_FILES = _words("input include subfile import subimport")
_REFERENCES = _words("ref eqref autoref cref Cref pageref nameref vref")
_NOTES = _words("footnote footnotetext thanks marginpar")
_MARKS = dict.fromkeys(_NOTES, (" (", ")")) | dict.fromkeys(("st", "sout", "xout"), ("~~", "~~"))
"""Signs before and behind the argument of notes and deleted text."""
_FRACTIONS = _words("frac dfrac tfrac cfrac sfrac nicefrac xfrac textfrac")
_VALUES_OF_QUANTITY = {"SI": 1, "qty": 1, "si": 0, "unit": 0, "SIrange": 2, "qtyrange": 2}
_UNIT_PREFIXES = _words(
    "yocto zepto atto femto pico nano micro milli centi deci deca hecto kilo mega giga tera peta exa"
)
_OWN_LINE = _words("caption caption* STATE State REQUIRE Require ENSURE Ensure newline")

_SYMBOLS = read_table("latex_symbols.tsv") | dict.fromkeys(("quad", "qquad", "space"), " ")
_CHARACTERS = {**{mark: mark for mark in "%&$#_{}"}, **dict.fromkeys(" ,;:>\t\n\r", " ")}
_ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "r": "\u030a", "k": "\u0328", "d": "\u0323",
    "b": "\u0331",
}  # fmt: skip

_LINE = r"(?:\r\n?|\n)"
_PARAGRAPH = re.compile(rf"{_LINE}[ \t]*{_LINE}\s*")
_TOKEN = re.compile(
    rf"""(?P<paragraph> {_LINE}[ \t]*{_LINE}\s* )
      | (?P<comment> %[^\r\n]* (?: {_LINE}[ \t]*(?![ \t\r\n]) )? )
      | \\(?P<command> [a-zA-Z@]+\*? )
      | \\(?P<mark> [\s\S] )
      | (?P<character> [{{}}$&~] )""",
    re.VERBOSE,
)
_SPACE = r"[ \t]{0,99}(?:(?:\r\n?|\n)[ \t]{0,99})?"
_GROUP = re.compile(rf"{_SPACE}\{{((?:[^{{}}\\]|\\[\s\S]|\{{(?:[^{{}}\\]|\\[\s\S]){{0,5000}}\}}){{0,5000}})\}}")
_OPTION = re.compile(rf"{_SPACE}\[([^\[\]]*)\]")
_ARGUMENT = re.compile(rf"{_GROUP.pattern}|{_SPACE}\\[a-zA-Z@]+\*?")
_OVERLAY = re.compile(r"<[\d,+.|\- ()]{1,30}>")  # numbers of the steps of a slide that show something
_BLANKS_BEFORE_LETTER = re.compile(r"[ \t]{1,99}(?=[^\W\d_])")
_EMPTY_GROUP = re.compile(r"\{\s{0,99}\}")
_WITHOUT_BRACES = str.maketrans("", "", "{}")
_UNIT = re.compile(r"\\([a-zA-Z]{1,40})|([^\\\s~.]+)")
_VERB = re.compile(r"([^\sa-zA-Z*])(?P<inner>[^\r\n]{0,1000}?)\1")
_OPEN = re.compile(rf"{_SPACE}\{{")
# Bounded, because a name between two unbounded runs of white space takes quadratic time.
_NAME = re.compile(r"\s{0,99}\{\s{0,99}(?:([^{}\s]{1,99})\s{0,99})?\}")
_INLINE_MATH = re.compile(r"\$\$(?:[^$\\]|\\[\s\S]|\$(?!\$)){0,5000}\$\$|\$(?:[^$\\]|\\[\s\S]){1,5000}\$")
_LETTER = re.compile(r"\s{0,99}\{\s{0,99}(\\[ij](?![a-zA-Z])|[^\W\d_])\s{0,99}\}|\s{0,99}(\\[ij](?![a-zA-Z])|[^\W\d_])")
_CITE = re.compile(r"[cC]ite|.{0,40}[cC]ites?$")
_LABEL = re.compile(r"\\label\s*\{[^{}]*\}")
_DOCUMENT = re.compile(r"^[^%\r\n]*?\\begin\s*\{document\}", re.MULTILINE)
_MAX_NESTING = 20
# Commands that begin a conditional of TeX, unlike ifthenelse and iff.
_CONDITIONALS = _words(
    "if ifcase ifcat ifcsname ifdefined ifdim ifeof iffalse iffontchar ifhbox ifhmode ifinner ifmmode ifnum ifodd "
    "iftrue ifvbox ifvmode ifvoid ifx ifluatex ifpdf ifPDFTeX ifpdftex ifLuaTeX ifxetex ifXeTeX"
)
_CONDITIONAL_TOKEN = re.compile(r"%[^\r\n]*|\\(?P<name>if[a-zA-Z@]*|else|fi)(?![a-zA-Z@])|\\[\s\S]")
_NEW_CONDITIONAL = re.compile(r"\\newif\s{0,9}\\(if[a-zA-Z@]{1,99})")
_COMMAND = re.compile(r"\\([a-zA-Z@]+)")
_COMMENT = re.compile(r"(?<!\\)%[^\r\n]*")
_SPANNED_COLUMNS = re.compile(r"\s{0,9}\{(\d{1,2})\}")
_NUMERIC_GROUP = re.compile(r"\s{0,9}\{\s{0,9}[\d*†‡]")
_START_OPTION = re.compile(r"\s{0,9}\[[^\[\]]{0,200}?\bstart\s{0,9}=\s{0,9}(\d{1,4})")
_COUNTER = re.compile(r"\s{0,9}\{enumi{1,3}v?\}\s{0,9}\{(-?\d{1,4})\}")


def scan_latex(text: str) -> Scan:
    """Find the blocks of a LaTeX source and its headings, from the title to subparagraph."""
    return tile_visible_blocks(text, _LatexReader(text).visible_blocks())


def _find_hidden_spans(text: str) -> dict[int, int]:
    r"""Return the ends of the parts that a false condition such as `\iffalse` hides, by their starts.

    Unknown conditions hide nothing. An unclosed condition hides nothing, either.

    >>> _find_hidden_spans(r"a \iffalse b \else c \fi d")
    {2: 18}
    """
    declared = {*_NEW_CONDITIONAL.findall(text)} if "\\newif" in text else set()
    if not declared and "\\iffalse" not in text and "\\iftrue" not in text:
        return {}
    commands = {*_COMMAND.findall(_COMMENT.sub("", text))} if declared else set()
    value_by_name = {name: f"{name[2:]}true" in commands for name in declared}
    value_by_name |= {"iffalse": False, "iftrue": True}
    spans: dict[int, int] = {}
    open_conditions: list[tuple[str, int]] = []  # name and, if the current branch is hidden, its start, else -1
    for token in _CONDITIONAL_TOKEN.finditer(text):
        name = token["name"]
        if name in ("else", "fi") and open_conditions:
            condition, start = open_conditions.pop()
            if start >= 0:
                spans[start] = token.end()
            if name == "else":
                is_hidden = value_by_name.get(condition) is True
                open_conditions.append((condition, token.start() if is_hidden else -1))
        elif name and (name in _CONDITIONALS or name in declared) and not text.endswith("\\newif", 0, token.start()):
            is_hidden = value_by_name.get(name) is False
            open_conditions.append((name, token.start() if is_hidden else -1))
    return spans


class _LatexReader(Rendering):
    """Reader that goes through a source from its first character to the end of the document.

    It collects the blocks that show something and all headings. Levels of headings are set at the end.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._blocks: list[VisibleBlock] = []
        self._kind: BlockKind = "paragraph"  # kind of the current block
        self._start = -1  # offset at which the current block begins; -1 before its first character
        self._next_offset: dict[str, int] = {}  # next offset of each mark; the text's length if there is none
        self._ranks: list[int | None] = []  # ranks of the headings; None for the highest rank in the text
        self._groups: list[str] = []  # for each open brace, the text that follows the closing brace
        self._special_group = -1  # index of the group that contains a heading or a title; -1 if there is none
        self._environments: list[str] = []  # open environments that make up one block
        self._item_numbers: list[int] = []  # number of the last item of each open list; -1 if not numbered
        self._is_hidden = _DOCUMENT.search(text) is not None  # in the preamble
        self._end_by_hidden_start = _find_hidden_spans(text)
        self._heading_notes: list[VisibleBlock] = []  # notes inside the current heading; they are shown after it
        offset = 0
        while offset < len(text):
            token = _TOKEN.search(text, offset)
            end = token.start() if token else len(text)
            if end > offset:
                self._add_plain(offset, text[offset:end])
            offset = self._read_token(token) if token else end
        self._begin_block("paragraph")

    def visible_blocks(self) -> list[VisibleBlock]:
        """Return the visible blocks. The title has level 1, or else the headings of the highest rank."""
        ranks = [rank for rank in self._ranks if rank is not None and rank != _TITLE_RANK]
        top, top_level = min(ranks, default=0), 2 if _TITLE_RANK in self._ranks else 1
        levels = iter(
            [
                1 if rank == _TITLE_RANK else top_level if rank is None else rank - top + top_level
                for rank in self._ranks
            ]
        )
        return [block._replace(level=next(levels)) if block.kind == "heading" else block for block in self._blocks]

    def add(self, text: str) -> None:
        """Add text that continues the line, unless it is hidden."""
        if not self._is_hidden:
            super().add(text)

    def _begin_block(self, kind: BlockKind, offset: int = -1) -> None:
        """End the current block and begin another one, at an offset or at its first character."""
        text = self.text()
        if self._kind == "heading" and self._ranks[-1] == _TITLE_RANK and not text:  # an empty title
            self._ranks.pop()
        elif text or self._kind == "heading":
            self._blocks.append(VisibleBlock(self._start, self._kind, text))
        self._blocks += self._heading_notes
        self._heading_notes = []
        self.clear()
        self._kind, self._start = kind, offset

    def _touch(self, offset: int) -> None:
        """Begin the current block here if it has no beginning yet."""
        if self._start < 0:
            self._start = offset

    def _read_token(self, token: re.Match[str]) -> int:
        """Process a token and return the offset after everything that was read."""
        start, end = token.span()
        if start in self._end_by_hidden_start:
            return self._end_by_hidden_start[start]
        if token["paragraph"]:
            self._end_paragraph()
            return end
        if token["command"] not in (None, "begin", "end"):
            return self._read_command(start, token["command"], end)
        if token["command"]:
            name = _NAME.match(self._text, end)
            if name is None:
                return end
            if token["command"] == "begin":
                return self._begin_environment(start, name[1] or "", name.end())
            return self._end_environment(name[1] or "", name.end())
        self._touch(start)
        if token["character"]:
            return self._read_character(start)
        return self._read_mark(start, token["mark"]) if token["mark"] else end  # or a comment

    def _skip(self, pattern: re.Pattern[str], offset: int) -> int:
        """Return the offset after a match of the pattern, or the offset itself if the pattern does not match."""
        match = pattern.match(self._text, offset)
        return match.end() if match else offset

    def _find(self, mark: str, offset: int) -> int:
        """Return the next offset of a mark, of a blank line for "", or the text's length. Nothing is searched twice."""
        if self._next_offset.get(mark, -1) < offset:
            match = (re.compile(re.escape(mark)) if mark else _PARAGRAPH).search(self._text, offset)
            self._next_offset[mark] = match.start() if match else len(self._text)
        return self._next_offset[mark]

    def _skip_arguments(self, offset: int, count: int) -> int:
        """Return the offset after all options and after `count` arguments that are not text."""
        while True:
            option = _OPTION.match(self._text, offset)
            if option and (count or _OPEN.match(self._text, option.end())):
                offset = option.end()
                continue
            argument = _ARGUMENT.match(self._text, offset) if count else None
            if not argument:
                return offset
            offset, count = argument.end(), count - 1

    def _add_plain(self, offset: int, text: str) -> None:
        """Add text without commands. Quotation marks and dashes become their Unicode characters."""
        if not text.isspace():
            self._touch(offset + len(text) - len(text.lstrip()))
        for source, character in (("``", "“"), ("''", "”"), ("---", "—"), ("--", "–")):
            text = text.replace(source, character)
        self.add(text)

    def _read_character(self, offset: int) -> int:
        """Read a brace, a dollar, an ampersand or a tie."""
        character = self._text[offset]
        if character == "{":
            self._groups.append("")
        elif character == "}":
            self._close_group(offset)
        elif character == "$":
            math = _INLINE_MATH.match(self._text, offset)
            if math and math.end() <= self._find("", offset):
                return self._add_source(offset, math.end())
            self.add("$")
        elif character == "&" and self._kind == "table":
            self.cell()
        else:
            self.add(" " if character == "~" else character)
        return offset + 1

    def _read_mark(self, start: int, mark: str) -> int:
        """Read a backslash with a character that is not a letter."""
        end = start + 2
        if mark in "([":
            close = self._find("\\)" if mark == "(" else "\\]", end)
            return self._add_source(start, close + 2) if close < self._find("", start) else end
        if mark == "\\":
            self.line()
            return self._skip(_OPTION, end)
        if mark in _ACCENTS:
            return self._read_accent(mark, end)
        self.add(_CHARACTERS.get(mark, ""))
        return end

    def _read_command(self, start: int, name: str, end: int) -> int:
        """Read a command with a name of letters, other than `begin` and `end`."""
        plain_name = name.removesuffix("*")
        opening = _OPEN.match(self._text, self._skip(_OPTION, end))  # the option is the short form of a title
        if plain_name in _RANKS and not self._is_hidden and opening:
            self._begin_heading(start, _RANKS[plain_name])
            return self._open_special_group(opening.end(), "")
        if plain_name in _TITLES and opening and all(rank is None for rank in self._ranks):
            purpose = "title" if self._is_hidden else ""
            self._is_hidden = False
            self._begin_heading(start, _TITLE_RANK)
            return self._open_special_group(opening.end(), purpose)
        self._touch(start)
        if plain_name in _FRONT_MATTER and opening and self._is_hidden:
            self._begin_block("paragraph", start)
            self._is_hidden = False
            return self._open_special_group(opening.end(), "title")
        if plain_name in _NOTES and self._kind == "heading" and not self._is_hidden:
            note = _GROUP.match(self._text, self._skip(_OPTION, end))
            if note:
                return self._add_note_of_heading(start, note)
        if plain_name in _MARKS and opening:
            before, behind = _MARKS[plain_name]
            self.add(before)
            self._groups.append(behind)
            return opening.end()
        if plain_name in _FRACTIONS and opening:
            self.add(" " * self._text[start - 1 : start].isdigit())  # 1 1/2, not 11/2
            self._groups.append("/")
            return opening.end()
        if plain_name == "abstract" and opening:
            self._add_implied_heading(start, "Abstract")
            return end
        return self._read_inline_command(start, name, end)

    def _add_note_of_heading(self, start: int, note: re.Match[str]) -> int:
        """Show a note inside a heading as a paragraph after it, because it is not part of the section's name."""
        rendering = " ".join(block.rendering for block in _LatexReader(note[1]).visible_blocks())
        if rendering:
            self._heading_notes.append(VisibleBlock(start, "paragraph", rendering))
        return note.end()

    def _read_inline_command(self, start: int, name: str, end: int) -> int:
        """Read a command that begins neither a heading nor a note."""
        plain_name = name.removesuffix("*")
        if plain_name in ("verb", "lstinline", "url"):
            return self._read_verb(end)
        if plain_name in ("item", "bibitem"):
            return self._begin_item(start, plain_name, end)
        if plain_name in _FILES:
            return self._add_source(start, self._skip(_GROUP, end))
        if plain_name in _REFERENCES or (_CITE.match(plain_name) and plain_name not in _COMMAND_ARGUMENTS):
            return self._read_reference(plain_name, end)
        if plain_name in _ACCENTS:
            return self._read_accent(plain_name, end)
        if plain_name in _SYMBOLS:
            symbol = _SYMBOLS[plain_name]
            self.add(symbol)
            return self._skip(_BLANKS_BEFORE_LETTER, end) if len(symbol) == 1 and symbol.isalpha() else end
        if plain_name in _VALUES_OF_QUANTITY:
            return self._read_quantity(_VALUES_OF_QUANTITY[plain_name], end)
        if plain_name == "par":
            self._end_paragraph()
            return end
        if plain_name == "textsuperscript" and _NUMERIC_GROUP.match(self._text, end):
            self.add("^")  # 10^5, not 105
        if plain_name == "multicolumn":
            return self._begin_spanned_cell(end)
        if plain_name == "setcounter" and self._item_numbers and (counter := _COUNTER.match(self._text, end)):
            self._item_numbers[-1] = max(int(counter[1]), 0)
        if name in _OWN_LINE:
            self.line()
        return self._skip_arguments(end, _COMMAND_ARGUMENTS.get(plain_name, 0))

    def _read_quantity(self, n_values: int, end: int) -> int:
        """Add the values of a quantity, and its unit in words."""
        words: list[str] = []
        for index in range(n_values + 1):
            group = _GROUP.match(self._text, self._skip(_OPTION, end))
            if not group:
                break
            end = group.end()
            if index < n_values:
                words += ["to"] * bool(index) + [group[1]]
                continue
            prefix = ""
            for unit in _UNIT.finditer(group[1]):
                name = "%" if unit[1] == "percent" else unit[1] or unit[2].translate(_WITHOUT_BRACES)
                if name in _UNIT_PREFIXES:
                    prefix += name
                else:
                    words.append(prefix + name)
                    prefix = ""
            words += [prefix] * bool(prefix)
        self.add(" ".join(words))
        return end

    def _begin_frame(self, start: int, end: int) -> int:
        """Begin a slide. Its title is a heading."""
        end = self._skip(_OPTION, self._skip(_OVERLAY, end))
        opening = _OPEN.match(self._text, end)
        if opening and not self._is_hidden and not _EMPTY_GROUP.match(self._text, opening.end() - 1):
            self._begin_heading(start, _FRAME_RANK)
            return self._open_special_group(opening.end(), "")
        if not self._environments:
            self._begin_block("paragraph", start)
        return end

    def _begin_spanned_cell(self, end: int) -> int:
        """Read a cell that spans several columns. Empty cells after it keep the row aligned."""
        columns = _SPANNED_COLUMNS.match(self._text, end)
        end = self._skip_arguments(end, 2)
        opening = _OPEN.match(self._text, end)
        if not opening:
            return end
        self._groups.append("&" * (int(columns[1]) - 1 if columns and self._kind == "table" else 0))
        return opening.end()

    def _begin_environment(self, start: int, name: str, end: int) -> int:
        """Read the beginning of an environment."""
        plain_name = name.removesuffix("*")
        if name == "document":
            self._is_hidden = False
            self._begin_block("paragraph")
        elif name in _VERBATIM:
            return self._read_verbatim(start, name, end)
        elif plain_name in _MATH:
            close = self._find(f"\\end{{{name}}}", end)
            self._touch(start)
            return self._add_source(start, close + len(name) + 6) if close < self._find("", end) else end
        elif name == "frame":
            return self._begin_frame(start, end)
        elif plain_name in ("abstract", "thebibliography"):
            self._add_implied_heading(start, "Abstract" if plain_name == "abstract" else "References")
        elif plain_name in _CONTAINERS:
            end = self._begin_container(start, plain_name, end)
        elif not self._environments:
            self._begin_block("paragraph", start)
        n_arguments = _ENVIRONMENT_ARGUMENTS.get(name, _ENVIRONMENT_ARGUMENTS.get(plain_name, 0))
        return self._skip_arguments(end, n_arguments)

    def _begin_container(self, start: int, name: str, end: int) -> int:
        """Begin a list, table, figure or algorithm. It is one block with everything inside."""
        if not self._environments:
            self._begin_block(_CONTAINERS[name])
        self._touch(start)
        self.line()
        self._environments.append(name)
        if name in _LISTS:
            first_number = _START_OPTION.match(self._text, end)
            number = int(first_number[1]) - 1 if first_number else 0
            self._item_numbers.append(max(number, 0) if name == "enumerate" else -1)
        return self._skip(_OPTION, end)

    def _end_environment(self, name: str, end: int) -> int:
        """Read the end of an environment. The end of the document ends the reading."""
        plain_name = name.removesuffix("*")
        if name == "document" and not self._is_hidden:
            return len(self._text)
        if plain_name in self._environments[-_MAX_NESTING:]:
            closed = ""
            while closed != plain_name:
                closed = self._environments.pop()
                if closed in _LISTS:
                    self._item_numbers.pop()
            self.line()
        if not self._environments and plain_name not in _MATH:
            self._begin_block("paragraph")
        return end

    def _read_verbatim(self, start: int, name: str, end: int) -> int:
        """Add the text of a verbatim environment as code. A comment environment adds nothing."""
        closing = f"\\end{{{name}}}"
        close = self._find(closing, end)
        if close == len(self._text):
            return end
        if name != "comment":
            if not self._environments:
                self._begin_block("code")
            self._touch(start)
            self.line(raw=True)
            self.add(self._text[self._skip_arguments(end, _ENVIRONMENT_ARGUMENTS.get(name, 0)) : close])
            self.line()
            if not self._environments:
                self._begin_block("paragraph")
        return close + len(closing)

    def _read_verb(self, end: int) -> int:
        r"""Add the text of a command such as `\verb|text|` or `\url{text}`."""
        end = self._skip(_OPTION, end)
        match = _GROUP.match(self._text, end) or _VERB.match(self._text, end)
        if match:
            self.add(match[match.lastindex or 0])
        return match.end() if match else end

    def _begin_item(self, start: int, name: str, end: int) -> int:
        """Begin an item of a list or of a bibliography."""
        if name == "bibitem":
            if not self._environments:
                self._begin_block("paragraph", start)
            return self._skip_arguments(end, 1)
        marker = "- "
        end = self._skip(_OVERLAY, end)
        if _OPTION.match(self._text, end):
            marker = "- "  # the item has a label of its own and is not counted
        elif self._item_numbers and self._item_numbers[-1] >= 0:
            self._item_numbers[-1] += 1
            marker = f"{self._item_numbers[-1]}. "
        self.line("  " * min(len(self._item_numbers) - 1, _MAX_NESTING) + marker)
        return end

    def _read_reference(self, name: str, end: int) -> int:
        """Add the keys that a reference or citation names."""
        while (option_end := self._skip(_OPTION, end)) > end:
            end = option_end
        group = _GROUP.match(self._text, end)
        if not group:
            return end
        self.add(group[1] if name in _REFERENCES else f"[{group[1]}]")
        return group.end()

    def _read_accent(self, mark: str, end: int) -> int:
        """Add a letter with an accent."""
        match = _LETTER.match(self._text, end)
        if not match:
            return end
        letter = (match[1] or match[2]).removeprefix("\\")
        self.add(unicodedata.normalize("NFC", letter + _ACCENTS[mark]))
        return match.end()

    def _add_source(self, start: int, end: int) -> int:
        """Add the source itself, without labels."""
        self.add(_LABEL.sub("", self._text[start:end]))
        return end

    def _open_special_group(self, end: int, purpose: str) -> int:
        """Open the group of a heading or a title. An unclosed one before it loses its effect."""
        if self._special_group >= 0:
            self._groups[self._special_group] = ""
        self._special_group = len(self._groups)
        self._groups.append(purpose)
        return end

    def _close_group(self, offset: int) -> None:
        """Close the innermost group. The group of a heading or title also ends its block."""
        if not self._groups:
            return
        following = self._groups.pop()
        if len(self._groups) == self._special_group:
            self._special_group = -1
            self._begin_block("paragraph")
            self._is_hidden = following == "title"
        elif following.startswith("&"):
            for _ in following:
                self.cell()
        elif following:
            self.add(following)
        elif self._text[offset + 1 : offset + 2] == "{":
            self.add(" ")  # between two arguments

    def _begin_heading(self, start: int, rank: int | None) -> None:
        """Begin a heading. It ends all environments that are still open."""
        self._environments.clear()
        self._item_numbers.clear()
        self._begin_block("heading", start)
        self._ranks.append(rank)

    def _add_implied_heading(self, start: int, title: str) -> None:
        """Add the heading that a command or environment implies, such as "Abstract"."""
        if not self._is_hidden:
            self._begin_heading(start, None)
            self.add(title)
            self._begin_block("paragraph")

    def _end_paragraph(self) -> None:
        """End the paragraph. A heading or title that is still open is unclosed and ends, too."""
        if self._special_group >= 0:
            self._is_hidden = self._groups[self._special_group] == "title"
            self._groups[self._special_group] = ""
            self._special_group = -1
            self._begin_block("paragraph")
        elif self._environments:
            self.line()
        else:
            self._begin_block("paragraph")
