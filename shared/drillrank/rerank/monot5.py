"""MonoT5: the language model is asked whether a passage is relevant, and answers "true" or "false".

score(p) = log [ P("true" | prompt) / (P("true" | prompt) + P("false" | prompt)) ]
prompt   = Query: {query} Document: {passage} Relevant:                           Nogueira et al. (2020), section 3

Prompt and score are those of the preset `"monot5"` of `Relevance`. What differs is how the answers are asked for: as
targets, so that they may be several tokens, and follow a decoder's prompt with a blank.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drillrank.errors import InvalidInput, check_limits
from drillrank.explanation import Explanation, Explanations
from drillrank.likelihood import LanguageModel, Likelihood, NextTokens, Request, load_language_model
from drillrank.passages import Passage, Ranked
from drillrank.rerank.answer_presets import ANSWER_PRESETS
from drillrank.rerank.base import PassageRanker, Scored
from drillrank.rerank.contributions import answered
from drillrank.rerank.relevance import prompt_of, score_of

_ASKED = ANSWER_PRESETS["monot5"]


class MonoT5(PassageRanker):
    """Ranks passages by the probability that the model calls them relevant: "true" against "false".

    Made for checkpoints that were fine-tuned to answer so, such as castorini/monot5-base-msmarco-10k; any model that
    follows a prompt's wording can be asked. A passage is its title, if it has one, and its text, joined by a blank.
    Where the prompt is too long the passage is shortened, never the query and never the last word, "Relevant:".

    Args:
        model: A language model that reads instructions, or its specification.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.

    Scores are natural logarithms of the probability of relevance: at most 0, higher is better, comparable across
    questions; `math.exp` gives the probability. An answer of several tokens counts as a whole word. `details` holds
    `log_true` and `log_false` (log-likelihoods of the two answers; where both are low, the model would rather say
    something else), `tokens` (1: the answer), `cut_tokens` (of the passage) and `position` (in the input).

    Raises:
        InvalidInput: the model reads no instructions, such as the unigram model, or the limit is below 1.

    >>> MonoT5("hf:castorini/monot5-base-msmarco-10k").rank("Which novel?", [])  # loaded for the first passage
    []
    >>> MonoT5("unigram")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: MonoT5 asks a question in words, which 'unigram' does not read: ...
    """

    def __init__(self, model: str | LanguageModel, *, max_passage_tokens: int | None = None) -> None:
        check_limits(max_passage_tokens=max_passage_tokens)
        self.language_model = load_language_model(model)
        self.max_passage_tokens = max_passage_tokens
        if not self.language_model.reads_instructions:
            raise InvalidInput(
                f"MonoT5 asks a question in words, which {self.language_model.spec!r} does not read: give a neural "
                'model, such as "hf:castorini/monot5-base-msmarco-10k".'
            )

    def _scored(self, queries: Sequence[str], lists: Sequence[Sequence[Passage]]) -> list[list[Scored]]:
        requests = [
            [
                Request(prompt_of(_ASKED, query, passage, self.max_passage_tokens), str(answer))
                for passage in passages
                for answer in (_ASKED.positive, _ASKED.negative)
            ]
            for query, passages in zip(queries, lists, strict=True)
        ]
        found = self.language_model.log_likelihood_lists(requests, include_eos=False)
        return [list(map(_relevance, answers[::2], answers[1::2])) for answers in found]

    def explain(self, query: str, ranking: Sequence[Ranked[Passage]]) -> Explanations:
        """P(true) and P(false) behind each score; of its own, `ranking.explain()` tells them. Nothing is asked anew."""
        return Explanations(map(_explained, ranking), query)


def _explained(item: Ranked[Passage]) -> Explanation:
    answers = ("true", item.details["log_true"], False), ("false", item.details["log_false"], False)
    return answered(item, answers, in_logs=True)


def _relevance(true: Likelihood, false: Likelihood) -> Scored:
    cut = max(true.cut_tokens, false.cut_tokens)
    score, details = score_of(_ASKED, NextTokens(np.array([true.total, false.total]), cut))
    told = {"log_true": details["positive"], "log_false": details["negative"]}
    return score, told | {name: details[name] for name in ("tokens", "cut_tokens")}
