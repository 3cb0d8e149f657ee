"""Relevance: ask a language model if a passage is relevant, and rank by the probability of "yes".

With l+ and l- the logits of the two answers after the prompt, the score is

    softmax   log [ e^l+ / (e^l+ + e^l-) ]      the logarithm of P(relevant)
    margin    scale (l+ - l-) + shift           its log-odds
    logit     scale l+ + shift                  one raw logit, for models trained with it

The prompts of published models come from the publishers' code or model cards; `docs/neural-models.md` lists the
sources. If a publisher tokenizes the parts of a prompt one by one, drillrank tokenizes the whole string at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, Literal

import numpy as np

from drillrank.errors import InvalidInput, LacksCapability, check_limits, check_number, warn
from drillrank.explanation import Explanation, Explanations, Term
from drillrank.explanation.terms import ODDS
from drillrank.likelihood import LanguageModel, NextTokenRequest, NextTokens, Request, load_language_model
from drillrank.likelihood.base import RelevanceRequest
from drillrank.likelihood.relevance import RELEVANT, log_sigmoid
from drillrank.passages import Passage, Ranked
from drillrank.prompts import Prompt, TruncatableText, TrustedText
from drillrank.rerank.base import Candidates, CandidateScores, Ranker
from drillrank.rerank.explaining import name_of
from drillrank.rerank.prior import Scored
from drillrank.settings import Settings, as_settings, check_one_of

Transform = Literal["softmax", "margin", "logit"]

# Nogueira et al. (2020): P("true") against P("false") after this prompt.
MONOT5_PROMPT = "Query: {query} Document: {text} Relevant:"

_ANSWERS = ("positive", "negative")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NO_TOKENS = "The model answers about the whole question, so there are no contributions of its tokens."


@dataclass(frozen=True)
class AnswerPreset:
    """Prompt of a published model, the tokens that answer it, and the transform of their logits.

    Attributes:
        template: Text with `{query}`, `{text}` and optionally `{instruction}`.
        positive: Token for a relevant document: its text, its name in the vocabulary, or its id.
        negative: Token for another document; None if the score is the logit of `positive` alone.
        transform: See `RelevanceSettings`.
        instruction: The publisher's default instruction.
        instruction_form: Text around an instruction.
        scale: Factor of the score.
        shift: Summand of the score, after the factor.
        chat: True if the text is the user's turn in the model's own chat template.
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
D3_TASK = "Does the paragraph contain relevant information for answering the question? Respond with yes or no."
"""Task of D³'s strategy "paragraph". The paper (Nair et al. 2023) gives no wording for it; this one is ours."""
_D3 = f"[1] {{text}}\n\nQuestion: {{query}}\n\n{D3_TASK}"

ANSWER_PRESETS: dict[str, AnswerPreset] = {
    "monot5": AnswerPreset(MONOT5_PROMPT, "true", "false", "softmax"),
    "qwen3-reranker": AnswerPreset(_QWEN3, "yes", "no", "softmax", _QWEN3_TASK),
    "mxbai-rerank-v2": AnswerPreset(_MXBAI, "1", "0", "margin", instruction_form="instruction: {instruction}\n"),
    "bge-reranker-v2-gemma": AnswerPreset(_BGE, "Yes", None, "logit"),
    "zerank-1-small": AnswerPreset(_ZERANK, "Yes", None, "logit", scale=0.2),
    "zerank-2": AnswerPreset(_ZERANK, "Yes", None, "logit"),
    "ctxl-rerank-v2": AnswerPreset(_CTXL, 0, None, "logit", instruction_form=" {instruction}"),
    "yes-no": AnswerPreset(_YES_NO, "Yes", "No", "softmax", instruction_form="{instruction}\n\n", chat=True),
    "d3": AnswerPreset(_D3, "Yes", "No", "softmax", chat=True),
}

_NO_PROMPT = AnswerPreset("", RELEVANT, None, "softmax")  # of cross-encoders and rerank servers


