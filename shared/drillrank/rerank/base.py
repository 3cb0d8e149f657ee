"""What rankers share: prompt → requests → likelihoods → ranking; formulas of published code, and scales of scores.

    score = (Σ_t log p(q_t | nothing) + Σ_t [log p(q_t | c) - log p(q_t | nothing)] + log prior + other terms) / per

Nothing is an empty passage: for a model that counts words the collection, for a neural one the prompt around it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_limits, warn
from drillrank.explanation import Explainable, Explanation, Explanations, Term
from drillrank.explanation.terms import GAINS, NOTHING
from drillrank.likelihood import LanguageModel, Likelihood, Request, SumOfExperts
from drillrank.likelihood.encoder import MEANING
from drillrank.passages import Item, Passage, Path, Ranked, Ranking, check_top_n, ranked, read_query
from drillrank.prompts import Prompt, TruncatableText, fill_question, prompt_text
from drillrank.rerank.prior import FirstStage, Prior, first_stage, posteriors, scores_by_question
from drillrank.rerank.prior import RetrievalScores as RetrievalScores
from drillrank.rerank.prior import Scored as Scored
from drillrank.rerank.prior import divisor as divisor
from drillrank.settings import check_one_of

T = TypeVar("T")
Rankable = TypeVar("Rankable")
Asks = TypeVar("Asks", bound="HasModel")
Arguments = ParamSpec("Arguments")

Reduction = Literal["mean", "sum"]
Ensemble = Literal["max", "mean"]
Shares = Sequence[tuple[str, npt.NDArray[np.float64]]]  # a path's documents by name, and their shares in each token
ScoreScale = Literal["log_likelihood", "probability", "softmax"]

PRIOR, UNMATCHED = "prior of the first stage", "no word of the question: as the least likely"
ROUNDING, UNREAD = "rounding of the model", "not read: below the last that was"
_ROUNDING = 1e-9
# Nats by which a token may differ where a model is asked again in other company; a neural one may count in 16 bits.
_AGAIN, _AGAIN_NEURAL = 1e-4, 0.1
_NAME = 60  # characters of a text that stand for a passage without title or id


class HasModel(Protocol):
    """What asks a language model."""

    language_model: LanguageModel


def in_worker(
    function: Callable[Concatenate[Asks, Arguments], T],
) -> Callable[Concatenate[Asks, Arguments], Awaitable[T]]:
    """The method, without blocking the event loop."""

    async def awaited(self: Asks, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> T:
        return await self.language_model.run_in_worker(partial(function, self, *arguments, **named))

    awaited.__doc__ = f"As `{function.__name__}`, without blocking the event loop."
    return awaited


class Ranker(ABC, Generic[Rankable, Item]):
    """Ranks candidates for a question by what a language model says of them."""

    language_model: LanguageModel
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
        """Rank candidates for one question; ties keep the input order.

        Args:
            query: The question.
            passages: The candidates.
            top_n: How many to keep; None keeps all.
            scores: The first stage's score of each candidate, higher is better, for rankers with a prior: on any scale
                for `prior="retrieval"`, between -1 and 1 for `prior="cosine"`. None stands for a score that is not
                known; the candidate then counts as an average one.

        Raises:
            InvalidInput: the query is blank, `top_n` is below 1, an item cannot be ranked, a score is no finite number
                or no cosine, or there is no prior to count it.
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
        """Rank one list of candidates for each question, all in one pass of the model; each as `rank` would.

        Raises:
            InvalidInput: as `rank`, or the lists differ in length.
        """
        count = len(passage_lists)
        if isinstance(queries, str) or len(queries) != count:
            raise InvalidInput(f"{len(queries)} queries and {count} lists of candidates cannot be paired.")
        queries, lists = list(map(read_query, queries)), list(map(self._candidates, passage_lists))
        check_top_n(top_n)
        stages: list[FirstStage | None] = [None] * count
        if scores is not None or self.prior == "cosine":  # what is wrong with them is said before a model is asked
            known = zip(lists, scores_by_question(self.prior, scores, count), strict=True)
            stages = [first_stage(self.prior, items, given, self.prior_weight) for items, given in known]
        rankings = []
        answers = self._answers(queries, lists, stages)
        for query, items, found, stage in zip(queries, lists, answers, stages, strict=True):
            scored = self._scored(items, found, stage)
            order = ranked(items, [score for score, _ in scored], [details for _, details in scored], top_n)
            rankings.append(Explainable(order, partial(self._explained, query, items, found)))
        return rankings

    arank = in_worker(rank)
    arank_many = in_worker(rank_many)

    @abstractmethod
    def _candidates(self, given: Iterable[Rankable], /) -> list[Item]:
        """What is ranked, checked."""

    @abstractmethod
    def _answers(
        self, queries: Sequence[str], lists: Sequence[list[Item]], stages: Sequence[FirstStage | None], /
    ) -> list[list[Any]]:
        """What the model says of each candidate, list by list; it is asked once for all."""

    @abstractmethod
    def _scored(self, items: Sequence[Item], answers: Sequence[Any], stage: FirstStage | None, /) -> list[Scored]:
        """Score and details of each candidate, from the model's answers and the first stage's."""

    @abstractmethod
    def _explained(
        self, query: str, items: Sequence[Item], answers: Sequence[Any], ranking: Sequence[Ranked[Item]], /
    ) -> Explanations:
        """Of some entries of the ranking that these answers have led to."""


