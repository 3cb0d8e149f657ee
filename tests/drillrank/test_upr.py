from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.passages import Passage
from drillrank.rerank.upr import UPR

texts = st.text(st.characters(codec=None, exclude_characters="\0"), max_size=6) | st.sampled_from(
    ["a red fox", "a river", "{text}", "{title}"]
)
passages = st.lists(st.builds(Passage, texts, title=texts) | texts, max_size=6)
queries = st.sampled_from(["red fox", "which river?", "???", "the fox crossed"])
top_ns = st.none() | st.integers(1, 8)


def paper_prompt(passage):
    document = f"{passage.title} {passage.text}" if passage.title else passage.text
    return f"Passage: {document}. Please write a question based on this passage."


def shown(ranking):
    return [(entry.passage, entry.score, entry.rank, entry.details) for entry in ranking]


@given(queries, passages, top_ns)
def test_the_score_is_the_mean_log_probability_of_the_question_after_the_prompt(hash_model, query, given_, top_n):
    ranking = UPR(hash_model()).rank(query, given_, top_n)
    as_given = [Passage(item) if isinstance(item, str) else item for item in given_]
    totals = [float(np.sum(hash_model.log_probs(paper_prompt(passage), query))) for passage in as_given]
    tokens = len(query.split())
    order = sorted(range(len(totals)), key=lambda i: (-totals[i] / tokens, i))[:top_n]
    assert [entry.details["position"] for entry in ranking] == order
    assert [entry.passage for entry in ranking] == [as_given[i] for i in order]
    assert [entry.score for entry in ranking] == pytest.approx([totals[i] / tokens for i in order])
    assert [entry.details["log_likelihood"] for entry in ranking] == pytest.approx([totals[i] for i in order])
    assert {entry.details["tokens"] for entry in ranking} <= {tokens}
    assert [entry.rank for entry in ranking] == list(range(1, len(ranking) + 1))


@given(st.lists(st.tuples(queries, passages), max_size=4), top_ns, st.booleans())
def test_many_questions_are_ranked_as_one_by_one(hash_model, asked, top_n, lexical):
    upr = UPR(UnigramModel() if lexical else hash_model())
    many = upr.rank_many([query for query, _ in asked], [given_ for _, given_ in asked], top_n)
    assert [shown(ranking) for ranking in many] == [shown(upr.rank(query, given_, top_n)) for query, given_ in asked]


@given(st.lists(st.tuples(queries, passages), min_size=1, max_size=4))
def test_many_questions_are_one_pass_of_a_neural_model(hash_model, asked):
    class CountsCalls(hash_model):
        calls = 0

        def _log_likelihood(self, *arguments):
            self.calls += 1
            return super()._log_likelihood(*arguments)

    model = CountsCalls()
    UPR(model).rank_many([query for query, _ in asked], [given_ for _, given_ in asked])
    assert model.calls == any(given_ for _, given_ in asked)


@given(queries, passages)
def test_nothing_is_mutated_and_ranking_again_gives_the_same(query, given_):
    before = copy.deepcopy(given_)
    upr = UPR()
    first = upr.rank(query, given_)
    assert given_ == before
    assert shown(upr.rank(query, given_)) == shown(first)
    assert upr.language_model.wants_fit


@given(queries, passages, st.randoms())
def test_permuting_the_input_keeps_every_score(query, given_, random):
    order = random.sample(range(len(given_)), len(given_))
    straight = {entry.details["position"]: entry.score for entry in UPR().rank(query, given_)}
    permuted = UPR().rank(query, [given_[i] for i in order])
    assert {order[entry.details["position"]]: entry.score for entry in permuted} == pytest.approx(straight)


