"""Kinds of model servers: the requests they take and the answers they give.

vLLM and SGLang return log-probabilities of a prompt, and of tokens by id. llama.cpp, Ollama and OpenAI's chats return
those of the likeliest next tokens only. A token that is not among them is at most as likely as the last of them, and as
the probability that all of them leave. A missing or impossible number in an answer is an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Any, ClassVar

from drillrank.errors import LacksCapability

_TOP = 20  # likeliest tokens: the most that OpenAI and Ollama return
_IMPOSSIBLE = -9999.0  # vLLM's notation of minus infinity


@dataclass(frozen=True, slots=True)
class ScoredPrompt:
    """Prompt whose target or next token a server scores.

    Attributes:
        text: The prompt, for servers that take text.
        ids: The prompt and its target as token ids, for the others.
        target_start: Index in `ids` at which the target begins; 0 to score `answers` in place of a target.
        answers: Tokens that may come next: ids, or texts.
        chat: True if the text is the user's turn, which the server puts into its own template.
        cut_tokens: Number of tokens of documents that were truncated.
    """

    text: str = ""
    ids: tuple[int, ...] = ()
    target_start: int = 0
    answers: tuple[int | str, ...] = ()
    chat: bool = False
    cut_tokens: int = field(default=0, compare=False)


TokenValues = list[tuple[float, bool]]
"""Log-probability of each token of the target, or of each answer, and True if it is an upper bound only."""


class Server:
    """One kind of server: its name, capabilities, requests and answers."""

    engine: ClassVar[str]
    likelihood: ClassVar[bool] = False
    takes_ids: ClassVar[bool] = True
    batches: ClassVar[bool] = False
    advice: ClassVar[str] = ""
    top: ClassVar[tuple[str | int, ...]] = ()
    """Keys that lead to the likeliest next tokens in an answer, for servers that return these only."""

    def request(self, model: str, prompts: Sequence[ScoredPrompt]) -> tuple[str, dict[str, Any]]:
        """Return path and payload for prompts; for one prompt, unless the server `batches`."""
        raise NotImplementedError

    def split(self, answer: Any) -> list[Any]:
        """Return the answer to each prompt."""
        return [answer]

    def read(self, prompt: ScoredPrompt, answer: Any) -> TokenValues:
        """Return the values in the answer to one prompt.

        Raises:
            LookupError, TypeError, ValueError, AttributeError: They are missing or impossible.
        """
        return _among(reduce(getitem, self.top, answer), "id" if self.takes_ids else "token", prompt.answers)


class _VLLM(Server):
    engine = "vLLM"
    likelihood = batches = True

    def request(self, model: str, prompts: Sequence[ScoredPrompt]) -> tuple[str, dict[str, Any]]:
        payload: dict[str, Any] = {"prompt_logprobs": 0}
        if not prompts[0].target_start:
            ids = sorted({id_ for prompt in prompts for id_ in prompt.answers})
            payload = {"logprobs": 1, "logprob_token_ids": ids, "return_tokens_as_token_ids": True}
        payload |= {"model": model, "prompt": [list(prompt.ids) for prompt in prompts]}
        return "/v1/completions", payload | {"max_tokens": 1, "temperature": 0, "return_token_ids": True}

    def split(self, answer: Any) -> list[Any]:
        choices = {choice["index"]: choice for choice in answer["choices"]}
        return [choices[index] for index in range(len(choices))]

    def read(self, prompt: ScoredPrompt, answer: Any) -> TokenValues:
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

    def request(self, _: str, prompts: Sequence[ScoredPrompt]) -> tuple[str, dict[str, Any]]:
        # The first position that is given has no log-probability.
        payload: dict[str, Any] = {"logprob_start_len": [prompt.target_start - 1 for prompt in prompts]}
        if not prompts[0].target_start:
            payload = {"token_ids_logprob": [list(prompt.answers) for prompt in prompts]}
        payload |= {"input_ids": [list(prompt.ids) for prompt in prompts], "return_logprob": True}
        return "/generate", payload | {"sampling_params": {"max_new_tokens": 1, "temperature": 0}}

    def split(self, answer: Any) -> list[Any]:
        return list(answer)

    def read(self, prompt: ScoredPrompt, answer: Any) -> TokenValues:
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

    def request(self, _: str, prompts: Sequence[ScoredPrompt]) -> tuple[str, dict[str, Any]]:
        payload = {"prompt": list(prompts[0].ids), "n_predict": 1, "n_probs": _TOP, "temperature": 0}
        return "/completion", payload | {"cache_prompt": True}


class _Ollama(Server):
    engine, takes_ids = "Ollama", False
    top = ("logprobs", 0, "top_logprobs")
    advice = " It returns log-probabilities since version 0.12.11."

    def request(self, model: str, prompts: Sequence[ScoredPrompt]) -> tuple[str, dict[str, Any]]:
        [prompt] = prompts
        payload: dict[str, Any] = {"model": model, "stream": False, "logprobs": True, "top_logprobs": _TOP}
        payload["options"] = {"num_predict": 1, "temperature": 0}
        if prompt.chat:
            return "/api/chat", payload | {"messages": [{"role": "user", "content": prompt.text}], "think": False}
        return "/api/generate", payload | {"prompt": prompt.text, "raw": True}


class _OpenAI(Server):
    engine, takes_ids = "An OpenAI-compatible server", False
    top = ("choices", 0, "logprobs", "content", 0, "top_logprobs")

    def request(self, model: str, prompts: Sequence[ScoredPrompt]) -> tuple[str, dict[str, Any]]:
        [prompt] = prompts
        if not prompt.chat:
            raise LacksCapability(
                'This server takes conversations alone: ask with preset="yes-no", or with chat=True and a template '
                "without control tokens; or serve the model by vLLM, SGLang, llama.cpp or Ollama."
            )
        payload: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt.text}]}
        payload |= {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": _TOP}
        return "/v1/chat/completions", payload


SERVERS: dict[str, Server] = {
    "vllm": _VLLM(), "sglang": _SGLang(), "llama.cpp": _LlamaCpp(), "ollama": _Ollama(), "openai": _OpenAI(),
}  # fmt: skip
ENGINE_BY_OWNER = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "library": "ollama"}
"""Engines by the `owned_by` of their `/v1/models`."""


def _log_prob(value: Any) -> float:
    """Check a log-probability."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _IMPOSSIBLE < value <= 1e-3:
        raise ValueError("no log-probability")
    return min(float(value), 0.0)


def _exact(values: Iterable[Any]) -> TokenValues:
    return [(_log_prob(value), False) for value in values]


def _among(top: Sequence[Mapping[str, Any]], name: str, answers: Sequence[int | str]) -> TokenValues:
    """Return the log-probability of each answer, or an upper bound if it is not among the likeliest tokens."""
    # Of two tokens with the same name, the likelier one counts.
    log_prob_by_token = {token[name]: _log_prob(token["logprob"]) for token in reversed(top)}
    if not log_prob_by_token:
        raise ValueError("no token is given")
    remaining = 1.0 - math.fsum(map(math.exp, log_prob_by_token.values()))
    bound = min(*log_prob_by_token.values(), math.log(max(remaining, 1e-12)), 0.0)
    return [(log_prob_by_token.get(answer, bound), answer not in log_prob_by_token) for answer in answers]