class LikelihoodRanker(Ranker[Rankable, Item]):
    """Ranks by the likelihood of the question after each candidate, under one prompt or several.

    With a sum of experts it may read in two stages: the first expert ranks all, the sum the best of them.
    """

    ensemble: Ensemble = "max"
    temperature: float = 1.0
    _formula: LikelihoodFormula
    _max_prompt_tokens: int | None = None
    _read: int | None = None

    @abstractmethod
    def _prompts_of(self, item: Item, /) -> Sequence[Prompt]:
        """The prompts under which a candidate is scored, at least one."""

    def _shares(self, query: str, items: Sequence[Item]) -> Sequence[Shares]:  # noqa: ARG002
        """Of each candidate; empty where nobody can tell."""
        return ()

    def _answers(
        self,
        queries: Sequence[str],
        lists: Sequence[list[Item]],
        stages: Sequence[FirstStage | None] = (),
        model: LanguageModel | None = None,
    ) -> list[list[list[Likelihood]]]:
        """Likelihoods of the question after each candidate, under each prompt; in one pass, if a model is given."""
        if self._read is not None and model is None:
            return self._in_two_stages(queries, lists, stages)
        formula, lm, request_lists = self._formula, self.language_model, []
        shown = [list(map(self._prompts_of, items)) for items in lists]
        for query, of_items in zip(queries, shown, strict=True):
            target = formula.target_text(query, lm) if of_items else ""  # for no candidate, no model is loaded
            limit = formula.max_prompt_tokens or self._max_prompt_tokens
            if of_items and limit and formula.counts_eos:
                limit -= lm.include_eos_by_default
            prompts = [prompt for of_item in of_items for prompt in of_item]
            if formula.max_prompt_tokens is not None:
                prompts = [(TruncatableText(prompt_text(prompt)),) for prompt in prompts]
            request_lists.append([Request(prompt, target, limit) for prompt in prompts])
        answers = (model or lm).log_likelihood_lists(
            request_lists, temperature=self.temperature, include_eos=formula.include_eos
        )
        each = map(iter, answers)
        return [
            [[next(one) for _ in prompts] for prompts in of_items] for one, of_items in zip(each, shown, strict=True)
        ]

    def _in_two_stages(
        self,
        queries: Sequence[str],
        lists: Sequence[list[Item]],
        stages: Sequence[FirstStage | None],
        chosen: list[list[int]] | None = None,
    ) -> list[list[list[Likelihood]]]:
        """By the whole sum of the candidates that the first expert finds best, by the first expert of the others."""
        if self.language_model.wants_fit and len(lists) != 1:  # each list is a collection of its own
            each = zip(queries, lists, stages, strict=True)
            return [self._in_two_stages([query], [items], [stage])[0] for query, items, stage in each]
        model = self._fitted(lists[0]) if self.language_model.wants_fit else self.language_model
        answers = self._answers(queries, lists, model=first_expert(model))
        if chosen is None:
            chosen = []
            for items, found, stage in zip(lists, answers, stages, strict=True):
                scores = [score for score, _ in self._scored(items, found, stage, two_stages=False)]
                order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
                chosen.append(sorted(order[: self._read]))
        some = [[items[at] for at in best] for items, best in zip(lists, chosen, strict=True)]
        for found, best, read in zip(answers, chosen, self._answers(queries, some, model=model), strict=True):
            for at, likelihoods in zip(best, read, strict=True):
                found[at] = likelihoods
        return answers

    def _fitted(self, items: Iterable[Item]) -> LanguageModel:
        """The model as it answers of all of these together: their documents are a collection."""
        parts = (part for item in items for prompt in self._prompts_of(item) for part in prompt)
        return self.language_model.fitted(part.text for part in parts if isinstance(part, TruncatableText))

    def _scored(
        self,
        items: Sequence[Item],
        answers: Sequence[Sequence[Likelihood]],
        stage: FirstStage | None = None,
        *,
        two_stages: bool = True,
    ) -> list[Scored]:
        """Of candidates, in order; the details are `tokens`, `reduce`, `cut_tokens`, `nothing_matched` and others.

        Candidates without a word of the question score as the least likely one does, and keep their input order: all
        that the likelihood of a model that counts words tells of them is their length, which is no evidence.
        """
        if two_stages and self._read is not None:
            return self._scored_in_two_stages(items, answers, stage)
        by_mean, nothing = self._formula.reduce == "mean", not any(group[0].matched for group in answers)
        scored: list[Scored] = []
        for item, group in zip(items, answers, strict=True):
            first = group[0]
            details: dict[str, Any] = {
                "tokens": len(first.tokens),
                "reduce": self._formula.reduce,
                "cut_tokens": max(likelihood.cut_tokens for likelihood in group),
                "nothing_matched": nothing,
                **({"path": item.ids} if isinstance(item, Path) else {"log_likelihood": first.total}),
            }
            experts = first.summands if first.parts else (first,)
            meaning = [expert.log_probs[-1] for expert in experts if expert.tokens and expert.tokens[-1] == MEANING]
            if meaning:
                details["log_meaning"] = float(sum(meaning))
            scores = [likelihood.mean if by_mean else likelihood.total for likelihood in group]
            scored.append((max(scores) if self.ensemble == "max" else sum(scores) / len(scores), details))
        lowest = min((score for score, _ in scored), default=0.0)
        for at, answered in enumerate(answers):
            if not answered[0].matched:
                scored[at] = (lowest, scored[at][1])
        return scored if stage is None else posteriors(scored, stage)

    def _scored_in_two_stages(
        self, items: Sequence[Item], answers: Sequence[Sequence[Likelihood]], stage: FirstStage | None
    ) -> list[Scored]:
        """What was not read, and has no parts, comes after all that was: with the first expert's distances."""
        first = [[found[0].parts[0] if found[0].parts else found[0]] for found in answers]
        scored = self._scored(items, first, stage, two_stages=False)
        read = [at for at, group in enumerate(answers) if group[0].parts]
        lowest = min((scored[at][0] for at in read), default=0.0)
        by_sum = self._scored([items[at] for at in read], [answers[at] for at in read], two_stages=False)
        for at, (score, details) in zip(read, by_sum, strict=True):
            prior = {name: value for name, value in scored[at][1].items() if name == "log_prior"}
            scored[at] = (score + sum(prior.values()) / divisor(details), {**details, **prior, "read": True})
        last = min((scored[at][0] for at in read), default=0.0)
        for at in set(range(len(scored))) - set(read):
            score, details = scored[at]
            below = min(score + last - lowest, math.nextafter(last, -math.inf))
            scored[at] = (below, {**details, "nothing_matched": False, "read": False})
        return scored

    def explain(
        self, query: str, ranking: Sequence[Ranked[Item]], candidates: Iterable[Rankable] | None = None
    ) -> Explanations:
        """What each token of the question adds to the scores of a ranking; of its own, `ranking.explain()` tells it.

        Args:
            query: The question.
            ranking: What `rank` returned, or some of it.
            candidates: All that were ranked, in order; None for those of the ranking. For a model that has not been
                fitted they are its collection.

        Returns:
            One explanation for each entry, in order; `total` equals the score within 1e-6.

        Raises:
            InvalidInput: the scores are not those of this ranker and these candidates.

        >>> from drillrank import UPR
        >>> texts = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
        >>> best = UPR().rank("Who wrote Emma?", texts, top_n=1).explain()[0]
        >>> max(best.tokens, key=lambda token: token.value).name, abs(best.total - best.score) < 1e-6
        ('emma', True)
        """
        items = [item.passage for item in ranking] if candidates is None else self._candidates(candidates)
        places = range(len(items)) if candidates is None else [item.details["position"] for item in ranking]
        if self._read is None:
            [answers] = self._answers([read_query(query)], [items])
        else:
            read = [location for item, location in zip(ranking, places, strict=True) if item.details.get("read", True)]
            [answers] = self._in_two_stages([read_query(query)], [items], [None], [read])
        return Explanations(self.explanations(query, items, answers, ranking, places), query)

    def _explained(
        self, query: str, items: Sequence[Item], answers: Sequence[Any], ranking: Sequence[Ranked[Item]]
    ) -> Explanations:
        places = [item.details["position"] for item in ranking]
        return Explanations(self.explanations(query, items, answers, ranking, places), query)

    def explanations(
        self,
        query: str,
        items: Sequence[Item],
        answers: Sequence[Sequence[Likelihood]],
        ranking: Sequence[Ranked[Any]],
        places: Sequence[int],
        steps: Sequence[Term | None] = (),
    ) -> list[Explanation]:
        """Of a ranking of candidates, or of passages by their best paths, from the likelihoods of its scores.

        Of several prompts the best counts, and what is likely after nothing is compared under the same one; or the mean
        of both.

        Args:
            query: The question.
            items: The candidates that were read.
            answers: Their likelihoods.
            ranking: Entries that some of these candidates brought.
            places: Of the candidate of each entry.
            steps: Of each entry, how its path was reached, with the log-prior of each step.

        Raises:
            InvalidInput: an entry has another score by this ranker.
        """
        if not ranking:
            return []
        lm, entries = self.language_model, []
        empty: Any = Path((Passage(""),)) if isinstance(items[0], Path) else Passage("")
        # A lexical model counts what was ranked; a sum is fitted on it, or its neural experts would read it again.
        model = self._fitted(items) if lm.wants_fit and isinstance(lm, SumOfExperts) else lm
        collection: list[Any] = list(items) if model.wants_fit else []
        nothing = self._answers([query], [[*collection, empty]], model=model)[0][-1]
        shares = self._shares(query, items)
        for item, location, path in zip(ranking, places, steps or [None] * len(ranking), strict=True):
            group, bases, model_read, parts = answers[location], nothing, lm, list[Term]()
            if not item.details.get("read", True):
                bases, model_read = [base.parts[0] for base in nothing], first_expert(lm)
                below = (item.score - group[0].mean) * divisor(item.details)
                parts.append(Term(UNREAD, below - item.details.get("log_prior", 0.0)))
            best = max(range(len(group)), key=lambda at: group[at].total)
            pair = (group[best], bases[best]) if self.ensemble == "max" else (_mean(group), _mean(bases))
            of_each = shares[location] if shares else ()
            entries.append(likelihood_explained(item, *pair, model=model_read, shares=of_each, path=path, parts=parts))
        return entries


