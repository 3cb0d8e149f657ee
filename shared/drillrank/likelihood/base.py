"""The contract of every language model, which has one or several of three capabilities.

Likelihood: exact log-probabilities of a target, given a prompt. Next tokens: the probabilities of some tokens right
after a prompt, such as "yes" and "no". Relevance: the log-odds that a document is relevant to a query, which
cross-encoders and rerank servers compute.
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

LOGIT_SCORE = "1_LogitScore/config.json"  # file of sentence-transformers with the answers, next to the weights


@dataclass(frozen=True, slots=True)
class Request:
    """Request for log P(target | prompt).

    Attributes:
        prompt: Fixed text and truncatable documents (see `drillrank.prompts`).
        target: Text whose likelihood is computed.
        max_tokens: Maximum number of tokens of the whole prompt; documents are truncated to fit.
        chat: True if the prompt is the user's turn of a conversation and the target the assistant's, by the model's
            chat template; None for the model's own option.
    """

    prompt: Prompt
    target: str
    max_tokens: int | None = None
    chat: bool | None = None


@dataclass(slots=True, eq=False)
class Likelihood:
    """Log P(target | prompt), in nats.

    Attributes:
        tokens: Tokens of the target, as the model reads them; for a sum, as its first expert reads them.
        log_probs: Natural log-probability of each token, float64, shape (tokens,).
        total: Sum of `log_probs`; for a sum of experts, its mean times the number of `tokens`, at least 1.
        cut_tokens: Number of tokens of the prompt's documents that were truncated to meet the budgets.
        matched: True if a document of the prompt contains one of the tokens, or if the model does not count words.
        parts: For a sum, the likelihood by each expert, in order; empty otherwise.
        weights: For a sum, the weight of each part.
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
        """Mean log-probability per token, 0.0 for a target without tokens; for a sum, the weighted sum of the means."""
        if self.parts:
            return math.fsum(weight * part.mean for weight, part in zip(self.weights, self.parts, strict=True))
        return self.total / len(self.tokens) if self.tokens else 0.0

    @property
    def summands(self) -> tuple[Likelihood, ...]:
        """Likelihoods by each expert, scaled so that their log-probabilities add up to `total`.

        A likelihood that is not a sum is its own summand.
        """
        if not self.parts:
            return (self,)
        n_tokens = max(len(self.tokens), 1)
        scales = [
            n_tokens * weight / max(len(part.tokens), 1) for weight, part in zip(self.weights, self.parts, strict=True)
        ]
        return tuple(
            replace(part, log_probs=scale * part.log_probs, total=scale * part.total)
            for scale, part in zip(scales, self.parts, strict=True)
        )


RequestLike = Request | tuple[str, str]


@dataclass(frozen=True, slots=True)
class NextTokenRequest:
    """Request for the probabilities of some tokens right after a prompt.

    Attributes:
        prompt: Fixed text and truncatable documents (see `drillrank.prompts`).
        answers: The tokens, each by its text, its name in the model's vocabulary, or its id.
        max_tokens: Maximum number of tokens of the whole prompt; documents are truncated to fit.
        chat: True if the prompt is the user's turn of a conversation, by the model's chat template, and the answer the
            first token of the assistant's.
    """

    target: ClassVar[str] = ""  # as in a `Request`: nothing follows the prompt

    prompt: Prompt
    answers: tuple[str | int, ...]
    max_tokens: int | None = None
    chat: bool = False


@dataclass(slots=True, eq=False)
class NextTokens:
    """Log-probabilities of the answers of a `NextTokenRequest`, in nats, or their raw logits.

    Attributes:
        values: One number per answer, float64, shape (answers,).
        cut_tokens: Number of tokens of the prompt's documents that were truncated to meet the budgets.
        bounds: True for values that are upper bounds, because a server reports the likeliest tokens only.
    """

    values: npt.NDArray[np.float64]
    cut_tokens: int = 0
    bounds: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class RelevanceRequest:
    """Request for the relevance of a document to a query.

    Attributes:
        query: The query.
        document: The document, with the maximum number of its tokens.
    """

    query: str
    document: TruncatableText