@dataclass(frozen=True, kw_only=True)
class RelevanceSettings(Settings):
    """Answers of the model and their transform. None means the preset's value.

    Attributes:
        positive: Token for a relevant passage: its text, its name in the vocabulary, or its id. None is the token that
            the checkpoint names in `1_LogitScore/config.json`, or else the preset's.
        negative: Token for another passage; None as for `positive`.
        transform: Kind of the score: `"softmax"`, the logarithm of P(relevant), at most 0; `"margin"`, the difference
            of the two logits; `"logit"`, the raw logit of `positive`.
        scale: Factor of the margin or the logit.
        shift: Summand of the margin or the logit, after the factor.
        chat: True to put the prompt into the model's own chat template, as the user's turn.

    Raises:
        InvalidInput: An answer or a number cannot be used.
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
                raise InvalidInput(f"{name} must be the text or the id of a token, got {answer!r:.200}.")
        if self.scale is not None:  # or the order would turn around
            check_number(scale=self.scale)
        if self.shift is not None:
            check_number(-math.inf, shift=self.shift)
        if self.transform is not None:
            check_one_of(Transform, transform=self.transform)
        if not isinstance(self.chat, bool | None):
            raise InvalidInput(f"chat must be True, False or None, got {self.chat!r:.200}.")
        super().__post_init__()


class Relevance(Ranker[Passage | str, Passage]):
    """Ranks passages by the probability that the model calls them relevant.

    Args:
        model: A language model that computes probabilities of its next token, or a cross-encoder or rerank server,
            which needs no prompt; or its specification, such as `"ce:cross-encoder/ms-marco-MiniLM-L6-v2"`.
        preset: Prompt and answers of a published model: `"monot5"`, `"qwen3-reranker"`, `"mxbai-rerank-v2"`,
            `"bge-reranker-v2-gemma"`, `"zerank-1-small"`, `"zerank-2"`, `"ctxl-rerank-v2"`; `"yes-no"` and `"d3"` are
            for any model that was tuned to follow instructions. The latter has the prompt of D³'s strategy "paragraph",
            and is the one for `D3Settings.judge`.
        template: Prompt with `{query}`, `{text}` and optionally `{instruction}`; None is the preset's. Control tokens
            in it, such as `<|im_start|>`, are control tokens; in query and passage they are text.
        instruction: Description of the task for the model, if the prompt has `{instruction}`; None is the preset's.
        max_passage_tokens: Maximum number of tokens of a passage; None means the model's own limit.
        settings: Answers of the model and their transform.

    A passage is its title, if it has one, and its text, joined by a blank. If the prompt is too long, the passage is
    truncated, and nothing else.

    Scores are those of the transform: with `"softmax"` natural logarithms of P(relevant), at most 0; with the others
    log-odds. Higher is better, and scores of one model and one instruction compare across questions. `details`
    contains `log_odds` (whose sigmoid is P(relevant)), `positive` and `negative` (log-probabilities of the two
    answers) or `logit` (the raw logit of the answer that counts, or of a cross-encoder), `bounded` (answers for which
    a server reported an upper bound only), `tokens` (1: the answer), `cut_tokens` (of the passage) and `position` (in
    the input).

    Raises:
        LacksCapability: The model neither computes probabilities of its next token nor scores relevance, such as the
            unigram model.
        InvalidInput: A setting cannot be used, or an answer is not one token of the model.

    >>> Relevance("hf:Qwen/Qwen3-Reranker-0.6B", preset="qwen3-reranker").rank("Which novel?", [])  # loaded when needed
    []
    >>> Relevance("unigram")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.LacksCapability: This ranker needs a model that answers yes or no ..., got 'unigram'. ...
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
        if not isinstance(preset, str) or preset not in ANSWER_PRESETS:
            raise InvalidInput(f"preset must be one of {', '.join(ANSWER_PRESETS)}, got {preset!r:.200}.")
        _check_template(template)
        _check_instruction(instruction, template or ANSWER_PRESETS[preset].template)
        check_limits(max_passage_tokens=max_passage_tokens)
        self.language_model = load_language_model(model)
        self.preset, self.template, self.instruction = preset, template, instruction
        self.max_passage_tokens = max_passage_tokens
        self.settings = as_settings(RelevanceSettings, settings)
        self._check_model()

    def _check_model(self) -> None:
        if self.language_model.scores_relevance:
            self._check_no_prompt()
        elif not self.language_model.tells_next_tokens:
            self.language_model.next_tokens([NextTokenRequest((), ())])  # raises, and names models that can

    def _check_no_prompt(self) -> None:
        """Refuse settings of a prompt for a model that reads none, such as a cross-encoder."""
        values = {"preset": None if self.preset == "yes-no" else self.preset, "template": self.template}
        values |= {"instruction": self.instruction}
        values |= {name: getattr(self.settings, name) for name in (*_ANSWERS, "chat")}
        for name, value in values.items():
            if value is not None:
                raise InvalidInput(
                    f"{self.language_model.spec!r:.200} scores relevance without a prompt, got {name}={value!r:.80}. "
                    f"Remove {name}."
                )

    @cached_property
    def _preset(self) -> AnswerPreset:
        """Preset with the changes of the settings and of the checkpoint, which is looked up at the first use.

        Raises:
            InvalidInput: The transform needs two answers and only one is known, or both are the same.
        """
        form = None if self.template is None else "{instruction}"
        changes: dict[str, Any] = {item.name: getattr(self.settings, item.name) for item in fields(RelevanceSettings)}
        changes |= {"template": self.template, "instruction": self.instruction, "instruction_form": form}
        changes = {name: value for name, value in changes.items() if value is not None}
        if self.language_model.scores_relevance:
            return replace(_NO_PROMPT, **changes)
        trained = None if {"positive", "negative"} <= changes.keys() else self.language_model.trained_answers
        if trained is not None:
            changes = {"positive": trained.positive, "negative": trained.negative} | changes
            if changes["negative"] is None:
                changes = {"transform": "logit"} | changes
        preset = replace(ANSWER_PRESETS[self.preset], **changes)
        if preset.transform != "logit" and preset.negative is None:
            raise InvalidInput(f'transform="{preset.transform}" compares two answers. Set negative, too.')
        if preset.positive == preset.negative:
            raise InvalidInput(f"Both answers are {preset.positive!r:.200}. Set different ones.")
        return preset

    def score(self, candidate_lists: Sequence[Candidates[Passage]], /) -> list[CandidateScores]:
        """Score passages by the model's answer to the prompt with each of them."""
        if not any(candidates.items for candidates in candidate_lists):  # do not load a model for no passage
            return [CandidateScores([], partial(self.explain, candidates.query)) for candidates in candidate_lists]
        scored = map(self._score_answer, self._ask(candidate_lists))
        return [
            CandidateScores([next(scored) for _ in candidates.items], partial(self.explain, candidates.query))
            for candidates in candidate_lists
        ]

    def _ask(self, candidate_lists: Sequence[Candidates[Passage]]) -> list[NextTokens]:
        """Return the log-probabilities or the logit of the answers for each passage of all lists."""
        if self.language_model.scores_relevance:
            return self._ask_without_prompt(candidate_lists)
        preset = self._preset
        by_logit = preset.transform == "logit"
        answers = [answer for answer in (preset.positive, preset.negative) if answer is not None]
        counted_answers = tuple(answers[:1] if by_logit else answers)
        requests = [
            NextTokenRequest(self._prompt(candidates.query, passage), counted_answers, chat=preset.chat)
            for candidates in candidate_lists
            for passage in candidates.items
        ]
        next_tokens = self.language_model.next_tokens(requests, logits=by_logit)
        if any(one.bounds and all(one.bounds) for one in next_tokens):
            warn(
                "The server reported neither answer for some passages, because other tokens are likelier. They count "
                "as undecided. Use the prompt that the model was trained with."
            )
        return next_tokens

    def _ask_without_prompt(self, candidate_lists: Sequence[Candidates[Passage]]) -> list[NextTokens]:
        """Return the log-odds of relevance of each passage of all lists, by a model that needs no prompt."""
        scores = self.language_model.relevance(
            RelevanceRequest(candidates.query, TruncatableText(passage.titled_text, self.max_passage_tokens))
            for candidates in candidate_lists
            for passage in candidates.items
        )
        return [NextTokens(np.array([score.log_odds]), score.cut_tokens) for score in scores]

    def _prompt(self, query: str, passage: Passage) -> Prompt:
        """Return the prompt for a passage."""
        preset = self._preset
        form = "" if preset.instruction is None else preset.instruction_form
        value_by_name: dict[str, str | TruncatableText] = {
            "query": query,
            "text": TruncatableText(passage.titled_text, self.max_passage_tokens),
            "instruction": TrustedText(form.replace("{instruction}", preset.instruction or "")),
        }
        pieces = _PLACEHOLDER.split(preset.template)  # text and names of placeholders by turns
        return tuple(value_by_name[piece] if number % 2 else TrustedText(piece) for number, piece in enumerate(pieces))

    def _score_answer(self, answer: NextTokens) -> Scored:
        """Return the score of an answer by the transform, and its details."""
        preset = self._preset
        first, *others = values = answer.values.tolist()
        odds = preset.scale * (first - sum(others)) + preset.shift
        value_by_name = dict(zip(_ANSWERS if others else ("logit",), values, strict=True))
        bounded = [name for name, is_bound in zip(_ANSWERS, answer.bounds, strict=False) if is_bound]
        details = {"log_odds": odds, **value_by_name, "tokens": 1, "cut_tokens": answer.cut_tokens, "bounded": bounded}
        return log_sigmoid(odds) if preset.transform == "softmax" else odds, details

    def explain(self, query: str, ranking: Sequence[Ranked[Passage]]) -> Explanations:
        """Explain scores by the probabilities of the answers. The model is not called.

        The model answers about the whole question, so there are no contributions of its tokens.
        """
        entries = [self._explain_entry(item) for item in ranking]
        return Explanations(entries, query)

    def _explain_entry(self, item: Ranked[Passage]) -> Explanation:
        """Explain a score as log-odds, or as the logarithm of P(relevant), which is log-odds + log P(not relevant)."""
        preset, details, margin = self._preset, item.details, ""
        labels = [
            answer.strip() if isinstance(answer, str) else f"token {answer}"
            for answer in (preset.positive, preset.negative)
        ]
        if "logit" in details:
            terms = [Term(labels[0], preset.scale * details["logit"], text=f"logit {details['logit']:+.3f}")]
        else:
            margin = f"margin {details['positive'] - details['negative']:+.3f} nats"
            at_most = dict.fromkeys(details["bounded"], "at most ")
            terms = [
                Term(label, factor * details[key], text=f"{at_most.get(key, '')}P = {math.exp(details[key]):.4g}")
                for label, key, factor in zip(labels, _ANSWERS, (preset.scale, -preset.scale), strict=True)
            ]
        if preset.shift:
            terms.append(Term("shift", preset.shift))
        odds = Term.sum(ODDS, terms, margin)
        others = [Term("log P(not relevant)", log_sigmoid(-odds.value))] if preset.transform == "softmax" else []
        return Explanation(item.rank, item.score, name_of(item.passage), (odds, *others), note=_NO_TOKENS)


