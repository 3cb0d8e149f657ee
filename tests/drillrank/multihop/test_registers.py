"""Path search in a domain that nothing was tuned on: registers of made-up companies."""

from __future__ import annotations

from collections import Counter

import pytest

from drillrank import PathSearch, PromptRank
from drillrank.evaluation.metrics import recall_all
from drillrank.multihop.link_names import named_links
from tests.registers import pages, questions

LEAST = {"namesake and middle name": 11, "namesake": 5, "owner": 8, "other name": 5, "life": 10}


def count_answered(**options):
    """Return the number of questions of each kind whose two pages rank first."""
    search = PathSearch(PromptRank(), pages(), **options)
    rankings = [[item.passage.id for item in search.search(asked.question, 2)] for asked in questions()]
    pairs = zip(questions(), rankings, strict=True)
    return Counter(asked.kind for asked, ids in pairs if recall_all(ids, asked.gold, 2))


def test_the_pages_are_there():
    ids = {page.id for page in pages()}
    assert (len(ids), len(questions())) == (60, 40)
    assert all(set(asked.gold) <= ids for asked in questions())


def test_namesakes_middle_names_owners_and_other_names_are_told_apart():
    assert count_answered() >= Counter(LEAST)


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        ({"links": named_links(["titles"])}, "namesake and middle name"),
        ({"settings": {"link_prior": None}}, "namesake"),
    ],
)
def test_what_links_over_names_and_the_prior_are_good_for(options, lost):
    assert count_answered(**options)[lost] == 0
