"""Relevance: the language model is asked whether a passage is relevant, and how probable its "yes" is counts.

With l+ and l- the logits of the two answers behind the prompt, the score is

    softmax   log [ e^l+ / (e^l+ + e^l-) ]      the logarithm of P(relevant)
    margin    scale (l+ - l-) + shift           its log-odds
    logit     scale l+ + shift                  one raw logit, for models that were trained so

How published models are asked was read in the publishers' code or model cards; `docs/neural-models.md` has the table
with the sources. Where a publisher tokenises the pieces of a prompt one by one, the whole string is tokenised at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np

from drillrank.errors import InvalidInput, LacksCapability, check_limits, check_number, warn
from drillrank.explanation import Explanation, Explanations, Term
from drillrank.explanation.terms import ODDS
from drillrank.likelihood import LanguageModel, NextTokenRequest, NextTokens, Request, load_language_model
from drillrank.passages import Passage, Ranked, as_passages
from drillrank.prompts import Prompt, TruncatableText, TrustedText
from drillrank.rerank.base import Ranker, Scored, log_sigmoid, name_of
from drillrank.settings import Settings, as_settings, check_one_of

Transform = Literal["softmax", "margin", "logit"]

# Nogueira et al. (2020): P("true") against P("false") after this prompt.
MONOT5_PROMPT = "Query: {query} Document: {text} Relevant:"

_ANSWERS = ("positive", "negative")
_PLACE = re.compile(r"\{(\w+)\}")
_NO_TOKENS = "The model answers about the question as a whole: it tells no contribution of a token."


@dataclass(frozen=True)
class AnswerPreset:
    """A prompt, the tokens that answer it, and what is made of them.

    Attributes:
        template: Wording with `{query}`, `{text}` and, if there may be one, `{instruction}`.
        positive: The token that calls a document relevant: its text, its name in the vocabulary, or its id.
        negative: The token that does not; None where the logit of `positive` is all.
        transform: See `RelevanceSettings`.
        instruction: What the publisher asks where the user says nothing.
        instruction_form: How an instruction is written into its place.
        scale: Factor of the score.
        shift: Added to the score behind that.
        chat: Whether the wording is the user's turn in the model's own chat template.
    """

    template: str
    positive: str | int
    negative: str | int | None
    transform: Transform
    instruction: str | None = None
    instruction_form: str = "{instruction}"
    scale: float = 1.0
    shift: float = 0.0
    chat: bool = False


_SYSTEM, _USER = "<|im_start|>system\n", "<|im_end|>\n<|im_start|>user\n"
_ASSISTANT = "<|im_end|>\n<|im_start|>assistant\n"
_QWEN3 = (
    f"{_SYSTEM}Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    f'Note that the answer can only be "yes" or "no".{_USER}<Instruct>: {{instruction}}\n<Query>: {{query}}\n'
    f"<Document>: {{text}}{_ASSISTANT}<think>\n\n</think>\n\n"
)
_QWEN3_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_MXBAI = (
    f"{_SYSTEM}You are Qwen, created by Alibaba Cloud. You are a helpful assistant.{_USER}{{instruction}}"
    "query: {query}\ndocument: {text}\nYou are a search relevance expert who evaluates how well documents match "
    "search queries. For each query-document pair, carefully analyze the semantic relationship between them, then "
    "provide your binary relevance judgment (0 for not relevant, 1 for relevant).\n"
    f"Relevance:{_ASSISTANT}"
)
_BGE = (  # the tokenizer puts <bos> in front
    "A: {query}\nB: {text}\nGiven a query A and a passage B, determine whether the passage contains an answer to "
    "the query by providing a prediction of either 'Yes' or 'No'."
)
_ZERANK = f"{_SYSTEM}{{query}}{_USER}{{text}}{_ASSISTANT}"
_CTXL = (
    "Check whether a given document contains information helpful to answer the query.\n"
    "<Document> {text}\n<Query> {query}{instruction} ??"
)
_YES_NO = (  # ours, for any model that was tuned to follow instructions
    "{instruction}Query: {query}\n\nDocument: {text}\n\nDoes the document help to answer the query? Answer with "
    "one word, Yes or No."
)

ANSWER_PRESETS: dict[str, AnswerPreset] = {
    "monot5": AnswerPreset(MONOT5_PROMPT, "true", "false", "softmax"),
    "qwen3-reranker": AnswerPreset(_QWEN3, "yes", "no", "softmax", _QWEN3_TASK),
    "mxbai-rerank-v2": AnswerPreset(_MXBAI, "1", "0", "margin", instruction_form="instruction: {instruction}\n"),
    "bge-reranker-v2-gemma": AnswerPreset(_BGE, "Yes", None, "logit"),
    "zerank-1-small": AnswerPreset(_ZERANK, "Yes", None, "logit", scale=0.2),
    "zerank-2": AnswerPreset(_ZERANK, "Yes", None, "logit"),
    "ctxl-rerank-v2": AnswerPreset(_CTXL, 0, None, "logit", instruction_form=" {instruction}"),
    "yes-no": AnswerPreset(_YES_NO, "Yes", "No", "softmax", instruction_form="{instruction}\n\n", chat=True),
}


@dataclass(frozen=True, kw_only=True)
class RelevanceSettings(Settings):
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
        for name in _ANSWERS:
            answer = getattr(self, name)
            if not (answer is None or (isinstance(answer, str) and answer) or (type(answer) is int and answer >= 0)):
                raise InvalidInput(f"{name} is a token's text or its id, not {answer!r:.200}.")
        if self.scale is not None:  # or the order would turn around
            check_number(scale=self.scale)
        if self.shift is not None:
            check_number(-math.inf, shift=self.shift)
        if self.transform is not None:
            check_one_of(Transform, transform=self.transform)
        if not isinstance(self.chat, bool | None):
            raise InvalidInput(f"chat is a bool, not {self.chat!r:.200}.")
        super().__post_init__()


class Relevance(Ranker[Passage | str, Passage]):
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

    _candidates = staticmethod(as_passages)

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
        if not isinstance(preset, str) or preset not in ANSWER_PRESETS:
            raise InvalidInput(f"preset is one of {', '.join(ANSWER_PRESETS)}; not {preset!r:.200}.")
        names = _PLACE.findall(template) if isinstance(template, str) else []
        known = {"query", "text", "instruction"}
        if template is not None and (names.count("text") != 1 or "query" not in names or not set(names) <= known):
            places = "{text} once, {query}, and {instruction} if wanted"
            raise InvalidInput(f"A template for relevance is a string that holds {places}; not {template!r:.200}.")
        if not isinstance(instruction, str | None):
            raise InvalidInput(f"instruction is a str, not {instruction!r:.200}.")
        if instruction is not None and "{instruction}" not in (template or ANSWER_PRESETS[preset].template):
            where = "would be read nowhere: the prompt has no {instruction}."
            raise InvalidInput(f"The instruction {instruction!r:.80} {where}")
        check_limits(max_passage_tokens=max_passage_tokens)
        self.language_model = load_language_model(model)
        self.preset, self.template, self.instruction = preset, template, instruction
        self.max_passage_tokens = max_passage_tokens
        self.settings = as_settings(RelevanceSettings, settings)
        self._check_model()

    def _check_model(self) -> None:
        if not self.language_model.tells_next_tokens:
            self.language_model.next_tokens([NextTokenRequest((), ())])  # says what would do

    @cached_property
    def _preset(self) -> AnswerPreset:
        """The preset with all that the settings and the checkpoint say; a checkpoint on the hub is looked at now.

        Raises:
            InvalidInput: the two answers are needed and only one is known, or both are the same.
        """
        form = None if self.template is None else "{instruction}"
        given: dict[str, Any] = {item.name: getattr(self.settings, item.name) for item in fields(RelevanceSettings)}
        given |= {"template": self.template, "instruction": self.instruction, "instruction_form": form}
        given = {name: value for name, value in given.items() if value is not None}
        trained = None if {"positive", "negative"} <= given.keys() else self.language_model.trained_answers
        if trained is not None:
            given = {"positive": trained.positive, "negative": trained.negative} | given
            if given["negative"] is None:
                given = {"transform": "logit"} | given
        preset = replace(ANSWER_PRESETS[self.preset], **given)
        if preset.transform != "logit" and preset.negative is None:
            raise InvalidInput(f'transform="{preset.transform}" compares two answers: give negative, too.')
        if preset.positive == preset.negative:
            raise InvalidInput(f"Both answers are {preset.positive!r:.200}: nothing can be told by them.")
        return preset

    def _answers(
        self, queries: Sequence[str], lists: Sequence[list[Passage]], _stages: object, /
    ) -> list[list[NextTokens]]:
        if not any(lists):  # for no passage, load no model
            return [[] for _ in lists]
        preset = self._preset
        by_logit = preset.transform == "logit"
        answers = [answer for answer in (preset.positive, preset.negative) if answer is not None]
        wanted = tuple(answers[:1] if by_logit else answers)
        requests = [
            NextTokenRequest(self._prompt(query, passage), wanted, chat=preset.chat)
            for query, passages in zip(queries, lists, strict=True)
            for passage in passages
        ]
        found = self.language_model.next_tokens(requests, logits=by_logit)
        if any(one.bounds and all(one.bounds) for one in found):
            warn(
                "The server reported neither answer for some passages, because other tokens are likelier. They count "
                "as undecided. Use the prompt that the model was trained with."
            )
        each = iter(found)
        return [[next(each) for _ in passages] for passages in lists]

    def _prompt(self, query: str, passage: Passage) -> Prompt:
        """What the model reads before it answers."""
        preset = self._preset
        form = "" if preset.instruction is None else preset.instruction_form
        filled: dict[str, str | TruncatableText] = {
            "query": query,
            "text": TruncatableText(passage.titled_text, self.max_passage_tokens),
            "instruction": TrustedText(form.replace("{instruction}", preset.instruction or "")),
        }
        pieces = _PLACE.split(preset.template)  # wording and names of places in turn
        return tuple(filled[piece] if number % 2 else TrustedText(piece) for number, piece in enumerate(pieces))

    def _scored(self, _items: object, answers: Sequence[NextTokens], _stage: object, /) -> list[Scored]:
        """What the transform makes of the answers, and the details."""
        scored = []
        for found in answers:
            preset = self._preset
            first, *others = values = found.values.tolist()
            odds = preset.scale * (first - sum(others)) + preset.shift
            known = dict(zip(_ANSWERS if others else ("logit",), values, strict=True))
            bounded = [name for name, bound in zip(_ANSWERS, found.bounds, strict=False) if bound]
            details = {"log_odds": odds, **known, "tokens": 1, "cut_tokens": found.cut_tokens, "bounded": bounded}
            scored.append((log_sigmoid(odds) if preset.transform == "softmax" else odds, details))
        return scored

    def explain(self, query: str, ranking: Sequence[Ranked[Passage]]) -> Explanations:
        """The answers' probabilities behind each score; of its own, `ranking.explain()` tells them.

        The model says yes or no to the whole question, so that there are no contributions of its tokens. Nothing is
        asked anew.
        """
        return self._explained(query, (), (), ranking)

    def _explained(
        self, query: str, _items: object, _found: object, ranking: Sequence[Ranked[Passage]], /
    ) -> Explanations:
        if not ranking:  # for nothing, look at no checkpoint
            return Explanations(question=query)
        preset, found = self._preset, []
        both = (preset.positive, preset.negative)
        shown = [answer.strip() if isinstance(answer, str) else f"token {answer}" for answer in both]
        for item in ranking:
            details, margin = item.details, ""
            if "logit" in details:
                terms = [Term(shown[0], preset.scale * details["logit"], text=f"logit {details['logit']:+.3f}")]
            else:
                margin = f"margin {details['positive'] - details['negative']:+.3f} nats"
                at_most = dict.fromkeys(details["bounded"], "at most ")
                terms = [
                    Term(answer, factor * details[key], text=f"{at_most.get(key, '')}P = {math.exp(details[key]):.4g}")
                    for answer, key, factor in zip(shown, _ANSWERS, (preset.scale, -preset.scale), strict=True)
                ]
            if preset.shift:
                terms.append(Term("shift", preset.shift))
            odds = Term.sum(ODDS, terms, margin)
            others = [Term("log P(not relevant)", log_sigmoid(-odds.value))] if preset.transform == "softmax" else []
            found.append(Explanation(item.rank, item.score, name_of(item.passage), (odds, *others), note=_NO_TOKENS))
        return Explanations(found, query)


class MonoT5(Relevance):
    """Ranks passages by the probability that the model calls them relevant: "true" against "false".

    score(p) = log [ P("true" | prompt) / (P("true" | prompt) + P("false" | prompt)) ]
    prompt   = Query: {query} Document: {passage} Relevant:                       Nogueira et al. (2020), section 3

    The preset `"monot5"` of `Relevance`, made for checkpoints that were fine-tuned to answer so, such as
    castorini/monot5-base-msmarco-10k. Scores, details and errors are those of `Relevance`, except that any model that
    reads instructions can be asked: where an answer is several tokens it counts as a whole word.

    Args:
        model: A language model that reads instructions, or its specification.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.

    >>> MonoT5("hf:castorini/monot5-base-msmarco-10k").rank("Which novel?", [])  # loaded for the first passage
    []
    >>> MonoT5("unigram")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.LacksCapability: MonoT5 asks a question in words, which 'unigram' does not read: ...
    """

    def __init__(self, model: str | LanguageModel, *, max_passage_tokens: int | None = None) -> None:
        super().__init__(model, preset="monot5", max_passage_tokens=max_passage_tokens)

    def _check_model(self) -> None:
        if not self.language_model.reads_instructions:
            reads = f"which {self.language_model.spec!r:.200} does not read: give a neural model"
            raise LacksCapability(
                f'MonoT5 asks a question in words, {reads}, as "hf:castorini/monot5-base-msmarco-10k".'
            )

    @cached_property
    def _preset(self) -> AnswerPreset:
        """The preset; behind a decoder's prompt its answers follow a blank."""
        blank = "" if self.language_model.include_eos_by_default else " "
        return replace(ANSWER_PRESETS["monot5"], positive=f"{blank}true", negative=f"{blank}false")

    def _answers(
        self, queries: Sequence[str], lists: Sequence[list[Passage]], _stages: object, /
    ) -> list[list[NextTokens]]:
        """What the model answers; as targets, where an answer is several tokens or the model tells no next one."""
        try:
            return super()._answers(queries, lists, _stages)
        except LacksCapability:
            answers = str(self._preset.positive), str(self._preset.negative)
        requests = [
            [Request(self._prompt(query, passage), answer) for passage in passages for answer in answers]
            for query, passages in zip(queries, lists, strict=True)
        ]
        found = chain.from_iterable(self.language_model.log_likelihood_lists(requests, include_eos=False))
        pairs = (
            NextTokens(np.array([true.total, false.total]), max(true.cut_tokens, false.cut_tokens))
            for true, false in zip(found, found, strict=True)
        )
        return [[next(pairs) for _ in passages] for passages in lists]
