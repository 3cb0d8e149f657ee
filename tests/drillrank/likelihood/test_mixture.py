"""Sums of experts: what they add up, how they are named, and what they do as any model does."""

from __future__ import annotations

import asyncio
import math
import threading
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import UPR, Passage, Path, PromptRank, Relevance, load_language_model
from drillrank.errors import LacksCapability
from drillrank.likelihood import EmbeddingModel, LanguageModel, Request, SumOfExperts, UnigramModel
from drillrank.likelihood.load import split_sum
from drillrank.prompts import TruncatableText
from drillrank.text import terms
from tests.drillrank.conftest import HashModel
from tests.drillrank.helpers import refuses

WORDS = ["red", "fox", "Foxes", "river", "Rhine", "running", "42", "?"]
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
targets = texts.filter(str.strip)
weights = st.floats(0.01, 100)
TEXTS = ["A red fox crossed the river.", "The Rhine is a river.", "Basel lies on the Rhine.", ""]
QUESTION = "Which river did the fox cross?"


def by_letters(given):
    return [[text.lower().count(letter) + 0.1 for letter in "aeirx"] for text in given]


def experts():
    return [UnigramModel(mu=50), EmbeddingModel(by_letters, kappa=7.0), HashModel()]


def in_float64(expert, request, temperature):
    """The mean of one expert, from its definition, token by token."""
    [found] = expert.log_likelihood([request], temperature=temperature)
    return math.fsum(found.log_probs.tolist()) / len(found.tokens)


@given(
    st.lists(st.lists(texts, max_size=3), min_size=1, max_size=4),
    targets,
    st.lists(weights, min_size=3, max_size=3),
    st.sampled_from([1.0, 0.5, 2.0]),
)
def test_means_are_added_with_their_weights(documents, target, factors, temperature):
    if not terms(target):
        target += " fox"
    given_ = [expert.fit(TEXTS) for expert in experts()]
    requests = [Request(tuple(map(TruncatableText, texts)), target) for texts in documents]
    found = SumOfExperts(given_, factors).log_likelihood(requests, temperature=temperature)
    for request, likelihood in zip(requests, found, strict=True):
        expected = [in_float64(expert, request, temperature) for expert in given_]
        assert likelihood.mean == pytest.approx(math.fsum(map(float.__mul__, factors, expected)), rel=1e-12)
        assert [part.mean for part in likelihood.parts] == pytest.approx(expected, rel=1e-12)
        assert likelihood.weights == tuple(factors)
        assert likelihood.total == pytest.approx(likelihood.mean * len(likelihood.tokens), rel=1e-12)
        assert math.fsum(one.total for one in likelihood.summands) == pytest.approx(likelihood.total, rel=1e-12)
        assert math.fsum(log for one in likelihood.summands for log in one.log_probs) == pytest.approx(
            likelihood.total, rel=1e-9
        )
        assert (likelihood.tokens, likelihood.log_probs.tolist()) == (
            likelihood.parts[0].tokens,
            likelihood.parts[0].log_probs.tolist(),
        )


@pytest.mark.parametrize("fit", [False, True])
def test_lists_are_collections_of_their_own(fit):
    model = SumOfExperts(experts())
    model = model.fitted(TEXTS) if fit else model
    lists = [[(text, QUESTION) for text in TEXTS[:2]], [(text, QUESTION) for text in TEXTS]]
    together = model.log_likelihood_lists(lists)
    alone = [model.log_likelihood(pairs) for pairs in lists]
    assert [[item.mean for item in one] for one in together] == [[item.mean for item in one] for one in alone]
    assert model.log_likelihood([]) == []


