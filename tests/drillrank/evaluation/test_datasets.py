"""Official files of QASPER, HotpotQA, 2WikiMultihopQA and DPR: what is read, what is refused, and D3's table 1."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from drillrank.__main__ import main
from drillrank.errors import InvalidInput
from drillrank.evaluation import compare, d3_strategies, read_2wikimultihop, read_dpr, read_hotpotqa, read_qasper
from tests.drillrank.chat_server import serving
from tests.drillrank.helpers import refuses

# Written for this test in the layout of qasper-dev-v0.3.json.


def label(evidence=(), spans=(), free="", yes=None, none=False):
    answer = {
        "unanswerable": none, "extractive_spans": list(spans), "yes_no": yes, "free_form_answer": free,
        "evidence": list(evidence), "highlighted_evidence": [],
    }  # fmt: skip
    return {"answer": answer, "annotation_id": "a", "worker_id": "w"}


BATTERY, CHARGER, BRIDGE = "The battery lasts nine hours.", "A charger is in the box.", "The bridge of 1912 is steel."
PAPER = {
    "title": "A kettle",
    "abstract": "Not searched.",
    "full_text": [
        {"section_name": "Power", "paragraphs": [BATTERY, ""]},
        {"section_name": "Power ::: Charging", "paragraphs": [CHARGER]},
        {"section_name": "Site ::: Bridges", "paragraphs": [BRIDGE, BATTERY]},
        {"section_name": None, "paragraphs": ["No heading."]},
    ],
    "qas": [
        {"question": "How long does the battery last?", "question_id": "q1",
         "answers": [label([BATTERY], ["nine hours"]), label([BATTERY, CHARGER], free="For nine hours.")]},
        {"question": "Is the bridge steel?", "question_id": "q2",
         "answers": [label([BRIDGE, "FLOAT SELECTED: Figure 1"], yes=True)]},
        {"question": "Who owns the kettle?", "question_id": "q3", "answers": [label(none=True), label(none=True)]},
        {"question": "What does the title say?", "question_id": "q4", "answers": [label(["Power"], yes=False)]},
    ],
}  # fmt: skip
OTHER = {"title": "Trees", "full_text": [{"section_name": "Oak", "paragraphs": ["The battery of trees.", "Old."]}],
         "qas": [{"question": "What is old?", "question_id": "q5", "answers": [label(["Old."], ["Old"])]}]}  # fmt: skip
PAPERS = {"1901.00001": PAPER, "1901.00002": OTHER}


@pytest.fixture
def written(tmp_path):
    def write(value, name="file.json"):
        (tmp_path / name).write_text(json.dumps(value), encoding="utf-8")
        return tmp_path / name

    return write


def test_qasper_has_papers_paragraphs_annotators_types_and_what_nobody_can_answer(written):
    questions, corpus = read_qasper(written(PAPERS))
    assert [section.path for section in corpus.documents["1901.00001"].sections()] == [
        ("Power",), ("Power", "Charging"), ("Site",), ("Site", "Bridges"), ("(untitled)",),
    ]  # fmt: skip
    texts = {id_: passage.text for id_, passage in corpus.passages.items() if id_.startswith("1901.00001")}
    assert texts == dict(
        zip([f"1901.00001/{n}" for n in range(5)], [BATTERY, CHARGER, BRIDGE, BATTERY, "No heading."], strict=True)
    )
    first, second, third, fourth, fifth = questions
    assert (first.answers, first.types) == (("nine hours", "For nine hours."), ("extractive", "abstractive"))
    assert [{id_[-1] for id_ in ids} for ids in first.annotations] == [{"0"}, {"0", "1"}]
    assert (second.answers, second.types, second.gold) == (("Yes",), ("yes/no",), ("1901.00001/2",))  # no figure
    assert (third.answers, third.types, third.gold) == (("Unanswerable",) * 2, ("unanswerable",) * 2, ())
    assert (fourth.gold, fourth.annotations) == ((), (frozenset({"missing: Power"}),))  # counts, cannot be found
    assert (first.document, fifth.document) == ("1901.00001", "1901.00002")
    assert [question.id for question in read_qasper(written(PAPERS), 2).questions] == ["q1", "q2"]


def test_a_question_searches_its_own_paper_and_evidence_f1_is_qasper_s(written):
    questions, corpus = read_qasper(written(PAPERS))

    def nothing(query):
        return []

    components = {"nothing": nothing, "D3": {"component": "D3", "unit": "paragraph"}, "views": "MultiViewIndex"}
    found = compare(questions, components, corpus, measures=["F1", "R@5", "nDCG@10"])
    for name in ("first stage", "D3", "views"):
        for question in questions:
            ids = found.results[name][question.id].ids
            assert all(id_.startswith(question.document) for id_ in ids) or name == "views"
    assert found.values["nothing"]["F1"].tolist() == [0, 0, 1, 0, 0]  # nothing is right where nothing is
    assert [str(value) for value in found.values["first stage"]["R@5"].tolist()] == ["1.0", "1.0", "nan", "nan", "1.0"]
    assert [str(value) == "nan" for value in found.values["D3"]["nDCG@10"].tolist()] == [
        False,
        False,
        True,
        True,
        False,
    ]
    assert found.mean("first stage", "R@5") == 1
    plain = compare(questions, {"D3": components["D3"]}, corpus, measures=["F1"])
    assert plain.values["D3"]["F1"].tolist() == found.values["D3"]["F1"].tolist()


def scripted(prompt):
    """A reader of the small papers: it knows section, paragraph and answer of the first two questions."""
    facts = {"battery": ("Power", BATTERY, "nine hours"), "bridge": ("Site > Bridges", BRIDGE, "yes")}
    asked = re.search(r"Question:\s*(.*)", prompt)[1]
    section, paragraph, answer = next(
        (fact for word, fact in facts.items() if word in asked), ("none", "", "No answer.")
    )
    if "section names" in prompt:
        return section
    if "yes or no" in prompt:
        return "yes" if paragraph and paragraph in prompt else "no"
    if "paragraph ids" in prompt:
        lines = re.findall(r"^\[(\d+)\] (.*)$", prompt, re.MULTILINE)
        return ", ".join(n for n, text in lines if text == paragraph)[:1] or "none"
    return f"{answer} [1]"


@pytest.mark.usefixtures("wide")
def test_one_command_prints_table_1_of_d3_for_a_served_llm(written, capsys, monkeypatch, tmp_path):
    file = written(PAPERS, "qasper-dev.json")
    monkeypatch.chdir(tmp_path)
    with serving(scripted) as server:
        words = ["compare", "qasper-dev.json", "--dataset", "qasper", "--strategies", "--llm", server.address]
        assert main([*words, "--n-questions", "3", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert main([*words, "--n-questions", "3"]) == 0
        printed = capsys.readouterr().out
    names = [f"D3 {name}" for name in ("paragraph", "chunk", "map-reduce", "map-reduce-optimised", "base", "hierbase")]
    assert list(told["components"])[1:] == names
    assert told["primary"] == "F1"
    for name in names:
        means, cost = told["components"][name]["means"], told["components"][name]["cost"]
        assert means == {"F1": 1, "EM": 1, "AnswerF1": 1}
        assert cost["calls"] > 0
        assert cost["n_questions"] == 3
    calls = {name: told["components"][name]["cost"]["calls"] for name in names}
    assert calls["D3 paragraph"] == 3 * 5  # one for each paragraph
    assert calls["D3 chunk"] == 3
    assert calls["D3 map-reduce"] == 3 * 5 + 2  # and one for what is relevant
    for row in (
        "F1",
        "AnswerF1, extractive",
        "AnswerF1, unanswerable",
        "AnswerF1, yes/no",
        "tokens per question",
        "calls per question",
    ):
        assert re.search(rf"│ {row} +│", printed), row
    assert read_qasper(file).questions[0].text in server.prompts[0]


def test_strategies_have_the_paper_s_chunks_and_no_limit_of_calls():
    components = d3_strategies(scripted, preset="paper")
    assert components["D3 chunk"]["max_prompt_tokens"] == 3500
    assert "max_prompt_tokens" not in components["D3 base"]
    assert {component["preset"] for component in components.values()} == {"paper"}
    with pytest.raises(InvalidInput, match="names must be strategies"):
        d3_strategies(scripted, ["fast"])


MULTI_HOP = {
    "_id": "5a8", "question": "Where was the author of Emma born?", "answer": "Steventon", "type": "bridge",
    "level": "hard", "supporting_facts": [["Emma", 0], ["Jane Austen", 0], ["Jane Austen", 1]],
    "context": [["Emma", ["Emma is a novel.", " Jane Austen wrote it."]],
                ["Jane Austen", ["She was born in Steventon."]],
                ["Basel", ["Basel lies on the Rhine."]], ["Empty", []]],
}  # fmt: skip


@pytest.mark.parametrize("read", [read_hotpotqa, read_2wikimultihop])
def test_hotpotqa_and_2wiki_have_a_pool_or_the_question_s_own_paragraphs(written, read):
    other = {**MULTI_HOP, "_id": "5a9", "type": "comparison", "evidences": [["Emma", "author", "Jane Austen"]],
             "context": [*MULTI_HOP["context"][:2], ["Basel", ["Another Basel."]]]}  # fmt: skip
    questions, corpus = read(written([MULTI_HOP, other]))
    assert corpus.passages["Emma"].text == "Emma is a novel. Jane Austen wrote it."
    assert [question.gold for question in questions] == [("Emma", "Jane Austen")] * 2
    assert [(question.id, question.types, question.answers) for question in questions] == [
        ("5a8", ("bridge",), ("Steventon",)), ("5a9", ("comparison",), ("Steventon",)),
    ]  # fmt: skip
    assert sorted(p.text for p in corpus.passages.values() if p.title == "Basel") == [
        "Another Basel.", "Basel lies on the Rhine.",
    ]  # fmt: skip
    closed, _ = read(written([MULTI_HOP, other]), closed=True)
    assert closed[0].candidates == ("Emma", "Jane Austen", "Basel")
    found = compare(questions, ["UPR"], corpus, measures=["AllR@2"])
    assert set(found.means_by_type("UPR")) == {"bridge", "comparison"}
    assert "AllR@2, bridge" in str(found)


CONTEXT = {"title": "Emma", "text": "Jane Austen wrote Emma.", "score": 1000, "title_score": 1, "passage_id": "7"}
RESULT = {"id": "wiki:7", "title": "Emma", "text": "Jane Austen wrote Emma.", "score": "81.5", "has_answer": True}


def test_dpr_s_results_are_candidates_with_scores_and_its_training_files_have_gold(written):
    row = {"question": "Who wrote Emma?", "answers": ["Jane Austen"]}
    [question], corpus = read_dpr(
        written([{**row, "ctxs": [RESULT, {**RESULT, "id": "wiki:8", "text": "No.", "score": 80}]}])
    )
    assert (question.candidates, question.scores) == (("wiki:7", "wiki:8"), (81.5, 80.0))
    assert corpus.passages["wiki:7"].title == "Emma"
    found = compare([question], ["UPR"], corpus, measures=["AnswerR@1"])
    assert found.mean("first stage") == 1
    training = {**row, "positive_ctxs": [CONTEXT], "negative_ctxs": [{**CONTEXT, "passage_id": "8", "text": "No."}],
                "hard_negative_ctxs": [{**CONTEXT, "passage_id": "9", "text": "Nor this."}]}  # fmt: skip
    [question], corpus = read_dpr(written([training]))
    assert (question.gold, question.candidates, list(corpus.passages)) == (("7",), None, ["7", "8", "9"])


def test_compressed_files_are_read(tmp_path):
    (tmp_path / "papers.json.gz").write_bytes(gzip.compress(json.dumps(PAPERS).encode()))
    assert len(read_qasper(tmp_path / "papers.json.gz").questions) == 5
    (tmp_path / "broken.json.gz").write_bytes(b"no gzip")
    with pytest.raises(InvalidInput, match=r"broken.json.gz cannot be read"):
        read_qasper(tmp_path / "broken.json.gz")


def asked(**fields):
    return {"1": {**PAPER, "qas": [{"question": "Who?", "question_id": "1", **fields}]}}


@pytest.mark.parametrize(
    ("read", "content", "said"),
    [
        (read_qasper, [], r"must contain an object with papers, got list"),
        (read_qasper, {}, "must contain an object with papers"),
        (read_qasper, {"1": {"qas": []}}, r"paper 1 must have 'full_text' \(list\), got None"),
        (read_qasper, {"1": {**PAPER, "full_text": [{"paragraphs": [3]}]}}, "'paragraphs' must contain strings"),
        (read_qasper, asked(answers=[]), "question 1 must have answers"),
        (read_qasper, asked(answers=[{}]), "must have 'answer'"),
        (read_qasper, asked(question=" ", answers=[label(none=True)]), "paper 1, question 1"),
        (read_hotpotqa, {"a": 1}, "must contain a list of questions, got dict"),
        (read_hotpotqa, [3], r"question 1 must have 'context' \(list\), got None"),
        (read_hotpotqa, [{**MULTI_HOP, "context": [["Emma", "text"]]}], "'Emma' must have a list of sentences"),
        (read_hotpotqa, [{**MULTI_HOP, "context": MULTI_HOP["context"][:1]}], "'Jane Austen' is not in its"),
        (read_2wikimultihop, [{**MULTI_HOP, "supporting_facts": ["Emma"]}], "pairs that begin with a title"),
        (read_dpr, [{"question": "Who?", "answers": []}], "must have 'positive_ctxs'"),
        (read_dpr, [{"question": "Who?", "answers": ["a"], "ctxs": [{**RESULT, "score": "high"}]}], "a number 'score'"),
        (read_dpr, [{"question": "Who?", "answers": "a", "ctxs": []}], r"'answers' \(list\), got 'a'"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_such_dataset_is_refused_by_name(written, read, content, said):
    with pytest.raises(InvalidInput, match=said) as caught:
        read(written(content))
    assert "file.json" in str(caught.value)
    assert len(str(caught.value)) < 400


test_files_that_cannot_be_read = refuses(
    (lambda: read_qasper("missing.json"), "missing.json cannot be read: No such file"),
    (lambda: read_qasper(__file__), "is not JSON"),
    (lambda: read_qasper(__file__, 0), "is not JSON"),
)


def test_a_file_above_the_limit_is_refused(written, monkeypatch):
    monkeypatch.setattr("drillrank.evaluation.datasets.MAX_BYTES", 100)
    with pytest.raises(InvalidInput, match="at most 100 bytes"):
        read_qasper(written(PAPERS))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dataset", "qasper", "."], "--dataset qasper has its own corpus"),
        (["--strategies"], "--strategies needs an LLM"),
        (["--preset", "paper", "--component", "Relevance"], "--preset needs components out of UPR"),
    ],
)
def test_options_that_exclude_each_other(written, capsys, words, said):
    assert main(["compare", str(written(PAPERS)), *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_tune_takes_datasets_too(written, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    written([{**MULTI_HOP, "_id": str(n)} for n in range(4)])
    words = ["tune", "file.json", "--dataset", "hotpotqa", "--folds", "2", "--try", "mu=[30]", "--try", "prior=[]"]
    assert main([*words, "--try", "prior_weight=[]", "--n-questions", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gain"]["questions"] == 1
