"""Sums of experts: what several models say of a question, added up with weights.

    score(q | c) = Σ_i w_i mean_t log p_i(q_t | c)

The mean over its own tokens is what each expert says of a question as a whole, whatever its tokens are. Added up, the
means are the logarithm of a product of experts (Hinton 2002) up to its normaliser: a passage has to convince all of
them. Words and a neural model fail on different questions, so their sum fails on fewer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from drillrank.errors import InvalidInput, check_number
from drillrank.likelihood.base import LanguageModel, Likelihood, PrefixEstimate, Request, RequestLike, check_texts
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

    A likelihood's `mean` is the weighted sum; `tokens` and `log_probs` are the first expert's, `parts` lists all,
    `total` is the mean times the number of the first expert's tokens, and `summands` what each expert adds to it. A
    temperature acts on each expert's own distribution. The end-of-sequence token counts for each as it was trained, or
    as the caller says for those that have one. Put the fastest expert first: by it a ranker can choose what the others
    read.

    Args:
        experts: At least one; the experts of a sum take its place.
        weights: Of each, a positive number; None gives all of them 1.

    Raises:
        InvalidInput: there is no expert, one is no language model, a weight is no positive number, or experts that
            count words count them in different languages.

    >>> from drillrank.likelihood import UnigramModel
    >>> model = SumOfExperts([UnigramModel(mu=100), UnigramModel(mu=1000)], [1, 2])
    >>> [likelihood] = model.log_likelihood([("The Rhine is a river.", "a river")])
    >>> one, other = likelihood.parts
    >>> model.spec, abs(likelihood.mean - one.mean - 2 * other.mean) < 1e-12
    ('unigram+2*unigram', True)
    """

    def __init__(self, experts: Iterable[LanguageModel], weights: Iterable[float] | None = None) -> None:
        given = list(experts)
        factors = [1.0] * len(given) if weights is None else list(weights)
        if not given or len(factors) != len(given) or not all(isinstance(one, LanguageModel) for one in given):
            raise InvalidInput(
                f"A sum needs language models, and a weight for each; not {given!r:.200}, {factors!r:.200}."
            )
        for weight in factors:
            check_number(weight=weight)
        pairs = [
            (expert, float(weight) * factor)
            for one, weight in zip(given, factors, strict=True)
            for expert, factor in (
                zip(one.experts, one.weights, strict=True) if isinstance(one, SumOfExperts) else [(one, 1.0)]
            )
        ]
        self.experts: tuple[LanguageModel, ...] = tuple(expert for expert, _ in pairs)
        self.weights: tuple[float, ...] = tuple(weight for _, weight in pairs)
        self.reads_instructions = any(expert.reads_instructions for expert in self.experts)
        languages = [expert.language for expert in self.experts if not expert.reads_instructions]
        if len(set(languages)) > 1:
            raise InvalidInput(f"The experts of a sum count words in one language, not in {sorted(set(languages))}.")
        self.language = languages[0] if languages else self.experts[0].language

    @property
    def spec(self) -> str:
        """Those of the experts, with `+` between, and their weights where they are not 1."""
        return "+".join(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The specification of each expert, with its weight where that is not 1."""
        weights = (f"{Decimal(repr(weight)):f}".removesuffix(".0") for weight in self.weights)
        return tuple(
            expert.spec if weight == "1" else f"{weight}*{expert.spec}"
            for weight, expert in zip(weights, self.experts, strict=True)
        )

    @property
    def options(self) -> dict[str, Any]:
        """`experts`: the options of each."""
        return {"experts": [expert.options for expert in self.experts]}

    @property
    def reads_meaning(self) -> bool:
        """Whether one of the experts does."""
        return any(expert.reads_meaning for expert in self.experts)

    @property
    def wants_fit(self) -> bool:  # type: ignore[override]  # they may be fitted at any time
        """Whether one of the experts does."""
        return any(expert.wants_fit for expert in self.experts)

    def fit(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """Give every expert its collection statistics; they are the models that were passed."""
        known = texts if isinstance(texts, CollectionStatistics) else check_texts(texts)
        for expert in self.experts:
            expert.fit(known)
        return self

    def fitted(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """A sum of what `fitted` of each expert gives; these experts stay as they are."""
        known = texts if isinstance(texts, CollectionStatistics) else check_texts(texts)
        fitted = copy(self)
        fitted.experts = tuple(expert.fitted(known) for expert in self.experts)
        return fitted

    def first_tokens(self, text: str, count: int) -> str:
        """The longest beginning of a text that has at most `count` of the first expert's tokens."""
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
        """As the one expert that has a worker; on a thread where several have, which must not wait for each other."""
        with_worker = [
            expert for expert in self.experts if type(expert).run_in_worker is not LanguageModel.run_in_worker
        ]
        if len(with_worker) == 1:
            return await with_worker[0].run_in_worker(function, *arguments)
        return await super().run_in_worker(function, *arguments)

    def log_likelihood(
        self, requests: Iterable[RequestLike], *, temperature: float = 1.0, include_eos: bool | None = None
    ) -> list[Likelihood]:
        """As for any model; every expert is asked."""
        return self.log_likelihood_lists([list(requests)], temperature=temperature, include_eos=include_eos)[0]

    def log_likelihood_lists(
        self,
        request_lists: Sequence[Sequence[RequestLike]],
        *,
        temperature: float = 1.0,
        include_eos: bool | None = None,
    ) -> list[list[Likelihood]]:
        """As for any model; each expert reads the lists together if it may."""
        of_each = [
            expert.log_likelihood_lists(
                request_lists,
                temperature=temperature,
                include_eos=include_eos if expert.reads_instructions else None,  # words have no such token
            )
            for expert in self.experts
        ]
        return [[self._sum(parts) for parts in zip(*lists, strict=True)] for lists in zip(*of_each, strict=True)]

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        return self.log_likelihood(requests, temperature=temperature, include_eos=include_eos)

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
