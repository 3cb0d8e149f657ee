"""reStructuredText: headings, blocks and readable text."""

from __future__ import annotations

import pytest

from drillrank.structure import Document, parse_document, read_document
from tests.drillrank.structure.checks import check_spans


def parsed(text: str) -> Document:
    document = parse_document(text, "rst")
    check_spans(document)
    return document


def headings(text: str) -> list[tuple[tuple[str, ...], int]]:
    return [(section.path, section.level) for section in parsed(text).sections() if section.level]


def blocks(text: str) -> list[tuple[str, str]]:
    document = parsed(text)
    return [
        (block.kind, document.readable(block))
        for section in document.sections()
        for block in document.blocks(section)
        if block.rendering
    ]


def test_files_are_read_by_their_names(tmp_path):
    for name in ("a.rst", "b.REST"):
        (tmp_path / name).write_text("Sea\n===\n\nIt is ``deep``.\n")
        document = read_document(tmp_path / name)
        assert (document.format, document.sections()[0].path) == ("rst", ("Sea",))
        assert document.body(document.sections()[0]) == "It is deep."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A\n=\n\nB\n-\n\nC\n~\n\nD\n-\n", [(("A",), 1), (("A", "B"), 2), (("A", "B", "C"), 3), (("A", "D"), 2)]),
        ("===\n A \n===\n\nB\n===\n", [(("A",), 1), (("A", "B"), 2)]),
        ("A *b*\n####\n", [(("A b",), 1)]),
        ("A long title\n====\n", [(("A long title",), 1)]),
        ("A long title\n==\n", []),
        ("1 Foo\r\n=====\r\n\r\ntext", [(("1 Foo",), 1)]),
        ("text\n\n----\n\nmore", []),
        ("中文\n====\n", [(("中文",), 1)]),
        (":mod:`os` module\n================\n", [(("os module",), 1)]),
        (".. note::\n\n   A\n   =\n", []),
        ("::\n\n   A\n   ====\n", []),
        (".. A\n   ====\n\nB\n=====", [(("B",), 1)]),
        ("=====  ====\na      b\n=====  ====\n1      2\n=====  ====\n", []),
        ("\nA\n=====\nB\n=====\n", [(("A",), 1), (("B",), 1)]),
    ],
)
def test_headings(text, expected):
    assert headings(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*a* **b** ``c``", "a b c"),
        ("``a `b` *c*``", "a `b` *c*"),
        (":func:`~os.path.join` and :ref:`the text <target>`", "os.path.join and the text"),
        ("`Python <https://python.org>`_ and `here`__ and word_", "Python and here and word"),
        ("10\\ :sup:`5` and H\\ :sub:`2`\\ O", "10^5 and H2O"),
        ("See [1]_ and [#]_.", "See [1] and [#]."),
        ("2*3*4 and a_b and __init__ and *", "2*3*4 and a_b and __init__ and *"),
        ("|today| is |unknown|\n\n.. |today| replace:: Monday", "Monday is unknown"),
        ("\\*no\\*", "*no*"),
    ],
)
def test_inline_markup(text, expected):
    assert blocks(text) == [("paragraph", expected)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One,\nstill one.\n\nTwo.", [("paragraph", "One, still one."), ("paragraph", "Two.")]),
        (".. note:: Take care.\n   Really.\n", [("paragraph", "Note: Take care. Really.")]),
        (".. warning::\n\n   Hot.\n", [("paragraph", "Warning:"), ("paragraph", "Hot.")]),
        (".. versionadded:: 3.2\n   More.\n", [("paragraph", "New in version 3.2 More.")]),
        (".. a comment\n   goes on\n\ntext", [("paragraph", "text")]),
        (".. _target:\n\n.. _link: https://a.b\n\ntext", [("paragraph", "text")]),
        ("Run::\n\n    a = 1\n\n    b\n\nnext", [("paragraph", "Run:"), ("code", "a = 1\n\nb"), ("paragraph", "next")]),
        (".. code-block:: python\n   :linenos:\n\n   x = *y*\n", [("code", "x = *y*")]),
        (".. code-block:: sh\n   :caption: Setup\n\n   ls\n", [("paragraph", "Setup"), ("code", "ls")]),
        (">>> 1 + 1\n2\n\nt", [("code", ">>> 1 + 1\n2"), ("paragraph", "t")]),
        ("- a\n  b\n- c\n\n  - d\n", [("list", "- a b\n- c\n  - d")]),
        ("#. a\n#. b\n\n3. c", [("list", "1. a\n2. b\n3. c")]),
        ("- a::\n\n    x  *y*\n\n- b", [("list", "- a:\n    x  *y*\n- b")]),
        ("+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n|   | 3 |\n+---+---+\n", [("table", "a | b\n1 | 2 3")]),
        ("== ====\na  b c\n== ====\n1  2 3\n4  5\n== ====\n", [("table", "a | b c\n1 | 2 3\n4 | 5")]),
        (
            ".. list-table::\n   :header-rows: 1\n\n   * - a\n     - b\n   * - 1\n     - 2\n",
            [("table", "a | b\n1 | 2")],
        ),
        ('.. csv-table:: T\n   :header: "a", "b"\n\n   "1, 2", 3\n', [("table", "T\na | b\n1, 2 | 3")]),
        (":Author: Ada\n:Date: 2020\n", [("paragraph", "Author: Ada\nDate: 2020")]),
        ("term\n   Its *definition*.\n", [("paragraph", "term\nIts definition.")]),
        ("| one\n| two\n", [("paragraph", "one\ntwo")]),
        (".. [1] A note\n   goes on.\n", [("paragraph", "[1] A note goes on.")]),
        (".. image:: a.png\n   :alt: A fox\n", [("paragraph", "a.png A fox")]),
        (".. function:: open(file)\n\n   Open it.\n", [("paragraph", "open(file)"), ("paragraph", "Open it.")]),
        (".. include:: /etc/passwd\n\ntext", [("paragraph", "text")]),
        (".. toctree::\n   :maxdepth: 2\n\n   intro\n   usage\n", [("paragraph", "intro usage")]),
    ],
)
def test_blocks(text, expected):
    assert blocks(text) == expected


def test_deep_directives_take_linear_time():
    text = "".join(f"{' ' * depth}.. note::\n\n" for depth in range(400))
    assert len(blocks(text)) > 0
