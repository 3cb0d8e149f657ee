"""What models of frameworks are to ours: prompts that keep a template's roles, embeddings, and the tokens reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from drillrank.vectors import Embed

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


def filled(name: str, fill: Callable[[dict[str, str]], tuple[str, Any]], /, **values: str) -> FilledPrompt:
    """The prompt of this name, for the core.

    Args:
        name: Of the prompt.
        fill: From the values of the places to the text, and what the host asks with.
        values: Of the places, and more.

    >>> fill = lambda values: (f"{values['question']} {values['outline']}", "form")
    >>> prompt = filled("section_prompt", fill, outline="[0] Fish", question="Which?", more="ignored")
    >>> prompt, host_prompt(prompt, str, "summarise"), host_prompt("Shorten.", str, "summarise")
    ('Which? [0] Fish', ('form', 'choose sections'), ('Shorten.', 'summarise'))
    """
    step, *places = STEPS[name]
    return FilledPrompt(*fill({location: values[location] for location in places}), step)


def host_prompt(prompt: str, form: Callable[[str], Any], step: str) -> tuple[Any, str]:
    """What the host asks with, and the step's name.

    Args:
        prompt: Of a request.
        form: From the text of a prompt without a template, in which braces are text.
        step: Of such a prompt.
    """
    return (prompt.form, prompt.step) if isinstance(prompt, FilledPrompt) else (form(prompt), step)


class HostEmbedding:
    """A framework's embedding model as such a function.

    Args:
        model: The framework's.
        texts: From texts to their vectors, all at once.
        question: From a question to its vector, in the way that the model wants questions.

    >>> embed = HostEmbedding("toy", lambda texts: [[1.0] for text in texts], lambda question: [2.0])
    >>> embed(["a", "b"]), embed.questions(["c"])
    ([[1.0], [1.0]], [[2.0]])
    """

    def __init__(self, model: object, texts: Embed, question: Callable[[str], list[float]]) -> None:
        self.model = model
        self._texts = texts
        self._question = question

    def __call__(self, texts: list[str]) -> Any:
        """Vectors of texts."""
        return self._texts(texts)

    def questions(self, texts: list[str]) -> list[list[float]]:
        """Vectors of questions."""
        return list(map(self._question, texts))


# Where a response keeps its usage, and what the parts of it are called that add up to one number.
_PLACES = ("usage", "usage_metadata", "token_usage")
_PROMPT = (
    ("prompt_tokens",),  # OpenAI
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),  # Anthropic, LangChain
    ("prompt_token_count",),  # Google
)
_COMPLETION = (("completion_tokens",), ("output_tokens",), ("candidates_token_count", "thoughts_token_count"))


def reported_tokens(*reports: object) -> tuple[int | None, int | None]:
    """The tokens of the prompt and of the completion in the first report that has them; None where none has.

    Args:
        reports: What hosts give: responses with their usage, or the usage itself, as mappings or objects in the forms
            of OpenAI, Anthropic, Google and those who follow them. Anything else reports nothing.

    >>> reported_tokens({"usage": {"prompt_tokens": 12, "completion_tokens": 3}})
    (12, 3)
    >>> reported_tokens(None, {"input_tokens": 12, "output_tokens": "many"})
    (12, None)
    """
    usages = [usage for report in reports for usage in (report, *(_part(report, location) for location in _PLACES))]
    return _first(usages, _PROMPT), _first(usages, _COMPLETION)


def _first(usages: Sequence[object], forms: Sequence[Sequence[str]]) -> int | None:
    for usage in usages:
        for main, *others in forms:
            number = _positive(_part(usage, main))
            if number is not None:
                return number + sum(_positive(_part(usage, other)) or 0 for other in others)
    return None


def _part(whole: object, name: str) -> object:
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)


def _positive(value: object) -> int | None:
    """The number that is reported; 0 is what servers say that do not count."""
    return value if type(value) is int and value > 0 else None
