"""What rankers share: calls, formulas of published code, scales of scores, and what a score is added up from.

    score = (Σ_t log p(q_t | nothing) + Σ_t [log p(q_t | c) - log p(q_t | nothing)] + log prior + other terms) / per

Nothing is an empty passage: for a model that counts words the collection, for a neural one the prompt around it.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from drillrank.errors import DrillrankWarning, InvalidInput, check_limits
from drillrank.explanation import Explanation, Term
from drillrank.explanation.terms import GAINS, NOTHING
from drillrank.likelihood import LanguageModel, Likelihood, Request, SumOfExperts
from drillrank.likelihood.encoder import MEANING
from drillrank.passages import Item, Passage, Path, Ranked, Ranking, check_top_n
from drillrank.prompts import Evidence, Prompt, fill_question, prompt_text

Given = TypeVar("Given")
Scored = tuple[float, dict[str, Any]]
RetrievalScores = Sequence[float | None]

Reduction = Literal["mean", "sum"]
ScoreScale = Literal["log_likelihood", "probability", "softmax"]

PRIOR, UNMATCHED = "prior of the first stage", "no word of the question: as the least likely"
ROUNDING = "rounding of the model"
_ROUNDING = 1e-9
# Nats by which a token may differ where a model is asked again in other company; a neural one may count in 16 bits.
_AGAIN, _AGAIN_NEURAL = 1e-4, 0.1
MAX_QUESTION = 20_000  # characters: what a question costs grows with its tokens times the candidates
_NAME = 60  # characters of a text that stand for a passage without title or id


class Ranker(ABC, Generic[Given, Item]):
    """Ranks candidates for a question by what a language model says of them."""

    language_model: LanguageModel

    def rank(
        self,
        query: str,
        passages: Iterable[Given],
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

    @abstractmethod
    def rank_many(
        self,
        queries: Sequence[str],
        passage_lists: Sequence[Iterable[Given]],
        top_n: int | None = None,
        *,
        scores: Sequence[RetrievalScores | None] | None = None,
    ) -> list[Ranking[Item]]:
        """Rank one list of candidates for each question, all in one pass of the model; each as `rank` would.

        Raises:
            InvalidInput: as `rank`, or the lists differ in length.
        """

    async def arank(
        self,
        query: str,
        passages: Iterable[Given],
        top_n: int | None = None,
        *,
        scores: RetrievalScores | None = None,
    ) -> Ranking[Item]:
        """As `rank`, without blocking the event loop."""
        return await self.language_model.run_in_worker(partial(self.rank, query, passages, top_n, scores=scores))

    async def arank_many(
        self,
        queries: Sequence[str],
        passage_lists: Sequence[Iterable[Given]],
        top_n: int | None = None,
        *,
        scores: Sequence[RetrievalScores | None] | None = None,
    ) -> list[Ranking[Item]]:
        """As `rank_many`, without blocking the event loop."""
        call = partial(self.rank_many, queries, passage_lists, top_n, scores=scores)
        return await self.language_model.run_in_worker(call)


def check_pairs(queries: Sequence[str], lists: Sequence[object], of: str) -> None:
    """Refuse questions that are not as many as the lists to rank for them.

    Raises:
        InvalidInput: says how many there are.
    """
    if isinstance(queries, str) or len(queries) != len(lists):
        raise InvalidInput(f"{len(queries)} queries and {len(lists)} lists of {of} cannot be paired.")


def warn_unread(model: LanguageModel, setting: str) -> None:
    """Say that wording does nothing with a model that reads words of documents alone."""
    if not model.reads_instructions:
        warnings.warn(
            f"{setting} does nothing with {model.spec!r:.200}, which reads the words of documents alone: take a neural "
            "model, or leave it out.",
            DrillrankWarning,
            stacklevel=3,
        )


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

    def __post_init__(self) -> None:
        fill_question(self.target, "")  # refuses a malformed template now, not at the first question
        if self.reduce not in get_args(Reduction):
            raise InvalidInput(f'reduce is "mean" or "sum", not {self.reduce!r}.')
        check_limits(max_prompt_tokens=self.max_prompt_tokens, max_target_tokens=self.max_target_tokens)

    def target_text(self, question: str, model: LanguageModel) -> str:
        """The target for a question, shortened to its limit; what is beyond 20,000 characters is not read.

        Warns:
            DrillrankWarning: the question is longer than that.
        """
        if len(question) > MAX_QUESTION:
            warnings.warn(
                f"A question of {len(question)} characters is read up to character {MAX_QUESTION}.",
                DrillrankWarning,
                stacklevel=2,
            )
            question = question[:MAX_QUESTION]
        if self.question_mark and not question.endswith("?"):
            question += "?"
        text = question if self.target == "{question}" else fill_question(self.target, question)
        return text if self.max_target_tokens is None else model.first_tokens(text, self.max_target_tokens)

    def request(self, prompt: Prompt, target: str, max_tokens: int | None = None) -> Request:
        """The request for a prompt; `max_tokens` is its budget unless the formula has its own."""
        if self.max_prompt_tokens is None:
            return Request(prompt, target, max_tokens)
        return Request((Evidence(prompt_text(prompt)),), target, self.max_prompt_tokens)

    def scored(self, likelihood: Likelihood) -> Scored:
        """Score of a target, and details: `tokens`, `reduce`, `cut_tokens` and, with `st:`, `log_meaning`."""
        tokens = likelihood.tokens
        details: dict[str, Any] = {"tokens": len(tokens), "reduce": self.reduce, "cut_tokens": likelihood.cut_tokens}
        experts = likelihood.summands if likelihood.parts else (likelihood,)
        meaning = [expert.log_probs[-1] for expert in experts if expert.tokens and expert.tokens[-1] == MEANING]
        if meaning:
            details["log_meaning"] = float(sum(meaning))
        return (likelihood.mean if self.reduce == "mean" else likelihood.total), details


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
    "promptrank": LikelihoodFormula("{path} ", question_mark=True),
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
        raise InvalidInput(
            f"This ranker's template holds {placeholder} exactly once; {preset!r:.200} is for another one."
        )
    if not model.reads_instructions:
        raise InvalidInput(
            f"A preset follows code for neural models, and {model.spec!r} does not read its wording: leave the preset "
            "out."
        )
    return formula


def level_unmatched(scored: Sequence[Scored], matched: Sequence[bool]) -> list[Scored]:
    """Candidates without a word of the question score as the least likely one does, and keep their input order.

    All that the likelihood of a model that counts words tells of them is their length, which is no evidence. The
    details say under `nothing_matched` if that is so for all.

    >>> level_unmatched([(-2.0, {}), (-1.0, {}), (-3.0, {})], [False, True, False])[0]
    (-3.0, {'nothing_matched': False})
    """
    lowest = min((score for score, _ in scored), default=0.0)
    nothing = not any(matched)
    return [
        (score if match else lowest, {**details, "nothing_matched": nothing})
        for (score, details), match in zip(scored, matched, strict=True)
    ]


def divisor(details: Mapping[str, Any]) -> int:
    """What a log-probability was divided by to make a score: the target's tokens, or 1 where a formula adds them up."""
    return 1 if details.get("reduce") == "sum" else max(int(details["tokens"]), 1)


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
    if scale not in get_args(ScoreScale):
        raise InvalidInput(f"The score scale is one of {', '.join(get_args(ScoreScale))}; not {scale!r:.200}.")
    if scale == "log_likelihood" or not ranking:
        return list(ranking)
    if scale == "probability":
        scores = [math.exp(log_probability(item)) for item in ranking]
    else:
        tokens = divisor(ranking[0].details)
        totals = [log_probability(item) * tokens for item in ranking]
        best = max(totals)
        weights = [math.exp(value - best) for value in totals]
        everything = math.fsum(weights)
        scores = [weight / everything for weight in weights]
    return [replace(item, score=score) for item, score in zip(ranking, scores, strict=True)]


