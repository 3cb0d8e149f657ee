"""Comparisons on one's own questions: what is read, what is asked, what is found, and what is never lost."""

from __future__ import annotations

import asyncio
import csv
import json
import math
import re
import sys

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from drillrank import UPR, Passage, PathSearch, PromptRank
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation import compare, html_report
from drillrank.evaluation.questions import read_questions
from langchain_ext import UPRRerank as LangChainUPR
from llama_index_ext import UPRRerank as LlamaIndexUPR

MEASURES = ["AllR@1", "F1@2"]
WORDS = ["fox", "whale", "owl", "bear", "lynx", "crow", "toad", "wasp", "newt", "hare"]
CORPUS = [
    Passage(f"The {word} lives in region {i}. It eats what others leave.", id=word) for i, word in enumerate(WORDS)
]
QUESTIONS = [
    {"id": f"q{i}", "question": f"Where does the {word} live?", "gold": [word]} for i, word in enumerate(WORDS)
]
BACKWARDS = [
    {**row, "candidates": [other for other in WORDS if other not in row["gold"]] + row["gold"]} for row in QUESTIONS
]


def last_first(query, passages):
    return list(reversed(passages))


class Backwards(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes[::-1]


class LostIds(BaseDocumentCompressor):
    def compress_documents(self, documents, query, callbacks=None):
        return [Document(page_content=document.page_content) for document in reversed(documents)]


class FailsAt:
    """Ranks as UPR, but for some questions; counts what it was asked."""

    def __init__(self, failure, *places):
        self.failure, self.places, self.asked = failure, places, 0

    def __call__(self, query, passages):
        self.asked += 1
        if self.asked in self.places:
            raise self.failure
        return UPR().rank(query, passages)


def test_all_kinds_of_components_see_the_same_candidates():
    seen = {}

    def watching(query, passages):
        seen.setdefault(query, []).append([passage.id for passage in passages])
        return passages

    found = compare(
        BACKWARDS,
        {
            "core": "UPR",
            "object": UPR(),
            "PromptRank": PromptRank(),
            "LlamaIndex": LlamaIndexUPR(),
            "LangChain": LangChainUPR(top_n=None, prior=None),  # by default the order counts, which is backwards here
            "postprocessor": Backwards(),
            "compressor": LostIds(),
            "function": last_first,
            "one": watching,
            "other": watching,
        },
        CORPUS,
        measures=MEASURES,
    )
    assert found.complete
    assert found.components[:3] == ("first stage", "BM25", "first stage + BM25")
    assert found.mean("first stage") == 0
    for name in ("BM25", *found.components[3:-2]):
        assert found.mean(name, "AllR@1") == 1, name
    for question in BACKWARDS:
        assert seen[question["question"]] == [question["candidates"]] * 2
    assert found.results["core"]["q3"].ids == [r.passage.id for r in UPR().rank("Where does the bear live?", [
        next(p for p in CORPUS if p.id == id_) for id_ in BACKWARDS[3]["candidates"]
    ])]  # fmt: skip
    assert "would" in found.advice[0]  # so many pairs ask for more questions
    assert found.oracle_recall["first stage"] == (1, 1, 1)
    assert found.oracle_recall["core"].inverted == 0


def test_components_that_look_for_themselves_and_the_first_stage():
    found = compare(
        QUESTIONS,
        {
            "paths": {"component": "PathSearch", "hops": 1},
            "search": PathSearch(PromptRank(), CORPUS, settings={"hops": 1}),
        },
        CORPUS,
        candidates=3,
        measures=MEASURES,
    )
    assert found.mean("first stage") == found.mean("paths") == found.mean("search") == 1
    assert all(len(record.ids) == 3 for record in found.results["first stage"].values())
    elsewhere = compare(QUESTIONS, ["UPR"], first_stage=lambda query: CORPUS[:2], measures=MEASURES, candidates=1)
    assert elsewhere.mean("UPR") == 0.1
    assert elsewhere.oracle_recall["UPR"].some == 0.1
    assert "no evidence among the candidates" in elsewhere.advice[-1]


def test_a_reranker_that_hurts_is_told():
    found = compare(QUESTIONS, {"wrong": last_first}, CORPUS, candidates=5, measures=MEASURES)
    assert found.pair("first stage", "wrong").verdict == "worse"
    assert "hurts a first stage" in found.advice[0]
    worse, better = found.extremes("first stage", "wrong", 3)
    assert len(worse) == 3
    assert better == []


def test_a_reranker_that_helps_is_told():
    found = compare(BACKWARDS, ["UPR"], CORPUS, measures=MEASURES)
    assert found.pair("first stage", "UPR").verdict == "better"
    assert found.advice == [
        "UPR helps: AllR@1 +1.000 (+1.000 to +1.000). BM25 is not shown to be worse: AllR@1 +0.000 (+0.000 to +0.000). "
        'To try next: model="st:..." or "hf:...", `drillrank tune --component UPR`.'
    ]


def test_few_questions_cannot_tell_and_say_how_many_would():
    found = compare(BACKWARDS[:3], ["UPR"], CORPUS, measures=MEASURES)
    pair = found.pair("first stage", "UPR")
    assert (pair.difference.mean, pair.verdict) == (1.0, "cannot tell")
    assert pair.needed >= 2


def test_a_component_that_raises_loses_its_questions_alone(tmp_path):
    file = tmp_path / "results.jsonl"
    flaky = FailsAt(ValueError("quota"), 5)
    with pytest.warns(DrillrankWarning, match=r"flaky failed on Question 5: ValueError: quota"):
        found = compare(BACKWARDS, {"flaky": flaky, "ours": "UPR"}, CORPUS, measures=MEASURES, results=file)
    assert not found.complete
    assert (found.failed["flaky"], found.failed["ours"]) == (1, 0)
    assert list(found.values["flaky"]["AllR@1"]) == [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]
    assert (found.mean("flaky"), found.pair("flaky", "ours").difference.mean) == (0.9, pytest.approx(0.1))
    assert "It failed on 1 of 10 questions, which count 0." in found.advice[0]
    again = compare(BACKWARDS, {"flaky": flaky, "ours": "UPR"}, CORPUS, measures=MEASURES, results=file)
    assert again.complete
    assert flaky.asked == 11  # the one that failed, and no other
    assert re.search(r'<th scope="row">flaky</th><td>0.900</td><td>0.\d+</td><td>1</td><td>0</td>', html_report(found))


def test_a_component_that_always_raises_is_given_up():
    broken = FailsAt(OSError("no network"), *range(100))
    with pytest.warns(DrillrankWarning, match="failed on Question 1"):
        found = compare(BACKWARDS, {"broken": broken, "ours": "UPR"}, CORPUS, measures=MEASURES)
    assert broken.asked == 5
    assert "given up" in " ".join(found.problems)
    assert (found.failed["broken"], found.mean("broken"), found.mean("ours")) == (10, 0, 1)
    assert "broken answered no question." in found.advice
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_an_interruption_leaves_a_partial_comparison_that_goes_on_later(tmp_path):
    file = tmp_path / "results.jsonl"
    slow = FailsAt(KeyboardInterrupt(), 7)
    with pytest.warns(DrillrankWarning, match="Interrupted: 6 of 10"):
        found = compare(BACKWARDS, {"slow": slow}, CORPUS, measures=MEASURES, results=file)
    assert (found.complete, found.pair("first stage", "slow").difference.questions) == (False, 6)
    with file.open("ab") as lines:
        lines.write(b'{"component": "slow", "spec')  # what a kill leaves
    again = compare(BACKWARDS, {"slow": slow}, CORPUS, measures=MEASURES, results=file)
    assert (again.complete, slow.asked) == (True, 11)
    assert again.mean("slow") == 1
    with pytest.raises(InvalidInput, match="results of other questions"):
        compare(QUESTIONS, {"slow": slow}, CORPUS, measures=MEASURES, results=file)


def test_other_settings_are_computed_anew(tmp_path):
    file = tmp_path / "results.jsonl"
    first = compare(BACKWARDS, {"x": {"component": "UPR", "depth": 2}}, CORPUS, measures=MEASURES, results=file)
    with pytest.warns(DrillrankWarning, match=r"holds results of x with other settings.*computed anew"):
        second = compare(BACKWARDS, {"x": "UPR"}, CORPUS, measures=MEASURES, results=file)
    assert (first.mean("x"), second.mean("x")) == (0, 1)


def test_spans_and_answers_say_what_is_right():
    rows = [{"question": "Where does the owl live?", "spans": ["owl lives in region 2"], "answers": ["region 2"]}]
    found = compare(rows, ["UPR"], CORPUS, measures=["AllR@1", "SpanR@9", "AnswerR@1"])
    assert found.evidence["1"].spans == (("owl", "lives", "in", "region", "2"),)
    assert [found.mean("UPR", name) for name in found.measures] == [1, 1, 1]


def test_documents_are_compared_by_their_sections(tmp_path):
    warranty = "## Warranty\n\nThe heater is covered for two years."
    manual = f"# Kettle\n\nRead this.\n\n{warranty}\n\n## Cleaning\n\nBoil vinegar.\n"
    (tmp_path / "manual.md").write_text(manual, encoding="utf-8")
    rows = [{"question": "How long is the heater covered?", "spans": ["covered for two years"]}]
    found = compare(rows, ["UPR", "D3", "MultiViewIndex"], tmp_path, measures=["SpanR@20", "AnswerR@1"][:1])
    assert [found.mean(name) for name in found.components] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"query": "Who?", "gold": ["fox"]}], r"line 1 has no question; its columns: query, gold"),
        ([{"question": "Who?", "gold": ["fox"]}, {"question": " ", "gold": ["fox"]}], "line 2 has no question"),
        ([{"question": "Who?", "golds": ["fox"]}], "neither gold nor spans nor answers; its columns: question, golds"),
        ([{"question": "Who?", "gold": []}], "gold are empty"),
        ([{"question": "Who?", "gold": ["fox", 3.5]}], r"line 1, gold holds strings that are not blank; not 3.5"),
        ([{"question": "Who?", "gold": True}], r"line 1, gold is a list, not True"),
        ([{"question": "Who?", "gold": ["cat"]}], r"line 1: the gold id 'cat' is not in the corpus of 10"),
        ([{"id": "a", "question": "Who?", "gold": ["fox"]}] * 2, r"line 2 has the id 'a' of questions.jsonl, line 1"),
        ([{"question": "Who?", "gold": ["fox"], "candidates": ["cat"]}], "candidate 'cat' is not in the corpus"),
        ([{"question": "Who?", "gold": ["fox"], "candidates": ["fox"], "scores": [1, 2]}], "2 scores for 1 candidates"),
        ([{"question": "Who?", "gold": ["fox"], "candidates": ["fox"], "scores": [math.nan]}], "numbers, not NaN"),
        ([{"question": "Who?", "gold": ["fox"], "candidates": [{"id": "fox"}]}], "a candidate is an id, or an object"),
        ([], "There is no question"),
    ],
)
def test_a_bad_row_is_named(tmp_path, rows, said):
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(InvalidInput, match=said):
        compare(file, ["UPR"], CORPUS, measures=MEASURES)


