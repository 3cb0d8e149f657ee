"""How many tokens a text comes to for an LLM: by default the same number on every machine.

Where chunks are cut and how prompts are filled depends on this number, so it must not depend on what else is installed.
Exact counts differ from model to model; who needs those of one model names its tokenizer.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sized
from functools import lru_cache, partial
from typing import Any, Protocol, runtime_checkable

from drillrank.errors import InvalidInput, require

TokenCount = Callable[[str], int]


@runtime_checkable
class Encodes(Protocol):
    """A tokenizer, such as those of transformers, tokenizers, sentencepiece and tiktoken."""

    @property
    def encode(self) -> Callable[..., Sized]:
        """From a text to its tokens."""
        ...


@runtime_checkable
class CountsTokens(Protocol):
    """A model that counts, such as drillrank's neural language models."""

    @property
    def count_tokens(self) -> TokenCount:
        """From a text to a number."""
        ...


Tokens = str | TokenCount | Encodes | CountsTokens | None
"""What counts: None for `count_tokens`, `"tiktoken:<encoding>"`, a function, a tokenizer, or a model that counts."""

# Explicit ranges, because `\w` follows the Unicode version of the running Python.
_TOKEN = re.compile(
    r"[a-z]{1,11}"  # most words are one token
    r"|[A-Z][a-z]{1,4}|[A-Z]{1,4}"  # names and acronyms are seldom
    r"|[0-9]{1,3}"
    r"|[!-/:-@\[-`{-~]{1,3}"
    r"|[ \t\r\n]{2,64}|\n"  # a single space belongs to the next word
    r"|[\u0250-\u0dff]{1,2}"  # Greek, Cyrillic, Hebrew, Arabic, scripts of India
    r"|[^ \t\r]"  # accented letters, Chinese, Japanese, Korean, emoji, ...
)
_SLICE = 20_000  # characters; byte-pair merging is super-linear in unbroken runs


def count_tokens(text: str) -> int:
    r"""An estimate from the characters alone: no vocabulary, no files, the same number wherever it runs.

    English prose, Markdown and JSON, added up, are within 2 % of the encodings cl100k_base and o200k_base, code within
    8 %; single passages stray by 8 %. For other languages it is too low or too high, by a fourth for German:
    `python -m tests.benchmarks tokens` tells.

    >>> count_tokens("The Rhine flows through Basel, a town of 180,000 people.\n")
    15
    """
    return sum(1 for _ in _TOKEN.finditer(text))


def token_counter(tokens: Tokens = None) -> TokenCount:
    """What counts the tokens of a text.

    Args:
        tokens: None for `count_tokens`; `"tiktoken:<encoding>"`, such as `"tiktoken:o200k_base"`, which tiktoken
            downloads at its first use; a function from a text to a number; a tokenizer with `encode`, whose special
            tokens do not count; or a model with `count_tokens`.

    Raises:
        InvalidInput: it is none of these, there is no such encoding, or it cannot be had.
        MissingExtra: tiktoken is not installed.

    >>> token_counter(lambda text: len(text.split()))("one two three")
    3
    """
    if tokens is None:
        return count_tokens
    count: Any = tokens
    if isinstance(tokens, str):
        count = _Encoded(_tiktoken(tokens))
    elif callable(own := getattr(tokens, "count_tokens", None)):
        count = own
    elif callable(encode := getattr(tokens, "encode_ordinary", None) or getattr(tokens, "encode", None)):
        count = _Encoded(encode)
    if not callable(count) or not isinstance(count("a text"), int):
        raise InvalidInput(
            f'tokens is "tiktoken:<encoding>", a function from a text to its number of tokens, or a tokenizer with '
            f"encode; not {tokens!r:.100}."
        )
    counted: TokenCount = count
    return counted


def is_estimate(count: TokenCount) -> bool:
    """Whether a counter of `token_counter` estimates."""
    return count is count_tokens


class _Encoded:
    """Counts what a tokenizer makes of a text."""

    def __init__(self, encode: Callable[..., Sized]) -> None:
        try:
            special = "add_special_tokens" in inspect.signature(encode).parameters
        except (TypeError, ValueError):  # compiled, without a signature
            special = False
        self._encode = partial(encode, add_special_tokens=False) if special else encode

    def __call__(self, text: str) -> int:
        return sum(len(self._encode(text[i : i + _SLICE])) for i in range(0, len(text), _SLICE))


@lru_cache(maxsize=8)
def _tiktoken(spec: str) -> Callable[[str], list[int]]:
    kind, _, name = spec.partition(":")
    if kind != "tiktoken" or not name:
        raise InvalidInput(f'tokens is "tiktoken:<encoding>", such as "tiktoken:cl100k_base"; not {spec!r}.')
    tiktoken = require("tiktoken", "tiktoken")
    try:
        encode: Callable[[str], list[int]] = tiktoken.get_encoding(name).encode_ordinary
    except Exception as cause:  # an unknown name, no network, a broken file
        raise InvalidInput(
            f"{spec!r} cannot be loaded: {cause}. Without a network, set TIKTOKEN_CACHE_DIR to a folder with its file."
        ) from cause
    return encode
