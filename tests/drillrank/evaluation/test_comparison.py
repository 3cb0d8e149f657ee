"""Comparisons on one's own questions: what is asked, what is found and advised, and what is never lost."""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from drillrank import UPR, Passage, PathSearch, PromptRank
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation import compare, html_report
from drillrank.evaluation.corpora import read_corpus
from langchain_ext import UPRRerank as LangChainUPR
from llama_index_ext import UPRRerank as LlamaIndexUPR
from tests.drillrank.conftest import HashModel
from tests.drillrank.evaluation.samples import BACKWARDS, CORPUS, QUESTIONS, WORDS, LostIds, last_first
from tests.examples import size
from tests.word_files import word_file

MEASURES = ["AllR@1", "F1@2"]


class Backwards(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes[::-1]


class FailsAt:
    """Ranks as UPR, but for some questions; counts what it was asked."""

    def __init__(self, failure, *places):
        self.failure, self.places, self.asked = failure, places, 0

    def __call__(self, query, passages):
        self.asked += 1
        if self.asked in self.places:
            raise self.failure
        return UPR().rank(query, passages)


def many(count, **more):
    return [{**QUESTIONS[n % len(WORDS)], "id": str(n), "candidates": WORDS, **more} for n in range(count)]


def wrong_at(places):
    """The gold passage first, but for some questions."""
    asked = iter(range(10**6))

    def rank(query, passages):
        first = [passage for passage in passages if passage.id in query]
        others = [passage for passage in passages if passage.id not in query]
        return [others[0], *first, *others[1:]] if next(asked) in places else [*first, *others]

    return rank


# What is compared


def test_all_kinds_of_components_see_the_same_candidates():
    seen = {}

    def watching(query, passages):
        seen.setdefault(query, []).append([passage.id for passage in passages])
        return passages

    async def later(query, passages):
        await asyncio.sleep(0)
        return passages[::-1]

    components = {
        "core": "UPR",
        "object": UPR(),
        "class": {"component": UPR, "prior": None},
        "fitted": {"component": "UPR", "fitted": True},
        "PromptRank": PromptRank(),
        "LlamaIndex": LlamaIndexUPR(),
        "LangChain": LangChainUPR(top_n=None, prior=None),  # by default the order counts, which is backwards here
        "path": {"component": "llama_index_ext:UPRRerank", "top_n": 1},
        "postprocessor": Backwards(),
        "compressor": LostIds(),
        "function": last_first,
        "asynchronous": later,
        "one": watching,
        "other": watching,
    }
    found = compare(BACKWARDS, components, CORPUS, measures=MEASURES)
    assert found.complete
    assert found.components == ("first stage", "BM25", "first stage + BM25", *components)
    assert {name: found.mean(name) for name in components if found.mean(name) != 1} == {"one": 0, "other": 0}
    for question in BACKWARDS:
        assert seen[question["question"]] == [question["candidates"]] * 2
    assert {len(record.ids) for record in found.results["path"].values()} == {1}
    assert found.oracle_recall["first stage"] == (1, 1, 1)
    assert found.oracle_recall["core"].inverted == 0

    async def notebook():
        return compare(BACKWARDS, {"later": later}, CORPUS, measures=MEASURES)

    assert asyncio.run(notebook()).mean("later") == 1


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
    assert found.components == ("first stage", "paths", "search")
    assert found.mean("first stage") == found.mean("paths") == found.mean("search") == 1
    assert all(len(record.ids) == 3 for record in found.results["first stage"].values())
    assert found.advice[-1].startswith("The first stage is BM25")
    elsewhere = compare(QUESTIONS, ["UPR"], first_stage=lambda query: CORPUS[:2], measures=MEASURES, candidates=1)
    assert (elsewhere.mean("UPR"), elsewhere.oracle_recall["UPR"].some) == (0.1, 0.1)
    assert "no evidence among the candidates" in elsewhere.advice[-1]


def test_bm25_and_its_fusion_stand_beside_another_first_stage():
    found = compare(QUESTIONS, {"ours": "UPR"}, CORPUS, first_stage=lambda _: CORPUS[:3], measures=["RR", "R@10"])
    assert (found.mean("BM25"), found.mean("first stage", "R@10")) == (1, 0.3)
    ranking = found.results["first stage + BM25"]["q5"]
    assert ranking.ids[:4] == ["fox", "whale", "owl", "crow"]  # in both, then by the rank in one
    assert ranking.scores[0] == pytest.approx(1 / 61 + 1 / 62)
    assert {(pair.before, pair.after) for pair in found.pairs} == {(name, "ours") for name in found.components[:3]}
    assert "BM25 is better: RR" in found.advice[0]
    for rows, corpus, stage in (
        (BACKWARDS, CORPUS, None),
        ([{**row, "candidates": CORPUS} for row in QUESTIONS], None, None),
        (QUESTIONS, None, lambda query: CORPUS[::-1]),
    ):
        found = compare(rows, {"ours": "UPR"}, corpus, first_stage=stage, measures=["RR"])
        assert found.mean("BM25") == 1
        assert all(len(record.ids) == len(WORDS) for record in found.results["first stage + BM25"].values())


def test_a_folder_is_compared_by_its_sections_whatever_its_files_are(tmp_path):
    (tmp_path / "manual.md").write_text(MANUAL)
    (tmp_path / "cleaning.docx").write_bytes(word_file([("Care", 1), ("Scrub the spout once a day.", 0)]))
    rows = [
        {"question": "How long is the heater covered?", "spans": ["covered for two years"]},
        {"question": "When is the spout scrubbed?", "spans": ["spout once a day"]},
    ]
    found = compare(rows, ["UPR", "D3", "MultiViewIndex"], tmp_path, measures=["SpanR@20"])
    assert [found.mean(name) for name in found.components] == [1, 1, 1, 1]


# Figures depend on nobody else


WORDS_OF_MANUALS = "heater kettle lime scale warranty vinegar boil water month cover damage year valve tank"
VOCABULARY = WORDS_OF_MANUALS.split(" ")


def sentences(query):
    """Another index: the corpus in other pieces, which have ids of D3's kind and share no id of the corpus."""
    if len(query) % 7 == 0:
        raise RuntimeError("out of luck")
    pieces = sorted(sentences.pieces, key=lambda piece: -len({*query.split()} & {*piece.split()}))
    return [Passage(piece, id=f"0:{number}") for number, piece in enumerate(pieces)]


COMPONENTS = {
    "UPR": "UPR",
    "first stage counts": {"component": "UPR", "prior": "retrieval"},
    "D3": "D3",
    "views": "MultiViewIndex",
    "sentences": sentences,
    "backwards": last_first,
}


@given(st.integers(0, 10**6), st.sampled_from(["gold", "spans", "answers"]))
@settings(max_examples=size(12))
@pytest.mark.filterwarnings("ignore:The comparison is not complete")
def test_figures_are_the_same_alone_beside_others_in_another_order_and_from_results(seed, kind):
    chance, paragraphs = random.Random(seed), []

    def figures(found, name):
        said = found.to_dict()
        own = {key: value for key, value in said["components"][name].items() if key != "cost"}
        return own, {id_: values[name] for id_, values in said["values"].items()}

    with tempfile.TemporaryDirectory() as folder:
        for number in range(chance.randint(1, 3)):
            parts = ["# Manual"]
            for section in range(chance.randint(2, 5)):
                own = [" ".join(chance.choices(VOCABULARY, k=chance.randint(3, 14))) + "." for _ in range(2)]
                parts += [f"## {chance.choice(VOCABULARY)} {section}", *own]
                paragraphs += own
            Path(folder, f"{number}.md").write_text("\n\n".join(parts) + "\n")
        sentences.pieces = [piece for one in paragraphs for piece in (one[: len(one) // 2], one[len(one) // 2 :])]
        pool = [*read_corpus(folder).passages] if kind == "gold" else paragraphs
        right = [chance.sample(pool, k=min(2, len(pool))) for _ in range(4)]
        right = [[" ".join(one[0].split()[:2])] if kind == "answers" else one for one in right]
        rows = [{"question": " ".join(chance.choices(VOCABULARY, k=3)), kind: one} for one in right]
        asked = {"measures": ["nDCG@10", "RR", "R@1", "R@5", "AllR@2", "F1@5"]}
        file = Path(folder, ".results.jsonl")
        together, again = (compare(rows, COMPONENTS, folder, results=file, **asked) for _ in range(2))
        turned = compare(rows, dict(reversed(COMPONENTS.items())), folder, **asked)
        name = chance.choice([*COMPONENTS])
        alone = compare(rows, {name: COMPONENTS[name]}, folder, **asked)
        for other in (together, again, turned):
            assert figures(alone, name) == figures(other, name)
            assert figures(alone, "first stage") == figures(other, "first stage")


# Advice


ALWAYS_WRONG = {n for n in range(200) if n % len(WORDS)}  # places where the candidates begin with another one


@pytest.mark.parametrize(
    ("rows", "component", "verdict", "said"),
    [
        (BACKWARDS, "UPR", "better", [
            "UPR helps: AllR@1 +1.000 (+1.000 to +1.000). BM25 is not shown to be worse: AllR@1 +0.000 (+0.000 to "
            "+0.000)."
        ]),
        ([{**row, "candidates": row["gold"] + WORDS} for row in BACKWARDS], last_first, "worse", ["hurts a first st"]),
        (BACKWARDS[:3], "UPR", "cannot tell", ["3 questions cannot tell", "about 7 such questions would"]),
        ([{**row, "candidates": [*row["gold"], *WORDS]} for row in many(600)], wrong_at({7}), "cannot tell",
         ["are practically equal: AllR@1 -0.002"]),
        (many(200), wrong_at({*range(200)} - {*sorted(ALWAYS_WRONG)[:21]}), "cannot tell",
         ["200 questions cannot tell", "so small a difference is not worth the questions that would tell"]),
    ],
)  # fmt: skip
def test_advice_says_what_the_test_shows(rows, component, verdict, said):
    found = compare(rows, {"UPR": component}, CORPUS, measures=["AllR@1"])
    assert found.pair("first stage", "UPR").verdict == verdict
    assert all(part in found.advice[0] for part in said), found.advice
    change = found.values["UPR"]["AllR@1"] - found.values["first stage"]["AllR@1"]
    worse, better = found.extremes("first stage", "UPR", 3)
    assert (len(worse), len(better)) == (min(3, sum(change < 0)), min(3, sum(change > 0)))


def test_what_brings_only_unjudged_results_is_not_said_to_hurt():
    def elsewhere(query):
        return [Passage(f"Of another index: {query}", id="another's")]

    def at_times(query):
        return [CORPUS[0]] if "fox" in query else elsewhere(query)

    found = compare(QUESTIONS, {"elsewhere": elsewhere, "at times": at_times}, CORPUS, measures=["AllR@1"])
    assert found.advice[0].startswith("No result of elsewhere is in the corpus or among the candidates")
    assert found.advice[1].startswith("at times hurts")
    assert (found.unjudged["elsewhere"], found.unjudged["at times"], found.unjudged["first stage"]) == (10, 9, 0)
    answers = [{"question": row["question"], "answers": ["region"]} for row in QUESTIONS]
    assert compare(answers, {"elsewhere": elsewhere}, CORPUS, measures=["AnswerR@1"]).unjudged["elsewhere"] == 0


# Answers and the papers' strategies


MANUAL = """# Kettle\n\nRead this.\n
## Warranty\n\nThe heater is covered for two years.\n\nDamage by lime scale is left out.\n
## Cleaning\n\nBoil vinegar once a month.\n"""


def reader(prompt):
    """An oracle: chooses and answers what the question's words name."""
    asked = prompt.rpartition("Question:")[2] if "Question:" in prompt else prompt
    word = "heater" if "heater" in asked else "vinegar"
    if "each with its number" in prompt:
        answers = {"heater": "two years", "vinegar": "once a month"}
        number = re.search(rf"\[(\d+)\](?:(?!\n\[).)*{answers[word]}", prompt, re.DOTALL)
        return f"{answers[word].capitalize()} [{number[1]}]." if number else "No answer."
    if "yes or no" in prompt:
        return "yes" if word in prompt.partition("Question:")[0] else "no"
    if "section names" in prompt:
        return "Warranty" if word == "heater" else "Cleaning"
    return ", ".join(re.findall(rf"(\d+)[^\n]*{word}", prompt.partition("Question:")[0]))


def test_the_papers_strategies_stand_beside_each_other_with_evidence_answers_and_tokens(tmp_path, hash_model):
    (tmp_path / "manual.md").write_text(MANUAL)
    rows = [
        {"question": "How long is the heater covered?", "spans": ["The heater is covered for two years."],
         "answers": ["two years", "24 months"]},
        {"question": "When is vinegar boiled?", "spans": ["Boil vinegar once a month."], "answers": ["every month"]},
    ]  # fmt: skip
    strategies = ["base", "hierbase", "paragraph", "chunk", "map-reduce", "map-reduce-optimised", "monot5"]
    components = {
        name: {"component": "D3", "llm": reader, "unit": "paragraph", "paragraphs": name} for name in strategies
    }
    components["monot5"] |= {"model": hash_model()}
    components["nothing"] = lambda query: []
    prices, file = {"prompt": 1.0, "completion": 2.0}, tmp_path / ".results.jsonl"
    found = compare(rows, components, tmp_path, llm=reader, prices=prices, results=file)
    assert found.complete
    assert found.measures[-4:] == ("SpanR@500", "AnswerR@5", "EM", "AnswerF1")
    for name in strategies[:-1]:
        assert [found.mean(name, of) for of in ("SpanR@500", "EM")] == [1, 0.5]
        assert found.mean(name, "AnswerF1") == pytest.approx((1 + 0.5) / 2)
    assert [found.costs[name].calls for name in strategies[:-1]] == [3, 4, 8, 2, 10, 4]  # one paragraph needs no call
    assert found.costs["monot5"].calls == 2
    assert all(found.costs[name].answer_tokens > 0 for name in strategies)
    assert all(found.costs[name].prompt_tokens > 0 for name in strategies)
    assert (found.mean("nothing", "EM"), found.results["nothing"]["1"].answer) == (0, "")
    cost = found.costs["first stage"]
    assert (cost.prompt_tokens, found.mean("first stage", "EM")) == (None, 0.5)
    assert 0 < cost.money < found.costs["base"].money
    assert found.to_dict()["answers"]["base"] == {"1": "Two years.", "2": "Once a month."}
    _, shown = found.tables()["Means and costs"]
    assert [row[0] for row in shown][-8:-4] == [
        "tokens per question",
        "calls per question",
        "tokens per answer",
        "money",
    ]
    assert "Two years." in html_report(compare(rows, {"one": components["base"], "none": lambda _: []}, tmp_path,
                                               llm=reader, primary="EM"))  # fmt: skip

    def silent(prompt):
        raise AssertionError

    again = compare(rows, {**components, "base": {**components["base"]}}, tmp_path, llm=reader, results=file)
    assert again.to_dict()["answers"] == found.to_dict()["answers"]
    with pytest.warns(DrillrankWarning, match="computed again|not complete"):
        other = compare(rows, {"base": components["base"]}, tmp_path, llm=silent, results=file)
    assert other.failed["base"] == 2
    with pytest.raises(InvalidInput, match="EM judges answers: pass an LLM"):
        compare(rows, components, tmp_path, measures=["EM"])


# Failures, interruptions and recorded results


def test_a_component_that_raises_loses_its_questions_alone(tmp_path):
    file = tmp_path / "results.jsonl"
    flaky, broken = FailsAt(ValueError("quota"), 5), FailsAt(OSError("no network"), *range(100))
    components = {"flaky": flaky, "broken": broken, "ends": lambda _query, _passages: sys.exit(3), "ours": "UPR"}
    with pytest.warns(DrillrankWarning, match=r"broken failed on Question 1: OSError: no network"):
        found = compare(BACKWARDS, components, CORPUS, measures=[*MEASURES, "RR"], results=file)
    assert not found.complete
    assert "flaky failed on Question 5: ValueError: quota" in found.problems
    assert any("SystemExit: 3" in problem for problem in found.problems)
    assert [found.failed[name] for name in components] == [1, 10, 10, 0]
    assert [found.values["flaky"][measure][4] for measure in found.measures] == [0, 0, 0]
    assert (found.mean("flaky"), found.mean("broken"), found.mean("ours")) == (0.9, 0, 1)
    assert found.pair("flaky", "ours").difference.mean == pytest.approx(0.1)
    assert broken.asked == 5
    assert "broken failed 5 times in a row and was given up." in found.problems
    assert "It failed on 1 of 10 questions, which count 0." in found.advice[0]
    assert found.advice[1] == "broken answered no question."
    assert json.dumps(found.to_dict(), allow_nan=False)
    again = compare(BACKWARDS, {"flaky": flaky}, CORPUS, measures=MEASURES, results=file)
    assert again.complete
    assert flaky.asked == 11  # the one that failed, and no other
    page = html_report(found)
    assert "It failed: OSError: no network" in page
    assert re.search(r'<th scope="row">failed</th>(<td>\d+</td>){3}<td>1</td><td>10</td>', page)


def test_an_interruption_leaves_a_partial_comparison_that_goes_on_later(tmp_path):
    file = tmp_path / "results.jsonl"
    slow = FailsAt(KeyboardInterrupt(), 7)
    with pytest.warns(DrillrankWarning, match="Interrupted: 6 of 10"):
        found = compare(BACKWARDS, {"slow": slow}, CORPUS, measures=MEASURES, results=file)
    assert (found.complete, found.pair("first stage", "slow").difference.questions) == (False, 6)
    with file.open("ab") as lines:
        lines.write(b'{"component": "slow", "spec')  # what a kill leaves
    again = compare(BACKWARDS, {"slow": slow}, CORPUS, measures=MEASURES, results=file)
    assert (again.complete, slow.asked, again.mean("slow")) == (True, 11, 1)
    with pytest.raises(InvalidInput, match="results of other questions"):
        compare(QUESTIONS, {"slow": slow}, CORPUS, measures=MEASURES, results=file)


class Depth:
    """Ranks as UPR as many as its setting says; counts what it is asked."""

    def __init__(self, most):
        self.most, self.asked = most, 0

    def __call__(self, query, passages):
        self.asked += 1
        return UPR().rank(query, passages, self.most)


@pytest.mark.parametrize(
    ("one", "other", "stage"),
    [
        ({"component": "UPR", "depth": 2}, "UPR", None),
        (Depth(1), Depth(2), None),
        ({"component": last_first, "version": "1"}, {"component": last_first, "version": "2"}, None),
        ("UPR", "UPR", lambda query: [passage for passage in CORPUS if passage.id not in query]),
    ],
)
def test_what_has_changed_is_computed_anew_and_nothing_else(tmp_path, one, other, stage):
    asked = {"corpus": CORPUS, "measures": ["RR"], "results": tmp_path / "results.jsonl"}
    compare(QUESTIONS, {"x": one}, **asked)
    assert compare(QUESTIONS, {"x": one}, **asked).complete
    assert not isinstance(one, Depth) or one.asked == 10
    with pytest.warns(
        DrillrankWarning, match=r"contains results of (x|first stage) with other settings.*computed again"
    ):
        changed = compare(QUESTIONS, {"x": other}, first_stage=stage, **asked)
    fresh = compare(QUESTIONS, {"x": other}, CORPUS, measures=["RR"], first_stage=stage)
    assert [record.ids for record in changed.results["x"].values()] == [r.ids for r in fresh.results["x"].values()]


def test_results_of_another_version_are_computed_anew_and_no_secret_is_written_down(tmp_path, monkeypatch):
    file, counts = tmp_path / "results.jsonl", Depth(3)
    compare(BACKWARDS, {"ours": counts}, CORPUS, measures=["RR"], results=file)
    monkeypatch.setattr("drillrank.evaluation.results_file.version", lambda _: "9.9")
    with pytest.warns(DrillrankWarning, match="of another version"):
        compare(BACKWARDS, {"ours": counts}, CORPUS, measures=["RR"], results=file)
    assert counts.asked == 20
    named = {"component": "tests.drillrank.evaluation.test_comparison:Depth", "most": "sk-secret"}
    with pytest.warns(DrillrankWarning):  # no number of results
        compare(BACKWARDS, {"named": named, "made": Depth("sk-secret")}, CORPUS, measures=["RR"], results=file)
    assert "Depth" in file.read_text()
    assert not [row for row in map(json.loads, file.read_text().splitlines()) if "sk-secret" in row.get("spec", "")]


# What cannot be used


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(({"measures": [name]}, "There is no measure|cannot be computed") for name in
          ["nDCG@0", "R@-1", "RBP(p=2)", "alpha_nDCG@5", "P(rel=0)@5", f"P@{10**20}", "", "P@5 R@5"]),
        ({"components": {"x": "UPPR"}}, "x: No component is called 'UPPR'"),
        ({"components": {"x": {"component": "UPR", "temprature": 2}}}, "x: .*temprature"),
        ({"components": {"x": "MonoT5"}}, "x: MonoT5 needs a neural model"),
        ({"components": {"x": "SelfAsk"}}, "x: SelfAsk needs more than questions"),
        ({"components": {"x": "D3"}}, "x: D3 reads documents"),
        ({"components": {"x": "no_such_module:thing"}}, "x: 'no_such_module:thing' cannot be loaded"),
        ({"components": {"x": "raises_on_import.ranker"}}, r"cannot be loaded: RuntimeError: no key\."),
        ({"components": {"x": "keyless:Ranker"}}, "^x cannot be built: ValueError: no key$"),
        ({"components": {"x": 7}}, "x: A component must rank, got a int"),
        ({"components": {"first stage": "UPR"}}, "take part anyway"),
        ({"components": {}}, "components must name what to compare"),
        ({"measures": ["AnswerR@1"]}, "AnswerR@1 needs answers, and Question 1 has none"),
        ({"corpus": None}, "There is nothing to rank"),
        ({"prices": {"tokens": 1}}, "prices must be"),
        ({"corpus": [CORPUS[0], Passage("Another fox.", id="fox")]}, "Passage 2 has the id 'fox' of another"),
        ({"questions": [BACKWARDS[0], QUESTIONS[1]]}, "no candidates, and other questions have"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named_before_anything_is_asked(tmp_path, monkeypatch, changes, said):
    (tmp_path / "keyless.py").write_text("class Ranker:\n    def __init__(self):\n        raise ValueError('no key')\n")
    (tmp_path / "raises_on_import.py").write_text("raise RuntimeError('no key')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    never = {"never": lambda _query, _passages: pytest.fail("asked")}
    asked = {"questions": QUESTIONS, "components": never, "corpus": CORPUS, "measures": MEASURES, **changes}
    with pytest.raises(InvalidInput, match=said):
        compare(**asked)


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
    with pytest.raises(InvalidInput, match=r"paths: A kind of links must be one of metadata, .*, got 'title'\."):
        compare(rows, {"paths": {"component": "PathSearch", "links": ["title"]}}, passages)


class WordModel(HashModel):
    """Model of hashes whose tokens are words."""

    def first_tokens(self, text, count):
        return text if len(text.split()) <= count else " ".join(text.split()[:count])


def test_the_paper_s_preset_of_a_path_search_sets_search_and_prompts():
    passages = [
        Passage("Alan Turing was born in Maida Vale.", id="turing", title="Alan Turing", links=("vale",)),
        Passage("Maida Vale is a district. Alan Turing was born here.", id="vale", title="Maida Vale"),
        Passage("Basel lies on the Rhine. Nobody was born.", id="basel", title="Basel"),
    ]
    rows = [{"question": "Which district was Turing born in?", "gold": ["turing", "vale"]}]
    named, own = WordModel(), WordModel()
    compare(rows, {"paths": {"component": "PathSearch", "model": named, "preset": "paper"}}, passages)
    PathSearch(PromptRank(own, preset="paper"), passages, preset="paper").search(rows[0]["question"])
    assert sorted(map(str, named.requests)) == sorted(map(str, own.requests))
    assert own.requests
    with pytest.raises(InvalidInput, match="unigram"):
        compare(rows, {"paths": {"component": "PathSearch", "preset": "paper"}}, passages)


def test_a_comparison_prints_its_tables_and_advice_and_money_where_tokens_are_told():
    def paid(query, passages):
        found = UPR().rank(query, passages)
        found[0].details["usage"] = {"prompt_tokens": 1_000, "completion_tokens": 500, "llm_calls": 2}
        return found

    prices = {"prompt": 2.0, "completion": 10.0}
    found = compare(BACKWARDS, {"UPR": "UPR", "[red]": paid}, CORPUS, measures=MEASURES, prices=prices)
    cost = found.costs["[red]"]
    assert (cost.prompt_tokens, cost.completion_tokens, cost.calls) == (10_000, 5_000, 20)
    assert cost.money == pytest.approx(0.07)
    assert found.costs["UPR"].money is None
    assert 0 < cost.p50 <= cost.p95
    shown = str(found)
    assert re.search(r"┃ first stage +┃ BM25 +┃ first stage \+ BM25 +┃ UPR +┃ \[red\] +┃", shown)
    assert re.search(r"│ AllR@1 +│ 0\.000 +│ 1\.000 +│ 0\.000 +│ 1\.000 +│ 1\.000 +│", shown)
    assert "Differences in AllR@1" in shown
    assert re.search(r"first stage → UPR +│ \+1\.000 +│ \+1\.000 to", shown)
    assert all(line[:40] in shown for line in found.advice)
    assert "Comparison(" not in shown


def test_of_a_first_stage_that_fails_no_ceiling_is_told():
    def broken(query):
        raise RuntimeError("no index")

    with pytest.warns(DrillrankWarning, match="no index"):
        found = compare(QUESTIONS, {"UPR": "UPR", "finds": lambda query: CORPUS}, CORPUS, first_stage=broken)
    assert [found.failed[name] for name in ("first stage", "UPR", "finds", "BM25")] == [10, 10, 0, 0]
    assert (found.mean("UPR"), found.mean("finds", "R@10"), found.mean("BM25")) == (0, 1, 1)
    assert found.advice[0] == "UPR answered no question."
    assert not any("no evidence among the candidates" in line for line in found.advice)
