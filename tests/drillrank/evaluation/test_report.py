"""The report of a comparison, and why components answered the listed questions as they did."""

from __future__ import annotations

import copy
import json
import re
import time
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from langchain_core.documents import Document
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler

import langchain_ext
import llama_index_ext
from drillrank import UPR, Passage
from drillrank.errors import DrillrankWarning
from drillrank.evaluation import compare, html_report
from drillrank.explanation import Explainable
from llama_index_ext.events import ExplanationEvent
from tests.drillrank.evaluation.samples import BACKWARDS, CORPUS, LostIds, last_first

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


def test_explanations_are_those_of_the_compared_ranking():
    """Of the same candidates in the same order, with the first stage's scores and the same settings."""
    scores = [float(place * 7 % 10) for place in range(len(CORPUS))]
    rows = [{**row, "scores": scores} for row in BACKWARDS]
    found = compare(rows, {"ours": {"component": "UPR", "prior": "retrieval", "depth": 10}}, CORPUS, measures=["RR"])
    page = html_report(found)
    known = {passage.id: passage for passage in CORPUS}
    listed = found.extremes("first stage", "ours")[1]
    for question in listed:
        candidates = [known[id_] for id_ in question.candidates]
        wanted = UPR(prior="retrieval").rank(question.text, candidates, scores=scores)[:3].explain()
        assert wanted._repr_html_() in page
        assert found.explained("ours", question).why == wanted
    assert page.count("<summary>Why: ours</summary>") == len(listed) == 5


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
        **{name: name for name in ("UPR", "PromptRank", "PathSearch", "D3", "MultiViewIndex")},
        "UPR in LlamaIndex": llama_index_ext.UPRRerank(),
        "UPR in LangChain": langchain_ext.UPRRerank(explain=True),
        "PromptRank in LangChain": langchain_ext.PromptRankRerank(),
        "D3 in LlamaIndex": llama_index_ext.D3Retriever(nodes),
        "D3 in LangChain": langchain_ext.D3Retriever(documents=documents),
        "views in LlamaIndex": llama_index_ext.MultiViewRetriever(cut),
        "views in LangChain": langchain_ext.MultiViewRetriever(documents=chunks),
        "D3 in a function": lambda query: langchain_ext.D3Retriever(documents=documents).invoke(query),
    }
    theirs = {"compressor": LostIds(), "function": last_first, "plain list": lambda q, p: list(UPR().rank(q, p))}
    found = compare([{"question": question, "answers": ["barn"]}], ours | theirs, tmp_path, measures=["AnswerR@1"])
    [asked] = found.questions
    for name in ours:
        why = found.explained(name, asked).why
        assert why, name
        assert [entry.rank for entry in why] == list(range(1, min(3, len(found.results[name][asked.id].ids)) + 1)), name
        told = ["bear.md", "Foxes", "Owls"] if name.startswith("D3") else []
        assert [node.name for node in why.tree if node.kind == "document"] == told, name
    for name in (*theirs, "first stage"):
        assert found.explained(name, asked) == (
            None,
            "It cannot explain its results; the table shows what it returned.",
            False,
        )
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_explanations_cost_nothing_where_time_is_taken_and_nobody_is_asked_for_more_than_is_listed():
    events = []

    class Heard(BaseEventHandler):
        def handle(self, event, **_):
            if isinstance(event, ExplanationEvent):
                events.append(event.query)

    slow, handler = Counts(seconds=0.1), Heard()
    get_dispatcher().add_event_handler(handler)
    try:
        components = {"slow": slow, "host": llama_index_ext.UPRRerank(explain=True), "foreign": last_first}
        found = compare(BACKWARDS, components, CORPUS, measures=MEASURES)
        assert (slow.asked, slow.explained, events) == (10, [], [])
        costs, done = copy.deepcopy(found.costs), []
        page = html_report(found, lambda number, whole: done.append((number, whole)))
    finally:
        get_dispatcher().event_handlers.remove(handler)
    listed = [question.text for question in found.extremes("first stage", "slow")[1]]
    assert (slow.asked, slow.explained, events) == (15, listed, listed)
    assert found.costs == costs
    assert costs["slow"].p95 < 0.1
    assert done == [(number, 20) for number in range(1, 21)]
    assert re.findall(r"<h3>(.*?)</h3>", page) == [f"first stage → {name}" for name in components]
    assert all(sides.count("<caption>First 3 of") == 2 for sides in page.split('<div class="sides">')[1:])
    assert "It cannot explain its results" in page


class Changes(Counts):
    def rank(self, query, passages):
        ranking = super().rank(query, passages)
        return Explainable(ranking[::-1], ranking.why) if self.asked > 10 else ranking


@pytest.mark.parametrize(
    ("component", "explained", "note"),
    [
        (Counts(fails={2: RuntimeError(HOSTILE)}), 4, '<p class="partial">Not explained: RuntimeError: &lt;img'),
        (Changes(), 0, "asked again, it ranks differently"),
    ],
)
def test_what_goes_wrong_costs_explanations_and_is_told_in_the_report(component, explained, note):
    page = html_report(compare(BACKWARDS, {"ours": component}, CORPUS, measures=MEASURES))
    assert page.count("<summary>Why: ours</summary>") == explained
    assert note in page
    assert HOSTILE not in page


# The page


def test_text_of_documents_is_shown_as_text():
    corpus = [Passage(f"The fox {HOSTILE} lives here.", id="fox", title=HOSTILE), *CORPUS[1:]]
    rows = [{**BACKWARDS[0], "question": f"Where does the fox {HOSTILE} live?"}]
    page = html_report(compare(rows, {HOSTILE: "UPR", "views": "PathSearch"}, corpus, measures=MEASURES))
    assert "<summary>Why: &lt;img" in page
    assert HOSTILE not in page


@pytest.fixture(scope="module")
def report():
    return html_report(compare(BACKWARDS, {"UPR": "UPR", "wrong": last_first}, CORPUS, measures=["AllR@1", "F1@2"]))


def test_the_report_is_for_everybody(report):
    found = []

    class Elements(HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.append((tag, dict(attributes)))

    Elements().feed(report)
    assert ("html", {"lang": "en"}) in found
    drawn = [attributes for tag, attributes in found if tag == "svg" and "viewbox" in attributes]
    assert len(drawn) >= 3
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


def test_an_interrupted_comparison_asks_nobody_again():
    stops = Counts()

    def rank(query, passages, rank=stops.rank):
        if stops.asked == 7:
            raise KeyboardInterrupt
        return rank(query, passages)

    stops.rank = rank
    with pytest.warns(DrillrankWarning, match="Interrupted"):
        partial = compare(BACKWARDS, {"stops": stops}, CORPUS, measures=MEASURES)
    assert '<p class="note">Not explained.</p>' in html_report(partial)
    assert stops.explained == []
