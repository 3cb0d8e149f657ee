"""Checks of an explanation of D3's evidence."""

from __future__ import annotations

import pytest

from drillrank.drilldown.outline import outline
from tests.drillrank.helpers import add_up


def check(found, documents, unit="passage"):
    explained = found.explain()
    add_up(explained, found)
    tree = explained.tree
    assert sum(node.kind == "document" for node in tree) == len(documents)
    evidence = {node.id: node for node in tree if node.outcome == "evidence"}
    assert sorted(evidence) == sorted(item.passage.id for item in found)
    for item in found:
        assert evidence[item.passage.id].score == pytest.approx(item.score)
        assert evidence[item.passage.id].why.startswith("outside, found by the guard") == item.details["guarded"]
    drilled = {node.name for node in tree if node.kind == "document" and node.outcome == "opened"}
    own = [node for node in tree if node.kind == "section" and node.why != "no text of its own"]
    if len(drilled) == len(documents):
        assert len(own) == len(outline(documents, unit))
    above = None
    for node in tree:  # what was read is in what was opened, or was found by the guard
        if node.kind == "section":
            above = node
        elif node.kind == "paragraph":
            assert node.depth == above.depth + 1
            assert (above.outcome == "opened") != node.why.startswith("outside")
    assert all(node.why for node in tree)
    str(explained), explained.svg(), explained._repr_html_()
    return explained