def test_budgets_and_the_end_of_sequence_are_each_experts_own():
    class Ends(HashModel):
        include_eos_by_default = True

        def log_likelihood_batch(self, requests, temperature, include_eos):
            asked.append(include_eos)
            return super().log_likelihood_batch(requests, temperature, include_eos)

    asked: list[bool] = []
    model = SumOfExperts([UnigramModel(), Ends()])
    for include_eos in (None, True, False):
        [found] = model.log_likelihood(
            [Request((TruncatableText("a red fox ran", max_tokens=2),), "fox")], include_eos=include_eos
        )
        assert (found.tokens, found.cut_tokens) == (["fox"], 2)
    assert asked == [True, True, False]


# fitting


def test_fit_reaches_every_expert_and_fitted_leaves_them():
    def means(model):
        return [item.mean for item in model.log_likelihood([(text, QUESTION) for text in TEXTS])]

    model = SumOfExperts(experts())
    fitted = model.fitted(text for text in TEXTS)
    assert (model.wants_fit, fitted.wants_fit) == (True, False)
    assert fitted.experts[2] is model.experts[2]
    assert means(fitted.fitted(TEXTS)) == pytest.approx(means(fitted))
    assert model.fit(text for text in TEXTS) is model
    assert not model.wants_fit
    assert means(fitted) == means(model)


# names, options, copies


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("unigram", [(None, "unigram")]),
        ("unigram+2*hf:a/b", [(None, "unigram"), (2.0, "hf:a/b")]),
        (".5*unigram+0.25*st:x+m2v:y", [(0.5, "unigram"), (0.25, "st:x"), (None, "m2v:y")]),
        ("unigram:/data/c++/nq+hf:a", [(None, "unigram:/data/c++/nq"), (None, "hf:a")]),
        ("hf:/models/a+b", [(None, "hf:/models/a+b")]),
        ("hf:/models/a+2*b", [(None, "hf:/models/a+2*b")]),
        ("hf:a+unigrams", [(None, "hf:a+unigrams")]),
        ("unigram+unigram:/x", [(None, "unigram"), (None, "unigram:/x")]),
        ("unigram+http://h:1/v1#a+b", [(None, "unigram"), (None, "http://h:1/v1#a+b")]),
        ("https://h/v1#m+3*ce:/x", [(None, "https://h/v1#m"), (3.0, "ce:/x")]),
    ],
)
def test_a_plus_separates_only_before_a_known_kind(spec, parts):
    assert split_sum(spec) == parts


WORDS_ALONE = UnigramModel()
test_bad_sums = refuses(
    *((lambda sums=sums: SumOfExperts(*sums), "weight|language model") for sums in ([[]], [["unigram"]])),
    (lambda: SumOfExperts([WORDS_ALONE], [1, 2]), "weight"),
    *((lambda w=w: SumOfExperts([WORDS_ALONE], [w]), "weight") for w in (0, -1, math.nan, math.inf, True, "2")),
    (lambda: SumOfExperts([WORDS_ALONE, UnigramModel(language="german")]), r"english.*german"),
    (lambda: load_language_model("unigram+hf:a", kappa=3),
     r"options of 'unigram\+hf:a' are: mu, language; .*dtype.*Given: kappa"),
    (lambda: load_language_model("unigram+hf:a", experts=[{"dtype": "float32"}, {}]), "Given: dtype"),
    (lambda: load_language_model("unigram+hf:a", experts=[{}]), "has 2 experts"),
    (lambda: load_language_model("unigram+hf:a", experts={"mu": 3}), "has 2 experts"),
    *((lambda spec=spec: load_language_model(spec), "is not a language model that drillrank knows. Use .*a sum of them")
      for spec in ("unigram+", "+unigram", "bert+unigram", "unigram+1e3*hf:a", "2*bert", "-1*unigram")),
    (lambda: UPR("unigram", read=5), "read"),
    *((lambda read=read: UPR("unigram+unigram", read=read), "read") for read in (0, "some")),
)  # fmt: skip


