"""The recorder: what counts as a difference, how it is told, and where a setting goes."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest

from tools.record import difference
from tools.record.building import build
from tools.record.taking import Recorder


def call(name: str, *entries: tuple[str, float], **more: object) -> dict[str, object]:
    return {
        "call": name,
        "out": [{"id": id_, "score": score, "details": {"tokens": 3}} for id_, score in entries],
    } | more


RECORD = {
    "a/1": call("a/1", ("x", -1.5), ("y", -2.0)),
    "a/2": call("a/2", ("y", -0.5), ("x", -3.0), neural=True),
    "b/1": call("b/1", ("z", float("nan")), warnings=["UserWarning", "careful"]),
}


def found(change) -> difference.Compared:
    changed = copy.deepcopy(RECORD)
    change(changed)
    return difference.compare(RECORD, changed)


def score(name, value):
    def change(record):
        record[name]["out"][0]["score"] = value

    return change


def test_equal_records_do_not_differ():
    assert found(lambda record: None).differences == []
    assert difference.report({"group": found(lambda record: None)}) == []


@pytest.mark.parametrize(
    ("name", "within", "beyond"), [("a/1", -1.5 + 5e-10, -1.5 + 5e-9), ("a/2", -0.5 + 5e-6, -0.5 + 5e-5)]
)
def test_scores_may_differ_by_rounding_alone(name, within, beyond):
    assert found(score(name, within)).differences == []
    [one] = found(score(name, beyond)).differences
    assert (one.call, one.old, one.new) == (name, RECORD[name]["out"][0]["score"], beyond)
    assert one.place == f"out[{RECORD[name]['out'][0]['id']}].score"


def test_another_order_is_told_once_with_both_ids():
    [one] = found(lambda record: record["a/1"]["out"].reverse()).differences
    assert (one.place, one.old, one.new) == ("out order, place 1 of 2", "x", "y")


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.pop("a/1"),
        lambda record: record.update({"c/1": call("c/1")}),
        lambda record: record["a/1"]["out"].pop(),
        lambda record: record["a/1"]["out"][1].update(id="w"),
        lambda record: record["a/1"]["out"][1]["details"].update(tokens=4),
        lambda record: record["a/1"]["out"][1]["details"].pop("tokens"),
        lambda record: record["b/1"].pop("warnings"),
        lambda record: record["b/1"].update(warnings=["UserWarning", "beware"]),
        lambda record: record["a/1"].update(out=None, error="ValueError: no"),
    ],
)
def test_whatever_else_changes_is_a_difference(change):
    assert len(found(change).changed) == 1


@dataclass(frozen=True, kw_only=True)
class DeepSettings:
    depth: int = 1
    width: int = 1


class Flat:
    def __init__(self, model: str, *, depth: int = 2, width: int = 3) -> None:
        self.values = (model, depth, width)


class Nested:
    def __init__(self, model: str, *, width: int = 2, settings: DeepSettings | None = None) -> None:
        self.values = (model, settings.depth, width)


class Renamed:
    def __init__(self, model: str, *, breadth: int = 2, settings: DeepSettings = DeepSettings()) -> None:
        self.values = (model, settings.depth, breadth)


def test_a_setting_goes_where_the_class_takes_it(monkeypatch):
    monkeypatch.setattr("tools.record.building.RENAMED", {"Renamed.width": "breadth"})
    for kind in (Flat, Nested, Renamed):
        assert build(kind, "m", depth=7, width=8).values == ("m", 7, 8)


def test_a_recorder_writes_results_warnings_prompts_and_errors(tmp_path):
    from drillrank import Passage
    from drillrank.errors import DrillrankWarning
    from drillrank.passages import Ranked

    file = tmp_path / "record.gz"

    def warns():
        import warnings

        warnings.warn(f"seen in {tmp_path}", DrillrankWarning, stacklevel=1)
        recorder.asked.append("Who?")
        return [Ranked(Passage("text", id="p"), -1.0, 1, {"path": ("p", "q")})]

    with Recorder(file, 1.0, tmp_path) as recorder:
        recorder.take("a/1", warns)
        recorder.take("a/2", lambda: int("no"))
    record = difference.read_record(file)
    assert record["a/1"] == {
        "call": "a/1",
        "out": [{"id": "p", "score": -1.0, "rank": 1, "details": {"path": ["p", "q"]}}],
        "warnings": [["DrillrankWarning", "seen in <folder>"]],
        "asked": ["Who?"],
    }
    assert record["a/2"]["error"].startswith("ValueError: invalid literal")
