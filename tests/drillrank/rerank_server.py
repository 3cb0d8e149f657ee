"""A small rerank server that answers in the documented form of each kind, with faults on order.

The forms are those of the servers' documentation, not of the servers themselves.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from drillrank.text import terms


def logit(query: str, document: str) -> float:
    """Return a score: shared stems minus 1.5, and a little less for longer documents."""
    words = terms(document)
    return len(set(terms(query)) & set(words)) - 1.5 - len(words) / 1000


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def answer(api: str, payload: dict[str, Any]) -> Any:
    """Return the documented answer of a kind of server, best document first."""
    documents = payload["texts" if api == "tei" else "documents"]
    raw = payload.get("raw_scores") or payload.get("use_activation") is False
    scores = [logit(payload["query"], document) for document in documents]
    scores = scores if raw else list(map(sigmoid, scores))
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    if api == "tei":
        return [{"index": index, "score": scores[index]} for index in order]
    results: list[dict[str, Any]] = [{"index": index, "relevance_score": scores[index]} for index in order]
    if api == "vllm":
        for result in results:
            result["document"] = {"text": documents[result["index"]], "multi_modal": None}
        return {
            "id": "rerank-1",
            "model": payload.get("model", "tiny"),
            "usage": {"total_tokens": 9},
            "results": results,
        }
    if api == "infinity":
        return {"object": "rerank", "results": results, "model": payload["model"], "usage": {}, "id": "1", "created": 1}
    if api == "cohere":
        return {"id": "1", "results": results, "meta": {"api_version": {"version": "2"}}}
    if api == "jina":
        return {"model": payload["model"], "object": "list", "usage": {"total_tokens": 9}, "results": results}
    return {"object": "list", "data": results, "model": payload["model"], "usage": {"total_tokens": 9}}


@dataclass(frozen=True)
class Refusal:
    """Answer of a server that does not rerank.

    Attributes:
        status: Status code.
        body: Text of the answer.
        headers: Further headers.
    """

    status: int
    body: str = "{}"
    headers: Mapping[str, str] = field(default_factory=dict)


class RerankServer:
    """Serves `/rerank`, `/v1/rerank` and `/v2/rerank`.

    Attributes:
        payloads: Body of every request.
        paths: Path of every request.
        keys: Header `Authorization` of every request.
        faults: Answers of the next requests: a status, a refusal, a whole body, or a function that changes the answer.
        seconds: Duration of every request.
        most: Largest number of concurrent requests.
    """

    def __init__(self, api: str) -> None:
        self.payloads: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.faults: list[int | str | Refusal | Callable[[Any], Any]] = []
        self.seconds = 0.0
        self.running, self.most = 0, 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    server.running += 1
                    server.most = max(server.most, server.running)
                    server.payloads.append(payload)
                    server.paths.append(self.path)
                    server.keys.append(self.headers.get("Authorization"))
                    fault = server.faults.pop(0) if server.faults else None
                time.sleep(server.seconds)
                with server._lock:
                    server.running -= 1
                if isinstance(fault, int):
                    fault = Refusal(fault, json.dumps({"error": f"refused, got {payload}"}))
                elif isinstance(fault, str):
                    fault = Refusal(200, fault)
                if not isinstance(fault, Refusal):
                    body = answer(api, payload)
                    fault = Refusal(200, json.dumps(body if fault is None else fault(body)))
                self.send_response(fault.status)
                for name, value in {"Content-Length": str(len(fault.body.encode())), **fault.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(fault.body.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serve(api: str) -> Iterator[RerankServer]:
    server = RerankServer(api)
    try:
        yield server
    finally:
        server.stop()