@given(st.lists(weights | st.sampled_from([1.0, 2.0, 1e-7, 1e20]), min_size=1, max_size=4))
def test_a_specification_and_its_options_build_an_equal_sum(factors):
    model = SumOfExperts([UnigramModel(mu=10 + number) for number in range(len(factors))], factors)
    again = load_language_model(model.spec, **model.options)
    if isinstance(again, UnigramModel):
        again = SumOfExperts([again])
    assert (again.spec, again.options, again.weights) == (model.spec, model.options, model.weights)
    pairs = [(text, QUESTION) for text in TEXTS]
    assert [item.mean for item in again.log_likelihood(pairs)] == [item.mean for item in model.log_likelihood(pairs)]


# capabilities


def test_it_can_what_one_of_its_experts_can():
    words, meaning, neural = experts()
    for given_ in permutations([words, meaning, neural], 2):
        model = SumOfExperts(given_)
        assert model.reads_instructions is (neural in given_)
        assert model.reads_meaning is any(expert.reads_meaning for expert in given_)
        assert model.first_tokens("a b", 1) == given_[0].first_tokens("a b", 1) if given_[0] is not neural else True
        assert not model.tells_next_tokens
    with pytest.raises(LacksCapability):
        Relevance(SumOfExperts([neural])).rank("Who?", TEXTS)
    assert SumOfExperts([neural, UnigramModel(language="german")]).language == "german"


def test_a_part_that_is_worked_alone_gives_its_worker_and_two_of_them_a_thread():
    class Works(HashModel):
        async def run_in_worker(self, function, *arguments):
            used.append(self)
            return function(*arguments)

    used: list[LanguageModel] = []
    one = Works()
    assert asyncio.run(SumOfExperts([UnigramModel(), one]).run_in_worker(max, 1, 2)) == 2
    assert used == [one]
    name = asyncio.run(SumOfExperts([one, Works()]).run_in_worker(lambda: threading.current_thread().name))
    assert used == [one]
    assert name != threading.main_thread().name


@pytest.mark.parametrize("fit", [False, True])
@pytest.mark.parametrize("prior", [None, "retrieval"])
def test_an_explanation_has_the_terms_of_each_expert(fit, prior):
    model = SumOfExperts(experts(), [1, 0.5, 2])
    model = model.fitted(TEXTS) if fit else model
    passages = [Passage(text, id=str(number)) for number, text in enumerate(TEXTS[:3])]
    ranking = UPR(model, prior=prior).rank(QUESTION, passages, scores=[1.0, 3.0, 2.0] if prior else None)
    for item, entry in zip(ranking, ranking.explain(), strict=True):
        assert entry.total == pytest.approx(item.score, abs=1e-9)
        assert [token.name for token in entry.tokens] == terms(QUESTION)
        for name, expert, weight in zip(model.names[1:], model.experts[1:], model.weights[1:], strict=True):
            term = entry.term(name)
            assert [one.name for one in term.terms] == ["question after nothing", "gains"]
            if fit:
                [alone] = UPR(expert, prior=None).likelihoods(QUESTION, [item.passage])
                assert term.value / entry.per == pytest.approx(weight * alone.mean)
                assert [one.name for one in term.terms[1].terms] == list(alone.tokens)


# Sums of experts in UPR: the first expert ranks all passages, the whole sum reads the best of them

WORDED = st.sampled_from(["a red fox", "a red fox crossed the river", "a river", "whales", "", "The red town."])
QUERIES = st.sampled_from(["red fox", "which river?", "the fox crossed", "zebra"])
LISTS = st.lists(WORDED, max_size=8)


def of_words_and(neural, weight=2.0):
    return SumOfExperts([UnigramModel(), neural], [1.0, weight])


def shown(ranking):
    return [(item.details["position"], item.score) for item in ranking]


