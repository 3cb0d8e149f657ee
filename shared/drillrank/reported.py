"""What an LLM call has cost, as the LLM's host reports it: every host and provider has a form of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

# Where a response keeps its usage, and what the parts of it are called that add up to one number.
_PLACES = ("usage", "usage_metadata", "token_usage")
_PROMPT = (
    ("prompt_tokens",),  # OpenAI
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),  # Anthropic, LangChain
    ("prompt_token_count",),  # Google
)
_COMPLETION = (("completion_tokens",), ("output_tokens",), ("candidates_token_count", "thoughts_token_count"))

Tokens = tuple[int | None, int | None]
"""Of the prompt and of the completion; None where nothing, or nothing that can be, is reported."""


class Answer(str):
    """An LLM's answer together with the tokens that its host reports; a plain string to everyone else.

    Attributes:
        prompt_tokens: None, for them to be counted, unless it is a number above 0.
        completion_tokens: Likewise.

    >>> Answer("42", prompt_tokens=7).prompt_tokens, Answer("42", prompt_tokens=-1).prompt_tokens
    (7, None)
    """

    __slots__ = ("completion_tokens", "prompt_tokens")

    prompt_tokens: int | None
    completion_tokens: int | None

    def __new__(cls, text: str, prompt_tokens: int | None = None, completion_tokens: int | None = None) -> Answer:
        """The text with what it cost."""
        answer = super().__new__(cls, text)
        answer.prompt_tokens, answer.completion_tokens = _number(prompt_tokens), _number(completion_tokens)
        return answer


def reported_tokens(*reports: object) -> Tokens:
    """The tokens of the prompt and of the completion in the first report that has them.

    Args:
        reports: What hosts give: responses with their usage, or the usage itself, as mappings or objects in the forms
            of OpenAI, Anthropic, Google and those who follow them. Anything else reports nothing.

    >>> reported_tokens({"usage": {"prompt_tokens": 12, "completion_tokens": 3}})
    (12, 3)
    >>> reported_tokens(None, {"input_tokens": 12, "output_tokens": "many"})
    (12, None)
    """
    usages = [usage for report in reports for usage in (report, *(_part(report, place) for place in _PLACES))]
    return _first(usages, _PROMPT), _first(usages, _COMPLETION)


def _first(usages: list[Any], forms: tuple[tuple[str, ...], ...]) -> int | None:
    for usage in usages:
        for main, *others in forms:
            number = _number(_part(usage, main))
            if number is not None:
                return number + sum(_number(_part(usage, other)) or 0 for other in others)
    return None


def _part(whole: Any, name: str) -> Any:
    with suppress(Exception):  # a stranger's object may do anything
        return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)
    return None


def _number(value: object) -> int | None:
    # 0 is what servers say that do not count.
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