def first_expert(model: LanguageModel) -> LanguageModel:
    """The first expert of a sum, by which others may be spared; any other model itself."""
    return model.experts[0] if isinstance(model, SumOfExperts) else model


def warn_unread(model: LanguageModel, setting: str) -> None:
    """Say that wording does nothing with a model that reads words of documents alone."""
    if not model.reads_instructions:
        reads = "which reads the words of documents alone: take a neural model, or leave it out."
        warn(f"{setting} does nothing with {model.spec!r:.200}, {reads}")


@dataclass(frozen=True, slots=True)
class LikelihoodFormula:
    """What a language model is asked, and how the log-probabilities of the target's tokens become a score.

    Attributes:
        template: Wording around a passage (`{title}` and `{text}`), or around the documents of a path (`{path}`).
        target: Wording around the question.
        question_mark: Whether a question that ends without a question mark is given one.
        reduce: Score by the mean over the target's tokens, or by their sum.
        include_eos: Whether the end-of-sequence token counts; None for True with encoder-decoder models only.
        max_prompt_tokens: Tokens of the whole prompt, special ones not counted; what is longer loses its end, even if
            that is the instruction. Takes the place of all other budgets. None: only documents are shortened.
        max_target_tokens: Tokens of the target, special ones not counted; what is longer loses its end. Cut texts are
            tokenised again, so that half a word may count a token more or less than in the code that cuts tokens.
        counts_eos: Whether the end-of-sequence token of an encoder's prompt is one of `max_prompt_tokens`.

    Raises:
        InvalidInput: `target` does not hold `{question}`, `reduce` is unknown, or a number is below 1.

    >>> from dataclasses import replace
    >>> replace(PRESETS["rankify"], include_eos=True).reduce
    'sum'
    """

    template: str
    target: str = "{question}"
    question_mark: bool = False
    reduce: Reduction = "mean"
    include_eos: bool | None = None
    max_prompt_tokens: int | None = None
    max_target_tokens: int | None = None
    counts_eos: bool = False

    def __post_init__(self) -> None:
        fill_question(self.target, "")  # refuses a malformed template now, not at the first question
        check_one_of(Reduction, reduce=self.reduce)
        check_limits(max_prompt_tokens=self.max_prompt_tokens, max_target_tokens=self.max_target_tokens)

    def target_text(self, question: str, model: LanguageModel) -> str:
        """The target for a question, shortened to its limit."""
        if self.question_mark and not question.endswith("?"):
            question += "?"
        text = question if self.target == "{question}" else fill_question(self.target, question)
        return text if self.max_target_tokens is None else model.first_tokens(text, self.max_target_tokens)


