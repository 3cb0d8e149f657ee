"""LaTeX sources: headings, blocks, readable text and links, with their places in the source."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.structure import Document, parse_document
from tests.drillrank.structure.checks import check_spans
from tests.examples import examples


def parsed(text: str) -> Document:
    document = parse_document(text, "latex")
    check_spans(document)
    return document


def headings(text: str) -> list[tuple[tuple[str, ...], int]]:
    return [(section.path, section.level) for section in parsed(text).sections()]


def blocks(text: str) -> list[tuple[str, str]]:
    document = parsed(text)
    return [(b.kind, document.readable(b)) for section in document.sections() for b in document.blocks(section)]


RANKS = ["part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\section{A}\\subsection{B}\\section{C}", [(("A",), 1), (("A", "B"), 2), (("C",), 1)]),
        ("\\subsection{A}\\paragraph{B}", [(("A",), 1), (("A", "B"), 3)]),
        ("a\n\\section*[s] {A \\& \\textbf{b}\n $x$}c", [((), 0), (("A & b $x$",), 1)]),
        ("\\section{}", [(("",), 1)]),
        ("% \\section{no}\n\\%\\section{A}", [((), 0), (("A",), 1)]),
        ("\\begin{verbatim}\n\\section{no}\n\\end{verbatim}", [((), 0)]),
        ("\\verb|\\section{no}| \\verb*+\\section{no}+", [((), 0)]),
        ("\\begin{lstlisting}[a=b]\n\\section{no} % $\n\\end{lstlisting}\\section{A}", [((), 0), (("A",), 1)]),
        ("\\begin{comment}\\section{no}\\end{comment}\\section{A}", [(("A",), 1)]),
        ("\\titleformat{\\section}{\\large}{}{}{}\n\\section{A}", [(("A",), 1)]),
        ("\\newcommand{\\x}{\\section{no}} \\renewcommand\\y[1]{\\section{#1}}a", [((), 0)]),
        ("\\section{no}\\begin{document}\\section{A}\\end{document}\\section{no}", [(("A",), 1)]),
        ("\\begin{abstract}a\\end{abstract}\\section{B}", [(("Abstract",), 1), (("B",), 1)]),
        ("\\begin{document}a\\end{document}\\appendix\\section{no}", [((), 0)]),
        ("\\abstract{a}\\chapter{B}\\section{C}", [(("Abstract",), 1), (("B",), 1), (("B", "C"), 2)]),
        ("\\section{A}\\begin{thebibliography}{9}\\bibitem{x} y", [(("A",), 1), (("References",), 1)]),
        # What is not closed hides nothing below it.
        ("\\section{A\n\n\\section{B}", [(("A",), 1), (("B",), 1)]),
        ("\\section{A \\section{B}", [(("A",), 1), (("B",), 1)]),
        ("\\begin{itemize}\\item a\n\n\\section{A}", [((), 0), (("A",), 1)]),
        ("\\begin{verbatim}\n\\section{A}", [(("A",), 1)]),
        ("$a\n\n\\section{A} $", [((), 0), (("A",), 1)]),
        ("\\[a\n\n\\section{A} \\]", [((), 0), (("A",), 1)]),
        ("\\begin{equation}a\n\n\\section{A}\\end{equation}", [((), 0), (("A",), 1)]),
        ("\\footnote{a\n\n\\section{A}", [((), 0), (("A",), 1)]),
        ("\\label{a\n\n\\section{A}", [((), 0), (("A",), 1)]),
        ("\\verb|a\n\\section{A}", [((), 0), (("A",), 1)]),
        ("}}}\\section{A}", [(("A",), 1)]),
        ("{\\small\\section{A}} a", [(("A",), 1)]),
    ],
)
def test_headings(text, expected):
    assert headings(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One,\nstill one. % no\n  more\n\n\nTwo\\par three", ["One, still one. more", "Two", "three"]),
        ("50\\% of \\$5 \\& \\#1 \\_x \\{y\\} a~b a\\ b a\\,b", ["50% of $5 & #1 _x {y} a b a b a b"]),
        ("``a'' `b' -- c --- d \\ldots{} \\LaTeX\\ e", ["“a” `b' – c — d … LaTeX e"]),
        ('caf\\\'e \\"{u}ber na\\"{\\i}ve \\c{c}a \\v s \\~n \\ss{} \\o{}', ["café über naïve ça š ñ ß ø"]),
        ("\\emph{a} {\\bf b} \\textcolor{red}{c} \\foo[x]{d} \\bar{e}{f}", ["a b c d e f"]),
        ("a\\footnote{b.} c\\thanks{d}", ["a (b.) c (d)"]),
        ("see~\\cite[p.~3][q]{a,b}, \\citep{c} in \\ref{s:x}\\label{y}", ["see [a,b], [c] in s:x"]),
        ("$a_i % b$ and \\(c\\) and $$d$$ \\[e \\label{f}\\]", ["$a_i % b$ and \\(c\\) and $$d$$ \\[e \\]"]),
        ("a\n\\begin{align*}\nb &= c \\\\\n\\end{align*}\nd", ["a \\begin{align*} b &= c \\\\ \\end{align*} d"]),
        ("costs $5 a\n\nand $6", ["costs $5 a", "and $6"]),
        ("a \\input{b/c} \\include{d}", ["a \\input{b/c} \\include{d}"]),
        ("a\\\\b\\\\[2pt]c \\newline d", ["a\nb\nc\nd"]),
        ("\\begin{quote}a\\end{quote}b\\begin{theorem}[T] c\\end{theorem}", ["a", "b", "[T] c"]),
        ("\\vspace{1em}\\noindent a \\includegraphics[width=1]{f} \\hspace*{2pt}b", ["a b"]),
        ("\\verb|a{%$| \\lstinline[x]{b} \\url{http://c/d_e}", ["a{%$ b http://c/d_e"]),
        ("\\unknown \\% {", ["%"]),
        ("a\r\n\r\nb % c\r\nd", ["a", "b d"]),
        ("\\begin{document}a\\end{document}\nno", ["a"]),
        ("\\bibitem{a} One. \\bibitem[b]{c} Two.", ["One.", "Two."]),
    ],
)
def test_paragraphs(text, expected):
    assert blocks(text) == [("paragraph", paragraph) for paragraph in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "\\title[Short eel]{Long title about eels}\\begin{document}\\maketitle\\section[toad]{On toads}Newt.",
            [(("Long title about eels",), 1), (("Long title about eels", "On toads"), 2)],
        ),
        (
            "\\title{Long title about eels\\thanks{To the river.}}\\begin{document}\\section{On toads}Newt.",
            [(("Long title about eels",), 1), (("Long title about eels", "On toads"), 2)],
        ),
        (
            "\\begin{document}\\title{\\Large A \\\\ \\emph{b}}\\part{P}\\chapter{C}",
            [(("A b",), 1), (("A b", "P"), 2), (("A b", "P", "C"), 3)],
        ),
        ("\\title\n  {A}\\begin{document}\\begin{abstract}x\\end{abstract}", [(("A",), 1), (("A", "Abstract"), 2)]),
        ("\\title{}\\begin{document}\\section{A}", [(("A",), 1)]),
        ("% \\title{no}\n\\title{A}\\begin{document}b", [(("A",), 1)]),
        ("\\title{A\n\n\\begin{document}\\section{B}", [(("A",), 1), (("A", "B"), 2)]),  # unclosed
        ("\\section{A}\\title{no}", [(("A",), 1)]),
    ],
)
def test_the_title_is_the_heading_above_all_sections(text, expected):
    assert headings(text) == expected


def test_author_and_date_are_paragraphs_below_the_title():
    text = "\\title{The \\emph{t}}\\author{A \\and B}\\date{2020}\\begin{document}\\maketitle c"
    expected = [("heading", "The t"), ("paragraph", "A B"), ("paragraph", "2020"), ("paragraph", "c")]
    assert blocks(text) == expected


@pytest.mark.parametrize(
    ("text", "title", "note"),
    [
        ("\\title{Eels\\thanks{To \\emph{her}.}}\\begin{document}b", "Eels", "To her."),
        ("\\section{Toads\\footnote{See {\\bf 3}.} and newts}b", "Toads and newts", "See 3."),
        ("\\subsection*{Toads \\footnote[2]{Old.}}b", "Toads", "Old."),
    ],
)
def test_a_note_in_a_heading_is_a_paragraph_below_it(text, title, note):
    [section] = parsed(text).sections()
    assert section.heading == title
    assert blocks(text) == [("heading", title), ("paragraph", note), ("paragraph", "b")]


@pytest.mark.parametrize(
    "text",
    [
        "% \\section{no}\n\\section{A}",
        "a \\% % \\section{no}\n\\section{A}",
        "\\iffalse\n\\section{no}\n\\fi\n\\section{A}",
        "\\iffalse \\ifx\\x\\y \\section{no}\\fi \\section{no}\\fi\\section{A}",
        "\\iffalse % \\fi\n\\section{no}\\fi\\section{A}",
        "\\iffalse\\section{no}\\else\\section{A}\\fi",
        "\\iftrue\\section{A}\\else\\section{no}\\fi",
        "\\newif\\ifdraft\n\\ifdraft\\section{no}\\fi\\section{A}",
        "\\newif\\ifdraft\\drafttrue\\ifdraft\\section{A}\\else\\section{no}\\fi",
        "\\begin{comment}\n\\section{no}\n\\end{comment}\\section{A}",
    ],
)
def test_what_is_commented_out_is_not_a_section(text):
    assert [section.heading for section in parsed(text).sections() if section.level] == ["A"]


@pytest.mark.parametrize("text", ["\\iffalse\\section{A}", "\\iff\\section{A}\\fi", "\\fi\\else\\section{A}"])
def test_an_unclosed_condition_hides_nothing(text):
    assert [section.heading for section in parsed(text).sections() if section.level] == ["A"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10\\textsuperscript{5} and 1\\textsuperscript{st}", "10^5 and 1st"),
        ("due\\textsuperscript{*}", "due^*"),
        ("12 \\textsuperscript{ 3}", "12 ^ 3"),
    ],
)
def test_superscripts_do_not_join_numbers(text, expected):
    assert blocks(text) == [("paragraph", expected)]


ENUMERATED = "\\begin{enumerate}[x]\\item b\\item c\\end{enumerate}"
TABULAR = "\\begin{tabular}{l|l}a & b\\\\\\hline c & \\\\\\end{tabular}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"\\begin{{itemize}}\n\\item a\n\n  {ENUMERATED}\n\\item[t] d\\end{{itemize}}e",
         [("list", "- a\n  1. b\n  2. c\n- [t] d"), ("paragraph", "e")]),
        ("\\begin{enumerate}[start=5]\\item a\\item[x] b\\item c\\end{enumerate}", [("list", "5. a\n- [x] b\n6. c")]),
        ("\\begin{enumerate}\\setcounter{enumi}{2}\\item a\\end{enumerate}", [("list", "3. a")]),
        ("\\begin{enumerate}[label=(\\alph*), start = 3]\\item a\\end{enumerate}", [("list", "3. a")]),
        (
            "\\begin{tabular}{lll}\\multicolumn{2}{c}{\\bf a} & b\\\\c & d & e\\end{tabular}",
            [("table", "a |  | b\nc | d | e")],
        ),
        (f"\\begin{{table}}[ht]{TABULAR}\\caption{{d}}\\end{{table}}", [("table", "a | b\nc | \nd")]),
        ("\\begin{figure*}[t]\\includegraphics{a}\n\n\\caption{b}\\end{figure*}", [("paragraph", "b")]),
        ("a\\begin{verbatim}\n  b\n c%\\end{verbatim}", [("paragraph", "a"), ("code", "  b\n c%")]),
        ("\\begin{minted}{py}\nx = 1\n\\end{minted}", [("code", "x = 1")]),
        ("\\begin{itemize}\\item a\\begin{lstlisting}\n b\n\\end{lstlisting}\\end{itemize}", [("list", "- a\n b")]),
        ("% only a comment", [("other", "")]),
    ],
)  # fmt: skip
def test_other_blocks(text, expected):
    assert blocks(text) == expected


word = st.sampled_from(["fox", "Ärger", "中文", "12"])
pairs = st.tuples(word, word)
inline = st.one_of(  # what is written, and what is shown
    word.map(lambda one: (one, [one])),
    pairs.map(lambda two: ("\\emph{{{} \\label{{no}}{}}}".format(*two), [*two])),
    pairs.map(lambda two: ("{} % \\section{{no}}\n {}".format(*two), [*two])),
)
ITEMIZED, QUOTED = "\\begin{{itemize}}\n\\item {}\n\\end{{itemize}}\n", "\\begin{{quote}}{}\\end{{quote}}\n"
KINDS = {"{}\n\n": "", ITEMIZED: "-", QUOTED: ""}
parts = st.tuples(st.sampled_from([*KINDS, *RANKS]), inline)


@settings(max_examples=examples(200))
@given(st.lists(parts, max_size=10))
def test_well_formed_sources_read_as_they_were_made(made):
    text, expected, shown = "", [], []
    for kind, (written, words) in made:
        if kind in RANKS:
            expected.append((" ".join(words), len(text)))
        text += f"\\{kind}{{{written}}}\n" if kind in RANKS else kind.format(written)
        shown += [*KINDS.get(kind, "").split(), *words]
    document = parsed(text)
    assert [(section.heading, section.start) for section in document.sections() if section.level] == expected
    assert [word for section in document.sections() for word in document.readable(section).split()] == shown


def test_titles_of_slides_are_headings() -> None:
    source = (
        "\\section{Intro}\\begin{frame}<1>[fragile]{First}\n\\begin{itemize}\\item<2-> x\\end{itemize}\\end{frame}\n"
        "\\begin{frame}\\frametitle{Second}\nText.\\end{frame}\n\\begin{frame}{}\nUntitled.\\end{frame}\n"
    )
    document = parse_document(source, "latex")
    paths = [section.path for section in document.sections()]
    assert paths == [("Intro",), ("Intro", "First"), ("Intro", "Second")]
    assert [document.readable(section) for section in document.sections()][1:] == [
        "First\n\n- x",
        "Second\n\nText.\n\nUntitled.",
    ]


@pytest.mark.parametrize(
    ("source", "readable"),
    [
        (r"Was \sout{100} 80.", "Was ~~100~~ 80."),
        (r"Costs 1\nicefrac{3}{4} cups, \sfrac{1}{2} spoon.", "Costs 1 3/4 cups, 1/2 spoon."),
        (r"\SI{5}{\kilo\metre} and \qty{3}{\percent}", "5 kilometre and 3 %"),
        (r"\SIrange{1}{2}{m.s^{-1}}", "1 to 2 m s^-1"),
        (r"Stra\ss e by \LaTeX users", "Straße by LaTeX users"),
        (r"On \texorpdfstring{$x^2$}{squares}", "On squares"),
    ],
)
def test_numbers_and_words_of_commands_are_not_lost(source: str, readable: str) -> None:
    document = parse_document(source, "latex")
    assert document.readable(document.sections()[0]) == readable
