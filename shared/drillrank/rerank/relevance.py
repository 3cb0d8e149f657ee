"""Relevance: the language model is asked whether a passage is relevant, and how probable its "yes" is counts.

With l+ and l- the logits of the two answers behind the prompt, the score is

    softmax   log [ e^l+ / (e^l+ + e^l-) ]      the logarithm of P(relevant)
    margin    scale (l+ - l-) + shift           its log-odds
    logit     scale l+ + shift                  one raw logit, for models that were trained so
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from drillrank.errors import DrillrankWarning, InvalidInput, check_limits
from drillrank.explanation import Explanation, Explanations
from drillrank.likelihood import LanguageModel, NextTokenRequest, NextTokens, load_language_model
from drillrank.passages import Passage, Ranked
from drillrank.prompts import Evidence, Prompt, Wording
from drillrank.rerank.answer_presets import AnswerPreset, Transform, answer_preset
from drillrank.rerank.base import PassageRanker, Scored
from drillrank.rerank.contributions import answered
from drillrank.rerank.scale import log_sigmoid
from drillrank.settings import as_settings, check_one_of

if TYPE_CHECKING:
    from typing_extensions import Self

_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class RelevanceSettings:
    """What counts as the model's answer. What is None is as the preset has it.

    Attributes:
        positive: The token that calls a passage relevant: its text, its name in the vocabulary, or its id. None takes
            what the checkpoint names in `1_LogitScore/config.json`, and if it names nothing the preset's.
        negative: The token that does not; found as `positive` is.
        transform: What the score is: `"softmax"`, the logarithm of P(relevant), at most 0; `"margin"`, the difference
            of the two logits; `"logit"`, the raw logit of `positive`.
        scale: Factor of the margin or the logit.
        shift: Added to the margin or the logit behind that.
        chat: Whether the prompt is put into the model's own chat template, as the user's turn.

    Raises:
        InvalidInput: an answer or a number cannot be used.
    """

    positive: str | int | None = None
    negative: str | int | None = None
    transform: Transform | None = None
    scale: float | None = None
    shift: float | None = None
    chat: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.chat, bool | None):
            raise InvalidInput(f"chat is a bool, not {self.chat!r:.200}.")
        for name, answer in (("positive", self.positive), ("negative", self.negative)):
            if answer is not None and not _is_answer(answer):
                raise InvalidInput(f"{name} is a token's text or its id, not {answer!r:.200}.")
        if self.transform is not None:
            check_one_of(Transform, transform=self.transform)
        for name, number in (("scale", self.scale), ("shift", self.shift)):
            if number is not None and not (isinstance(number, int | float) and math.isfinite(number)):
                raise InvalidInput(f"{name} is a finite number, not {number!r:.200}.")
        if self.scale is not None and self.scale <= 0:
            raise InvalidInput(f"scale is above 0, or the order would turn around; not {self.scale!r}.")

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Settings by name, as JSON has them.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.
        """
        return as_settings(cls, given)


