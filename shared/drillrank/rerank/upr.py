"""UPR: unsupervised passage reranking by question likelihood.

score(p) = (1/|q|) Σ_t log p(q_t | q_<t, prompt(p))          Sachan et al. (2022); BRMGR, equations 3 and 4
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from drillrank.errors import InvalidInput, check_limits
from drillrank.explanation import Explainable, Explanations, Term
from drillrank.likelihood import LanguageModel, Likelihood, Request, load_language_model
from drillrank.likelihood.mixture import SumOfExperts
from drillrank.passages import Passage, Ranked, Ranking, as_passages, check_query, check_top_n, ranked
from drillrank.prompts import Evidence, Prompt, Wording
from drillrank.rerank.base import (
    LikelihoodFormula,
    Ranker,
    RetrievalScores,
    Scored,
    check_pairs,
    divisor,
    level_unmatched,
    likelihood_explained,
    preset_formula,
    warn_unread,
)
from drillrank.rerank.prior import (
    FirstStage,
    Prior,
    check_prior,
    check_prior_weight,
    first_stage,
    posteriors,
    scores_by_question,
)

# Sachan et al. (2022), as BRMGR (Du et al.) section II uses it for retrieved passages.
UPR_PROMPT = "Passage: {title} {text}. Please write a question based on this passage."
READ = 10  # passages that a sum with a neural expert reads
UNREAD = "not read: below the last that was"


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
        read: With a sum of experts, such as `"unigram+hf:..."`, how many passages the whole sum reads: the first expert
            ranks all, and the unread keep its order below the last one that was read. `"all"` for no such limit; None
            is 10 where the first expert counts words and another one is neural, and all otherwise. A preset reads all.
        preset: Score as published code does: `"upr"`, `"rankify"` or `"rerankers"`, which sum over the tokens of the
            question; `"brmgr"` and `"paper"`, which average (see `drillrank.rerank.base`). A preset brings its own
            template and limits, and one that is named has no prior.

    Scores are natural log-probabilities per question token: at most 0, higher is better, comparable within one
    question only. `details` holds `log_likelihood` (the sum), `tokens` (of the question), `reduce` (`"mean"`, or
    `"sum"` with a preset that adds up), `cut_tokens` (of the passage), `position` (in the input) and
    `nothing_matched` (with a model that counts words: no passage holds a word of the question; then the input order
    stands). `log_likelihood` is exact always; the score is that of the least likely passage where a passage holds no
    word of the question, since its length alone says nothing. With scores of a first stage `details` holds
    `log_prior`, too, with an `st:` model `log_meaning`, the share of its token of meaning, and where not all are read
    `read`; what was not read has the score of the first expert, lowered by as much as the last one that was.

    Raises:
        InvalidInput: the template is malformed, a limit is below 1, the prior is unknown, a preset is given beside
            what it brings or to the unigram model, or `read` is given with a model that is no sum.

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
        read: int | Literal["all"] | None = None,
        preset: str | LikelihoodFormula | None = None,
    ) -> None:
        parsed = PassageTemplate.parse(template)
        check_limits(max_passage_tokens=max_passage_tokens, read=None if read == "all" else read)
        check_prior_weight(prior_weight)
        if preset is not None and (template != UPR_PROMPT or max_passage_tokens is not None):
            raise InvalidInput("A preset brings its own template and limits: leave them out, or the preset.")
        self.language_model = load_language_model(model)
        self.template = template
        self.max_passage_tokens = max_passage_tokens
        self.prior = None if isinstance(preset, str) else check_prior(prior)
        self.prior_weight = prior_weight
        self.read = read
        self.preset = preset
        experts = self.language_model.experts if isinstance(self.language_model, SumOfExperts) else ()
        if isinstance(read, int) and len(experts) < 2:
            raise InvalidInput(f"read={read} is for a sum of experts, such as unigram+hf:...")
        by_default = (
            READ if experts and not experts[0].reads_instructions and self.language_model.reads_instructions else None
        )
        self._read = (by_default if read is None else read) if read != "all" and preset is None else None
        self._formula = (
            LikelihoodFormula(template) if preset is None else preset_formula(preset, self.language_model, "{text}")
        )
        self._template = PassageTemplate.parse(self._formula.template)
        if template != UPR_PROMPT and parsed.separator == " ":
            warn_unread(self.language_model, "template")

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
        if self._read is None:
            found = self._likelihoods(queries, lists)
            scored_lists = list(map(self._scored, found, stages))
        else:
            found = self._two_stages(queries, lists, stages)
            scored_lists = list(map(self._scored_in_two_stages, found, stages))
        rankings = []
        for query, passages, likelihoods, scored in zip(queries, lists, found, scored_lists, strict=True):
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
        places = range(len(passages)) if candidates is None else [item.details["position"] for item in ranking]
        requests = self._requests(check_query(query), passages)
        model = self._fitted(requests)
        likelihoods: dict[int, Likelihood] = {}
        for read in (True, False):
            some = [
                place for item, place in zip(ranking, places, strict=True) if item.details.get("read", True) == read
            ]
            asked = model if read else _first_expert(model)
            found = asked.log_likelihood([requests[place] for place in some], include_eos=self._formula.include_eos)
            likelihoods |= zip(some, found, strict=True)
        return self._explained(query, passages, likelihoods, ranking, places)

    def _explained(
        self,
        query: str,
        passages: Sequence[Passage],
        likelihoods: Sequence[Likelihood] | Mapping[int, Likelihood],
        ranking: Sequence[Ranked[Passage]],
        places: Sequence[int] | None = None,
    ) -> Explanations:
        """Of a ranking of these passages, from the likelihoods that its scores were made of."""
        if not ranking:
            return Explanations(question=query)
        *requests, empty = self._requests(query, [*passages, Passage("")])
        [nothing] = self._fitted(requests).log_likelihood([empty], include_eos=self._formula.include_eos)
        entries = []
        for item, place in zip(ranking, places or [item.details["position"] for item in ranking], strict=True):
            model, likelihood, after_nothing, parts = self.language_model, likelihoods[place], nothing, []
            if not item.details.get("read", True):
                model, after_nothing = _first_expert(model), nothing.parts[0]
                score, _ = self._formula.scored(likelihood)
                per = divisor(item.details)
                parts = [Term(UNREAD, (item.score - score) * per - item.details.get("log_prior", 0.0))]
            entries.append(likelihood_explained(item, likelihood, after_nothing, model=model, parts=parts))
        return Explanations(entries, query)

    def _two_stages(
        self, queries: Sequence[str], lists: Sequence[Sequence[Passage]], stages: Sequence[FirstStage | None]
    ) -> list[list[Likelihood]]:
        """By the whole sum of the passages that the first expert finds best, by the first expert of the others."""
        request_lists = [self._requests(*pair) for pair in zip(queries, lists, strict=True)]
        if self.language_model.wants_fit and len(lists) != 1:  # each list is a collection of its own
            each = zip(queries, lists, stages, strict=True)
            return [self._two_stages([query], [some], [stage])[0] for query, some, stage in each]
        model = self._fitted(request_lists[0]) if len(lists) == 1 else self.language_model
        found = _first_expert(model).log_likelihood_lists(request_lists)
        chosen = []
        for likelihoods, stage in zip(found, stages, strict=True):
            scores = [score for score, _ in self._scored(likelihoods, stage)]
            order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
            chosen.append(sorted(order[: self._read]))
        some = [[requests[at] for at in best] for requests, best in zip(request_lists, chosen, strict=True)]
        for likelihoods, best, read in zip(found, chosen, model.log_likelihood_lists(some), strict=True):
            for at, likelihood in zip(best, read, strict=True):
                likelihoods[at] = likelihood
        return found

    def _likelihoods(self, queries: Sequence[str], lists: Sequence[Sequence[Passage]]) -> list[list[Likelihood]]:
        requests = [self._requests(query, passages) for query, passages in zip(queries, lists, strict=True)]
        return self.language_model.log_likelihood_lists(requests, include_eos=self._formula.include_eos)

    def _requests(self, query: str, passages: Sequence[Passage]) -> list[Request]:
        if not passages:  # load no model
            return []
        target = self._formula.target_text(query, self.language_model)
        prompts = [self._template.fill(passage, self.max_passage_tokens) for passage in passages]
        return [self._formula.request(prompt, target) for prompt in prompts]

    def _fitted(self, requests: Sequence[Request]) -> LanguageModel:
        """The model as it answers all of these requests together: their documents are a collection."""
        documents = (part.text for request in requests for part in request.prompt if isinstance(part, Evidence))
        return self.language_model.fitted(documents)

    def _scored(self, likelihoods: Sequence[Likelihood], stage: FirstStage | None) -> list[Scored]:
        scored = []
        for likelihood in likelihoods:
            score, details = self._formula.scored(likelihood)
            scored.append((score, {"log_likelihood": likelihood.total, **details}))
        scored = level_unmatched(scored, [likelihood.matched for likelihood in likelihoods])
        return scored if stage is None else posteriors(scored, stage)

    def _scored_in_two_stages(self, likelihoods: Sequence[Likelihood], stage: FirstStage | None) -> list[Scored]:
        """What was not read, and has no parts, comes after all that was: with the first expert's distances."""
        scored = self._scored([(*item.parts, item)[0] for item in likelihoods], stage)
        read = [at for at, likelihood in enumerate(likelihoods) if likelihood.parts]
        lowest = min((scored[at][0] for at in read), default=0.0)
        for at, (score, details) in zip(read, self._scored([likelihoods[at] for at in read], None), strict=True):
            known = {name: value for name, value in scored[at][1].items() if name == "log_prior"}
            scored[at] = (score + sum(known.values()) / divisor(details), {**details, **known, "read": True})
        last = min((scored[at][0] for at in read), default=0.0)
        for at in set(range(len(scored))) - set(read):
            score, details = scored[at]
            below = min(score + last - lowest, math.nextafter(last, -math.inf))
            scored[at] = (below, {**details, "nothing_matched": False, "read": False})
        return scored


def _first_expert(model: LanguageModel) -> LanguageModel:
    return model.experts[0] if isinstance(model, SumOfExperts) else model
