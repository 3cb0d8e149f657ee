"""What a comparison says of a component does not depend on who stands beside it, nor on when it was asked."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import D3, UPR, Passage, PathSearch, PromptRank, load_language_model
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import DrillrankWarning
from drillrank.evaluation import compare, html_report
from drillrank.evaluation.corpus import read_corpus
from drillrank.evaluation.records import spec_of
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.prior import PathPrior
from langchain_ext import UPRRerank as LangChainUPR
from llama_index_ext import UPRRerank as LlamaIndexUPR
from tests.drillrank.test_comparison import BACKWARDS, CORPUS, QUESTIONS, WORDS, last_first

VOCABULARY = [
    "heater",
    "kettle",
    "lime",
    "scale",
    "warranty",
    "vinegar",
    "boil",
    "water",
    "month",
    "cover",
    "damage",
    "year",
    "open",
    "screw",
    "valve",
    "tank",
]
MEASURES = ["nDCG@10", "RR", "AP", "R@1", "R@5", "AllR@2", "F1@5"]


def figures(found, name):
    """All but times and what compares it with others."""
    said = found.to_dict()
    own = {key: value for key, value in said["components"][name].items() if key != "cost"}
    return own, {id_: values[name] for id_, values in said["values"].items()}


def sentences(query):
    """Another index: the corpus in other pieces, which have ids of D3's kind and share no id of the corpus."""
    if len(query) % 7 == 0:
        raise RuntimeError("out of luck")
    pieces = sorted(sentences.pieces, key=lambda piece: -len({*query.split()} & {*piece.split()}))
    return [Passage(piece, id=f"0:{number}") for number, piece in enumerate(pieces)]


def backwards(query, passages):
    if len(query) % 5 == 0:
        raise RuntimeError("out of luck")
    return passages[::-1]


COMPONENTS = {
    "UPR": "UPR",
    "first stage counts": {"component": "UPR", "prior": "retrieval"},
    "D3": "D3",
    "views": "MultiViewIndex",
    "sentences": sentences,
    "backwards": backwards,
}


def manual(chance):
    """A document of sections with one to three paragraphs, and the paragraphs."""
    parts, paragraphs = ["# Manual"], []
    for number in range(chance.randint(2, 5)):
        parts.append(f"## {' '.join(chance.choices(VOCABULARY, k=2))} {number}")
        for _ in range(chance.randint(1, 3)):
            paragraphs.append(" ".join(chance.choices(VOCABULARY, k=chance.randint(3, 14))) + ".")
            parts.append(paragraphs[-1])
    return "\n\n".join(parts) + "\n", paragraphs


def evidence(chance, kind, paragraphs, ids):
    if kind == "gold":
        return {"gold": chance.sample(ids, k=min(2, len(ids)))}
    chosen = chance.sample(paragraphs, k=min(2, len(paragraphs)))
    if kind == "spans":
        return {"spans": chosen}
    return {"answers": [" ".join(chosen[0].strip(".").split()[:2])]}


