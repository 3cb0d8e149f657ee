"""BRMGR: bi-reranking, which merges retrieved passages with passages that an LLM wrote.

    log p(lp, rp | q) = log p(lp | q) + log p(q | rp)                            Du et al., section II, equation 6
    log p(q | rp) = mean_t log p(q_t | q_<t, rp)                                 equation 4, which is UPR's score
    log p(lp | q) = mean_t log p(lp_t | lp_<t, q)                                equation 5

Equation 6 multiplies probabilities, so their logarithms are added. The product of the two negative logarithms would
reverse the order. The probability of a pair factorizes, so pairing by rank is optimal: no other assignment has a higher
sum of probabilities (Theorem 1), also with different numbers of generated and retrieved passages.

A model that counts words does not know what answers a question. With such a model, the prompt contains the retrieved
passages in addition to the question: p(lp | q) is then pseudo-relevance feedback, a relevance model whose documents
count equally (Lavrenko & Croft 2001). On train questions it ranks a true sentence before the same one with another
answer in 96 % of the pairs, and the question alone in 59 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any, Literal

from drillrank.errors import InvalidInput, check_limits, check_number, check_positive
from drillrank.explanation import Explainable, Explanation, Explanations, Term
from drillrank.likelihood import LanguageModel, Request, load_language_model
from drillrank.likelihood.relevance import check_likelihood_of_texts
from drillrank.passages import Passage, Ranked, Ranking, as_passages, check_top_n, ranked, read_query
from drillrank.prompts import Prompt, TruncatableText, TrustedText, check_question_templates, split_at_question
from drillrank.rerank.base import AsksModel, in_worker
from drillrank.rerank.explaining import name_of
from drillrank.rerank.formula import PRESETS
from drillrank.rerank.prior import Prior, RetrievalScores, check_paired, check_prior, scores_by_question
from drillrank.rerank.upr import UPR, UPR_PROMPT, split_template
from drillrank.settings import Settings, as_settings, check_one_of
from drillrank.text import without_surrogates

Passages = Iterable[Passage | str]
Origin = Literal["generated", "retrieved"]
GeneratedScore = Literal["passage", "question"]
BRMGRPreset = Literal["brmgr", "paper"]

# Equation 5 conditions a generated passage on the question and gives no wording; this one is ours.
GENERATED_PROMPT = "Question: {question} Please write a passage that answers this question."

# The unigram model on train questions of HotpotQA and MuSiQue: 0.9 keeps 99 % of the true sentences that a retrieved
# passage holds, 13 % of the same sentences with another answer put in, and one of 546 sentences about something else.
SUPPORTED = 0.9

# Names of the two terms of a pair's score, and their keys in its details.
_TERMS = {
    "log p(generated | question)": "generated_score",
    "log p(question | retrieved)": "retrieved_score",
}


@dataclass(frozen=True, kw_only=True)
class BRMGRSettings(Settings):
    """Settings for reading and pairing passages.

    Attributes:
        template: Prompt for a retrieved passage, with `{text}`, and optionally `{title}` before it.
        max_passage_tokens: Maximum number of tokens of a retrieved passage; None means the model's own limit.
        prior_weight: Factor of the prior's log-probabilities, up to a constant.
        generated_template: Prompt for a generated passage, with `{question}`.
        max_generated_tokens: Maximum number of tokens of a generated passage that are scored. The result contains the
            whole passage.
        generated_score: Score of a generated passage: `"passage"`, log p(passage | question), equation 5; or
            `"question"`, log p(question | passage), UPR's formula, which the paper finds worse (figure 3).
        generated_share: Maximum share of generated passages among the results, from 0 to 1. The best are kept.
        first: First passage of a pair; the paper defines no order. With `"retrieved"`, a generated passage never has
            rank 1.

    Raises:
        InvalidInput: A template is malformed, or a setting is out of its range.
    """

    template: str = UPR_PROMPT
    max_passage_tokens: int | None = None
    prior_weight: float = 1.0
    generated_template: str = GENERATED_PROMPT
    max_generated_tokens: int = 512
    generated_score: GeneratedScore = "passage"
    generated_share: float = 1.0
    first: Origin = "generated"

    def __post_init__(self) -> None:
        split_template(self.template)
        check_limits(max_passage_tokens=self.max_passage_tokens)
        check_number(prior_weight=self.prior_weight)
        check_question_templates([self.generated_template])
        check_positive(max_generated_tokens=self.max_generated_tokens)
        _check_share("generated_share", self.generated_share)
        check_one_of(Origin, first=self.first)
        check_one_of(GeneratedScore, generated_score=self.generated_score)
        super().__post_init__()


def _check_share(name: str, share: object) -> None:
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidInput(f"{name} must be a number from 0 to 1, got {share!r:.200}.")


class BRMGR(AsksModel):
    """Ranks retrieved and generated passages separately, pairs them by rank, and returns the pairs.

    Args:
        model: A language model, or its specification. A lexical model that was not fitted is fitted to the retrieved
            passages.
        prior: Prior of a retrieved passage from the first stage's scores, as for `UPR`. Generated passages were not
            retrieved, so their prior is uniform.
        guard: Drop generated passages that no retrieved one supports (see `support`). True requires a support of 0.9; a
            number from 0 to 1 sets the minimum support. The guard scores every generated passage with every retrieved
            one.
        preset: `"brmgr"` or `"paper"`, which are the same, because public code does not exist: the paper's wording, no
            prior, and equation 5 on the question alone with every model.
        settings: Settings for reading and pairing passages.

    The score of a pair, and of both its passages, is the sum of two mean log-probabilities: at most 0, comparable
    within one question only. A passage without a partner, because there are more of its kind, is scored as if its
    partner were the last one of the other kind, so that scores fall from pair to pair. `details` contains `origin`,
    `pair` (its number, starting at 1), `partner` (the id of the other passage, or None), `retrieved_score` and
    `generated_score` (the two summands; None for a missing partner), `log_likelihood` (of the passage, summed),
    `position` (in its input list), `tokens` (of the question), `cut_tokens` (of the prompt's documents), with the guard
    `support`, and with a prior the `log_prior` of a retrieved passage, which its `retrieved_score` includes.

    Raises:
        LacksCapability: The model scores relevance only, and the settings or the guard need the likelihood of a
            generated passage.
        InvalidInput: A template is malformed, or an option cannot be used.

    >>> retrieved = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
    >>> generated = ["Emma was written by Charles Dickens.", "The novel Emma was written by Jane Austen."]
    >>> for item in BRMGR().rank("Who wrote Emma?", retrieved, generated):
    ...     print(item.details["pair"], item.details["origin"], item.passage.text)
    1 generated The novel Emma was written by Jane Austen.
    1 retrieved Emma is a novel that Jane Austen wrote.
    2 generated Emma was written by Charles Dickens.
    2 retrieved Basel lies on the Rhine.
    """

    def __init__(
        self,
        model: str | LanguageModel = "unigram",
        *,
        prior: Prior | None = "retrieval",
        guard: bool | float = False,
        preset: BRMGRPreset | None = None,
        settings: BRMGRSettings | Mapping[str, Any] = BRMGRSettings(),
    ) -> None:
        _check_share("guard", guard)
        if preset is not None:
            check_one_of(BRMGRPreset, preset=preset)
        self.language_model = load_language_model(model)
        self.prior = check_prior(prior) if preset is None else None
        self.preset, self.guard = preset, guard
        self.settings = as_settings(BRMGRSettings, settings)
        if self.settings.generated_score == "passage":
            advice = 'Set generated_score="question", or use another model.'
            check_likelihood_of_texts(self.language_model, "The score of a generated passage", advice)

    def rank(
        self,
        query: str,
        retrieved: Passages,
        generated: Passages,
        top_n: int | None = None,
        *,
        scores: RetrievalScores | None = None,
    ) -> Ranking[Passage]:
        """Rank and pair passages. The best pair is first, and the passages of a pair are adjacent.

        Args:
            query: The question.
            retrieved: Passages, or strings.
            generated: Passages that an LLM wrote, or strings. Passages without words rank last among them.
            top_n: Maximum number of passages, so an odd number may end inside a pair; None keeps all.
            scores: Score of the first stage for each retrieved passage, for the prior, as for `UPR.rank`.

        Raises:
            InvalidInput: The query is blank, `top_n` is below 1, an item is not a passage, or a score cannot be used.
        """
        of_question = None if scores is None else [scores]
        return self.rank_many([query], [retrieved], [generated], top_n, scores=of_question)[0]

    def rank_many(
        self,
        queries: Sequence[str],
        retrieved_lists: Sequence[Passages],
        generated_lists: Sequence[Passages],
        top_n: int | None = None,
        *,
        scores: Sequence[RetrievalScores | None] | None = None,
    ) -> list[Ranking[Passage]]:
        """Rank the passages of several questions. Each result is that of `rank`.

        A neural model scores all retrieved passages in one pass, and all generated ones in another. For a lexical model
        each question's passages are a collection of their own.

        Raises:
            InvalidInput: As for `rank`, or the lists differ in length.
        """
        rankings = self._rankings(queries, retrieved_lists, generated_lists, top_n, scores)
        return [ranking[:top_n] for ranking in rankings]

    arank = in_worker(rank)
    arank_many = in_worker(rank_many)

    def rank_mixed(
        self,
        query: str,
        passages: Sequence[Passage],
        is_generated: Sequence[bool],
        top_n: int | None = None,
        *,
        scores: RetrievalScores | None = None,
    ) -> Ranking[Passage]:
        """Rank one list of both kinds, and return all of it. `details["position"]` is the index in that list.

        Args:
            query: The question.
            passages: Retrieved and generated passages.
            is_generated: True for each generated passage.
            top_n: Number of passages that the caller will use, for the share of generated ones. It cuts nothing.
            scores: Score of the first stage for each passage. Those of generated passages are ignored.

        Raises:
            InvalidInput: As for `rank`, or there are not as many scores as passages.
        """
        indices_by_origin: dict[str, list[int]] = {"retrieved": [], "generated": []}
        for index, generated in enumerate(is_generated):
            indices_by_origin["generated" if generated else "retrieved"].append(index)
        if scores is not None:
            check_paired(scores, passages)
        retrieved_indices = indices_by_origin["retrieved"]
        retrieved_scores = None if scores is None else [[scores[index] for index in retrieved_indices]]
        retrieved, written = ([passages[index] for index in indices] for indices in indices_by_origin.values())
        [ranking] = self._rankings([query], [retrieved], [written], top_n, retrieved_scores)
        for item in ranking:
            item.details["position"] = indices_by_origin[item.details["origin"]][item.details["position"]]
        return ranking

    def explain(self, query: str, ranking: Sequence[Ranked[Passage]]) -> Explanations:
        """Explain the score of each pair by its two summands. The model is not called.

        If there are fewer passages of one kind, its last one counts for the pairs without one.

        >>> ranking = BRMGR().rank("Who wrote Emma?", ["Jane Austen wrote Emma."], ["Emma is by Jane Austen."])
        >>> [term.name for term in ranking.explain()[0].terms]
        ['log p(generated | question)', 'log p(question | retrieved)']
        """
        entries = []
        for item in ranking:
            score_by_name = {name: item.details[key] for name, key in _TERMS.items()}
            rest = item.score - sum(score for score in score_by_name.values() if score is not None)
            terms = [
                Term(f"{name}, of the last one", rest) if score is None else Term(name, score)
                for name, score in score_by_name.items()
                if score is not None or rest
            ]
            note = "Pair {pair}, {origin}: both passages of a pair have the sum of their scores."
            note = note.format_map(item.details)
            entries.append(Explanation(item.rank, item.score, name_of(item.passage), tuple(terms), note=note))
        return Explanations(entries, query)

    def _rankings(
        self,
        queries: Sequence[str],
        retrieved_lists: Sequence[Passages],
        generated_lists: Sequence[Passages],
        top_n: int | None,
        scores: Sequence[RetrievalScores | None] | None,
    ) -> list[Ranking[Passage]]:
        """Return whole rankings. `top_n` is the number of passages that the caller will use."""
        n_lists, model = len(retrieved_lists), self.language_model
        if isinstance(queries, str) or not len(queries) == n_lists == len(generated_lists):
            raise InvalidInput(
                f"{len(queries)} queries, {n_lists} lists of retrieved and {len(generated_lists)} of generated "
                "passages cannot be paired. Pass one list of each kind per query."
            )
        queries = list(map(read_query, queries))
        retrieved, generated = (list(map(as_passages, lists)) for lists in (retrieved_lists, generated_lists))
        check_top_n(top_n)
        if model.wants_fit and n_lists != 1:  # each question's passages are a collection of their own
            score_lists = scores_by_question(self.prior, scores, n_lists)
            return [
                self._rankings([query], [retrieved_passages], [written], top_n, None if one is None else [one])[0]
                for query, retrieved_passages, written, one in zip(
                    queries, retrieved, generated, score_lists, strict=True
                )
            ]
        if model.wants_fit:
            model = model.fitted(passage.titled_text for passage in retrieved[0])
        # 1. Rank the retrieved passages (equations 3 and 4).
        upr = self._upr(model)
        retrieved_rankings = upr.rank_many(queries, retrieved, scores=scores)
        # 2. Rank the generated passages (equation 5), without those that the guard drops.
        if self.settings.generated_score == "question":
            generated_rankings = list(map(list, upr.rank_many(queries, generated)))
        else:
            generated_rankings = self._rank_generated(model, queries, retrieved, generated)
        # 3. Pair both by rank (equation 6 and Theorem 1).
        return [
            Explainable(self._pair(retrieved_ranking, written, top_n), partial(self.explain, query))
            for query, retrieved_ranking, written in zip(queries, retrieved_rankings, generated_rankings, strict=True)
        ]

    def _upr(self, model: LanguageModel) -> UPR:
        """Return the ranker of the retrieved passages."""
        has_paper_wording = self.preset is not None and model.reads_instructions
        return UPR(
            model,
            template=PRESETS["brmgr"].template if has_paper_wording else self.settings.template,
            max_passage_tokens=self.settings.max_passage_tokens,
            prior=self.prior,
            prior_weight=self.settings.prior_weight,
        )

    def _rank_generated(
        self,
        model: LanguageModel,
        queries: Sequence[str],
        retrieved: Sequence[list[Passage]],
        generated: Sequence[list[Passage]],
    ) -> list[list[Ranked[Passage]]]:
        """Rank generated passages by mean log p(lp | q), without those that the guard drops."""
        template, limit = self.settings.generated_template, self.settings.max_passage_tokens
        counts_words = not model.reads_instructions and self.preset is None
        targets = [[self._scored_text(passage.text) for passage in written] for written in generated]
        prompts = [
            generated_prompt(template, query, retrieved_passages if counts_words else (), limit)
            for query, retrieved_passages in zip(queries, retrieved, strict=True)
        ]
        request_lists = [
            [Request(prompt, target) for target in dict.fromkeys(query_targets) if target.strip()]
            for prompt, query_targets in zip(prompts, targets, strict=True)
        ]
        rankings = []
        for index, likelihoods in enumerate(model.log_likelihood_lists(request_lists)):
            texts = [request.target for request in request_lists[index]]
            likelihood_by_text = dict(zip(texts, likelihoods, strict=True))
            support_by_text = self._supports(model, queries[index], retrieved[index], texts)
            # The mean over no tokens would be 0, the highest score: a passage without tokens ranks last.
            lowest = math.nextafter(min((item.mean for item in likelihoods if item.tokens), default=0.0), -math.inf)
            scores, details = [], []
            for target in targets[index]:
                item = likelihood_by_text.get(target)
                scores.append(item.mean if item and item.tokens else lowest)
                detail = {"log_likelihood": item.total if item else 0.0, "cut_tokens": item.cut_tokens if item else 0}
                guarded = {} if support_by_text is None else {"support": support_by_text.get(target, 0.0)}
                details.append(detail | guarded)
            ranking = ranked(generated[index], scores, details)
            rankings.append([item for item in ranking if item.details.get("support", 1.0) >= self._min_support])
        return rankings

    @property
    def _min_support(self) -> float:
        """Minimum support of a generated passage; 0 without the guard."""
        return (SUPPORTED if self.guard else 0.0) if isinstance(self.guard, bool) else self.guard

    def _supports(
        self, model: LanguageModel, query: str, retrieved: Sequence[Passage], texts: Sequence[str]
    ) -> dict[str, float] | None:
        """Return the support of each text by the retrieved passages, or None without the guard."""
        if self.guard is False:
            return None
        template, limit = self.settings.generated_template, self.settings.max_passage_tokens
        return dict(zip(texts, support(model, template, query, retrieved, texts, limit), strict=True))

    def _scored_text(self, text: str) -> str:
        """Return the beginning of a generated passage that is scored."""
        text, limit = without_surrogates(text), self.settings.max_generated_tokens
        if len(text.encode("utf-8", "surrogatepass")) <= limit:  # a token has at least one byte
            return text
        try:
            return self.language_model.first_tokens(text, limit)
        except InvalidInput:  # a model that does not report where its tokens end scores the whole text
            return text

    def _pair(
        self, retrieved: Sequence[Ranked[Passage]], written: list[Ranked[Passage]], top_n: int | None
    ) -> list[Ranked[Passage]]:
        """Pair passages by rank. Drop the worst generated ones while their share among the results is too large."""
        n_written = len(written)
        while True:
            ranking = self._join(retrieved, written[:n_written])
            origins = [item.details["origin"] for item in ranking[:top_n]]
            if not origins or origins.count("generated") / len(origins) <= self.settings.generated_share:
                return ranking
            n_written -= 1

    def _join(self, retrieved: Sequence[Ranked[Passage]], written: Sequence[Ranked[Passage]]) -> list[Ranked[Passage]]:
        """Return the pairs of equal ranks with the sums of their scores (equation 6)."""
        origins: list[Origin] = ["generated", "retrieved"]
        n_tokens = retrieved[0].details["tokens"] if retrieved else 1
        last_score, ranking = dict.fromkeys(origins, 0.0), list[Ranked[Passage]]()
        for number, pair in enumerate(zip_longest(written, retrieved), start=1):
            last_score |= {origin: item.score for origin, item in zip(origins, pair, strict=True) if item}
            scores = {f"{origin}_score": item and item.score for origin, item in zip(origins, pair, strict=True)}
            sides = list(zip(origins, pair, reversed(pair), strict=True))
            for origin, item, other in sides if self.settings.first == "generated" else reversed(sides):
                if item:
                    details = {**item.details, "origin": origin, "partner": other and other.passage.id}
                    details |= {"pair": number, "tokens": n_tokens, **scores}
                    ranking.append(Ranked(item.passage, sum(last_score.values()), len(ranking) + 1, details))
        return ranking


def generated_prompt(
    template: str, question: str, passages: Sequence[Passage] = (), max_passage_tokens: int | None = None
) -> Prompt:
    r"""Return the prompt before a generated passage: the question, after the passages if there are any.

    Both are documents of the prompt, so a model that counts words reads them.

    Raises:
        InvalidInput: The template does not contain `{question}`.

    >>> generated_prompt("Question: {question} Answer:", "Why?", [Passage("So.")])[0]
    'Passage: '
    """
    before, after = split_at_question(template)
    parts: list[str | TruncatableText] = []
    for passage in passages:
        if passage.titled_text.strip():
            parts += ["Passage: ", TruncatableText(passage.titled_text, max_passage_tokens), "\n\n"]
    return (*parts, TrustedText(before), TruncatableText(question), TrustedText(after))


def support(
    model: LanguageModel,
    template: str,
    query: str,
    retrieved: Sequence[Passage],
    targets: Sequence[str],
    max_passage_tokens: int | None = None,
) -> list[float]:
    """Return the support of each generated text by a retrieved passage, at most 1; 0 for a text that adds nothing.

                            log p(lp | rp_j, q) - log p(lp | q)
        support(lp) = max_j -----------------------------------
                            log p(lp | lp, q)   - log p(lp | q)

    The denominator is the information of the generated passage beyond the question, the numerator the part of it that a
    retrieved passage explains. One passage must support the whole text: neither of two passages supports a sentence
    whose halves come from both.

    Args:
        model: A language model.
        template: Prompt for a generated passage, with `{question}`.
        query: The question.
        retrieved: Retrieved passages.
        targets: Texts of generated passages that are not blank.
        max_passage_tokens: Maximum number of tokens of a passage in a prompt.

    Raises:
        LacksCapability: The model scores relevance only.

    >>> texts = ["Emma was written by Jane Austen.", "Emma was written in Zanzibar."]
    >>> retrieved = [Passage("Emma is a novel written by Jane Austen.")]
    >>> true, false = support(load_language_model(), "{question}", "Who wrote Emma?", retrieved, texts)
    >>> true > 0.9 > false
    True
    """
    check_likelihood_of_texts(model, "The guard", "Set guard=False, or use another model.")
    requests = [
        Request(generated_prompt(template, query, passages, max_passage_tokens), target)
        for target in targets
        for passages in ((), (Passage(target),), *((passage,) for passage in retrieved))
    ]
    means = iter([likelihood.mean for likelihood in model.log_likelihood(requests)])
    supports = []
    for _ in targets:
        by_question, by_itself = next(means), next(means)
        explained = max((next(means) - by_question for _ in retrieved), default=0.0)
        supports.append(min(explained / (by_itself - by_question), 1.0) if by_itself > by_question else 0.0)
    return supports
