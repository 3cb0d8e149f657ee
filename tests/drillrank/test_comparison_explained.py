"""Why components answered the listed questions as they did: in the report, and nowhere where time is taken."""

from __future__ import annotations

import copy
import json
import pickle
import re
import time

import pytest
from langchain_core.documents import Document
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler

import langchain_ext
import llama_index_ext
from drillrank import D3, UPR, Passage, PathSearch, PromptRank
from drillrank.errors import DrillrankWarning
from drillrank.evaluation import compare, html_report
from drillrank.evaluation.running import GIVE_UP
from drillrank.explanation import Explainable, Explanations
from llama_index_ext.events import ExplanationEvent
from tests.drillrank.test_comparison import BACKWARDS, CORPUS, QUESTIONS, LostIds, last_first

MEASURES = ["AllR@1", "RR"]
HOSTILE = "<img src=x onerror=alert(1)>"


class Counts:
    """Ranks as UPR; counts the rankings, and the questions whose explanations were asked for."""

    def __init__(self, seconds=0.0, fails=()):
        self.seconds, self.fails, self.asked, self.explained = seconds, fails, 0, []

    def rank(self, query, passages):
        self.asked += 1
        ranking = UPR().rank(query, passages)

        def why(some):
            time.sleep(self.seconds)
            self.explained.append(query)
            if len(self.explained) in self.fails:
                raise self.fails[len(self.explained)]
            return ranking[: len(some)].explain()

        return Explainable(ranking, why)


def by_question(found, name):
    return {id_: record.explanation for id_, record in found.results[name].items() if record.explanation}


def test_explanations_are_those_of_the_compared_ranking():
    """Of the same candidates in the same order, with the first stage's scores and the same settings."""
    scores = [float(place * 7 % 10) for place in range(len(CORPUS))]
    rows = [{**row, "scores": scores} for row in BACKWARDS]
    found = compare(rows, {"ours": {"component": "UPR", "prior": "retrieval", "depth": 10}}, CORPUS, measures=["RR"])
    page = html_report(found)
    known = {passage.id: passage for passage in CORPUS}
    listed = found.extremes("first stage", "ours")[1]
    assert len(listed) == 5
    assert by_question(found, "ours").keys() == {question.id for question in listed}
    for question in listed:
        candidates = [known[id_] for id_ in question.candidates]
        wanted = UPR(prior="retrieval").rank(question.text, candidates, scores=scores)[:3].explain()
        assert by_question(found, "ours")[question.id] == wanted.to_dict()
        assert wanted._repr_html_() in page
        assert found.explained("ours", question).why == wanted
    assert page.count("<summary>Why: ours</summary>") == len(listed)


def test_every_component_that_can_explains_in_the_report(tmp_path):
    (tmp_path / "owl.md").write_text("# Owls\n\n## Food\n\nAn owl eats mice.\n\n## Home\n\nAn owl lives in a barn.\n")
    (tmp_path / "fox.md").write_text("# Foxes\n\n## Food\n\nA fox eats hens.\n\n## Home\n\nA fox lives in a den.\n")
    (tmp_path / "bear.md").write_text("# Food\n\nA bear eats honey.\n\n# Home\n\nA bear lives in a cave.\n")
    texts = {file.name: file.read_text() for file in sorted(tmp_path.iterdir())}
    documents = [Document(text, metadata={"source": name}) for name, text in texts.items()]
    nodes = [LlamaIndexDocument(text=text, metadata={"file_name": name}) for name, text in texts.items()]
    chunks = langchain_ext.MultiViewTextSplitter().split_documents(documents)
    cut = llama_index_ext.MultiViewNodeParser().get_nodes_from_documents(nodes)
    question = "Where does an owl live?"
    ours = {
        "UPR": "UPR",
        "PromptRank": "PromptRank",
        "PathSearch": "PathSearch",
        "D3": "D3",
        "views": "MultiViewIndex",
        "UPR in LlamaIndex": llama_index_ext.UPRRerank(),
        "UPR in LangChain": langchain_ext.UPRRerank(explain=True),
        "PromptRank in LangChain": langchain_ext.PromptRankRerank(),
        "D3 in LlamaIndex": llama_index_ext.D3Retriever(nodes),
        "D3 in LangChain": langchain_ext.D3Retriever(documents=documents),
        "views in LlamaIndex": llama_index_ext.MultiViewRetriever(cut),
        "views in LangChain": langchain_ext.MultiViewRetriever(documents=chunks),
        "in a function": lambda query: langchain_ext.D3Retriever(documents=documents).invoke(query),
    }
    theirs = {"compressor": LostIds(), "function": last_first, "plain list": lambda q, p: list(UPR().rank(q, p))}
    found = compare([{"question": question, "answers": ["barn"]}], ours | theirs, tmp_path, measures=["AnswerR@1"])
    [asked] = found.questions
    for name in ours:
        why = found.explained(name, asked).why
        assert why, name
        assert len(why) == min(3, len(found.results[name][asked.id].ids)), name
        assert [entry.rank for entry in why] == list(range(1, len(why) + 1))
        told = ["bear.md", "Foxes", "Owls"] if name.startswith("D3") or name == "in a function" else []
        assert [node.name for node in why.tree if node.kind == "document"] == told, name
    for name in (*theirs, "first stage"):
        assert found.explained(name, asked) == (None, "It cannot say why; what it told is in the table.", False)
    first = found.results["first stage"][asked.id]
    direct = UPR().rank(question, first.passages(found.passages[asked.id]), scores=first.scores)
    assert all(item.details["log_prior"] for item in direct)
    assert found.explained("UPR", asked).why == direct[:3].explain()
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_a_first_stage_explains_too():
    search = PathSearch(PromptRank(), CORPUS, settings={"hops": 1})
    found = compare(QUESTIONS, {"wrong": last_first}, first_stage=search, measures=MEASURES)
    assert len(by_question(found, "first stage")) == 0
    page = html_report(found)
    assert page.count("<summary>Why: first stage</summary>") == 5
    assert len(by_question(found, "first stage")) == 5


