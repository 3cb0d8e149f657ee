"""LaTeX: sections, blocks and readable text of a source file.

One pass over the source, without expanding any macro. What is unclosed ends at the next paragraph or heading, so that
it hides nothing after it, and time stays linear.

No library fits: pylatexenc and TexSoup recurse into every group and fail where they are nested deeply.
"""

from __future__ import annotations

import re
import unicodedata

from drillrank.structure.document import BlockKind
from drillrank.structure.scan import Rendering, Scan, VisibleBlock, tile_visible_blocks


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HEADINGS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_RANKS = dict(zip(_HEADINGS, range(-1, 6), strict=True))
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


def _counts(*names: str) -> dict[str, int]:
    """How many first arguments are no text, of the names in each line: one in the first, two in the second."""
    return {name: count for count, line in enumerate(names, 1) for name in line.split()}


_ENVIRONMENT_ARGUMENTS = _counts(
    "tabular longtable tabu array minipage multicols thebibliography subfigure subtable adjustbox minted filecontents "
    "filecontents*",
    "tabular* tabularx tabulary wrapfigure list",
)
_ARGUMENTS = _counts(  # of commands; the others' arguments are shown
    "addbibresource bibliography bibliographystyle cline cmidrule color definecolors DeclareGraphicsExtensions "
    "documentclass documentstyle fontfamily fontseries fontshape geometry glossary graphicspath hphantom href hspace "
    "hypersetup hyphenation includegraphics includepdf index label linespread listoffiles lstset newcounter nocite "
    "pagenumbering pagestyle parbox phantom RequirePackage rotatebox raisebox scalebox textcolor theoremstyle "
    "thispagestyle usepackage usetikzlibrary vphantom vspace colorbox captionsetup newlength newif tikzset",
    "addtocounter addtolength DeclareMathOperator fontsize markboth multicolumn multirow newcommand newtheorem "
    "providecommand renewcommand resizebox rule setcounter setlength DeclareRobustCommand fcolorbox",
    "addcontentsline definecolor newenvironment renewenvironment",
)
# VisibleBlock although they stand before the document.
_FRONT_MATTER = _words("title subtitle author date abstract keywords affil affiliation address institute email")
_FILES = _words("input include subfile import subimport")
_REFERENCES = _words("ref eqref autoref cref Cref pageref nameref vref")
_NOTES = _words("footnote footnotetext thanks marginpar")
_OWN_LINE = _words("caption caption* STATE State REQUIRE Require ENSURE Ensure newline")

_SYMBOLS = {
    "AA": "Å", "AE": "Æ", "LaTeX": "LaTeX", "L": "Ł", "O": "Ø", "OE": "Œ", "P": "¶", "S": "§", "TeX": "TeX",
    "aa": "å", "ae": "æ", "copyright": "©", "dag": "†", "ddag": "‡", "dots": "…", "i": "ı", "j": "ȷ", "l": "ł",
    "ldots": "…", "o": "ø", "oe": "œ", "pounds": "£", "ss": "ß", "textasciicircum": "^", "textasciitilde": "~",
    "textbackslash": "\\", "textbar": "|", "textbraceleft": "{", "textbraceright": "}", "textdegree": "°",
    "textdollar": "$", "textemdash": "—", "textendash": "–", "texteuro": "€", "textgreater": ">", "textless": "<",
    "textquotedblleft": "“", "textquotedblright": "”", "textquoteleft": "‘", "textquoteright": "’",
    "textregistered": "®", "texttrademark": "™", "textunderscore": "_", "quad": " ", "qquad": " ", "space": " ",
}  # fmt: skip
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
_SPACE = r"[ \t]*(?:(?:\r\n?|\n)[ \t]*)?"
_GROUP = re.compile(rf"{_SPACE}\{{((?:[^{{}}\\]|\\[\s\S]|\{{(?:[^{{}}\\]|\\[\s\S]){{0,5000}}\}}){{0,5000}})\}}")
_OPTION = re.compile(rf"{_SPACE}\[([^\[\]]*)\]")
_ARGUMENT = re.compile(rf"{_GROUP.pattern}|{_SPACE}\\[a-zA-Z@]+\*?")
_VERB = re.compile(r"([^\sa-zA-Z*])(?P<inner>[^\r\n]{0,1000}?)\1")
_OPEN = re.compile(rf"{_SPACE}\{{")
_NAME = re.compile(r"\s*\{\s*([^{}\s]*)\s*\}")
_INLINE_MATH = re.compile(r"\$\$(?:[^$\\]|\\[\s\S]|\$(?!\$)){0,5000}\$\$|\$(?:[^$\\]|\\[\s\S]){1,5000}\$")
_LETTER = re.compile(r"\s*\{\s*(\\[ij](?![a-zA-Z])|[^\W\d_])\s*\}|\s*(\\[ij](?![a-zA-Z])|[^\W\d_])")
_CITE = re.compile(r"[cC]ite|.*[cC]ites?$")
_LABEL = re.compile(r"\\label\s*\{[^{}]*\}")
_DOCUMENT = re.compile(r"^[^%\r\n]*?\\begin\s*\{document\}", re.MULTILINE)
_MAX_NESTING = 20


