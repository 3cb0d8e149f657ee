"""Generated graphs of linked passages, and path scores written out."""

from __future__ import annotations

from hypothesis import strategies as st

from drillrank.passages import Passage
from drillrank.prompts import prompt_text
from drillrank.rerank.promptrank import PromptRank

QUERY = "which red fox crossed the river"
WORDS = st.sampled_from(["red", "fox", "river", "crossed", "whale", "town"])
INSTRUCTION = "{path} Question:"


@st.composite
def graphs(draw, max_size=6):
    """Passages with distinct texts and any links: to themselves, in cycles, twice, or to nowhere."""
    size = draw(st.integers(0, max_size))
    targets = st.lists(st.sampled_from([str(i) for i in range(size)] + ["nowhere"]), max_size=4)
    contents = st.lists(WORDS, max_size=3).map(" ".join)
    return [Passage(f"{draw(contents)} n{i}", id=str(i), links=draw(targets)) for i in range(size)]


def ranker(model):
    return PromptRank(model, **({"instructions": [INSTRUCTION]} if model.reads_instructions else {}))


def scored_prompts(model):
    return [prompt_text(request.prompt) for request in model.requests]
