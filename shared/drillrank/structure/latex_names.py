"""What LaTeX's commands and environments mean to a reader."""

from __future__ import annotations

from drillrank.structure.document import BlockKind


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


RANKS = {
    "part": -1,
    "chapter": 0,
    "section": 1,
    "subsection": 2,
    "subsubsection": 3,
    "paragraph": 4,
    "subparagraph": 5,
}

CONTAINERS: dict[str, BlockKind] = dict.fromkeys(("itemize", "enumerate", "description", "list", "compactitem"), "list")
CONTAINERS |= dict.fromkeys(("table", "sidewaystable", "tabular", "tabularx", "tabulary", "longtable", "tabu"), "table")
CONTAINERS |= dict.fromkeys(("algorithm", "algorithmic", "algorithm2e"), "code")
CONTAINERS |= dict.fromkeys(("figure", "wrapfigure", "SCfigure", "sidewaysfigure"), "paragraph")
LISTS = frozenset(name for name, kind in CONTAINERS.items() if kind == "list")

VERBATIM = _names(
    "verbatim verbatim* Verbatim BVerbatim LVerbatim lstlisting minted alltt filecontents filecontents* comment"
)
MATH = _names(
    "align alignat aligned array cases displaymath eqnarray equation flalign gather gathered math multline split "
    "subequations"
)

# Environments whose first arguments are no text, and how many they are.
ENVIRONMENT_ARGUMENTS = {
    "tabular": 1,
    "tabular*": 2,
    "tabularx": 2,
    "tabulary": 2,
    "longtable": 1,
    "tabu": 1,
    "array": 1,
    "minipage": 1,
    "multicols": 1,
    "thebibliography": 1,
    "wrapfigure": 2,
    "subfigure": 1,
    "subtable": 1,
    "adjustbox": 1,
    "list": 2,
    "minted": 1,
    "filecontents": 1,
    "filecontents*": 1,
}

# Commands whose first arguments are no text, and how many they are; the others' arguments are shown.
ARGUMENTS = dict.fromkeys(
    _names(
        "addbibresource bibliography bibliographystyle cline cmidrule color definecolors DeclareGraphicsExtensions "
        "documentclass documentstyle fontfamily fontseries fontshape geometry glossary graphicspath hphantom hspace "
        "hypersetup hyphenation includegraphics includepdf index label linespread listoffiles lstset newcounter nocite "
        "pagenumbering pagestyle parbox phantom RequirePackage rotatebox raisebox scalebox textcolor theoremstyle "
        "thispagestyle usepackage usetikzlibrary vphantom vspace colorbox captionsetup newlength newif tikzset"
    ),
    1,
)
ARGUMENTS |= dict.fromkeys(
    _names(
        "addtocounter addtolength DeclareMathOperator fontsize markboth multicolumn multirow newcommand newtheorem "
        "providecommand renewcommand resizebox rule setcounter setlength DeclareRobustCommand fcolorbox"
    ),
    2,
)
ARGUMENTS |= dict.fromkeys(_names("addcontentsline definecolor newenvironment renewenvironment"), 3)

FRONT_MATTER = frozenset({"title", "subtitle", "author", "date"})  # shown although they stand before the document
FILES = frozenset({"input", "include", "subfile", "import", "subimport"})
REFERENCES = frozenset({"ref", "eqref", "autoref", "cref", "Cref", "pageref", "nameref", "vref"})
NOTES = frozenset({"footnote", "footnotetext", "thanks", "marginpar"})
OWN_LINE = frozenset({"caption", "caption*", "STATE", "State", "REQUIRE", "Require", "ENSURE", "Ensure", "newline"})

SYMBOLS = {
    "AA": "Å", "AE": "Æ", "LaTeX": "LaTeX", "L": "Ł", "O": "Ø", "OE": "Œ", "P": "¶", "S": "§", "TeX": "TeX",
    "aa": "å", "ae": "æ", "copyright": "©", "dag": "†", "ddag": "‡", "dots": "…", "i": "ı", "j": "ȷ", "l": "ł",
    "ldots": "…", "o": "ø", "oe": "œ", "pounds": "£", "ss": "ß", "textasciicircum": "^", "textasciitilde": "~",
    "textbackslash": "\\", "textbar": "|", "textbraceleft": "{", "textbraceright": "}", "textdegree": "°",
    "textdollar": "$", "textemdash": "—", "textendash": "–", "texteuro": "€", "textgreater": ">", "textless": "<",
    "textquotedblleft": "“", "textquotedblright": "”", "textquoteleft": "‘", "textquoteright": "’",
    "textregistered": "®", "texttrademark": "™", "textunderscore": "_", "quad": " ", "qquad": " ", "space": " ",
}  # fmt: skip
CHARACTERS = {**{mark: mark for mark in "%&$#_{}"}, **dict.fromkeys(" ,;:>\t\n\r", " ")}
ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "r": "\u030a", "k": "\u0328", "d": "\u0323",
    "b": "\u0331",
}  # fmt: skip
