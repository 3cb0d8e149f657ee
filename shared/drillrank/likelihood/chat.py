"""A served chat model as an LLM: what it writes, over the chat protocol that all servers speak."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from drillrank.errors import InvalidInput, ServerFailure
from drillrank.likelihood.process import PerProcess
from drillrank.likelihood.served import HTTPClient, split_address
from drillrank.llm import LLM, Reply
from drillrank.text import without_surrogates

_PATH = "/v1/chat/completions"
_NO_SCHEMA = (400, 404, 422, 501)  # how servers refuse what they do not know


class ServedLLM:
    """A chat model behind vLLM, SGLang, llama.cpp, Ollama, OpenAI or another address of the same protocol.

    Each prompt is the user's turn of a conversation of its own. Answers to a schema are held to it where the server can
    do so, and asked for in words where it refuses.

    Args:
        address: `http://host:port/v1#model`, or https; without `#model` the only one that is served.
        api_key_env: Environment variable that holds the API key; no key is sent if it is not set.
        timeout: Seconds that an answer may take in all, other attempts and their pauses included.
        retries: How often a request is tried again, with growing pauses: after 408, 429 and 5xx, and where the server
            cannot be reached.
        concurrency: Requests under way at once, whoever calls.
        parameters: Sent with each request; by default temperature 0 and at most 2,048 tokens.

    Attributes:
        model: Its name; empty until the server was asked for the only one.
        takes_schemas: Whether the server holds answers to a schema, as far as is known.

    Raises:
        InvalidInput: the address cannot be used.
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
        self.address = address
        self._root, self.model = split_address(address)
        client = partial(HTTPClient, self._root, api_key_env=api_key_env, timeout=timeout)
        self._client = PerProcess(partial(client, retries=retries, concurrency=concurrency))
        self._parameters = dict(parameters)
        self.takes_schemas = True

    def __repr__(self) -> str:
        return f"ServedLLM({self.address!r})"

    def complete(self, prompt: str) -> Reply:
        """What the model writes, with the tokens that its server counted.

        Raises:
            ServerFailure: the server cannot be reached, refuses, takes too long, or does not answer as it should.
        """
        return self._reply_to(prompt, {})

    async def acomplete(self, prompt: str) -> Reply:
        """As `complete`, without blocking the event loop; who is cancelled asks no more."""
        return await self._client().on_worker(self.complete, prompt)

    def complete_json(self, prompt: str, schema: Mapping[str, Any]) -> Reply:
        """As `complete`, the answer held to a JSON schema."""
        named = {"name": schema.get("title", "answer"), "schema": schema, "strict": True}
        if self.takes_schemas:
            try:
                return self._reply_to(prompt, {"response_format": {"type": "json_schema", "json_schema": named}})
            except ServerFailure as failure:
                if failure.status not in _NO_SCHEMA:
                    raise
        found = self._reply_to(prompt, {})
        self.takes_schemas = False  # the same without a schema went well
        return found

    async def acomplete_json(self, prompt: str, schema: Mapping[str, Any]) -> Reply:
        """As `complete_json`, without blocking the event loop."""
        return await self._client().on_worker(self.complete_json, prompt, schema)

    def _reply_to(self, prompt: str, more: Mapping[str, Any]) -> Reply:
        if not self.model:
            names = list(self._client().models())
            if len(names) != 1:
                listed = f"{', '.join(names):.200}" or "nothing"
                raise InvalidInput(f"{self.address:.200} serves {listed}: name one behind a #.")
            [self.model] = names
        messages = [{"role": "user", "content": without_surrogates(prompt)}]
        payload = {"model": self.model, "messages": messages, **self._parameters, **more}
        [reply] = self._client().send([(_PATH, payload)], lambda _, answer: _reply(answer), "a chat model")
        return reply


def _reply(answer: Any) -> Reply:
    text = answer["choices"][0]["message"]["content"]
    if not isinstance(text, str | None):
        raise TypeError("the content is no text")
    usage = answer.get("usage") or {}
    return Reply(text or "", prompt_tokens=usage.get("prompt_tokens"), completion_tokens=usage.get("completion_tokens"))


def load_llm(llm: LLM | str | None, **options: Any) -> LLM | None:
    """The LLM that an address names, with the options of `ServedLLM`; any other is handed back as it is.

    Raises:
        InvalidInput: it is a string, and no address.

    >>> load_llm("http://localhost:8000/v1#qwen")
    ServedLLM('http://localhost:8000/v1#qwen')
    """
    return ServedLLM(llm, **options) if isinstance(llm, str) else llm
