"""What each kind of server is asked, and how its answer is read. Nothing that is missing or impossible passes.

vLLM tells log-probabilities of the prompt and of tokens by id; SGLang, too. llama.cpp, Ollama and OpenAI's chats tell
those of the likeliest tokens behind it alone: one that is not among them is known to be at most as likely as the last
of them, and as what all of them leave.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from drillrank.errors import LacksCapability, ServerFailure

if TYPE_CHECKING:
    from drillrank.likelihood.http_client import HTTPClient

_TOP = 20  # likeliest tokens: the most that OpenAI and Ollama tell
_IMPOSSIBLE = -9999.0  # how vLLM writes minus infinity


@dataclass(frozen=True, slots=True)
class Sequenced:
    """A prompt and its target as token ids; the target begins at `target_start`."""

    ids: tuple[int, ...]
    target_start: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt and the tokens that may follow it.

    Attributes:
        text: The prompt.
        ids: The same as token ids; empty where the model's tokenizer is not known here.
        answers: Text of each answer.
        answer_ids: Their ids; empty where `ids` is.
        chat: Whether the text is the user's turn, which the server puts into its own template.
    """

    text: str
    ids: tuple[int, ...]
    answers: tuple[str, ...]
    answer_ids: tuple[int, ...]
    chat: bool


Told = list[tuple[float, bool]]
"""Log-probability of each answer, and whether it is no more than a bound."""