_ASK = "Please write a question based on this passage."
_UPR = LikelihoodFormula(
    f"Passage:  {{title}} {{text}}. {_ASK}",
    "Question: {question}",
    reduce="sum",
    max_prompt_tokens=511,  # 512 and 128 with T5's </s>
    max_target_tokens=127,
)

# Likelihood scores as other projects' code computes them, to 1e-4, its cuts included; not its faults: sums in half
# precision, a temperature applied twice, a missing title written "None", a question glued to a decoder-only model's
# prompt without a blank.
PRESETS: dict[str, LikelihoodFormula] = {
    # Sachan et al. (2022), upr.py; with its files of Natural Questions it sets question_mark=True.
    "upr": _UPR,
    # Rankify, models/upr.py; with decoder-only models it sets include_eos=True.
    "rankify": replace(_UPR, target="{question}"),
    # rerankers, models/upr.py: no title.
    "rerankers": replace(_UPR, target="{question}", template=f"Passage: {{text}}. {_ASK}"),
    # Sachan et al., equation 2, a mean as the paper has it.
    "paper": LikelihoodFormula(f"Passage: {{title}} {{text}}. {_ASK}"),
    # Du et al., equation 4; there is no public code.
    "brmgr": LikelihoodFormula(f"passage: {{title}} {{text}}. {_ASK}"),
    # Khalifa et al. (2023), src/prompt_utils.py: two blanks follow the documents.
    "promptrank": LikelihoodFormula("{path} ", question_mark=True, counts_eos=True),
}