def test_a_bad_row_among_100000_is_named(tmp_path):
    file = tmp_path / "questions.jsonl"
    good = json.dumps({"question": "Who?", "gold": ["fox"]}) + "\n"
    file.write_text(good * 99_999 + '{"question": "Who?"\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"questions.jsonl, line 100000 is no JSON"):
        read_questions(file)


def test_numbers_are_ids_and_answers(tmp_path):
    passages = tmp_path / "passages.jsonl"
    passages.write_text("".join(json.dumps({"id": n, "text": f"In 198{n} it rained."}) + "\n" for n in range(3)))
    rows = [
        {"question": "When?", "gold": [0, 2], "candidates": [2, 1, 0]},
        {"question": "And when?", "gold": 1, "candidates": [0, 1]},
        {"question": "And then?", "answers": 1981, "candidates": [0, 1]},
        {"question": "And who?", "gold": [[0], [1, 2]], "candidates": [0, 1]},
    ]
    found = compare(rows, ["UPR"], passages, measures=["AllR@1"])
    assert [one.ids or one.answers for one in found.evidence.values()] == [
        ("0", "2"),
        ("1",),
        ("1981",),
        ("0", "1", "2"),
    ]


def test_csv_of_spreadsheets_has_spaces_blank_rows_and_long_cells(tmp_path):
    file = tmp_path / "questions.csv"
    long = "rain " * 50_000
    file.write_text(f'question, gold ,note\nWho?, fox,"{long}"\n,,\n , ,,\n', encoding="utf-8")
    [one] = read_questions(file)
    assert one.gold == ("fox",)
    assert csv.field_size_limit() == 131_072
    file.write_text("question,gold\nWho?,fox\n,owl\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 3 has no question"):
        read_questions(file)


def test_csv_holds_lists_and_bars(tmp_path):
    file = tmp_path / "questions.csv"
    with file.open("w", newline="", encoding="utf-8") as lines:
        table = csv.writer(lines)
        table.writerows([["question", "gold", "answers"], ["Who, me?", "fox | owl", '["a|b"]'], ["Who?", "fox", ""]])
    first, second = read_questions(file)
    assert (first.text, first.gold, first.answers) == ("Who, me?", ("fox", "owl"), ("a|b",))
    assert second.answers == ()
    file.write_text("question,gold\nWho?,fox,owl\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 2 has not as many cells"):
        read_questions(file)
    assert read_questions([{"q": "Who?", "gold": ["fox"]}], {"question": "q"})[0].text == "Who?"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_as_spreadsheets_of_any_country_write_it(tmp_path, separator, start, end):
    file = tmp_path / "questions.csv"
    rows = [("question", "gold"), ("Who hunts, and; when?", "fox"), ('A "line"\nmore', "owl")]
    with file.open("w", encoding="utf-8", newline="") as lines:
        lines.write(start)
        csv.writer(lines, delimiter=separator, lineterminator=end).writerows(rows)
    assert [(one.text, {*one.gold}) for one in read_questions(file)] == [(text, {gold}) for text, gold in rows[1:]]
    file.write_text("question,gold\nWho?,fox\n", encoding="utf-16")
    with pytest.raises(InvalidInput, match=r"is no UTF-8: .* Save it in that encoding\."):
        read_questions(file)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_do_not_cost_the_report(tmp_path, score):
    components = {"odd": lambda _query, passages: [(passage, score) for passage in passages]}
    kept = tmp_path / "results.jsonl"
    found = compare(BACKWARDS, components, CORPUS, measures=MEASURES, results=kept)
    assert {one for record in found.results["odd"].values() for one in record.scores} == {None}
    assert "odd" in html_report(found)
    assert not re.search("NaN|Infinity", kept.read_text())


def test_ids_may_hold_anything():
    names = ["half \ud800", "other half \udc00", "nul\0a", "nul\0b", "a b\tc", "é", " "]
    passages = [Passage(f"Town {number} lies on the Rhine.", id=name) for number, name in enumerate(names)]
    rows = [
        {"id": f"{name}?", "question": "Where?", "gold": [name], "candidates": passages}
        for name in names
        if name.strip()
    ]
    found = compare(rows, {"same": lambda _query, given: given}, measures=["RR", "Success@1", "R@3"])
    assert list(found.values["same"]["RR"]) == pytest.approx([1 / rank for rank in range(1, len(names))])
    assert list(found.values["same"]["R@3"]) == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    "name", ["nDCG@0", "R@-1", "RBP(p=2)", "alpha_nDCG@5", "P(rel=0)@5", f"P@{10**20}", "", "P@5 R@5"]
)
def test_a_measure_that_cannot_be_computed_is_told_before_anything_is_asked(name):
    with pytest.raises(InvalidInput, match=r"There is no measure|cannot be computed"):
        compare(QUESTIONS, {"never": lambda _query, _passages: pytest.fail("asked")}, CORPUS, measures=[name])


