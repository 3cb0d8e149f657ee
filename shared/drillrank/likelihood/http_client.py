"""HTTP client of model servers: JSON requests with retries, one deadline per request, and bounded answers."""

from __future__ import annotations

import asyncio
import os
import random
import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from drillrank import limits
from drillrank.errors import InvalidInput, ServerFailure, check_number, check_positive, require
from drillrank.likelihood.process import PerProcess

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_MAX_QUOTE = 200  # characters of a server's answer that an error shows
_CONNECT_SECONDS = 10.0
_MAX_PAUSE = 60.0  # seconds, even if the server asks for more
_TRANSIENT = (408, 429, 500, 502, 503, 504)  # statuses that another attempt may avoid
_SHARED_LENGTH = 16  # characters that an answer and a secret text may have in common

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")  # of JSON

_pending: ContextVar[Future[None] | None] = ContextVar("pending", default=None)  # cancelled when the caller has left


def _started_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="drillrank-http", daemon=True).start()
    return loop


_event_loop = PerProcess(_started_loop)  # sends all requests


class HTTPClient:
    """Sends JSON to one server, over connections of this process only.

    Args:
        root: Address without a path of its own.
        api_key_env: Environment variable with the API key. It is sent if it is set, and never part of an error.
        timeout: Maximum seconds per request, including further attempts and the pauses between them.
        retries: Maximum number of further attempts after a transient failure.
        concurrency: Maximum number of requests at a time.

    Raises:
        InvalidInput: A number cannot be used.
    """

    def __init__(self, root: str, *, api_key_env: str, timeout: float, retries: int, concurrency: int) -> None:
        import httpx

        self.root, self.api_key_env, self.timeout, self.retries = root, api_key_env, timeout, retries
        # Sockets that a server is about to close are not used again: uvicorn waits for five seconds.
        pool = httpx.Limits(max_keepalive_connections=concurrency, keepalive_expiry=2.0)
        self._client = httpx.AsyncClient(limits=pool, timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS))
        self._concurrency, self._slots = concurrency, asyncio.Semaphore(concurrency)
        self._workers = ThreadPoolExecutor(8 * concurrency, "drillrank-served")
        self.lock = threading.RLock()
        weakref.finalize(self, self._close, os.getpid(), self._client).atexit = False

    @staticmethod
    def _close(process: int, client: httpx.AsyncClient) -> None:
        if process == os.getpid():
            asyncio.run_coroutine_threadsafe(client.aclose(), _event_loop())

    async def on_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function on a thread. If the caller is cancelled, its requests are cancelled, too."""
        pending: Future[None] = Future()
        context = copy_context()
        context.run(_pending.set, pending)
        try:
            return await asyncio.wrap_future(self._workers.submit(context.run, function, *arguments))
        finally:
            pending.cancel()

    def send(
        self,
        requests: Sequence[tuple[str, Any]],
        read: Callable[[int, Any], T],
        server: str,
        advice: str = "",
        secrets: Sequence[str] = (),
    ) -> list[T]:
        """Send several requests, and return the results in order. If one fails for good, the others are cancelled.

        Args:
            requests: Path and payload of each request. A request without a payload is a GET.
            read: Function from the index of a request and its answer to its result.
            server: Name of the kind of server, for errors.
            advice: Last sentence of an error about an unexpected answer.
            secrets: Texts that were sent. An error does not quote an answer that repeats one.

        Raises:
            ServerFailure: The server cannot be reached, refuses, takes too long, or answers in another form.
        """
        sending = asyncio.run_coroutine_threadsafe(self._send(requests, read, server, advice, secrets), _event_loop())
        if pending := _pending.get():
            pending.add_done_callback(lambda _: sending.cancel())
        try:
            return sending.result()
        finally:
            sending.cancel()  # after an interrupt, nothing waits for it

    def models(self) -> dict[str, dict[str, Any]]:
        """Return the server's description of each of its models, by name."""

        def by_name(_: int, answer: Any) -> dict[str, dict[str, Any]]:
            return {str(card["id"]): card | {} for card in answer["data"]}

        [cards] = self.send([("/v1/models", None)], by_name, "a server that lists its models")
        return cards

    async def _send(
        self,
        requests: Sequence[tuple[str, Any]],
        read: Callable[[int, Any], T],
        server: str,
        advice: str,
        secrets: Sequence[str],
    ) -> list[T]:
        result_by_index: dict[int, T] = {}
        indices = iter(range(len(requests)))

        async def work() -> None:
            for index in indices:  # the next request that no other worker has taken
                path, payload = requests[index]
                async with self._slots:
                    text = await self._ask(path, payload, secrets)
                try:
                    result_by_index[index] = read(index, _read_answer(text))
                except (LookupError, TypeError, ValueError, AttributeError) as error:
                    why = "" if isinstance(error, InvalidInput) else f" ({error!r:.200})"
                    message = f"{path} answered, but not as {server} does{why}: "
                    quote = await asyncio.to_thread(_without_secrets, text, secrets)  # the texts may be long
                    raise self._failure(message, quote, advice) from error

        workers = [asyncio.ensure_future(work()) for _ in requests[: self._concurrency]]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return [result_by_index[index] for index in range(len(requests))]

    async def _ask(self, path: str, payload: Any, secrets: Sequence[str]) -> str:
        """Return the text of the server's answer. Retry transient failures while there is time."""
        import httpx

        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout
        for attempt in range(self.retries + 1):
            pause = 0.5 * 2 ** min(attempt, 6) * random.uniform(1.0, 1.2)
            try:
                status, text, retry_after = await asyncio.wait_for(
                    self._exchange(path, payload), deadline - loop.time()
                )
            except asyncio.TimeoutError:
                raise self._failure(f"{path} timed out: no whole answer within {self.timeout:g} seconds") from None
            except httpx.HTTPError as error:
                reason = str(error).rstrip(".") or type(error).__name__
                advice = " Start the server, or correct the address."
                failure = self._failure(f"{path} could not be asked: ", reason, advice)
            else:
                if status == 200:
                    return text
                advice = f" Set the environment variable {self.api_key_env}." if status in (401, 403) else ""
                quote = await asyncio.to_thread(_without_secrets, text, secrets) or "nothing"
                failure = self._failure(f"{path} answered {status}: ", quote, advice)
                failure.status = status
                if status not in _TRANSIENT:
                    raise failure
                pause = retry_after or pause
            if attempt == self.retries or loop.time() + pause >= deadline:
                raise failure
            await asyncio.sleep(pause)
        raise AssertionError

    async def _exchange(self, path: str, payload: Any) -> tuple[int, str, float]:
        """Return the status, the text, and the seconds after which the server permits another attempt."""
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if key := self._key:
            headers["Authorization"] = f"Bearer {key}"
        verb = "GET" if payload is None else "POST"
        async with self._client.stream(verb, self.root + path, headers=headers, json=payload) as response:
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise self._failure(f"{path} answered in a compression, which was not asked for")
            body = bytearray()
            async for part in response.aiter_raw():
                body += part
                if len(body) > limits.ANSWER_BYTES:
                    raise self._failure(f"{path} answered with more than {limits.ANSWER_BYTES} bytes")
            return response.status_code, body.decode("utf-8", "replace"), _retry_after(response.headers)

    @property
    def _key(self) -> str:
        key = os.environ.get(self.api_key_env, "").strip()  # a mounted secret ends with a newline
        if not (key.isascii() and key.isprintable()):
            raise InvalidInput(
                f"The environment variable {self.api_key_env} contains characters that no header can carry. Set it to "
                "the API key."
            )
        return key

    def _failure(self, message: str, quote: str = "", advice: str = "") -> ServerFailure:
        """Return an error with the beginning of a server's answer, without the API key and escapes for a terminal."""
        quote = quote.replace(self._key, "***") if self._key else quote
        printable = "".join(sign if sign.isprintable() else " " for sign in quote[:_MAX_QUOTE])
        return ServerFailure(f"{self.root}{message}{printable}.{advice}")


