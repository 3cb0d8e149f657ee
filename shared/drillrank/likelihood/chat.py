"""A served chat model as an LLM, over the chat protocol of all servers."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import Any

from drillrank.errors import InvalidInput, ServerFailure, check_mappings
from drillrank.likelihood.http_client import HTTPClient, split_address
from drillrank.likelihood.process import PerProcess
from drillrank.llm import LLM, Reply
from drillrank.text import without_surrogates

_PATH = "/v1/chat/completions"
_NO_SCHEMA = (400, 404, 422, 501)  # how servers refuse what they do not know


class ServedLLM:
    """A chat model behind vLLM, SGLang, llama.cpp, Ollama, OpenAI or another address of the same protocol.

    Each prompt is the user's turn of a conversation of its own. If a schema is given, the server constrains the answer
    to it. A server that cannot do so is asked without the schema.

    Args:
        address: `http://host:port/v1#model`, or https; without `#model` the only model of the server.
        api_key_env: Environment variable with the API key; no key is sent if it is not set.
        timeout: Maximum seconds per request, including further attempts and the pauses between them.
        retries: Maximum number of further attempts, with growing pauses: after 408, 429 and 5xx, and if the server
            cannot be reached.
        concurrency: Maximum number of requests at a time, over all callers.
        parameters: Parameters of each request; by default temperature 0 and at most 2,048 tokens.

    Attributes:
        model: Name of the model; empty until the server was asked for its only one.
        takes_schemas: True unless the server has refused a schema.

    Raises:
        InvalidInput: The address cannot be used.
        MissingExtra: httpx is not installed.

    >>> ServedLLM("http://localhost:8000/v1#qwen").model
    'qwen'
    """

    def __init__(
        self,
        address: str,
        *,
        api_key_env: str = "DRILLRANK_API_KEY",
        timeout: float = 120.0,
        retries: int = 5,
        concurrency: int = 8,
        parameters: Mapping[str, Any] = {"temperature": 0, "max_tokens": 2048},  # never changed
    ) -> None:
        check_mappings(parameters=parameters)
        self.address = address
        self._root, self.model = split_address(address)
        client = partial(HTTPClient, self._root, api_key_env=api_key_env, timeout=timeout)
        self._client = PerProcess(partial(client, retries=retries, concurrency=concurrency))
        self._parameters = dict(parameters or {})
        self.takes_schemas = True

    def __repr__(self) -> str:
        return f"ServedLLM({self.address!r})"

    def with_temperature(self, temperature: float) -> ServedLLM:
        """Return this LLM at another temperature. Both share their connections."""
        changed = copy(self)
        changed._parameters = {**self._parameters, "temperature": temperature}
        return changed

    def complete(self, prompt: str) -> Reply:
        """Return the model's answer, with the tokens that its server counted.

        Raises:
            ServerFailure: The server cannot be reached, refuses, takes too long, or answers in another form.
        """
        return self._reply_to(prompt, {})

    async def acomplete(self, prompt: str) -> Reply:
        """Call `complete` without blocking the event loop. If the caller is cancelled, so is the request."""
        return await self._client().on_worker(self.complete, prompt)

    def complete_json(self, prompt: str, schema: Mapping[str, Any]) -> Reply:
        """Call `complete` with a JSON schema for the answer."""
        named = {"name": schema.get("title", "answer"), "schema": schema, "strict": True}
        if self.takes_schemas:
            try:
                return self._reply_to(prompt, {"response_format": {"type": "json_schema", "json_schema": named}})
            except ServerFailure as failure:
                if failure.status not in _NO_SCHEMA:
                    raise
        reply = self._reply_to(prompt, {})
        self.takes_schemas = False  # the same request succeeded without a schema
        return reply

    async def acomplete_json(self, prompt: str, schema: Mapping[str, Any]) -> Reply:
        """Call `complete_json` without blocking the event loop."""
        return await self._client().on_worker(self.complete_json, prompt, schema)

    def _reply_to(self, prompt: str, more: Mapping[str, Any]) -> Reply:
        if not self.model:
            names = list(self._client().models())
            if len(names) != 1:
                listed = f"{', '.join(names):.200}" or "nothing"
                raise InvalidInput(f"{self.address:.200} serves {listed}. Name one after a #.")
            [self.model] = names
        messages = [{"role": "user", "content": without_surrogates(prompt)}]
        payload = {"model": self.model, "messages": messages, **self._parameters, **more}
        [reply] = self._client().send([(_PATH, payload)], lambda _, answer: _reply(answer), "a chat model")
        return reply


def _reply(answer: Any) -> Reply:
    text = answer["choices"][0]["message"]["content"]
    if not isinstance(text, str | None):
        raise TypeError("the content is not text")
    usage = answer.get("usage") or {}
    return Reply(text or "", prompt_tokens=usage.get("prompt_tokens"), completion_tokens=usage.get("completion_tokens"))


def load_llm(llm: LLM | str | None, **options: Any) -> LLM | None:
    """Return the LLM of an address, with the options of `ServedLLM`. Any other LLM is returned unchanged.

    Raises:
        InvalidInput: The LLM is a string but not an address.

    >>> load_llm("http://localhost:8000/v1#qwen")
    ServedLLM('http://localhost:8000/v1#qwen')
    """
    return ServedLLM(llm, **options) if isinstance(llm, str) else llm
