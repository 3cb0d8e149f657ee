"""Explanations add up to the scores, whatever ranked, and show text as text, wherever they are shown."""

from __future__ import annotations

import copy
import json
import pickle
import re
from html.parser import HTMLParser
from io import StringIO
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from drillrank import BRMGR, D3, UPR, MonoT5, Passage, Path, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.evaluation import explain
from drillrank.explanation import Explanation, Explanations, Node, Term
from drillrank.explanation.terms import CONTROL, GAINS, NOTHING, PATH, on_one_line
from drillrank.likelihood import UnigramModel
from drillrank.multihop.links import RetrievedLinks, passage_links
from drillrank.multihop.mentions import TitleMentions
from tests.drillrank.conftest import HashModel
from tests.drillrank.helpers import add_up, refuses

QUERY = "Where does the red fox live?"
TEXTS = st.lists(st.text("abfox red livewhale ", max_size=40), min_size=1, max_size=6, unique=True)
CHAIN = [
    Passage("Alan Turing was born in Maida Vale.", id="turing", title="Turing", links=("vale",)),
    Passage("Maida Vale is a residential district of London.", id="vale", title="Maida Vale"),
    Passage("Basel lies on the Rhine.", id="basel"),
    Passage("The red fox is the largest of the true foxes.", id="fox"),
]
BIRTH = "Which residential district was Turing born in?"


def test_a_passage_is_named_by_its_title_or_its_id_or_else_its_text():
    passages = [Passage("a", title="A", id="1"), Passage("b", id="2"), Passage("c")]
    assert {item.name for item in UPR().rank(QUERY, passages).explain()} == {"A", "2", "c"}


@given(TEXTS, st.sampled_from([None, "retrieval"]), st.sampled_from([None, 1]))
def test_of_upr(texts, prior, top_n):
    ranker = UPR(prior=prior)
    ranking = ranker.rank(QUERY, texts, top_n)
    found = ranking.explain()
    add_up(found, ranking)
    assert explain(QUERY, list(ranking), ranker) == found or top_n  # of the others' words nothing is known
    assert ranker.explain(QUERY, ranking, texts) == found == explain(QUERY, ranking)
    independent = UnigramModel().log_likelihood([*((text, QUERY) for text in texts), ("", QUERY)])
    for item, entry in zip(found, ranking, strict=True):
        own = independent[entry.details["position"]].log_probs - independent[-1].log_probs
        assert [token.value for token in item.tokens] == pytest.approx(own.tolist(), abs=1e-6)


NUMBERS = st.floats(-1, 1, allow_nan=False)


@given(
    passages=st.lists(st.tuples(st.text("abfox red ", max_size=20), st.sampled_from(["", "Fox", "a b"])), min_size=1),
    prior=st.sampled_from(["retrieval", "cosine"]),
    weight=st.sampled_from([0.3, 1.0, 4.0]),
    mu=st.sampled_from([1e-3, 30.0, 1e5]),
    first=st.sampled_from(["generated", "retrieved"]),
    data=st.data(),
)
def test_with_scores_of_a_first_stage_weights_titles_and_any_smoothing(passages, prior, weight, mu, first, data):
    given_passages = [Passage(text, id=str(n), title=title) for n, (text, title) in enumerate(passages[:6])]
    scores = [data.draw(NUMBERS) for _ in given_passages]
    model = UnigramModel(mu=mu)
    weighted = {"prior_weight": weight}
    paths = [Path((one,)) for one in given_passages]
    prompt_rank = PromptRank(model, temperature=0.7, prior=prior, settings=weighted)
    brmgr = BRMGR(model, prior=prior, settings={"first": first, **weighted})
    for ranking in (
        UPR(model, prior=prior, **weighted).rank(QUERY, given_passages, scores=scores),
        prompt_rank.rank(QUERY, paths, scores=scores),
        brmgr.rank(QUERY, given_passages, ["A fox.", "No."], scores=scores),
    ):
        add_up(ranking.explain(), ranking)


@given(TEXTS, st.sampled_from([0.7, 1.0, 1.4]), st.sampled_from(["max", "mean"]))
def test_of_prompt_rank(texts, temperature, ensemble):
    ranker = PromptRank(temperature=temperature, ensemble=ensemble)
    paths = [Path((Passage(text),)) for text in texts] + [Path((Passage(texts[0]), Passage("a red fox")))]
    ranking = ranker.rank(QUERY, paths)
    found = explain(QUERY, ranking, ranker)
    add_up(found, ranking)
    assert found == ranking.explain()
    for item, entry in zip(found, ranking, strict=True):
        several = len(entry.passage.passages) if len(entry.passage.passages) > 1 else 0
        assert [len(token.terms) for token in item.tokens] == [several] * len(item.tokens)


