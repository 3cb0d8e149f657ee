from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.passages import Passage, Path
from drillrank.prompts import Evidence
from drillrank.rerank.demonstrations import Demonstration
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.tuning import LabelledQuestion, TunedSettings, tune

PASSAGES = [Passage(text, id=text) for text in ("fox", "river", "town", "rhine", "basel")]
INSTRUCTIONS = ["{path} A:", "{path} B:", "C. {path}", "D. {path} D:"]
paths = st.lists(st.sampled_from(PASSAGES), min_size=1, max_size=3, unique=True).map(Path)
labelled = st.lists(
    st.builds(
        LabelledQuestion, st.sampled_from(["who?", "where is it?", "why so?"]), st.lists(paths, max_size=8), paths
    ),
    min_size=1,
    max_size=5,
).filter(lambda items: any(item.answerable for item in items))


def tuned(instructions, ensemble, temperature) -> TunedSettings:
    return TunedSettings(tuple(instructions), ensemble, temperature)


def naive_recall(hash_model, items, settings) -> float:
    """R@2 from scratch: PromptRank's ranking of the paths, documents by their best path."""
    hits = 0
    for item in items:
        if not item.paths:
            continue
        scored = PromptRank(hash_model(), **settings._asdict()).score_paths(item.question, item.paths)
        documents = {}
        for path, (score, _) in zip(item.paths, scored, strict=True):
            for id_ in path.ids:
                documents.setdefault(id_, []).append(score)
        order = sorted(documents, key=lambda id_: -max(documents[id_]))
        hits += all(id_ in order[: max(2, len(item.gold.ids))] for id_ in item.gold.ids)
    return hits / len(items)


@given(labelled, st.lists(st.sampled_from([1.0, 1.4, 2.0]), min_size=1, unique=True), st.integers(1, 4))
def test_the_best_of_all_that_was_tried(hash_model, items, temperatures, largest):
    tuning = tune(
        PromptRank(hash_model()), items, instructions=INSTRUCTIONS, temperatures=temperatures, largest_ensemble=largest
    )
    assert {settings: naive_recall(hash_model, items, settings) for settings in tuning.trials} == tuning.trials
    assert tuning.recall == max(tuning.trials.values()) == tuning.trials[tuning.settings]
    tried = list(tuning.trials)
    assert tuning.settings == next(s for s in tried if tuning.trials[s] == tuning.recall)
    alone = [tuned([wording], "max", temperatures[0]) for wording in INSTRUCTIONS]
    assert tried[:4] == alone
    best = sorted(INSTRUCTIONS, key=lambda w: -tuning.trials[alone[INSTRUCTIONS.index(w)]])[:largest]
    ensembles = {
        tuned(best[:size], ensemble, temperature)
        for size, ensemble, temperature in product(range(2, largest + 1), ["max", "mean"], temperatures)
    }
    at_other_temperatures = {tuned(best[:1], "max", temperature) for temperature in temperatures}
    assert set(tried) == {*alone, *ensembles, *at_other_temperatures}


@given(
    labelled, st.lists(st.sampled_from([1.0, 1.4, 2.0]), min_size=1, unique=True), st.integers(1, 4), st.integers(0, 3)
)
def test_each_path_and_prompt_is_scored_once_at_each_temperature(hash_model, items, temperatures, largest, shots):
    class Model(hash_model):
        def first_tokens(self, text, count):
            return text

    demonstrations = [Demonstration(Path((PASSAGES[0],)), f"shot {i}") for i in range(shots)]
    model = Model()
    tuning = tune(
        PromptRank(model, demonstrations=demonstrations, settings={"demonstrations_per_prompt": 1}),
        items,
        instructions=INSTRUCTIONS,
        temperatures=temperatures,
        largest_ensemble=largest,
    )
    answerable = [item for item in items if item.answerable]
    per_instruction = sum(len(item.paths) for item in answerable) * max(1, shots)
    assert len(model.requests) == tuning.scorings == per_instruction * (4 + (len(temperatures) - 1) * largest)
    assert (tuning.questions, tuning.answerable) == (len(items), len(answerable))


def test_a_model_that_reads_no_instruction_tries_one(hash_model):
    items = [LabelledQuestion("fox?", [Path((passage,)) for passage in PASSAGES], Path(PASSAGES[:1]))]
    with pytest.warns(DrillrankWarning, match="instructions does nothing"):
        tuning = tune(PromptRank(), items, instructions=INSTRUCTIONS, temperatures=[1.0, 1.4])
    assert list(tuning.trials) == [tuned(["{path} A:"], "max", t) for t in (1.0, 1.4)]
    assert (tuning.recall, tuning.scorings) == (1.0, 10)