def test_half_characters_of_documents_and_names_that_are_no_strings_do_not_cost_the_report():
    broken = [{"id": word, "text": f"The {word}\ud800 lives.", "title": "\udfff"} for word in WORDS]
    found = compare(BACKWARDS, {5: "UPR", "half \ud800": last_first}, broken, measures="RR")
    assert found.measures == ("RR",)
    assert found.components[3:] == ("5", "half \ud800")
    assert "half �" in html_report(found).encode().decode()
    with pytest.raises(InvalidInput, match=r"Question 1: The query holds half a character"):
        compare([{"question": "Who\ud800?", "gold": ["fox"]}], ["UPR"], CORPUS)


def test_a_class_is_made():
    assert compare(BACKWARDS, {"ours": UPR}, CORPUS, measures=["AllR@1"]).mean("ours") == 1
    assert compare(BACKWARDS, {"x": {"component": UPR, "prior": None}}, CORPUS, measures=["AllR@1"]).mean("x") == 1


@pytest.mark.parametrize(("links", "by"), [("titles", "title mention"), (["names"], "name mention")])
def test_links_of_a_path_search_are_given_by_name(links, by):
    passages = [
        Passage("Alan Turing was born in Maida Vale.", id="turing", title="Alan Turing"),
        Passage("Maida Vale is a residential district of London.", id="vale", title="Maida Vale"),
        Passage("Basel lies on the Rhine.", id="basel", title="Basel"),
    ]
    rows = [{"question": "Which residential district was Turing born in?", "gold": ["turing", "vale"]}]
    found = compare(rows, {"paths": {"component": "PathSearch", "links": links}}, passages, measures=["AllR@2"])
    assert found.mean("paths") == 1
    assert by in str(found.explained("paths", found.questions[0]).why)
    with pytest.raises(InvalidInput, match=r"paths: Links are some of metadata, .*; not 'title'\."):
        compare(rows, {"paths": {"component": "PathSearch", "links": ["title"]}}, passages)