def _read_answer(text: str) -> Any:
    """Return the JSON of a server's answer."""
    return limits.read_json(text, "The answer", limits.ANSWER_CONTAINERS)


def _retry_after(headers: Mapping[str, str]) -> float:
    value = headers.get("Retry-After", "")  # a date is ignored: there are pauses of our own
    return min(float(value), _MAX_PAUSE) if value.isdecimal() and value.isascii() else 0.0


def _unescape(escape: re.Match[str]) -> str:
    """Return the character that an escape of JSON stands for, or a blank for white space."""
    return chr(int(escape[1], 16)) if escape[1] else " " if escape[2] in "bfnrt" else escape[2]


def _without_secrets(answer: str, secrets: Sequence[str]) -> str:
    r"""Return the part of an answer that an error may quote, or a remark if it repeats a text that was sent.

    >>> _without_secrets("Too long: The Rhine flows through Basel.", ["The Rhine flows through Basel."])
    '(the answer repeats a text that was sent)'
    >>> _without_secrets(r'{"input": "\u0416\u0438\u043b\u0438-\u0431\u044b\u043b\u0438"}', ["Жили-были"])
    '(the answer repeats a text that was sent)'
    """
    quote = answer[:_MAX_QUOTE]
    plain_quotes = ["".join(text.split()) for text in (quote, _ESCAPE.sub(_unescape, quote))]
    pieces = {text[end - _SHARED_LENGTH : end] for text in plain_quotes for end in range(_SHARED_LENGTH, len(text) + 1)}
    for secret in secrets:
        plain = "".join(secret.split())
        is_repeated = any(piece in plain for piece in pieces)
        if len(plain) < _SHARED_LENGTH:
            is_repeated = bool(plain) and any(plain in text for text in plain_quotes)
        if is_repeated:
            return "(the answer repeats a text that was sent)"
    return quote


def split_address(address: str) -> tuple[str, str]:
    """Return root and model of a server's address. The model may be empty.

    Raises:
        InvalidInput: The string is not an address.
        MissingExtra: httpx is not installed.

    >>> split_address("http://localhost:8000/v1#qwen")
    ('http://localhost:8000', 'qwen')
    """
    httpx = require("httpx", "server")
    url, _, model = address.partition("#") if isinstance(address, str) else ("", "", "")
    is_address = False
    with suppress(httpx.InvalidURL, UnicodeError):
        parts = httpx.URL(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.host) and (parts.port or 80) < 1 << 16
        is_address = is_address and not parts.userinfo and not parts.query
    if not is_address:
        raise InvalidInput("A server's address is http://host:port/v1#model, or https, without a login or a query.")
    return url.rstrip("/").removesuffix("/v1"), model


def check_connection(*, timeout: float, retries: int, concurrency: int) -> None:
    """Refuse options of `HTTPClient` that cannot be used.

    Raises:
        InvalidInput: A number is out of its range.
    """
    check_positive(concurrency=concurrency)
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise InvalidInput(f"retries must be a whole number of at least 0, got {retries!r:.200}.")
    check_number(timeout=timeout)
