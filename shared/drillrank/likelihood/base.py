"""The contract of every language model, which has one or both of two capabilities.

Likelihood: exact log-probabilities of a target, given a prompt. Relevance: the probabilities of some tokens right
behind a prompt, such as "yes" and "no".
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, LacksCapability, check_number
from drillrank.progress import OnProgress
from drillrank.prompts import Prompt, TruncatableText
from drillrank.text import check_surrogates
from drillrank.vectors import CollectionStatistics

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")

LOGIT_SCORE = "1_LogitScore/config.json"  # where sentence-transformers saves the answers beside the weights


@dataclass(frozen=True, slots=True)
class Request:
    """Ask for log P(target | prompt).

    Attributes:
        prompt: Fixed wording and cuttable documents (see `drillrank.prompts`).
        target: The text whose likelihood is wanted.
        max_tokens: Budget for the whole prompt, in the model's tokens; documents are shortened to meet it.
        chat: Whether the prompt is the user's turn of a conversation and the target the assistant's, by the model's
            chat template; None leaves it to the model's own option.
    """

    prompt: Prompt
    target: str
    max_tokens: int | None = None
    chat: bool | None = None


@dataclass(slots=True, eq=False)
class Likelihood:
    """Log P(target | prompt), in nats.

    Attributes:
        tokens: The target's tokens, as the model sees them; of a sum, as its first expert sees them.
        log_probs: float64 array of shape `(len(tokens),)`, one natural log-probability per token.
        total: Sum of `log_probs`; of a sum of experts, its mean times the number of `tokens`, at least 1.
        cut_tokens: How many tokens of the prompt's documents were left out to meet the budgets.
        matched: Whether a document of the prompt holds one of the tokens; True for models that do not count words.
        parts: Of a sum, the likelihood by each expert, in order; empty otherwise.
        weights: Of a sum, the weight of each part.
    """

    tokens: Sequence[str]
    log_probs: npt.NDArray[np.float64]
    total: float
    cut_tokens: int = 0
    matched: bool = True
    parts: tuple[Likelihood, ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """Mean log-probability per token, 0.0 for a target without tokens; of a sum, the weighted sum of the means."""
        if self.parts:
            return math.fsum(weight * part.mean for weight, part in zip(self.weights, self.parts, strict=True))
        return self.total / len(self.tokens) if self.tokens else 0.0

    @property
    def summands(self) -> tuple[Likelihood, ...]:
        """What each expert adds to `total`: its tokens, with log-probabilities of which all add up to it.

        Of what is no sum, itself.
        """
        if not self.parts:
            return (self,)
        counted = max(len(self.tokens), 1)
        scales = [
            counted * weight / max(len(part.tokens), 1) for weight, part in zip(self.weights, self.parts, strict=True)
        ]
        return tuple(
            replace(part, log_probs=scale * part.log_probs, total=scale * part.total)
            for scale, part in zip(scales, self.parts, strict=True)
        )


RequestLike = Request | tuple[str, str]


@dataclass(frozen=True, slots=True)
class NextTokenRequest:
    """Ask how probable some tokens are right behind a prompt.

    Attributes:
        prompt: Fixed wording and cuttable documents (see `drillrank.prompts`).
        answers: The tokens: each its text, its name in the model's vocabulary, or its id.
        max_tokens: Budget for the whole prompt, in the model's tokens; documents are shortened to meet it.
        chat: Whether the prompt is the user's turn of a conversation, by the model's chat template, and the answer the
            first token of the assistant's.
    """

    target: ClassVar[str] = ""  # as of a `Request`: nothing follows the prompt

    prompt: Prompt
    answers: tuple[str | int, ...]
    max_tokens: int | None = None
    chat: bool = False


@dataclass(slots=True, eq=False)
class NextTokens:
    """Log-probabilities of the tokens that a `NextTokenRequest` names, in nats, or their raw logits.

    Attributes:
        values: float64 array of shape `(len(answers),)`.
        cut_tokens: How many tokens of the prompt's documents were left out to meet the budgets.
        bounds: Which values are not known, but known to be at most this: a server tells the likeliest tokens alone.
    """

    values: npt.NDArray[np.float64]
    cut_tokens: int = 0
    bounds: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainedAnswers:
    """The tokens that a checkpoint says it was trained to answer with.

    Attributes:
        positive: Id of the token for a relevant document.
        negative: Id of the token for another one; None if the logit of `positive` is all that counts.
    """

    positive: int
    negative: int | None


@dataclass(frozen=True, slots=True)
class PrefixEstimate:
    """Size of the prefixes of some prompts in a model's prefix cache, and the time to compute those that it lacks.

    Attributes:
        n_prompts: Number of prompts with a prefix whose states do not depend on what follows.
        n_tokens: Number of tokens of these prefixes. What prompts have in common counts once.
        n_bytes: Bytes of these prefixes.
        max_bytes: Bytes that the cache can keep.
        fits: Whether all of them can be kept. Each must fit into memory, and all of them into memory or on disk.
        seconds: Time to compute the prefixes that are not in the cache. 0 if they do not fit.
    """

    n_prompts: int
    n_tokens: int
    n_bytes: int
    max_bytes: int
    fits: bool
    seconds: float


class LanguageModel(ABC):
    """Scores targets given prompts; every ranker works with any of them.

    Instances are safe to share between threads.
    """

    include_eos_by_default: bool = False
    """Whether the end-of-sequence token counts as the target's last token unless the caller says otherwise."""
    language: str = "english"
    """Whose stemmer the words of texts are matched with, by the model and beside it."""
    reads_instructions: bool = True
    """Whether a prompt's fixed wording changes the scores; False if only its documents are evidence."""
    tells_next_tokens: bool = False
    """Whether `next_tokens` may be asked; a served model is known better once it is reached."""
    wants_fit: bool = False
    """Whether `fit` with the collection at hand would improve the scores."""

    @property
    def reads_meaning(self) -> bool:
        """Whether a document without a word of the question may be likelier than one with some."""
        return self.reads_instructions

    @property
    @abstractmethod
    def spec(self) -> str:
        """What `load_language_model` takes to build an equal model."""

    @property
    def options(self) -> dict[str, Any]:
        """The options that `load_language_model(self.spec, **self.options)` needs to build an equal model."""
        return {}

    @property
    def trained_answers(self) -> TrainedAnswers | None:
        """The answers that the checkpoint itself names, if it does."""
        return None

    @abstractmethod
    def _log_likelihood(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]: ...

    def _next_tokens(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:  # noqa: ARG002
        raise LacksCapability(
            f"{self.spec!r:.200} tells no probabilities of the next token: take a neural model, such as "
            '"hf:Qwen/Qwen3-Reranker-0.6B", or a served one; UPR ranks with this one.'
        )

    def next_tokens(self, requests: Iterable[NextTokenRequest], *, logits: bool = False) -> list[NextTokens]:
        """Log-probabilities of the requests' answers as the next token, in the order of the requests.

        Args:
            requests: Prompts and answers.
            logits: Whether to give raw logits in place of log-probabilities.

        Raises:
            LacksCapability: the model, or its server, does not tell them.
            InvalidInput: an answer is no token of the model, or a budget cannot be met.
        """
        request_list = list(requests)
        return self._next_tokens(request_list, logits) if request_list else []

    def log_likelihood(
        self, requests: Iterable[RequestLike], *, temperature: float = 1.0, include_eos: bool | None = None
    ) -> list[Likelihood]:
        """Log-likelihoods of the requests' targets, in the order of the requests.

        Args:
            requests: `Request`s, or `(context, target)` pairs of strings; a context is one document.
            temperature: Logits are divided by it before the softmax; above 0.
            include_eos: Whether the end-of-sequence token counts as the target's last token. By default as the
                model was trained: True for encoder-decoder models, False for the others.

        Raises:
            InvalidInput: a request is malformed, a target is blank or holds half a character (a lone surrogate, which
                a prompt may hold: it is read as U+FFFD), or the temperature is not a positive number.
        """
        checked = []
        for position, given in enumerate(requests):
            match given:
                case Request(prompt=tuple()):
                    request = given
                case (str(context), str(target)):
                    request = Request((TruncatableText(context),), target)
                case _:
                    raise InvalidInput(
                        f"Request {position} must be a (context, target) pair of strings, or a Request whose prompt is "
                        f"a tuple of strings and TruncatableText; not {given!r:.200}."
                    )
            if not isinstance(request.target, str) or not request.target.strip():
                raise InvalidInput(f"Request {position} has nothing to score: its target is {request.target!r:.200}.")
            checked.append(request)
        for target in {request.target for request in checked}:
            check_surrogates(target, "A target")
        if temperature != 1:
            check_number(temperature=temperature)
        if not checked:
            return []
        return self._log_likelihood(
            checked, temperature, self.include_eos_by_default if include_eos is None else include_eos
        )

    def log_likelihood_lists(
        self,
        request_lists: Sequence[Sequence[RequestLike]],
        *,
        temperature: float = 1.0,
        include_eos: bool | None = None,
    ) -> list[list[Likelihood]]:
        """Several lists of requests, each with the result that it has alone; in one pass, where that is the same."""
        if self.wants_fit:  # each list is a collection of its own
            return [
                self.log_likelihood(requests, temperature=temperature, include_eos=include_eos)
                for requests in request_lists
            ]
        together = [request for requests in request_lists for request in requests]
        flat = iter(self.log_likelihood(together, temperature=temperature, include_eos=include_eos))
        return [[next(flat) for _ in requests] for requests in request_lists]

    def estimate_prefixes(self, requests: Iterable[Request]) -> PrefixEstimate:  # noqa: ARG002
        """Estimate the bytes and the time of `keep_prefixes`. The prefixes of one batch are computed to measure it.

        Raises:
            LacksCapability: The model has no prefix cache.
        """
        raise self._lacks_prefix_cache()

    def keep_prefixes(
        self,
        requests: Iterable[Request],  # noqa: ARG002
        on_progress: OnProgress | None = None,  # noqa: ARG002
    ) -> PrefixEstimate:
        """Compute prompts up to the question, and keep what was computed in the model's prefix cache.

        Args:
            requests: Prompts, with any targets.
            on_progress: Callback that receives the number of prompts done and of all prompts.

        Returns:
            Size of the prefixes, and the time that they took.

        Raises:
            LacksCapability: The model has no prefix cache.
            InvalidInput: The prefixes do not fit into the cache.
        """
        raise self._lacks_prefix_cache()

    def _lacks_prefix_cache(self) -> LacksCapability:
        return LacksCapability(
            f"{self.spec!r:.200} has no prefix cache. Load a Hugging Face model with one, as in "
            'load_language_model("hf:...", prefix_cache="1 GB").'
        )

    async def run_in_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that asks this model, without blocking the event loop.

        A neural model on this machine has one worker thread, on which callers take turns: first come, first served.
        """
        return await asyncio.to_thread(function, *arguments)

    def first_tokens(self, text: str, count: int) -> str:
        """The longest beginning of a text that has at most `count` of the model's tokens; a shorter text as it is.

        Of a model of which a character has several tokens, nothing may be left for a small `count`.

        Raises:
            InvalidInput: this kind of model does not tell where its tokens end.
        """
        raise InvalidInput(
            f"{self.spec!r:.200} does not tell where its tokens end, so {count} of {text!r:.80} are unknown."
        )

    def fit(self, texts: Iterable[str] | CollectionStatistics) -> Self:  # noqa: ARG002
        """Give a lexical model its collection statistics; neural models ignore it. Returns the model itself."""
        return self

    def fitted(self, texts: Iterable[str] | CollectionStatistics) -> LanguageModel:
        """The model itself, or, if it wants to be fitted, a copy that is; this one stays as it is."""
        return copy.copy(self).fit(texts) if self.wants_fit else self


def check_texts(texts: Iterable[str] | CollectionStatistics) -> list[str]:
    """The texts as a list.

    Raises:
        InvalidInput: a single string was given in place of a list, or an item is not a string.
    """
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InvalidInput(f"Expected a list of texts, not a single {type(texts).__name__}.")
    checked = list(texts)
    for position, text in enumerate(checked):
        if not isinstance(text, str):
            raise InvalidInput(f"Text {position} is a {type(text).__name__}, not a string.")
    return checked


def read_trained_answers(name: str, revision: str | None = None) -> TrainedAnswers | None:
    """The ids in a checkpoint's `1_LogitScore/config.json`; None if there is no such file.

    Args:
        name: Directory, or model id on the hub.
        revision: Branch, tag or commit on the hub.

    Raises:
        InvalidInput: the file does not hold the ids of tokens.
    """
    from transformers.utils import cached_file

    try:
        location = Path(cached_file(name, LOGIT_SCORE, revision=revision))
    except OSError:  # not there, or not in the cache of a machine without a network
        return None
    try:
        saved = json.loads(location.read_text(encoding="utf-8"))
        positive, negative = saved["true_token_id"], saved.get("false_token_id")
    except (ValueError, LookupError, AttributeError) as error:
        raise InvalidInput(f"{location} is no configuration of a LogitScore: {error!r:.200}.") from error
    if not isinstance(positive, int) or not isinstance(negative, int | None):
        raise InvalidInput(
            f"{location} names {positive!r:.200} and {negative!r:.200}, which are not the ids of tokens."
        )
    return TrainedAnswers(positive, negative)
