"""Prompts and templates of prompts.

A prompt is a tuple of parts. Strings (instructions, prefixes, demonstrations, questions) are never truncated. A
`TruncatableText` is a document, whose end a token budget may cut off. The control tokens of a model, such as
`<|im_start|>`, are control tokens in a `TrustedText` only. In other strings and in documents they are plain text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from drillrank.errors import InvalidInput
from drillrank.text import TokenCount


@dataclass(frozen=True, slots=True)
class TruncatableText:
    """Document inside a prompt, which a token budget may truncate.

    Attributes:
        text: Text of the document.
        max_tokens: Maximum number of tokens to keep; None for no limit of its own.
    """

    text: str
    max_tokens: int | None = None


class TrustedText(str):
    """Text by the author of the prompt, whose control tokens the model may obey."""


Prompt = tuple["str | TruncatableText", ...]

Template = str | Callable[..., str]
"""Prompt with placeholders: a string with `{name}` in it, or a function of keyword arguments.

Templates of frameworks are such functions.
"""


def prompt_text(prompt: Prompt) -> str:
    """Join the parts of a prompt without truncating any.

    >>> prompt_text(("Passage: ", TruncatableText("Some text"), "."))
    'Passage: Some text.'
    """
    return "".join(part if isinstance(part, str) else part.text for part in prompt)


def fill_template(template: Template, **values: str) -> str:
    """Fill all placeholders of a template at once. Braces in the values are data and stay unchanged.

    >>> fill_template("{question} Items: {items}", question="What is {items}?", items="a {b}")
    'What is {items}? Items: a {b}'
    """
    if callable(template):
        return template(**values)
    return re.sub(r"\{(\w+)\}", lambda placeholder: values.get(placeholder[1], placeholder[0]), template)


def check_placeholders(template: Template, *names: str) -> Template:
    """Check that a template contains all placeholders, and return it.

    Args:
        template: A string, a function, or a template of a framework, which has a `format` method.
        names: Names of the placeholders.

    Raises:
        InvalidInput: The template is neither a string nor a function, cannot be filled, or lacks a placeholder.

    >>> check_placeholders("Where is {town}?", "town")
    'Where is {town}?'
    """
    fill = None if isinstance(template, str) else getattr(template, "format", template)
    if callable(fill):
        markers = {name: f"here goes the {name}" for name in names}
        try:
            prompt = fill(**markers)
        except Exception as cause:
            raise InvalidInput(
                f"The template {template!r:.200} cannot be filled: {type(cause).__name__}: {cause}. "
                f"Pass one with the placeholders {', '.join(names)}."
            ) from cause
        missing = [name for name, marker in markers.items() if not isinstance(prompt, str) or marker not in prompt]
    else:
        missing = [name for name in names if not isinstance(template, str) or f"{{{name}}}" not in template]
    if missing:
        raise _missing_placeholder(missing[0], template)
    return template


def _missing_placeholder(name: str, template: object) -> InvalidInput:
    return InvalidInput(f"A template must contain {{{name}}}, got {template!r:.200}. Add {{{name}}} to it.")


def fill_question(template: str, question: str) -> str:
    """Replace the last `{question}` of a template by the question. Earlier ones, as in demonstrations, stay.

    Raises:
        InvalidInput: The template is not a string or does not contain `{question}`.

    >>> fill_question("What is {question} for? Answer: {question}", "Why?")
    'What is {question} for? Answer: Why?'
    """
    before, after = split_at_question(template)
    return f"{before}{question}{after}"


def check_question_templates(templates: Sequence[str]) -> tuple[str, ...]:
    """Check that each template of a list contains `{question}`, and return them.

    Raises:
        InvalidInput: The list is empty, or a template is not a string or does not contain `{question}`.

    >>> check_question_templates(["Why? {question}"])
    ('Why? {question}',)
    """
    if isinstance(templates, str) or not isinstance(templates, Iterable) or not templates:
        raise InvalidInput(f"Templates must be a non-empty list of strings, got {templates!r:.200}. Pass such a list.")
    for template in templates:
        split_at_question(template)
    return tuple(templates)


def split_at_question(template: str) -> tuple[str, str]:
    """Return the parts of a template before and after its last `{question}`.

    Raises:
        InvalidInput: The template is not a string or does not contain `{question}`.

    >>> split_at_question("Why {question}?")
    ('Why ', '?')
    """
    if not isinstance(template, str) or "{question}" not in template:
        raise _missing_placeholder("question", template)
    before, _, after = template.rpartition("{question}")
    return before, after


# Truncation

MIN_PROMPT_ROOM = 32  # tokens that a prompt must leave for texts
_GAP = " … "
_MAX_TOKEN_LENGTH = 8  # characters; in texts with longer tokens, `truncate_middle` keeps less than it could


def truncate_middle(text: str, limit: int, count: TokenCount) -> str:
    """Drop the middle of a text with more than `limit` tokens. A gap of " … ", which counts, replaces the middle.

    >>> truncate_middle("one two three four five six", 5, lambda text: len(text.split()))
    'one two  … five six'
    """
    if count(text) <= limit:
        return text
    if count(_GAP) > limit:
        return ""
    max_length = min(len(text) // 2, limit * _MAX_TOKEN_LENGTH)  # characters at either end
    lengths = range(1, max_length + 1)
    length = bisect_right(lengths, limit, key=lambda length: count(f"{text[:length]}{_GAP}{text[-length:]}"))
    return f"{text[:length]}{_GAP}{text[-length:]}" if length else _GAP.strip()


def truncate_to_budget(text: str, max_tokens: int, prompt: Callable[[str], str], count: TokenCount) -> str:
    """Drop the middle of a text if the prompt with the text has more than `max_tokens` tokens.

    Args:
        text: The text.
        max_tokens: Maximum number of tokens in the prompt.
        prompt: Function from a text to the prompt that contains it.
        count: Function from a text to its number of tokens.
    """
    limit, truncated = count(text), text
    while (excess := count(prompt(truncated)) - max_tokens) > 0 and limit > 0:
        limit = min(limit, count(truncated)) - excess
        truncated = truncate_middle(text, limit, count)
    return truncated