@given(QUERIES, LISTS, st.integers(1, 9), st.booleans())
def test_the_first_expert_chooses_what_the_sum_reads(hash_model, query, texts, read, scored):
    scores = [float(len(texts) - place) for place in range(len(texts))] if scored else None
    neural = hash_model()
    ranker = UPR(of_words_and(neural), read=read)
    ranking = ranker.rank(query, texts, scores=scores)
    by_words = UPR(UnigramModel()).rank(query, texts, scores=scores)
    first = [item.details["position"] for item in by_words]
    assert len(neural.requests) == min(read, len(texts))
    by_position = {item.details["position"]: item for item in ranking}
    assert {place for place, item in by_position.items() if item.details["read"]} == set(first[:read])
    assert [item.details["position"] for item in ranking if not item.details["read"]] == first[read:]
    assert [item.details["read"] for item in ranking] == sorted((i.details["read"] for i in ranking), reverse=True)
    assert [item.score for item in ranking] == sorted((item.score for item in ranking), reverse=True)
    last = min((item.score for item in ranking if item.details["read"]), default=0.0)
    lowest = min((item.score for item in by_words[:read]), default=0.0)
    for item in by_words[read:]:
        expected = min(item.score + last - lowest, math.nextafter(last, -math.inf))
        assert by_position[item.details["position"]].score == pytest.approx(expected, abs=1e-9)
    everything = UPR(of_words_and(hash_model()), read="all").rank(query, texts, scores=scores)
    wanted = {item.details["position"]: item.score for item in everything}
    for place in first[:read]:
        assert by_position[place].score == pytest.approx(wanted[place], abs=1e-9)


@given(st.lists(st.tuples(QUERIES, LISTS), max_size=4), st.integers(1, 4), st.booleans())
def test_many_questions_are_read_as_one_by_one(hash_model, asked, read, fitted):
    model = of_words_and(hash_model())
    ranker = UPR(model.fit(["a red fox", "the river"]) if fitted else model, read=read)
    many = ranker.rank_many([query for query, _ in asked], [texts for _, texts in asked])
    assert list(map(shown, many)) == [shown(ranker.rank(query, texts)) for query, texts in asked]


@given(
    QUERIES, st.lists(WORDED, min_size=1, max_size=8), st.integers(1, 9), st.sampled_from(["none", "ranks", "scores"])
)
def test_explanations_add_up_whether_a_passage_was_read_or_not(hash_model, query, texts, read, prior):
    scores = [float(place) for place in range(len(texts))] if prior == "scores" else None
    ranker = UPR(of_words_and(hash_model()), read=read, prior=None if prior == "none" else "retrieval")
    ranking = ranker.rank(query, texts, scores=scores)
    for explanations in (ranking.explain(), ranker.explain(query, ranking, texts)):
        assert [one.total for one in explanations] == pytest.approx([item.score for item in ranking], abs=1e-6)


@given(QUERIES, st.lists(WORDED, min_size=1, max_size=4))
def test_explanations_of_a_mean_over_prompts_add_up(hash_model, query, texts):
    ranker = PromptRank(
        of_words_and(hash_model()), instructions=["Ask. {path}", "{path} Which question?"], ensemble="mean"
    )
    ranking = ranker.rank(query, [Path([Passage(text)]) for text in texts])
    for item, explanation in zip(ranking, ranking.explain(), strict=True):
        assert explanation.total == pytest.approx(item.score, abs=1e-6)
        assert "2*hash" in str(explanation)


def test_ten_are_read_of_a_sum_with_a_neural_expert_and_all_by_other_models(hash_model):
    texts = [f"fox number {number}" for number in range(15)]
    assert sum(item.details["read"] for item in UPR(of_words_and(hash_model())).rank("fox", texts)) == 10
    whole = [UPR(of_words_and(hash_model()), **more) for more in ({"read": "all"}, {"preset": "brmgr"})]
    turned = SumOfExperts([hash_model(), UnigramModel()])
    whole += map(UPR, (hash_model(), "unigram", "unigram+unigram", turned))
    assert not any("read" in item.details for ranker in whole for item in ranker.rank("fox", texts))
