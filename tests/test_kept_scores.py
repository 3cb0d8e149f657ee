"""What a model says is computed from a list, kept in a file, and then as good as the model itself."""

from __future__ import annotations

import math

import pytest

from drillrank import UPR, Passage, Path, PromptRank
from drillrank.likelihood import UnigramModel
from tests.benchmarks.kept_scores import KeptModel, compute, read_scores

TEXTS = ["A red fox crossed the river.", "The river is long.", "Whales sing at night, far from any river."]
PASSAGES = [Passage(text, title="On animals") for text in TEXTS]
QUESTION = "Which fox crossed the river?"


@pytest.mark.parametrize("tokens", [True, False])
def test_a_kept_model_says_what_the_model_said(tmp_path, tokens):
    model, listed, scores = UnigramModel().fit(TEXTS), tmp_path / "requests.gz", tmp_path / "scores.gz"

    def asked(kept):
        paths = [Path((one,)) for one in PASSAGES]
        settings = {"preset": "paper", "max_document_tokens": 4}
        hot = PromptRank(kept, temperature=2.0, settings=settings).score_prompts(QUESTION, paths)
        return UPR(kept, prior=None).likelihoods(QUESTION, PASSAGES), hot

    first = KeptModel("model", scores, tokens=tokens, model=model)
    unknown, _ = asked(first)
    assert all(math.isnan(one.total) for one in unknown)
    assert first.write_missing(listed) == 3 + 3 * 5
    compute(listed, scores, model)
    rows = list(read_scores(scores))
    compute(listed, scores, model)  # nothing is left to do
    assert list(read_scores(scores)) == rows

    known = KeptModel("model", scores, tokens=tokens)  # without the model
    likelihoods, hot = asked(known)
    assert known.write_missing(listed) == 0
    expected = UPR(model, prior=None).likelihoods(QUESTION, PASSAGES)
    assert [one.total for one in likelihoods] == pytest.approx([one.total for one in expected], abs=1e-3)
    if tokens:
        assert likelihoods[0].log_probs.tolist() == pytest.approx(expected[0].log_probs.tolist(), abs=1e-4)
    assert all(math.isfinite(score) for of_path in hot for [score] in of_path)
    other = KeptModel("another", scores, tokens=tokens)
    assert math.isnan(UPR(other, prior=None).likelihoods(QUESTION, PASSAGES)[0].total)
