"""Presets: likelihood scores as other projects' code computes them, for comparing numbers with theirs.

By default the rankers follow the papers: a mean per token, and documents give way to a budget, never the instruction
or the question. The papers' code, and code built on it, differs in wording, in what it adds up and in what it cuts. A
preset follows such code to 1e-4, its cuts included; not its faults: sums in half precision, a temperature applied
twice, a missing title written "None", a question glued to a decoder-only model's prompt without a blank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from drillrank.errors import InvalidInput, check_positive
from drillrank.likelihood import LanguageModel, Likelihood, Request
from drillrank.prompts import Evidence, Prompt, fill_question, prompt_text

Reduction = Literal["mean", "sum"]


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
        limits = {"max_prompt_tokens": self.max_prompt_tokens, "max_target_tokens": self.max_target_tokens}
        check_positive(**{name: limit for name, limit in limits.items() if limit is not None})

    def target_text(self, question: str, model: LanguageModel) -> str:
        """The target for a question, shortened to its limit."""
        if self.question_mark and not question.endswith("?"):
            question += "?"
        text = fill_question(self.target, question)
        return text if self.max_target_tokens is None else model.first_tokens(text, self.max_target_tokens)

    def request(self, prompt: Prompt, target: str, max_tokens: int | None = None) -> Request:
        """The request for a prompt; `max_tokens` is its budget unless the formula has its own."""
        if self.max_prompt_tokens is None:
            return Request(prompt, target, max_tokens)
        return Request((Evidence(prompt_text(prompt)),), target, self.max_prompt_tokens)

    def score(self, likelihood: Likelihood) -> float:
        """The score of a target."""
        return likelihood.mean if self.reduce == "mean" else likelihood.total


_ASK = "Please write a question based on this passage."
_UPR = LikelihoodFormula(
    f"Passage:  {{title}} {{text}}. {_ASK}",
    "Question: {question}",
    reduce="sum",
    max_prompt_tokens=511,  # 512 and 128 with T5's </s>
    max_target_tokens=127,
)

PRESETS: dict[str, LikelihoodFormula] = {
    # Sachan et al. (2022), upr.py; with its files of Natural Questions it sets question_mark=True.
    "upr": _UPR,
    # Rankify, models/upr.py; with decoder-only models it sets include_eos=True.
    "rankify": replace(_UPR, target="{question}"),
    # rerankers, models/upr.py: no title.
    "rerankers": replace(_UPR, target="{question}", template=f"Passage: {{text}}. {_ASK}"),
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
        raise InvalidInput(f"A preset is one of {', '.join(PRESETS)}, or a LikelihoodFormula; not {preset!r}.")
    if not isinstance(formula.template, str) or formula.template.count(placeholder) != 1:
        raise InvalidInput(f"This ranker's template holds {placeholder} exactly once; {preset!r} is for another one.")
    if not model.reads_instructions:
        raise InvalidInput(
            f"A preset follows code for neural models, and {model.spec!r} does not read its wording: leave the preset "
            "out."
        )
    return formula
