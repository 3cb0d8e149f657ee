"""No score changes without the version that results name: `scores_<version>.json` holds some of every component.

A change that is meant raises `SCORING`, and `python tests/drillrank/test_golden_scores.py` writes the new file.
"""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest

from drillrank import BRMGR, D3, UPR, Passage, PathSearch, PromptRank, parse_document
from drillrank.explanation.explanations import SCORING
from drillrank.views import MultiViewChunker, MultiViewIndex
from tests.drillrank.helpers import paragraph_d3

FILE = Path(__file__).parent / "data" / f"scores_{SCORING}.json"
LIVES = [
    Passage("The Silent Pier was directed by Ada Holm in 1968.", id="pier", title="The Silent Pier"),
    Passage("Ada Holm grew up in the port of Esbjerg.", id="holm", title="Ada Holm"),
    Passage("Esbjerg is a port on the North Sea.", id="esbjerg", title="Esbjerg"),
    Passage("In Zürich nobody sings of FY22 or 1,577 whales. 東京", id="zurich", title="Zürich"),
]
QUESTION = "In which port did the director of The Silent Pier grow up?"
MANUAL = (
    "# Kettle\n\n## Warranty\n\nThe heater is covered for two years.\n\nLime is not.\n\n## Cleaning\n\nBoil vinegar.\n"
)
SENTENCES = ["An owl sings.", "The heater of the train is broken.", "Nobody covers the roof for two years."]


def rankings():
    document = parse_document(MANUAL)
    [chunks] = MultiViewChunker(min_tokens=None).chunks([("manual", document)])
    yield "UPR", UPR(prior=None).rank(QUESTION, LIVES)
    yield "UPR, retrieval", UPR().rank(QUESTION, LIVES, scores=[3, 1, 2, 0])
    yield "UPR, cosine", UPR(prior="cosine").rank(QUESTION, LIVES, scores=[0.1, 0.5, 0.3, 0.2])
    yield "BRMGR", BRMGR().rank(QUESTION, LIVES, ["Ada Holm grew up in Esbjerg.", "It was in Hamburg."])
    yield "PathSearch", PathSearch(PromptRank(), LIVES).search(QUESTION)
    yield "MultiViewIndex", MultiViewIndex(chunks).search("How long is the heater covered?", 3)
    yield "D3", paragraph_d3().retrieve("How long is the heater covered?", [document])
    yield "D3, passages", D3().retrieve("How long is the heater covered?", [document, *SENTENCES])


def scores():
    return {name: [[named(item), item.score] for item in ranking] for name, ranking in rankings()}


def named(item):
    return item.passage.id if hasattr(item, "passage") else item.section_id


def test_scores_are_those_of_the_version_that_results_name():
    golden, now = json.loads(FILE.read_text(encoding="utf-8")), scores()
    assert now.keys() == golden.keys()
    for name, items in golden.items():
        assert [which for which, _ in now[name]] == [which for which, _ in items], name
        assert [score for _, score in now[name]] == pytest.approx([score for _, score in items], abs=1e-9), name


def test_every_ranking_names_its_version_and_copies_keep_it():
    for name, ranking in rankings():
        for one in (ranking, ranking[:1], copy.copy(ranking), pickle.loads(pickle.dumps(ranking))):
            assert one.scoring == SCORING, name


if __name__ == "__main__":
    FILE.write_text(json.dumps(scores(), indent=1) + "\n", encoding="utf-8")