@dataclass(frozen=True, slots=True)
class RelevanceScore:
    """Relevance of a document to a query.

    Attributes:
        log_odds: Log-odds of relevance, in nats. Their sigmoid is P(relevant).
        cut_tokens: Number of tokens of the document that the model did not read, as far as it reports them.
    """

    log_odds: float
    cut_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TrainedAnswers:
    """Tokens that a checkpoint was trained to answer with.

    Attributes:
        positive: Id of the token for a relevant document.
        negative: Id of the token for another one; None if the logit of `positive` is the whole score.
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
    """Scores targets given prompts. Every ranker works with any language model that has the capability it needs.

    A subclass implements `spec` and `log_likelihood_batch`, and `next_tokens_batch` or `relevance_batch` if it can. The
    methods without `_batch` check their arguments and are what callers use. Instances are safe to share between
    threads.

    >>> class UniformModel(LanguageModel):
    ...     spec = "uniform"
    ...
    ...     def log_likelihood_batch(self, requests, temperature, include_eos):
    ...         token_lists = [request.target.split() for request in requests]
    ...         values = [np.full(len(tokens), -np.log(50_000)) for tokens in token_lists]
    ...         return [Likelihood(tokens, v, float(v.sum())) for tokens, v in zip(token_lists, values)]
    >>> [likelihood] = UniformModel().log_likelihood([("Basel lies on the Rhine.", "Which river?")])
    >>> round(likelihood.mean, 3)
    -10.82
    """

    include_eos_by_default: bool = False
    """True if the end-of-sequence token counts as the target's last token unless the caller says otherwise."""
    language: str = "english"
    """Language of the stemmer with which words of texts are matched, by the model and next to it."""
    reads_instructions: bool = True
    """True if a prompt's fixed text changes the scores; False if only its documents do."""
    tells_next_tokens: bool = False
    """True if `next_tokens` can be called. For a served model, this is certain only when it has been reached."""
    scores_relevance: bool = False
    """True if `relevance` can be called."""
    wants_fit: bool = False
    """True if `fit` with the collection at hand would improve the scores."""

    @property
    def reads_meaning(self) -> bool:
        """True if a document without a word of the question may be likelier than one with some."""
        return self.reads_instructions

    @property
    def is_neural(self) -> bool:
        """True for a network that reads question and document together, which takes time for each pair."""
        return self.reads_instructions or self.scores_relevance

    @property
    @abstractmethod
    def spec(self) -> str:
        """Specification with which `load_language_model` builds an equal model."""

    @property
    def options(self) -> dict[str, Any]:
        """Options with which `load_language_model(self.spec, **self.options)` builds an equal model."""
        return {}

    @property
    def trained_answers(self) -> TrainedAnswers | None:
        """Answers that the checkpoint itself names, or None."""
        return None

    @abstractmethod
    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        """Compute the likelihoods of checked requests, in order. A subclass implements this method.

        Args:
            requests: At least one request. No target is blank.
            temperature: Divisor of the logits before the softmax, above 0.
            include_eos: True to count the end-of-sequence token as the target's last token.

        Returns:
            Likelihood of each request's target. It must not depend on the other requests, except for a model that
            `wants_fit`, whose requests with one target are a collection.
        """

    def next_tokens_batch(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:  # noqa: ARG002
        """Compute the probabilities of the requests' answers, in order. A subclass with this capability implements it.

        Args:
            requests: At least one request.
            logits: True for raw logits, False for log-probabilities.
        """
        raise LacksCapability(
            "This ranker needs a model that answers yes or no (that computes probabilities of the next token), got "
            f'{self.spec!r:.200}. Use a neural model, such as "hf:Qwen/Qwen3-Reranker-0.6B", or a served one, or rank '
            "with UPR, which works with every model of likelihoods."
        )

    def relevance_batch(self, requests: Sequence[RelevanceRequest]) -> list[RelevanceScore]:  # noqa: ARG002
        """Compute the relevance of documents, in order. A subclass with this capability implements it.

        Args:
            requests: At least one request.
        """
        raise LacksCapability(
            f"{self.spec!r:.200} does not compute the relevance of a document. Use a cross-encoder, such as "
            '"ce:cross-encoder/ms-marco-MiniLM-L6-v2", or the address of a rerank server.'
        )

    def next_tokens(self, requests: Iterable[NextTokenRequest], *, logits: bool = False) -> list[NextTokens]:
        """Return the log-probabilities of the requests' answers as the next token, in the order of the requests.

        Args:
            requests: Prompts and answers.
            logits: True for raw logits in place of log-probabilities.

        Raises:
            LacksCapability: The model, or its server, cannot compute them.
            InvalidInput: An answer is not a token of the model, or a budget cannot be met.
        """
        request_list = list(requests)
        return self.next_tokens_batch(request_list, logits) if request_list else []

    def relevance(self, requests: Iterable[RelevanceRequest]) -> list[RelevanceScore]:
        """Return the relevance of documents to their queries, in the order of the requests.

        Raises:
            LacksCapability: The model cannot compute it.
        """
        request_list = list(requests)
        return self.relevance_batch(request_list) if request_list else []

    def log_likelihood(
        self, requests: Iterable[RequestLike], *, temperature: float = 1.0, include_eos: bool | None = None
    ) -> list[Likelihood]:
        """Return the log-likelihoods of the requests' targets, in the order of the requests.

        Args:
            requests: `Request`s, or `(context, target)` pairs of strings. A context is one document.
            temperature: Divisor of the logits before the softmax, above 0.
            include_eos: True to count the end-of-sequence token as the target's last token. None is the default of the
                model's training: True for encoder-decoder models, False for the others.

        Raises:
            InvalidInput: A request is malformed, a target is blank or contains half a character (a lone surrogate,
                which is read as U+FFFD in a prompt), or the temperature is not a positive number.
        """
        checked = [_check_request(request, position) for position, request in enumerate(requests)]
        for target in {request.target for request in checked}:
            check_surrogates(target, "A target")
        if temperature != 1:
            check_number(temperature=temperature)
        if not checked:
            return []
        return self.log_likelihood_batch(
            checked, temperature, self.include_eos_by_default if include_eos is None else include_eos
        )

    def log_likelihood_lists(
        self,
        request_lists: Sequence[Sequence[RequestLike]],
        *,
        temperature: float = 1.0,
        include_eos: bool | None = None,
    ) -> list[list[Likelihood]]:
        """Score several lists of requests, each as if it were alone, in one pass if that makes no difference."""
        if self.wants_fit:  # each list is a collection of its own
            return [
                self.log_likelihood(requests, temperature=temperature, include_eos=include_eos)
                for requests in request_lists
            ]
        all_requests = [request for requests in request_lists for request in requests]
        likelihoods = iter(self.log_likelihood(all_requests, temperature=temperature, include_eos=include_eos))
        return [[next(likelihoods) for _ in requests] for requests in request_lists]

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
        """Call a function that uses this model, without blocking the event loop.

        A neural model on this machine has one worker thread, which serves callers in order of arrival.
        """
        return await asyncio.to_thread(function, *arguments)

    def first_tokens(self, text: str, count: int) -> str:  # noqa: ARG002
        """Return the longest beginning of a text that has at most `count` of the model's tokens.

        It may be empty for a small `count` if the model splits a character into several tokens.

        Raises:
            InvalidInput: This kind of model does not report where its tokens end.
        """
        raise InvalidInput(
            f"{self.spec!r:.200} does not report where its tokens end, so a text cannot be truncated to {count} of "
            "them. Use another model, or no limit."
        )

    def fit(self, texts: Iterable[str] | CollectionStatistics) -> Self:  # noqa: ARG002
        """Give a lexical model its collection statistics, and return the model. Neural models ignore it."""
        return self

    def fitted(self, texts: Iterable[str] | CollectionStatistics) -> LanguageModel:
        """Return a fitted copy of a model that wants to be fitted, and any other model unchanged."""
        return copy.copy(self).fit(texts) if self.wants_fit else self


def _check_request(request: object, position: int) -> Request:
    """Convert a pair to a request, and refuse a malformed one."""
    match request:
        case Request(prompt=tuple()):
            checked = request
        case (str(context), str(target)):
            checked = Request((TruncatableText(context),), target)
        case _:
            raise InvalidInput(
                f"Request {position} must be a (context, target) pair of strings, or a Request whose prompt is a tuple "
                f"of strings and TruncatableText, got {request!r:.200}."
            )
    if not isinstance(checked.target, str) or not checked.target.strip():
        raise InvalidInput(f"The target of request {position} must contain text, got {checked.target!r:.200}.")
    return checked


def check_texts(texts: Iterable[str] | CollectionStatistics) -> list[str]:
    """Return texts as a list.

    Raises:
        InvalidInput: The argument is a single string, or an item is not a string.
    """
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InvalidInput(f"Expected a list of texts, got a single {type(texts).__name__}. Pass a list.")
    checked = list(texts)
    for position, text in enumerate(checked):
        if not isinstance(text, str):
            raise InvalidInput(f"Text {position} must be a string, got {type(text).__name__}.")
    return checked


def read_trained_answers(name: str, revision: str | None = None) -> TrainedAnswers | None:
    """Read the ids in a checkpoint's `1_LogitScore/config.json`. Return None if the file is missing.

    Args:
        name: Directory, or model id on the hub.
        revision: Branch, tag or commit on the hub.

    Raises:
        InvalidInput: The file does not contain ids of tokens.
    """
    from transformers.utils import cached_file

    try:
        file = Path(cached_file(name, LOGIT_SCORE, revision=revision))
    except OSError:  # missing, or not in the cache of a machine without a network
        return None
    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
        positive, negative = saved["true_token_id"], saved.get("false_token_id")
    except (ValueError, LookupError, AttributeError) as error:
        raise InvalidInput(f"{file} is not a configuration of a LogitScore: {error!r:.200}.") from error
    if not isinstance(positive, int) or not isinstance(negative, int | None):
        raise InvalidInput(f"{file} must contain ids of tokens, got {positive!r:.200} and {negative!r:.200}.")
    return TrainedAnswers(positive, negative)
