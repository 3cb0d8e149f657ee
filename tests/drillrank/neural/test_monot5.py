from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from drillrank import MonoT5, Passage
from drillrank.errors import InvalidInput, LacksCapability
from drillrank.likelihood import HuggingFaceModel, LanguageModel, NextTokens, SumOfExperts, UnigramModel
from drillrank.prompts import prompt_text
from drillrank.rerank.base import rescaled
from tests.drillrank.neural.conftest import KINDS_OF_MODELS, loaded, saved, wrapped
from tests.drillrank.neural.float64 import Yardstick
from tests.drillrank.neural.tiny_monot5 import save_tiny_monot5

QUERY = "Which river flows through Basel?"
RELEVANT, OTHERS = "The Rhine flows through Basel.", ["Emma is a novel.", "Chess is a game.", "The Thames is a river."]
WORDS = ["Basel", "the Rhine", "river", "novel", "Emma", "Zürich", "東京", "42", "true", "Relevant: false", ". ", "\n"]
phrases = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
queries = phrases.filter(str.strip)
passages = st.lists(st.builds(Passage, phrases, title=st.sampled_from(["", "Basel"])) | phrases, max_size=6)
hypothesis = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("monot5")
    save_tiny_monot5(folder, [(QUERY, RELEVANT, True), *((QUERY, text, False) for text in OTHERS)])
    return folder


@pytest.fixture(scope="module")
def tiny(tiny_folder) -> HuggingFaceModel:
    """Fine-tuned to answer "true" and "false", each of which is one token."""
    return HuggingFaceModel(str(tiny_folder), dtype="float32")


@pytest.fixture
def encoded(monkeypatch, tiny):
    """What the encoder read, prompt by prompt, as token ids without padding."""
    seen: list[list[int]] = []
    encoder = tiny.engine.model.get_encoder()
    forward = encoder.forward

    def recording(input_ids, attention_mask, **arguments):
        seen.extend(row[mask.bool()].tolist() for row, mask in zip(input_ids, attention_mask, strict=True))
        return forward(input_ids=input_ids, attention_mask=attention_mask, **arguments)

    monkeypatch.setattr(encoder, "forward", recording)
    return seen


def paper_prompt(query: str, passage: Passage | str) -> str:
    text = passage if isinstance(passage, str) else f"{passage.title} {passage.text}" if passage.title else passage.text
    return f"Query: {query} Document: {text} Relevant:"


def in_input_order(ranking):
    return [item.score for item in sorted(ranking, key=lambda item: item.details["position"])]


def shown(ranking):
    return [(item.passage, item.score, item.rank, item.details) for item in ranking]


@pytest.fixture(scope="module")
def alone(tiny_folder):
    """The same checkpoint through transformers alone."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tiny_folder).double().eval()
    return model, transformers.AutoTokenizer.from_pretrained(tiny_folder)


@hypothesis
@given(query=queries, given_=passages)
def test_the_score_is_the_log_softmax_of_the_two_logits_at_the_first_position(alone, tiny, query, given_):
    """One passage at a time, as Nogueira et al. (2020) describe it."""
    model, tokenizer = alone
    answers = tokenizer.convert_tokens_to_ids(["▁true", "▁false"])
    expected = []
    for passage in given_:
        inputs = tokenizer(paper_prompt(query, passage), return_tensors="pt")
        with torch.no_grad():
            logits = model(**inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
        expected.append(torch.log_softmax(logits[answers], dim=0)[0].item())
    assert in_input_order(MonoT5(tiny).rank(query, given_)) == pytest.approx(expected, abs=1e-4)


def test_the_prompt_is_the_one_that_checkpoints_are_fine_tuned_on(tiny):
    ranking = MonoT5(tiny).rank(QUERY, [*OTHERS, RELEVANT])
    assert ranking[0].passage.text == RELEVANT
    assert [math.exp(item.score) > 0.5 for item in ranking] == [True, False, False, False]
    assert all(max(item.details["positive"], item.details["negative"]) > -0.2 for item in ranking)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    """A decoder-only model with one token for each answer, as GPT-2, Llama and Qwen have."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([f"Query: {QUERY} Document: {RELEVANT} Relevant: true false"] * 3, trainer)
    torch.manual_seed(12)
    config = transformers.GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    network = transformers.GPT2LMHeadModel(config)
    for parameter in network.parameters():
        parameter.data *= 3
    folder = tmp_path_factory.mktemp("decoder")
    network.save_pretrained(folder)
    wrapped(tokenizer, eos_token="<|end|>").save_pretrained(folder)
    return network.double().eval(), tokenizer, HuggingFaceModel(str(folder), dtype="float32")


@hypothesis
@given(query=queries, given_=passages)
def test_decoder_only_models_answer_behind_the_prompt(decoder, query, given_):
    network, tokenizer, ours = decoder
    answers = [tokenizer.token_to_id(word) for word in ("Ġtrue", "Ġfalse")]
    expected = []
    for passage in given_:
        ids = tokenizer.encode(paper_prompt(query, passage)).ids
        with torch.no_grad():
            logits = network(input_ids=torch.tensor([ids])).logits[0, -1]
        expected.append(torch.log_softmax(logits[answers], dim=0)[0].item())
    assert in_input_order(MonoT5(ours).rank(query, given_)) == pytest.approx(expected, abs=1e-4)