@given(st.integers(0, 10**6), st.sampled_from(["gold", "spans", "answers"]))
@settings(max_examples=12)
@pytest.mark.filterwarnings("ignore:The comparison is not complete")
def test_figures_are_the_same_alone_beside_others_in_another_order_and_from_results(seed, kind):
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        texts, paragraphs = zip(*(manual(chance) for _ in range(chance.randint(1, 3))), strict=True)
        for number, text in enumerate(texts):
            Path(folder, f"{number}.md").write_text(text)
        paragraphs = [one for some in paragraphs for one in some]
        sentences.pieces = [piece for one in paragraphs for piece in (one[: len(one) // 2], one[len(one) // 2 :])]
        ids = list(read_corpus(folder).passages)
        rows = [
            {"question": " ".join(chance.choices(VOCABULARY, k=3)), **evidence(chance, kind, paragraphs, ids)}
            for _ in range(4)
        ]
        file = Path(folder).with_suffix(".jsonl")
        try:
            together = compare(rows, COMPONENTS, folder, measures=MEASURES, results=file)
            again = compare(rows, COMPONENTS, folder, measures=MEASURES, results=file)
            turned = compare(rows, dict(reversed(COMPONENTS.items())), folder, measures=MEASURES)
        finally:
            file.unlink(missing_ok=True)
        for name, component in COMPONENTS.items():
            alone = compare(rows, {name: component}, folder, measures=MEASURES)
            wanted = figures(alone, name)
            assert wanted == figures(together, name) == figures(turned, name) == figures(again, name)
            assert figures(alone, "first stage") == figures(together, "first stage")


def test_pieces_that_others_bring_are_no_evidence(tmp_path):
    """As it was at first: R@5 of UPR 1.000 alone, and .333 beside D3."""
    text = "# Kettle\n\n## Warranty\n\nThe heater is covered for two years.\n\nDamage by lime scale is left out.\n"
    (tmp_path / "manual.md").write_text(f"{text}\n## Cleaning\n\nBoil vinegar and water once a month.\n")
    rows = [
        {
            "question": "How long is the heater covered?",
            "spans": ["The heater is covered for two years.", "Damage by lime scale is left out."],
        }
    ]
    alone = compare(rows, ["UPR"], tmp_path, measures=["R@5"])
    beside = compare(rows, ["UPR", "D3"], tmp_path, measures=["R@5"])
    assert alone.mean("UPR") == beside.mean("UPR") == beside.mean("first stage") == 1


def test_texts_under_one_id_are_each_components_own():
    answered = [{"question": "Where does the owl live?", "answers": ["region 2"], "candidates": WORDS}]
    components = {
        "wrong": lambda query: [Passage("Nobody knows.", id="other:1")],
        "right": lambda query: [Passage("In region 2.", id="other:1")],
    }
    for order in (components, dict(reversed(components.items()))):
        found = compare(answered, order, CORPUS, measures=["AnswerR@1", "RR"])
        assert [found.mean(name) for name in ("wrong", "right")] == [0, 1]
        assert [found.mean(name, "RR") for name in ("wrong", "right")] == [0, 1]


# Results of an earlier run


class Depth:
    """Ranks as UPR as many as its setting says; counts what it is asked."""

    def __init__(self, most):
        self.most, self.asked = most, 0

    def __call__(self, query, passages):
        self.asked += 1
        return UPR().rank(query, passages, self.most)


def test_results_of_an_object_with_other_settings_are_computed_anew(tmp_path):
    file = tmp_path / "results.jsonl"
    first, same, other = Depth(1), Depth(1), Depth(2)
    compare(BACKWARDS, {"ours": first}, CORPUS, measures=["RR"], results=file)
    compare(BACKWARDS, {"ours": same}, CORPUS, measures=["RR"], results=file)
    assert (first.asked, same.asked) == (10, 0)
    with pytest.warns(DrillrankWarning, match="holds results of ours with other settings"):
        found = compare(BACKWARDS, {"ours": other}, CORPUS, measures=["RR"], results=file)
    assert other.asked == 10
    assert {len(record.ids) for record in found.results["ours"].values()} == {2}
    compare(BACKWARDS, {"ours": Depth(1)}, CORPUS, measures=["RR"], results=file)


def test_results_over_other_candidates_are_computed_anew(tmp_path):
    """As it was at first: with another first stage, rerankers kept what they had made of the old candidates."""
    file = tmp_path / "results.jsonl"
    rerank = {"ours": "UPR"}

    def nothing_right(query):
        return [passage for passage in CORPUS if passage.id not in query][:3]

    with_bm25 = compare(QUESTIONS, rerank, CORPUS, measures=["RR"], results=file)
    assert with_bm25.mean("ours") == 1
    with pytest.warns(DrillrankWarning, match="over other candidates") as warned:
        found = compare(QUESTIONS, rerank, CORPUS, first_stage=nothing_right, measures=["RR"], results=file)
    assert (found.mean("first stage"), found.mean("ours")) == (0, 0)
    assert [str(one.message).split(" holds results of ")[1].split(" with ")[0] for one in warned] == [
        "first stage",
        "ours",
    ]


def test_results_of_another_version_are_computed_anew(tmp_path, monkeypatch):
    file, counts = tmp_path / "results.jsonl", Depth(3)
    compare(BACKWARDS, {"ours": counts}, CORPUS, measures=["RR"], results=file)
    monkeypatch.setattr("drillrank.evaluation.records.version", lambda _: "9.9")
    with pytest.warns(DrillrankWarning, match="of another version"):
        compare(BACKWARDS, {"ours": counts}, CORPUS, measures=["RR"], results=file)
    assert counts.asked == 20
    function = {"component": last_first, "version": "1"}
    compare(BACKWARDS, {"theirs": function}, CORPUS, measures=["RR"], results=file)
    with pytest.warns(DrillrankWarning, match="holds results of theirs"):
        compare(BACKWARDS, {"theirs": {**function, "version": "2"}}, CORPUS, measures=["RR"], results=file)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: UPR(), lambda: UPR(load_language_model("unigram", mu=30.0))),
        (lambda: UPR(), lambda: UPR(prior=None)),
        (lambda: D3(), lambda: D3(settings=D3Settings(sections=3))),
        (lambda: path_search(PathPrior()), lambda: path_search(PathPrior(jump=0.9))),
        (lambda: LlamaIndexUPR(), lambda: LlamaIndexUPR(prior="cosine")),
        (lambda: LlamaIndexUPR(), lambda: LlamaIndexUPR(model=load_language_model("unigram", mu=30.0))),
        (lambda: LangChainUPR(), lambda: LangChainUPR(top_n=5)),
        (lambda: {"component": UPR()}, lambda: {"component": UPR(prior=None)}),
    ],
)
def test_objects_are_told_apart_by_their_settings_and_by_nothing_else(one, other):
    assert spec_of(one()) == spec_of(one()) != spec_of(other())


