"""What users may have imported from a module goes on under its old name for one release."""

from __future__ import annotations

import importlib

import pytest

MOVED = {
    "rerank.parity": ("rerank.presets", "PRESETS"),
    "rerank.support": ("rerank.entailment", "support"),
    "rerank.instructions": ("rerank.instruction_search", "generate_instructions"),
    "multihop.rerank": ("multihop.path_rerank", "PathRerank"),
    "drilldown.asking": ("drilldown.selection", "Selection"),
    "drilldown.pieces": ("drilldown.truncation", "shortened"),
    "views.chunks": ("views.section_views", "SectionChunk"),
    "views.units": ("views.cutters", "whole_sections"),
    "views.cutting": ("views.packing", "packed"),
    "views.written": ("views.llm_views", "ViewWriter"),
    "multihop.prior": ("multihop.link_prior", "PathPrior"),
}


@pytest.mark.parametrize("old", MOVED)
def test_an_old_module_hands_on_what_the_new_one_has(old):
    new, name = MOVED[old]
    module = importlib.import_module(f"drillrank.{old}")
    with pytest.warns(DeprecationWarning, match=f"drillrank.{old} is called drillrank.{new} now"):
        assert getattr(module, name) is getattr(importlib.import_module(f"drillrank.{new}"), name)
    assert not hasattr(module, "nothing_of_this_name")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("drilldown.rebuilding", "Piece", "StoredChunk"),
        ("drilldown.rebuilding", "Library", "PreparedCache"),
        ("drilldown.prepared", "Drillable", "PreparedDocuments"),
        ("views", "Unit", "Chunk"),
        ("views.cutters", "Unit", "Chunk"),
    ],
)
def test_an_old_name_is_what_the_new_one_is(module, old, new):
    found = importlib.import_module(f"drillrank.{module}")
    with pytest.warns(DeprecationWarning, match=f"^{old} of drillrank.{module} is called {new} now"):
        assert getattr(found, old) is getattr(found, new)
    assert not hasattr(found, "nothing_of_this_name")