class Relevance(PassageRanker):
    """Ranks passages by the probability with which the model calls them relevant.

    Args:
        model: A language model that tells the probabilities of its next token, or its specification.
        preset: How published models are asked: `"monot5"`, `"qwen3-reranker"`, `"mxbai-rerank-v2"`,
            `"bge-reranker-v2-gemma"`, `"zerank-1-small"`, `"zerank-2"`, `"ctxl-rerank-v2"`; `"yes-no"` asks any model
            that was tuned to follow instructions.
        template: Prompt with `{query}`, `{text}` and, if wanted, `{instruction}`; None is the preset's. Control tokens
            in it, such as `<|im_start|>`, are such; in query and passage they are text.
        instruction: What the model is told of the task, where the prompt has a place for it; None is the preset's.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        settings: What counts as the model's answer.

    A passage is its title, if it has one, and its text, joined by a blank. Where the prompt is too long the passage is
    shortened, and nothing else.

    Scores are those of the transform: with `"softmax"` natural logarithms of P(relevant), at most 0; with the others
    log-odds. Higher is better, and scores of one model and one instruction may be compared across questions. `details`
    holds `log_odds` (whose sigmoid is P(relevant)), `positive` and `negative` (log-probabilities of the two answers,
    or `logit`, the raw logit of the one that counts), `bounded` (answers of which a server said only that they are
    improbable: their value is a bound), `tokens` (1: the answer), `cut_tokens` (of the passage) and `position` (in the
    input).

    Raises:
        LacksCapability: the model does not tell the probabilities of its next token, as the unigram model.
        InvalidInput: a setting cannot be used, or an answer is not one token of the model.

    >>> Relevance("hf:Qwen/Qwen3-Reranker-0.6B", preset="qwen3-reranker").rank("Which novel?", [])  # loaded when needed
    []
    >>> Relevance("unigram")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.LacksCapability: 'unigram' tells no probabilities of the next token: ...
    """

    def __init__(
        self,
        model: str | LanguageModel,
        *,
        preset: str = "yes-no",
        template: str | None = None,
        instruction: str | None = None,
        max_passage_tokens: int | None = None,
        settings: RelevanceSettings | Mapping[str, Any] = RelevanceSettings(),
    ) -> None:
        of_preset = answer_preset(preset)
        if template is not None:
            _check_template(template)
        if not isinstance(instruction, str | None):
            raise InvalidInput(f"instruction is a str, not {instruction!r:.200}.")
        if instruction is not None and "{instruction}" not in (template or of_preset.template):
            raise InvalidInput(
                f"The instruction {instruction!r:.80} would be read nowhere: the prompt has no {{instruction}}."
            )
        check_limits(max_passage_tokens=max_passage_tokens)
        self.language_model = load_language_model(model)
        self.preset = preset
        self.template = template
        self.instruction = instruction
        self.max_passage_tokens = max_passage_tokens
        self.settings = as_settings(RelevanceSettings, settings)
        if not self.language_model.tells_next_tokens:
            self.language_model.next_tokens([NextTokenRequest((), ())])  # says what would do

    @cached_property
    def asked(self) -> AnswerPreset:
        """The preset with all that the settings and the checkpoint say; a checkpoint on the hub is looked at now.

        Raises:
            InvalidInput: the two answers are needed and only one is known, or both are the same.
        """
        settings = self.settings
        given = {
            item.name: value
            for item in fields(RelevanceSettings)
            if (value := getattr(settings, item.name)) is not None
        }
        given |= {} if self.instruction is None else {"instruction": self.instruction}
        if self.template is not None:
            given |= {"template": self.template, "instruction_form": "{instruction}"}
        lacks_an_answer = settings.positive is None or settings.negative is None
        trained = self.language_model.trained_answers if lacks_an_answer else None
        if trained is not None:
            given = {"positive": trained.positive, "negative": trained.negative} | given
            if given["negative"] is None:
                given = {"transform": "logit"} | given
        asked = replace(answer_preset(self.preset), **given)
        if asked.transform != "logit" and asked.negative is None:
            raise InvalidInput(f'transform="{asked.transform}" compares two answers: give negative, too.')
        if asked.positive == asked.negative:
            raise InvalidInput(f"Both answers are {asked.positive!r}: nothing can be told by them.")
        return asked

    def _scored(self, queries: Sequence[str], lists: Sequence[Sequence[Passage]]) -> list[list[Scored]]:
        if not any(lists):  # for no passage, load no model
            return [[] for _ in lists]
        asked = self.asked
        answers = (
            [asked.positive]
            if asked.transform == "logit" or asked.negative is None
            else [asked.positive, asked.negative]
        )
        requests = [
            NextTokenRequest(self._prompt(query, passage), tuple(answers), chat=asked.chat)
            for query, passages in zip(queries, lists, strict=True)
            for passage in passages
        ]
        found = self.language_model.next_tokens(requests, logits=asked.transform == "logit")
        _warn_of_unknown(found)
        scored = iter([score_of(asked, one) for one in found])
        return [[next(scored) for _ in passages] for passages in lists]

    def explain(self, query: str, ranking: Sequence[Ranked[Passage]]) -> Explanations:
        """The answers' probabilities behind each score; of its own, `ranking.explain()` tells them.

        The model says yes or no to the whole question, so that there are no contributions of its tokens. Nothing is
        asked anew.
        """
        asked = self.asked if ranking else None
        return Explanations((_explained(item, asked) for item in ranking if asked), query)

    def _prompt(self, query: str, passage: Passage) -> Prompt:
        return prompt_of(self.asked, query, passage, self.max_passage_tokens)


def prompt_of(asked: AnswerPreset, query: str, passage: Passage, max_passage_tokens: int | None) -> Prompt:
    """What the model reads before it answers."""
    instruction = (
        "" if asked.instruction is None else asked.instruction_form.replace("{instruction}", asked.instruction)
    )
    filled: dict[str, str | Evidence] = {
        "query": query,
        "text": Evidence(passage.titled_text, max_passage_tokens),
        "instruction": Wording(instruction),
    }
    pieces = _PLACE.split(asked.template)  # wording and names of places in turn
    return tuple(filled[piece] if number % 2 else Wording(piece) for number, piece in enumerate(pieces))


def score_of(asked: AnswerPreset, found: NextTokens) -> Scored:
    """What the transform makes of the answers, and the details."""
    values = found.values.tolist()
    if len(values) == 1:
        value, told = values[0], {"logit": values[0]}
    else:
        value, told = values[0] - values[1], {"positive": values[0], "negative": values[1]}
    odds = asked.scale * value + asked.shift
    details: dict[str, Any] = {"log_odds": odds, **told, "tokens": 1, "cut_tokens": found.cut_tokens}
    details["bounded"] = [name for name, bound in zip(("positive", "negative"), found.bounds, strict=False) if bound]
    return (log_sigmoid(odds) if asked.transform == "softmax" else odds), details


def _explained(item: Ranked[Passage], asked: AnswerPreset) -> Explanation:
    details, told = item.details, (asked.positive, asked.negative)
    answers = [
        (_shown(answer), details[name], name in details["bounded"])
        for name, answer in zip(("positive", "negative"), told, strict=True)
        if name in details
    ] or [(_shown(asked.positive), details["logit"], False)]
    return answered(item, answers, scale=asked.scale, shift=asked.shift, in_logs=asked.transform == "softmax")


def _shown(answer: str | int | None) -> str:
    return answer if isinstance(answer, str) else f"token {answer}"


def _warn_of_unknown(found: Sequence[NextTokens]) -> None:
    unknown = sum(bool(one.bounds) and all(one.bounds) for one in found)
    if unknown:
        warnings.warn(
            f"Of {unknown} of {len(found)} passages the server told neither answer, since others are likelier: the "
            "prompt is hardly the one that the model was trained with. They count as undecided.",
            DrillrankWarning,
            stacklevel=2,
        )


def _is_answer(answer: object) -> bool:
    return (isinstance(answer, str) and answer != "") or (
        isinstance(answer, int) and not isinstance(answer, bool) and answer >= 0
    )


def _check_template(template: str) -> None:
    names = _PLACE.findall(template) if isinstance(template, str) else []
    if names.count("text") != 1 or "query" not in names or not set(names) <= {"query", "text", "instruction"}:
        raise InvalidInput(
            "A template for relevance is a string that holds {text} once, {query}, and {instruction} if wanted; not "
            f"{template!r:.200}."
        )
