"""UPR: unsupervised passage reranking by question likelihood.

score(p) = (1/|q|) Σ_t log p(q_t | q_<t, prompt(p))          Sachan et al. (2022); BRMGR, equations 3 and 4
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from drillrank.errors import InvalidInput, check_limits, check_number
from drillrank.likelihood import LanguageModel, Likelihood, PrefixEstimate, Request, SumOfExperts, load_language_model
from drillrank.passages import Passage, as_passages, read_query
from drillrank.progress import OnProgress
from drillrank.prompts import Prompt, TruncatableText, TrustedText, prompt_text
from drillrank.rerank.base import (
    LikelihoodFormula,
    LikelihoodRanker,
    first_expert,
    preset_formula,
    warn_unread,
)
from drillrank.rerank.prior import Prior, check_prior

# Sachan et al. (2022), as BRMGR (Du et al.) section II uses it for retrieved passages.
UPR_PROMPT = "Passage: {title} {text}. Please write a question based on this passage."
READ = 10  # passages that a sum with a neural expert reads


def split_template(template: str) -> tuple[TrustedText, str | None, TrustedText]:
    """Wording before a passage, what joins title and text, and wording behind; None where there is no title.

    Raises:
        InvalidInput: there is no `{text}`, a placeholder is unknown or repeated, or the title follows the text.

    >>> split_template("Passage: {title} {text}. Ask a question.")
    ('Passage: ', ' ', '. Ask a question.')
    """
    names = re.findall(r"\{(\w*)\}", template) if isinstance(template, str) else []
    if names not in (["text"], ["title", "text"]):
        raise InvalidInput(
            f"A passage template holds {{text}} once, and before it, if wanted, {{title}} once; not {template!r:.200}."
        )
    *title, text, after = re.split(r"\{\w+\}", template)
    return TrustedText(title[0] if title else text), text if title else None, TrustedText(after)


class UPR(LikelihoodRanker[Passage | str, Passage]):
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

    _candidates = staticmethod(as_passages)

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
        self._pieces = split_template(template)
        check_limits(max_passage_tokens=max_passage_tokens, read=None if read == "all" else read)
        check_number(prior_weight=prior_weight)
        if preset is not None and (template != UPR_PROMPT or max_passage_tokens is not None):
            raise InvalidInput("A preset brings its own template and limits: leave them out, or the preset.")
        self.language_model = lm = load_language_model(model)
        self.template, self.max_passage_tokens = template, max_passage_tokens
        self.prior = None if isinstance(preset, str) else check_prior(prior)
        self.prior_weight = prior_weight
        self.read, self.preset = read, preset
        if isinstance(read, int) and not (isinstance(lm, SumOfExperts) and len(lm.experts) > 1):
            raise InvalidInput(f"read={read} is for a sum of experts, such as unigram+hf:...")
        if preset is None and read != "all":
            words_first = lm.reads_instructions and not first_expert(lm).reads_instructions
            self._read = READ if read is None and words_first else read
        self._formula = LikelihoodFormula(template) if preset is None else preset_formula(preset, lm, "{text}")
        if template != UPR_PROMPT and self._pieces[1] == " ":
            warn_unread(lm, "template")
        self._pieces = split_template(self._formula.template)

    def likelihoods(self, query: str, passages: Iterable[Passage | str]) -> list[Likelihood]:
        """Log-probabilities of the question's tokens after each passage, in order: what the scores are made of.

        Raises:
            InvalidInput: the query is blank, or an item is not a passage.

        >>> [likelihood] = UPR().likelihoods("Where is Basel?", ["Basel lies on the Rhine."])
        >>> likelihood.tokens
        ['where', 'is', 'basel']
        """
        [found] = self._answers([read_query(query)], [as_passages(passages)], model=self.language_model)
        return [likelihood for [likelihood] in found]

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
        limit = self._formula.max_prompt_tokens
        if limit is not None and prompts:
            prompts = [(TruncatableText(prompt_text(prompt)),) for prompt in prompts]
            limit -= self._formula.counts_eos and self.language_model.include_eos_by_default
        return [Request(prompt, "", limit) for prompt in prompts]

    def _prompts_of(self, passage: Passage) -> list[Prompt]:
        """A passage without a title leaves the separator out."""
        before, separator, after = self._pieces
        titled = separator is not None and passage.title
        text = f"{passage.title}{separator}{passage.text}" if titled else passage.text
        return [(before, TruncatableText(text, self.max_passage_tokens), after)]