def preset_formula(preset: str | LikelihoodFormula, model: LanguageModel, placeholder: str) -> LikelihoodFormula:
    """The formula that a preset names, or a formula as it is.

    Args:
        preset: A key of `PRESETS`, or a formula.
        model: The language model that it is wanted for.
        placeholder: What the ranker puts into the template.

    Raises:
        InvalidInput: the preset is unknown, or made for another kind of ranker, or the model reads no wording.

    >>> from drillrank import UPR
    >>> UPR("unigram", preset="upr")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: A preset follows code for neural models, and 'unigram' does not read its wording: ...
    """
    formula = PRESETS.get(preset) if isinstance(preset, str) else preset
    if not isinstance(formula, LikelihoodFormula):
        raise InvalidInput(f"A preset is one of {', '.join(PRESETS)}, or a LikelihoodFormula; not {preset!r:.200}.")
    if not isinstance(formula.template, str) or formula.template.count(placeholder) != 1:
        raise InvalidInput(f"This ranker's template holds {placeholder} once; {preset!r:.200} is for another one.")
    if not model.reads_instructions:
        reads = f"and {model.spec!r:.200} does not read its wording: leave the preset out."
        raise InvalidInput(f"A preset follows code for neural models, {reads}")
    return formula


def log_sigmoid(odds: float) -> float:
    """The logarithm of the probability that log-odds stand for, exact where the probability rounds to 0 or 1.

    >>> log_sigmoid(-1000.0)
    -1000.0
    """
    return min(odds, 0.0) - math.log1p(math.exp(-abs(odds)))


