"""Generated texts of each format, well-formed and broken."""

from __future__ import annotations

from hypothesis import strategies as st

from drillrank.structure import Document

# fmt: off
FRAGMENTS = [
    "a", "text", "# H", "#", "## H ##", "###### six", "####### seven", "   # in", "    # code", "#\tt", "***", "===",
    "---", "--", "=", "* * *", "...", "- a", "- ", "  - b", "+ z", "1. x", "2) y", "> q", "> ", "> # H", "> ```", "```",
    "~~~", "````", "    code", "<div>", "<!--", "-->", "<script>", "[a]: /u", "[a]: /u 'x", "[b]:", "[", "\\", "`x`",
    "*e*", "&amp;", "[x](y)", "|a|b|", "|-|-|", "|c|", "\t", "  ", " ", "- " * 15 + "deep", "> " * 30 + "deep", "-\tt",
    "  ```", "\x00", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u00a0", "\ufeff", "\ud800", "\U0001f600",
]


# fmt: on
LINE_ENDS = ["\n", "\n", "\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "  \n", ""]
lines = st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(LINE_ENDS)).map("".join)
nasty = st.lists(lines, max_size=14).map("".join)


def pieces(text: str, between: str | None = None) -> list[str]:
    return text.split(between)


WORDS = [*pieces("fox|Whale|ä ö|\U0001f600|中文|\u2028|\x00|\x0c|\xa0|| |\t|a < b|1 > 0", "|"), "\ud800"]
ENDS = ["", "", "\n", "\r\n", "\r", "\n\n", "\n \n"]
words = st.sampled_from(WORDS)
ends = st.sampled_from(ENDS)


def soup(known: list[str], nested: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Pieces in any order between well-formed parts, cut off anywhere."""
    parts = st.lists(st.tuples(st.one_of(st.sampled_from(known), words, nested), ends).map("".join), max_size=20)
    whole = parts.map("".join)
    cut = st.tuples(whole, st.integers(0, 60)).map(lambda pair: pair[0][: len(pair[0]) - pair[1]])
    return st.one_of(whole, whole, cut)


TAGS = pieces("""p div h1 h2 h3 h6 ul ol li dl dt dd table tr td th caption pre blockquote section article nav aside a b
i span form select option button svg math title head body html textarea details summary frameset ruby""")


ATTRIBUTES = pieces(
    "|| class=x| id='a > b'| hidden| aria-hidden=true| role=heading aria-level=2| href='/u'| style='display:none'|"
    " role=navigation| role=heading| alt='&amp;<'| a=1 a=2 b| /| start=x",
    "|",
)
HTML = [f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + [f"</{tag} x=1>" for tag in TAGS[:6]]
elements = st.recursive(
    words,
    lambda inner: st.builds(
        lambda tag, attribute, parts: f"<{tag}{attribute}>{''.join(parts)}</{tag}>",
        st.sampled_from(TAGS),
        st.sampled_from(ATTRIBUTES),
        st.lists(inner, max_size=3),
    ),
    max_leaves=10,
)
html = soup(HTML, elements)
ENVIRONMENTS = pieces("""itemize enumerate tabular table figure equation align* verbatim lstlisting quote abstract
document appendices thebibliography comment center nosuch minted algorithm""")


COMMANDS = pieces("""section section* subsection chapter part paragraph subparagraph textbf emph footnote label ref cite
title author input href url caption newcommand nosuch verb ' c item bibitem abstract multicolumn textcolor nocite
lstinline thanks""")


LATEX = [f"\\begin{{{name}}}" for name in ENVIRONMENTS] + [f"\\end{{{name}}}" for name in ENVIRONMENTS]
groups = st.recursive(
    words,
    lambda inner: st.one_of(
        st.builds(
            lambda name, parts: f"\\begin{{{name}}}{''.join(parts)}\\end{{{name}}}",
            st.sampled_from(ENVIRONMENTS),
            st.lists(inner, max_size=3),
        ),
        st.builds(
            lambda name, option, part: f"\\{name}{option}{{{part}}}",
            st.sampled_from(COMMANDS),
            st.sampled_from(["", "", "[o]", " ", "\n"]),
            inner,
        ),
        st.builds(lambda mark, part: f"{mark}{part}{mark}", st.sampled_from(["$", "$$"]), inner),
    ),
    max_leaves=10,
)
latex = soup(LATEX, groups)
NUMBERS = pieces("1|1.|2|2.1|2.1.|2.2|3|10.4.2|I.|II.|III.|Chapter 1|Part II|Appendix A|0|99", "|")
TITLES = ["Title", "Ärger", "中文", "lower", "Ends.", "T" * 90, "Dots ..... 7", "A  B   C", "", "\u2028", "Two words"]
LINES = [*pieces("===|---|-----|~~~~~|^^^^^|text|- item|  indented|    deep|\t|\x0c|a: b", "|"), "=" * 90]
titles = st.tuples(st.sampled_from(NUMBERS), st.sampled_from([" ", "\t", "  ", ": ", ""]), st.sampled_from(TITLES)).map(
    "".join
)
plain = st.lists(
    st.tuples(st.one_of(titles, st.sampled_from(TITLES + LINES)), st.sampled_from([*ENDS[2:], "\n\n", "\n\n"])).map(
        "".join
    ),
    max_size=16,
).map("".join)


def words_of(document: Document) -> list[str]:
    return "\n".join(map(document.readable, document.sections())).split()
