"""Generated requests: phrases, prompts of documents and instructions that may begin alike."""

from __future__ import annotations

from hypothesis import strategies as st

from drillrank.prompts import TruncatableText

WORDS = [
    "Basel", "the Rhine", "river", "novel", "Emma", "Zürich", "東京", "42", "who wrote it?", "Question:", ". ", "\n",
]  # fmt: skip
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join).filter(str.strip)
requests = st.lists(st.tuples(phrases, phrases), min_size=1, max_size=6)
DOCUMENTS = ["Basel", "The old town of Basel lies on the Rhine. ", "The old town of Basel lies on the Rhine. " * 6]
INSTRUCTIONS = ["", "Read.", "Read. Ask.", "Read. Question:"]
prompts = st.tuples(st.sampled_from(DOCUMENTS).map(TruncatableText), st.sampled_from(INSTRUCTIONS))