def log_probability(item: Ranked[Item]) -> float:
    """The mean log-likelihood that a score is, or the log-probability of relevance where it is log-odds."""
    odds = item.details.get("log_odds")
    return item.score if odds is None else log_sigmoid(odds)


def rescaled(ranking: Sequence[Ranked[Item]], scale: ScoreScale) -> list[Ranked[Item]]:
    """The same ranking with its scores, mean log-likelihoods, on another scale; the order never changes.

    Every scale is one increasing function of the scores, the same for all candidates.

    Args:
        ranking: The *whole* ranking, best first and before any cut: the posterior is over all candidates.
        scale: `"log_likelihood"` leaves the mean log-likelihood (at most 0). `"probability"` is its exponential,
            the geometric mean of the tokens' probabilities, in (0, 1]. `"softmax"` is the posterior of a candidate
            under the prior that its score holds, uniform unless a ranker says otherwise: P(c | q) = P(q | c) /
            Σ P(q | c'), with the likelihood of the whole question, counted in the tokens of the best candidate; the
            candidates' values add up to 1, and hopeless ones can be as small as 0.0. Where a formula adds up instead
            of averaging, `"probability"` is that of the whole question. Log-odds of relevance stay as they are, become
            P(relevant), or its share of the sum of all candidates' P(relevant).

    Raises:
        InvalidInput: an unknown scale.

    >>> from drillrank import UPR
    >>> ranking = UPR().rank("red fox", ["a red fox", "a blue fox", "a cow"])
    >>> round(sum(r.score for r in rescaled(ranking, "softmax")), 6)
    1.0
    """
    check_one_of(ScoreScale, scale=scale)
    if scale == "log_likelihood" or not ranking:
        return list(ranking)
    together = scale == "softmax"
    tokens = divisor(ranking[0].details) if together else 1
    logs = [log_probability(item) * tokens for item in ranking]
    best = max(logs) if together else 0.0
    weights = [math.exp(log - best) for log in logs]
    whole = math.fsum(weights) if together else 1.0
    return [replace(item, score=weight / whole) for item, weight in zip(ranking, weights, strict=True)]


def selected(
    ranking: Sequence[Ranked[Item]],
    *,
    scale: ScoreScale,
    threshold: float | None = None,
    min_share: float | None = None,
    top_n: int | None = None,
) -> list[Ranked[Item]]:
    """Rescale a whole ranking, keep scores of at least `threshold` with a softmax of `min_share`, cut after `top_n`."""
    check_top_n(top_n)
    results = rescaled(ranking, scale)
    if min_share is not None:
        shares = rescaled(ranking, "softmax")
        results = [item for item, share in zip(results, shares, strict=True) if share.score >= min_share]
    return [item for item in results if threshold is None or item.score >= threshold][:top_n]


