"""Prompts made from a host's templates: the LLM is asked with what the host made of one, so that roles are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STEPS: dict[str, tuple[str, ...]] = {
    "section_prompt": ("choose sections", "outline", "question"),
    "paragraph_prompt": ("choose paragraphs", "paragraphs", "question"),
    "prompt": ("ask a follow-up question", "question", "transcript"),
    "answer_prompt": ("answer from documents", "contents", "question"),
    "missing_prompt": ("name what is missing", "documents", "question"),
}
"""Of each prompt that a component takes what its step is called in traces, and the places of its template."""


class FilledPrompt(str):
    """A prompt made from a template.

    Attributes:
        form: What the host asks with.
        step: What its step is called in traces.
    """

    form: Any
    step: str

    def __new__(cls, text: str, form: object, step: str) -> FilledPrompt:
        """The text with both."""
        prompt = super().__new__(cls, text)
        prompt.form, prompt.step = form, step
        return prompt


class Filler:
    """Fills the places of a template, for the core.

    Args:
        name: Of the prompt.
        fill: From the values of the places to the text, and what the host asks with.

    >>> prompt = Filler("section_prompt", lambda values: (f"{values['question']} {values['outline']}", "form"))
    >>> filled = prompt(outline="[0] Fish", question="Which?", more="ignored")
    >>> filled, asked_with(filled, str, "summarise"), asked_with("Shorten.", str, "summarise")
    ('Which? [0] Fish', ('form', 'choose sections'), ('Shorten.', 'summarise'))
    """

    def __init__(self, name: str, fill: Callable[[dict[str, str]], tuple[str, Any]]) -> None:
        self._step, *self._places = STEPS[name]
        self._fill = fill

    def __call__(self, **values: str) -> FilledPrompt:
        """The prompt."""
        return FilledPrompt(*self._fill({place: values[place] for place in self._places}), self._step)


def asked_with(prompt: str, form: Callable[[str], Any], step: str) -> tuple[Any, str]:
    """What the host asks with, and the step's name.

    Args:
        prompt: Of a request.
        form: From the text of a prompt without a template, in which braces are text.
        step: Of such a prompt.
    """
    return (prompt.form, prompt.step) if isinstance(prompt, FilledPrompt) else (form(prompt), step)
