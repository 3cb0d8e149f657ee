"""D3 tells what it opened, read and left, and why; its evidence adds up."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import D3, MonoT5
from drillrank.drilldown.outline import outline
from drillrank.errors import DrillrankWarning
from drillrank.explanation.terms import GAINS, NOTHING, ODDS
from tests.drillrank.conftest import HashModel
from tests.drillrank.test_explanation import add_up

MANUAL = """# Manual

Read me first.

## Battery

The battery lasts nine hours.

Charge it over night.

### Old batteries

Bring them back.

## Screen

Clean the screen with a dry cloth.

## Warranty

### Years

Two years.
"""
OTHER = "Before.\n\n# Other\n\nOne battery.\n\n# Second\n\nTwo of them."
DOCUMENTS = [MANUAL, OTHER, "# Third\n\nNothing about it."]
QUESTION = "How many hours does the battery last?"
ANSWERS = ["Battery", "1", "1, 2", "gibberish", "", "none", "Manual, Screen", "2, Document 1", "Document 2"]


def embed(texts):
    return np.array([[len(text) % 7 - 3.0, 1.0, len(text) % 5] for text in texts])


def tree_of(found):
    return found.explain().tree


def check(found, documents):
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
        assert len(own) == len(outline(documents))
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


@given(
    answers=st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=4),
    strategy=st.sampled_from([None, "base", "hierbase", "monot5", "base+monot5", "monot5+base", "likelihood"]),
    guard=st.sampled_from([0, 12, 500]),
    calls=st.sampled_from([1, 2, 40]),
    tokens=st.sampled_from([170, 4000]),
    documents=st.sampled_from([1, 2, 3]),
    limit=st.sampled_from([1, 8]),
    top_n=st.sampled_from([None, 1, 2]),
    on_empty=st.sampled_from(["nothing", "likelihood"]),
)
def test_whatever_an_llm_says(answers, strategy, guard, calls, tokens, documents, limit, top_n, on_empty):
    said = iter(answers * 100)
    d3 = D3(
        lambda prompt: next(said),
        settings={
            "paragraphs": strategy,
            "monot5": MonoT5(HashModel()),
            "guard_tokens": guard,
            "max_calls": calls,
            "max_prompt_tokens": tokens,
            "max_documents": limit,
            "on_empty": on_empty,
        },
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        found = d3.retrieve(QUESTION, DOCUMENTS[:documents], top_n)
    explained = check(found, DOCUMENTS[:documents])
    assert [bool(item.term(ODDS).terms) for item in explained] == [strategy in ("monot5", "base+monot5")] * len(found)


@given(
    st.sampled_from([1, 3, 8]),
    st.sampled_from([0, 30]),
    st.booleans(),
    st.sampled_from([None, 2]),
    st.sampled_from([1, 8]),
    st.sampled_from([QUESTION, "Xylophone?"]),
)
def test_without_an_llm(sections, guard, embeds, top_n, limit, question):
    d3 = D3(
        settings={"sections": sections, "guard_tokens": guard, "max_documents": limit}, embed=embed if embeds else None
    )
    found = d3.retrieve(question, DOCUMENTS, top_n)
    explained = check(found, DOCUMENTS)
    opened = [node for node in explained.tree if node.kind == "section" and node.why.startswith("likelihood: rank")]
    assert sum(node.outcome == "opened" for node in opened) == min(sections, len(opened))
    for item in explained:
        assert {term.name for term in item.terms} - {NOTHING, GAINS, "which document"} <= (
            {"cosine", "cosine of the section", "length"} if embeds else set()
        )


def whys(found, kind="section"):
    return {node.name: (node.outcome, node.why) for node in tree_of(found) if node.kind == kind}


def test_who_decided():
    by_llm = whys(
        D3(lambda prompt: "Manual > Battery, Battery" if "names" in prompt else "2").retrieve(QUESTION, [MANUAL])
    )
    assert by_llm["Battery"] == ("opened", "the LLM's choice")
    assert by_llm["Screen"] == ("left", "not the LLM's choice")
    assert by_llm["Warranty"] == ("left", "no text of its own")
    with pytest.warns(DrillrankWarning):
        unusable = whys(D3(lambda prompt: "gibberish").retrieve(QUESTION, [MANUAL]))
    assert unusable["Battery"] == ("opened", "the LLM's answer was unusable: likelihood's choice")
    with pytest.warns(DrillrankWarning, match="no call was left"):
        over = whys(D3(lambda prompt: "1", settings={"max_calls": 1}).retrieve(QUESTION, [MANUAL]))
    assert over["Battery"] == ("opened", "no call was left (budget): likelihood's choice")
    ranked = whys(D3(settings={"sections": 1}).retrieve(QUESTION, [MANUAL]))
    assert ranked["Battery"] == ("opened", "likelihood: rank 1 of 5")
    assert ranked["Screen"][1].endswith("of 5; kept: 1")
    documents = whys(D3(settings={"max_documents": 1}).retrieve(QUESTION, DOCUMENTS), "document")
    assert documents["Document 3"] == ("left", "others have likelier paragraphs (max_documents)")
    assert documents["Manual"] == ("opened", "drilled into")
    cut = tree_of(D3(lambda prompt: "Battery" if "names" in prompt else "1, 2").retrieve(QUESTION, [MANUAL], 1))
    assert [node.why for node in cut if node.kind == "paragraph"] == [
        "the LLM's choice",
        "the LLM's choice; behind the first 1",
    ]
