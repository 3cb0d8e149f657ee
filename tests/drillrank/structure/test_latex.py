"""LaTeX sources: headings, blocks, readable text and links, with their places in the source."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.structure import Document, parse_document
from tests.drillrank.structure.test_document import check_spans


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
        ("\\title{The \\emph{t}}\\author{A \\and B}\\begin{document}\\maketitle c", ["The t", "A B", "c"]),
        ("\\begin{document}a\\end{document}\nno", ["a"]),
        ("\\bibitem{a} One. \\bibitem[b]{c} Two.", ["One.", "Two."]),
    ],
)
def test_paragraphs(text, expected):
    assert blocks(text) == [("paragraph", paragraph) for paragraph in expected]


ENUMERATED = "\\begin{enumerate}[x]\\item b\\item c\\end{enumerate}"
TABULAR = "\\begin{tabular}{l|l}a & b\\\\\\hline c & \\\\\\end{tabular}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"\\begin{{itemize}}\n\\item a\n\n  {ENUMERATED}\n\\item[t] d\\end{{itemize}}e",
         [("list", "- a\n  1. b\n  2. c\n- [t] d"), ("paragraph", "e")]),
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


@settings(max_examples=200)
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
