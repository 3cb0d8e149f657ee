"""Adapters of a framework's models: prompts that keep a template's roles, embeddings, and reported token counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from drillrank.text import without_surrogates
from drillrank.vectors import Embed

STEPS: dict[str, tuple[str, ...]] = {
    "section_prompt": ("choose sections", "outline", "question"),
    "paragraph_prompt": ("choose paragraphs", "paragraphs", "question"),
    "prompt": ("ask a follow-up question", "question", "transcript"),
    "answer_prompt": ("answer from documents", "contents", "question"),
    "missing_prompt": ("name what is missing", "documents", "question"),
}
"""Name of the step in traces, and the placeholders of the template, by the name of a component's prompt."""


class FilledPrompt(str):
    """Text of a filled template, with the prompt that a framework sends.

    Attributes:
        prompt: Prompt in the framework's own form.
        step: Name of the step in traces.
    """

    prompt: Any
    step: str

    def __new__(cls, text: str, prompt: object, step: str) -> FilledPrompt:
        """Create the text with both attributes."""
        filled_prompt = super().__new__(cls, text)
        filled_prompt.prompt, filled_prompt.step = prompt, step
        return filled_prompt


def fill_framework_template(
    name: str, fill: Callable[[dict[str, str]], tuple[str, Any]], /, **values: str
) -> FilledPrompt:
    """Fill the template of a component's prompt.

    Args:
        name: Name of the prompt in `STEPS`.
        fill: Function from the values of the placeholders to the text and the framework's prompt.
        values: Values by placeholder. Others are ignored.

    >>> fill = lambda values: (f"{values['question']} {values['outline']}", "chat")
    >>> prompt = fill_framework_template("section_prompt", fill, outline="[0] Fish", question="Which?", more="ignored")
    >>> prompt, framework_prompt(prompt, str, "summarise"), framework_prompt("Shorten.", str, "summarise")
    ('Which? [0] Fish', ('chat', 'choose sections'), ('Shorten.', 'summarise'))
    """
    step, *placeholders = STEPS[name]
    texts = {name: without_surrogates(values[name]) for name in placeholders}  # clients of LLMs send UTF-8
    return FilledPrompt(*fill(texts), step)


def framework_prompt(prompt: str, convert: Callable[[str], Any], step: str) -> tuple[Any, str]:
    """Return the framework's prompt and the name of its step.

    Args:
        prompt: Prompt of a request.
        convert: Function from a prompt without a template to the framework's prompt. Braces in it are plain text.
        step: Name of the step of a prompt without a template.
    """
    if isinstance(prompt, FilledPrompt):
        return prompt.prompt, prompt.step
    return convert(without_surrogates(prompt)), step


class FrameworkEmbedding:
    """Embedding model of a framework as an embedding function.

    Args:
        model: Embedding model of the framework.
        texts: Function from a list of texts to their vectors.
        question: Function from one question to its vector, as the model embeds questions.

    >>> embed = FrameworkEmbedding("toy", lambda texts: [[1.0] for text in texts], lambda question: [2.0])
    >>> embed(["a", "b"]), embed.questions(["c"])
    ([[1.0], [1.0]], [[2.0]])
    """

    def __init__(self, model: object, texts: Embed, question: Callable[[str], list[float]]) -> None:
        self.model = model
        self._texts = texts
        self._question = question

    def __call__(self, texts: list[str]) -> Any:
        """Embed texts."""
        return self._texts(list(map(without_surrogates, texts)))

    def questions(self, texts: list[str]) -> list[list[float]]:
        """Embed questions."""
        return list(map(self._question, map(without_surrogates, texts)))


# Names under which a response keeps its usage, and names of the counts that add up to one number.
_USAGE_NAMES = ("usage", "usage_metadata", "token_usage")
_PROMPT_COUNTS = (
    ("prompt_tokens",),  # OpenAI
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),  # Anthropic, LangChain
    ("prompt_token_count",),  # Google
)
_COMPLETION_COUNTS = (("completion_tokens",), ("output_tokens",), ("candidates_token_count", "thoughts_token_count"))


def reported_tokens(*reports: object) -> tuple[int | None, int | None]:
    """Return the numbers of prompt and completion tokens in the first report that has them, else None.

    Args:
        reports: Responses with their usage, or the usage itself, as mappings or objects in the formats of OpenAI,
            Anthropic and Google. Other objects report nothing.

    >>> reported_tokens({"usage": {"prompt_tokens": 12, "completion_tokens": 3}})
    (12, 3)
    >>> reported_tokens(None, {"input_tokens": 12, "output_tokens": "many"})
    (12, None)
    """
    usages = [usage for report in reports for usage in (report, *(_get_value(report, name) for name in _USAGE_NAMES))]
    return _find_count(usages, _PROMPT_COUNTS), _find_count(usages, _COMPLETION_COUNTS)


def _find_count(usages: Sequence[object], formats: Sequence[Sequence[str]]) -> int | None:
    for usage in usages:
        for main_name, *other_names in formats:
            count = _as_positive_count(_get_value(usage, main_name))
            if count is not None:
                return count + sum(_as_positive_count(_get_value(usage, name)) or 0 for name in other_names)
    return None


def _get_value(report: object, name: str) -> object:
    return report.get(name) if isinstance(report, Mapping) else getattr(report, name, None)


def _as_positive_count(value: object) -> int | None:
    """Return a reported number, or None for 0, which servers report that do not count tokens."""
    return value if type(value) is int and value > 0 else None