def test_of_path_search_with_the_document_that_brings_each_word():
    search = PathSearch(PromptRank(), CHAIN, links=passage_links)
    ranking = search.search(BIRTH)
    found = ranking.explain()
    add_up(found, ranking)
    assert {item.name for item in found[:2]} == {"Turing", "Maida Vale"}
    by_document = {token.name: {part.name: part.value for part in token.terms} for token in found[0].tokens}
    assert by_document["ture"]["Turing"] > 9 * by_document["ture"]["Maida Vale"] > 0
    assert by_document["district"]["Maida Vale"] > 9 * by_document["district"]["Turing"] > 0
    steps = found[0].term(PATH).terms
    assert [(step.name, step.text) for step in steps[:2]] == [("Turing", "start"), ("Maida Vale", "link")]
    assert [step.name for step in steps[2:]] == ["length of the path", "which passage explains which word"]
    assert found[0].term(PATH).value == pytest.approx(ranking[0].details["log_prior"])
    assert "─ link →" in str(found)
    paths = search.search_paths(BIRTH)
    add_up(paths.explain(), paths)
    assert paths[:1].explain()[0].name == "Turing → Maida Vale"
    assert explain(BIRTH, list(ranking), search) == found  # which searches again
    with pytest.raises(InvalidInput, match="must contain results of this search, got 'another'"):
        search.explain(BIRTH, PathSearch(PromptRank(), ["another"]).search(BIRTH))


@given(
    links=st.lists(st.sampled_from([None, TitleMentions(), RetrievedLinks(n=1)]), unique=True, max_size=3),
    hops=st.sampled_from([1, 2, 3]),
    prior=st.booleans(),
    first=st.sampled_from([None, "retrieval"]),
    pairs=st.sampled_from([0, 3]),
    asks=st.booleans(),
)
def test_every_path_of_every_search_adds_up(links, hops, prior, first, pairs, asks):
    kinds = [link if link is not None else (lambda passage: passage.links) for link in links]
    search = PathSearch(
        PromptRank(prior=first),
        CHAIN,
        links=kinds,
        settings={"hops": hops, "pairs": pairs, **({} if prior else {"link_prior": None})},
        llm=(lambda prompt: "Basel") if asks else None,
    )
    paths = search.search_paths(BIRTH)
    found = paths.explain()
    add_up(found, paths)
    known = {"start", "title mention", "second retrieval", "<lambda>", "jump", "named as missing", "and"}
    for item, entry in zip(found, paths, strict=True):
        steps = item.term(PATH)
        assert {step.text for step in steps.terms} <= known
        length = len(entry.passage.passages)
        assert len(steps.terms) == length + prior * (1 + (length > 1))  # its length, and the alignment
        others = item.term("prior of the first stage").value
        assert steps.value + others == pytest.approx(entry.details["log_prior"])
        assert first is not None or not others
    passages = search.search(BIRTH)
    add_up(passages.explain(), passages)


def test_two_kinds_of_passages_tell_the_two_scores_of_a_pair():
    found = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine.", "A third one."]
    for written in (["Emma is by Jane Austen."], [], found[:2]):
        ranking = BRMGR().rank("Who wrote Emma?", found, written)
        explained = ranking.explain()
        add_up(explained, ranking)
        assert [len(item.terms) for item in explained] == [2 if written else 1] * len(ranking)
    assert "Pair 1, generated" in str(explained[0])


class Counting(HashModel):
    """Counts what it is asked."""

    asked = 0

    def log_likelihood_batch(self, requests, temperature, include_eos):
        self.asked += len(requests)
        return super().log_likelihood_batch(requests, temperature, include_eos)


def test_nothing_is_asked_before_it_is_explained_and_then_nothing_alone():
    paths = [Path((passage,)) for passage in CHAIN]
    for kind, given_, wanted in ((UPR, CHAIN, 1), (PromptRank, paths, 5), (MonoT5, CHAIN, 0)):
        model = Counting()
        ranking = kind(model).rank(QUERY, given_)
        before = model.asked
        ranking.explain()
        assert model.asked - before == wanted


def test_copies_compare_alike_and_do_not_remember():
    ranking = UPR().rank(QUERY, CHAIN)
    for same in (copy.copy(ranking), copy.deepcopy(ranking), pickle.loads(pickle.dumps(ranking))):
        assert same == ranking == list(ranking)
        with pytest.raises(InvalidInput, match="does not know what ranked it"):
            same.explain()
        assert explain(QUERY, same) == ranking.explain()
    explained = ranking.explain()
    assert pickle.loads(pickle.dumps(explained)) == explained


def test_results_of_d3_which_are_no_list_explain_themselves():
    result = D3().retrieve("Which fox?", ["# Animals\n\nThe fox is red.\n\nThe whale is blue."])
    explained = explain("Which fox?", result)
    assert not isinstance(result, list)
    assert explained == result.explain()
    assert explained.tree


test_a_ranking_that_cannot_be_explained_is_refused = refuses(
    (
        lambda: explain(QUERY, UPR().rank(QUERY, CHAIN), UPR(UnigramModel(mu=10))),
        "Pass the ranker that made the ranking",
    ),
    (
        lambda: explain(QUERY, list(UPR().rank(QUERY, [*CHAIN, *[f"fox number {i}" for i in range(9)]]))[:1]),
        "all candidates",
    ),
    (lambda: explain(BIRTH, UPR().rank(QUERY, CHAIN)), "was made for 'Where does"),
)