def likelihood_explained(
    item: Ranked[Any],
    likelihood: Likelihood,
    nothing: Likelihood,
    *,
    model: LanguageModel,
    shares: Shares = (),
    path: Term | None = None,
    parts: Iterable[Term] = (),
) -> Explanation:
    """The explanation of an entry whose score was made of the likelihood of the question.

    Args:
        item: The entry.
        likelihood: Of the question after it.
        nothing: Of the question after an empty passage, by the same prompt.
        model: That was asked.
        shares: Documents by name, each with its share in every token; none of one alone, or where nobody can tell.
        path: How it was reached, with the log-prior of each step.
        parts: What else is added.

    Raises:
        InvalidInput: all this does not add up to the score.
    """
    (of_first, *of_others), (base, *bases) = likelihood.summands, nothing.summands
    names = model.names[1:] if isinstance(model, SumOfExperts) else ()
    experts = [
        Term.sum(name, _nothing_and_gains(one, other)) for name, one, other in zip(names, of_others, bases, strict=True)
    ]
    log_prior = float(item.details.get("log_prior", 0.0)) - (path.value if path else 0.0)
    terms = [
        *([path] if path else []),
        *_nothing_and_gains(of_first, base, shares),
        *experts,
        *(part for part in (*parts, Term(PRIOR, log_prior)) if abs(part.value) > _ROUNDING),
    ]
    per = divisor(item.details)
    rest = item.score * per - math.fsum(term.value for term in terms)
    permitted = _AGAIN_NEURAL if model.reads_instructions else _AGAIN
    if likelihood.matched and abs(rest) > permitted * max(len(likelihood.tokens), 1):
        raise InvalidInput(
            f"{name_of(item.passage)!r:.200} scores {item.score:.6f}, but {item.score - rest / per:.6f} by this "
            "ranker: give the ranker that made the ranking, and all candidates unless its model is fitted."
        )
    if abs(rest) > _ROUNDING:
        terms.append(Term(ROUNDING if likelihood.matched else UNMATCHED, rest))
    return Explanation(item.rank, item.score, name_of(item.passage), tuple(terms), per)


def _nothing_and_gains(likelihood: Likelihood, nothing: Likelihood, shares: Shares = ()) -> tuple[Term, Term]:
    """What each token has after nothing, and what it gains after a passage, by document where shares are known."""
    base = nothing.log_probs.tolist()
    gains = (likelihood.log_probs - nothing.log_probs).tolist()
    tokens = list(map(str, likelihood.tokens))
    by_document = [
        tuple(Term(name, gain * float(share[at])) for name, share in shares) for at, gain in enumerate(gains)
    ]
    return Term.sum(NOTHING, map(Term, tokens, base)), Term.sum(GAINS, map(Term, tokens, gains, by_document))


def name_of(passage: Passage | Path) -> str:
    """What a reader knows a passage or a path by.

    >>> name_of(Passage("Some text.", title="Basel", id="1")), name_of(Passage("Some text.", id="1"))
    ('Basel', '1')
    >>> name_of(Passage("Some text."))
    'Some text.'
    """
    if isinstance(passage, Path):
        return " → ".join(map(name_of, passage.passages))
    nameless = not passage.title and Passage(passage.text).id == passage.id
    return passage.text[:_NAME] if nameless else passage.title or passage.id


def _mean(group: Sequence[Likelihood]) -> Likelihood:
    """Under several prompts as one."""
    log_probs = np.mean([likelihood.log_probs for likelihood in group], axis=0)
    total = float(np.mean([likelihood.total for likelihood in group]))
    parts = tuple(map(_mean, zip(*(likelihood.parts for likelihood in group), strict=True)))
    return replace(group[0], log_probs=log_probs, total=total, parts=parts)
