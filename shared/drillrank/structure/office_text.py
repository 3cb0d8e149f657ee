"""Readable lines from runs of text and from formulas: raised text and fractions never run into numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element

from drillrank.structure.markdown import table
from drillrank.structure.office_archive import child_value, shown_children

Script = Literal["", "^", "_"]
"""Height of a run: on the line, raised, or lowered."""

PRIVATE_USE = range(0xF000, 0xF100)
"""Code points where fonts of symbols have their characters."""

_ORDINAL_ENDINGS = frozenset({"st", "nd", "rd", "th", "er", "ère", "re", "e", "ème", "eme", "nde"})
_SINGLE_TERM = re.compile(r"[+\-−]?[\w.,*†‡]+$")
_MAX_SCRIPT = 40  # longer text that is raised as a whole is no exponent and no mark

_GREEK = dict(zip("abgdezhqiklmnxoprstufcyw", "αβγδεζηθικλμνξοπρστυφχψω", strict=True))
_SYMBOLS = {
    "symbol": {
        **_GREEK, **{latin.upper(): greek.upper() for latin, greek in _GREEK.items()}, "V": "ς", "J": "ϑ", "j": "ϕ",
        "\xa3": "≤", "\xb3": "≥", "\xb1": "±", "\xb4": "×", "\xb8": "÷", "\xb9": "≠", "\xbb": "≈", "\xb0": "°",
        "\xb7": "•", "\xae": "→", "\xa5": "∞", "\xd6": "√", "\xe5": "∑", "\xf2": "∫", "\xb6": "∂", "\xd7": "⋅",
        "\xb2": "″", "\xa2": "′", "\xad": "↑", "\xaf": "↓", "\xac": "←", "\xce": "∈", "-": "−",
    },
    "wingdings": {
        "\xfe": "☑", "\xfd": "☒", "\xa8": "☐", "o": "☐", "q": "☐", "x": "☒", "\xfc": "✓", "\xfb": "✗", "\xa7": "•",
        "l": "●", "n": "■", "\xe0": "→", "\xe8": "→", "\xdf": "←", "J": "☺", "L": "☹", "(": "☎", "*": "✉",
    },
    "wingdings 2": {"R": "☑", "S": "☒", "T": "☒", "Q": "☒", "\xa3": "☐", "P": "✓", "O": "✗"},
}  # fmt: skip


class Run(NamedTuple):
    """Text and its height."""

    text: str
    script: Script = ""


def join_runs(runs: Iterable[Run]) -> str:
    r"""Join runs. An exponent or the mark of a note is set off with "^", an index below a number with "_".

    >>> join_runs([Run("10"), Run("5", "^"), Run(" units, CO"), Run("2", "_"), Run(", the 5"), Run("th", "^")])
    '10^5 units, CO2, the 5th'
    """
    parts: list[str] = []
    last, last_script = "", ""  # the character before, and its height
    for script, group in groupby(runs, key=lambda run: run.script):
        text = "".join(run.text for run in group)
        if not text:
            continue
        if script and text.strip():
            text = text.replace(text.strip(), _scripted(last, text.strip(), script), 1)
        elif not script and _runs_into(last, last_script, text[0]):
            text = f" {text}"
        parts.append(text)
        last, last_script = text[-1], script
    return "".join(parts)


def _runs_into(last: str, last_script: str, following: str) -> bool:
    """Return True if text on the line would continue the raised or lowered text before it."""
    if last_script == "^":
        return last.isalnum() and following.isalnum()
    return last_script == "_" and last.isdigit() and following.isdigit()


def _scripted(last: str, text: str, script: str) -> str:
    if not last or last.isspace() or not any(map(str.isalnum, text)):
        return text
    if len(text) > _MAX_SCRIPT:
        return f" {text}"
    if script == "^" and last.isdigit() and text.lower() in _ORDINAL_ENDINGS:
        return text
    if script == "_" and not last.isdigit() and _SINGLE_TERM.match(text):
        return text
    return script + (text if _SINGLE_TERM.match(text) else f"({text})")


def folded_lines(text: str) -> list[str]:
    """Return the lines of a text that are not empty, with single spaces."""
    return [line for line in (" ".join(line.split()) for line in text.split("\n")) if line]


def on_one_line(text: str) -> str:
    """Return a text with single spaces and no line breaks."""
    return " ".join(text.split())


def write_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose first row is filled with empty cells at its end.

    >>> print(write_table([["Sales"], ["2031", "12"]]))
    | Sales |  |
    | --- | --- |
    | 2031 | 12 |
    """
    first, *others = rows
    return table([[*first, *[""] * (max(map(len, rows)) - len(first))], *others])


def formula_text(formula: Element) -> str:
    """Return a formula of Office as text on one line, such as "(a+b)/2" or "10^5"."""
    text, ends_with_structure = "", False
    for child in shown_children(formula):
        if child.tag.endswith("Pr") or child.tag in ("del", "moveFrom"):
            continue
        is_structure = child.tag in _STRUCTURES
        part = _structure_text(child) if is_structure else formula_text(child)
        if child.tag == "t":
            part = child.text or ""
        would_merge = text[-1:].isalnum() and part[:1].isalnum()
        text += f" {part}" if would_merge and (is_structure or ends_with_structure) else part
        ends_with_structure = is_structure if part else ends_with_structure
    return text


_STRUCTURES = frozenset({
    "f", "sSup", "sSub", "sSubSup", "sPre", "rad", "nary", "d", "func", "limLow", "limUpp", "m", "eqArr",
})  # fmt: skip


def _structure_text(structure: Element) -> str:
    if structure.tag == "m":
        rows = [[formula_text(cell) for cell in row] for row in structure if row.tag == "mr"]
        return f"[{'; '.join(map(', '.join, rows))}]"
    parts = [(child.tag, formula_text(child)) for child in structure if not child.tag.endswith("Pr")]
    text_by_tag = dict(parts)
    elements = [text for tag, text in parts if tag == "e"]
    base = " ".join(elements)
    marked = (("_", "sub"), ("^", "sup"), ("_", "lim"))
    scripts = "".join(mark + _grouped(text_by_tag[tag]) for mark, tag in marked if text_by_tag.get(tag))
    properties = structure.find(f"{structure.tag}Pr")
    match structure.tag:
        case "f":
            sign = " over " if child_value(properties, "type") == "noBar" else "/"
            return f"{_grouped(text_by_tag.get('num', ''))}{sign}{_grouped(text_by_tag.get('den', ''))}"
        case "rad":
            return f"{text_by_tag.get('deg', '')}√{_grouped(base)}"
        case "nary":
            return f"{child_value(properties, 'chr') or '∫'}{scripts} {base}"
        case "sPre":
            return f"{scripts} {base}"
        case "func":
            return f"{text_by_tag.get('fName', '')} {base}"
        case "d":
            inner = child_value(properties, "sepChr", "|").join(elements)
            return f"{child_value(properties, 'begChr', '(')}{inner}{child_value(properties, 'endChr', ')')}"
        case "eqArr":
            return "; ".join(elements)
    return f"{_grouped(base)}{scripts}"


def _grouped(text: str) -> str:
    return text if len(text) <= 1 or _SINGLE_TERM.match(text) else f"({text})"


def with_symbols(text: str, font: str) -> str:
    """Return a text whose characters of symbol fonts are replaced by what they look like."""
    symbols = _SYMBOLS.get(font.lower())
    if symbols is None:
        return text
    plain = "".join(chr(ord(character) - 0xF000) if ord(character) in PRIVATE_USE else character for character in text)
    return "".join(symbols.get(character, original) for character, original in zip(plain, text, strict=True))
