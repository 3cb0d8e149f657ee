"""Prompts as token ids: documents shortened to their budgets, then the whole string tokenised once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import Request
from drillrank.likelihood.budget import allot
from drillrank.likelihood.text_tokenizer import TextTokenizer, Tokenised
from drillrank.prompts import Evidence, Prompt, prompt_text


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt that keeps its budgets.

    Attributes:
        text: The prompt's text after shortening, with what was joined to it.
        tokens: That text tokenised as one string.
        cut_tokens: Tokens of documents that were left out.
    """

    text: str
    tokens: Tokenised
    cut_tokens: int


def fit_to_budgets(
    requests: Sequence[Request], continuations: Sequence[str], tokenizer: TextTokenizer, window: int | None
) -> list[Fitted]:
    """Shorten each prompt's documents until its budget and the model's window are met.

    Args:
        requests: Their prompts; `max_tokens` counts the prompt without its continuation.
        continuations: Text that follows each prompt in the same string, never shortened; empty for none.
        tokenizer: Counts the tokens.
        window: Tokens that prompt and continuation may have together, special tokens left out; None for no limit.

    Raises:
        InvalidInput: nothing would be left of a document, or the fixed wording alone is too long.
    """
    texts = [prompt_text(request.prompt) + rest for request, rest in zip(requests, continuations, strict=True)]
    distinct = dict.fromkeys(texts)
    tokenised = dict(zip(distinct, tokenizer.batch(list(distinct)), strict=True))
    return [
        _fit(request, rest, tokenised[text], tokenizer, window)
        for request, rest, text in zip(requests, continuations, texts, strict=True)
    ]


def _fit(request: Request, rest: str, tokens: Tokenised, tokenizer: TextTokenizer, window: int | None) -> Fitted:
    prompt, text = request.prompt, prompt_text(request.prompt)
    limits = [part.max_tokens for part in prompt if isinstance(part, Evidence)]
    tight, cut = 0, 0
    while True:
        in_prompt = int(np.searchsorted(tokens.ends, len(text), side="right")) if rest else len(tokens.ids)
        over = max(
            in_prompt - request.max_tokens if request.max_tokens is not None else 0,
            len(tokens.ids) - window if window is not None else 0,
            0,
        )
        documents = _token_spans(prompt, tokens)
        lengths = [last - first for first, last in documents]
        if not over and all(limit is None or length <= limit for length, limit in zip(lengths, limits, strict=True)):
            return Fitted(text + rest, tokens, cut)
        if not any(lengths):
            raise InvalidInput(
                f"The prompt is {over} tokens too long without any document: shorten the instruction or the target, "
                "or allow more tokens."
            )
        kept = allot(lengths, limits, sum(lengths) - over - tight if over else None)
        cut += sum(lengths) - sum(kept)
        prompt = _shortened(prompt, documents, kept, tokens)
        text = prompt_text(prompt)
        tokens = tokenizer(text + rest)
        tight += 1  # a cut can make the tokens at its border fall apart; each round leaves a little more room


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


def _shortened(prompt: Prompt, documents: Sequence[tuple[int, int]], kept: Sequence[int], tokens: Tokenised) -> Prompt:
    parts: list[str | Evidence] = []
    at, number = 0, 0
    for part in prompt:
        if isinstance(part, str):
            parts.append(part)
            at += len(part)
            continue
        (first, last), keep = documents[number], kept[number]
        text = part.text
        if keep < last - first:
            text = text[: max(int(tokens.ends[first + keep - 1]) - at, 0)] if keep else ""
        parts.append(Evidence(text, part.max_tokens))
        at += len(part.text)
        number += 1
    return tuple(parts)