def scan_latex(text: str) -> Scan:
    """Find the blocks of a LaTeX source and its headings, from part to subparagraph."""
    return tile_visible_blocks(text, _Reader(text).shown())


class _Reader(Rendering):
    """Reads a source from its first character to the end of the document, and writes its visible blocks."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._blocks: list[VisibleBlock] = []  # so far, those that show something, and all headings; levels are not set
        self._kind: BlockKind = "paragraph"  # of the block that is being written
        self._start = -1  # of it, where it was touched first
        self._text = text
        self._next: dict[str, int] = {}  # where each mark comes next; the text's end if nowhere
        self._ranks: list[int | None] = []  # of the headings, None for the highest
        self._groups: list[str] = []  # what follows the closing of each open brace
        self._special = -1  # which of them ends a heading or the title
        self._open: list[str] = []  # environments that make up one block
        self._numbers: list[int] = []  # items so far in the lists among them; -1 if not numbered
        self._hidden = _DOCUMENT.search(text) is not None  # the preamble is
        at = 0
        while at < len(text):
            token = _TOKEN.search(text, at)
            end = token.start() if token else len(text)
            if end > at:
                self._plain(at, text[at:end])
            at = self._read(token) if token else end
        self._begin_block("paragraph")

    def add(self, text: str) -> None:
        """Text that continues the line, unless it is hidden."""
        if not self._hidden:
            super().add(text)

    def _begin_block(self, kind: BlockKind, at: int = -1) -> None:
        """End the block so far, and begin another, here or where it is touched first."""
        text = self.text()
        if text or self._kind == "heading":
            self._blocks.append(VisibleBlock(self._start, self._kind, text))
        self.clear()
        self._kind, self._start = kind, at

    def _touch(self, at: int) -> None:
        """The block begins here at the latest."""
        if self._start < 0:
            self._start = at

    def shown(self) -> list[VisibleBlock]:
        """The visible blocks. The highest rank of heading that occurs has level 1."""
        top = min((rank for rank in self._ranks if rank is not None), default=0)
        levels = iter([1 if rank is None else rank - top + 1 for rank in self._ranks])
        return [block._replace(level=next(levels)) if block.kind == "heading" else block for block in self._blocks]

    def _read(self, token: re.Match[str]) -> int:
        """Act on a token; the offset where to go on."""
        at, end = token.span()
        if token["paragraph"]:
            self._end_paragraph()
            return end
        if token["command"] not in (None, "begin", "end"):
            return self._command(at, token["command"], end)
        if token["command"]:
            name = _NAME.match(self._text, end)
            if name is None:
                return end
            return (
                self._begin(at, name[1], name.end()) if token["command"] == "begin" else self._end(name[1], name.end())
            )
        self._touch(at)
        if token["character"]:
            return self._character(at)
        return self._mark(at, token["mark"]) if token["mark"] else end  # or a comment

    def _after(self, pattern: re.Pattern[str], at: int) -> int:
        """Where the text goes on behind a pattern, if that stands here."""
        found = pattern.match(self._text, at)
        return found.end() if found else at

    def _find(self, mark: str, at: int) -> int:
        """The next place of a mark, of a blank line for "", or the end of the text; nothing is searched twice."""
        if self._next.get(mark, -1) < at:
            found = (re.compile(re.escape(mark)) if mark else _PARAGRAPH).search(self._text, at)
            self._next[mark] = found.start() if found else len(self._text)
        return self._next[mark]

    def _skip_arguments(self, at: int, count: int) -> int:
        """Pass over options, and over arguments that are no text."""
        while True:
            option = _OPTION.match(self._text, at)
            if option and (count or _OPEN.match(self._text, option.end())):
                at = option.end()
                continue
            argument = _ARGUMENT.match(self._text, at) if count else None
            if not argument:
                return at
            at, count = argument.end(), count - 1

    def _plain(self, at: int, text: str) -> None:
        if not text.isspace():
            self._touch(at + len(text) - len(text.lstrip()))
        for written, meant in (("``", "“"), ("''", "”"), ("---", "—"), ("--", "–")):
            text = text.replace(written, meant)
        self.add(text)

    def _character(self, at: int) -> int:
        """A brace, a dollar, an ampersand or a tie."""
        character = self._text[at]
        if character == "{":
            self._groups.append("")
        elif character == "}":
            self._close_group(at)
        elif character == "$":
            math = _INLINE_MATH.match(self._text, at)
            if math and math.end() <= self._find("", at):
                return self._as_it_is(at, math.end())
            self.add("$")
        elif character == "&" and self._kind == "table":
            self.cell()
        else:
            self.add(" " if character == "~" else character)
        return at + 1

    def _mark(self, at: int, mark: str) -> int:
        """A backslash with a character that is no letter."""
        end = at + 2
        if mark in "([":
            close = self._find("\\)" if mark == "(" else "\\]", end)
            return self._as_it_is(at, close + 2) if close < self._find("", at) else end
        if mark == "\\":
            self.line()
            return self._after(_OPTION, end)
        if mark in _ACCENTS:
            return self._accent(mark, end)
        self.add(_CHARACTERS.get(mark, ""))
        return end

    def _command(self, at: int, name: str, end: int) -> int:
        """A command with a name of letters, but for `begin` and `end`."""
        plain = name.rstrip("*")
        opened = _OPEN.match(self._text, self._after(_OPTION, end))  # behind the short form of a title
        if plain in _RANKS and not self._hidden and opened:
            self._begin_heading(at, _RANKS[plain])
            return self._open_special(opened.end(), "")
        self._touch(at)
        if plain in ("verb", "lstinline", "url"):
            return self._verb(end)
        if plain in ("item", "bibitem"):
            return self._item(at, plain, end)
        if plain in _FILES:
            return self._as_it_is(at, self._after(_GROUP, end))
        if plain in _REFERENCES or (_CITE.match(plain) and plain not in _ARGUMENTS):
            return self._reference(plain, end)
        if plain in _FRONT_MATTER and opened and self._hidden:
            self._begin_block("paragraph", at)
            self._hidden = False
            return self._open_special(opened.end(), "title")
        if plain in _NOTES and opened:
            self.add(" (")
            self._groups.append(")")
            return opened.end()
        if plain in _ACCENTS:
            return self._accent(plain, end)
        if plain in _SYMBOLS:
            self.add(_SYMBOLS[plain])
            return end
        if plain == "abstract" and opened:
            self._heading(at, "Abstract")
            return end
        if plain == "par":
            self._end_paragraph()
            return end
        if name in _OWN_LINE:
            self.line()
        return self._skip_arguments(end, _ARGUMENTS.get(plain, 0))

    def _begin(self, at: int, name: str, end: int) -> int:
        plain = name.rstrip("*")
        if name == "document":
            self._hidden = False
            self._begin_block("paragraph")
        elif name in _VERBATIM:
            return self._verbatim(at, name, end)
        elif plain in _MATH:
            close = self._find(f"\\end{{{name}}}", end)
            self._touch(at)
            return self._as_it_is(at, close + len(name) + 6) if close < self._find("", end) else end
        elif plain in ("abstract", "thebibliography"):
            self._heading(at, "Abstract" if plain == "abstract" else "References")
        elif plain in _CONTAINERS:
            if not self._open:
                self._begin_block(_CONTAINERS[plain])
            self._touch(at)
            self.line()
            self._open.append(plain)
            if plain in _LISTS:
                self._numbers.append(0 if plain == "enumerate" else -1)
            end = self._after(_OPTION, end)
        elif not self._open:
            self._begin_block("paragraph", at)
        return self._skip_arguments(end, _ENVIRONMENT_ARGUMENTS.get(name, _ENVIRONMENT_ARGUMENTS.get(plain, 0)))

    def _end(self, name: str, end: int) -> int:
        plain = name.rstrip("*")
        if name == "document" and not self._hidden:
            return len(self._text)
        if plain in self._open[-_MAX_NESTING:]:
            closed = ""
            while closed != plain:
                closed = self._open.pop()
                if closed in _LISTS:
                    self._numbers.pop()
            self.line()
        if not self._open and plain not in _MATH:
            self._begin_block("paragraph")
        return end

    def _verbatim(self, at: int, name: str, end: int) -> int:
        closing = f"\\end{{{name}}}"
        close = self._find(closing, end)
        if close == len(self._text):
            return end
        if name != "comment":
            if not self._open:
                self._begin_block("code")
            self._touch(at)
            self.line(raw=True)
            self.add(self._text[self._skip_arguments(end, _ENVIRONMENT_ARGUMENTS.get(name, 0)) : close])
            self.line()
            if not self._open:
                self._begin_block("paragraph")
        return close + len(closing)

    def _verb(self, end: int) -> int:
        end = self._after(_OPTION, end)
        found = _GROUP.match(self._text, end) or _VERB.match(self._text, end)
        if found:
            self.add(found[found.lastindex or 0])
        return found.end() if found else end

    def _item(self, at: int, name: str, end: int) -> int:
        if name == "bibitem":
            if not self._open:
                self._begin_block("paragraph", at)
            return self._skip_arguments(end, 1)
        marker = "- "
        if self._numbers and self._numbers[-1] >= 0:
            self._numbers[-1] += 1
            marker = f"{self._numbers[-1]}. "
        self.line("  " * min(len(self._numbers) - 1, _MAX_NESTING) + marker)
        return end

    def _reference(self, name: str, end: int) -> int:
        while (behind := self._after(_OPTION, end)) > end:
            end = behind
        group = _GROUP.match(self._text, end)
        if not group:
            return end
        self.add(group[1] if name in _REFERENCES else f"[{group[1]}]")
        return group.end()

    def _accent(self, mark: str, end: int) -> int:
        found = _LETTER.match(self._text, end)
        if not found:
            return end
        letter = (found[1] or found[2]).removeprefix("\\")
        self.add(unicodedata.normalize("NFC", letter + _ACCENTS[mark]))
        return found.end()

    def _as_it_is(self, at: int, end: int) -> int:
        """Source that is shown as it is, but for labels."""
        self.add(_LABEL.sub("", self._text[at:end]))
        return end

    def _open_special(self, end: int, then: str) -> int:
        """The group of a heading or a title begins, and ends one that nobody closed."""
        if self._special >= 0:
            self._groups[self._special] = ""
        self._special = len(self._groups)
        self._groups.append(then)
        return end

    def _close_group(self, at: int) -> None:
        if not self._groups:
            return
        then = self._groups.pop()
        if len(self._groups) == self._special:
            self._special = -1
            self._begin_block("paragraph")
            self._hidden = then == "title"
        elif then:
            self.add(then)
        elif self._text[at + 1 : at + 2] == "{":
            self.add(" ")  # between two arguments

    def _begin_heading(self, at: int, rank: int | None) -> None:
        """Headings stand above all: an environment that is still open ends here."""
        self._open.clear()
        self._numbers.clear()
        self._begin_block("heading", at)
        self._ranks.append(rank)

    def _heading(self, at: int, title: str) -> None:
        """A heading that a command or environment implies."""
        if not self._hidden:
            self._begin_heading(at, None)
            self.add(title)
            self._begin_block("paragraph")

    def _end_paragraph(self) -> None:
        if self._special >= 0:  # a heading or title that nobody closed
            self._hidden = self._groups[self._special] == "title"
            self._groups[self._special] = ""
            self._special = -1
            self._begin_block("paragraph")
        elif self._open:
            self.line()
        else:
            self._begin_block("paragraph")