def later(query, passages):
    async def first_last():
        await asyncio.sleep(0)
        return passages[::-1]

    return first_last()


def test_asynchronous_components_are_awaited_also_in_a_notebook():
    found = compare(BACKWARDS, {"later": later}, CORPUS, measures=["AllR@1"])
    assert found.mean("later") == compare(BACKWARDS, {"now": last_first}, CORPUS, measures=["AllR@1"]).mean("now") == 1

    async def notebook():
        return compare(BACKWARDS, {"later": later}, CORPUS, measures=["AllR@1"])

    assert asyncio.run(notebook()).mean("later") == 1


def test_of_a_first_stage_that_fails_no_ceiling_is_told():
    def broken(query):
        raise RuntimeError("no index")

    with pytest.warns(DrillrankWarning, match="no index"):
        found = compare(QUESTIONS, ["UPR"], CORPUS, first_stage=broken, measures=MEASURES)
    assert list(found.advice) == ["UPR answered no question."]


def test_a_component_that_ends_the_program_ends_its_question_alone():
    found_by = {"ends": lambda _query, _passages: sys.exit(3)}
    with pytest.warns(DrillrankWarning, match="SystemExit: 3"):
        assert not compare(BACKWARDS, found_by, CORPUS, measures=MEASURES).complete