def test_an_empty_ranking_has_no_explanation():
    assert explain(QUERY, []) == []
    assert explain(QUERY, UPR().rank(QUERY, [])) == PathSearch(PromptRank(), CHAIN).search(QUERY)[:0].explain() == []


DEEP = {"name": "x", "value": 1.0}
for _ in range(100_000):
    DEEP = {"name": "x", "value": 1.0, "terms": [DEEP]}
NESTED = {"rank": 1, "score": 1.0, "name": "x", "terms": [DEEP]}
test_what_is_no_explanation_is_refused = refuses(
    *((lambda told=told: Explanations.from_dict(told), "Explanations cannot be read")
      for told in ({}, [], {"question": "", "entries": [3]}, {"question": "", "entries": [NESTED]})),
)  # fmt: skip


PIECES = [
    *["<script>alert(1)</script>", "[red]", "[/]", ":smile:", "&amp;", "<!--", "]]>", "'\"", "a", " ", "\n", "שלום"],
    *["漢字", "\x1b[31m", "\u202e", "\x00", "\ud83e", "\u2028", "\ufffe", "e\u0301"],
]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


def everything(text):
    """Every kind of explanation, with the same text wherever there is one."""
    path = Term.sum(PATH, [Term(text, -1.0, text="start"), Term(text, -2.0, text=text)], text)
    gains = Term.sum(GAINS, [Term(text, 1.5, (Term(text, 0.6), Term(text, 0.9)))])
    entry = Explanation(1, -2.0, text, (path, Term(NOTHING, -3.0), gains, Term(text, 0.5, text=text)), note=text)
    viewed = Explanation(2, 0.02, text, (Term("raw view", 1 / 61, text=text),))
    tree = [Node(text, "document", 0, "opened", text), *[Node(text, "paragraph", 1, "read", text, -1.0)] * 5]
    return Explanations([entry, viewed, entry], text, tree)


def without_blanks(text):
    return "".join(text.split())


class Texts(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert all(name == "style" for name, _ in attrs)

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment")


@given(HOSTILE)
def test_text_is_data_in_notebooks_terminals_and_pictures(text):
    found, shown = everything(text), without_blanks(on_one_line(text, 160))
    assert not CONTROL.search(shown.replace("\ufffd", ""))
    page = Texts(found._repr_html_())
    assert page.tags <= {"pre", "span", "bdi"}
    assert shown in without_blanks("".join(page.texts))
    picture = ET.fromstring(found.svg().encode("utf-8"))
    drawn = {element.tag.rpartition("}")[2] for element in picture.iter()}
    assert drawn <= {"svg", "title", "desc", "style", "g", "rect", "text"}
    drawn = "".join(element.text for element in picture.iter() if element.tag.endswith("}text"))
    assert shown in without_blanks(drawn)
    console = Console(file=StringIO(), width=200, force_terminal=True, color_system="truecolor")
    console.print(found)
    written = console.file.getvalue()
    plain = re.sub(r"\x1b\[[\d;]*m", "", written)
    assert not CONTROL.search(plain.replace("\ufffd", ""))
    assert shown in without_blanks(plain)
    assert json.loads(json.dumps(found.to_dict()))["question"] == text


def test_one_before_another_is_told_word_by_word():
    ranking = UPR(prior="retrieval").rank(QUERY, CHAIN, scores=[1.0, 2.0, 3.0, 4.0])
    first, second, *_ = found = ranking.explain()
    gap = first - second
    assert gap.score == pytest.approx(ranking[0].score - ranking[1].score)
    assert gap.total == pytest.approx(gap.score)
    assert [token.name for token in gap.tokens] == [token.name for token in first.tokens]
    for token, one, other in zip(gap.tokens, first.tokens, second.tokens, strict=True):
        assert token.value == pytest.approx(one.value - other.value)
    most = max(gap.tokens, key=lambda token: token.value)
    assert f"{most.value:+.2f}" in str(gap)
    assert f"Behind the one above by {gap.score:.3f}, mostly (" in str(found)
    assert f"{most.name} {most.value:+.3f}" in str(found)
    assert "Behind" not in str(found[0])
    assert (first - Explanation(1, -1.0, "of another question", first.terms, first.per + 1)).terms == ()


@given(st.lists(st.sampled_from("abc"), unique=True), st.lists(st.sampled_from("abc"), unique=True), st.data())
def test_differences_add_up_whatever_one_lacks(ones, others, data):
    one, other = (Term.sum("score", [Term(name, data.draw(NUMBERS)) for name in names]) for names in (ones, others))
    gap = one - other
    assert {term.name for term in gap.terms} == {*ones, *others}
    assert sum(term.value for term in gap.terms) == pytest.approx(gap.value, abs=1e-9)


def test_files(tmp_path):
    found = everything("a [red] <fox>")
    for name, shown in (("a.svg", found.svg()), ("b.html", found._repr_html_()), ("c.txt", str(found))):
        found.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == shown
    assert "svg" in Explanations().svg()
