"""UPR: unsupervised passage reranking by question likelihood.

score(p) = (1/|q|) Σ_t log p(q_t | q_<t, prompt(p))          Sachan et al. (2022); BRMGR, equations 3 and 4
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Literal, TypeGuard

from drillrank.errors import InvalidInput, check_limits, check_number
from drillrank.explanation import Explanations
from drillrank.likelihood import LanguageModel, Likelihood, PrefixEstimate, Request, SumOfExperts, load_language_model
from drillrank.passages import Passage, Ranked, as_passages, read_query
from drillrank.progress import OnProgress
from drillrank.prompts import Prompt, TruncatableText, TrustedText, prompt_text
from drillrank.rerank.base import Candidates, CandidateScores, LikelihoodRanker
from drillrank.rerank.formula import LikelihoodFormula, preset_formula, warn_unread
from drillrank.rerank.prior import Prior, check_prior
from drillrank.rerank.two_stages import TwoStageRanker

if TYPE_CHECKING:
    from typing_extensions import Self

# Sachan et al. (2022), as BRMGR (Du et al.) section II uses it for retrieved passages.
UPR_PROMPT = "Passage: {title} {text}. Please write a question based on this passage."
READ = 10  # passages that a sum with a neural expert reads


def split_template(template: str) -> tuple[TrustedText, str | None, TrustedText]:
    """Split a template into the text before a passage, the separator of title and text, and the text after it.

    The separator is None if the template has no title.

    Raises:
        InvalidInput: There is no `{text}`, a placeholder is unknown or repeated, or the title follows the text.

    >>> split_template("Passage: {title} {text}. Ask a question.")
    ('Passage: ', ' ', '. Ask a question.')
    """
    names = re.findall(r"\{(\w*)\}", template) if isinstance(template, str) else []
    if names not in (["text"], ["title", "text"]):
        raise InvalidInput(
            "The template of a passage must contain {text} once, and optionally {title} once before it, got "
            f"{template!r:.200}."
        )
    *before_text, text, after = re.split(r"\{\w+\}", template)
    return TrustedText(before_text[0] if before_text else text), text if before_text else None, TrustedText(after)


class UPR(LikelihoodRanker[Passage | str, Passage]):
    """Ranks passages by the mean log-likelihood of the question, given the passage.

    Args:
        model: A language model, or its specification.
        template: Prompt with `{text}`, and optionally `{title}` before it.
        max_passage_tokens: Maximum number of tokens of a passage; None means the model's own limit.
        prior: Prior probability of a passage from the `scores` of the first stage (see `drillrank.rerank.prior`).
            `"retrieval"` uses the ranks by scores of any kind. `"cosine"` reads the scores as cosines of a sentence
            encoder. None is uniform, as in the paper. Without scores the prior is uniform, too.
        prior_weight: Factor of the prior's log-probabilities, up to a constant.
        read: With a sum of experts, such as `"unigram+hf:..."`, number of passages that the whole sum reads (see
            `drillrank.rerank.two_stages`). The first expert ranks all. `"all"` means no limit. None is 10 if the first
            expert counts words and another one is neural, and all otherwise. A preset reads all.
        preset: Formula of published code: `"upr"`, `"rankify"` or `"rerankers"`, which sum over the tokens of the
            question; `"brmgr"` and `"paper"`, which average (see `drillrank.rerank.formula`). A preset includes its
            template and limits, and a named one has no prior.

    Scores are natural log-probabilities per question token: at most 0, higher is better, comparable within one
    question only. `details` contains `log_likelihood` (the sum), `tokens` (of the question), `reduce` (`"mean"`, or
    `"sum"` with a preset that adds up), `cut_tokens` (of the passage), `position` (in the input) and
    `nothing_matched` (with a model that counts words: no passage contains a word of the question; then the input order
    is kept). `log_likelihood` is always exact. A passage without a word of the question gets the score of the least
    likely passage, since its length alone is not evidence. With scores of a first stage `details` also contains
    `log_prior`, with an `st:` model `log_meaning`, the part of its token of meaning, and if not all passages are read
    `read`. A passage that was not read has the score of the first expert, lowered by as much as the last one that was
    read.

    Raises:
        InvalidInput: The template is malformed, a limit is below 1, the prior is unknown, a preset is combined with
            what it includes or with the unigram model, or `read` is used with a model that is not a sum.

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
        title_separator = split_template(template)[1]
        check_limits(max_passage_tokens=max_passage_tokens, read=None if read == "all" else read)
        check_number(prior_weight=prior_weight)
        if preset is not None and (template != UPR_PROMPT or max_passage_tokens is not None):
            raise InvalidInput("A preset includes its template and limits. Remove template and max_passage_tokens.")
        self.language_model = lm = load_language_model(model)
        self.template, self.max_passage_tokens = template, max_passage_tokens
        self.prior = None if isinstance(preset, str) else check_prior(prior)
        self.prior_weight = prior_weight
        self.read, self.preset = read, preset
        if isinstance(read, int) and not _is_sum(lm):
            raise InvalidInput(f"read={read} requires a sum of experts, such as unigram+hf:..., got {lm.spec!r:.200}.")
        self._formula = LikelihoodFormula(template) if preset is None else preset_formula(preset, lm, "{text}")
        if template != UPR_PROMPT and title_separator == " ":
            warn_unread(lm, "template")
        self._template_parts = split_template(self._formula.template)
        self._two_stages = self._build_two_stages()

    def score(self, candidate_lists: Sequence[Candidates[Passage]], /) -> list[CandidateScores]:
        """Score passages by the likelihood of the question, in two stages if the sum does not read all of them."""
        if self._two_stages is not None:
            return self._two_stages.score(candidate_lists)
        return super().score(candidate_lists)

    def explain(
        self, query: str, ranking: Sequence[Ranked[Passage]], candidates: Iterable[Passage | str] | None = None
    ) -> Explanations:
        """Explain what each token of the question adds to the scores of a ranking, as `LikelihoodRanker.explain`."""
        if self._two_stages is not None:
            return self._two_stages.explain(query, ranking, candidates)
        return super().explain(query, ranking, candidates)

    def likelihoods(self, query: str, passages: Iterable[Passage | str]) -> list[Likelihood]:
        """Return the log-probabilities of the question's tokens given each passage, from which scores are computed.

        Raises:
            InvalidInput: The query is blank, or an item is not a passage.

        >>> [likelihood] = UPR().likelihoods("Where is Basel?", ["Basel lies on the Rhine."])
        >>> likelihood.tokens
        ['where', 'is', 'basel']
        """
        [likelihoods] = self._likelihoods([Candidates(read_query(query), as_passages(passages))])
        return [likelihood for [likelihood] in likelihoods]

    def with_model(self, model: LanguageModel) -> Self:
        """Return a copy with another language model."""
        ranker = super().with_model(model)
        ranker._two_stages = ranker._build_two_stages()
        return ranker

    def _build_two_stages(self) -> TwoStageRanker[Passage | str, Passage] | None:
        """Return the ranker in two stages; None if the model reads all passages."""
        model = self.language_model
        if self.preset is not None or self.read == "all" or not _is_sum(model):
            return None
        first_expert = model.experts[0]
        if self.read is None and (first_expert.is_neural or not model.is_neural):
            return None
        whole_sum = copy(self)
        whole_sum.read, whole_sum._two_stages = "all", None
        return TwoStageRanker(whole_sum.with_model(first_expert), whole_sum, self.read or READ)

    def estimate_precompute(self, passages: Iterable[Passage | str]) -> PrefixEstimate:
        """Estimate the bytes that `precompute` keeps and the time that it takes.

        One batch of prefixes is computed to measure the time.

        Raises:
            LacksCapability: The model has no prefix cache.
            InvalidInput: An item is not a passage.
        """
        return self.language_model.estimate_prefixes(self._prefix_requests(passages))

    def precompute(self, passages: Iterable[Passage | str], on_progress: OnProgress | None = None) -> PrefixEstimate:
        """Compute passages before there is a question, so that `rank` computes the question's tokens only.

        Args:
            passages: The passages.
            on_progress: Callback that receives the number of passages done and of all passages.

        Returns:
            Size of what the prefix cache keeps of the passages, and the time that it took.

        Raises:
            LacksCapability: The model has no prefix cache, which is an option of Hugging Face models.
            InvalidInput: An item is not a passage, or the passages do not fit into the prefix cache.
        """
        return self.language_model.keep_prefixes(self._prefix_requests(passages), on_progress)

    def _prefix_requests(self, passages: Iterable[Passage | str]) -> list[Request]:
        """Return the prompts of passages, without a question."""
        prompts = [prompt for passage in as_passages(passages) for prompt in self._prompts_of(passage)]
        limit = self._formula.prompt_limit(self.language_model, None)
        if limit is not None:
            prompts = [(TruncatableText(prompt_text(prompt)),) for prompt in prompts]
        return [Request(prompt, "", limit) for prompt in prompts]

    def _prompts_of(self, item: Passage, /) -> list[Prompt]:
        before, separator, after = self._template_parts
        has_title = separator is not None and item.title
        text = f"{item.title}{separator}{item.text}" if has_title else item.text
        return [(before, TruncatableText(text, self.max_passage_tokens), after)]


def _is_sum(model: LanguageModel) -> TypeGuard[SumOfExperts]:
    return isinstance(model, SumOfExperts) and len(model.experts) > 1
