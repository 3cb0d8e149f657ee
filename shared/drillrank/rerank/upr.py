"""UPR: unsupervised passage reranking by question likelihood.

score(p) = (1/|q|) Σ_t log p(q_t | q_<t, prompt(p))          Sachan et al. (2022); BRMGR, equations 3 and 4
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drillrank.errors import InvalidInput, check_positive
from drillrank.likelihood import LanguageModel, Likelihood, load_language_model
from drillrank.passages import Passage
from drillrank.prompts import UPR_PROMPT, PassageTemplate
from drillrank.rerank.base import PassageRanker, Scored
from drillrank.rerank.parity import LikelihoodFormula, preset_formula
from drillrank.rerank.unmatched import levelled


class UPR(PassageRanker):
    """Ranks passages by the mean log-likelihood of the question, given the passage.

    Args:
        lm: A language model, or its specification.
        template: Prompt with `{text}` and, if wanted, `{title}` before it.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        preset: Score as published code does: `"upr"`, `"rankify"` or `"rerankers"`, which sum over the question's
            tokens, or `"brmgr"`; see `drillrank.rerank.parity`. A preset brings its own template and limits.

    Scores are natural log-probabilities per question token: at most 0, higher is better, comparable within one
    question only. `details` holds `log_likelihood` (the sum), `tokens` (of the question), `reduce` (`"mean"`, or
    `"sum"` with a preset that adds up), `cut_tokens` (of the passage), `position` (in the input) and
    `nothing_matched` (with a model that counts words: no passage holds a word of the question; then the input order
    stands). `log_likelihood` is exact always; the score is that of the least likely passage where a passage holds no
    word of the question, since its length alone says nothing.

    Raises:
        InvalidInput: the template is malformed, or a preset is given beside what it brings or to the unigram model.

    >>> ranking = UPR().rank("Who wrote Emma?", ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."])
    >>> ranking[0].passage.text
    'Emma is a novel that Jane Austen wrote.'
    """

    def __init__(
        self,
        lm: str | LanguageModel = "unigram",
        *,
        template: str = UPR_PROMPT,
        max_passage_tokens: int | None = None,
        preset: str | LikelihoodFormula | None = None,
    ) -> None:
        if max_passage_tokens is not None:
            check_positive(max_passage_tokens=max_passage_tokens)
        self.lm = load_language_model(lm)
        self._formula = LikelihoodFormula(template)
        if preset is not None:
            if template != UPR_PROMPT or max_passage_tokens is not None:
                raise InvalidInput("A preset brings its own template and limits: leave them out, or the preset.")
            self._formula = preset_formula(preset, self.lm, "{text}")
        self._template = PassageTemplate.parse(self._formula.template)
        self._max_passage_tokens = max_passage_tokens

    def _scored(self, queries: Sequence[str], lists: Sequence[Sequence[Passage]]) -> list[list[Scored]]:
        formula = self._formula
        requests = []
        for query, passages in zip(queries, lists, strict=True):
            target = formula.target_text(query, self.lm) if passages else query  # for no passage, load no model
            prompts = [self._template.fill(passage, self._max_passage_tokens) for passage in passages]
            requests.append([formula.request(prompt, target) for prompt in prompts])
        found = self.lm.log_likelihood_lists(requests, include_eos=formula.include_eos)
        return [
            levelled([(formula.score(item), self._details(item)) for item in items], [item.matched for item in items])
            for items in found
        ]

    def _details(self, item: Likelihood) -> dict[str, Any]:
        return {
            "log_likelihood": item.total,
            "tokens": len(item.tokens),
            "reduce": self._formula.reduce,
            "cut_tokens": item.cut_tokens,
        }
