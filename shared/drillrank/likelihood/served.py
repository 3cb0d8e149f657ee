"""A served language model. Tokens are made here, probabilities on the server (`drillrank.likelihood.servers`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from drillrank.errors import InvalidInput, LacksCapability, ServerFailure, check_positive, invalid_input, require
from drillrank.likelihood.base import (
    Likelihood,
    NextTokenRequest,
    NextTokens,
    Request,
    TrainedAnswers,
    read_trained_answers,
)
from drillrank.likelihood.http_client import HTTPClient, check_connection, split_address
from drillrank.likelihood.process import PerProcess
from drillrank.likelihood.servers import ENGINE_BY_OWNER, SERVERS, ScoredPrompt, Server, TokenValues
from drillrank.likelihood.tokenizer import TextTokenizer, TokenModel, as_one_string, fit_to_budgets
from drillrank.progress import progress_bar
from drillrank.prompts import TruncatableText, TrustedText, prompt_text
from drillrank.text import without_surrogates

T = TypeVar("T")


class ServedModel(TokenModel):
    """A decoder-only language model behind vLLM, SGLang, llama.cpp, Ollama or an OpenAI-compatible address.

    vLLM and SGLang compute likelihoods and next tokens, the others next tokens only. Prompts are tokenized and cut
    here, by the model's own tokenizer, so that budgets apply and control tokens in documents are text. Ollama and
    OpenAI take text: without `tokenizer` nothing is truncated, and their templates may obey a document.

    Args:
        address: `http://host:port/v1#model`, or https; without `#model` the only model of the server.
        engine: `"vllm"`, `"sglang"`, `"llama.cpp"`, `"ollama"` or `"openai"`; None asks the server.
        tokenizer: Model id or directory of the tokenizer; None takes the name under which the model is served.
        api_key_env: Environment variable with the API key; no key is sent if it is not set.
        max_length: Maximum number of tokens of a prompt; None for the server's own limit.
        prompts_per_request: Number of prompts of one request, if the server takes several.
        concurrency: Maximum number of requests at a time, over all callers.
        timeout: Maximum seconds per request, including further attempts and the pauses between them.
        retries: Maximum number of further attempts, with growing pauses: after 408, 429 and 5xx, and if the server
            cannot be reached.
        chat: True if each prompt is the user's turn of a conversation, by the tokenizer's chat template.
        show_progress: True to show a progress bar on standard error.

    Scores are natural log-probabilities per token, as for the same model on this machine. A temperature other than 1 is
    refused, because no server rescales a prompt's logits. A forked process opens its own connections.

    Raises:
        MissingExtra: httpx or transformers is not installed.
        InvalidInput: The address or an option cannot be used.
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
        if engine is not None and (not isinstance(engine, str) or engine not in SERVERS):
            raise InvalidInput(f"engine must be one of {', '.join(SERVERS)}, got {engine!r:.200}.")
        check_positive(prompts_per_request=prompts_per_request)
        check_connection(timeout=timeout, retries=retries, concurrency=concurrency)
        super().__init__(address, locals())
        client = partial(HTTPClient, self._root, api_key_env=api_key_env, timeout=timeout)
        self._client = PerProcess(partial(client, retries=retries, concurrency=concurrency))
        self._loaded: TextTokenizer | None = None
        self._known_card: dict[str, Any] | None = None

    @property
    def spec(self) -> str:
        """Address of the server."""
        return self._name

    @property
    def trained_answers(self) -> TrainedAnswers | None:
        """Answers that the tokenizer's directory or repository names in `1_LogitScore/config.json`."""
        return None if self._tokenizer_name is None else read_trained_answers(self._tokenizer_name)

    async def run_in_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that asks this model, without blocking the event loop.

        It runs on a thread of this model's own. If the caller is cancelled, its requests are cancelled, too.
        """
        return await self._client().on_worker(function, *arguments)

    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        """Compute the likelihoods of checked requests on the server."""
        if not self.server.likelihood:
            raise LacksCapability(
                f"{self.server.engine} returns probabilities of its own output only, not the likelihood of a "
                'question. Rank with Relevance(model, preset="yes-no"), or serve the model by vLLM or SGLang.'
            )
        if temperature != 1:
            raise InvalidInput(f"A served model scores at temperature 1, got {temperature!r:.200}. Remove temperature.")
        end, names = self._end(include_eos), self.tokenizer.token_names
        strings = as_one_string(self._with_chat(requests), self.tokenizer, self._window, end)
        prompts = [ScoredPrompt(ids=tuple(ids), target_start=start, cut_tokens=cut) for ids, start, cut, _ in strings]
        results = []
        for prompt, values in zip(prompts, self._ask(prompts), strict=True):
            log_probs = np.array([value for value, _ in values], dtype=np.float64)
            tokens = [names[id_] for id_ in prompt.ids[prompt.target_start :]]
            results.append(Likelihood(tokens, log_probs, float(log_probs.sum()), prompt.cut_tokens))
        return results

    def next_tokens_batch(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        """Compute the probabilities of the requests' answers on the server."""
        if logits:
            raise LacksCapability(
                f"{self.spec!r:.200} returns log-probabilities, but this preset scores by one raw logit. Load the "
                'model on this machine, as "hf:<model>", or use a model with two answers.'
            )
        if self.server.takes_ids:
            strings = as_one_string(requests, self.tokenizer, self._window)
            prompts = [
                ScoredPrompt(
                    ids=tuple(ids), answers=tuple(map(self.tokenizer.answer_id, request.answers)), cut_tokens=cut
                )
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
                ScoredPrompt(one.text, answers=texts, chat=request.chat, cut_tokens=one.cut_tokens)
                for request, texts, one in zip(requests, answers, fitted, strict=True)
            ]
        return [
            NextTokens(np.array([value for value, _ in values]), prompt.cut_tokens, tuple(bound for _, bound in values))
            for values, prompt in zip(self._ask(prompts), prompts, strict=True)
        ]

    def _as_it_is(self, request: NextTokenRequest) -> ScoredPrompt:
        """Return a prompt for a server that takes text, without the model's tokenizer."""
        limited = [
            request.max_tokens,
            *(part.max_tokens for part in request.prompt if isinstance(part, TruncatableText)),
        ]
        if not request.chat or any(limited) or not all(isinstance(answer, str) for answer in request.answers):
            raise InvalidInput(
                f"{self.spec!r:.200} takes text. To truncate passages, name tokens by id, or use a template with "
                'control tokens, set the option tokenizer="<model id or directory>".'
            )
        return ScoredPrompt(without_surrogates(prompt_text(request.prompt)), answers=request.answers, chat=True)

    def _ask(self, prompts: Sequence[ScoredPrompt]) -> list[TokenValues]:
        """Return the values of each prompt. Prompts with the same beginning are sent together, for prefix caches."""
        server = self.server
        distinct = sorted(set(prompts), key=lambda prompt: (prompt.ids, prompt.text))
        size = self._options["prompts_per_request"] if server.batches else 1
        groups = [distinct[start : start + size] for start in range(0, len(distinct), size)]

        def read(number: int, answer: Any) -> list[TokenValues]:
            values = [server.read(*pair) for pair in zip(groups[number], server.split(answer), strict=True)]
            advance(len(values))
            return values

        requests = [server.request(self._served_name, group) for group in groups]
        with progress_bar(self._options["show_progress"], "Reading") as (expect, advance):
            expect(len(distinct))
            values = chain.from_iterable(self._client().send(requests, read, server.engine, server.advice))
            values_by_prompt = dict(zip(distinct, values, strict=True))
        return [values_by_prompt[prompt] for prompt in prompts]

    @property
    def server(self) -> Server:
        """Kind of the server, which is asked once.

        Raises:
            ServerFailure: The server cannot be reached.
            InvalidInput: The server does not serve the model.
        """
        return SERVERS[self._options["engine"] or ENGINE_BY_OWNER.get(str(self._card.get("owned_by")), "openai")]

    @property
    def tokenizer(self) -> TextTokenizer:
        """Tokenizer of the model, loaded at the first use.

        Raises:
            InvalidInput: The tokenizer cannot be loaded.
        """
        with self._client().lock:
            if self._loaded is None:
                import transformers

                name = self._tokenizer_name
                with invalid_input(
                    f"The tokenizer of {self._name!r:.200} cannot be loaded as {name!r:.200}",
                    'Set the option tokenizer="<model id or directory>".',
                ):
                    self._loaded = TextTokenizer(transformers.AutoTokenizer.from_pretrained(name))
            return self._loaded

    @property
    def _card(self) -> dict[str, Any]:
        """Description of the model by the server, which is asked once."""
        with self._client().lock:
            if self._known_card is None:
                self._known_card = self._read_card()
            return self._known_card

    def _read_card(self) -> dict[str, Any]:
        """Return the server's description of the model. Empty if its engine is named and it lists no models."""
        engine = self._options["engine"]
        try:
            cards = self._client().models()
        except ServerFailure:
            if engine and self._model:
                return {}
            raise
        names = f"{', '.join(cards):.200}" or "nothing"
        if not self._model and len(cards) != 1:
            raise InvalidInput(f"{self._name!r:.200} serves {names}. Name one after a #.")
        name = self._model or next(iter(cards))
        card = cards.get(name) or cards.get(f"{name}:latest")
        if card is None and engine != "openai":  # gateways know more names than they list
            raise InvalidInput(f"{self._root} does not serve {name!r:.200}. Use one of its models: {names}.")
        return card or {}

    @property
    def _served_name(self) -> str:
        return self._model or str(self._card["id"])

    @property
    def _window(self) -> int | None:
        """Maximum number of tokens of a prompt. A server writes one more token after it."""
        limit = self._options["max_length"] or self._card.get("max_model_len")
        return limit - 1 if isinstance(limit, int) and limit > 0 else None

    @property
    def _tokenizer_name(self) -> str | None:
        name: str | None = self._options["tokenizer"]
        return name if name or not self.server.takes_ids else str(self._card.get("root") or self._served_name)


def _defused(tokenizer: TextTokenizer, part: str | TruncatableText) -> str | TruncatableText:
    """Remove control tokens from a part of a prompt, unless it is trusted text."""
    if isinstance(part, TruncatableText):
        return replace(part, text=tokenizer.defused(part.text))
    return part if isinstance(part, TrustedText) else tokenizer.defused(part)
