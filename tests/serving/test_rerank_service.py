"""The example of a service, started as a user starts it, asked by many at once, and stopped: `make test-serving`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from drillrank import UPR, load_language_model
from tests.drillrank.neural.conftest import saved
from tests.drillrank.neural.fake_server import FakeServer

httpx = pytest.importorskip("httpx", reason="make test-serving installs it")
pytest.importorskip("fastapi", reason="make test-serving installs it")

FOLDER = Path(__file__).parents[2] / "examples" / "serving"
DOCUMENTS = ["The old town of Basel lies on the Rhine.", "Emma is a novel by Jane Austen.", "Whales sing.", "a" * 300]
QUESTIONS = [f"{word} number {number}?" for number, word in enumerate(["Which novel", "Which town", "Who sings"] * 22)]


@contextmanager
def service(model: str, **settings: str):
    """The address of a service that runs in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"DRILLRANK_MODEL": model, "PORT": str(port), **settings}
    command = [sys.executable, str(FOLDER / "rerank_service.py")]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    process.port = port
    process.address = f"http://127.0.0.1:{port}"
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.printed = process.communicate(timeout=60)[0]
        finally:
            process.kill()


def ready(address: str, status: int = 200) -> httpx.Response:
    """What /ready answers, once the service answers with that status."""
    for _ in range(600):
        try:
            answer = httpx.get(f"{address}/ready")
            if answer.status_code == status:
                return answer
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("It never came up.")


def asked(address: str, question: str, **more: object) -> httpx.Response:
    return httpx.post(f"{address}/rerank", json={"query": question, "documents": DOCUMENTS, **more}, timeout=120)


