"""Every regular expression and every parser takes linear time, whatever the text.

The shapes are drawn with a fixed seed. `DRILLRANK_FUZZ=10` draws ten times as many, from other seeds, too.
"""

from __future__ import annotations

import inspect
import os
import random
import re
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest

from drillrank.errors import InvalidInput
from drillrank.files import _is_ignored, _read_rules
from drillrank.limits import read_json
from drillrank.structure import parse_document
from drillrank.structure.formats import registered_formats
from tests.examples import size, some
from tests.pumping import (
    Growth,
    Shape,
    UsedPattern,
    Work,
    find_growth,
    modules_of,
    pattern_shapes,
    pattern_work,
    used_patterns,
)

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "SIGVTALRM"), reason="CPU time cannot be limited here"),
    pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning"),
]

FUZZ = int(os.environ.get("DRILLRANK_FUZZ", "1"))
MODULES = modules_of("drillrank", "llama_index_ext", "langchain_ext")
PATTERNS, UNKNOWN = used_patterns(MODULES)
KNOWN: dict[str, str] = {}
"""Modules whose growth is known, with the reason."""

TEXT_PARAMETERS = {"text", "answer", "reply", "title", "heading", "query", "question", "paragraph", "word", "line"}
NOT_PARSERS = ("drillrank.likelihood", "drillrank.cli", "drillrank.frameworks", "drillrank.generation")

# Parts from which texts are put together, by the name of a format: · is a space, ⏎ a line end and ⇥ a tab.
HTML_TAGS = """a b i p br h1 h2 div span ul ol li dl dt dd table caption colgroup col thead tbody tr td th form input
    button select option textarea label fieldset pre code blockquote section article nav aside header footer main figure
    figcaption img svg math mi style script template noscript iframe title head body html font ruby rt rp details
    summary frameset marquee object nobr"""
WRITTEN_PARTS = {
    "html": r"""< <a· </ <!-- --> <![CDATA[ <? & &amp; &# <a·b=" <p·class=x> <td·rowspan=9> <br/> <p·hidden> x ·
        <p·style="display:none"> <!doctype·html>""",
    "markdown": r"""#· ##· >· -· 1.· * _ ** __ *· [ ] ]( ![ [a]:·/u⏎ [a][b] [^1] [^1]:· ` ``` ~~~ --- === +++ \ | || & <
        <b> </b> <!-- --> <a·href=x> $ $$ \( ::: {#a} ···· ⇥ :· -·[·]· <div> </div> http://a a@b.c ~~ |·a·|·b·|⏎
        |--|--|⏎ a:·b #""",
    "latex": r"""{ } [ ] \begin{a} \end{a} \begin{ \end{ \begin{verbatim} \begin{table} \begin{itemize} \item· $ $$ \(
        \) \[ \] % %%⏎ \\ \ \section{ \section[ \chapter*{ \title{ \verb+ & ~ ^{ _{ \footnote{ \caption{ \href{ \label{
        \ref{a} \cite{a} \newcommand{\a}{ \def\a{ \frac{ \'e \a \input{a} \iffalse \fi \documentclass{a}
        \begin{document} -- `` ''""",
    "rst": r"""a⏎=⏎ ====⏎ ----⏎ ..· ..·code::⏎⏎ ..·[1]· ..·_a:·b⏎ ..·image::·a⏎ `` ` * ** ::⏎⏎ ·· ···· +--+⏎ |·a·|⏎
        ===·===⏎ *· -· 1.· #.· :a:·b⏎ >>>· a_ `a`_ :ref:`a` .. __ --a·b⏎""",
    "text": """1.· 1.1· I.· A.· a)· -· •· ===⏎ ---⏎ Title⏎ TITLE⏎ Chapter·1· Section· Article·1.· .... “ ” " ' ( ) .· ?·
        Mr.· e.g.· 1,000 1.5 : ; ⇥ ··· < > $5· 5%· 2020-01-01· see·Section·2·and·3 http://a.b/c""",
    "csv": """" "" , ; ⇥ a 1 ⏎ a,b⏎ "a,b" ' "⏎" ,,,""",
    "json": r"""[ ] { } " \" \ \u0041 : , 1 - 1e9 "a": null "a":{ [[ {"a":[ · //""",
    "yaml": """-· a:· ?· :· [ ] { } &a· *a· !!str· !a· " ' |⏎ >⏎ # ---⏎ ...⏎ ·· <<:· a:·&a·[ %YAML , 1 null""",
    "rtf": r"""{ } \par· \b· \'41 \u65· \u65? {\*\a· {\rtf1· \bin9· \ {\fonttbl {\pict· \cell· \row· \trowd· a \~
        {\field{\*\fldinst·""",
    "eml": r"""a:·b⏎ ·c⏎ ⏎ --a⏎ --a--⏎ =?utf-8?q?a?=· =?= = =41 ( ) < @ , ; " \ Content-Type:·message/rfc822⏎⏎
        Content-Type:·multipart/mixed;·boundary=a⏎ Content-Transfer-Encoding:·base64⏎ ;·a*0=b From:· Received:·""",
    "code": r"""{ } ( ) " ' ''' ` /* */ // # \ def·a():⏎ class·A:⏎···· if·a·{ ; ···· ⇥ @a⏎ <<EOF⏎ -- /**⏎·*·a⏎ #if·0⏎
        #endif⏎ //! lambda:· [ ]""",
}
ALIKE = {"notebook": "markdown", "tsv": "csv", "jsonl": "json", "mbox": "eml"}
BLANKS = str.maketrans({"·": " ", "⏎": "\n", "⇥": "\t"})
PARTS = {name: [part.translate(BLANKS) for part in written.split()] for name, written in WRITTEN_PARTS.items()}
PARTS["html"] += [f"<{slash}{name}>" for name in HTML_TAGS.split() for slash in ("", "/")]
PARTS["code"].append('"""')
SPACES = [" ", "\n", "\r\n", "\n\n", "\t", "a", "word ", "1", "\u00ad", "\u200b", "\u0301\u0323", "\u00a0", "東", "A "]
# What was slow once.
SHAPES = {
    "html": [
        Shape("", "<div><td>"), Shape("<table>", "</table><font>"), Shape("", "<font>", "", "<p>"),
        Shape("", "<div>", "x", "</div>"), Shape("<table>", "<b>x"), Shape("", "<p><b>"),
    ],
    "latex": [Shape("", "\\begin{"), Shape("a", "\n"), Shape("$", "a"), Shape("", "\\footnote{", "", "}")],
    "markdown": [Shape("---\r\n", "\r\n"), Shape("---\n", "a: b\r\n"), Shape("", "[", "", "]"), Shape("", "> ", "a\n")],
    "text": [Shape("1", ",22"), Shape("a", "\u0301\u0323"), Shape("", "1.1.")],
}  # fmt: skip


