"""The syntax of LaTeX as far as it can be told without running it: tokens, groups and options."""

from __future__ import annotations

import re

LINE = r"(?:\r\n?|\n)"
PARAGRAPH = re.compile(rf"{LINE}[ \t]*{LINE}\s*")
TOKEN = re.compile(
    rf"""(?P<paragraph> {LINE}[ \t]*{LINE}\s* )
      | (?P<comment> %[^\r\n]* (?: {LINE}[ \t]*(?![ \t\r\n]) )? )
      | \\(?P<command> [a-zA-Z@]+\*? )
      | \\(?P<mark> [\s\S] )
      | (?P<character> [{{}}$&~] )""",
    re.VERBOSE,
)
SPACE = r"[ \t]*(?:\r\n?|\n)?[ \t]*"
GROUP = re.compile(rf"{SPACE}\{{((?:[^{{}}\\]|\\[\s\S]|\{{(?:[^{{}}\\]|\\[\s\S])*\}})*)\}}")
OPTION = re.compile(rf"{SPACE}\[([^\[\]]*)\]")
ARGUMENT = re.compile(rf"{GROUP.pattern}|{SPACE}\\[a-zA-Z@]+\*?")
OPEN = re.compile(rf"{SPACE}\{{")
NAME = re.compile(r"\s*\{\s*([^{}\s]*)\s*\}")
INLINE_MATH = re.compile(r"\$\$(?:[^$\\]|\\[\s\S]|\$(?!\$))*\$\$|\$(?:[^$\\]|\\[\s\S])+\$")
LETTER = re.compile(r"\s*\{\s*(\\[ij](?![a-zA-Z])|[^\W\d_])\s*\}|\s*(\\[ij](?![a-zA-Z])|[^\W\d_])")
CITE = re.compile(r"[cC]ite|.*[cC]ites?$")
ESCAPED = re.compile(r"\\([%#_&~{}])")
LABEL = re.compile(r"\\label\s*\{[^{}]*\}")
MARKUP = re.compile(r"\\[a-zA-Z@]+\*?\s*|[{}]")
DOCUMENT = re.compile(r"^[^%\r\n]*?\\begin\s*\{document\}", re.MULTILINE)


class Source:
    """A source text that is searched in one direction: what was found once is not searched again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[str, int] = {}  # where each mark comes next; the text's end if nowhere

    def find(self, mark: str, at: int) -> int:
        """The next place of a mark, or the end of the text."""
        if self._found.get(mark, -1) < at:
            found = self.text.find(mark, at)
            self._found[mark] = len(self.text) if found < 0 else found
        return self._found[mark]

    def blank_line(self, at: int) -> int:
        """The next blank line, or the end of the text."""
        if self._found.get("", -1) < at:
            found = PARAGRAPH.search(self.text, at)
            self._found[""] = found.start() if found else len(self.text)
        return self._found[""]

    def skip_arguments(self, at: int, count: int) -> int:
        """Pass over options, and over arguments that are no text."""
        while True:
            option = OPTION.match(self.text, at)
            if option and (count or OPEN.match(self.text, option.end())):
                at = option.end()
                continue
            argument = ARGUMENT.match(self.text, at) if count else None
            if not argument:
                return at
            at, count = argument.end(), count - 1