def test_a_class_that_raises_when_it_is_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "keyless.py").write_text("class Ranker:\n    def __init__(self):\n        raise ValueError('no key')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=r"^ranker cannot be made: ValueError: no key$"):
        compare(BACKWARDS, {"ranker": "keyless:Ranker"}, CORPUS)


def test_a_module_that_raises_when_it_is_imported_is_named(tmp_path, monkeypatch):
    (tmp_path / "raises_on_import.py").write_text("raise RuntimeError('no key')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=r"x: 'raises_on_import\.ranker' cannot be loaded: RuntimeError: no key\."):
        compare(QUESTIONS, {"x": "raises_on_import.ranker"}, CORPUS, measures=MEASURES)


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ({"x": "UPPR"}, "x: No component is called 'UPPR'"),
        ({"x": {"component": "UPR", "temprature": 2}}, "x: .*temprature"),
        ({"x": "MonoT5"}, "x: MonoT5 needs a neural model"),
        ({"x": "BRMGR"}, "x: BRMGR needs more than questions"),
        ({"x": "D3"}, "x: D3 reads documents"),
        ({"x": "no_such_module:thing"}, "x: 'no_such_module:thing' cannot be loaded"),
        ({"x": 7}, "x: a int does not rank"),
        ({"first stage": "UPR"}, "take part anyway"),
        ({}, "Name the components"),
    ],
)
def test_a_component_that_cannot_be_used_is_named(components, said):
    with pytest.raises(InvalidInput, match=said):
        compare(QUESTIONS, components, CORPUS, measures=MEASURES)


