"""A served language model: what each kind of server is sent and how it answers, the HTTP client, and the model itself.

Tokens are made here, probabilities there. vLLM and SGLang give log-probabilities of a prompt, and of tokens by id.
llama.cpp, Ollama and OpenAI's chats give those of the likeliest next tokens alone: one that is not among them is known
to be at most as likely as the last of them, and as what all of them leave. What is missing or impossible in an answer
is an error.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import chain
from operator import getitem
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from drillrank import limits
from drillrank.errors import (
    InvalidInput,
    LacksCapability,
    ServerFailure,
    check_number,
    check_positive,
    invalid_input,
    require,
)
from drillrank.likelihood.base import (
    Likelihood,
    NextTokenRequest,
    NextTokens,
    Request,
    TrainedAnswers,
    read_trained_answers,
)
from drillrank.likelihood.process import PerProcess
from drillrank.likelihood.tokenizer import TextTokenizer, TokenModel, as_one_string, fit_to_budgets
from drillrank.progress import progress_bar
from drillrank.prompts import TruncatableText, TrustedText, prompt_text
from drillrank.text import without_surrogates

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_QUOTED = 200  # characters of what others wrote that an error shows
_TOP = 20  # likeliest tokens: the most that OpenAI and Ollama give
_IMPOSSIBLE = -9999.0  # how vLLM writes minus infinity
_CONNECT_SECONDS = 10.0
_LONGEST_PAUSE = 60.0  # seconds, whatever the server asks for
_TRANSIENT = (408, 429, 500, 502, 503, 504)  # statuses that may be gone the next time


# What servers are sent, and how they answer


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt whose target, or whose next token, is to be scored.

    Attributes:
        text: The prompt, for servers that take text.
        ids: The prompt and its target as token ids, for the others.
        target_start: Where in `ids` the target begins; 0 if `answers` are wanted in place of a target.
        answers: Tokens that may come next: ids, or texts.
        chat: Whether the text is the user's turn, which the server puts into its own template.
        cut_tokens: Tokens of documents that were left out.
    """

    text: str = ""
    ids: tuple[int, ...] = ()
    target_start: int = 0
    answers: tuple[int | str, ...] = ()
    chat: bool = False
    cut_tokens: int = field(default=0, compare=False)


_Values = list[tuple[float, bool]]
"""Log-probability of each token of the target, or of each answer; and whether it is no more than an upper bound."""


class Server:
    """One kind of server: its name, what it can do, what it is sent, and how it answers."""

    engine: ClassVar[str]
    likelihood: ClassVar[bool] = False
    takes_ids: ClassVar[bool] = True
    batches: ClassVar[bool] = False
    advice: ClassVar[str] = ""
    top: ClassVar[tuple[str | int, ...]] = ()
    """Where an answer holds the likeliest next tokens, for servers that give these alone."""

    def request(self, model: str, prompts: Sequence[_Prompt]) -> tuple[str, dict[str, Any]]:
        """Path and payload for these prompts; for one, unless the server `batches`."""
        raise NotImplementedError

    def split(self, answer: Any) -> list[Any]:
        """What is answered to each prompt."""
        return [answer]

    def read(self, prompt: _Prompt, answer: Any) -> _Values:
        """The values in what is answered to one prompt.

        Raises:
            LookupError, TypeError, ValueError, AttributeError: they are not there, or impossible.
        """
        return _among(reduce(getitem, self.top, answer), "id" if self.takes_ids else "token", prompt.answers)


class _VLLM(Server):
    engine = "vLLM"
    likelihood = batches = True

    def request(self, model: str, prompts: Sequence[_Prompt]) -> tuple[str, dict[str, Any]]:
        wanted: dict[str, Any] = {"prompt_logprobs": 0}
        if not prompts[0].target_start:
            ids = sorted({id_ for prompt in prompts for id_ in prompt.answers})
            wanted = {"logprobs": 1, "logprob_token_ids": ids, "return_tokens_as_token_ids": True}
        wanted |= {"model": model, "prompt": [list(prompt.ids) for prompt in prompts]}
        return "/v1/completions", wanted | {"max_tokens": 1, "temperature": 0, "return_token_ids": True}

    def split(self, answer: Any) -> list[Any]:
        choices = {choice["index"]: choice for choice in answer["choices"]}
        return [choices[index] for index in range(len(choices))]

    def read(self, prompt: _Prompt, answer: Any) -> _Values:
        if list(answer["prompt_token_ids"]) != list(prompt.ids):
            raise ValueError("other tokens were read than were sent")
        if not prompt.target_start:
            top = answer["logprobs"]["top_logprobs"][0]
            return _exact(top[f"token_id:{id_}"] for id_ in prompt.answers)
        positions = list(zip(prompt.ids, answer["prompt_logprobs"], strict=True))[prompt.target_start :]
        return _exact(values[str(id_)]["logprob"] for id_, values in positions)


