"""A small server that speaks as vLLM, SGLang, llama.cpp, Ollama and OpenAI do, over a tiny model, with faults on order.

The forms of answers are those of the servers' own documentation (`docs/neural-models.md` names the versions); the
numbers come from transformers alone, in float64.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
import transformers

OWNERS = {"vllm": "vllm", "sglang": "sglang", "llama.cpp": "llamacpp", "ollama": "library", "openai": "openai"}


class FakeServer:
    """Serves a tiny decoder-only model on this machine.

    Attributes:
        requests: Path and payload of every POST.
        keys: What each request sent as its `Authorization`.
        faults: What the next POSTs do in place of answering: a status, or a function of the answer that changes it.
        slow: Seconds that every POST takes; or a function of how many came before it.
        most: Requests that were under way at once.
    """

    def __init__(self, engine: str, folder: Path, port: int = 0) -> None:
        self.engine = engine
        self.folder = folder
        self.network = transformers.AutoModelForCausalLM.from_pretrained(folder).double().eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.requests: list[tuple[str, Any]] = []
        self.keys: list[str | None] = []
        self.faults: list[int | str | Callable[[Any], Any] | None] = []
        self.card: dict[str, Any] = {"id": "tiny", "owned_by": OWNERS[engine]}
        if engine in ("vllm", "sglang"):
            self.card |= {"root": str(folder), "max_model_len": 300}
        self.slow: float | Callable[[int], float] = 0.0
        self.under_way, self.most = 0, 0
        self._lock = threading.Lock()
        self._server = self._start(port)
        self.port = self._server.server_address[1]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1#tiny"

    def _start(self, port: int) -> ThreadingHTTPServer:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fake.keys.append(self.headers.get("Authorization"))
                self._send(200, {"object": "list", "data": [fake.card]})

            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with fake._lock:
                    slow = fake.slow(len(fake.requests)) if callable(fake.slow) else fake.slow
                    fake.requests.append((self.path, payload))
                    fake.keys.append(self.headers.get("Authorization"))
                    fake.under_way += 1
                    fake.most = max(fake.most, fake.under_way)
                    fault = fake.faults.pop(0) if fake.faults else None
                try:
                    time.sleep(slow)
                    if fault == "drop":
                        self.close_connection = True
                    elif isinstance(fault, int):
                        self._send(fault, {"error": {"message": f"told to fail with {fault}"}})
                    else:
                        answer = fake.answer(self.path, payload)
                        self._send(200, fault(answer) if fault else answer)
                finally:
                    with fake._lock:
                        fake.under_way -= 1

            def _send(self, status: int, answer: Any) -> None:
                body = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if status == 429:
                    self.send_header("Retry-After", "0")
                with suppress(ConnectionError):  # who asked has left
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def start_again(self) -> None:
        self._server = self._start(self.port)

    def log_probs(self, ids: list[int]) -> torch.Tensor:
        """Of every next token, behind each of the ids."""
        with self._lock, torch.inference_mode():
            return torch.log_softmax(self.network(input_ids=torch.tensor([ids])).logits[0], dim=-1)

    def answer(self, path: str, payload: Any) -> Any:
        if (self.engine, path) == ("vllm", "/v1/completions"):
            choices = [self._vllm(number, ids, payload) for number, ids in enumerate(payload["prompt"])]
            return {"object": "text_completion", "model": payload["model"], "choices": choices[::-1]}
        if (self.engine, path) == ("sglang", "/generate"):
            return [self._sglang(number, payload) for number in range(len(payload["input_ids"]))]
        if (self.engine, path) == ("llama.cpp", "/completion"):
            top = [{"id": id_, "token": text, "logprob": value} for id_, text, value in self._top(payload["prompt"])]
            return {"completion_probabilities": [{**top[0], "top_logprobs": top[: payload["n_probs"]]}]}
        if self.engine == "ollama" and path in ("/api/generate", "/api/chat"):
            text = payload["prompt"] if path == "/api/generate" else self.chat(payload["messages"])
            assert payload["raw"] if path == "/api/generate" else payload["think"] is False
            return {"model": payload["model"], "logprobs": [self._by_text(text, payload["top_logprobs"])]}
        if (self.engine, path) == ("openai", "/v1/chat/completions"):
            content = [self._by_text(self.chat(payload["messages"]), payload["top_logprobs"])]
            return {"choices": [{"index": 0, "logprobs": {"content": content}}]}
        return {"error": f"{self.engine} has no {path}"}

    def chat(self, messages: list[dict[str, str]]) -> str:
        return self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)

    def _top(self, prompt: str | list[int]) -> list[tuple[int, str, float]]:
        ids = self.tokenizer(prompt, add_special_tokens=False)["input_ids"] if isinstance(prompt, str) else prompt
        values, order = self.log_probs(ids)[-1].sort(descending=True)
        return [
            (id_, self.tokenizer.decode([id_]), value)
            for id_, value in zip(order.tolist(), values.tolist(), strict=True)
        ]

    def _by_text(self, text: str, count: int) -> dict[str, Any]:
        top = [{"token": word, "logprob": value, "bytes": None} for _, word, value in self._top(text)[:count]]
        return {**top[0], "top_logprobs": top}

    def _vllm(self, number: int, ids: list[int], payload: Any) -> dict[str, Any]:
        found = self.log_probs(ids)
        told: dict[str, Any] = {"index": number, "text": "x", "prompt_token_ids": ids, "token_ids": [0]}
        if payload.get("prompt_logprobs") == 0:
            told["prompt_logprobs"] = [
                None if at == 0 else {str(id_): {"logprob": float(found[at - 1, id_]), "rank": 1, "decoded_token": "x"}}
                for at, id_ in enumerate(ids)
            ]
        if payload.get("logprobs"):
            assert payload["return_tokens_as_token_ids"]
            wanted = {*payload["logprob_token_ids"], int(found[-1].argmax())}
            told["logprobs"] = {"top_logprobs": [{f"token_id:{id_}": float(found[-1, id_]) for id_ in wanted}]}
        return told

    def _sglang(self, number: int, payload: Any) -> dict[str, Any]:
        ids = payload["input_ids"][number]
        found = self.log_probs(ids)
        info: dict[str, Any] = {"id": "x", "prompt_tokens": len(ids), "completion_tokens": 1}
        if "logprob_start_len" in payload:
            start = payload["logprob_start_len"][number]
            info["input_token_logprobs"] = [
                [None if at == start else float(found[at - 1, ids[at]]), ids[at], None] for at in range(start, len(ids))
            ]
        if "token_ids_logprob" in payload:
            wanted = payload["token_ids_logprob"][number]
            info["output_token_ids_logprobs"] = [[[float(found[-1, id_]), id_, None] for id_ in wanted]]
        return {"text": "x", "meta_info": info}