def test_other_arguments_that_cannot_be_used():
    with pytest.raises(InvalidInput, match="AnswerR@1 needs answers, and Question 1 has none"):
        compare(QUESTIONS, ["UPR"], CORPUS, measures=["AnswerR@1"])
    with pytest.raises(InvalidInput, match="Nothing is there to rank"):
        compare(QUESTIONS, ["UPR"], measures=MEASURES)
    with pytest.raises(InvalidInput, match="Prices are"):
        compare(QUESTIONS, ["UPR"], CORPUS, measures=MEASURES, prices={"tokens": 1})
    with pytest.raises(InvalidInput, match="Passage 2 has the id 'fox' of another"):
        compare(QUESTIONS, ["UPR"], [CORPUS[0], Passage("Another fox.", id="fox")], measures=MEASURES)
    with pytest.raises(InvalidInput, match="no candidates, and other questions have"):
        compare([BACKWARDS[0], QUESTIONS[1]], ["UPR"], CORPUS, measures=MEASURES)


def test_money_is_counted_where_tokens_are_told():
    def paid(query, passages):
        found = UPR().rank(query, passages)
        found[0].details["usage"] = {"prompt_tokens": 1_000, "completion_tokens": 500, "llm_calls": 2}
        return found

    prices = {"prompt": 2.0, "completion": 10.0}
    found = compare(BACKWARDS, {"paid": paid, "free": "UPR"}, CORPUS, measures=MEASURES, prices=prices)
    cost = found.costs["paid"]
    assert (cost.prompt_tokens, cost.completion_tokens, cost.calls) == (10_000, 5_000, 20)
    assert cost.money == pytest.approx(0.07)
    assert found.costs["free"].money is None
    assert 0 < cost.p50 <= cost.p95


def test_a_dotted_path_is_called_with_its_settings():
    found = compare(
        BACKWARDS,
        {
            "path": {"component": "llama_index_ext:UPRRerank", "top_n": 1},
            "fitted": {"component": "UPR", "fitted": True},
        },
        CORPUS,
        measures=MEASURES,
    )
    assert {len(record.ids) for record in found.results["path"].values()} == {1}
    assert found.mean("path") == found.mean("fitted") == 1
    assert found.costs["fitted"].preparing > 0