def wrapped(format: str, text: str) -> list[str]:
    """Return a text alone and as part of a valid file of the format."""
    if format == "notebook":
        cell = '{"cells": [{"cell_type": "markdown", "metadata": {}, "source": %s}], "metadata": {}, "nbformat": 4}'
        return [cell % json_string(text)]
    if format == "rtf":
        return [text, "{\\rtf1\\ansi " + text + "}"]
    if format == "json":
        return [text, "[" + json_string(text) + "]"]
    return [text]


def json_string(text: str) -> str:
    return '"' + "".join(f"\\u{ord(character):04x}" for character in text if ord(character) < 0x10000) + '"'


def format_shapes(format: str, count: int) -> list[Shape]:
    """Return what was slow once, and texts put together from the parts of a format."""
    rng = random.Random(format)
    parts = PARTS.get(ALIKE.get(format, format), PARTS["code"])
    shapes = list(SHAPES.get(ALIKE.get(format, format), []))

    def draw(most: int) -> str:
        pieces = [rng.choice(parts if rng.random() < 0.75 else SPACES) for _ in range(rng.randint(1, most))]
        return "".join(piece + "\n" * (rng.random() < 0.15) for piece in pieces)

    for _ in range(count * FUZZ):
        prefix, suffix, closer = (draw(1) if rng.random() < share else "" for share in (0.4, 0.3, 0.25))
        shapes.append(Shape(prefix, draw(3), suffix, closer))
    return shapes


def convert_text(name: str) -> Work:
    """Return the work of a format on the text of a file."""
    [format] = [format for format in registered_formats() if format.name == name]

    def work(text: str) -> object:
        for whole in wrapped(name, text):
            with suppress(InvalidInput):
                if format.convert is None:
                    parse_document(whole, name)
                else:
                    format.scan(format.convert(whole.encode("utf-8", "replace")).text)
        return None

    return work


def text_functions() -> list[Callable[[str], object]]:
    """Return the public functions of the product that take a text and nothing else."""
    functions = []
    for module in MODULES:
        if module.__name__.startswith(NOT_PARSERS):
            continue
        for name, function in vars(module).items():
            if not inspect.isfunction(inspect.unwrap(function)) or name.startswith("_"):
                continue
            if function.__module__ != module.__name__:
                continue
            parameters = inspect.signature(function).parameters.values()
            needed = [parameter for parameter in parameters if parameter.default is parameter.empty]
            if len(needed) == 1 and needed[0].annotation == "str" and needed[0].name in TEXT_PARAMETERS:
                functions.append(function)
    return functions


def without_refusals(function: Callable[[str], object]) -> Work:
    def work(text: str) -> object:
        try:
            result = function(text)
            return list(result) if hasattr(result, "__next__") else result
        except InvalidInput:
            return None

    return work


def first_growth(work: Work, shapes: list[Shape], sizes: tuple[int, ...], enough: float) -> Growth | None:
    return next(filter(None, (find_growth(work, shape, sizes, enough) for shape in shapes)), None)