class _SGLang(Server):
    engine = "SGLang"
    likelihood = batches = True

    def request(self, _: str, prompts: Sequence[_Prompt]) -> tuple[str, dict[str, Any]]:
        # The first position that is given has no log-probability.
        wanted: dict[str, Any] = {"logprob_start_len": [prompt.target_start - 1 for prompt in prompts]}
        if not prompts[0].target_start:
            wanted = {"token_ids_logprob": [list(prompt.answers) for prompt in prompts]}
        wanted |= {"input_ids": [list(prompt.ids) for prompt in prompts], "return_logprob": True}
        return "/generate", wanted | {"sampling_params": {"max_new_tokens": 1, "temperature": 0}}

    def split(self, answer: Any) -> list[Any]:
        return list(answer)

    def read(self, prompt: _Prompt, answer: Any) -> _Values:
        info = answer["meta_info"]
        if info["prompt_tokens"] != len(prompt.ids):
            raise ValueError("more or fewer tokens were read than were sent")
        if not prompt.target_start:
            by_id = {id_: value for value, id_, *_ in info["output_token_ids_logprobs"][0]}
            return _exact(by_id[id_] for id_ in prompt.answers)
        target = prompt.ids[prompt.target_start :]
        positions = info["input_token_logprobs"][-len(target) :]
        if [id_ for _, id_, *_ in positions] != list(target):
            raise ValueError("other tokens were read than were sent")
        return _exact(value for value, *_ in positions)


class _LlamaCpp(Server):
    engine = "llama.cpp"
    top = ("completion_probabilities", 0, "top_logprobs")

    def request(self, _: str, prompts: Sequence[_Prompt]) -> tuple[str, dict[str, Any]]:
        wanted = {"prompt": list(prompts[0].ids), "n_predict": 1, "n_probs": _TOP, "temperature": 0}
        return "/completion", wanted | {"cache_prompt": True}


class _Ollama(Server):
    engine, takes_ids = "Ollama", False
    top = ("logprobs", 0, "top_logprobs")
    advice = " It gives log-probabilities from 0.12.11 on."

    def request(self, model: str, prompts: Sequence[_Prompt]) -> tuple[str, dict[str, Any]]:
        [prompt] = prompts
        wanted: dict[str, Any] = {"model": model, "stream": False, "logprobs": True, "top_logprobs": _TOP}
        wanted["options"] = {"num_predict": 1, "temperature": 0}
        if prompt.chat:
            return "/api/chat", wanted | {"messages": [{"role": "user", "content": prompt.text}], "think": False}
        return "/api/generate", wanted | {"prompt": prompt.text, "raw": True}


class _OpenAI(Server):
    engine, takes_ids = "An OpenAI-compatible server", False
    top = ("choices", 0, "logprobs", "content", 0, "top_logprobs")

    def request(self, model: str, prompts: Sequence[_Prompt]) -> tuple[str, dict[str, Any]]:
        [prompt] = prompts
        if not prompt.chat:
            raise LacksCapability(
                'This server takes conversations alone: ask with preset="yes-no", or with chat=True and a template '
                "without control tokens; or serve the model by vLLM, SGLang, llama.cpp or Ollama."
            )
        wanted: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt.text}]}
        wanted |= {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": _TOP}
        return "/v1/chat/completions", wanted


_SERVERS: dict[str, Server] = {
    "vllm": _VLLM(), "sglang": _SGLang(), "llama.cpp": _LlamaCpp(), "ollama": _Ollama(), "openai": _OpenAI(),
}  # fmt: skip
_OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "library": "ollama"}
"""Which engine calls itself so in the `owned_by` of `/v1/models`."""


