"""Rerank servers as models, with the payloads that each server documents; no real server answers here."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
import subprocess
import sys
import time

import pytest

from drillrank import BRMGR, UPR, Passage, Relevance, load_language_model
from drillrank.errors import LacksCapability, ServerFailure
from drillrank.likelihood import RerankServerModel, SumOfExperts, UnigramModel
from drillrank.likelihood.relevance import log_sigmoid
from drillrank.rerank.brmgr import support
from tests.drillrank.helpers import refuses
from tests.drillrank.rerank_server import logit, serve

APIS = ("tei", "vllm", "infinity", "cohere", "jina", "voyage")
QUERY = "Which novel did Jane Austen write?"
TEXTS = [
    "Basel lies on the Rhine.",
    "Emma is a novel that Jane Austen wrote.",
    "Foxes hunt.",
    "A novel is a long text.",
]
SECRET = "sk-0123456789-SECRET"
BY_LOGIT = sorted(range(len(TEXTS)), key=lambda index: -logit(QUERY, TEXTS[index]))


@pytest.fixture(params=APIS)
def api(request):
    return request.param


@pytest.fixture
def server(api):
    with serve(api) as running:
        yield running


def model_of(server, api, **options):
    return load_language_model(f"{server.root}/rerank#tiny", api=api, **{"retries": 0, **options})


def test_a_server_ranks_by_its_own_scores(server, api):
    ranking = Relevance(model_of(server, api)).rank(QUERY, TEXTS)
    assert [item.details["position"] for item in ranking] == BY_LOGIT
    for item in ranking:
        expected = logit(QUERY, TEXTS[item.details["position"]])
        assert item.details["log_odds"] == pytest.approx(expected, abs=1e-9)
        assert item.score == pytest.approx(log_sigmoid(expected), abs=1e-9)
    for item, explanation in zip(ranking, ranking.explain(), strict=True):
        assert explanation.total == pytest.approx(item.score, abs=1e-9)


def test_a_request_has_the_documented_form(server, api):
    Relevance(model_of(server, api)).rank(QUERY, TEXTS)
    [payload] = server.payloads
    documents = {"texts" if api == "tei" else "documents": TEXTS}
    further = {
        "tei": {"truncate": True, "raw_scores": True},
        "vllm": {},
        "infinity": {"return_documents": False, "raw_scores": True},
        "cohere": {},
        "jina": {"return_documents": False},
        "voyage": {"return_documents": False},
    }
    assert payload == {"model": "tiny", "query": QUERY, **documents, **further[api]}
    assert server.paths == ["/rerank"]


def test_requests_are_divided_by_query_and_size_and_equal_pairs_are_sent_once(server, api):
    model = model_of(server, api, documents_per_request=3, characters_per_request=60)
    lists = [TEXTS, TEXTS[::-1] * 2]
    rankings = Relevance(model).rank_many([QUERY, "Where do foxes hunt?"], lists)
    sizes = [payload["texts" if api == "tei" else "documents"] for payload in server.payloads]
    assert sum(map(len, sizes)) == 2 * len(TEXTS)
    assert all(len(texts) <= 3 and (sum(map(len, texts)) <= 60 or len(texts) == 1) for texts in sizes)
    whole = Relevance(model_of(server, api)).rank_many([QUERY, "Where do foxes hunt?"], lists)
    assert [[(i.passage, i.score) for i in one] for one in rankings] == [
        [(i.passage, i.score) for i in one] for one in whole
    ]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (lambda results: results[1:], "3 scores for 4 documents"),
        (lambda results: [*results, results[0]], "is repeated or is not one of 4 documents"),
        (lambda results: [{**results[0], "index": 4}, *results[1:]], "index 4 is repeated or is not one of"),
        (lambda results: [{**results[0], "index": "0"}, *results[1:]], "is not one of 4 documents"),
        (lambda results: [{**results[0], "score": math.nan, "relevance_score": math.nan}, *results[1:]], "finite"),
        (lambda results: [{**results[0], "score": None, "relevance_score": None}, *results[1:]], "finite number"),
        (lambda results: [{**results[0], "score": True, "relevance_score": True}, *results[1:]], "finite number"),
        (lambda results: [{"index": 0}, *results[1:]], "KeyError"),
        (lambda results: None, "TypeError|KeyError"),
    ],
)
def test_an_answer_without_one_score_per_document_is_refused(server, api, fault, says):
    def change(body):
        if api == "tei":
            return fault(body)
        return {
            **body,
            ("data" if api == "voyage" else "results"): fault(body["data" if api == "voyage" else "results"]),
        }

    server.faults.append(change)
    with pytest.raises(ServerFailure, match=says) as caught:
        Relevance(model_of(server, api)).rank(QUERY, TEXTS)
    assert "Set api= to the kind of the server" in str(caught.value)


@pytest.mark.parametrize("body", ["", "no json", "[]", "{}", "3", '{"results": 3}', "[" * 100_000])
def test_an_answer_in_another_form_is_refused(server, api, body):
    server.faults.append(body)
    with pytest.raises(ServerFailure):
        Relevance(model_of(server, api)).rank(QUERY, TEXTS)


def test_an_error_shows_no_key_and_no_text(server, api, monkeypatch):
    monkeypatch.setenv("DRILLRANK_API_KEY", SECRET)
    server.faults += [422, json.dumps({"detail": [{"input": {"query": QUERY, "documents": TEXTS}}]})]
    for _ in range(2):
        with pytest.raises(ServerFailure) as caught:
            Relevance(model_of(server, api)).rank(QUERY, TEXTS)
        message = str(caught.value)
        assert SECRET not in message
        assert not any(text in message for text in (QUERY, *TEXTS))
        assert "repeats a text that was sent" in message
    assert server.keys == [f"Bearer {SECRET}"] * 2


def test_a_transient_failure_is_tried_again_and_others_are_not(server, api):
    server.faults += [503]
    assert len(Relevance(model_of(server, api, retries=2)).rank(QUERY, TEXTS)) == len(TEXTS)
    server.faults += [401]
    with pytest.raises(ServerFailure, match=r"answered 401.*Set the environment variable MY_KEY") as caught:
        Relevance(model_of(server, api, retries=2, api_key_env="MY_KEY")).rank(QUERY, TEXTS)
    assert caught.value.status == 401
    assert len(server.payloads) == 3


def test_a_slow_server_times_out():
    with serve("vllm") as server:
        server.seconds = 1.0
        with pytest.raises(ServerFailure, match=r"within 0\.2 seconds"):
            Relevance(model_of(server, "vllm", timeout=0.2)).rank(QUERY, TEXTS)


def test_requests_are_concurrent_up_to_a_limit_and_do_not_block_the_event_loop():
    async def rank(model):
        started = time.monotonic()
        ticks = 0
        ranking = asyncio.ensure_future(Relevance(model).arank(QUERY, TEXTS * 3 + [f"Text {i}." for i in range(8)]))
        while not ranking.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return await ranking, ticks, time.monotonic() - started

    with serve("vllm") as server:
        server.seconds = 0.1
        ranking, ticks, _ = asyncio.run(rank(model_of(server, "vllm", documents_per_request=2, concurrency=2)))
    assert len(ranking) == 20
    assert server.most == 2
    assert ticks > 3


@pytest.mark.parametrize("score", [1.5, -0.2])
def test_a_raw_score_where_probabilities_are_expected_is_refused(score):
    with serve("jina") as server:
        server.faults.append(lambda body: {"results": [{"index": 0, "relevance_score": score}]})
        with pytest.raises(ServerFailure, match='not a probability; set scores="logit"'):
            Relevance(model_of(server, "jina")).rank(QUERY, TEXTS[:1])
        server.faults.append(lambda body: {"results": [{"index": 0, "relevance_score": score}]})
        [item] = Relevance(model_of(server, "jina", scores="logit")).rank(QUERY, TEXTS[:1])
    assert item.details["log_odds"] == score


def test_probabilities_that_round_to_0_and_1_have_finite_log_odds():
    with serve("cohere") as server:
        server.faults.append(
            lambda body: {"results": [{"index": index, "relevance_score": score} for index, score in enumerate((0, 1))]}
        )
        best, worst = Relevance(model_of(server, "cohere")).rank(QUERY, TEXTS[:2])
    assert best.details["log_odds"] == pytest.approx(-worst.details["log_odds"])
    assert 27 < best.details["log_odds"] < 28


def test_vllm_can_be_asked_for_logits():
    with serve("vllm") as server:
        ranking = Relevance(model_of(server, "vllm", scores="logit")).rank(QUERY, TEXTS)
    assert server.payloads[0]["use_activation"] is False
    assert [item.details["log_odds"] for item in ranking] == [logit(QUERY, TEXTS[index]) for index in BY_LOGIT]


def test_a_sum_adds_log_probabilities_and_a_sum_of_scorers_adds_log_odds():
    with serve("vllm") as server:
        address = f"{server.root}/v1/rerank#tiny"
        model = load_language_model(f"unigram+2*{address}", experts=[{}, {"scores": "logit"}])
        likelihoods = model.fitted(TEXTS).log_likelihood([(text, QUERY) for text in TEXTS])
        words = UnigramModel().fit(TEXTS).log_likelihood([(text, QUERY) for text in TEXTS])
        for text, likelihood, by_words in zip(TEXTS, likelihoods, words, strict=True):
            assert likelihood.mean == pytest.approx(by_words.mean + 2 * log_sigmoid(logit(QUERY, text)), abs=1e-9)
        server.payloads.clear()
        passages = [Passage(f"{text} {number}", id=str(number)) for number in range(5) for text in TEXTS]
        ranking = UPR(model).rank(QUERY, passages)
        assert len(server.payloads[0]["documents"]) == 10
        assert sum(item.details["read"] for item in ranking) == 10
        for item, explanation in zip(ranking, ranking.explain(), strict=True):
            assert explanation.total == pytest.approx(item.score, abs=1e-6)
        scorer = load_language_model(address, scores="logit")
        added = Relevance(SumOfExperts([scorer, scorer], [1, 3])).rank(QUERY, TEXTS)
    assert [item.details["log_odds"] for item in added] == pytest.approx([4 * logit(QUERY, TEXTS[i]) for i in BY_LOGIT])


def test_a_model_survives_pickling_and_its_specification():
    with serve("tei") as server:
        model = model_of(server, "tei", documents_per_request=7)
        for again in (pickle.loads(pickle.dumps(model)), load_language_model(model.spec, **model.options)):
            assert (again.spec, again.options) == (model.spec, model.options)
            assert [i.details["position"] for i in Relevance(again).rank(QUERY, TEXTS)] == BY_LOGIT


def test_hosts_of_known_services_need_no_api():
    models = {
        "cohere": "https://api.cohere.com/v2/rerank#rerank-v3.5",
        "jina": "https://api.jina.ai/v1/rerank#jina-reranker-v3",
        "voyage": "https://api.voyageai.com/v1/rerank#rerank-2.5",
        "vllm": "http://localhost:8000/rerank",
    }
    for api, address in models.items():
        model = load_language_model(address)
        assert isinstance(model, RerankServerModel)
        assert model.options["api"] == api


def test_no_torch_is_imported():
    code = (
        "import sys; from drillrank import Relevance; Relevance('http://localhost:1/rerank#m'); "
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


ADDRESS = "http://localhost:1/rerank#m"
test_what_cannot_be_asked = refuses(
    (lambda: load_language_model(ADDRESS, api="bing"), "api must be one of tei, vllm"),
    (lambda: load_language_model(ADDRESS, scores="percent"), 'scores must be "probability" or "logit"'),
    (lambda: load_language_model("http://localhost:1/rerank", api="infinity"), "Infinity needs the name of a model"),
    (lambda: load_language_model("http://user:pass@localhost/rerank#m"), "without a login"),
    *((lambda bad=bad: load_language_model(ADDRESS, **bad), next(iter(bad)))
      for bad in ({"timeout": 0}, {"retries": -1}, {"concurrency": 0}, {"documents_per_request": 0},
                  {"characters_per_request": 0}, {"engine": "vllm"})),
    (lambda: Relevance(ADDRESS, preset="qwen3-reranker"), "without a prompt, got preset='qwen3-reranker'"),
    (lambda: Relevance(ADDRESS, template="{query} {text}"), "without a prompt, got template="),
    (lambda: Relevance(ADDRESS, settings={"positive": "yes"}), "without a prompt, got positive='yes'"),
    (lambda: Relevance(ADDRESS, max_passage_tokens=9).rank("q", ["a"]), "Remove max_passage_tokens"),
    (lambda: UPR(ADDRESS, preset="upr"), "reads no instructions"),
)  # fmt: skip


def test_a_scorer_of_relevance_has_no_next_tokens_and_no_likelihood_of_passages():
    with serve("vllm") as server:
        merging = BRMGR(model_of(server, "vllm"), settings={"generated_score": "question"})
        merged = merging.rank(QUERY, TEXTS, ["Jane Austen wrote the novel Emma."])
        assert merged[0].passage.text == "Jane Austen wrote the novel Emma."
        with pytest.raises(LacksCapability, match="The guard"):
            support(model_of(server, "vllm"), "{question}", QUERY, [Passage(TEXTS[0])], TEXTS[1:])
