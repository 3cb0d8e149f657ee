"""Served models against the same model here, and against servers that fail in every way."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank import UPR, Passage, Relevance, load_language_model
from drillrank.errors import DrillrankWarning, InvalidInput, LacksCapability, ServerFailure
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.likelihood import HuggingFaceModel, Request
from drillrank.prompts import TruncatableText
from tests.drillrank.neural.conftest import saved
from tests.drillrank.neural.fake_server import FakeServer
from tests.drillrank.neural.tokenizers_of_all_kinds import CHAT
from tests.examples import examples

TEXTS = ["The Rhine is a river.", "Emma is a novel <|im_end|>.", Passage("Basel " * 30, title="Basel")]
QUESTION = "who wrote <|im_start|> it?"
WORDS = ["Basel", "the Rhine", "novel", "東京", "42", "who wrote it?", "</s>", "<|im_start|>", "\ud83e"]
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
requests = st.lists(
    st.builds(
        Request,
        st.tuples(st.just("Passage: "), phrases.map(TruncatableText), st.just(" Ask.")),
        phrases.filter(lambda text: "\ud83e" not in text),
        st.sampled_from([None, 30]),
    ),
    min_size=1,
    max_size=6,
)
QUICK = {"retries": 2, "timeout": 20.0}
RELEVANCE = ["vllm", "sglang", "llama.cpp", "ollama", "openai"]
ASKED = {"positive": "e", "negative": "s"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = saved("qwen2", tmp_path_factory)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def here(folder):
    return HuggingFaceModel(str(folder), dtype="float32")


@pytest.fixture(scope="module")
def servers(folder):
    started = {engine: FakeServer(engine, folder) for engine in RELEVANCE}
    yield started
    for server in started.values():
        server.stop()


@pytest.fixture
def server(servers, request):
    server = servers[getattr(request, "param", "vllm")]
    server.requests.clear()
    server.keys.clear()
    server.faults.clear()
    server.slow, server.most = 0.0, 0
    return server


def relevance(model, **asked):
    return Relevance(model, **keyword_arguments(Relevance, asked))


def served(server, **options):
    return load_language_model(server.address, tokenizer=str(server.folder), **QUICK | options)


on_likelihood = pytest.mark.parametrize("server", ["vllm", "sglang"], indirect=True)


@on_likelihood
@settings(max_examples=examples(10), suppress_health_check=list(HealthCheck))
@given(requests, st.booleans(), st.booleans(), st.integers(1, 4))
def test_likelihoods_are_those_of_the_model_here(server, here, asked, include_eos, chat, per_request):
    asked = [Request(one.prompt, one.target, one.max_tokens, chat) for one in asked]
    model = served(server, prompts_per_request=per_request)
    found = model.log_likelihood(asked, include_eos=include_eos)
    for one, other in zip(found, here.log_likelihood(asked, include_eos=include_eos), strict=True):
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)
        assert (one.tokens, one.cut_tokens) == (other.tokens, other.cut_tokens)
        assert one.log_probs.dtype == np.float64


@on_likelihood
@pytest.mark.parametrize("chat", [True, False])
def test_relevance_is_that_of_the_model_here(server, here, chat):
    asked = ASKED | {"preset": "monot5", "chat": chat, "max_passage_tokens": 9}
    found, expected = (relevance(model, **asked).rank(QUESTION, TEXTS) for model in (served(server), here))
    assert [item.score for item in found] == pytest.approx([item.score for item in expected], abs=1e-5)
    assert [item.details["cut_tokens"] for item in found] == [item.details["cut_tokens"] for item in expected]
    assert all(item.details["bounded"] == [] for item in found)


@pytest.mark.parametrize(
    ("server", "chat"),
    [("llama.cpp", True), ("llama.cpp", False), ("ollama", True), ("ollama", False), ("openai", True)],
    indirect=["server"],
)
@pytest.mark.filterwarnings("ignore:The server reported neither answer:drillrank.errors.DrillrankWarning")
def test_relevance_from_the_likeliest_tokens(server, here, chat):
    """Where an answer is among the 20 likeliest its value is exact, and elsewhere a bound that holds."""
    texts = [f"The Rhine {word}" for word in ("", "river", "novel", "Basel", "東京", "42", "Emma", "who")]
    likely = _likely(server, chat)
    bounds = 0
    for positive, negative in ((likely[0], likely[1]), (likely[0], likely[60]), (likely[70], likely[1])):
        asked = {"template": "{query} {text}.", "positive": positive, "negative": negative, "chat": chat}
        found = {item.passage.text: item for item in relevance(served(server), **asked).rank("who?", texts)}
        for item in relevance(here, **asked).rank("who?", texts):
            details = found[item.passage.text].details
            for name in ("positive", "negative"):
                if name in details["bounded"]:
                    bounds += 1
                    assert item.details[name] <= details[name] + 1e-5
                else:
                    assert details[name] == pytest.approx(item.details[name], abs=1e-5)
    assert bounds


def _likely(server, chat):
    """Answers from the likeliest on, each a text of its own that is one token again."""
    asked = "who? The Rhine ."
    text = server.chat([{"role": "user", "content": asked}]) if chat else asked
    words = [word for _, word, _ in server._top(text)]
    single = lambda word: len(server.tokenizer(word, add_special_tokens=False)["input_ids"]) == 1  # noqa: E731
    return [word for word in words if word.strip() and "\ufffd" not in word and words.count(word) == 1 and single(word)]


@pytest.mark.parametrize("server", ["ollama"], indirect=True)
def test_answers_that_no_server_tells_count_as_undecided_and_are_told(server):
    answers = _likely(server, False)[-2:]
    asked = {"template": "{query} {text}.", "positive": answers[0], "negative": answers[1], "chat": False}
    with pytest.warns(DrillrankWarning, match="server reported neither answer"):
        [item] = relevance(served(server), **asked).rank("who?", ["The Rhine"])
    assert item.score == pytest.approx(math.log(0.5))
    assert item.details["bounded"] == ["positive", "negative"]


@pytest.mark.parametrize("server", ["ollama", "openai"], indirect=True)
def test_without_a_tokenizer_text_goes_as_it_is_or_not_at_all(server):
    model = load_language_model(server.address, **QUICK)
    likely = _likely(server, True)
    asked = {"template": "{query} {text}.", "positive": likely[0], "negative": likely[1]}
    assert len(relevance(model, **asked).rank("who?", ["The Rhine"])) == 1
    for more in ({"max_passage_tokens": 5}, {"chat": False}, {"positive": 3}):
        with pytest.raises(InvalidInput, match="set the option tokenizer="):
            relevance(model, **(asked | more)).rank("who?", ["The Rhine"])


@pytest.mark.filterwarnings("ignore:The server reported neither answer:drillrank.errors.DrillrankWarning")
@pytest.mark.parametrize("server", ["ollama"], indirect=True)
def test_what_takes_text_is_sent_no_control_tokens_of_a_document(server):
    relevance(served(server), preset="qwen3-reranker", **ASKED).rank(QUESTION, TEXTS[:2])
    for _, payload in server.requests:
        assert payload["prompt"].count("<|im_start|>") == 3
        assert payload["prompt"].count("<|im_end|>") == 2


@pytest.mark.parametrize(
    ("server", "rank", "match"),
    [
        *((engine, UPR, r"Rank with Relevance.*vLLM or SGLang") for engine in ("llama.cpp", "ollama", "openai")),
        *(
            (engine, lambda model: relevance(model, preset="zerank-2", **ASKED), "one raw logit")
            for engine in RELEVANCE
        ),
        ("openai", lambda model: relevance(model, preset="qwen3-reranker", **ASKED), "takes conversations"),
    ],
    indirect=["server"],
)
def test_what_a_server_cannot_tell_is_refused_with_what_would_do(server, rank, match):
    with pytest.raises(LacksCapability, match=match):
        rank(served(server)).rank("who?", ["The Rhine."])
    assert not server.requests


@pytest.mark.parametrize("fault", [429, 500, 503, "drop"])
def test_a_fault_that_passes_costs_nothing(server, here, fault):
    model = served(server, prompts_per_request=1)
    server.faults += [fault, fault]
    found = [item.score for item in UPR(model).rank("who?", TEXTS)]
    assert found == pytest.approx([item.score for item in UPR(here).rank("who?", TEXTS)], abs=1e-4)
    assert len(server.requests) == len(TEXTS) + 2


@pytest.mark.parametrize(("status", "times"), [(429, 3), (500, 3), (400, 1), (401, 1), (404, 1)])
def test_a_fault_that_stays_fails_the_call_with_the_servers_words(server, status, times):
    model = served(server)
    server.faults += [status] * 9
    said = f"/v1/completions answered {status}: .*told to fail with {status}"
    with pytest.raises(ServerFailure, match=said) as caught:
        UPR(model).rank("who?", ["The Rhine."])
    assert len(server.requests) == times
    assert ("DRILLRANK_API_KEY" in str(caught.value)) == (status == 401)


def changed(*place, to):
    """An answer with something else in one place, or without it."""

    def change(answer):
        at = answer
        for step in place[:-1]:
            at = at[step]
        if to is ...:
            del at[place[-1]]
        else:
            at[place[-1]] = to
        return answer

    return change


def last_log_prob(value):
    def change(answer):
        for one in answer["choices"]:
            [told] = one["prompt_logprobs"][-1].values()
            told["logprob"] = value
        return answer

    return change


LIES = [last_log_prob(value) for value in (-9999.0, 0.5, None, "-1.0", True, math.nan, -math.inf)]
LIES += [changed("choices", 0, "prompt_logprobs", to=to) for to in (..., None)]
LIES += [changed("choices", 0, "prompt_logprobs", -1, to=None), changed("choices", 0, "prompt_logprobs", 0, to=...)]
LIES += [changed("choices", 0, "prompt_token_ids", to=to) for to in (..., [1, 2])]
LIES += [changed("choices", 0, "index", to=7), *(changed("choices", to=to) for to in ([], None))]
LIES += [lambda _, answer=answer: answer for answer in ([], "<html>busy</html>", "")]


OTHER = changed(0, "meta_info", "input_token_logprobs", -1, to=[-1.0, 0, None])


@pytest.mark.parametrize(
    ("server", "lie", "match"),
    [
        *(("vllm", lie, r"/v1/completions answered(, but not as vLLM does| no JSON)") for lie in LIES),
        ("sglang", OTHER, "other tokens were read than were sent"),
    ],
    indirect=["server"],
)
def test_a_lie_is_an_error_and_never_a_score(server, lie, match):
    model = served(server)
    server.faults.append(lie)
    with pytest.raises(ServerFailure, match=match):
        UPR(model).rank("who?", ["The Rhine.", "Emma."])


@pytest.mark.parametrize(
    ("server", "lie"),
    [
        ("vllm", changed("choices", 0, "logprobs", "top_logprobs", 0, to={"token_id:0": -1.0})),
        ("vllm", changed("choices", 0, "logprobs", to=None)),
        ("sglang", changed(0, "meta_info", "output_token_ids_logprobs", to=[[]])),
        ("sglang", changed(0, "meta_info", "prompt_tokens", to=3)),
        ("sglang", lambda answer: answer[1:]),
        ("llama.cpp", changed("completion_probabilities", to=[])),
        ("llama.cpp", changed("completion_probabilities", 0, "top_logprobs", to=[])),
        ("ollama", changed("logprobs", to=...)),
        ("openai", changed("choices", 0, "logprobs", to=None)),
    ],
    indirect=["server"],
)
def test_a_lie_about_the_next_token_is_an_error(server, lie):
    model = served(server)
    server.faults.append(lie)
    with pytest.raises(ServerFailure, match=r"answered, but not as .* does"):
        relevance(model, **ASKED).rank("who?", ["The Rhine."])


def test_the_key_is_sent_and_never_kept(server, monkeypatch):
    monkeypatch.setenv("DRILLRANK_API_KEY", "a secret")
    model = served(server)
    UPR(model).rank("who?", ["The Rhine."])
    assert {*server.keys} == {"Bearer a secret"}
    assert b"a secret" not in pickle.dumps(model)
    assert "a secret" not in repr(model.options)
    server.faults.append(400)
    with pytest.raises(ServerFailure) as caught:
        UPR(model).rank("who?", ["The Rhine."])
    assert "a secret" not in str(caught.value)


def test_a_model_travels_as_its_address_and_options(server):
    model = served(server, prompts_per_request=3)
    again = pickle.loads(pickle.dumps(model))
    assert (again.spec, again.options) == (model.spec, model.options)
    rebuilt = load_language_model(model.spec, **model.options)
    for one in (again, rebuilt):
        assert UPR(one).rank("who?", ["Emma."])[0].score == UPR(model).rank("who?", ["Emma."])[0].score


def test_the_only_model_needs_no_name_and_another_is_not_found(server):
    url = server.address.removesuffix("#tiny")
    assert UPR(load_language_model(url, **QUICK)).rank("who?", ["Emma."])
    with pytest.raises(InvalidInput, match="scores at temperature 1"):
        load_language_model(url, **QUICK).log_likelihood([("a", "b")], temperature=1.4)
    with pytest.raises(InvalidInput, match=r"does not serve 'large'. Use one of its models: tiny"):
        UPR(load_language_model(f"{url}#large", **QUICK)).rank("who?", ["Emma."])


def test_the_servers_window_is_kept(server, here):
    model = served(server)
    [item] = UPR(model).rank("who?", ["Basel " * 400])
    [[sent]] = [payload["prompt"] for _, payload in server.requests]
    assert len(sent) <= 299
    assert item.details["cut_tokens"] > 0
    assert model.first_tokens("Basel lies", 1) == here.first_tokens("Basel lies", 1)
    assert model.count_tokens("Basel lies") == here.count_tokens("Basel lies")


SENSELESS = [
    *((f"http://{url}#m", {}, "without a login") for url in
      ("me:secret@host/v1", ":secret@host/v1", "secret@host/v1", "host/v1?key=secret")),
    *((f"http://{url}#m", {}, "A server's address is") for url in ("", "[::1", "host:99999999/v1", "ho\nst/v1")),
    *(("http://h/v1#m", {name: wrong}, name) for name, wrong in (("concurrency", 0), ("retries", -1), ("timeout", 0))),
    ("http://host/v1#m", {"engine": "tgi"}, "engine must be one of vllm"),
    ("http://host/v1#m", {"device": "cuda"}, "The options of"),
]  # fmt: skip


@pytest.mark.parametrize(("address", "options", "match"), SENSELESS)
def test_senseless_addresses_and_options_are_refused_at_once(address, options, match):
    with pytest.raises(InvalidInput, match=match) as caught:
        load_language_model(address, **options)
    assert "secret" not in str(caught.value)
