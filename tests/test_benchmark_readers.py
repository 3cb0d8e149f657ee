"""The benchmark of readers: weights of other sets, scaled likelihoods, and gold texts of QASPER."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.data import data_folder
from benchmarks.folder_readers import WEIGHTS, ScaledReader, Setting, _choose_weight, _gain_of, _load_papers
from benchmarks.folders import characters_needed
from drillrank.drilldown.settings import READ
from drillrank.likelihood import UnigramModel


def make_outcomes(best_by_set):
    """Return outcomes in which one question per set is answered with the best weight of the set only."""
    outcomes = {}
    for name, best in best_by_set.items():
        outcomes[Setting(name, "words", "", 0.0, 0)] = np.array([9000.0, 100.0])
        for weight in WEIGHTS:
            needed = [100.0 if weight == best else 9000.0, 100.0]
            outcomes[Setting(name, "words", "model", weight, READ)] = np.array(needed)
    return outcomes


@pytest.mark.parametrize("own_best", WEIGHTS)
def test_a_weight_is_chosen_on_the_other_sets(own_best):
    outcomes = make_outcomes({"one": own_best, "two": 2.0, "three": 2.0})
    key = Setting("one", "words", "model", own_best, READ)
    assert _choose_weight(outcomes, key) == 2.0
    assert _gain_of(outcomes, key).tolist() == [1.0, 0.0]


def test_a_scaled_reader_multiplies_totals_and_tokens():
    reader = ScaledReader()
    [plain] = reader.log_likelihood([("The Rhine is long.", "a long river")])
    reader.factor = 3.0
    [scaled] = reader.log_likelihood([("The Rhine is long.", "a long river")])
    [own] = UnigramModel().log_likelihood([("The Rhine is long.", "a long river")])
    assert plain.total == own.total
    assert scaled.total == pytest.approx(3 * own.total)
    assert scaled.log_probs == pytest.approx(3 * own.log_probs)


@pytest.mark.skipif(not data_folder().is_dir(), reason="needs the benchmark data")
def test_gold_texts_of_papers_are_in_their_readable_texts():
    papers = list(_load_papers(60))
    needed = [
        characters_needed(["\n".join(map(document.readable, document.sections()))], question)
        for documents, questions in papers
        for document in documents.values()
        for question in questions
    ]
    assert len(needed) == 60
    assert sum(map(np.isfinite, needed)) >= 59  # a formula is read in another form
