"""Formulas of likelihood rankers: prompt, target, and the reduction of token log-probabilities to a score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from drillrank.errors import InvalidInput, check_limits, warn
from drillrank.likelihood import LanguageModel
from drillrank.prompts import fill_question
from drillrank.settings import check_one_of

Reduction = Literal["mean", "sum"]


@dataclass(frozen=True, slots=True)
class LikelihoodFormula:
    """Formula of a likelihood score: the texts that a language model reads, and how the score is computed.

    Attributes:
        template: Prompt around a passage (`{title}` and `{text}`), or around the documents of a path (`{path}`).
        target: Wording around the question, with `{question}`.
        question_mark: True to add a question mark to a question that ends without one.
        reduce: `"mean"` averages the log-probabilities of the target's tokens; `"sum"` adds them.
        include_eos: True to count the end-of-sequence token; None for True with encoder-decoder models only.
        max_prompt_tokens: Maximum number of tokens of the whole prompt, without special tokens. A longer prompt loses
            its end, even if that is the instruction. It replaces all other budgets. With None, only documents are
            truncated.
        max_target_tokens: Maximum number of tokens of the target, without special tokens. A longer target loses its
            end. A truncated text is tokenized again, so half a word may count one token more or less than in code
            that truncates tokens.
        counts_eos: True if the end-of-sequence token of an encoder's prompt counts towards `max_prompt_tokens`.

    Raises:
        InvalidInput: `target` does not contain `{question}`, `reduce` is unknown, or a number is below 1.

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
    counts_eos: bool = False

    def __post_init__(self) -> None:
        fill_question(self.target, "")  # refuses a malformed template now, not at the first question
        check_one_of(Reduction, reduce=self.reduce)
        check_limits(max_prompt_tokens=self.max_prompt_tokens, max_target_tokens=self.max_target_tokens)

    def target_text(self, question: str, model: LanguageModel) -> str:
        """Return the target for a question, truncated to its limit."""
        if self.question_mark and not question.endswith("?"):
            question += "?"
        text = question if self.target == "{question}" else fill_question(self.target, question)
        return text if self.max_target_tokens is None else model.first_tokens(text, self.max_target_tokens)

    def prompt_limit(self, model: LanguageModel, default: int | None) -> int | None:
        """Return the maximum number of tokens of a prompt; `default` applies if the formula has no limit."""
        limit = self.max_prompt_tokens or default
        return limit - model.include_eos_by_default if limit and self.counts_eos else limit


_ASK = "Please write a question based on this passage."
_UPR = LikelihoodFormula(
    f"Passage:  {{title}} {{text}}. {_ASK}",
    "Question: {question}",
    reduce="sum",
    max_prompt_tokens=511,  # 512 and 128 with T5's </s>
    max_target_tokens=127,
)

# Likelihood scores as other projects' code computes them, to 1e-4, including its truncation. Its faults are not copied:
# sums in half precision, a temperature applied twice, a missing title written "None", a question joined to a
# decoder-only model's prompt without a blank.
PRESETS: dict[str, LikelihoodFormula] = {
    # Sachan et al. (2022), upr.py; with its files of Natural Questions it sets question_mark=True.
    "upr": _UPR,
    # Rankify, models/upr.py; with decoder-only models it sets include_eos=True.
    "rankify": replace(_UPR, target="{question}"),
    # rerankers, models/upr.py: no title.
    "rerankers": replace(_UPR, target="{question}", template=f"Passage: {{text}}. {_ASK}"),
    # Sachan et al., equation 2, a mean as in the paper.
    "paper": LikelihoodFormula(f"Passage: {{title}} {{text}}. {_ASK}"),
    # Du et al., equation 4; there is no public code.
    "brmgr": LikelihoodFormula(f"passage: {{title}} {{text}}. {_ASK}"),
    # Khalifa et al. (2023), src/prompt_utils.py: two blanks follow the documents.
    "promptrank": LikelihoodFormula("{path} ", question_mark=True, counts_eos=True),
}


def preset_formula(preset: str | LikelihoodFormula, model: LanguageModel, placeholder: str) -> LikelihoodFormula:
    """Return the formula of a preset, or a formula unchanged.

    Args:
        preset: A key of `PRESETS`, or a formula.
        model: Language model that computes the likelihoods.
        placeholder: Placeholder that the ranker fills.

    Raises:
        InvalidInput: The preset is unknown, it belongs to another kind of ranker, or the model reads no instructions.

    >>> from drillrank import UPR
    >>> UPR("unigram", preset="upr")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: A preset needs a neural model, got 'unigram', which reads no instructions. ...
    """
    formula = PRESETS.get(preset) if isinstance(preset, str) else preset
    if not isinstance(formula, LikelihoodFormula):
        raise InvalidInput(f"preset must be one of {', '.join(PRESETS)} or a LikelihoodFormula, got {preset!r:.200}.")
    if not isinstance(formula.template, str) or formula.template.count(placeholder) != 1:
        raise InvalidInput(
            f"The template of this ranker must contain {placeholder} once, but the preset {preset!r:.200} is for "
            "another ranker. Use a preset of this one."
        )
    if not model.reads_instructions:
        raise InvalidInput(
            f"A preset needs a neural model, got {model.spec!r:.200}, which reads no instructions. Remove the preset "
            "or use another model."
        )
    return formula


def warn_unread(model: LanguageModel, setting: str) -> None:
    """Warn that a setting of the prompt has no effect with a model that reads documents only."""
    if not model.reads_instructions:
        warn(f"{setting} has no effect, because the model reads no instructions. Remove it or use a neural model.")
