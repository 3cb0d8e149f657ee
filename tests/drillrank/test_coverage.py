"""`Coverage`: as few passages as keep the evidence of a share of questions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import Coverage
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation.calibration import calibrate_coverage
from tests.drillrank.helpers import refuses

TOWNS = ["Basel", "Bonn", "Cologne", "Mainz"]
PASSAGES = [{"id": town, "text": f"{town} is a town on the Rhine with gates."} for town in TOWNS]


def rows(n: int = 12, **more) -> list[dict]:
    return [
        {
            "id": str(number),
            "question": f"How many gates has {TOWNS[number % 4]}?",
            "gold": [TOWNS[number % 4]],
            "candidates": PASSAGES,
            **more,
        }
        for number in range(n)
    ]


test_input_that_cannot_be_used_is_refused = refuses(
    *(
        (lambda share=share: Coverage(share), "share must be a number")
        for share in (0, 1, -0.5, 1.5, math.nan, "0.9", None, True)
    ),
    *(
        (lambda margin=margin: Coverage(0.9, margin), "margin must be a number")
        for margin in (-1, math.nan, math.inf, "1")
    ),
    (
        lambda: Coverage(0.9).count([-1.0]),
        r"drillrank tune QUESTIONS CORPUS --coverage 0\.9 --out coverage\.json",
    ),
    (lambda: Coverage.calibrate(0.9, [0.0] * 8), "at least 9 questions"),
    (lambda: calibrate_coverage(rows(), share=2), "share must be"),
    (lambda: calibrate_coverage(rows(8)), "needs at least 9 questions"),
)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60), st.sampled_from([0.5, 0.8, 0.9]))
def test_the_margin_covers_the_share_of_the_calibration_and_is_the_smallest_that_does(distances, share):
    needed = math.ceil(share * (len(distances) + 1) - 1e-9)
    if needed > len(distances):
        with pytest.raises(InvalidInput, match="needs at least"):
            Coverage.calibrate(share, distances)
        return
    margin = Coverage.calibrate(share, distances).margin
    assert sum(distance <= margin for distance in distances) >= needed
    assert sum(distance < margin for distance in distances) < needed


def test_nine_questions_are_enough():
    assert Coverage.calibrate(0.9, [0.0] * 9).margin == 0


def test_new_questions_of_the_same_kind_are_covered():
    rng = np.random.default_rng(5)
    kept = []
    for _ in range(300):
        distances = rng.exponential(size=60)
        margin = Coverage.calibrate(0.9, distances[:40].tolist()).margin
        kept.append(np.mean(distances[40:] <= margin))
    assert 0.89 < np.mean(kept) < 0.95


@given(st.lists(st.floats(-50, 0), max_size=20), st.floats(0, 60))
def test_count_keeps_the_best_and_all_within_the_margin(scores, margin):
    ranked = sorted(scores, reverse=True)
    count = Coverage(0.9, margin).count(ranked)
    assert (count >= 1) == bool(ranked)
    assert all(score >= ranked[0] - margin - 1e-6 for score in ranked[:count])
    assert all(score < ranked[0] - margin + 1e-6 for score in ranked[count:])


def test_a_file_is_read_back(tmp_path):
    coverage = Coverage(0.9, 0.25, 40, "UPR")
    coverage.save(tmp_path / "coverage.json")
    assert Coverage.load(tmp_path / "coverage.json") == coverage


@pytest.mark.parametrize(
    "content", [None, "{}", "[]", '{"format": "drillrank-coverage-1", "share": 0.9, "other": 1}', "no JSON"]
)
def test_a_file_that_has_no_coverage_is_refused_by_its_name(tmp_path, content):
    if content is not None:
        (tmp_path / "other.json").write_text(content)
    with pytest.raises(InvalidInput, match=r"other\.json"):
        Coverage.load(tmp_path / "other.json")


def test_a_calibration_takes_the_distance_of_the_best_evidence():
    coverage = calibrate_coverage(rows())
    assert coverage == Coverage(0.9, 0.0, 12, "UPR")
    wrong = [{**row, "gold": [TOWNS[(number + 1) % 4]]} for number, row in enumerate(rows())]
    assert calibrate_coverage(wrong).margin > 0
    both = [{**row, "gold": TOWNS} for row in rows()]
    assert calibrate_coverage(both).margin == 0


def test_questions_without_evidence_among_the_candidates_do_not_count_and_a_warning_has_no_text():
    questions = [*rows(10), *[{**row, "id": f"x{row['id']}", "candidates": PASSAGES[2:]} for row in rows(2)]]
    with pytest.warns(DrillrankWarning, match="The evidence of 2 questions is not among their candidates") as caught:
        assert calibrate_coverage(questions).n_questions == 10
    assert not any("gates" in str(warning.message) for warning in caught)


def test_the_command_writes_the_file_and_overwrites_no_other(tmp_path, monkeypatch, capsys):
    from drillrank.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows())))
    assert main(["tune", "questions.jsonl", "--coverage", "0.9"]) == 0
    assert 'Coverage.load("coverage.json")' in capsys.readouterr().out.replace("\n", "")
    assert Coverage.load("coverage.json").n_questions == 12
    assert main(["tune", "questions.jsonl", "--coverage", "0.9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["margin"] == 0
    assert main(["tune", "questions.jsonl", "--coverage", "0.9", "--out", "questions.jsonl"]) == 2
    assert main(["tune", "questions.jsonl", "--coverage", "9"]) == 2
    assert "share must be a number" in capsys.readouterr().err
