"""How much of what an LLM wrote a retrieved passage supports, by likelihood.

                        log p(lp | rp_j, q) - log p(lp | q)
    support(lp) = max_j -----------------------------------
                        log p(lp | lp, q)   - log p(lp | q)

Below the line is what the generated passage says beyond the question, above it how much of that a retrieved passage
explains: 1 where it explains as much as the generated passage itself would, 0 where it explains no more than the
question. The measure has no unit and no free constant, and it asks for one passage that supports the whole: a sentence
whose halves come from two passages is supported by neither.
"""

from __future__ import annotations

from collections.abc import Sequence

from drillrank.likelihood import LanguageModel, Request
from drillrank.passages import Passage
from drillrank.prompts import generated_prompt

# The unigram model on train questions of HotpotQA and MuSiQue: 0.9 keeps 99 % of the true sentences that a retrieved
# passage holds, 13 % of the same sentences with another answer put in, and one of 546 sentences about something else.
SUPPORTED = 0.9


def support(
    model: LanguageModel,
    template: str,
    query: str,
    retrieved: Sequence[Passage],
    targets: Sequence[str],
    max_passage_tokens: int | None = None,
) -> list[float]:
    """Support of each target, the text of a generated passage, at most 1; 0 if it adds nothing to the question.

    Args:
        model: A language model.
        template: Prompt for a generated passage, with `{question}`.
        query: The question.
        retrieved: Passages that may support.
        targets: Texts that are not blank.
        max_passage_tokens: Tokens that a passage may keep in a prompt.

    >>> from drillrank import load_language_model
    >>> texts = ["Emma was written by Jane Austen.", "Emma was written in Zanzibar."]
    >>> found = [Passage("Emma is a novel written by Jane Austen.")]
    >>> true, false = support(load_language_model(), "{question}", "Who wrote Emma?", found, texts)
    >>> true > 0.9 > false
    True
    """

    def mean(target: str, *passages: Passage) -> Request:
        return Request(generated_prompt(template, query, passages, max_passage_tokens), target)

    likelihoods = iter(
        model.log_likelihood(
            request
            for target in targets
            for request in (mean(target), mean(target, Passage(target)), *(mean(target, rp) for rp in retrieved))
        )
    )
    supports = []
    for _ in targets:
        alone, itself = next(likelihoods).mean, next(likelihoods).mean
        explained = max((next(likelihoods).mean - alone for _ in retrieved), default=0.0)
        new = itself - alone
        supports.append(min(explained / new, 1.0) if new > 0 else 0.0)
    return supports
