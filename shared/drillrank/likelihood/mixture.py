"""Sums of experts: mean log-likelihoods by several models, added with weights.

    score(q | c) = Σ_i w_i mean_t log p_i(q_t | c)

The mean over an expert's own tokens does not depend on how it divides the question into tokens. The sum of means is
the logarithm of a product of experts (Hinton 2002), up to its normalizer: a passage must be likely under all of them.
Words and a neural model fail on different questions, so their sum fails on fewer.

A cross-encoder or rerank server adds w log P(relevant), at most 0. A sum of such models only adds their log-odds:
`SumOfExperts.relevance` is Σ_i w_i log-odds_i.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from drillrank.errors import InvalidInput, check_number
from drillrank.likelihood.base import (
    LanguageModel,
    Likelihood,
    PrefixEstimate,
    RelevanceRequest,
    RelevanceScore,
    Request,
    RequestLike,
    check_texts,
)
from drillrank.progress import OnProgress
from drillrank.vectors import CollectionStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

T = TypeVar("T")


def _add_estimates(estimates: Sequence[PrefixEstimate]) -> PrefixEstimate:
    """Return the estimate for all experts together."""
    return PrefixEstimate(
        n_prompts=max(one.n_prompts for one in estimates),
        n_tokens=sum(one.n_tokens for one in estimates),
        n_bytes=sum(one.n_bytes for one in estimates),
        max_bytes=sum(one.max_bytes for one in estimates),
        fits=all(one.fits for one in estimates),
        seconds=math.fsum(one.seconds for one in estimates),
    )


class SumOfExperts(LanguageModel):
    """A weighted sum of the mean log-likelihoods of several models: `"unigram+2*hf:<model>"`.

    A likelihood's `mean` is the weighted sum. `tokens` and `log_probs` are the first expert's, `parts` contains the
    likelihoods of all experts, `total` is the mean times the number of the first expert's tokens, and `summands` are
    the terms of it. A temperature acts on each expert's own distribution. The end-of-sequence token counts for each
    expert by the default of its training, or by the caller's choice for those that have one. Put the fastest expert
    first: a ranker in two stages lets it choose what the others read.

    Args:
        experts: At least one language model. A sum is replaced by its experts.
        weights: Weight of each expert, a positive number; None gives all of them 1.

    Raises:
        InvalidInput: The list of experts is empty, one is not a language model, a weight is not a positive number, or
            experts that count words do so in different languages.

    >>> from drillrank.likelihood import UnigramModel
    >>> model = SumOfExperts([UnigramModel(mu=100), UnigramModel(mu=1000)], [1, 2])
    >>> [likelihood] = model.log_likelihood([("The Rhine is a river.", "a river")])
    >>> one, other = likelihood.parts
    >>> model.spec, abs(likelihood.mean - one.mean - 2 * other.mean) < 1e-12
    ('unigram+2*unigram', True)
    """

    def __init__(self, experts: Iterable[LanguageModel], weights: Iterable[float] | None = None) -> None:
        if not isinstance(experts, Iterable) or not isinstance(weights, Iterable | None):
            raise InvalidInput(
                f"experts and weights must be lists of the same length, got {experts!r:.200} and {weights!r:.200}."
            )
        models = list(experts)
        factors = [1.0] * len(models) if weights is None else list(weights)
        if not models or len(factors) != len(models) or not all(isinstance(one, LanguageModel) for one in models):
            raise InvalidInput(
                f"A sum needs at least one language model, and a weight for each, got {models!r:.200} and "
                f"{factors!r:.200}."
            )
        for weight in factors:
            check_number(weight=weight)
        pairs = [
            (expert, float(weight) * factor)
            for one, weight in zip(models, factors, strict=True)
            for expert, factor in (
                zip(one.experts, one.weights, strict=True) if isinstance(one, SumOfExperts) else [(one, 1.0)]
            )
        ]
        self.experts: tuple[LanguageModel, ...] = tuple(expert for expert, _ in pairs)
        self.weights: tuple[float, ...] = tuple(weight for _, weight in pairs)
        self.reads_instructions = any(expert.reads_instructions for expert in self.experts)
        self.scores_relevance = all(expert.scores_relevance for expert in self.experts)
        languages = [expert.language for expert in self.experts if not expert.reads_instructions]
        if len(set(languages)) > 1:
            raise InvalidInput(
                f"The experts of a sum must count words in one language, got {sorted(set(languages))}. Set language."
            )
        self.language = languages[0] if languages else self.experts[0].language

    @property
    def spec(self) -> str:
        """Specifications of the experts, joined by `+`, with their weights if these are not 1."""
        return "+".join(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Specification of each expert, with its weight if that is not 1."""
        weights = (f"{Decimal(repr(weight)):f}".removesuffix(".0") for weight in self.weights)
        return tuple(
            expert.spec if weight == "1" else f"{weight}*{expert.spec}"
            for weight, expert in zip(weights, self.experts, strict=True)
        )

    @property
    def options(self) -> dict[str, Any]:
        """Options `experts`, a list with the options of each."""
        return {"experts": [expert.options for expert in self.experts]}

    @property
    def reads_meaning(self) -> bool:
        """True if one of the experts reads meaning."""
        return any(expert.reads_meaning for expert in self.experts)

    @property
    def is_neural(self) -> bool:
        """True if one of the experts is neural."""
        return any(expert.is_neural for expert in self.experts)

    @property
    def wants_fit(self) -> bool:  # type: ignore[override]  # they may be fitted at any time
        """True if one of the experts wants to be fitted."""
        return any(expert.wants_fit for expert in self.experts)

    def fit(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """Give every expert its collection statistics. The experts are the models that were passed, not copies."""
        collection = texts if isinstance(texts, CollectionStatistics) else check_texts(texts)
        for expert in self.experts:
            expert.fit(collection)
        return self

    def fitted(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """Return a sum of fitted copies of the experts. These experts do not change."""
        collection = texts if isinstance(texts, CollectionStatistics) else check_texts(texts)
        fitted = copy(self)
        fitted.experts = tuple(expert.fitted(collection) for expert in self.experts)
        return fitted

    def first_tokens(self, text: str, count: int) -> str:
        """Return the longest beginning of a text that has at most `count` of the first expert's tokens."""
        return self.experts[0].first_tokens(text, count)

    def estimate_prefixes(self, requests: Iterable[Request]) -> PrefixEstimate:
        """Estimate the bytes and the time of `keep_prefixes`, for all experts with a prefix cache together."""
        request_list = list(requests)
        return _add_estimates([expert.estimate_prefixes(request_list) for expert in self._experts_with_prefixes()])

    def keep_prefixes(self, requests: Iterable[Request], on_progress: OnProgress | None = None) -> PrefixEstimate:
        """Compute prompts up to the question with each expert that has a prefix cache, one after the other."""
        request_list = list(requests)
        experts = self._experts_with_prefixes()
        return _add_estimates([expert.keep_prefixes(request_list, on_progress) for expert in experts])

    def _experts_with_prefixes(self) -> list[LanguageModel]:
        """Return the experts with a prefix cache.

        Raises:
            LacksCapability: There is none.
        """
        experts = [expert for expert in self.experts if expert.options.get("prefix_cache") is not None]
        if not experts:
            raise self._lacks_prefix_cache()
        return experts

    async def run_in_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function on the worker of the only expert that has one, or else on a thread.

        With several workers, one must not wait for another.
        """
        with_worker = [
            expert for expert in self.experts if type(expert).run_in_worker is not LanguageModel.run_in_worker
        ]
        if len(with_worker) == 1:
            return await with_worker[0].run_in_worker(function, *arguments)
        return await super().run_in_worker(function, *arguments)

    def log_likelihood(
        self, requests: Iterable[RequestLike], *, temperature: float = 1.0, include_eos: bool | None = None
    ) -> list[Likelihood]:
        """Return the log-likelihoods of requests by the sum, as `LanguageModel.log_likelihood`."""
        return self.log_likelihood_lists([list(requests)], temperature=temperature, include_eos=include_eos)[0]

    def log_likelihood_lists(
        self,
        request_lists: Sequence[Sequence[RequestLike]],
        *,
        temperature: float = 1.0,
        include_eos: bool | None = None,
    ) -> list[list[Likelihood]]:
        """Score several lists of requests. Each expert reads them in one pass if that makes no difference."""
        lists_by_expert = [
            expert.log_likelihood_lists(
                request_lists,
                temperature=temperature,
                include_eos=include_eos if expert.reads_instructions else None,  # words have no such token
            )
            for expert in self.experts
        ]
        return [
            [self._sum(parts) for parts in zip(*lists, strict=True)] for lists in zip(*lists_by_expert, strict=True)
        ]

    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        """Compute the likelihoods of checked requests by the sum."""
        return self.log_likelihood(requests, temperature=temperature, include_eos=include_eos)

    def relevance_batch(self, requests: Sequence[RelevanceRequest]) -> list[RelevanceScore]:
        """Compute the weighted sum of the experts' log-odds of relevance."""
        scores_by_expert = [expert.relevance_batch(requests) for expert in self.experts]
        return [
            RelevanceScore(
                math.fsum(weight * score.log_odds for weight, score in zip(self.weights, scores, strict=True)),
                max(score.cut_tokens for score in scores),
            )
            for scores in zip(*scores_by_expert, strict=True)
        ]

    def _sum(self, parts: tuple[Likelihood, ...]) -> Likelihood:
        first = parts[0]
        mean = math.fsum(weight * part.mean for weight, part in zip(self.weights, parts, strict=True))
        return Likelihood(
            first.tokens,
            first.log_probs,
            mean * max(len(first.tokens), 1),
            max(part.cut_tokens for part in parts),
            any(part.matched for part in parts),
            parts,
            self.weights,
        )
