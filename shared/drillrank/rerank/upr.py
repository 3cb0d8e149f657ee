"""UPR: unsupervised passage reranking by question likelihood.

score(p) = (1/|q|) Σ_t log p(q_t | q_<t, prompt(p))          Sachan et al. (2022); BRMGR, equations 3 and 4
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from drillrank.errors import InvalidInput, check_limits
from drillrank.explanation import Explainable, Explanations
from drillrank.likelihood import LanguageModel, Likelihood, load_language_model
from drillrank.passages import Passage, Ranked, Ranking, as_passages, check_query, check_top_n, ranked
from drillrank.prompts import Evidence, Prompt, Wording
from drillrank.rerank.base import (
    LikelihoodFormula,
    Ranker,
    RetrievalScores,
    Scored,
    check_pairs,
    level_unmatched,
    likelihood_explained,
    preset_formula,
)
from drillrank.rerank.prior import Prior, check_prior, check_prior_weight, first_stage, posteriors, scores_by_question

# Sachan et al. (2022), as BRMGR (Du et al.) section II uses it for retrieved passages.
UPR_PROMPT = "Passage: {title} {text}. Please write a question based on this passage."


@dataclass(frozen=True, slots=True)
class PassageTemplate:
    """Fixed words before and after a passage, and how its title and text are joined.

    Attributes:
        before: Fixed wording in front of the passage.
        separator: Between title and text; None if the template has no title.
        after: Fixed wording behind the passage.
    """

    before: str
    separator: str | None
    after: str

    @staticmethod
    def parse(template: str) -> PassageTemplate:
        """Read `... {title} {text} ...`; `{title}` may be left out.

        Raises:
            InvalidInput: there is no `{text}`, a placeholder is unknown or repeated, or the title follows the text.

        >>> PassageTemplate.parse("Passage: {title} {text}. Ask a question.")
        PassageTemplate(before='Passage: ', separator=' ', after='. Ask a question.')
        """
        if not isinstance(template, str):
            raise InvalidInput(f"A passage template is a string, not {template!r:.200}.")
        names = re.findall(r"\{(\w*)\}", template)
        if names == ["text"]:
            before, after = template.split("{text}")
            return PassageTemplate(before, None, after)
        if names == ["title", "text"]:
            before, rest = template.split("{title}")
            separator, after = rest.split("{text}")
            return PassageTemplate(before, separator, after)
        raise InvalidInput(
            f"A passage template holds {{text}} once, and before it, if wanted, {{title}} once; not {template!r:.200}."
        )

    def fill(self, passage: Passage, max_tokens: int | None = None) -> Prompt:
        """The prompt for one passage; a passage without a title leaves the separator out."""
        if self.separator is None or not passage.title:
            text = passage.text
        else:
            text = f"{passage.title}{self.separator}{passage.text}"
        return (Wording(self.before), Evidence(text, max_tokens), Wording(self.after))


class UPR(Ranker[Passage | str, Passage]):
    """Ranks passages by the mean log-likelihood of the question, given the passage.

    Args:
        model: A language model, or its specification.
        template: Prompt with `{text}` and, if wanted, `{title}` before it.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        prior: What the `scores` of the first stage say of a passage before its text is read (see
            `drillrank.rerank.prior`): `"retrieval"` takes the ranks by scores of any kind; `"cosine"` takes the scores
            as the cosines of a sentence encoder; None is uniform, as in the paper. Without scores it is uniform, too.
        prior_weight: How much the prior counts: its log-probabilities are multiplied by it, up to a constant.
        preset: Score as published code does: `"upr"`, `"rankify"` or `"rerankers"`, which sum over the tokens of the
            question, or `"brmgr"` (see `drillrank.rerank.base`). A preset brings its own template and limits, and
            one that is named has no prior.

    Scores are natural log-probabilities per question token: at most 0, higher is better, comparable within one
    question only. `details` holds `log_likelihood` (the sum), `tokens` (of the question), `reduce` (`"mean"`, or
    `"sum"` with a preset that adds up), `cut_tokens` (of the passage), `position` (in the input) and
    `nothing_matched` (with a model that counts words: no passage holds a word of the question; then the input order
    stands). `log_likelihood` is exact always; the score is that of the least likely passage where a passage holds no
    word of the question, since its length alone says nothing. With scores of a first stage `details` holds
    `log_prior`, too, and with an `st:` model `log_meaning`, the share of its token of meaning.

    Raises:
        InvalidInput: the template is malformed, a limit is below 1, the prior is unknown, or a preset is given beside
            what it brings or to the unigram model.

    >>> ranking = UPR().rank("Who wrote Emma?", ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."])
    >>> ranking[0].passage.text
    'Emma is a novel that Jane Austen wrote.'
    >>> towns = ["Basel is a town on the Rhine.", "Bonn is a town on the Rhine."]
    >>> [best, _] = UPR().rank("Which town on the Rhine?", towns, scores=[0.61, 0.78])
    >>> best.passage.text
    'Bonn is a town on the Rhine.'
    """

    def __init__(
        self,
        model: str | LanguageModel = "unigram",
        *,
        template: str = UPR_PROMPT,
        max_passage_tokens: int | None = None,
        prior: Prior | None = "retrieval",
        prior_weight: float = 1.0,
        preset: str | LikelihoodFormula | None = None,
    ) -> None:
        PassageTemplate.parse(template)
        check_limits(max_passage_tokens=max_passage_tokens)
        check_prior_weight(prior_weight)
        if preset is not None and (template != UPR_PROMPT or max_passage_tokens is not None):
            raise InvalidInput("A preset brings its own template and limits: leave them out, or the preset.")
        self.language_model = load_language_model(model)
        self.template = template
        self.max_passage_tokens = max_passage_tokens
        self.prior = None if isinstance(preset, str) else check_prior(prior)
        self.prior_weight = prior_weight
        self.preset = preset
        self._formula = (
            LikelihoodFormula(template) if preset is None else preset_formula(preset, self.language_model, "{text}")
        )
        self._template = PassageTemplate.parse(self._formula.template)

    def rank_many(
        self,
        queries: Sequence[str],
        passage_lists: Sequence[Iterable[Passage | str]],
        top_n: int | None = None,
        *,
        scores: Sequence[RetrievalScores | None] | None = None,
    ) -> list[Ranking[Passage]]:
        """Rank one list of passages for each question, all in one pass of the model; each as `rank` would.

        Raises:
            InvalidInput: as `rank`, or the lists differ in length.
        """
        check_pairs(queries, passage_lists, "passages")
        queries, lists = list(map(check_query, queries)), list(map(as_passages, passage_lists))
        check_top_n(top_n)
        scores = scores_by_question(self.prior, scores, len(lists))
        # What is wrong with scores is said before a model is asked.
        stages = [first_stage(self.prior, *pair, self.prior_weight) for pair in zip(lists, scores, strict=True)]
        rankings = []
        likelihood_lists = self._likelihoods(queries, lists)
        for query, passages, stage, likelihoods in zip(queries, lists, stages, likelihood_lists, strict=True):
            scored = self._scored(likelihoods)
            if stage is not None:
                scored = posteriors(scored, stage)
            order = ranked(passages, [score for score, _ in scored], [details for _, details in scored], top_n)
            rankings.append(Explainable(order, partial(self._explained, query, passages, likelihoods)))
        return rankings

    def likelihoods(self, query: str, passages: Iterable[Passage | str]) -> list[Likelihood]:
        """Log-probabilities of the question's tokens after each passage, in order: what the scores are made of.

        Raises:
            InvalidInput: the query is blank, or an item is not a passage.

        >>> [likelihood] = UPR().likelihoods("Where is Basel?", ["Basel lies on the Rhine."])
        >>> likelihood.tokens
        ['where', 'is', 'basel']
        """
        return self._likelihoods([check_query(query)], [as_passages(passages)])[0]

    def explain(
        self, query: str, ranking: Sequence[Ranked[Passage]], candidates: Iterable[Passage | str] | None = None
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

        >>> texts = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
        >>> best = UPR().rank("Who wrote Emma?", texts, top_n=1).explain()[0]
        >>> max(best.tokens, key=lambda token: token.value).name, abs(best.total - best.score) < 1e-6
        ('emma', True)
        """
        passages = [item.passage for item in ranking] if candidates is None else as_passages(candidates)
        places = range(len(passages)) if candidates is None else None
        return self._explained(query, passages, self.likelihoods(query, passages), ranking, places)

    def _explained(
        self,
        query: str,
        passages: Sequence[Passage],
        likelihoods: Sequence[Likelihood],
        ranking: Sequence[Ranked[Passage]],
        places: Sequence[int] | None = None,
    ) -> Explanations:
        """Of a ranking of these passages, from the likelihoods that its scores were made of."""
        if not ranking:
            return Explanations(question=query)
        collection = passages if self.language_model.wants_fit else ()  # all of them are
        nothing = self.likelihoods(query, [*collection, Passage("")])[-1]
        places = [item.details["position"] for item in ranking] if places is None else places
        entries = (
            likelihood_explained(item, likelihoods[place], nothing, model=self.language_model)
            for item, place in zip(ranking, places, strict=True)
        )
        return Explanations(entries, query)

    def _likelihoods(self, queries: Sequence[str], lists: Sequence[Sequence[Passage]]) -> list[list[Likelihood]]:
        formula, requests = self._formula, []
        for query, passages in zip(queries, lists, strict=True):
            # for no passage, load no model
            target = formula.target_text(query, self.language_model) if passages else query
            prompts = [self._template.fill(passage, self.max_passage_tokens) for passage in passages]
            requests.append([formula.request(prompt, target) for prompt in prompts])
        return self.language_model.log_likelihood_lists(requests, include_eos=formula.include_eos)

    def _scored(self, likelihoods: Sequence[Likelihood]) -> list[Scored]:
        scored = []
        for likelihood in likelihoods:
            score, details = self._formula.scored(likelihood)
            scored.append((score, {"log_likelihood": likelihood.total, **details}))
        return level_unmatched(scored, [likelihood.matched for likelihood in likelihoods])
