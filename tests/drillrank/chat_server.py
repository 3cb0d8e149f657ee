"""A small server that speaks the chat protocol, as vLLM, SGLang, llama.cpp, Ollama and OpenAI do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ChatServer:
    """Answers prompts by a function.

    Attributes:
        payloads: Of every request.
        keys: What each request sent as its `Authorization`.
        faults: What the next requests are answered with instead: a status, or the whole body.
        takes_schemas: Whether it holds answers to a schema; else it refuses.
    """

    def __init__(self, say: Callable[[str], str], *, takes_schemas: bool = True) -> None:
        self.say = say
        self.takes_schemas = takes_schemas
        self.payloads: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.faults: list[int | str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(200, json.dumps({"object": "list", "data": [{"id": "tiny"}]}))

            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.payloads.append(payload)
                server.keys.append(self.headers.get("Authorization"))
                fault = server.faults.pop(0) if server.faults else None
                if self.path != "/v1/chat/completions":
                    self._send(404, "no such path")
                elif fault is not None:
                    self._send(*((200, fault) if isinstance(fault, str) else (fault, "told to\x1b[31m fail " * 50)))
                elif "response_format" in payload and not server.takes_schemas:
                    self._send(400, json.dumps({"error": {"message": "response_format is not known"}}))
                else:
                    text = server.say(payload["messages"][0]["content"])
                    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
                    usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
                    self._send(200, json.dumps({"model": payload["model"], "choices": [choice], "usage": usage}))

            def _send(self, status: int, body: str) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def address(self) -> str:
        return f"{self.root}#tiny"

    @property
    def prompts(self) -> list[str]:
        return [payload["messages"][0]["content"] for payload in self.payloads]

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(say: Callable[[str], str], **options: Any) -> Iterator[ChatServer]:
    server = ChatServer(say, **options)
    try:
        yield server
    finally:
        server.stop()
