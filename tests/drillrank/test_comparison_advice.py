"""What a comparison advises, what its report looks like to everybody, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from html.parser import HTMLParser
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import Passage
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation import compare, html_report
from drillrank.evaluation.plots import quality_against_latency
from drillrank.evaluation.report import _STYLE
from tests.drillrank.test_comparison import BACKWARDS, CORPUS, QUESTIONS, WORDS, last_first
from tests.processes import interruptible


def many(count):
    return [{**QUESTIONS[n % len(WORDS)], "id": str(n), "candidates": WORDS} for n in range(count)]


def swapped(at):
    """The gold passage first, but for some questions."""
    asked = iter(range(10**6))

    def rank(query, passages):
        wanted = next(word for word in WORDS if word in query)
        first = [passage for passage in passages if passage.id == wanted]
        others = [passage for passage in passages if passage.id != wanted]
        return [others[0], *first, *others[1:]] if next(asked) in at else [*first, *others]

    return rank


def test_a_narrow_interval_around_zero_is_practically_equal():
    found = compare(
        [
            {**row, "candidates": [*row["gold"], *(word for word in WORDS if word not in row["gold"])]}
            for row in many(600)
        ],
        {"same": swapped({7})},
        CORPUS,
        measures=["AllR@1"],
    )
    assert "same and first stage are practically equal: AllR@1 -0.002" in found.advice[0]
    assert "questions would" not in found.advice[0]


def test_what_brings_only_unjudged_results_is_not_said_to_hurt():
    def elsewhere(query):
        return [Passage(f"Of another index: {query}", id="another's")]

    def at_times(query):
        return [CORPUS[0]] if "fox" in query else elsewhere(query)

    found = compare(QUESTIONS, {"elsewhere": elsewhere, "at times": at_times}, CORPUS, measures=["AllR@1"])
    assert found.advice[0].startswith("Nothing that elsewhere brought is in the corpus or among the candidates")
    assert found.advice[1].startswith("at times hurts")
    assert (found.unjudged["elsewhere"], found.unjudged["at times"], found.unjudged["first stage"]) == (10, 9, 0)
    answers = [{"question": row["question"], "answers": ["region"]} for row in QUESTIONS]
    found = compare(answers, {"elsewhere": elsewhere}, CORPUS, measures=["AnswerR@1"])
    assert not found.advice[0].startswith("Nothing")
    assert found.unjudged["elsewhere"] == 0


def test_an_absurd_number_of_questions_is_not_named():
    right = {n for n in range(200) if n % len(WORDS)}  # where the first stage is wrong
    found = compare(many(200), {"one": swapped(set(range(200)) - {*sorted(right)[:21]})}, CORPUS, measures=["AllR@1"])
    assert found.pairs[0].difference.mean == pytest.approx(0.005)
    assert found.pairs[0].needed > 20_000
    assert "200 questions cannot tell" in found.advice[0]
    assert "so small a difference is not worth the questions that would tell" in found.advice[0]


@pytest.mark.parametrize(
    ("component", "said"),
    [
        (
            "UPR",
            'To try next: prior="retrieval", fitted=true, model="st:..." or "hf:...", `drillrank tune --component',
        ),
        (
            {"component": "UPR", "prior": "retrieval", "fitted": True},
            'To try next: model="st:..." or "hf:...", `drillrank',
        ),
        ("PathSearch", 'To try next: model="st:..." or "hf:...", `drillrank tune --component PathSearch`.'),
    ],
)
def test_what_to_try_next_is_named(component, said):
    found = compare(BACKWARDS[:3], {"ours": component}, CORPUS, measures=["AllR@1"])
    assert found.advice[0].endswith(said) or said in found.advice[0]
    others = compare(BACKWARDS[:3], {"theirs": last_first}, CORPUS, measures=["AllR@1"])
    assert "To try next" not in others.advice[0]


def test_annotators_are_taken_one_by_one():
    rows = [{"question": "Where does the fox live?", "gold": [["fox"], ["fox", "owl"], []], "candidates": WORDS}]
    found = compare(rows, {"one": lambda query, passages: ["fox"]}, CORPUS, measures=["F1@5", "AllR@5"])
    assert found.mean("one", "F1@5") == 1.0
    assert found.mean("one", "AllR@5") == 0.0
    with pytest.raises(InvalidInput, match="gold are empty"):
        compare([{**rows[0], "gold": [[], []]}], ["UPR"], CORPUS)
    with pytest.raises(InvalidInput, match="Question 1, gold holds strings"):
        compare([{**rows[0], "gold": [["fox"], [3.5]]}], ["UPR"], CORPUS)


def test_a_component_that_raises_on_question_500_loses_that_one(tmp_path):
    asked = []

    def fails(query, passages):
        asked.append(query)
        if len(asked) == 500:
            raise RuntimeError("out of luck")
        return passages

    with pytest.warns(Warning, match="out of luck"):
        found = compare(many(600), {"one": fails}, CORPUS, measures=["AllR@1"], results=tmp_path / "r.jsonl")
    assert not found.complete
    assert "Question 500" in found.problems[0]
    assert (found.failed["one"], found.pair("first stage", "one").difference.questions) == (1, 600)
    assert compare(many(600), {"one": fails}, CORPUS, measures=["AllR@1"], results=tmp_path / "r.jsonl").complete
    assert len(asked) == 601


@pytest.mark.parametrize("command", ["compare", "tune"])
@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is a POSIX signal")
def test_ctrl_c_keeps_what_was_computed(tmp_path, command):
    count = 3000
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in many(count)))
    rows = [{"id": p.id, "text": p.text} for p in CORPUS]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    results = tmp_path / "results.jsonl"
    started = [sys.executable, "-m", "drillrank", command, "asked.jsonl", "corpus.jsonl", "--results", str(results)]
    process = interruptible(started, cwd=tmp_path, text=True)
    try:
        while process.poll() is None and (not results.exists() or results.read_bytes().count(b"\n") < 20):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == (1 if command == "compare" else 130), err
    assert "Interrupted" in " ".join(err.split())
    lines = results.read_text().splitlines()
    assert 20 <= len(lines) < 2 * count
    assert all(json.loads(line) for line in lines)
    assert "Traceback" not in out + err


def test_all_candidates_are_ranked_however_many_there_are():
    corpus = [Passage(f"Fox number {n}.", id=str(n)) for n in range(150)]
    asked = [{"question": "Which fox?", "gold": ["149"]}]
    seen = []

    def last(query, passages):
        seen.append(len(passages))
        return [passage for passage in passages if passage.id == "149"]

    given = [{**asked[0], "candidates": [passage.id for passage in corpus]}]
    for rows, first_stage in ((asked, lambda query: corpus), (given, None)):
        found = compare(rows, {"last": last}, corpus, first_stage=first_stage, candidates=150, measures=["RR"])
        assert (found.mean("last"), found.oracle_recall["last"].some) == (1.0, 1.0)
    assert seen == [150, 150]


# The report


@pytest.fixture(scope="module")
def report():
    return html_report(compare(BACKWARDS, {"UPR": "UPR", "wrong": last_first}, CORPUS, measures=["AllR@1", "F1@2"]))


def colours():
    """Of each theme, by name."""
    light, dark = (
        dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part)) for part in _STYLE.split("prefers-color-scheme")[:2]
    )
    return {"light": light, "dark": {**light, **dark}}


def luminance(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_black_and_white():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_marks_can_be_told_from_their_ground(theme):
    found = colours()[theme]
    for text, ground in product(("fg", "mute", "up", "down"), ("bg", "soft")):  # WCAG 2.2, 1.4.3: 4.5 for text
        assert contrast(found[text], found[ground]) >= 4.5, (text, ground)
    for mark, ground in product(("mark", "up", "down"), ("bg", "soft")):  # 1.4.11: 3 for graphics and focus
        assert contrast(found[mark], found[ground]) >= 3, (mark, ground)


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_the_report_is_for_everybody(report):
    found = Elements(report).found
    assert ("html", {"lang": "en"}) in found
    drawn = [attributes for tag, attributes in found if tag == "svg"]
    assert drawn
    assert all(attributes["role"] == "img" and len(attributes["aria-label"]) > 20 for attributes in drawn)
    regions = [attributes for _, attributes in found if attributes.get("role") == "region"]
    assert regions
    assert all(region["tabindex"] == "0" and region["aria-label"] for region in regions)  # scrolled by keyboard
    assert not [attributes for _, attributes in found if int(attributes.get("tabindex") or 0) > 0]  # order of the page
    tags = [tag for tag, _ in found]
    assert tags.count("details") == tags.count("summary") > 0  # opened by keyboard
    assert all(attributes.get("scope") in ("row", "col") for tag, attributes in found if tag == "th")
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert ":focus-visible" in report
    assert not re.search(r'(src|href)="?http|url\(|@import', report)


@given(
    st.dictionaries(
        st.text("abc ", min_size=3, max_size=14), st.tuples(st.floats(0.1, 50), st.floats(0, 1)), min_size=2, max_size=6
    )
)
def test_no_point_lies_on_the_name_of_another(points):
    drawn = quality_against_latency(points, "RR")
    dots = [(float(x), float(y)) for x, y in re.findall(r'<circle[^>]* cx="([\d.]+)" cy="([\d.]+)"', drawn)]
    labels = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(start|end)">([abc ]+)</text>', drawn)
    assert len(dots) == len(labels) == len(points)
    for (own, _), (x, y, anchor, name) in zip(dots, labels, strict=True):
        start = float(x) - (8 * len(name) if anchor == "end" else 0)
        for at, height in dots:
            on_it = start <= at <= start + 8 * len(name) and abs(float(y) - 4 - height) < 11
            assert not on_it or abs(at - own) < 0.1


def test_long_names_are_cut_in_plots_and_told_beside_them():
    name = "a long name, " * 5
    drawn = quality_against_latency({name: (1.0, 0.5), "UPR": (9.0, 0.6)}, "RR")
    assert f"{name[:29]}…</text>" in drawn
    assert f"{name}: 1 ms" in drawn


def test_a_report_counts_the_problems_that_it_does_not_list():
    def sometimes(query, passages):
        if int(query.split()[-1]) % 2:
            raise RuntimeError("no answer")
        return passages

    rows = [{"question": f"Where? {n}", "gold": ["fox"], "candidates": ["fox", "owl"]} for n in range(46)]
    with pytest.warns(DrillrankWarning, match="and 20 more"):
        found = compare(rows, {"sometimes": sometimes}, CORPUS, measures=["RR"])
    page = html_report(found)
    assert page.count("RuntimeError: no answer</li>") == 20
    assert "<li>and 3 more</li>" in page