def test_the_given_objects_come_back_also_twice():
    one = Passage("a red fox", metadata={"page": [1]})
    ranking = UPR().rank("fox", (item for item in [one, Passage("a river"), one]))
    assert [entry.passage is one for entry in ranking] == [True, True, False]
    assert [entry.details["position"] for entry in ranking] == [0, 2, 1]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_scores_are_plain_and_survive_json(number):
    ranking = UPR().rank("red fox", ["a fox", "a red fox"][:number])
    assert [type(entry.score) for entry in ranking] == [float] * number
    plain = [(entry.score, entry.details) for entry in ranking]
    assert [tuple(pair) for pair in json.loads(json.dumps(plain))] == plain


def test_a_passage_without_title_leaves_no_gap(hash_model):
    model = hash_model()
    UPR(model).rank("q", [Passage("text"), Passage("text", title="Title")])
    assert [request.prompt[1].text for request in model.requests] == ["text", "Title text"]


def test_the_template_and_the_limit_reach_the_model(hash_model):
    model = hash_model()
    UPR(model, template="Title: {title}\nText: {text}\nQuestion:", max_passage_tokens=9).rank(
        "who?", [Passage("t", title="T")]
    )
    [request] = model.requests
    before, evidence, after = request.prompt
    assert (before, evidence.text, evidence.max_tokens, after) == ("Title: ", "T\nText: t", 9, "\nQuestion:")
    assert request.target == "who?"


def test_a_limit_cuts_and_says_so():
    [entry] = UPR(max_passage_tokens=3).rank("fox", ["one two three fox five"])
    assert entry.details["cut_tokens"] == 2
    assert UPR(max_passage_tokens=3).rank("fox", ["river", "one two three fox"])[0].passage.text == "river"


def test_a_fitted_model_knows_which_words_are_rare():
    collection = ["the common words"] * 3 + [f"the common words {i}" for i in range(20)] + ["a rare one"]
    fitted = UPR(UnigramModel().fit(collection))
    assert fitted.rank("common rare", ["common", "rare"])[0].passage.text == "rare"


@pytest.mark.parametrize("query", ["", " \n", None, 7])
def test_blank_queries(query):
    with pytest.raises(InvalidInput, match="query"):
        UPR().rank(query, ["a"])


@pytest.mark.parametrize("top_n", [0, -1, True, 2.0])
def test_bad_top_n(top_n):
    with pytest.raises(InvalidInput, match="top_n"):
        UPR().rank("q", ["a"], top_n)


@pytest.mark.parametrize("items", ["text", Passage("text"), [1], [None]])
def test_things_that_are_no_passages(items):
    with pytest.raises(InvalidInput):
        UPR().rank("q", items)


def test_lists_that_do_not_pair():
    with pytest.raises(InvalidInput, match="2 queries and 1 lists"):
        UPR().rank_many(["a", "b"], [["x"]])


@pytest.mark.parametrize(
    "options", [{"template": "no place"}, {"max_passage_tokens": 0}, {"max_passage_tokens": -3}, {"model": "unknown"}]
)
def test_bad_options_are_refused_at_once(options):
    with pytest.raises(InvalidInput):
        UPR(**options)


def test_wording_that_is_not_read_is_said(hash_model):
    with pytest.warns(DrillrankWarning, match="template does nothing with 'unigram'"):
        UPR(template="Read: {title} {text}. Ask.")
    UPR(template="{text}")  # leaves the title out
    UPR(hash_model(), template="Read: {title} {text}. Ask.")


def test_a_question_without_end_is_read_up_to_a_limit(hash_model):
    question = "why is that so? " * 100_000
    with pytest.warns(DrillrankWarning, match="1600000 characters is read up to character 20000"):
        [item] = UPR().rank(question, ["That is so."])
    assert item.details["tokens"] <= 20_000 / 3


def test_a_preset_by_name_has_no_prior(hash_model):
    with pytest.raises(InvalidInput, match="no prior"):
        UPR(hash_model(), preset="upr").rank("fox", ["a fox"], scores=[1.0])
    assert UPR(hash_model(), preset="paper").rank("fox", ["a fox"])[0].details.get("log_prior") is None
