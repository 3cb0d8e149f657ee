"""Tuning on one's own questions: what is chosen, whether it is more than noise, and what is never lost."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import drillrank
import langchain_ext
import llama_index_ext
from drillrank import UPR, load_settings
from drillrank.cli import main
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation import compare, tune
from drillrank.evaluation.coordinate_search import validate_forward
from drillrank.evaluation.statistics import difference
from drillrank.evaluation.tuning import is_adopted, setting_line
from drillrank.views import MultiViewIndex
from tests.drillrank.evaluation.samples import CORPUS, WORDS
from tests.drillrank.helpers import write_rows

MANUAL = "# Manual\n\n" + "\n\n".join(f"## {word}\n\nThe {word} lives in region {i}." for i, word in enumerate(WORDS))


def first_stage_knows(count):
    """Questions whose evidence has none of their words, but stands first: only a prior finds it."""
    return [
        {
            "id": f"q{i}",
            "question": f"Where does the {word} live?",
            "gold": ["gold"],
            "candidates": [
                {"id": "gold", "text": f"Region {i} is its home."},
                {"id": "other", "text": f"The {word} is small."},
                {"id": "third", "text": f"Where the {word} and others live."},
            ],
            "scores": [0.9, 0.5, 0.1],
        }
        for i, word in enumerate(random.Random(0).choices(WORDS, k=count))
    ]


def nobody_knows(count):
    rows = first_stage_knows(count)
    for row, gold in zip(rows, random.Random(1).choices(["gold", "other", "third"], k=count), strict=True):
        row["gold"] = [gold]
    return rows


def values_of(table):
    """In the place of trials: values of every setting and question."""
    return lambda changes: table[changes.get("a", 0), changes.get("b", 0)]


STEPS = [[{"a": 1}, {"a": 2}], [{"b": 1}, {"b": 2}]]


def test_settings_that_help_are_found_saved_and_loaded_everywhere(tmp_path):
    rows = first_stage_knows(30)
    tuned = tune(rows, grid={"mu": [], "prior_weight": [1.0, 8.0]}, measure="RR")
    assert tuned.adopted
    assert tuned.gain.low > 0.1
    assert tuned.settings == {"prior_weight": 8.0}  # the prior itself is the default
    assert "helps UPR: RR +" in tuned.advice
    file = tmp_path / "settings.json"
    tuned.save(file)
    for cls in (UPR, llama_index_ext.UPRRerank, langchain_ext.UPRRerank):
        loaded = cls(**load_settings(file, cls))
        assert (loaded.prior, loaded.prior_weight) == ("retrieval", 8.0)
    found = compare(
        rows,
        {
            "plain": "UPR",
            "ours": {"component": "UPR", "settings": str(file)},
            "theirs": {"component": "llama_index_ext:UPRRerank", "settings": str(file), "top_n": None},
        },
        measures=["RR"],
    )
    assert found.mean("plain") == pytest.approx(tuned.trials["the defaults"])
    assert (
        found.mean("ours")
        == pytest.approx(tuned.trials[setting_line(tuned.best)])
        == pytest.approx(found.mean("theirs"))
    )


def test_noise_and_nothing_better_keep_the_defaults_and_say_so(tmp_path):
    tuned = tune(nobody_knows(40), measure="RR")
    assert (tuned.adopted, tuned.settings, tuned.gain.low <= 0, "kept" in tuned.advice) == (False, {}, True, True)
    tuned.save(tmp_path / "settings.json")
    assert load_settings(tmp_path / "settings.json", "UPR") == {"model": "unigram"}
    tuned = tune(first_stage_knows(10), grid={"prior": [], "prior_weight": []}, measure="AllR@3")
    assert (tuned.best, tuned.adopted, tuned.gain.mean) == ({}, False, 0.0)
    assert tuned.advice == "No setting that was tried is better than the defaults of UPR, which are kept."


def test_of_400_tunings_on_noise_few_change_anything():
    adopted = 0
    for seed in range(400):
        random_values = np.random.default_rng(seed)
        table = random_values.integers(0, 2, (3, 3, 20)).astype(float)
        parts = np.array_split(random_values.permutation(20), 10)
        _, best, changes = validate_forward(STEPS, parts, values_of(table), {})
        adopted += is_adopted(best, difference(changes))
    assert adopted <= 20  # 5 %; 2.5 % on one side would be 10


@pytest.mark.parametrize(("folds", "least"), [(10, 7), (5, 8), (2, 12)])
def test_few_questions_change_nothing_and_the_least_number_that_could_is_named(folds, least):
    few, enough = (
        tune(first_stage_knows(n), grid={"mu": [], "prior": [], "prior_weight": [8.0]}, measure="RR", folds=folds)
        for n in (least - 1, least)
    )
    assert few.best  # and looks better on all
    assert (few.adopted, few.settings, enough.adopted, few.least, enough.least) == (False, {}, True, least, least)
    assert f"so few questions cannot show that others are better, {least} are the least that can" in few.advice


def test_an_interrupted_tuning_goes_on_and_asks_nothing_twice(tmp_path, monkeypatch):
    rows, asked = first_stage_knows(8), []
    rank = UPR.rank

    def counting(self, query, passages, *arguments, **named):
        asked.append(query)
        if len(asked) == 13:
            raise KeyboardInterrupt
        return rank(self, query, passages, *arguments, **named)

    monkeypatch.setattr(UPR, "rank", counting)
    results, settings = tmp_path / "results.jsonl", {"measure": "RR", "grid": {"prior": [], "prior_weight": []}}
    with pytest.raises(KeyboardInterrupt), pytest.warns(DrillrankWarning, match="Interrupted"):
        tune(rows, results=results, **settings)
    again = tune(rows, results=results, **settings)
    assert len(asked) == 1 + 5 * 8
    assert again == tune(rows, results=results, **settings)
    assert len(asked) == 1 + 5 * 8
    monkeypatch.undo()
    assert again.trials == tune(rows, **settings).trials


def test_a_question_is_measured_by_a_choice_that_has_seen_neither_it_nor_a_later_one():
    """Whatever the last part holds, the choices before it are the same."""
    table = np.random.default_rng(3).random((3, 3, 9))
    parts = [np.array([4, 0, 7]), np.array([2, 8, 1]), np.array([3, 5, 6])]
    chosen, _, changes = validate_forward(STEPS, parts, values_of(table), {})
    turned = table.copy()
    turned[:, :, parts[2]] = 1 - turned[:, :, parts[2]]
    others, _, other_changes = validate_forward(STEPS, parts, values_of(turned), {})
    assert (len(chosen), len(changes)) == (2, 6)
    assert chosen == others
    assert changes[:3].tolist() == other_changes[:3].tolist()


def test_settings_that_fail_are_told_and_not_chosen():
    rows = [{**row, "scores": [9.0, 5.0, 1.0]} for row in first_stage_knows(6)]
    with pytest.warns(DrillrankWarning, match="must be a cosine"):
        tuned = tune(rows, grid={"mu": [], "prior": ["cosine"], "prior_weight": []}, measure="RR")
    assert tuned.best == {}
    assert "must be a cosine" in tuned.problems[0]
    with (
        pytest.warns(DrillrankWarning),
        pytest.raises(InvalidInput, match=r"UPR failed with its defaults.*must be a cosine"),
    ):
        tune(rows, {"component": "UPR", "prior": "cosine"}, measure="RR")


SPANS = [{"question": f"Where does the {word} live?", "spans": [f"The {word} lives in region {i}."]}
         for i, word in enumerate(WORDS)]  # fmt: skip
GOLD = [{"question": f"Where does the {word} live?", "gold": [word]} for word in WORDS]


OFF = {"prior": [], "prior_weight": []}


@pytest.mark.parametrize(
    ("component", "rows", "grid", "cls"),
    [
        ("PromptRank", GOLD, {"mu": [10.0], "temperature": [2.0], **OFF}, drillrank.PromptRank),
        ({"component": "PathSearch", "pairs": 3}, GOLD,
         {"mu": [], "temperature": [], "branch": [], "pairs": [], "link_prior": [], "hops": [2], "beam": [5], **OFF},
         drillrank.PathSearch),
        ("MultiViewIndex", SPANS, {"weights": [{"raw": 2.0}]}, MultiViewIndex),
        ("D3", SPANS, {"mu": [100.0], "sections": [1], "max_documents": []}, drillrank.D3),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_other_components_are_tuned_and_load_their_file(tmp_path, component, rows, grid, cls):
    manual = tmp_path / "manual.md"
    manual.write_text(MANUAL)
    tuned = tune(rows, component, manual if rows is SPANS else CORPUS, grid=grid, folds=2)
    assert tuned.measure == ("SpanR@500" if rows is SPANS else "nDCG@10")
    assert len(tuned.trials) > 1
    file = tmp_path / "settings.json"
    tuned.save(file)
    first = {drillrank.PathSearch: [drillrank.PromptRank(), CORPUS], MultiViewIndex: [[]]}.get(cls, [])
    loaded = cls(*first, **load_settings(file, cls))
    if cls is drillrank.PathSearch:  # whose prompts are a section of their own
        drillrank.PromptRank(**load_settings(file, "PromptRank"))
    held = {**vars(loaded), **(vars(loaded.settings) if hasattr(loaded, "settings") else {})}
    assert {name: value for name, value in tuned.settings.items() if held.get(name, value) != value} == {}


def test_one_file_holds_the_settings_of_several_components(tmp_path):
    file, rows = tmp_path / "settings.json", first_stage_knows(30)
    tune(rows, grid={"prior_weight": [8.0]}, measure="RR").save(file)
    tune(rows, {"component": "PromptRank", "temperature": 1.4}, grid={"mu": [], **OFF}).save(file)
    assert UPR(**load_settings(file, "UPR")).prior_weight == 8.0
    assert drillrank.PromptRank(**load_settings(file, "PromptRank")).temperature == 1.4
    assert set(json.loads(file.read_text())["tuned"]) == {"UPR", "PromptRank"}
    other = tmp_path / "notes.json"
    other.write_text("{}")
    with pytest.raises(InvalidInput, match="Pass a file that `drillrank tune` wrote"):
        tune(rows, grid={"mu": [], "prior": []}, measure="RR").save(other)
    assert other.read_text() == "{}"


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"component": "MonoT5"}, "component must be one of UPR, PromptRank"),
        ({"component": "Nothing"}, "No component is called 'Nothing'"),
        ({"component": {"model": "unigram"}}, "component must be one of"),
        ({"component": {"component": "UPR", "priors": 3}}, "priors"),
        ({"folds": 1}, "folds must be at least 2.*got 1 for 10"),
        ({"measure": "best"}, "The measure 'best' does not exist"),
        ({"grid": {"hops": [2]}}, "grid must name settings of UPR.*got 'hops'"),
        ({"grid": {"mu": [-1]}}, "mu=-1 cannot be tried"),
        ({"grid": {"mu": 5}}, "Candidates of mu must be a list"),
        ({"grid": {"prior": ["unknown"]}}, "prior='unknown' cannot be tried"),
        ({"grid": {"mu": [], "prior": [], "prior_weight": []}}, "grid must contain candidates for UPR"),
        ({"component": "PromptRank", "grid": {"instructions": ["{path} Ask."]}}, "instructions has no effect on"),
        ({"component": "D3"}, "D3 reads documents"),
        ({"component": lambda _query, passages: passages}, "component must be one of UPR"),
    ],
)
def test_what_cannot_be_tuned_is_told(named, said):
    with pytest.raises(InvalidInput, match=said):
        tune(GOLD, named.pop("component", "UPR"), CORPUS, **named)


def test_the_command_writes_a_file_that_the_others_load(tmp_path, capsys, monkeypatch):
    def told(status, *command):
        assert main([*command]) == status
        return " ".join("".join(capsys.readouterr()).split())

    monkeypatch.chdir(tmp_path)
    write_rows("asked.jsonl", first_stage_knows(30))
    said = told(0, "tune", "asked.jsonl", "--try", "prior_weight=[8]", "--measure", "RR", "--results", "r.jsonl")
    assert "helps UPR: RR +" in said
    assert "settings.json contains the settings of UPR." in said
    found = json.loads(told(0, "compare", "asked.jsonl", "--settings", "settings.json", "--measure", "RR", "--json"))
    assert found["components"]["UPR"]["means"]["RR"] == 1.0
    Path("manual.md").write_text(MANUAL)
    write_rows("spans.jsonl", [{**row, "id": str(n)} for n, row in enumerate(SPANS)])
    tried = ["--try", "sections=[1,2]", "--try", "max_documents=[]", "--json"]
    assert json.loads(told(0, "tune", "spans.jsonl", "manual.md", "--component", "D3", *tried))["component"] == "D3"
    ask = ["ask", "manual.md", "Where does the owl live?", "--no-cache", "--settings"]
    assert "region 2" in told(0, *ask, "settings.json")
    Path("bad.json").write_text("[]")
    assert "Pass a file that `drillrank tune` wrote" in told(2, *ask, "bad.json")
    other = told(2, "compare", "asked.jsonl", "--component", "PromptRank", "--settings", "settings.json")
    assert "settings of PromptRank, got UPR" in other