def selected(
    ranking: Sequence[Ranked[Item]],
    *,
    scale: ScoreScale = "log_likelihood",
    threshold: float | None = None,
    top_n: int | None = None,
) -> list[Ranked[Item]]:
    """Rescale a whole ranking, then keep scores of at least `threshold`, then the first `top_n`."""
    check_top_n(top_n)
    kept = [item for item in rescaled(ranking, scale) if threshold is None or item.score >= threshold]
    return kept[:top_n]


def likelihood_explained(
    item: Ranked[Any],
    likelihood: Likelihood,
    nothing: Likelihood,
    *,
    model: LanguageModel,
    shares: Sequence[tuple[str, npt.NDArray[np.float64]]] = (),
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
    per = divisor(item.details) if "tokens" in item.details else max(len(likelihood.tokens), 1)
    rest = item.score * per - math.fsum(term.value for term in terms)
    allowed = _AGAIN_NEURAL if model.reads_instructions else _AGAIN
    if likelihood.matched and abs(rest) > allowed * max(len(likelihood.tokens), 1):
        raise InvalidInput(
            f"{name_of(item.passage)!r:.200} scores {item.score:.6f}, but {item.score - rest / per:.6f} by this "
            "ranker: give the ranker that made the ranking, and all candidates unless its model is fitted."
        )
    if abs(rest) > _ROUNDING:
        terms.append(Term(ROUNDING if likelihood.matched else UNMATCHED, rest))
    return Explanation(item.rank, item.score, name_of(item.passage), tuple(terms), per)


def _nothing_and_gains(
    likelihood: Likelihood, nothing: Likelihood, shares: Sequence[tuple[str, npt.NDArray[np.float64]]] = ()
) -> tuple[Term, Term]:
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