@hypothesis
@given(asked=st.lists(st.tuples(queries, passages), max_size=3), top_n=st.none() | st.integers(1, 4))
def test_many_questions_are_ranked_as_one_by_one(tiny, asked, top_n):
    mono = MonoT5(tiny)
    many = mono.rank_many([query for query, _ in asked], [given_ for _, given_ in asked], top_n)
    for ranking, (query, given_) in zip(many, asked, strict=True):
        alone = mono.rank(query, given_, top_n)
        assert [item.score for item in ranking] == pytest.approx([item.score for item in alone], abs=1e-4)
        assert [item.rank for item in ranking] == list(range(1, len(alone) + 1))


@hypothesis
@given(query=queries, given_=passages, random=st.randoms(), batch_tokens=st.sampled_from([1, 60, 100_000]))
def test_order_and_batches_change_no_score(tiny, query, given_, random, batch_tokens):
    order = random.sample(range(len(given_)), len(given_))
    straight = in_input_order(MonoT5(tiny).rank(query, given_))
    before, tiny.engine.batch_tokens = tiny.engine.batch_tokens, batch_tokens
    try:
        shuffled = in_input_order(MonoT5(tiny).rank(query, [given_[i] for i in order]))
    finally:
        tiny.engine.batch_tokens = before
    assert [straight[i] for i in order] == pytest.approx(shuffled, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS_OF_MODELS)
@pytest.mark.parametrize("family", ["t5-untied", "bart", "gpt2", "llama"])
def test_an_answer_of_several_tokens_counts_as_a_whole_word(tmp_path_factory, family, kind):
    folder = saved(family, tmp_path_factory)
    model, alone = loaded(folder, kind), Yardstick(folder)
    given_ = [RELEVANT, Passage(OTHERS[0], title="Emma")]
    for item in MonoT5(model).rank(QUERY, given_):
        prompt = paper_prompt(QUERY, item.passage)
        answers = [alone(prompt, word, include_eos=False) for word in ("true", "false")]
        assert all(len(answer) > 1 for answer in answers)
        true, false = (float(answer.sum()) for answer in answers)
        assert (item.details["positive"], item.details["negative"]) == pytest.approx((true, false), abs=1e-3)
        assert item.score == pytest.approx(true - np.logaddexp(true, false), abs=1e-3)


def test_a_model_that_tells_likelihoods_alone_is_asked_for_them(tiny):
    both = SumOfExperts([tiny, tiny], [0.5, 0.5])
    assert not both.tells_next_tokens
    [expected, found] = (in_input_order(MonoT5(model).rank(QUERY, [*OTHERS, RELEVANT])) for model in (tiny, both))
    assert found == pytest.approx(expected, abs=1e-4)


@hypothesis
@given(query=queries, given_=passages, copies=st.integers(2, 5))
def test_equal_passages_tie_and_keep_the_input_order(model, query, given_, copies):
    ranking = MonoT5(model).rank(query, [*given_, *["the same text"] * copies])
    tied = [item for item in ranking if item.details["position"] >= len(given_)]
    assert len({item.score for item in tied}) == 1
    assert [item.details["position"] for item in tied] == list(range(len(given_), len(given_) + copies))


@hypothesis
@given(query=queries, given_=passages)
def test_nothing_is_mutated_and_scores_are_plain(tiny, query, given_):
    before = copy.deepcopy(given_)
    first = MonoT5(tiny).rank(query, given_)
    assert given_ == before
    assert shown(MonoT5(tiny).rank(query, given_)) == shown(first)
    for item in first:
        assert type(item.score) is float
        assert item.score <= 0
        json.dumps((item.score, item.details))


def test_both_answers_share_one_encoding(tiny, encoded):
    MonoT5(tiny).rank_many([QUERY, "Who wrote Emma?"], [OTHERS, OTHERS])
    assert len(encoded) == 2 * len(OTHERS)


@pytest.mark.parametrize("long", ["Basel " * 600, "the Rhine flows through " * 200, "zq." * 900])
def test_a_long_passage_is_cut_and_nothing_else(tiny, encoded, long):
    [item] = MonoT5(tiny).rank(QUERY, [long])
    tokenizer = tiny.engine.tokenizer
    [ids] = encoded
    pieces = [tokenizer.token_names[i] for i in ids]
    head, tail = (tokenizer(text).ids for text in (f"Query: {QUERY} Document:", " Relevant:"))
    assert 500 < len(ids) <= 512
    assert ids[: len(head)] == head
    assert ids[-len(tail) - 1 : -1] == tail, pieces[-12:]
    assert item.details["cut_tokens"] > 0
    assert item.passage.text == long