def test_explanations_cost_nothing_where_time_is_taken_and_nobody_is_asked_for_more_than_is_listed():
    events = []

    class Heard(BaseEventHandler):
        def handle(self, event, **_):
            if isinstance(event, ExplanationEvent):
                events.append(event.query)

    slow, handler = Counts(seconds=0.1), Heard()
    get_dispatcher().add_event_handler(handler)
    try:
        explains = llama_index_ext.UPRRerank(explain=True)
        found = compare(BACKWARDS, {"slow": slow, "host": explains}, CORPUS, measures=MEASURES)
        assert (slow.asked, slow.explained, events) == (10, [], [])
        costs = copy.deepcopy(found.costs)
        html_report(found)
    finally:
        get_dispatcher().event_handlers.remove(handler)
    listed = [question.text for question in found.extremes("first stage", "slow")[1]]
    assert len(listed) == 5
    assert (slow.asked, slow.explained, events) == (15, listed, listed)
    html_report(found)
    assert slow.asked == 15  # told once
    assert found.costs == costs
    assert costs["slow"].p95 < 0.1
    assert all(record.seconds < 0.1 for record in found.results["slow"].values())


def test_what_cannot_explain_is_not_asked_again():
    asked = []

    def foreign(query, passages):
        asked.append(query)
        return [(passage, 0.25) for passage in reversed(passages)]

    page = html_report(compare(BACKWARDS, {"foreign": foreign}, CORPUS, measures=MEASURES))
    assert len(asked) == 10
    assert "It cannot say why" in page
    assert "0.2500" in page


def test_a_failure_costs_one_explanation_and_is_told_in_the_report():
    flaky = Counts(fails={2: RuntimeError(HOSTILE)})
    page = html_report(compare(BACKWARDS, {"flaky": flaky}, CORPUS, measures=MEASURES))
    assert page.count("<summary>Why: flaky</summary>") == 4
    assert '<p class="partial">Not explained: RuntimeError: &lt;img' in page
    assert HOSTILE not in page


def test_what_always_fails_is_given_up():
    broken = Counts(fails=dict.fromkeys(range(100), OSError("no network")))
    rows = [
        {**row, "id": str(n), "candidates": row["candidates"] if n % 2 else row["gold"] + row["candidates"][:-1]}
        for n, row in enumerate(2 * BACKWARDS)
    ]
    page = html_report(compare(rows, {"broken": broken, "wrong": last_first}, CORPUS, measures=MEASURES))
    assert len(broken.explained) == GIVE_UP
    assert f"Not explained: {GIVE_UP} questions failed before." in page


def test_ctrl_c_ends_explaining_and_leaves_the_report():
    interrupted = Counts(fails={3: KeyboardInterrupt()})
    found = compare(BACKWARDS, {"ours": interrupted}, CORPUS, measures=MEASURES)
    page = html_report(found)
    assert page.count("Not explained: interrupted.") == 3
    assert len(by_question(found, "ours")) == 2


def test_a_ranking_that_is_another_one_now_is_not_explained():
    class Changes(Counts):
        def rank(self, query, passages):
            ranking = super().rank(query, passages)
            return Explainable(ranking[::-1], ranking.why) if self.asked > 10 else ranking

    found = compare(BACKWARDS, {"changes": Changes()}, CORPUS, measures=MEASURES)
    assert "asked again, it ranks otherwise" in html_report(found)
    assert not by_question(found, "changes")