def _log_prob(value: Any) -> float:
    """A log-probability, and nothing that only looks like one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _IMPOSSIBLE < value <= 1e-3:
        raise ValueError("no log-probability")
    return min(float(value), 0.0)


def _exact(values: Iterable[Any]) -> _Values:
    return [(_log_prob(value), False) for value in values]


def _among(top: Sequence[Mapping[str, Any]], name: str, answers: Sequence[int | str]) -> _Values:
    """Each answer's log-probability, or a bound where it is not among the likeliest tokens."""
    known = {token[name]: _log_prob(token["logprob"]) for token in reversed(top)}  # the likelier of two that look alike
    if not known:
        raise ValueError("no token is given")
    left = 1.0 - math.fsum(map(math.exp, known.values()))
    bound = min(*known.values(), math.log(max(left, 1e-12)), 0.0)
    return [(known.get(answer, bound), answer not in known) for answer in answers]


# Over HTTP

_pending: ContextVar[Future[None] | None] = ContextVar("caller", default=None)  # cancelled once nobody waits any more


def _started_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="drillrank-http", daemon=True).start()
    return loop


_event_loop = PerProcess(_started_loop)  # on which requests are sent


class HTTPClient:
    """Sends JSON to one server, over connections of this process that no other may use.

    Args:
        root: Address without a path of its own.
        api_key_env: Environment variable that holds the API key; it is sent if it is set, and stands in no error.
        timeout: Seconds that an answer may take in all, other attempts and their pauses included.
        retries: How often a request is tried again after a failure that may pass.
        concurrency: Requests under way at once.
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
        """Call a function on a thread; when the caller is cancelled, so are the requests that it has under way."""
        pending: Future[None] = Future()
        context = copy_context()
        context.run(_pending.set, pending)
        try:
            return await asyncio.wrap_future(self._workers.submit(context.run, function, *arguments))
        finally:
            pending.cancel()

    def send(self, requests: Sequence[tuple[str, Any]], read: Callable[[int, Any], T], *expected: str) -> list[T]:
        """What is read in the answers to several requests, in order; once one fails for good, the others are cancelled.

        Args:
            requests: Path and payload of each; without a payload it is a GET.
            read: From the number of a request and its answer to what is wanted of it.
            expected: Who should answer so, and what may help if it does not; for errors.

        Raises:
            ServerFailure: it cannot be reached, refuses, takes too long, or does not answer as it should.
        """
        sending = asyncio.run_coroutine_threadsafe(self._send(requests, read, *expected), _event_loop())
        if pending := _pending.get():
            pending.add_done_callback(lambda _: sending.cancel())
        try:
            return sending.result()
        finally:
            sending.cancel()  # nobody waits any more, as after an interrupt

    def models(self) -> dict[str, dict[str, Any]]:
        """What the server says of each of its models, by name."""

        def by_name(_: int, answer: Any) -> dict[str, dict[str, Any]]:
            return {str(card["id"]): card | {} for card in answer["data"]}

        [cards] = self.send([("/v1/models", None)], by_name, "a server that lists its models")
        return cards

    async def _send(
        self, requests: Sequence[tuple[str, Any]], read: Callable[[int, Any], T], server: str, advice: str = ""
    ) -> list[T]:
        found: dict[int, T] = {}
        numbers = iter(range(len(requests)))

        async def work() -> None:
            for number in numbers:  # whichever is next
                path, payload = requests[number]
                async with self._slots:
                    text = await self._ask(path, payload)
                try:
                    found[number] = read(number, _read_answer(text))
                except (LookupError, TypeError, ValueError, AttributeError) as error:
                    why = "" if isinstance(error, InvalidInput) else f" ({error!r:.200})"
                    raise self._failure(f"{path} answered, but not as {server} does{why}: ", text, advice) from error

        workers = [asyncio.ensure_future(work()) for _ in requests[: self._concurrency]]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return [found[number] for number in range(len(requests))]

    async def _ask(self, path: str, payload: Any) -> str:
        """The server's answer, as text; tried again where that may help, as long as there is time."""
        import httpx

        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout
        for attempt in range(self.retries + 1):
            pause = 0.5 * 2 ** min(attempt, 6) * random.uniform(1.0, 1.2)
            try:
                status, text, wished = await asyncio.wait_for(self._exchange(path, payload), deadline - loop.time())
            except asyncio.TimeoutError:
                raise self._failure(f"{path} timed out: no whole answer within {self.timeout:g} seconds") from None
            except httpx.HTTPError as error:
                words = str(error).rstrip(".") or type(error).__name__
                failure = self._failure(f"{path} could not be asked: ", words, " Does the server run?")
            else:
                if status == 200:
                    return text
                advice = f" Set the environment variable {self.api_key_env}." if status in (401, 403) else ""
                failure = self._failure(f"{path} answered {status}: ", text or "nothing", advice)
                failure.status = status
                if status not in _TRANSIENT:
                    raise failure
                pause = wished or pause
            if attempt == self.retries or loop.time() + pause >= deadline:
                raise failure
            await asyncio.sleep(pause)
        raise AssertionError

    async def _exchange(self, path: str, payload: Any) -> tuple[int, str, float]:
        """Status, text, and the seconds that the server wants until it is asked again."""
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
            raise InvalidInput(f"The environment variable {self.api_key_env} holds what no header can carry.")
        return key

    def _failure(self, message: str, words: str = "", advice: str = "") -> ServerFailure:
        """The error, with the beginning of a server's words: no API key, no escapes for a terminal."""
        words = words.replace(self._key, "***") if self._key else words
        shown = "".join(sign if sign.isprintable() else " " for sign in words[:_QUOTED])
        return ServerFailure(f"{self.root}{message}{shown}.{advice}")


