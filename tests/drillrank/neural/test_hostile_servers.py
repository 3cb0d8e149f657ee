"""Servers that attack whoever asks them, and what must not leave this process; over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
import time
from contextlib import suppress

import pytest

from drillrank import UPR, limits, load_language_model
from drillrank.errors import InvalidInput, ServerFailure
from tests.drillrank.neural.conftest import saved
from tests.drillrank.neural.fake_server import FakeServer

SECRET = "sk-0123456789-SECRET"
HEAD = b"HTTP/1.1 200 OK\r\n"


class Hostile:
    """Answers every connection, in a thread of its own, by a function of the socket."""

    def __init__(self, answer):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.answer = answer
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.listening.getsockname()[1]}/v1#tiny"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listening.accept()[0],), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            self.answer(connection, connection.recv(1 << 20))


@pytest.fixture
def hostile():
    started = []

    def start(answer) -> Hostile:
        started.append(Hostile(answer))
        return started[-1]

    yield start
    for server in started:
        server.listening.close()


def with_body(body: bytes, *headers: bytes) -> bytes:
    return HEAD + b"".join(header + b"\r\n" for header in headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def drip(before: bytes, piece: bytes, pause: float = 0.1):
    """Sends the beginning, and then the piece for ever."""

    def answer(connection, _):
        connection.sendall(HEAD + before)
        while True:
            connection.sendall(piece)
            time.sleep(pause)

    return answer


def bomb(connection, _):
    connection.sendall(with_body(gzip.compress(b"[" + b" " * 80_000_000 + b"]"), b"Content-Encoding: gzip"))


def large(connection, _):
    connection.sendall(with_body(b'{"data":[{"id":"tiny","more":"' + b"x" * 65_000_000 + b'"}]}'))


def deep(connection, _):
    connection.sendall(with_body(b'{"data":' + b"[" * 100_000))


@pytest.mark.parametrize(
    ("answer", "timeout", "match"),
    [
        (drip(b"Content-Length: 9999\r\n\r\n", b" "), 1.0, "timed out: no whole answer within 1 seconds"),
        (drip(b"X: ", b"x"), 1.0, "timed out: no whole answer within 1 seconds"),
        (drip(b"\r\n[", b"1," * 100_000, 0), 20.0, "answered with more than 64000000 bytes"),
        (large, 20.0, "answered with more than 64000000 bytes"),
        (bomb, 20.0, "answered in a compression, which was not asked for"),
        (deep, 20.0, "answered, but not as a server that lists its models does"),
    ],
)
def test_an_answer_has_limits(hostile, answer, timeout, match):
    with pytest.raises(ServerFailure, match=match) as caught:
        load_language_model(hostile(answer).address, timeout=timeout, retries=0).count_tokens("Basel")
    assert len(str(caught.value)) < 400


def test_the_limit_may_be_raised(hostile, monkeypatch):
    monkeypatch.setattr(limits, "ANSWER_BYTES", 70_000_000)
    assert load_language_model(hostile(large).address).server.engine == "An OpenAI-compatible server"


def echo(connection, request):
    headers = request.decode().split("\r\n\r\n")[0]
    body = json.dumps({"error": {"message": f"refused: {headers} \x1b[31m\u202e {'document ' * 10_000}"}}).encode()
    connection.sendall(b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def echo_as_text(connection, request):
    connection.sendall(with_body(request[request.index(b"Authorization") :]))


@pytest.mark.parametrize("answer", [echo, echo_as_text])
@pytest.mark.parametrize("key", [SECRET, f"{SECRET}\n", f"{SECRET}\nX-Injected: 1", f"{SECRET}\u2028"])
def test_no_error_holds_the_key_escapes_or_much_of_what_was_sent(hostile, monkeypatch, answer, key):
    monkeypatch.setenv("DRILLRANK_API_KEY", key)
    model = load_language_model(hostile(answer).address, retries=0)
    with pytest.raises((ServerFailure, InvalidInput)) as caught:
        UPR(model).rank("who?", ["The Rhine."])
    error: BaseException | None = caught.value
    assert len(str(error)) < 400
    assert str(error).isprintable()
    while error:
        assert "0123456789" not in f"{error!r}"
        error = error.__cause__


def test_a_mounted_key_ends_with_a_newline(vllm, monkeypatch):
    monkeypatch.setenv("DRILLRANK_API_KEY", f"{SECRET}\n")
    assert UPR(load_language_model(vllm.address)).rank("who?", ["The Rhine."])
    assert {*vllm.keys} == {f"Bearer {SECRET}"}


@pytest.fixture
def vllm(tmp_path_factory):
    server = FakeServer("vllm", saved("qwen2", tmp_path_factory))
    yield server
    server.stop()


def test_a_refusal_does_not_wait_for_slow_siblings(vllm):
    model = load_language_model(vllm.address, prompts_per_request=1, concurrency=4, retries=0)
    UPR(model).rank("who?", ["Basel"])
    vllm.requests.clear()
    vllm.slow = lambda number: 0.0 if number == 3 else 20.0
    vllm.faults = [None, None, None, 400]
    started = time.perf_counter()
    with pytest.raises(ServerFailure, match="answered 400"):
        UPR(model).rank("who?", [f"Basel {number}" for number in range(8)])
    assert time.perf_counter() - started < 10
    time.sleep(0.2)
    assert len(vllm.requests) == 4  # none of those that waited was sent


def test_retries_end_with_the_deadline(vllm):
    model = load_language_model(vllm.address, timeout=1.0, retries=100)
    UPR(model).rank("who?", ["Basel"])
    vllm.faults = [503] * 200
    started = time.perf_counter()
    with pytest.raises(ServerFailure, match="answered 503"):
        UPR(model).rank("who?", ["The Rhine."])
    assert time.perf_counter() - started < 10
    vllm.faults.clear()
    vllm.slow = lambda _: 20.0  # is not asked again: it would have all the more to do
    vllm.requests.clear()
    with pytest.raises(ServerFailure, match="timed out"):
        UPR(model).rank("who?", ["The Rhine."])
    assert len(vllm.requests) == 1


async def test_a_caller_who_leaves_stops_the_requests(vllm):
    model = load_language_model(vllm.address, prompts_per_request=1, concurrency=2)
    UPR(model).rank("who?", ["Basel"])
    vllm.requests.clear()
    vllm.slow = lambda _: 0.3
    texts = [f"Basel {number}" for number in range(20)]
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(model.run_in_worker(UPR(model).rank, "who?", texts), 0.2)
    await asyncio.sleep(0.9)
    assert len(vllm.requests) == 2
    vllm.slow = lambda _: 0.0
    assert len(await model.run_in_worker(UPR(model).rank, "who?", texts)) == 20


async def test_many_callers_on_one_loop_do_not_starve_its_other_work(vllm):
    model = load_language_model(vllm.address, prompts_per_request=1, concurrency=4)
    UPR(model).rank("who?", ["Basel"])
    vllm.slow = lambda _: 0.05
    asking = [asyncio.ensure_future(model.run_in_worker(UPR(model).rank, "who?", [f"B {n}"])) for n in range(100)]
    await asyncio.sleep(0.1)
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "another's work"), 0.5) == "another's work"
    assert len(await asyncio.gather(*asking)) == 100
    assert vllm.most <= 4