def is_known(name: str) -> str:
    return next((reason for module, reason in KNOWN.items() if name.startswith(module)), "")


@pytest.mark.parametrize("used", PATTERNS, ids=[used.name for used in PATTERNS])
def test_regular_expressions(used):
    if reason := is_known(used.name):
        pytest.skip(reason)
    shapes = [shape for seed in range(FUZZ) for shape in pattern_shapes(used.pattern, 2, seed)]
    assert first_growth(pattern_work(used), shapes, (500, 4000, 16000), 0.02) is None


def test_every_regular_expression_is_known():
    """Patterns that only exist while a function runs are evaluated with a placeholder."""
    assert len(PATTERNS) > 100
    assert [call for call in UNKNOWN if not call.startswith("drillrank.text: ")] == []  # those are in a list there


@pytest.mark.parametrize("name", [format.name for format in registered_formats()])
def test_formats(name):
    """Shapes of all formats are given to each, most of them its own."""
    shapes = format_shapes(name, size(32))
    for other in some(list(PARTS), 3):
        shapes += format_shapes(other, 1)[-1:]
    assert first_growth(convert_text(name), shapes, (1000, 4000, 16000, 64000), 0.04) is None


def test_formats_that_are_guessed():
    shapes = [shape for name in PARTS for shape in format_shapes(name, 2)[-2:]]
    assert first_growth(parse_document, shapes, (1000, 4000, 16000, 64000), 0.04) is None


FUNCTIONS = text_functions()


@pytest.mark.parametrize("function", FUNCTIONS, ids=[f"{f.__module__}.{f.__name__}" for f in FUNCTIONS])
def test_functions_of_a_text(function):
    if reason := is_known(function.__module__):
        pytest.skip(reason)
    rng = random.Random(function.__name__)
    own = [used for used in PATTERNS if used.name.startswith(function.__module__)]
    shapes = [shape for used in own for shape in pattern_shapes(used.pattern, 1)]
    shapes = rng.sample(shapes, min(len(shapes), size(16) * FUZZ))
    shapes += [*SHAPES["text"], *format_shapes("text", 4)[-4 * FUZZ :]]
    assert first_growth(without_refusals(function), shapes, (1000, 4000, 16000, 64000), 0.04) is None


def test_json():
    shapes = [*format_shapes("json", 20), Shape("", "[", "", "]"), Shape('"', '\\"'), Shape("", '{"a":', "1", "}")]
    work = without_refusals(lambda text: read_json(text, "The answer"))
    assert first_growth(work, shapes, (1000, 16000, 64000), 0.02) is None


IGNORE_PARTS = ["*", "**", "/", "a", "?", "[a-z]", "[", "!", "\\", " ", "#", "**/", "*a", "\n"]


def test_ignore_rules(tmp_path):
    """A long rule is matched with a path, and a rule with a long path."""

    def work(rule: str) -> object:
        (tmp_path / ".gitignore").write_text(rule)
        rules = _read_rules(tmp_path)
        return [_is_ignored(tmp_path / path, False, rules) for path in ("a" * 60, "a/" * 30, rule[:250])]

    rng = random.Random(0)
    shapes = [Shape("", "".join(rng.choices(IGNORE_PARTS, k=3)), rng.choice(["", "b", "\n"])) for _ in range(40 * FUZZ)]
    assert first_growth(work, shapes, (500, 4000, 16000), 0.1) is None


# --- The test itself


@pytest.mark.parametrize(
    "pattern",
    [
        r"---[ \t]*(?:\r\n?|\n)(?:.*(?:\r\n?|\n))*?---[ \t]*(?:\r\n?|\n|$)",  # CRLF front matter, exponential
        r"\d{1,3}(?:[,']\d{2,3})*[,']\d{3}(?!\d)",  # numbers
        r"\\begin\{[^}]*\}",
        r"\s+$",
        r"(?:a|a)*b",
        r"<!--(?:(?!-->)[\s\S])*-->",
        r"\s*x?\s*y",
    ],
)
def test_slow_regular_expressions_are_found(pattern):
    used = UsedPattern("", re.compile(pattern), frozenset({"search", "sub"}))
    shapes = pattern_shapes(used.pattern, 6)
    assert first_growth(pattern_work(used), shapes, (500, 4000, 16000), 0.02) is not None


@pytest.mark.parametrize("pattern", [r"\w+", r"(?<!\s)\s+$", r"<[a-z]{1,20}>", r"[^<>]*"])
def test_fast_regular_expressions_are_not(pattern):
    used = UsedPattern("", re.compile(pattern), frozenset({"search"}))
    assert first_growth(pattern_work(used), pattern_shapes(used.pattern, 4), (500, 4000, 16000), 0.02) is None


def test_slow_parsers_are_found():
    def rescan(text: str) -> int:
        return sum(text[start:].count("b") for start in range(0, len(text), 4))

    assert first_growth(rescan, [Shape("", "<div>")], (1000, 4000, 16000, 64000), 0.04) is not None