def _read_answer(text: str) -> Any:
    """Return the JSON of a server's answer."""
    return limits.read_json(text, "The answer", limits.ANSWER_CONTAINERS)


def _retry_after(headers: Mapping[str, str]) -> float:
    value = headers.get("Retry-After", "")  # a date is as good as none: there are pauses of our own
    return min(float(value), _LONGEST_PAUSE) if value.isdecimal() and value.isascii() else 0.0


# The model


class ServedModel(TokenModel):
    """A decoder-only language model behind vLLM, SGLang, llama.cpp, Ollama or an OpenAI-compatible address.

    vLLM and SGLang give likelihoods and next tokens, the others next tokens alone. Prompts are tokenised and shortened
    here, by the model's own tokenizer, so that budgets hold and control tokens in documents are text. Ollama and
    OpenAI take text: without `tokenizer` nothing is shortened, and what their templates make of a document is theirs.

    Args:
        address: `http://host:port/v1#model`, or https; without `#model` the only one that is served.
        engine: `"vllm"`, `"sglang"`, `"llama.cpp"`, `"ollama"` or `"openai"`; None asks the server.
        tokenizer: Model id or directory of the tokenizer; None takes the name under which the model is served.
        api_key_env: Environment variable that holds the API key; no key is sent if it is not set.
        max_length: Longest prompt in tokens; None for what the server says.
        prompts_per_request: Prompts of one request, where a server takes several.
        concurrency: Requests under way at once, whoever calls.
        timeout: Seconds that the answer to a request may take in all, other attempts and their pauses included.
        retries: How often a request is tried again, with growing pauses: after 408, 429 and 5xx, and where the server
            cannot be reached.
        chat: Whether each prompt is the user's turn of a conversation, by the tokenizer's chat template.
        show_progress: Whether a bar on standard error counts what has been read.

    Scores are natural log-probabilities per token, as of the same model on this machine; a temperature other than 1 is
    refused, since no server rescales a prompt's logits. In a process that is forked it makes connections of its own.

    Raises:
        MissingExtra: httpx or transformers is not installed.
        InvalidInput: the address or an option cannot be used.
    """

    def __init__(
        self,
        address: str,
        *,
        engine: str | None = None,
        tokenizer: str | None = None,
        api_key_env: str = "DRILLRANK_API_KEY",
        max_length: int | None = None,
        prompts_per_request: int = 16,
        concurrency: int = 8,
        timeout: float = 120.0,
        retries: int = 5,
        chat: bool = False,
        show_progress: bool = False,
    ) -> None:
        require("httpx", "server")
        require("transformers", "server")
        self._root, self._model = split_address(address)
        if engine is not None and engine not in _SERVERS:
            raise InvalidInput(f"engine is one of {', '.join(_SERVERS)}; not {engine!r:.200}.")
        check_positive(prompts_per_request=prompts_per_request, concurrency=concurrency)
        if not isinstance(retries, int) or retries < 0:
            raise InvalidInput(f"retries must be a whole number of at least 0, got {retries!r:.200}.")
        check_number(timeout=timeout)
        super().__init__(address, locals())
        client = partial(HTTPClient, self._root, api_key_env=api_key_env, timeout=timeout)
        self._client = PerProcess(partial(client, retries=retries, concurrency=concurrency))
        self._loaded: TextTokenizer | None = None
        self._known: dict[str, Any] | None = None

    @property
    def spec(self) -> str:
        """The address."""
        return self._name

    @property
    def trained_answers(self) -> TrainedAnswers | None:
        """What the tokenizer's directory or repository names in `1_LogitScore/config.json`."""
        return None if self._tokenizer_name is None else read_trained_answers(self._tokenizer_name)

    async def run_in_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that asks this model, without blocking the event loop.

        It runs on a thread of this model's own. When the caller is cancelled, the server is asked no more.
        """
        return await self._client().on_worker(function, *arguments)

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        if not self.server.likelihood:
            raise LacksCapability(
                f"{self.server.engine} gives probabilities of what it writes alone, so no likelihood of a question: "
                'rank with Relevance(model, preset="yes-no"), or serve the model by vLLM or SGLang.'
            )
        if temperature != 1:
            raise InvalidInput(f"A served model scores at temperature 1, not {temperature!r:.200}: leave it out.")
        end, names = self._end(include_eos), self.tokenizer.token_names
        strings = as_one_string(self._with_chat(requests), self.tokenizer, self._window, end)
        prompts = [_Prompt(ids=tuple(ids), target_start=start, cut_tokens=cut) for ids, start, cut, _ in strings]
        results = []
        for prompt, values in zip(prompts, self._ask(prompts), strict=True):
            log_probs = np.array([value for value, _ in values], dtype=np.float64)
            tokens = [names[id_] for id_ in prompt.ids[prompt.target_start :]]
            results.append(Likelihood(tokens, log_probs, float(log_probs.sum()), prompt.cut_tokens))
        return results

    def _next_tokens(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        if logits:
            raise LacksCapability(
                f"{self.spec!r:.200} gives log-probabilities, and this preset scores by one raw logit, which cannot be "
                'had from them: load the model here, as "hf:<model>", or take a model that gives two answers.'
            )
        if self.server.takes_ids:
            strings = as_one_string(requests, self.tokenizer, self._window)
            prompts = [
                _Prompt(ids=tuple(ids), answers=tuple(map(self.tokenizer.answer_id, request.answers)), cut_tokens=cut)
                for request, (ids, _, cut, _) in zip(requests, strings, strict=True)
            ]
        elif self._options["tokenizer"] is None:
            prompts = [self._as_it_is(request) for request in requests]
        else:
            part = partial(_defused, self.tokenizer)
            safe = [replace(request, prompt=tuple(map(part, request.prompt)), chat=False) for request in requests]
            fitted = fit_to_budgets(safe, self.tokenizer, self._window, with_targets=False)
            answers = [tuple(map(self.tokenizer.answer_text, request.answers)) for request in requests]
            prompts = [
                _Prompt(one.text, answers=texts, chat=request.chat, cut_tokens=one.cut_tokens)
                for request, texts, one in zip(requests, answers, fitted, strict=True)
            ]
        return [
            NextTokens(np.array([value for value, _ in values]), prompt.cut_tokens, tuple(bound for _, bound in values))
            for values, prompt in zip(self._ask(prompts), prompts, strict=True)
        ]

    def _as_it_is(self, request: NextTokenRequest) -> _Prompt:
        """A prompt for a server that takes text, without the model's tokenizer."""
        limited = [
            request.max_tokens,
            *(part.max_tokens for part in request.prompt if isinstance(part, TruncatableText)),
        ]
        if not request.chat or any(limited) or not all(isinstance(answer, str) for answer in request.answers):
            raise InvalidInput(
                f"{self.spec!r:.200} takes text: to shorten passages, name tokens by id, or keep documents from "
                'speaking as the user, give the option tokenizer="<model id or directory>".'
            )
        return _Prompt(without_surrogates(prompt_text(request.prompt)), answers=request.answers, chat=True)

    def _ask(self, prompts: Sequence[_Prompt]) -> list[_Values]:
        """The values of each prompt; those that begin alike are sent together, as prefix caches want them."""
        server = self.server
        distinct = sorted(set(prompts), key=lambda prompt: (prompt.ids, prompt.text))
        size = self._options["prompts_per_request"] if server.batches else 1
        groups = [distinct[at : at + size] for at in range(0, len(distinct), size)]

        def read(number: int, answer: Any) -> list[_Values]:
            values = [server.read(*pair) for pair in zip(groups[number], server.split(answer), strict=True)]
            advance(len(values))
            return values

        requests = [server.request(self._served_name, group) for group in groups]
        with progress_bar(self._options["show_progress"], "Reading") as (expect, advance):
            expect(len(distinct))
            values = chain.from_iterable(self._client().send(requests, read, server.engine, server.advice))
            found = dict(zip(distinct, values, strict=True))
        return [found[prompt] for prompt in prompts]

    @property
    def server(self) -> Server:
        """The kind of server that it is, asked once.

        Raises:
            ServerFailure: it cannot be reached.
            InvalidInput: it does not serve the model.
        """
        return _SERVERS[self._options["engine"] or _OWNERS.get(str(self._card.get("owned_by")), "openai")]

    @property
    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer, loaded at the first use.

        Raises:
            InvalidInput: it cannot be loaded.
        """
        with self._client().lock:
            if self._loaded is None:
                import transformers

                name = self._tokenizer_name
                with invalid_input(
                    f"The tokenizer of {self._name!r:.200} cannot be loaded as {name!r:.200}",
                    'Give the option tokenizer="<model id or directory>".',
                ):
                    self._loaded = TextTokenizer(transformers.AutoTokenizer.from_pretrained(name))
            return self._loaded

    @property
    def _card(self) -> dict[str, Any]:
        """What the server says of the model, asked once."""
        with self._client().lock:
            if self._known is None:
                self._known = self._read_card()
            return self._known

    def _read_card(self) -> dict[str, Any]:
        """What the server says of the model; nothing where its engine is named and it lists no models."""
        engine = self._options["engine"]
        try:
            cards = self._client().models()
        except ServerFailure:
            if engine and self._model:
                return {}
            raise
        names = f"{', '.join(cards):.200}" or "nothing"
        if not self._model and len(cards) != 1:
            raise InvalidInput(f"{self._name!r:.200} serves {names}: name one behind a #.")
        name = self._model or next(iter(cards))
        card = cards.get(name) or cards.get(f"{name}:latest")
        if card is None and engine != "openai":  # gateways know more names than they list
            raise InvalidInput(f"{self._root} does not serve {name!r:.200}; it serves {names}.")
        return card or {}

    @property
    def _served_name(self) -> str:
        return self._model or str(self._card["id"])

    @property
    def _window(self) -> int | None:
        """Tokens of the longest prompt: a server writes one token behind it."""
        limit = self._options["max_length"] or self._card.get("max_model_len")
        return limit - 1 if isinstance(limit, int) and limit > 0 else None

    @property
    def _tokenizer_name(self) -> str | None:
        name: str | None = self._options["tokenizer"]
        return name if name or not self.server.takes_ids else str(self._card.get("root") or self._served_name)


def split_address(address: str) -> tuple[str, str]:
    """Root and model of a server's address; the model may be empty.

    Raises:
        InvalidInput: it is no address.
        MissingExtra: httpx is not installed.

    >>> split_address("http://localhost:8000/v1#qwen")
    ('http://localhost:8000', 'qwen')
    """
    httpx = require("httpx", "server")
    url, _, model = address.partition("#")
    known = False
    with suppress(httpx.InvalidURL):
        parts = httpx.URL(url)
        known = parts.scheme in ("http", "https") and bool(parts.host) and (parts.port or 80) < 1 << 16
        known = known and not parts.userinfo and not parts.query
    if not known:
        raise InvalidInput("A server's address is http://host:port/v1#model, or https, without a login or a query.")
    return url.rstrip("/").removesuffix("/v1"), model


def _defused(tokenizer: TextTokenizer, part: str | TruncatableText) -> str | TruncatableText:
    """A part of a prompt without control tokens, unless it is wording."""
    if isinstance(part, TruncatableText):
        return replace(part, text=tokenizer.defused(part.text))
    return part if isinstance(part, TrustedText) else tokenizer.defused(part)