class Server(ABC):
    """One kind of server.

    Args:
        client: Asks it.
        model: Its name for the model.
        prompts_per_request: How many prompts a request holds, where it may hold several.
    """

    engine: ClassVar[str]
    tells_likelihood: ClassVar[bool] = False
    takes_ids: ClassVar[bool] = True
    since: ClassVar[str] = ""

    def __init__(self, client: HTTPClient, model: str, prompts_per_request: int) -> None:
        self.client = client
        self.model = model
        self._per_request = prompts_per_request

    def score(self, sequences: Sequence[Sequenced]) -> list[list[float]]:
        """Log-probabilities of each target's tokens.

        Raises:
            LacksCapability: the server tells none of its prompt.
            ServerFailure: it fails, or answers what cannot be.
        """
        if not self.tells_likelihood:
            raise LacksCapability(
                f"{self.engine} tells probabilities of what it writes, not of a prompt, so that it has no likelihood "
                'of a question: rank with Relevance, such as Relevance(model, preset="yes-no"), or serve the model by '
                "vLLM or SGLang for UPR, PromptRank and BRMGR."
            )
        return self._score(sequences)

    def ask(self, prompts: Sequence[Asked]) -> list[Told]:
        """How likely each prompt's answers are as the next token.

        Raises:
            LacksCapability: the server does not take such prompts.
            ServerFailure: it fails, or answers what cannot be.
        """
        return self._ask(prompts)

    def _score(self, sequences: Sequence[Sequenced]) -> list[list[float]]:
        raise NotImplementedError

    @abstractmethod
    def _ask(self, prompts: Sequence[Asked]) -> list[Told]: ...

    @abstractmethod
    def _read(self, item: Any, told: Any) -> Any:
        """What a server told of one prompt."""

    def _batched(
        self, path: str, items: Sequence[Any], payload: Callable[[Sequence[Any]], Any], each: Callable[[Any, int], Any]
    ) -> list[Any]:
        """What is read of each item, in order; items that begin alike are neighbours, as prefix caches want them."""
        order = sorted(range(len(items)), key=lambda place: items[place].ids)
        groups = [order[at : at + self._per_request] for at in range(0, len(order), self._per_request)]
        answers = self.client.post_all(path, [payload([items[place] for place in group]) for group in groups])
        found: list[Any] = [None] * len(items)
        for group, answer in zip(groups, answers, strict=True):
            with self._understood(path, answer):
                for place, told in zip(group, each(answer, len(group)), strict=True):
                    found[place] = self._read(items[place], told)
        return found

    def _each(self, path: str, asked: Sequence[Asked], payload: Callable[[Asked], Any]) -> list[Any]:
        """One request for each prompt."""
        found = []
        for one, answer in zip(asked, self.client.post_all(path, [payload(one) for one in asked]), strict=True):
            with self._understood(path, answer):
                found.append(self._read(one, answer))
        return found

    @contextmanager
    def _understood(self, path: str, answer: Any) -> Iterator[None]:
        """What is missing or impossible in an answer is the server's failure."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ServerFailure(
                f"{self.client.root}{path} answered, but not as {self.engine} does ({error!r}): {str(answer)[:300]!r}. "
                f"{self.since}"
            ) from error


class VLLM(Server):
    """vLLM: `/v1/completions` with lists of token ids."""

    engine = "vLLM"
    since = "drillrank was tried with vLLM 0.32."
    tells_likelihood = True

    def _score(self, sequences: Sequence[Sequenced]) -> list[list[float]]:
        return self._batched("/v1/completions", sequences, self._scoring, _by_index)

    def _ask(self, prompts: Sequence[Asked]) -> list[Told]:
        return self._batched("/v1/completions", prompts, self._asking, _by_index)

    def _scoring(self, group: Sequence[Sequenced]) -> Any:
        return self._payload(group) | {"prompt_logprobs": 0}

    def _asking(self, group: Sequence[Asked]) -> Any:
        wanted = sorted({id_ for one in group for id_ in one.answer_ids})
        return self._payload(group) | {
            "logprobs": 1, "logprob_token_ids": wanted, "return_tokens_as_token_ids": True
        }  # fmt: skip

    def _payload(self, group: Sequence[Sequenced | Asked]) -> dict[str, Any]:
        return {
            "model": self.model,
            "prompt": [list(one.ids) for one in group],
            "max_tokens": 1,
            "temperature": 0,
            "return_token_ids": True,
        }

    def _read(self, item: Sequenced | Asked, told: Any) -> Any:
        if list(told["prompt_token_ids"]) != list(item.ids):
            raise ValueError("other tokens were read than were sent")
        if isinstance(item, Asked):
            top = told["logprobs"]["top_logprobs"][0]
            return [(_log_prob(top[f"token_id:{id_}"]), False) for id_ in item.answer_ids]
        positions = told["prompt_logprobs"]
        if len(positions) != len(item.ids):
            raise ValueError(f"{len(positions)} positions for {len(item.ids)} tokens")
        return [
            _log_prob(positions[at][str(item.ids[at])]["logprob"]) for at in range(item.target_start, len(item.ids))
        ]


class SGLang(Server):
    """SGLang: `/generate` with lists of token ids; its prefix cache works up to the target."""

    engine = "SGLang"
    tells_likelihood = True

    def _score(self, sequences: Sequence[Sequenced]) -> list[list[float]]:
        return self._batched("/generate", sequences, self._scoring, _in_order)

    def _ask(self, prompts: Sequence[Asked]) -> list[Told]:
        return self._batched("/generate", prompts, self._asking, _in_order)

    def _scoring(self, group: Sequence[Sequenced]) -> Any:
        # The first position told has no log-probability.
        return self._payload(group) | {"logprob_start_len": [one.target_start - 1 for one in group]}

    def _asking(self, group: Sequence[Asked]) -> Any:
        return self._payload(group) | {"token_ids_logprob": [list(one.answer_ids) for one in group]}

    def _payload(self, group: Sequence[Sequenced | Asked]) -> dict[str, Any]:
        return {
            "input_ids": [list(one.ids) for one in group],
            "sampling_params": {"max_new_tokens": 1, "temperature": 0},
            "return_logprob": True,
        }

    def _read(self, item: Sequenced | Asked, told: Any) -> Any:
        info = told["meta_info"]
        if info["prompt_tokens"] != len(item.ids):
            raise ValueError(f"{info['prompt_tokens']} tokens were read of {len(item.ids)}")
        if isinstance(item, Asked):
            by_id = {id_: value for value, id_, *_ in info["output_token_ids_logprobs"][0]}
            return [(_log_prob(by_id[id_]), False) for id_ in item.answer_ids]
        target = item.ids[item.target_start :]
        positions = info["input_token_logprobs"][-len(target) :]
        if [id_ for _, id_, *_ in positions] != list(target):
            raise ValueError("other tokens were read than were sent")
        return [_log_prob(value) for value, *_ in positions]


class LlamaCpp(Server):
    """llama.cpp's own server: `/completion` with token ids, the likeliest tokens by id."""

    engine = "llama.cpp"

    def _ask(self, prompts: Sequence[Asked]) -> list[Told]:
        return self._each("/completion", prompts, self._payload)

    def _payload(self, asked: Asked) -> Any:
        return {"prompt": list(asked.ids), "n_predict": 1, "n_probs": _TOP, "temperature": 0, "cache_prompt": True}

    def _read(self, item: Asked, told: Any) -> Told:
        top = told["completion_probabilities"][0]["top_logprobs"]
        return _among({one["id"]: _log_prob(one["logprob"]) for one in top}, item.answer_ids)