def _check_template(template: object) -> None:
    """Refuse a prompt without a query or a text.

    Raises:
        InvalidInput: The template is neither None nor a string with these placeholders.
    """
    if template is None:
        return
    names = _PLACEHOLDER.findall(template) if isinstance(template, str) else []
    if names.count("text") != 1 or "query" not in names or not set(names) <= {"query", "text", "instruction"}:
        raise InvalidInput(
            f"template must contain {{text}} once, {{query}}, and optionally {{instruction}}, got {template!r:.200}."
        )


def _check_instruction(instruction: object, template: str) -> None:
    """Refuse an instruction for which the prompt has no placeholder.

    Raises:
        InvalidInput: The instruction is not a string, or the template does not contain `{instruction}`.
    """
    if not isinstance(instruction, str | None):
        raise InvalidInput(f"instruction must be a string, got {instruction!r:.200}.")
    if instruction is not None and "{instruction}" not in template:
        raise InvalidInput(
            f"The prompt has no {{instruction}}, so the instruction {instruction!r:.80} would not be read. Remove it "
            "or use another template."
        )


class MonoT5(Relevance):
    """Ranks passages by the probability that the model calls them relevant: "true" against "false".

    score(p) = log [ P("true" | prompt) / (P("true" | prompt) + P("false" | prompt)) ]
    prompt   = Query: {query} Document: {passage} Relevant:                       Nogueira et al. (2020), section 3

    The preset `"monot5"` of `Relevance`, made for checkpoints that were fine-tuned with it, such as
    castorini/monot5-base-msmarco-10k. Scores, details and errors are those of `Relevance`, but any model that reads
    instructions can be used: an answer of several tokens counts as a whole word.

    Args:
        model: A language model that reads instructions, or its specification.
        max_passage_tokens: Maximum number of tokens of a passage; None means the model's own limit.

    >>> MonoT5("hf:castorini/monot5-base-msmarco-10k").rank("Which novel?", [])  # loaded for the first passage
    []
    >>> MonoT5("unigram")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.LacksCapability: MonoT5 needs a model that reads instructions, got 'unigram'. ...
    """

    def __init__(self, model: str | LanguageModel, *, max_passage_tokens: int | None = None) -> None:
        super().__init__(model, preset="monot5", max_passage_tokens=max_passage_tokens)

    def _check_model(self) -> None:
        if not self.language_model.reads_instructions:
            raise LacksCapability(
                f"MonoT5 needs a model that reads instructions, got {self.language_model.spec!r:.200}. Use a neural "
                'one, such as "hf:castorini/monot5-base-msmarco-10k".'
            )

    @cached_property
    def _preset(self) -> AnswerPreset:
        """Preset whose answers follow a blank after the prompt of a decoder."""
        blank = "" if self.language_model.include_eos_by_default else " "
        return replace(ANSWER_PRESETS["monot5"], positive=f"{blank}true", negative=f"{blank}false")

    def _ask(self, candidate_lists: Sequence[Candidates[Passage]]) -> list[NextTokens]:
        """Return the log-probabilities of the answers, as targets if the model lacks them as next tokens."""
        try:
            return super()._ask(candidate_lists)
        except LacksCapability:
            answers = str(self._preset.positive), str(self._preset.negative)
        requests = [
            [
                Request(self._prompt(candidates.query, passage), answer)
                for passage in candidates.items
                for answer in answers
            ]
            for candidates in candidate_lists
        ]
        likelihoods = chain.from_iterable(self.language_model.log_likelihood_lists(requests, include_eos=False))
        return [
            NextTokens(np.array([true.total, false.total]), max(true.cut_tokens, false.cut_tokens))
            for true, false in zip(likelihoods, likelihoods, strict=True)
        ]
