from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.drilldown.outline import Outline, outline
from drillrank.drilldown.selection import packed

headings = st.tuples(st.integers(1, 4), st.sampled_from(["Sea", "Land", "Fish", "A > B", "Sea, and land"]))
documents = st.lists(
    st.lists(st.one_of(headings, st.just("Some text.")), max_size=12).map(
        lambda parts: "\n\n".join(part if isinstance(part, str) else f"{'#' * part[0]} {part[1]}" for part in parts)
    ),
    max_size=3,
)


@settings(max_examples=150, deadline=None)
@given(documents)
def test_every_level_holds_every_section_once_and_opening_ends(texts):
    tree = Outline(outline(texts))
    level = tree.top()
    for _ in range(10):
        assert [at for entry in level for at in entry.sections] == list(range(len(tree.sections)))
        assert all(tree.sections[at].path[: len(entry.path)] == entry.path for entry in level for at in entry.sections)
        finer = [part for entry in level for part in (tree.below(entry) if len(entry.sections) > 1 else [entry])]
        if finer == level:
            break
        level = finer
    assert all(len(entry.sections) == 1 for entry in level)
    assert level == tree.leaves(range(len(tree.sections)))


def test_the_coarsest_level_is_the_first_that_offers_a_choice():
    book = "# Book\n\nHello.\n\n## One\n\n### Two\n\nText.\n\n### Three\n\nText.\n\n## Four\n\nText."
    tree = Outline(outline([book]))
    assert [entry.name for entry in tree.top()] == ["Book", "One", "Four"]
    one = tree.top()[1]
    assert [entry.name for entry in tree.below(one)] == ["One > Two", "One > Three"]
    assert tree.summary(one, {}) == "Contains: Two; Three."


@pytest.mark.parametrize(
    ("below", "listed"),
    [
        (11, "A; B; C; D; E; F; G; H; I; J; K"),
        (12, "A; B; C; D; E; F; G; H; I; J; K; L"),
        (13, "A; B; C; D; E; F; G; H; I; J; K; L; and 1 more"),
        (26, "A; B; C; D; E; F; G; H; I; J; K; L; and 14 more"),
    ],
)
def test_a_chapter_lists_twelve_headings_and_counts_the_others(below, listed):
    book = "# One\n\nIts own.\n\n" + "".join(f"## {chr(65 + n)}\n\nText.\n\n" for n in range(below)) + "# Two\n\nText."
    tree = Outline(outline([book]))
    assert tree.summary(tree.top()[0], {0: "Its own."}) == f"Its own. Contains: {listed}."


def test_documents_come_first_under_their_titles_or_numbers():
    tree = Outline(
        outline(["# Fish\n\n## Cod\n\nText.\n\n## Eel\n\nText.", "Only text.", "# A\n\nText.\n\n# B\n\nText."])
    )
    assert [entry.name for entry in tree.top()] == ["Fish", "Document 2", "Document 3"]
    names = [entry.name for entry in tree.leaves(range(len(tree.sections)))]
    assert names == ["Fish > Cod", "Fish > Eel", "Document 2", "Document 3 > A", "Document 3 > B"]


def test_text_before_the_first_heading_and_twins():
    twins = Outline(outline(["Hello.\n\n# Note\n\nOne.\n\n# Note\n\nTwo."]))
    assert [entry.name for entry in twins.leaves(range(3))] == ["(beginning)", "Note", "Note"]
    assert twins.top() == twins.leaves(range(3))
    several = Outline(outline(["# Note\n\nOne.\n\n# Note\n\nTwo.\n\n# Other\n\nThree."]))
    assert [(entry.name, len(entry.sections)) for entry in several.top()] == [("Note", 2), ("Other", 1)]


def test_a_title_below_front_matter_is_a_title_and_no_level_offers_a_single_chapter():
    headings = ["# Book", "## One", "### Two", "#### A", "#### B"]
    book = "---\nlang: en\n---\n\n" + "\n\n".join(f"{heading}\n\nText." for heading in headings)
    tree = Outline(outline([book]))
    names = ["(beginning)", "Book", "One", "One > Two", "One > Two > A", "One > Two > B"]
    assert [entry.name for entry in tree.leaves(range(6))] == names
    assert [entry.name for entry in tree.top()] == names


def test_only_some_sections():
    tree = Outline(outline(["# A\n\nText.\n\n# B\n\nText.\n\n# C\n\nText."]))
    assert [entry.name for entry in tree.top([0, 2])] == ["A", "C"]
    assert tree.top([]) == []


@pytest.mark.parametrize("text", ["# <b>Bold</b>\n\nText.", "<h1>A</h1><p>One.</p>"])
def test_paragraphs_are_text_of_the_source_and_shown_readably(text):
    if text.startswith("<"):
        pytest.importorskip("justhtml")
    for section in outline([text]):
        for paragraph, readable in zip(section.paragraphs, section.readable, strict=True):
            assert text[paragraph.metadata["start"] : paragraph.metadata["end"]] == paragraph.text
            assert readable.id == paragraph.id
            assert "<p>" not in readable.text or readable.text == paragraph.text


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(-5, 40))
def test_groups_are_in_order_full_and_within_the_room(sizes, room):
    groups = packed(sizes, range(len(sizes)), room)
    assert [at for group in groups for at in group] == list(range(len(sizes)))
    for group in groups:
        assert len(group) == 1 or sum(sizes[at] for at in group) <= room
    for group, following in pairwise(groups):
        assert sum(sizes[at] for at in group) + sizes[following[0]] > room
