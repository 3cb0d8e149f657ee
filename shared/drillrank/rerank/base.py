"""Rankers: a language model scores candidates for a question.

`Ranker.rank_many` has four steps: check the candidates, let the model read them, turn its answers into scores, sort.
`LikelihoodRanker` implements the steps in between for the likelihood of the question. A ranker of your own implements
`Ranker.score`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, TypeVar

from drillrank.errors import InvalidInput
from drillrank.explanation import Explainable, Explanation, Explanations, Term
from drillrank.likelihood import LanguageModel, Likelihood, Request, SumOfExperts
from drillrank.likelihood.encoder import MEANING
from drillrank.passages import Item, Passage, Path, Ranked, Ranking, as_passages, check_top_n, ranked, read_query
from drillrank.prompts import Prompt, TruncatableText, prompt_text
from drillrank.rerank.explaining import Shares, explain_likelihood, mean_likelihood
from drillrank.rerank.formula import LikelihoodFormula
from drillrank.rerank.prior import (
    FirstStageScores,
    Prior,
    RetrievalScores,
    Scored,
    first_stage,
    posteriors,
    scores_by_question,
)

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
Rankable = TypeVar("Rankable")
AsksModelT = TypeVar("AsksModelT", bound="AsksModel")
Arguments = ParamSpec("Arguments")

Ensemble = Literal["max", "mean"]


class AsksModel:
    """Base class of objects whose methods call a language model.

    Attributes:
        language_model: The language model.
    """

    language_model: LanguageModel

    async def run_in_worker(self, function: Callable[[], T]) -> T:
        """Call a function that uses the language model, without blocking the event loop."""
        return await self.language_model.run_in_worker(function)


def in_worker(
    method: Callable[Concatenate[AsksModelT, Arguments], T],
) -> Callable[Concatenate[AsksModelT, Arguments], Awaitable[T]]:
    """Return the asynchronous twin of a method, which does not block the event loop."""

    async def call(self: AsksModelT, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> T:
        return await self.run_in_worker(partial(method, self, *arguments, **options))

    call.__doc__ = f"Call `{method.__name__}` without blocking the event loop."
    return call


@dataclass(frozen=True)
class Candidates(Generic[Item]):
    """Candidates of one question.

    Attributes:
        query: The question.
        items: Passages or paths, in input order.
        first_stage: Scores of the first stage for the prior; None for a uniform prior.
    """

    query: str
    items: Sequence[Item]
    first_stage: FirstStageScores | None = None


@dataclass(frozen=True)
class CandidateScores:
    """Scores of the candidates of one question.

    Attributes:
        scored: Score and details of each candidate, in input order. The details are JSON values.
        explain: Function from entries of a ranking by these scores to their explanations. `details["position"]` of an
            entry is the index of its candidate.
    """

    scored: Sequence[Scored]
    explain: Callable[[Sequence[Ranked[Any]]], Explanations]


class Ranker(AsksModel, ABC, Generic[Rankable, Item]):
    """Base class of rankers. A subclass implements `score`.

    Attributes:
        language_model: Language model that scores the candidates.
        prior: Kind of the prior from the scores of the first stage; None for a uniform prior.
        prior_weight: Factor of the prior's log-probabilities.
    """

    prior: Prior | None = None
    prior_weight: float = 1.0

    def rank(
        self,
        query: str,
        passages: Iterable[Rankable],
        top_n: int | None = None,
        *,
        scores: RetrievalScores | None = None,
    ) -> Ranking[Item]:
        """Rank candidates for one question. Ties keep the input order.

        Args:
            query: The question.
            passages: The candidates.
            top_n: Maximum number of results; None keeps all.
            scores: Score of the first stage for each candidate, higher is better, for rankers with a prior: on any
                scale for `prior="retrieval"`, between -1 and 1 for `prior="cosine"`. None is an unknown score, and the
                candidate then gets an average prior.

        Raises:
            InvalidInput: The query is blank, `top_n` is below 1, an item cannot be ranked, a score is not a finite
                number or not a cosine, or there are scores but no prior.
        """
        return self.rank_many([query], [passages], top_n, scores=None if scores is None else [scores])[0]

    def rank_many(
        self,
        queries: Sequence[str],
        passage_lists: Sequence[Iterable[Rankable]],
        top_n: int | None = None,
        *,
        scores: Sequence[RetrievalScores | None] | None = None,
    ) -> list[Ranking[Item]]:
        """Rank one list of candidates for each question, in one pass of the model. Each result is that of `rank`.

        Raises:
            InvalidInput: As for `rank`, or the lists differ in length.
        """
        # 1. Check the questions, the candidates and the scores, before the model is loaded.
        candidate_lists = self._check_candidates(queries, passage_lists, scores, top_n)
        # 2. Let the model read the candidates. 3. Turn its answers into scores.
        score_lists = self.score(candidate_lists) if candidate_lists else []
        # 4. Sort.
        rankings = []
        for candidates, result in zip(candidate_lists, score_lists, strict=True):
            numbers, details = [score for score, _ in result.scored], [detail for _, detail in result.scored]
            rankings.append(Explainable(ranked(candidates.items, numbers, details, top_n), result.explain))
        return rankings

    arank = in_worker(rank)
    arank_many = in_worker(rank_many)

    @abstractmethod
    def score(self, candidate_lists: Sequence[Candidates[Item]], /) -> list[CandidateScores]:
        """Score the candidates of several questions. The scores of a list do not depend on the other lists.

        Args:
            candidate_lists: Candidates of each question, at least one list. A list may be empty.

        Returns:
            Scores of each list, in order.
        """

    def fitted(self, items: Iterable[Item]) -> Self:  # noqa: ARG002
        """Return a copy whose scores do not depend on the candidates that are scored together.

        A lexical model that was not fitted takes its statistics from the candidates. The copy is fitted to the given
        ones. A ranker without such a model is returned unchanged.
        """
        return self

    def _candidates(self, items: Iterable[Rankable], /) -> list[Item]:
        """Check candidates, and convert strings to passages."""
        return as_passages(items)  # type: ignore[arg-type, return-value]  # a ranker of paths overrides it

    def _check_candidates(
        self,
        queries: Sequence[str],
        passage_lists: Sequence[Iterable[Rankable]],
        scores: Sequence[RetrievalScores | None] | None,
        top_n: int | None,
    ) -> list[Candidates[Item]]:
        n_lists = len(passage_lists)
        if isinstance(queries, str) or len(queries) != n_lists:
            raise InvalidInput(
                f"{len(queries)} queries and {n_lists} lists of candidates cannot be paired. Pass one list per query."
            )
        questions, item_lists = list(map(read_query, queries)), list(map(self._candidates, passage_lists))
        check_top_n(top_n)
        stages: list[FirstStageScores | None] = [None] * n_lists
        if scores is not None or self.prior == "cosine":
            stages = [
                first_stage(self.prior, items, item_scores, self.prior_weight)
                for items, item_scores in zip(item_lists, scores_by_question(self.prior, scores, n_lists), strict=True)
            ]
        return list(map(Candidates, questions, item_lists, stages))


class LikelihoodRanker(Ranker[Rankable, Item]):
    """Base class of rankers by the likelihood of the question given each candidate, under one or several prompts.

    Attributes:
        ensemble: Combination of the scores under several prompts.
        temperature: Divisor of the logits before the softmax.
    """

    ensemble: Ensemble = "max"
    temperature: float = 1.0
    _formula: LikelihoodFormula
    _max_prompt_tokens: int | None = None
    _unfitted_model: LanguageModel | None = None
    """Model whose names of experts explanations show, if this ranker is a fitted copy."""

    @abstractmethod
    def _prompts_of(self, item: Item, /) -> Sequence[Prompt]:
        """Return the prompts under which a candidate is scored, at least one."""

    def _shares(self, query: str, items: Sequence[Item]) -> Sequence[Shares]:  # noqa: ARG002
        """Return each document's share in every token, per candidate. Empty if the model cannot attribute tokens."""
        return ()

    def score(self, candidate_lists: Sequence[Candidates[Item]], /) -> list[CandidateScores]:
        """Score candidates by the likelihood of the question, multiplied by the prior if there is one."""
        likelihood_lists = self._likelihoods(candidate_lists)
        results = []
        for candidates, likelihoods in zip(candidate_lists, likelihood_lists, strict=True):
            scored = self._scores(candidates.items, likelihoods)
            if candidates.first_stage is not None:
                scored = posteriors(scored, candidates.first_stage)
            results.append(CandidateScores(scored, partial(self._explain_scores, candidates, likelihoods)))
        return results

    def with_model(self, model: LanguageModel) -> Self:
        """Return a copy with another language model."""
        ranker = copy(self)
        ranker.language_model, ranker._unfitted_model = model, None
        return ranker

    def fitted(self, items: Iterable[Item]) -> Self:
        """Return a copy whose lexical model is fitted to the documents of the candidates, unless it is fitted."""
        model = self.language_model
        if not model.wants_fit:
            return self
        parts = (part for item in items for prompt in self._prompts_of(item) for part in prompt)
        ranker = self.with_model(model.fitted(part.text for part in parts if isinstance(part, TruncatableText)))
        ranker._unfitted_model = model
        return ranker

    def _likelihoods(self, candidate_lists: Sequence[Candidates[Item]]) -> list[list[list[Likelihood]]]:
        """Return the likelihood of the question given each candidate under each prompt, in one pass of the model."""
        formula, model = self._formula, self.language_model
        prompt_lists = [list(map(self._prompts_of, candidates.items)) for candidates in candidate_lists]
        request_lists: list[list[Request]] = []
        for candidates, prompts_by_item in zip(candidate_lists, prompt_lists, strict=True):
            if not prompts_by_item:  # do not load a model for no candidate
                request_lists.append([])
                continue
            target = formula.target_text(candidates.query, model)
            limit = formula.prompt_limit(model, self._max_prompt_tokens)
            prompts = [prompt for item_prompts in prompts_by_item for prompt in item_prompts]
            if formula.max_prompt_tokens is not None:
                prompts = [(TruncatableText(prompt_text(prompt)),) for prompt in prompts]
            request_lists.append([Request(prompt, target, limit) for prompt in prompts])
        likelihood_lists = model.log_likelihood_lists(
            request_lists, temperature=self.temperature, include_eos=formula.include_eos
        )
        return [
            [[next(likelihoods) for _ in item_prompts] for item_prompts in prompts_by_item]
            for likelihoods, prompts_by_item in zip(map(iter, likelihood_lists), prompt_lists, strict=True)
        ]

    def _scores(self, items: Sequence[Item], likelihoods: Sequence[Sequence[Likelihood]]) -> list[Scored]:
        """Return score and details of each candidate from its likelihoods, without the prior.

        Candidates without a word of the question get the score of the least likely candidate, and keep their input
        order. Their likelihood under a model that counts words depends on their length only, which is not evidence.
        """
        is_mean, nothing_matched = self._formula.reduce == "mean", not any(group[0].matched for group in likelihoods)
        scored: list[Scored] = []
        for item, group in zip(items, likelihoods, strict=True):
            first = group[0]
            details: dict[str, Any] = {
                "tokens": len(first.tokens),
                "reduce": self._formula.reduce,
                "cut_tokens": max(likelihood.cut_tokens for likelihood in group),
                "nothing_matched": nothing_matched,
                **({"path": item.ids} if isinstance(item, Path) else {"log_likelihood": first.total}),
            }
            experts = first.summands if first.parts else (first,)
            meaning = [expert.log_probs[-1] for expert in experts if expert.tokens and expert.tokens[-1] == MEANING]
            if meaning:
                details["log_meaning"] = float(sum(meaning))
            scores = [likelihood.mean if is_mean else likelihood.total for likelihood in group]  # [n_prompts]
            scored.append((max(scores) if self.ensemble == "max" else sum(scores) / len(scores), details))
        lowest = min((score for score, _ in scored), default=0.0)
        return [
            (score if group[0].matched else lowest, details)
            for (score, details), group in zip(scored, likelihoods, strict=True)
        ]

    def explain(
        self, query: str, ranking: Sequence[Ranked[Item]], candidates: Iterable[Rankable] | None = None
    ) -> Explanations:
        """Explain what each token of the question adds to the scores of a ranking.

        The result of `rank` explains itself: `ranking.explain()`. This method scores the candidates again, for copies.

        Args:
            query: The question.
            ranking: Entries of a result of `rank`.
            candidates: All candidates that were ranked, in order, which are the collection of a model that was not
                fitted. None for the candidates of the ranking.

        Returns:
            Explanation of each entry, in order. `total` equals the score within 1e-6.

        Raises:
            InvalidInput: The scores are not those of this ranker and these candidates.

        >>> from drillrank import UPR
        >>> texts = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
        >>> best = UPR().rank("Who wrote Emma?", texts, top_n=1).explain()[0]
        >>> max(best.tokens, key=lambda token: token.value).name, abs(best.total - best.score) < 1e-6
        ('emma', True)
        """
        items = [item.passage for item in ranking] if candidates is None else self._candidates(candidates)
        indices = range(len(items)) if candidates is None else [item.details["position"] for item in ranking]
        question = read_query(query)
        [likelihoods] = self._likelihoods([Candidates(question, items)])
        return Explanations(self.explanations(question, items, likelihoods, ranking, indices), query)

    def _explain_scores(
        self, candidates: Candidates[Item], likelihoods: Sequence[Sequence[Likelihood]], ranking: Sequence[Ranked[Any]]
    ) -> Explanations:
        indices = [item.details["position"] for item in ranking]
        entries = self.explanations(candidates.query, candidates.items, likelihoods, ranking, indices)
        return Explanations(entries, candidates.query)

    def explanations(
        self,
        query: str,
        items: Sequence[Item],
        likelihoods: Sequence[Sequence[Likelihood]],
        ranking: Sequence[Ranked[Any]],
        item_indices: Sequence[int],
        path_terms: Sequence[Term | None] = (),
    ) -> list[Explanation]:
        """Explain entries of a ranking of candidates, or of passages by their best paths, from known likelihoods.

        With several prompts, the best one counts and is compared with the same prompt after nothing; with
        `ensemble="mean"`, the mean of both.

        Args:
            query: The question.
            items: The candidates that were scored.
            likelihoods: Likelihoods of each candidate, one per prompt.
            ranking: Entries of the ranking.
            item_indices: Index of the candidate of each entry.
            path_terms: Term of each entry with the log-prior of each step of its path.

        Raises:
            InvalidInput: This ranker computes another score for an entry.
        """
        if not ranking:
            return []
        baselines = self._baselines(query, items)
        shares = self._shares(query, items)
        model = self._unfitted_model or self.language_model
        entries = []
        for item, item_index, path in zip(ranking, item_indices, path_terms or [None] * len(ranking), strict=True):
            group = likelihoods[item_index]
            best = max(range(len(group)), key=lambda prompt_index: group[prompt_index].total)
            pair = (group[best], baselines[best])
            if self.ensemble == "mean":
                pair = (mean_likelihood(group), mean_likelihood(baselines))
            item_shares = shares[item_index] if shares else ()
            entries.append(explain_likelihood(item, *pair, model=model, shares=item_shares, path=path))
        return entries

    def _baselines(self, query: str, items: Sequence[Item]) -> list[Likelihood]:
        """Return the likelihood of the question given an empty candidate, under each prompt."""
        empty: Any = Path((Passage(""),)) if isinstance(items[0], Path) else Passage("")
        # A lexical model takes its statistics from all candidates. A sum is fitted to them, so that its neural experts
        # do not read them again.
        ranker = self.fitted(items) if isinstance(self.language_model, SumOfExperts) else self
        collection: list[Any] = list(items) if ranker.language_model.wants_fit else []
        return ranker._likelihoods([Candidates(query, [*collection, empty])])[0][-1]
