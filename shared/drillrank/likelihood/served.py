"""A served language model: its tokens are made here, its probabilities there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from drillrank.errors import InvalidInput, LacksCapability, ServerFailure, check_positive, require
from drillrank.likelihood.base import Likelihood, NextTokenRequest, NextTokens, Request, TrainedAnswers, as_said
from drillrank.likelihood.from_options import FromOptions
from drillrank.likelihood.loading import told
from drillrank.likelihood.prompt_tokens import as_one_string, fit_to_budgets, prompts_alone
from drillrank.likelihood.servers import OWNERS, SERVERS, Asked, Sequenced, Server
from drillrank.likelihood.text_tokenizer import TextTokenizer
from drillrank.likelihood.trained_answers import read_trained_answers
from drillrank.prompts import Evidence, Prompt, Wording, prompt_text

logger = logging.getLogger(__name__)


class ServedModel(FromOptions):
    """A decoder-only language model behind vLLM, SGLang, llama.cpp, Ollama or an OpenAI-compatible address.

    vLLM and SGLang tell likelihoods and next tokens, the others next tokens alone. Prompts are tokenised and shortened
    here, by the model's own tokenizer, so that budgets hold and control tokens in documents are text. Ollama and
    OpenAI take text: without `tokenizer` nothing is shortened, and what their templates make of a document is theirs.

    Args:
        address: `http://host:port/v1#model`, or https; without `#model` the only one that is served.
        engine: `"vllm"`, `"sglang"`, `"llama.cpp"`, `"ollama"` or `"openai"`; None asks the server.
        tokenizer: Model id or directory of the tokenizer; None takes the name under which the model is served.
        api_key_env: Environment variable that holds the API key; no key is sent if it is not set.
        max_length: Longest prompt in tokens; None for what the server says.
        prompts_per_request: Prompts of one request, where a server takes several.
        concurrency: Requests under way at once.
        timeout: Seconds that an answer may take.
        retries: How often a request is tried again, with growing pauses: after 408, 429 and 5xx, and where the server
            cannot be reached.
        chat: Whether each prompt is the user's turn of a conversation, by the tokenizer's chat template.

    Scores are natural log-probabilities per token, as of the same model on this machine; a temperature other than 1 is
    refused, since no server rescales a prompt's logits.

    Raises:
        MissingExtra: urllib3 or transformers is not installed.
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
    ) -> None:
        url, _, self._model = address.partition("#")
        parts = urlsplit(url)
        if not parts.hostname or parts.query or parts.username:
            raise InvalidInput("A server's address is http://host:port/v1#model, or https, without a login or a query.")
        if engine is not None and engine not in SERVERS:
            raise InvalidInput(f"engine is one of {', '.join(SERVERS)}; not {engine!r}.")
        check_positive(prompts_per_request=prompts_per_request, concurrency=concurrency)
        if not isinstance(retries, int) or retries < 0:
            raise InvalidInput(f"retries is a whole number, at least 0; not {retries!r}.")
        if not isinstance(timeout, int | float) or timeout <= 0:
            raise InvalidInput(f"timeout is a number of seconds above 0; not {timeout!r}.")
        require("urllib3", "server")
        require("transformers", "server")
        from drillrank.likelihood.http_client import HTTPClient

        super().__init__(address, locals())
        self._root = url.rstrip("/").removesuffix("/v1")
        self._client = HTTPClient(
            self._root, api_key_env=api_key_env, timeout=timeout, retries=retries, concurrency=concurrency
        )
        self._lock = threading.RLock()

    @property
    def spec(self) -> str:
        """The address."""
        return self._name

    @property
    def tells_next_tokens(self) -> bool:
        """True."""
        return True

    @property
    def trained_answers(self) -> TrainedAnswers | None:
        """What the tokenizer's directory or repository names in `1_LogitScore/config.json`."""
        return None if self._tokenizer_name is None else read_trained_answers(self._tokenizer_name)

    @property
    def server(self) -> Server:
        """The server, asked once what it is.

        Raises:
            ServerFailure: it cannot be reached.
            InvalidInput: it does not serve the model.
        """
        with self._lock:
            return self._server

    @property
    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer, loaded at the first use.

        Raises:
            InvalidInput: it cannot be loaded.
        """
        with self._lock:
            return self._tokenizer

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        server = self.server
        if not server.tells_likelihood:
            server.score([])  # says what would do
        if temperature != 1:
            raise InvalidInput(f"A served model scores at temperature 1, not {temperature!r}: leave it out.")
        tokenizer = self.tokenizer
        end = [self._eos_id] if include_eos else []
        window = None if self._window is None else self._window - 1  # a server writes one token
        strings = list(as_one_string(as_said(requests, self._options["chat"]), tokenizer, window, end))
        asked = [Sequenced(tuple(ids), first) for ids, first, _ in strings]
        distinct = list(dict.fromkeys(asked))
        found = dict(zip(distinct, server.score(distinct), strict=True))
        results = []
        for one, (_, _, cut_tokens) in zip(asked, strings, strict=True):
            log_probs = np.array(found[one], dtype=np.float64)
            names = [tokenizer.token_names[id_] for id_ in one.ids[one.target_start :]]
            results.append(Likelihood(names, log_probs, float(log_probs.sum()), cut_tokens))
        return results

    def _next_tokens(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        if logits:
            raise LacksCapability(
                f"{self.spec!r} tells log-probabilities, and this preset scores by one raw logit, which cannot be had "
                'from them: load the model here, as "hf:<model>", or take a model that gives two answers.'
            )
        server = self.server
        asked, cut_tokens = self._with_ids(requests) if server.takes_ids else self._with_texts(requests)
        distinct = list(dict.fromkeys(asked))
        found = dict(zip(distinct, server.ask(distinct), strict=True))
        return [
            NextTokens(np.array([value for value, _ in found[one]]), cut, tuple(bound for _, bound in found[one]))
            for one, cut in zip(asked, cut_tokens, strict=True)
        ]

    def _with_ids(self, requests: Sequence[NextTokenRequest]) -> tuple[list[Asked], list[int]]:
        tokenizer = self.tokenizer
        window = None if self._window is None else self._window - 1
        strings = list(as_one_string(prompts_alone(requests), tokenizer, window))
        asked = [
            Asked("", tuple(ids), (), tuple(map(tokenizer.answer_id, request.answers)), False)
            for request, (ids, _, _) in zip(requests, strings, strict=True)
        ]
        return asked, [cut_tokens for _, _, cut_tokens in strings]

    def _with_texts(self, requests: Sequence[NextTokenRequest]) -> tuple[list[Asked], list[int]]:
        """Prompts for servers that tokenise by themselves."""
        if self._options["tokenizer"] is None:
            return [self._unread(request) for request in requests], [0] * len(requests)
        tokenizer = self.tokenizer
        safe = [Request(_defused(request.prompt, tokenizer), "", request.max_tokens) for request in requests]
        fitted = fit_to_budgets(safe, tokenizer, self._window, with_targets=False)
        asked = [
            Asked(item.text, (), tuple(map(tokenizer.answer_text, request.answers)), (), request.chat)
            for request, item in zip(requests, fitted, strict=True)
        ]
        return asked, [item.cut_tokens for item in fitted]

    def _unread(self, request: NextTokenRequest) -> Asked:
        limits = [request.max_tokens, *(part.max_tokens for part in request.prompt if isinstance(part, Evidence))]
        words = all(isinstance(answer, str) for answer in request.answers)
        if not request.chat or any(limits) or not words:
            raise InvalidInput(
                f"{self.spec!r} takes text, and without the model's tokenizer no passage can be shortened here, no "
                "token be named by its id, and no document be kept from speaking as the user: give the option "
                'tokenizer="<model id or directory>".'
            )
        return Asked(prompt_text(request.prompt), (), tuple(map(str, request.answers)), (), True)

    def first_tokens(self, text: str, count: int) -> str:
        """The longest beginning of a text that has at most `count` tokens, special ones not counted."""
        [fitted] = fit_to_budgets([Request((Evidence(text, count),), "")], self.tokenizer, None, with_targets=False)
        return fitted.text

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, special tokens not counted."""
        return len(self.tokenizer(text).ids)

    @cached_property
    def _card(self) -> dict[str, Any]:
        """What the server says of the model; nothing where its engine is named and it lists no models."""
        try:
            models = self._client.get("/v1/models")["data"]
            named = {str(model["id"]): model for model in models}
        except ServerFailure:
            if self._options["engine"] is None or not self._model:
                raise
            return {}
        except (LookupError, TypeError) as error:
            raise ServerFailure(f"{self._root}/v1/models lists no models: name the engine. ({error!r})") from error
        if not self._model and len(named) != 1:
            raise InvalidInput(f"{self._name!r} serves {', '.join(named) or 'nothing'}: name one behind a #.")
        name = self._model or next(iter(named))
        if name not in named and f"{name}:latest" not in named:
            if self._options["engine"] == "openai":  # gateways know more names than they list
                return {}
            raise InvalidInput(f"{self._root} does not serve {name!r}; it serves {', '.join(named) or 'nothing'}.")
        card: dict[str, Any] = named.get(name) or named[f"{name}:latest"]
        return card

    @cached_property
    def _server(self) -> Server:
        card = self._card
        engine = self._options["engine"] or OWNERS.get(card.get("owned_by", ""), "openai")
        logger.info("%s is served by %s.", self._name, SERVERS[engine].engine)
        return SERVERS[engine](self._client, self._model or card["id"], self._options["prompts_per_request"])

    @property
    def _window(self) -> int | None:
        told = self._options["max_length"] or self._card.get("max_model_len")
        return told if isinstance(told, int) and told > 0 else None

    @property
    def _tokenizer_name(self) -> str | None:
        given: str | None = self._options["tokenizer"]
        if given is not None or not self.server.takes_ids:
            return given
        return str(self._card.get("root") or self._model or self._card["id"])

    @property
    def _eos_id(self) -> int:
        if self.tokenizer.eos_id is None:
            raise InvalidInput("This model has no end-of-sequence token: pass include_eos=False.")
        return self.tokenizer.eos_id

    @cached_property
    def _tokenizer(self) -> TextTokenizer:
        import transformers

        name = self._tokenizer_name
        with told(
            f"The tokenizer of {self._name!r} cannot be loaded as {name!r}",
            'Give the option tokenizer="<model id or directory>".',
        ):
            return TextTokenizer(transformers.AutoTokenizer.from_pretrained(name))


def _defused(prompt: Prompt, tokenizer: TextTokenizer) -> Prompt:
    """The prompt with no control tokens but those of its wording."""
    parts: list[str | Evidence] = []
    for part in prompt:
        if isinstance(part, Evidence):
            parts.append(Evidence(tokenizer.defused(part.text), part.max_tokens))
        else:
            parts.append(part if isinstance(part, Wording) else tokenizer.defused(part))
    return tuple(parts)
