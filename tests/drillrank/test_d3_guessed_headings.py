"""Sections that likelihood opens where nothing marks the headings: by their best paragraph, whatever is under them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import D3, parse_document
from drillrank.drilldown.outline import outline

WORDS = ["fox", "owl", "terms", "notice", "rent", "roof", "river", "tower", "seller", "buyer"]
paragraphs = st.lists(st.sampled_from(WORDS), min_size=3, max_size=12).map(lambda words: f"The {' '.join(words)} ends.")
sections = st.lists(st.lists(paragraphs, min_size=1, max_size=6), min_size=9, max_size=30)
questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


def named(parts, mark=""):
    return "\n\n".join(
        f"{mark}Item {n}. Clause of the lease\n\n" + "\n\n".join(part) for n, part in enumerate(parts, 1)
    )


@given(sections, questions)
def test_the_best_paragraph_of_all_is_found_under_any_heading(parts, question):
    document = parse_document(named(parts), "text")
    assert all(section.guessed for section in outline([document]))
    d3 = D3()
    ready = d3.prepare([document])
    [found], [best] = (
        d3.retrieve(question, ready, 1),
        D3(settings={"sections": 10_000}).retrieve(question, [document], 1),
    )
    assert (found.passage, found.score) == (best.passage, pytest.approx(best.score))
