"""D3 tells what it opened, read and left, and why; its evidence adds up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import D3
from drillrank.drilldown.paragraph_scores import COMPLEMENT
from drillrank.errors import DrillrankWarning
from drillrank.explanation.terms import GAINS, NOTHING
from tests.drillrank.drilldown.checks import check
from tests.drillrank.helpers import UNITS, paragraph_d3

MANUAL = """# Manual\n\nRead me first.\n
## Battery\n\nThe battery lasts nine hours.\n\nCharge it over night.\n
### Old batteries\n\nBring them back.\n
## Screen\n\nClean the screen with a dry cloth.\n
## Warranty\n
### Years\n\nTwo years.\n"""
OTHER = "Before.\n\n# Other\n\nOne battery.\n\n# Second\n\nTwo of them."
DOCUMENTS = [MANUAL, OTHER, "# Third\n\nNothing about it."]
QUESTION = "How many hours does the battery last?"


def embed(texts):
    return np.array([[len(text) % 7 - 3.0, 1.0, len(text) % 5] for text in texts])


@given(
    st.sampled_from([1, 3, 8]),
    st.sampled_from([0, 30]),
    st.booleans(),
    st.sampled_from([None, 2]),
    st.sampled_from([1, 8]),
    st.sampled_from([QUESTION, "Xylophone?"]),
    st.sampled_from(UNITS),
)
def test_without_an_llm(sections, guard, embeds, top_n, limit, question, unit):
    settings = {"sections": sections, "guard_tokens": guard, "max_documents": limit, "unit": unit}
    found = D3(settings=settings, embed=embed if embeds else None).retrieve(question, DOCUMENTS, top_n)
    explained = check(found, DOCUMENTS, unit)
    opened = [node for node in explained.tree if node.kind == "section" and node.why.startswith("likelihood: rank")]
    assert sum(node.outcome == "opened" for node in opened) == min(sections, len(opened))
    known = {NOTHING, GAINS, COMPLEMENT, "which document"} | (
        {"cosine", "cosine of the section", "length"} if embeds else set()
    )
    assert {term.name for item in explained for term in item.terms} <= known


def whys(documents=(MANUAL,), llm=None, kind="section", **settings):
    found = paragraph_d3(llm, settings=settings).retrieve(QUESTION, documents)
    return {node.name: (node.outcome, node.why) for node in found.explain().tree if node.kind == kind}


def test_who_decided():
    by_llm = whys(llm=lambda prompt: "Manual > Battery, Battery" if "names" in prompt else "2")
    assert by_llm["Battery"] == ("opened", "the LLM's choice")
    assert by_llm["Screen"] == ("left", "not the LLM's choice")
    assert by_llm["Warranty"] == ("left", "no text of its own")
    with pytest.warns(DrillrankWarning):
        unusable = whys(llm=lambda prompt: "gibberish")
    assert unusable["Battery"] == ("opened", "the LLM's answer was unusable: likelihood's choice")
    with pytest.warns(DrillrankWarning):
        over = whys(llm=lambda prompt: "1", max_calls=1)
    assert over["Battery"] == ("opened", "no call was left (budget): likelihood's choice")
    ranked = whys(sections=1)
    assert ranked["Battery"] == ("opened", "likelihood: rank 1 of 5")
    assert ranked["Screen"][1].endswith("of 5; kept: 1")
    documents = whys(DOCUMENTS, kind="document", max_documents=1)
    assert documents["Document 3"] == ("left", "others have likelier paragraphs (max_documents)")
    assert documents["Manual"] == ("opened", "drilled into")
    llm = lambda prompt: "Battery" if "names" in prompt else "1, 2"  # noqa: E731
    cut = paragraph_d3(llm).retrieve(QUESTION, [MANUAL], 1).explain().tree
    chosen = ["the LLM's choice", "the LLM's choice; behind the first 1"]
    assert [node.why for node in cut if node.kind == "paragraph"] == chosen
