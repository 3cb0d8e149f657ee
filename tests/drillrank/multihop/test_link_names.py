"""Kinds of links by name."""

from __future__ import annotations

from typing import get_args

import pytest

from drillrank.llm import RetrievalRequest
from drillrank.multihop.link_names import LINKS_IN_TEXTS, PAPER_LINK_NAMES, LinkName, default_link_names, named_links
from drillrank.multihop.links import bind_links, list_targets
from drillrank.passages import Passage, Path
from tests.drillrank.helpers import refuses

TEXT = "It is in [Bern](b.md), as Section 8 says. The Olds play."
PASSAGE = Passage(TEXT, links=("x",), metadata={"see": "y", "document": "d"})
POOL = [
    Passage("a", id="b", metadata={"file_name": "b.md"}),
    Passage("a", id="t", title="It is in"),
    Passage("The Olds won.", id="n"),
    Passage("a", id="r", title="8 Notices", metadata={"document": "d"}),
]


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("relationships", ["x"]),
        ("metadata", ["y"]),
        ("hyperlinks", ["b"]),
        ("titles", ["t"]),
        ("names", ["n"]),
        ("references", ["r"]),
        ("retrieval", [RetrievalRequest(f"who? {TEXT}", 4)]),
    ],
)
def test_a_name_stands_for_a_kind_of_links(name, targets):
    [(_, follow)] = bind_links(named_links([name], metadata_key="see"), [*POOL, PASSAGE])
    assert list(list_targets(follow, "who?", Path([PASSAGE]))) == targets


def test_every_name_is_accepted():
    names = get_args(LinkName)
    assert len(named_links(names)) == len(names) == 7


def test_the_preset_leaves_titles_and_names_out():
    assert default_link_names(None) == LINKS_IN_TEXTS
    assert default_link_names("paper") == PAPER_LINK_NAMES
    assert set(LINKS_IN_TEXTS) - set(PAPER_LINK_NAMES) == {"titles", "names"}


test_unknown_names_are_refused = refuses((lambda: named_links(["title"]), "got 'title'"))
