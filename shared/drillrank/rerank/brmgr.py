"""BRMGR: bi-reranking, which merges retrieved passages with passages that an LLM wrote.

    log p(lp, rp | q) = log p(lp | q) + log p(q | rp)                            Du et al., section II, equation 6
    log p(q | rp) = mean_t log p(q_t | q_<t, rp)                                 equation 4, which is UPR's score
    log p(lp | q) = mean_t log p(lp_t | lp_<t, q)                                equation 5

Equation 6 multiplies probabilities, so their logarithms are added: the product of the two negative logarithms would
turn the order round. The probability of a pair factorises, so the best written passage goes with the best retrieved
one, the second with the second, and no other assignment has a higher sum of probabilities (Theorem 1), whether or not
there are as many of one kind as of the other.

A model that knows nothing of the world cannot tell from the question alone what answers it. Where a model reads no
instructions but only counts words, the retrieved passages stand in the prompt beside the question: p(lp | q) is then
pseudo-relevance feedback, a relevance model whose documents count equally (Lavrenko & Croft 2001). On train questions
it puts a true sentence before the same one with another answer in 96 % of the pairs, the question alone in 59 %.
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
from drillrank.passages import Passage, Ranked, Ranking, as_passages, check_top_n, ranked, read_query
from drillrank.prompts import Prompt, TruncatableText, TrustedText, check_question_templates, split_at_question
from drillrank.rerank.base import AsksModel, in_worker, name_of
from drillrank.rerank.formula import PRESETS
from drillrank.rerank.prior import (
    Prior,
    RetrievalScores,
    check_paired,
    check_prior,
    scores_by_question,
)
from drillrank.rerank.upr import UPR, UPR_PROMPT, split_template
from drillrank.settings import Settings, as_settings, check_one_of
from drillrank.text import without_surrogates

Passages = Iterable[Passage | str]
Origin = Literal["generated", "retrieved"]
GeneratedScore = Literal["passage", "question"]

# Equation 5 conditions a generated passage on the question and gives no wording; this one is ours.
GENERATED_PROMPT = "Question: {question} Please write a passage that answers this question."

# The unigram model on train questions of HotpotQA and MuSiQue: 0.9 keeps 99 % of the true sentences that a retrieved
# passage holds, 13 % of the same sentences with another answer put in, and one of 546 sentences about something else.
SUPPORTED = 0.9

# Names of the two terms of a pair's score, and where its details hold them.
_TERMS = {
    "log p(generated | question)": "generated_score",
    "log p(question | retrieved)": "retrieved_score",
}


@dataclass(frozen=True, kw_only=True)
class BRMGRSettings(Settings):
    """How passages are read and paired.

    Attributes:
        template: Prompt for a retrieved passage, with `{text}` and, if wanted, `{title}` before it.
        max_passage_tokens: Tokens that a retrieved passage may keep; None leaves it to the model's own limit.
        prior_weight: How much the prior counts: its log-probabilities are multiplied by it, up to a constant.
        generated_template: Prompt for a generated passage, with `{question}`.
        max_generated_tokens: Tokens of a generated passage that are scored; it is returned whole.
        generated_score: What a generated passage is scored by: `"passage"`, log p(passage | question), equation 5; or
            `"question"`, log p(question | passage), UPR's formula, which the paper finds worse (figure 3).
        first: Which passage of a pair comes first; the paper names no order. With `"retrieved"`, what the LLM wrote
            never stands at the top.

    Raises:
        InvalidInput: a template is malformed, or a setting is out of its range.
    """

    template: str = UPR_PROMPT
    max_passage_tokens: int | None = None
    prior_weight: float = 1.0
    generated_template: str = GENERATED_PROMPT
    max_generated_tokens: int = 512
    generated_score: GeneratedScore = "passage"
    first: Origin = "generated"

    def __post_init__(self) -> None:
        split_template(self.template)
        check_limits(max_passage_tokens=self.max_passage_tokens)
        check_number(prior_weight=self.prior_weight)
        check_question_templates([self.generated_template])
        check_positive(max_generated_tokens=self.max_generated_tokens)
        check_one_of(Origin, first=self.first)
        check_one_of(GeneratedScore, generated_score=self.generated_score)
        super().__post_init__()


class BRMGR(AsksModel):
    """Ranks retrieved and generated passages separately, pairs them by rank, and lists the pairs.

    Args:
        model: A language model, or its specification; a lexical one that was not fitted is, to the retrieved passages.
        prior: What the first stage's scores say of a retrieved passage, as for `UPR`. Nothing found the generated
            passages, so that their prior is uniform.
        guard: Drop generated passages that no retrieved one supports (see `support`): True for
            support below 0.9, or a limit of your own from 0 to 1. It costs one likelihood for every generated passage
            with every retrieved one.
        generated_share: The largest share of generated passages among those returned, from 0 to 1. The best are kept.
        preset: `"brmgr"` or `"paper"`, which are the same as there is no public code: the paper to the letter, with its
            wording, without prior, and with equation 5 on the question alone, whatever the model.
        settings: How passages are read and paired.

    The score of a pair, and of both its passages, is the sum of two mean log-probabilities: at most 0, comparable
    within one question only. A passage that is left over, because there are more of its kind, is scored as though its
    partner were the last of the other kind, so that scores fall from pair to pair. `details` holds `origin`, `pair`
    (its number from 1), `partner` (the id of the other passage, or None), `retrieved_score` and `generated_score` (the
    two summands; None for a missing partner),
    `log_likelihood` (of the passage, summed), `position` (in the list that the passage came from), `tokens`
    (of the question), `cut_tokens` (of the evidence), with the guard `support`, and with a prior the `log_prior` of a
    retrieved passage, which its `retrieved_score` holds.

    Raises:
        InvalidInput: a template is malformed, or an option cannot be used.

    >>> found = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
    >>> wrote = ["Emma was written by Charles Dickens.", "The novel Emma was written by Jane Austen."]
    >>> for item in BRMGR().rank("Who wrote Emma?", found, wrote):
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
        generated_share: float = 1.0,
        preset: Literal["brmgr", "paper"] | None = None,
        settings: BRMGRSettings | Mapping[str, Any] = BRMGRSettings(),
    ) -> None:
        for name, share in (("guard", guard), ("generated_share", generated_share)):
            if not isinstance(share, int | float) or not 0 <= share <= 1:
                raise InvalidInput(f"{name} must be a number from 0 to 1, not {share!r:.200}.")
        if preset not in (None, "brmgr", "paper"):
            raise InvalidInput(f'preset is "brmgr", "paper" or None; not {preset!r:.200}.')
        self.language_model = load_language_model(model)
        self.prior = check_prior(prior) if preset is None else None
        self.preset, self.guard, self.generated_share = preset, guard, generated_share
        self.settings = as_settings(BRMGRSettings, settings)

    def rank(
        self,
        query: str,
        retrieved: Passages,
        generated: Passages,
        top_n: int | None = None,
        *,
        scores: RetrievalScores | None = None,
    ) -> Ranking[Passage]:
        """Rank and pair; best pair first, the passages of a pair next to each other.

        Args:
            query: The question.
            retrieved: Passages, or plain strings.
            generated: Passages that an LLM wrote, or plain strings. One without words comes last of them.
            top_n: How many passages to keep, so that an odd number may end inside a pair; None keeps all.
            scores: The first stage's score of each retrieved passage, for the prior; as for `UPR.rank`.

        Raises:
            InvalidInput: the query is blank, `top_n` is below 1, an item is not a passage, or a score cannot be used.
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
        """Rank for each question; each as `rank` would.

        A neural model scores all retrieved passages in one pass, and all generated ones in another. Of a lexical model
        each question's passages are a collection of their own; so is what the guard compares.

        Raises:
            InvalidInput: as `rank`, or the lists differ in length.
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
        """The whole ranking of one list of both kinds; `details["position"]` is the place in that list.

        `top_n` cuts nothing here: it says how many passages the caller will use, for the share of generated ones.
        `scores` has one of each passage; those of generated ones do not count.

        Raises:
            InvalidInput: as `rank`, or there are not as many scores as passages.
        """
        places: dict[str, list[int]] = {"retrieved": [], "generated": []}
        for location, generated in enumerate(is_generated):
            places["generated" if generated else "retrieved"].append(location)
        if scores is not None:
            check_paired(scores, passages)
        of_retrieved = None if scores is None else [[scores[location] for location in places["retrieved"]]]
        retrieved, written = ([passages[location] for location in of_kind] for of_kind in places.values())
        [ranking] = self._rankings([query], [retrieved], [written], top_n, of_retrieved)
        for item in ranking:
            item.details["position"] = places[item.details["origin"]][item.details["position"]]
        return ranking

    def explain(self, query: str, ranking: Sequence[Ranked[Passage]]) -> Explanations:
        """The two scores that each pair's is the sum of; of its own, `ranking.explain()` tells them. No model is asked.

        Where one kind has fewer passages, its last one counts for the pairs that lack one.

        >>> ranking = BRMGR().rank("Who wrote Emma?", ["Jane Austen wrote Emma."], ["Emma is by Jane Austen."])
        >>> [term.name for term in ranking.explain()[0].terms]
        ['log p(generated | question)', 'log p(question | retrieved)']
        """
        entries = []
        for item in ranking:
            known = {name: item.details[key] for name, key in _TERMS.items()}
            rest = item.score - sum(score for score in known.values() if score is not None)
            terms = [
                Term(f"{name}, of the last one", rest) if score is None else Term(name, score)
                for name, score in known.items()
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
        """Whole rankings; `top_n` says how many passages the caller will use."""
        count, model, settings = len(retrieved_lists), self.language_model, self.settings
        if isinstance(queries, str) or not len(queries) == count == len(generated_lists):
            lists = f"{count} lists of retrieved and {len(generated_lists)} of generated passages"
            raise InvalidInput(f"{len(queries)} queries, {lists} cannot be paired.")
        queries = list(map(read_query, queries))
        retrieved, generated = (list(map(as_passages, lists)) for lists in (retrieved_lists, generated_lists))
        check_top_n(top_n)
        if model.wants_fit and count != 1:  # each question's passages are a collection of their own
            stages = scores_by_question(self.prior, scores, count)
            each = zip(queries, retrieved, generated, stages, strict=True)
            return [
                self._rankings([query], [found], [written], top_n, None if given is None else [given])[0]
                for query, found, written, given in each
            ]
        if model.wants_fit:
            model = model.fitted(passage.titled_text for passage in retrieved[0])
        as_in_paper = self.preset is not None and model.reads_instructions
        upr = UPR(
            model,
            template=PRESETS["brmgr"].template if as_in_paper else settings.template,
            max_passage_tokens=settings.max_passage_tokens,
            prior=self.prior,
            prior_weight=settings.prior_weight,
        )
        by_question = upr.rank_many(queries, retrieved, scores=scores)
        if settings.generated_score == "question":
            written_lists = list(map(list, upr.rank_many(queries, generated)))
        else:
            written_lists = self._by_equation_5(model, queries, retrieved, generated)
        rankings = []
        for query, found, written in zip(queries, by_question, written_lists, strict=True):
            ranking = self._paired(found, written)
            while (kinds := [item.details["origin"] for item in ranking[:top_n]]) and (
                kinds.count("generated") / len(kinds) > self.generated_share
            ):
                written.pop()
                ranking = self._paired(found, written)
            rankings.append(Explainable(ranking, partial(self.explain, query)))
        return rankings

    def _by_equation_5(
        self,
        model: LanguageModel,
        queries: Sequence[str],
        retrieved: Sequence[list[Passage]],
        generated: Sequence[list[Passage]],
    ) -> list[list[Ranked[Passage]]]:
        """Generated passages by mean log p(lp | q), without those that the guard drops."""
        template, limit = self.settings.generated_template, self.settings.max_passage_tokens
        words_only = not model.reads_instructions and self.preset is None
        least = (SUPPORTED if self.guard else None) if isinstance(self.guard, bool) else self.guard
        targets = [[self._beginning(passage.text) for passage in written] for written in generated]
        prompts = [
            generated_prompt(template, query, found if words_only else (), limit)
            for query, found in zip(queries, retrieved, strict=True)
        ]
        request_lists = [
            [Request(prompt, target) for target in dict.fromkeys(of_query) if target.strip()]
            for prompt, of_query in zip(prompts, targets, strict=True)
        ]
        rankings = []
        for number, likelihoods in enumerate(model.log_likelihood_lists(request_lists)):
            distinct = [request.target for request in request_lists[number]]
            known, supports = dict(zip(distinct, likelihoods, strict=True)), dict.fromkeys(distinct, 0.0)
            # The mean over no tokens would be 0, the best there is: a passage without any comes after the worst.
            below = math.nextafter(min((item.mean for item in likelihoods if item.tokens), default=0.0), -math.inf)
            if least is not None:
                found = support(model, template, queries[number], retrieved[number], distinct, limit)
                supports = dict(zip(distinct, found, strict=True))
            scores, details = [], []
            for target in targets[number]:
                item = known.get(target)
                scores.append(item.mean if item and item.tokens else below)
                detail = {"log_likelihood": item.total if item else 0.0, "cut_tokens": item.cut_tokens if item else 0}
                details.append(detail | ({} if least is None else {"support": supports.get(target, 0.0)}))
            ranking = ranked(generated[number], scores, details)
            rankings.append([item for item in ranking if least is None or item.details["support"] >= least])
        return rankings

    def _beginning(self, text: str) -> str:
        text, most = without_surrogates(text), self.settings.max_generated_tokens
        if len(text.encode("utf-8", "surrogatepass")) <= most:  # a token has at least one byte
            return text
        try:
            return self.language_model.first_tokens(text, most)
        except InvalidInput:  # a model that does not tell where its tokens end scores the whole
            return text

    def _paired(
        self, retrieved: Sequence[Ranked[Passage]], written: Sequence[Ranked[Passage]]
    ) -> list[Ranked[Passage]]:
        """Equation 6 for the best of both kinds, then for the second best, and so on."""
        kinds: list[Origin] = ["generated", "retrieved"]
        tokens = retrieved[0].details["tokens"] if retrieved else 1
        last, ranking = dict.fromkeys(kinds, 0.0), list[Ranked[Passage]]()
        for number, pair in enumerate(zip_longest(written, retrieved), start=1):
            last |= {kind: item.score for kind, item in zip(kinds, pair, strict=True) if item}
            scores = {f"{kind}_score": item and item.score for kind, item in zip(kinds, pair, strict=True)}
            sides = list(zip(kinds, pair, reversed(pair), strict=True))
            for origin, item, other in sides if self.settings.first == "generated" else reversed(sides):
                if item:
                    details = {**item.details, "origin": origin, "partner": other and other.passage.id}
                    details |= {"pair": number, "tokens": tokens, **scores}
                    ranking.append(Ranked(item.passage, sum(last.values()), len(ranking) + 1, details))
        return ranking


def generated_prompt(
    template: str, question: str, passages: Sequence[Passage] = (), max_passage_tokens: int | None = None
) -> Prompt:
    r"""What a generated passage is conditioned on: the question, and passages in front of it if there are any.

    All are evidence, the question too: it is what the passage is to be explained by.

    Raises:
        InvalidInput: the template has no place for the question.

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
    """How much of what an LLM wrote a retrieved passage supports, at most 1; 0 if it adds nothing to the question.

                            log p(lp | rp_j, q) - log p(lp | q)
        support(lp) = max_j -----------------------------------
                            log p(lp | lp, q)   - log p(lp | q)

    Below the line is what the generated passage says beyond the question, above it how much of that a retrieved passage
    explains. It asks for one passage that supports the whole: a sentence whose halves come from two passages is
    supported by neither.

    Args:
        model: A language model.
        template: Prompt for a generated passage, with `{question}`.
        query: The question.
        retrieved: Passages that may support.
        targets: Texts of generated passages that are not blank.
        max_passage_tokens: Tokens that a passage may keep in a prompt.

    >>> texts = ["Emma was written by Jane Austen.", "Emma was written in Zanzibar."]
    >>> found = [Passage("Emma is a novel written by Jane Austen.")]
    >>> true, false = support(load_language_model(), "{question}", "Who wrote Emma?", found, texts)
    >>> true > 0.9 > false
    True
    """
    requests = [
        Request(generated_prompt(template, query, passages, max_passage_tokens), target)
        for target in targets
        for passages in ((), (Passage(target),), *((passage,) for passage in retrieved))
    ]
    means = iter([likelihood.mean for likelihood in model.log_likelihood(requests)])
    supports = []
    for _ in targets:
        alone, itself = next(means), next(means)
        explained = max((next(means) - alone for _ in retrieved), default=0.0)
        supports.append(min(explained / (itself - alone), 1.0) if itself > alone else 0.0)
    return supports
