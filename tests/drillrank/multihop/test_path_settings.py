"""Settings of a path search: the plan that they make, and the paper's preset."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import Passage, PathSearch, PromptRank
from drillrank.multihop.link_names import named_links
from drillrank.multihop.path_settings import PathPlan, PathSettings
from drillrank.multihop.prior import PathPrior
from drillrank.settings import as_json
from tests.drillrank.helpers import refuses

# Values for each setting: some differ from the ordinary default and from the paper, some equal one of them.
CHOICES = {
    "hops": (2, 3, 4),
    "beam": (5, 10, (7, 2)),
    "branch": (3, 8, 1),
    "pairs": (0, 6, 1),
    "link_prior": (None, PathPrior(), PathPrior(jump=0.2)),
    "prune": ("residual", "tfidf"),
    "pool": (100, 7),
}
explicit_settings = st.fixed_dictionaries({}, optional={name: st.sampled_from(row) for name, row in CHOICES.items()})
PAPER = PathPlan(
    hops=2, stops_early=False, beams=(5,), branch=3, pairs=0, link_prior=None, prune="tfidf", pool=100
)  # section 2: H, K1, L, F; links by TF-IDF similarity


@pytest.mark.parametrize("is_neural", [True, False])
def test_the_preset_is_the_papers_search_with_any_model(is_neural):
    assert PathSettings(preset="paper").plan(is_neural=is_neural) == PAPER


def test_defaults_depend_on_the_kind_of_model():
    neural, lexical = (PathSettings().plan(is_neural=is_neural) for is_neural in (True, False))
    assert (neural.hops, neural.beams, neural.branch) == (2, (5,), 3)
    assert (lexical.hops, lexical.beams, lexical.branch) == (3, (10,), 8)
    for plan in (neural, lexical):
        assert (plan.stops_early, plan.pairs, plan.link_prior, plan.prune, plan.pool) == (
            *(True, 6, PathPrior(), "residual", 100),
        )


@given(explicit_settings, st.booleans(), st.booleans())
def test_explicit_values_win_over_the_preset_also_if_they_equal_a_default(explicit, paper, is_neural):
    preset = "paper" if paper else None
    plan = PathSettings(preset=preset, **explicit).plan(is_neural=is_neural)
    changes = {name: value for name, value in explicit.items() if name != "beam"}
    if "beam" in explicit:
        changes["beams"] = explicit["beam"] if isinstance(explicit["beam"], tuple) else (explicit["beam"],)
    if "hops" in explicit:
        changes["stops_early"] = False
    assert plan == replace(PathSettings(preset=preset).plan(is_neural=is_neural), **changes)


@given(explicit_settings, st.sampled_from(["paper", None]))
def test_a_plan_survives_json(explicit, preset):
    settings = PathSettings(preset=preset, **explicit)
    restored = PathSettings.from_dict(json.loads(json.dumps(as_json(settings))))
    assert restored == settings
    assert restored.plan(is_neural=True) == settings.plan(is_neural=True)


def test_a_plan_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PAPER.hops = 3


def test_beams_may_come_as_a_list():
    assert PathSettings.from_dict({**asdict(PathSettings()), "beam": [7, 2]}).beam == (7, 2)


HYPERLINKED = [
    Passage("The Silent Pier was shown with [Fog](fog).", id="pier", metadata={"url": "pier"}, links=("harbor",)),
    Passage("A film.", id="fog", title="Fog", metadata={"url": "fog"}),
    Passage("A harbor.", id="harbor", title="Old Harbor"),
    Passage("The Silent Pier was directed by Ada Holm.", id="film", title="The Silent Pier"),
    Passage("She is a director.", id="holm", title="Ada Holm"),
]


def searched_pairs(**options):
    options = {"settings": {"pairs": 0, "branch": 9}, **options}
    paths = PathSearch(PromptRank(), HYPERLINKED, **options).search_paths("Who directed The Silent Pier?")
    return {item.passage.ids for item in paths if len(item.passage.ids) == 2}


def test_the_preset_follows_hyperlinks_alone():
    assert searched_pairs(preset="paper") == {("pier", "fog"), ("pier", "harbor")}
    assert ("film", "holm") in searched_pairs()


def test_explicit_links_win_over_the_preset():
    assert ("film", "holm") in searched_pairs(preset="paper", links=named_links(["titles"]))


def test_a_search_takes_the_preset_as_an_argument_or_in_its_settings():
    by_argument = PathSearch(PromptRank(), HYPERLINKED, preset="paper", settings={"pairs": 6})
    by_setting = PathSearch(PromptRank(), HYPERLINKED, settings={"pairs": 6, "preset": "paper"})
    assert by_argument.settings == by_setting.settings
    assert by_argument.plan == by_setting.plan == replace(PAPER, pairs=6)
    assert by_argument.links == by_setting.links


def test_a_saved_search_keeps_the_preset(tmp_path):
    PathSearch(PromptRank(), HYPERLINKED, preset="paper").save(tmp_path)
    loaded = PathSearch.load(tmp_path)
    assert loaded.plan == PAPER


test_settings_that_cannot_be_used = refuses(
    (lambda: PathSettings(preset="pap"), "preset must be \"paper\" or None, got 'pap'"),
    (lambda: PathSearch(PromptRank(), [], preset="pap"), 'preset must be "paper" or None'),
    (lambda: PathSettings(link_prior="none"), "link_prior must be a PathPrior, None or \"default\", got 'none'"),
    (lambda: PathSettings(beam=()), "beam must be a whole number of at least 1"),
    (lambda: PathSettings(beam=(3, 0)), "beam must be a whole number of at least 1"),
    (lambda: PathSettings(pairs=-1), "pairs must be a whole number of at least 1"),
    (lambda: PathSettings(prune="words"), 'prune must be "residual" or "tfidf"'),
)