def expected(model: str, question: str) -> dict[int, float]:
    return {item.details["position"]: item.score for item in UPR(load_language_model(model)).rank(question, DOCUMENTS)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved("llama", tmp_path_factory)


@pytest.mark.parametrize("callers", [1, 4, 16, 64])
def test_many_callers_get_the_scores_of_one(folder, running, callers):
    model = f"hf:{folder}"
    with ThreadPoolExecutor(callers) as threads:
        answers = list(threads.map(lambda question: asked(running, question), QUESTIONS[:callers]))
    assert {answer.status_code for answer in answers} == {200}
    for answer, question in [*zip(answers, QUESTIONS, strict=False)][:4]:
        found = {result["index"]: result["relevance_score"] for result in answer.json()["results"]}
        alone = expected(model, question)
        assert found.keys() == alone.keys()
        np.testing.assert_allclose([found[i] for i in alone], [*alone.values()], atol=1e-4)


@pytest.fixture(scope="module")
def running(folder):
    with service(f"hf:{folder}") as process:
        ready(process.address)
        yield process.address


def test_top_n_bad_input_and_metrics(running):
    assert httpx.get(f"{running}/health").json() == {"status": "alive"}
    assert len(asked(running, "Which novel?", top_n=2).json()["results"]) == 2
    assert asked(running, "Which novel?", top_n=0).status_code == 422
    blank = asked(running, " ")
    assert blank.status_code == 422
    assert "query" in blank.json()["detail"]
    assert httpx.post(f"{running}/rerank", json={"query": "x", "documents": []}).json()["results"] == []
    told = httpx.get(f"{running}/metrics").text
    assert 'rerank_requests_total{status="200"}' in told
    assert 'rerank_requests_total{status="422"}' in told
    assert "rerank_seconds_bucket" in told
    assert "rerank_in_queue 0.0" in told


def test_a_full_queue_refuses_with_503_and_a_slow_model_with_504(folder, tmp_path_factory):
    vllm = FakeServer("vllm", folder)
    try:
        with service(vllm.address, DRILLRANK_QUEUE="2", DRILLRANK_TIMEOUT="1") as process:
            ready(process.address)
            found = asked(process.address, "Which novel?").json()
            assert {result["index"] for result in found["results"]} == {0, 1, 2, 3}
            vllm.slow = 3.0
            with ThreadPoolExecutor(8) as threads:
                answers = list(threads.map(lambda question: asked(process.address, question), QUESTIONS[:8]))
            statuses = [answer.status_code for answer in answers]
            assert sorted(statuses) == [503] * 6 + [504] * 2
            refused = next(answer for answer in answers if answer.status_code == 503)
            assert refused.headers["retry-after"] == "1"
            vllm.slow = 0.0
            assert asked(process.address, "Which town?").status_code == 200
            vllm.faults = [400] * 20
            failed = asked(process.address, "Which town?")
            assert failed.status_code == 502
            assert "127.0.0.1" not in failed.text
            assert "400" not in failed.text
    finally:
        vllm.stop()


def test_a_model_that_cannot_be_loaded_is_never_ready(tmp_path):
    with service(f"hf:{tmp_path}") as process:
        while "cannot be loaded" not in (answer := ready(process.address, 503)).text:
            time.sleep(0.1)
        assert str(tmp_path) not in answer.text
        assert httpx.get(f"{process.address}/health").status_code == 200
        assert asked(process.address, "Which novel?").status_code == 503
    assert f"{tmp_path}" in process.printed


def raw(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """What is answered to bytes that are sent one part after another."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except ConnectionError:
            return b""


HEAD = b"POST /rerank HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def test_only_who_has_the_key_may_ask():
    with service("unigram", DRILLRANK_SERVICE_KEY="let me in\n") as process:
        assert ready(process.address).json() == {"status": "ready"}
        for sent in ({}, {"Authorization": "Bearer let me"}, {"Authorization": "let me in"}):
            for path in ("rerank", "metrics", "docs", "openapi.json"):
                assert httpx.request("POST", f"{process.address}/{path}", headers=sent, json={}).status_code == 401
        sent = {"Authorization": "Bearer let me in"}
        question = {"query": "Which novel?", "documents": DOCUMENTS}
        assert httpx.post(f"{process.address}/rerank", json=question, headers=sent).status_code == 200
        assert httpx.get(f"{process.address}/metrics", headers=sent).status_code == 200


def test_requests_that_are_too_large_malformed_or_slow(tmp_path):
    with service("unigram", DRILLRANK_BODY="100000") as process:
        ready(process.address)
        url = f"{process.address}/rerank"
        assert httpx.post(url, json={"query": "x", "documents": ["a" * 200_000]}).status_code == 413
        assert httpx.post(url, content=iter([b"[" * 60_000] * 3)).status_code == 413  # nobody said how long it is
        for wrong in ({"query": ["x" * 50_000], "documents": []}, {"query": "x" * 20_000, "documents": []}):
            answer = httpx.post(url, json=wrong)
            assert answer.status_code == 422
            assert "xx" not in answer.text
        for half in (
            b'{"query":["\\ud800"],"documents":["a"]}',
            b'{"query":"\\ud800","documents":["a"]}',
            b"[" * 90_000,
        ):
            assert httpx.post(url, content=half).status_code == 422
        slow = [lambda: raw(process.port, HEAD, pause=1.0)] * 150  # the head never ends
        slow += [lambda: raw(process.port, HEAD + b"Content-Length: 99\r\n\r\n{", pause=1.0)] * 150
        with ThreadPoolExecutor(300) as threads:
            began = time.perf_counter()
            answers = [threads.submit(one) for one in slow]
            time.sleep(2)
            assert asked(process.address, "Which novel?").status_code == 200
            assert {one.result()[:12] for one in answers} <= {b"", b"HTTP/1.1 408"}
        assert 9 < time.perf_counter() - began < 60
        assert asked(process.address, "Which novel?").status_code == 200


def test_work_that_was_given_up_keeps_its_place_until_it_ends():
    """An unigram model of many words is at work for some seconds, and nobody can stop it."""
    question = {"query": "w1 w2", "documents": [" ".join(f"w{n}" for n in range(i, i + 600)) for i in range(1000)]}
    with service("unigram", DRILLRANK_QUEUE="1", DRILLRANK_TIMEOUT="0.01", DRILLRANK_BODY="9000000") as process:
        ready(process.address)
        assert httpx.post(f"{process.address}/rerank", json=question, timeout=60).status_code == 504
        assert asked(process.address, "Which novel?").status_code == 503
        for _ in range(600):
            if "rerank_in_queue 0.0" in httpx.get(f"{process.address}/metrics").text:
                break
            time.sleep(0.1)
        assert asked(process.address, "Which novel?").status_code in (200, 504)


def test_a_terminated_service_answers_what_it_has_begun(folder):
    vllm = FakeServer("vllm", folder)
    try:
        with service(vllm.address) as process:
            ready(process.address)
            vllm.slow = 1.0
            with ThreadPoolExecutor(1) as threads:
                answer = threads.submit(asked, process.address, "Which novel?")
                time.sleep(0.5)
                process.send_signal(signal.SIGTERM)
                assert answer.result(60).status_code == 200
            assert process.wait(60) in (0, -signal.SIGTERM)
    finally:
        vllm.stop()