def path_search(prior):
    return PathSearch(PromptRank(), CORPUS, settings=PathSettings(link_prior=prior))


def test_no_secret_of_a_component_is_written_down(tmp_path):
    file = tmp_path / "results.jsonl"
    settings = {"component": "tests.drillrank.test_comparison_company:Depth", "most": "sk-secret"}
    with pytest.warns(DrillrankWarning):  # no number of results
        compare(BACKWARDS, {"named": settings, "made": Depth("sk-secret")}, CORPUS, measures=["RR"], results=file)
    assert "Depth" in file.read_text()
    assert '"spec"' in file.read_text()
    assert not [row for row in map(json.loads, file.read_text().splitlines()) if "sk-secret" in row.get("spec", "")]


# What five lines do better


def test_bm25_and_its_fusion_stand_beside_another_first_stage():
    def wrong(query):
        return CORPUS[:3]

    found = compare(QUESTIONS, {"ours": "UPR"}, CORPUS, first_stage=wrong, measures=["RR", "R@10"])
    assert found.components == ("first stage", "BM25", "first stage + BM25", "ours")
    assert (found.mean("BM25"), found.mean("first stage", "R@10")) == (1, 0.3)
    ranking = found.results["first stage + BM25"]["q5"]
    assert ranking.ids[:4] == ["fox", "whale", "owl", "crow"]  # in both, then by the rank in one
    assert ranking.scores[0] == pytest.approx(1 / 61 + 1 / 62)
    pairs = {(pair.before, pair.after) for pair in found.pairs}
    assert pairs == {(name, "ours") for name in found.components[:3]}
    assert "BM25 is better: RR" in found.advice[0]
    assert all(name in html_report(found) for name in found.components)


def test_bm25_ranks_the_candidates_that_questions_name_and_those_of_a_first_stage_without_a_corpus():
    for rows, corpus, stage in (
        (BACKWARDS, CORPUS, None),
        ([{**row, "candidates": CORPUS} for row in QUESTIONS], None, None),
        (QUESTIONS, None, lambda query: CORPUS[::-1]),
    ):
        found = compare(rows, {"ours": "UPR"}, corpus, first_stage=stage, measures=["RR"])
        assert found.mean("BM25") == 1
        assert all(len(record.ids) == len(WORDS) for record in found.results["first stage + BM25"].values())


def test_where_the_first_stage_is_bm25_it_says_so_and_is_shown_once():
    found = compare(QUESTIONS, {"ours": "UPR"}, CORPUS, measures=["RR"])
    assert found.components == ("first stage", "ours")
    assert found.advice[-1].startswith("The first stage is BM25")


# Failures


def test_failures_count_zero_in_every_measure_and_are_shown(capsys):
    def broken(query):
        raise OSError("no index")

    def sometimes(query, passages):
        if "owl" in query:
            raise OSError("no network")
        return UPR().rank(query, passages)

    with pytest.warns(DrillrankWarning, match="no index"):
        found = compare(QUESTIONS, {"ours": "UPR", "finds": lambda query: CORPUS}, CORPUS, first_stage=broken)
    assert [found.failed[name] for name in ("first stage", "ours", "finds", "BM25")] == [10, 10, 0, 0]
    assert (found.mean("ours"), found.mean("finds", "R@10"), found.mean("BM25")) == (0, 1, 1)
    with pytest.warns(DrillrankWarning, match="no network"):
        found = compare(BACKWARDS, {"sometimes": sometimes}, CORPUS)
    for measure in found.measures:
        assert list(found.values["sometimes"][measure])[2] == 0
    assert found.mean("sometimes", "RR") == 0.9
    assert found.to_dict()["components"]["sometimes"]["failed"] == 1
    assert "It failed: OSError: no network" in html_report(found)
