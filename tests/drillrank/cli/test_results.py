"""What `drillrank ask` reports: passages, JSON, findings, the size of the evidence, encoders and presets."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drillrank import D3
from drillrank.cli import main, options
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.lines import LineNumbers
from drillrank.cli.options import EvidenceSize, FinderOptions
from drillrank.cli.printing import print_evidence
from drillrank.cli.results import BestParagraph, FileEvidence, FileLocation, QuestionEvidence
from drillrank.cli.sources import list_input_files
from drillrank.drilldown.answering import CitedAnswer
from drillrank.drilldown.settings import D3Settings
from drillrank.passages import Passage, Ranked
from tests.drillrank.helpers import paragraph_d3

pytestmark = pytest.mark.usefixtures("own_cache", "wide")

MANUAL = """# Kettle\n\n## Warranty\n\nRead this first.\n\nThe warranty covers the heater for two years.\n
It leaves out damage by lime scale.\n\n## Cleaning\n\nBoil vinegar and water once a month.\n"""
QUESTION = "What does the warranty cover?"
ITEM = FileEvidence(rank=1, score=-2.5, file="a.md", text="The warranty covers it.", span=(0, 23))


@pytest.fixture
def manual(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("manual.md").write_text(MANUAL, encoding="utf-8")
    return "manual.md"


def ask(capsys, *arguments: str, status: int = 0) -> dict:
    assert main(["ask", "--json", *arguments]) == status
    return json.loads(capsys.readouterr().out)


def values_in(value) -> list:
    """Return all values in JSON."""
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return [value, *(inner for one in inside for inner in values_in(one))]
    return [value]


# --- JSON


def test_json_has_one_object_for_each_question(manual, capsys):
    Path("asked.txt").write_text(f"{QUESTION}\nWhat boils?\nzyzzyva\n", encoding="utf-8")
    assert main(["ask", manual, "--questions", "asked.txt", "--json", "--unit", "paragraph", "--top-n", "2"]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result["question"] for result in results] == [QUESTION, "What boils?", "zyzzyva"]
    assert ["evidence" in result for result in results] == [True, True, False]


def test_json_has_no_nulls_no_empty_lists_and_no_repeated_fields(manual, capsys):
    result = ask(capsys, manual, QUESTION, "--unit", "paragraph")
    assert not [value for value in values_in(result) if value is None or value in ("", [], {})]
    assert {"question", "found", "scoring", "evidence"} <= result.keys()
    for item in result["evidence"]:
        assert not item.keys() & result.keys()
        assert {"rank", "score", "file", "lines", "span", "section", "text"} <= item.keys()


def test_json_of_a_question_without_evidence_says_so(manual, capsys):
    result = ask(capsys, manual, "zyzzyva", "--unit", "paragraph", "--top-n", "2", status=1)
    assert result.pop("confidence", 0) < 0.5
    assert result == {"question": "zyzzyva", "found": False}


def test_small_files_without_a_question_word_are_shown_whole(manual, capsys):
    result = ask(capsys, manual, "zyzzyva", status=1)
    assert result["found"] is False
    assert [item["text"] for item in result["evidence"]] == [MANUAL.strip()]


def test_json_leaves_found_out_if_it_is_unknown():
    record = QuestionEvidence("Why?", None, (ITEM,), 0.4, "1").to_json()
    assert "found" not in record
    assert record["confidence"] == 0.4


def test_json_cites_evidence_by_rank():
    second = replace(ITEM, rank=2)
    record = QuestionEvidence("Why?", True, (ITEM, second), answer=CitedAnswer("Because [2].", (1,))).to_json()
    assert (record["answer"], record["citations"]) == ("Because [2].", [2])


def test_json_names_other_places_of_the_same_text():
    item = replace(ITEM, same_text=(FileLocation("b.pdf", (2, 2)), FileLocation("c.md")), other_versions=("a-2021.md",))
    record = json.loads(json.dumps(item.to_json()))
    assert record["also"] == [{"file": "b.pdf", "pages": [2, 2]}, {"file": "c.md"}]
    assert record["other_versions"] == ["a-2021.md"]


# --- Passages and their best paragraph


def ranked(details: dict, text: str = "One.\n\nTwo.") -> Ranked[Passage]:
    metadata = {"document": "d", "section_path": ["A"], "start": 10, "end": 20}
    return Ranked(Passage(text, metadata=metadata), -1.0, 1, details)


class OneLine(LineNumbers):
    """Line numbers of a file in which each line has ten characters."""

    def __init__(self) -> None:
        pass

    def find(self, document_id, span):
        return None if span is None else (span[0] // 10 + 1, span[1] // 10 + 1)


@pytest.mark.parametrize(
    ("details", "best"),
    [
        ({}, None),
        ({"best_paragraph": {"text": "One.\n\nTwo.", "span": (10, 20)}}, None),  # the whole passage
        ({"best_paragraph": {"text": "Two.", "span": (16, 20)}}, BestParagraph("Two.", span=(16, 20), lines=(2, 3))),
        ({"best_paragraph": {"text": "Two."}}, BestParagraph("Two.")),
    ],
)
def test_the_best_paragraph_of_a_passage_has_its_own_place(details, best):
    assert FileEvidence.from_ranked(ranked(details), {"d": "a.md"}, OneLine()).best == best


def test_json_has_the_spans_of_the_passage_and_of_its_best_paragraph(manual, capsys):
    [item] = ask(capsys, manual, QUESTION, "--unit", "passage", "--top-n", "1")["evidence"]
    best = item["best"]
    assert best["text"] == "The warranty covers the heater for two years."
    assert MANUAL[slice(*best["span"])] == best["text"]
    assert best["text"] in MANUAL[slice(*item["span"])]
    assert best["lines"] == [7, 7]
    assert item["lines"][0] <= 7 <= item["lines"][1]


def test_the_terminal_marks_the_best_paragraph_and_shows_the_rest_after_it(manual, capsys):
    assert main(["ask", manual, QUESTION, "--unit", "passage", "--top-n", "1"]) == 0
    printed = capsys.readouterr().out.splitlines()
    [marked] = [index for index, line in enumerate(printed) if "»" in line]
    assert printed[marked].strip() == "» The warranty covers the heater for two years."
    assert re.search(r"Read this first\. … It leaves out damage", printed[marked + 1])
    assert "covers" not in printed[marked + 1]


def test_a_long_passage_is_shortened_after_its_best_paragraph(capsys):
    item = replace(ITEM, text="word " * 400 + "The best. " + "word " * 400, best=BestParagraph("The best."))
    print_evidence(QuestionEvidence("Why?", True, (item,)))
    printed = capsys.readouterr().out
    assert printed.index("» The best.") < printed.index("word word")
    assert 40 < printed.count("word ") < 80


@pytest.mark.parametrize("text", ["[red]a[/red]\x1b[31m", "[/bold]", ":x:"])
def test_a_best_paragraph_is_text_and_no_markup(capsys, text):
    item = replace(ITEM, text=f"{text}\n\n{text} rest", best=BestParagraph(text))
    print_evidence(QuestionEvidence("Why?", True, (item,)))
    printed = capsys.readouterr().out
    assert text.replace("\x1b", "�") in printed
    assert "\x1b[31m" not in printed


# --- Findings and the exit status


@pytest.mark.parametrize(
    ("found", "evidence", "answer", "is_success"),
    [
        (True, (ITEM,), None, True),
        (None, (ITEM,), None, True),  # unknown is no refusal
        (False, (ITEM,), None, False),
        (False, (), None, False),
        (None, (ITEM,), CitedAnswer(""), False),
        (False, (ITEM,), CitedAnswer("Two years [1]."), True),
    ],
)
def test_a_command_succeeds_unless_the_files_speak_of_other_subjects(found, evidence, answer, is_success):
    assert QuestionEvidence("Why?", found, evidence, 0.5, answer=answer).is_success is is_success


@pytest.mark.parametrize("found", [True, False, None])
def test_the_terminal_says_how_likely_the_evidence_answers(capsys, found):
    result = QuestionEvidence("Why?", found, (ITEM,), 0.4)
    print_evidence(result)
    printed = " ".join(capsys.readouterr().out.split())
    assert result.finding
    assert result.finding in printed
    assert ("other subjects" in printed) is (found is False)


def test_there_is_no_finding_if_the_confidence_is_unknown():
    assert QuestionEvidence("Why?", True, (ITEM,)).finding == ""


# --- Size of the evidence


def test_one_result_has_the_answer_that_more_results_have(manual, tmp_path, capsys):
    rows = "\n\n".join(f"Read part {number} of the manual before." for number in range(30))
    Path("parts.md").write_text(f"# Parts\n\n{rows}\n", encoding="utf-8")
    for question in (QUESTION, "Which part leaves out lime?", "Which vinegar heater?", "water of Parts"):
        five = ask(capsys, ".", question, "--unit", "paragraph")["evidence"]
        [one] = ask(capsys, ".", question, "--unit", "paragraph", "--top-n", "1")["evidence"]
        assert one["text"] == five[0]["text"]


class Unmatched(D3):
    """D3 whose first results have no word of the question."""

    n_unmatched = 3

    def drill_down(self, question, documents, top_n=None, **arguments):
        result = yield from super().drill_down(question, documents, top_n and 100, **arguments)
        marked = [
            replace(item, details={**item.details, "matched": index >= self.n_unmatched})
            for index, item in enumerate(result)
        ]
        return replace(result, evidence=tuple(marked[:top_n]))


def corpus_of(*files: str) -> FileCorpus:
    return FileCorpus(list_input_files(files)[0], None, "english", unit="paragraph")


def found_by(d3: D3, question: str, **size: int) -> list[str]:
    from drillrank.cli.ask import ask_files

    result = ask_files(d3, corpus_of("manual.md"), question, EvidenceSize(**size), explain=True)
    assert [item.rank for item in result.evidence] == list(range(1, len(result.evidence) + 1))
    assert len(result.explanations) == len(result.evidence)
    return [item.text for item in result.evidence]


def test_evidence_without_a_question_word_does_not_take_the_place_of_the_answer(manual):
    best_first = found_by(paragraph_d3(), "warranty heater lime vinegar first", top_n=5)
    assert len(best_first) == 4
    d3 = Unmatched(settings={"unit": "paragraph"})
    assert found_by(d3, "warranty heater lime vinegar first", top_n=1) == [best_first[3]]
    d3.n_unmatched = 100
    assert found_by(d3, "warranty heater lime vinegar first", top_n=1) == [best_first[0]]  # nothing better matches


def test_an_encoder_finds_answers_without_a_question_word(manual):
    def embed(texts: list[str]) -> np.ndarray:
        return np.array([[1.0, 0.1] if "boil" in text.lower() else [0.1, 1.0] for text in texts])

    texts = found_by(paragraph_d3(embed=embed), "Boiling the device warranty", top_n=5)
    assert len(texts) == 4
    assert "Boil vinegar and water once a month." in texts


@pytest.mark.parametrize(
    ("size", "preset", "top_n"),
    [
        (EvidenceSize(), None, 5),
        (EvidenceSize(3), None, 3),
        (EvidenceSize(max_tokens=100), None, None),
        (EvidenceSize(3, 100), None, 3),
        (EvidenceSize(), "paper", None),
        (EvidenceSize(2), "paper", 2),
    ],
)
def test_the_number_of_passages_has_a_default(size, preset, top_n):
    summarizer = {"summarizer": lambda texts: texts} if preset else {}
    assert size.choose_top_n(D3Settings(preset=preset, **summarizer)) == top_n


def test_a_budget_of_tokens_is_filled_and_kept(manual, capsys):
    count = D3()._count_tokens
    n_results = []
    for budget in (15, 30, 400):
        evidence = ask(capsys, manual, QUESTION, "--unit", "paragraph", "--max-tokens", str(budget))["evidence"]
        assert sum(count(item["text"]) for item in evidence) <= budget
        n_results.append(len(evidence))
    assert n_results == sorted(n_results)
    assert main(["ask", manual, QUESTION, "--max-tokens", "0"]) == 2
    assert "max_tokens" in capsys.readouterr().err


# --- Encoders, units and presets


class FakeEncoder:
    spec = "onnx:somewhere"

    def __call__(self, texts):
        return np.ones((len(texts), 2))


def test_the_default_encoder_is_named_on_standard_error(manual, capsys, monkeypatch):
    monkeypatch.setattr(options, "default_encoder", FakeEncoder)
    assert main(["ask", manual, QUESTION, "--json"]) == 0
    printed = capsys.readouterr()
    assert "Encoder: onnx:somewhere (choose another with --embed, none with --embed none)." in printed.err
    assert "onnx" not in printed.out


def test_an_encoder_that_the_user_names_or_refuses_is_not_replaced(manual, capsys, monkeypatch):
    monkeypatch.setattr(options, "default_encoder", FakeEncoder)
    assert FinderOptions(embed="none").build().embed is None
    assert capsys.readouterr().err == ""
    assert FinderOptions().build().embed.spec == "onnx:somewhere"


def test_a_name_that_is_no_encoder_is_refused(manual, capsys):
    assert main(["ask", manual, QUESTION, "--embed", "minilm"]) == 2
    assert "embed='minilm' is not an encoder" in capsys.readouterr().err


def test_options_win_over_the_settings_of_a_file(tmp_path):
    file = tmp_path / "settings.json"
    section = {"max_calls": 7, "unit": "paragraph"}
    file.write_text(json.dumps({"format": "drillrank-settings-1", "settings": {"D3": section}}), encoding="utf-8")
    settings = FinderOptions(settings=str(file), unit="passage", as_of="2023-06").build().settings
    assert (settings.unit, settings.as_of, settings.max_calls) == ("passage", "2023-06", 7)
    assert FinderOptions(settings=str(file)).build().settings.unit == "paragraph"
    assert FinderOptions(unit="passage").build().settings.unit == "passage"


def test_the_preset_of_the_paper_has_no_encoder_and_one_paragraph_as_its_unit(monkeypatch):
    monkeypatch.setattr(options, "default_encoder", FakeEncoder)
    monkeypatch.setattr("drillrank.drilldown.settings.HuggingFaceSummarizer", lambda **_: lambda texts: texts)
    d3 = FinderOptions(preset="paper", llm="http://localhost:1/v1#model").build()
    assert (d3.settings.preset, d3.settings.unit, d3.embed) == ("paper", "paragraph", None)


@pytest.mark.parametrize("arguments", [["--unit", "page"], ["--preset", "own"]])
def test_a_unit_or_preset_that_does_not_exist_is_refused(manual, capsys, arguments):
    assert main(["ask", manual, QUESTION, *arguments]) == 2
    assert f"'{arguments[1]}' is not" in capsys.readouterr().err