def test_the_file_of_results_keeps_explanations(tmp_path):
    file = tmp_path / "results.jsonl"
    first, later = Counts(), Counts()
    page = html_report(compare(BACKWARDS, {"ours": first}, CORPUS, measures=MEASURES, results=file))
    again = compare(BACKWARDS, {"ours": later}, CORPUS, measures=MEASURES, results=file)
    assert html_report(again) == page
    assert (later.asked, later.explained) == (0, [])
    assert again.to_dict()["explanations"]["ours"] == by_question(again, "ours")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        row.pop("explanation", None)  # as an earlier release wrote it
        row.pop("explains", None)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert html_report(compare(BACKWARDS, {"ours": later}, CORPUS, measures=MEASURES, results=file)) == page
    assert (later.asked, len(later.explained)) == (5, 5)


@pytest.mark.parametrize(
    "told",
    [
        {"entries": 3},
        {"question": "Why?", "entries": [{"rank": 1, "score": HOSTILE, "name": "x"}]},
        {"question": "Why?", "entries": [{"rank": 1, "score": 1.0, "name": "x", "terms": 7}]},
        {"question": "Why?", "entries": [], "tree": [{"name": HOSTILE}]},
    ],
)
def test_a_file_of_results_may_hold_anything(tmp_path, told):
    file = tmp_path / "results.jsonl"
    html_report(compare(BACKWARDS, {"ours": "UPR"}, CORPUS, measures=MEASURES, results=file))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    changed = [row | {"explanation": told} if row.get("explanation") else row for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in changed))
    page = html_report(compare(BACKWARDS, {"ours": "UPR"}, CORPUS, measures=MEASURES, results=file))
    assert page.count('<p class="partial">') == 5
    assert HOSTILE not in page


def test_a_file_without_room_costs_no_explanation(tmp_path, monkeypatch):
    found = compare(BACKWARDS, {"ours": "UPR"}, CORPUS, measures=MEASURES, results=tmp_path / "results.jsonl")
    (tmp_path / "results.jsonl").unlink()
    (tmp_path / "results.jsonl").mkdir()
    with pytest.warns(DrillrankWarning, match="cannot be written"):
        page = html_report(found)
    assert page.count("<summary>Why: ours</summary>") == 5


def test_copies_and_interrupted_comparisons_show_what_was_told():
    found = compare(BACKWARDS, {"ours": "UPR"}, CORPUS, measures=MEASURES)
    silent = html_report(pickle.loads(pickle.dumps(found)))
    assert "<summary>Why" not in silent
    assert silent.count('<p class="note">Not explained.</p>') == 5
    page = html_report(found)
    assert html_report(pickle.loads(pickle.dumps(found))) == page
    stops = Counts()
    stops.rank = lambda query, passages, rank=stops.rank: rank(query, passages) if stops.asked < 7 else interrupt()
    with pytest.warns(DrillrankWarning, match="Interrupted"):
        partial = compare(BACKWARDS, {"stops": stops}, CORPUS, measures=MEASURES)
    html_report(partial)
    assert stops.explained == []


def interrupt():
    raise KeyboardInterrupt


def test_text_of_documents_is_shown_as_text():
    corpus = [Passage(f"The fox {HOSTILE} lives here.", id="fox", title=HOSTILE), *CORPUS[1:]]
    rows = [{**BACKWARDS[0], "question": f"Where does the fox {HOSTILE} live?"}]
    found = compare(rows, {HOSTILE: "UPR", "views": "PathSearch"}, corpus, measures=MEASURES)
    page = html_report(found)
    assert "<summary>Why: &lt;img" in page
    assert HOSTILE not in page


def test_every_pair_is_listed_side_by_side():
    found = compare(BACKWARDS, {"ours": "UPR", "wrong": last_first, "same": "PromptRank"}, CORPUS, measures=["F1@1"])
    done = []
    page = html_report(found, lambda number, whole: done.append((number, whole)))
    pairs = re.findall(r"<h3>(.*?)</h3>", page)
    assert pairs == ["first stage → ours", "first stage → wrong", "first stage → same"]  # the others agree
    assert done == [(number, 20) for number in range(1, 21)]
    for sides in page.split('<div class="sides">')[1:]:
        assert sides.count("<caption>First 3 of") >= 2


def test_d3_alone_tells_its_tree():
    document = "# Owls\n\n## Food\n\nAn owl eats mice.\n\n## Home\n\nAn owl lives in a barn.\n"
    ranking = D3().retrieve("Where does an owl live?", [document])
    told = ranking.explain()
    assert Explanations.from_dict(told.to_dict()) == told
    assert Explanations.from_dict(told.to_dict()).tree == told.tree
