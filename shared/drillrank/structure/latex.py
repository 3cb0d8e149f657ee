"""LaTeX: sections, blocks and readable text of a source file.

One pass over the source, without expanding any macro. What is unclosed ends at the next paragraph or heading, so that
it hides nothing after it, and time stays linear.

No library fits: pylatexenc and TexSoup recurse into every group and fail where they are nested deeply.
"""

from __future__ import annotations

import re
import unicodedata

from drillrank.structure import latex_names as names
from drillrank.structure import latex_syntax as syntax
from drillrank.structure.rendering import Writer
from drillrank.structure.scan import Scan, Shown, spread

_VERB_LIMIT = 1000
_MAX_NESTING = 20


def scan_latex(text: str) -> Scan:
    """Find the blocks of a LaTeX source and its headings, from part to subparagraph."""
    return spread(text, _Reader(text).shown())


def latex_links(text: str) -> list[tuple[int, str, str]]:
    """Offset, address and text of all `href` and `url` commands."""
    return _Reader(text).links


class _Reader:
    """Reads a source from its first character to the end of the document."""

    def __init__(self, text: str) -> None:
        self.links: list[tuple[int, str, str]] = []
        self._text = text
        self._source = syntax.Source(text)
        self._ranks: list[tuple[int | None, bool]] = []  # of the headings, None for the highest; in the appendix?
        self._groups: list[str] = []  # what follows the closing of each open brace
        self._special = -1  # which of them ends a heading or the title
        self._open: list[str] = []  # environments that make up one block
        self._numbers: list[int] = []  # items so far in the lists among them; -1 if not numbered
        self._appendix = False
        self._out = Writer(hidden=syntax.DOCUMENT.search(text) is not None)  # the preamble is
        at = 0
        while at < len(text):
            token = syntax.TOKEN.search(text, at)
            end = token.start() if token else len(text)
            if end > at:
                self._plain(at, text[at:end])
            at = self._read(token) if token else end
        self._out.begin("paragraph")

    def shown(self) -> list[Shown]:
        """The visible blocks. The highest rank of heading that occurs has level 1, in the appendix level 2."""
        top = min((rank for rank, _ in self._ranks if rank is not None), default=0)
        levels = iter([1 if rank is None else rank - top + 1 + appendix for rank, appendix in self._ranks])
        return [block._replace(level=next(levels)) if block.kind == "heading" else block for block in self._out.shown]

    def _read(self, token: re.Match[str]) -> int:
        """Act on a token; the offset where to go on."""
        at, end = token.start(), token.end()
        if token["paragraph"]:
            self._end_paragraph()
        elif token["comment"]:
            self._out.touch(at)
        elif token["character"]:
            return self._character(at)
        elif token["mark"]:
            return self._mark(at, token["mark"])
        elif token["command"] in ("begin", "end"):
            name = syntax.NAME.match(self._text, end)
            if name and token["command"] == "begin":
                return self._begin(at, name[1], name.end())
            if name:
                return self._end(name[1], name.end())
        else:
            return self._command(at, token["command"], end)
        return end

    def _plain(self, at: int, text: str) -> None:
        if not text.isspace():
            self._out.touch(at + len(text) - len(text.lstrip()))
        for written, meant in (("``", "“"), ("''", "”"), ("---", "—"), ("--", "–")):
            text = text.replace(written, meant)
        self._out.add(text)

    def _character(self, at: int) -> int:
        """A brace, a dollar, an ampersand or a tie."""
        self._out.touch(at)
        character = self._text[at]
        if character == "{":
            self._groups.append("")
        elif character == "}":
            self._close_group(at)
        elif character == "$":
            return self._math(at, syntax.INLINE_MATH.match(self._text, at))
        elif character == "&" and self._out.kind == "table":
            self._out.cell()
        else:
            self._out.add(" " if character == "~" else character)
        return at + 1

    def _mark(self, at: int, mark: str) -> int:
        """A backslash with a character that is no letter."""
        self._out.touch(at)
        end = at + 2
        if mark in "([":
            close = self._source.find("\\)" if mark == "(" else "\\]", end)
            return self._raw(at, close + 2) if close < self._source.blank_line(at) else end
        if mark == "\\":
            self._out.line()
            option = syntax.OPTION.match(self._text, end)
            return option.end() if option else end
        if mark in names.ACCENTS:
            return self._accent(mark, end)
        self._out.add(names.CHARACTERS.get(mark, ""))
        return end

    def _command(self, at: int, name: str, end: int) -> int:
        """A command with a name of letters, but for `begin` and `end`."""
        plain = name.rstrip("*")
        opened = syntax.OPEN.match(self._text, end)
        if plain in names.RANKS and not self._out.hidden:
            option = syntax.OPTION.match(self._text, end)
            opened = syntax.OPEN.match(self._text, option.end() if option else end)
            if opened:
                self._begin_heading(at, names.RANKS[plain])
                return self._open_group(opened.end(), "", special=True)
        self._out.touch(at)
        if plain in ("verb", "lstinline"):
            return self._verb(end)
        if plain in ("href", "url"):
            return self._link(at, plain, end)
        if plain in ("item", "bibitem"):
            return self._item(at, plain, end)
        if plain in names.FILES:
            group = syntax.GROUP.match(self._text, end)
            return self._raw(at, group.end() if group else end)
        if plain in names.REFERENCES or (syntax.CITE.match(plain) and plain not in names.ARGUMENTS):
            return self._reference(plain, end)
        if plain in names.FRONT_MATTER and opened and self._out.hidden:
            self._out.begin("paragraph")
            self._out.touch(at)
            self._out.hidden = False
            return self._open_group(opened.end(), "title", special=True)
        if plain in names.NOTES and opened:
            self._out.add(" (")
            return self._open_group(opened.end(), ")")
        if plain in names.ACCENTS:
            return self._accent(plain, end)
        if plain in names.SYMBOLS:
            self._out.add(names.SYMBOLS[plain])
            return end
        if plain == "appendix" or (plain == "abstract" and opened):
            self._heading(at, plain.capitalize())
            self._appendix = self._appendix or plain == "appendix"
            return end
        if plain == "par":
            self._end_paragraph()
            return end
        if name in names.OWN_LINE:
            self._out.line()
        return self._source.skip_arguments(end, names.ARGUMENTS.get(plain, 0))

    def _begin(self, at: int, name: str, end: int) -> int:
        plain = name.rstrip("*")
        if name == "document":
            self._out.hidden = False
            self._out.begin("paragraph")
        elif name in names.VERBATIM:
            return self._verbatim(at, name, end)
        elif plain in names.MATH:
            close = self._source.find(f"\\end{{{name}}}", end)
            self._out.touch(at)
            return self._raw(at, close + len(name) + 6) if close < self._source.blank_line(end) else end
        elif plain in ("abstract", "appendices", "thebibliography"):
            self._heading(at, {"abstract": "Abstract", "appendices": "Appendix"}.get(plain, "References"))
            self._appendix = self._appendix or plain == "appendices"
        elif plain in names.CONTAINERS:
            if not self._open:
                self._out.begin(names.CONTAINERS[plain])
            self._out.touch(at)
            self._out.line()
            self._open.append(plain)
            if plain in names.LISTS:
                self._numbers.append(0 if plain == "enumerate" else -1)
            option = syntax.OPTION.match(self._text, end)
            end = option.end() if option else end
        elif not self._open:
            self._out.begin("paragraph")
            self._out.touch(at)
        return self._source.skip_arguments(
            end, names.ENVIRONMENT_ARGUMENTS.get(name, names.ENVIRONMENT_ARGUMENTS.get(plain, 0))
        )

    def _end(self, name: str, end: int) -> int:
        plain = name.rstrip("*")
        if name == "document" and not self._out.hidden:
            return len(self._text)
        if plain in self._open[-_MAX_NESTING:]:
            closed = ""
            while closed != plain:
                closed = self._open.pop()
                if closed in names.LISTS:
                    self._numbers.pop()
            self._out.line()
        if not self._open and plain not in names.MATH:
            self._out.begin("paragraph")
        return end

    def _verbatim(self, at: int, name: str, end: int) -> int:
        closing = f"\\end{{{name}}}"
        close = self._source.find(closing, end)
        if close == len(self._text):
            return end
        if name != "comment":
            if not self._open:
                self._out.begin("code")
            self._out.touch(at)
            self._out.line(raw=True)
            self._out.add(
                self._text[self._source.skip_arguments(end, names.ENVIRONMENT_ARGUMENTS.get(name, 0)) : close]
            )
            self._out.line()
            if not self._open:
                self._out.begin("paragraph")
        return close + len(closing)

    def _verb(self, end: int) -> int:
        option = syntax.OPTION.match(self._text, end)
        group = syntax.GROUP.match(self._text, option.end() if option else end)
        if group:
            self._out.add(group[1])
            return group.end()
        delimiter, rest = self._text[end : end + 1], self._text[end + 1 : end + 1 + _VERB_LIMIT]
        inner, found, _ = rest.partition(delimiter) if delimiter.strip() else ("", "", "")
        if not found or "\n" in inner or "\r" in inner:
            return end
        self._out.add(inner)
        return end + len(inner) + 2

    def _link(self, at: int, name: str, end: int) -> int:
        target = syntax.GROUP.match(self._text, end)
        if not target:
            return end
        address = syntax.ESCAPED.sub(r"\1", target[1].strip())
        label = syntax.GROUP.match(self._text, target.end()) if name == "href" else None
        self.links.append((at, address, " ".join(syntax.MARKUP.sub(" ", label[1]).split()) if label else address))
        if name == "url":
            self._out.add(address)
        return target.end()

    def _item(self, at: int, name: str, end: int) -> int:
        if name == "bibitem":
            if not self._open:
                self._out.begin("paragraph")
                self._out.touch(at)
            return self._source.skip_arguments(end, 1)
        marker = "- "
        if self._numbers and self._numbers[-1] >= 0:
            self._numbers[-1] += 1
            marker = f"{self._numbers[-1]}. "
        self._out.line("  " * min(len(self._numbers) - 1, _MAX_NESTING) + marker)
        return end

    def _reference(self, name: str, end: int) -> int:
        option = syntax.OPTION.match(self._text, end)
        while option:
            end = option.end()
            option = syntax.OPTION.match(self._text, end)
        group = syntax.GROUP.match(self._text, end)
        if not group:
            return end
        self._out.add(group[1] if name in names.REFERENCES else f"[{group[1]}]")
        return group.end()

    def _accent(self, mark: str, end: int) -> int:
        found = syntax.LETTER.match(self._text, end)
        if not found:
            return end
        letter = (found[1] or found[2]).removeprefix("\\")
        self._out.add(unicodedata.normalize("NFC", letter + names.ACCENTS[mark]))
        return found.end()

    def _math(self, at: int, found: re.Match[str] | None) -> int:
        if found and found.end() <= self._source.blank_line(at):
            return self._raw(at, found.end())
        self._out.add("$")
        return at + 1

    def _raw(self, at: int, end: int) -> int:
        """Source that is shown as it is, but for labels."""
        self._out.add(syntax.LABEL.sub("", self._text[at:end]))
        return end

    def _open_group(self, end: int, then: str, special: bool = False) -> int:
        if special:
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
            self._out.begin("paragraph")
            self._out.hidden = then == "title"
        elif then:
            self._out.add(then)
        elif self._text[at + 1 : at + 2] == "{":
            self._out.add(" ")  # between two arguments

    def _begin_heading(self, at: int, rank: int | None) -> None:
        """Headings stand above all: an environment that is still open ends here."""
        self._open.clear()
        self._numbers.clear()
        self._out.begin("heading")
        self._out.touch(at)
        self._ranks.append((rank, self._appendix))

    def _heading(self, at: int, title: str) -> None:
        """A heading that a command or environment implies."""
        if not self._out.hidden:
            self._begin_heading(at, None)
            self._out.add(title)
            self._out.begin("paragraph")

    def _end_paragraph(self) -> None:
        if self._special >= 0:  # a heading or title that nobody closed
            self._out.hidden = self._groups[self._special] == "title"
            self._groups[self._special] = ""
            self._special = -1
            self._out.begin("paragraph")
        elif self._open:
            self._out.line()
        else:
            self._out.begin("paragraph")