def test_contexts_make_ensembles_of_one_instruction(hash_model):
    class Model(hash_model):
        def first_tokens(self, text, count):
            return text

    shots = [Demonstration(Path((PASSAGES[0],)), f"shot {i}") for i in range(2)]
    ranker = PromptRank(Model(), demonstrations=shots, settings={"demonstrations_per_prompt": 1})
    items = [LabelledQuestion("fox?", [Path((passage,)) for passage in PASSAGES], Path(PASSAGES[:1]))]
    tuning = tune(ranker, items, instructions=["{path} A:"], temperatures=[1.0])
    assert [settings.ensemble for settings in tuning.trials] == ["max", "mean"]
    for settings, recall in tuning.trials.items():
        scores = [
            score
            for score, _ in PromptRank(
                ranker.language_model, demonstrations=shots, settings=ranker.settings, **settings._asdict()
            ).score_paths("fox?", items[0].paths)
        ]
        assert recall == items[0].found(scores)


def test_the_report_and_the_bar(hash_model, capfd):
    items = [
        LabelledQuestion("fox?", [Path((passage,)) for passage in PASSAGES], Path(PASSAGES[:1])),
        LabelledQuestion("gone?", [], Path(PASSAGES[:1])),
    ]
    tuning = tune(PromptRank(hash_model()), items, instructions=INSTRUCTIONS, temperatures=[1.4])
    assert capfd.readouterr() == ("", "")
    lines = str(tuning).splitlines()
    assert lines[0].startswith("2 questions, 1 of them answerable from their candidates; ")
    assert len(lines) == 2 + len(tuning.trials)
    assert sum(line[5] == "*" for line in lines[2:]) == 1
    recalls = [float(line[:5]) for line in lines[2:]]
    assert recalls == sorted(recalls, reverse=True)
    assert f"{tuning.settings.temperature:g}" in next(line for line in lines if "*" in line)
    tune(PromptRank(hash_model()), items, instructions=INSTRUCTIONS, temperatures=[1.4], show_progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Tuning" in err


def test_what_is_not_tuned_stays_while_others_are_tried(hash_model):
    asked = []

    class Model(hash_model):
        def _log_likelihood(self, requests, temperature, include_eos):
            asked.extend(requests)
            return super()._log_likelihood(requests, temperature, include_eos)

    items = [LabelledQuestion("fox?", [Path((passage,)) for passage in PASSAGES], Path(PASSAGES[:1]))]
    tune(PromptRank(Model(), settings={"max_document_tokens": 9}), items, instructions=INSTRUCTIONS)
    limits = {part.max_tokens for request in asked for part in request.prompt if isinstance(part, Evidence)}
    assert limits == {9}


ITEM = LabelledQuestion("fox?", [Path((PASSAGES[0],))], Path(PASSAGES[:1]))


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: tune(PromptRank(), []),
        lambda: tune(PromptRank(), [LabelledQuestion("fox?", [], Path(PASSAGES[:1]))]),
        lambda: tune(PromptRank(), ["fox?"]),
        lambda: tune(PromptRank(), [ITEM], instructions=[]),
        lambda: tune(PromptRank(), [ITEM], instructions=["none"]),
        lambda: tune(PromptRank(), [ITEM], temperatures=[]),
        lambda: tune(PromptRank(), [ITEM], temperatures=[1.0, 0]),
        lambda: tune(PromptRank(), [ITEM], ensembles=[]),
        lambda: tune(PromptRank(), [ITEM], ensembles=["median"]),
        lambda: tune(PromptRank(), [ITEM], largest_ensemble=0),
        lambda: tune(PromptRank("hf:none", demonstrations=[Demonstration(ITEM.gold, "fox?")]), [ITEM]),
        lambda: LabelledQuestion(" ", [], Path(PASSAGES[:1])),
        lambda: LabelledQuestion("fox?", PASSAGES, Path(PASSAGES[:1])),
        lambda: LabelledQuestion("fox?", [], None),
        lambda: PromptRank(instructions=()),
        lambda: PromptRank(temperature=-1),
        lambda: PromptRank(settings={"preset_": 1}),
        lambda: PromptRank(settings=None),
    ],
)
def test_bad_input_is_refused(attempt):
    with pytest.raises(InvalidInput):
        attempt()
