"""Prompts as token ids: documents shortened to their budgets, then the whole string tokenised once.

A beginning of a text can have more tokens than the text's own first ones, or fewer: a cut makes words fall apart, and
one character can have several tokens. So every beginning is tokenised before it counts as short enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import NextTokenRequest, Request
from drillrank.likelihood.budget import allot, longest
from drillrank.likelihood.text_tokenizer import TextTokenizer, Tokenised
from drillrank.prompts import Evidence, Prompt, prompt_text


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt that keeps its budgets.

    Attributes:
        text: The prompt's text after shortening, without what follows it.
        tokens: The prompt and what follows it, tokenised as one string.
        in_prompt: How many of the tokens are the prompt's; a token that the target begins with is the target's.
        cut_tokens: Tokens of documents that were left out.
    """

    text: str
    tokens: Tokenised
    in_prompt: int
    cut_tokens: int


def prompts_alone(requests: Sequence[NextTokenRequest]) -> list[Request]:
    """Prompts that nothing follows."""
    return [Request(request.prompt, "", request.max_tokens, request.chat) for request in requests]


def fit_to_budgets(
    requests: Sequence[Request], tokenizer: TextTokenizer, window: int | None, *, with_targets: bool
) -> list[Fitted]:
    """Shorten each prompt's documents until its budget and the model's window are met.

    What is kept of a document is a beginning of it that fits and uses its budget up, or does not fit with one token
    more; nothing, if not even its first character fits.

    Args:
        requests: Their prompts; `max_tokens` counts the prompt without its target.
        tokenizer: Counts the tokens.
        window: Tokens that prompt and target may have together, special tokens left out; None for no limit.
        with_targets: Whether the target follows the prompt in the same string; it is never shortened.

    Raises:
        InvalidInput: a budget leaves nothing of a document, or the target or the fixed wording alone is too long; or a
            conversation is wanted of a model without a chat template.
    """
    requests = [tokenizer.chat.worded(request) if request.chat else request for request in requests]
    texts = [
        (_joined(prompt_text(request.prompt), request, with_targets), tokenizer.marks(request.prompt))
        for request in requests
    ]
    distinct = list(dict.fromkeys(texts))
    tokens = tokenizer.batch([text for text, _ in distinct], [marks for _, marks in distinct])
    tokenised = dict(zip(distinct, tokens, strict=True))
    return [
        _Fitting(request, tokenised[text], tokenizer, window, with_targets).fitted()
        for request, text in zip(requests, texts, strict=True)
    ]


def as_one_string(
    requests: Sequence[Request], tokenizer: TextTokenizer, window: int | None, end: Sequence[int] = ()
) -> Iterator[tuple[list[int], int, int]]:
    """Each prompt and its target as a decoder-only model reads them: ids, where the target begins, tokens left out.

    Args:
        requests: Prompts, with targets or with empty ones.
        tokenizer: Of the model.
        window: Tokens of the longest string, special ones included; None for no limit.
        end: Ids behind the target.

    Raises:
        InvalidInput: a target has nothing in front of it; or as `fit_to_budgets`.
    """
    left = None if window is None else window - len(tokenizer.prefix) - len(end)
    for item in fit_to_budgets(requests, tokenizer, left, with_targets=bool(requests[0].target)):
        before = tokenizer.started(item.tokens.ids)
        first = len(before) - len(item.tokens.ids) + item.in_prompt
        if not first:
            raise InvalidInput("A decoder-only model needs some text, or a first token, in front of the target.")
        yield [*before, *end], first, item.cut_tokens