def test_a_passage_limit_equals_the_shorter_passage(tiny):
    text = "The Rhine flows through Basel and then through Cologne"
    tokens = tiny.engine.tokenizer(text)
    [cut] = MonoT5(tiny, max_passage_tokens=5).rank(QUERY, [text])
    [plain] = MonoT5(tiny).rank(QUERY, [text[: tokens.ends[4]]])
    assert cut.score == pytest.approx(plain.score, abs=1e-5)
    assert (cut.details["cut_tokens"], plain.details["cut_tokens"]) == (len(tokens.ids) - 5, 0)


def test_a_query_that_leaves_no_room_is_a_clear_error(tiny):
    with pytest.raises(InvalidInput, match="Nothing would be left"):
        MonoT5(tiny).rank("river " * 600, ["Basel"])


@pytest.mark.parametrize("control", ["</s>", "<pad>", "<unk>"])
def test_control_tokens_in_query_and_passage_are_text(tiny, encoded, control):
    MonoT5(tiny).rank(f"river {control}", [f"{control} Emma {control}"])
    [ids] = encoded
    special = [place for place, id_ in enumerate(ids) if id_ in (0, 1)]
    assert special == [len(ids) - 1]
    assert ids[-1] == 1


class Convinced(LanguageModel):
    """Answers with given log-odds, however sure; nine times in ten it says something else."""

    tells_next_tokens = True

    def __init__(self, log_odds):
        self.log_odds = log_odds

    @property
    def spec(self):
        return "convinced"

    def _log_likelihood(self, requests, temperature, include_eos):
        raise AssertionError("the next token is asked for")

    def _next_tokens(self, requests, logits):
        assert not logits
        return [NextTokens(np.log(0.1) - np.logaddexp(0, [-odds, odds])) for odds in self.log_odds]


class Recording(Convinced):
    """Remembers what it is asked."""

    def __init__(self):
        super().__init__([0.0])
        self.requests = []

    def _next_tokens(self, requests, logits):
        self.requests += requests
        return super()._next_tokens(requests, logits)


@given(query=st.text().filter(str.strip), text=st.text(), title=st.text())
def test_query_and_passage_are_data(query, text, title):
    model = Recording()
    MonoT5(model).rank(query, [Passage(text, title=title)])
    [request] = model.requests
    assert prompt_text(request.prompt) == paper_prompt(query, Passage(text, title=title))
    assert request.answers == (" true", " false")  # behind the prompt of what is no encoder-decoder


def test_placeholders_in_query_and_passage_stay():
    model = Recording()
    MonoT5(model).rank("{text} {query} %s", ["{query} {text} Relevant: true"])
    assert prompt_text(model.requests[0].prompt) == (
        "Query: {text} {query} %s Document: {query} {text} Relevant: true Relevant:"
    )


@given(st.lists(st.floats(-700, 700).map(lambda odds: round(odds, 3)), min_size=1, max_size=6))
def test_sure_answers_are_told_apart_where_the_probability_is_0_or_1(log_odds):
    ranking = MonoT5(Convinced(log_odds)).rank("q", [str(i) for i in range(len(log_odds))])
    assert [item.details["position"] for item in ranking] == sorted(
        range(len(log_odds)), key=lambda i: log_odds[i], reverse=True
    )
    expected = [-math.log1p(math.exp(-odds)) if odds > 0 else odds - math.log1p(math.exp(odds)) for odds in log_odds]
    assert in_input_order(ranking) == pytest.approx(expected, rel=1e-9, abs=0)


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=6))
def test_score_scales(log_odds):
    ranking = MonoT5(Convinced(log_odds)).rank("q", [str(i) for i in range(len(log_odds))])
    relevant = [1 / (1 + math.exp(-odds)) for odds in log_odds]
    assert in_input_order(rescaled(ranking, "probability")) == pytest.approx(relevant)
    shares = [chance / math.fsum(relevant) for chance in relevant]
    assert in_input_order(rescaled(ranking, "softmax")) == pytest.approx(shares)


def test_models_that_read_no_instructions_are_refused():
    for lexical in ("unigram", UnigramModel(), UnigramModel().fit(["a text"])):
        with pytest.raises(LacksCapability, match=r"MonoT5 asks .*'unigram.* does not read: give a neural model"):
            MonoT5(lexical)


@pytest.mark.parametrize("limit", [0, -3, 2.5, True])
def test_senseless_limits_are_refused_at_once(tiny, limit):
    with pytest.raises(InvalidInput, match="max_passage_tokens"):
        MonoT5(tiny, max_passage_tokens=limit)


def test_bad_input(tiny):
    mono = MonoT5(tiny)
    with pytest.raises(InvalidInput, match="query"):
        mono.rank(" ", ["a"])
    with pytest.raises(InvalidInput, match="top_n"):
        mono.rank("q", ["a"], 0)
    with pytest.raises(InvalidInput, match="list of passages"):
        mono.rank("q", "a")
    with pytest.raises(InvalidInput, match="2 queries and 1 lists"):
        mono.rank_many(["a", "b"], [["x"]])


def test_nothing_is_loaded_for_nothing(tiny_folder):
    fresh = HuggingFaceModel(str(tiny_folder))
    assert MonoT5(fresh).rank(QUERY, []) == []
    assert MonoT5(fresh).rank_many([], []) == []
    assert fresh._engine is None
