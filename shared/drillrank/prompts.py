"""Prompts as text with cuttable documents.

A prompt is a tuple of parts: strings (instructions, prefixes, demonstrations, questions) are never shortened;
`TruncatableText` parts are documents, which a token budget may shorten from their end. A model's control tokens, such
as `<|im_start|>`, are control tokens in `TrustedText` alone; in other strings and in documents they are text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drillrank.errors import InvalidInput
from drillrank.text import TokenCount


@dataclass(frozen=True, slots=True)
class TruncatableText:
    """A document inside a prompt: what the target is to be explained by, and what a budget may shorten.

    Attributes:
        text: The document's text.
        max_tokens: Tokens of the language model that it may keep; None for no limit of its own.
    """

    text: str
    max_tokens: int | None = None


class TrustedText(str):
    """Wording of whoever wrote the prompt, who is trusted: a control token in it is one for the model, too."""


Prompt = tuple["str | TruncatableText", ...]

Template = str | Callable[..., str]
"""A prompt with places: a string with `{name}` in it, or a function of keyword arguments, as a host's templates are."""


def prompt_text(prompt: Prompt) -> str:
    """The whole prompt as one string, nothing shortened.

    >>> prompt_text(("Passage: ", TruncatableText("Some text"), "."))
    'Passage: Some text.'
    """
    return "".join(part if isinstance(part, str) else part.text for part in prompt)


def fill_template(template: Template, **values: str) -> str:
    """A template with its `{name}` places filled at once: braces in the values, which are data, stay as they are.

    >>> filled("{question} Items: {items}", question="What is {items}?", items="a {b}")
    'What is {items}? Items: a {b}'
    """
    if callable(template):
        return template(**values)
    return re.sub(r"\{(\w+)\}", lambda location: values.get(location[1], location[0]), template)


def check_places(template: Template, *names: str) -> Template:
    """The template itself, once it is known to hold all of the places; a framework's, by its `format`, too.

    Raises:
        InvalidInput: it is neither a string nor a function, lacks one of them, or cannot be filled with them.
    """
    fill = None if isinstance(template, str) else getattr(template, "format", template)
    if callable(fill):
        marks = {name: f"here goes the {name}" for name in names}
        try:
            prompt = fill(**marks)
        except Exception as cause:
            problem = f"{type(cause).__name__}: {cause}"
            raise InvalidInput(f"This prompt cannot be filled with {' and '.join(names)}: {problem}.") from cause
        missing = [name for name, mark in marks.items() if not isinstance(prompt, str) or mark not in prompt]
    else:
        missing = [name for name in names if not isinstance(template, str) or f"{{{name}}}" not in template]
    if missing:
        raise InvalidInput(f"This prompt is a string that holds {{{missing[0]}}}; not {template!r:.200}.")
    return template


def fill_question(template: str, question: str) -> str:
    """A template with the question at its last `{question}`; earlier ones belong to the wording, as in demonstrations.

    Raises:
        InvalidInput: the template is no string, or has no place for the question.

    >>> fill_question("What is {question} for? Answer: {question}", "Why?")
    'What is {question} for? Answer: Why?'
    """
    before, after = around_question(template)
    return f"{before}{question}{after}"


def check_question_templates(templates: Sequence[str]) -> tuple[str, ...]:
    """Templates for questions, each with a place for one.

    Raises:
        InvalidInput: none is given, or one has no `{question}`.
    """
    if isinstance(templates, str) or not templates:
        raise InvalidInput(f"Prompts are a non-empty list of strings, not {templates!r:.200}.")
    for template in templates:
        around_question(template)
    return tuple(templates)


def around_question(template: str) -> tuple[str, str]:
    """What stands before and after the last `{question}`.

    Raises:
        InvalidInput: the template is no string, or has no place for the question.
    """
    before, location, after = template.rpartition("{question}") if isinstance(template, str) else ("", "", "")
    if not location:
        raise InvalidInput(f"A template for a question is a string that holds {{question}}; not {template!r:.200}.")
    return before, after


# Texts that are too long

LEAST = 32  # tokens that any prompt needs for texts
_GAP = " … "
_LONG_TOKEN = 8  # characters; of text with longer tokens, `truncate_middle` keeps less than it could


def truncate_middle(text: str, limit: int, count: TokenCount) -> str:
    """The text, or its beginning and its end with a gap between them, of at most `limit` tokens together.

    >>> shortened("one two three four five six", 5, lambda text: len(text.split()))
    'one two  … five six'
    """
    if count(text) <= limit:
        return text
    if count(_GAP) > limit:
        return ""
    most = min(len(text) // 2, limit * _LONG_TOKEN)  # characters at either end
    few = bisect_right(range(1, most + 1), limit, key=lambda size: count(f"{text[:size]}{_GAP}{text[-size:]}"))
    return f"{text[:few]}{_GAP}{text[-few:]}" if few else _GAP.strip()


def truncate_to_budget(text: str, max_tokens: int, prompt: Callable[[str], str], count: TokenCount) -> str:
    """The text, without its middle if the prompt with it would have more than so many tokens."""
    limit, shown = count(text), text
    while (over := count(prompt(shown)) - max_tokens) > 0 and limit > 0:
        limit = min(limit, count(shown)) - over
        shown = truncate_middle(text, limit, count)
    return shown