def _joined(prompt: str, request: Request, with_target: bool) -> str:
    """The target as it follows the prompt: a blank between them, unless either brings one or a chat template says."""
    if not with_target:
        return prompt
    own = request.chat or not prompt or prompt[-1].isspace() or request.target[0].isspace()
    blank = "" if own else " "
    return prompt + blank + request.target


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A prompt whose documents keep some of their tokens.

    Attributes:
        text: The prompt.
        tokens: The prompt and what follows it.
        in_prompt: Tokens of the prompt.
        lengths: Tokens of each document.
        over: By how many tokens the worst of all limits is exceeded; 0 or less if all are kept.
    """

    text: str
    tokens: Tokenised
    in_prompt: int
    lengths: list[int]
    over: int


class _Fitting:
    """One prompt on its way to its budgets. What a document keeps is told in tokens of the whole, uncut string."""

    def __init__(
        self, request: Request, tokens: Tokenised, tokenizer: TextTokenizer, window: int | None, with_target: bool
    ) -> None:
        self._request = request
        self._ends = tokens.ends
        self._tokenizer = tokenizer
        self._window = window
        self._with_target = with_target
        self._limits = [part.max_tokens for part in request.prompt if isinstance(part, Evidence)]
        self._spans = _token_spans(request.prompt, tokens)
        self._tried: dict[Prompt, _Attempt] = {}
        self._whole = self._attempt(request.prompt, tokens)

    def fitted(self) -> Fitted:
        whole = self._whole
        if whole.over <= 0:
            return Fitted(whole.text, whole.tokens, whole.in_prompt, 0)
        if not any(whole.lengths):
            raise self._refusal()
        keep = allot(whole.lengths, self._limits, None)
        for number, limit in enumerate(self._limits):
            if limit is not None and whole.lengths[number] > limit:
                keep[number] = self._within(keep, number, limit)
        if (over := self._keeping(keep).over) > 0:
            keep = self._together(keep, over)
        kept = self._keeping(keep)
        complete = map(self._complete, range(len(keep)), keep)
        return Fitted(kept.text, kept.tokens, kept.in_prompt, sum(whole.lengths) - sum(complete))

    def _within(self, keep: list[int], number: int, limit: int) -> int:
        """What a document may keep for its own limit."""

        def over(size: int) -> int:
            return self._keeping([*keep[:number], size, *keep[number + 1 :]]).lengths[number] - limit

        return longest(over, 0, self._whole.lengths[number] - 1, limit)

    def _together(self, keep: list[int], over: int) -> list[int]:
        """What the documents may keep for the limits of the whole; each that has something keeps something."""
        least = sum(size > 0 for size in keep)

        def shared(total: int) -> list[int]:
            return allot(keep, [None] * len(keep), total)

        total = longest(lambda total: self._keeping(shared(total)).over, least - 1, sum(keep) - 1, sum(keep) - over)
        if total < least:
            raise self._refusal()
        return shared(total)

    def _keeping(self, keep: Sequence[int]) -> _Attempt:
        """The prompt with so many tokens of each document."""
        parts: list[str | Evidence] = []
        at, number = 0, 0
        for part in self._request.prompt:
            if isinstance(part, str):
                parts.append(part)
                at += len(part)
                continue
            first, last = self._spans[number]
            text, kept = part.text, self._complete(number, keep[number])
            if kept < last - first:
                text = text[: int(self._ends[first + kept - 1]) - at] if kept else ""
            parts.append(Evidence(text))
            at += len(part.text)
            number += 1
        prompt = tuple(parts)
        if prompt not in self._tried:
            text = _joined(prompt_text(prompt), self._request, self._with_target)
            self._tried[prompt] = self._attempt(prompt, self._tokenizer(text, self._tokenizer.marks(prompt)))
        return self._tried[prompt]

    def _complete(self, number: int, keep: int) -> int:
        """So many tokens of a document, or fewer, so that no character keeps some of its tokens and loses others."""
        first, last = self._spans[number]
        if keep == last - first:
            return keep
        return int(np.searchsorted(self._ends, self._ends[first + keep])) - first  # where that token's character begins

    def _attempt(self, prompt: Prompt, tokens: Tokenised) -> _Attempt:
        text = prompt_text(prompt)
        in_prompt = int(np.searchsorted(tokens.ends, len(text), side="right"))
        lengths = [last - first for first, last in _token_spans(prompt, tokens)]
        over = [length - limit for length, limit in zip(lengths, self._limits, strict=True) if limit is not None]
        if self._request.max_tokens is not None:
            over.append(in_prompt - self._request.max_tokens)
        if self._window is not None:
            over.append(len(tokens.ids) - self._window)
        return _Attempt(text, tokens, in_prompt, lengths, max(over, default=0))

    def _refusal(self) -> InvalidInput:
        """Whose fault it is that nothing fits."""
        bare = self._keeping([0] * len(self._spans))
        target = len(bare.tokens.ids) - bare.in_prompt
        if self._window is not None and target >= self._window:
            return InvalidInput(
                f"The question, or what else is scored, has {target} tokens, and the model reads {self._window} at "
                "once, the prompt among them: shorten it, or take a model with a longer window. It begins with "
                f"{self._request.target[:40]!r}."
            )
        limits = {"of the prompt": self._request.max_tokens, "that the model reads at once": self._window}
        allowed = " and ".join(f"{limit} {of}" for of, limit in limits.items() if limit is not None)
        wording = max((part for part in self._request.prompt if isinstance(part, str)), key=len, default="")
        return InvalidInput(
            f"Nothing would be left of the documents: the rest of the prompt has {bare.in_prompt} tokens, what follows "
            f"it {target}, and {allowed} are allowed: shorten the instruction, the demonstrations or the question, or "
            f"allow more tokens. The longest of them begins with {wording[:40]!r}."
        )


def _token_spans(prompt: Prompt, tokens: Tokenised) -> list[tuple[int, int]]:
    """First token and the one behind the last of each document."""
    spans, at = [], 0
    for part in prompt:
        length = len(part) if isinstance(part, str) else len(part.text)
        if isinstance(part, Evidence):
            # A token may begin with the blank in front of a document: it belongs to it if it ends inside.
            first = int(np.searchsorted(tokens.ends, at, side="right"))
            last = int(np.searchsorted(tokens.ends, at + length, side="right"))
            spans.append((first, last))
        at += length
    return spans