class Ollama(Server):
    """Ollama: `/api/chat`, or `/api/generate` without its template; the likeliest tokens by their text."""

    engine = "Ollama"
    since = "Ollama tells log-probabilities from 0.12.11 on."
    takes_ids = False

    def _ask(self, prompts: Sequence[Asked]) -> list[Told]:
        chat = prompts[0].chat  # one preset asks for all
        return self._each("/api/chat" if chat else "/api/generate", prompts, self._payload)

    def _payload(self, asked: Asked) -> Any:
        said: dict[str, Any] = {"prompt": asked.text, "raw": True}
        if asked.chat:
            said = {"messages": [{"role": "user", "content": asked.text}], "think": False}
        options = {"num_predict": 1, "temperature": 0}
        return said | {
            "model": self.model, "stream": False, "logprobs": True, "top_logprobs": _TOP, "options": options
        }  # fmt: skip

    def _read(self, item: Asked, told: Any) -> Told:
        return _by_text(told["logprobs"][0]["top_logprobs"], item.answers)


class OpenAI(Server):
    """OpenAI and what speaks as it does, such as LiteLLM: `/v1/chat/completions`."""

    engine = "An OpenAI-compatible server"
    takes_ids = False

    def _ask(self, prompts: Sequence[Asked]) -> list[Told]:
        if not all(one.chat for one in prompts):
            raise LacksCapability(
                "This server takes conversations and puts them into a template of its own: ask with "
                'preset="yes-no", or with chat=True and a template without control tokens; or serve the model by vLLM, '
                "SGLang, llama.cpp or Ollama."
            )
        return self._each("/v1/chat/completions", prompts, self._payload)

    def _payload(self, asked: Asked) -> Any:
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": asked.text}],
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": _TOP,
        }

    def _read(self, item: Asked, told: Any) -> Told:
        return _by_text(told["choices"][0]["logprobs"]["content"][0]["top_logprobs"], item.answers)


SERVERS: dict[str, type[Server]] = {
    "vllm": VLLM,
    "sglang": SGLang,
    "llama.cpp": LlamaCpp,
    "ollama": Ollama,
    "openai": OpenAI,
}
OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "library": "ollama"}
"""Which engine calls itself so in the `owned_by` of `/v1/models`."""


def _by_index(answer: Any, count: int) -> Iterator[Any]:
    choices = {choice["index"]: choice for choice in answer["choices"]}
    return (choices[index] for index in range(count))


def _in_order(answer: Any, count: int) -> Iterator[Any]:
    if not isinstance(answer, list) or len(answer) != count:
        raise ValueError(f"not {count} answers")
    return iter(answer)


def _log_prob(value: Any) -> float:
    """A log-probability, and nothing that only looks like one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no log-probability")
    if not _IMPOSSIBLE < value <= 1e-3:
        raise ValueError(f"{value!r} is no log-probability")
    return min(float(value), 0.0)


def _by_text(top: Sequence[Mapping[str, Any]], answers: Sequence[str]) -> Told:
    known: dict[str, float] = {}
    for one in top:
        known.setdefault(one["token"], _log_prob(one["logprob"]))
    return _among(known, answers)


def _among(known: Mapping[Any, float], answers: Sequence[Any]) -> Told:
    """Each answer's log-probability, or a bound where it is not among the likeliest tokens."""
    if not known:
        raise ValueError("no token is told")
    left = 1.0 - math.fsum(map(math.exp, known.values()))
    bound = min(*known.values(), math.log(max(left, 1e-12)), 0.0)
    return [(known[answer], False) if answer in known else (bound, True) for answer in answers]
